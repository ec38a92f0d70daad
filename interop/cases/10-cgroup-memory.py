#!/usr/bin/env python3
"""In a container with a memory limit the broker takes a share of the host's memory and is killed.

rabbitmq/rabbitmq-server#10974, #205, bitnami/bitnami-docker-rabbitmq#104, #52. Right: the default
limit follows the least of the machine and all control groups around the process, of version 2
(memory.max, memory.high) and 1. Here /sys/fs/cgroup is another directory, in a mount namespace of
its own; where version 1 is mounted a real group is made as well."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

if os.geteuid() != 0:
    print('SKIP needs root')
    sys.exit(77)
MIB = 1 << 20
machine = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')


def limit_of(server):
    lines = server.http('GET', '/metrics')[2].decode().split('\n')
    line = next(line for line in lines if line.startswith('dunlin_memory_limit_bytes '))
    return int(float(line.split()[1]))


def limit_with(group, files, *args, env=None):
    """The limit, in MiB, and the log, with this tree as /sys/fs/cgroup."""
    tree = tempfile.mkdtemp()
    for name, text in files.items():
        os.makedirs(os.path.dirname(f'{tree}/{name}'), exist_ok=True)
        with open(f'{tree}/{name}', 'w') as f:
            f.write(f'{text}\n')
    own = tempfile.mktemp()
    with open(own, 'w') as f:
        f.write(group + '\n')
    script = (
        f'mount --make-rprivate / && mount --bind {tree} /sys/fs/cgroup '
        f'&& mount --bind {own} /proc/$$/cgroup; exec "$@"'
    )
    try:
        s = Server(*args, prefix=['unshare', '-m', 'sh', '-c', script, 'sh'], env=env)
    except RuntimeError as e:
        print('SKIP no mount namespaces here:', str(e)[-200:])
        sys.exit(77)
    found = limit_of(s) / MIB, s.log()
    s.clean()
    shutil.rmtree(tree)
    os.unlink(own)
    return found


quarter = machine // 4 / MIB
service = 'system.slice/dunlin.service'
for what, group, files, right in (
    ('the root of a container', '0::/', {'memory.max': 1024 * MIB}, 256),
    ('a service', f'0::/{service}', {f'{service}/memory.max': 1024 * MIB}, 256),
    ('a group around it', f'0::/{service}', {'system.slice/memory.max': 512 * MIB}, 128),
    ('the least of both', '0::/a/b', {'a/memory.max': 800 * MIB, 'a/b/memory.max': 400 * MIB}, 100),
    ('memory.high', '0::/', {'memory.max': 'max', 'memory.high': 600 * MIB}, 150),
    ('no limit', '0::/', {'memory.max': 'max', 'memory.high': 'max'}, quarter),
    ('more than the machine has', '0::/', {'memory.max': 4 * machine}, quarter),
    ('swap alone', '0::/', {'memory.max': 'max', 'memory.swap.max': 300 * MIB}, quarter),
    ('version 1', '4:memory:/docker/7f', {'memory/memory.limit_in_bytes': 512 * MIB}, 128),
    ('nonsense', '0::/', {'memory.max': 'lots'}, quarter),
    ('too little', '0::/', {'memory.max': 32 * MIB}, 64),
):
    found, log = limit_with(group, files)
    check(f'{what}: {right:.0f} MiB', abs(found - right) < 1, found)
check('too little is told', '/sys/fs/cgroup/memory.max' in log and 'kill' in log, log)
files = {'memory.max': 512 * MIB}
found, log = limit_with('0::/', files)
check('the file that decides is told', '/sys/fs/cgroup/memory.max allows 536870912' in log, log)
found, log = limit_with('0::/', files, '--memory-limit', '300M')
check('what is asked for holds', found == 300, found)
found, log = limit_with('0::/', files, '--memory-limit', '600M')
check('and more than there is is told', found == 600 and 'kill' in log, (found, log))
found, log = limit_with('0::/', files, env=dict(DUNLIN_MEMORY_LIMIT=''))
check('an empty variable asks for nothing', found == 128, found)

group = '/sys/fs/cgroup/memory/dunlin-case'
try:
    os.makedirs(group)
    with open(f'{group}/memory.limit_in_bytes', 'w') as f:
        f.write(str(512 * MIB))
except OSError:
    note('no groups of version 1 here')
else:
    enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    s = Server(prefix=['sh', '-c', enter, 'sh'])
    found = limit_of(s) / MIB
    check('a real group of version 1: 128 MiB', found == 128, found)
    s.clean()
    os.rmdir(group)
done()
