#!/usr/bin/env python3
"""A Spring listener that fails at once burned ten attempts in 50 ms, and a client that released
what it got spun 14,000 times a second. An outage of a second took all to the dead letters.

Right: the rules redelivery-delay, -factor, -max and -jitter hide what failed or was released, for
clients of all protocols. A client that names a delay overrules them, and a restart keeps it."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

QUEUES = (
    'work:redelivery-delay=300ms',
    'work:redelivery-factor=2',
    'work:redelivery-max=1s',
    'work:max-delivery-attempts=4',
    'slow:redelivery-delay=1h',
)
s = Server(*(word for q in QUEUES for word in ('--queue', q)))
a = s.amqp()
work, slow = a.sender('work'), a.sender('slow')
FAILED_DELIVERY = MODIFIED(failed=True)


def took(client, timeout=5):
    """Seconds until the next delivery, and its number."""
    begun = time.monotonic()
    got = client.take(timeout)
    return time.monotonic() - begun, got[0][1] if got else None


c = s.amqp(container='listener')
c.receiver('work', 1000)
a.post(work, message(b'poison', header=[True]))
delays = []
_, delivery = took(c)
for _ in range(3):
    c.settle(delivery, FAILED_DELIVERY)
    seconds, delivery = took(c)
    delays.append(round(seconds, 2))
    if delivery is None:
        break
long_enough = len(delays) == 3 and all(d >= m - 0.05 for d, m in zip(delays, (0.3, 0.6, 1.0)))
check('a listener that fails fast is slowed, more each time', long_enough, delays)
c.settle(delivery, FAILED_DELIVERY)
end = time.time() + 5
while queue(s, 'DLQ')['ready'] < 1 and time.time() < end:
    time.sleep(0.02)
check('the fourth failure is the last', queue(s, 'DLQ')['ready'] == 1, queue(s, 'DLQ'))

a.post(work, message(b'behind', header=[True]))
a.post(work, message(b'next', header=[True]))
_, first = took(c)
c.settle(first, FAILED_DELIVERY)
seconds, second = took(c)
check('what is behind it is delivered meanwhile', second is not None and seconds < 0.3, seconds)
c.settle(second)
c.settle(took(c)[1])

d = s.amqp(container='releaser')
d.receiver('slow', 1000)
a.post(slow, message(b'released', header=[True]))
d.settle(took(d)[1], RELEASED)
check('what is released is hidden as well', took(d, 0.5)[1] is None)
check('it counts as delayed', queue(s, 'slow')['delayed'] == 1, queue(s, 'slow'))
s.kill()
s.start()
check('a kill -9 keeps the delay', queue(s, 'slow')['delayed'] == 1, queue(s, 'slow'))
a, d = s.amqp(), s.amqp(container='delayer')
d.receiver('slow', 1000)
slow = a.sender('slow')
a.post(slow, message(b'by name', header=[True]))
state = MODIFIED(failed=True, annotations={Sym('x-opt-delivery-delay'): 200})
d.settle(took(d)[1], state)
seconds, delivery = took(d)
check('a consumer of AMQP names a delay', delivery is not None and seconds >= 0.15, seconds)
d.settle(delivery)
d.close()

status, headers, _ = s.http('POST', '/queues/slow/messages', b'by http')
check('sent by HTTP', status in (200, 201), status)


def lease():
    status, headers, _ = s.http('GET', '/queues/slow/messages')
    return headers.get('dunlin-lease') if status == 200 else None


def gave_back(how):
    """Whether the message is hidden after that."""
    token = lease()
    status, _, body = s.http('POST', f'/leases/{token}/{how}')
    check(f'HTTP: {how} is done', status in (200, 204), (status, body))
    return queue(s, 'slow')['delayed'] > 1


check('HTTP: a release that names a delay of zero is at once', not gave_back('release?delay=0s'))
check('HTTP: fail hides it for the delay of the queue', gave_back('fail'))

b = s.beanstalk()
b.ask('use slow')
b.ask('watch slow')
b.put(b'job')
_, job, _ = b.ask('reserve-with-timeout 5')
b.ask(f'release {job} 0 0')
again = b.ask('reserve-with-timeout 0')
check('beanstalkd: a release says its delay itself', again[:2] == ('RESERVED', job), again)
done()
