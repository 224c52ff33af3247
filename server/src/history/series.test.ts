/** Recorded series, compared with a model that keeps every recorded value: what is read, evicted and stored in a file. */

import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { SERIES, type SeriesName } from '@vacancy/shared/contract'
import { createRandom, pick } from '@vacancy/testkit/random'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { NOW } from '../testing/observed-nodes.ts'
import {
  createSeries,
  latestOfNodes,
  loadSeries,
  readSeries,
  readTime,
  recordSeries,
  STAY_NAMES,
  saveSeries,
} from './series.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000] as const
/** Three digits are displayed, of a value that is stored with an error of 0.05 %. */
const ERROR_MAX = 0.0056

const NODE = { shard: 's1', node: 'n1' }
const SHARD = { shard: 's1', node: '' }
const CLUSTER = { shard: '', node: '' }

const time = (ms: number) => new Date(ms).toISOString()
const floor = (ms: number, step: number) => Math.floor(ms / step) * step

// What is read, compared with a model

type Entry = { readonly at: number; readonly value: number }

/** The value of each step: the last one of 10 s, the mean of a minute, the sum of leader changes. */
function modelOf(entries: readonly Entry[], name: SeriesName, stepMs: number): Map<number, number> {
  const values = new Map<number, number[]>()
  for (const { at, value } of entries) {
    const step = floor(at, stepMs)
    values.set(step, [...(values.get(step) ?? []), value])
  }
  const sumOf = (all: readonly number[]) => all.reduce((total, value) => total + value, 0)
  const figureOf = (all: readonly number[]) => {
    if (name === 'leader_moves') return sumOf(all)
    return stepMs === MINUTE ? sumOf(all) / all.length : (all.at(-1) as number)
  }
  return new Map([...values].map(([step, all]) => [step, figureOf(all)]))
}

const isNear = (value: number | null | undefined, expected: number | undefined) =>
  expected === undefined || value === null || value === undefined
    ? value === null && expected === undefined
    : Math.abs(value - expected) <= ERROR_MAX * expected

/** Times between two records: most of them within a slot, some beyond the whole ring. */
const PAUSES = [0, 1, 4 * SECOND, 5 * SECOND, 10 * SECOND, 10 * SECOND, 35 * SECOND, 61 * SECOND, 20 * MINUTE, HOUR]

test('every step of a range has the recorded value, or null', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 4; round++) {
    const store = createSeries()
    const entries: Entry[] = []
    let now = NOW + random.below(10 * MINUTE)
    const name = pick(random, ['queries', 'leader_moves'] as const)
    for (let i = 0; i < 150; i++) {
      now += pick(random, PAUSES)
      if (random.below(60) === 0) now += 25 * HOUR
      const value = random.below(100)
      entries.push({ at: now, value })
      recordSeries(store, SHARD, now, { [name]: value })
      // Not reported: it neither counts nor replaces the value of the slot.
      if (random.below(3) === 0) recordSeries(store, SHARD, now, { [name]: null })
    }
    now += pick(random, PAUSES)
    for (const range of [MINUTE, 17 * MINUTE, HOUR, HOUR + SECOND, 5 * HOUR, DAY, 2 * DAY]) {
      const step = range <= HOUR ? 10 * SECOND : MINUTE
      const kept = range <= HOUR ? HOUR : DAY
      const body = readSeries(store, { shard: 's1', names: name, from: `now-${range / SECOND}s`, to: 'now' }, now)
      const first = Math.max(floor(now - range, step), floor(now, step) - kept + step)
      const hint = `seed ${SEED}, round ${round}, range ${range}`
      expect([body.stepSeconds, body.from, body.to], hint).toEqual([step / SECOND, time(first), time(floor(now, step))])
      const values = body.series[0]?.values ?? []
      const model = modelOf(entries, name, step)
      const wrong = values.filter((value, at) => !isNear(value, model.get(first + at * step)))
      expect([values.length, wrong], hint).toEqual([(floor(now, step) - first) / step + 1, []])
    }
  }
})

