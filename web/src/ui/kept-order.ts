/**
 * Live updates never move rows under the pointer (docs/design/console.md#live-updates): rows keep the order of the
 * last sort until the user sorts again. New rows come last, removed rows leave.
 */
export function keptOrder(kept: readonly string[], sorted: readonly string[]): readonly string[] {
  if (kept === sorted) return sorted
  const here = new Set(sorted)
  const known = new Set(kept)
  return [...kept.filter((key) => here.has(key)), ...sorted.filter((key) => !known.has(key))]
}
