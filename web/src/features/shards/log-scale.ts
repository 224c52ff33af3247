/**
 * Log positions of a shard's nodes on one common scale, so that bars compare by eye
 * (docs/design/control-plane.md#tables).
 *
 *   0 = first entry the leader still has        1 = the leader's last entry
 *   committed ▓▓▓▓▓▓▓▓▓▓▓▓▓   uncommitted ░░   missing ╌╌╌╌
 */

import type { NodeView } from '@vacancy/shared/contract'

/** A missing part is drawn at least this wide: three entries of eight million are still something that is missing. */
const MISSING_SHARE_MIN = 0.015

export type LogScale = { readonly first: number; readonly last: number }

/** Shares of the scale, 0 to 1, in this order from the left; what is over is before the node's own first entry. */
export type LogBar = {
  readonly committedTo: number
  readonly uncommittedTo: number
  /** Entries that the node lacks. */
  readonly missing: number
  /** All that it would need next is gone from the leader's log: it needs a snapshot. */
  readonly needsSnapshot: boolean
  readonly position: number
}

/** The leader's own span; where there is none, of all that nodes have. Undefined when no node told a position. */
export function logScaleOf(nodes: readonly NodeView[], leader: string | null): LogScale | undefined {
  const told = nodes.filter((node) => node.lastIndex !== null)
  const scale = told.filter((node) => node.id === leader)
  const of = scale.length > 0 ? scale : told
  if (of.length === 0) return undefined
  return {
    first: Math.min(...of.map((node) => node.firstIndex ?? 0)),
    last: Math.max(...of.map((node) => node.lastIndex ?? 0)),
  }
}

/** Where a node stands; undefined when it did not tell. */
export function logBarOf(node: NodeView, scale: LogScale): LogBar | undefined {
  // What the leader saw the node match counts before what a cut-off node says of itself.
  const position = node.role === 'leader' ? node.lastIndex : (node.matchIndex ?? node.lastIndex)
  if (position === null) return undefined
  const missing = Math.max(0, scale.last - position)
  const span = Math.max(1, scale.last - scale.first)
  const share = (index: number) => Math.min(1, Math.max(0, (index - scale.first) / span))
  const widest = missing > 0 ? 1 - MISSING_SHARE_MIN : 1
  // An empty scale (one entry or none) is full for whoever has it all.
  const uncommittedTo = Math.min(widest, missing === 0 ? 1 : share(position))
  const committed = Math.min(node.commitIndex ?? position, position)
  const committedTo = committed === position ? uncommittedTo : Math.min(uncommittedTo, share(committed))
  return { committedTo, uncommittedTo, missing, needsSnapshot: position < scale.first - 1, position }
}

/** The bar in words: its accessible name. */
export function logBarText(node: NodeView, bar: LogBar | undefined, format: (count: number) => string): string {
  if (!bar) return `${node.id} does not report a log position`
  const committed =
    node.commitIndex === null ? '' : `, committed to ${format(Math.min(node.commitIndex, bar.position))}`
  const missing = bar.missing === 0 ? ', nothing missing' : `, ${format(bar.missing)} missing`
  const snapshot = bar.needsSnapshot ? ', needs a snapshot first' : ''
  return `log up to ${format(bar.position)}${committed}${missing}${snapshot}`
}
