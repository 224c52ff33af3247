/** p99 of searches beside another load. */
import { type Bench, requestsOf } from './bench.ts'
import { failure } from './failure.ts'
import { percentile } from './histogram.ts'
import { runLoad, type Stream } from './load.ts'
import type { RunningNode } from './running-node.ts'

export const SEARCHES_PER_SECOND = 2_000
export const SEARCH_CONNECTIONS = 100
const WARMUP_MS = 1_000
const TRIES = 3

type Result = Awaited<ReturnType<typeof runLoad>>['streams'][number]

/** @throws VacancyError where a request failed or was not answered */
export function taken(result: Result | undefined, broken: string): Result {
  if (broken || !result) throw failure(broken || 'the load has no stream')
  const [error] = Object.entries(result.errors)
  if (error) throw failure(`${error[1]} of ${result.sent} ${result.name} were answered with ${error[0]}`)
  if (result.answered < result.sent) throw failure(`not all ${result.name} were answered`)
  return result
}

/** Repeats a run in which a busy machine failed a request, and reports that. */
export async function retried<T>(bench: Bench, run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (attempt === TRIES) throw error
      bench.notes.push(`A run was repeated: ${(error as Error).message}.`)
    }
  }
}

/**
 * p99 of 2,000 searches a second with 300 hits each, in milliseconds.
 *
 * @param besideOf makes what is sent beside them, for each try
 */
export async function searchP99(
  bench: Bench,
  { host, port }: RunningNode,
  seconds: number,
  besideOf?: () => Stream,
): Promise<number> {
  const { frames } = await requestsOf(bench, 'broad')
  const pacing = { kind: 'regular', requestsPerSecond: SEARCHES_PER_SECOND } as const
  const searches: Stream = { name: 'searches', pacing, connections: SEARCH_CONNECTIONS, frames }
  const times = { warmupMs: WARMUP_MS, runMs: seconds * 1000 }
  return retried(bench, async () => {
    const streams = besideOf ? [searches, besideOf()] : [searches]
    const result = await runLoad({ host, port, processes: 1, ...times, streams })
    const [measured, others] = result.streams
    if (others) taken(others, result.broken)
    return percentile(taken(measured, result.broken).latency, 0.99)
  })
}
