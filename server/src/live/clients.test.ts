/** Clients of the live channel: frames, subscriptions, limits and disconnection. Sockets and clock are simulated. */

import { EventEmitter } from 'node:events'
import { turnableClock } from '@vacancy/shared'
import { LIVE, type ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { addClient, checkViewers } from './clients.ts'
import { type Client, LIVE_LIMITS, type Live, type Viewer } from './state.ts'
import { flushTopics, offerTopics, publish, topicOf, touchTopic } from './topics.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const settled = () => new Promise(setImmediate)

function channel() {
  const clock = turnableClock(NOW)
  clock.advance(1_000_000)
  const errors: unknown[] = []
  const log = { error: (fields: unknown) => errors.push(fields), debug: () => undefined } as unknown as Log
  const live: Live = {
    ...{ server: 'test', log, clock, webSockets: {} as Live['webSockets'], topics: new Map(), offers: [] },
    ...{ clients: new Set(), lastFrame: undefined, framesSent: 0, bytesSent: 0, timers: [] },
  }
  return { live, clock, errors }
}

/** Connects a browser. */
function connect(live: Live, viewer: Partial<Viewer> = {}) {
  const frames: ServerFrame[] = []
  const ends: string[] = []
  const socket = Object.assign(new EventEmitter(), {
    bufferedAmount: 0,
    send: (bytes: Buffer) => void frames.push(JSON.parse(bytes.toString()) as ServerFrame),
    close: (code: number, reason: string) => void ends.push(`${code} ${reason}`),
    terminate: () => void ends.push('terminated'),
  })
  addClient(live, socket as unknown as WebSocket, { key: 'v1', check: async () => true, ...viewer })
  const text = (frame: unknown) => Buffer.from(typeof frame === 'string' ? frame : JSON.stringify(frame))
  return {
    ...{ frames, ends, socket },
    /** Sends a frame. @returns the frames that arrived since */
    async send(frame: unknown, isBinary = false): Promise<ServerFrame[]> {
      socket.emit('message', text(frame), isBinary)
      await settled()
      return frames.splice(0)
    },
    ping: (n: number) => socket.emit('message', text({ t: 'ping', n }), false),
  }
}

const sub = (id: number, topic: string, since?: number) => ({
  t: 'sub',
  id,
  topic,
  ...(since !== undefined && { since }),
})
const kinds = (frames: readonly ServerFrame[]) => frames.map(({ t }) => t)

// Connections

test('a new client gets the name of the server and its time', () => {
  const { live } = channel()
  const { frames, ends } = connect(live)
  expect(frames).toEqual([{ t: 'hello', server: 'test', now: '2026-11-22T12:16:40.000Z' }])
  expect([live.clients.size, ends]).toEqual([1, []])
})

test('a viewer has at most 32 connections, and others are not affected', () => {
  const { live } = channel()
  for (let count = 0; count < LIVE_LIMITS.clientsPerViewerMax; count++) expect(connect(live).ends).toEqual([])
  const more = connect(live)
  expect(more.frames).toEqual([{ t: 'bye', code: 'too-many-connections', retryMs: 30_000 }])
  expect(more.ends).toEqual(['1000 too-many-connections'])
  expect(kinds(connect(live, { key: 'v2' }).frames)).toEqual(['hello'])
  expect(live.clients.size).toBe(33)
})

test('there are at most 1,000 clients', () => {
  const { live } = channel()
  for (let count = 1; count < LIVE_LIMITS.clientsMax; count++)
    live.clients.add({ viewer: { key: `v${count}` } } as unknown as Client)
  expect(connect(live, { key: 'last' }).ends).toEqual([])
  expect(connect(live, { key: 'more' }).ends).toEqual(['1000 too-many-connections'])
  expect(live.clients.size).toBe(1_000)
})

test('a closed connection leaves its topics', async () => {
  const { live, clock } = channel()
  publish(live, 'summary', 1)
  const { send, socket } = connect(live)
  await send(sub(1, 'summary'))
  clock.advance(7)
  socket.emit('error', new Error('reset'))
  expect(live.clients.size).toBe(1)
  socket.emit('close')
  expect([live.clients.size, topicOf(live, 'summary').followers.size]).toEqual([0, 0])
  expect(topicOf(live, 'summary').emptySince).toBe(1_000_007)
})

// Frames

test.each([
  'no JSON',
  '{}',
  { t: 'sub', id: 1 },
  { t: 'sub', id: 1, topic: 'a b' },
  { t: 'jump', id: 1 },
  { t: 'ping' },
])('the frame %o is an error, and the connection stays', async (frame) => {
  const { live } = channel()
  const { send, frames, ends } = connect(live)
  frames.length = 0
  expect(await send(frame)).toMatchObject([{ t: 'err', code: 'bad-frame' }])
  expect(ends).toEqual([])
})

test('a binary frame ends the connection', async () => {
  const { live } = channel()
  const { send, frames, ends } = connect(live)
  frames.length = 0
  expect(await send({ t: 'ping', n: 1 }, true)).toEqual([{ t: 'bye', code: 'bad-frame', retryMs: LIVE.pingMs }])
  expect([ends, live.clients.size]).toEqual([['1000 bad-frame'], 0])
  expect(await send({ t: 'ping', n: 1 })).toEqual([])
})

test('a ping gets its number back', async () => {
  const { live } = channel()
  const { send, frames } = connect(live)
  frames.length = 0
  expect(await send({ t: 'ping', n: 7 })).toEqual([{ t: 'pong', n: 7 }])
})

test('a client may send 256 frames at once and 32 a second; a flooding one is disconnected', () => {
  const { live, clock } = channel()
  const { ping, frames, ends } = connect(live)
  frames.length = 0
  for (let n = 0; n < 256; n++) ping(n)
  expect(frames.length).toBe(256)
  clock.advance(1_000)
  for (let n = 0; n < 32; n++) ping(n)
  expect([frames.length, ends]).toEqual([288, []])
  ping(0)
  expect([frames.at(-1), ends]).toEqual([
    { t: 'bye', code: 'too-many-frames', retryMs: 30_000 },
    ['1000 too-many-frames'],
  ])
  vi.advanceTimersByTime(LIVE_LIMITS.farewellMs - 1)
  expect(ends.length).toBe(1)
  vi.advanceTimersByTime(1)
  expect(ends).toEqual(['1000 too-many-frames', 'terminated'])
})

test('unused frames are not collected beyond 256', () => {
  const { live, clock } = channel()
  const { ping, ends } = connect(live)
  clock.advance(3_600_000)
  for (let n = 0; n < 256; n++) ping(n)
  expect(ends).toEqual([])
  ping(0)
  expect(ends).toEqual(['1000 too-many-frames'])
})

test('control frames count like others', () => {
  const { live } = channel()
  const { socket, ends, frames } = connect(live)
  frames.length = 0
  for (let n = 0; n < 256; n++) socket.emit('ping')
  expect([frames, ends]).toEqual([[], []])
  socket.emit('ping')
  socket.emit('ping')
  expect(ends).toEqual(['1000 too-many-frames'])
})

test('a client that does not read its responses is disconnected', () => {
  const { live } = channel()
  const { ping, socket, frames } = connect(live)
  socket.bufferedAmount = LIVE_LIMITS.unreadBytesMax
  ping(1)
  expect(frames.at(-1)).toEqual({ t: 'pong', n: 1 })
  socket.bufferedAmount++
  ping(2)
  expect(frames.at(-1)).toMatchObject({ t: 'bye', code: 'too-many-frames' })
})

// Subscriptions

test('a subscription gets the value, and changes until it ends', async () => {
  const { live, clock } = channel()
  publish(live, 'summary', { n: 1 })
  const { send, frames } = connect(live)
  frames.length = 0
  const [value] = await send(sub(1, 'summary'))
  expect(value).toMatchObject({ t: 'snap', topic: 'summary', data: { n: 1 } })
  publish(live, 'summary', { n: 2 })
  clock.advance(1_000)
  flushTopics(live)
  expect(kinds(frames.splice(0))).toEqual(['delta'])
  expect(await send({ t: 'unsub', id: 9 })).toEqual([])
  expect(topicOf(live, 'summary').followers.size).toBe(1)
  await send({ t: 'unsub', id: 1 })
  expect(topicOf(live, 'summary').followers.size).toBe(0)
})

test('one of two followers that leaves does not make a topic idle', async () => {
  const { live, clock } = channel()
  publish(live, 'summary', 1)
  const [first, second] = [connect(live), connect(live)]
  await first.send(sub(1, 'summary'))
  await second.send(sub(1, 'summary'))
  const since = topicOf(live, 'summary').emptySince
  clock.advance(9)
  await first.send({ t: 'unsub', id: 1 })
  expect([topicOf(live, 'summary').emptySince, topicOf(live, 'summary').followers.size]).toEqual([since, 1])
})

test('with its last number a client gets what it lacks; a number of the future gets the whole value', async () => {
  const { live } = channel()
  publish(live, 'summary', { n: 1 })
  const { seq } = topicOf(live, 'summary')
  publish(live, 'summary', { n: 2 })
  const { send, frames } = connect(live)
  frames.length = 0
  expect(kinds(await send(sub(1, 'summary', seq)))).toEqual(['delta'])
  expect(kinds(await send(sub(2, 'summary', seq + 1)))).toEqual([])
  expect(kinds(await send(sub(3, 'summary', seq + 2)))).toEqual(['snap'])
})

test('a topic that is not published yet is sent with its first value', async () => {
  const { live, clock } = channel()
  const { send, frames } = connect(live)
  frames.length = 0
  expect(await send(sub(1, 'summary'))).toEqual([])
  publish(live, 'summary', 5)
  clock.advance(1_000)
  flushTopics(live)
  expect(frames).toMatchObject([{ t: 'snap', data: 5 }])
})

test('an offered topic is computed for its first follower, and again only after a change', async () => {
  const { live } = channel()
  let reads = 0
  offerTopics(live, /^op:/, () => ({ reads: ++reads }))
  const [first, second, third] = [connect(live), connect(live), connect(live)]
  expect((await first.send(sub(1, 'op:1'))).at(-1)).toMatchObject({ t: 'snap', data: { reads: 1 } })
  await second.send(sub(1, 'op:1'))
  expect(reads).toBe(1)
  touchTopic(live, 'op:1')
  await third.send(sub(1, 'op:1'))
  expect(reads).toBe(2)
})

test('without followers an offered topic is computed again', async () => {
  const { live } = channel()
  let reads = 0
  offerTopics(live, /^op:/, () => ++reads)
  const { send } = connect(live)
  await send(sub(1, 'op:1'))
  await send({ t: 'unsub', id: 1 })
  await send(sub(2, 'op:1'))
  expect(reads).toBe(2)
})

test('an offered topic without value does not exist', async () => {
  const { live } = channel()
  offerTopics(live, /^op:/, () => undefined)
  const { send, frames } = connect(live)
  frames.length = 0
  expect(await send(sub(4, 'op:1'))).toEqual([{ t: 'err', id: 4, code: 'not-found', message: 'unknown topic op:1' }])
  expect([...live.topics.keys(), ...[...live.clients].flatMap(({ topics }) => [...topics.keys()])]).toEqual([])
})

test('a topic that cannot be read is an error of the subscription', async () => {
  const { live, errors } = channel()
  const error = new Error('a defect')
  offerTopics(live, /^op:/, () => {
    throw error
  })
  const { send, frames } = connect(live)
  frames.length = 0
  expect(await send(sub(4, 'op:1'))).toEqual([{ t: 'err', id: 4, code: 'failed', message: 'op:1 could not be read' }])
  expect(errors).toEqual([{ err: error, topic: 'op:1' }])
})

test('a client that leaves, or unsubscribes, while a topic is read gets no value', async () => {
  const { live } = channel()
  const value = Promise.withResolvers<number>()
  offerTopics(live, /^op:/, () => value.promise)
  const [gone, left, again] = [connect(live), connect(live), connect(live)]
  for (const each of [gone, left, again]) {
    each.frames.length = 0
    await each.send(sub(1, 'op:1'))
  }
  gone.socket.emit('close')
  await left.send({ t: 'unsub', id: 1 })
  await again.send(sub(2, 'op:1'))
  value.resolve(5)
  await settled()
  expect([gone.frames, left.frames, kinds(again.frames)]).toEqual([[], [], ['snap']])
})

test('a client follows at most so many topics, and may subscribe again to its own', async () => {
  const { live, clock } = channel()
  const { send, frames } = connect(live)
  frames.length = 0
  for (let id = 0; id < LIVE.topicsMax; id++) {
    clock.advance(100)
    expect(await send(sub(id, `shard:s${id}`))).toEqual([])
  }
  const message = `a connection can subscribe to at most ${LIVE.topicsMax} topics`
  expect(await send(sub(900, 'shard:more'))).toEqual([{ t: 'err', id: 900, code: 'too-many-topics', message }])
  expect(await send(sub(901, 'shard:s1'))).toEqual([])
})

// Viewers

test('clients whose session has ended are disconnected, and each session is checked once', async () => {
  const { live } = channel()
  const checked: string[] = []
  const viewer = (key: string, isValid: boolean) => ({
    key,
    check: async () => {
      checked.push(key)
      return isValid
    },
  })
  const ended = [connect(live, viewer('v1', false)), connect(live, viewer('v1', false))]
  const kept = connect(live, viewer('v2', true))
  await checkViewers(live)
  expect(checked).toEqual(['v1', 'v2'])
  for (const { frames, ends } of ended) {
    expect(frames.at(-1)).toEqual({ t: 'bye', code: 'signed-out', retryMs: 0 })
    expect(ends).toEqual(['1000 signed-out'])
  }
  expect([kept.ends, live.clients.size]).toEqual([[], 1])
})

test('a client that sent nothing for more than 30 s is disconnected', async () => {
  const { live, clock } = channel()
  const silent = connect(live)
  const alive = connect(live)
  clock.advance(1_000)
  alive.ping(1)
  clock.advance(LIVE_LIMITS.silentMs - 1_000)
  await checkViewers(live)
  expect(silent.ends).toEqual([])
  clock.advance(1)
  await checkViewers(live)
  expect([silent.ends, alive.ends, live.clients.size]).toEqual([['terminated'], [], 1])
})
