#!/usr/bin/env python3
"""`environment: DUNLIN_SYNC: ${DUNLIN_SYNC}` sets an empty variable where the shell has none.

docker/compose#3768, #2359; env_file and systemd's EnvironmentFile do so too. The start failed with
an error about a flag that nobody gave. Right: an empty variable is as if it were not set, every one
that a command reads; a flag and the file still count then. What is set wrong is told by the name of
the variable, or by the file (64)."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *


def help_of(*command):
    return subprocess.run([DUNLIN, *command, '--help'], capture_output=True, text=True).stdout


def run(*args, **env):
    r = subprocess.run(
        [DUNLIN, *args],
        env=dict(os.environ, **env),
        capture_output=True,
        text=True,
        timeout=20,
        stdin=subprocess.DEVNULL,
    )
    return r.returncode, r.stderr


variables = sorted(set(re.findall(r'env: (DUNLIN_\w+)=', help_of('serve'))))
check('--help tells the variables', len(variables) > 20, variables)
s = Server(start=False, env={variable: '' for variable in variables})
try:
    s.start(timeout=20)
    check('a broker starts with all of them empty', True)
except RuntimeError as e:
    check('a broker starts with all of them empty', False, str(e)[:300])
url = f'http://127.0.0.1:{s.ports["http"]}'
code, err = run('queues', '--url', url, DUNLIN_URL='')
check('queues with an empty DUNLIN_URL', code == 0, (code, err))
code, err = run('dead', 'ls', '--url', url, DUNLIN_DEAD_LETTER_QUEUE='')
check('dead ls with an empty DUNLIN_DEAD_LETTER_QUEUE', code == 0, (code, err))
code, err = run('queues', DUNLIN_URL='')
check('it has its default', '127.0.0.1:8422' in err or code == 0, (code, err))
s.clean()

d = tempfile.mkdtemp()
with open(d + '/dunlin.toml', 'w') as f:
    f.write('max-connections = 0\n')
for variable in ('MAX_CONNECTIONS', 'INSECURE', 'LISTEN', 'QUEUE'):
    code, err = run('serve', '--config', d + '/dunlin.toml', **{f'DUNLIN_{variable}': ''})
    right = code == 2 and 'max-connections is set in' in err and 'dunlin.toml' in err
    check(f'the file counts where DUNLIN_{variable} is empty', right, (code, err))
code, err = run('serve', '--data', d + '/data', DUNLIN_DISK_LIMIT='1M')
right = code == 2 and 'DUNLIN_DISK_LIMIT is 1M' in err
check('a variable that fits nothing is named', right, (code, err))
code, err = run('serve', '--data', d + '/data', '--disk-limit', '1M', DUNLIN_DISK_LIMIT='1G')
check('unless a flag overrules it', code == 2 and 'DUNLIN_DISK_LIMIT' not in err, (code, err))
for variable, value in (
    ('SYNC', '25'),
    ('THREADS', 'two'),
    ('MEMORY_LIMIT', '1 GB'),
    ('LISTEN', 'redis=6379'),
    ('STORE', 'disk'),
    ('JOURNAL_IO', 'fast'),
    ('INSECURE', 'maybe'),
    ('QUEUE', 'a:b'),
):
    code, err = run('serve', '--data', d + '/data', **{f'DUNLIN_{variable}': value})
    first = err.split('\n')[0]
    flag = '--' + variable.lower().replace('_', '-')
    right = code == 2 and f'DUNLIN_{variable}' in first and flag not in first
    check(f'the refusal of DUNLIN_{variable}={value} names the variable', right, first)
    code, err = run('serve', f'{flag}={value}')
    check(f'that of {flag}={value} names the flag', flag in err.split('\n')[0], err)
for value in ('1', 'yes', 'TRUE', 'on', 'true'):
    s = Server(start=False, protocols=(), env={'DUNLIN_INSECURE': value})
    s.args = ['--listen', f'http=0.0.0.0:{free_port()}']
    try:
        s.start(timeout=20)
        check(f'DUNLIN_INSECURE={value} is true', True)
    except RuntimeError as e:
        check(f'DUNLIN_INSECURE={value} is true', False, e)
    s.clean()
shutil.rmtree(d)
done()
