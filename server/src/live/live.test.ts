import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { turnableClock } from '@vacancy/shared'
import { applyOps, LIVE, type LiveOp, type ServerFrame } from '@vacancy/shared/contract'
import { createLogger } from '@vacancy/shared/node'
import { until } from '@vacancy/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { acceptClient, createLive, endClients, liveCounts, stopLive } from './live.ts'
import { LIVE_LIMITS, type Live, type Viewer } from './state.ts'
import { offerTopics, publish, touchTopic } from './topics.ts'

let live: Live
let server: Server
let viewer: Viewer
const sockets: WebSocket[] = []

beforeEach(async () => {
  viewer = { key: 'session-1', check: async () => true }
  live = createLive({ server: 'test', log: createLogger({ level: 'fatal', format: 'json', component: 'test' }) })
  server = createServer().on('upgrade', (request, socket, head) => acceptClient(live, request, socket, head, viewer))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate()
  await stopLive(live)
  await new Promise((resolve) => server.close(resolve))
})

/** A browser: every received frame, and its state of each topic. */
async function connect() {
  const frames: ServerFrame[] = []
  const topics = new Map<string, { seq: number; value: unknown }>()
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}${LIVE.path}`)
  sockets.push(socket)
  socket.on('message', (data) => {
    const frame = JSON.parse(data.toString()) as ServerFrame
    frames.push(frame)
    if (frame.t === 'snap') topics.set(frame.topic, { seq: frame.seq, value: frame.data })
    if (frame.t === 'delta') {
      const known = topics.get(frame.topic)
      topics.set(frame.topic, { seq: frame.seq, value: applyOps(known?.value, frame.ops as readonly LiveOp[]) })
    }
  })
  await until('the hello frame arrived', () => frames.some(({ t }) => t === 'hello'))
  return {
    socket,
    frames,
    topics,
    send: (frame: object) => socket.send(JSON.stringify(frame)),
    kinds: () => frames.map(({ t }) => t),
    value: (topic: string) => topics.get(topic)?.value,
  }
}

test('a subscriber gets the value of a topic and then only changes', async () => {
  publish(live, 'summary', { counts: { nodes: 3 }, shards: [{ id: 's1' }, { id: 's2' }] })
  const browser = await connect()

  browser.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the value arrived', () => browser.value('summary'))
  publish(live, 'summary', { counts: { nodes: 4 }, shards: [{ id: 's1' }, { id: 's2', state: 'healthy' }] })
  await until('the change arrived', () => browser.kinds().includes('delta'))

  expect(browser.value('summary')).toEqual({
    counts: { nodes: 4 },
    shards: [{ id: 's1' }, { id: 's2', state: 'healthy' }],
  })
  const delta = browser.frames.find(({ t }) => t === 'delta')
  expect(delta).toMatchObject({
    ops: [
      [['counts', 'nodes'], 4],
      [['shards', 1, 'state'], 'healthy'],
    ],
  })
})

test('a client that reconnects with its last sequence number gets only the missing changes', async () => {
  publish(live, 'summary', { n: 0 })
  const first = await connect()
  first.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the value arrived', () => first.value('summary'))
  const { seq } = first.topics.get('summary') as { seq: number }
  first.socket.terminate()
  for (let n = 1; n <= 5; n++) publish(live, 'summary', { n })

  const second = await connect()
  second.send({ t: 'sub', id: 1, topic: 'summary', since: seq })
  await until('the missing changes arrived', () => second.kinds().includes('delta'))

  expect(second.kinds()).not.toContain('snap')
  expect(second.value('summary')).toEqual({ n: 5 })
})

test('a sequence number of a previous server process gets the whole value', async () => {
  publish(live, 'summary', { n: 1 })
  const browser = await connect()

  browser.send({ t: 'sub', id: 1, topic: 'summary', since: 7 })
  await until('the value arrived', () => browser.value('summary'))

  expect(browser.kinds()).toContain('snap')
})

test('at most four frames per second and topic are sent, however often it changes', async () => {
  publish(live, 'summary', { n: 0 })
  const browser = await connect()
  browser.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the value arrived', () => browser.value('summary'))

  const began = performance.now()
  for (let n = 1; n <= 50; n++) {
    publish(live, 'summary', { n })
    await sleep(20)
  }
  await until('the last value arrived', () => (browser.value('summary') as { n: number }).n === 50)
  const seconds = (performance.now() - began) / 1000

  const deltas = browser.kinds().filter((t) => t === 'delta').length
  expect(deltas).toBeLessThanOrEqual(Math.ceil(seconds * LIVE.framesPerSecond) + 1)
})

test('an offered topic is computed only while it has subscribers', async () => {
  let reads = 0
  let value = { n: 1 }
  offerTopics(live, /^shard:/, () => {
    reads++
    return value
  })
  touchTopic(live, 'shard:s1')
  expect(reads).toBe(0)

  const browser = await connect()
  browser.send({ t: 'sub', id: 3, topic: 'shard:s1' })
  await until('the value arrived', () => browser.value('shard:s1'))
  value = { n: 2 }
  touchTopic(live, 'shard:s1')
  await until('the change arrived', () => (browser.value('shard:s1') as { n: number }).n === 2)
  browser.send({ t: 'unsub', id: 3 })
  browser.send({ t: 'ping', n: 9 })
  await until('the frame was processed', () => browser.frames.some((frame) => frame.t === 'pong' && frame.n === 9))
  const before = reads
  touchTopic(live, 'shard:s1')
  browser.send({ t: 'sub', id: 4, topic: 'summary' })
  publish(live, 'summary', { n: 1 })
  await until('a later frame arrived', () => browser.value('summary'))

  expect(reads).toBe(before)
})

test('a slow reader gets one whole value instead of queued changes', async () => {
  const text = (n: number) => `${n}`.padEnd(400_000, 'x')
  publish(live, 'summary', { text: text(0), n: 0 })
  const browser = await connect()
  browser.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the value arrived', () => browser.value('summary'))
  browser.socket.pause()
  for (let n = 1; n <= 60; n++) {
    publish(live, 'summary', { text: text(n), n })
    await sleep(50)
  }
  const sent = liveCounts(live).frames
  browser.socket.resume()
  await until('the last value arrived', () => (browser.value('summary') as { n: number }).n === 60)

  // Without the limit there would be a frame every 250 ms of the pause.
  expect(browser.kinds().filter((t) => t === 'snap').length).toBeGreaterThanOrEqual(1)
  expect(sent).toBeLessThan(20)
})

test('a connection ends with its session, with a reason', async () => {
  const browser = await connect()

  endClients(live, 'session-1')

  await until('the error arrived', () =>
    browser.frames.some((frame) => frame.t === 'bye' && frame.code === 'signed-out'),
  )
  await until('it is closed', () => browser.socket.readyState === WebSocket.CLOSED)
})

/** Invalid frames. */
const BAD: readonly (readonly [what: string, frame: string])[] = [
  ['invalid JSON', 'hello'],
  ['an unknown frame', '{"t":"shutdown"}'],
  ['an unknown topic', '{"t":"sub","id":1,"topic":"passwords"}'],
  ['a negative number', '{"t":"sub","id":-1,"topic":"summary"}'],
]

test.each(BAD)('%s gets an error and changes nothing', async (_what, frame) => {
  const browser = await connect()

  browser.socket.send(frame)

  await until('the error arrived', () => browser.frames.some((each) => each.t === 'err' && each.code === 'bad-frame'))
  expect(browser.socket.readyState).toBe(WebSocket.OPEN)
})

test('a frame over the limit ends the connection', async () => {
  const browser = await connect()

  browser.socket.send('x'.repeat(LIVE.frameBytesMax + 1))

  await until('it is closed', () => browser.socket.readyState === WebSocket.CLOSED)
})

test.each([
  ['frames', (socket: WebSocket) => socket.send('{"t":"ping","n":1}')],
  ['invalid frames', (socket: WebSocket) => socket.send('{')],
])('a client that floods with %s is disconnected with a reason, and others are served', async (_what, flood) => {
  publish(live, 'summary', { n: 1 })
  const [flooder, other] = [await connect(), await connect()]

  await until('it is disconnected', () => {
    for (let i = 0; i < 100 && flooder.socket.readyState === WebSocket.OPEN; i++) flood(flooder.socket)
    return flooder.frames.some((frame) => frame.t === 'bye' && frame.code === 'too-many-frames' && frame.retryMs > 0)
  })
  await until('it is closed', () => flooder.socket.readyState === WebSocket.CLOSED)
  other.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the other is served', () => other.value('summary'))
})

test('a client that floods with WebSocket pings is disconnected', async () => {
  const flooder = await connect()

  await until('it is closed', () => {
    for (let i = 0; i < 100 && flooder.socket.readyState === WebSocket.OPEN; i++) flooder.socket.ping()
    return flooder.socket.readyState === WebSocket.CLOSED
  })

  expect(liveCounts(live).clients).toBe(0)
})

test('the number of connections per viewer is limited', async () => {
  for (let i = 0; i < LIVE_LIMITS.clientsPerViewerMax; i++) await connect()
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}${LIVE.path}`)
  sockets.push(socket)

  const [frame] = await once(socket, 'message')

  expect(JSON.parse(String(frame))).toMatchObject({ t: 'bye', code: 'too-many-connections' })
})

