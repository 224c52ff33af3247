/** Moments of the past view: what the scrubber shows, and what has a past. Pure. */

export type Window = { readonly from: number; readonly to: number }

/** The shown time: the one before while the moment is in it, else around the moment, up to now. */
export function windowAround(at: number, now: number, length: number, before: Window | undefined): Window {
  if (before && before.to - before.from === length && at >= before.from && at <= before.to) return before
  const to = Math.min(now, at + length / 2)
  return { from: to - length, to }
}

/** The shard of a page; undefined on pages of the whole cluster. */
export function shardOf(path: string): string | undefined {
  const id = /^\/shards\/([^/]+)/.exec(path)?.[1]
  return id === undefined ? undefined : decodeURIComponent(id)
}

/** Whether a page shows recorded values. */
export function hasPast(path: string): boolean {
  return /^\/($|topology$|shards($|\/[^/]+($|\/(events|metrics|nodes\/[^/]+)$)))|^\/dashboards\//.test(path)
}
