import { JOB_LIMITS, type TailEvent } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { tailAfter } from './tail.ts'

const eventOf = (n: number): TailEvent => ({
  n,
  at: '2026-11-20T18:30:00.000Z',
  event: 'accepted',
  id: `job-${n}`,
  consumer: null,
  error: null,
  failures: 0,
  bytes: 2,
  head: null,
})
const pageOf = (epoch: string, from: number, to: number, skipped = 0) => ({
  cursor: `${epoch}.${to}`,
  events: Array.from({ length: to - from + 1 }, (_, n) => eventOf(from + n)),
  skipped,
})

test('events are shown newest first, and skipped ones add up', () => {
  const tail = tailAfter(tailAfter(undefined, pageOf('a', 1, 2, 3)), pageOf('a', 6, 7, 3))
  expect(tail.events.map(({ n }) => n)).toEqual([7, 6, 2, 1])
  expect(tail).toMatchObject({ cursor: 'a.7', skipped: 6 })
})

test('so many are kept', () => {
  const tail = tailAfter(tailAfter(undefined, pageOf('a', 1, 200)), pageOf('a', 201, 300))
  expect(tail.events).toHaveLength(JOB_LIMITS.tailKept)
  expect(tail.events[0]?.n).toBe(300)
})

test('after a restart of the queue the list is empty again', () => {
  const tail = tailAfter(tailAfter(undefined, pageOf('a', 1, 2)), pageOf('b', 1, 1))
  expect(tail.events.map(({ n }) => n)).toEqual([1])
})
