#!/usr/bin/env python3
"""The command line and HTTP showed a map or list of JMS as the bytes of its encoding.

Right: people read JSON, and programs get it as body_value. Bytes and texts stay as they are."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *
from amqp_client import *

BODIES = (
    ('map', 'value', {'amount': Int(3), 'who': 'Ä', 'paid': True, 'none': None}),
    ('list', 'value', ['a', Long(-5), ULong((1 << 64) - 1), ['nested', {'k': Int(1)}]]),
    ('sequence', 'sequence', [Int(1), 'two', b'\xff']),
    ('number', 'value', Int(42)),
)
EXPECTED = {
    'map': {'amount': 3, 'who': 'Ä', 'paid': True, 'none': None},
    'list': ['a', -5, (1 << 64) - 1, ['nested', {'k': 1}]],
    'sequence': [1, 'two', '/w=='],
    'number': 42,
}

s = Server()
a = s.amqp()
for queue, kind, body in BODIES:
    link = a.sender(queue)
    for _ in range(3):
        a.post(link, message(body, value=kind))
for queue, expected in EXPECTED.items():
    status, _, text = s.http('GET', f'/queues/{queue}/messages?max=1')
    seen = json.loads(text)['messages'][0]
    check(f'HTTP shows a {queue}', seen.get('body_value') == expected, (status, seen))
    code, out, err = s.cli('browse', queue)
    bodies = [line.split()[-1] for line in out.splitlines()[1:]]
    shown = len(bodies) == 3 and all(json.loads(body) == expected for body in bodies)
    check(f'browse shows a {queue}', shown, (out, err))
    code, out, err = s.cli('receive', queue)
    check(f'receive prints a {queue}', json.loads(out) == expected, (code, out, err))
    code, out, err = s.cli('receive', queue, '--json')
    check(f'receive --json has a {queue}', json.loads(out)['body_value'] == expected, (out, err))
s.http('POST', '/queues/text/messages', 'plain')
status, _, text = s.http('GET', '/queues/text/messages?max=1')
seen = json.loads(text)['messages'][0]
check('a text stays one', seen['body'] == 'plain' and 'body_value' not in seen, seen)
# A map whose inside is broken is nobody's business but its receiver's.
a.post(a.sender('broken'), b'\x00\x53\x77\xc1\x05\x04\x54\x01\x40\x54\x01')
status, _, text = s.http('GET', '/queues/broken/messages?max=1')
broken = [m for m in json.loads(text)['messages'] if 'body_value' in m] if status == 200 else []
check('a broken one has no value', not broken, (status, text))
done()
