/**
 * bench/results/latest.json: the newest figures of each benchmark, the only source of those in README.md and docs/.
 * Each benchmark replaces its own part.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert, VacancyError } from '@vacancy/shared'
import type { Report, Section } from './format.ts'
import { ROOT } from './programs.ts'
import type { Measure } from './verdict.ts'
import type { WhyNot } from './why-not/results.ts'

export const RESULTS_FILE = 'bench/results/latest.json'

/** A run whose outcome is kept as sentences: no benchmark writes it, the person who ran it does. */
export type RecordedRun = {
  readonly title: string
  readonly command: string
  readonly date: string
  /** Absent where it was not noted. */
  readonly commit?: string
  readonly lines: readonly string[]
}

export type Results = {
  readonly report: Report
  readonly failover: Section
  readonly queue: Section
  readonly fabric: Section
  readonly stays: Section
  /** Absent until it is first recorded. */
  readonly writes?: Section
  readonly decode?: Section
  readonly lists?: Section
  readonly idle?: Section
  readonly whyNot: WhyNot
}

export function readResults(): Results {
  // JSON has no NaN: a part that failed is recorded as null.
  const reviver = (key: string, value: unknown) => (key === 'value' && value === null ? Number.NaN : value)
  return JSON.parse(readFileSync(join(ROOT, RESULTS_FILE), 'utf8'), reviver) as Results
}

/** Pages quote every row: a run of some rows cannot take the place of a whole one. */
export function refusePartialWrite({ write, only }: { write: boolean; only: readonly string[] | undefined }): void {
  if (write && only !== undefined)
    throw new VacancyError('usage_error', { reason: '--write needs every row: leave out --only' })
}

/** Puts new figures in the place of those of the last run. */
export function writeResults(part: Partial<Results>): void {
  writeFileSync(join(ROOT, RESULTS_FILE), `${JSON.stringify({ ...readResults(), ...part }, null, 2)}\n`)
}

/**
 * A figure by its row and name; one without a value where the row, or a part of it, could not be measured. A page that
 * quotes a figure that no run has is a mistake of the page.
 */
export function measureOf({ rows }: Pick<Report, 'rows'>, id: number, name: string): Measure {
  const row = rows.find((each) => each.id === id)
  const measure = row?.measures.find((each) => each.name === name)
  if (measure) return measure
  const hasFailed = row?.measures.every(({ value }) => Number.isFinite(value)) === false || row?.measures.length === 0
  assert(row !== undefined && hasFailed, `${RESULTS_FILE} must have "${name}" in row ${id}`)
  return { name, value: Number.NaN, unit: '', verdict: row.verdict }
}
