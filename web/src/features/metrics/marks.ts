/** Events as marks on charts. Pure. */
import type { ClusterEvent } from '@vacancy/shared/contract'
import type { ChartMark } from '../../ui/time-chart-lines.ts'
import * as copy from './copy.ts'

export type MarkKind = ClusterEvent['kind']

/** Kinds that can be marked; states change too often to be shown unasked. */
export const MARK_KINDS = [
  'leader',
  'restart',
  'operation',
  'codecs',
  'membership',
  'state',
] as const satisfies readonly MarkKind[]
const SHOWN_KINDS = ['leader', 'restart', 'operation', 'codecs', 'membership']
const NONE = 'none'

/** The kinds of a URL parameter: "leader,restart", "none", or the usual ones for ''. */
export function kindsOf(text: string): readonly MarkKind[] {
  const chosen = text === '' ? SHOWN_KINDS : text.split(',')
  return MARK_KINDS.filter((kind) => chosen.includes(kind))
}

/** The URL parameter after a kind was toggled; '' for the usual kinds. */
export function toggledKinds(kinds: readonly MarkKind[], kind: MarkKind): string {
  const next = MARK_KINDS.filter((one) => (one === kind ? !kinds.includes(one) : kinds.includes(one)))
  if (next.length === 0) return NONE
  return next.join() === SHOWN_KINDS.join() ? '' : next.join()
}

/** Oldest first, so that names are drawn from left to right. */
export function marksOf(events: readonly ClusterEvent[], kinds: readonly MarkKind[]): ChartMark[] {
  return events
    .filter(({ kind }) => kinds.includes(kind))
    .map((event) => ({ at: event.at, label: event.message, short: copy.marks.short(event) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : 1))
}
