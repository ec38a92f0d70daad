#!/usr/bin/env python3
"""A request that memory can never hold is refused at once, and no other sender waits for it: one
HTTP request for 200,000 messages, and an AMQP transaction whose sender goes on and on.
"""

import threading

from dlib import *

s = Server('--memory-limit', '64M')
slowest = 0
stop = threading.Event()


def neighbour():
    global slowest
    b, r = s.beanstalk(60), s.redis(60)
    while not stop.wait(0.01):
        t = time.time()
        assert b.put(b'n' * 200).startswith('INSERTED')
        kind, job, _ = b.ask('reserve')
        b.ask(f'delete {job}')
        r.ask('LPUSH', 'neighbour', 'x')
        r.ask('RPOP', 'neighbour')
        slowest = max(slowest, time.time() - t)


thread = threading.Thread(target=neighbour)
thread.start()
time.sleep(0.3)
t = time.time()
status, _, body = s.http('POST', '/queues/evil/messages?count=200000', b'x' * 1000, timeout=60)
check('200,000 messages that memory cannot hold are refused', status in (413, 507), (status, body))
check('... at once', time.time() - t < 5, f'{time.time() - t:.1f} s')

a = s.amqp()
h, _ = a.attach(False, source=SOURCE(None), target=COORDINATOR)
a.expect('flow')
a.transfer(h, message(D(ULong(0x31), [None]), value='value'))
state = a.expect('disposition')[4]
txn = state.v[0]
p = a.sender('evil')
outcome, sent, t = None, 0, time.time()
while outcome is None and sent < 4000 and time.time() - t < 20:
    a.transfer(p, message(b'x' * 20000), state=D(ULong(0x34), [txn, None]))
    sent += 1
    f = a.expect('disposition', 'detach', 'close', timeout=20)
    if f is None or f.name != 'disposition':
        outcome = f or 'no answer'
    elif f[4].d == 0x34 and f[4].v[1] != ACCEPTED or f[4].d not in (0x34, 0x24):
        outcome = f[4]
waited = time.time() - t
check('an endless transaction is refused', 'resource-limit' in repr(outcome), outcome)
check('... and keeps nobody waiting until a time is over', waited < 15, f'{waited:.1f} s')
stop.set()
thread.join()
check('a neighbour never waited for them', slowest < 5, f'{slowest:.1f} s')
done()
