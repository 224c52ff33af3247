import type { Summary } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { attentionLead } from './attention-lead.ts'

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
    'All 40 shards are healthy. Last change 3 h ago: leadership of s9 moved n1 → n3.',
  )
  expect(attentionLead({ at, attention: [], counts: { ...counts, shards: 1, shardsHealthy: 1 }, events: [] })).toBe(
    'The only shard is healthy.',
  )
})

test('an empty list does not claim health', () => {
  expect(attentionLead({ at, attention: [], counts: { ...counts, shardsHealthy: 39 }, events: [] })).toContain(
    '39 of 40 shards',
  )
  expect(attentionLead({ at, attention: [], counts: { ...counts, shards: 0, shardsHealthy: 0 }, events: [] })).toBe(
    'No shards are known yet.',
  )
})
