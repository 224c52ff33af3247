/**
 * Shrinks a failing run while the same oracle still fails: first without whole fault classes, then without single
 * faults, then with a shorter length (docs/design/testing.md#a-failing-seed).
 */

import { type RunOptions, type RunResult, runSeed, withoutClasses } from './cluster.ts'

export type Shrunk = { readonly options: RunOptions; readonly result: RunResult; readonly runs: number }

/** @param runsMax maximum number of runs */
export function shrink(options: RunOptions, failed: RunResult, runsMax = 120): Shrunk {
  const oracle = failed.failure?.oracle
  let best: RunOptions = { ...options, knobs: failed.knobs, schedule: failed.schedule }
  let result = failed
  let runs = 0
  const attempt = (part: Pick<RunOptions, 'knobs' | 'schedule'>): boolean => {
    if (runs >= runsMax) return false
    runs++
    const candidate = { ...best, ...part }
    const outcome = runSeed(candidate)
    if (outcome.failure?.oracle !== oracle) return false
    best = candidate
    result = outcome
    return true
  }
  // The run ends at the failure, so later faults are dropped.
  const atUs = failed.failure?.atUs ?? 0
  attempt({ knobs: best.knobs ?? {}, schedule: (best.schedule ?? []).filter((fault) => fault.atUs <= atUs) })
  for (const name of [...result.knobs.classes]) attempt(withoutClasses(result, [name]))
  for (let size = Math.ceil((best.schedule?.length ?? 0) / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < (best.schedule?.length ?? 0); ) {
      const without = (best.schedule ?? []).toSpliced(at, size)
      if (!attempt({ knobs: best.knobs ?? {}, schedule: without })) at += size
    }
    if (runs >= runsMax) break
  }
  for (const clients of [1, 2]) {
    if (
      clients < result.knobs.clients &&
      attempt({ knobs: { ...result.knobs, clients }, schedule: best.schedule ?? [] })
    )
      break
  }
  return { options: best, result, runs }
}
