/** What is recorded over time: of a node with each reading, of shards and the cluster every few seconds. */

import { turnableClock } from '@vacancy/shared'
import { expect, test, vi } from 'vitest'
import type { Reading } from '../history/reading.ts'
import { createSeries, type SeriesStore, STAY_NAMES, type Values } from '../history/series.ts'
import type { ClusterModule } from './cluster-state.ts'
import { recordReading, recordShards } from './recording.ts'

const fakes = vi.hoisted(() => ({ recorded: new Map<string, object>() }))

vi.mock('./topology.ts', () => ({ fabricView: () => ({ components: [] }) }))
vi.mock('../history/series.ts', async (original) => ({
  ...(await original<typeof import('../history/series.ts')>()),
  recordSeries: (_: SeriesStore, { shard, node }: { shard: string; node: string }, __: number, values: Values) =>
    void fakes.recorded.set(`${shard}/${node}`, values),
  saveSeries: async () => {},
}))

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const [STAY = 'queries', OTHER = 'queries'] = STAY_NAMES
const NODES = ['n1', 'n2'].map((id) => ({ id, lagSeconds: 2, lagEntries: 5 }))
const RATES = { queries: 10, writes: 1, errors: null, p50: null, p99: null }
const VIEW = { rates: RATES, maxLagEntries: 7, nodes: NODES }

function world(...shards: readonly string[]) {
  const clock = turnableClock(NOW)
  clock.advance(1_000_000)
  const module = {
    deps: { clock },
    ...{ series: createSeries(), seriesFile: 'series.bin', savedAt: 0, saving: Promise.resolve() },
    ...{ stayValues: new Map(), moves: new Map(), valueSources: [] },
    collector: { shards: new Map(shards.map((id) => [id, { view: { id, ...VIEW } }])), sorted: undefined },
  } as unknown as ClusterModule
  return { module, clock }
}

/** What was last recorded of an owner. */
const of = (owner: string) => fakes.recorded.get(owner) as Values
const READING = { at: NOW, numbers: new Map(), histograms: new Map(), connectionsLimit: 5 } as unknown as Reading
const address = (id: string, shard = 's1') => ({ id, shard, zone: '', apiUrl: '', tcp: undefined })

test('replicas report the same stays: a shard has the highest value, and the cluster the sum of its shards', () => {
  const { module, clock } = world('s1', 's2')
  recordReading(module, address('n1'), READING, { [STAY]: 5 })
  recordReading(module, address('n2'), READING, { [STAY]: 6, [OTHER]: 1 })
  recordReading(module, address('n1', 's2'), READING, { [STAY]: 10 })
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
