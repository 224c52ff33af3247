/** The time of a run by hop, and its spread over repeats. */
import type { CommandAnswer, Hop } from '@vacancy/shared/contract'
import { micros } from '../../lib/format.ts'
import { percentile } from '../../ui/price-scale.ts'
import * as copy from './copy.ts'

type Bar = { readonly hop: string; readonly label: string; readonly micros: number | null }

const LABELS: { readonly [hop in Hop['hop'] | 'browser']: string } = copy.timing.hops

/** In order along the path; the browser's part is the remainder. */
export function barsOf(answer: Pick<CommandAnswer, 'hops' | 'totalMicros'>, browserMicros: number): Bar[] {
  return [
    { hop: 'browser', label: LABELS.browser, micros: Math.max(0, browserMicros - answer.totalMicros) },
    ...answer.hops.map(({ hop, micros }) => ({ hop, label: LABELS[hop], micros })),
  ]
}

export type Repeats = { readonly runs: readonly number[]; readonly failed: number; readonly wanted: number }

export function spreadOf({ runs }: Repeats) {
  const sorted = [...runs].sort((a, b) => a - b)
  return { p50: percentile(sorted, 50), p99: percentile(sorted, 99), least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 }
}

/** "37 of 100 runs, 1 failed: p50 1.9 ms · p99 3.4 ms · 1.7 ms to 4.1 ms". */
export function timesText(repeats: Repeats): string {
  const { runs, failed, wanted } = repeats
  const { p50, p99, least, most } = spreadOf(repeats)
  const times = copy.timing.spread(micros(p50), micros(p99), micros(least), micros(most))
  return copy.timing.runs(runs.length, wanted, failed, times)
}
