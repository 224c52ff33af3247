/**
 * Measures CPU time and memory of the control plane, from its own metrics, with a simulated cluster and browsers.
 * Cluster and browsers run in this process, the control plane in another, as operators run it.
 *
 *   node server/src/testing/cost.ts [--nodes 1000] [--shards 300] [--browsers 20] [--seconds 60] [--without-console]
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { LIVE } from '@vacancy/shared/contract'
import { until } from '@vacancy/testkit/until'
import { WebSocket } from 'ws'
import { type Caller, callerOf, personOf } from './control-plane.ts'
import { type Simulated, startSimulated } from './simulated.ts'

const PROGRAM = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const LIMITS = { cores: 1, mebibytes: 400 } as const
/** Interval of memory readings. */
const LOOK_MS = 2_000
const MEBIBYTE = 1 << 20

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '1000' },
    shards: { type: 'string', default: '300' },
    browsers: { type: 'string', default: '20' },
    /** Warm-up, so that code is compiled and memory is stable. */
    warm: { type: 'string', default: '60' },
    seconds: { type: 'string', default: '60' },
    'without-console': { type: 'boolean', default: false },
    /** Flags of Node for the control plane, such as --cpu-prof. */
    node: { type: 'string', multiple: true, default: [] },
  },
})

const whole = (name: 'nodes' | 'shards' | 'browsers' | 'warm' | 'seconds'): number => {
  const value = Number(values[name])
  if (Number.isInteger(value) && value >= 0 && value <= 10_000) return value
  process.stderr.write(`--${name} must be a whole number up to 10000\n`)
  process.exit(64)
}

type Plane = { readonly child: ChildProcess; readonly url: string; readonly admin: Caller }

const sim = await startSimulated({ nodes: whole('nodes'), shards: whole('shards'), zones: 4, seed: 7 })
const folder = mkdtempSync(join(tmpdir(), 'vacancy-cost-'))
try {
  const plane = await startPlane(sim, folder)
  try {
    process.exitCode = await measure(plane)
  } finally {
    const ended = new Promise((resolve) => plane.child.once('exit', resolve))
    plane.child.kill('SIGTERM')
    await ended
  }
} finally {
  await sim.close()
  rmSync(folder, { recursive: true, force: true })
}

async function startPlane({ registryUrl }: Simulated, dataDir: string): Promise<Plane> {
  const token = join(dataDir, 'admin.token')
  writeFileSync(token, 'of-the-simulation\n')
  const child = spawn(
    process.execPath,
    [
      ...[...values.node, PROGRAM, 'control-plane', '--data-dir', dataDir, '--listen-port', '0', '--sign-in', 'cost'],
      ...['--registry', registryUrl, '--resolver', registryUrl, '--node-admin-token', `file:${token}`],
      ...(values['without-console'] ? ['--web=false'] : []),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_ENV: 'production' } },
  )
  try {
    return await signedIn(child)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

async function signedIn(child: ChildProcess): Promise<Plane> {
  let out = ''
  child.stdout?.on('data', (text) => {
    out += text
  })
  const code = await until('it serves', () => {
    if (child.exitCode !== null) throw new Error(`it ended with exit code ${child.exitCode}`)
    return /#code=([\w-]+)/.exec(out)?.[1]
  })
  const url = /^serving: (.*)$/m.exec(out)?.[1] as string
  const admin = personOf(url, await callerOf(url, {}).call('POST', '/api/v1/session/link', { code }))
  await until('every shard is live', async () => {
    const { body } = await admin.call('GET', '/api/v1/summary')
    return body.counts?.shards === sim.shards.length && body.counts.nodesAnswering === body.counts.nodes
  })
  return { child, url, admin }
}

async function measure({ url, admin }: Plane): Promise<number> {
  const traffic = { frames: 0, bytes: 0 }
  const browsers = await Promise.all(
    Array.from({ length: whole('browsers') }, (_, at) => openBrowser(url, admin, at, traffic)),
  )
  await sleep(whole('warm') * 1_000)
  const before = await figures(admin)
  const sent = { ...traffic }
  const began = performance.now()
  const resident: number[] = []
  while (performance.now() - began < whole('seconds') * 1_000) {
    await sleep(LOOK_MS)
    resident.push((await figures(admin)).resident)
  }
  const seconds = (performance.now() - began) / 1000
  const after = await figures(admin)
  for (const end of browsers) end()
  const cores = (after.cpu - before.cpu) / seconds
  const mebibytes = Math.max(...resident) / MEBIBYTE
  const mean = resident.reduce((sum, each) => sum + each, 0) / resident.length / MEBIBYTE
  const perBrowser = (traffic.bytes - sent.bytes) / seconds / Math.max(1, browsers.length) / 1000
  const lines = [
    `${values.nodes} nodes in ${values.shards} shards, ${values.browsers} browsers, ${values['without-console'] ? 'without' : 'with'} the console, ${Math.round(seconds)} s`,
    `processor   ${cores.toFixed(2)} cores, limit ${LIMITS.cores}`,
    `memory      ${Math.round(mebibytes)} MiB at most, ${Math.round(mean)} on average, limit ${LIMITS.mebibytes}`,
    `heap        ${Math.round(after.heap / MEBIBYTE)} MiB used, ${Math.round(after.external / MEBIBYTE)} MiB outside of it`,
    `requests    ${Math.round((after.requests - before.requests) / seconds)} a second to nodes, last round ${Math.round(after.round * 1000)} ms`,
    `live        ${perBrowser.toFixed(1)} kB a second and browser, ${Math.round((traffic.frames - sent.frames) / seconds)} frames a second in all`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  return cores <= LIMITS.cores && mebibytes <= LIMITS.mebibytes ? 0 : 1
}

async function figures(admin: Caller) {
  const { text } = await admin.call('GET', '/metrics')
  const of = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
  return {
    cpu: of('process_cpu_seconds_total'),
    resident: of('process_resident_memory_bytes'),
    heap: of('nodejs_heap_size_used_bytes'),
    external: of('nodejs_external_memory_bytes'),
    requests: of('control_node_requests_total'),
    round: of('control_poll_round_seconds'),
  }
}

/** A browser that has the overview, a shard and a node open. @returns closes it */
async function openBrowser(
  url: string,
  { headers }: Caller,
  at: number,
  traffic: { frames: number; bytes: number },
): Promise<() => void> {
  const socket = new WebSocket(url.replace('http', 'ws') + LIVE.path, { headers: { ...headers, origin: url } })
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  socket.on('message', (data: Buffer) => {
    traffic.frames++
    traffic.bytes += data.length
  })
  const shard = sim.shards[at % sim.shards.length] as Simulated['shards'][number]
  for (const [id, topic] of ['summary', `shard:${shard.id}`, `node:${shard.id}/${shard.nodes[0]?.id}`].entries()) {
    socket.send(JSON.stringify({ t: 'sub', id: id + 1, topic }))
  }
  const pinging = setInterval(() => socket.send(JSON.stringify({ t: 'ping', n: 1 })), LIVE.pingMs)
  return () => {
    clearInterval(pinging)
    socket.terminate()
  }
}
