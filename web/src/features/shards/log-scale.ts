/**
 * Log positions of a shard's nodes on one common scale, so that bars compare by eye
 * (docs/design/console.md#tables).
 *
 *   0 = first entry the leader still has        1 = the leader's last entry
 *   committed ▓▓▓▓▓▓▓▓▓▓▓▓▓   uncommitted ░░   missing ╌╌╌╌
 */

import type { NodeView } from '@vacancy/shared/contract'
import * as copy from './shard-copy.ts'

/** Minimum width of a missing part, so that three entries of eight million are still visible. */
const MISSING_SHARE_MIN = 0.015

export type LogScale = { readonly first: number; readonly last: number }

/** Shares of the scale, 0 to 1, from the left. */
export type LogBar = {
  readonly committedTo: number
  readonly uncommittedTo: number
  /** Entries that the node lacks. */
  readonly missing: number
  /** The leader's log no longer has its next entry. */
  readonly needsSnapshot: boolean
  readonly position: number
}

/** The span of the leader's log, or of all nodes without a leader. Undefined when no node reports a position. */
export function logScaleOf(nodes: readonly NodeView[], leader: string | null): LogScale | undefined {
  const reported = nodes.filter((node) => node.lastIndex !== null)
  const scale = reported.filter((node) => node.id === leader)
  const of = scale.length > 0 ? scale : reported
  if (of.length === 0) return undefined
  return {
    first: Math.min(...of.map((node) => node.firstIndex ?? 0)),
    last: Math.max(...of.map((node) => node.lastIndex ?? 0)),
  }
}

/** The position of a node; undefined when it reports none. */
export function logBarOf(node: NodeView, scale: LogScale): LogBar | undefined {
  // The match index of the leader takes precedence: a disconnected node may report outdated values.
  const position = node.role === 'leader' ? node.lastIndex : (node.matchIndex ?? node.lastIndex)
  if (position === null) return undefined
  const missing = Math.max(0, scale.last - position)
  const span = Math.max(1, scale.last - scale.first)
  const share = (index: number) => Math.min(1, Math.max(0, (index - scale.first) / span))
  const widest = missing > 0 ? 1 - MISSING_SHARE_MIN : 1
  // An empty scale (one entry or none) is full for a node that has everything.
  const uncommittedTo = Math.min(widest, missing === 0 ? 1 : share(position))
  const committed = Math.min(node.commitIndex ?? position, position)
  const committedTo = committed === position ? uncommittedTo : Math.min(uncommittedTo, share(committed))
  return { committedTo, uncommittedTo, missing, needsSnapshot: position < scale.first - 1, position }
}

/** The accessible name of the bar. */
export function logBarText(node: NodeView, bar: LogBar | undefined, format: (count: number) => string): string {
  if (!bar) return copy.logBar.unknown(node.id)
  const committed = node.commitIndex === null ? undefined : format(Math.min(node.commitIndex, bar.position))
  const missing = bar.missing === 0 ? undefined : format(bar.missing)
  return copy.logBar.text(format(bar.position), committed, missing, bar.needsSnapshot)
}
