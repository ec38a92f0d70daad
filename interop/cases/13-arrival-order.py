#!/usr/bin/env python3
"""Six clients that sent BLPOP one after another got elements in reverse in 6 of 10 rounds.

With redis-server they never do. Right: what arrives first takes effect first, within a protocol.
Blocking pops and reserves queue in the order of their commands; a connection that was closed, and
a subscription that was ended, is not counted by a command that is sent afterwards."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

ROUNDS = 100
s = Server('--threads', '2')
# The kernel keeps the order of one processor alone.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def blocking_pops():
    wrong = 0
    pusher = s.redis()
    for _ in range(ROUNDS // 2):
        clients = [s.redis() for _ in range(6)]
        for c in clients:
            c.ask('PING')
        for c in clients:
            c.send('BLPOP', 'k', '0')
        waiting(pusher, 6)
        for number in range(6):
            pusher.ask('RPUSH', 'k', number)
        got = [int(c.reply()[1]) for c in clients]
        wrong += got != sorted(got)
        for c in clients:
            c.close()
    return wrong


def settled(redis):
    """Returns once the reactor has left the call that sent the last reply.

    The kernel keeps a connection locked during that call. What its client sends meanwhile comes
    behind what others send later."""
    redis.ask('PING')


def waiting(redis, count):
    """Returns once so many clients are blocked."""
    while f'blocked_clients:{count}\r'.encode() not in redis.ask('INFO', 'clients'):
        pass


def reserves():
    wrong = 0
    producer = s.beanstalk()
    for _ in range(ROUNDS // 2):
        workers = [s.beanstalk() for _ in range(6)]
        for w in workers:
            w.ask('list-tube-used')
        for w in workers:
            w.send('reserve\r\n')
        while producer.stats('stats')['current-waiting'] != '6':
            pass
        numbers = [int(producer.put(b'x').split()[1]) for _ in workers]
        got = [w.reply()[1] for w in workers]
        wrong += got != numbers
        for w, number in zip(workers, got):
            w.ask(f'delete {number}')
            w.close()
    return wrong


def closed_by_beanstalkd():
    asking = s.beanstalk()
    wrong = 0
    for _ in range(ROUNDS):
        closing = s.beanstalk()
        closing.ask('list-tube-used')
        before = int(asking.stats('stats')['current-connections'])
        closing.close()
        wrong += int(asking.stats('stats')['current-connections']) != before - 1
    return wrong


def closed_by_redis():
    asking = s.redis()
    wrong = 0
    for _ in range(ROUNDS):
        closing = s.redis()
        closing.ask('SUBSCRIBE', 'news')
        settled(asking)
        closing.close()
        wrong += asking.ask('PUBLISH', 'news', 'x') != 0
    return wrong


def unsubscribed():
    asking = s.redis()
    wrong = 0
    for _ in range(ROUNDS):
        leaving = s.redis()
        leaving.ask('SUBSCRIBE', 'news')
        settled(asking)
        leaving.send('UNSUBSCRIBE', 'news')
        wrong += asking.ask('PUBLISH', 'news', 'x') != 0
        leaving.close()
    return wrong


for what, trial in (
    ('blocking pops queue in arrival order', blocking_pops),
    ('reserves queue in arrival order', reserves),
    ('beanstalkd: a closed connection is not counted', closed_by_beanstalkd),
    ('Redis: a closed subscriber is not counted', closed_by_redis),
    ('Redis: an ended subscription is not counted', unsubscribed),
):
    wrong = trial()
    check(what, wrong == 0, f'{wrong} times wrong')
done()