test('a range that ends in the past has no later steps, and one in the future has none', () => {
  const store = createSeries()
  for (let at = 0; at < 6; at++) recordSeries(store, NODE, NOW + at * 10 * SECOND, { queries: at + 1 })
  const now = NOW + 50 * SECOND
  const read = (from: string, to: string) => readSeries(store, { ...NODE, names: 'queries', from, to }, now)

  expect(read('now-30s', 'now-10s')).toEqual({
    ...{ from: time(NOW + 20 * SECOND), to: time(NOW + 40 * SECOND), stepSeconds: 10 },
    series: [{ name: 'queries', node: 'n1', unit: '1/s', values: [3, 4, 5] }],
  })
  expect(read('now-10s', time(now + HOUR)).series[0]?.values).toEqual([5, 6])
  const future = read(time(now + HOUR), time(now + 2 * HOUR))
  expect([future.from, future.to, future.series[0]?.values]).toEqual([time(now + HOUR), time(now + HOUR), []])
})

test('values of a clock that was set back are dropped', () => {
  const store = createSeries()
  recordSeries(store, NODE, NOW, { queries: 5 })
  recordSeries(store, NODE, NOW - 1, { queries: 7 })
  recordSeries(store, NODE, NOW + 9_999, { writes: 1 })

  const { series } = readSeries(store, { ...NODE, names: 'queries,writes', from: 'now-10s', to: 'now' }, NOW)

  expect(series.map(({ values }) => values)).toEqual([
    [null, 5],
    [null, 1],
  ])
})

test.each([
  [0, 0],
  [2 ** -21, 0],
  // The least value that is not 0.
  [2 ** -19, 0.000_001_91],
  [2 ** 43, 8.8e12],
  [2 ** 60, 17_600_000_000_000],
  [-5, 0],
])('%d is read as %d', (queries, expected) => {
  const store = createSeries()
  recordSeries(store, NODE, NOW, { queries })

  const { series } = readSeries(store, { ...NODE, names: 'queries', from: 'now-1s', to: 'now' }, NOW)

  expect(series[0]?.values.at(-1)).toBe(expected)
})

// Owners

const namesKept = (owner: typeof NODE) => {
  const store = createSeries()
  recordSeries(store, owner, NOW, {})
  const request = { shard: owner.shard || undefined, node: owner.node || undefined, from: 'now-1s', to: 'now' }
  const names = Object.keys(SERIES) as SeriesName[]
  return names.filter((names) => readSeries(store, { ...request, names }, NOW).series.length > 0)
}

test('the cluster has every series, a node its own, and a shard those of requests, lag and stays', () => {
  const of = (...kinds: string[]) =>
    (Object.keys(SERIES) as SeriesName[]).filter((name) => kinds.includes(SERIES[name].of))
  const common: SeriesName[] = ['queries', 'writes', 'errors', 'p50', 'p99', 'lag_entries', 'lag_seconds']

  expect(namesKept(CLUSTER)).toEqual(Object.keys(SERIES))
  expect(namesKept(NODE)).toEqual(of('node', 'both'))
  expect(namesKept(SHARD)).toEqual([...common, ...of('shard')])
  expect(STAY_NAMES).toEqual(of('shard').filter((name) => name !== 'leader_moves'))
})

test('a request without a shard is for the cluster, and one without a node for the shard and all of its nodes', () => {
  const store = createSeries()
  const owners = [CLUSTER, SHARD, NODE, { shard: 's1', node: 'n2' }, { shard: 's2', node: 'n1' }]
  for (const [at, owner] of owners.entries()) recordSeries(store, owner, NOW, { queries: at + 1 })
  const read = (shard?: string, node?: string) =>
    readSeries(store, { shard, node, names: 'queries,writes', from: 'now-1s', to: 'now' }, NOW).series.map(
      (one) => `${one.name} ${one.node} ${one.values.at(-1)}`,
    )

  expect(read()).toEqual(['queries null 1', 'writes null null'])
  expect(read('s1', 'n1')).toEqual(['queries n1 3', 'writes n1 null'])
  expect(read('s1', '')).toEqual(['queries null 2', 'writes null null'])
  expect(read('s1')).toEqual([
    ...['queries null 2', 'queries n1 3', 'queries n2 4'],
    ...['writes null null', 'writes n1 null', 'writes n2 null'],
  ])
  expect(read('s3')).toEqual([])
})

