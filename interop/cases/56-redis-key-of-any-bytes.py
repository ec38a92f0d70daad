#!/usr/bin/env python3
"""celery/kombu#422: kombu's priorities live in lists named queue, \\x06\\x16 and a number.

Even with one priority it asks LLEN and BRPOP of all four. Keys of Redis are any bytes; names of
queues are text. Right: a byte that no name can hold has a character of its own in the name
(U+F000 and the byte), by which other protocols reach the queue; every answer has the key as it was
given. What beanstalkd's clients cannot name, list-tubes does not list: consoles ask for the
statistics of each tube, and die of one that has none."""

import os
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server(sync='always')
r = s.redis()
k = b'mail\x06\x163'
check('LLEN', r.ask('LLEN', k) == 0)
check('LPUSH', r.ask('LPUSH', k, 'job') == 1)
x = r.ask('BRPOP', 'mail', k, b'mail\x06\x166', b'mail\x06\x169', 1)
check('BRPOP tells the key', x == [k, b'job'], x)

odd = [k, b'\xff\xfe\x00', 'm\u00e4rz'.encode(), '\uf006'.encode(), b'\r\n', b' ']
for key in odd:
    check(f'{key!r} takes', r.ask('RPUSH', key, key) == 1)
check('no two are one', all(r.ask('LRANGE', key, 0, -1) == [key] for key in odd))
x = r.ask('KEYS', '*')
check('KEYS tells them', sorted(x) == sorted(odd), x)
x = r.ask('KEYS', b'mail\x06?3')
check('a pattern is of bytes', x == [k], x)
x = r.ask('SCAN', 0, 'COUNT', 100)
check('SCAN tells them', sorted(x[1]) == sorted(odd), x)
r.ask('RENAME', k, b'\x01to')
check('RENAME', r.ask('LRANGE', b'\x01to', 0, -1) == [k] and r.ask('EXISTS', k) == 0)
check('a move', r.ask('LMOVE', b'\x01to', k, 'LEFT', 'RIGHT') == k)
r.ask('SET', b'\x02', b'\x03')
check('a value', r.ask('GET', b'\x02') == b'\x03')
x = [r.ask('LLEN', key) for key in (b'\x00' * 85, 'x' * 255)]
check('so long', x == [0, 0], x)
for key in (b'\x00' * 86, 'x' * 256):
    x = r.ask('LLEN', key)
    check(f'not {len(key)} of {key[:1]!r}', '255 bytes at most' in str(x), x)
check('the empty key', r.ask('LLEN', '') == 0, '')

other = s.redis()
other.send('SUBSCRIBE', b'news\x00')
x = other.reply()
check('a channel', x == [b'subscribe', b'news\x00', 1], x)
check('has a subscriber', r.ask('PUBLISH', b'news\x00', 'x') == 1)
x = other.reply()
check('who is told its name', x == [b'message', b'news\x00', b'x'], x)

x = s.beanstalk().ask('list-tubes')
check('no tube that cannot be named', str(x).count('- ') == 1 and 'default' in str(x), x)

s.kill()
s.start()
r = s.redis()
check('all are there after kill -9', all(r.ask('LRANGE', key, 0, -1) == [key] for key in odd))
path = urllib.parse.quote('mail\uf006\uf0163')
status, _, body = s.http('GET', f'/queues/{path}/messages?browse=true')
check('HTTP reaches it by its name', status == 200 and b'mail' in body, (status, body))
done()
