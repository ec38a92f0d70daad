package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// dunlin is a client of Dunlin's own HTTP interface. It takes messages by hundreds, and is done
// with all of them in one transaction.
type dunlin struct {
	client *http.Client
	base   string
}

const atOnce = 100

func openDunlin(addr string) (queue, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	return dunlin{&http.Client{Transport: transport, Timeout: time.Minute}, "http://" + addr}, nil
}

func (q dunlin) push(body string) error {
	return post(q.client, q.base+"/queues/jobs/messages", body)
}

func (q dunlin) take() (int, error) {
	response, err := q.client.Get(fmt.Sprintf("%s/queues/jobs/messages?max=%d", q.base, atOnce))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		return 0, fmt.Errorf("%s: %s (%v)", response.Status, text, err)
	}
	type settle struct {
		Lease string `json:"lease"`
	}
	var taken struct{ Messages []settle }
	if err := json.Unmarshal(text, &taken); err != nil || len(taken.Messages) == 0 {
		return 0, err
	}
	done, err := json.Marshal(map[string][]settle{"settle": taken.Messages})
	if err != nil {
		return 0, err
	}
	return len(taken.Messages), post(q.client, q.base+"/transactions", string(done))
}

func (q dunlin) close() { q.client.CloseIdleConnections() }
