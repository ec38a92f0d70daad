package beanstalkd

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

// dialTLS is a connection to the secured server at SECURED_ADDR that trusts these roots.
func dialTLS(t *testing.T, roots *x509.CertPool) (*tls.Conn, error) {
	t.Helper()
	if os.Getenv("SECURED_ADDR") == "" {
		t.Skip("no secured server")
	}
	conn, err := tls.Dial("tcp", os.Getenv("SECURED_ADDR"), &tls.Config{RootCAs: roots})
	if err == nil {
		t.Cleanup(func() { conn.Close() })
		err = conn.SetDeadline(time.Now().Add(30 * time.Second))
	}
	return conn, err
}

// logIn sends the line that the client does not know, and gives the answer.
func logIn(t *testing.T, user, password string) (*tls.Conn, string) {
	t.Helper()
	roots := x509.NewCertPool()
	if pem, err := os.ReadFile(os.Getenv("SECURED_CA")); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	conn, err := dialTLS(t, roots)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "auth %s %s\r\n", user, password)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return conn, answer
}

// dialAs is a session of a user of the secured server.
func dialAs(t *testing.T, user, name string) session {
	t.Helper()
	socket, answer := logIn(t, user, os.Getenv("SECURED_PASSWORD"))
	if answer != "OK\r\n" {
		t.Fatal(answer)
	}
	conn := beanstalk.NewConn(socket)
	return session{t, conn, beanstalk.NewTube(conn, name), beanstalk.NewTubeSet(conn, name)}
}

func TestSecuredUnknownRootIsRefused(t *testing.T) {
	_, err := dialTLS(t, nil)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v, want an unknown authority", err)
	}
}

func TestSecuredWrongPasswordIsDenied(t *testing.T) {
	dialAs(t, "eve-1", "default")
	if _, answer := logIn(t, "eve-1", "wrong password"); answer != "DENIED\r\n" {
		t.Fatal(answer)
	}
}

func TestSecuredOwnTubeIsServed(t *testing.T) {
	s := dialAs(t, "ann", "ann."+freshName())
	id := s.put([]byte("hello"), 1, 0, time.Minute)
	s.reserve(id)
	s.ok(s.conn.Delete(id))
}

func TestSecuredOtherTubeIsDenied(t *testing.T) {
	name := "other." + freshName()
	root, ann := dialAs(t, "root", name), dialAs(t, "ann", name)
	id := root.put([]byte("kept"), 1, 0, time.Minute)
	denied := func(err error) {
		t.Helper()
		var failed beanstalk.ConnError
		if !errors.As(err, &failed) || failed.Err.Error() != "unknown response: DENIED" {
			t.Fatalf("got %v, want DENIED", err)
		}
	}
	_, err := ann.tube.Put([]byte("x"), 1, 0, time.Minute)
	denied(err)
	// The client does not read the answer to `put` if `use` is denied, so it connects again.
	ann = dialAs(t, "ann", name)
	_, err = ann.tube.Stats()
	denied(err)
	if _, err = ann.conn.Peek(id); !errors.Is(err, beanstalk.ErrNotFound) {
		t.Fatalf("got %v, want nothing found", err)
	}
	root.reserve(id)
	root.ok(root.conn.Delete(id))
}
