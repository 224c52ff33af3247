/** Whether a figure of one commit is worse than that of another one, measured in turn on the same machine. */
import { formatValue } from './format.ts'
import { median } from './pauses.ts'
import type { Measure, Unit } from './verdict.ts'

/** Share of the base by which a figure may be worse, beside the spread of the runs. */
const WORSE_SHARE_MAX = 0.05

export type Compared = {
  name: string
  unit: Unit
  isBetter: 'more' | 'less'
  /** One value a run. */
  base: readonly number[]
  here: readonly number[]
}

/**
 * Half the distance between the quartiles of the noisier side, as a share of its median: how far a median of such runs
 * is off by chance. The extremes of a few runs on a shared machine would excuse everything.
 */
export function spread({ base, here }: Pick<Compared, 'base' | 'here'>): number {
  return Math.max(
    ...[base, here].map((values) => (quartile(values, 0.75) - quartile(values, 0.25)) / 2 / median(values)),
  )
}

/** Between the two nearest values, by their distance. */
function quartile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * share
  const [low, high] = [sorted[Math.floor(place)] ?? Number.NaN, sorted[Math.ceil(place)] ?? Number.NaN]
  return low + (high - low) * (place - Math.floor(place))
}

/** How much worse the median is, as a share of the base; negative when it is better. */
export function worseBy({ isBetter, base, here }: Compared): number {
  const change = median(here) / median(base) - 1
  return isBetter === 'less' ? change : -change
}

/** The row of a figure: missed when it is worse by more than the allowed share and the spread together. */
export function comparedMeasures(compared: Compared): Measure[] {
  const { name, unit, isBetter, base, here } = compared
  const allowed = WORSE_SHARE_MAX + spread(compared)
  const bound = median(base) * (isBetter === 'less' ? 1 + allowed : 1 - allowed)
  const worse = worseBy(compared)
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`
  return [
    {
      name,
      value: median(here),
      unit,
      target: isBetter === 'less' ? { atMost: bound } : { atLeast: bound },
      baseline: { name: 'base', value: median(base) },
      verdict: worse <= allowed ? 'met' : 'missed',
      why: `${percent(Math.abs(worse))} ${worse > 0 ? 'worse' : 'better'}, allowed are ${percent(allowed)}; base ${range(base, unit)}, here ${range(here, unit)}`,
    },
  ]
}

function range(values: readonly number[], unit: Unit): string {
  return [Math.min(...values), Math.max(...values)].map((value) => formatValue(value, unit)).join(' to ')
}
