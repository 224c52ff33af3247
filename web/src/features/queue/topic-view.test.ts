import type { TopicStats } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { deadQuery, isFiltering, selectionBody } from './dead-filter.ts'
import { statsOf } from './testing/queue.ts'
import {
  jobsViewFilter,
  jobsViewHref,
  parseTopicFilter,
  stateOf,
  topicFields,
  topicKeys,
  topicsViewHref,
} from './topic-view.ts'

test.each<[string, Partial<TopicStats>, string, string, string]>([
  ['a paused topic', { paused: true, stalledConsumers: 1, ready: 1, consumers: 0 }, 'paused', 'warn', 'Paused'],
  ['one whose consumers stall', { stalledConsumers: 2, ready: 1 }, 'stalled', 'warn', '2 consumers stalled'],
  ['one with work and no consumer', { consumers: 0, ready: 1 }, 'no-consumers', 'warn', 'No consumers'],
  ['one whose last consumer left with jobs', { consumers: 0, leased: 1 }, 'active', 'ok', 'Active'],
  ['one with ready jobs', { ready: 1 }, 'active', 'ok', 'Active'],
  ['one with leased jobs', { leased: 1 }, 'active', 'ok', 'Active'],
  ['one with delayed and dead jobs only', { delayed: 3, dead: 3 }, 'idle', 'unk', 'Idle'],
  ['one without consumers and jobs', { consumers: 0 }, 'idle', 'unk', 'Idle'],
])('the state of %s', (_, stats, state, level, label) => {
  expect(stateOf(statsOf(stats))).toEqual({ state, level, label })
})

test('the fields of a topic have the units of its columns', () => {
  const stats = statsOf({
    ...{ topic: 't', ready: 1, leased: 2, delayed: 3, dead: 4, bytes: 5, oldestReadyMs: 90_000, consumers: 6 },
    rates1m: { accepted: 7, delivered: 8, acked: 9, failed: 10 },
  })

  expect(topicFields(stats)).toEqual({
    ...{ topic: 't', state: 'active', ready: 1, leased: 2, delayed: 3, dead: 4, bytes: 5, oldest: 90, consumers: 6 },
    ...{ in: 7, out: 9, failed: 10 },
  })
})

test('a filter keeps known pairs, and names each unknown key and each missing number', () => {
  const { filter, faults } = parseTopicFilter('mail state:idle dead:>0 oldest:>x ready:many colour:red topic:a')

  expect(filter.words).toEqual(['mail'])
  expect(filter.pairs.map(({ key }) => key)).toEqual(['state', 'dead', 'topic'])
  expect(faults).toEqual([
    'oldest needs a number, as in oldest:>100, not >x',
    'ready needs a number, as in ready:>100, not many',
    `unknown key colour; known keys are topic, state, ready, leased, delayed, dead, in, out, failed, oldest, consumers, bytes`,
  ])
})

test('completion offers the states in use, and the usual values', () => {
  expect(topicKeys([statsOf({ ready: 1 }), statsOf({ paused: true }), statsOf({ ready: 2 })])).toEqual({
    ...{ state: ['active', 'paused'], dead: ['>0'], oldest: ['>60'] },
    ...{ ready: [], leased: [], delayed: [], in: [], out: [], failed: [], consumers: [], bytes: [] },
  })
})

test('a saved view is a link to its list', () => {
  expect(topicsViewHref({ filter: 'dead:>0', sort: '-dead', columns: ['dead', 'bytes'] })).toBe(
    '/queue?filter=dead%3A%3E0&sort=-dead&columns=dead%2Cbytes',
  )
  expect(topicsViewHref({ filter: '', sort: '', columns: null })).toBe('/queue')
  const search = new URLSearchParams('state=dead&group=&error=x&job=7&before=2026-11-20T18:30')
  expect(jobsViewFilter(search)).toBe('state=dead&error=x&before=2026-11-20T18%3A30')
  expect(jobsViewHref('a/b', { filter: 'state=dead&other=1' })).toBe('/queue/topics/a%2Fb?state=dead')
  expect(jobsViewFilter(new URLSearchParams())).toBe('')
})

const FIELDS = { group: '', error: '', failures: '', after: '', before: '' }

test.each([
  [{}, {}],
  [
    { group: 'timeout *', error: 'x' },
    { group: 'timeout *', error: 'x' },
  ],
  [{ failures: '3' }, { minFailures: 3 }],
  [{ failures: '123456' }, { minFailures: 123_456 }],
  [{ failures: '1234567' }, {}],
  [{ failures: '-1' }, {}],
  [
    { after: '2026-11-20T18:30', before: '2026-11-20T18:31:59' },
    { after: '2026-11-20T18:30:00.000Z', before: '2026-11-20T18:31:00.000Z' },
  ],
  [{ after: '2026-11-20', before: '2026-13-20T18:30' }, {}],
])('the query of %j', (fields, query) => {
  expect(deadQuery({ ...FIELDS, ...fields })).toEqual(query)
  expect(isFiltering(query)).toBe(Object.keys(query).length > 0)
})

test('a redrive by filter ends at a time, so that what fails again is not redriven again', () => {
  const until = '2026-11-20T18:30:00.000Z'
  const body = (before?: string) =>
    selectionBody({ kind: 'filter', filter: { group: 'g', ...(before !== undefined && { before }) } }, until, 100)

  expect(body()).toEqual({ filter: { group: 'g', before: until }, limit: 100 })
  expect(body('2026-11-20T18:29:00.000Z')).toEqual({
    filter: { group: 'g', before: '2026-11-20T18:29:00.000Z' },
    limit: 100,
  })
  expect(body('2026-11-20T18:31:00.000Z')).toEqual({ filter: { group: 'g', before: until }, limit: 100 })
  expect(selectionBody({ kind: 'ids', ids: ['a', 'b'] }, until, 100)).toEqual({ ids: ['a', 'b'] })
})
