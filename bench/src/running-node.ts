/** A real node for a measurement: a folder of its own, its own configuration file, free ports. */

import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@vacancy/testkit/free-port'
import type { Program } from '@vacancy/testkit/program'
import { failure } from './failure.ts'
import { parseMetrics, type Sample } from './metrics.ts'
import { lastLine, startProgram, stopProgram } from './programs.ts'

const START_MS = 120_000
const POLL_MS = 5

export type NodeOptions = {
  /** Folder for this node; emptied before. */
  dir: string
  /** Snapshot file to start from. */
  seed: string
  /** codecs.yml. */
  codecs: string
  /** Keys of the configuration file over the defaults (docs/design/http.md#configuration). */
  config: Record<string, number | string | boolean>
  /** Another copy of the repository than this one. */
  root?: string | undefined
}

export type RunningNode = {
  program: Program
  host: string
  port: number
  /** `http://host:port` of its HTTP API. */
  api: string
  /** From starting the process to `active`. */
  startMs: number
  dir: string
}

export async function startNode({ dir, seed, codecs, config, root }: NodeOptions): Promise<RunningNode> {
  rmSync(dir, { recursive: true, force: true })
  const dataDir = join(dir, 'data')
  mkdirSync(dataDir, { recursive: true })
  // The name the builder gives it: a node loads a file of this name from its data folder.
  copyFileSync(seed, join(dataDir, 'seed.snapshot'))
  const [port, apiPort] = await Promise.all([freePort(), freePort()])
  const file = join(dir, 'vacancy.yml')
  const keys = Object.entries({ ...config, tcp_port: port, api_port: apiPort, quic_port: 0 })
  writeFileSync(file, keys.map(([key, value]) => `${key}: ${value}\n`).join(''))
  const begun = performance.now()
  const program = startProgram(
    ['bin/vacancy.mjs', 'run', '--config', file].concat(['--codecs', codecs, '--data-dir', dataDir]),
    root,
  )
  const node = { program, host: '127.0.0.1', port, api: `http://127.0.0.1:${apiPort}`, dir }
  await becomesActive(node, begun)
  return { ...node, startMs: performance.now() - begun }
}

async function becomesActive({ program, api }: { program: Program; api: string }, begun: number): Promise<void> {
  while (performance.now() - begun < START_MS) {
    if (!program.isRunning()) throw failure(`the node ended while it started: ${lastLine(program)}`)
    if (await isActive(api)) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  await stopProgram(program)
  throw failure(`the node was not active after ${START_MS / 1000} s: ${lastLine(program)}`)
}

async function isActive(api: string): Promise<boolean> {
  try {
    const response = await fetch(`${api}/healthz`)
    return (await response.text()).trim() === 'active' && response.status === 200
  } catch {
    // The node is not listening yet.
    return false
  }
}

/** Stops a node and removes its folder. Answers with what was wrong with its end, '' when it stopped orderly. */
export async function stopNode({ program, dir }: RunningNode): Promise<string> {
  const code = await stopProgram(program)
  rmSync(dir, { recursive: true, force: true })
  return code === 0 ? '' : `the node stopped with exit code ${code}: ${lastLine(program)}`
}

export async function metricsOf({ api }: Pick<RunningNode, 'api'>): Promise<Sample[]> {
  const response = await fetch(`${api}/metrics`)
  if (!response.ok) throw failure(`GET /metrics answered ${response.status}`)
  return parseMetrics(await response.text())
}
