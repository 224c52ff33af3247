/** The whole product as `npm start` brings it up, for tests in a browser: real nodes, registry, control plane, console. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from '@vacancy/testkit/program'

const START = join(import.meta.dirname, '../../quickstart/src/shard.ts')

export type StackNode = { readonly id: string; readonly tcp: string; readonly api: string }

export type Stack = {
  /** Of the console, without a path. */
  readonly url: string
  /** Signs in once, as an admin. */
  readonly link: string
  readonly shard: string
  readonly nodes: readonly StackNode[]
  readonly folder: string
  readonly adminToken: string
  /** The process id of a program by name: n1 … n4, registry, resolver, control-plane, or STARTER. */
  processOf(name: string): number
  /** Sends `SIGKILL` (the program is restarted after 5 s), `SIGSTOP` or `SIGCONT`. */
  signal(name: string, signal: NodeJS.Signals): void
  /** The output so far. */
  printed(): string
  stop(): Promise<void>
}

/** The process that started the others. */
export const STARTER = 'starter'

/** Each run has loopback addresses of its own. */
const BLOCK = String(30 + (process.pid % 160))

/** @param env additional environment variables of its programs */
export async function startStack(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Stack> {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-'))
  const dir = join(folder, 'data')
  const small = ['--packages', '20000', '--days', '40', '--block', BLOCK, '--console-port', '0', '--no-sample']
  const program = startProgram([START, '--dir', dir, ...small, ...args], { env })
  const [, link = ''] = await program.printed(/^Open +(\S+)$/m)
  const rows = program.output().matchAll(/^ +(n\d) +(?:leader|voter|learner) +(\S+:\d+) +http:\/\/(\S+) +\S/gm)
  const processOf = (name: string): number => {
    const { pid, processes } = JSON.parse(readFileSync(join(dir, 'running.json'), 'utf8'))
    return name === STARTER ? pid : processes[name]
  }
  return {
    url: new URL(link).origin,
    link,
    shard: 'quickstart',
    nodes: [...rows].map(([, id = '', tcp = '', api = '']) => ({ id, tcp, api: `http://${api}` })),
    folder: dir,
    adminToken: readFileSync(join(dir, 'admin.token'), 'utf8').trim(),
    processOf,
    signal: (name, signal) => void process.kill(processOf(name), signal),
    printed: program.output,
    async stop() {
      await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
