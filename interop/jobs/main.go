// Command jobs repeats the second source document: an HTTP producer that pushes 1000 messages a
// request, 1000 requests by 100 clients, and then consumers that take the million.
//
//	jobs -protocol redis -addr 127.0.0.1:6379 -phase produce
//
// With -protocol redis and beanstalkd the producer is an HTTP server in this process, as there, and
// each request pushes its messages one after the other on a connection of its own; with -protocol
// http the requests go to Dunlin itself. It prints one line of JSON.
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
	"sync/atomic"
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
	Bench     string  `json:"bench"`
	Protocol  string  `json:"protocol"`
	Phase     string  `json:"phase"`
	Messages  int64   `json:"messages"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	// Of requests where they are produced, of single messages where they are consumed.
	MeanMs float64 `json:"mean_ms"`
	P99Ms  float64 `json:"p99_ms"`
}

// queue is a connection to a server of jobs.
type queue interface {
	// push stores one message, and returns when that is confirmed.
	push(body string) error
	// take takes messages and is done with them; none where there are no more.
	take() (int, error)
	close()
}

func main() {
	log.SetFlags(0)
	p := plan{}
	flag.StringVar(&p.protocol, "protocol", "redis", "redis, beanstalkd or http")
	flag.StringVar(&p.addr, "addr", "", "where the server listens")
	flag.StringVar(&p.phase, "phase", "produce", "produce or consume")
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
	case "produce":
		return produce(p)
	case "consume":
		return consume(p)
	}
	return result{}, fmt.Errorf("-phase %s? produce or consume", p.phase)
}

func open(p plan) (queue, error) {
	switch p.protocol {
	case "redis":
		return openRedis(p.addr)
	case "beanstalkd":
		return openBeanstalkd(p.addr)
	case "http":
		return openDunlin(p.addr)
	}
	return nil, fmt.Errorf("-protocol %s? redis, beanstalkd or http", p.protocol)
}

// consume takes what is there with all workers at once.
func consume(p plan) (result, error) {
	var taken atomic.Int64
	times, err := together(p.workers, func(worker int, times *[]time.Duration) error {
		q, err := open(p)
		if err != nil {
			return err
		}
		defer q.close()
		for {
			begun := time.Now()
			count, err := q.take()
			if err != nil || count == 0 {
				return err
			}
			taken.Add(int64(count))
			*times = append(*times, time.Since(begun)/time.Duration(count))
		}
	})
	return times.result(p, taken.Load()), err
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

func (t timed) result(p plan, messages int64) result {
	sort.Slice(t.parts, func(a, b int) bool { return t.parts[a] < t.parts[b] })
	r := result{Bench: "jobs", Protocol: p.protocol, Phase: p.phase, Messages: messages}
	r.Seconds = t.whole.Seconds()
	r.PerSecond = float64(messages) / r.Seconds
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
