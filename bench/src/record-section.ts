/** Commands that measure one section of the benchmarks: their flags, when and where they ran, and where figures go. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Bench, type BenchSize, closeBench, createBench } from './bench.ts'
import { formatTable, type RowReport, type Section } from './format.ts'
import { cpuPressure, describeMachine } from './machine.ts'
import { writeBenchmark } from './pages.ts'
import { ROOT } from './programs.ts'

export const RECORD_FLAGS = {
  write: { type: 'boolean', summary: 'Records the figures and renews the pages that quote them.' },
  json: { type: 'text', value: 'FILE', summary: 'Writes the figures as JSON.' },
} as const

export const dirFlag = (name: string) =>
  ({ type: 'text', default: join(ROOT, '.vacancy', name), value: 'DIR', summary: 'Folder for the data.' }) as const

type RecordFlags = { readonly json: string | undefined; readonly write: boolean }

/** What a section is, apart from its figures. */
export type SectionHead = Pick<Section, 'name' | 'title' | 'command' | 'scope' | 'how'>

/**
 * Measures the rows of a section.
 *
 * @param measure returns rows, notes, and each run for the JSON file
 */
export async function measureSection<Runs extends object>(
  { how, ...head }: SectionHead,
  measure: () => Promise<Runs & { readonly rows: readonly RowReport[]; readonly notes?: readonly string[] }>,
): Promise<{ section: Section; runs: object }> {
  const machine = describeMachine()
  const startedAt = new Date().toISOString()
  const begun = performance.now()
  const pressure = cpuPressure()
  const { rows, notes = [], ...runs } = await measure()
  const seconds = (performance.now() - begun) / 1000
  const section = { ...head, startedAt, seconds, machine, rows: [...rows], notes: [...notes, ...pressure()], how }
  return { section, runs }
}

/** Prints a section, and stores it as the flags say. */
export function storeSection(section: Section, { json, write }: RecordFlags, runs: object = {}): void {
  process.stdout.write(formatTable(section))
  if (json) writeFileSync(json, `${JSON.stringify({ ...section, ...runs }, null, 2)}\n`)
  if (write) writeBenchmark({ [section.name]: section })
}

/** Measures a section with a bench of its own, and stores it. */
export async function recordSection<Runs extends object>(
  flags: RecordFlags & { readonly dir: string },
  size: BenchSize,
  head: SectionHead,
  measure: (bench: Bench) => Promise<Runs & { readonly rows: readonly RowReport[] }>,
): Promise<Section> {
  const bench = createBench({ size, dir: flags.dir, say: (text) => process.stderr.write(`${text}\n`) })
  try {
    const { section, runs } = await measureSection(head, async () => ({
      ...(await measure(bench)),
      notes: bench.notes,
    }))
    storeSection(section, flags, runs)
    return section
  } finally {
    await closeBench(bench, { keep: false })
  }
}
