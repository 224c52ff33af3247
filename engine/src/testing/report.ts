/**
 * What a batch of simulated runs adds up to: the figures of reliability.md §14, as JSON and as a table. Numbers come from
 * runs, never by hand.
 */

import type { RunResult } from './cluster.ts'
import { FAULT_CLASSES, type FaultClass } from './knobs.ts'
import { ORACLES, type OracleName } from './oracles.ts'

export type Summary = {
  runs: number
  failed: number[]
  events: number
  simulatedUs: number
  seconds: number
  operations: number
  checkSteps: number
  undecided: number
  determinismChecks: number
  readonly faults: Record<FaultClass, number>
  readonly checks: Record<OracleName, number>
  readonly counts: { [name: string]: number }
}

export function createSummary(): Summary {
  return {
    runs: 0,
    failed: [],
    events: 0,
    simulatedUs: 0,
    seconds: 0,
    operations: 0,
    checkSteps: 0,
    undecided: 0,
    determinismChecks: 0,
    faults: Object.fromEntries(FAULT_CLASSES.map((name) => [name, 0])) as Summary['faults'],
    checks: Object.fromEntries(Object.keys(ORACLES).map((name) => [name, 0])) as Summary['checks'],
    counts: {},
  }
}

export function addRun(summary: Summary, result: RunResult): void {
  summary.runs++
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

/** Parts of a run that never happened: in a long run each is a hole in what was tested. */
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
    `${summary.events} events in ${summary.seconds.toFixed(1)} s: ${rate} a second; ${(summary.simulatedUs / 3.6e9).toFixed(2)} hours of cluster time`,
    `${summary.operations} operations checked for linearizability, ${summary.undecided} undecided`,
    `counts: ${list(summary.counts)}`,
    `faults: ${list(summary.faults)}`,
    `checks: ${list(summary.checks)}`,
  ].join('\n')
}

export type DefectFinding = {
  readonly name: string
  readonly seeds: number | undefined
  readonly oracle: string
  readonly layer: string
}

/** The rows of docs/reliability.md. */
export function markdownOf(summary: Summary, findings: readonly DefectFinding[]): string {
  const years = summary.simulatedUs / 1e6 / 86_400 / 365.25
  const faults = Object.values(summary.faults).reduce((sum, count) => sum + count, 0)
  const found = findings.filter(({ seeds }) => seeds !== undefined).map(({ seeds }) => seeds as number)
  const median = found.toSorted((a, b) => a - b)[Math.floor(found.length / 2)]
  const rows = [
    ['simulated seeds / events', `${summary.runs} / ${summary.events}`],
    ['simulated cluster time', `${years < 0.1 ? `${(years * 365.25).toFixed(2)} days` : `${years.toFixed(2)} years`}`],
    ['faults injected', `${faults}, in ${Object.values(summary.faults).filter((count) => count > 0).length} classes`],
    ['operations checked for linearizability', `${summary.operations}`],
    ['undecided linearizability checks', `${summary.undecided}`],
    ['failed seeds', `${summary.failed.length}`],
    [
      'planted defects found',
      `${found.length} of ${findings.length}${median === undefined ? '' : `, median ${median} seeds`}`,
    ],
  ]
  return ['| Figure | Run |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n')
}
