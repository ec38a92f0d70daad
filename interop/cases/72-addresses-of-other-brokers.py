#!/usr/bin/env python3
"""Clients of RabbitMQ, Qpid, Azure, ActiveMQ and Artemis name what only their broker has (amqp
reports beside amqp/rhea#251): services, paths, options, several destinations in one address. Each
became a queue of that odd name: a request was confirmed and never answered, a consumer waited for
ever, a message lay where nobody looked.

Right: the link, or a message that names it, is refused with amqp:not-found and the reason. A
queue
that is there by that name, made by another protocol, is one all the same."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server()
ADDRESSES = (
    '$management',
    '$cbs',
    'orders/$management',
    '/management',
    '/queues/orders',
    '/exchanges/amq.topic/key',
    '/exchange/amq.topic/key',
    'orders?consumer.prefetchSize=1',
    'orders,copies',
    'orders::orders',
    'temp-queue://x',
    'Consumer.A.VirtualTopic.orders',
)


def attach(role, address, kind='queue', prefix=''):
    """The error that refuses a link, None where it opens."""
    a = s.amqp()
    caps = Arr([kind]) if kind else None
    ends = {
        True: dict(source=SOURCE(prefix + address, caps=caps), target=TARGET(None)),
        False: dict(source=SOURCE(None), target=TARGET(prefix + address, caps=caps)),
    }
    h, f = a.attach(role, **ends[role])
    terminus = f[5] if role else f[6]
    d = a.expect('detach', timeout=2 if terminus is None else 0.2)
    a.close()
    return d and (terminus, str(d[2].v[0]), str(d[2].v[1]))


def is_told(error):
    return error and error[0] is None and error[1] == 'amqp:not-found' and len(error[2]) > 40


for address in ADDRESSES:
    for role in (True, False):
        for kind, prefix in (('queue', ''), ('topic', ''), (None, 'queue://'), (None, 'topic://')):
            error = attach(role, address, kind, prefix)
            if not is_told(error):
                check(f'{prefix}{address} as {kind}, role {role}', False, error)
    check(f'{address} is refused with a reason', is_told(attach(True, address)))

p = s.amqp()
h = p.sender(None)
for address in ADDRESSES:
    state = p.post(h, message(b'x', properties=[None, None, address]))
    ok = isinstance(state, D) and state.d == 0x25 and str(state.v[0].v[0]) == 'amqp:not-found'
    check(f'a message to {address} is rejected', ok, state)

names = [q['name'] for q in json.loads(s.http('GET', '/queues')[2])['queues']]
check('no queue came of it', names in ([], ['default']), names)

s.redis().ask('LPUSH', 'a,b', 'there')
check('a queue that is there by such a name', attach(True, 'a,b') is None)
check('for producers, too', attach(False, 'a,b') is None)
for name in ('orders', 'a/b', 'really?', 'price$', 'VirtualTopic.orders', 'queue.management'):
    check(f'{name} is a name as any other', attach(True, name) is None)
done()
