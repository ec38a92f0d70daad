"""redis-py against a secured server at SECURED_ADDR: TLS, users, rights. Skipped without one."""

import os
import unittest

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from server import fresh_key

ADDRESS = os.environ.get("SECURED_ADDR")


def login(user):
    return {"username": user, "password": os.environ["SECURED_PASSWORD"]}


class Scenarios:
    """What holds in both versions of the protocol."""

    protocol = None

    def setUp(self):
        # Users who have logged in from here do not wait for failures of others.
        self.root, self.client = self.connect(**login("root")), self.connect(**login("ann"))
        self.root.ping()
        self.client.ping()
        self.own, self.other = "ann." + fresh_key(), "other." + fresh_key()

    def connect(self, roots=True, **options):
        """A connection that is tried once: another try of a wrong password would have to wait."""
        host, _, port = ADDRESS.rpartition(":")
        if roots:
            options["ssl_ca_certs"] = os.environ["SECURED_CA"]
        client = redis.Redis(host, int(port), protocol=self.protocol, socket_timeout=20, ssl=True,
                             retry=Retry(NoBackoff(), 0), single_connection_client=True,
                             **options)
        self.addCleanup(client.close)
        return client

    def refused(self, command, *arguments):
        with self.assertRaisesRegex(redis.exceptions.NoPermissionError, "user ann may not"):
            command(*arguments)

    def test_unknown_root_is_refused(self):
        with self.assertRaisesRegex(redis.ConnectionError, "CERTIFICATE_VERIFY_FAILED"):
            self.connect(roots=False, **login("ann")).ping()

    def test_wrong_password_is_refused(self):
        eve = f"eve-{self.protocol}"
        self.connect(**login(eve)).ping()
        with self.assertRaisesRegex(redis.AuthenticationError, "invalid username-password pair"):
            self.connect(username=eve, password="wrong password").ping()
        with self.assertRaisesRegex(redis.AuthenticationError, "(?i)authenticat(ion required|ed)"):
            self.connect().get(self.own)

    def test_own_names_serve_all_commands(self):
        client, key = self.client, self.own
        self.assertIn(client.acl_whoami(), ("ann", b"ann"))
        self.assertEqual(client.rpush(key, 1, 2), 2)
        self.assertEqual(client.lpop(key), b"1")
        self.assertTrue(client.set(key + ".value", "x"))
        self.assertEqual(client.get(key + ".value"), b"x")
        with client.pipeline(transaction=True) as pipe:
            pipe.watch(key)
            pipe.multi()
            self.assertEqual(pipe.rpush(key, 3).lpop(key).execute(), [2, b"2"])

    def test_own_channel_carries_messages(self):
        with self.connect(**login("ann")).pubsub() as subscription:
            subscription.subscribe(self.own)
            self.assertEqual(subscription.get_message(timeout=20)["type"], "subscribe")
            self.assertEqual(self.client.publish(self.own, "hello"), 1)
            message = subscription.get_message(timeout=20)
            self.assertEqual((message["type"], message["data"]), ("message", b"hello"))

    def test_other_names_are_refused(self):
        client, other = self.client, self.other
        self.root.rpush(other, "kept")
        self.refused(client.rpush, other, "x")
        self.refused(client.lpop, other)
        self.refused(client.lrange, other, 0, -1)
        self.refused(client.set, other, "x")
        self.refused(client.get, other)
        self.refused(client.publish, other, "x")
        self.refused(client.delete, self.own)
        subscription = client.pubsub()
        self.addCleanup(subscription.close)
        self.refused(lambda: subscription.subscribe(other) or subscription.get_message(timeout=20))
        # The same connection goes on, and nothing has changed.
        self.assertEqual(client.keys("*other*"), [])
        self.assertEqual(client.rpush(self.own, "x"), 1)
        self.assertEqual(self.root.lrange(other, 0, -1), [b"kept"])

    def test_transaction_with_other_name_stores_nothing(self):
        pipe = self.client.pipeline(transaction=True)
        pipe.rpush(self.own, "x").rpush(self.other, "x")
        with self.assertRaisesRegex(redis.exceptions.ExecAbortError, "NOPERM user ann may not"):
            pipe.execute()
        self.assertEqual(self.client.llen(self.own), 0)
        self.assertEqual(self.root.llen(self.other), 0)


@unittest.skipUnless(ADDRESS, "no secured server")
class Resp2(Scenarios, unittest.TestCase):
    protocol = 2


@unittest.skipUnless(ADDRESS, "no secured server")
class Resp3(Scenarios, unittest.TestCase):
    protocol = 3


if __name__ == "__main__":
    unittest.main()
