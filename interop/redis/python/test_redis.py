"""redis-py against the server at REDIS_ADDR, by RESP2 and by RESP3."""

import threading
import time
import unittest

import redis

from server import BINARY, HOST, PORT, fresh_key


class Scenarios:
    """What holds in both versions of the protocol."""

    protocol = None

    def setUp(self):
        self.client = self.connect()
        self.key, self.other = fresh_key(), fresh_key()

    def connect(self, **options):
        client = redis.Redis(HOST, PORT, protocol=self.protocol, socket_timeout=20, **options)
        self.addCleanup(client.close)
        return client

    def test_queue_is_first_in_first_out(self):
        for number in range(100):
            self.assertEqual(self.client.lpush(self.key, number), number + 1)
        self.assertEqual(self.client.llen(self.key), 100)
        taken = [self.client.rpop(self.key) for _ in range(101)]
        self.assertEqual(taken, [b"%d" % number for number in range(100)] + [None])
        self.assertEqual(self.client.exists(self.key), 0)

    def test_elements_are_any_bytes(self):
        large = BINARY * 1000
        self.assertEqual(self.client.rpush(self.key, b"", BINARY, large), 3)
        self.assertEqual(self.client.lrange(self.key, 0, -1), [b"", BINARY, large])
        self.assertEqual(self.client.lpop(self.key, 2), [b"", BINARY])
        self.assertEqual(self.client.blpop([self.other, self.key], 5), self.pair(self.key, large))

    def pair(self, key, element):
        pair = (key.encode(), element)
        return pair if self.protocol == 2 else list(pair)

    def test_places(self):
        client, key = self.client, self.key
        client.rpush(key, *"abcabc")
        self.assertEqual(client.lindex(key, -1), b"c")
        self.assertIsNone(client.lindex(key, 6))
        self.assertTrue(client.lset(key, 1, "B"))
        with self.assertRaisesRegex(redis.ResponseError, "index out of range"):
            client.lset(key, 6, "x")
        with self.assertRaisesRegex(redis.ResponseError, "no such key"):
            client.lset(self.other, 0, "x")
        self.assertEqual(client.linsert(key, "BEFORE", "c", "x"), 7)
        self.assertEqual(client.linsert(key, "AFTER", "nowhere", "x"), -1)
        self.assertEqual(client.lpos(key, "a", rank=-1), 4)
        self.assertEqual(client.lpos(key, "a", count=0), [0, 4])
        self.assertIsNone(client.lpos(key, "nowhere"))
        self.assertEqual(client.lrem(key, -1, "a"), 1)
        self.assertTrue(client.ltrim(key, 1, -2))
        self.assertEqual(client.lrange(key, 0, -1), [b"B", b"x", b"c", b"b"])
        self.assertEqual(client.lpushx(self.other, "x"), 0)
        self.assertEqual(client.rpushx(key, "y", "z"), 6)

    def test_moves(self):
        client = self.client
        client.rpush(self.key, 1, 2, 3)
        self.assertEqual(client.lmove(self.key, self.other, "LEFT", "RIGHT"), b"1")
        self.assertEqual(client.rpoplpush(self.key, self.other), b"3")
        self.assertEqual(client.lrange(self.other, 0, -1), [b"3", b"1"])
        popped = client.lmpop(2, self.key, self.other, direction="LEFT", count=5)
        self.assertEqual(popped, [self.key.encode(), [b"2"]])
        self.assertEqual(client.brpoplpush(self.other, self.key, 1), b"1")
        self.assertIsNone(client.lmove(fresh_key(), self.key, "LEFT", "LEFT"))

    def test_waiting_clients_are_served(self):
        taken = []
        ready = threading.Barrier(4)

        def take(worker):
            ready.wait()
            taken.append(worker.brpop([self.other, self.key], 10))

        threads = [threading.Thread(target=take, args=(self.connect(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        ready.wait()
        self.wait_for_blocked(3)
        self.client.lpush(self.key, 1, 2)
        self.client.lpush(self.other, 3)
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(element for _, element in taken), [b"1", b"2", b"3"])

    def wait_for_blocked(self, count):
        end = time.monotonic() + 10
        while self.client.info("clients")["blocked_clients"] < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def test_waiting_ends(self):
        self.assertIsNone(self.client.blpop(self.key, 0.05))
        self.assertIsNone(self.client.blmove(self.key, self.other, 0.05))
        self.assertIsNone(self.client.blmpop(0.05, 1, self.key, direction="LEFT"))
        waiting = self.connect(single_connection_client=True)
        number, failed = waiting.client_id(), []

        def wait():
            try:
                waiting.blpop(self.key, 0)
            except redis.ResponseError as error:
                failed.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        self.wait_for_blocked(1)
        self.assertEqual(self.client.client_unblock(number, error=True), 1)
        thread.join()
        self.assertRegex(failed[0], "UNBLOCKED|unblocked")

    def test_transaction_is_one_step(self):
        with self.client.pipeline(transaction=True) as pipe:
            pipe.rpush(self.key, 1, 2).lrange(self.key, 0, -1).set(self.other, "v").get(self.other)
            pipe.lpop(self.other)
            results = pipe.execute(raise_on_error=False)
        self.assertEqual(results[:4], [2, [b"1", b"2"], True, b"v"])
        self.assertIsInstance(results[4], redis.ResponseError)

    def test_pipeline_is_answered_in_order(self):
        with self.client.pipeline(transaction=False) as pipe:
            for number in range(1000):
                pipe.rpush(self.key, number)
            pipe.llen(self.key).lpop(self.key, 1000)
            results = pipe.execute()
        self.assertEqual(results[:1001], [*range(1, 1001), 1000])
        self.assertEqual(results[1001], [b"%d" % number for number in range(1000)])

    def test_watched_keys(self):
        with self.client.pipeline() as pipe:
            pipe.watch(self.key)
            self.connect().rpush(self.key, "faster")
            pipe.multi()
            pipe.rpush(self.key, "slower")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        with self.client.pipeline() as pipe:
            pipe.watch(self.key)
            pipe.multi()
            pipe.rpush(self.key, "now")
            self.assertEqual(pipe.execute(), [2])

    def test_messages(self):
        listener = self.client.pubsub()
        self.addCleanup(listener.close)
        listener.subscribe(self.key)
        listener.psubscribe(self.other + "*")
        kinds = [self.next_message(listener)["type"] for _ in range(2)]
        self.assertEqual(kinds, ["subscribe", "psubscribe"])
        other = self.connect()
        self.assertEqual(other.publish(self.key, BINARY), 1)
        self.assertEqual(other.publish(self.other + "x", "y"), 1)
        self.assertEqual(other.publish(fresh_key(), "nobody"), 0)
        message = self.next_message(listener)
        self.assertEqual((message["channel"], message["data"]), (self.key.encode(), BINARY))
        message = self.next_message(listener)
        self.assertEqual(message["pattern"], (self.other + "*").encode())
        self.assertEqual(message["channel"], (self.other + "x").encode())
        self.assertEqual(other.pubsub_numsub(self.key), [(self.key.encode(), 1)])
        self.assertEqual(other.pubsub_channels(self.key), [self.key.encode()])
        listener.unsubscribe()
        self.assertEqual(self.next_message(listener)["type"], "unsubscribe")
        self.assertEqual(other.publish(self.key, "gone"), 0)

    def next_message(self, listener):
        message = listener.get_message(timeout=10)
        self.assertIsNotNone(message)
        return message

    def test_many_messages_come_in_order(self):
        listener = self.client.pubsub(ignore_subscribe_messages=True)
        self.addCleanup(listener.close)
        listener.subscribe(self.key)
        listener.get_message(timeout=10)
        with self.connect().pipeline(transaction=False) as pipe:
            for number in range(1000):
                pipe.publish(self.key, number)
            self.assertEqual(pipe.execute(), [1] * 1000)
        heard = [int(self.next_message(listener)["data"]) for _ in range(1000)]
        self.assertEqual(heard, list(range(1000)))

    def test_keys(self):
        client = self.client
        client.rpush(self.key, "x")
        self.assertTrue(client.set(self.other, "v", ex=100))
        self.assertEqual(client.type(self.key), b"list")
        self.assertEqual(client.type(self.other), b"string")
        self.assertEqual(client.ttl(self.other), 100)
        self.assertEqual(client.ttl(self.key), -1)
        self.assertTrue(client.expire(self.key, 50))
        self.assertFalse(client.expire(self.key, 40, gt=True))
        self.assertTrue(client.persist(self.key))
        found = set(client.scan_iter(match=self.key[:-1] + "*", count=3))
        self.assertIn(self.key.encode(), found)
        self.assertEqual(client.keys(self.key), [self.key.encode()])
        name = fresh_key()
        self.assertTrue(client.rename(self.key, name))
        self.assertEqual(client.lrange(name, 0, -1), [b"x"])
        self.assertFalse(client.renamenx(name, self.other))
        self.assertEqual(client.object("encoding", self.other), b"embstr")
        self.assertEqual(client.delete(name, self.other, fresh_key()), 2)
        client.rpush(self.key, "x")
        client.pexpire(self.key, 30)
        time.sleep(0.06)
        self.assertEqual(client.exists(self.key), 0)

    def test_values(self):
        client = self.client
        self.assertIsNone(client.get(self.key))
        self.assertIsNone(client.set(self.key, BINARY, xx=True))
        self.assertTrue(client.set(self.key, BINARY, nx=True))
        self.assertEqual(client.get(self.key), BINARY)
        self.assertEqual(client.set(self.key, "w", get=True), BINARY)
        self.assertTrue(client.set(self.key, "v", px=100_000))
        self.assertTrue(client.set(self.key, "w", keepttl=True))
        self.assertEqual(client.ttl(self.key), 100)
        self.assertFalse(client.setnx(self.key, "x"))
        self.assertEqual(client.getdel(self.key), b"w")
        with self.assertRaisesRegex(redis.ResponseError, "wrong kind"):
            client.rpush(self.key, "x")
            client.get(self.key)

    def test_connection_and_server(self):
        client = self.connect(single_connection_client=True, client_name="tester")
        self.assertTrue(client.ping())
        self.assertEqual(client.echo("hi"), b"hi")
        self.assertIn(client.client_getname(), ["tester", b"tester"])
        self.assertTrue(client.client_setname("other"))
        names = [entry["name"] for entry in client.client_list()]
        self.assertIn("other", names)
        self.assertGreater(int(client.client_info()["id"]), 0)
        info = client.info()
        self.assertTrue(info["redis_version"].startswith("7."))
        self.assertEqual(info["role"], "master")
        self.assertEqual(info["loading"], 0)
        self.assertEqual(client.config_get("save")["save"], "")
        self.assertGreater(client.time()[0], 1_700_000_000)
        self.assertIn("lpush", client.command())
        self.assertGreater(client.command_count(), 50)
        self.assertEqual(client.wait(0, 0), 0)
        with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
            client.execute_command("NOSUCH", "a")
        with self.assertRaisesRegex(redis.ResponseError, "wrong number of arguments"):
            client.execute_command("LPUSH", "a")

    def test_lock_by_a_value(self):
        self.assertTrue(self.client.set(self.key, "me", nx=True, px=10_000))
        self.assertIsNone(self.client.set(self.key, "you", nx=True, px=10_000))
        self.client.unlink(self.key)
        self.assertTrue(self.client.set(self.key, "you", nx=True, px=10_000))


class Resp2(Scenarios, unittest.TestCase):
    protocol = 2


class Resp3(Scenarios, unittest.TestCase):
    protocol = 3


del Scenarios
