#!/usr/bin/env python3
"""A web page that a developer visits sends POST requests to ports of loopback (attack report).

Their bodies were commands to beanstalkd's port: jobs were forged, consumed and deleted. Right: a
connection is closed without a word at a line that begins with an HTTP method or with "Host:" in
letters of any size, on each port that does not speak HTTP, and nothing behind that line is carried
out. What stood before it is; bodies of jobs may hold such lines."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server()
BEANSTALKD = b'use pwned\r\nput 0 0 60 4\r\nevil\r\n'
REDIS = b'SET pwned 1\r\n'
METHODS = ('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', 'CONNECT', 'TRACE')


def spoken(protocol, *pieces):
    """All that comes back until the connection is closed; None where it stays open."""
    c = s.raw(protocol, 3)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    out = b''
    try:
        for piece in pieces:
            c.sendall(piece)
            time.sleep(0.05)
        while d := c.recv(65536):
            out += d
    except TimeoutError:
        return None
    except OSError:
        pass
    finally:
        c.close()
    return out


def request(method, body, extra=b'', path='/', host=b'Host'):
    return (
        f'{method} {path} HTTP/1.1\r\n'.encode()
        + extra
        + host
        + b': 127.0.0.1\r\nConnection: keep-alive\r\nsec-ch-ua: "Chromium";v="140"\r\n'
        + b'Content-Type: text/plain\r\nOrigin: http://evil.example\r\n'
        + b'Content-Length: %d\r\n\r\n' % len(body)
        + body
    )


def jobs():
    found = s.beanstalk().stats('stats-tube pwned')
    return 0 if isinstance(found, str) else int(found['total-jobs'])


def keys():
    return s.redis().ask('EXISTS', 'pwned')


for protocol, body, harm in (('beanstalkd', BEANSTALKD, jobs), ('redis', REDIS, keys)):
    for method in METHODS + ('PoSt', 'patch'):
        out = spoken(protocol, request(method, body))
        check(f'{protocol}: {method} is closed without a word', out == b'' and harm() == 0, out)
    whole = request('POST', body)
    for what, pieces in (
        ('in pieces', [whole[i : i + 7] for i in range(0, 40, 7)] + [whole[42:]]),
        ('a header before Host', [request('PUT', body, extra=b'A: b\r\n')]),
        ('a long path', [request('GET', body, path='/' + 'x' * 3000)]),
        ('a host in small letters', [b'x\r\n' + request('POST', body, host=b'host')[17:]]),
    ):
        out = spoken(protocol, *pieces)
        check(f'{protocol}: {what}', out is not None and harm() == 0, out)

out = spoken('redis', b'PING\r\nhOsT:x\r\n' + REDIS)
check('redis: what stands before Host is answered', out == b'+PONG\r\n' and keys() == 0, out)
out = spoken('beanstalkd', b'list-tube-used\r\nhOsT:x\r\n' + BEANSTALKD)
check(
    'beanstalkd: what stands before Host is answered',
    out == b'USING default\r\n' and jobs() == 0,
    out,
)
b = s.beanstalk()
body = request('POST', b'Host: x')
check('a job may hold a request', b.put(body).startswith('INSERTED'))
check('and comes back whole', b.ask('reserve-with-timeout 0')[2] == body)
for method in ('GET', 'POST', 'OPTIONS'):
    out = spoken('amqp', request(method, b'x'))
    check(f'amqp: {method} is closed without a word', out == b'', out)
log = s.log()
check('the log says who spoke HTTP', 'speaks HTTP' in log and '127.0.0.1:' in log, log[-300:])
check('at most once a second', log.count('speaks HTTP') < 30, log.count('speaks HTTP'))
done()
