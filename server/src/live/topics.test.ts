import { EventEmitter } from 'node:events'
import { turnableClock } from '@vacancy/shared'
import { applyOps, LIVE, type LiveOp, type ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { createRandom, pick } from '@vacancy/testkit/random'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { createAlarm } from '../http/alarm.ts'
import { addClient, checkViewers } from './clients.ts'
import { type Client, LIVE_LIMITS, type Live, type Viewer } from './state.ts'
import { bringUpToDate, flushTopics, publish, topicOf } from './topics.ts'

/** Values of topics, their kept changes, and the frames that bring a follower up to date. Clients and clock are simulated. */

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const NOW = Date.parse('2026-11-22T12:00:00.000Z')
function channel() {
  const clock = turnableClock(NOW)
  const errors: unknown[] = []
  const log = { error: (fields: unknown) => errors.push(fields) } as unknown as Log
  const live: Live = {
    ...{ server: 'test', log, clock, webSockets: {} as Live['webSockets'], topics: new Map(), offers: [] },
    ...{ clients: new Set(), lastFrame: undefined, framesSent: 0, bytesSent: 0, checking: undefined },
    alarm: createAlarm(clock, LIVE_LIMITS.flushMs, () => flushTopics(live)),
  }
  // The monotonic clock does not start at 0.
  clock.advance(1_000_000)
  return { live, clock, errors }
}

/** A browser that follows topics, with the state that its frames give. */
function browser(live: Live) {
  const frames: ServerFrame[] = []
  const values = new Map<string, unknown>()
  const socket = {
    bufferedAmount: 0,
    send: (bytes: Buffer) => {
      const frame = JSON.parse(bytes.toString()) as ServerFrame
      frames.push(frame)
      if (frame.t === 'snap') values.set(frame.topic, frame.data)
      if (frame.t === 'delta')
        values.set(frame.topic, applyOps(values.get(frame.topic), frame.ops as readonly LiveOp[]))
    },
  }
  const client = { socket } as unknown as Client
  return {
    ...{ frames, socket },
    value: (topic: string) => values.get(topic),
    follow: (name: string, seq = -1) => void topicOf(live, name).followers.set(client, { seq }),
    leave: (name: string) => void topicOf(live, name).followers.delete(client),
    update: (name: string) => {
      const topic = topicOf(live, name)
      const follower = topic.followers.get(client)
      if (!follower) throw new Error(`does not follow ${name}`)
      bringUpToDate(live, topic, client, follower)
      return follower.seq
    },
  }
}

test('at most 1,000 changes are kept', () => {
  const { live } = channel()
  for (let i = 0; i <= 1_000; i++) publish(live, 'summary', { a: i })
  const topic = topicOf(live, 'summary')
  expect(topic.kept).toHaveLength(1_000)

  publish(live, 'summary', { a: -1 })

  expect([topic.kept.length, topic.kept[0]?.ops, topic.kept.at(-1)?.ops]).toEqual([1_000, '[["a"],2]', '[["a"],-1]'])
  expect(topic.keptBytes).toBe(topic.kept.reduce((sum, { ops }) => sum + ops.length, 0))
})

test('a client that does not read gets the newest value once it does', () => {
  const { live } = channel()
  publish(live, 'summary', { a: 1 })
  const one = browser(live)
  one.follow('summary')
  one.socket.bufferedAmount = LIVE.unsentBytesMax
  const first = one.update('summary')
  one.socket.bufferedAmount = LIVE.unsentBytesMax + 1
  publish(live, 'summary', { a: 2 })
  expect(one.update('summary')).toBe(-1)
  one.socket.bufferedAmount = 0
  publish(live, 'summary', { a: 3 })

  expect(one.update('summary')).toBe(first + 2)
  expect(one.frames.map(({ t }) => t)).toEqual(['snap', 'snap'])
  expect(one.value('summary')).toEqual({ a: 3 })
})

test('followers of drawn histories have the published values', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 20; round++) {
    const { live } = channel()
    const browsers = [browser(live), browser(live), browser(live)]
    for (const each of browsers) for (const name of ['summary', 'ops']) each.follow(name)
    const values = new Map<string, unknown>()
    for (let step = 0; step < 60; step++) {
      const name = pick(random, ['summary', 'ops'])
      const list = Array.from({ length: random.below(3) }, () => random.below(3))
      values.set(name, { a: random.below(3), list, ...(random.below(2) === 0 && { b: { c: random.below(2) } }) })
      publish(live, name, values.get(name))
      const one = pick(random, browsers)
      one.socket.bufferedAmount = random.below(8) === 0 ? LIVE.unsentBytesMax + 1 : 0
      one.update(pick(random, ['summary', 'ops']))
    }
    for (const one of browsers) {
      one.socket.bufferedAmount = 0
      for (const [name, value] of values) {
        one.update(name)
        expect(one.value(name), `seed ${SEED}, round ${round}`).toEqual(value)
      }
    }
  }
})

test.each([
  ['summary', 250],
  ['node:s1/op:1', 250],
  ['op:1', 100],
  ['import:1', 100],
])('frames of %s are at least %d ms apart', (name, ms) => {
  const { live, clock } = channel()
  const one = browser(live)
  one.follow(name)
  publish(live, name, 1)
  flushTopics(live)
  publish(live, name, 2)
  clock.advance(ms - 1)
  flushTopics(live)
  expect(one.frames).toHaveLength(1)
  clock.advance(1)
  flushTopics(live)
  expect(one.frames).toHaveLength(2)
})

test('the first value of a topic is sent by the next flush', () => {
  const { live } = channel()
  const one = browser(live)
  one.follow('summary')
  flushTopics(live)
  publish(live, 'summary', 1)
  flushTopics(live)

  expect(one.frames).toHaveLength(1)
})

describe('clients', () => {
  /** Clients of the live channel: frames, subscriptions, limits and disconnection. Sockets and clock are simulated. */

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
      ...{ clients: new Set(), lastFrame: undefined, framesSent: 0, bytesSent: 0, checking: undefined },
      alarm: createAlarm(clock, LIVE_LIMITS.flushMs, () => flushTopics(live)),
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

  test('there are at most 1,000 clients', () => {
    const { live } = channel()
    for (let count = 1; count < LIVE_LIMITS.clientsMax; count++)
      live.clients.add({ viewer: { key: `v${count}` } } as unknown as Client)
    expect(connect(live, { key: 'last' }).ends).toEqual([])
    expect(connect(live, { key: 'more' }).ends).toEqual(['1000 too-many-connections'])
    expect(live.clients.size).toBe(1_000)
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
})
