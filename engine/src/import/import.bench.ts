/**
 * How fast do packages become words? (performance.md §6, targets 10 and 11)
 *
 * Data: the folder that is given, as `npm run sample` writes it: grouped or shuffled, which decides what is measured.
 * Measured is the phase that reads packages.csv, with one thread and with two in turns; the best of a few rounds, because
 * in the first the file may still come from the disk. Baseline: counting newlines, which the report does beside it.
 *
 *   node engine/src/import/import.bench.ts --input DIR [--full] [--json]
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addOneYear, assert, dayOf } from '@vacancy/shared'
import { loadCodecs } from '../config.ts'
import { createEnv } from '../env.ts'
import { buildSnapshot } from './import.ts'

const THREADS = { 'one thread': 1, 'two threads': 2 } as const

const { values } = parseArgs({
  options: {
    input: { type: 'string' },
    full: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const { input } = values
assert(input !== undefined, '--input names a folder with properties.csv, packages.csv and codecs.yml')
const rounds = values.full ? 5 : 3
const quiet = () => undefined
const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
const best: Record<string, number> = {}

const outputPath = mkdtempSync(join(tmpdir(), 'vacancy-import-bench-'))
try {
  for (let round = 1; round <= rounds; round++) {
    for (const [name, threads] of Object.entries(THREADS)) await measure(input, name, threads, round)
  }
} finally {
  rmSync(outputPath, { recursive: true })
}
if (values.json) process.stdout.write(`${JSON.stringify(best)}\n`)

async function measure(inputPath: string, name: string, threads: number, round: number): Promise<void> {
  const today = dayOf(Date.now())
  const outcome = await buildSnapshot(env, {
    shardId: 'bench',
    inputPath,
    outputPath,
    codecs: loadCodecs(join(inputPath, 'codecs.yml')),
    firstDay: today,
    lastDay: addOneYear(today),
    outOfWindow: 'skip',
    errorsMax: 1,
    overwrite: true,
    threads,
  })
  assert(outcome.ok, 'the files are right')
  const { packages, outOfWindow, phases, kernel } = outcome.summary
  assert(phases.packages !== undefined, 'packages were read')
  const records = packages + outOfWindow
  const perSecond = records / phases.packages
  const key = `records/s, ${name}`
  best[key] = Math.max(best[key] ?? 0, perSecond)
  if (values.json) return
  const rate = `${(perSecond / 1e6).toFixed(1)} M records/s`
  process.stdout.write(`round ${round}, ${name}: ${records.toLocaleString('en')} records, ${rate}, kernel ${kernel}\n`)
}
