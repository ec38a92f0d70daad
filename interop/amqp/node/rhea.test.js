// rhea against the broker at AMQP_URL, and against a secured one at SECURED_ADDR: TLS, users,
// rights. The tests of the latter are skipped without one.
'use strict'

const assert = require('node:assert')
const { once } = require('node:events')
const fs = require('node:fs')
const { after, test } = require('node:test')
const rhea = require('rhea')

const skip = !process.env.SECURED_ADDR
const connections = []
let numbers = 0

const freshName = () => `rhea-${process.pid}-${++numbers}`

// An error of a connection comes as one of two events.
async function connect(options) {
  const connection = rhea.create_container().connect({ reconnect: false, ...options })
  connections.push(connection)
  const failed = ['connection_error', 'disconnected'].map(async (name) => {
    const [{ connection: closed, error }] = await once(connection, name)
    throw error || closed.get_error() || new Error(name)
  })
  // Once it is open, its end is no failure.
  failed.forEach((promise) => promise.catch(() => {}))
  await Promise.race([once(connection, 'connection_open'), ...failed])
  return connection
}

function logIn(username, options = {}) {
  const [host, port] = process.env.SECURED_ADDR.split(':')
  return connect({
    host, port: Number(port), transport: 'tls', servername: host,
    ca: fs.readFileSync(process.env.SECURED_CA), username, password: process.env.SECURED_PASSWORD,
    ...options
  })
}

async function send(connection, address, body) {
  const sender = connection.open_sender(address)
  await once(sender, 'sendable')
  sender.send({ body })
  await once(sender, 'accepted')
  sender.close()
}

async function receive(connection, address) {
  const receiver = connection.open_receiver(address)
  const [{ message }] = await once(receiver, 'message')
  receiver.close()
  return message.body
}

async function denied(link, event) {
  const [context] = await once(link, event)
  assert.strictEqual(link.error.condition, 'amqp:unauthorized-access')
  assert.match(link.error.description, /user ann may not/)
  return context
}

after(() => connections.forEach((connection) => connection.close()))

test('message comes back', async () => {
  const { hostname, port } = new URL(process.env.AMQP_URL)
  const connection = await connect({ host: hostname, port: Number(port), username: 'anonymous' })
  const queue = freshName()
  await send(connection, queue, 'hello')
  assert.strictEqual(await receive(connection, queue), 'hello')
})

test('unknown root is refused', { skip }, async () => {
  await assert.rejects(logIn('ann', { ca: [] }), /unable to|self.signed/)
})

test('wrong password is refused', { skip }, async () => {
  await logIn('eve-1')
  await assert.rejects(logIn('eve-1', { password: 'wrong password' }), /Failed to authenticate/)
})

test('own queue is served', { skip }, async () => {
  const connection = await logIn('ann')
  const queue = `ann.${freshName()}`
  await send(connection, queue, 'hello')
  assert.strictEqual(await receive(connection, queue), 'hello')
})

test('other names are denied', { skip }, async () => {
  const [root, ann] = [await logIn('root'), await logIn('ann')]
  const name = freshName()
  await send(root, `other.${name}`, 'kept')
  await denied(ann.open_sender(`other.${name}`), 'sender_error')
  await denied(ann.open_receiver(`other.${name}`), 'receiver_error')
  // The same connection goes on, and nothing has changed.
  await send(ann, `ann.${name}`, 'served')
  assert.strictEqual(await receive(ann, `ann.${name}`), 'served')
  assert.strictEqual(await receive(root, `other.${name}`), 'kept')
})

// The last one, since its failure holds ann off for a moment.
test('token of an issuer logs in', { skip }, async () => {
  const token = process.env.SECURED_JWT
  const connection = await logIn('ann', { password: undefined, token })
  const queue = `ann.${freshName()}`
  await send(connection, queue, 'hello')
  assert.strictEqual(await receive(connection, queue), 'hello')
  const tampered = token.slice(0, -8) + 'AAAAAAAA'
  const refused = logIn('ann', { password: undefined, token: tampered })
  await assert.rejects(refused, /Failed to authenticate/)
})
