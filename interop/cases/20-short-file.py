#!/usr/bin/env python3
"""A copy of the data directory that broke off (disk full, scp interrupted) has a short file.

Segments are filled to their whole length before they are used, so a short one has lost something:
verify and serve name it and refuse. So they do where a file is empty, or a directory."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server('--segment-bytes', '1048576', '--max-message-bytes', '65535')
b = s.beanstalk()
for i in range(100):
    assert b.put(b'%06d' % i + b'x' * 60000).startswith('INSERTED')
s.kill()
copies = Copies(s.data)
names = sorted(f for f in os.listdir(s.data) if f.endswith('.segment'))


def cut(path, size):
    os.truncate(path, size)


def replace_by_directory(path):
    os.unlink(path)
    os.mkdir(path)


for name in (names[0], names[len(names) // 2], names[-1]):
    size = os.path.getsize(os.path.join(s.data, name))
    for left in (size - 1, size // 2 // 4096 * 4096, 4096, 100, 0):
        copies.refuses(f'{name} cut to {left} of {size}', name, lambda p: cut(p, left), 'too short')
    copies.refuses(f'{name} is a directory', name, replace_by_directory)
for left in (59, 8, 0):
    copies.refuses(f'epoch cut to {left}', 'epoch', lambda p: cut(p, left))
copies.refuses('epoch is a directory', 'epoch', replace_by_directory)
copies.refuses('snapshot-a is a directory', 'snapshot-a', replace_by_directory)

# A snapshot that counts, as a stop in order leaves it.
s.start()
s.stop()
newest = max(('snapshot-a', 'snapshot-b'), key=lambda f: os.path.getmtime(os.path.join(s.data, f)))
copies.refuses(f'{newest} cut to 4196', newest, lambda p: cut(p, 4196), 'too short')
copies.starts('nothing was harmed', lambda directory: None, 100)
done()
