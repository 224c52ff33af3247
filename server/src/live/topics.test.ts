/** Values of topics, their kept changes, and the frames that bring a follower up to date. Clients and clock are simulated. */

import { turnableClock } from '@vacancy/shared'
import { applyOps, LIVE, type LiveOp, type ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { createRandom, pick } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import type { Client, Live } from './state.ts'
import { bringUpToDate, flushTopics, publish, topicOf } from './topics.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const NOW = Date.parse('2026-11-22T12:00:00.000Z')
function channel() {
  const clock = turnableClock(NOW)
  const errors: unknown[] = []
  const log = { error: (fields: unknown) => errors.push(fields) } as unknown as Log
  const live: Live = {
    ...{ server: 'test', log, clock, webSockets: {} as Live['webSockets'], topics: new Map(), offers: [] },
    ...{ clients: new Set(), lastFrame: undefined, framesSent: 0, bytesSent: 0, timers: [] },
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
