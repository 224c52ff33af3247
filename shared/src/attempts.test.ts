import { EventEmitter, once } from 'node:events'
import { connect, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { followAttempts } from './attempts.ts'

test('a failure lists each address of a name with its cause (it used to be empty)', async () => {
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as { port: number }
  closed.close()
  const socket = connect({
    host: 'several.test',
    port,
    lookup: (_name, _options, done) => {
      const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
      ;(done as (error: null, all: object[]) => void)(null, addresses)
    },
  })
  const reasonOf = followAttempts(socket)

  const [error] = (await once(socket, 'error').catch((each) => [each])) as [Error]

  expect(reasonOf(error.message)).toBe(`127.0.0.1:${port} ECONNREFUSED, 127.0.0.2:${port} ECONNREFUSED`)
})

test('an address that has not answered yet is listed as such, and one address needs no list', () => {
  const socket = new EventEmitter()
  let attempts = 0
  const reasonOf = followAttempts(socket, () => attempts++)
  socket.emit('connectionAttempt', '10.0.0.1', 7777, 4)
  expect(reasonOf('not ready within 5000 ms')).toBe('not ready within 5000 ms')
  socket.emit('connectionAttemptTimeout', '10.0.0.1', 7777, 4)
  socket.emit('connectionAttempt', '::1', 7777, 6)

  expect(attempts).toBe(2)
  expect(reasonOf('not ready within 5000 ms')).toBe(
    'not ready within 5000 ms: 10.0.0.1:7777 no answer in time, [::1]:7777 no answer',
  )

  socket.emit('connect')
  expect(reasonOf('read ECONNRESET')).toBe('read ECONNRESET')
})
