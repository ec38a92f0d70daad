#!/usr/bin/env python3
"""Tokens of an issuer (JWT), signed by openssl: no code is shared with the broker's verifier.

Right: RS256, ES256 and EdDSA let a user in by HTTP and by each mechanism of AMQP that takes a
token; all else is refused without a reason; a connection ends with its token; new keys count
within ten seconds, and a broken file of keys changes nothing."""

import base64
import hashlib
import hmac
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

if shutil.which('openssl') is None:
    print('SKIP openssl is not installed')
    sys.exit(77)

ISSUER = 'https://login.example.com/realms/corp'
folder = tempfile.mkdtemp(prefix='dunlin-jwt-')
users, key_file = folder + '/users.toml', folder + '/corp.jwks'
PASSWORD = 'correct horse battery staple'


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def openssl(*args, data=None):
    return subprocess.run(['openssl', *args], input=data, capture_output=True, check=True).stdout


class Key:
    """A pair of keys, by openssl alone."""

    KINDS = {
        'RS256': ['RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
        'ES256': ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
        'EdDSA': ['ED25519'],
    }

    def __init__(self, algorithm, name):
        self.algorithm, self.name = algorithm, name
        self.file = f'{folder}/{name}.pem'
        openssl('genpkey', '-algorithm', *self.KINDS[algorithm], '-out', self.file)
        self.public = openssl('pkey', '-in', self.file, '-pubout', '-outform', 'DER')

    def jwk(self):
        jwk = {'kid': self.name, 'use': 'sig', 'alg': self.algorithm}
        if self.algorithm == 'RS256':
            modulus = openssl('rsa', '-in', self.file, '-noout', '-modulus')
            number = bytes.fromhex(modulus.split(b'=')[1].strip().decode())
            return jwk | {'kty': 'RSA', 'n': b64(number), 'e': 'AQAB'}
        if self.algorithm == 'ES256':
            x, y = self.public[-64:-32], self.public[-32:]
            return jwk | {'kty': 'EC', 'crv': 'P-256', 'x': b64(x), 'y': b64(y)}
        return jwk | {'kty': 'OKP', 'crv': 'Ed25519', 'x': b64(self.public[-32:])}

    def sign(self, data):
        if self.algorithm == 'EdDSA':
            with tempfile.NamedTemporaryFile(dir=folder) as file:
                file.write(data)
                file.flush()
                return openssl('pkeyutl', '-sign', '-rawin', '-inkey', self.file, '-in', file.name)
        signature = openssl('dgst', '-sha256', '-sign', self.file, data=data)
        return signature if self.algorithm == 'RS256' else fixed(signature)


def fixed(der):
    """The two numbers of an ECDSA signature, 32 bytes each."""
    first = der[4 : 4 + der[3]]
    second = der[6 + der[3] :]
    return b''.join(part.lstrip(b'\0').rjust(32, b'\0') for part in (first, second))


def token(key, head=None, seconds=300, **changes):
    """A token that is right but for the changes."""
    now = int(time.time())
    claims = {'iss': ISSUER, 'aud': ['other', 'dunlin'], 'sub': 'ann', 'iat': now}
    claims = claims | {'exp': now + seconds} | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    head = {'alg': key.algorithm, 'typ': 'JWT', 'kid': key.name} if head is None else head
    signed = '.'.join(b64(json.dumps(part).encode()) for part in (head, claims))
    return f'{signed}.{b64(key.sign(signed.encode()))}'


def write_keys(text):
    # As a sidecar does it: the new file takes the place of the old one.
    with open(key_file + '.new', 'w') as file:
        file.write(text)
    os.rename(key_file + '.new', key_file)


def key_set(*keys):
    return json.dumps({'keys': [key.jwk() for key in keys]})


def http(bearer, path='/queues'):
    return s.http('GET', path, headers={'Authorization': f'Bearer {bearer}'})[0]


def xoauth2(bearer, name='ann'):
    return 'XOAUTH2', f'user={name}\1auth=Bearer {bearer}\1\1'.encode()


def oauthbearer(bearer, name=''):
    header = f'n,a={name},' if name else 'n,,'
    return 'OAUTHBEARER', f'{header}\1host=localhost\1auth=Bearer {bearer}\1\1'.encode()


def plain(bearer):
    return 'PLAIN', f'\0\0{bearer}'.encode()


def frame(code, *fields):
    body = b''.join(enc(field) for field in fields)
    listed = b'\xd0' + struct.pack('>II', len(body) + 4, len(fields)) + body
    body = b'\x02\x01\x00\x00\x00\x53' + bytes([code]) + listed
    return struct.pack('>I', len(body) + 4) + body


def read_frame(c):
    head = c.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return b''
    return c.recv(struct.unpack('>I', head)[0] - 4, socket.MSG_WAITALL)


def sasl(mechanism, response, source='127.0.0.1'):
    """The answer to a first response: a frame, and whether a dummy brings the end."""
    c = socket.create_connection(('127.0.0.1', s.ports['amqp']), 20, (source, 0))
    c.settimeout(20)
    with c:
        c.sendall(b'AMQP\x03\x01\x00\x00')
        c.recv(8, socket.MSG_WAITALL)
        read_frame(c)
        c.sendall(frame(0x41, Sym(mechanism), response))
        answer = read_frame(c)
        if answer[6:7] == b'\x42':
            c.sendall(frame(0x43, b'\1'))
            return answer, read_frame(c)
        return answer, b''


def is_auth_failure(answer):
    return answer[6:7] == b'\x44' and b'\x50\x01' in answer


def wait(until, seconds=40):
    end = time.time() + seconds
    while time.time() < end:
        if until():
            return True
        time.sleep(0.3)
    return False


rsa, ec, ed = Key('RS256', 'rsa-1'), Key('ES256', 'ec-1'), Key('EdDSA', 'ed-1')
keys = (rsa, ec, ed)
for name in ('ann', 'bob'):
    add = [DUNLIN, 'user', 'add', name, '--stdin', '--users', users]
    add += ['--allow', 'send,receive,look,manage,operate *']
    subprocess.run(add, input=PASSWORD + '\n', text=True, check=True, capture_output=True)
with open(users, 'a') as file:
    file.write(
        f'\n[[jwt]]\nissuer = "{ISSUER}"\naudience = "dunlin"\njwks-file = "corp.jwks"\n'
    )
write_keys(key_set(*keys))
said = subprocess.run([DUNLIN, 'user', 'check', '--users', users], capture_output=True, text=True)
check('the file is sound', said.stdout.strip().endswith('1 issuer of JWT'), said)
s = Server('--users', users)

# The three algorithms, by each way.
for key in keys:
    check(f'HTTP by {key.algorithm}', http(token(key)) == 200, s.log()[-300:])
    for form in (xoauth2, oauthbearer, plain):
        way = form(token(key))
        a = s.amqp(sasl=way)
        a.sender('jwt')
        check(f'AMQP by {way[0]} and {key.algorithm}', a.outcome[0] == 0, a.outcome)
        a.close()
a = s.amqp(sasl=oauthbearer(token(ed, sub='bob'), 'bob'))
offered = a.mechanisms[0]
is_behind = offered.index('PLAIN') < offered.index('XOAUTH2')
check('tokens are offered behind passwords', is_behind, offered)
check('a client may say its name', a.outcome[0] == 0)
a.close()
padding = {f'group-{n}': 'x' * 100 for n in range(44)}
long = token(rsa, **padding)
check('a token of 7 KiB', 7000 < len(long) < 8192 and http(long) == 200, len(long))
a = s.amqp(sasl=xoauth2(long))
check('by AMQP, too', a.outcome[0] == 0)
a.close()

# All else. Each comes from an address of its own, so that no failure holds the next one off.
now = int(time.time())
good = token(rsa)
head, claims, signature = good.split('.')
other = b64(json.dumps({'iss': ISSUER, 'aud': 'dunlin', 'sub': 'bob', 'exp': now + 300}).encode())
none = b64(json.dumps({'alg': 'none'}).encode())
confused = b64(json.dumps({'alg': 'HS256', 'kid': rsa.name}).encode()) + '.' + claims
pem = openssl('pkey', '-in', rsa.file, '-pubout')
tag = hmac.digest(pem, confused.encode(), 'sha256')
stranger = Key('RS256', 'stranger')
wrong = {
    'no signature': f'{none}.{claims}.',
    'the public key as a secret': f'{confused}.{b64(tag)}',
    'other claims': f'{head}.{other}.{signature}',
    'a cut signature': good[:-8],
    'another key': token(stranger),
    'the name of another key': token(stranger, {'alg': 'RS256', 'kid': rsa.name}),
    'its own key in the header': token(stranger, {'alg': 'RS256', 'jwk': stranger.jwk()}),
    'another algorithm than the key': token(rsa, {'alg': 'ES256', 'kid': rsa.name}),
    'crit': token(rsa, {'alg': 'RS256', 'kid': rsa.name, 'crit': ['exp']}),
    'another issuer': token(rsa, iss=ISSUER + '/'),
    'another audience': token(rsa, aud='someone'),
    'no audience': token(rsa, aud=None),
    'over': token(rsa, exp=now - 1),
    'no end': token(rsa, exp=None),
    'not yet': token(rsa, nbf=now + 120),
    'a user that is none': token(rsa, sub='eve'),
    'more than 8 KiB': token(rsa, more='x' * 8192),
}
for n, (what, bad) in enumerate(wrong.items()):
    source = f'127.0.1.{n + 1}'
    answer, _ = sasl(*xoauth2(bad), source=source)
    check(f'refused: {what}', is_auth_failure(answer), answer)
answer, end = sasl(*oauthbearer(wrong['over']), source='127.0.2.1')
check('OAUTHBEARER is told by a challenge', b'{"status":"invalid_token"}' in answer, answer)
check('and then by the outcome', is_auth_failure(end), end)
answer, _ = sasl(*xoauth2(good, 'bob'), source='127.0.2.2')
check('a token of ann is none of bob', is_auth_failure(answer), answer)
status = http(wrong['another audience'])
check('HTTP says 401', status == 401, status)
check('a token that was right goes on', http(long) == 200)
time.sleep(1.1)
check('one that is over', is_auth_failure(sasl(*xoauth2(wrong['over']), source='127.0.2.3')[0]))
told = 'a token from 127.0.2.3 is refused: its exp is over'
# The line is written behind the answer.
end = time.time() + 10
while told not in s.log() and time.time() < end:
    time.sleep(0.1)
check('the log tells why', told in s.log() and ' more since the last such line' in s.log(), s.log())

# Passwords go on beside tokens.
basic = 'Basic ' + base64.b64encode(f'ann:{PASSWORD}'.encode()).decode()
by_password = {'Authorization': basic}
check('a password', wait(lambda: s.http('GET', '/queues', headers=by_password)[0] == 200))

# The end of a token ends what it has begun.
lasting = s.amqp(sasl=xoauth2(token(ec, seconds=600)))
short, begin = token(ec, seconds=4), time.time()
a = s.amqp(sasl=xoauth2(short))
a.sender('jwt')
c = socket.create_connection(('127.0.0.1', s.ports['http']), 20)
head = 'GET /topics/news/events HTTP/1.1\r\nHost: localhost\r\n'
c.sendall(f'{head}Authorization: Bearer {short}\r\n\r\n'.encode())
c.settimeout(40)
heard = c.recv(4096)
check('a follower is let in', heard.startswith(b'HTTP/1.1 200'), heard)


def end_of(c, last):
    """When the connection, or the answer on it, ends, in seconds since the token was made."""
    c.settimeout(40)
    heard = b''
    try:
        while not last or not heard.endswith(last):
            piece = c.recv(4096)
            if not piece:
                break
            heard += piece
    except ConnectionError:
        pass
    return time.time() - begin


spans = [end_of(a.s, b''), end_of(c, b'0\r\n\r\n')]
check('its connection of AMQP ends', 3 < spans[0] < 30, spans)
check('its follower of HTTP ends', 3 < spans[1] < 30, spans)
check('and it is refused', http(short) == 401)
lasting.sender('jwt')
check('another one goes on', True)

# New keys, without a signal.
new = Key('EdDSA', 'ed-2')
write_keys(key_set(new))
check('a new key counts within ten seconds', wait(lambda: http(token(new)) == 200), s.log())
answer, _ = sasl(*xoauth2(good), source='127.0.3.1')
check('an old one does not any more', is_auth_failure(answer), answer)
write_keys('{"keys": []}')
s.process.send_signal(signal.SIGHUP)
check('a broken file is told', wait(lambda: 'keys of tokens stay as they were' in s.log()), s.log())
answer, _ = sasl(*xoauth2(token(new)), source='127.0.3.2')
check('and changes nothing', answer[6:7] == b'\x44' and b'\x50\x00' in answer, answer)
said = subprocess.run([DUNLIN, 'user', 'check', '--users', users], capture_output=True, text=True)
check('dunlin user check finds it', said.returncode != 0 and 'corp.jwks' in said.stderr, said)
signatures = [sent.rsplit('.')[2] for sent in (good, short, long, wrong['over'])]
check('no token is in the log', all(signature not in s.log() for signature in signatures))
check('the broker stops in good order', s.stop() == 0)
shutil.rmtree(folder)
done()
