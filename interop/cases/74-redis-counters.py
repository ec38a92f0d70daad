#!/usr/bin/env python3
"""Counters and rate limits are INCR and EXPIRE, amounts are moved by MULTI.

Right: as in Redis, and a crash leaves all of a transaction or nothing: what one account lost the
other has, and each answered transfer is there."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server(sync='always')
r = s.redis()
x = r.ask('INCRBY', 'hits', 1)
check('INCRBY of nothing is 1', x == 1, x)
r.ask('SET', 'hits', '41')
x = r.ask('INCR', 'hits')
check('INCR of 41 is 42', x == 42, x)
r.ask('EXPIRE', 'hits', 100)
r.ask('INCR', 'hits')
x = r.ask('TTL', 'hits')
check('INCR keeps the deadline', 90 < x <= 100, x)
x = r.ask('INCRBYFLOAT', 'price', '0.1'), r.ask('INCRBYFLOAT', 'price', '0.2')
check('decimal sums have the digits of Redis', x == (b'0.1', b'0.3'), x)

# Ten clients move amounts while the broker is killed.
ACCOUNTS = 8
r.ask('MSET', *(word for n in range(ACCOUNTS) for word in (f'account {n}', '1000')))
answered = [0] * 10


def move(index):
    try:
        client = s.redis()
        for step in range(100_000):
            giver, taker = (index + step) % ACCOUNTS, (index * 3 + step * 5 + 1) % ACCOUNTS
            amount = step % 7 + 1
            client.send('MULTI')
            client.send('INCRBY', f'account {giver}', -amount)
            client.send('INCRBY', f'account {taker}', amount)
            client.send('INCR', f'transfers of {index}')
            client.send('EXEC')
            replies = [client.reply() for _ in range(5)]
            moved = replies[-1]
            if not isinstance(moved, list) or 'CLOSED' in moved:
                return
            answered[index] = moved[2]
    except (OSError, EOFError, ValueError, IndexError, AssertionError):
        pass


for life in range(3):
    movers = [threading.Thread(target=move, args=(index,)) for index in range(10)]
    for mover in movers:
        mover.start()
    until = time.monotonic() + 20
    goal = sum(answered) + 500
    while sum(answered) < goal and time.monotonic() < until:
        time.sleep(0.01)
    s.kill()
    for mover in movers:
        mover.join()
    s.start()
    r = s.redis()
    balances = r.ask('MGET', *(f'account {n}' for n in range(ACCOUNTS)))
    total = sum(int(balance) for balance in balances)
    check(f'no amount is lost or made, life {life}', total == 1000 * ACCOUNTS, balances)
    counts = [int(r.ask('GET', f'transfers of {index}') or 0) for index in range(10)]
    late = [count - told for count, told in zip(counts, answered)]
    check('each answered transfer is there, and one more at most', set(late) <= {0, 1}, late)
check('they were many', sum(answered) > 1000, answered)
done()
