// fivebeans against any beanstalkd server: every command that the client has.
'use strict'

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { test } = require('node:test')
const { client: Client } = require('fivebeans')
const { host, port, freshTube, afterExpiry, BINARY } = require('./server')

// A connection on which every command returns a promise of the reply's arguments.
async function connect(tube) {
  const client = new Client(host, port)
  client.connect()
  await once(client, 'connect')
  const send = (command, ...args) =>
    new Promise((resolve, reject) =>
      client[command](...args, (error, ...reply) => (error ? reject(error) : resolve(reply))))
  if (tube) {
    await send('use', tube)
    await send('watch', tube)
    await send('ignore', 'default')
  }
  const put = async (body, { pri = 1, delay = 0, ttr = 60 } = {}) =>
    Number((await send('put', pri, delay, ttr, body))[0])
  const reserve = async (seconds = 5) => {
    const [id, body] = await send('reserve_with_timeout', seconds)
    return { id: Number(id), body }
  }
  const job = async (id) => (await send('stats_job', id))[0]
  return { send, put, reserve, job, end: () => client.end() }
}

function withTube(name, body) {
  test(name, { timeout: 30_000 }, async () => {
    const tube = freshTube()
    const connections = []
    const open = async () => {
      connections.push(await connect(tube))
      return connections.at(-1)
    }
    try {
      await body(await open(), tube, open)
    } finally {
      connections.forEach((connection) => connection.end())
    }
  })
}

// fivebeans gives the first word of an unexpected reply as the error.
const refused = (word, promise) =>
  assert.rejects(promise, (error) => (assert.equal(error, word), true))

withTube('bodies come back byte for byte', async ({ put, reserve, send }) => {
  for (const body of [Buffer.alloc(0), Buffer.from('\r\n'), BINARY, Buffer.alloc(65535, 'x')]) {
    const id = await put(body)
    assert.deepEqual(await reserve(), { id, body })
    await send('destroy', id)
  }
  await refused('JOB_TOO_BIG', put(Buffer.alloc(65536)))
  await refused('TIMED_OUT', reserve(0))
})

withTube('smaller priority first, then older', async ({ put, reserve }) => {
  const low = await put('x', { pri: 2 ** 32 - 1 })
  const [first, second] = [await put('x', { pri: 9 }), await put('x', { pri: 9 })]
  const urgent = await put('x', { pri: 0 })
  for (const id of [urgent, first, second, low]) assert.equal((await reserve()).id, id)
})

withTube('release, bury, touch and kick', async ({ put, reserve, job, send }) => {
  const id = await put('x')
  await reserve()
  await send('touch', id)
  await send('release', id, 7, 0)
  assert.equal((await job(id)).pri, 7)
  await reserve()
  await send('release', id, 8, 60)
  assert.equal((await job(id)).state, 'delayed')
  await send('kick_job', id)
  await reserve()
  await send('bury', id, 9)
  assert.equal((await job(id)).state, 'buried')
  assert.deepEqual(await send('kick', 10), ['1'])
  assert.deepEqual((({ releases, buries, kicks, reserves }) =>
    [releases, buries, kicks, reserves])(await job(id)), [2, 1, 2, 3])
  await refused('NOT_FOUND', send('touch', id))
  await refused('NOT_FOUND', send('release', id, 1, 0))
  await refused('NOT_FOUND', send('bury', id, 1))
  await refused('NOT_FOUND', send('kick_job', id))
  await send('destroy', id)
  await refused('NOT_FOUND', send('destroy', id))
})

withTube('peeks', async ({ put, reserve, send }) => {
  for (const peek of ['peek_ready', 'peek_delayed', 'peek_buried'])
    await refused('NOT_FOUND', send(peek))
  const buried = await put('b')
  await reserve()
  await send('bury', buried, 1)
  const [ready, delayed] = [await put(BINARY), await put('', { delay: 60 })]
  assert.deepEqual(await send('peek_ready'), [String(ready), BINARY])
  assert.deepEqual(await send('peek_delayed'), [String(delayed), Buffer.alloc(0)])
  assert.deepEqual(await send('peek_buried'), [String(buried), Buffer.from('b')])
  assert.deepEqual(await send('peek', ready), [String(ready), BINARY])
})

withTube('delay, deadline and redelivery', async ({ put, reserve, send }, _, open) => {
  const id = await put('x', { delay: 1, ttr: 1 })
  await refused('TIMED_OUT', reserve(0))
  assert.equal((await reserve()).id, id)
  await refused('DEADLINE_SOON', reserve())
  await afterExpiry(1, () => send('list_tube_used'))
  assert.equal((await (await open()).reserve()).id, id)
})

withTube('a blocked reserve is served by another connection', async ({ send }, tube, open) => {
  const producer = await open()
  const reserved = send('reserve')
  while ((await producer.send('stats_tube', tube))[0]['current-waiting'] !== 1);
  const id = await producer.put('wake')
  assert.deepEqual(await reserved, [String(id), Buffer.from('wake')])
  await refused('NOT_FOUND', producer.send('destroy', id))
})

withTube('closing returns the jobs', async ({ put, reserve }, _, open) => {
  const id = await put('x')
  const worker = await open()
  await worker.reserve()
  worker.send('quit') // has no reply, so the promise never settles
  assert.equal((await reserve()).id, id)
})

withTube('tubes', async ({ put, reserve, send }, tube) => {
  const other = freshTube()
  assert.deepEqual(await send('watch', other), ['2'])
  assert.deepEqual(new Set((await send('list_tubes_watched'))[0]), new Set([tube, other]))
  assert.deepEqual(await send('use', other), [other])
  assert.deepEqual(await send('list_tube_used'), [other])
  const id = await put('there')
  assert.equal((await reserve()).id, id)
  const [tubes] = await send('list_tubes')
  for (const name of ['default', tube, other]) assert.ok(tubes.includes(name))
  assert.deepEqual(await send('ignore', other), ['1'])
  await refused('NOT_IGNORED', send('ignore', tube))
  await refused('BAD_FORMAT', send('use', '-dash'))
})

withTube('a paused tube holds back', async ({ put, reserve, send }, tube) => {
  const id = await put('x')
  await send('pause_tube', tube, 1)
  await refused('TIMED_OUT', reserve(0))
  assert.equal((await reserve()).id, id)
  await refused('NOT_FOUND', send('pause_tube', freshTube(), 1))
})

withTube('statistics', async ({ put, job, send }, tube) => {
  const id = await put('x', { pri: 3, ttr: 9 })
  const { pri, ttr, state } = await job(id)
  assert.deepEqual([pri, ttr, state], [3, 9, 'ready'])
  const [tubeStats] = await send('stats_tube', tube)
  assert.deepEqual([tubeStats.name, tubeStats['current-jobs-urgent']], [tube, 1])
  const [server] = await send('stats')
  assert.deepEqual([server['max-job-size'], server.draining], [65535, false])
  await refused('NOT_FOUND', send('stats_job', 999999999))
  await refused('NOT_FOUND', send('stats_tube', freshTube()))
})

withTube('pipelined commands and bodies stay in order', async ({ put, reserve }) => {
  const bodies = Array.from({ length: 300 }, (_, i) => Buffer.alloc(i * 7, i))
  const ids = await Promise.all(bodies.map((body) => put(body)))
  const jobs = await Promise.all(bodies.map(() => reserve()))
  assert.deepEqual(jobs, bodies.map((body, i) => ({ id: ids[i], body })))
})
