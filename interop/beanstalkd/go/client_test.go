// Package beanstalkd runs the Go client against any beanstalkd server:
// every command that the client has.
package beanstalkd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

var (
	numbers atomic.Uint64
	// The client takes a nil body for "this command has no body".
	empty = []byte{}
	// Every byte value, the protocol's own line end and what looks like a reply.
	binary = append(everyByte(), "\r\nINSERTED 1\r\n\r\n\x00"...)
)

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func freshName() string {
	return fmt.Sprintf("go-%d-%d", os.Getpid(), numbers.Add(1))
}

// session is a connection that uses and watches one tube.
type session struct {
	*testing.T
	conn *beanstalk.Conn
	tube *beanstalk.Tube
	set  *beanstalk.TubeSet
}

func dial(t *testing.T, name string) session {
	conn, err := beanstalk.Dial("tcp", os.Getenv("BEANSTALKD_ADDR"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return session{t, conn, beanstalk.NewTube(conn, name), beanstalk.NewTubeSet(conn, name)}
}

func (s session) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s session) refused(err, expected error) {
	s.Helper()
	if !errors.Is(err, expected) {
		s.Fatalf("%v, not %v", err, expected)
	}
}

func (s session) put(body []byte, pri uint32, delay, ttr time.Duration) uint64 {
	s.Helper()
	id, err := s.tube.Put(body, pri, delay, ttr)
	s.ok(err)
	return id
}

func (s session) reserve(expected uint64) {
	s.Helper()
	id, _, err := s.set.Reserve(5 * time.Second)
	s.ok(err)
	if id != expected {
		s.Fatalf("reserved %d, not %d", id, expected)
	}
}

// afterExpiry does nothing, but with the original: it waits and lets the holder say something.
// beanstalkd forgets about one expiry in ten of a silent connection (../python/server.py).
func (s session) afterExpiry(ttr time.Duration) {
	if os.Getenv("BEANSTALKD_SERVER") == "original" {
		time.Sleep(ttr + 100*time.Millisecond)
		_, err := s.conn.ListTubes()
		s.ok(err)
	}
}

func (s session) job(id uint64, key, expected string) {
	s.Helper()
	stats, err := s.conn.StatsJob(id)
	s.ok(err)
	if stats[key] != expected {
		s.Fatalf("%s is %q, not %q", key, stats[key], expected)
	}
}

func TestBodiesComeBackByteForByte(t *testing.T) {
	s := dial(t, freshName())
	for _, body := range [][]byte{{}, []byte("\r\n"), {0}, binary, make([]byte, 65535)} {
		put := s.put(body, 1, 0, time.Minute)
		id, got, err := s.set.Reserve(5 * time.Second)
		s.ok(err)
		if id != put || !bytes.Equal(got, body) {
			t.Fatalf("job %d of %d bytes, not %d of %d", id, len(got), put, len(body))
		}
		s.ok(s.conn.Delete(id))
	}
}

func TestOversizedBodyKeepsConnectionInStep(t *testing.T) {
	s := dial(t, freshName())
	_, err := s.tube.Put(make([]byte, 65536), 1, 0, time.Minute)
	s.refused(err, beanstalk.ErrJobTooBig)
	s.reserve(s.put([]byte("small"), 1, 0, time.Minute))
}

func TestSmallerPriorityFirstThenOlder(t *testing.T) {
	s := dial(t, freshName())
	low := s.put(empty, 1<<32-1, 0, time.Minute)
	first, second := s.put(empty, 9, 0, time.Minute), s.put(empty, 9, 0, time.Minute)
	urgent := s.put(empty, 0, 0, time.Minute)
	for _, id := range []uint64{urgent, first, second, low} {
		s.reserve(id)
	}
	_, _, err := s.set.Reserve(0)
	s.refused(err, beanstalk.ErrTimeout)
}

func TestReserveJobTakesAnyState(t *testing.T) {
	s, other := dial(t, freshName()), dial(t, freshName())
	buried := s.put([]byte("b"), 1, 0, time.Minute)
	s.reserve(buried)
	s.ok(s.conn.Bury(buried, 1))
	ready := s.put([]byte("r"), 1, 0, time.Minute)
	delayed := s.put([]byte("d"), 1, time.Minute, time.Minute)
	for id, expected := range map[uint64]string{ready: "r", delayed: "d", buried: "b"} {
		body, err := other.conn.ReserveJob(id)
		other.ok(err)
		if string(body) != expected {
			t.Fatalf("%q, not %q", body, expected)
		}
		_, err = s.conn.ReserveJob(id)
		s.refused(err, beanstalk.ErrNotFound)
	}
}

func TestReleaseBuryTouchAndKick(t *testing.T) {
	s := dial(t, freshName())
	id := s.put([]byte("x"), 1, 0, time.Minute)
	s.reserve(id)
	s.ok(s.conn.Touch(id))
	s.ok(s.conn.Release(id, 7, 0))
	s.job(id, "pri", "7")
	s.reserve(id)
	s.ok(s.conn.Release(id, 8, time.Minute))
	s.job(id, "state", "delayed")
	s.ok(s.conn.KickJob(id))
	s.reserve(id)
	s.ok(s.conn.Bury(id, 9))
	s.job(id, "state", "buried")
	n, err := s.tube.Kick(10)
	s.ok(err)
	if n != 1 {
		t.Fatalf("kicked %d", n)
	}
	s.job(id, "kicks", "2")
	s.refused(s.conn.KickJob(id), beanstalk.ErrNotFound)
	s.refused(s.conn.Touch(id), beanstalk.ErrNotFound)
	s.refused(s.conn.Bury(id, 1), beanstalk.ErrNotFound)
	s.refused(s.conn.Release(id, 1, 0), beanstalk.ErrNotFound)
	s.ok(s.conn.Delete(id))
	s.refused(s.conn.Delete(id), beanstalk.ErrNotFound)
}

func TestReservedJobBelongsToItsConnection(t *testing.T) {
	s := dial(t, freshName())
	other := dial(t, s.tube.Name)
	id := s.put([]byte("x"), 1, 0, time.Minute)
	s.reserve(id)
	other.refused(other.conn.Delete(id), beanstalk.ErrNotFound)
	other.refused(other.conn.Touch(id), beanstalk.ErrNotFound)
	other.refused(other.conn.Bury(id, 1), beanstalk.ErrNotFound)
	s.ok(s.conn.Close())
	other.reserve(id)
}

func TestDelayDeadlineAndRedelivery(t *testing.T) {
	s := dial(t, freshName())
	id := s.put([]byte("x"), 1, time.Second, time.Second)
	_, _, err := s.set.Reserve(0)
	s.refused(err, beanstalk.ErrTimeout)
	s.reserve(id)
	_, _, err = s.set.Reserve(5 * time.Second)
	s.refused(err, beanstalk.ErrDeadline)
	s.afterExpiry(time.Second)
	dial(t, s.tube.Name).reserve(id)
	s.job(id, "timeouts", "1")
}

func TestBlockedReserveIsServed(t *testing.T) {
	producer := dial(t, freshName())
	worker := dial(t, producer.tube.Name)
	got := make(chan uint64)
	go func() {
		id, _, _ := worker.set.Reserve(10 * time.Second)
		got <- id
	}()
	for stats := (map[string]string{}); stats["current-waiting"] != "1"; {
		stats, _ = producer.tube.Stats()
	}
	if id, served := producer.put([]byte("x"), 1, 0, time.Minute), <-got; served != id {
		t.Fatalf("served %d, not %d", served, id)
	}
}

func TestPeeks(t *testing.T) {
	s := dial(t, freshName())
	peeks := []func() (uint64, []byte, error){
		s.tube.PeekBuried, s.tube.PeekReady, s.tube.PeekDelayed,
	}
	for _, peek := range peeks {
		_, _, err := peek()
		s.refused(err, beanstalk.ErrNotFound)
	}
	buried := s.put(binary, 1, 0, time.Minute)
	s.reserve(buried)
	s.ok(s.conn.Bury(buried, 1))
	ready := s.put(binary, 1, 0, time.Minute)
	delayed := s.put(binary, 1, time.Minute, time.Minute)
	ids := []uint64{buried, ready, delayed}
	for i, peek := range peeks {
		id, body, err := peek()
		s.ok(err)
		direct, err := s.conn.Peek(ids[i])
		s.ok(err)
		if id != ids[i] || !bytes.Equal(body, binary) || !bytes.Equal(direct, binary) {
			t.Fatalf("peek %d found %d: %q, %q", i, id, body, direct)
		}
	}
	_, err := s.conn.Peek(1 << 63)
	s.refused(err, beanstalk.ErrNotFound)
}

func TestPauseHoldsBackAndEnds(t *testing.T) {
	s := dial(t, freshName())
	id := s.put([]byte("x"), 1, 0, time.Minute)
	s.ok(s.tube.Pause(time.Second))
	_, _, err := s.set.Reserve(0)
	s.refused(err, beanstalk.ErrTimeout)
	s.reserve(id)
	s.refused(beanstalk.NewTube(s.conn, freshName()).Pause(time.Second), beanstalk.ErrNotFound)
}

func TestSeveralTubes(t *testing.T) {
	s, other := dial(t, freshName()), freshName()
	worse := s.put([]byte("here"), 2, 0, time.Minute)
	better, err := beanstalk.NewTube(s.conn, other).Put([]byte("there"), 1, 0, time.Minute)
	s.ok(err)
	s.set.Name[other] = true
	s.reserve(better)
	s.reserve(worse)
	tubes, err := s.conn.ListTubes()
	s.ok(err)
	sort.Strings(tubes)
	for _, name := range []string{"default", s.tube.Name, other} {
		if i := sort.SearchStrings(tubes, name); i == len(tubes) || tubes[i] != name {
			t.Fatalf("%s is not in %v", name, tubes)
		}
	}
}

func TestStatistics(t *testing.T) {
	s := dial(t, freshName())
	id := s.put([]byte("x"), 3, 0, 9*time.Second)
	job, err := s.conn.StatsJob(id)
	s.ok(err)
	expected := "age buries delay file id kicks pri releases reserves " +
		"state time-left timeouts ttr tube"
	if keys(job) != expected || job["ttr"] != "9" || job["pri"] != "3" {
		t.Fatal(job)
	}
	tube, err := s.tube.Stats()
	s.ok(err)
	if tube["current-jobs-urgent"] != "1" || tube["total-jobs"] != "1" {
		t.Fatal(tube)
	}
	server, err := s.conn.Stats()
	s.ok(err)
	if server["max-job-size"] != "65535" || server["draining"] != "false" {
		t.Fatal(server)
	}
	_, err = s.conn.StatsJob(1 << 63)
	s.refused(err, beanstalk.ErrNotFound)
	_, err = beanstalk.NewTube(s.conn, freshName()).Stats()
	s.refused(err, beanstalk.ErrNotFound)
}

func keys(dict map[string]string) string {
	names := make([]string, 0, len(dict))
	for name := range dict {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

// The client allows several goroutines on one connection and then pipelines their commands.
func TestPipelinedByGoroutines(t *testing.T) {
	s := dial(t, freshName())
	const count = 200
	ids := make(chan uint64, count)
	for i := 0; i < count; i++ {
		go func() {
			id, err := s.tube.Put([]byte("x"), 1, 0, time.Minute)
			if err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	distinct := map[uint64]bool{}
	for i := 0; i < count; i++ {
		distinct[<-ids] = true
	}
	if len(distinct) != count {
		t.Fatalf("%d distinct ids of %d", len(distinct), count)
	}
}
