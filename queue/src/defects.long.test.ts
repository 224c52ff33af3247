import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DEFECTS } from './testing/defects.ts'

const RUN = join(import.meta.dirname, 'testing/defect-run.ts')
const STEPS = 20_000

/** @returns what the model found */
function findDefect(name: string): Promise<string> {
  const child = spawn(process.execPath, [RUN, name, '1', String(STEPS)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => resolve(output))
  })
}

describe('the model of the queue', () => {
  it.each(DEFECTS.map(({ name }) => name))('finds a planted defect: %s', { timeout: 240_000 }, async (name) => {
    expect(await findDefect(name)).toMatch(/^seed \d+, step \d+: /)
  })

  it('finds nothing without one', { timeout: 240_000 }, async () => {
    expect(await findDefect('')).toBe('')
  })
})
