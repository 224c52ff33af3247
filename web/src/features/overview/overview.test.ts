import type { ClientsSummary, ShardBrief, Summary } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { shardBriefOf } from '../shards/testing/shards.ts'
import { attentionLead, withoutDark } from './attention-lead.ts'
import { verdictOf } from './clients-verdict.ts'
import { highest, newest, ranked, total } from './figures.ts'
import { daysLeft, nextMaintenance } from './maintenance.ts'
import { moveInRack, type Place } from './rack-keys.ts'
import { stateNews } from './state-news.ts'
import { canFold, zonesOf } from './zones.ts'

const counts: Summary['counts'] = {
  shards: 40,
  shardsHealthy: 40,
  nodes: 120,
  nodesAnswering: 120,
  packages: null,
  properties: null,
  attention: 0,
  aside: 0,
}
const at = '2026-11-20T18:28:00.000Z'
const item: Summary['attention'][number] = {
  id: 's7:no-leader',
  rule: 1,
  area: 'shards',
  level: 'crit',
  shard: 's7',
  node: null,
  message: 's7 has no leader',
  since: '2026-11-20T18:27:21.000Z',
  trend: null,
  href: '/shards/s7',
  action: 'Open s7',
  asideUntil: null,
}
const event: Summary['events'][number] = {
  id: '1',
  at: '2026-11-20T15:27:21.000Z',
  shard: 's9',
  node: 'n3',
  kind: 'leader',
  level: 'info',
  message: 'leadership of s9 moved n1 → n3',
}

test('items that need attention are counted, snoozed ones are not', () => {
  const aside = { ...item, id: 'other', asideUntil: 'change' } as const

  expect(attentionLead({ at, attention: [item, aside], counts, events: [] })).toBe('1 item needs attention.')
  expect(attentionLead({ at, attention: [item, { ...item, id: 'b' }], counts, events: [] })).toBe(
    '2 items need attention.',
  )
})

test('without items it has the health and the last change', () => {
  expect(attentionLead({ at, attention: [], counts, events: [event] })).toBe(
    'All 40 shards are healthy. Last change 3 h ago.',
  )
  expect(attentionLead({ at, attention: [], counts: { ...counts, shards: 1, shardsHealthy: 1 }, events: [] })).toBe(
    'The only shard is healthy.',
  )
})

test('while no node responds, that is no item of each shard as well', () => {
  const dead = { ...item, id: '7:dead', rule: 7, area: 'queue' } as const
  const dark = { ...counts, nodesAnswering: 0 }

  expect(withoutDark({ counts: dark, attention: [item, dead] }).attention).toEqual([dead])
  expect(withoutDark({ counts, attention: [item, dead] }).attention).toEqual([item, dead])
})

test('an empty list does not claim health', () => {
  expect(attentionLead({ at, attention: [], counts: { ...counts, shardsHealthy: 39 }, events: [] })).toContain(
    '39 of 40 shards',
  )
  expect(attentionLead({ at, attention: [], counts: { ...counts, shards: 0, shardsHealthy: 0 }, events: [] })).toBe(
    'No shards are known yet.',
  )
})

const shard = (id: string, queries: number | null, p99: number | null) => ({
  id,
  rates: { queries, writes: 0, errors: null, p50: null, p99 },
})
const SHARDS = [shard('s1', 10, 2), shard('s2', null, 9), shard('s3', 5, null)]

test('the load of the cluster is the sum of what shards report', () => {
  expect(total(SHARDS, 'queries')).toEqual({ value: 15 })
  expect(total(SHARDS, 'writes')).toEqual({ value: 0 })
})

test('a figure that no shard reports is missing, not zero', () => {
  expect(total(SHARDS, 'errors')).toEqual({ value: null })
  expect(highest(SHARDS, () => null)).toEqual({ value: null })
})

test('the slowest shard is named', () => {
  expect(highest(SHARDS, ({ rates }) => rates.p99)).toEqual({ value: 9, shard: 's2' })
})

test('the highest values come first, with their share of the first', () => {
  const shards = [shard('s1', 20, 1), shard('s2', 80, 1), shard('s3', 0, 1), shard('s4', null, 1), shard('s5', 40, 1)]
  expect(ranked(shards, ({ rates }) => rates.queries, 2)).toEqual({
    rows: [
      { id: 's2', value: 80, share: 1 },
      { id: 's5', value: 40, share: 0.5 },
    ],
    more: 1,
  })
  expect(ranked([], () => 1, 2)).toEqual({ rows: [], more: 0 })
})

test('the newest value of a course skips gaps, and is missing without any', () => {
  expect([newest([1, 0, null]), newest([null, null]), newest([])]).toEqual([0, undefined, undefined])
})

const NOW = Date.parse('2026-11-20T18:30:00Z')

test('maintenance is later today or tomorrow', () => {
  expect(nextMaintenance('19', NOW)).toBe(Date.parse('2026-11-20T19:00:00Z'))
  expect(nextMaintenance('23', NOW)).toBe(Date.parse('2026-11-20T23:00:00Z'))
  expect(nextMaintenance('18', Date.parse('2026-11-20T17:59:59.999Z'))).toBe(Date.parse('2026-11-20T18:00:00Z'))
  expect(nextMaintenance('18', Date.parse('2026-11-20T18:00:00Z'))).toBe(Date.parse('2026-11-21T18:00:00Z'))
  expect(nextMaintenance('3', NOW)).toBe(Date.parse('2026-11-21T03:00:00Z'))
  expect(nextMaintenance('0', Date.parse('2026-11-20T00:00:00Z'))).toBe(Date.parse('2026-11-21T00:00:00Z'))
})

