/**
 * Real nodes as processes, for tests of the control plane: one standalone node, or a shard with registry and resolver.
 * Each listener has a loopback address of its own, so that ports are the same everywhere and over restarts:
 *
 *   .1 registry   .2 resolver   .11 the first node, .12 the second, …
 */

import { spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clusterInfoBody } from '@vacancy/shared/contract'
import { happens } from '@vacancy/testkit/until'

const PROGRAM = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const PORTS = { tcp: 7777, api: 8080, quic: 17_777, registry: 8081, resolver: 9090 } as const
const BLOCK_TRIES = 200

export const TEST_CODECS: readonly string[] = ['breakfast', 'refundable', 'sea_view']
/** From the auth file of all nodes of a shard. */
export const ADMIN_TOKEN = 'operator-of-the-test'

/** Election timeouts of 0.8 to 1.6 s: short, but longer than stalls of a busy machine. */
const QUICK = {
  raft_tick_ms: 10,
  raft_election_tick: 80,
  raft_heartbeat_tick: 10,
  registry_heartbeat_secs: 1,
  serving_threads: 1,
  memory_max_bytes: 256 << 20,
  wal_file_bytes: 4 << 20,
  cpu_watch: false,
}

type ConfigLines = { readonly [key: string]: string | number | boolean }
type Ended = { readonly code: number | null; readonly signal: string | null }

export type TestNode = {
  readonly id: string
  readonly host: string
  readonly apiUrl: string
  readonly tcpPort: number
  readonly dataDir: string
  /** Its output so far. */
  readonly output: () => string
  readonly isRunning: () => boolean
  /** Graceful shutdown. */
  readonly stop: () => Promise<Ended>
  readonly kill: () => Promise<Ended>
}

export type NodePlan = {
  readonly codecs?: readonly string[]
  readonly config?: ConfigLines
  readonly flags?: readonly string[]
  /** A snapshot file to start with. */
  readonly seed?: string
}

export type ShardPlan = NodePlan & {
  /** All nodes that may be started; default n1 to n4. */
  readonly nodes?: readonly string[]
  /** Founding voters; default the first three. Others join as learners. */
  readonly voters?: readonly string[]
  /** Nodes to start immediately; default all. */
  readonly started?: readonly string[]
  readonly shardId?: string
  readonly zoneId?: string
}

export type TestShard = {
  readonly folder: string
  readonly shardId: string
  readonly registryUrl: string
  readonly resolverUrl: string
  readonly adminToken: string
  /** Nodes with running processes. */
  readonly nodes: () => readonly TestNode[]
  readonly node: (id: string) => TestNode
  readonly start: (id: string) => TestNode
  /** The leader, once all running nodes serve and agree on it. */
  readonly leader: () => Promise<TestNode>
  /** Restarts the registry with another codec list. */
  readonly changeCodecs: (codecs: readonly string[]) => Promise<void>
  /** Kills all processes and removes the folder. */
  readonly close: () => Promise<void>
}

