#!/usr/bin/env python3
"""Connections that send nothing held all seats for ever: nobody else was served (attack report).

Right: where all seats are taken, the oldest connection that has sent no command gives way to one
that comes, of the address that has the most of them. Half a command, or a wrong one, is none. Who
has sent a command keeps the seat; then ten more are kept for operators, by HTTP from this machine.
What happened is logged, once a second at most."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

SEATS = 100
s = Server('--max-connections', str(SEATS))


def served(protocol):
    try:
        if protocol == 'redis':
            return s.redis().ask('PING') == 'PONG'
        if protocol == 'beanstalkd':
            return s.beanstalk().ask('list-tube-used') == 'USING default'
        if protocol == 'http':
            return s.http('GET', '/health')[0] == 200
        c = s.amqp()
        c.s.close()
        return True
    except (OSError, ValueError, EOFError, IndexError):
        return False


def connections():
    lines = s.http('GET', '/metrics')[2].decode().split('\n')
    return next(int(line.split()[1]) for line in lines if line.startswith('dunlin_connections '))


HALF = {
    'redis': b'*2\r\n$4\r\nPI',
    'beanstalkd': b'what\r\nput 0 0',
    'amqp': b'AMQP',
    'http': b'GE',
}
for protocol in s.ports:
    for what, data in (('silent', b''), ('half a command', HALF[protocol])):
        held = []
        for _ in range(3 * SEATS):
            try:
                held.append(s.raw(protocol))
                held[-1].sendall(data)
            except OSError:
                pass
        # The first may still be crowded by what waits to be accepted.
        ok = {p: served(p) or served(p) or served(p) for p in s.ports}
        check(f'{protocol}, {what}: all are served', all(ok.values()), ok)
        for c in held:
            c.close()

keeping = [s.redis() for _ in range(20)]
check('commands keep a seat', all(c.ask('PING') == 'PONG' for c in keeping))
flood = []
for _ in range(3 * SEATS):
    try:
        flood.append(s.raw('beanstalkd'))
    except OSError:
        pass
check('beside a flood', all(c.ask('PING') == 'PONG' for c in keeping))
for c in flood:
    c.close()
end = time.time() + 20
while connections() > 25 and time.time() < end:
    pass
taken = []
while len(taken) < SEATS:
    c = s.redis()
    try:
        if c.ask('PING') != 'PONG':
            break
    except OSError:
        break
    taken.append(c)
check('all seats can be had', len(taken) + len(keeping) >= SEATS - 1, len(taken))
check('then one more is closed', not served('redis') and not served('beanstalkd'))
check('but operators are served', all(served('http') for _ in range(5)))
check('and nobody gave way', all(c.ask('PING') == 'PONG' for c in keeping + taken))
log = s.log()
check('the log tells', 'without a command' in log and 'refusing connections' in log, log[-500:])
check('in few lines', len(log.split('\n')) < 60, len(log.split('\n')))
done()
