// Command jobs repeats the second source document: an HTTP producer that pushes 1000 messages a
// request, 1000 requests by 100 clients, and then consumers that take the million.
//
//	jobs -protocol redis -addr 127.0.0.1:6379 -phase push
//
// The producer is an HTTP server in this process, as there, and each request pushes its messages on
// a connection of its own, one after the other (push) or as the protocol's own batch (batch); with
// -protocol http the requests go to Dunlin itself. It prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

// plan is what is asked for.
type plan struct {
	protocol string
	addr     string
	phase    string
	requests int
	amount   int
	clients  int
	workers  int
	body     string
}

// result is what came of it.
type result struct {
	Messages int64 `json:"messages"`
	Nanos    int64 `json:"nanos"`
	// Of requests where they are produced, of single messages where they are taken.
	MeanMs float64 `json:"mean_ms"`
	P99Ms  float64 `json:"p99_ms"`
}

// queue is a connection to a server of jobs.
type queue interface {
	// push stores one message, and returns when that is confirmed.
	push(body string) error
	// take takes messages and is done with them, or gives them back; none where there are none.
	take(giveBack bool) (int, error)
	// count says how many there are.
	count() (int64, error)
	close()
}

// batcher is a queue that can be given many messages before it confirms.
type batcher interface {
	batch(body string, amount int) error
}

func main() {
	log.SetFlags(0)
	p := plan{}
	flag.StringVar(&p.protocol, "protocol", "redis", "redis, beanstalkd, http, nats or amqp")
	flag.StringVar(&p.addr, "addr", "", "where the server listens")
	flag.StringVar(&p.phase, "phase", "push", "push, batch, take, release or count")
	flag.IntVar(&p.requests, "requests", 1000, "HTTP requests in all")
	flag.IntVar(&p.amount, "amount", 1000, "messages of one request")
	flag.IntVar(&p.clients, "clients", 100, "clients that make requests")
	flag.IntVar(&p.workers, "workers", 100, "workers that take messages")
	size := flag.Int("bytes", 100, "bytes of one message")
	flag.Parse()
	p.body = strings.Repeat("x", *size)
	outcome, err := run(p)
	if err != nil {
		log.Fatalf("jobs: %v", err)
	}
	line, err := json.Marshal(outcome)
	if err != nil {
		log.Fatalf("jobs: %v", err)
	}
	fmt.Fprintln(os.Stdout, string(line))
}

func run(p plan) (result, error) {
	switch p.phase {
	case "push", "batch":
		return produce(p)
	case "take", "release":
		return consume(p)
	case "count":
		return recovered(p)
	}
	return result{}, fmt.Errorf("-phase %s? See -help", p.phase)
}

func open(p plan) (queue, error) {
	switch p.protocol {
	case "redis":
		return openRedis(p.addr)
	case "beanstalkd":
		return openBeanstalkd(p.addr)
	case "http":
		return openDunlin(p.addr)
	case "nats":
		return openNats(p.addr)
	case "amqp":
		return openRabbit(p.addr)
	}
	return nil, fmt.Errorf("-protocol %s? See -help", p.protocol)
}

// recovered asks until the server says how many messages it has.
func recovered(p plan) (result, error) {
	begun := time.Now()
	for {
		count, err := counted(p)
		if err == nil {
			return result{Messages: count, Nanos: time.Since(begun).Nanoseconds()}, nil
		}
		if time.Since(begun) > time.Minute {
			return result{}, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func counted(p plan) (int64, error) {
	q, err := open(p)
	if err != nil {
		return 0, err
	}
	defer q.close()
	return q.count()
}

// timed is how long a phase took, and its parts.
type timed struct {
	whole time.Duration
	parts []time.Duration
}

// together runs work with so many goroutines, and waits for all.
func together(count int, work func(int, *[]time.Duration) error) (timed, error) {
	parts := make([][]time.Duration, count)
	failures := make([]error, count)
	var group sync.WaitGroup
	begun := time.Now()
	for i := 0; i < count; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			failures[i] = work(i, &parts[i])
		}()
	}
	group.Wait()
	whole := timed{whole: time.Since(begun)}
	for i := range parts {
		whole.parts = append(whole.parts, parts[i]...)
		if failures[i] != nil {
			return whole, failures[i]
		}
	}
	return whole, nil
}

func (t timed) result(messages int64) result {
	sort.Slice(t.parts, func(a, b int) bool { return t.parts[a] < t.parts[b] })
	r := result{Messages: messages, Nanos: t.whole.Nanoseconds()}
	if count := len(t.parts); count > 0 {
		var sum time.Duration
		for _, part := range t.parts {
			sum += part
		}
		r.MeanMs = sum.Seconds() * 1000 / float64(count)
		r.P99Ms = t.parts[count*99/100].Seconds() * 1000
	}
	return r
}
