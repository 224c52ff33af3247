/** Effects of a changed shard or operation: events, leadership history, and notifying followers. */
import type { Operation, ShardView } from '@vacancy/shared/contract'
import { addEvents, eventsBetween, type LastLeader } from '../history/events.ts'
import { forgetLeader, observeLeader } from '../history/leadership.ts'
import { recordGone, recordShard } from '../history/pictures.ts'
import { touchTopic } from '../live/topics.ts'
import type { ClusterModule } from './cluster-state.ts'
import { touchShard } from './collector-state.ts'

/** Compares a shard with its previous view: changes become events, and followers are notified. */
export function observeShard(module: ClusterModule, view: ShardView, before: ShardView | undefined): void {
  const { events, moves, leadership, deps } = module
  // Before its events: the state of the moment of an event includes the change.
  recordShard(module.pictures, view)
  if (before && isSettled(module, view)) {
    const found = eventsBetween(before, view, lastLeader(module, before, view))
    addEvents(events, found, deps.clock.wallMs())
    const moved = found.filter(({ kind }) => kind === 'leader').length
    if (moved > 0) moves.set(view.id, (moves.get(view.id) ?? 0) + moved)
  }
  const term = view.nodes.find(({ id }) => id === view.leader)?.term ?? null
  // Only a known shard can be without a leader.
  const isKnown = view.leader !== null || (module.settled.has(view.id) && view.state !== 'unknown')
  observeLeader(leadership, { id: view.id, leader: view.leader, term }, isKnown && view.mode === 'clustered')
  module.isSummaryDue = true
  touchTopic(deps.live, `shard:${view.id}`)
  for (const node of view.nodes) touchTopic(deps.live, `node:${view.id}/${node.id}`)
  for (const listener of module.listeners) listener(view)
}

export function forgetShard(module: ClusterModule, id: string): void {
  module.lost.delete(id)
  module.settled.delete(id)
  forgetLeader(module.leadership, id)
  recordGone(module.pictures, id)
  module.isSummaryDue = true
  touchTopic(module.deps.live, `shard:${id}`)
}

export function observeOperation(module: ClusterModule, operation: Operation): void {
  touchShard(module.collector, operation.shard)
  module.isSummaryDue = true
  if (operation.endedAt === null) return
  const { shard, node, title, state, message } = operation
  const level = state === 'done' ? 'ok' : state === 'cancelled' ? 'info' : 'warn'
  addEvents(
    module.events,
    [{ shard, node, kind: 'operation', level, message: `${title}: ${message}` }],
    module.deps.clock.wallMs(),
  )
}

/** After the start, the nodes of a shard report one after the other. Until then, differences are not changes. */
function isSettled(module: ClusterModule, { id, state }: ShardView): boolean {
  const was = module.settled.has(id)
  if (state !== 'unknown' && state !== 'electing') module.settled.add(id)
  return was
}

function lastLeader(module: ClusterModule, before: ShardView, view: ShardView): LastLeader | undefined {
  if (before.leader !== null && view.leader === null)
    module.lost.set(view.id, { leader: before.leader, at: module.deps.clock.monotonicMs() })
  const known = module.lost.get(view.id)
  if (view.leader === null || !known) return undefined
  module.lost.delete(view.id)
  return { leader: known.leader, lostMs: module.deps.clock.monotonicMs() - known.at }
}
