#!/usr/bin/env python3
"""Whose log was damaged in the middle, or cut by a copy that broke off, could read it with
`journal dump` and could not go on: neither serve nor `journal repair` takes such a directory.

Right: `journal salvage DIR --to NEW` only reads DIR, copies everything but damaged records into a
new directory, and names what is lost. The broker starts with NEW and goes on."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

SMALL = ('--segment-bytes', '1M', '--max-message-bytes', '65536')
COUNT = 100
FIRST = '0000000000000001.segment'


def salvage(source, to, *args):
    r = subprocess.run(
        [DUNLIN, 'journal', 'salvage', source, '--to', to, *args],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return r.returncode, r.stdout + r.stderr


def body(number):
    return b'%d ' % number * 5_000


def bodies_of(directory):
    """The jobs that a broker finds in it, and that it takes one more."""
    s = Server(*SMALL, data=directory)
    b = s.beanstalk()
    found = set()
    for _ in range(int(b.stats('stats')['current-jobs-ready'])):
        _, job, got = b.ask('reserve-with-timeout 1')
        found.add(bytes(got))
        b.ask(f'delete {job}')
    b.put(b'another')
    s.stop()
    return found


def saves(what, harm, least, words):
    """So many jobs at least are in the copy, and words are said."""
    copy = copies._harmed(harm)
    verify = subprocess.run([DUNLIN, 'journal', 'verify', copy], capture_output=True, text=True)
    check(f'{what}: verify refuses it', verify.returncode == 1, verify.stdout)
    check(f'{what}: salvage is named', 'journal salvage' in verify.stderr, verify.stderr)
    before = contents(copy)
    code, said = salvage(copy, copy + '.new')
    right = code == 0 and all(word in said for word in words)
    check(f'{what}: what is lost is told', right, (code, said))
    check(f'{what}: the directory is only read', contents(copy) == before, what)
    code, said = salvage(copy, copy + '.json', '--json')
    told = json.loads(said)
    check(f'{what}: it is told as JSON', code == 0 and not told['whole'], said)
    found = bodies_of(copy + '.new')
    wrong = found - {body(number) for number in range(COUNT)}
    check(f'{what}: {least} of {COUNT} are there', least <= len(found) <= COUNT, len(found))
    check(f'{what}: no body is another', not wrong, len(wrong))
    check(f'{what}: JSON counts them', told['ready'] == len(found), (told['ready'], len(found)))
    for directory in (copy, copy + '.new', copy + '.json'):
        shutil.rmtree(directory)


def write(name, data, at):
    def harm(directory):
        with open(os.path.join(directory, name), 'r+b') as f:
            f.seek(at)
            f.write(data)

    return harm


s = Server(*SMALL)
b = s.beanstalk()
for number in range(COUNT):
    b.put(body(number))
new = s.data + '.new'
code, said = salvage(s.data, new)
check('a directory in use is refused', code == 1 and 'in use' in said, (code, said))
s.kill()
left = [path for path in (new, new + '.unfinished') if os.path.exists(path)]
check('nothing is left of that', not left, left)
copies = Copies(s.data, SMALL)

code, said = salvage(s.data, new)
check('of a sound one nothing is lost', code == 0 and 'nothing is known to be lost' in said, said)
code, said = salvage(s.data, new)
check('a directory that is not empty is refused', code == 2 and 'not empty' in said, (code, said))
check('all are there', bodies_of(new) == {body(number) for number in range(COUNT)})
shutil.rmtree(new)
os.mkdir(new + '.unfinished')
code, said = salvage(s.data, new)
check('what is left of another is kept', code == 2 and 'remove it first' in said, (code, said))
os.rmdir(new + '.unfinished')
code, said = salvage(os.path.join(s.data, 'nowhere'), new)
check('where nothing is nothing is made', code == 1 and not os.path.exists(new), (code, said))
code, said = salvage(s.data, '/proc/dunlin-new')
check('where nothing can be made it is told', code == 1 and '/proc' in said, (code, said))

size = os.path.getsize(os.path.join(s.data, FIRST))
saves('a damaged body', write(FIRST, b'\xff' * 100, 20 * 4096), COUNT - 2, ('lost: frame',))
saves('a damaged header', write(FIRST, b'\xff' * 100, 0), COUNT, (FIRST, 'header'))
saves(
    'a cut segment',
    lambda d: os.truncate(os.path.join(d, FIRST), size // 2),
    COUNT // 2,
    (FIRST, 'was cut', 'lost: frame'),
)
saves(
    'the first segment is gone',
    lambda d: os.unlink(os.path.join(d, FIRST)),
    COUNT // 10,
    ('lost: frames 1 to ',),
)
saves(
    'epoch is damaged and the log too',
    lambda d: (write('epoch', b'\xff', 20)(d), write(FIRST, b'\xff', 30 * 4096)(d)),
    COUNT - 2,
    ('epoch', 'lost: frame'),
)


def flip(directory, body_part):
    """Damages a byte of a body, wherever that lies."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        data = open(path, 'rb').read() if name.endswith('.segment') else b''
        if body_part in data:
            write(name, b'\xfe', data.index(body_part) + len(body_part) - 1)(directory)
            return
    check('the body is in the log', False, body_part[:20])


def rest_of(what, fill, harm, words, sig=signal.SIGKILL):
    """The broker that goes on with what is left of what fill did."""
    source = Server(*SMALL)
    fill(source)
    source.stop(sig)
    harm(source.data)
    code, said = salvage(source.data, source.data + '.new')
    right = code == 0 and all(word in said for word in words)
    check(f'{what}: it is salvaged', right, (code, said))
    return Server(*SMALL, data=source.data + '.new')


def reordered(source):
    r = source.redis()
    r.ask('RPUSH', 'l', 'a', 'b', 'c')
    r.ask('LINSERT', 'l', 'BEFORE', 'b', 'x')
    r.ask('RENAME', 'l', 'k')


s = rest_of('elements put elsewhere', reordered, lambda d: None, ('nothing is known',))
found = s.redis().ask('LRANGE', 'k', '0', '-1')
check('elements put elsewhere: they are in order', 'x' in str(found), found)


def five(source):
    b = source.beanstalk()
    for number in range(5):
        b.put(b'number %d' % number)


s = rest_of(
    'the last message is lost',
    five,
    lambda d: flip(d, b'number 4'),
    ('lost: message 5',),
    signal.SIGTERM,
)
said = s.beanstalk().put(b'another')
check('the last message is lost: its number is not given again', said == 'INSERTED 6', said)

FAKE = (20_000).to_bytes(4, 'little') + bytes(16) + b'\x02\0\0\0'


def imitating(source):
    b = source.beanstalk()
    b.put(b'begins here' + FAKE * 2_500)
    for number in range(60):
        b.put(b'small %d' % number)


s = rest_of(
    'a body that imitates frames', imitating, lambda d: flip(d, b'begins here'), ('lost: frame',)
)
found = int(s.beanstalk().stats('stats')['current-jobs-ready'])
check('a body that imitates frames: others are found', found >= 60, found)

code, said = salvage(copies.data, os.path.join(copies.data, 'new'))
check('a copy inside of the directory is refused', code == 2 and 'inside' in said, (code, said))
done()
