#!/usr/bin/env python3
"""An event by CloudEvents' HTTP binding lost its attributes in the broker, and a trace ended there.

Right: `ce-NAME` and trace context are properties, which AMQP consumers find under the names of
their bindings (`cloudEvents_NAME`, `traceparent`), and headers again for HTTP's consumers, also of
what AMQP sent and after kill -9. A retry has another trace and is the same message."""

from dlib import *

Q = '/queues/events/messages'
TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
EVENT = {
    'ce-specversion': '1.0',
    'ce-id': '7',
    'ce-type': 'order.paid',
    'ce-source': '/shop',
    'ce-subject': 'Euro%20%E2%82%AC%20100%25',
    'ce-time': '2026-11-25T18:07:30Z',
}
HEADERS = {**EVENT, 'traceparent': TRACE, 'tracestate': 'a=1,b=2', 'baggage': 'user=5'}


def missing(answer, expected):
    return {k: answer[1].get(k) for k, v in expected.items() if answer[1].get(k) != v}


s = Server()
key = {'Idempotency-Key': 'k', 'Content-Type': 'application/json'}
first = s.http('POST', Q, '{"n":1}', {**HEADERS, **key})
check('an event is sent', first[0] == 201, first)
other = {'traceparent': TRACE.replace('331-', '332-'), 'tracestate': 'c=3'}
again = s.http('POST', Q, '{"n":1}', {**HEADERS, **other, **key})
check('a retry with another trace is the same', again[2] == first[2], again)
changed = s.http('POST', Q, '{"n":1}', {**HEADERS, **key, 'ce-id': '8'})
check('another event under its key is refused', changed[0] == 422, changed)

s.kill()
s.start()
page = s.http('GET', Q + '?browse&selector=%22cloudEvents_type%22%3D%27order.paid%27')
shown = json.loads(page[2])['messages']
check('selectors see it', len(shown) == 1, page)
check('one page of JSON too', shown and shown[0]['properties']['traceparent'] == TRACE, shown)
got = s.http('GET', Q)
check('HTTP gets its headers', got[0] == 200 and not missing(got, HEADERS), missing(got, HEADERS))
check('... and no second ones', not [k for k in got[1] if k.startswith('dunlin-property-')], got)
s.http('DELETE', '/leases/' + got[1]['dunlin-lease'])

s.http('POST', Q, '{"n":2}', {**HEADERS, 'Content-Type': 'application/json'})
m = s.amqp()
h = m.receiver('events', credit=1)
taken = m.take()
of = sections(taken[1]).get('application', {}) if taken else {}
expected = {'cloudEvents_' + k[3:]: v for k, v in EVENT.items()}
expected['cloudEvents_subject'] = 'Euro \u20ac 100%'
for name in ('traceparent', 'tracestate', 'baggage'):
    expected[name] = HEADERS[name]
check('AMQP gets its properties', dict(of) == expected, of)

m = s.amqp()
to = m.sender('by-amqp')
for prefix in ('cloudEvents:', 'cloudEvents_'):
    sent = {prefix + k[3:]: v for k, v in EVENT.items()}
    sent[prefix + 'subject'] = 'Euro \u20ac 100%'
    m.post(to, message(b'{}', application={**sent, 'traceparent': TRACE}))
    got = s.http('GET', '/queues/by-amqp/messages')
    lost = missing(got, {**EVENT, 'traceparent': TRACE})
    check(f'HTTP gets headers of {prefix}', got[0] == 200 and not lost, lost)

for what, headers, status in (
    ('a trace of odd bytes', {'traceparent': b'\xff\xfe'}, 201),
    ('a trace of no meaning', {'traceparent': 'none'}, 201),
    ('an attribute that is no UTF-8', {'ce-subject': '%ff'}, 400),
    ('an attribute without a name', {'ce-': 'x'}, 400),
    ('a lone % in an attribute', {'ce-subject': '100%'}, 201),
):
    r = s.http('POST', '/queues/odd/messages', 'm', headers)
    check(f'{what}: {status}', r[0] == status, r)
r = s.http('POST', '/transactions', '{"send":[]}', {'ce-id': '7'})
check('an attribute of a transaction: 400', r[0] == 400, r)
done()
