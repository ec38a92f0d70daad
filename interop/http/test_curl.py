"""curl against a running server: HTTP_URL says where."""

import json
import os
import subprocess
import unittest
import uuid

URL = os.environ.get("HTTP_URL", "http://127.0.0.1:8422")


def curl(*words, data=None):
    """Status, headers (lower case) and body of what curl got."""
    command = ["curl", "--silent", "--show-error", "--include", "--max-time", "30", *words]
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers, body


class Curl(unittest.TestCase):
    def setUp(self):
        self.queue = f"{URL}/queues/{uuid.uuid4()}"
        self.messages = f"{self.queue}/messages"

    def test_examples_of_the_documentation(self):
        status, _, body = curl("-d", "hello", self.messages)
        self.assertEqual((status, list(json.loads(body))), (201, ["message"]))
        status, headers, body = curl(f"{self.messages}?wait=20s&lease=30s")
        self.assertEqual((status, body), (200, b"hello"))
        lease = f"{URL}/leases/{headers['dunlin-lease']}"
        self.assertEqual(curl("-X", "POST", f"{lease}/extend?lease=60s")[0], 204)
        self.assertEqual(curl("-X", "DELETE", lease)[0], 204)
        status, headers, body = curl("-X", "DELETE", lease)
        self.assertEqual((status, headers["content-type"]), (410, "application/problem+json"))
        self.assertIn("receive again", json.loads(body)["detail"])

    def test_http_2_with_prior_knowledge(self):
        version = ["--http2-prior-knowledge", "--write-out", "%{http_version}"]
        _, _, body = curl(*version, f"{URL}/health")
        self.assertTrue(body.endswith(b"2"), body)
        self.assertEqual(curl(*version, "-d", "hello", self.messages)[0], 201)
        self.assertIn(b"hello", curl(*version, self.messages)[2])

    def test_large_body_of_any_bytes(self):
        body = bytes(range(256)) * 4096
        status, _, _ = curl("--data-binary", "@-", "-H", "Expect: 100-continue", self.messages,
                            data=body)
        self.assertEqual(status, 201)
        self.assertEqual(curl(self.messages)[2], body)
        chunked = ["-H", "Transfer-Encoding: chunked", "--data-binary", "@-"]
        self.assertEqual(curl(*chunked, self.messages, data=body)[0], 201)
        self.assertEqual(curl(self.messages)[2], body)

    def test_connection_serves_many_requests(self):
        words = ["--write-out", "%{num_connects}", "-d", "a", self.messages]
        _, _, body = curl(*words, "--next", "--silent", "--include", *words)
        self.assertTrue(body.endswith(b"0"), "the second request opened no connection")

    def test_lines_and_properties(self):
        lines = ["-H", "Content-Type: application/x-ndjson", "--data-binary", '{"a":1}\n{"a":2}\n']
        self.assertEqual(json.loads(curl(*lines, self.messages)[2]), {"count": 2})
        headers = ["-H", "Dunlin-Property-Region: EU", "-H", "Content-Type: text/plain"]
        curl(*headers, "-d", "hello", self.messages)
        _, _, body = curl(f"{self.messages}?browse&selector=region%20%3D%20%27EU%27")
        [found] = json.loads(body)["messages"]
        self.assertEqual((found["body"], found["content_type"]), ("hello", "text/plain"))
        self.assertEqual(json.loads(curl(self.queue)[2])["ready"], 3)

    def test_events_come_as_they_are_published(self):
        topic = f"{URL}/topics/{uuid.uuid4()}"
        command = ["curl", "--silent", "--no-buffer", "--max-time", "30", f"{topic}/events"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
            self.assertEqual(reader.stdout.readline(), b": follows\n")
            for n in range(3):
                curl("-d", f"news {n}", f"{topic}/messages")
            bodies = []
            while len(bodies) < 3:
                line = reader.stdout.readline().decode()
                if line.startswith("data: "):
                    bodies.append(json.loads(line.removeprefix("data: "))["body"])
            reader.terminate()
        self.assertEqual(bodies, ["news 0", "news 1", "news 2"])

    def test_transaction_moves_a_message_on(self):
        curl("-d", "order", self.messages)
        _, headers, _ = curl(self.messages)
        out = str(uuid.uuid4())
        work = {"send": [{"queue": out, "body": "done"}],
                "settle": [{"lease": headers["dunlin-lease"]}]}
        words = ["-d", json.dumps(work), "-H", "Content-Type: application/json"]
        self.assertEqual(curl(*words, f"{URL}/transactions")[0], 200)
        self.assertEqual(curl(f"{URL}/queues/{out}/messages")[2], b"done")
        self.assertEqual(curl(*words, f"{URL}/transactions")[0], 410)


if __name__ == "__main__":
    unittest.main()
