/**
 * How fast do packages become words? (docs/design/storage.md#import, targets 10 and 11)
 *
 * Data: the files of a folder, as `npm run bench -- sample` writes them. Measured is the phase that reads packages.csv, with
 * one thread and with two in turns, each import in a process of its own, whose memory is fresh. Best of a few rounds, because
 * in the first the file may still come from the disk.
 *
 *   node engine/src/import/import.bench.ts --input DIR [--full]
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addOneYear, assert, dayOf } from '@vacancy/shared'
import { loadCodecFile } from '@vacancy/shared/node'
import { createEnv } from '../env.ts'
import { buildSnapshot, type ImportSummary } from './import.ts'

const { values } = parseArgs({
  options: {
    input: { type: 'string', default: '' },
    full: { type: 'boolean', default: false },
    // `compare` also runs commits that print a table without it.
    json: { type: 'boolean' },
    /** One measurement, in a process of its own. */
    threads: { type: 'string' },
  },
})

if (values.threads !== undefined) process.send?.(await importOnce(values.input, Number(values.threads)))
else process.stdout.write(`${JSON.stringify(await measure(values.input))}\n`)

/** Records a second. */
async function measure(input: string): Promise<Record<string, number>> {
  const best: Record<string, number> = {}
  for (let round = 0; round < (values.full ? 5 : 3); round++) {
    for (const [name, threads] of [
      ['records/s, one thread', 1],
      ['records/s, two threads', 2],
    ] as const) {
      const { packages, outOfWindow, phases } = await importInProcess(input, threads)
      assert(phases.packages !== undefined && phases.packages > 0, 'packages were read')
      best[name] = Math.max(best[name] ?? 0, (packages + outOfWindow) / phases.packages)
    }
  }
  return best
}

async function importInProcess(input: string, threads: number): Promise<ImportSummary> {
  const child = fork(new URL(import.meta.url), ['--input', input, '--threads', String(threads)])
  const [summary] = (await once(child, 'message')) as [ImportSummary]
  if (child.exitCode === null) await once(child, 'exit')
  return summary
}

async function importOnce(inputPath: string, threads: number): Promise<ImportSummary> {
  const quiet = () => undefined
  const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
  const outputPath = mkdtempSync(join(tmpdir(), 'vacancy-import-bench-'))
  const today = dayOf(env.clock.wallMs())
  try {
    const outcome = await buildSnapshot(env, {
      shardId: 'bench',
      inputPath,
      outputPath,
      codecs: loadCodecFile(join(inputPath, 'codecs.yml'), 'codecs'),
      firstDay: today,
      lastDay: addOneYear(today),
      outOfWindow: 'skip',
      errorsMax: 1,
      overwrite: false,
      threads,
    })
    assert(outcome.ok, 'the files are right')
    return outcome.summary
  } finally {
    rmSync(outputPath, { recursive: true })
  }
}
