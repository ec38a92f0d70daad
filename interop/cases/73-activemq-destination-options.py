#!/usr/bin/env python3
"""Configurations of ActiveMQ and Artemis name destinations with options, several in one, or by
address and queue. Each became a queue of that odd name: a consumer waited for ever, and a message
lay where nobody looked.

Right: the consumer hears what comes to the destination that it means, or is refused with the
reason. All of these are refused, as topics too, and nothing is made of them."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server()
ADDRESSES = (
    'orders?consumer.prefetchSize=1',
    'orders?consumer.exclusive=true&consumer.priority=10',
    'orders,copies',
    'queue://orders,topic://copies',
    'orders::orders',
    'orders.*,copies',
    'orders.#?consumer.retroactive=true',
)
for address in ADDRESSES:
    for kind in ('queue', 'topic'):
        a = s.amqp()
        a.attach(True, source=SOURCE(address, caps=Arr([kind])), target=TARGET(None))
        d = a.expect('detach', timeout=2)
        said = d and (str(d[2].v[0]), str(d[2].v[1]))
        is_told = said and said[0] == 'amqp:not-found' and len(said[1]) > 40
        check(f'{address} as a {kind} is refused with the reason', is_told, said)
        a.close()
names = [q['name'] for q in json.loads(s.http('GET', '/queues')[2])['queues']]
check('no queue came of it', names in ([], ['default']), names)
done()
