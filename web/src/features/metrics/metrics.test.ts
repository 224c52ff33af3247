import type { ClusterEvent, SeriesBody } from '@vacancy/shared/contract'
import { SERIES, type SeriesName } from '@vacancy/shared/series'
import { expect, test } from 'vitest'
import { combined } from './combined.ts'
import { DASHBOARDS } from './dashboards.ts'
import { kindsOf, marksOf, toggledKinds } from './marks.ts'
import { promqlOf } from './promql.ts'
import { fromFirst, linesOf, looksOf } from './series.ts'

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
    { at: '18:02', label: 'leader happened', short: 's1 → n2' },
  ])
})

function bodyOf(series: readonly [name: string, node: string | null, values: (number | null)[]][]): SeriesBody {
  return {
    from: '2026-11-20T18:00:00.000Z',
    to: '2026-11-20T18:00:20.000Z',
    stepSeconds: 10,
    series: series.map(([name, node, values]) => ({ name, node, unit: '1/s', values })),
  }
}

test('lines are by node id, and only those of the metric', () => {
  const body = bodyOf([
    ['queries', 'n2', [1, 2]],
    ['writes', 'n1', [9, 9]],
    ['queries', 'n1', [3, null]],
  ])

  expect(linesOf(body, ['queries'])).toEqual({
    lines: [
      { label: 'n1', values: [3, null], colour: 0 },
      { label: 'n2', values: [1, 2], colour: 1 },
    ],
    hidden: 0,
  })
})

test('a node has one colour in every chart, whichever others are drawn beside it', () => {
  const queries = bodyOf([
    ['queries', null, [6]],
    ['queries', 'n1', [1]],
    ['queries', 'n3', [3]],
  ])
  const looks = (body: SeriesBody, ...names: SeriesName[]) =>
    Object.fromEntries(linesOf(body, names).lines.map(({ label, colour, dash }) => [label, [colour, dash]]))

  expect(looks(queries, 'queries')).toEqual({ all: ['plain', 0], n1: [0, undefined], n3: [2, undefined] })
  expect(looks(bodyOf([['memory', 'n3', [3]]]), 'memory')).toEqual({ n3: [2, undefined] })
  // Of several metrics the colour is that of the node, and the dashes are the metric.
  const latency = bodyOf([
    ['p50', 'n3', [1]],
    ['p99', 'n3', [9]],
  ])
  expect(looks(latency, 'p50', 'p99')).toEqual({ 'n3 read p50': [2, 0], 'n3 read p99': [2, 3] })
})

test('colours of nodes differ, also where their names end alike or with no number', () => {
  const twelve = Array.from({ length: 12 }, (_, at) => `n${at + 1}`)

  expect([...looksOf(twelve).values()]).toEqual(twelve.map((_, at) => at))
  expect(Object.fromEntries(looksOf(['b-1', 'a-1', 'left', 'n3', 'left']))).toEqual({
    'a-1': 0,
    'b-1': 1,
    left: 3,
    n3: 2,
  })
})

test('charts start where their data start', () => {
  const late = bodyOf([
    ['queries', 'n1', [...Array.from({ length: 30 }, () => null), 1, 2, null]],
    ['queries', 'n2', [...Array.from({ length: 20 }, () => null), 5, ...Array.from({ length: 12 }, () => null)]],
  ])
  const { from, recordedFrom, series } = fromFirst(late)

  expect(recordedFrom).toBe(from)
  expect(from).toBe('2026-11-20T18:03:20.000Z')
  expect(series.map(({ values }) => [values.length, values[0]])).toEqual([
    [13, null],
    [13, 5],
  ])
})

test('a chart of the first value has it at its start, and one of nothing is as it was', () => {
  const young = fromFirst(bodyOf([['queries', 'n1', [...Array.from({ length: 29 }, () => null), 1]]]))
  expect([young.from, young.recordedFrom]).toEqual(['2026-11-20T18:04:50.000Z', '2026-11-20T18:04:50.000Z'])
  expect(young.series.map(({ values }) => values)).toEqual([[1, null]])
  const nothing = bodyOf([['queries', 'n1', [null, null]]])
  expect(fromFirst(nothing)).toBe(nothing)
})

test('of many lines the highest are drawn and the others counted', () => {
  const body = bodyOf(Array.from({ length: 9 }, (_, at) => ['queries', `n${at}`, [at, null]]))
  const { lines, hidden } = linesOf(body, ['queries'])

  expect(lines.map((line) => line.label)).toEqual(['n3', 'n4', 'n5', 'n6', 'n7', 'n8'])
  expect(hidden).toBe(3)
})

test('a chart of several metrics has a line of each, named by it', () => {
  const body = bodyOf([
    ['p99', null, [9]],
    ['p50', null, [2]],
    ['p50', 'n1', [1]],
  ])

  expect(linesOf(body, ['p50', 'p99']).lines.map(({ label }) => label)).toEqual(['n1 read p50', 'read p50', 'read p99'])
})

test('the cluster combines reported values; a moment without any is a gap', () => {
  const body = bodyOf([
    ['queries', 'n1', [1, null, 4]],
    ['queries', 'n2', [2, null, null]],
  ])

  expect(combined(body, 'queries', (values) => values.reduce((sum, value) => sum + value, 0))).toEqual([3, null, 4])
  expect(combined(body, 'writes', (values) => Math.max(...values))).toEqual([])
})
