#!/usr/bin/env python3
"""A file is gone after an incomplete restore, and a broker started empty without a word.

Right: a start and verify refuse, and name the file: also the only segment that holds anything, all
segments at once, and `epoch`. A spare that holds nothing may be gone."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

FIRST = '0000000000000001.segment'

s = Server()
b = s.beanstalk()
for i in range(20):
    b.put(b'job %d' % i)
s.kill()
copies = Copies(s.data)
copies.refuses('the only segment is missing', FIRST, os.unlink, 'missing')
copies.refuses('epoch is missing', 'epoch', os.unlink, 'missing')
spares = sorted(f for f in os.listdir(s.data) if f.endswith('.segment'))[1:]
copies.starts('without spares', lambda d: [os.unlink(os.path.join(d, f)) for f in spares], 20)


def only(*kept):
    def harm(directory):
        for f in os.listdir(directory):
            if not f.startswith(kept):
                os.unlink(os.path.join(directory, f))

    return harm


copies.refuses_all('all segments are missing', only('epoch', 'snapshot'), FIRST)
copies.refuses_all('there is nothing but segments', only('0'), 'epoch')

# A stop in order leaves a snapshot, which tells of a log.
s.start()
s.stop()
copies.refuses_all('all but the snapshots are missing', only('snapshot'), 'epoch')
copies.starts('without snapshots where the log is whole', only('0', 'epoch'), 20)
done()
