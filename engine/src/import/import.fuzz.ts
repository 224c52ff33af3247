/**
 * Fuzzer of the import: random files, valid and corrupted, for a given time.
 *
 * Each round reads a file with the kernel, with its reference and with a naive parser; every few rounds the file goes
 * through whole imports with different threads and ranges, which must end in the same bytes or in the same errors.
 *
 *   node engine/src/import/import.fuzz.ts [--seconds 60] [--seed N]
 */

import { deepStrictEqual } from 'node:assert'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createCodecList } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { createEnv } from '../env.ts'
import { CODECS, DAYS, FIRST_DAY, type FileOptions, propertiesFile, randomPackages } from '../testing/csv-files.ts'
import { compareReadings } from '../testing/import-machine.ts'
import { LINE_BYTES_MAX } from './csv.ts'
import { buildSnapshot } from './import.ts'
import { printedFinding } from './row-errors.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } } })
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
/** Starting the threads of an import takes as long as many rounds without. */
const ROUNDS_AN_IMPORT = 20

const quiet = () => undefined
const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
const folder = mkdtempSync(join(tmpdir(), 'vacancy-import-fuzz-'))
const end = performance.now() + Number(values.seconds) * 1000
let round = 0
try {
  for (; performance.now() < end; round++) {
    const random = createRandom(seed + round)
    const options: FileOptions = {
      lines: 1 + random.below(800),
      spoilOneIn: random.below(3) === 0 ? 0 : 1 + random.below(100),
      varyOneIn: random.below(3) === 0 ? 0 : 1 + random.below(20),
      order: random.below(2) === 0 ? 'grouped' : 'shuffled',
    }
    compareReadings(join(folder, 'packages.csv'), random, options)
    if (round % ROUNDS_AN_IMPORT === 0) await compareImports(random, options)
  }
  process.stdout.write(`${round} files, no difference; --seed ${seed}\n`)
} catch (error) {
  process.stdout.write(`--seed ${seed}, round ${round}; alone with --seed ${seed + round}\n`)
  throw error
} finally {
  rmSync(folder, { recursive: true })
}

async function compareImports(random: Random, options: FileOptions): Promise<void> {
  writeFileSync(join(folder, 'properties.csv'), propertiesFile().join(''))
  writeFileSync(join(folder, 'packages.csv'), randomPackages(random, { ...options, lines: options.lines * 5 }))
  const alone = await outcomeOf({ threads: 1 })
  const rangeBytes = 100 + random.below(20_000)
  const blockBytes = 2 * LINE_BYTES_MAX + random.below(10_000)
  deepStrictEqual(await outcomeOf({ threads: 2 + random.below(3), rangeBytes, blockBytes }), alone)
}

async function outcomeOf(options: Partial<Parameters<typeof buildSnapshot>[1]>): Promise<unknown> {
  const outcome = await buildSnapshot(env, {
    shardId: 'fuzz',
    inputPath: folder,
    outputPath: folder,
    codecs: createCodecList(CODECS),
    firstDay: FIRST_DAY,
    lastDay: FIRST_DAY + DAYS - 1,
    outOfWindow: 'skip',
    errorsMax: 10_000,
    overwrite: true,
    threads: 1,
    ...options,
  })
  if (!outcome.ok) return outcome.errors.first.map(printedFinding)
  return { id: outcome.summary.snapshotId, bytes: readFileSync(outcome.summary.path).toString('base64') }
}