test('without a valid hour nothing is promised', () => {
  for (const hour of [undefined, '', '24', '-1', 'noon', '3.5']) expect(nextMaintenance(hour, NOW)).toBeUndefined()
})

test('days left are whole, and none on the last day', () => {
  expect(daysLeft('2026-11-20', NOW)).toBe(0)
  expect(daysLeft('2026-11-21', Date.parse('2026-11-20T23:59:59Z'))).toBe(1)
  expect(daysLeft('2026-11-27', NOW)).toBe(7)
  expect(daysLeft('2026-11-01', NOW)).toBe(0)
})

/** Two rows of three and one of two; one slot is off by a pixel. */
const places: Place[] = [
  [0, 0],
  [24, 0],
  [80, 0],
  [0, 40],
  [30, 41],
  [80, 40],
  [0, 80],
  [24, 80],
].map(([left = 0, top = 0]) => ({ left, top, width: 24, height: 28 }))

test.each([
  [0, 'ArrowRight', 1],
  [2, 'ArrowRight', 3],
  [7, 'ArrowRight', 7],
  [3, 'ArrowLeft', 2],
  [0, 'ArrowLeft', 0],
  [1, 'ArrowDown', 4],
  [2, 'ArrowDown', 5],
  [4, 'ArrowUp', 1],
  [5, 'ArrowDown', 7],
  [7, 'ArrowDown', 7],
  [0, 'ArrowUp', 0],
  [5, 'Home', 0],
  [1, 'End', 7],
])('from %i %s leads to %i', (from, key, to) => {
  expect(moveInRack(places, from, key)).toBe(to)
})

test('other keys are ignored', () => {
  expect(moveInRack(places, 0, 'Enter')).toBeUndefined()
  expect(moveInRack(places, 0, 'a')).toBeUndefined()
})

test('an empty rack', () => {
  expect(moveInRack([], 0, 'ArrowDown')).toBe(0)
})

const before = new Map([
  ['s1', 'healthy'],
  ['s2', 'healthy'],
  ['s3', 'degraded'],
])

test('one shard is named, several are counted', () => {
  const s1 = shardBriefOf({ id: 's1', state: 'degraded', message: 'Degraded, can lose 1 more' })

  expect(stateNews(before, [s1, shardBriefOf({ id: 's2' })])).toBe('s1: Degraded, can lose 1 more')
  expect(stateNews(before, [s1, shardBriefOf({ id: 's3', state: 'healthy' })])).toBe('2 shards changed state')
})

test('unchanged and new shards are not announced', () => {
  expect(stateNews(before, [shardBriefOf({ id: 's1' }), shardBriefOf({ id: 's9', state: 'no-leader' })])).toBe('')
  expect(stateNews(new Map(), [shardBriefOf({ id: 's1', state: 'degraded' })])).toBe('')
})

describe('zones', () => {
  const shard = (id: string, zone: string, over: Partial<ShardBrief> = {}): ShardBrief =>
    ({ id, zone, level: 'ok', state: 'healthy', slots: [], ...over }) as unknown as ShardBrief

  test('zones and their shards are by name, numbers as numbers, and problems are listed apart', () => {
    const zones = zonesOf([
      shard('s1', 'eu-2'),
      shard('s2', 'eu-1', { level: 'crit', state: 'quorum-lost' }),
      shard('s10', 'eu-2'),
      shard('s3', 'eu-2', { level: 'info', state: 'standalone' }),
      shard('s4', 'eu-1'),
    ])

    expect(
      zones.map(({ zone, shards, problems }) => [zone, shards.map(({ id }) => id), problems.map(({ id }) => id)]),
    ).toEqual([
      ['eu-1', ['s2', 's4'], ['s2']],
      ['eu-2', ['s1', 's3', 's10'], []],
    ])
  })

  test('zones fold only where the racks would fill more than a window', () => {
    expect(canFold(Array.from({ length: 40 }))).toBe(false)
    expect(canFold(Array.from({ length: 41 }))).toBe(true)
  })
})

const seen: ClientsSummary = {
  ...{ state: 'measured', intervalSeconds: 5, shards: 3, answered: 3, partly: 0, failing: 0, unmeasured: 0 },
  ...{ search: { p50: 1, p99: 2 }, hold: null },
}
test.each<[string, Partial<ClientsSummary>, string]>([
  ['all shards answered', {}, 'ok Answered'],
  ['one was not measured', { answered: 2, unmeasured: 1 }, 'unk 1 shard not measured'],
  ['one is answered through some ways', { answered: 2, partly: 1 }, 'warn 1 shard answered in part'],
  ['two are not answered', { answered: 0, partly: 1, failing: 2 }, 'crit 2 shards not answered'],
  ['before the first answer', { state: 'waiting', answered: 0, unmeasured: 3 }, 'unk Not measured yet'],
  ['switched off', { state: 'off', intervalSeconds: 0, answered: 0, unmeasured: 3 }, 'info Off'],
])('what clients see is green only when all of it was measured: %s', (_, change, expected) => {
  const { level, badge } = verdictOf({ ...seen, ...change })
  expect(`${level} ${badge}`).toBe(expected)
})
