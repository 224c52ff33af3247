/** Shards grouped by zone, and which zones fold to one line. Pure. */

import type { ShardBrief } from '@vacancy/shared/contract'

/** With more shards than this, zones fold. */
const FOLD_FROM = 40

export type Zone = {
  readonly zone: string
  readonly shards: readonly ShardBrief[]
  /** Shards that are never folded. */
  readonly problems: readonly ShardBrief[]
}

const NATURAL = new Intl.Collator('en', { numeric: true })

/** Zones and their shards by name, s2 before s10: now and in the past each has the same place. */
export function zonesOf(shards: readonly ShardBrief[]): readonly Zone[] {
  return [...Map.groupBy(shards, (shard) => shard.zone)]
    .map(([zone, ofZone]) => {
      const shards = ofZone.toSorted((a, b) => NATURAL.compare(a.id, b.id))
      return { zone, shards, problems: shards.filter(hasProblem) }
    })
    .sort((a, b) => NATURAL.compare(a.zone, b.zone))
}

export const canFold = (shards: readonly unknown[]): boolean => shards.length > FOLD_FROM

/** A standalone node has no replicas, which is no problem of its own. */
export function hasProblem({ level, state, slots }: Pick<ShardBrief, 'level' | 'state' | 'slots'>): boolean {
  if (state === 'standalone') return slots.some((slot) => slot.level !== 'ok' && slot.level !== 'info')
  return level !== 'ok'
}
