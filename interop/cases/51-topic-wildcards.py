#!/usr/bin/env python3
"""Applications that come from ActiveMQ, Artemis or RabbitMQ subscribe to patterns (`news.*`,
`news.#`, `news.>`; amqp/rhea#251, apache/artemis PR 875). A pattern was taken for a name: its
subscriber was attached and heard nothing for ever.

Right: a subscription of a pattern hears what comes to each topic that matches, whoever sends it:
of its own, durable, shared, over a kill -9. Where a pattern can match nothing (queues, senders) it
is refused with the reason. A publication is as cheap beside thousands of patterns."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server()


def subscribe(a, pattern, name=None, durable=False, shared=False, filter=None):
    caps = ['topic'] + (['shared'] if shared else [])
    more = dict(durable=UInt(2), expiry=Sym('never')) if durable else {}
    h, f = a.attach(
        True,
        name=name,
        source=SOURCE(pattern, caps=Arr(caps), filter=filter, **more),
        target=TARGET(None),
    )
    return h, f


def bodies(a, wait=0.3):
    got = []
    while True:
        frame = a.take(wait)
        if frame is None:
            return sorted(got)
        got.append(sections(frame[1])['data'].decode())


MATCHES = {
    'news.*': ['news.eu'],
    '*.eu': ['news.eu'],
    'news.#': ['news', 'news.eu', 'news.eu.sport'],
    'news.>': ['news.eu', 'news.eu.sport'],
    '#.sport': ['news.eu.sport'],
    'news.*.sport': ['news.eu.sport'],
    '#': ['news', 'news.eu', 'news.eu.sport', 'newsy', 'prices.eu.gold'],
    '*': ['news', 'newsy'],
}
TOPICS = ('news', 'news.eu', 'news.eu.sport', 'newsy', 'prices.eu.gold')

p = s.amqp(container='publisher')
listeners = {}
for n, pattern in enumerate(MATCHES):
    a = s.amqp(container=f'listener-{n}')
    h, _ = subscribe(a, pattern)
    a.flow(h, 100)
    listeners[pattern] = a
for topic in TOPICS:
    p.post(p.sender(topic, caps=['topic']), message(topic.encode()))
for pattern, expected in MATCHES.items():
    got = bodies(listeners[pattern])
    check(f'{pattern} hears {expected}', got == sorted(expected), got)
    listeners[pattern].close()

a = s.amqp(container='redis-beside')
h, _ = subscribe(a, 'news.*')
a.flow(h, 10)
s.redis().ask('PUBLISH', 'news.redis', 'by redis')
check('what Redis publishes is heard', bodies(a) == ['by redis'])
a.close()

# Durable ones, alone and shared, over kill -9.
KINDS = {
    'mine': dict(durable=True),
    'ours|1': dict(durable=True, shared=True),
    'chosen': dict(
        durable=True,
        filter={Sym('s'): D(Sym('apache.org:selector-filter:string'), "colour = 'blue'")},
    ),
}
a = s.amqp(container='app')
for name, how in KINDS.items():
    h, f = subscribe(a, 'news.#', name=name, **how)
    check(f'{name}: the answer names the pattern', f[5].v[0] == 'news.#', f)
    a.send(0, 'detach', [UInt(h), False])
    a.expect('detach')
a.close()
h = p.sender('news.eu', caps=['topic'])
p.post(h, message(b'before', header=[True]))
s.kill()
s.start()
p = s.amqp(container='publisher')
h = p.sender('news.us', caps=['topic'])
p.post(h, message(b'after', header=[True], application={'colour': 'blue'}))
a = s.amqp(container='app')
for name, how in KINDS.items():
    h, _ = subscribe(a, 'news.#', name=name, **how)
    a.flow(h, 100)
    expected = ['after'] if 'filter' in how else ['after', 'before']
    got = bodies(a)
    check(f'{name} keeps what came meanwhile, over kill -9', got == expected, got)
b = s.amqp(container='app')
hb, _ = subscribe(b, 'news.#', name='ours|2', durable=True, shared=True)
b.flow(hb, 100)
a.close()

# Two consumers share one: each message goes to one of them.
c = s.amqp(container='app')
hc, _ = subscribe(c, 'news.#', name='ours|3', durable=True, shared=True)
c.flow(hc, 100)
h = p.sender('news.shared', caps=['topic'])
for n in range(10):
    p.post(h, message(b'%d' % n))
first, second = bodies(b), bodies(c)
seen = [n for n in first + second if n.isdigit()]
check('a shared one gives each to one consumer', sorted(seen) == [str(n) for n in range(10)], seen)
b.close()
c.close()

# Where a pattern can match nothing.
for what, role, address, caps in (
    ('a queue', True, 'news.*', None),
    ('a queue by its prefix', True, 'queue://news.#', None),
    ('for senders', False, 'news.*', ['topic']),
    ('for senders to queues', False, 'news.>', None),
    ('with > before its end', True, 'a.>.b', ['topic']),
):
    a = s.amqp()
    caps = Arr(caps) if caps else None
    ends = dict(source=SOURCE(None), target=TARGET(address, caps=caps))
    if role:
        ends = dict(source=SOURCE(address, caps=caps), target=TARGET(None))
    a.attach(role, **ends)
    d = a.expect('detach', timeout=1)
    said = d and str(d[2].v[1])
    check(f'a pattern {what} is refused with the reason', said and 'pattern' in said, said)
    a.close()
a = s.amqp()
state = a.post(a.sender(None), message(b'x', properties=[None, None, 'news.*']))
check('a message to a pattern is rejected', isinstance(state, D) and state.d == 0x25, state)

# A publication beside thousands of patterns: what it costs is shown.
def cost(topic):
    h = p.sender(topic, caps=['topic'])
    begin = time.monotonic()
    for _ in range(200):
        p.post(h, message(b'x'))
    return 1000 * (time.monotonic() - begin)


alone = min(cost('market.a.b') for _ in range(3))
for n in range(8):
    a = s.amqp(container=f'many-{n}')
    for m in range(500):
        subscribe(a, f'shop.{n}.{m}.*.#')
beside = min(cost('market.a.c') for _ in range(3))
note(f'200 publications: {alone:.0f} ms alone, {beside:.0f} ms beside 4,000 patterns')
done()
