#!/usr/bin/env python3
"""Clients of a broker with users, by a SCRAM of Python's own, and strangers who try.

Right: each protocol lets users in and nobody else; a wrong password waits, and locks no other
address out; a changed file counts at once; strangers are closed after ten seconds; no password is
in the log, the metrics or the arguments of a process."""

import base64
import hashlib
import hmac
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

CANARY = 'canary-in-a-coal-mine'
folder = tempfile.mkdtemp(prefix='dunlin-users-')
users = folder + '/users.toml'


def connect(protocol, source='127.0.0.1'):
    c = socket.create_connection(('127.0.0.1', s.ports[protocol]), 20, (source, 0))
    c.settimeout(30)
    return c


def ask(protocol, said, source='127.0.0.1'):
    with connect(protocol, source) as c:
        c.sendall(said)
        try:
            return c.recv(4096)
        except OSError:
            return b''


def http(path, **headers):
    return s.http('GET', path, headers={k.replace('_', '-'): v for k, v in headers.items()})[0]


def basic(name, password):
    return 'Basic ' + base64.b64encode(f'{name}:{password}'.encode()).decode()


def sasl_frame(code, *fields):
    """A SASL frame with a list of binaries and symbols."""
    body = b''
    for kind, value in fields:
        body += {'symbol': b'\xb3', 'binary': b'\xb0'}[kind] + struct.pack('>I', len(value)) + value
    listed = b'\xd0' + struct.pack('>II', len(body) + 4, len(fields)) + body
    frame = b'\x02\x01\x00\x00\x00\x53' + bytes([code]) + listed
    return struct.pack('>I', len(frame) + 4) + frame


def read_frame(c):
    head = c.recv(4, socket.MSG_WAITALL)
    return c.recv(struct.unpack('>I', head)[0] - 4, socket.MSG_WAITALL)


def binary(frame):
    """The last binary of a frame."""
    at = max(frame.rfind(b'\xa0'), 0)
    for index in range(len(frame)):
        if frame[index] == 0xA0 and index + 2 + frame[index + 1] == len(frame):
            return frame[index + 2 :]
        if frame[index] == 0xB0 and index + 5 <= len(frame):
            size = struct.unpack('>I', frame[index + 1 : index + 5])[0]
            if index + 5 + size == len(frame):
                return frame[index + 5 :]
    return frame[at:]


def scram(name, password, kind='sha256'):
    """Logs in by AMQP and RFC 5802; true if both sides are proved."""
    mechanism = {'sha256': b'SCRAM-SHA-256', 'sha512': b'SCRAM-SHA-512'}[kind]
    with connect('amqp') as c:
        c.sendall(b'AMQP\x03\x01\x00\x00')
        c.recv(8, socket.MSG_WAITALL)
        if mechanism not in read_frame(c):
            return None
        nonce = base64.b64encode(os.urandom(18)).decode()
        bare = f'n={name},r={nonce}'
        c.sendall(sasl_frame(0x41, ('symbol', mechanism), ('binary', f'n,,{bare}'.encode())))
        reply = read_frame(c)
        if reply[6] != 0x42:
            return False
        first = binary(reply).decode()
        parts = dict(part.split('=', 1) for part in first.split(','))
        salted = hashlib.pbkdf2_hmac(
            kind, password.encode(), base64.b64decode(parts['s']), int(parts['i'])
        )
        client_key = hmac.digest(salted, b'Client Key', kind)
        final = f'c=biws,r={parts["r"]}'
        message = f'{bare},{first},{final}'.encode()
        signature = hmac.digest(hashlib.new(kind, client_key).digest(), message, kind)
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        final += ',p=' + base64.b64encode(proof).decode()
        c.sendall(sasl_frame(0x43, ('binary', final.encode())))
        server_key = hmac.digest(salted, b'Server Key', kind)
        expected = base64.b64encode(hmac.digest(server_key, message, kind))
        outcome = read_frame(c)
        return parts['r'].startswith(nonce) and b'v=' + expected in outcome


rules = ('--allow', 'send,receive,look,manage,operate *')
code, out, err = dunlin_user(users, 'add', 'orders', '--stdin', *rules, input=CANARY + '\n')
check('a user is added', code == 0, err)
check('its file is private', os.stat(users).st_mode & 0o777 == 0o600)
code, token, err = dunlin_user(users, 'token', 'add', 'ci', '--user', 'orders')
token = token.split()[-1]
check('a token is made', code == 0 and len(token) > 30, err)
code, out, err = dunlin_user(users, 'add', 'short', '--stdin', input='1234567\n')
check('a short password is refused', code != 0 and '8' in err, err)
s = Server('--users', users)

