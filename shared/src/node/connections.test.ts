import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { followConnections } from './connections.ts'
import { DESCRIPTORS_KEPT, lacksDescriptors } from './descriptors.ts'

const cleanUp: (() => void)[] = []
afterEach(() => {
  for (const step of cleanUp.splice(0)) step()
})

const LONG_MS = 600_000
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

async function serve(answer: (response: ServerResponse) => void) {
  const server = createServer((_request, response) => answer(response))
  const end = followConnections(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.push(
    () => server.closeAllConnections(),
    () => server.close(),
  )
  return { server, end }
}

async function open(server: Server): Promise<Socket> {
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
  cleanUp.push(() => socket.destroy())
  const accepted = once(server, 'connection')
  await Promise.all([once(socket, 'connect'), accepted])
  return socket
}

const closed = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()))

test('a request in flight is answered before its connection ends', async () => {
  const inFlight = Promise.withResolvers<ServerResponse>()
  const { server, end } = await serve(inFlight.resolve)
  const [idle, busy] = [await open(server), await open(server)]
  busy.write(REQUEST)
  const response = await inFlight.promise
  const idleClosed = once(idle.resume(), 'end')

  const done = closed(server)
  end(LONG_MS)
  await idleClosed
  response.end('late')

  const [answer] = await once(busy, 'data')
  expect(String(answer)).toContain('late')
  await done
})

test('a request that takes longer than the drain is cut off', async () => {
  const inFlight = Promise.withResolvers<ServerResponse>()
  const { server, end } = await serve(inFlight.resolve)
  const busy = await open(server)
  busy.write(REQUEST)
  await inFlight.promise

  const done = closed(server)
  end(0)

  await done
})

test('a peer that does not close its half used to delay shutdown', async () => {
  const { server, end } = await serve((response) => response.end('done'))
  const peer = await open(server)
  peer.write(REQUEST)
  await once(peer, 'data')

  const done = closed(server)
  end(LONG_MS)

  await done
})

test.each([
  ['below the last 64', 1_024, 959, false],
  ['of the last 64', 1_024, 960, true],
  ['of the last quarter of a small limit', 100, 75, true],
  ['where the limit is not known', Number.POSITIVE_INFINITY, 1_000_000, false],
])('a connection with a descriptor %s is refused or not', (_, limit, fd, isRefused) => {
  expect(lacksDescriptors({ _handle: { fd } } as never, DESCRIPTORS_KEPT.client, limit)).toBe(isRefused)
})
