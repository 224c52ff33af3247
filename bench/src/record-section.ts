/** Commands that measure one section of the benchmarks on nodes of their own. */
import { writeFileSync } from 'node:fs'
import { type Bench, type BenchSize, closeBench, createBench } from './bench.ts'
import { formatTable, type Section } from './format.ts'
import { writeBenchmark } from './pages.ts'

type RecordFlags = { readonly dir: string; readonly json: string | undefined; readonly write: boolean }

/**
 * Measures a section, prints it, and stores it as the flags say.
 *
 * @param measure the section, and each run for the JSON file
 */
export async function recordSection(
  { dir, json, write }: RecordFlags,
  size: BenchSize,
  measure: (bench: Bench) => Promise<{ readonly section: Section; readonly [runs: string]: unknown }>,
): Promise<Section> {
  const bench = createBench({ size, dir, say: (text) => process.stderr.write(`${text}\n`) })
  try {
    const { section, ...runs } = await measure(bench)
    process.stdout.write(formatTable(section))
    if (json) writeFileSync(json, `${JSON.stringify({ ...section, ...runs }, null, 2)}\n`)
    if (write) writeBenchmark({ [section.name]: section })
    return section
  } finally {
    await closeBench(bench, { keep: false })
  }
}
