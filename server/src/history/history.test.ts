import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SERIES, type SeriesName } from '@vacancy/shared/contract'
import type { Kysely } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { goneNode, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { eventsBetween } from './events.ts'
import { createPauses, type Pauses } from './pauses.ts'
import { changeBetween, quantile, type Reading, readMetrics, reportedFigures } from './reading.ts'
import { createSeries, loadSeries, readSeries, readTime, recordSeries, saveSeries } from './series.ts'

// Readings

const PAGE = `# HELP vacancy_commands_total Requests by command.
# TYPE vacancy_commands_total counter
vacancy_commands_total{command="SEARCHAVAIL"} 100
vacancy_commands_total{command="DECROOMAVL"} 7
vacancy_commands_total{command="LOGIN"} 3
tcp_errors_total 2
tcp_client_errors_total 40
vacancy_command_errors_total{command="HOLDSTAY",code="NOT_FOUND"} 40
vacancy_command_duration_seconds_bucket{command="SEARCHAVAIL",phase="queue",le="0.001"} 100
vacancy_command_duration_seconds_bucket{command="SEARCHAVAIL",phase="run",le="0.001"} 60
vacancy_command_duration_seconds_bucket{command="SEARCHAVAIL",phase="run",le="+Inf"} 100
vacancy_memory_bytes{kind="rss"} 1000
vacancy_memory_bytes{kind="heap"} 400
vacancy_tcp_connections 12
process_cpu_seconds_total 1.5
`

const readingOf = (text: string, at: number) => readMetrics(text, at) as Reading

test('reads and writes are counted separately, refusals are no errors, only execution counts as latency', () => {
  const reading = readingOf(PAGE, NOW)

  expect(Object.fromEntries(reading.numbers)).toEqual({
    'vacancy_commands_total read': 100,
    'vacancy_commands_total write': 7,
    tcp_errors_total: 2,
    'vacancy_memory_bytes kind rss': 1_000,
    vacancy_tcp_connections: 12,
    process_cpu_seconds_total: 1.5,
  })
  expect([...reading.histograms].map(([key, counts]) => [key, ...counts])).toEqual([
    ['vacancy_command_duration_seconds_bucket read phase run', [0.001, 60], [Number.POSITIVE_INFINITY, 100]],
  ])
  expect(reportedFigures(reading)).toEqual({ memory: 1_000, connections: 12 })
})

test.each(['', '<html>', 'process_cpu_seconds_total nonsense', 'vacancy_commands_total{command="x', '# nothing\n\n'])(
  '%o is not a metrics page',
  (text) => {
    expect(readMetrics(text, NOW)).toBeUndefined()
  },
)

test.each([
  [
    'vacancy_tcp_connections 12\r\n\n\nprocess_cpu_seconds_total 3\n',
    { vacancy_tcp_connections: 12, process_cpu_seconds_total: 3 },
  ],
  ['vacancy_wal_bytes 12\nvacancy_wal_bytes{disk="b"} 3', { vacancy_wal_bytes: 15 }],
  // It used to count with the labels of the line before.
  ['vacancy_wal_bytes{disk="a"} 12\nvacancy_wal_bytes{disk="b" 3', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes 12\nvacancy_tcp_connections NaN\nvacancy_wal_bytes +Inf', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes 12\nvacancy_commands_total{command="UNKNOWN"} 4', { vacancy_wal_bytes: 12 }],
])('lines that are cut off or not known are skipped: %j', (lines, expected) => {
  expect(Object.fromEntries(readingOf(lines, NOW).numbers)).toEqual(expected)
})

test('rates are the differences between two readings, per second', () => {
  const before = readingOf(PAGE, NOW)
  const after = readingOf(
    PAGE.replace('"SEARCHAVAIL"} 100', '"SEARCHAVAIL"} 150').replace('} 7', '} 17').replace('total 1.5', 'total 4'),
    NOW + 5_000,
  )

  expect(changeBetween(before, after)).toMatchObject({ queries: 10, writes: 2, errors: 0, cpu: 0.5, p50: null })
})

test('a restarted process has no rates until it was read twice', () => {
  const before = readingOf(PAGE, NOW)
  const after = readingOf(PAGE.replace('"SEARCHAVAIL"} 100', '"SEARCHAVAIL"} 4'), NOW + 5_000)

  expect(changeBetween(before, after)).toBeUndefined()
})

test('a quantile is interpolated linearly between its bounds', () => {
  const empty = new Map<number, number>()
  const counts = new Map([
    [0.01, 50],
    [0.02, 90],
    [Number.POSITIVE_INFINITY, 100],
  ])

  expect(quantile(empty, counts, 0.5)).toBeCloseTo(0.01)
  expect(quantile(empty, counts, 0.7)).toBeCloseTo(0.015)
  // Above the last bound only that bound is known.
  expect(quantile(empty, counts, 0.99)).toBe(0.02)
  expect(quantile(counts, counts, 0.5)).toBeNull()
})

// Series

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-series-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const OWNER = { shard: 's1', node: 'n1' }
const request = { shard: 's1', node: 'n1', names: 'queries', from: 'now-1m', to: 'now' }
const valuesOf = (store: ReturnType<typeof createSeries>, now: number, more: Partial<typeof request> = {}) =>
  readSeries(store, { ...request, ...more }, now).series[0]?.values

test('a slot belongs to a time: a missing value is a gap', () => {
  const store = createSeries()
  recordSeries(store, OWNER, NOW, { queries: 1 })
  recordSeries(store, OWNER, NOW + 30_000, { queries: 4 })

  expect(valuesOf(store, NOW + 40_000)).toEqual([null, null, 1, null, null, 4, null])
})

test('every value is read back with its displayed digits', () => {
  const figures = [0, 1e-9, 0.000_123, 0.5, 1, 3, 7.77, 100, 255, 1_023, 12_400, 999_000, 2 ** 31, 1.23e12, 2 ** 50, -1]
  const shown = [0, 0, 0.000_123, 0.5, 1, 3, 7.77, 100, 255, 1_020, 12_400, 999_000, 2.15e9, 1.23e12, 1.76e13, 0]
  const store = createSeries()
  for (const [at, queries] of figures.entries()) recordSeries(store, OWNER, NOW + at * 10_000, { queries })

  const values = valuesOf(store, NOW + (figures.length - 1) * 10_000, { from: 'now-150s' })

  expect(values).toEqual(shown)
})

test('a ring that wrapped around holds no old values', () => {
  const store = createSeries()
  recordSeries(store, OWNER, NOW, { queries: 1 })
  recordSeries(store, OWNER, NOW + 3_600_000, { queries: 2 })

  const values = valuesOf(store, NOW + 3_600_000, { from: 'now-1h' })

  expect(values?.filter((value) => value !== null)).toEqual([2])
})

test('beyond an hour there is one value per minute, the mean', () => {
  const store = createSeries()
  for (const [at, queries] of [10, 20, 30].entries()) recordSeries(store, OWNER, NOW + at * 10_000, { queries })

  const body = readSeries(store, { ...request, from: 'now-6h' }, NOW + 50_000)

  expect(body.stepSeconds).toBe(60)
  expect(body.series[0]?.values.at(-1)).toBe(20)
})

test('leader changes are summed, not averaged', () => {
  const store = createSeries()
  const shard = { shard: 's1', node: '' }
  recordSeries(store, shard, NOW, { leader_moves: 1 })
  recordSeries(store, shard, NOW + 5_000, { leader_moves: 2 })

  expect(
    readSeries(
      store,
      { shard: 's1', names: 'leader_moves', from: 'now-10s', to: 'now' },
      NOW + 5_000,
    ).series[0]?.values.at(-1),
  ).toBe(3)
})

test('saved series are read back', async () => {
  const [store, other] = [createSeries(), createSeries()]
  recordSeries(store, OWNER, NOW, { queries: 1.5 })
  await saveSeries(store, join(folder, 'series'))

  expect(await loadSeries(other, join(folder, 'series'))).toBe('')
  recordSeries(other, OWNER, NOW + 10_000, { queries: 2.5 })

  expect(valuesOf(other, NOW + 10_000)?.slice(-2)).toEqual([1.5, 2.5])
})

test('saved series are those of each node, and both the last hour and the days before are read back', async () => {
  const [store, other] = [createSeries(), createSeries()]
  const owners = ['n1', 'n2', 'n3'].map((node) => ({ ...OWNER, node }))
  const laterMs = 6 * 3_600_000
  for (const [n, owner] of owners.entries()) {
    recordSeries(store, owner, NOW, { queries: 10 * (n + 1) })
    recordSeries(store, owner, NOW + laterMs, { queries: n + 1 })
  }
  await saveSeries(store, join(folder, 'series'))

  expect(await loadSeries(other, join(folder, 'series'))).toBe('')

  const known = (node: string, from: string) =>
    valuesOf(other, NOW + laterMs, { node, from })?.filter((value) => value !== null)
  expect(owners.map(({ node }) => known(node, 'now-1h'))).toEqual([[1], [2], [3]])
  expect(owners.map(({ node }) => known(node, 'now-12h'))).toEqual([
    [10, 1],
    [20, 2],
    [30, 3],
  ])
})

test('a damaged file is ignored, with the reason', async () => {
  const file = join(folder, 'series')
  const store = createSeries()
  recordSeries(store, OWNER, NOW, { queries: 1.5 })
  await saveSeries(store, file)
  truncateSync(file, 2_000)

  expect(await loadSeries(createSeries(), file)).toBe('has a wrong checksum')
  expect(await loadSeries(createSeries(), file)).toBe('')
  writeFileSync(file, 'not a series file')
  expect(await loadSeries(createSeries(), file)).toBe('is not a series file')
})

test.each([
  ['now-1h', NOW - 3_600_000],
  ['now-90s', NOW - 90_000],
  ['2026-11-22T10:00:00Z', NOW - 7_200_000],
])('%s is a time', (text, at) => {
  expect(readTime(text, NOW, 'from')).toBe(at)
})

test.each(['yesterday', 'now-1y', '2026-13-99T00:00:00Z', '2027-02-29T00:00:00Z', '2027-02-28T24:00:00Z', ''])(
  '%o is not a time, and the error lists the valid forms',
  (text) => {
    expect(() => readTime(text, NOW, 'from')).toThrow(expect.objectContaining({ status: 400, field: 'from' }))
  },
)

test.each([
  [{ names: 'nonsense' }, 'unknown-series'],
  [{ names: '' }, 'unknown-series'],
  [{ from: 'now', to: 'now-1h' }, 'bad-range'],
])('%o is refused as %s', (more, code) => {
  expect(() => readSeries(createSeries(), { ...request, ...more }, NOW)).toThrow(
    expect.objectContaining({ status: 400, code }),
  )
})

// Events

const shard = (nodes: Parameters<typeof shardOf>[0]) => shardOf(nodes).view
const healthy = ['n1', 'n2', 'n3'].map((id) => observedNode({ id }))

test('an unchanged view has no events', () => {
  expect(eventsBetween(shard(healthy), shard(healthy))).toEqual([])
})

test('a leader change, an unreachable node and a demoted voter are events', () => {
  const moved = eventsBetween(shard(healthy), shard(['n1', 'n2', 'n3'].map((id) => observedNode({ id, leader: 'n2' }))))
  const gone = eventsBetween(
    shard(healthy),
    shard([...healthy.slice(0, 2), goneNode({ id: 'n3' }, { code: 'refused', message: 'connection refused' })]),
  )
  const fewer = ['n1', 'n2', 'n3'].map((id) => observedNode({ id, voters: ['n1', 'n2'], learners: ['n3'] }))

  expect(moved).toMatchObject([{ kind: 'leader', node: 'n2', message: 'leadership of s1 moved n1 → n2' }])
  expect(gone.map(({ kind, node, message }) => [kind, node, message])).toEqual([
    ['state', null, 's1: Degraded, cannot lose another (2 of 3 voters answer, 2 needed)'],
    ['state', 'n3', 's1 / n3: Unreachable: connection refused'],
  ])
  expect(eventsBetween(shard(healthy), shard(fewer)).map(({ message }) => message)).toContain(
    's1 / n3 is no longer a voter',
  )
})

test('a leader change after a gap is reported with the length of the gap', () => {
  const leaderless = shard(['n1', 'n2', 'n3'].map((id) => observedNode({ id, leader: '', health: 'active_follower' })))
  const again = shard(['n1', 'n2', 'n3'].map((id) => observedNode({ id, leader: 'n2' })))

  expect(eventsBetween(leaderless, again, { leader: 'n1', term: 4, lostMs: 1_900 })[0]?.message).toBe(
    'leadership of s1 moved n1 → n2, writes paused about 1.9 s',
  )
})

test.each<[string, object]>([
  ['vacancy_wal_bytes 12', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes 1.5e3', { vacancy_wal_bytes: 1_500 }],
  ['vacancy_wal_bytes   12  1700000000', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes{} 12', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes{shard="s 1"} 12', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes 12\nvacancy_wal_bytes{disk="b"} 3', { vacancy_wal_bytes: 15 }],
  ['vacancy_wal_bytes 12\r\n\n\nvacancy_stays_held 3\n', { vacancy_wal_bytes: 12, vacancy_stays_held: 3 }],
  ['vacancy_wal_bytes{disk="a"} 12\nvacancy_wal_bytes{disk="b" 3', { vacancy_wal_bytes: 12 }],
  ['vacancy_wal_bytes{disk="a" 3', {}],
  ['vacancy_wal_bytes', {}],
  ['vacancy_wal_bytes ', {}],
  ['vacancy_wal_bytes NaN', {}],
  ['vacancy_wal_bytes +Inf', {}],
  ['vacancy_wal_bytes nonsense', {}],
  ['vacancy_wal_bytes_total 12', {}],
  ['# vacancy_wal_bytes 12', {}],
  [' vacancy_wal_bytes 12', {}],
  ['other_bytes 12', {}],
  ['vacancy_commands_total{command="SEARCHAVAIL"} 4', { 'vacancy_commands_total read': 4 }],
  ['vacancy_commands_total{command="UNKNOWN"} 4', {}],
  ['vacancy_commands_total 4', {}],
  ['vacancy_stays_refused_total{code="SOLD_OUT"} 4', { 'vacancy_stays_refused_total code SOLD_OUT': 4 }],
  ['vacancy_stays_refused_total{code="OTHER"} 4', {}],
])('the line %j', (lines, expected) => {
  const { numbers } = readingOf(`process_cpu_seconds_total 0\n${lines}`, NOW)

  expect(Object.fromEntries([...numbers].filter(([key]) => !key.startsWith('process')))).toEqual(expected)
})

test('past 96 MiB the owners that were updated least recently are evicted', () => {
  const bytesMax = 96 * 2 ** 20
  const node = (at: number) => ({ shard: 's1', node: `n${at}` })
  const one = createSeries()
  recordSeries(one, node(1), NOW, { queries: 1 })
  const request = { shard: 's1', node: 'n1', from: 'now-1s', to: 'now' }
  const namesKept = (Object.keys(SERIES) as SeriesName[]).filter(
    (name) => readSeries(one, { ...request, names: name }, NOW).series.length > 0,
  )
  // 1 h with 10 s and 24 h with 1 min, of two bytes each.
  expect(one.bytes).toBe(namesKept.length * 2 * (360 + 1_440))
  // Other owners leave space for three.
  const store = { ...createSeries(), bytes: bytesMax - 3 * one.bytes }
  const known = () => [...store.rings.values()].map(({ owner }) => owner.node)

  for (let at = 0; at < 3; at++) recordSeries(store, node(at), NOW + at * 10 * 1_000, { queries: 1 })
  expect([known(), store.bytes]).toEqual([['n0', 'n1', 'n2'], bytesMax])
  recordSeries(store, node(0), NOW + 60_000, { queries: 1 })
  recordSeries(store, node(3), NOW + 60_000, { queries: 1 })
  expect([known(), store.bytes]).toEqual([['n0', 'n2', 'n3'], bytesMax])
  store.bytes += 1
  recordSeries(store, node(4), NOW + 60_000, { queries: 1 })
  expect([known(), store.bytes]).toEqual([['n3', 'n4'], bytesMax + 1 - one.bytes])
})

describe('pauses', () => {
  /** Write pauses: the estimate for the next transfer, from the last ones. */

  let database: Kysely<Tables>
  let pauses: Pauses

  beforeAll(async () => {
    database = await openDatabase<Tables>(':memory:')
  })
  afterAll(async () => await database.destroy())
  beforeEach(async () => {
    await database.deleteFrom('write_pauses').execute()
    pauses = createPauses(database)
  })

  const add = (operation: string, milliseconds: number, shard = 's1', at = milliseconds) =>
    pauses.add({ operation, shard, at, milliseconds })

  test('the median, the lower of two, and the worst of a shard and of all', async () => {
    await add('a', 40)
    expect(pauses.of('s1')).toEqual({ median: 40, worst: 40, count: 1 })
    await add('b', 100)
    expect(pauses.of('s1')).toEqual({ median: 40, worst: 100, count: 2 })
    await add('c', 9)
    await add('d', 500, 's2')
    expect([pauses.of('s1'), pauses.of('s2')]).toEqual([
      { median: 40, worst: 100, count: 3 },
      { median: 500, worst: 500, count: 1 },
    ])
    expect(pauses.ofAll()).toEqual({ median: 40, worst: 500, count: 4 })
  })

  test('the last twenty count, also after a restart, and each operation once', async () => {
    for (let at = 0; at < 21; at++) await add(`o${at}`, at === 0 ? 9_999 : 100 + at, 's1', at)
    await database
      .insertInto('write_pauses')
      .values({ operation: 'o5', shard: 's1', at: 99, milliseconds: 1 })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const expected = { median: 110, worst: 120, count: 20 }
    expect(pauses.of('s1')).toEqual(expected)
    await add('o20', 5, 's9', 99)
    const again = createPauses(database)
    await again.load()
    expect([again.of('s1'), again.of('s9')]).toEqual([expected, null])
  })
})
