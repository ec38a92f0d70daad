#!/usr/bin/env python3
"""A client that speaks the wrong protocol waits or fails, and nobody learns why (several reports).

RabbitMQ's clients speak AMQP 0-9-1, others TLS, MQTT or HTTP to the port of another protocol.
Right: the connection ends at once, and the log names the client's address and its protocol, in at
most one line a second. What is served is not affected."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

SPOKEN = {
    'AMQP 0-9-1': b'AMQP\x00\x00\x09\x01',
    'AMQP 1.0': b'AMQP\x00\x01\x00\x00',
    'TLS': b'\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03' + bytes(range(10, 200)),
    'MQTT': b'\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test',
    'HTTP': b'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    'STOMP': b'CONNECT\naccept-version:1.2\n\n\0',
    'the Redis protocol': b'*1\r\n$4\r\nPING\r\n',
    'the PROXY protocol': b'PROXY TCP4 10.0.0.1 10.0.0.2 5 6\r\n',
}
OWN = {'amqp': 'AMQP 1.0', 'redis': 'the Redis protocol'}

s = Server()


def ends(c):
    """Whether the server closes; it may say its own version first."""
    try:
        while c.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def speak(protocol, data):
    """The client's port, and whether the server closed."""
    c = s.raw(protocol, 3)
    c.sendall(data)
    found = c.getsockname()[1], ends(c)
    c.close()
    return found


PORTS = ('beanstalkd', 'redis', 'amqp')
for number, (name, data) in enumerate(SPOKEN.items()):
    ports = [p for p in PORTS[number % 3 :] + PORTS[: number % 3] if OWN.get(p) != name]
    time.sleep(1.05)
    port, ended = speak(ports[0], data)
    line = [x for x in s.log().split('\n') if f'127.0.0.1:{port}' in x]
    ok = ended and len(line) == 1 and f'speaks {name},' in line[0] and ports[0] in line[0]
    check(f'{name} to {ports[0]} is closed and logged', ok, (ended, line))
    for other in ports[1:]:
        check(f'{name} to {other} is closed', speak(other, data)[1])
before = s.log().count('speaks')
began = time.time()
for _ in range(200):
    c = s.raw('redis', 3)
    c.sendall(SPOKEN['TLS'])
    ends(c)
    c.close()
lines = s.log().count('speaks') - before
check('at most one line a second', lines <= time.time() - began + 1, lines)
check('and others are served', s.redis().ask('PING') == 'PONG')
done()
