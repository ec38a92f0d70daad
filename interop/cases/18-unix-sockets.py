#!/usr/bin/env python3
"""Clients and their test suites connect by sockets in the file system; greenstalk's own suite does.

Right: every protocol is served by one, with the mode and group that were asked for; a socket that
a killed broker left is replaced, one in use and any other file is not; the socket goes when the
broker stops. Long paths and missing directories are refused with the reason."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

PROTOCOLS = ('amqp', 'beanstalkd', 'redis', 'http')
folder = tempfile.mkdtemp(prefix='dunlin-sockets-')


def path(protocol):
    return f'{folder}/{protocol}.sock'


def serve(*listen, data=folder + '/data', env=None):
    args = [DUNLIN, 'serve', '--data', data]
    for item in listen:
        args += ['--listen', item]
    p = subprocess.Popen(
        args,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, **(env or {})),
    )
    lines = []
    while line := p.stdout.readline():
        lines.append(line.strip())
        if line == 'ready\n':
            return p, lines
    return p.wait(), p.stderr.read()


def connect(protocol):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(path(protocol))
    return s


def exchange(protocol, data, end=None):
    with connect(protocol) as s:
        s.sendall(data)
        out = b''
        while not out.endswith(end):
            if not (d := s.recv(4096)):
                break
            out += d
        return out


ALL = [f'{p}=unix:{path(p)},mode=0600' for p in PROTOCOLS]
p, lines = serve(*ALL)
check('the sockets are told', lines[0] == f'listening amqp unix:{path("amqp")}', lines)
for protocol in PROTOCOLS:
    mode = os.stat(path(protocol)).st_mode & 0o777
    check(f'{protocol}: the mode is that which was asked for', mode == 0o600, oct(mode))
check('redis answers', exchange('redis', b'PING\r\n', b'\n') == b'+PONG\r\n')
put = exchange('beanstalkd', b'put 0 0 60 5\r\nhello\r\n', b'\n')
check('beanstalkd answers', put == b'INSERTED 1\r\n', put)
header = b'AMQP\x00\x01\x00\x00'
check('amqp answers', exchange('amqp', header, header) == header)
request = b'GET /queues/default HTTP/1.1\r\nHost: localhost\r\n\r\n'
got = exchange('http', request, b'}')
check('http answers', got.startswith(b'HTTP/1.1 200') and b'"ready":1' in got, got)
if shutil.which('curl'):
    out = subprocess.run(
        ['curl', '-s', '--unix-socket', path('http'), 'http://localhost/health'],
        capture_output=True,
        text=True,
    ).stdout
    check('and so does curl', '"ok"' in out, out)
code, err = serve(*ALL, data=folder + '/other')
check('one in use is refused', code == 1 and 'unix:' in err and 'another path' in err, (code, err))
check('and is still served', exchange('redis', b'PING\r\n', b'\n') == b'+PONG\r\n')
p.kill()
p.wait()
check('a killed broker leaves them', os.path.exists(path('redis')))
p, lines = serve(*ALL)
check('they are replaced', exchange('redis', b'PING\r\n', b'\n') == b'+PONG\r\n')
p.terminate()
code = p.wait()
left = [protocol for protocol in PROTOCOLS if os.path.exists(path(protocol))]
check('they go at the end', code == 0 and left == [], (code, left))
with open(path('redis'), 'w') as f:
    f.write('precious')
code, err = serve(ALL[2])
check('another file stays', code == 1 and 'no socket' in err, (code, err))
check('with what is in it', open(path('redis')).read() == 'precious')
os.unlink(path('redis'))
code, err = serve(f'redis=unix:{folder}/{"x" * 120}')
check('a long path is refused', code == 1 and '107' in err, (code, err))
code, err = serve(f'redis=unix:{folder}/missing/s')
check('a missing directory is named', code == 1 and 'directory' in err, (code, err))
places = [f'{p}=unix:{path(p)}' for p in ('redis', 'beanstalkd')]
os.environ['DUNLIN_LISTEN'] = ',mode=0660,'.join(places)
if os.geteuid() == 0:
    os.environ['DUNLIN_LISTEN'] += ',group=12345'
p, lines = serve()
found = [os.stat(path(protocol)) for protocol in ('redis', 'beanstalkd')]
ok = [s.st_mode & 0o777 for s in found] == [0o660, 0o660]
if os.geteuid() == 0:
    ok = ok and found[1].st_gid == 12345
check('a variable holds several, with modes and groups', ok, found)
p.terminate()
p.wait()
for wrong in ('mode=0660', 'redis=unix:', 'redis=127.0.0.1:0,mode=0600', 'redis=unix:/a,mode=9'):
    del os.environ['DUNLIN_LISTEN']
    code, err = serve(wrong)
    check(f'{wrong} is refused', code == 2, (code, err))
    os.environ['DUNLIN_LISTEN'] = ''
shutil.rmtree(folder)
done()
