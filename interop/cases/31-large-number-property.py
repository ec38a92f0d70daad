#!/usr/bin/env python3
"""Numbers of properties keep their digits, or stay texts, or are refused.

Reports: usebruno/bruno#9230, trentm/json#140, MiSawa/xq#152: identifiers of 20 digits and more
change on the way. A header value that looks like a number became one: a tracking number of 23
digits came back as 1.2345678901234568e+22. Right: what neither 64 bits nor a double hold as it was
said stays text in a header, as 007 does, and is refused where JSON says that it is a number."""

from dlib import *

NUMBERS = ('0', '-7', '1.5', '0.1', '9223372036854775807', '-9223372036854775808', '1e+21')
TEXTS = (
    '12345678901234567890123',
    '9223372036854775808',
    '18446744073709551615',
    '18446744073709551617',
    '007',
    '-0',
    '+1',
    '1.50',
    '1e3',
    '1E3',
    '1e400',
    '-1e400',
    '1e-400',
    '0.1000000000000000055',
    '3.14159265358979323846',
    '123456789.123456789123',
    'NaN',
    'Infinity',
    '0x10',
    '1_000',
)
REFUSED = ('12345678901234567890123', '18446744073709551615', '1e400', '0.1000000000000000055')


def back(queue):
    """The property of the next message as JSON has it, and as its header has."""
    status, headers, body = s.http('GET', f'/queues/{queue}/messages')
    text = headers['dunlin-properties']
    return text[text.index(':') + 1 : -1], headers.get('dunlin-property-n')


s = Server()
for n, text in enumerate(NUMBERS + TEXTS):
    quoted = text if text in NUMBERS else json.dumps(text)
    r = s.http('POST', '/queues/q/messages', b'x', {'Dunlin-Property-N': text})
    seen = back('q')
    check(f'{text} in a header comes back as it was', seen == (quoted, text), seen)
    rc, out, err = s.cli('send', 'c', 'x', '--property', f'n={text}')
    seen = back('c')
    seen = rc, *seen
    check(f'{text} by --property comes back as it was', seen == (0, quoted, text), (seen, err))
    a = s.amqp()
    a.receiver(f'amqp{n}', 1)
    s.http('POST', f'/queues/amqp{n}/messages', b'x', {'Dunlin-Property-N': text})
    got = sections(a.take(5)[1])['application']['n']
    is_text = isinstance(got, str)
    check(f'{text} by AMQP is a text or the same number', is_text == (text in TEXTS), repr(got))
    a.close()
for text in REFUSED:
    r = s.http('POST', '/queues/r/messages', b'x', {'Dunlin-Properties': '{"n":%s}' % text})
    check(f'{text} as a number of JSON is refused', r[0] == 400 and b'property n' in r[2], r)
    body = '{"send":[{"queue":"r","body":"x","properties":{"n":%s}}]}' % text
    r = s.http('POST', '/transactions', body)
    check('... and in a transaction', r[0] == 400 and b'property n' in r[2], r)
for text, expected in (('1.50', '1.5'), ('1e3', '1000.0'), ('-0', '-0.0'), ('7', '7')):
    r = s.http('POST', '/queues/j/messages', b'x', {'Dunlin-Properties': '{"n":%s}' % text})
    seen = back('j')
    check(f'{text} as a number of JSON is worth the same', seen[0] == expected, seen)
check('nothing of what was refused is stored', s.http('GET', '/queues/r')[0] == 404)
done()
