#!/usr/bin/env python3
"""A directory whose count of openings (epoch) was lost could never be started again, and who had
lost the last file of a log had no way to go on with the rest.

Right: `journal repair` says what is wrong and what would be lost, and changes nothing; with
--accept-loss it mends that, and the broker starts with what is left. It mends no cut files."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

EPOCH = 'epoch'
SMALL = ('--segment-bytes', '1M', '--max-message-bytes', '65536')


def repair(copy, *args):
    r = subprocess.run(
        [DUNLIN, 'journal', 'repair', copy, *args], capture_output=True, text=True, timeout=60
    )
    return r.returncode, r.stdout + r.stderr


def mends(what, harm, count, word):
    copy = copies._harmed(harm)
    before = contents(copy)
    code, said = repair(copy)
    right = code == 1 and word in said and '--accept-loss' in said and 'to be repaired' in said
    check(f'{what}: it is told', right, (code, said))
    check(f'{what}: nothing is changed', contents(copy) == before, what)
    code, said = repair(copy, '--json')
    told = json.loads(said.splitlines()[0])
    right = code == 1 and not told['sound'] and not told['repaired'] and word in str(told)
    check(f'{what}: it is told as JSON', right, (code, said))
    code, said = repair(copy, '--accept-loss')
    check(f'{what}: it is mended', code == 0 and said.startswith('repaired: '), (code, said))
    code, said = repair(copy)
    check(f'{what}: it is sound then', code == 0 and 'nothing to repair' in said, (code, said))
    s = Server(*SMALL, data=copy)
    b = s.beanstalk()
    found = int(b.stats('stats')['current-jobs-ready'])
    check(f'{what}: it starts', count(found), found)
    b.put(b'another')
    s.kill()
    s.start()
    after = int(s.beanstalk().stats('stats')['current-jobs-ready'])
    check(f'{what}: it goes on', after == found + 1, (found, after))
    s.stop()
    shutil.rmtree(copy)


def refuses(what, harm, word):
    copy = copies._harmed(harm)
    before = contents(copy)
    for args in ((), ('--accept-loss',)):
        code, said = repair(copy, *args)
        check(f'{what} is not mended', code == 1 and word in said, (code, said))
    check(f'{what}: nothing is changed', contents(copy) == before, what)
    shutil.rmtree(copy)


def write(name, data, at=0):
    def harm(directory):
        with open(os.path.join(directory, name), 'r+b') as f:
            f.seek(at)
            f.write(data)

    return harm


def remove(name):
    return lambda directory: os.unlink(os.path.join(directory, name))


s = Server(*SMALL)
b = s.beanstalk()
for i in range(100):
    b.put(b'%d' % i * 20_000)
code, said = repair(s.data)
check('a directory in use is refused', code == 1 and 'in use' in said, (code, said))
s.kill()
copies = Copies(s.data, SMALL)
code, said = repair(s.data, '--accept-loss')
check('a sound one is left alone', code == 0 and 'nothing to repair' in said, (code, said))
code, said = repair(os.path.join(s.data, 'nowhere'), '--accept-loss')
right = code == 1 and not os.path.exists(os.path.join(s.data, 'nowhere'))
check('none is made where there is none', right, (code, said))

dump = subprocess.run([DUNLIN, 'journal', 'dump', s.data, '--json'], capture_output=True, text=True)
batches = [json.loads(line) for line in dump.stdout.splitlines() if '"batch"' in line]
last = max(batch['file'] for batch in batches)
all_of_them = lambda found: found == 100
some = lambda found: 0 < found < 100
mends('epoch is gone', remove(EPOCH), all_of_them, EPOCH)
mends('epoch is empty', lambda d: os.truncate(os.path.join(d, EPOCH), 0), all_of_them, EPOCH)
mends('epoch is damaged', write(EPOCH, b'\xff', 20), all_of_them, EPOCH)
mends('the last segment is gone', remove(last), some, last)
refuses('a cut segment', lambda d: os.truncate(os.path.join(d, last), 8192), 'too short')
refuses('a damaged log', write('0000000000000001.segment', b'\0' * 512, 8192), 'corrupt')
done()
