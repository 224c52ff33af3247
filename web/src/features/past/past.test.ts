import type { PastChanges } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { momentOf } from '../../lib/past.ts'
import { firstOf, incidentNote } from './changes-drawer.tsx'
import { hasPast, shardOf, windowAround } from './moments.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2026-11-20T18:00:00Z')

test('a moment of a URL is a time in UTC; anything else shows now', () => {
  const of = (at: string) => momentOf(new URLSearchParams({ at }))

  expect(of('2026-11-20T18:00:00Z')).toBe('2026-11-20T18:00:00.000Z')
  expect(of('2026-11-20T18:00Z')).toBe('2026-11-20T18:00:00.000Z')
  for (const other of ['', 'now', '18:00', '2026-11-20', '2026-13-20T18:00:00Z']) expect(of(other)).toBeUndefined()
})

test('what changed begins a quarter of an hour before, or when the recording began', () => {
  const before = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString()
  expect(firstOf(NOW, before(60))).toBe(before(15))
  expect(firstOf(NOW, before(4))).toBe(before(4))
  expect(firstOf(NOW, null)).toBe(before(15))
})

test('the scrubber shows the time around a moment, up to now', () => {
  const at = NOW - 10 * HOUR

  expect(windowAround(at, NOW, HOUR, undefined)).toEqual({ from: at - HOUR / 2, to: at + HOUR / 2 })
  expect(windowAround(NOW - 60_000, NOW, HOUR, undefined)).toEqual({ from: NOW - HOUR, to: NOW })
})

test('while the moment stays within it, the shown time does not move', () => {
  const before = { from: NOW - 5 * HOUR, to: NOW - 4 * HOUR }

  expect(windowAround(before.from + 60_000, NOW, HOUR, before)).toBe(before)
  for (const at of [before.from, before.to]) expect(windowAround(at, NOW, HOUR, before)).toBe(before)
  expect(windowAround(before.from - 1, NOW, HOUR, before)).not.toBe(before)
  expect(windowAround(before.to + 1, NOW, HOUR, before)).not.toBe(before)
  expect(windowAround(before.from + 60_000, NOW, 6 * HOUR, before)).not.toBe(before)
})

test('pages of a shard step through its own events', () => {
  expect(shardOf('/shards/s%2F1/nodes/n1')).toBe('s/1')
  expect(shardOf('/shards/s1')).toBe('s1')
  for (const path of ['/', '/shards', '/queue']) expect(shardOf(path)).toBeUndefined()
})

test('pages without a past are known', () => {
  for (const path of [
    '/',
    '/topology',
    '/shards',
    '/shards/s1',
    '/shards/s1/nodes/n1',
    '/shards/s1/events',
    '/shards/s1/metrics',
  ])
    expect(hasPast(path)).toBe(true)
  for (const path of ['/playground', '/shards/s1/config', '/shards/s1/snapshots', '/registry/services'])
    expect(hasPast(path)).toBe(false)
})

describe('an incident note', () => {
  const changes: PastChanges = {
    from: '2026-11-20T18:00:00.000Z',
    to: '2026-11-20T18:30:00.000Z',
    changes: [{ shard: 's1', node: 'n2', kind: 'leader', level: 'info', message: 'leadership of s1 moved n1 → n2' }],
    events: [
      {
        ...{ id: '1', at: '2026-11-20T18:10:00.000Z', shard: 's1', node: 'n2', kind: 'leader', level: 'info' },
        message: 'moved | <b>n1</b>\n→ n2',
      },
    ],
    more: false,
  }

  test('has differences and a timeline, and no text of the cluster is markup', () => {
    expect(incidentNote('s1', changes, 'https://x/y').split('\n')).toEqual([
      '# Incident note: s1',
      '',
      'From 20 Nov 2026, 18:00:00 UTC to 20 Nov 2026, 18:30:00 UTC.',
      '',
      '## Differences',
      '',
      '- leadership of s1 moved n1 → n2',
      '',
      '## Timeline',
      '',
      '| Time (UTC) | Shard | Node | Event |',
      '|---|---|---|---|',
      '| 18:10:00 | s1 | n2 | moved \\| \\<b\\>n1\\</b\\> → n2 |',
      '',
      'View of the end: https://x/y',
      '',
    ])
  })

  test('of more days has dates, and a note when events are missing', () => {
    const text = incidentNote(undefined, { ...changes, to: '2026-11-21T18:30:00.000Z', more: true, changes: [] }, '')

    expect(text).toContain('# Incident note: the whole cluster')
    expect(text).toContain('| 2026-11-20 18:10:00 |')
    expect(text).toContain('None.')
    expect(text).toContain('Further events are not listed.')
  })
})
