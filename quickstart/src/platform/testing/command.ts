/** `vacancy quickstart` as a user types it, for tests, in a folder and on addresses of the test's own. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runVacancy } from '@vacancy/testkit/node'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { lookAtPort } from '../../launch.ts'
import type { ComponentStatus, PlatformStatus } from '../control.ts'
import { listenersOf, planOf, type Spec } from '../plan.ts'

const VACANCY = fileURLToPath(new URL('../../../../bin/vacancy.mjs', import.meta.url))
/** Above the ports of well-known programs; with every port of a plan below the ephemeral ones. */
const OFFSETS = { first: 10_000, step: 100, count: 120 } as const
const NETWORKS = { first: 100, step: 3, count: 45 } as const
const LARGEST: Omit<Spec, 'network' | 'portOffset'> = {
  level: 'full',
  shards: 2,
  zones: 2,
  nodesPerShard: 3,
  ha: true,
  isOneAddress: false,
}
const TRIES_MAX = 100

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

export async function quickstartTest(): Promise<QuickstartTest> {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-platform-'))
  const dir = join(folder, 'platform')
  const { network, portOffset } = await freePlace()
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

/** A network and a port offset that no other program uses now. */
async function freePlace(): Promise<{ readonly network: number; readonly portOffset: number }> {
  const draw = ({ first, step, count }: typeof OFFSETS | typeof NETWORKS) =>
    first + step * Math.floor(Math.random() * count)
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const place = { network: draw(NETWORKS), portOffset: draw(OFFSETS) }
    if (await isFree(place)) return place
  }
  throw new Error(`in none of ${TRIES_MAX} places all ports were free`)
}

async function isFree(place: Pick<Spec, 'network' | 'portOffset'>): Promise<boolean> {
  for (const isOneAddress of [true, false]) {
    for (const { host, port } of listenersOf(planOf({ ...LARGEST, ...place, isOneAddress }))) {
      if ((await lookAtPort(host, port)) === 'taken') return false
    }
  }
  return true
}
