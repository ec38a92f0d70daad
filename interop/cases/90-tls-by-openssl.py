#!/usr/bin/env python3
"""Peers of TLS by OpenSSL: which versions and suites are spoken, and what attackers try.

Right: TLS 1.2 and 1.3 with forward secrecy and nothing older; no renegotiation; floods of key
updates, garbage and thousands of half handshakes are closed, cost little memory and leave others
served; a browser's handshake with Redis's port fails; a renewed certificate is served unasked."""

import os
import random
import resource
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

SCHEMES = ('amqps', 'beanstalkds', 'rediss', 'https')
HALF_HANDSHAKES = 5000
folder = tempfile.mkdtemp(prefix='dunlin-tls-')
cert, key = folder + '/cert.pem', folder + '/key.pem'


def issue(name):
    """A certificate for a name, signed by itself; each file is replaced as a whole."""
    made = subprocess.run(
        ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
        + ['-nodes', '-days', '30', '-subj', f'/CN={name}']
        + ['-addext', f'subjectAltName=DNS:{name},DNS:localhost']
        + ['-addext', 'basicConstraints=critical,CA:FALSE']
        + ['-keyout', key + '.new', '-out', cert + '.new'],
        capture_output=True,
    )
    if made.returncode:
        raise RuntimeError(made.stderr.decode())
    os.rename(key + '.new', key)
    os.rename(cert + '.new', cert)


def context(**settings):
    ctx = ssl.create_default_context(cafile=cert)
    for name, value in settings.items():
        setattr(ctx, name, value)
    return ctx


def connect(scheme, ctx=None, name='broker.example'):
    plain = socket.create_connection(('127.0.0.1', s.ports[scheme]), 20)
    return (ctx or context()).wrap_socket(plain, server_hostname=name)


def ping(ctx=None):
    try:
        with connect('rediss', ctx) as c:
            c.sendall(b'PING\r\n')
            return c.recv(100)
    except OSError as error:
        return error


def s_client(*args, lines=()):
    """What OpenSSL's client says. A line that it reads alone may be one of its commands: R, k."""
    place = f"127.0.0.1:{s.ports['rediss']}"
    command = ['openssl', 's_client', '-connect', place, '-CAfile', cert, *args]
    p = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    time.sleep(1)
    for line in lines:
        try:
            p.stdin.write(line + b'\n')
            p.stdin.flush()
        except BrokenPipeError:
            break
        time.sleep(0.01)
    time.sleep(1)
    try:
        return p.communicate(timeout=60)[0].decode(errors='replace')
    except BrokenPipeError:
        return p.stdout.read().decode(errors='replace')


def rss_kib():
    for line in open(f'/proc/{s.process.pid}/status'):
        if line.startswith('VmRSS:'):
            return int(line.split()[1])


issue('broker.example')
args = ['--tls-cert', cert, '--tls-key', key, '--max-connections', '9000']
s = Server(*args, '--allowed-hosts', 'broker.example', protocols=SCHEMES)

# Each protocol.
header = b'AMQP\x03\x01\x00\x00'
request = b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'
for scheme, said, heard in (
    ('amqps', header, header),
    ('beanstalkds', b'use orders\r\n', b'USING orders\r\n'),
    ('rediss', b'PING\r\n', b'+PONG\r\n'),
    ('https', request, b'HTTP/1.1 200 OK'),
):
    with connect(scheme) as c:
        c.sendall(said)
        got = c.recv(1000)
        check(f'{scheme} answers by {c.version()}', got.startswith(heard), got)
place = f"broker.example:{s.ports['https']}:127.0.0.1"
curl = ['curl', '-sS', '--cacert', cert, '--resolve', place]
url = f"https://broker.example:{s.ports['https']}/health"
for version in ('--http1.1', '--http2'):
    out = subprocess.run(curl + [version, url], capture_output=True, text=True)
    check(f'curl {version}', '"ok"' in out.stdout, out)
url = f"https://localhost:{s.ports['https']}"
for roots, status in ((['--ca', cert], 0), ([], 2)):
    command = [DUNLIN, 'queues', '--url', url, *roots]
    out = subprocess.run(command, capture_output=True, text=True)
    check(f'dunlin queues {" ".join(roots[:1])}', out.returncode == status, out)

# Versions and suites.
for version in ('SSLv3', 'TLSv1', 'TLSv1_1', 'TLSv1_2', 'TLSv1_3'):
    wanted = getattr(ssl.TLSVersion, version)
    ctx = context()
    ctx.set_ciphers('ALL:@SECLEVEL=0')
    try:
        ctx.minimum_version = wanted
        ctx.maximum_version = wanted
    except ValueError:
        note(f'this OpenSSL cannot speak {version}')
        continue
    spoken, right = ping(ctx) == b'+PONG\r\n', version in ('TLSv1_2', 'TLSv1_3')
    check(f'{version} is {"spoken" if right else "refused"}', spoken == right)
