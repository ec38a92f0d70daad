package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// dunlin is a client of Dunlin's own HTTP interface. It takes messages by hundreds, and is done
// with all of them in one transaction. What it pushes goes there without a producer between.
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

func (q dunlin) take(giveBack bool) (int, error) {
	type settle struct {
		Lease string `json:"lease"`
		As    string `json:"as"`
	}
	var taken struct{ Messages []settle }
	if err := q.get(fmt.Sprintf("/queues/jobs/messages?max=%d", atOnce), &taken); err != nil {
		return 0, err
	}
	if len(taken.Messages) == 0 {
		return 0, nil
	}
	as := "accept"
	if giveBack {
		as = "release"
	}
	for i := range taken.Messages {
		taken.Messages[i].As = as
	}
	done, err := json.Marshal(map[string][]settle{"settle": taken.Messages})
	if err != nil {
		return 0, err
	}
	return len(taken.Messages), post(q.client, q.base+"/transactions", string(done))
}

func (q dunlin) count() (int64, error) {
	var found struct{ Ready int64 }
	err := q.get("/queues/jobs", &found)
	return found.Ready, err
}

func (q dunlin) get(path string, into any) error {
	response, err := q.client.Get(q.base + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		return fmt.Errorf("%s: %s (%v)", response.Status, text, err)
	}
	return json.Unmarshal(text, into)
}

func (q dunlin) close() { q.client.CloseIdleConnections() }
