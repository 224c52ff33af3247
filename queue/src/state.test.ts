import { describe, expect, it } from 'vitest'
import {
  append,
  type Change,
  createQueue,
  end,
  endGrowth,
  endWriting,
  failGroups,
  later,
  putGroupBack,
  type Queue,
  takeGroup,
  waitForGroup,
} from './state.ts'
import { LIMITS } from './testing/engine.ts'

const LIMITED = { ...LIMITS, groupChangesMax: 4, groupBytesMax: 1_000 }
const queueOf = (): Queue =>
  createQueue(
    { limits: LIMITED, random: () => 0.5, leasePrefix: 'p', nextConsumer: 3, consumerStride: 4 },
    { wallMs: 1_000_000, monotonicMs: 400 },
  )
const done = (seq: number): Change => ({ kind: 'done', seq })
const changes = (count: number) => Array.from({ length: count }, (_, n) => done(n))
const sizes = ({ groups }: Queue) => groups.map((group) => group.changes.length)

it('a new queue is empty, and numbers begin at 1', () => {
  const queue = queueOf()
  expect([queue.nextGroup, queue.nextSeq, queue.nextTopicNumber, queue.nextDelivery]).toEqual([1, 1, 1, 1])
  expect([queue.nextConsumer, queue.consumerStride, queue.bytes]).toEqual([3, 4, 0])
  expect([queue.sweptAt, queue.clockOffset]).toEqual([400, 999_600])
  expect(takeGroup(queue)).toBeUndefined()
})

describe('changes', () => {
  it('of several requests share a group while they fit its count', () => {
    const queue = queueOf()
    append(queue, changes(3), 1)
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([4])
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([4, 1])
    expect(queue.groups.map(({ number }) => number)).toEqual([1, 2])
  })

  it('of several requests share a group while they fit its bytes', () => {
    const queue = queueOf()
    append(queue, changes(1), 400)
    append(queue, changes(1), 600)
    expect(queue.groups.map(({ bytes }) => bytes)).toEqual([1_000])
    append(queue, changes(1), 1)
    expect(queue.groups.map(({ bytes }) => bytes)).toEqual([1_000, 1])
  })

  it('of one request stay together, also beyond the limits', () => {
    const queue = queueOf()
    append(queue, changes(9), 5_000)
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([9, 1])
  })

  it('that no request waits for make a group no more urgent', () => {
    const queue = queueOf()
    later(queue, done(7))
    const [group] = queue.groups
    expect(group).toMatchObject({ isUrgent: false, changes: [done(7)], bytes: 100 })
    expect(append(queue, changes(1), 5)).toBe(group)
    expect(group).toMatchObject({ isUrgent: true, bytes: 105 })
    later(queue, done(8))
    expect(group?.isUrgent).toBe(true)
  })
})

describe('groups', () => {
  it('are written in order, one at a time', () => {
    const queue = queueOf()
    append(queue, changes(4), 1)
    append(queue, changes(2), 1)
    const first = takeGroup(queue)
    expect(first?.number).toBe(1)
    expect(() => takeGroup(queue)).toThrow('one group is written at a time')
    // What arrives meanwhile is in a later group.
    append(queue, changes(1), 1)
    expect(sizes(queue)).toEqual([3])
    expect(endWriting(queue)).toBe(first)
    expect(() => endWriting(queue)).toThrow('a group is being written')
    expect(takeGroup(queue)?.number).toBe(2)
  })

  it('may be put back, to be written next', () => {
    const queue = queueOf()
    append(queue, changes(4), 1)
    append(queue, changes(2), 1)
    const first = takeGroup(queue)
    putGroupBack(queue)
    expect(queue.writing).toBeUndefined()
    expect(takeGroup(queue)).toBe(first)
    expect(sizes(queue)).toEqual([2])
  })

  it('tell each that waits how they ended, once', () => {
    const queue = queueOf()
    const group = append(queue, changes(1), 1)
    const outcomes: string[] = []
    waitForGroup(group, true, (outcome) => outcomes.push(`growth ${outcome}`))
    waitForGroup(group, false, (outcome) => outcomes.push(`other ${outcome}`))
    endGrowth(group, 'full')
    expect(outcomes).toEqual(['growth full'])
    end(group, 'durable')
    end(group, 'unknown')
    expect(outcomes).toEqual(['growth full', 'other durable'])
  })

  it('all have an unknown outcome when the journal fails, the one that is written first', () => {
    for (const isWriting of [true, false]) {
      const queue = queueOf()
      const outcomes: string[] = []
      for (let n = 0; n < 3; n++)
        waitForGroup(append(queue, changes(4), 1), n === 0, (outcome) => outcomes.push(`${n} ${outcome}`))
      if (isWriting) takeGroup(queue)
      failGroups(queue)
      expect(outcomes).toEqual(['0 unknown', '1 unknown', '2 unknown'])
      expect([queue.groups.length, queue.writing]).toEqual([0, undefined])
    }
  })
})
