package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	amqp "github.com/rabbitmq/amqp091-go"
)

// lookTime is how long a worker of RabbitMQ waits for more than nothing. JetStream's would lose
// what comes just after that until its acknowledgement is due, so they wait longer.
const (
	lookTime  = 50 * time.Millisecond
	fetchTime = 2 * time.Second
)

// stream is JetStream: a stream that keeps each message until it is acknowledged, and one consumer
// that all workers pull from by hundreds.
type stream struct {
	conn    *nats.Conn
	js      nats.JetStreamContext
	workers *nats.Subscription
}

func openNats(addr string) (queue, error) {
	conn, err := nats.Connect("nats://"+addr, nats.Timeout(time.Minute))
	if err != nil {
		return nil, err
	}
	js, err := conn.JetStream(nats.MaxWait(time.Minute))
	if err != nil {
		return nil, err
	}
	_, err = js.AddStream(&nats.StreamConfig{
		Name: "jobs", Subjects: []string{"jobs"}, Retention: nats.WorkQueuePolicy,
	})
	return &stream{conn: conn, js: js}, err
}

func (q *stream) push(body string) error {
	_, err := q.js.Publish("jobs", []byte(body))
	return err
}

func (q *stream) batch(body string, amount int) error {
	waiting := make([]nats.PubAckFuture, amount)
	for i := range waiting {
		future, err := q.js.PublishAsync("jobs", []byte(body))
		if err != nil {
			return err
		}
		waiting[i] = future
	}
	for _, future := range waiting {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		}
	}
	return nil
}

// take acknowledges the last one of those that it got with an answer: the others are done then too.
func (q *stream) take(giveBack bool) (int, error) {
	if q.workers == nil {
		found, err := q.js.PullSubscribe("jobs", "workers", nats.MaxAckPending(100*atOnce),
			nats.AckWait(time.Minute))
		if err != nil {
			return 0, err
		}
		q.workers = found
	}
	messages, err := q.workers.Fetch(atOnce, nats.MaxWait(fetchTime))
	if errors.Is(err, nats.ErrTimeout) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for at, message := range messages {
		switch {
		case giveBack:
			err = message.Nak()
		case at+1 < len(messages):
			err = message.Ack()
		default:
			err = message.AckSync()
		}
		if err != nil {
			return 0, err
		}
	}
	if giveBack {
		err = q.conn.Flush()
	}
	return len(messages), err
}

func (q *stream) count() (int64, error) {
	found, err := q.js.StreamInfo("jobs")
	if err != nil {
		return 0, err
	}
	return int64(found.State.Msgs), nil
}

func (q *stream) close() { q.conn.Close() }

// rabbit is a durable queue of persistent messages, confirmed by the broker; workers have as many
// as a hundred before they acknowledge.
type rabbit struct {
	conn       *amqp.Connection
	channel    *amqp.Channel
	deliveries <-chan amqp.Delivery
}

func openRabbit(addr string) (queue, error) {
	conn, err := amqp.Dial("amqp://guest:guest@" + addr + "/")
	if err != nil {
		return nil, err
	}
	channel, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if _, err := channel.QueueDeclare("jobs", true, false, false, false, nil); err != nil {
		return nil, err
	}
	return &rabbit{conn: conn, channel: channel}, channel.Confirm(false)
}

func (q *rabbit) push(body string) error { return q.batch(body, 1) }

func (q *rabbit) batch(body string, amount int) error {
	waiting := make([]*amqp.DeferredConfirmation, amount)
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
	for i := range waiting {
		confirm, err := q.channel.PublishWithDeferredConfirmWithContext(context.Background(), "",
			"jobs", false, false, message)
		if err != nil {
			return err
		}
		waiting[i] = confirm
	}
	for _, confirm := range waiting {
		if !confirm.Wait() {
			return errors.New("refused")
		}
	}
	return nil
}

func (q *rabbit) take(giveBack bool) (int, error) {
	if q.deliveries == nil {
		if err := q.channel.Qos(atOnce, 0, false); err != nil {
			return 0, err
		}
		found, err := q.channel.Consume("jobs", "", false, false, false, false, nil)
		if err != nil {
			return 0, err
		}
		q.deliveries = found
	}
	taken := 0
	var last amqp.Delivery
	for end := time.After(lookTime); taken < atOnce; taken++ {
		select {
		case delivery, open := <-q.deliveries:
			if !open {
				return 0, errors.New("closed")
			}
			last = delivery
			continue
		case <-end:
		}
		break
	}
	if taken == 0 {
		return 0, nil
	}
	if giveBack {
		return taken, last.Nack(true, true)
	}
	return taken, last.Ack(true)
}

func (q *rabbit) count() (int64, error) {
	found, err := q.channel.QueueInspect("jobs")
	return int64(found.Messages), err
}

func (q *rabbit) close() { q.conn.Close() }
