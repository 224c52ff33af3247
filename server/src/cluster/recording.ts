/** Records metrics over time: of a node with each poll, of shards and the cluster every few seconds. */

import { type Figures, type Reading, reportedFigures } from '../history/reading.ts'
import { recordSeries, saveSeries, type Values } from '../history/series.ts'
import type { NodeAddress } from './cluster.ts'
import { type ClusterModule, nodeView } from './cluster-state.ts'
import { shardViews } from './collector.ts'

/** Large files are written less often; every minute they would dominate the disk load. */
const SAVE_LARGE_MS = 300_000

const LARGE_RINGS = 200

/** The metrics of a node, with values derived from the rest of its shard. */
export function recordReading(
  module: ClusterModule,
  { shard, id }: NodeAddress,
  reading: Reading,
  change: Figures | undefined,
): void {
  const node = nodeView(module, shard, id)
  const lag: Values = { lag_entries: node?.lagEntries, lag_seconds: node?.lagSeconds }
  const values: Values = { ...reportedFigures(reading), ...change, ...lag }
  recordSeries(module.series, { shard, node: id }, module.deps.clock.wallMs(), values)
}

/** Metrics of shards and of the cluster. Those of nodes are recorded with each poll. */
export function recordShards(module: ClusterModule): void {
  const now = module.deps.clock.wallMs()
  const shards = shardViews(module.collector)
  const all: Values[] = []
  for (const shard of shards) {
    const { queries, writes, errors, p50, p99 } = shard.rates
    const lags = shard.nodes.flatMap(({ lagSeconds }) => (lagSeconds === null ? [] : [lagSeconds]))
    const values: Values = {
      ...{ queries, writes, errors, p50, p99, lag_entries: shard.maxLagEntries },
      lag_seconds: lags.length === 0 ? null : Math.max(...lags),
      leader_moves: module.moves.get(shard.id) ?? 0,
    }
    all.push(values)
    recordSeries(module.series, { shard: shard.id, node: '' }, now, values)
  }
  module.moves = new Map()
  const reported = (name: keyof Values) =>
    all.flatMap((values) => (typeof values[name] === 'number' ? [values[name]] : []))
  const sum = (name: keyof Values) => (reported(name).length === 0 ? null : reported(name).reduce((a, b) => a + b, 0))
  const worst = (name: keyof Values) => (reported(name).length === 0 ? null : Math.max(...reported(name)))
  recordSeries(module.series, { shard: '', node: '' }, now, {
    ...{
      queries: sum('queries'),
      writes: sum('writes'),
      errors: sum('errors'),
      p50: worst('p50'),
      p99: worst('p99'),
    },
    ...{ lag_entries: worst('lag_entries'), lag_seconds: worst('lag_seconds'), leader_moves: sum('leader_moves') },
  })
}

export function saveSeriesFile(module: ClusterModule): void {
  const now = module.deps.clock.monotonicMs()
  if (module.series.rings.size > LARGE_RINGS && now - module.savedAt < SAVE_LARGE_MS) return
  module.savedAt = now
  module.saving = module.saving
    .then(() => saveSeries(module.series, module.seriesFile))
    .catch((error) => module.deps.log.error({ err: error, file: module.seriesFile }, 'saving series failed'))
}
