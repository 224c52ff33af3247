/** The time of a run by hop, and its spread over repeats. */
import type { CommandAnswer, Hop } from '@vacancy/shared/contract'
import { micros } from '../../lib/format.ts'
import { percentile } from '../../ui/price-scale.ts'
import * as copy from './copy.ts'

type Bar = { readonly hop: string; readonly label: string; readonly micros: number | null }
export type Bars = { readonly way: readonly Bar[]; readonly node: readonly Bar[] }

const OF_NODE: ReadonlySet<string> = new Set(['waiting', 'searching', 'planning', 'examining', 'writing'])

const LABELS: { readonly [hop in Hop['hop'] | 'browser' | 'node']: string } = copy.timing.hops

/**
 * In order along the path; the browser's part is the remainder. What happens in the node takes a small part of the time,
 * so it is drawn again by itself.
 */
export function barsOf(answer: Pick<CommandAnswer, 'hops' | 'totalMicros'>, browserMicros: number): Bars {
  const bars = answer.hops.map(({ hop, micros }) => ({ hop, label: LABELS[hop], micros }))
  const node = bars.filter(({ hop }) => OF_NODE.has(hop))
  const isReported = node.every((bar) => bar.micros !== null)
  return {
    way: [
      { hop: 'browser', label: LABELS.browser, micros: Math.max(0, browserMicros - answer.totalMicros) },
      ...bars.filter(({ hop }) => !OF_NODE.has(hop)),
      { hop: 'node', label: LABELS.node, micros: isReported ? sumOf(node) : null },
    ],
    node: isReported ? node : [],
  }
}

export function sumOf(bars: readonly Bar[]): number {
  return bars.reduce((sum, bar) => sum + (bar.micros ?? 0), 0)
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
