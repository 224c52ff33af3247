/** The whole of a time as stretches one after the other: who led, nobody, or not known. Pure. */

import type { ShardLeadership } from '@vacancy/shared/contract'

export type Stretch = { readonly from: number; readonly to: number } & (
  | { readonly kind: 'leader'; readonly leader: string; readonly term: number | null }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' }
)

/** Looks come each second: a seam shorter than this between two spans is no time in which nothing was known. */
const SEAM_MS = 1_000

/** Oldest first, without holes: what no span covers is a stretch of its own. */
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
/** What a strip may show before the whole day, shortest first: quarters of them are times that are easily said. */
const AXES = [12 * MINUTE, 60 * MINUTE, 240 * MINUTE, 720 * MINUTE]

/** Where the strip begins: a shard that is young fills most of it, however little of the day it has seen. */
export function axisFrom(data: ShardLeadership): number {
  const [from, to] = [Date.parse(data.from), Date.parse(data.to)]
  const [first] = data.spans
  const known = first ? to - Date.parse(first.from) : 0
  const axis = AXES.find((length) => known < length)
  return axis === undefined || known === 0 ? from : Math.max(from, to - axis)
}
