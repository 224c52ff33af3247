/** Values of topics, their kept changes, and the frames that bring a follower up to date. Clients and clock are simulated. */

import { turnableClock } from '@vacancy/shared'
import { applyOps, LIVE, type LiveOp, type ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { createRandom, pick } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import type { Client, Live } from './state.ts'
import { bringUpToDate, flushTopics, offerTopics, pollTopics, publish, refresh, topicOf, touchTopic } from './topics.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const at = (ms: number) => new Date(ms).toISOString()

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

const settled = () => new Promise(setImmediate)

// Values

test('a topic starts empty, with a number above those of earlier processes', () => {
  const { live } = channel()
  const topic = topicOf(live, 'summary')

  expect(topic).toMatchObject({ name: 'summary', seq: NOW + 1_000_000, hasValue: false, value: undefined, kept: [] })
  expect(topicOf(live, 'summary')).toBe(topic)
  expect(live.topics.size).toBe(1)
})

test('each change has the next number, and an equal value is no change', () => {
  const { live, clock } = channel()
  const topic = topicOf(live, 'summary')
  const first = topic.seq
  publish(live, 'summary', { a: 1 })
  expect([topic.seq, topic.kept]).toEqual([first + 1, []])
  clock.advance(5)
  publish(live, 'summary', { a: 2 })
  clock.advance(5)
  publish(live, 'summary', { a: 2 })

  expect([topic.seq, topic.at, topic.value]).toEqual([first + 2, NOW + 1_000_005, { a: 2 }])
  expect(topic.kept).toEqual([{ seq: first + 2, ops: '[["a"],2]' }])
  expect(topic.keptBytes).toBe('[["a"],2]'.length)
})

test('at most 1,000 changes are kept', () => {
  const { live } = channel()
  for (let i = 0; i <= 1_000; i++) publish(live, 'summary', { a: i })
  const topic = topicOf(live, 'summary')
  expect(topic.kept).toHaveLength(1_000)

  publish(live, 'summary', { a: -1 })

  expect([topic.kept.length, topic.kept[0]?.ops, topic.kept.at(-1)?.ops]).toEqual([1_000, '[["a"],2]', '[["a"],-1]'])
  expect(topic.keptBytes).toBe(topic.kept.reduce((sum, { ops }) => sum + ops.length, 0))
})

test('at most 512 KiB of changes are kept', () => {
  const { live } = channel()
  const half = 256 * 1_024 - '[["a"],""]'.length
  const topic = topicOf(live, 'summary')
  publish(live, 'summary', { a: '' })
  publish(live, 'summary', { a: 'x'.repeat(half) })
  publish(live, 'summary', { a: 'y'.repeat(half) })
  expect([topic.kept.length, topic.keptBytes]).toEqual([2, 512 * 1_024])

  publish(live, 'summary', { a: 'z' })
  expect([topic.kept.length, topic.keptBytes]).toEqual([2, 256 * 1_024 + '[["a"],"z"]'.length])
  publish(live, 'summary', { a: 'z'.repeat(600 * 1_024) })
  expect([topic.kept.length, topic.keptBytes]).toEqual([0, 0])
})

test('a value without followers for more than a minute forgets its changes', () => {
  const { live, clock } = channel()
  const topic = topicOf(live, 'summary')
  publish(live, 'summary', { a: 1 })
  clock.advance(60_000)
  publish(live, 'summary', { a: 2 })
  expect(topic.kept).toHaveLength(1)
  clock.advance(1)

  publish(live, 'summary', { a: 2 })
  // Not compared, so that publishing is cheap: the number changes.
  expect([topic.kept.length, topic.keptBytes, topic.seq]).toEqual([0, 0, NOW + 1_000_003])
  const follower = browser(live)
  follower.follow('summary', topic.seq)
  publish(live, 'summary', { a: 3 })
  expect(topic.kept).toHaveLength(1)
})

// Frames

test('a follower gets the whole value first, then the changes that it lacks', () => {
  const { live } = channel()
  publish(live, 'summary', { a: 1 })
  const one = browser(live)
  one.follow('summary')
  const first = one.update('summary')
  publish(live, 'summary', { a: 2 })
  publish(live, 'summary', { a: 2, b: 3 })
  expect(one.update('summary')).toBe(first + 2)
  one.update('summary')

  const stamp = at(NOW + 1_000_000)
  expect(one.frames).toEqual([
    { t: 'snap', topic: 'summary', seq: first, at: stamp, data: { a: 1 } },
    {
      t: 'delta',
      topic: 'summary',
      seq: first + 2,
      at: stamp,
      ops: [
        [['a'], 2],
        [['b'], 3],
      ],
    },
  ])
  expect([live.framesSent, live.bytesSent]).toEqual([
    2,
    one.frames.reduce((sum, frame) => sum + JSON.stringify(frame).length, 0),
  ])
})

test('a follower whose changes are no longer kept gets the whole value', () => {
  const { live } = channel()
  for (let i = 0; i < 1_003; i++) publish(live, 'summary', { a: i })
  const topic = topicOf(live, 'summary')
  const oldest = topic.kept[0]?.seq as number
  const kindOf = (seq: number) => {
    const one = browser(live)
    one.follow('summary', seq)
    one.update('summary')
    expect(one.frames).toHaveLength(1)
    return one.frames[0]?.t
  }

  expect([oldest - 2, oldest - 1, oldest, topic.seq - 1].map(kindOf)).toEqual(['snap', 'delta', 'delta', 'delta'])
})

test('a topic without a value sends nothing', () => {
  const { live } = channel()
  const one = browser(live)
  one.follow('summary')

  expect(one.update('summary')).toBe(-1)
  expect(one.frames).toEqual([])
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

// Flushes

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

test('a flush without changes does not delay the next frame', () => {
  const { live, clock } = channel()
  const one = browser(live)
  one.follow('summary')
  publish(live, 'summary', 1)
  flushTopics(live)
  clock.advance(250)
  flushTopics(live)
  publish(live, 'summary', 2)
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

test('an offered topic is forgotten after a minute without followers, a published one is not', () => {
  const { live, clock } = channel()
  offerTopics(live, /^shard:/, () => 1)
  topicOf(live, 'shard:s1')
  topicOf(live, 'shard:s2')
  publish(live, 'summary', 1)
  browser(live).follow('shard:s2')
  clock.advance(60_000)
  flushTopics(live)
  expect([...live.topics.keys()]).toEqual(['shard:s1', 'shard:s2', 'summary'])
  clock.advance(1)
  flushTopics(live)

  expect([...live.topics.keys()]).toEqual(['shard:s2', 'summary'])
})

// Offers

test('the value of an offered topic is not published while nothing follows it', () => {
  const { live } = channel()
  offerTopics(live, /^shard:/, () => 1)
  publish(live, 'shard:s1', 2)
  expect(live.topics.size).toBe(0)
  topicOf(live, 'shard:s1')
  publish(live, 'shard:s1', 2)

  expect(topicOf(live, 'shard:s1').value).toBe(2)
})

test('a touched topic is computed once per flush, and again if it is touched meanwhile', async () => {
  const { live, clock } = channel()
  let reads = 0
  let finish = (_: unknown) => {}
  offerTopics(live, /^node:/, () => 'other')
  offerTopics(live, /^shard:/, (name) => {
    reads++
    return new Promise((resolve) => {
      finish = () => resolve(`${name} ${reads}`)
    })
  })
  const one = browser(live)
  one.follow('shard:s1')
  const flush = () => {
    clock.advance(250)
    flushTopics(live)
  }
  touchTopic(live, 'shard:s2')
  expect(live.topics.size).toBe(1)
  flush()
  expect(reads).toBe(0)
  touchTopic(live, 'shard:s1')
  flush()
  flush()
  touchTopic(live, 'shard:s1')
  flush()
  expect(reads).toBe(1)
  finish(undefined)
  await settled()
  flush()
  expect([reads, one.value('shard:s1')]).toEqual([2, 'shard:s1 1'])
  finish(undefined)
  await settled()
  flush()

  expect([reads, one.value('shard:s1')]).toEqual([2, 'shard:s1 2'])
})

test('a topic whose offer fails keeps its value, and is logged', async () => {
  const { live, errors } = channel()
  const error = new Error('defect')
  offerTopics(live, /^shard:/, () => {
    throw error
  })
  browser(live).follow('shard:s1')
  touchTopic(live, 'shard:s1')
  flushTopics(live)
  await settled()

  expect(errors).toEqual([{ err: error, topic: 'shard:s1' }])
  expect(topicOf(live, 'shard:s1').reading).toBeUndefined()
})

test('a topic that does not exist, or is not offered, has no value', async () => {
  const { live } = channel()
  offerTopics(live, /^shard:/, () => undefined)
  await refresh(live, topicOf(live, 'shard:s1'))
  await refresh(live, topicOf(live, 'ops'))

  expect([...live.topics.values()].map(({ hasValue }) => hasValue)).toEqual([false, false])
})

// Polls

const poll = async (live: Live, topics: string) =>
  await pollTopics(live, { query: { topics } } as Parameters<typeof pollTopics>[1])

test('a poll has the current values of the topics that have one', async () => {
  const { live } = channel()
  let reads = 0
  offerTopics(live, /^shard:/, (name) => (name === 'shard:s1' ? ++reads : undefined))
  publish(live, 'summary', { a: 1 })
  const seq = NOW + 1_000_001
  const stamp = at(NOW + 1_000_000)

  expect(await poll(live, 'summary,,shard:s1,ops,shard:s2,summary')).toEqual({
    topics: [
      { topic: 'summary', seq, at: stamp, data: { a: 1 } },
      { topic: 'shard:s1', seq, at: stamp, data: 1 },
    ],
  })
  await poll(live, 'shard:s1')
  expect(reads).toBe(2)
  // With a follower it is up to date unless it was touched.
  browser(live).follow('shard:s1')
  await poll(live, 'shard:s1')
  expect(reads).toBe(2)
  touchTopic(live, 'shard:s1')
  await poll(live, 'shard:s1')
  await poll(live, 'shard:s1')
  expect(reads).toBe(3)
})

test('a poll names at most 64 valid topics', async () => {
  const { live } = channel()
  const names = (count: number) => Array.from({ length: count }, (_, n) => `shard:s${n}`).join()
  const error = { status: 400, code: 'bad-topics', field: 'topics' }

  expect(await poll(live, names(64))).toEqual({ topics: [] })
  await expect(poll(live, names(65))).rejects.toMatchObject(error)
  await expect(poll(live, 'summary,nonsense')).rejects.toMatchObject({
    ...error,
    message: 'Give at most 64 topic names, separated by commas.',
  })
})
