#!/usr/bin/env python3
"""An older `epoch`, or an older copy of a segment, put back over a directory that went on.

A start confirmed on top, and after a kill -9 what it had confirmed was lost, or what had been
deleted came back. Right: nothing confirmed is ever lost: the start refuses and names the file, or
the file does no harm. An older copy of the whole directory is a restore, and starts."""

import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

ARGS = ('--segment-bytes', '1048576', '--max-message-bytes', '32768', '--memory-limit', '64M')


def ids(server):
    found, after = set(), ''
    while True:
        path = f'/queues/default/messages?browse&max=1000{after}'
        status, _, data = server.http('GET', path)
        assert status == 200, data
        page = json.loads(data)
        found |= {int(message['id']) for message in page['messages']}
        if not page.get('next'):
            return found
        after = f'&after={page["next"]}'


def puts(server, count, size=500):
    b = server.beanstalk()
    new = {int(b.put(b'm' * size).split()[1]) for _ in range(count)}
    b.close()
    return new


def old_epoch():
    s = Server(*ARGS)
    live = puts(s, 20)
    s.kill()
    old = s.data + '.epoch'
    shutil.copy(os.path.join(s.data, 'epoch'), old)
    for _ in range(6):
        s.start()
        live |= puts(s, 20)
        s.kill()
    lost = 0
    for _ in range(8):
        shutil.copy(old, os.path.join(s.data, 'epoch'))
        s.start()
        lost += len(live - ids(s))
        live |= puts(s, 5)
        s.kill()
    check('an older epoch costs nothing', lost == 0, f'{lost} confirmed messages lost')
    os.unlink(old)
    s.clean()


def old_files():
    draw = random.Random(3)
    s = Server(*ARGS)
    live = puts(s, 300, 3000)
    s.kill()
    seen = {'refused': 0, 'harmless': 0, 'whole': 0}
    wrong = []
    for _ in range(12):
        old, had = tempfile.mkdtemp(prefix='dunlin-old-'), set(live)
        shutil.copytree(s.data, old, dirs_exist_ok=True)
        s.start()
        b = s.beanstalk()
        for number in draw.sample(sorted(live), draw.randint(0, min(len(live), 200))):
            assert b.ask(f'delete {number}') == 'DELETED'
            live.discard(number)
        live |= puts(s, draw.randint(20, 250), 3000)
        s.stop() if draw.random() < 0.5 else s.kill()
        for name in os.listdir(old):
            if is_changed(old, s.data, name):
                outcome = put_back(s.data, os.path.join(old, name), live)
                seen[outcome] = seen.get(outcome, 0) + 1
                if outcome not in ('refused', 'harmless'):
                    wrong.append((name, outcome))
        restored = Server(*ARGS, data=old)
        seen['whole'] += ids(restored) == had
        restored.kill()
        shutil.rmtree(old)
    note(f'{seen}')
    check('an older file is refused, or does no harm', not wrong, wrong[:5])
    check('some are refused', seen['refused'] > 5, seen)
    check('an older whole directory starts with what it had', seen['whole'] == 12, seen)


def is_changed(old, new, name):
    paths = [os.path.join(d, name) for d in (old, new)]
    if name in ('lock', 'probe') or not os.path.exists(paths[1]):
        return False
    before, after = (open(path, 'rb').read() for path in paths)
    return before != after


def put_back(data, file, live):
    copy = tempfile.mkdtemp(prefix='dunlin-mix-')
    shutil.copytree(data, copy, dirs_exist_ok=True)
    shutil.copy(file, copy)
    s = Server(*ARGS, data=copy, start=False)
    try:
        s.start()
        found = ids(s)
        outcome = 'harmless' if found == live else 'lost' if live - found else 'came back'
        s.kill()
    except RuntimeError as error:
        names_one = any(word in str(error) for word in ('.segment', 'epoch', 'snapshot-', 'frame '))
        outcome = 'refused' if names_one else f'fails: {error}'
    shutil.rmtree(copy)
    return outcome


def other_directories():
    one, other = Server(*ARGS), Server(*ARGS)
    for s in (one, other):
        puts(s, 20)
        s.kill()
    copies = Copies(one.data, ARGS)
    first = '0000000000000001.segment'
    for name in (first, 'epoch'):
        source = os.path.join(other.data, name)
        what = f'{name} of another directory'
        copies.refuses(what, name, lambda p: shutil.copy(source, p), 'another data directory')
    moved = os.path.join('{}', '0000000000000099.segment')

    def double(directory):
        shutil.copy(os.path.join(directory, first), moved.format(directory))

    copies.refuses_all('a segment is there twice', double, '0000000000000099.segment')


old_epoch()
old_files()
other_directories()
done()
