#!/usr/bin/env python3
"""Properties have names with hyphens and dots, and no selector could say them (artemis PR 2872,
jakartaee/platform-tck#2652, datalust/seq-tickets#359). HTTP headers nearly always have.

Right: a name stands in double quotes, as in SQL; without them a hyphen is a minus. A selector
that
can never match is refused with its place: a misspelt field of JMS, a comparison with what a field
never holds, a string in double quotes. Messages of other protocols have fields, too."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *
from urllib.parse import quote

s = Server()
for number, name in enumerate(('Order-Id', 'A.B', 'And', 'X-Y.Z')):
    s.http('POST', '/queues/q/messages', b'%d' % number, {f'Dunlin-Property-{name}': '5'})


def browse(selector, queue='q'):
    r = s.http('GET', f'/queues/{queue}/messages?browse&selector={quote(selector)}')
    if r[0] != 200:
        return json.loads(r[2]).get('detail', r[2])
    return [m['body'] for m in json.loads(r[2])['messages']]


def source(address, selector, **more):
    return SOURCE(
        address, filter={Sym('s'): D(Sym('apache.org:selector-filter:string'), selector)}, **more
    )


def consume(selector, address='q', **more):
    """The bodies that a consumer of AMQP gets, or the error of its link."""
    a = s.amqp()
    h, f = a.attach(True, source=source(address, selector, **more), target=TARGET(None))
    refused = a.expect('detach', timeout=0.3)
    if refused is not None:
        a.close()
        return error_of(refused)
    return a, h


def bodies(opened, credit=9):
    a, h = opened
    a.flow(h, credit, drain=True)
    found = []
    while (got := a.take(0.3)) is not None:
        m = sections(got[1])
        found.append(m.get('data', m.get('value')))
    a.close()
    return found


def error_of(frame):
    error = frame[2].v
    return str(error[0]), str(error[1])


NAMES = ('"order-id" = 5', '"a.b" = 5', '"and" = 5', '"x-y.z" BETWEEN 4 AND 6')
for number, selector in enumerate(NAMES):
    check(f'{selector} by HTTP', browse(selector) == [str(number)], browse(selector))
    got = bodies(consume(selector))
    check(f'{selector} by AMQP', got == [b'%d' % number], got)
check('an unquoted hyphen is a minus', browse('order-id = 5') == [], browse('order-id = 5'))

opened = consume('"region-id" IN (\'eu\')', 'news', caps=Arr(['topic']))
opened[0].flow(opened[1], 5)
for region in ('eu', 'us'):
    headers = {'Dunlin-Property-Region-Id': region}
    s.http('POST', '/topics/news/messages', region.encode(), headers)
got = opened[0].take(2)
check('by a subscription', got and sections(got[1]).get('data') == b'eu', got)
check('... and nothing else', opened[0].take(0.3) is None)

NEVER = (
    'JMSPrioritiy > 3',
    "JMSPriority = 'high'",
    'JMSDeliveryMode = 2',
    "JMSDeliveryMode IN ('persistent')",
    'colour = "blue"',
    '"" = 5',
    '"open = 5',
    'a.b = 5',
)
for selector in NEVER:
    told = browse(selector)
    check(f'{selector} is refused by HTTP', isinstance(told, str) and 'byte' in told, told)
    told = consume(selector)
    ok = told[0] == 'amqp:invalid-field' and 'at byte' in told[1]
    check(f'{selector} is refused by AMQP', ok, told)

p = s.amqp()
h = p.sender('numbers')
p.post(h, message(b'number', application={'n': 7}))
p.post(h, message(b'text', application={'n': '7'}))
for selector, expected in (
    ("n IN ('7')", [b'text']),
    ("n NOT IN ('8')", [b'text']),
    ("NOT (n IN ('8'))", [b'text']),
    ("n NOT LIKE '8%'", [b'number', b'text']),
):
    a = consume(selector, 'numbers', mode=Sym('copy'))
    got = bodies(a)
    check(f'{selector} is unknown of a number', got == expected, got)

b = s.beanstalk()
b.ask('use jobs')
b.put(b'job', pri=1024)
s.redis().ask('LPUSH', 'jobs', 'element')
FIELDS = (
    "JMSPriority >= 0 AND JMSDeliveryMode = 'PERSISTENT' AND JMSTimestamp > 0"
    ' AND JMSXDeliveryCount = 1'
)
got = sorted(bodies(consume(FIELDS, 'jobs')))
check('jobs and elements have fields', got == [b'element', b'job'], got)
done()
