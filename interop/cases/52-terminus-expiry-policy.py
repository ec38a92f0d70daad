#!/usr/bin/env python3
"""A subscription that asks to end with its link, session or connection (Azure/amqpnetlite#558,
amqp/rhea#150, vert-x3/vertx-amqp-client#86, apache/qpid-jms PR 3). The answer repeated what was
asked, and the subscription was kept for ever: each run of a client under a new name left one more,
which collected every message of the topic until the disk was full.

Right (AMQP 1.0, 2.6.3 and 3.5.3): the answer states the terminus as it is, and the broker does what
it states, over a restart as well. The same of other fields that an attach answers."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server()


def source(topic, policy, timeout=0, durable=2):
    expiry = Sym(policy) if policy else None
    return SOURCE(
        topic,
        durable=UInt(durable) if durable else None,
        expiry=expiry,
        timeout=UInt(timeout),
        caps=Arr(['topic']),
    )


def attach(a, name, **how):
    h, f = a.attach(True, name=name, source=source('t-' + name, **how), target=TARGET(None))
    answer = f[5].v + [None] * 11
    return h, (answer[1] or 0, answer[2] or 'session-end', answer[3] or 0)


def leave(a, h, how):
    if how == 'detach':
        a.send(0, 'detach', [UInt(h), False])
        a.expect('detach')
    elif how == 'end':
        a.send(0, 'end', [])
        a.expect('end')
    elif how == 'close':
        a.close()
    else:
        a.s.close()
    time.sleep(0.3)


def is_kept(name):
    """Whether there is such a subscription: it is looked for by its name alone."""
    a = s.amqp(container='app')
    h, f = a.attach(True, name=name, source=None, target=TARGET(None))
    kept = f[5] is not None
    if kept:
        a.send(0, 'detach', [UInt(h), False])
    a.expect('detach')
    a.close()
    return kept


# What keeps it: the link alone, the connection, nothing.
ENDS = {'link-detach': ('detach', 'end', 'close', 'loss'), 'connection-close': ('close', 'loss')}
for policy in ('link-detach', 'session-end', 'connection-close', 'never', None):
    for how in ('detach', 'end', 'close', 'loss'):
        name = f'{policy}-{how}'
        a = s.amqp(container='app')
        h, said = attach(a, name, policy=policy)
        told = policy if policy in ENDS else 'never'
        check(f'{policy}: the answer says {told}', said == (2, told, 0), said)
        leave(a, h, how)
        expected = how not in ENDS.get(policy, ())
        kept = is_kept(name)
        check(f'{policy}, {how}: {"kept" if expected else "ended"}', kept == expected)
        if how in ('detach', 'end'):
            a.close()

# The timeout begins then, and ends when somebody comes again.
a = s.amqp(container='app')
h, said = attach(a, 'slow', policy='link-detach', timeout=2)
check('the answer says the timeout', said == (2, 'link-detach', 2), said)
leave(a, h, 'detach')
p = s.amqp()
p.post(p.sender('t-slow', caps=['topic']), message(b'meanwhile', header=[True]))
check('it is there before the timeout', is_kept('slow'))
h, _ = attach(a, 'slow', policy='link-detach', timeout=2)
a.flow(h, 1)
got = a.take(2)
check('what came meanwhile is there', got and sections(got[1])['data'] == b'meanwhile', got)
time.sleep(2.5)
check('a consumer keeps it', is_kept('slow'))
leave(a, h, 'detach')
time.sleep(2.5)
check('it is gone after the timeout', not is_kept('slow'))

# Another policy by a later attach holds from then on.
h, _ = attach(a, 'changed', policy='link-detach')
leave(a, h, 'detach')
h, _ = attach(a, 'changed', policy='link-detach', timeout=100)
leave(a, h, 'detach')
h, _ = attach(a, 'changed', policy='never')
leave(a, h, 'loss')
check('an attach with never keeps it', is_kept('changed'))

# Over a kill -9: what ended stays so, the time of others begins anew.
a = s.amqp(container='app')
for name, policy, timeout in (
    ('at-once', 'link-detach', 0),
    ('with-connection', 'connection-close', 0),
    ('later', 'connection-close', 3),
    ('for-ever', 'never', 0),
):
    attach(a, name, policy=policy, timeout=timeout)
s.kill()
s.start()
time.sleep(0.3)
check('kill -9 ends what its consumer kept', not is_kept('at-once'))
check('and what its connection kept', not is_kept('with-connection'))
check('but not before the timeout', is_kept('later'))
check('nor what is never to end', is_kept('for-ever'))
time.sleep(3.5)
check('after the timeout it is gone', not is_kept('later'))

# What does not outlive its link says so, whatever is asked.
for policy in ('session-end', 'connection-close', 'never'):
    a = s.amqp(container='app')
    _, said = attach(a, 'brief', policy=policy, timeout=60, durable=0)
    check(f'not durable, {policy}: link-detach is told', said == (0, 'link-detach', 0), said)
    a.close()

# Lifetime policies of dynamic nodes: all go with their link, and the answer says so.
p = s.amqp()
for policy in (0x2B, 0x2C, 0x2D, 0x2E):
    a = s.amqp()
    asked = {Sym('lifetime-policy'): D(ULong(policy), [])}
    h, f = a.attach(True, source=SOURCE(None, dynamic=True, props=asked), target=TARGET(None))
    answer = f[5].v[5]
    said = answer and [v.d for v in answer.values()]
    check(f'lifetime policy {policy:#x}: the answer says delete-on-close', said == [0x2B], said)
    address = f[5].v[0]
    p.post(p.sender(address), message(b'x'))
    a.send(0, 'detach', [UInt(h), True])
    a.expect('detach')
    ph, f = p.attach(False, source=SOURCE(None), target=TARGET(address))
    check('and it is gone', f[6] is None and p.expect('detach') is not None, f)
    a.close()
done()
