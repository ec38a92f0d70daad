// go-redis against the server at REDIS_ADDR, by RESP2 and by RESP3.
package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var numbers = struct {
	sync.Mutex
	last int
}{}

func freshKey() string {
	numbers.Lock()
	defer numbers.Unlock()
	numbers.last++
	return fmt.Sprintf("go-%d-%d", os.Getpid(), numbers.last)
}

func connect(t *testing.T, protocol int) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR"), Protocol: protocol})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func inBoth(t *testing.T, check func(t *testing.T, ctx context.Context, client *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			check(t, ctx, connect(t, protocol))
		})
	}
}

func equal[T any](t *testing.T, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func isNil(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, redis.Nil) {
		t.Fatalf("got %v, want nothing", err)
	}
}

func TestQueueIsFirstInFirstOut(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		key := freshKey()
		for number := 0; number < 50; number++ {
			length, err := client.LPush(ctx, key, number).Result()
			equal(t, length, err, int64(number+1))
		}
		for number := 0; number < 50; number++ {
			taken, err := client.BRPop(ctx, time.Second, key).Result()
			equal(t, taken, err, []string{key, fmt.Sprint(number)})
		}
		isNil(t, client.RPop(ctx, key).Err())
	})
}

func TestPlacesAndMoves(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		key, other := freshKey(), freshKey()
		client.RPush(ctx, key, "a", "b", "c", "a")
		found, err := client.LPosCount(ctx, key, "a", 0, redis.LPosArgs{}).Result()
		equal(t, found, err, []int64{0, 3})
		removed, err := client.LRem(ctx, key, 0, "a").Result()
		equal(t, removed, err, 2)
		moved, err := client.LMove(ctx, key, other, "LEFT", "RIGHT").Result()
		equal(t, moved, err, "b")
		name, popped, err := client.LMPop(ctx, "LEFT", 1, key, other).Result()
		equal(t, popped, err, []string{"c"})
		equal(t, name, nil, key)
		length, err := client.LInsertBefore(ctx, other, "b", "x").Result()
		equal(t, length, err, 2)
		all, err := client.LRange(ctx, other, 0, -1).Result()
		equal(t, all, err, []string{"x", "b"})
		isNil(t, client.LIndex(ctx, other, 7).Err())
		isNil(t, client.LMove(ctx, key, other, "LEFT", "LEFT").Err())
	})
}

func TestWaitingClientsAreServed(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		key := freshKey()
		heard := make(chan string, 3)
		for worker := 0; worker < 3; worker++ {
			waiting := connect(t, 3)
			go func() { heard <- waiting.BLPop(ctx, 0, key).Val()[1] }()
		}
		for number := 0; number < 3; number++ {
			client.RPush(ctx, key, number)
		}
		taken := map[string]bool{<-heard: true, <-heard: true, <-heard: true}
		equal(t, taken, nil, map[string]bool{"0": true, "1": true, "2": true})
		isNil(t, client.BLPop(ctx, 20*time.Millisecond, key).Err())
		isNil(t, client.BLMove(ctx, key, key, "LEFT", "LEFT", 20*time.Millisecond).Err())
	})
}

func TestTransactions(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		key := freshKey()
		results, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.RPush(ctx, key, "a", "b")
			pipe.LRange(ctx, key, 0, -1)
			return nil
		})
		equal(t, len(results), err, 2)
		equal(t, results[1].(*redis.StringSliceCmd).Val(), nil, []string{"a", "b"})
		err = client.Watch(ctx, func(tx *redis.Tx) error {
			connect(t, 3).LPop(ctx, key)
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				return pipe.RPush(ctx, key, "late").Err()
			})
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			t.Fatal(err)
		}
		length, err := client.LLen(ctx, key).Result()
		equal(t, length, err, 1)
	})
}

func TestMessages(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		channel, pattern := freshKey(), freshKey()
		listener := client.Subscribe(ctx, channel)
		defer listener.Close()
		if err := listener.PSubscribe(ctx, pattern+"*"); err != nil {
			t.Fatal(err)
		}
		for confirmed := 0; confirmed < 2; confirmed++ {
			if _, err := listener.Receive(ctx); err != nil {
				t.Fatal(err)
			}
		}
		count, err := client.Publish(ctx, channel, "one").Result()
		equal(t, count, err, 1)
		count, err = client.Publish(ctx, pattern+"x", "two").Result()
		equal(t, count, err, 1)
		message, err := listener.ReceiveMessage(ctx)
		equal(t, message.Payload, err, "one")
		message, err = listener.ReceiveMessage(ctx)
		equal(t, message.Payload+message.Channel, err, "two"+pattern+"x")
		if err := listener.Ping(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestKeysAndValues(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		key, list := freshKey(), freshKey()
		isNil(t, client.Get(ctx, key).Err())
		set, err := client.SetNX(ctx, key, "v", time.Minute).Result()
		equal(t, set, err, true)
		left, err := client.TTL(ctx, key).Result()
		equal(t, left, err, time.Minute)
		old, err := client.SetArgs(ctx, key, "w", redis.SetArgs{KeepTTL: true, Get: true}).Result()
		equal(t, old, err, "v")
		client.RPush(ctx, list, "x")
		kind, err := client.Type(ctx, list).Result()
		equal(t, kind, err, "list")
		var found []string
		scan := client.Scan(ctx, 0, list, 2).Iterator()
		for scan.Next(ctx) {
			found = append(found, scan.Val())
		}
		equal(t, found, scan.Err(), []string{list})
		gone, err := client.Del(ctx, key, list, freshKey()).Result()
		equal(t, gone, err, 2)
	})
}

func TestPipelineIsAnsweredInOrder(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, client *redis.Client) {
		key := freshKey()
		results, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for number := 0; number < 500; number++ {
				pipe.RPush(ctx, key, number)
			}
			return nil
		})
		equal(t, len(results), err, 500)
		for number, result := range results {
			equal(t, result.(*redis.IntCmd).Val(), nil, int64(number+1))
		}
	})
}