test('the current values of nodes are those of the last two slots', () => {
  const store = createSeries()
  recordSeries(store, CLUSTER, NOW, { p99: 1 })
  recordSeries(store, SHARD, NOW, { p99: 2 })
  recordSeries(store, NODE, NOW, { p99: 3 })
  recordSeries(store, { ...NODE, node: 'n2' }, NOW, { p99: null, queries: 9 })
  recordSeries(store, { ...NODE, node: 'n3' }, NOW + 10 * SECOND, { p99: 0 })

  expect(latestOfNodes(store, 'p99', NOW)).toEqual([3, 0])
  expect(latestOfNodes(store, 'queries', NOW)).toEqual([9])
  expect(latestOfNodes(store, 'leader_moves', NOW)).toEqual([])
  expect(latestOfNodes(store, 'p99', NOW + 30 * SECOND - 1)).toEqual([3, 0])
  expect(latestOfNodes(store, 'p99', NOW + 30 * SECOND)).toEqual([0])
  expect(latestOfNodes(store, 'p99', NOW + 40 * SECOND)).toEqual([])
})

test('past 96 MiB the owners that were updated least recently are evicted', () => {
  const bytesMax = 96 * 2 ** 20
  const node = (at: number) => ({ shard: 's1', node: `n${at}` })
  const one = createSeries()
  recordSeries(one, node(0), NOW, { queries: 1 })
  // 1 h with 10 s and 24 h with 1 min, of two bytes each.
  expect(one.bytes).toBe(namesKept(NODE).length * 2 * (360 + 1_440))
  // Other owners leave space for three.
  const store = { ...createSeries(), bytes: bytesMax - 3 * one.bytes }
  const known = () => [...store.rings.values()].map(({ owner }) => owner.node)

  for (let at = 0; at < 3; at++) recordSeries(store, node(at), NOW + at * 10 * SECOND, { queries: 1 })
  expect([known(), store.bytes]).toEqual([['n0', 'n1', 'n2'], bytesMax])
  recordSeries(store, node(0), NOW + MINUTE, { queries: 1 })
  recordSeries(store, node(3), NOW + MINUTE, { queries: 1 })
  expect([known(), store.bytes]).toEqual([['n0', 'n2', 'n3'], bytesMax])
  store.bytes += 1
  recordSeries(store, node(4), NOW + MINUTE, { queries: 1 })
  expect([known(), store.bytes]).toEqual([['n3', 'n4'], bytesMax + 1 - one.bytes])
})

// Requests

const names = (count: number) => Array.from({ length: count }, () => 'queries').join()
const request = { shard: 's1', names: 'queries', from: 'now-1h', to: 'now' }

test('a request names 1 to 40 series', () => {
  expect(() => readSeries(createSeries(), { ...request, names: names(40) }, NOW)).not.toThrow()
  for (const wrong of [names(41), ',', ''])
    expect(() => readSeries(createSeries(), { ...request, names: wrong }, NOW)).toThrow(
      expect.objectContaining({ code: 'unknown-series', field: 'names', message: 'Request 1 to 40 series.' }),
    )
})

test('an unknown series is named, and the known ones are listed', () => {
  expect(() => readSeries(createSeries(), { ...request, names: `queries,${'x'.repeat(65)}` }, NOW)).toThrow(
    expect.objectContaining({
      ...{ code: 'unknown-series', field: 'names', message: `There is no series ${'x'.repeat(64)}.` },
      hint: `Series: ${Object.keys(SERIES).join(', ')}.`,
    }),
  )
  expect(() => readSeries(createSeries(), { ...request, names: 'toString' }, NOW)).toThrow('no series toString')
})