/** Starts a standalone node; resolves when it serves. */
export async function startNode(plan: NodePlan = {}): Promise<TestNode & { readonly close: () => Promise<void> }> {
  const { guard, prefix } = await takeBlock()
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-server-'))
  const dataDir = join(folder, 'data')
  seed(dataDir, plan.seed)
  const args = ['run', '--codecs', codecFile(folder, plan.codecs), ...listeners(`${prefix}.11`, ['tcp', 'api'])]
  const process = launch([...args, ...configOf(folder, 'node', dataDir, plan.config), ...(plan.flags ?? [])])
  const node = { ...process, id: 'node', ...placeOf(`${prefix}.11`), dataDir }
  await serves(node)
  return {
    ...node,
    async close() {
      await node.kill()
      await closed(guard)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts registry, resolver and nodes; resolves when all of them serve and agree on a leader. */
export async function startShard(plan: ShardPlan = {}): Promise<TestShard> {
  const ids = plan.nodes ?? ['n1', 'n2', 'n3', 'n4']
  const voters = plan.voters ?? ids.slice(0, 3)
  const { shardId = 's1', zoneId = 'eu-1' } = plan
  const { guard, prefix } = await takeBlock()
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-server-'))
  const hostOf = (id: string) => `${prefix}.${11 + ids.indexOf(id)}`
  const registryUrl = `http://${prefix}.1:${PORTS.registry}`
  const resolverUrl = `http://${prefix}.2:${PORTS.resolver}`
  const authFile = join(folder, 'auth.yml')
  writeFileSync(authFile, `tokens:\n  - {token: ${ADMIN_TOKEN}, role: admin}\n`)
  const startRegistry = (codecs: readonly string[] | undefined) =>
    launch([
      ...['registry', '--addr', `${prefix}.1`, '--port', String(PORTS.registry)],
      ...['--codecs-path', codecFile(folder, codecs), '--state-file', join(folder, 'registry.json')],
    ])
  let registry = startRegistry(plan.codecs)
  const resolver = launch([
    ...['resolver', '--host', `${prefix}.2`, '--port', String(PORTS.resolver)],
    ...['--map', ids.map((id) => `${id}=${hostOf(id)}`).join(',')],
  ])
  const started = new Map<string, TestNode>()
  const shard: TestShard = {
    folder,
    shardId,
    registryUrl,
    resolverUrl,
    adminToken: ADMIN_TOKEN,
    nodes: () => [...started.values()].filter((node) => node.isRunning()),
    node(id) {
      const node = started.get(id)
      if (!node) throw new Error(`${id} was not started`)
      return node
    },
    start(id) {
      const dataDir = join(folder, 'data', id)
      if (voters.includes(id)) seed(dataDir, plan.seed)
      const process = launch([
        'run-clustered',
        ...configOf(folder, id, dataDir, plan.config),
        ...['--node-id', id, '--shard-id', shardId, '--zone-id', zoneId, '--initial-voters', voters.join(',')],
        ...['--registry-addr', registryUrl, '--resolver-addr', resolverUrl, '--auth-file', authFile],
        ...listeners(hostOf(id), ['tcp', 'api', 'quic']),
        ...['--insecure-cluster', ...(plan.flags ?? [])],
      ])
      const node = { ...process, id, ...placeOf(hostOf(id)), dataDir }
      started.set(id, node)
      return node
    },
    async leader() {
      return await happens('all nodes serve and agree on a leader', shard.nodes(), () => agreedLeader(shard.nodes()))
    },
    async changeCodecs(codecs) {
      await registry.stop()
      registry = startRegistry(codecs)
    },
    async close() {
      await Promise.all([...started.values(), registry, resolver].map((each) => each.kill()))
      await closed(guard)
      rmSync(folder, { recursive: true, force: true })
    },
  }
  try {
    for (const id of plan.started ?? ids) shard.start(id)
    // Without nodes there is no leader to wait for; the caller starts nodes later.
    if (shard.nodes().length > 0) await shard.leader()
    return shard
  } catch (error) {
    await shard.close()
    throw error
  }
}

/** Runs a subcommand of the program to its end. */
export async function runVacancy(
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const process = launch(args)
  const { code } = await process.ended
  return { code, output: process.output() }
}

function launch(args: readonly string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  return {
    output: () => output,
    ended,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

function configOf(folder: string, id: string, dataDir: string, config: ConfigLines = {}): string[] {
  const ports = { tcp_port: PORTS.tcp, api_port: PORTS.api, quic_port: PORTS.quic }
  const file = join(folder, `${id}.yml`)
  const lines = Object.entries({ ...ports, ...QUICK, ...config }).map(([key, value]) => `${key}: ${value}\n`)
  writeFileSync(file, lines.join(''))
  return ['--config', file, '--data-dir', dataDir]
}

function codecFile(folder: string, codecs = TEST_CODECS): string {
  const file = join(folder, 'codecs.yml')
  writeFileSync(file, `rate_features:\n${codecs.map((name) => `  - ${name}\n`).join('')}`)
  return file
}

function listeners(host: string, names: readonly string[]): string[] {
  return names.flatMap((name) => [`--${name}-listen-addr`, host])
}

function placeOf(host: string) {
  return { host, apiUrl: `http://${host}:${PORTS.api}`, tcpPort: PORTS.tcp }
}

function seed(dataDir: string, file: string | undefined): void {
  if (file === undefined) return
  mkdirSync(dataDir, { recursive: true })
  copyFileSync(file, join(dataDir, 'seed.snapshot'))
}

async function serves(node: TestNode): Promise<void> {
  const isServing = async () => !node.isRunning() || (await textOf(`${node.apiUrl}/healthz`)) === 'active'
  await happens(`${node.id} serves`, [node], isServing)
  if (!node.isRunning()) throw new Error(`the node ended:\n${node.output()}`)
}

async function agreedLeader(nodes: readonly TestNode[]): Promise<TestNode | undefined> {
  const found = await Promise.all(
    nodes.map(async ({ apiUrl }) => ({
      health: await textOf(`${apiUrl}/healthz`),
      names: clusterInfoBody.parse(JSON.parse(await textOf(`${apiUrl}/cluster/info`))).leader_id,
    })),
  )
  const at = found.findIndex(({ health }) => health === 'active_leader')
  const leader = nodes[at]
  return found.every(({ health, names }) => health.startsWith('active') && names === leader?.id) ? leader : undefined
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url)
  return (await response.text()).trim()
}

/** A /24 block of the loopback network for one test: a listener on its last address reserves it. */
async function takeBlock(): Promise<{ readonly prefix: string; readonly guard: Server }> {
  for (let tries = 0; tries < BLOCK_TRIES; tries++) {
    // Low addresses are used by documentation and quick-starts.
    const [a, b] = [64 + Math.floor(Math.random() * 190), Math.floor(Math.random() * 256)]
    const prefix = `127.${a}.${b}`
    const guard = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      guard.once('error', () => resolve(false))
      guard.listen(PORTS.quic, `${prefix}.254`, () => resolve(true))
    })
    if (isFree) return { prefix, guard }
  }
  throw new Error('no free block of loopback addresses')
}

function closed(guard: Server): Promise<void> {
  return new Promise((resolve) => guard.close(() => resolve()))
}
