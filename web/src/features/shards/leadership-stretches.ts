/** Splits a period into stretches: a leader, no leader, or unknown. Pure. */

import type { ShardLeadership } from '@vacancy/shared/contract'

export type Stretch = { readonly from: number; readonly to: number } & (
  | { readonly kind: 'leader'; readonly leader: string; readonly term: number | null }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' }
)

/** Polls are one second apart: a shorter gap between two spans is not unknown time. */
const SEAM_MS = 1_000

/** Oldest first, without holes: uncovered time is an unknown stretch. */
export function stretchesOf(data: ShardLeadership): readonly Stretch[] {
  const stretches: Stretch[] = []
  let known = Date.parse(data.from)
  const unknownUntil = (at: number) => {
    if (at - known > SEAM_MS) stretches.push({ kind: 'unknown', from: known, to: at })
  }
  for (const { leader, term, ...span } of data.spans) {
    const [from, to] = [Date.parse(span.from), Date.parse(span.to)]
    unknownUntil(from)
    stretches.push(leader === null ? { kind: 'none', from, to } : { kind: 'leader', from, to, leader, term })
    known = to
  }
  unknownUntil(Date.parse(data.to))
  return stretches
}

const MINUTE = 60_000
/** Lengths of the strip below a whole day, shortest first. Their quarters are round times. */
const AXES = [12 * MINUTE, 60 * MINUTE, 240 * MINUTE, 720 * MINUTE]

/** The start of the strip, so that a young shard fills most of it. */
export function axisFrom(data: ShardLeadership): number {
  const [from, to] = [Date.parse(data.from), Date.parse(data.to)]
  const [first] = data.spans
  const known = first ? to - Date.parse(first.from) : 0
  const axis = AXES.find((length) => known < length)
  return axis === undefined || known === 0 ? from : Math.max(from, to - axis)
}
