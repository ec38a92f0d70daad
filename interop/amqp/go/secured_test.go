package amqp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
)

// logIn is a connection to the secured broker at SECURED_ADDR.
func logIn(t *testing.T, user, password string, roots bool) (*amqp.Conn, error) {
	t.Helper()
	return logInBy(t, amqp.SASLTypePlain(user, password), roots)
}

func logInBy(t *testing.T, mechanism amqp.SASLType, roots bool) (*amqp.Conn, error) {
	t.Helper()
	config := &tls.Config{}
	if roots {
		pem, err := os.ReadFile(os.Getenv("SECURED_CA"))
		if err != nil {
			t.Fatal(err)
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	limited, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	options := &amqp.ConnOptions{SASLType: mechanism, TLSConfig: config}
	conn, err := amqp.Dial(limited, "amqps://"+os.Getenv("SECURED_ADDR"), options)
	if err == nil {
		t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

// beginAs is a scenario of a user of the secured broker.
func beginAs(t *testing.T, user string) scenario {
	t.Helper()
	needSecured(t)
	limited, cancel := context.WithTimeout(context.Background(), 4*wait)
	t.Cleanup(cancel)
	s := scenario{T: t, context: limited}
	conn, err := logIn(t, user, os.Getenv("SECURED_PASSWORD"), true)
	s.ok(err)
	s.conn = conn
	s.session, err = conn.NewSession(limited, nil)
	s.ok(err)
	s.queue = fmt.Sprintf("ann.%s-%d-%d", t.Name(), os.Getpid(), numbers.Add(1))
	return s
}

func needSecured(t *testing.T) {
	t.Helper()
	if os.Getenv("SECURED_ADDR") == "" {
		t.Skip("no secured broker")
	}
}

func TestSecuredUnknownRootIsRefused(t *testing.T) {
	needSecured(t)
	_, err := logIn(t, "ann", os.Getenv("SECURED_PASSWORD"), false)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Fatalf("want an unknown authority, got %v", err)
	}
}

func TestSecuredWrongPasswordIsRefused(t *testing.T) {
	beginAs(t, "eve-1")
	_, err := logIn(t, "eve-1", "wrong password", true)
	// Code 1 of SASL: an unspecified problem with the credentials.
	if err == nil || !strings.HasPrefix(err.Error(), "SASL PLAIN auth failed with code 0x1:") {
		t.Fatalf("want a failure of SASL, got %v", err)
	}
}

func TestSecuredOwnQueueIsServed(t *testing.T) {
	s := beginAs(t, "ann")
	s.send("one", "two")
	receiver := s.receiver(amqp.ReceiverOptions{Credit: 2})
	for _, body := range []string{"one", "two"} {
		message := s.next(receiver)
		s.equal(body, string(message.GetData()))
		s.ok(receiver.AcceptMessage(s.context, message))
	}
}

func TestSecuredOtherNamesAreDenied(t *testing.T) {
	root, ann := beginAs(t, "root"), beginAs(t, "ann")
	root.queue = "other." + root.queue
	root.send("kept")
	denied := func(err error) {
		t.Helper()
		var failed *amqp.Error
		if !errors.As(err, &failed) || failed.Condition != amqp.ErrCondUnauthorizedAccess {
			t.Fatalf("want unauthorized access, got %v", err)
		}
	}
	_, err := ann.session.NewSender(ann.context, root.queue, nil)
	denied(err)
	_, err = ann.session.NewReceiver(ann.context, root.queue, nil)
	denied(err)
	// The same session goes on, and nothing has changed.
	ann.send("served")
	s := ann.receiver(amqp.ReceiverOptions{Credit: 1})
	ann.equal("served", string(ann.next(s).GetData()))
	receiver := root.receiver(amqp.ReceiverOptions{Credit: 1})
	root.equal("kept", string(root.next(receiver).GetData()))
}

// The last one, since its failure holds ann off for a moment.
func TestSecuredTokenOfIssuerLogsIn(t *testing.T) {
	needSecured(t)
	token := os.Getenv("SECURED_JWT")
	conn, err := logInBy(t, amqp.SASLTypeXOAUTH2("ann", token, 65536), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	tampered := token[:len(token)-8] + "AAAAAAAA"
	_, err = logInBy(t, amqp.SASLTypeXOAUTH2("ann", tampered, 65536), true)
	if err == nil || !strings.Contains(err.Error(), "SASL XOAUTH2 auth failed with code 0x1") {
		t.Fatalf("want a failure of SASL, got %v", err)
	}
}
