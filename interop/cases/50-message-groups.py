#!/usr/bin/env python3
"""ibm-messaging/mq-jms-spring#115, rabbitmq/rabbitmq-server#4974 and #262,
smallrye/smallrye-reactive-messaging#2295: applications from ActiveMQ or Artemis rely on JMSXGroupID
(group-id of AMQP), and their groups were spread over all consumers.

Right: one consumer at a time has a group and gets its messages in order, over lost connections,
restarts and redelivery delays. A consumer that goes, and a message with JMSXGroupSeq -1, give the
group up. A receiver that leases, by any protocol, has the group while it holds a message of it."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dlib import *

s = Server('--queue', 'slow:redelivery-delay=500ms')
sender = s.amqp()
links = {}


def post(queue, group, body, last=False):
    if queue not in links:
        links[queue] = sender.sender(queue)
    sequence = UInt(2**32 - 1) if last else None
    properties = props(group_id=group, group_sequence=sequence)
    sender.post(links[queue], message(body.encode(), header=[True], properties=properties))


def taken(client, count=1000, timeout=0.5):
    """What comes, as (group, body, number of the delivery)."""
    found = []
    while len(found) < count:
        got = client.take(timeout)
        if not got:
            break
        parts = sections(got[1])
        found.append((parts['properties'][10], bytes(parts['data']).decode(), got[0][1]))
    return found


def consumer(name, queue, credit=200):
    client = s.amqp(container=name)
    client.receiver(queue, credit)
    return client


a, b = consumer('a', 'g'), consumer('b', 'g')
for i in range(60):
    post('g', f'g{i % 3}', str(i))
of_a, of_b = taken(a), taken(b)
groups = [{group for group, _, _ in got} for got in (of_a, of_b)]
check('each group has one consumer', not groups[0] & groups[1], groups)
check('both consumers have some', all(groups), groups)
check('all came', len(of_a) + len(of_b) == 60, (len(of_a), len(of_b)))
for got in (of_a, of_b):
    numbers = [int(body) for _, body, _ in got]
    check('in order', numbers == sorted(numbers), numbers)

# The one with the most messages dies; what it had goes to the other, before what comes now.
dies, lives = (a, b) if len(of_a) > len(of_b) else (b, a)
lost = of_a if dies is a else of_b
dies.s.close()
moved = groups[0 if dies is a else 1]
for group in sorted(moved):
    post('g', group, '100')
again = taken(lives)
for group in sorted(moved):
    numbers = [int(body) for name, body, _ in again if name == group]
    expected = [int(body) for name, body, _ in lost if name == group] + [100]
    check(f'{group} goes on in order after its consumer is lost', numbers == expected, numbers)

# A message that ends its group: what follows may go to another once it is settled.
c = consumer('c', 'end')
post('end', 'x', 'first')
d = consumer('d', 'end')
post('end', 'x', 'last', last=True)
post('end', 'x', 'next')
first = taken(c)
bodies = [body for _, body, _ in first]
check('a group stays until its last message', bodies == ['first', 'last'], bodies)
check('the next waits until that is settled', not taken(d))
for _, _, delivery in first:
    c.settle(delivery)
after = taken(c, timeout=0.3) + taken(d)
check('and goes to one of them then', [body for _, body, _ in after] == ['next'], after)

# A message that waits for its redelivery holds up its group, and no other.
e = consumer('e', 'slow', credit=1)
post('slow', 'x', '1')
post('slow', 'x', '2')
post('slow', 'y', '3')
(_, body, delivery), = taken(e, 1)
e.settle(delivery, MODIFIED(failed=True))
e.flow(0, credit=10, count=1)
order = [body for _, body, _ in taken(e, 3, timeout=2)]
check('nothing of a group overtakes what is redelivered', order == ['3', '1', '2'], order)

# A group that is stored is one after a restart too, for receivers of any protocol.
for i in range(4):
    status, _, body = s.http('POST', '/queues/web/messages', str(i), {'Dunlin-Group': 'h'})
    check('sent by HTTP', status in (200, 201), (status, body))
status, _, body = s.http('POST', '/queues/web/messages', 'other', {'Dunlin-Group': 'i'})
s.kill()
s.start()


def lease():
    status, headers, body = s.http('GET', '/queues/web/messages')
    return (body, headers['dunlin-lease'], headers.get('dunlin-group')) if status == 200 else None


one, two = lease(), lease()
bodies = (one[0], two[0])
check('HTTP: a receiver has a group while it leases', bodies == (b'0', b'other'), bodies)
check('the group is told', (one[2], two[2]) == ('h', 'i'), (one, two))
check('a third gets nothing of it', lease() is None)
job = s.beanstalk()
job.ask('watch web')
got = job.ask('reserve-with-timeout 0')
check('nor does beanstalkd', got == 'TIMED_OUT', got)
s.http('DELETE', f'/leases/{one[1]}')
got = job.ask('reserve-with-timeout 5')
check('beanstalkd: the next one of it when that is settled', got[0] == 'RESERVED', got)
check('and the receivers of HTTP wait for it', lease() is None)
f = consumer('f', 'web')
check('and those of AMQP', not taken(f))
job.ask(f'delete {got[1]}')
rest = [body for _, body, _ in taken(f)]
check('then a consumer of AMQP has the rest', rest == ['2', '3'], rest)
done()
