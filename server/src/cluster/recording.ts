/** Records metrics over time: of a node with each poll, of shards and the cluster every few seconds. */

import type { ShardView } from '@vacancy/shared/contract'
import type { SeriesName } from '@vacancy/shared/series'
import { type Figures, type Reading, reportedFigures } from '../history/reading.ts'
import { latestOfNodes, type Owner, recordSeries, STAY_NAMES, saveSeries, type Values } from '../history/series.ts'
import type { NodeAddress } from './cluster.ts'
import { type ClusterModule, nodeView } from './cluster-state.ts'
import { shardViews } from './collector.ts'
import { isUnread } from './derive.ts'
import { fabricView } from './topology.ts'

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
  const now = module.deps.clock.wallMs()
  recordSeries(module.series, { shard, node: id }, now, values)
  const ofStays = Object.fromEntries(STAY_NAMES.map((name) => [name, values[name]]))
  module.stayValues.set(nodeKey(shard, id), { at: now, values: ofStays })
}

/** Older values of a node are not current. */
const STAYS_CURRENT_MS = 30_000

const nodeKey = (shard: string, node: string) => `${shard}\n${node}`

/** Replicas apply the same, some of them later: the value of a shard is the highest of its nodes. */
function stayValuesOf({ stayValues }: ClusterModule, { id, nodes }: ShardView): Values {
  const current = nodes.flatMap((node) => stayValues.get(nodeKey(id, node.id))?.values ?? [])
  return Object.fromEntries(
    STAY_NAMES.map((name) => [
      name,
      worstOf(current.flatMap((values) => (typeof values[name] === 'number' ? [values[name]] : []))),
    ]),
  )
}

/** Metrics of shards and of the cluster. Those of nodes are recorded with each poll. */
export function recordShards(module: ClusterModule): void {
  const now = module.deps.clock.wallMs()
  const shards = shardViews(module.collector)
  const all: Values[] = []
  for (const [key, { at }] of module.stayValues) if (now - at >= STAYS_CURRENT_MS) module.stayValues.delete(key)
  for (const shard of shards) {
    const { queries, writes, errors, p50, p99 } = shard.rates
    const lags = shard.nodes.flatMap(({ lagSeconds }) => (lagSeconds === null ? [] : [lagSeconds]))
    const values: Values = {
      ...{ queries, writes, errors, p50, p99, lag_entries: shard.maxLagEntries },
      lag_seconds: lags.length === 0 ? null : Math.max(...lags),
      leader_moves: module.moves.get(shard.id) ?? 0,
      ...stayValuesOf(module, shard),
    }
    all.push(values)
    recordSeries(module.series, { shard: shard.id, node: '' }, now, values)
  }
  module.moves = new Map()
  const reported = (name: keyof Values) =>
    all.flatMap((values) => (typeof values[name] === 'number' ? [values[name]] : []))
  const sum = (name: keyof Values) => (isPart ? null : sumOf(reported(name)))
  const worst = (name: keyof Values) => worstOf(reported(name))
  // A sum over those that were read would show a fall that did not happen.
  const isExpected = ({ shard, node }: Owner) => {
    const view = nodeView(module, shard, node)
    return view !== undefined && view.level !== 'crit' && view.freshness !== 'never'
  }
  const ofNodes = (name: SeriesName) => latestOfNodes(module.series, name, now, isExpected)
  const isPart = shards.some(({ nodes }) => nodes.some(isUnread))
  recordSeries(module.series, { shard: '', node: '' }, now, {
    ...{
      queries: sum('queries'),
      writes: sum('writes'),
      errors: sum('errors'),
      p50: worst('p50'),
      p99: worst('p99'),
    },
    ...{ lag_entries: worst('lag_entries'), lag_seconds: worst('lag_seconds'), leader_moves: sum('leader_moves') },
    ...Object.fromEntries(STAY_NAMES.map((name) => [name, sum(name)])),
    commit_p99: worstOf(ofNodes('commit_p99') ?? []),
    fsync_p99: worstOf(ofNodes('fsync_p99') ?? []),
    ...Object.fromEntries(
      (['memory', 'wal', 'connections', 'cpu'] as const).map((name) => [name, sumOf(ofNodes(name) ?? [])]),
    ),
    ...fabricValues(module),
    ...Object.assign({}, ...module.valueSources.map((source) => source())),
  })
}

const sumOf = (values: readonly number[]) => (values.length === 0 ? null : values.reduce((a, b) => a + b, 0))
const worstOf = (values: readonly number[]) => (values.length === 0 ? null : Math.max(...values))

/** What the components between clients and nodes report. Each counts what passes it: rates are those of one kind. */
function fabricValues(module: ClusterModule): Values {
  const { components } = fabricView(module)
  if (components.length === 0) return {}
  const [first] = ENTRANCES.map((kind) => components.filter((one) => one.kind === kind)).filter((of) => of.length > 0)
  const rates = (name: 'reads' | 'writes' | 'errors' | 'p99') =>
    (first ?? []).flatMap(({ rates }) => (rates[name] === null ? [] : [rates[name]]))
  return {
    fabric_reads: sumOf(rates('reads')),
    fabric_writes: sumOf(rates('writes')),
    fabric_errors: sumOf(rates('errors')),
    fabric_p99: worstOf(rates('p99')),
    fabric_down: components.filter(({ level }) => level === 'crit').length,
    fabric_components: components.length,
  }
}

/** The kind whose rates count: the one that all clients pass, if there is one. */
const ENTRANCES = ['edge', 'proxy', 'zone-router', 'bridge'] as const

export function saveSeriesFile(module: ClusterModule): void {
  const now = module.deps.clock.monotonicMs()
  if (module.series.rings.size > LARGE_RINGS && now - module.savedAt < SAVE_LARGE_MS) return
  module.savedAt = now
  module.saving = module.saving
    .then(() => saveSeries(module.series, module.seriesFile))
    .catch((error) => module.deps.log.error({ err: error, file: module.seriesFile }, 'saving series failed'))
}
