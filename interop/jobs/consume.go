package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// idleMax is for how long nothing may come before all is taken for lost.
const idleMax = 20 * time.Second

// consume takes what was pushed with all workers at once; what is given back may come again, and is
// done with when there were as many takes as there are messages.
func consume(p plan) (result, error) {
	queues, err := openAll(p, p.workers)
	if err != nil {
		return result{}, err
	}
	total := int64(p.requests) * int64(p.amount)
	var taken atomic.Int64
	begun := time.Now()
	// Who has nothing to take waits a little longer, which is nobody's job.
	var over atomic.Int64
	times, err := together(p.workers, func(worker int, times *[]time.Duration) error {
		q := queues[worker]
		last := time.Now()
		for taken.Load() < total {
			asked := time.Now()
			count, err := q.take(p.phase == "release")
			if err != nil {
				return err
			}
			if count > 0 {
				last = time.Now()
				*times = append(*times, last.Sub(asked)/time.Duration(count))
				if taken.Add(int64(count)) >= total {
					over.CompareAndSwap(0, int64(last.Sub(begun)))
				}
			} else if time.Since(last) > idleMax {
				return fmt.Errorf("%d of %d messages did not come", total-taken.Load(), total)
			} else {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	})
	for _, q := range queues {
		q.close()
	}
	times.whole = time.Duration(over.Load())
	return times.result(taken.Load()), err
}

// openAll connects all workers before the time begins.
func openAll(p plan, count int) ([]queue, error) {
	queues := make([]queue, 0, count)
	for i := 0; i < count; i++ {
		q, err := open(p)
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}
