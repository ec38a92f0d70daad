#!/usr/bin/env python3
"""Telemetry that lives for a millisecond filled the dead letters until every sender was refused.

Reports: tomitribe.com/blog/activemq-time-stamp-plugin, liuzy163 "ActiveMQ Message Expiration"
(processExpired=false), Open MQ's dead message queue (1,000 messages, the oldest go).

Right: what memory alone keeps becomes no dead letter unless a rule says so, whatever the reason and
the protocol. Dead letters have bounds, beyond which the oldest go, and stop nobody who sends."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

LITTLE = ('--memory-limit', '64M', '--disk-limit', '300M', '--block-timeout', '2s')


class Sender:
    """Sends without waiting for each answer; says what it was refused with."""

    def __init__(self, server, address, ahead=400):
        self.client = server.amqp()
        self.handle = self.client.sender(address)
        self.open, self.ahead, self.refused = 0, ahead, None

    def send(self, body, durable, ttl):
        header = [durable, None, UInt(ttl)] if ttl else [durable]
        self.client.transfer(self.handle, message(body, header=header))
        self.open += 1
        self.wait(self.ahead)

    def wait(self, most=1):
        while self.open >= most and not self.refused:
            f = self.client.expect('disposition', 'detach', 'close', timeout=20)
            if f is None or f.name != 'disposition':
                self.refused = f or 'no answer for 20 s'
                break
            self.open -= (f[2] if f[2] is not None else f[1]) - f[1] + 1
            if f[4] != ACCEPTED:
                self.refused = f[4]


def flood(server, count, body, durable):
    sender = Sender(server, 'telemetry')
    for _ in range(count):
        sender.send(body, durable, 1)
        if sender.refused:
            break
    sender.wait()
    return sender.refused


def metric(server, name):
    text = server.http('GET', '/metrics')[2].decode()
    return int(next(l for l in text.split('\n') if l.startswith(f'dunlin_{name} ')).split()[1])


def others_are_served(server):
    r = server.http('POST', '/queues/orders/messages', b'an order', timeout=30)
    check('another sender is served', r[0] == 201, r[2][:120])


s = Server(*LITTLE)
refused = flood(s, 8000, b'x' * 20000, False)
check('160 MB of messages that live for 1 ms pass through', refused is None, refused)
check('none of them is a dead letter', queue(s, 'DLQ')['ready'] == 0, queue(s, 'DLQ'))
others_are_served(s)

a = s.amqp()
h, r = a.sender('work'), a.receiver('work', 100)
a.post(h, message(b'rejected', header=[False]))
a.settle(a.take()[0][1], REJECTED)
for durable in (False, True):
    a.post(h, message(b'failed', header=[durable]))
    for _ in range(10):
        a.settle(a.take()[0][1], MODIFIED(failed=True))
end = time.time() + 5
while queue(s, 'DLQ')['ready'] < 1 and time.time() < end:
    time.sleep(0.05)
check(
    'of a rejected, a failed and a durable one that failed only this is dead',
    queue(s, 'DLQ')['ready'] == 1,
)
headers = {'Dunlin-Persistence': 'none', 'Dunlin-TTL': '1ms'}
s.http('POST', '/queues/telemetry/messages', b'late', headers)
time.sleep(0.3)
check('nor is one that expired by HTTP', queue(s, 'DLQ')['ready'] == 1, queue(s, 'DLQ'))
s.stop()

# A rule brings them back, and then bounds hold them.
s = Server(*LITTLE, '--queue', '*:dead-letters=park')
refused = flood(s, 8000, b'x' * 20000, False)
check('the same pass through where all become dead letters', refused is None, refused)
dead = queue(s, 'DLQ')['ready']
check('there are dead letters, within their bound', 0 < dead * 20000 < 300 << 20 >> 3, dead)
others_are_served(s)
s.stop()

# Durable ones too.
s = Server(*LITTLE, '--queue', 'DLQ:max-messages=100')
refused = flood(s, 1000, b'y' * 100, True)
check('durable ones pass through', refused is None, refused)
end = time.time() + 10
while metric(s, 'dead_letters_total') < 1000 and time.time() < end:
    time.sleep(0.05)
check('of 1,000 the last 100 are there', queue(s, 'DLQ')['ready'] == 100, queue(s, 'DLQ'))
evicted = metric(s, 'dead_letters_evicted_durable_total')
check('what went is counted', evicted == 900, evicted)
check('and told', 'dead letters were deleted' in s.log(), s.log()[-300:])
others_are_served(s)
s.kill()
s.start()
check('a restart finds 100', queue(s, 'DLQ')['ready'] == 100, queue(s, 'DLQ'))
done()
