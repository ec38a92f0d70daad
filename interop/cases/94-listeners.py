#!/usr/bin/env python3
"""Listeners that say who connects: users of listeners, networks, processes on Unix sockets.

Right: each connection to a listener with a user acts as that one, and a login there is refused;
other addresses are closed at once; a process is the user that the users file says, and no other
process is; a disabled user gets nothing."""

import os
import pwd
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

SASL, BARE = b'AMQP\x03\x01\x00\x00', b'AMQP\x00\x01\x00\x00'
QUEUES = b'GET /queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
PROTOCOLS = ('amqp', 'beanstalkd', 'redis', 'http')
# What a client of each protocol says, and hears as a user who may look at all.
TALK = {
    'amqp': (BARE, BARE),
    'beanstalkd': (b'list-tube-used\r\n', b'USING default\r\n'),
    'redis': (b'KEYS *\r\n', b'*0\r\n'),
    'http': (QUEUES, b'HTTP/1.1 200 OK'),
}
folder = tempfile.mkdtemp(prefix='dunlin-listeners-')
os.chmod(folder, 0o755)
users = folder + '/users.toml'


def user(*args):
    command = [DUNLIN, 'user', *args, '--users', users]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout


def connect(place, source=None):
    if isinstance(place, str):
        c = socket.socket(socket.AF_UNIX)
        c.settimeout(20)
        c.connect(place)
        return c
    c = socket.create_connection(('127.0.0.1', place), 20, source and (source, 0))
    c.settimeout(20)
    return c


def hear(c, least=1):
    """What comes, until there is so much or the end."""
    heard = b''
    try:
        while len(heard) < least and (data := c.recv(4096)):
            heard += data
    except OSError:
        pass
    return heard


def ask(place, said, least=1, source=None):
    with connect(place, source) as c:
        try:
            c.sendall(said)
        except OSError:
            pass
        return hear(c, least)


def talks(protocol, place, source=None):
    said, heard = TALK[protocol]
    return ask(place, said, len(heard), source).startswith(heard)


def until(what, holds, span=20):
    end = time.time() + span
    while not holds() and time.time() < end:
        time.sleep(0.1)
    check(what, holds(), s.log()[-600:])


def listen(options, protocols=PROTOCOLS):
    """Listeners of these protocols with options, and their ports."""
    ports = {protocol: free_port() for protocol in protocols}
    args = []
    for protocol, port in ports.items():
        args += ['--listen', f'{protocol}=127.0.0.1:{port},{options}']
    return args, ports


# Users of listeners, and networks.
user('add', 'jobs', '--no-password', '--allow', 'send,receive,look *')
user('add', 'web', '--no-password', '--allow', 'send,look *', '--unix-user', 'nobody')
fixed_args, fixed = listen('user=jobs')
near_args, near = listen('user=jobs,from=127.0.0.2,from=127.0.1.0/24')
sockets = {protocol: f'{folder}/{protocol}.sock' for protocol in PROTOCOLS}
socket_args = []
for protocol, path in sockets.items():
    socket_args += ['--listen', f'{protocol}=unix:{path},mode=0666']
audit = folder + '/audit.jsonl'
args = ['--users', users, '--audit-log', audit, *fixed_args, *near_args, *socket_args]
s = Server(*args)
for protocol in PROTOCOLS:
    check(f'{protocol}: a listener with a user', talks(protocol, fixed[protocol]))
    check(f'{protocol}: a listener without', not talks(protocol, s.ports[protocol]))
    near_by = talks(protocol, near[protocol], '127.0.0.2')
    check(f'{protocol}: an address', near_by and talks(protocol, near[protocol], '127.0.1.9'))
    closed = ask(near[protocol], TALK[protocol][0], source='127.0.0.3')
    check(f'{protocol}: another address is closed', closed == b'', closed)
check('the log tells it', 'from= of the listener' in s.log(), s.log())
said = ask(fixed['redis'], b'ACL WHOAMI\r\nFLUSHALL\r\n', 30)
check('the user has its rights only', b'jobs' in said and b'-NOPERM' in said, said)
said = ask(fixed['redis'], b'AUTH jobs secret\r\n')
check('a login there is refused', b'has a user of its own' in said, said)
kept = connect(fixed['redis'])
kept.sendall(b'PING\r\n')
check('a connection is open', hear(kept) == b'+PONG\r\n')
user('disable', 'jobs')
s.process.send_signal(signal.SIGHUP)
until('a disabled user of a listener is refused', lambda: not talks('redis', fixed['redis']))
check('an open connection is cut off', hear(kept) == b'')
said = ask(fixed['beanstalkd'], b'')
check('beanstalkd says it', said == b'DENIED\r\n', said)
said = ask(fixed['amqp'], BARE, 8)
check('AMQP says it', said == SASL, said)
said = ask(fixed['http'], QUEUES, 12)
check('HTTP says it', said.startswith(b'HTTP/1.1 401'), said)
check('the log names the user', 'the user of its listener, jobs' in s.log(), s.log())
user('enable', 'jobs')
s.process.send_signal(signal.SIGHUP)
until('an enabled one is let in', lambda: talks('redis', fixed['redis']))

# Processes on Unix sockets, each with the permissions of another user of the system.
nobody = pwd.getpwnam('nobody').pw_uid


def as_user(number, work):
    """What a process of this user of the system makes of it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setgid(65534)
        os.setuid(number)
        try:
            os.write(writer, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.wait()
    with os.fdopen(reader) as pipe:
        return pipe.read()


if os.geteuid() == 0:
    for protocol in ('beanstalkd', 'redis', 'http'):
        path = sockets[protocol]
        check(f'{protocol}: a process', as_user(nobody, lambda: talks(protocol, path)) == 'True')
        said = as_user(1234, lambda: talks(protocol, path))
        check(f'{protocol}: another process', said == 'False', said)
        check(f'{protocol}: root is none', not talks(protocol, path))
    said = as_user(nobody, lambda: ask(sockets['redis'], b'ACL WHOAMI\r\n'))
    check('it is the user', 'web' in said, said)
    mechanisms = lambda: ask(sockets['amqp'], SASL, 30)
    check('AMQP offers EXTERNAL', 'EXTERNAL' in as_user(nobody, mechanisms))
    check('to nobody else', 'EXTERNAL' not in as_user(1234, mechanisms))
else:
    note('needs root to be other users: left out')
told = [json.loads(line) for line in open(audit)]
hows = {line['how'] for line in told if line['event'] == 'login'}
check('the audit log tells how', hows >= {'listener'} and hows <= {'listener', 'unix-user'}, hows)
check('the broker stops in good order', s.stop() == 0)
for options in ('user=jobs', 'from=10.0.0.0/24,user=jobs'):
    command = [DUNLIN, 'serve', '--store', 'none', '--users', users, '--listen']
    run = subprocess.run([*command, f'redis=0.0.0.0:0,{options}'], capture_output=True, text=True)
    check('it is not open by itself', run.returncode == 2 and 'TLS' in run.stderr, run.stderr)

shutil.rmtree(folder)
done()
