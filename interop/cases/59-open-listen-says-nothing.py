#!/usr/bin/env python3
"""Brokers without users on 0.0.0.0 are found by strangers.

redis/redis#4263, britkat1980/giv_tcp#580, beanstalkd/beanstalkd#320, tidwall/tile38#344. HTTP
refused to listen there, AMQP, beanstalkd and Redis did it without a word. Right: every protocol
needs a word for an address that other machines reach, each listener its own; loopback and Unix
sockets need none. The refusal has status 2 and names the mend; what was waived is logged at each
start. Keys of the file and variables are held to the same."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

PROTOCOLS = ('amqp', 'beanstalkd', 'redis', 'http')


def serve(*args, env=None, config=None):
    """Starts a broker, stops it where it is ready; its status and its log."""
    d = tempfile.mkdtemp()
    args = [DUNLIN, 'serve', '--data', d + '/data', *args]
    if config:
        with open(d + '/dunlin.toml', 'w') as f:
            f.write(config)
        args += ['--config', d + '/dunlin.toml']
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
            p.terminate()
    err = p.communicate()[1]
    shutil.rmtree(d, ignore_errors=True)
    return p.returncode, err, lines


def refused(what, protocol, *args, **kw):
    code, err, _ = serve(*args, **kw)
    ok = code == 2 and protocol in err and 'everybody' in err and '--insecure-listen' in err
    check(f'{what} is refused', ok, (code, err))


def served(what, *args, said=None, **kw):
    code, err, lines = serve(*args, **kw)
    ok = code == 0 and 'ready' in lines and (said is None or err.count(said) == 1)
    check(f'{what} is served', ok, (code, err, lines))


for p in PROTOCOLS:
    for host in ('0.0.0.0', '[::]', '[::ffff:0.0.0.0]'):
        refused(f'{p}={host}', p, '--listen', f'{p}={host}:{free_port()}')
    port = free_port()
    at = f'{p}=0.0.0.0:{port}'
    for word in (['--insecure-listen', f'0.0.0.0:{port}'], ['--insecure-listen', at]):
        served(f'{at} {" ".join(word)}', '--listen', at, *word, said=f'{p} listens on 0.0.0.0')
    served(f'--insecure-listen {at}', '--insecure-listen', at, said='--insecure-listen')
    served(f'{at} --insecure', '--listen', at, '--insecure', said='(--insecure)')
    refused(f'a variable with {at}', p, env=dict(DUNLIN_LISTEN=at))
    refused(f'a file with {at}', p, config=f'listen = ["{at}"]\n')
    served(f'variables with {at}', env=dict(DUNLIN_LISTEN=at, DUNLIN_INSECURE_LISTEN=at))
    served(f'a file that allows {at}', config=f'listen = ["{at}"]\ninsecure-listen = ["{at}"]\n')
    for host in ('127.0.0.1', '127.1.2.3', 'localhost'):
        served(f'{p}={host}', '--listen', f'{p}={host}:{free_port()}')
first, second = (f'redis=0.0.0.0:{free_port()}', f'amqp=0.0.0.0:{free_port()}')
refused('one of two', 'amqp', '--listen', first, '--listen', second, '--insecure-listen', first)
code, err, _ = serve('--listen', first, '--insecure-listen', '0.0.0.0:1')
check('a word for nobody is refused', code == 2 and '0.0.0.0:1' in err, (code, err))
help_text = subprocess.run([DUNLIN, 'serve', '--help'], capture_output=True, text=True).stdout
examples = help_text[help_text.index('Examples:') :]
check('no example of --help listens elsewhere', '0.0.0.0' not in examples)
done()
