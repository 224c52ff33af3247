import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const run = (...args: string[]) =>
  spawnSync(process.execPath, [join(import.meta.dirname, 'cli.ts'), ...args], { encoding: 'utf8' })

test('names are listed, and an unknown one is refused with the nearest', () => {
  expect(run('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('  sim ') })
  expect(run('chaso')).toMatchObject({ status: 64, stderr: expect.stringContaining('did you mean chaos?') })
})

test('a run that finds a planted defect fails', () => {
  const { status, stdout } = run(
    '--defect',
    'a finished job keeps its row',
    'queue-model',
    '--steps',
    '20000',
    '--seed',
    '1',
  )

  expect(status).toBe(1)
  expect(stdout).toMatch(/^seed 1: step \d+: /)
})
