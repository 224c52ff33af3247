import type { ClusterEvent } from '@vacancy/shared/contract'
import { SERIES, type SeriesName } from '@vacancy/shared/series'
import { expect, test } from 'vitest'
import { DASHBOARDS } from './dashboards.ts'
import { kindsOf, marksOf, toggledKinds } from './marks.ts'
import { promqlOf } from './promql.ts'

test('each series is on a dashboard, and the series of a chart have one unit', () => {
  const charts = DASHBOARDS.flatMap((dashboard) => dashboard.charts)

  expect(charts.flatMap(({ names }) => names).toSorted()).toEqual(Object.keys(SERIES).toSorted())
  for (const { names, unit } of charts) for (const name of names) expect(SERIES[name].unit).toBe(unit)
})

test('titles are different within a dashboard, since they name its charts', () => {
  for (const { charts } of DASHBOARDS) expect(new Set(charts.map(({ title }) => title)).size).toBe(charts.length)
})

test('a series is queried by the metric it comes from, with the node that reports it', () => {
  const all: readonly SeriesName[] = ['memory', 'cpu', 'commit_p99', 'control_clients', 'lag_entries']
  const join = '* on (instance) group_left (shard, node) vacancy_build_info'

  expect(promqlOf(all, {}).split('\n')).toEqual([
    `sum by (instance) (vacancy_memory_bytes{kind="rss"}) ${join}`,
    `sum by (instance) (rate(process_cpu_seconds_total[1m])) ${join}`,
    `1000 * histogram_quantile(0.99, sum by (instance, le) (rate(vacancy_raft_commit_seconds_bucket[1m]))) ${join}`,
    'control_live_connections',
  ])
  expect(promqlOf(['cpu'], { shard: 's"1', node: 'n1' })).toMatch(/vacancy_build_info\{shard="s\\"1",node="n1"\}$/)
  expect(promqlOf(['writes'], {})).toMatch(
    /^sum by \(instance\) \(rate\(vacancy_commands_total\{command=~"[A-Z|]+"\}\[1m\]\)\)/,
  )
})

test('kinds of events are in the URL only where they differ from the usual ones', () => {
  const usual = kindsOf('')

  expect(usual).not.toContain('state')
  expect(toggledKinds(usual, 'state')).toBe('leader,restart,operation,codecs,membership,state')
  expect(toggledKinds(kindsOf(toggledKinds(usual, 'leader')), 'leader')).toBe('')
  expect(toggledKinds(['leader'], 'leader')).toBe('none')
  expect(kindsOf('none')).toEqual([])
  expect(kindsOf('nonsense,restart')).toEqual(['restart'])
})

test('marks are the events of the chosen kinds, oldest first', () => {
  const event = (kind: ClusterEvent['kind'], at: string, node: string | null): ClusterEvent => ({
    ...{ id: at, at, shard: 's1', node, kind, level: 'info', message: `${kind} happened` },
  })
  const events = [event('leader', '18:02', 'n2'), event('state', '18:01', 'n1'), event('operation', '18:00', null)]

  expect(marksOf(events, ['leader', 'operation'])).toEqual([
    { at: '18:00', label: 'operation happened', short: 'operation s1' },
    { at: '18:02', label: 'leader happened', short: 'leader n2' },
  ])
})