accepted = []
ctx = context(maximum_version=ssl.TLSVersion.TLSv1_2)
ctx.set_ciphers('ALL:COMPLEMENTOFALL:@SECLEVEL=0')
suites = [it['name'] for it in ctx.get_ciphers() if it['protocol'] != 'TLSv1.3']
for suite in suites:
    ctx = context(maximum_version=ssl.TLSVersion.TLSv1_2)
    try:
        ctx.set_ciphers(suite + ':@SECLEVEL=0')
    except ssl.SSLError:
        continue
    if ping(ctx) == b'+PONG\r\n':
        accepted.append(suite)
good = all(it.startswith('ECDHE-') and ('GCM' in it or 'CHACHA20' in it) for it in accepted)
what = f'{len(accepted)} of {len(suites)} suites of TLS 1.2, all with forward secrecy'
check(what, accepted and good, accepted)

# Attackers with a connection.
said = s_client('-tls1_2', lines=(b'PING', b'R', b'PING'))
refused = 'RENEGOTIATING' in said and said.count('PONG') == 1
check('there is no renegotiation', refused, said[-600:])
said = s_client('-tls1_3', lines=[b'k'] * 3 + [b'PING'])
check('some key updates are taken', said.count('KEYUPDATE') == 3 and 'PONG' in said, said[-300:])
updates = [b'k'] * 100
said = s_client('-tls1_3', lines=updates + [b'PING'])
is_closed = 'PONG' not in said and ping() == b'+PONG\r\n'
check('a flood of key updates is closed', is_closed, said[-300:])
said = s_client('-tls1_3', '-alpn', 'h2,http/1.1', lines=[b'PING'])
check('a browser is refused by its ALPN', 'no application protocol' in said, said[-300:])
rng = random.Random(7)
before = rss_kib()
for _ in range(300):
    with socket.create_connection(('127.0.0.1', s.ports[rng.choice(SCHEMES)]), 20) as c:
        heads = (b'', b'\x16\x03\x01', b'\x16\x03\x03\xff\xff', b'\x14\x03\x03', b'\x80\x2e\x01')
        head = rng.choice(heads)
        try:
            c.sendall(head + rng.randbytes(rng.randrange(1, 20000)))
            c.shutdown(socket.SHUT_WR)
            c.settimeout(20)
            while c.recv(4096):
                pass
        except OSError:
            pass
grown = rss_kib() - before
check('garbage is closed', ping() == b'+PONG\r\n' and grown < 20_000, grown)
for scheme in SCHEMES:
    # One such line a second is written.
    time.sleep(1.2)
    with socket.create_connection(('127.0.0.1', s.ports[scheme]), 20) as c:
        c.sendall(b'GET / HTTP/1.1\r\n\r\n')
        c.recv(100)
    end = time.time() + 10
    while f'closed {scheme} 127' not in s.log() and time.time() < end:
        time.sleep(0.1)
    lines = [line for line in s.log().splitlines() if f'closed {scheme} 127' in line]
    told = any('does its client use TLS?' in line for line in lines)
    check(f'the log says why {scheme} was closed', told, s.log()[-600:])

# Thousands of half handshakes.
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, hard), hard))
ctx = context()
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
hello = ctx.wrap_bio(incoming, outgoing, server_hostname='broker.example')
try:
    hello.do_handshake()
except ssl.SSLWantReadError:
    pass
hello = outgoing.read()
time.sleep(2)
before, half = rss_kib(), []
for index in range(HALF_HANDSHAKES):
    c = socket.create_connection(('127.0.0.1', s.ports['rediss']), 20)
    c.sendall(hello if index % 2 else hello[:50])
    half.append(c)
check(f'others are served beside {HALF_HANDSHAKES} half handshakes', ping() == b'+PONG\r\n')
each = (rss_kib() - before) / HALF_HANDSHAKES
check(f'a half handshake takes {each:.1f} KiB', each <= 8)
end = time.time() + 60
for c in half:
    c.settimeout(max(1, end - time.time()))
    try:
        while c.recv(65536):
            pass
    except OSError:
        check('it is closed', False, time.time())
        break
check('half handshakes are closed', time.time() < end)
for c in half:
    c.close()
time.sleep(2)
before, idle = rss_kib(), []
for _ in range(1000):
    c = connect('rediss')
    c.sendall(b'PING\r\n')
    c.recv(100)
    idle.append(c)
time.sleep(2)
each = (rss_kib() - before) / len(idle)
check(f'an idle connection takes {each:.1f} KiB', each <= 64)
for c in idle:
    c.close()

# Renewal.
kept = connect('rediss')
old = context()
issue('renewed.example')
end = time.time() + 60
while time.time() < end:
    try:
        with connect('rediss', context(), 'renewed.example') as c:
            break
    except ssl.SSLError:
        time.sleep(0.5)
check('a renewed certificate is served', time.time() < end, s.log()[-600:])
kept.sendall(b'PING\r\n')
check('open connections go on', kept.recv(100) == b'+PONG\r\n')
open(cert, 'w').write('broken')
s.process.send_signal(signal.SIGHUP)
end = time.time() + 30
while 'stay as they were' not in s.log() and time.time() < end:
    time.sleep(0.2)
check('a broken one is named', cert in s.log() and 'stay as they were' in s.log(), s.log()[-600:])
kept.sendall(b'PING\r\n')
check('and changes nothing', kept.recv(100) == b'+PONG\r\n')
check('the broker stops in good order', s.stop() == 0)
shutil.rmtree(folder)
done()
