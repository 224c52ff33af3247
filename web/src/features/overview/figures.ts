/** Figures of the whole cluster: what the shards report now. Pure. */

import type { ShardBrief } from '@vacancy/shared/contract'

export type Figure = {
  readonly value: number | null
  /** The shard with the highest value, where the figure is that of one shard. */
  readonly shard?: string | undefined
}

type Rate = keyof ShardBrief['rates']

/** The sum over all shards that report it; null when none does. */
export function total(shards: readonly Pick<ShardBrief, 'rates'>[], rate: Rate): Figure {
  const values = shards.map(({ rates }) => rates[rate]).filter((value) => value !== null)
  return { value: values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) }
}

/** The last value of a course that is known; undefined without one. */
export function newest(line: readonly (number | null)[]): number | undefined {
  return line.findLast((value) => value !== null) ?? undefined
}

/** One bar of a list: the highest values, each with its share of the first. */
export type Ranked = { readonly id: string; readonly value: number; readonly share: number }

/** Those with the highest values above 0, and how many there are besides. */
export function ranked<S extends { readonly id: string }>(
  all: readonly S[],
  read: (one: S) => number | null,
  max: number,
): { readonly rows: readonly Ranked[]; readonly more: number } {
  const found = all
    .flatMap((one) => {
      const value = read(one)
      return value === null || value <= 0 ? [] : [{ id: one.id, value }]
    })
    .sort((a, b) => b.value - a.value)
  const top = found[0]?.value ?? 1
  const rows = found.slice(0, max).map((row) => ({ ...row, share: row.value / top }))
  return { rows, more: found.length - rows.length }
}

/** The highest value and its shard. */
export function highest<S extends Pick<ShardBrief, 'id'>>(
  shards: readonly S[],
  read: (shard: S) => number | null,
): Figure {
  let top: Figure = { value: null }
  for (const shard of shards) {
    const value = read(shard)
    if (value !== null && (top.value === null || value > top.value)) top = { value, shard: shard.id }
  }
  return top
}
