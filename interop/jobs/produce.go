package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// produce makes all requests, by so many clients at once.
func produce(p plan) (result, error) {
	url := fmt.Sprintf("http://%s/queues/jobs/messages?count=%d", p.addr, p.amount)
	if p.protocol != "http" {
		address, err := serve(p)
		if err != nil {
			return result{}, err
		}
		url = fmt.Sprintf("http://%s/push?amount=%d", address, p.amount)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: p.clients}
	client := &http.Client{Transport: transport}
	var next atomic.Int64
	times, err := together(p.clients, func(_ int, times *[]time.Duration) error {
		for next.Add(1) <= int64(p.requests) {
			begun := time.Now()
			if err := post(client, url, p.body); err != nil {
				return err
			}
			*times = append(*times, time.Since(begun))
		}
		return nil
	})
	return times.result(int64(p.requests) * int64(p.amount)), err
}

func post(client *http.Client, url, body string) error {
	response, err := client.Post(url, "text/plain", bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}

// serve is the producer of the document: each request pushes its messages on one of as many
// connections as there are clients.
func serve(p plan) (net.Addr, error) {
	queues, err := openAll(p, p.clients)
	if err != nil {
		return nil, err
	}
	free := make(chan queue, p.clients)
	for _, q := range queues {
		free <- q
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	push := func(writer http.ResponseWriter, request *http.Request) {
		amount, err := strconv.Atoi(request.URL.Query().Get("amount"))
		body, failed := io.ReadAll(request.Body)
		if err != nil || failed != nil {
			http.Error(writer, "amount and a body are wanted", http.StatusBadRequest)
			return
		}
		q := <-free
		defer func() { free <- q }()
		if err := fill(q, p.phase, string(body), amount); err != nil {
			http.Error(writer, err.Error(), http.StatusBadGateway)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/push", push)
	go http.Serve(listener, mux)
	return listener.Addr(), nil
}

// fill pushes one message after the other, or all as one batch.
func fill(q queue, phase, body string, amount int) error {
	if phase == "batch" {
		batch, can := q.(batcher)
		if !can {
			return errors.New("no batches by this protocol")
		}
		return batch.batch(body, amount)
	}
	for i := 0; i < amount; i++ {
		if err := q.push(body); err != nil {
			return err
		}
	}
	return nil
}
