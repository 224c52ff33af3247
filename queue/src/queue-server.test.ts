import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Partition } from './partition.ts'
import {
  durable,
  durableWithin,
  type QueueServer,
  refuseFullDisk,
  servingOf,
  servingPartition,
  topicOf,
  withReason,
} from './queue-server.ts'
import { end, type Group, type GroupOutcome } from './state.ts'
import { startEngine } from './testing/engine.ts'

const clock = { wallMs: () => 5, monotonicMs: () => 100 }
const partitionOf = (fields: object): Partition =>
  ({ options: { clock }, queue: undefined, unavailable: undefined, owner: undefined, fullUntil: 0, ...fields }) as never

describe('the reason of a change', () => {
  it.each([
    [{}, 'detail'],
    [{ reason: undefined }, 'detail'],
    [{ reason: '  ' }, 'detail'],
    [{ reason: ' by order ' }, 'detail. Reason: by order'],
  ])('%j is added to its detail', (given, expected) => {
    expect(withReason('detail', given)).toBe(expected)
  })
})

describe('the partition of a topic', () => {
  // FNV-1a of 32 bits: a 0xe40c292c, b 0xe70c2de5, foobar 0xbf9cf968.
  it.each([
    ['a', 4, 0],
    ['b', 4, 1],
    ['foobar', 7, 0xbf9cf968 % 7],
    ['a', 7, 0xe40c292c % 7],
    ['foobar', 1, 0],
  ])('of "%s" among %i is number %i in every process', (topic, count, expected) => {
    const queues = Array.from({ length: count }, () => startEngine().queue)
    const server = { partitions: queues.map((queue) => partitionOf({ queue })) } as unknown as QueueServer
    const { queue, partition, now } = servingOf(server, topic)
    expect(queues.indexOf(queue)).toBe(expected)
    expect(server.partitions.indexOf(partition)).toBe(expected)
    expect(now).toEqual({ wallMs: 5, monotonicMs: 100 })
  })
})

describe('a partition that does not serve', () => {
  const { queue } = startEngine()
  it.each([
    [{ queue, unavailable: 'standby' }, 'not_owner', 'another process owns this part of the queue', {}],
    [{ unavailable: 'standby', owner: 'http://b' }, 'not_owner', 'another process owns', { owner: 'http://b' }],
    [{ unavailable: 'loading' }, 'service_unavailable', 'the queue is being loaded', {}],
    [{}, 'service_unavailable', 'the queue is being loaded', {}],
    [{ queue, unavailable: 'journal' }, 'service_unavailable', 'the journal of the queue is not available', {}],
    [{ queue, unavailable: 'shutting_down' }, 'service_unavailable', 'the server is shutting down', {}],
  ])('is refused: case %#', (fields, code, message, more) => {
    const serve = () => servingPartition(partitionOf(fields))
    expect(serve).toThrow(expect.objectContaining({ code, more, message: expect.stringContaining(message) }))
  })
})

it('a topic that does not exist is named', () => {
  const { queue, topic } = startEngine()
  const serving = servingPartition(partitionOf({ queue }))
  expect(topicOf(serving, 'orders')).toBe(topic)
  expect(() => topicOf(serving, 'mail')).toThrow(
    expect.objectContaining({ code: 'topic_not_found', message: 'topic "mail" does not exist' }),
  )
})

describe('waiting until groups are durable', () => {
  it.each([
    [[], undefined],
    [['durable', 'durable'], undefined],
    [['durable', 'full'], 'queue_full'],
    [['unknown', 'durable'], 'outcome_unknown'],
  ] as [GroupOutcome[], string | undefined][])('ends with %j as %s', async (outcomes, code) => {
    const waiting = durable(outcomes.map((outcome) => Promise.resolve(outcome)))
    if (code === undefined) await waiting
    else await expect(waiting).rejects.toMatchObject({ code })
  })
})

describe('a submission', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  const groups = (count: number): Group[] =>
    Array.from({ length: count }, (_, number) => ({ number, changes: [], bytes: 0, isUrgent: false, waiting: [] }))

  function begin(count: number) {
    const state = { result: 'waiting', full: 0 }
    const list = groups(count)
    durableWithin(list, 400, () => state.full++).then(
      () => {
        state.result = 'stored'
      },
      ({ code, message }) => {
        state.result = `${code}: ${message}`
      },
    )
    const ended = async (n: number, outcome: GroupOutcome) => {
      end(list[n] as Group, outcome)
      await vi.advanceTimersByTimeAsync(0)
      return state.result
    }
    return { state, list, ended }
  }

  it('without groups is stored at once', async () => {
    await durableWithin([], 1, () => undefined)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is stored when its last group is, and waits as what needs room', async () => {
    const { list, ended, state } = begin(3)
    expect(list.map(({ waiting }) => waiting[0]?.isGrowth)).toEqual([true, true, true])
    expect(await ended(1, 'durable')).toBe('waiting')
    expect(await ended(0, 'durable')).toBe('waiting')
    expect(await ended(2, 'durable')).toBe('stored')
    expect(vi.getTimerCount()).toBe(0)
    expect(state.full).toBe(0)
  })

  it('is refused and counted once when the disk is full', async () => {
    const { state, ended } = begin(2)
    expect(await ended(0, 'full')).toBe('queue_full: the disk of the queue is full')
    await ended(1, 'full')
    expect(state.full).toBe(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('has an unknown outcome when the journal fails', async () => {
    const { state, ended } = begin(2)
    const expected = 'outcome_unknown: the journal failed while storing; repeat the request with the same ids'
    expect(await ended(1, 'unknown')).toBe(expected)
    expect(await ended(0, 'full')).toBe(expected)
    expect(state.full).toBe(0)
  })

  it('waits no longer than its limit', async () => {
    const { state, ended } = begin(1)
    await vi.advanceTimersByTimeAsync(399)
    expect(state.result).toBe('waiting')
    await vi.advanceTimersByTimeAsync(1)
    const expected = 'outcome_unknown: not stored within 400 ms; repeat the request with the same ids'
    expect(state.result).toBe(expected)
    expect(await ended(0, 'full')).toBe(expected)
    expect(state.full).toBe(0)
  })
})

it('a full disk refuses until its time is over, and counts', () => {
  let counted = 0
  const refuse = (fullUntil: number) => () => refuseFullDisk(partitionOf({ fullUntil }), () => counted++)
  expect(refuse(101)).toThrow(expect.objectContaining({ code: 'queue_full', more: { retryAfterMs: 1_000 } }))
  expect(() => refuseFullDisk(partitionOf({ fullUntil: 101 }))).toThrow('the disk of the queue is full')
  expect(counted).toBe(1)
  refuse(100)()
  expect(counted).toBe(1)
})
