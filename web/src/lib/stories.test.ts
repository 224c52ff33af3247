import type { ClusterEvent, Level } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { storiesOf } from './stories.ts'

const NOON = Date.parse('2026-11-20T12:00:00.000Z')

function event(seconds: number, kind: ClusterEvent['kind'], message: string, more: Partial<ClusterEvent> = {}) {
  const at = new Date(NOON + seconds * 1_000).toISOString()
  return { id: `${seconds} ${message}`, at, shard: 's1', node: null, kind, level: 'info' as Level, message, ...more }
}
const told = (events: readonly ClusterEvent[]) =>
  storiesOf(events).map(({ head, level, events: of }) => [head.message, level, of.length])

test('a transfer is one story with all that it set off, and snapshots are none of it', () => {
  const events = [
    event(9, 'operation', 'Transfer s1 to n3: n3 leads', { level: 'ok', node: 'n3' }),
    event(8, 'state', 's1: Healthy', { level: 'ok' }),
    event(7, 'snapshot', 'n2 saved a snapshot', { level: 'ok', node: 'n2' }),
    event(6, 'leader', 'leadership of s1 moved n1 → n3', { node: 'n3' }),
    event(5, 'state', 's1: Electing'),
    event(-60, 'restart', 'n2 restarted', { node: 'n2' }),
  ]

  expect(told(events)).toEqual([
    ['Transfer s1 to n3: n3 leads', 'ok', 4],
    ['n2 saved a snapshot', 'ok', 1],
    ['n2 restarted', 'info', 1],
  ])
})

test('a story is as bad as what it left behind, and others happen beside it', () => {
  const events = [
    event(3, 'state', 's1 / n1: Unreachable', { level: 'crit', node: 'n1' }),
    event(2, 'state', 's2: Healthy', { level: 'ok', shard: 's2' }),
    event(2, 'leader', 'leadership of s1 moved n1 → n2', { node: 'n2' }),
    event(1, 'state', 's2: Electing', { shard: 's2', level: 'warn' }),
  ]
  const expected = [
    ['leadership of s1 moved n1 → n2', 'crit', 2],
    ['s2: Healthy', 'ok', 2],
  ]

  expect(told(events)).toEqual(expected)
  expect(told(events.toReversed()).map(([, level, size]) => [level, size])).toEqual([
    ['ok', 2],
    ['crit', 2],
  ])
})

test('a shard that changes all the time is told in several stories', () => {
  const events = Array.from({ length: 60 }, (_, at) => event(-at * 9, 'state', `change ${at}`))

  expect(told(events).map(([, , size]) => size)).toEqual([14, 14, 14, 14, 4])
})
