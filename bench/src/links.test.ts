import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { closeLink, cutLink, mendLink, openLink } from './links.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A server that answers each chunk with itself, and a link to it. */
async function linkToEcho() {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const link = await openLink((server.address() as AddressInfo).port)
  ends.push(
    () => server.close(),
    () => closeLink(link),
  )
  return { link, server }
}

async function caller(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  ends.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

async function echoed(socket: Socket, text: string): Promise<string> {
  const answer = once(socket, 'data')
  socket.write(text)
  return String((await answer)[0])
}

test('a link carries bytes both ways', async () => {
  const { link } = await linkToEcho()

  expect(await echoed(await caller(link.port), 'one')).toBe('one')
})

test('a cut link takes connections and bytes, and carries them once it is mended', async () => {
  const { link } = await linkToEcho()
  const before = await caller(link.port)
  await echoed(before, 'one')

  cutLink(link)
  const received: string[] = []
  before.on('data', (chunk) => received.push(String(chunk)))
  before.write('two')
  const meanwhile = await caller(link.port)
  // By then the bytes of both have gone through the kernel.
  const other = await linkToEcho()
  await echoed(await caller(other.link.port), 'elsewhere')
  expect(received).toEqual([])

  mendLink(link)
  expect(await echoed(meanwhile, 'three')).toBe('three')
  if (received.length === 0) await once(before, 'data')
  expect(received.join('')).toBe('two')
})

test('an end that comes during a cut arrives after it', async () => {
  const { link } = await linkToEcho()
  const socket = await caller(link.port)
  await echoed(socket, 'one')

  cutLink(link)
  socket.end()
  const ended = once(socket, 'end')
  mendLink(link)

  await ended
})

test('a connection without a listening target is closed', async () => {
  const { link, server } = await linkToEcho()
  server.close()
  await once(server, 'close')

  const socket = connect({ host: '127.0.0.1', port: link.port })
  ends.push(() => socket.destroy())

  await once(socket.resume(), 'close')
})
