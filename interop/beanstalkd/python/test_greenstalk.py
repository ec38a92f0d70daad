"""greenstalk against any beanstalkd server: every command that the client has."""

import socket
import threading
import time
import unittest

import greenstalk
from server import ADDRESS, BINARY, after_expiry, fresh_tube


class Greenstalk(unittest.TestCase):
    def setUp(self):
        self.tube = fresh_tube()
        self.client = self.connect()

    def connect(self, tube=None):
        tube = tube or self.tube
        client = greenstalk.Client(ADDRESS, encoding=None, use=tube, watch=tube)
        self.addCleanup(client.close)
        return client

    def put_ids(self, *priorities):
        return [self.client.put(b"p", priority=p) for p in priorities]

    def state(self, id):
        return self.client.stats_job(id)["state"]

    # Bodies

    def test_body_comes_back_byte_for_byte(self):
        for body in (b"", b"\r\n", b"\x00", BINARY, b"x" * 65535):
            id = self.client.put(body)
            job = self.client.reserve(timeout=5)
            self.assertEqual((job.id, job.body), (id, body))
            self.client.delete(job)

    def test_oversized_body_keeps_connection_in_step(self):
        limit = self.client.stats()["max-job-size"]
        self.assertEqual(limit, 65535)
        with self.assertRaises(greenstalk.JobTooBigError):
            self.client.put(b"x" * (limit + 1))
        self.assertEqual(self.client.using(), self.tube)

    def test_text_bodies_are_encoded(self):
        with greenstalk.Client(ADDRESS, use=self.tube, watch=[self.tube]) as text:
            text.put("größer ✓")
            self.assertEqual(text.reserve(timeout=5).body, "größer ✓")

    # Order

    def test_smaller_priority_first_then_older(self):
        low, first, second, urgent = self.put_ids(2**32 - 1, 10, 10, 0)
        order = [self.client.reserve(timeout=5).id for _ in range(4)]
        self.assertEqual(order, [urgent, first, second, low])

    def test_ids_ascend(self):
        ids = self.put_ids(1, 1, 1)
        self.assertEqual(ids, sorted(set(ids)))

    def test_released_job_precedes_newer_ones(self):
        first, second = self.put_ids(10, 10)
        self.client.release(self.client.reserve(timeout=5), priority=10)
        self.assertEqual(self.client.reserve(timeout=5).id, first)
        self.assertEqual(self.client.reserve(timeout=5).id, second)

    # Reserve

    def test_reserve_on_empty_tube_times_out(self):
        for timeout in (0, 1):
            with self.assertRaises(greenstalk.TimedOutError):
                self.client.reserve(timeout=timeout)

    def test_blocked_reserve_is_served(self):
        worker, got = self.connect(), []
        thread = threading.Thread(target=lambda: got.append(worker.reserve()))
        thread.start()
        while self.client.stats_tube(self.tube)["current-waiting"] == 0:
            time.sleep(0.01)
        id = self.client.put(b"wake")
        thread.join(10)
        self.assertEqual([(job.id, job.body) for job in got], [(id, b"wake")])

    def test_reserved_job_is_hidden_from_others(self):
        self.client.put(b"one")
        job, other = self.client.reserve(timeout=5), self.connect()
        with self.assertRaises(greenstalk.TimedOutError):
            other.reserve(timeout=0)
        for forbidden in (other.delete, other.release, other.bury, other.touch):
            with self.assertRaises(greenstalk.NotFoundError):
                forbidden(job)
        self.client.delete(job)

    def test_closing_a_connection_returns_its_jobs(self):
        id = self.client.put(b"one")
        worker = self.connect()
        worker.reserve(timeout=5)
        worker.close()
        self.assertEqual(self.client.reserve(timeout=5).id, id)

    def test_reserve_job_takes_any_state(self):
        ready, delayed = self.client.put(b"r"), self.client.put(b"d", delay=60)
        buried = self.client.put(b"b", priority=0)
        self.client.bury(self.client.reserve(timeout=5))
        for id, body in ((ready, b"r"), (delayed, b"d"), (buried, b"b")):
            self.assertEqual(self.client.reserve_job(id).body, body)
            self.assertEqual(self.state(id), "reserved")
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.reserve_job(ready)

    def test_reserve_job_ignores_watched_tubes(self):
        id = self.client.put(b"one")
        self.assertEqual(self.connect(fresh_tube()).reserve_job(id).body, b"one")

    # Time

    def test_delayed_job_becomes_ready_in_time(self):
        id = self.client.put(b"later", delay=1)
        self.assertEqual(self.state(id), "delayed")
        with self.assertRaises(greenstalk.TimedOutError):
            self.client.reserve(timeout=0)
        self.assertEqual(self.client.reserve(timeout=5).id, id)

    def test_deadline_soon_and_then_redelivery(self):
        id = self.client.put(b"slow", ttr=2)
        self.client.reserve(timeout=5)
        with self.assertRaises(greenstalk.DeadlineSoonError):
            self.client.reserve(timeout=10)
        after_expiry(2, self.client.using)
        other = self.connect()
        self.assertEqual(other.reserve(timeout=10).id, id)
        self.assertEqual(self.client.stats_job(id)["timeouts"], 1)
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.touch(greenstalk.Job(id, b""))

    def test_deadline_soon_yields_to_ready_job(self):
        self.client.put(b"slow", ttr=1)
        self.client.reserve(timeout=5)
        ready = self.client.put(b"ready")
        self.assertEqual(self.client.reserve(timeout=0).id, ready)

    def test_touch_gives_the_whole_time_again(self):
        id = self.client.put(b"slow", ttr=3)
        job = self.client.reserve(timeout=5)
        with self.assertRaises(greenstalk.DeadlineSoonError):
            self.client.reserve(timeout=10)
        self.client.touch(job)
        self.assertGreaterEqual(self.client.stats_job(id)["time-left"], 2)
        self.client.delete(job)

    def test_ttr_zero_means_one_second(self):
        self.assertEqual(self.client.stats_job(self.client.put(b"x", ttr=0))["ttr"], 1)

    # Settling

    def test_delete_in_every_allowed_state(self):
        ready, delayed = self.client.put(b"r", priority=9), self.client.put(b"d", delay=60)
        buried, reserved = self.put_ids(1, 2)
        self.client.bury(self.client.reserve(timeout=5))
        self.client.reserve(timeout=5)
        for id in (ready, delayed, buried, reserved):
            self.client.delete(id)
            with self.assertRaises(greenstalk.NotFoundError):
                self.client.delete(id)
            with self.assertRaises(greenstalk.NotFoundError):
                self.client.peek(id)

    def test_release_with_priority_and_delay(self):
        id = self.client.put(b"x", priority=5)
        self.client.release(self.client.reserve(timeout=5), priority=7)
        self.assertEqual((self.state(id), self.client.stats_job(id)["pri"]), ("ready", 7))
        self.client.release(self.client.reserve(timeout=5), priority=8, delay=60)
        stats = self.client.stats_job(id)
        self.assertEqual((stats["state"], stats["pri"], stats["delay"]), ("delayed", 8, 60))
        self.assertEqual(stats["releases"], 2)
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.release(greenstalk.Job(id, b""))

    def test_kick_in_burial_order(self):
        first, second = self.put_ids(1, 2)
        for _ in range(2):
            self.client.bury(self.client.reserve(timeout=5), priority=3)
        delayed = self.client.put(b"d", delay=60)
        self.assertEqual(self.client.peek_buried().id, first)
        self.assertEqual(self.client.kick(1), 1)
        self.assertEqual(self.client.peek_buried().id, second)
        self.assertEqual(self.client.kick(100), 1)
        self.assertEqual(self.state(delayed), "delayed")
        self.assertEqual(self.client.kick(100), 1)
        self.assertEqual(self.state(delayed), "ready")
        self.assertEqual(self.client.kick(100), 0)

    def test_kick_job(self):
        id = self.client.put(b"d", delay=60)
        self.client.kick_job(id)
        self.client.bury(self.client.reserve(timeout=5))
        self.client.kick_job(id)
        self.assertEqual(self.client.stats_job(id)["kicks"], 2)
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.kick_job(id)

    # Tubes

    def test_watch_and_ignore(self):
        other = fresh_tube()
        self.assertEqual(self.client.watch(other), 2)
        self.assertEqual(self.client.watch(other), 2)
        self.assertCountEqual(self.client.watching(), [self.tube, other])
        self.assertEqual(self.client.ignore(other), 1)
        self.assertEqual(self.client.ignore(other), 1)
        with self.assertRaises(greenstalk.NotIgnoredError):
            self.client.ignore(self.tube)

    def test_use_and_list(self):
        other = fresh_tube()
        self.client.use(other)
        self.assertEqual(self.client.using(), other)
        self.assertLessEqual({"default", self.tube, other}, set(self.client.tubes()))
        self.client.use(self.tube)
        self.assertNotIn(other, self.client.tubes())

    def test_reserve_takes_best_of_watched_tubes(self):
        other = fresh_tube()
        self.client.watch(other)
        worse = self.client.put(b"here", priority=2)
        self.client.use(other)
        better = self.client.put(b"there", priority=1)
        self.assertEqual(self.client.reserve(timeout=5).id, better)
        self.assertEqual(self.client.reserve(timeout=5).id, worse)

    def test_pause_holds_back_and_ends(self):
        id = self.client.put(b"x")
        self.client.pause_tube(self.tube, 1)
        with self.assertRaises(greenstalk.TimedOutError):
            self.client.reserve(timeout=0)
        self.assertEqual(self.client.stats_tube(self.tube)["pause"], 1)
        self.assertEqual(self.client.reserve(timeout=5).id, id)
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.pause_tube(fresh_tube(), 1)

    def test_bad_names_are_refused(self):
        for name in ("-dash", "sp ace", "x" * 201, "*"):
            with self.assertRaises(greenstalk.BadFormatError):
                self.client.use(name)
        self.client.use("x" * 200)
        self.client.use("+/;.$_()-0aZ")
        self.assertEqual(self.client.using(), "+/;.$_()-0aZ")

    # Peeks and statistics

    def test_peeks(self):
        for peek in (self.client.peek_ready, self.client.peek_delayed, self.client.peek_buried):
            with self.assertRaises(greenstalk.NotFoundError):
                peek()
        buried = self.client.put(BINARY)
        self.client.bury(self.client.reserve(timeout=5))
        ready, delayed = self.client.put(b"r"), self.client.put(b"", delay=60)
        for peek, id, body in (
            (self.client.peek_ready, ready, b"r"),
            (self.client.peek_delayed, delayed, b""),
            (self.client.peek_buried, buried, BINARY),
        ):
            self.assertEqual((peek().id, peek().body), (id, body))
            self.assertEqual(self.client.peek(id).body, body)

    def test_statistics_of_a_job(self):
        id = self.client.put(b"x", priority=7, delay=60, ttr=30)
        stats = self.client.stats_job(id)
        expected = {
            "id": id, "tube": self.tube, "state": "delayed", "pri": 7, "delay": 60, "ttr": 30,
            "reserves": 0, "timeouts": 0, "releases": 0, "buries": 0, "kicks": 0,
        }
        self.assertEqual({key: stats[key] for key in expected}, expected)
        self.assertEqual(set(stats) - set(expected), {"age", "time-left", "file"})
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.stats_job(2**63)

    def test_statistics_of_a_tube(self):
        self.put_ids(1023, 1024, 5, 5)
        self.client.delete(self.client.reserve(timeout=5))
        self.client.bury(self.client.reserve(timeout=5))
        stats = self.client.stats_tube(self.tube)
        expected = {
            "name": self.tube, "current-jobs-urgent": 1, "current-jobs-ready": 2,
            "current-jobs-reserved": 0, "current-jobs-delayed": 0, "current-jobs-buried": 1,
            "total-jobs": 4, "current-using": 1, "current-watching": 1, "current-waiting": 0,
            "cmd-delete": 1, "cmd-pause-tube": 0, "pause": 0, "pause-time-left": 0,
        }
        self.assertEqual(stats, expected)
        with self.assertRaises(greenstalk.NotFoundError):
            self.client.stats_tube(fresh_tube())

    def test_statistics_of_the_server_count_commands(self):
        before = self.client.stats()
        id = self.client.put(b"x")
        self.client.peek(id)
        self.client.delete(id)
        after = self.client.stats()
        for command in ("put", "peek", "delete"):
            key = f"cmd-{command}"
            self.assertGreaterEqual(after[key], before[key] + 1, key)
        self.assertEqual(after["draining"], "false")

    # The wire itself

    def test_pipelined_commands_answer_in_order(self):
        count, raw = 500, socket.create_connection(ADDRESS, timeout=10)
        self.addCleanup(raw.close)
        use, put = b"use %b\r\n" % self.tube.encode(), b"put 1 0 60 2\r\n\r\n\r\n"
        raw.sendall(use + put * count + b"peek-ready\r\nquit\r\n")
        lines = raw.makefile("rb").read().split(b"\r\n")
        self.assertEqual(lines[0], b"USING " + self.tube.encode())
        ids = [int(line.removeprefix(b"INSERTED ")) for line in lines[1 : count + 1]]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(lines[count + 1 :], [b"FOUND %d 2" % ids[0], b"", b"", b""])

    def test_socket_given_by_the_caller(self):
        client = greenstalk.Client(socket.create_connection(ADDRESS))
        self.addCleanup(client.close)
        self.assertEqual((client.using(), client.watching()), ("default", ["default"]))


if __name__ == "__main__":
    unittest.main()
