#!/usr/bin/env python3
"""As the first process of a container signals are ignored that nobody handles (docker/for-linux).

`docker stop` then takes ten seconds and kills. And images are run with a read-only file system.
Right: as PID 1 the broker stops by SIGTERM and SIGINT with status 0, before it is ready too, and
needs no place to write but its data directory, none at all with --store none."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

if os.geteuid() != 0 or subprocess.run(['unshare', '-p', '-m', '-f', 'true']).returncode != 0:
    print('SKIP needs root and namespaces')
    sys.exit(77)


def child_of(pid):
    for _ in range(200):
        with open(f'/proc/{pid}/task/{pid}/children') as f:
            if children := f.read().split():
                return int(children[0])
        time.sleep(0.02)
    raise RuntimeError('no child')


for sig in (signal.SIGTERM, signal.SIGINT):
    s = Server(prefix=['unshare', '-p', '-f', '--kill-child'])
    own = child_of(s.process.pid)
    with open(f'/proc/{own}/status') as f:
        inner = [line.split()[-1] for line in f if line.startswith('NSpid')]
    check('it is the first process', inner == ['1'], inner)
    os.kill(own, sig)
    code = s.process.wait(20)
    check(f'{sig.name} ends it with 0', code == 0, code)
    s.clean()

remount = 'mount -o remount,bind,ro / && cd / && exec "$@"'
read_only = f'mount --make-rprivate / && {remount}'
s = Server(
    '--store', 'none', data='/nowhere', prefix=['unshare', '-m', 'sh', '-c', read_only, 'sh']
)
check('without a store nothing is written', s.redis().ask('PING') == 'PONG')
s.clean()
d = tempfile.mkdtemp()
with_data = f'mount --make-rprivate / && mount --bind {d} {d} && {remount}'
s = Server(data=d, prefix=['unshare', '-m', 'sh', '-c', with_data, 'sh'])
check('a volume for the data is enough', s.redis().ask('LPUSH', 'l', 'x') == 1)
s.clean()
s = Server(data=d, prefix=['unshare', '-m', 'sh', '-c', with_data, 'sh'])
check('and keeps them', s.redis().ask('LPOP', 'l') == b'x')
s.clean()
shutil.rmtree(d)
try:
    s = Server(data='/nowhere/dunlin', prefix=['unshare', '-m', 'sh', '-c', read_only, 'sh'])
    check('no place for the data is refused', False)
except RuntimeError as e:
    check('no place for the data is refused', '/nowhere' in str(e) and 'ead-only' in str(e), e)
done()
