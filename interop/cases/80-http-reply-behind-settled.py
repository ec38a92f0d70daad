#!/usr/bin/env python3
"""An HTTP answer whose body has left memory is sent although the log holds frames for which no
client waits: here those of AMQP deliveries that their consumer settled without asking for an
answer. A settlement is durable soon after, also when HTTP waits for it: kill -9 must not undo it.
"""

import random

from dlib import *

WAIT = 3
random.seed(1)
s = Server('--memory-limit', '64M')
b = s.beanstalk()
b.send('use large\r\n')
b.line()
body = bytes(12000)
for _ in range(120):
    b.send((b'put 1 0 60 12000\r\n' + body + b'\r\n') * 50)
    for _ in range(50):
        b.line()
b.send('use small\r\n')
b.line()
b.send(b'put 1 0 60 1\r\nx\r\n' * 500)
for _ in range(500):
    b.line()
a = s.amqp()
a.receiver('small', 500)
deliveries = [a.take()[0][1] for _ in range(500)]
time.sleep(0.5)
c = http.client.HTTPConnection('127.0.0.1', s.ports['http'], timeout=WAIT)
unanswered = settled = 0
for delivery in deliveries[:300]:
    a.settle(delivery)
    settled += 1
    time.sleep(random.random() * 0.003)
    try:
        c.request('GET', f'/messages/{random.randint(1, 6000)}')
        c.getresponse().read()
    except TimeoutError:
        unanswered += 1
        break
check('each GET of a body that left memory is answered', unanswered == 0, f'at try {settled}')
time.sleep(0.5)
a.s.setblocking(True)
s.kill()
s.start()
left = queue(s, 'small')['ready']
check('what was settled half a second before kill -9 stays settled', left <= 500 - settled, left)
done()
