#!/usr/bin/env python3
"""HTTP sends that wait for memory, and receives that wait for messages, of clients that are gone.

An attacker pipelined ten requests on each of twenty connections, reset them, and kept seats,
memory and waits for as long as --block-timeout says; then what nobody waits for any longer was
stored.
Right: nothing that waited is done for a client that is gone, and its seat is free, by a reset or
by FIN."""

import re

from dlib import *

SEND = b'POST /queues/z/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n'
RECEIVE = b'GET /queues/w/messages?wait=1h HTTP/1.1\r\nHost: localhost\r\n\r\n'


def metric(name):
    return int(re.search(name + r' (\d+)', s.http('GET', '/metrics')[2].decode())[1])


def leave(requests, how):
    """Twenty clients that ask and are gone."""
    clients = []
    for _ in range(20):
        c = s.raw('http')
        c.sendall(requests)
        clients.append(c)
    time.sleep(0.5)
    for c in clients:
        if how == 'reset':
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        c.close()


def settle(what, is_so):
    end = time.time() + 10
    while time.time() < end and not is_so():
        time.sleep(0.1)
    check(what, is_so())


s = Server('--memory-limit', '64M', '--block-timeout', '1h')
filler = s.raw('beanstalkd')
filler.settimeout(2)
filler.sendall(b'use full\r\n')
filler.recv(100)
while not metric('dunlin_memory_waits'):
    filler.sendall(b'put 0 0 60 1\r\nx\r\n' * 5000)
    try:
        seen = b''
        while seen.count(b'INSERTED') < 5000:
            seen = seen[-1 << 20:] + filler.recv(1 << 20)
            if seen.count(b'\n') >= 5000:
                break
    except TimeoutError:
        pass
waits, seats = metric('dunlin_memory_waits'), metric('dunlin_connections')
for how in ('reset', 'closed'):
    for count in (1, 10):
        # What closes behind more than the buffers of sockets hold cannot be seen.
        size = 20000 if how == 'reset' else 2000
        leave((SEND % size + b'y' * size) * count, how)
        name = f'of clients that sent {count} and are {how}'
        settle(f'no sends wait {name}', lambda: metric('dunlin_memory_waits') == waits)
        settle(f'no seats are kept {name}', lambda: metric('dunlin_connections') <= seats)
    leave(RECEIVE * 10, how)
    settle(f'no receives wait, {how}', lambda: s.http('GET', '/queues/w')[0] == 404)
filler.close()
r = s.redis()
for _ in range(20000):
    r.ask('RPOP', 'full')
time.sleep(1)
check('nothing of them is stored when memory is free', r.ask('LLEN', 'z') == 0, r.ask('LLEN', 'z'))
done()
