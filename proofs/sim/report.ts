/**
 * The summary of a batch of simulated runs: the figures of docs/design/testing.md#published-figures, as JSON and as a
 * table. All numbers come from runs.
 */

import type { RunResult } from './cluster.ts'
import { FAULT_CLASSES, type FaultClass } from './knobs.ts'
import { ORACLES, type OracleName } from './oracles.ts'

export type Summary = ReturnType<typeof createSummary>

export function createSummary() {
  return {
    runs: 0,
    /** Runs by program. */
    programs: {} as { [name: string]: number },
    failed: [] as number[],
    events: 0,
    simulatedUs: 0,
    seconds: 0,
    operations: 0,
    checkSteps: 0,
    undecided: 0,
    determinismChecks: 0,
    faults: Object.fromEntries(FAULT_CLASSES.map((name) => [name, 0])) as Record<FaultClass, number>,
    checks: Object.fromEntries(Object.keys(ORACLES).map((name) => [name, 0])) as Record<OracleName, number>,
    counts: {} as { [name: string]: number },
  }
}

export function addRun(summary: Summary, result: RunResult, program: string): void {
  summary.runs++
  summary.programs[program] = (summary.programs[program] ?? 0) + 1
  summary.events += result.events
  summary.simulatedUs += result.simulatedUs
  summary.operations += result.operations
  summary.checkSteps += result.checkSteps
  if (result.failure) {
    summary.failed.push(result.seed)
    if (result.failure.message.includes('undecided')) summary.undecided++
  }
  const { faults, ...counts } = result.counts
  for (const [name, count] of Object.entries(faults)) summary.faults[name as FaultClass] += count
  summary.faults.drop += result.network.dropped
  summary.faults.duplicate += result.network.duplicated
  summary.faults.late += result.network.late
  summary.faults.damage += result.network.damaged
  for (const [name, count] of Object.entries(counts))
    summary.counts[name] = (summary.counts[name] ?? 0) + (count as number)
  for (const [name, count] of Object.entries(result.checks)) summary.checks[name as OracleName] += count
}

/** Adds up runs of several threads or profiles. */
export function addSummaries(summaries: readonly Summary[]): Summary {
  const all = createSummary()
  const addAll = (to: { [name: string]: number }, from: { readonly [name: string]: number }): void => {
    for (const [name, count] of Object.entries(from)) to[name] = (to[name] ?? 0) + count
  }
  for (const summary of summaries) {
    const { programs, failed, faults, checks, counts, ...sums } = summary
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) all[name] += sums[name]
    all.failed.push(...failed)
    addAll(all.programs, programs)
    addAll(all.faults, faults)
    addAll(all.checks, checks)
    addAll(all.counts, counts)
  }
  return all
}

/** A recorded run, as `--json` writes it. */
export type Figures = {
  readonly commit: string
  readonly command: string
  readonly from: number
  readonly seeds: number
  readonly profiles: { readonly [profile: string]: Summary }
}

/** Events that never happened; in a long run each is a gap in coverage. */
export function holesOf(summary: Summary, expected: readonly string[]): string[] {
  const all: { [name: string]: number } = { ...summary.counts, ...summary.checks, ...summary.faults }
  return expected.filter((name) => (all[name] ?? 0) === 0)
}

export function textOfSummary(summary: Summary): string {
  const rate = summary.seconds > 0 ? Math.round(summary.events / summary.seconds) : 0
  const list = (counts: { readonly [name: string]: number }) =>
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')
  return [
    `${summary.runs} seeds, ${summary.failed.length} failed, ${summary.determinismChecks} run twice with equal traces`,
    `programs: ${list(summary.programs)}`,
    `${summary.events} events in ${summary.seconds.toFixed(1)} s: ${rate} a second; ${(summary.simulatedUs / 3.6e9).toFixed(2)} hours of cluster time`,
    `${summary.operations} operations checked for linearizability, ${summary.undecided} undecided`,
    `counts: ${list(summary.counts)}`,
    `faults: ${list(summary.faults)}`,
    `checks: ${list(summary.checks)}`,
  ].join('\n')
}
