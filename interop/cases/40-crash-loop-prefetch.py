#!/usr/bin/env python3
"""EnMasse #2925, rabbitmq-website #2207: a worker that died at its first message, ten times, took
all that it had fetched ahead to the dead letters: 500 of 500, of which it had looked at one.

Right: a lost connection counts an attempt of the deliveries that its client can have begun: the
first unsettled one of a link, or as many as it has shown to work on at a time. A poison message
still ends among the dead letters, wherever it is in the prefetch."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

ATTEMPTS = 10
s = Server()
a = s.amqp()


def fill(name, count):
    h = a.sender(name)
    for i in range(count):
        a.post(h, message(b'm%d' % i, header=[True]))


def wait_ready(name, count):
    end = time.time() + 10
    while queue(s, name)['ready'] != count and time.time() < end:
        time.sleep(0.02)
    return queue(s, name)['ready']


def dead():
    return queue(s, 'DLQ')['ready']


def die(client):
    client.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    client.s.close()


def worker(name, credit=1000):
    c = s.amqp(container='worker')
    c.receiver(name, credit)
    return c


def settle(client, delivery):
    """Returns once the broker has read it."""
    client.settle(delivery)
    client.flow(echo=True)
    client.expect('flow')


fill('work', 500)
for _ in range(ATTEMPTS + 1):
    left = wait_ready('work', 500 - dead())
    c = worker('work')
    c.take(3)
    die(c)
left = wait_ready('work', 499)
seen = (dead(), left)
check('only the message at which the worker died is dead', seen == (1, 499), seen)

fill('second', 20)
for n in range(ATTEMPTS):
    c = worker('second')
    first = c.take(3)[0][1]
    if n == 0:
        settle(c, first)
    die(c)
    wait_ready('second', 19 if n < ATTEMPTS - 1 else 18)
check('a poison message second in the prefetch dies', dead() == 2, dead())

fill('parallel', 20)
for n in range(ATTEMPTS):
    c = worker('parallel')
    ids = [c.take(3)[0][1] for _ in range(4)]
    # Four workers: the fourth is done first, then one of the others brings all of them down.
    settle(c, ids[3])
    die(c)
    wait_ready('parallel', 20 - n - 1 - (3 if n == ATTEMPTS - 1 else 0))
check('of parallel workers all die that were at work', dead() == 5, dead())
done()
