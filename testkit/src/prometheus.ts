/**
 * Prometheus and promtool for tests: found on this machine, or unpacked from the Debian package into a cache folder.
 * Without them the tests fail with instructions.
 */

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { findOrUnpack } from './installed.ts'
import { type Program, startProgram } from './program.ts'
import { happens } from './until.ts'

type Ended = { readonly code: number | null; readonly output: string }
type Labels = { readonly [label: string]: string }

function programs(): readonly string[] {
  const found = findOrUnpack(['prometheus', 'promtool'], 'prometheus')
  if (found !== undefined) return found
  throw new Error(
    'These tests need Prometheus: install it (Debian: apt-get install prometheus; macOS: brew install prometheus) so that prometheus and promtool are on the PATH.',
  )
}

/** Runs promtool to its end. */
export function promtool(args: readonly string[], cwd: string): Ended {
  const [, program] = programs()
  const { status, stdout, stderr } = spawnSync(program as string, args, { cwd, encoding: 'utf8' })
  return { code: status, output: `${stdout}${stderr}` }
}

type Prometheus = Pick<Program, 'output' | 'stop'> & {
  /** Data of its API below /api/v1. @throws with its error */
  readonly get: (path: string, parameters?: Labels) => Promise<unknown>
  /** The labels of each series that an expression has now. @throws with its error */
  readonly query: (expr: string) => Promise<readonly Labels[]>
}

/** Starts it with a configuration; resolves when it is ready. */
export async function startPrometheus(folder: string, config: object): Promise<Prometheus> {
  const [program = ''] = programs()
  const port = await freePort()
  // JSON is YAML, too.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const listening = `127.0.0.1:${port}`
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${listening}`]
  const running = startProgram(args, { program, cwd: folder, isBound: true })
  await happens('Prometheus is ready', [running], async () => {
    if (!running.isRunning()) return false
    return (await fetch(`http://${listening}/-/ready`)).ok
  })
  const get: Prometheus['get'] = async (path, parameters = {}) => {
    const response = await fetch(`http://${listening}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { status, data, error } = (await response.json()) as { status: string; data: unknown; error?: string }
    if (status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${error}`)
    return data
  }
  return {
    ...running,
    get,
    async query(expr) {
      const { result } = (await get('query', { query: expr })) as { result: { metric: Labels }[] }
      return result.map(({ metric }) => metric)
    },
  }
}
