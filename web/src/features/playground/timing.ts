/** Where the time of a run went, and how it spreads over repeats. */
import type { CommandAnswer, Hop } from '@vacancy/shared/contract'
import { micros } from '../../lib/format.ts'
import { percentile } from './scale.ts'

type Bar = { readonly hop: string; readonly label: string; readonly micros: number | null }

const LABELS: { readonly [hop in Hop['hop']]: string } = {
  'control-plane': 'control plane',
  network: 'network and node, outside of the search',
  waiting: 'node: waiting for its turn',
  searching: 'node: searching and encoding',
}

/** In the order of the way; the browser's own part is what is left of the whole. */
export function barsOf(answer: Pick<CommandAnswer, 'hops' | 'totalMicros'>, browserMicros: number): Bar[] {
  return [
    { hop: 'browser', label: 'browser and its network', micros: Math.max(0, browserMicros - answer.totalMicros) },
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
  const times = `p50 ${micros(p50)} · p99 ${micros(p99)} · ${micros(least)} to ${micros(most)}`
  return `${runs.length} of ${wanted} runs${failed > 0 ? `, ${failed} failed` : ''}: ${times}`
}
