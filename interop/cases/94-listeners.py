#!/usr/bin/env python3
"""Listeners that say who connects: users of listeners, networks, processes on Unix sockets,
proxies, and sockets of the service manager.

Right: each connection to a listener with a user acts as that one, and a login there is refused;
other addresses are closed at once; a process is the user that the users file says, and no other
process is; a disabled user gets nothing. A proxy's header gives the client its address, before TLS
too; wrong, late and missing ones are closed, and those from elsewhere are garbage. What connects
to a passed socket before the start is served."""

import os
import pwd
import shlex
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

SASL, BARE = b'AMQP\x03\x01\x00\x00', b'AMQP\x00\x01\x00\x00'
QUEUES = b'GET /queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
PROTOCOLS = ('amqp', 'beanstalkd', 'redis', 'http')
# The words of a client of each protocol, and the answer to a user who may look at all.
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
    code, out, err = dunlin_user(users, *args)
    if code:
        raise RuntimeError(err)
    return out


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
    """The bytes that come, until there are so many or the end."""
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
    """The result of this work in a process of this user of the system."""
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

# Proxies. A certificate for TLS.
cert, key = folder + '/cert.pem', folder + '/key.pem'
subprocess.run(
    ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    + ['-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
    + ['-keyout', key, '-out', cert],
    capture_output=True,
    check=True,
)
SIGNATURE = b'\r\n\r\n\0\r\nQUIT\n'


def header(client='10.0.0.7', command=0x21, family=0x11, block=None, extensions=b''):
    """A header of version 2, by TCP over IPv4 unless said otherwise."""
    if block is None:
        ends = socket.inet_aton(client) + socket.inet_aton('192.0.2.1')
        block = ends + struct.pack('>HH', 4321, 6379)
    block += extensions
    return SIGNATURE + struct.pack('>BBH', command, family, len(block)) + block


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def with_sum(wrong=0):
    plain = header(extensions=b'\x03\x00\x04\0\0\0\0')
    return plain[:-4] + struct.pack('>I', crc32c(plain) ^ wrong)


plain_args, plain = listen('proxy-from=127.0.0.2')
names = {'amqp': 'amqps', 'beanstalkd': 'beanstalkds', 'redis': 'rediss', 'http': 'https'}
tls_args, tls = listen('proxy-from=127.0.0.2', names.values())
front_args, front = listen('proxy-from=127.0.0.1,from=127.0.0.0/8', ('redis', 'http'))
s = Server(*plain_args, *tls_args, *front_args, '--tls-cert', cert, '--tls-key', key)
context = ssl.create_default_context(cafile=cert)


def proxied(protocol, before, by_tls=False, pause=0):
    """The answer to a client behind a proxy that sends this."""
    said, heard = TALK[protocol]
    place = tls[names[protocol]] if by_tls else plain[protocol]
    c = connect(place, '127.0.0.2')
    try:
        for at in range(0, len(before), 7 if pause else 4096):
            c.sendall(before[at : at + (7 if pause else 4096)])
            time.sleep(pause)
        if by_tls:
            c = context.wrap_socket(c, server_hostname='localhost')
        c.sendall(said)
        return hear(c, len(heard)).startswith(heard)
    except OSError:
        return False
    finally:
        c.close()


v6 = socket.inet_pton(socket.AF_INET6, '2001:db8::7') * 2 + struct.pack('>HH', 1, 2)
good = {
    'a header': header(),
    'IPv6': header(family=0x21, block=v6),
    'extensions': header(extensions=b'\x02\x00\x03a.b\xee\x00\x01\x00'),
    'a checksum': with_sum(),
    'no address': header(family=0, block=b''),
    'a Unix socket': header(family=0x31, block=bytes(216)),
    'a check of its own': header(command=0x20, family=0, block=b''),
    'as much as fits': header(extensions=b'\x04' + struct.pack('>H', 2017) + bytes(2017)),
}
wrong = {
    'no header': b'',
    'version 1': b'PROXY TCP4 10.0.0.7 192.0.2.1 4321 6379\r\n',
    'a wrong checksum': with_sum(wrong=1),
    'a byte more than fits': header(extensions=b'\x04' + struct.pack('>H', 2018) + bytes(2018)),
    'a claim of 64 KiB': SIGNATURE + b'\x21\x11\xff\xff',
    'a short address': header(block=bytes(11)),
    'an unknown family': header(family=0x41),
    'an unknown command': header(command=0x22),
}
for protocol in PROTOCOLS:
    for by_tls in (False, True):
        what = names[protocol] if by_tls else protocol
        bad = [name for name, sent in good.items() if not proxied(protocol, sent, by_tls)]
        check(f'{what}: {len(good)} headers are taken', not bad, bad)
        bad = [name for name, sent in wrong.items() if proxied(protocol, sent, by_tls)]
        check(f'{what}: {len(wrong)} others are not', not bad, bad)
        check(f'{what}: in pieces', proxied(protocol, header(), by_tls, pause=0.02))
        place = tls[names[protocol]] if by_tls else plain[protocol]
        garbage = ask(place, header() + TALK[protocol][0], source='127.0.0.3')
        is_heard = garbage.startswith(TALK[protocol][1])
        check(f'{what}: garbage from elsewhere', not is_heard, garbage)
    check(f'{protocol}: others send none', talks(protocol, plain[protocol], '127.0.0.3'))
begin = time.time()
late = [connect(place, '127.0.0.2') for place in [*plain.values(), *tls.values()]]
for c in late:
    c.sendall(header()[:20])
check('late headers are closed', all(hear(c) == b'' for c in late))
check('after ten seconds', 8 < time.time() - begin < 20, time.time() - begin)
check('the log says why', 'did not come in ten seconds' in s.log(), s.log()[-900:])
crowd = [connect(plain['redis'], '127.0.0.2') for _ in range(600)]
check('others come through a silent crowd', proxied('redis', header()))
for c in crowd:
    c.close()

# A real proxy in front.
haproxy = shutil.which('haproxy', path=os.environ['PATH'] + ':/usr/sbin')
if haproxy:
    ports = {protocol: free_port() for protocol in front}
    config = folder + '/haproxy.cfg'
    with open(config, 'w') as f:
        f.write('defaults\n mode tcp\n timeout connect 5s\n timeout client 20s\n')
        f.write(' timeout server 20s\n')
        for protocol, port in ports.items():
            f.write(f'listen {protocol}\n bind 127.0.0.1:{port}\n')
            f.write(f' server dunlin 127.0.0.1:{front[protocol]} send-proxy-v2 check inter 200\n')
            f.write(' option tcp-check\n')
    told = len(s.log())
    proxy = subprocess.Popen([haproxy, '-q', '-f', config])
    time.sleep(2)
    said = ask(ports['redis'], b'CLIENT LIST\r\n', 40, source='127.0.0.44')
    check('haproxy tells its client', b'addr=127.0.0.44:' in said, said)
    check('HTTP behind haproxy', talks('http', ports['http'], '127.0.0.45'))
    rest = s.log()[told:]
    check('its checks are no faults', proxy.poll() is None and 'PROXY header' not in rest, rest)
    proxy.terminate()
    proxy.wait()
else:
    note('haproxy is missing: left out')
check('the broker stops in good order', s.stop() == 0)


# Sockets that a service manager passes.
def passed(sockets, args, names=None):
    """The broker with these sockets, from number 3 on, as systemd starts it."""
    numbers = [c.fileno() for c in sockets]

    def pass_on():
        for index, number in enumerate(numbers):
            os.dup2(number, 100 + index)
        for index in range(len(numbers)):
            os.dup2(100 + index, 3 + index)
            os.set_inheritable(3 + index, True)

    command = shlex.join([DUNLIN, 'serve', '--store', 'none', *args])
    env = dict(os.environ, LISTEN_FDS=str(len(sockets)))
    if names is not None:
        env['LISTEN_FDNAMES'] = ':'.join(names)
    return subprocess.Popen(
        ['sh', '-c', f'export LISTEN_PID=$$; exec {command}'],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        close_fds=False,
        preexec_fn=pass_on,
        text=True,
    )


def ready(process):
    lines = []
    while (line := process.stdout.readline()) and line.strip() != 'ready':
        lines.append(line.strip())
    return lines


taken = {protocol: socket.create_server(('127.0.0.1', 0)) for protocol in PROTOCOLS}
path = folder + '/passed.sock'
taken['unix'] = socket.socket(socket.AF_UNIX)
taken['unix'].bind(path)
taken['unix'].listen()
places = {name: path if name == 'unix' else c.getsockname()[1] for name, c in taken.items()}
# They wait before there is a broker.
early = {name: connect(place) for name, place in places.items()}
spoken = {'unix': 'redis', **{protocol: protocol for protocol in PROTOCOLS}}
for name, c in early.items():
    c.sendall(TALK[spoken[name]][0])
args = []
for name, protocol in spoken.items():
    args += ['--listen', f'{protocol}=systemd:{name}']
process = passed(list(taken.values()), args, list(taken))
listening = ready(process)
check('passed sockets are listed', f'listening redis unix:{path}' in listening, listening)
for name, c in early.items():
    heard = hear(c, len(TALK[spoken[name]][1]))
    check(f'{name}: who came before the start', heard.startswith(TALK[spoken[name]][1]), heard)
    check(f'{name}: who comes later', talks(spoken[name], places[name]))
process.terminate()
check('it stops in good order', process.wait(20) == 0)
check('the file of a passed socket stays', os.path.exists(path))
for what, sockets, args, names, told in (
    ('a name that none has', ['redis'], ['redis=systemd:x'], ['cache'], 'cache was passed'),
    ('nothing passed', [], ['redis=systemd:x'], [], 'no socket was passed'),
    ('a socket that none takes', ['redis'], ['amqp=127.0.0.1:0'], ['cache'], 'no listener takes'),
    ('a mode', ['unix'], ['redis=systemd:x,mode=0600'], ['x'], 'behind a socket'),
    ('networks of a Unix socket', ['unix'], ['redis=systemd:x,from=::1'], ['x'], 'no address'),
):
    flags = [word for listener in args for word in ('--listen', listener)]
    process = passed([taken[name] for name in sockets], flags, names)
    err = process.communicate(timeout=20)[1]
    check(f'refused: {what}', process.returncode == 2 and told in err, err)
exposed = socket.create_server(('0.0.0.0', 0))
process = passed([exposed], ['--listen', 'redis=systemd:x'], ['x'])
err = process.communicate(timeout=20)[1]
check('refused: an open passed socket', process.returncode == 2 and 'everybody' in err, err)
client = socket.socket()
process = passed([client], ['--listen', 'redis=systemd:x'], ['x'])
err = process.communicate(timeout=20)[1]
check('refused: a socket that does not listen', process.returncode == 2, err)
unnamed = passed([taken['redis']], ['--listen', 'redis=systemd:unknown'])
check('a socket without a name', any('listening redis' in line for line in ready(unnamed)))
unnamed.terminate()
unnamed.communicate(timeout=20)
shutil.rmtree(folder)
done()
