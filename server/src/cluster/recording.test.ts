/** What is recorded over time: of a node with each reading, of shards and the cluster every few seconds. */

import { turnableClock } from '@vacancy/shared'
import type { FabricComponent, ShardView } from '@vacancy/shared/contract'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Reading } from '../history/reading.ts'
import { createSeries, type SeriesStore, STAY_NAMES, type Values } from '../history/series.ts'
import type { ClusterModule } from './cluster-state.ts'
import { recordReading, recordShards, saveSeriesFile } from './recording.ts'

const fakes = vi.hoisted(() => ({
  recorded: [] as { readonly owner: string; readonly at: number; readonly values: object }[],
  saved: [] as string[],
  components: [] as object[],
  failure: undefined as Error | undefined,
}))

vi.mock('../fabric/handlers.ts', () => ({ fabricView: () => ({ components: fakes.components }) }))
vi.mock('../history/series.ts', async (original) => {
  const series = await original<typeof import('../history/series.ts')>()
  return {
    ...series,
    recordSeries(store: SeriesStore, owner: { shard: string; node: string }, at: number, values: Values) {
      fakes.recorded.push({ owner: `${owner.shard}/${owner.node}`, at, values })
      series.recordSeries(store, owner, at, values)
    },
    async saveSeries(_: SeriesStore, file: string) {
      if (fakes.failure) throw fakes.failure
      fakes.saved.push(file)
    },
  }
})

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const [STAY = 'queries', OTHER = 'queries'] = STAY_NAMES

beforeEach(() => {
  fakes.recorded.length = 0
  fakes.saved.length = 0
  fakes.components = []
  fakes.failure = undefined
})
afterEach(() => void vi.clearAllMocks())

type Node = { readonly id: string; readonly lagSeconds: number | null; readonly lagEntries: number | null }
type Rates = ShardView['rates']

const rates = (queries: number | null, p99: number | null = null): Rates => ({
  ...{ queries, writes: 1, errors: null, p50: null, p99 },
})
const node = (id: string, lagSeconds: number | null = null): Node => ({ id, lagSeconds, lagEntries: lagSeconds && 5 })

function world(shards: { [id: string]: { rates: Rates; maxLagEntries: number | null; nodes: readonly Node[] } }) {
  const clock = turnableClock(NOW)
  clock.advance(1_000_000)
  const errors: unknown[] = []
  const states = Object.entries(shards).map(([id, view]) => [id, { view: { id, ...view } }] as const)
  const module = {
    deps: { clock, log: { error: (fields: unknown) => errors.push(fields) } },
    ...{ series: createSeries(), seriesFile: 'series.bin', savedAt: 0, saving: Promise.resolve() },
    ...{ stayValues: new Map(), moves: new Map(), valueSources: [] },
    collector: { shards: new Map(states), sorted: undefined },
  } as unknown as ClusterModule
  return { module, clock, errors }
}

/** What was last recorded of an owner. */
const of = (owner: string) => fakes.recorded.findLast((each) => each.owner === owner)?.values as Values
const reading = (numbers: { [key: string]: number } = {}) =>
  ({ at: NOW, numbers: new Map(Object.entries(numbers)), histograms: new Map(), connectionsLimit: 5 }) as Reading
const address = (id: string, shard = 's1') => ({ id, shard, zone: '', apiUrl: '', tcp: undefined })
const SHARD = { rates: rates(10), maxLagEntries: 7, nodes: [node('n1', 2), node('n2', 3)] }

test('a reading records what the node reports, its rates, and its lag in the shard', () => {
  const { module } = world({ s1: SHARD })
  recordReading(module, address('n1'), reading({ vacancy_wal_bytes: 12 }), { queries: 4 })
  expect(fakes.recorded).toMatchObject([
    { owner: 's1/n1', at: NOW + 1_000_000, values: { wal: 12, queries: 4, lag_entries: 5, lag_seconds: 2 } },
  ])
  recordReading(module, address('n9'), reading({ vacancy_wal_bytes: 3 }), undefined)
  expect(of('s1/n9')).toMatchObject({ wal: 3, lag_entries: undefined, lag_seconds: undefined })
})

test('a shard has its rates, its highest lags, and its leader changes since the last time', () => {
  const { module } = world({ s1: SHARD, s2: { ...SHARD, nodes: [node('n1'), node('n2')] } })
  module.moves.set('s1', 2)
  recordShards(module)
  expect(of('s1/')).toMatchObject({
    queries: 10,
    writes: 1,
    errors: null,
    lag_entries: 7,
    lag_seconds: 3,
    leader_moves: 2,
  })
  expect(of('s2/')).toMatchObject({ lag_seconds: null, leader_moves: 0 })
  expect(of('/')).toMatchObject({ leader_moves: 2 })
  recordShards(module)
  expect(of('s1/')).toMatchObject({ leader_moves: 0 })
})

test('the cluster has sums of rates, and the worst times and lags', () => {
  const shard = (queries: number | null, p99: number | null, lag: number) => ({
    ...{ rates: rates(queries, p99), maxLagEntries: lag, nodes: [node('n1', lag)] },
  })
  const { module } = world({ s1: shard(10, 4, 3), s2: shard(null, 9, 8), s3: shard(5, null, 1) })
  recordShards(module)
  expect(of('/')).toMatchObject({
    ...{ queries: 15, writes: 3, errors: null, p50: null, p99: 9, lag_entries: 8, lag_seconds: 8, leader_moves: 0 },
  })
  expect(fakes.recorded.map(({ owner, at }) => `${owner} ${at - NOW}`)).toEqual([
    ...['s1/ 1000000', 's2/ 1000000', 's3/ 1000000', '/ 1000000'],
  ])
})