test('changes are kept up to a number of bytes: a client that lacks more gets the whole value', async () => {
  const text = (n: number) => `${n}`.padEnd(LIVE_LIMITS.keptBytesMax / 4, 'x')
  publish(live, 'summary', { text: text(0), n: 0 })
  const first = await connect()
  first.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the value arrived', () => first.value('summary'))
  const { seq } = first.topics.get('summary') as { seq: number }
  first.socket.terminate()
  for (let n = 1; n <= 8; n++) publish(live, 'summary', { text: text(n), n })

  const [late, early] = [await connect(), await connect()]
  late.send({ t: 'sub', id: 1, topic: 'summary', since: seq })
  early.send({ t: 'sub', id: 1, topic: 'summary', since: seq + 6 })
  await until('both have a value', () => late.value('summary') && early.frames.some(({ t }) => t === 'delta'))

  expect(late.kinds()).toContain('snap')
  expect(late.value('summary')).toEqual({ text: text(8), n: 8 })
  expect(early.frames.find(({ t }) => t === 'delta')).toMatchObject({
    seq: seq + 8,
    ops: [
      [['text'], text(7)],
      [['n'], 7],
      [['text'], text(8)],
      [['n'], 8],
    ],
  })
})

test('changes of a topic without subscribers are kept for a while, those of one with subscribers always', async () => {
  const clock = turnableClock(Date.UTC(2026, 10, 22))
  const log = createLogger({ level: 'fatal', format: 'json', component: 'test' })
  await stopLive(live)
  live = createLive({ server: 'test', log, clock })
  publish(live, 'summary', { n: 0 })
  const first = await connect()
  first.send({ t: 'sub', id: 1, topic: 'summary' })
  await until('the value arrived', () => first.value('summary'))

  clock.advance(2 * LIVE_LIMITS.idleMs)
  publish(live, 'summary', { n: 1 })
  await until('the change arrived', () => (first.value('summary') as { n: number }).n === 1)
  expect(first.kinds().filter((kind) => kind !== 'hello')).toEqual(['snap', 'delta'])

  const { seq } = first.topics.get('summary') as { seq: number }
  first.send({ t: 'unsub', id: 1 })
  await until('it has no subscriber', () => live.topics.get('summary')?.followers.size === 0)
  clock.advance(LIVE_LIMITS.idleMs + 1)
  publish(live, 'summary', { n: 2 })
  const second = await connect()
  second.send({ t: 'sub', id: 1, topic: 'summary', since: seq })
  await until('the value arrived', () => second.value('summary'))
  expect(second.kinds()).not.toContain('delta')
  expect(second.value('summary')).toEqual({ n: 2 })
})

test('the number of topics per connection is limited', async () => {
  offerTopics(live, /^shard:/, () => ({}))
  const browser = await connect()

  for (let id = 0; id <= LIVE.topicsMax; id++) browser.send({ t: 'sub', id, topic: `shard:s${id}` })

  await until('the last is refused', () =>
    browser.frames.some((each) => each.t === 'err' && each.code === 'too-many-topics'),
  )
})

test('a topic of an unknown object is an error', async () => {
  offerTopics(live, /^shard:/, () => undefined)
  const browser = await connect()

  browser.send({ t: 'sub', id: 4, topic: 'shard:none' })

  await until('the error arrived', () =>
    browser.frames.some((each) => each.t === 'err' && each.id === 4 && each.code === 'not-found'),
  )
})
