/**
 * Live updates never move what the user is on (docs/design/control-plane.md#live-channel): rows keep the order of the
 * last sort until it is asked for again. New rows come last, gone rows leave.
 */
export function keptOrder(kept: readonly string[], sorted: readonly string[]): readonly string[] {
  if (kept === sorted) return sorted
  const here = new Set(sorted)
  const known = new Set(kept)
  return [...kept.filter((key) => here.has(key)), ...sorted.filter((key) => !known.has(key))]
}
