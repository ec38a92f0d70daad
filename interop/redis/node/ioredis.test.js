// ioredis against the server at REDIS_ADDR.
'use strict'

const assert = require('node:assert')
const { after, test } = require('node:test')
const Redis = require('ioredis')

const [host, port] = process.env.REDIS_ADDR.split(':')
const clients = []
let numbers = 0

function connect(options = {}) {
  const client = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1, ...options })
  clients.push(client)
  return client
}

const freshKey = () => `node-${process.pid}-${++numbers}`
const BINARY = Buffer.from([...Array(256).keys(), 13, 10, 0])
const client = connect()

after(() => clients.forEach((client) => client.disconnect()))

test('queue is first in, first out', async () => {
  const key = freshKey()
  for (let number = 0; number < 50; number++) {
    assert.strictEqual(await client.lpush(key, number), number + 1)
  }
  for (let number = 0; number < 50; number++) {
    assert.deepStrictEqual(await client.brpop(key, 1), [key, String(number)])
  }
  assert.strictEqual(await client.rpop(key), null)
})

test('elements are any bytes', async () => {
  const key = freshKey()
  await client.rpush(key, BINARY, '')
  assert.deepStrictEqual(await client.lrangeBuffer(key, 0, -1), [BINARY, Buffer.alloc(0)])
  assert.deepStrictEqual(await client.lpopBuffer(key), BINARY)
})

test('places and moves', async () => {
  const [key, other] = [freshKey(), freshKey()]
  await client.rpush(key, 'a', 'b', 'c')
  assert.strictEqual(await client.linsert(key, 'AFTER', 'b', 'x'), 4)
  assert.strictEqual(await client.lset(key, -1, 'C'), 'OK')
  await assert.rejects(client.lset(key, 9, 'x'), /index out of range/)
  assert.strictEqual(await client.rpoplpush(key, other), 'C')
  assert.strictEqual(await client.lmove(key, other, 'LEFT', 'LEFT'), 'a')
  assert.deepStrictEqual(await client.lmpop(1, key, 'LEFT', 'COUNT', 5), [key, ['b', 'x']])
  assert.deepStrictEqual(await client.lrange(other, 0, -1), ['a', 'C'])
  assert.strictEqual(await client.lpos(other, 'C'), 1)
  assert.strictEqual(await client.ltrim(other, 1, -1), 'OK')
  assert.strictEqual(await client.lrem(other, 0, 'C'), 1)
  assert.strictEqual(await client.exists(other), 0)
})

test('waiting clients are served', async () => {
  const key = freshKey()
  const workers = [connect(), connect(), connect()]
  const waiting = workers.map((worker) => worker.blpop(key, 0))
  for (const number of [1, 2, 3]) await client.rpush(key, number)
  const taken = (await Promise.all(waiting)).map(([, element]) => element)
  assert.deepStrictEqual(taken.sort(), ['1', '2', '3'])
  assert.strictEqual(await client.blpop(key, 0.02), null)
})

test('client unblock ends a wait', async () => {
  const waiting = connect()
  const id = await waiting.client('ID')
  const refused = assert.rejects(waiting.blpop(freshKey(), 0), /UNBLOCKED/)
  while ((await client.client('UNBLOCK', id, 'ERROR')) === 0);
  await refused
})

test('transaction is one step', async () => {
  const key = freshKey()
  const results = await client.multi().rpush(key, 'a').lrange(key, 0, -1).get(key).exec()
  assert.deepStrictEqual(results.slice(0, 2), [[null, 1], [null, ['a']]])
  assert.match(results[2][0].message, /WRONGTYPE/)
  const other = connect()
  await other.watch(key)
  await client.lpop(key)
  assert.strictEqual(await other.multi().rpush(key, 'late').exec(), null)
})

test('pipeline is answered in order', async () => {
  const key = freshKey()
  const pipeline = client.pipeline()
  for (let number = 0; number < 500; number++) pipeline.rpush(key, number)
  const results = await pipeline.exec()
  assert.deepStrictEqual(results.map(([, length]) => length), [...Array(501).keys()].slice(1))
})

test('messages', async () => {
  const [channel, prefix] = [freshKey(), freshKey()]
  const listener = connect()
  const heard = []
  const all = new Promise((resolve) => {
    const hear = (...message) => {
      heard.push(message)
      if (heard.length === 2) resolve()
    }
    listener.on('message', hear)
    listener.on('pmessage', hear)
  })
  assert.strictEqual(await listener.subscribe(channel), 1)
  assert.strictEqual(await listener.psubscribe(`${prefix}*`), 2)
  assert.strictEqual(await client.publish(channel, 'one'), 1)
  assert.strictEqual(await client.publish(`${prefix}x`, 'two'), 1)
  await all
  assert.deepStrictEqual(heard, [[channel, 'one'], [`${prefix}*`, `${prefix}x`, 'two']])
  assert.strictEqual(await listener.unsubscribe(channel), 1)
  assert.strictEqual(await client.publish(channel, 'gone'), 0)
})

test('keys and values', async () => {
  const [key, list] = [freshKey(), freshKey()]
  assert.strictEqual(await client.set(key, 'v', 'EX', 100, 'NX'), 'OK')
  assert.strictEqual(await client.set(key, 'v', 'NX'), null)
  assert.strictEqual(await client.ttl(key), 100)
  assert.strictEqual(await client.getdel(key), 'v')
  await client.rpush(list, 'x')
  assert.strictEqual(await client.type(list), 'list')
  assert.strictEqual(await client.object('ENCODING', list), 'quicklist')
  const found = []
  for await (const keys of client.scanStream({ match: list, count: 2 })) found.push(...keys)
  assert.deepStrictEqual(found, [list])
  assert.strictEqual(await client.del(list, key), 1)
})

test('connection and server facts', async () => {
  const named = connect({ connectionName: 'tester' })
  assert.strictEqual(await named.client('GETNAME'), 'tester')
  assert.match(await client.info('server'), /redis_version:7\./)
  assert.strictEqual(await client.select(0), 'OK')
  assert.deepStrictEqual(await client.config('GET', 'save'), ['save', ''])
  await assert.rejects(client.call('NOSUCH', 'a'), /unknown command/)
})
