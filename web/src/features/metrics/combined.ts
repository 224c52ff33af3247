/** One line for the cluster. Apart from series.ts, whose tables the overview does not need. Pure. */
import type { SeriesBody } from '@vacancy/shared/contract'

/**
 * Combines the lines of all shards into one for the cluster.
 *
 * @param combine the reported values of one moment; a moment without values is a gap
 */
export function combined(
  body: SeriesBody,
  name: string,
  combine: (values: readonly number[]) => number,
): (number | null)[] {
  const series = body.series.filter((one) => one.name === name)
  const length = Math.max(0, ...series.map((one) => one.values.length))
  return Array.from({ length }, (_, at) => {
    const values = series.map((one) => one.values[at]).filter((value) => value !== null && value !== undefined)
    return values.length === 0 ? null : combine(values)
  })
}
