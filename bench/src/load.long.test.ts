import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { serveEcho } from './echo.ts'
import { createHistogram, percentile } from './histogram.ts'
import { type Load, runLoad, type Stream } from './load.ts'

const REPLY_BYTES = 700

/** A request that is whole as a frame; an echo looks no further. */
const frames = Array.from({ length: 50 }, (_, i) => {
  const frame = Buffer.alloc(60 + i, 1)
  frame[0] = 0xff
  frame.writeUInt32LE(frame.length - 9, 5)
  return frame
})

const searches: Stream = {
  name: 'searches',
  pacing: { kind: 'regular', requestsPerSecond: 400 },
  connections: 5,
  frames,
  replyBytes: frames.map(() => REPLY_BYTES),
}

function loadOn(port: number, streams: Stream[]): Load {
  return { host: '127.0.0.1', port, processes: 2, warmupMs: 50, runMs: 250, streams }
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A server that does with each connection what the test wants. */
function serve(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer(onConnection)
  // A generator that is done just goes.
  server.on('connection', (socket) => socket.on('error', () => socket.destroy()))
  servers.push(server)
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address && typeof address === 'object' ? address.port : 0)
    })
  })
}

test('requests without a reply count with the time they waited', async () => {
  const port = await serve(() => {})
  const { streams } = await runLoad({ ...loadOn(port, [searches]), drainMs: 150 })

  expect(streams[0]).toMatchObject({ sent: 120, answered: 0, unanswered: 120 })
  expect(streams[0]?.latency.count).toBe(100)
  expect(percentile(streams[0]?.latency ?? createHistogram(), 0)).toBeGreaterThanOrEqual(150)
})

test('a schedule that no generator can keep makes the run void', async () => {
  const port = await serveEcho({ port: 0, replyBytes: 100 })
  const impossible: Stream = { ...searches, pacing: { kind: 'regular', requestsPerSecond: 1e7 } }
  const result = await runLoad({ ...loadOn(port, [impossible]), drainMs: 50 })

  expect(result.void).toMatch(/^the generator/)
})
