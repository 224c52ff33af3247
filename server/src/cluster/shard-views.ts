/** Deriving the view of a shard from what its nodes reported, when it is due. */
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
  const facts = { id, nodes: members.map(({ seen }) => seen), now, memory: state.memory, ...collector.hooks.facts(id) }
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
    // Ages pass and elections last without a word from anybody.
    const leastMs = collector.nodes.size > COLLECTOR.manyNodes ? COLLECTOR.roundMs : COLLECTOR.deriveShardMs
    if (now - state.derivedAt < (state.isDirty ? leastMs : COLLECTOR.roundMs)) continue
    deriveView(collector, id)
  }
}

/** Of what was derived, what later looks go back to: how far it was behind, and what it was. */
function keepLast(polled: PolledNode, view: ShardView, now: number): void {
  const node = view.nodes.find(({ id }) => id === polled.seen.address.id)
  if (node && node.role !== 'unknown') polled.role = node.role
  const entries = node?.lagEntries
  if (entries === null || entries === undefined) {
    if (polled.seen.lags.length > 0) polled.seen = { ...polled.seen, lags: [] }
    return
  }
  const last = polled.seen.lags.at(-1)
  if (last && now - last.at < COLLECTOR.roundMs) return
  const lags = [...polled.seen.lags.filter(({ at }) => now - at < COLLECTOR.lagsForMs), { at: now, entries }]
  polled.seen = { ...polled.seen, lags }
}
