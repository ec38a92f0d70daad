"""What the cases share: a broker of their own, and clients by raw bytes.

Standard library only. DUNLIN is the binary to test (default dunlin), PORT_BASE the first port."""

import atexit
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from amqp_client import *

DUNLIN = os.environ.get('DUNLIN', 'dunlin')
BASE = int(os.environ.get('PORT_BASE', '23100'))
FAILED = 0
_next = [BASE + os.getpid() % 80 * 10]
_servers = []


def free_port():
    while True:
        _next[0] += 1
        if _next[0] >= BASE + 890:
            _next[0] = BASE
        with socket.socket() as s:
            try:
                s.bind(('127.0.0.1', _next[0]))
                return _next[0]
            except OSError:
                continue


def check(what, ok, seen=''):
    global FAILED
    if ok:
        print(f'PASS {what}')
    else:
        FAILED += 1
        print(f'FAIL {what}' + (f': {seen}' if seen != '' else ''))
    return ok


def note(text):
    print(f'     {text}')


def done():
    stop_all()
    print('RESULT', 'FAIL' if FAILED else 'PASS')
    sys.exit(1 if FAILED else 0)


class Server:
    """A broker on free ports of loopback, with a directory of its own."""

    def __init__(
        self,
        *args,
        data=None,
        protocols=('amqp', 'beanstalkd', 'redis', 'http'),
        env=None,
        start=True,
        prefix=(),
        sync=None,
        pre=None,
    ):
        self.own = data is None
        self.data = data or tempfile.mkdtemp(prefix='dunlin-case-')
        self.ports = {p: free_port() for p in protocols}
        self.args, self.env, self.prefix, self.pre = list(args), env, list(prefix), pre
        self.process = None
        self.err_path = tempfile.mktemp(prefix='dunlin-err-')
        _servers.append(self)
        if start:
            self.start()

    def start(self, timeout=30):
        args = self.prefix + [DUNLIN, 'serve', '--data', self.data] + self.args
        for p, port in self.ports.items():
            args += ['--listen', f'{p}=127.0.0.1:{port}']
        env = dict(os.environ, **(self.env or {}))
        self.err = open(self.err_path, 'ab')
        self.process = subprocess.Popen(
            args, stdout=subprocess.PIPE, stderr=self.err, env=env, preexec_fn=self.pre
        )
        end = time.time() + timeout
        lines = []
        while time.time() < end:
            line = self.process.stdout.readline().decode()
            if not line:
                break
            lines.append(line.strip())
            if line.strip() == 'ready':
                return self
        raise RuntimeError(f'no ready: {lines} {self.log()[-2000:]}')

    def log(self):
        return open(self.err_path, errors='replace').read()

    def stop(self, sig=signal.SIGTERM, timeout=20):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode if self.process else None

    def kill(self):
        return self.stop(signal.SIGKILL)

    def clean(self):
        self.stop()
        if self.own:
            shutil.rmtree(self.data, ignore_errors=True)
        if os.path.exists(self.err_path):
            os.unlink(self.err_path)

    def cli(self, *args, input=None, timeout=30):
        env = dict(os.environ, DUNLIN_URL=f"http://127.0.0.1:{self.ports['http']}")
        r = subprocess.run(
            [DUNLIN, *args], input=input, capture_output=True, env=env, timeout=timeout
        )
        return r.returncode, r.stdout.decode(errors='replace'), r.stderr.decode(errors='replace')

    def http(self, method, path, body=None, headers=None, timeout=30):
        c = http.client.HTTPConnection('127.0.0.1', self.ports['http'], timeout=timeout)
        c.request(method, path, body=body, headers=headers or {})
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, data

    def raw(self, protocol, timeout=10):
        s = socket.create_connection(('127.0.0.1', self.ports[protocol]), timeout)
        s.settimeout(timeout)
        return s

    def beanstalk(self, timeout=10):
        return Beanstalk(self.raw('beanstalkd', timeout))

    def redis(self, timeout=10):
        return Redis(self.raw('redis', timeout))

    def amqp(self, **kw):
        return Amqp(self.raw('amqp', kw.pop('timeout', 10)), **kw)


class Copies:
    """Copies of a data directory that no broker uses, to which something happens."""

    def __init__(self, data, args=()):
        self.data, self.args = data, list(args)

    def refuses(self, what, name, harm, word=''):
        """verify and serve refuse the copy with that file harmed, and say its name."""
        self.refuses_all(what, lambda copy: harm(os.path.join(copy, name)), name, word=word)

    def refuses_all(self, what, harm, name, word=''):
        """The same, where harm is done to the copy."""
        copy = self._harmed(harm)
        verify = subprocess.run([DUNLIN, 'journal', 'verify', copy], capture_output=True, text=True)
        text = (verify.stdout + verify.stderr).strip()
        ok = verify.returncode == 1 and name in text and word in text
        check(f'verify: {what}', ok, f'{verify.returncode} {text}')
        before = contents(copy)
        try:
            Server(*self.args, data=copy, start=False).start(timeout=10)
            check(f'serve: {what}', False, 'it starts')
        except RuntimeError as error:
            check(f'serve: {what}', name in str(error) and word in str(error), error)
        check('refusing changes nothing', contents(copy) == before, what)
        _servers.pop().stop()
        shutil.rmtree(copy)

    def starts(self, what, harm, count):
        """serve starts with the harmed copy, and so many jobs are in it."""
        copy = self._harmed(harm)
        s = Server(*self.args, data=copy)
        found = s.beanstalk().stats('stats')['current-jobs-ready']
        check(f'serve starts: {what}', found == str(count), found)
        _servers.pop().stop()
        shutil.rmtree(copy)

    def _harmed(self, harm):
        copy = tempfile.mkdtemp(prefix='dunlin-copy-')
        shutil.copytree(self.data, copy, dirs_exist_ok=True)
        harm(copy)
        return copy


