package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// secured is a server at SECURED_ADDR with TLS and users.
type secured struct {
	*testing.T
	context  context.Context
	protocol int
	ann      *redis.Client
	root     *redis.Client
	own      string
	other    string
}

func inBothSecured(t *testing.T, check func(s secured)) {
	if os.Getenv("SECURED_ADDR") == "" {
		t.Skip("no secured server")
	}
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			s := secured{T: t, context: limited, protocol: protocol}
			s.own, s.other = "ann."+freshKey(), "other."+freshKey()
			password := os.Getenv("SECURED_PASSWORD")
			s.ann, s.root = s.connect("ann", password, true), s.connect("root", password, true)
			// Users who have logged in from here do not wait for failures of others.
			for _, client := range []*redis.Client{s.ann, s.root} {
				if err := client.Ping(limited).Err(); err != nil {
					t.Fatal(err)
				}
			}
			check(s)
		})
	}
}

func (s secured) connect(user, password string, roots bool) *redis.Client {
	config := &tls.Config{}
	if roots {
		pem, err := os.ReadFile(os.Getenv("SECURED_CA"))
		if err != nil {
			s.Fatal(err)
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	client := redis.NewClient(&redis.Options{
		Addr:       os.Getenv("SECURED_ADDR"),
		TLSConfig:  config,
		Protocol:   s.protocol,
		Username:   user,
		Password:   password,
		PoolSize:   1,
		MaxRetries: -1,
	})
	s.Cleanup(func() { _ = client.Close() })
	return client
}

func (s secured) refused(err error, word string) {
	s.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), word) {
		s.Fatalf("got %v, want %s", err, word)
	}
}

func TestSecuredUnknownRootIsRefused(t *testing.T) {
	inBothSecured(t, func(s secured) {
		err := s.connect("ann", os.Getenv("SECURED_PASSWORD"), false).Ping(s.context).Err()
		var unknown x509.UnknownAuthorityError
		if !errors.As(err, &unknown) {
			s.Fatalf("got %v, want an unknown authority", err)
		}
	})
}

func TestSecuredWrongPasswordIsRefused(t *testing.T) {
	inBothSecured(t, func(s secured) {
		// The client tries again at once by AUTH if HELLO is refused, and is told to wait.
		eve := fmt.Sprintf("eve-%d", s.protocol)
		known := s.connect(eve, os.Getenv("SECURED_PASSWORD"), true)
		if err := known.Ping(s.context).Err(); err != nil {
			s.Fatal(err)
		}
		stranger := s.connect("", "", true)
		s.refused(stranger.Do(s.context, "AUTH", eve, "wrong password").Err(), "WRONGPASS")
		s.refused(stranger.Get(s.context, s.own).Err(), "NOAUTH")
		err := s.connect(eve, "wrong password", true).Ping(s.context).Err()
		if err == nil || !strings.Contains(err.Error(), "try again later") {
			s.refused(err, "WRONGPASS")
		}
	})
}

func TestSecuredOwnNamesServeAllCommands(t *testing.T) {
	inBothSecured(t, func(s secured) {
		user, err := s.ann.Do(s.context, "ACL", "WHOAMI").Text()
		equal(t, user, err, "ann")
		length, err := s.ann.RPush(s.context, s.own, 1, 2).Result()
		equal(t, length, err, 2)
		element, err := s.ann.LPop(s.context, s.own).Result()
		equal(t, element, err, "1")
		set, err := s.ann.Set(s.context, s.own+".value", "x", 0).Result()
		equal(t, set, err, "OK")
		value, err := s.ann.Get(s.context, s.own+".value").Result()
		equal(t, value, err, "x")
		transaction := s.ann.TxPipeline()
		pushed, popped := transaction.RPush(s.context, s.own, 3), transaction.LPop(s.context, s.own)
		_, err = transaction.Exec(s.context)
		equal(t, pushed.Val(), err, 2)
		equal(t, popped.Val(), err, "2")
	})
}

func TestSecuredOwnChannelCarriesMessages(t *testing.T) {
	inBothSecured(t, func(s secured) {
		subscription := s.ann.Subscribe(s.context, s.own)
		defer subscription.Close()
		if _, err := subscription.Receive(s.context); err != nil {
			s.Fatal(err)
		}
		receivers, err := s.root.Publish(s.context, s.own, "hello").Result()
		equal(t, receivers, err, 1)
		message, err := subscription.ReceiveMessage(s.context)
		if err != nil {
			s.Fatal(err)
		}
		equal(t, message.Payload, nil, "hello")
	})
}

func TestSecuredOtherNamesAreRefused(t *testing.T) {
	inBothSecured(t, func(s secured) {
		s.root.RPush(s.context, s.other, "kept")
		s.refused(s.ann.RPush(s.context, s.other, "x").Err(), "NOPERM")
		s.refused(s.ann.LPop(s.context, s.other).Err(), "NOPERM")
		s.refused(s.ann.Set(s.context, s.other, "x", 0).Err(), "NOPERM")
		s.refused(s.ann.Get(s.context, s.other).Err(), "NOPERM")
		s.refused(s.ann.Publish(s.context, s.other, "x").Err(), "NOPERM")
		subscription := s.ann.Subscribe(s.context, s.other)
		_, err := subscription.Receive(s.context)
		s.refused(err, "NOPERM")
		_ = subscription.Close()
		transaction := s.ann.TxPipeline()
		transaction.RPush(s.context, s.own, "x")
		transaction.RPush(s.context, s.other, "x")
		if _, err := transaction.Exec(s.context); err == nil {
			s.Fatal("a transaction with another's name is done")
		}
		length, err := s.ann.RPush(s.context, s.own, "x").Result()
		equal(t, length, err, 1)
		connections, err := s.ann.ClientID(s.context).Result()
		again, err2 := s.ann.ClientID(s.context).Result()
		equal(t, connections, errors.Join(err, err2), again)
		elements, err := s.root.LRange(s.context, s.other, 0, -1).Result()
		equal(t, elements, err, []string{"kept"})
	})
}
