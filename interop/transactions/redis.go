package main

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// values are those of Redis. A broker has few of them, so transactions are of a list: what puts is
// a message more, what removes takes one, and no two of them meet.
type values struct{ client *redis.Client }

func openRedis(addr string) (store, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ReadTimeout: time.Minute})
	return values{client}, client.Ping(context.Background()).Err()
}

// transact sends all of it in one go.
func (s values) transact(operations []operation, commits bool) (outcome, error) {
	background := context.Background()
	last, done := "EXEC", committed
	if !commits {
		last, done = "DISCARD", aborted
	}
	_, err := s.client.Pipelined(background, func(pipe redis.Pipeliner) error {
		pipe.Do(background, "MULTI")
		for _, own := range operations {
			if own.value != nil {
				pipe.Do(background, "LPUSH", "abc", append(own.key, own.value...))
			} else {
				pipe.Do(background, "RPOP", "abc")
			}
		}
		pipe.Do(background, last)
		return nil
	})
	return done, err
}

func (s values) put(key, value []byte) error {
	return s.client.Set(context.Background(), name(key), value, 0).Err()
}

// read asks for each by itself, in one go.
func (s values) read(keys [][]byte) ([][]byte, error) {
	background := context.Background()
	waiting := make([]*redis.StringCmd, len(keys))
	_, err := s.client.Pipelined(background, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			waiting[i] = pipe.Get(background, name(key))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	found := make([][]byte, len(keys))
	for i, each := range waiting {
		// What is not there is no error here, but a wrong record.
		found[i], _ = each.Bytes()
	}
	return found, nil
}

// name: Dunlin's are of UTF-8.
func name(key []byte) string { return hex.EncodeToString(key) }

func (s values) close() { s.client.Close() }
