/** `vacancy quickstart` as a user types it, for tests, in a folder and on addresses of the test's own. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runVacancy } from '@vacancy/testkit/node'
import { type Program, startProgram } from '@vacancy/testkit/program'
import type { ComponentStatus, PlatformStatus } from '../control.ts'

const VACANCY = fileURLToPath(new URL('../../../../bin/vacancy.mjs', import.meta.url))
/** Networks and ports of tests that run at the same time differ with their process ids. */
const NETWORKS = 45
const OFFSET = { first: 10_000, step: 500, count: 60 } as const

export const UP = /Up after ([\d.]+) s/

export type QuickstartTest = {
  readonly dir: string
  readonly portOffset: number
  readonly up: (...args: string[]) => Program
  /** Any other subcommand. */
  readonly run: (...args: string[]) => Promise<{ readonly code: number | null; readonly output: string }>
  readonly status: () => Promise<readonly ComponentStatus[]>
  readonly remove: () => void
}

export function quickstartTest(): QuickstartTest {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-platform-'))
  const dir = join(folder, 'platform')
  // Each platform uses three networks.
  const network = 100 + 3 * (process.pid % NETWORKS)
  const portOffset = OFFSET.first + OFFSET.step * (process.pid % OFFSET.count)
  const place = ['--network', String(network), '--port-offset', String(portOffset)]
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runVacancy(['quickstart', ...args, '--dir', dir])
    return { code, output: stdout + stderr }
  }
  return {
    dir,
    portOffset,
    run,
    up: (...args) => startProgram([VACANCY, 'quickstart', 'up', '--dir', dir, ...place, ...args], { isBound: true }),
    async status() {
      const { output } = await run('status', '--json')
      return (JSON.parse(output) as PlatformStatus).components
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
