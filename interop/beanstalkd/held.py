"""What held jobs cost: releasing many of them, and the end of many leases at once.

    python3 held.py 127.0.0.1:11300 [--jobs 100000]

Measures any beanstalkd server; needs nothing beyond Python. It prints one JSON line:

release_us      microseconds to release a job, pipelined by 500, by a connection that holds 500
release_all_us  the same by a connection that holds all jobs, mean over releasing all
visited         distinct jobs that a worker that only releases meets in as many steps as there
                are jobs (equal priorities; 1 where a released job keeps its place)
expiry_wait_ms  the longest that another client waited for a reply while all leases ended
"""

import argparse
import json
import socket
import threading
import time

BATCH = 500


class Client:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, *commands):
        """Sends all commands at once and returns the first line of each reply."""
        self.socket.sendall(b"".join(commands))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        word = line.split(b" ", 1)[0].strip()
        if word in (b"RESERVED", b"OK", b"FOUND"):
            self.file.read(int(line.split()[-1]) + 2)
        return line.strip()


def expect(word, lines):
    wrong = [line for line in lines if not line.startswith(word)]
    if wrong:
        raise SystemExit(f"expected {word}, got {wrong[0]}")
    return lines


def put(client, count, lease):
    command = b"put 1024 0 %d 4\r\nbody\r\n" % lease
    for start in range(0, count, BATCH):
        expect(b"INSERTED", client.ask(*[command] * min(BATCH, count - start)))


def reserve(client, count):
    ids = []
    for start in range(0, count, BATCH):
        commands = [b"reserve-with-timeout 0\r\n"] * min(BATCH, count - start)
        ids += [line.split()[1] for line in expect(b"RESERVED", client.ask(*commands))]
    return ids


def release(client, ids):
    begin = time.perf_counter()
    for start in range(0, len(ids), BATCH):
        commands = [b"release %s 1024 0\r\n" % job for job in ids[start : start + BATCH]]
        expect(b"RELEASED", client.ask(*commands))
    return (time.perf_counter() - begin) / len(ids) * 1e6


def delete(client, ids):
    for start in range(0, len(ids), BATCH):
        commands = [b"delete %s\r\n" % job for job in ids[start : start + BATCH]]
        expect(b"DELETED", client.ask(*commands))


def circle(client, count):
    seen = set()
    for _ in range(0, count, BATCH):
        for _ in range(BATCH):
            (line,) = expect(b"RESERVED", client.ask(b"reserve-with-timeout 0\r\n"))
            job = line.split()[1]
            seen.add(job)
            expect(b"RELEASED", client.ask(b"release %s 1024 0\r\n" % job))
    return len(seen)


def longest_wait(address, stop):
    """Asks one thing after the other; returns the longest wait in milliseconds."""
    client, longest = Client(address), 0.0
    while not stop.is_set():
        begin = time.perf_counter()
        expect(b"USING", client.ask(b"use held-neighbour\r\n"))
        longest = max(longest, time.perf_counter() - begin)
    return longest * 1000


def expiry(address, tube, count):
    """All leases of `count` jobs end in one second, while another client asks on and on."""
    holder, lease = Client(address), 1 + count // 20_000
    holder.ask(b"use %s\r\n" % tube, b"watch %s\r\n" % tube, b"ignore default\r\n")
    put(holder, count, lease)
    ids = reserve(holder, count)
    for start in range(0, count, BATCH):  # from here on all have nearly the same deadline
        holder.ask(*[b"touch %s\r\n" % job for job in ids[start : start + BATCH]])
    stop, waits = threading.Event(), []
    neighbour = threading.Thread(target=lambda: waits.append(longest_wait(address, stop)))
    neighbour.start()
    time.sleep(lease + 1)
    end = time.monotonic() + 120
    while ready(holder, tube) < count and time.monotonic() < end:
        time.sleep(0.2)
    stop.set()
    neighbour.join()
    delete(holder, reserve(holder, count))
    return waits[0]


def ready(client, tube):
    client.socket.sendall(b"stats-tube %s\r\n" % tube)
    size = int(client.file.readline().split()[1])
    document = client.file.read(size + 2)
    (line,) = [line for line in document.splitlines() if line.startswith(b"current-jobs-ready")]
    return int(line.split()[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", help="HOST:PORT of the server")
    parser.add_argument("--jobs", type=int, default=100_000, help="how many jobs are held")
    parser.add_argument("--circle", type=int, default=20_000, help="steps of the worker")
    options = parser.parse_args()
    tube = b"held-%d" % time.time_ns()
    client = Client(options.address)
    client.ask(b"use %s\r\n" % tube, b"watch %s\r\n" % tube, b"ignore default\r\n")
    put(client, options.jobs, 86_400)
    few = sorted(release(client, reserve(client, BATCH)) for _ in range(11))
    held = reserve(client, options.jobs)
    result = {
        "jobs": options.jobs,
        "release_us": round(few[5], 2),
        "release_all_us": round(release(client, held), 2),
        "visited": circle(client, options.circle),
        "steps": options.circle,
    }
    delete(client, reserve(client, options.jobs))
    result["expiry_wait_ms"] = round(expiry(options.address, tube + b"-x", options.jobs), 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
