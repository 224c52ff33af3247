/** The control plane with a simulated cluster, as `npm run console:sim` starts it. */

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SIMULATED = join(import.meta.dirname, '../../server/src/testing/console-sim.ts')
const START_MS_MAX = 120_000

export type Simulation = {
  /** Of the console, without a path. */
  readonly url: string
  /** Signs in once, as an admin. */
  readonly link: string
  /** Injects a fault (docs/design/control-plane.md#simulated-cluster). */
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
  // Linux divides CPU time between sessions first, so priorities only matter within the same session.
  const child: ChildProcess = spawn(process.execPath, [SIMULATED, ...args, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: isBehind,
  })
  if (isBehind) process.once('exit', () => child.kill())
  if (isBehind && existsSync(`/proc/${child.pid}/autogroup`)) writeFileSync(`/proc/${child.pid}/autogroup`, '5')
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let printed = ''
  const line = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the simulated cluster did not start:\n${printed}`)),
        START_MS_MAX,
      )
      child.once('exit', (code) => reject(new Error(`the simulated cluster ended with exit code ${code}:\n${printed}`)))
      child.stdout?.on('data', () => {
        const [, found] = pattern.exec(printed) ?? []
        if (found === undefined) return
        clearTimeout(timer)
        resolve(found)
      })
    })
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const [registry, link] = await Promise.all([line(/^simulated: (\S+)/m), line(/^sign-in: (.*)\n/m)])
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
      child.kill('SIGTERM')
      await ended
    },
  }
}