test('the cluster has sums of the figures of its nodes, and the worst times of their disks', () => {
  const { module } = world({ s1: SHARD })
  recordReading(module, address('n1'), reading({ vacancy_wal_bytes: 12 }), { commit_p99: 3, fsync_p99: 1, cpu: 2 })
  recordReading(module, address('n2'), reading({ vacancy_wal_bytes: 30 }), { commit_p99: 2, fsync_p99: 5, cpu: 4 })
  recordShards(module)
  expect(of('/')).toMatchObject({ wal: 42, cpu: 6, commit_p99: 3, fsync_p99: 5, memory: null, connections: null })
})

test('replicas report the same stays: a shard has the highest value, and the cluster the sum of its shards', () => {
  const { module, clock } = world({ s1: SHARD, s2: SHARD })
  recordReading(module, address('n1'), reading(), { [STAY]: 5 })
  recordReading(module, address('n2'), reading(), { [STAY]: 6, [OTHER]: 1 })
  recordReading(module, address('n1', 's2'), reading(), { [STAY]: 10 })
  recordShards(module)
  expect([of('s1/')[STAY], of('s1/')[OTHER], of('s2/')[STAY], of('s2/')[OTHER]]).toEqual([6, 1, 10, null])
  expect([of('/')[STAY], of('/')[OTHER]]).toEqual([16, 1])

  clock.advance(29_999)
  recordShards(module)
  expect(of('s1/')[STAY]).toBe(6)
  clock.advance(1)
  recordShards(module)
  expect([of('s1/')[STAY], of('/')[STAY], module.stayValues.size]).toEqual([null, null, 0])
})

// Fabric

type Part = { readonly kind: FabricComponent['kind']; readonly level?: string; readonly rates?: object }

const part = ({ kind, level = 'ok', rates: own = {} }: Part) => ({
  ...{ kind, level, rates: { reads: null, writes: null, errors: null, p99: null, ...own } },
})

test('without a fabric none of its values are recorded', () => {
  const { module } = world({ s1: SHARD })
  recordShards(module)
  expect(Object.keys(of('/')).filter((name) => name.startsWith('fabric'))).toEqual([])
})

test('rates of the fabric are those of the first kind that clients pass, and failures those of all', () => {
  const { module } = world({ s1: SHARD })
  fakes.components = [
    part({ kind: 'bridge', level: 'crit', rates: { reads: 100, writes: 100, errors: 100, p99: 100 } }),
    part({ kind: 'zone-router', rates: { reads: 1, writes: 2, errors: 3, p99: 9 } }),
    part({ kind: 'zone-router', level: 'warn', rates: { reads: 10, errors: 4, p99: 7 } }),
    part({ kind: 'registry', level: 'crit', rates: { reads: 1_000 } }),
  ]
  recordShards(module)
  expect(of('/')).toMatchObject({
    ...{ fabric_reads: 11, fabric_writes: 2, fabric_errors: 7, fabric_p99: 9, fabric_down: 2, fabric_components: 4 },
  })
  fakes.components = ['proxy', 'edge'].map((kind, at) => part({ kind: kind as Part['kind'], rates: { reads: at + 1 } }))
  recordShards(module)
  expect(of('/')).toMatchObject({ fabric_reads: 2, fabric_writes: null, fabric_down: 0 })
})

test('a fabric of registries alone has no rates', () => {
  const { module } = world({ s1: SHARD })
  fakes.components = [part({ kind: 'registry', rates: { reads: 1 } })]
  recordShards(module)
  expect(of('/')).toMatchObject({ fabric_reads: null, fabric_p99: null, fabric_components: 1 })
})

test('further sources add values of the cluster', () => {
  const { module } = world({})
  module.valueSources.push(
    () => ({ control_polls: 3 }),
    () => ({ control_round: 4 }),
  )
  recordShards(module)
  expect(of('/')).toMatchObject({ control_polls: 3, control_round: 4, queries: null, lag_seconds: null })
})

// The file

test('series are saved each time while they are few, and every five minutes when they are many', async () => {
  const { module, clock } = world({})
  const save = async () => {
    saveSeriesFile(module)
    await module.saving
    return fakes.saved.splice(0).length
  }
  for (let at = 0; at < 200; at++) module.series.rings.set(`r${at}`, {} as never)
  expect([await save(), await save()]).toEqual([1, 1])
  expect(module.savedAt).toBe(1_000_000)
  module.series.rings.set('r200', {} as never)
  clock.advance(299_999)
  expect(await save()).toBe(0)
  clock.advance(1)
  expect([await save(), await save()]).toEqual([1, 0])
})

test('a failed save is logged, and the next one is tried', async () => {
  const { module, errors } = world({})
  const error = new Error('disk full')
  fakes.failure = error
  saveSeriesFile(module)
  await module.saving
  expect(errors).toEqual([{ err: error, file: 'series.bin' }])
  fakes.failure = undefined
  saveSeriesFile(module)
  await module.saving
  expect(fakes.saved).toEqual(['series.bin'])
})
