package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"sync/atomic"
	"time"
)

const (
	// As in the document's test: records of up to 1024 bytes, a quarter of which is there before
	// the readers are, and trials of 100 random reads, each compared with what was written.
	recordsMax     = 10_000
	recordBytesMax = 1024
	readsOfTrial   = 100
	// The writer's pause between two records, about that of the original on today's machines.
	writerPause = 60 * time.Microsecond
)

// readings is what came of readers and writer.
type readings struct {
	// Each of 100 reads.
	Trials  int64 `json:"trials"`
	Reads   int64 `json:"reads"`
	Errors  int64 `json:"errors"`
	Written int64 `json:"written"`
	Nanos   int64 `json:"nanos"`
}

func read(p plan) (readings, error) {
	records := randomRecords()
	writer, err := open(p)
	if err != nil {
		return readings{}, err
	}
	defer writer.close()
	var written, trials, wrong atomic.Int64
	write := func() error {
		at := written.Load()
		err := writer.put(key(at), records[at])
		written.Add(1)
		return err
	}
	for written.Load() < recordsMax/4 {
		if err := write(); err != nil {
			return readings{}, err
		}
	}
	over := make(chan error, 1)
	var done atomic.Bool
	go func() {
		for !done.Load() && written.Load() < recordsMax {
			if err := write(); err != nil {
				over <- err
				return
			}
			time.Sleep(writerPause)
		}
		over <- nil
	}()
	whole, err := together(p, func(_ int, own store, random *rand.Rand) error {
		for end := time.Now().Add(p.span); time.Now().Before(end); {
			count, err := trial(own, random, records, written.Load())
			if err != nil {
				return err
			}
			wrong.Add(count)
			trials.Add(1)
		}
		return nil
	})
	done.Store(true)
	if failure := <-over; failure != nil {
		return readings{}, failure
	}
	return readings{
		Trials:  trials.Load(),
		Reads:   trials.Load() * readsOfTrial,
		Errors:  wrong.Load(),
		Written: written.Load(),
		Nanos:   whole.Nanoseconds(),
	}, err
}

// trial says how many records were not what was written.
func trial(own store, random *rand.Rand, records [][]byte, written int64) (int64, error) {
	wanted := make([]int64, readsOfTrial)
	keys := make([][]byte, readsOfTrial)
	for i := range wanted {
		wanted[i] = random.Int63n(written)
		keys[i] = key(wanted[i])
	}
	found, err := own.read(keys)
	if err != nil {
		return 0, err
	}
	if len(found) != len(keys) {
		return 0, fmt.Errorf("%d records for %d keys", len(found), len(keys))
	}
	wrong := int64(0)
	for i, at := range wanted {
		if !bytes.Equal(found[i], records[at]) {
			wrong++
		}
	}
	return wrong, nil
}

func key(at int64) []byte { return binary.BigEndian.AppendUint64([]byte("r"), uint64(at)) }

func randomRecords() [][]byte {
	random := rand.New(rand.NewSource(1))
	records := make([][]byte, recordsMax)
	for i := range records {
		records[i] = randomBytes(random, 1+random.Intn(recordBytesMax))
	}
	return records
}
