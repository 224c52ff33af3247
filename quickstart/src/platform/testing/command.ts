/** `vacancy quickstart` as a user types it, for tests, in a folder and on addresses of the test's own. */

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runVacancy } from '@vacancy/testkit/node'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { lookAtPort } from '../../launch.ts'
import type { ComponentStatus, PlatformStatus } from '../control.ts'
import { listenersOf, planOf, type Spec } from '../plan.ts'

const VACANCY = fileURLToPath(new URL('../../../../bin/vacancy.mjs', import.meta.url))
type Place = Pick<Spec, 'network' | 'portOffset'>
/** No two have a port in common. All ports are above those of well-known programs and below the ephemeral ones. */
const PLACES: readonly Place[] = [
  { network: 100, portOffset: 10_000 },
  { network: 110, portOffset: 12_000 },
  { network: 120, portOffset: 14_000 },
]
/** With the offset of a place: while a test listens on it, the place is its own. No plan has this port. */
const CLAIM_PORT = 7_700
const LARGEST: Omit<Spec, 'network' | 'portOffset'> = {
  level: 'full',
  shards: 2,
  zones: 2,
  nodesPerShard: 3,
  ha: true,
  etcdEndpoints: [],
  isOneAddress: false,
}
const WAIT_MS = 600_000

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
  const { network, portOffset, claim } = await claimPlace()
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
    remove() {
      claim.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits for a place that no other test has claimed and no other program uses. The claim ends with this process. */
async function claimPlace(): Promise<Place & { readonly claim: Server }> {
  const startedMs = performance.now()
  for (;;) {
    for (const place of PLACES) {
      const claim = await tryListen(CLAIM_PORT + place.portOffset)
      if (claim === undefined) continue
      if (await isFree(place)) return { ...place, claim }
      claim.close()
    }
    if (performance.now() - startedMs > WAIT_MS) throw new Error(`no place was free within ${WAIT_MS / 1000} s`)
    await setTimeout(1000)
  }
}

/** @returns nothing when the port is taken */
function tryListen(port: number): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer().unref()
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    )
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server))
  })
}

async function isFree(place: Place): Promise<boolean> {
  for (const isOneAddress of [true, false]) {
    for (const { host, port } of listenersOf(planOf({ ...LARGEST, ...place, isOneAddress }))) {
      if ((await lookAtPort(host, port)) === 'taken') return false
    }
  }
  return true
}