test('a range must have a length', () => {
  const error = expect.objectContaining({ code: 'bad-range', field: 'from' })

  expect(() => readSeries(createSeries(), { ...request, from: 'now' }, NOW)).toThrow(error)
  expect(() => readSeries(createSeries(), { ...request, from: 'now-1h', to: 'now-2h' }, NOW)).toThrow(error)
  expect(() => readSeries(createSeries(), { ...request, to: 'x' }, NOW)).toThrow(
    expect.objectContaining({ code: 'bad-time', field: 'to' }),
  )
})

test.each([
  ['now-0s', NOW],
  ['now-15m', NOW - 15 * MINUTE],
  ['now-3h', NOW - 3 * HOUR],
  ['now-2d', NOW - 2 * DAY],
  ['now-999999s', NOW - 999_999 * SECOND],
  [time(NOW + 1), NOW + 1],
])('%s is a time', (text, expected) => {
  expect(readTime(text, NOW, 'from')).toBe(expected)
})

test.each(['now-1000000s', 'now-s', 'now-1h1m', 'now+1h', ' now', '2026-11-20', '2026-11-20T10:00:00', '1'])(
  '%o is not a time',
  (text) => {
    expect(() => readTime(text, NOW, 'from')).toThrow(`${text} is not a time.`)
  },
)

test('a text that is not a time is shown with at most 40 characters', () => {
  expect(() => readTime('x'.repeat(41), NOW, 'from')).toThrow(
    expect.objectContaining({ message: `${'x'.repeat(40)} is not a time.` }),
  )
})

// Files

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-series-'))
  file = join(folder, 'series')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const read = (store: ReturnType<typeof createSeries>) =>
  [NODE, SHARD, CLUSTER].map(({ shard, node }) => {
    const owner = { shard: shard || undefined, node: node || (shard === '' ? undefined : '') }
    return ['now-1h', 'now-1d'].map(
      (from) => readSeries(store, { ...owner, names: 'queries,errors', from, to: 'now' }, NOW + 10 * SECOND).series,
    )
  })

async function saved() {
  const store = createSeries()
  for (const [at, owner] of [NODE, SHARD, CLUSTER].entries()) {
    recordSeries(store, owner, NOW - 7 * HOUR, { queries: at + 1, errors: 5 })
    recordSeries(store, owner, NOW, { queries: at + 11, errors: 6 })
  }
  await saveSeries(store, file)
  return store
}

test('every series of nodes, shards and the cluster is read back', async () => {
  const store = await saved()
  const other = createSeries()

  expect(await loadSeries(other, file)).toBe('')
  expect(read(other)).toEqual(read(store))
  expect(other.bytes).toBe(store.bytes)
  // A slot that is already written is not overwritten by an older clock.
  recordSeries(other, NODE, NOW - 10 * SECOND, { queries: 99 })
  expect(read(other)).toEqual(read(store))
})

/** The saved file with another content before its checksum. */
function rewrite(change: (bytes: Buffer) => Buffer) {
  const bytes = change(readFileSync(file).subarray(0, -4))
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(bytes))
  writeFileSync(file, Buffer.concat([bytes, sum]))
}

test.each<[string, (bytes: Buffer) => Buffer]>([
  ['is not a series file', (bytes) => Buffer.concat([Buffer.from('VACSER1\n'), bytes.subarray(8)])],
  [
    'has another version',
    (bytes) => Buffer.from(bytes.toString('latin1').replace('"names":["queries"', '"names":["querieZ"'), 'latin1'),
  ],
])('a file that %s is ignored and deleted', async (fault, change) => {
  await saved()
  rewrite(change)
  const other = createSeries()

  expect(await loadSeries(other, file)).toBe(fault)
  expect(other.rings.size).toBe(0)
  expect(await loadSeries(other, file)).toBe('')
})

test.each([
  [15, 'has 15 bytes'],
  [16, 'is not a series file'],
])('a file of %d bytes is ignored', async (bytes, fault) => {
  writeFileSync(file, '')
  truncateSync(file, bytes)

  expect(await loadSeries(createSeries(), file)).toBe(fault)
})

test('a path that is not a file is an error', async () => {
  await expect(loadSeries(createSeries(), folder)).rejects.toThrow('EISDIR')
})
