"""curl against a secured server at SECURED_ADDR: TLS, users, rights. Skipped without one."""

import json
import os
import subprocess
import unittest
import uuid

from test_curl import curl

ADDRESS = os.environ.get("SECURED_ADDR")


@unittest.skipUnless(ADDRESS, "no secured server")
class Secured(unittest.TestCase):
    def setUp(self):
        name = uuid.uuid4().hex
        self.own = f"https://{ADDRESS}/queues/ann.{name}"
        self.other = f"https://{ADDRESS}/queues/other.{name}"

    def ask(self, *words, data=None):
        return curl("--cacert", os.environ["SECURED_CA"], *words, data=data)

    def as_user(self, user, *words, password=None):
        login = f"{user}:{password or os.environ['SECURED_PASSWORD']}"
        return self.ask("--user", login, *words)

    def test_unknown_root_is_refused(self):
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            curl(f"https://{ADDRESS}/health")
        # The certificate of the peer cannot be verified.
        self.assertEqual(caught.exception.returncode, 60)

    def test_stranger_is_unauthorized(self):
        for words in (["--http2", self.own], ["--http1.1", "-d", "x", f"{self.own}/messages"]):
            status, headers, _ = self.ask(*words)
            self.assertEqual(status, 401)
            self.assertRegex(headers["www-authenticate"], "^(basic|bearer) realm=")
        # A user that has logged in is refused for its own failures only.
        self.assertEqual(self.as_user("eve-1", f"{self.own}")[0], 403)
        status = self.as_user("eve-1", f"{self.own}", password="wrong password")[0]
        self.assertEqual(status, 401)
        self.assertEqual(self.ask(f"https://{ADDRESS}/health")[0], 200)

    def test_own_queue_is_served_by_basic_and_bearer(self):
        bearer = ["-H", f"Authorization: Bearer {os.environ['SECURED_TOKEN']}"]
        for version in ("--http1.1", "--http2"):
            messages = [version, f"{self.own}/messages"]
            self.assertEqual(self.as_user("ann", "-d", "hello", *messages)[0], 201)
            status, _, body = self.ask(*bearer, *messages)
            self.assertEqual((status, body), (200, b"hello"))

    def test_other_names_are_forbidden(self):
        messages = f"{self.other}/messages"
        self.assertEqual(self.as_user("root", "-d", "kept", messages)[0], 201)
        for words in (["-d", "x", messages], [messages], [self.other],
                      ["-X", "DELETE", self.other]):
            status, headers, body = self.as_user("ann", *words)
            self.assertEqual((status, headers["content-type"]), (403, "application/problem+json"))
            self.assertIn("user ann may not", json.loads(body)["detail"])
        self.assertEqual(self.as_user("ann", f"https://{ADDRESS}/metrics")[0], 403)
        self.assertEqual(self.as_user("root", messages)[2], b"kept")


if __name__ == "__main__":
    unittest.main()
