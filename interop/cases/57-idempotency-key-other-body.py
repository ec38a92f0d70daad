#!/usr/bin/env python3
"""An idempotency key, or a deduplication id of AMQP, that comes again with another message.

Reports: jcagarcia/grape-idempotency#13, josipmusa/idempotency4j#12, novuhq/novu PR 4531; the draft
of the header (2.7) asks for 422. Dunlin answered 201 with the number of the first message, and the
second was nowhere. Right: refused where body, content type or properties differ, over kill -9,
batches, transactions and protocols; answered as the first time where only the rest differs."""

from dlib import *

PAY, AUDIT = '/queues/pay/messages', '/queues/audit/messages'
FIRST = {'Idempotency-Key': 'k1', 'Content-Type': 'text/plain', 'Dunlin-Property-N': '1'}


def post(path, body, headers, **more):
    return s.http('POST', path, body, dict(headers, **more))


def same(what, answer, first=None):
    status, _, body = answer
    check(f'{what} is answered as first', status in (200, 201) and body == (first or a[2]), body)


def refused(what, answer):
    text = answer[2].decode()
    is_so = answer[0] == 422 and 'problem:idempotency-key-reused' in text
    check(f'{what} is refused with 422', is_so, (answer[0], text))


def send(body, key):
    return json.dumps({'send': [{'queue': 'pay', 'body': body, 'key': key}]})


s = Server('--dedup-window', '1h')
a = post(PAY, b'10 to alice', FIRST)
for round in ('at once', 'after kill -9', 'after a restart with a snapshot'):
    if round == 'after kill -9':
        s.kill()
        s.start()
    elif round != 'at once':
        s.stop()
        s.start()
    same(f'the same again {round}', post(PAY, b'10 to alice', FIRST))
    refused(f'another body {round}', post(PAY, b'99 to bob', FIRST))
    refused(f'a longer body {round}', post(PAY, b'10 to alice ', FIRST))
    refused(f'no body {round}', post(PAY, b'', FIRST))
    for what, header, value in (
        ('another property', 'Dunlin-Property-N', '2'),
        ('one more', 'Dunlin-Property-M', '2'),
        ('another type', 'Content-Type', 'text/html'),
    ):
        refused(f'{what} {round}', post(PAY, b'10 to alice', {**FIRST, header: value}))
    r = s.http('POST', '/transactions', send('x', 'k1'))
    refused(f'another message in a transaction {round}', r)
traced = {**FIRST, 'Traceparent': '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'}
same('one with a trace', post(PAY, b'10 to alice', traced))
same('one of another priority', post(PAY, b'10 to alice', {**FIRST, 'Dunlin-Priority': '9'}))
same('one of another expiry', post(PAY, b'10 to alice', {**FIRST, 'Dunlin-TTL': '1h'}))
check('the key is free at another queue', post(AUDIT, b'99 to bob', FIRST)[0] == 201)
check('... and at a topic', post('/topics/pay/messages', b'99 to bob', FIRST)[0] == 201)

lines = {'Idempotency-Key': 'lines'}
first = post('/queues/l/messages?lines', b'a\nb\nc', lines)
same('a batch', post('/queues/l/messages?lines', b'a\nb\nc', lines), first[2])
refused('a batch with another line', post('/queues/l/messages?lines', b'a\nB\nc', lines))
refused('... also where others are new', post('/queues/l/messages?lines', b'a\nB\nc\nd', lines))
check('nothing of it is stored', queue(s, 'l')['ready'] == 3, queue(s, 'l'))

body = '{"send":[{"queue":"t","body":"1","key":"t"},{"queue":"t","body":"2","key":"t"}]}'
refused('one key for two messages of a transaction', s.http('POST', '/transactions', body))
check('nothing of it is stored', s.http('GET', '/queues/t')[0] == 404)

m = s.amqp()
h = m.sender('pay')


def by_amqp(payload, key):
    annotations = {Sym('x-opt-dunlin-send-id'): key}
    return m.post(h, message(payload, annotations=annotations))


accepted = by_amqp(b'by AMQP', 'k2')
check('AMQP: the first is accepted', int(accepted.d) == 0x24, accepted)
check('AMQP: the same again too', int(by_amqp(b'by AMQP', 'k2').d) == 0x24)
state = by_amqp(b'by AMQP, too', 'k2')
is_rejected = int(state.d) == 0x25 and 'amqp:precondition-failed' in repr(state)
check('AMQP: another body is rejected', is_rejected, state)
state = by_amqp(b'99 to bob', 'k1')
check("AMQP: ... also under HTTP's key", int(state.d) == 0x25, state)
plain = {'Idempotency-Key': 'k2'}
r = post(PAY, b'by AMQP', plain)
check('HTTP: what AMQP sent is known', r[0] == 201 and queue(s, 'pay')['ready'] == 2, r)
refused('HTTP: another body under a key of AMQP', post(PAY, b'another', plain))
check('two messages are there', queue(s, 'pay')['ready'] == 2, queue(s, 'pay'))
done()
