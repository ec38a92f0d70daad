// ioredis against a secured server at SECURED_ADDR: TLS, users, rights. Skipped without one.
'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const { after, test } = require('node:test')
const Redis = require('ioredis')

const skip = !process.env.SECURED_ADDR
const [host, port] = (process.env.SECURED_ADDR || ':').split(':')
const ca = skip ? undefined : fs.readFileSync(process.env.SECURED_CA)
const password = process.env.SECURED_PASSWORD
const clients = []
let numbers = 0

// Errors of a connection are events; a command on it then fails too.
function connect(options) {
  const client = new Redis({
    host, port: Number(port), tls: { ca }, username: 'ann', password, maxRetriesPerRequest: 0,
    retryStrategy: null, lazyConnect: true, ...options
  })
  client.errors = []
  client.on('error', (error) => client.errors.push(error))
  clients.push(client)
  return client
}

// Users who have logged in from here do not wait for failures of others.
async function begin() {
  const [ann, root] = [connect({}), connect({ username: 'root' })]
  await ann.connect()
  await root.connect()
  const name = `${process.pid}-${++numbers}`
  return { ann, root, own: `ann.${name}`, other: `other.${name}` }
}

const refused = (promise) => assert.rejects(promise, /NOPERM user ann may not/)

after(() => clients.forEach((client) => client.disconnect()))

test('unknown root is refused', { skip }, async () => {
  const client = connect({ tls: {} })
  await assert.rejects(client.connect())
  assert.match(String(client.errors[0].code), /UNABLE_TO|SELF_SIGNED/)
})

test('wrong password is refused', { skip }, async () => {
  await connect({ username: 'eve-1' }).connect()
  const client = connect({ username: 'eve-1', password: 'wrong password' })
  await client.connect().catch(() => {})
  await assert.rejects(client.get('ann.key'))
  assert.match(client.errors[0].message, /WRONGPASS/)
})

test('own names serve all commands', { skip }, async () => {
  const { ann, own } = await begin()
  assert.strictEqual(await ann.call('ACL', 'WHOAMI'), 'ann')
  assert.strictEqual(await ann.rpush(own, 1, 2), 2)
  assert.strictEqual(await ann.lpop(own), '1')
  assert.strictEqual(await ann.set(`${own}.value`, 'x'), 'OK')
  assert.strictEqual(await ann.get(`${own}.value`), 'x')
  const results = await ann.multi().rpush(own, 3).lpop(own).exec()
  assert.deepStrictEqual(results, [[null, 2], [null, '2']])
})

test('own channel carries messages', { skip }, async () => {
  const { ann, own } = await begin()
  const subscriber = connect({})
  await subscriber.connect()
  const message = new Promise((resolve) => subscriber.once('message', (...it) => resolve(it)))
  await subscriber.subscribe(own)
  assert.strictEqual(await ann.publish(own, 'hello'), 1)
  assert.deepStrictEqual(await message, [own, 'hello'])
})

test('other names are refused', { skip }, async () => {
  const { ann, root, own, other } = await begin()
  await root.rpush(other, 'kept')
  await refused(ann.rpush(other, 'x'))
  await refused(ann.lpop(other))
  await refused(ann.set(other, 'x'))
  await refused(ann.get(other))
  await refused(ann.publish(other, 'x'))
  await refused(ann.subscribe(other))
  await assert.rejects(ann.multi().rpush(own, 'x').rpush(other, 'x').exec(), /NOPERM|EXECABORT/)
  assert.strictEqual(await ann.llen(own), 0)
  assert.strictEqual(await ann.rpush(own, 'x'), 1)
  assert.deepStrictEqual(await root.lrange(other, 0, -1), ['kept'])
})
