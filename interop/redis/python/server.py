"""Where the server under test listens, and names that no other test uses."""

import itertools
import os

HOST, _, PORT = os.environ["REDIS_ADDR"].rpartition(":")
PORT = int(PORT)

# Every byte value, and what looks like the protocol.
BINARY = bytes(range(256)) + b"\r\n$-1\r\n*1\r\n\x00"

_numbers = itertools.count(1)


def fresh_key():
    """A key that no earlier test and no other process has used."""
    return f"python-{os.getpid()}-{next(_numbers)}"
