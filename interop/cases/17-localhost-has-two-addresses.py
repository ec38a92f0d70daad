#!/usr/bin/env python3
"""Clients that look up `localhost` try ::1 first and are refused where only 127.0.0.1 is served.

Node 17 and newer, Go and Java do so (nodejs/node#40537 and many reports of brokers). Right: by
default, and for the name, both loopback addresses are served on one port; where the machine has
no IPv6 the other one alone is. Two listeners never share an address."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *


def start(*args, prefix=()):
    d = tempfile.mkdtemp()
    p = subprocess.Popen(
        [*prefix, DUNLIN, 'serve', '--data', d, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = []
    while line := p.stdout.readline():
        if line == 'ready\n':
            return p, lines, d
        lines.append(line.split())
    err = p.communicate()[1]
    shutil.rmtree(d)
    return p.returncode, err, d


def stop(p, d):
    p.terminate()
    p.communicate()
    shutil.rmtree(d, ignore_errors=True)


def pings(address):
    host, port = address.rsplit(':', 1)
    try:
        with socket.create_connection((host.strip('[]'), int(port)), 5) as s:
            s.sendall(b'PING\r\n')
            return s.recv(100) == b'+PONG\r\n'
    except OSError:
        return False


try:
    socket.create_server(('::1', 0), family=socket.AF_INET6).close()
    ipv6 = True
except OSError:
    ipv6 = False
hosts = ['127.0.0.1', '[::1]'] if ipv6 else ['127.0.0.1']

port = free_port()
for what, address in (('a port', port), ('port 0', 0)):
    p, lines, d = start('--listen', f'redis=localhost:{address}')
    places = [line[2] for line in lines]
    ok = [place.rsplit(':', 1)[0] for place in places] == hosts
    check(f'{what}: both addresses are told', ok, lines)
    check(f'{what}: one port', len({place.rsplit(':', 1)[1] for place in places}) == 1, lines)
    check(f'{what}: both are served', all(pings(place) for place in places), lines)
    stop(p, d)

if os.geteuid() == 0 and subprocess.run(['unshare', '-n', 'true']).returncode == 0:
    script = 'ip link set lo up 2>/dev/null; ip -6 addr flush dev lo; exec "$@"'
    without = ['unshare', '-n', 'sh', '-c', script, 'sh']
    p, lines, d = start(prefix=without)
    ok = not isinstance(p, int) and [line[2].rsplit(':', 1)[0] for line in lines] == [hosts[0]] * 4
    check('the default without IPv6', ok, lines)
    if not isinstance(p, int):
        stop(p, d)
    code, err, _ = start('--listen', 'redis=[::1]:6379', prefix=without)
    check('::1 alone is refused there', code == 1 and '[::1]:6379' in err, (code, err))
else:
    note('no network namespaces here: not tried without IPv6')

with socket.create_server(('127.0.0.1', port)):
    code, err, _ = start('--listen', f'redis=localhost:{port}')
    check('an address in use is named', code == 1 and f'127.0.0.1:{port}' in err, (code, err))
code, err, _ = start('--listen', f'redis=localhost:{port}', '--listen', f'amqp=127.0.0.1:{port}')
check('two listeners never share one', code == 2 and 'two listeners' in err, (code, err))
for wrong in ('65536', '-1', 'redis', ''):
    code, err, _ = start('--listen', f'redis=127.0.0.1:{wrong}')
    check(f'port {wrong!r} is refused', code == 2 and '65535' in err, (code, err))
code, err, _ = start('--listen', 'redis=::1:6379')
check('brackets are asked for', code == 2 and 'brackets' in err, (code, err))
done()
