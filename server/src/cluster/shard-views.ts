/** Derives the view of a shard from the reports of its nodes, when it is due. */
import type { ShardView } from '@vacancy/shared/contract'
import { COLLECTOR, type Collector, type PolledNode } from './collector-state.ts'
import { deriveShard } from './derive.ts'

export function deriveView(collector: Collector, id: string): void {
  const state = collector.shards.get(id)
  if (!state) return
  const members = [...state.nodes.values()]
  state.isDirty = false
  state.derivedAt = collector.clock.monotonicMs()
  if (members.length === 0) {
    collector.shards.delete(id)
    collector.sorted = undefined
    collector.hooks.onShardGone(id)
    return
  }
  const now = collector.clock.wallMs()
  const facts = {
    id,
    nodes: members.map(({ observation }) => observation),
    now,
    memory: state.memory,
    ...collector.hooks.facts(id),
  }
  const { view, memory } = deriveShard(facts)
  for (const node of members) keepLast(node, view, now)
  const before = state.view
  state.view = view
  state.memory = memory
  collector.hooks.onShard(view, before)
}

export function deriveDueViews(collector: Collector): void {
  const now = collector.clock.monotonicMs()
  for (const [id, state] of collector.shards) {
    // Ages and election timeouts pass without any report.
    const leastMs = collector.nodes.size > COLLECTOR.manyNodes ? COLLECTOR.roundMs : COLLECTOR.deriveShardMs
    if (now - state.derivedAt < (state.isDirty ? leastMs : COLLECTOR.roundMs)) continue
    deriveView(collector, id)
  }
}

/** Stores the derived values that later views refer to: lag and role. */
function keepLast(polled: PolledNode, view: ShardView, now: number): void {
  const node = view.nodes.find(({ id }) => id === polled.observation.address.id)
  if (node && node.role !== 'unknown') polled.role = node.role
  const entries = node?.lagEntries
  if (entries === null || entries === undefined) {
    if (polled.observation.lags.length > 0) polled.observation = { ...polled.observation, lags: [] }
    return
  }
  const last = polled.observation.lags.at(-1)
  if (last && now - last.at < COLLECTOR.roundMs) return
  const lags = [...polled.observation.lags.filter(({ at }) => now - at < COLLECTOR.lagsForMs), { at: now, entries }]
  polled.observation = { ...polled.observation, lags }
}
