import { createRandom, streamOf } from '@vacancy/testkit/random'
import { cancelEvent, createScheduler, runNext, scheduleAt, scheduleIn } from '@vacancy/testkit/scheduler'
import { expect, test } from 'vitest'
import {
  attach,
  block,
  createNetwork,
  detach,
  type NetworkEnd,
  resetConnection,
  sendPayload,
  unblock,
} from './network.ts'
import { poison } from './poison.ts'
import { createTrace, note, traceHash } from './trace.ts'

test('events run in order of time, and events of the same time in order of creation', () => {
  const scheduler = createScheduler()
  const random = createRandom(7)
  const ran: number[] = []
  const expected: [number, number][] = []
  for (let i = 0; i < 500; i++) {
    const atUs = random.below(50)
    expected.push([atUs, i])
    scheduleAt(scheduler, atUs, () => ran.push(i))
  }
  while (runNext(scheduler, 1_000));

  expected.sort((a, b) => a[0] - b[0] || a[1] - b[1])
  expect(ran).toEqual(expected.map(([, i]) => i))
})

test('events in the past run now, cancelled events never, events after the end not yet', () => {
  const scheduler = createScheduler()
  const ran: string[] = []
  scheduleAt(scheduler, 100, () => scheduleAt(scheduler, 5, () => ran.push(`late at ${scheduler.nowUs}`)))
  cancelEvent(scheduleIn(scheduler, 50, () => ran.push('cancelled')))
  scheduleIn(scheduler, 300, () => ran.push('behind the end'))

  while (runNext(scheduler, 200));

  expect(ran).toEqual(['late at 100'])
  expect(scheduler.ran).toBe(2)
})

test('streams of one seed are independent and reproducible', () => {
  const draw = (seed: number, name: string) => Array.from({ length: 4 }, streamOf(seed, name).next)
  expect(draw(1, 'disk')).toEqual(draw(1, 'disk'))
  expect(draw(1, 'disk')).not.toEqual(draw(1, 'network'))
  expect(draw(1, 'disk')).not.toEqual(draw(2, 'disk'))
  expect(draw(1, 'disk')).not.toEqual(draw(1 + 2 ** 32, 'disk'))
})

test('the trace of a run changes with every part of an event', () => {
  const hashOf = (...events: Parameters<typeof note>[]) => {
    const trace = createTrace(false)
    for (const [, ...rest] of events) note(trace, ...rest)
    return traceHash(trace)
  }
  const trace = createTrace(false)
  const all = [
    hashOf([trace, 1, 1, 'frame', 1]),
    hashOf([trace, 2, 1, 'frame', 1]),
    hashOf([trace, 1, 2, 'frame', 1]),
    hashOf([trace, 1, 1, 'timer', 1]),
    hashOf([trace, 1, 1, 'frame', 2]),
    hashOf([trace, 1, 1, 'frame', 1], [trace, 1, 1, 'frame', 1]),
  ]
  expect(new Set(all).size).toBe(all.length)
  expect(hashOf([trace, 1, 1, 'frame', 1])).toBe(all[0])
})

test('during a run, real clocks and random sources throw; afterwards they are restored', () => {
  const restore = poison()
  try {
    expect(() => Date.now()).toThrow('it is not deterministic')
    expect(() => new Date()).toThrow('it is not deterministic')
    expect(() => Math.random()).toThrow()
    expect(() => performance.now()).toThrow()
    expect(() => setTimeout(() => undefined, 1)).toThrow()
    expect(() => crypto.randomUUID()).toThrow()
    expect(new Date(86_400_000).toISOString()).toBe('1970-01-02T00:00:00.000Z')
  } finally {
    restore()
  }
  expect(Date.now()).toBeGreaterThan(0)
  expect(Math.random()).toBeLessThan(1)
})

const CALM = { latencyUsMin: 100, latencyUsMax: 100, dropP: 0, duplicateP: 0, lateP: 0, lateUsMax: 1, damageP: 0 }

function twoNodes(knobs = {}) {
  const scheduler = createScheduler()
  const network = createNetwork(
    2,
    { ...CALM, queueBytesMax: 10_000, isOrdered: false, ...knobs },
    scheduler,
    createRandom(1),
    () => undefined,
  )
  const seen: string[] = []
  const end = (node: number): NetworkEnd => ({
    onPayload: (from, stream, payload) =>
      void seen.push(`${node} got ${(payload as Uint8Array)[0]} of ${from} on ${stream}`),
    onOpen: (peer, stream) => void (stream === 'control' && seen.push(`${node} open to ${peer}`)),
    onClosed: (peer, stream, isDead) =>
      void (stream === 'control' && seen.push(`${node} closed to ${peer}${isDead ? ', dead' : ''}`)),
  })
  const settle = (us: number): string[] => {
    const endUs = scheduler.nowUs + us
    while (runNext(scheduler, endUs));
    scheduler.nowUs = endUs
    return seen.splice(0)
  }
  attach(network, 1, end(1))
  attach(network, 2, end(2))
  return { network, scheduler, settle, end }
}

