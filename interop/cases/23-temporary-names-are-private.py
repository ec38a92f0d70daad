#!/usr/bin/env python3
"""Temporary queues had numbers for names: anybody could guess whose replies to read or delete.

Right: a name ends with 128 random bits; it is in no list of any protocol; only the connection that
made it receives, browses, purges or moves what is there, and nobody else sees a message of it by
its number. To send there is allowed to all who were told the name: that is what it is for."""

import os
import re
import sys
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server()
own = s.amqp()


def dynamic(kind):
    source = SOURCE(None, dynamic=True, caps=Arr([Sym(f'temporary-{kind}')]))
    handle, f = own.attach(True, source=source, target=TARGET(None))
    return handle, f[5].v[0]


queues = [dynamic('queue') for _ in range(20)]
names = [name for _, name in queues]
ends = [re.fullmatch(r'temporary/queue/([0-9a-f]{32})', name) for name in names]
check('names end with 128 bits', all(ends), names[:3])
bits = [int(end[1], 16) for end in ends if end]
ones = sum(bin(number).count('1') for number in bits) / max(len(bits), 1)
check('that are random', len(set(bits)) == 20 and 50 < ones < 78, ones)
_, topic = dynamic('topic')
handle, name = queues[0]

other = s.amqp()
sender = other.sender(name)
check('others send there', other.post(sender, message(b'secret')) == ACCEPTED)
own.receiver(topic, credit=5)
publisher = other.sender(topic, caps=[Sym('topic')])
other.post(publisher, message(b'secret'))

b, r = s.beanstalk(), s.redis()
tubes = b.ask('list-tubes')[1]
check('list-tubes', 'temporary' not in tubes, tubes)
listed = r.ask('KEYS', '*') + r.ask('SCAN', '0')[1] + r.ask('PUBSUB', 'CHANNELS')
check('KEYS, SCAN and PUBSUB CHANNELS', listed == [], listed)
check('DBSIZE', r.ask('DBSIZE') == 0)
for path in ('/queues', '/subscriptions', '/metrics', '/policies', '/journal'):
    body = s.http('GET', path)[2]
    check(f'GET {path}', b'temporary/' not in body, body[-200:])

at = quote(name, safe='')
for method, path in (
    ('GET', f'/queues/{at}'),
    ('GET', f'/queues/{at}/messages?browse'),
    ('GET', f'/queues/{at}/messages'),
    ('POST', f'/queues/{at}/purge'),
    ('POST', f'/queues/{at}/move?to=mine'),
    ('DELETE', f'/queues/{at}'),
    ('GET', '/messages/1'),
    ('GET', '/messages/2'),
    ('GET', f'/topics/{quote(topic, safe="")}/events'),
):
    status, _, body = s.http(method, path)
    ok = status in (403, 404, 409) and b'secret' not in body
    check(f'{method} {path[:30]}…', ok, (status, body))
for command in ('peek', 'reserve-job', 'delete', 'stats-job', 'kick-job'):
    for number in (1, 2):
        check(f'beanstalkd: {command} {number}', b.ask(f'{command} {number}') == 'NOT_FOUND')
check('beanstalkd: watch', b.ask(f'watch {name}') == 'BAD_FORMAT')
check('beanstalkd: stats-tube', b.ask(f'stats-tube {name}') == 'NOT_FOUND')
check('beanstalkd: pause-tube', b.ask(f'pause-tube {name} 60') == 'NOT_FOUND')
b.ask(f'use {name}')
for text in ('peek-ready', 'peek-delayed', 'peek-buried', 'kick 5'):
    check(f'beanstalkd: {text} of a tube to send to', b.ask(text) == 'NOT_FOUND')
for words in (
    ('LPOP', name),
    ('RPOP', name),
    ('LRANGE', name, 0, -1),
    ('LLEN', name),
    ('RENAME', name, 'mine'),
    ('LMOVE', name, 'mine', 'LEFT', 'LEFT'),
    ('BLPOP', name, '0.1'),
    ('SUBSCRIBE', topic),
):
    got = s.redis().ask(*words)
    check(f'redis: {words[0]}', isinstance(got, RedisError), got)
for words in (('DEL', name), ('EXISTS', name), ('EXPIRE', name, 1)):
    got = r.ask(*words)
    check(f'redis: {words[0]}', got == 0 or isinstance(got, RedisError), got)
r.ask('FLUSHALL')
for caps in (None, [Sym('queue')]):
    source = SOURCE(name, caps=Arr(caps) if caps else None)
    _, f = other.attach(True, source=source, target=TARGET(None))
    gone = other.expect('detach', timeout=3)
    check('amqp: another connection attaches', gone and 'not-allowed' in str(gone[2]), gone)

own.flow(handle, credit=5)
got = own.take(3)
check('its own connection receives it', got is not None and b'secret' in got[1], got)
own.close()
end = time.time() + 5
while time.time() < end and 'NOT' not in str(b.ask(f'stats-tube {name}')):
    pass
_, f = other.attach(False, source=SOURCE(None), target=TARGET(name))
gone = other.expect('detach', timeout=3)
check('it goes with its connection', gone and 'not-found' in str(gone[2]), gone)
done()
