/** The summary of all shards, with attention items. */
import type { Summary } from '@vacancy/shared/contract'
import { touchTopic } from '../live/topics.ts'
import { type Aside, attentionSeeds, settleAttention, summarise } from './attention.ts'
import { clientSeeds, fabricSeeds, ownSeeds } from './attention-sources.ts'
import { briefsOf, type ClusterModule } from './cluster-state.ts'
import { observationsOf, shardViews } from './collector.ts'
import { isUnread } from './derive.ts'
import { runningOperations } from './operation-state.ts'
import { lastEndedOperations } from './operations.ts'
import type { ClusterDatabase } from './tables.ts'
import { fabricView } from './topology.ts'

export async function readAside(database: ClusterDatabase): Promise<Map<string, Aside>> {
  const rows = await database.selectFrom('attention_aside').selectAll().execute()
  return new Map(
    rows.map(({ item, until_at: untilAt, message }) => [
      item,
      { untilAt: untilAt === null ? null : Number(untilAt), message },
    ]),
  )
}

export function updateSummary(module: ClusterModule): void {
  if (!module.isSummaryDue) return
  module.isSummaryDue = false
  refreshAttention(module)
  touchTopic(module.deps.live, 'summary')
}

export function setAside(module: ClusterModule, item: string, aside: Aside | undefined): void {
  if (aside) module.aside.set(item, aside)
  else module.aside.delete(item)
  refreshAttention(module)
  touchTopic(module.deps.live, 'summary')
}

/** Items of what is not a shard and reports no change. */
export function readOtherAttention(module: ClusterModule): void {
  const { components, edges } = fabricView(module)
  module.otherAttention = [
    ...fabricSeeds({ components, edges }),
    ...ownSeeds(module.lateness, unreadShards(module)),
    ...clientSeeds(module.clients?.().shards ?? [], shardViews(module.collector), components),
    ...module.attentionSources.flatMap((source) => source()),
  ]
}

/** Of those that were read before. */
function unreadShards({ collector, told }: ClusterModule): string[] {
  return shardViews(collector).flatMap(({ id, nodes }) => (told.get(id)?.isSettled && nodes.some(isUnread) ? [id] : []))
}

function refreshAttention(module: ClusterModule): void {
  const now = module.deps.clock.wallMs()
  const shards = shardViews(module.collector)
  const seeds = attentionSeeds({
    shards,
    now,
    operations: lastEndedOperations(module.operations),
    limitsOf: (shard) => observationsOf(module.collector, shard).find(({ limits }) => limits)?.limits,
    oversoldOf: (shard) =>
      Math.max(
        0,
        ...observationsOf(module.collector, shard).map(({ status }) => status?.value.stays?.oversold_nights ?? 0),
      ),
    clientsOf: clientsOf(module),
    registryHash: module.registryCodecs?.ordered_hash,
    others: module.otherAttention,
  })
  const settled = settleAttention(seeds, module.attentionMemory, module.aside, now)
  module.attentionMemory = settled.memory
  module.attention = settled.items
}

/** What clients of a shard miss, for the item of its cause. */
function clientsOf({ clients }: ClusterModule): (shard: string) => string {
  const failing = new Map(
    clients?.().shards.flatMap(({ shard, state, ways }) =>
      state === 'fails' ? [[shard, ways.every(({ failing }) => failing === 'search')] as const] : [],
    ),
  )
  return (shard) => {
    const isSilent = failing.get(shard)
    return isSilent === undefined ? '' : isSilent ? 'clients get no answer' : 'clients cannot book'
  }
}

const MISSING_MAX = 200

export function summaryOf(module: ClusterModule): Summary {
  const shards = shardViews(module.collector)
  const registry = module.collector.discovery.registry
  const running = runningOperations(module.operations).map(({ id, kind, title, message, progress }) => ({
    ...{ id, kind, title, message, href: `/operations/${id}` },
    percent: progress && progress.total > 0 ? Math.round((progress.done / progress.total) * 100) : null,
  }))
  const missing = shards.flatMap((shard) => shard.missing).slice(0, MISSING_MAX)
  if (registry.address !== null && !registry.isUp && registry.since !== undefined) {
    const since = new Date(registry.since).toISOString()
    missing.unshift({ source: `registry ${registry.address}`, code: 'registry', message: registry.error, since })
  }
  return summarise({
    at: module.deps.clock.wallMs(),
    environment: module.deps.environment(),
    shards,
    briefs: briefsOf(module, shards),
    clients: module.clients?.().clients ?? null,
    attention: module.attention,
    running: [...running, ...module.runningSources.flatMap((source) => source())],
    events: [...module.events.recent],
    missing,
  })
}
