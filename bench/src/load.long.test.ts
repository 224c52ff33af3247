import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { serveEcho } from './echo.ts'
import { createFrameScanner, scanFrames } from './frame-scanner.ts'
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

/** ERROR with one text field (docs/design/protocol.md#errors). */
function errorFrame(correlationId: number, text: string): Buffer {
  const payload = Buffer.concat([
    Buffer.from('\x05ERROR\x01\0\x01\0\x01', 'latin1'),
    Buffer.of(text.length, 0, 0, 0),
    Buffer.from(text),
  ])
  const head = Buffer.alloc(9, 0xff)
  head.writeUInt32LE(correlationId, 1)
  head.writeUInt32LE(payload.length, 5)
  return Buffer.concat([head, payload])
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

test('a regular load follows its schedule, and every reply is counted once', async () => {
  const port = await serveEcho({ port: 0, replyBytes: REPLY_BYTES })
  const { streams } = await runLoad(loadOn(port, [searches]))
  const [stream] = streams

  expect(stream).toMatchObject({ name: 'searches', sent: 120, answered: 120, unanswered: 0, unsent: 0, errors: {} })
  expect(stream?.latency.count).toBe(100)
  expect(stream?.perSecond).toBe(400)
  expect(stream?.bytesReceived).toBe(120 * REPLY_BYTES)
  expect(stream?.bytesExpected).toBe(120 * REPLY_BYTES)
})

test('a spike, a closed loop and a batched stream run beside each other', async () => {
  const port = await serveEcho({ port: 0, replyBytes: REPLY_BYTES })
  const spike: Stream = { ...searches, name: 'spike', pacing: { kind: 'spike', requests: 40, periodMs: 100 }, batch: 8 }
  const closed: Stream = { ...searches, name: 'closed', pacing: { kind: 'closed', pipelining: 4 } }
  const { streams } = await runLoad(loadOn(port, [spike, closed, { ...searches, name: 'batched', batch: 16 }]))
  const answered = Object.fromEntries(streams.map((stream) => [stream.name, stream.answered]))

  expect(answered).toMatchObject({ spike: 120, batched: 120 })
  expect(answered['closed']).toBeGreaterThan(100)
  for (const stream of streams) expect(stream.answered).toBe(stream.sent)
})

test('error replies are counted by their text', async () => {
  const port = await serve((socket) => {
    const scanner = createFrameScanner()
    socket.on('data', (chunk: Buffer) => {
      scanFrames(scanner, chunk, chunk.length, (correlationId) => socket.write(errorFrame(correlationId, '429')))
    })
  })
  const { streams } = await runLoad(loadOn(port, [searches]))

  expect(streams[0]).toMatchObject({ answered: 120, errors: { 429: 120 } })
})

test('refusals that a stream expects are counted apart from errors, rates and latencies', async () => {
  const port = await serve((socket) => {
    const scanner = createFrameScanner()
    socket.on('data', (chunk: Buffer) => {
      scanFrames(scanner, chunk, chunk.length, (id) => socket.write(errorFrame(id, id % 2 === 0 ? '429' : '503')))
    })
  })
  const { streams } = await runLoad(loadOn(port, [{ ...searches, takesRefusals: true }]))

  expect(streams[0]).toMatchObject({ answered: 120, refused: 60, errors: { 503: 60 }, perSecond: 200 })
})

test('requests without a reply count with the time they waited', async () => {
  const port = await serve(() => {})
  const { streams } = await runLoad({ ...loadOn(port, [searches]), drainMs: 150 })

  expect(streams[0]).toMatchObject({ sent: 120, answered: 0, unanswered: 120 })
  expect(streams[0]?.latency.count).toBe(100)
  expect(percentile(streams[0]?.latency ?? createHistogram(), 0)).toBeGreaterThanOrEqual(150)
})

test('a server that closes its connections breaks the run off', async () => {
  const port = await serve((socket) => socket.on('data', () => socket.destroy()))
  const result = await runLoad(loadOn(port, [searches]))

  expect(result.broken).toMatch(/closed a connection|ECONNRESET|EPIPE/)
  expect(result.streams[0]?.unanswered).toBeGreaterThan(0)
})

test('a schedule that no generator can keep makes the run void', async () => {
  const port = await serveEcho({ port: 0, replyBytes: 100 })
  const impossible: Stream = { ...searches, pacing: { kind: 'regular', requestsPerSecond: 1e7 } }
  const result = await runLoad({ ...loadOn(port, [impossible]), drainMs: 50 })

  expect(result.void).toMatch(/^the generator/)
})

test('a port without a listener is an error', async () => {
  const port = await serve(() => {})
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))

  await expect(runLoad(loadOn(port, [searches]))).rejects.toThrow('ECONNREFUSED')
})
