"""redis-cli and redis-benchmark against the server at REDIS_ADDR."""

import subprocess
import unittest

from server import HOST, PORT, fresh_key


def run(program, *arguments, text=None):
    command = [program, "-h", HOST, "-p", str(PORT), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


class RedisCli(unittest.TestCase):
    def test_redis_cli_prints_readable_answers(self):
        key = fresh_key()
        self.assertEqual(run("redis-cli", "ping"), "PONG\n")
        self.assertEqual(run("redis-cli", "rpush", key, "a b", "c"), "2\n")
        self.assertEqual(run("redis-cli", "lrange", key, "0", "-1"), "a b\nc\n")
        self.assertEqual(run("redis-cli", "--no-raw", "lpop", key), '"a b"\n')
        self.assertEqual(run("redis-cli", "-3", "--no-raw", "get", fresh_key()), "(nil)\n")
        self.assertIn("wrong number", run("redis-cli", "lpush", key))

    def test_script_of_lines(self):
        key = fresh_key()
        text = f"multi\nrpush {key} 1 2\nllen {key}\nexec\n"
        self.assertEqual(run("redis-cli", text=text), "OK\nQUEUED\nQUEUED\n2\n2\n")

    def test_pipe_of_raw_protocol(self):
        key = fresh_key()
        command = f"*3\r\n$5\r\nRPUSH\r\n${len(key)}\r\n{key}\r\n$1\r\nx\r\n"
        self.assertIn("errors: 0, replies: 1000", run("redis-cli", "--pipe", text=command * 1000))
        self.assertEqual(run("redis-cli", "llen", key), "1000\n")

    def test_scanning(self):
        keys = sorted(fresh_key() + "-scanned" for _ in range(25))
        for key in keys:
            run("redis-cli", "set", key, "x")
        found = run("redis-cli", "--scan", "--pattern", "*-scanned").split()
        self.assertEqual(sorted(set(found) & set(keys)), keys)


class RedisBenchmark(unittest.TestCase):
    def test_lists_and_values(self):
        tests = "ping,set,get,lpush,rpush,lpop,rpop,lrange_100"
        output = run("redis-benchmark", "-q", "-n", "2000", "-c", "20", "-t", tests)
        for word in ["PING_INLINE", "PING_MBULK", "SET", "GET", "LPUSH", "RPOP", "LRANGE_100"]:
            self.assertIn(f"{word}", output)
        self.assertEqual(output.count("requests per second"), 10, output)
        self.assertNotIn("ERR", output)

    def test_pipelines(self):
        output = run("redis-benchmark", "-q", "-n", "5000", "-P", "64", "-t", "lpush,rpop")
        self.assertEqual(output.count("requests per second"), 2, output)
        self.assertNotIn("ERR", output)


if __name__ == "__main__":
    unittest.main()
