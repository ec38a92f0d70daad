"""Libraries of jobs that keep their state in Redis, against the server at REDIS_ADDR: each does a
job, a delayed one, and one that fails and is tried again."""

import os
import subprocess
import sys
import time
import unittest
import uuid

import dramatiq
from celery import chord, group
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from huey import PriorityRedisHuey, RedisHuey
from redis import Redis
from rq import Queue, Retry, SimpleWorker

import tasks

HOST, PORT = os.environ.get("REDIS_ADDR", "127.0.0.1:6379").rsplit(":", 1)


def fresh(name):
    return f"{name}-{uuid.uuid4().hex[:8]}"


def until(condition, seconds=20):
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not come to be")
        time.sleep(0.05)


class Rq(unittest.TestCase):
    def test_jobs(self):
        redis = Redis(HOST, int(PORT))
        queue = Queue(fresh("rq"), connection=redis)
        first = queue.enqueue(tasks.add, 2, 3)
        failing = queue.enqueue(tasks.fail, retry=Retry(max=2))
        dependent = queue.enqueue(tasks.add, 1, 1, depends_on=first)
        worker = SimpleWorker([queue], connection=redis)
        worker.work(burst=True, logging_level="ERROR")
        self.assertEqual(first.return_value(), 5)
        self.assertEqual(dependent.return_value(), 2)
        self.assertEqual(failing.get_status(refresh=True).value, "failed")
        self.assertIn("ValueError", failing.latest_result().exc_string)
        self.assertEqual(queue.failed_job_registry.count, 1)
        self.assertEqual(queue.finished_job_registry.count, 2)
        self.assertEqual(queue.count, 0)


class CeleryJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool=solo"]
        command += ["--loglevel=ERROR", "--without-gossip", "--without-mingle"]
        cls.worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.worker.terminate()
        cls.worker.wait(timeout=30)

    def test_jobs(self):
        self.assertEqual(tasks.celery_add.delay(2, 3).get(timeout=40), 5)
        self.assertEqual(tasks.celery_add.apply_async((1, 1), countdown=0.5).get(timeout=20), 2)
        self.assertEqual(tasks.celery_third_time.delay().get(timeout=20), 2)
        parts = group(tasks.celery_add.s(number, number) for number in range(5))
        self.assertEqual(chord(parts)(tasks.celery_sum.s()).get(timeout=20), 20)


class Huey(unittest.TestCase):
    def test_jobs(self):
        self.do_jobs(RedisHuey(fresh("huey"), host=HOST, port=int(PORT)), None)

    def test_jobs_with_priorities(self):
        self.do_jobs(PriorityRedisHuey(fresh("huey"), host=HOST, port=int(PORT)), 9)

    def do_jobs(self, huey, priority):
        tries = []

        @huey.task()
        def add(one, other):
            return one + other

        @huey.task(retries=2)
        def third_time():
            tries.append(1)
            if len(tries) < 3:
                raise ValueError("it fails")
            return len(tries)

        consumer = huey.create_consumer(workers=1, periodic=False, initial_delay=0.05)
        consumer.start()
        try:
            self.assertEqual(add(2, 3).get(blocking=True, timeout=20), 5)
            self.assertEqual(add.schedule((1, 1), delay=1).get(blocking=True, timeout=20), 2)
            self.assertEqual(add(7, 7, priority=priority).get(blocking=True, timeout=20), 14)
            job = third_time()
            until(lambda: len(tries) == 3)
            self.assertEqual(job.get(blocking=True, timeout=20), 3)
        finally:
            consumer.stop(graceful=True)


class Dramatiq(unittest.TestCase):
    def test_jobs(self):
        broker = RedisBroker(host=HOST, port=int(PORT), namespace=fresh("dramatiq"))
        backend = RedisBackend(host=HOST, port=int(PORT), namespace=fresh("dramatiq-results"))
        broker.add_middleware(Results(backend=backend))
        dramatiq.set_broker(broker)
        tries = []

        @dramatiq.actor(broker=broker, store_results=True)
        def add(one, other):
            return one + other

        @dramatiq.actor(broker=broker, store_results=True, max_retries=2, min_backoff=50)
        def third_time():
            tries.append(1)
            if len(tries) < 3:
                raise ValueError("it fails")
            return len(tries)

        worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
        worker.start()
        try:
            self.assertEqual(add.send(2, 3).get_result(block=True, timeout=20_000), 5)
            late = add.send_with_options(args=(1, 1), delay=500)
            self.assertEqual(late.get_result(block=True, timeout=20_000), 2)
            job = third_time.send()
            until(lambda: len(tries) == 3)
            self.assertEqual(job.get_result(block=True, timeout=20_000), 3)
        finally:
            worker.stop()
            broker.close()


class Streams(unittest.TestCase):
    """A stream with a group, as services use them without a library of jobs."""

    def test_group(self):
        redis = Redis(HOST, int(PORT), decode_responses=True)
        stream = fresh("stream")
        ids = [redis.xadd(stream, {"number": number}) for number in range(5)]
        redis.xgroup_create(stream, "workers", id="0")
        read = redis.xreadgroup("workers", "ada", {stream: ">"}, count=3)
        self.assertEqual([entry for entry, _ in read[0][1]], ids[:3])
        self.assertEqual(redis.xack(stream, "workers", ids[0]), 1)
        self.assertEqual(redis.xpending(stream, "workers")["pending"], 2)
        _, claimed, removed = redis.xautoclaim(stream, "workers", "bob", 0)
        self.assertEqual([entry for entry, _ in claimed], ids[1:3])
        self.assertEqual(removed, [])
        again = redis.xreadgroup("workers", "bob", {stream: "0"})
        self.assertEqual(again[0][1], [(ids[1], {"number": "1"}), (ids[2], {"number": "2"})])
        groups = redis.xinfo_groups(stream)
        self.assertEqual((groups[0]["pending"], groups[0]["lag"]), (2, 2))
        self.assertEqual(redis.xtrim(stream, maxlen=1, approximate=False), 4)
        self.assertEqual(redis.xrevrange(stream, count=1), [(ids[4], {"number": "4"})])


if __name__ == "__main__":
    unittest.main()