def contents(directory):
    """What matters in a data directory: files by name, length and change."""
    names = sorted(n for n in os.listdir(directory) if n not in ('lock', 'probe'))
    stats = [os.stat(os.path.join(directory, name)) for name in names]
    return [(n, st.st_size, st.st_mtime_ns) for n, st in zip(names, stats)]


def dunlin_user(users, *args, input=''):
    """`dunlin user` on a file of users: its status, output and errors."""
    command = [DUNLIN, 'user', *args, '--users', users]
    run = subprocess.run(command, input=input, capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


def stop_all():
    for s in _servers:
        try:
            s.clean()
        except Exception as e:
            print('     cleaning:', e)
    _servers.clear()


atexit.register(stop_all)


class Beanstalk:
    def __init__(self, s):
        self.s, self.f = s, s.makefile('rb')

    def send(self, data):
        self.s.sendall(data if isinstance(data, bytes) else data.encode())

    def line(self):
        return self.f.readline().decode(errors='replace').rstrip('\r\n')

    def ask(self, text, body=None):
        self.send(text.encode() + b'\r\n' + (body + b'\r\n' if body is not None else b''))
        return self.reply()

    def reply(self):
        line = self.line()
        words = line.split(' ')
        if words[0] in ('RESERVED', 'FOUND'):
            data = self.f.read(int(words[2]) + 2)[:-2]
            return words[0], int(words[1]), data
        if words[0] == 'OK':
            return 'OK', self.f.read(int(words[1]) + 2)[:-2].decode()
        return line

    def put(self, body, pri=0, delay=0, ttr=60):
        return self.ask(f'put {pri} {delay} {ttr} {len(body)}', body)

    def stats(self, text):
        r = self.ask(text)
        return (
            dict(l.split(': ', 1) for l in r[1].split('\n')[1:] if ': ' in l) if r[0] == 'OK' else r
        )

    def close(self):
        self.f.close()
        self.s.close()


class RedisError(str):
    pass


class Redis:
    def __init__(self, s):
        self.s, self.f = s, s.makefile('rb')

    def send(self, *words):
        out = b'*%d\r\n' % len(words)
        for w in words:
            w = w if isinstance(w, bytes) else str(w).encode()
            out += b'$%d\r\n%s\r\n' % (len(w), w)
        self.s.sendall(out)

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def reply(self):
        line = self.f.readline()
        if not line:
            return 'CLOSED'
        kind, rest = line[:1], line[1:-2]
        if kind == b'+':
            return rest.decode()
        if kind == b'-':
            return RedisError(rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            n = int(rest)
            return None if n < 0 else self.f.read(n + 2)[:-2]
        if kind in (b'*', b'>', b'~'):
            n = int(rest)
            return None if n < 0 else [self.reply() for _ in range(n)]
        if kind == b'%':
            return {
                (k.decode() if isinstance(k, bytes) else k): self.reply() for k in [None] * 0
            } or [self.reply() for _ in range(2 * int(rest))]
        if kind == b'_':
            return None
        if kind == b',':
            return float(rest)
        if kind == b'#':
            return rest == b't'
        return line

    def close(self):
        self.f.close()
        self.s.close()


FAKETIME = next(
    (
        p
        for p in (
            '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
            '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
        )
        if os.path.exists(p)
    ),
    None,
)


class Clock:
    """A machine's clock that can be set while the broker runs (Debian: package faketime).

    Only the wall clock is changed; monotonic time goes on."""

    def __init__(self, offset):
        if not FAKETIME:
            print('SKIP needs libfaketime (apt install faketime)')
            sys.exit(77)
        self.path = tempfile.mktemp(prefix='dunlin-clock-')
        self.set(offset)
        self.env = dict(
            LD_PRELOAD=FAKETIME,
            FAKETIME_TIMESTAMP_FILE=self.path,
            FAKETIME_DONT_FAKE_MONOTONIC='1',
            DONT_FAKE_MONOTONIC='1',
            FAKETIME_NO_CACHE='1',
        )

    def set(self, offset):
        with open(self.path, 'w') as f:
            f.write(f'{offset:+d}\n')


def header_of(server, path, extra=''):
    """The head of an answer, by a socket, for streams that do not end."""
    c = server.raw('http', 5)
    c.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n{extra}\r\n'.encode())
    out = b''
    while b'\r\n\r\n' not in out:
        d = c.recv(4096)
        if not d:
            break
        out += d
    c.close()
    lines = out.split(b'\r\n\r\n')[0].decode().split('\r\n')
    return lines[0], {
        l.split(':', 1)[0].lower(): l.split(':', 1)[1].strip() for l in lines[1:] if ':' in l
    }


def request(server, text, wait=2):
    """Raw bytes to HTTP, and what comes within the time."""
    c = server.raw('http', wait)
    c.sendall(text if isinstance(text, bytes) else text.encode())
    out = b''
    try:
        while True:
            d = c.recv(65536)
            if not d:
                break
            out += d
            if out.endswith(b'}') or b'\r\n\r\n' in out and b'content-length: 0' in out.lower():
                break
    except (TimeoutError, socket.timeout):
        pass
    c.close()
    return out.decode(errors='replace')


def queue(server, name):
    from urllib.parse import quote

    r = server.http('GET', '/queues/' + quote(name, safe=''))
    return json.loads(r[2]) if r[0] == 200 else {'ready': 0, 'delayed': 0, 'leased': 0}
