#!/usr/bin/env python3
"""docker/for-win#4526, microsoft/WSL#5324, OctoPi#606: the machine's clock is set while the broker
runs, or was wrong at a start. A moment that a client names means the span from now that the client
meant: delivery times and expiry of AMQP, EXPIREAT, EXAT and TIME of Redis, creation times by HTTP.
A start far ahead of the journal, by which messages would end, has to be accepted."""

import datetime

from dlib import *

HOUR, YEAR = 3600, 365 * 86400
clock = Clock(-HOUR)
s = Server(env=clock.env)
offset = 0


def wall():
    """What the machine's clock shows, to the broker too."""
    return time.time() + offset


def by_redis(when):
    r = s.redis()
    check(f'{when}: TIME is the time', abs(int(r.ask('TIME')[0]) - wall()) < 5)
    at = int(wall()) + 1000
    r.ask('SET', 'k', 'v', 'EXAT', at)
    check(f'{when}: EXAT in 1,000 s', 990 < r.ask('TTL', 'k') <= 1000, r.ask('TTL', 'k'))
    check(f'{when}: EXPIRETIME is as it was named', r.ask('EXPIRETIME', 'k') == at)
    r.ask('PEXPIREAT', 'k', (at + 5) * 1000)
    check(f'{when}: PEXPIREAT', r.ask('PEXPIRETIME', 'k') == (at + 5) * 1000)
    r.ask('EXPIREAT', 'k', int(wall()) - 1)
    check(f'{when}: EXPIREAT of the past deletes', r.ask('EXISTS', 'k') == 0)
    r.close()


def by_amqp(when):
    a, t = s.amqp(), time.time()
    h = a.sender('q' + when)
    due = int((wall() + 2) * 1000)
    a.post(h, message(b'delayed', annotations={Sym('x-opt-delivery-time'): due}))
    expiry = props(absolute_expiry=Time(int((wall() + 1000) * 1000)))
    a.post(h, message(b'expires', properties=expiry))
    a.receiver('q' + when, 2)
    got = [sections(g[1])['data'] for g in (a.take(5), a.take(5)) if g]
    check(f'{when}: both are delivered', got == [b'expires', b'delayed'], got)
    check(f'{when}: ... the delayed one in 2 s', 1.5 < time.time() - t < 4.5, time.time() - t)
    a.close()


def by_http(when):
    s.http('POST', '/queues/h/messages', b'x')
    r = s.http('GET', '/queues/h/messages?browse')
    shown = json.loads(r[2])['messages'][-1]['created']
    if isinstance(shown, str):
        shown = datetime.datetime.fromisoformat(shown.replace('Z', '+00:00')).timestamp() * 1000
    check(f'{when}: created is now', abs(shown / 1000 - wall()) < 5, shown / 1000 - wall())


for ahead, when in ((0, 'an hour forward'), (-YEAR, 'a year back'), (YEAR, 'two years forward')):
    offset = ahead
    clock.set(ahead)
    time.sleep(1.2)
    # Before the others: no other protocol may have to notice it for HTTP.
    by_http(when)
    by_redis(when)
    by_amqp(when)

# The next start has the right clock again, a year behind the journal.
s.stop()
offset = 0
clock.set(0)
s.start()
by_redis('the journal a year ahead')
by_amqp('the journal a year ahead')
s.clean()

# A start a year ahead of a journal in which something would end.
clock.set(0)
s = Server(env=clock.env)
s.redis().ask('SET', 'k', 'v', 'EX', 86400)
s.stop()
clock.set(YEAR)
try:
    s.start(timeout=10)
    refused = False
except RuntimeError as e:
    refused = 'accept-clock' in str(e)
check('a start a year ahead by which a key would end is refused', refused)
s.stop()
clock.set(0)
s.start()
check('... and nothing has ended', s.redis().ask('GET', 'k') == b'v')
s.stop()
clock.set(YEAR)
s.args.append('--accept-clock')
s.start()
check('... unless the clock is accepted', s.redis().ask('GET', 'k') is None)
done()