for kind in ('sha256', 'sha512'):
    check(f'AMQP by SCRAM, {kind}', scram('orders', CANARY, kind) is True)
check('HTTP by Basic', http('/queues', Authorization=basic('orders', CANARY)) == 200)
check('HTTP by Bearer', http('/queues', Authorization=f'Bearer {token}') == 200)
login = f'AUTH orders {CANARY}\r\n'.encode()
check('Redis by AUTH', ask('redis', login) == b'+OK\r\n')
check('beanstalkd by auth', ask('beanstalkd', f'auth orders {CANARY}\r\n'.encode()) == b'OK\r\n')

# Strangers.
check('HTTP without a login', http('/queues') == 401 and http('/metrics') == 401)
check('the health of the server is no secret', http('/health') == 200)
check('Redis without a login', ask('redis', b'KEYS *\r\n').startswith(b'-NOAUTH'))
check('beanstalkd without a login', ask('beanstalkd', b'list-tubes\r\n') == b'DENIED\r\n')
check('AMQP without SASL', ask('amqp', b'AMQP\x00\x01\x00\x00') == b'AMQP\x03\x01\x00\x00')
for what in (b'*1\r\n$99999999\r\n', b'*99999999\r\n', b'*3\r\n$4\r\nAUTH\r\n$99999\r\n'):
    check('a large word of a stranger is refused', ask('redis', what).startswith(b'-ERR'), what)
wrong = [ask('redis', f'AUTH orders wrong-{n}\r\n'.encode(), '127.0.0.2') for n in range(20)]
check('a wrong password is refused', wrong[0].startswith(b'-WRONGPASS'), wrong[0])
check('who guesses has to wait', not wrong[-1].startswith(b'-WRONGPASS'), wrong[-1])
check('others do not', ask('redis', login) == b'+OK\r\n')
check('and the wrong proof', scram('orders', 'not-' + CANARY) is False)
check('names are not told', scram('nobody', CANARY) is False)

# Changes.
kept, end = connect('redis'), time.time() + 40
kept.sendall(login)
# Two failures from here came just before.
while (reply := kept.recv(4096)) != b'+OK\r\n' and time.time() < end:
    time.sleep(0.3)
    kept.sendall(login)
dunlin_user(users, 'disable', 'orders')
end = time.time() + 40
while ask('redis', login, '127.0.0.3') == b'+OK\r\n' and time.time() < end:
    time.sleep(0.3)
check('a disabled user is refused', time.time() < end, s.log())
check('a known one is let in', reply == b'+OK\r\n', reply)
reply = kept.recv(4096)
check('who was in is cut off', reply == b'', reply)
dunlin_user(users, 'enable', 'orders')
s.process.send_signal(signal.SIGHUP)
end = time.time() + 40
while ask('redis', login, f'127.0.0.{10 + int(time.time()) % 200}') != b'+OK\r\n':
    if time.time() > end:
        break
    time.sleep(0.5)
check('an enabled one is let in', time.time() < end, s.log())

# Time and secrets.
begin = time.time()
idle = [connect(protocol) for protocol in ('amqp', 'beanstalkd', 'redis')]
talking = connect('redis')
talking.settimeout(0.5)
closed = False
while not closed and time.time() < begin + 40:
    try:
        talking.sendall(b'PING\r\n')
        closed = talking.recv(100) == b''
    except TimeoutError:
        pass
    except OSError:
        closed = True
    time.sleep(0.2)
check('a stranger that talks is closed', closed and time.time() > begin + 5, time.time() - begin)
check('one that is silent, too', all(c.recv(100) == b'' for c in idle))
line = open(f'/proc/{s.process.pid}/cmdline').read() + open(f'/proc/{s.process.pid}/environ').read()
metrics = s.http('GET', '/metrics', headers={'Authorization': f'Bearer {token}'})[2].decode()
for place, text in (('log', s.log()), ('arguments', line), ('metrics', metrics)):
    check(f'no secret in the {place}', CANARY not in text and token not in text, text[-400:])
check('nor in the file', CANARY not in open(users).read() and token not in open(users).read())
check('the broker stops in good order', s.stop() == 0)
shutil.rmtree(folder)
done()
