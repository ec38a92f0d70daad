#!/usr/bin/env python3
"""A command that is given the port of another protocol was told that its work may have been done.

Right: it names what is spoken there, says that nothing was done, and how to mend it. An address
without a scheme is enough."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *


def run(*args):
    r = subprocess.run(
        [DUNLIN, *args], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL
    )
    return r.returncode, r.stderr + r.stdout


s = Server()
for protocol, name in (('amqp', 'AMQP'), ('redis', 'Redis'), ('beanstalkd', 'beanstalkd')):
    for command in (('queues',), ('send', 'a', 'body'), ('receive', 'a')):
        code, said = run(*command, '--url', f'http://127.0.0.1:{s.ports[protocol]}')
        right = code == 2 and name in said and 'nothing was done' in said and '--url' in said
        check(f'{command[0]} at the port of {protocol}', right, (code, said))
at = f'127.0.0.1:{s.ports["http"]}'
code, said = run('send', 'a', 'body', '--url', at)
check('send to host:port', code == 0, (code, said))
code, said = run('receive', 'a', '--url', at + '/')
check('receive from host:port/', code == 0 and 'body' in said, (code, said))
code, said = run('queues', '--url', 'nonsense://127.0.0.1:1')
check('another scheme is refused', code != 0 and '--url' in said, (code, said))
done()
