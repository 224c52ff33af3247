import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { freePort, takePort } from '@vacancy/testkit/free-port'
import { afterEach, expect, test } from 'vitest'
import { closeForwards, createForwards, publish } from './publish.ts'

const forwards = createForwards()
afterEach(() => closeForwards(forwards))

test('both directions are passed on, and each end of its own', async () => {
  // Answers after the end of the request only, so the half-closed connection must stay open.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let received = ''
    socket.on('data', (chunk) => {
      received += String(chunk)
    })
    socket.on('end', () => socket.end(received.toUpperCase()))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = await freePort()
  await publish(forwards, {
    port,
    to: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    what: 'TCP',
  })

  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  socket.end('hello')

  expect(await text(socket)).toBe('HELLO')
  server.close()
})

test('without the component a connection ends at once, and later ones work', async () => {
  const [port, target] = [await freePort(), await freePort()]
  await publish(forwards, { port, to: { host: '127.0.0.1', port: target }, what: 'TCP' })

  const refused = connect({ host: '127.0.0.1', port })
  const [error] = await once(refused, 'error')
  const server = createServer((socket) => socket.end('back')).listen(target, '127.0.0.1')
  await once(server, 'listening')

  expect(error).toMatchObject({ code: 'ECONNRESET' })
  expect(await text(connect({ host: '127.0.0.1', port }))).toBe('back')
  server.close()
})

test('a taken port is an error that names it', async () => {
  const { port, close } = await takePort()

  await expect(publish(forwards, { port, to: { host: '127.0.0.1', port: 1 }, what: 'TCP' })).rejects.toThrow(
    `127.0.0.1:${port}`,
  )
  close()
})
