import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LOSING_DEFECTS } from './testing/defects.ts'
import { loseSyncs } from './testing/losing.ts'
import { SYNCS } from './testing/losing-journal.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const RUN = join(import.meta.dirname, 'testing/losing.ts')
const FAULTS = 2_000

/** @returns what a process of its own found */
async function foundBy(flags: readonly string[]): Promise<readonly string[]> {
  const args = [RUN, '--faults', String(FAULTS), '--seed', String(SEED), ...flags]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  expect(code, 'a run that found something fails').toBe(1)
  return JSON.parse(output).found
}

describe('the queue on a disk that loses what was not synced', () => {
  it('loses no accepted job, and brings back no finished one', { timeout: 240_000 }, async () => {
    const { found, faults, duplicates } = await loseSyncs({ faults: 500, seed: SEED })
    expect({ seed: SEED, found }).toEqual({ seed: SEED, found: [] })
    expect(Object.entries(faults).filter(([, count]) => count === 0)).toEqual([])
    expect(duplicates, 'requests of unknown outcome were repeated').toBeGreaterThan(0)
  })

  it.each(SYNCS)('does when a sync is left out: %s', { timeout: 240_000 }, async (sync) => {
    expect(await foundBy(['--without', sync])).not.toEqual([])
  })

  it.each(LOSING_DEFECTS.map(({ name }) => name))('does when %s', { timeout: 240_000 }, async (name) => {
    expect(await foundBy(['--defect', name])).not.toEqual([])
  })
})
