import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const MAIN = join(import.meta.dirname, '../cli.ts')
/** In all of them together every class of faults occurs. */
const SEEDS = 200
/** Runs that found a fault of the product, or of the model, once. */
const ONCE = [3837, 4123, 4575]

function run(...args: string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [MAIN, 'fabric-model', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}

describe('the model of forwarding', () => {
  it('finds nothing', { timeout: 300_000 }, async () => {
    const { code, output } = await run('--seeds', String(SEEDS))

    expect(output).toContain(' 0 failures')
    expect(output).not.toContain('never met')
    expect(code).toBe(0)
  })

  it.each(ONCE)('finds nothing in a run that once failed: seed %i', { timeout: 300_000 }, async (seed) => {
    expect((await run('--seed', String(seed))).output).toContain(' 0 failures')
  })
})