const send = (network: Parameters<typeof sendPayload>[0], byte: number, from = 1, to = 2) =>
  sendPayload(network, from, to, 'append', Uint8Array.of(byte), 1)

test('a frame arrives once the connection is open; before that it is dropped', () => {
  const { network, settle } = twoNodes()
  expect(send(network, 1)).toBe(false)
  expect(settle(10_000)).toEqual(['1 open to 2', '2 open to 1'])

  expect(send(network, 2)).toBe(true)

  expect(settle(10_000)).toEqual(['2 got 2 of 1 on append'])
})

test('a blocked link drops one direction; the connection times out and is restored later', () => {
  const { network, settle } = twoNodes()
  settle(10_000)
  block(network, 1, 2)
  send(network, 1)
  send(network, 2, 2, 1)
  expect(settle(10_000)).toEqual(['1 got 2 of 2 on append'])
  expect(settle(10_000_000).sort()).toEqual(['1 closed to 2', '2 closed to 1'])
  unblock(network, 1, 2)
  expect(settle(1_000_000).sort()).toEqual(['1 open to 2', '2 open to 1'])
})

test('a dead process is detected immediately if its machine is up, and later if it is not', () => {
  const killed = twoNodes()
  killed.settle(10_000)
  detach(killed.network, 1, true)
  expect(killed.settle(10_000)).toEqual(['2 closed to 1, dead'])

  const gone = twoNodes()
  gone.settle(10_000)
  detach(gone.network, 1, false)
  expect(gone.settle(100_000)).toEqual([])
  expect(gone.settle(10_000_000)).toEqual(['2 closed to 1'])
  attach(gone.network, 1, gone.end(1))
  expect(gone.settle(1_000_000).sort()).toEqual(['1 open to 2', '2 open to 1'])
})

test('a stream keeps its order where the network is calm or ordered, and only there', () => {
  const bytesOf = (seen: readonly string[]) => seen.map((line) => Number(line.split(' ')[2]))
  const sent = Array.from({ length: 50 }, (_, at) => at)
  const isKept = (isOrdered: boolean, isCalm: boolean): boolean => {
    const { network, settle } = twoNodes({ latencyUsMax: 5_000, isOrdered })
    settle(10_000)
    network.isCalm = isCalm
    for (const byte of sent) send(network, byte)
    const got = bytesOf(settle(10_000))
    expect([...got].sort((a, b) => a - b)).toEqual(sent)
    return got.every((byte, at) => byte === at)
  }

  expect([isKept(false, false), isKept(true, false), isKept(false, true)]).toEqual([false, true, true])
})

test('frames may be lost, come twice, or break the connection that they are damaged on', () => {
  const lossy = twoNodes({ dropP: 1 })
  lossy.settle(10_000)
  send(lossy.network, 1)
  expect(lossy.settle(10_000)).toEqual([])

  const twice = twoNodes({ duplicateP: 1, lateUsMax: 1 })
  twice.settle(10_000)
  send(twice.network, 1)
  expect(twice.settle(130_000_000)).toEqual(['2 got 1 of 1 on append', '2 got 1 of 1 on append'])

  const damaged = twoNodes({ damageP: 1 })
  damaged.settle(10_000)
  send(damaged.network, 1)
  expect(damaged.settle(10_000)).toEqual(['1 closed to 2', '2 closed to 1'])
})

test('a slow link delays frames by their size and drops those beyond its queue', () => {
  const { network, settle } = twoNodes()
  settle(10_000)
  network.bytesPerSecond[1 * 3 + 2] = 1_000
  sendPayload(network, 1, 2, 'bulk', Uint8Array.of(1), 1_000)
  expect(settle(900_000)).toEqual([])
  expect(settle(200_000)).toEqual(['2 got 1 of 1 on bulk'])
  let taken = 0
  while (sendPayload(network, 1, 2, 'bulk', Uint8Array.of(2), 1_000)) taken++
  expect(taken).toBe(11)
  resetConnection(network, 1, 2)
  expect(send(network, 3)).toBe(false)
})
