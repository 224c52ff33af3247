/** The control plane with a simulated cluster, as `npm run console -- sim` starts it, and a browser that is signed in to it. */

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from '@vacancy/testkit/program'
import { type State, signedIn, telling } from './console.ts'

const SIMULATED = join(import.meta.dirname, '../../server/src/testing/console-sim.ts')

export type Simulation = {
  /** Of the console, without a path. */
  readonly url: string
  /** Signs in once, as an admin. */
  readonly link: string
  /** Injects a fault (docs/design/console.md#simulated-cluster). */
  act(verb: string, about: { shard?: string; node?: string; [more: string]: unknown }): Promise<void>
  stop(): Promise<void>
}

export type SimulationOptions = {
  /** Lowers the priority: these programs run on other machines in production and must not slow down the measurement. */
  readonly isBehind?: boolean
}

export async function startSimulation(
  args: readonly string[],
  { isBehind = false }: SimulationOptions = {},
): Promise<Simulation> {
  const flags = ['--', '--listen-port', '0', '--sign-in', 'admin', '--log-level', 'error']
  // Linux shares processor time between sessions first: within its own the priority of a process would say nothing.
  const program = startProgram([SIMULATED, ...args, ...flags], { detached: isBehind })
  if (isBehind) process.once('exit', () => program.signal('SIGTERM'))
  if (isBehind && existsSync(`/proc/${program.pid}/autogroup`)) writeFileSync(`/proc/${program.pid}/autogroup`, '5')
  const [[, registry = ''], [, link = '']] = await Promise.all([
    program.printed(/^simulated: (\S+)/m),
    program.printed(/^sign-in: (.*)\n/m),
  ])
  return {
    url: new URL(link).origin,
    link,
    async act(verb, about) {
      const body = JSON.stringify(about)
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${registry}/sim/${verb}`, { method: 'POST', headers, body })
      if (!answer.ok) throw new Error(`/sim/${verb} answered ${answer.status}: ${await answer.text()}`)
    },
    async stop() {
      await program.stop()
    },
  }
}

/** Tests of a simulated cluster, which lives as long as the worker. */
export function simulated(args: readonly string[]) {
  return telling.extend<object, { simulation: Simulation; admin: State }>({
    simulation: [
      async ({ browserName: _ }, use) => {
        const simulation = await startSimulation(args)
        await use(simulation)
        await simulation.stop()
      },
      { scope: 'worker', timeout: 150_000 },
    ],
    admin: [
      async ({ browser, simulation }, use) => {
        await use(await signedIn(browser, simulation.link))
      },
      { scope: 'worker', timeout: 60_000 },
    ],
    baseURL: async ({ simulation }, use) => use(simulation.url),
    storageState: async ({ admin }, use) => use(admin),
  })
}
