// Command transactions repeats the tests of the bigdata Journal document on servers: transactions
// of 100 operations by concurrent clients, and readers beside one writer.
//
//	transactions -protocol redis -addr 127.0.0.1:6379 -phase transactions -clients 10
//
// It prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"sync"
	"time"
)

// plan is what is asked for.
type plan struct {
	protocol string
	addr     string
	clients  int
	span     time.Duration
}

// operation puts a value, or removes it where there is none.
type operation struct {
	key   []byte
	value []byte
}

// outcome of a transaction.
type outcome int

const (
	committed outcome = iota
	// aborted by its client.
	aborted
	// failed, because another one wrote the same.
	failed
)

// store is a connection to a server.
type store interface {
	// transact does all operations in one transaction.
	transact(operations []operation, commits bool) (outcome, error)
	put(key, value []byte) error
	// read gets all at once; nothing where there is none.
	read(keys [][]byte) ([][]byte, error)
	close()
}

func main() {
	log.SetFlags(0)
	p := plan{}
	flag.StringVar(&p.protocol, "protocol", "redis", "redis or postgresql")
	flag.StringVar(&p.addr, "addr", "", "where the server listens")
	phase := flag.String("phase", "transactions", "transactions, or reading beside a writer")
	flag.IntVar(&p.clients, "clients", 20, "connections that transact or read")
	millis := flag.Int("millis", 1000, "for so long")
	flag.Parse()
	p.span = time.Duration(*millis) * time.Millisecond
	var found any
	var err error
	switch *phase {
	case "transactions":
		found, err = transact(p)
	case "reading":
		found, err = read(p)
	default:
		err = fmt.Errorf("-phase %s? See -help", *phase)
	}
	if err != nil {
		log.Fatalf("transactions: %v", err)
	}
	line, err := json.Marshal(found)
	if err != nil {
		log.Fatalf("transactions: %v", err)
	}
	fmt.Fprintln(os.Stdout, string(line))
}

func open(p plan) (store, error) {
	switch p.protocol {
	case "redis":
		return openRedis(p.addr)
	case "postgresql":
		return openPostgres(p.addr)
	}
	return nil, fmt.Errorf("-protocol %s? redis or postgresql", p.protocol)
}

// together runs work on so many connections, which are made before the time begins.
func together(p plan, work func(int, store, *rand.Rand) error) (time.Duration, error) {
	stores := make([]store, p.clients)
	for i := range stores {
		made, err := open(p)
		if err != nil {
			return 0, err
		}
		defer made.close()
		stores[i] = made
	}
	failures := make([]error, p.clients)
	var group sync.WaitGroup
	begun := time.Now()
	for i, own := range stores {
		group.Add(1)
		go func() {
			defer group.Done()
			failures[i] = work(i, own, rand.New(rand.NewSource(time.Now().UnixNano()+int64(i))))
		}()
	}
	group.Wait()
	whole := time.Since(begun)
	for _, err := range failures {
		if err != nil {
			return whole, err
		}
	}
	return whole, nil
}
