#!/usr/bin/env python3
"""Users with quotas: each protocol names the quota, other users notice nothing.

Right: what a user has counts over restarts; a user that is ahead of its rate is slowed, and one
that floods beyond a quota is refused; the commands of another user are answered as before. The
figures of that are printed."""

import base64
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

PASSWORD = 'correct horse battery'
folder = tempfile.mkdtemp(prefix='dunlin-users-')
users = folder + '/users.toml'


def http(method, path, body=None, name='ann'):
    credentials = base64.b64encode(f'{name}:{PASSWORD}'.encode()).decode()
    return s.http(method, path, body, headers={'Authorization': f'Basic {credentials}'})


class Redis:
    def __init__(self, name):
        self.c = socket.create_connection(('127.0.0.1', s.ports['redis']), 20)
        self.c.settimeout(60)
        self.file = self.c.makefile('rb')
        self.ask('AUTH', name, PASSWORD)

    def close(self):
        self.file.close()
        self.c.close()

    def send(self, *words):
        words = [word if isinstance(word, bytes) else word.encode() for word in words]
        said = b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)
        self.c.sendall(said)

    def ask(self, *words):
        self.send(*words)
        return self.file.readline().decode().rstrip()


def jobs(name='ann'):
    c = socket.create_connection(('127.0.0.1', s.ports['beanstalkd']), 20)
    c.settimeout(30)
    c.sendall(f'auth {name} {PASSWORD}\r\n'.encode())
    assert c.recv(100) == b'OK\r\n'
    return c


for name in ('ann', 'bob'):
    allow = 'send,receive,look,manage *'
    add = ['add', name, '--stdin', '--allow', allow]
    code, _, err = dunlin_user(users, *add, input=PASSWORD + '\n')
    check(f'user {name} is added', code == 0, err)
limits = ('messages=100', 'bytes=1M', 'queues=2', 'links=8', 'connections=20', 'byte-rate=256K')
code, _, err = dunlin_user(users, 'limit', 'ann', *limits)
check('limits are set', code == 0, err)
code, out, _ = dunlin_user(users, 'limit', 'ann')
check('limits are shown', 'messages' in out and '1048576' in out, out)
s = Server('--users', users)

# The messages and queues of a user.
ann = Redis('ann')
elements = ['x'] * 99
check('99 elements', ann.ask('RPUSH', 'jobs', *elements) == ':99')
said = b'*3\r\n$5\r\nRPUSH\r\n$4\r\njobs\r\n$1\r\nx\r\n' * 3
ann.c.sendall(said)
replies = [ann.file.readline() for _ in range(3)]
refused = [reply.startswith(b'-OOM') for reply in replies[1:]]
check('a hundredth of three at once', replies[0] == b':100\r\n' and all(refused), replies)
reply = ann.ask('RPUSH', 'jobs', 'x')
check('no more by Redis', reply.startswith('-OOM user ann has') and 'messages=100' in reply, reply)
status, headers, body = http('POST', '/queues/jobs/messages', b'x')
problem = json.loads(body)
check('no more by HTTP', status == 429 and 'messages=100' in problem['detail'], body)
check('and when to try again', 'retry-after' in {key.lower() for key in dict(headers)}, headers)
c = jobs()
c.sendall(b'put 0 0 60 1\r\nx\r\n')
check('no more by beanstalkd', c.recv(100) == b'OUT_OF_MEMORY\r\n')
bob = Redis('bob')
check('another user is served', bob.ask('RPUSH', 'jobs', 'x') == ':101')
s.kill()
s.start()
ann, bob = Redis('ann'), Redis('bob')
reply = ann.ask('RPUSH', 'jobs', 'x')
check('the same after a crash', 'messages=100' in reply, reply)
check('what others take counts no more', bob.ask('LPOP', 'jobs', '50').startswith('*50'))
for _ in range(100):
    bob.file.readline()
check('there is room again', bob.ask('PING') == '+PONG' and ann.ask('RPUSH', 'more', 'x') == ':1')
reply = ann.ask('RPUSH', 'third', 'x')
check('a third queue is too many', reply.startswith('-ERR') and 'queues=2' in reply, reply)
c = jobs()
replies = []
for number in range(10):
    c.sendall(f'watch t{number}\r\n'.encode())
    replies.append(c.recv(100))
check('a tube is a queue', b'OUT_OF_MEMORY\r\n' in replies, replies)
c.close()
many = []
try:
    while len(many) < 40:
        many.append(Redis('ann'))
    last = many[-1].ask('PING')
except OSError as error:
    last = str(error)
check('connections are counted', last.startswith('-NOAUTH'), last)
[it.close() for it in many]


# Others notice nothing.
def served(count=400):
    spans = []
    for _ in range(count):
        begin = time.perf_counter()
        assert bob.ask('RPUSH', 'bobs', 'x').startswith(':')
        spans.append(time.perf_counter() - begin)
    spans.sort()
    return spans[count // 2] * 1e6, spans[count * 99 // 100] * 1e6


time.sleep(1)
alone = served()
flood, over = [], threading.Event()
end = time.time() + 30
while len(flood) < 8 and time.time() < end:
    it = Redis('ann')
    if it.ask('PING') == '+PONG':
        flood.append(it)
check('closed connections count no more', len(flood) == 8, len(flood))
replies = []


def push(it):
    block = 'x' * 8192
    try:
        while not over.is_set():
            replies.append(it.ask('RPUSH', 'jobs', block))
    except OSError:
        pass


begin = time.time()
threads = [threading.Thread(target=push, args=(it,)) for it in flood]
[it.start() for it in threads]
time.sleep(4)
beside = served()
over.set()
[it.join() for it in threads]
span = time.time() - begin
sent = len(replies) * 8192
check('a flood is refused', any(it.startswith('-OOM') for it in replies), len(replies))
most = 256 * 1024 * (span + 2) + 9 * 65536
check('a flood is slowed to its rate', sent < most, (sent, most))
note(f'bob alone: p50 {alone[0]:.0f} us, p99 {alone[1]:.0f} us')
note(f'bob beside the flood: p50 {beside[0]:.0f} us, p99 {beside[1]:.0f} us')
note(f'ann sent {sent / span / 1024:.0f} KiB/s, her quota is 256 KiB/s')
dunlin_user(users, 'limit', 'ann', 'messages=none')
s.process.send_signal(signal.SIGHUP)
end = time.time() + 40
while (reply := ann.ask('RPUSH', 'jobs', 'x')).startswith('-OOM') and time.time() < end:
    time.sleep(0.3)
check('a changed limit holds at once', reply.startswith(':'), reply)
check('the broker stops in good order', s.stop() == 0)
shutil.rmtree(folder)
done()
