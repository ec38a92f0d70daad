// Where the server under test listens, and names that no other test uses.
'use strict'

const [host, port] = process.env.BEANSTALKD_ADDR.split(':')
let numbers = 0

// Does nothing, but with the original: it waits and lets the holder say something.
// beanstalkd forgets about one expiry in ten of a silent connection (../python/server.py).
async function afterExpiry(ttrSeconds, nudge) {
  if (process.env.BEANSTALKD_SERVER !== 'original') return
  await new Promise((resolve) => setTimeout(resolve, ttrSeconds * 1000 + 100))
  await nudge()
}

module.exports = {
  host,
  port: Number(port),
  afterExpiry,
  freshTube: () => `node-${process.pid}-${++numbers}`,
  // Every byte value, the protocol's own line end and what looks like a reply.
  BINARY: Buffer.concat([
    Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
    Buffer.from('\r\nINSERTED 1\r\n\r\n\0'),
  ]),
}
