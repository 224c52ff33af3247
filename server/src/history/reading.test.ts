/** Metrics pages of nodes: which lines are read, and the figures between two readings. */

import { SERIES } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { NOW } from '../testing/observed-nodes.ts'
import { changeBetween, quantile, type Reading, readMetrics, reportedFigures } from './reading.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

const reading = (lines: string, at = NOW) => readMetrics(`process_cpu_seconds_total 0\n${lines}`, at) as Reading
/** The numbers of a page, without those of other lines. */
const numbers = (lines: string) =>
  Object.fromEntries([...reading(lines).numbers].filter(([key]) => !key.startsWith('process')))

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
  expect(numbers(lines)).toEqual(expected)
})

test('a command counts as a write, and as the command that it is', () => {
  expect(numbers('vacancy_commands_total{command="BOOKSTAY"} 4\nvacancy_commands_total{command="HOLDSTAY"} 1')).toEqual(
    {
      'vacancy_commands_total write': 5,
      'vacancy_commands_total command BOOKSTAY': 4,
      'vacancy_commands_total command HOLDSTAY': 1,
    },
  )
})

test('a page without a known metric is not that of a node', () => {
  expect(readMetrics('', NOW)).toBeUndefined()
  expect(readMetrics('<html>\n# nothing', NOW)).toBeUndefined()
  expect(readMetrics('vacancy_wal_bytes x\nprocess_other 1', NOW)).toBeUndefined()
  expect(readMetrics('vacancy_commands_total{command="UNKNOWN"} 4', NOW)).toMatchObject({ at: NOW })
})

test('the limit of connections is read', () => {
  expect(reading('vacancy_tcp_connections_limit 500').connectionsLimit).toBe(500)
  expect(reading('').connectionsLimit).toBeUndefined()
})

test('the buckets of a histogram are added over their labels, and invalid bounds are skipped', () => {
  const { histograms } = reading(`vacancy_wal_fsync_seconds_bucket{disk="a",le="0.1"} 5
vacancy_wal_fsync_seconds_bucket{disk="b",le="0.1"} 2
vacancy_wal_fsync_seconds_bucket{le="+Inf"} 9
vacancy_wal_fsync_seconds_bucket{le="x"} 9
vacancy_command_duration_seconds_bucket{command="SEARCHAVAIL",phase="queue",le="1"} 3
vacancy_command_duration_seconds_bucket{command="BOOKSTAY",phase="run",le="1"} 3`)

  expect(Object.fromEntries([...histograms].map(([key, counts]) => [key, [...counts]]))).toEqual({
    vacancy_wal_fsync_seconds_bucket: [
      [0.1, 7],
      [Number.POSITIVE_INFINITY, 9],
    ],
  })
})

test('reported figures are those that are no rates', () => {
  expect(
    reportedFigures(
      reading(
        'vacancy_wal_bytes 5\nvacancy_stays_expired_total 7\nvacancy_memory_bytes{kind="rss"} 8\nvacancy_stays_held 0',
      ),
    ),
  ).toEqual({ wal: 5, memory: 8, stays_held: 0 })
})

// Changes

test('a rate is the increase per second, 0 for a metric that is not reported', () => {
  const before = reading('vacancy_stays_expired_total 10')
  const after = reading('vacancy_stays_expired_total 25\nvacancy_command_errors_total{code="500"} 6', NOW + 3_000)

  const change = changeBetween(before, after)

  expect(change).toMatchObject({ stays_expired: 5, errors: 2, queries: 0, cpu: 0 })
  const names = Object.entries(SERIES).flatMap(([name, series]) =>
    'source' in series && series.source.as !== 'value' ? [name] : [],
  )
  expect(Object.keys(change ?? {}).sort()).toEqual(names.sort())
})

test.each([
  [0, false],
  [-1, false],
  [1, true],
])('readings that are %d ms apart', (ms, isKnown) => {
  expect(changeBetween(reading(''), reading('', NOW + ms)) !== undefined).toBe(isKnown)
})

test('a counter that decreased belongs to another process', () => {
  const count = (value: number, at = NOW) => reading(`vacancy_stays_expired_total ${value}`, at)

  expect(changeBetween(count(5), count(4, NOW + 1_000))).toBeUndefined()
  expect(changeBetween(count(5), count(5, NOW + 1_000))).toMatchObject({ stays_expired: 0 })
  expect(changeBetween(count(5), reading('', NOW + 1_000))).toBeUndefined()
})

test('quantiles are in milliseconds, and null without requests', () => {
  const page = (fast: number, all: number, at = NOW) =>
    reading(
      `vacancy_wal_fsync_seconds_bucket{le="0.01"} ${fast}\nvacancy_wal_fsync_seconds_bucket{le="0.02"} ${all}\nvacancy_wal_fsync_seconds_bucket{le="+Inf"} ${all}`,
      at,
    )

  expect(changeBetween(page(5, 5), page(5, 105, NOW + 1_000))?.fsync_p99).toBeCloseTo(19.9)
  expect(changeBetween(page(5, 5), page(5, 5, NOW + 1_000))?.fsync_p99).toBeNull()
  expect(changeBetween(reading(''), page(0, 100, NOW + 1_000))?.fsync_p99).toBeCloseTo(19.9)
})

// Quantiles

const histogram = (...counts: readonly (readonly [number, number])[]) => new Map(counts)

test.each<[ReturnType<typeof histogram>, ReturnType<typeof histogram>, number, number | null]>([
  [histogram(), histogram(), 0.5, null],
  [histogram([1, 4]), histogram([1, 4]), 0.5, null],
  [histogram([1, 5]), histogram([1, 4]), 0.5, null],
  [histogram(), histogram([1, 4]), 0.5, 0.5],
  [histogram(), histogram([4, 4], [2, 2]), 0.5, 2],
  [histogram(), histogram([2, 2], [4, 4]), 0.75, 3],
  [histogram([2, 2], [4, 2]), histogram([2, 2], [4, 4]), 0.5, 3],
  [histogram(), histogram([2, 0], [4, 4]), 0, 0],
  [histogram(), histogram([2, 1], [Number.POSITIVE_INFINITY, 4]), 0.99, 2],
  [histogram(), histogram([Number.POSITIVE_INFINITY, 4]), 0.99, 0],
])('case %#: between %o and %o the quantile %d is %d', (before, after, share, expected) => {
  expect(quantile(before, after, share)).toBe(expected)
})

test('a quantile is within the bucket of the request at its rank', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 200; round++) {
    const bounds = Array.from({ length: 1 + random.below(8) }, (_, at) => (at + 1) * 10)
    const requests = Array.from({ length: 1 + random.below(50) }, () => 1 + random.below(bounds.length * 10))
    const counted = (all: readonly number[]) =>
      new Map(bounds.map((bound) => [bound, all.filter((each) => each <= bound).length]))
    const before = requests.slice(0, random.below(requests.length))
    const added = requests.slice(before.length).sort((a, b) => a - b)
    const share = (1 + random.below(99)) / 100
    const rank = added[Math.max(0, Math.ceil(added.length * share - 1e-9) - 1)] as number
    const bucket = Math.ceil(rank / 10) * 10

    const value = quantile(counted(before), counted(requests), share) as number

    expect(value > bucket - 10 && value <= bucket + 1e-6, `seed ${SEED}, round ${round}: ${value} of ${rank}`).toBe(
      true,
    )
  }
})
