#!/usr/bin/env python3
"""Services that want the broker start too soon: systemd does not know when it is ready.

nats-io/nats-server#7507, sidekiq/sidekiq#4488, halfgaar/FlashMQ#138, redis/redis#329. Right: with
NOTIFY_SOCKET set (Type=notify) READY=1 is told once every listener accepts, STOPPING=1 by a signal,
RELOADING=1 with the time and READY=1 again by SIGHUP (Type=notify-reload), WATCHDOG=1 twice in
WATCHDOG_USEC; at paths and at abstract names. A manager that is not there, or does not read, stops
nothing."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *


class Manager:
    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind('\0' + name[1:] if name.startswith('@') else name)
        self.socket.settimeout(10)

    def heard(self):
        try:
            return self.socket.recv(4096).decode()
        except TimeoutError:
            return ''

    def close(self):
        self.socket.close()
        if not self.name.startswith('@'):
            os.unlink(self.name)


for name in (tempfile.mktemp(prefix='dunlin-notify-'), f'@dunlin-notify-{os.getpid()}'):
    kind = 'an abstract name' if name[0] == '@' else 'a path'
    m = Manager(name)
    s = Server(env={'NOTIFY_SOCKET': name})
    got = m.heard()
    check(f'{kind}: READY=1 is told', got.split('\n')[0] == 'READY=1', got)
    for protocol in s.ports:
        s.raw(protocol).close()
    s.process.send_signal(signal.SIGHUP)
    got = m.heard()
    now = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
    at = dict(line.split('=', 1) for line in got.split('\n') if '=' in line)
    ok = at.get('RELOADING') == '1' and abs(now - int(at.get('MONOTONIC_USEC', 0))) < 20e6
    check(f'{kind}: RELOADING=1 is told with the time', ok, got)
    check(f'{kind}: and READY=1 again', m.heard().startswith('READY=1'))
    s.process.send_signal(signal.SIGUSR1)
    check(f'{kind}: draining is told', 'STATUS=draining' in m.heard())
    s.process.send_signal(signal.SIGTERM)
    got = m.heard()
    check(f'{kind}: STOPPING=1 is told', got.startswith('STOPPING=1'), got)
    s.clean()
    m.close()

m = Manager(tempfile.mktemp(prefix='dunlin-notify-'))
s = Server(env={'NOTIFY_SOCKET': m.name, 'WATCHDOG_USEC': '400000'})
got = [m.heard() for _ in range(4)]
check('WATCHDOG=1 is told', got[0].startswith('READY=1') and got[1:] == ['WATCHDOG=1'] * 3, got)
s.clean()
m.close()

m = Manager(tempfile.mktemp(prefix='dunlin-notify-'))
s = Server(env={'NOTIFY_SOCKET': m.name, 'WATCHDOG_USEC': '400000', 'WATCHDOG_PID': '1'})
m.heard()
m.socket.settimeout(1)
check('a watchdog of another process is not fed', m.heard() == '')
s.clean()
m.close()

m = Manager(tempfile.mktemp(prefix='dunlin-notify-'))
d = tempfile.mkdtemp()
with open(d + '/0000000000000001.segment', 'w') as f:
    f.write('nonsense')
p = subprocess.run(
    [DUNLIN, 'serve', '--data', d, '--listen', f'redis=127.0.0.1:{free_port()}'],
    env=dict(os.environ, NOTIFY_SOCKET=m.name),
    capture_output=True,
)
m.socket.settimeout(0.5)
check('a start that fails is not told to be ready', p.returncode == 1 and m.heard() == '', p)
shutil.rmtree(d)
m.close()

for name in ('', '/no/such/socket', 'vsock:2:1', 'relative'):
    s = Server(protocols=('redis',), env={'NOTIFY_SOCKET': name})
    check(f'NOTIFY_SOCKET={name!r} stops nothing', s.redis().ask('PING') == 'PONG')
    # The broker answers before it tells its manager.
    end = time.time() + 20
    while name and 'notify' not in s.log() and time.time() < end:
        time.sleep(0.05)
    told = 'notify' in s.log()
    check('what cannot be told is logged', told == (name != ''), s.log())
    s.clean()
m = Manager(tempfile.mktemp(prefix='dunlin-notify-'))
filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
filler.setblocking(False)
try:
    while True:
        filler.sendto(b'x', m.name)
except BlockingIOError:
    pass
s = Server(protocols=('redis',), env={'NOTIFY_SOCKET': m.name})
check('a manager that does not read stops nothing', s.redis().ask('PING') == 'PONG')
check('and it ends', s.stop() == 0)
s.clean()
m.close()
done()
