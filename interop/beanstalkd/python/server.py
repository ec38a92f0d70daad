"""Where the server under test listens, and names that no other test uses."""

import itertools
import os
import time

host, _, port = os.environ["BEANSTALKD_ADDR"].rpartition(":")
ADDRESS = (host, int(port))

# Every byte value, the protocol's own line end and what looks like a reply.
BINARY = bytes(range(256)) + b"\r\nINSERTED 1\r\n\r\n\x00"

_numbers = itertools.count(1)


def fresh_tube():
    """A tube name that no earlier test and no other process has used."""
    return f"python-{os.getpid()}-{next(_numbers)}"


def after_expiry(ttr, nudge):
    """Nothing, but with the original: waits `ttr` out and lets the holder say something.

    beanstalkd (1.12, and its source of 2025) forgets about one expiry in ten of a connection that
    stays silent: a timer that fires within the very microsecond of the deadline is dropped.
    """
    if os.environ.get("BEANSTALKD_SERVER") == "original":
        time.sleep(ttr + 0.1)
        nudge()
