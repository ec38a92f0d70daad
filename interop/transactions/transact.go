package main

import (
	"math/rand"
	"sync/atomic"
	"time"
)

const (
	// As in the document's test: of 3 bytes, so that two transactions meet now and then.
	keyBytes   = 3
	valueBytes = 5
	operations = 100
	// Percent of the transactions that their client aborts.
	abortRate = 10
)

// transacted is what came of all transactions.
type transacted struct {
	Committed int64 `json:"committed"`
	Aborted   int64 `json:"aborted"`
	Failed    int64 `json:"failed"`
	Nanos     int64 `json:"nanos"`
}

func transact(p plan) (transacted, error) {
	var counts [3]atomic.Int64
	whole, err := together(p, func(_ int, own store, random *rand.Rand) error {
		for end := time.Now().Add(p.span); time.Now().Before(end); {
			outcome, err := own.transact(randomOperations(random), random.Intn(100) >= abortRate)
			if err != nil {
				return err
			}
			counts[outcome].Add(1)
		}
		return nil
	})
	return transacted{
		Committed: counts[committed].Load(),
		Aborted:   counts[aborted].Load(),
		Failed:    counts[failed].Load(),
		Nanos:     whole.Nanoseconds(),
	}, err
}

// randomOperations are as the document's: 89 of 100 put, the others remove.
func randomOperations(random *rand.Rand) []operation {
	made := make([]operation, operations)
	for i := range made {
		made[i].key = randomBytes(random, keyBytes)
		if random.Intn(100) > 10 {
			made[i].value = randomBytes(random, valueBytes)
		}
	}
	return made
}

func randomBytes(random *rand.Rand, count int) []byte {
	bytes := make([]byte, count)
	random.Read(bytes)
	return bytes
}
