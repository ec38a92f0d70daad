package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/redis/go-redis/v9"
)

type redisQueue struct{ client *redis.Client }

func openRedis(addr string) (queue, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ReadTimeout: time.Minute})
	return redisQueue{client}, client.Ping(context.Background()).Err()
}

func (q redisQueue) push(body string) error {
	return q.client.LPush(context.Background(), "jobs", body).Err()
}

func (q redisQueue) batch(body string, amount int) error {
	bodies := make([]any, amount)
	for i := range bodies {
		bodies[i] = body
	}
	return q.client.LPush(context.Background(), "jobs", bodies...).Err()
}

func (q redisQueue) take(giveBack bool) (int, error) {
	if giveBack {
		return 0, errors.New("a list gives nothing back")
	}
	_, err := q.client.RPop(context.Background(), "jobs").Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return 1, err
}

func (q redisQueue) count() (int64, error) {
	return q.client.LLen(context.Background(), "jobs").Result()
}

func (q redisQueue) close() { q.client.Close() }

type tube struct{ conn *beanstalk.Conn }

func openBeanstalkd(addr string) (queue, error) {
	conn, err := beanstalk.Dial("tcp", addr)
	return tube{conn}, err
}

const urgency = 1024

func (q tube) push(body string) error {
	_, err := q.conn.Put([]byte(body), urgency, 0, time.Minute)
	return err
}

func (q tube) take(giveBack bool) (int, error) {
	id, _, err := q.conn.Reserve(0)
	if errors.Is(err, beanstalk.ErrTimeout) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reserve: %w", err)
	}
	if giveBack {
		return 1, q.conn.Release(id, urgency, 0)
	}
	return 1, q.conn.Delete(id)
}

func (q tube) count() (int64, error) {
	found, err := q.conn.Stats()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(found["current-jobs-ready"], 10, 64)
}

func (q tube) close() { q.conn.Close() }
