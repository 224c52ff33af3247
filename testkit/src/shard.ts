/**
 * A whole shard as processes: registry, resolver and nodes, each on an address of its own in a free block of the
 * loopback network, so that ports are the same everywhere and stay the same over restarts.
 *
 *   .1 registry   .2 resolver   .11 the first node, .12 the second, …
 *
 * Raft ticks are short, so that tests are fast, and election timeouts are longer than the stalls of a busy machine.
 */

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { assert } from '@vacancy/shared'
import type { ClusterInfo } from '@vacancy/shared/contract'
import {
  type AtApi,
  type ConfigLines,
  type Ended,
  getText,
  launch,
  type Running,
  removeFolder,
  runVacancy,
  statusOf,
  TEST_CODECS,
  temporaryFolder,
} from './node.ts'
import { happens } from './until.ts'

export const PORTS = { tcp: 7777, api: 8080, quic: 17_777, registry: 8081, resolver: 9090 } as const
/** From the auth file of all nodes; membership changes need it. */
export const ADMIN_TOKEN = 'operator-of-the-test'
const BLOCK_TRIES = 200

/** Election timeouts of 0.8 to 1.6 s. */
const QUICK: ConfigLines = {
  raft_tick_ms: 10,
  raft_election_tick: 80,
  raft_heartbeat_tick: 10,
  registry_heartbeat_secs: 1,
  serving_threads: 1,
  memory_max_bytes: 256 << 20,
  wal_file_bytes: 4 << 20,
  cpu_watch: false,
}

export type ShardPlan = {
  /** All nodes that may be started; default node-1 to node-5. */
  readonly nodes?: readonly string[]
  /** Default: the first three. */
  readonly voters?: readonly string[]
  readonly shardId?: string
  readonly zoneId?: string
  readonly codecs?: readonly string[]
  readonly config?: ConfigLines
  /** For each node; `--insecure-cluster` unless `tls`. */
  readonly flags?: readonly string[]
  /** Creates an authority, and a certificate for each node. */
  readonly tls?: boolean
  /** Passes its certificate to each node by flags. */
  readonly ownCertificates?: boolean
}

export type NodePlan = {
  readonly voters?: readonly string[]
  readonly shardId?: string
  readonly dataDir?: string
  readonly config?: ConfigLines
  readonly flags?: readonly string[]
  /** Runs with the id of this node at the address of another. */
  readonly id?: string
  /** Default: its own certificate. File names in the certificate folder, without extension. */
  readonly certificate?: string
  readonly registryUrl?: string
  readonly resolverUrl?: string
  readonly environment?: { readonly [name: string]: string }
  /** Runs the program of another copy of the repository. */
  readonly root?: string
  /** Command prefix that becomes the node. */
  readonly wrapper?: readonly string[]
  /** Shifts the wall clock of the process. */
  readonly clockOffsetMs?: number
}

export type ShardNode = AtApi & {
  readonly name: string
  readonly host: string
  readonly tcpPort: number
  readonly apiPort: number
  readonly quicPort: number
  readonly dataDir: string
  readonly pid: number
  readonly output: () => string
  readonly ended: Promise<Ended>
  readonly isRunning: () => boolean
  readonly signal: (signal: NodeJS.Signals) => void
  readonly stop: () => Promise<Ended>
  readonly kill: () => Promise<Ended>
}

export type Service = Pick<ShardNode, 'host' | 'output' | 'ended' | 'stop' | 'kill' | 'isRunning'> & {
  readonly url: string
}

export type Shard = {
  readonly folder: string
  readonly nodes: readonly string[]
  readonly voters: readonly string[]
  readonly host: (node: string) => string
  readonly dataDir: (node: string) => string
  /** Folder of certificates, with `tls`. */
  readonly certificates: string
  readonly startRegistry: (codecs?: readonly string[], flags?: readonly string[]) => Service
  readonly startResolver: () => Service
  /** Starts a node without waiting for it. */
  readonly start: (node: string, plan?: NodePlan) => ShardNode
  /** Nodes with running processes. */
  readonly running: () => ShardNode[]
  /** Kills all processes and removes the folder. */
  readonly close: () => Promise<void>
}

/** A /24 of the loopback network that no other test uses: a listener on its last address keeps others off. */
export async function takeBlock(): Promise<{ readonly prefix: string; readonly guard: Server }> {
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

/** Creates folder and tables, and starts nothing. */
export async function openShard(plan: ShardPlan = {}): Promise<Shard> {
  const nodes = plan.nodes ?? ['node-1', 'node-2', 'node-3', 'node-4', 'node-5']
  const voters = plan.voters ?? nodes.slice(0, 3)
  const { shardId = 'shard-1', zoneId = 'zone-1', codecs = TEST_CODECS } = plan
  const { prefix, guard } = await takeBlock()
  const folder = temporaryFolder()
  const certificates = join(folder, 'certificates')
  const started: (ShardNode | Service)[] = []
  const host = (node: string) => {
    const at = nodes.indexOf(node)
    assert(at >= 0, `${node} is in the plan`)
    return `${prefix}.${11 + at}`
  }
  const dataDir = (node: string) => join(folder, 'data', node)
  const registryUrl = `http://${prefix}.1:${PORTS.registry}`
  const resolverUrl = `http://${prefix}.2:${PORTS.resolver}`
  const authFile = join(folder, 'auth.yml')
  writeFileSync(authFile, `tokens:\n  - {token: ${ADMIN_TOKEN}, role: admin}\n`)
  if (plan.tls) await makeCertificates(certificates, nodes)

  const keep = <T extends ShardNode | Service>(process: T): T => {
    started.push(process)
    return process
  }
  return {
    folder,
    nodes,
    voters,
    host,
    dataDir,
    certificates,
    startRegistry(served = codecs, flags = []) {
      const file = join(folder, 'registry-codecs.yml')
      writeFileSync(file, `rate_features:\n${served.map((name) => `  - ${name}\n`).join('')}`)
      const state = join(folder, 'registry-state.json')
      const at = ['--addr', `${prefix}.1`, '--port', String(PORTS.registry)]
      const args = ['registry', ...at, '--codecs-path', file, '--state-file', state, ...flags]
      return keep({ ...processOf(launch(args)), host: `${prefix}.1`, url: registryUrl })
    },
    startResolver() {
      const map = nodes.map((node) => `${node}=${host(node)}`).join(',')
      const args = ['resolver', '--host', `${prefix}.2`, '--port', String(PORTS.resolver), '--map', map]
      return keep({ ...processOf(launch(args)), host: `${prefix}.2`, url: resolverUrl })
    },
    start(name, options = {}) {
      const folderOfNode = join(folder, 'config', name)
      mkdirSync(folderOfNode, { recursive: true })
      const config = {
        ...{ tcp_port: PORTS.tcp, api_port: PORTS.api, quic_port: PORTS.quic },
        ...QUICK,
        ...plan.config,
        ...options.config,
      }
      const file = join(folderOfNode, 'vacancy.yml')
      const lines = Object.entries(config).map(([key, value]) => `${key}: ${value}\n`)
      writeFileSync(file, lines.join(''))
      const path = options.dataDir ?? dataDir(name)
      const running = launch(
        [
          ...['run-clustered', '--config', file, '--data-dir', path],
          ...['--node-id', options.id ?? name, '--shard-id', options.shardId ?? shardId, '--zone-id', zoneId],
          ...['--initial-voters', (options.voters ?? voters).join(',')],
          ...['--registry-addr', options.registryUrl ?? registryUrl],
          ...['--resolver-addr', options.resolverUrl ?? resolverUrl],
          ...['--auth-file', authFile],
          ...['tcp', 'api', 'quic'].flatMap((listener) => [`--${listener}-listen-addr`, host(name)]),
          ...(plan.tls ? certificateFlags(certificates, options.certificate ?? name) : []),
          ...(plan.tls || plan.ownCertificates ? [] : ['--insecure-cluster']),
          ...(plan.flags ?? []),
          ...(options.flags ?? []),
        ],
        {
          environment: options.environment ?? {},
          clockOffsetMs: options.clockOffsetMs ?? 0,
          wrapper: options.wrapper ?? [],
          ...(options.root !== undefined && { root: options.root }),
        },
      )
      const ports = { tcpPort: Number(config.tcp_port), apiPort: Number(config.api_port) }
      const node = { ...processOf(running), name, host: host(name), ...ports, quicPort: PORTS.quic, dataDir: path }
      return keep(node)
    },
    running: () => started.filter((each): each is ShardNode => 'name' in each && each.isRunning()),
    async close() {
      await Promise.all(started.map((each) => each.kill()))
      await new Promise((resolve) => guard.close(resolve))
      removeFolder(folder)
    },
  }
}

function processOf({ child, output, ended }: Running) {
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  return {
    pid: child.pid as number,
    output,
    ended,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

async function makeCertificates(folder: string, nodes: readonly string[]): Promise<void> {
  await certs(['init', '--out', folder])
  for (const node of nodes) await certs(['node', '--ca', folder, '--node-id', node, '--out', folder])
}

/** Runs `vacancy certs …`, which must succeed. */
export async function certs(args: readonly string[]): Promise<void> {
  const { code, output } = await runVacancy(['certs', ...args])
  assert(code === 0, `vacancy certs ${args.join(' ')}: ${output}`)
}

function certificateFlags(folder: string, name: string): string[] {
  const files = { cert: `${name}.pem`, key: `${name}.key`, 'ca-cert': 'ca.pem' }
  return Object.entries(files).flatMap(([flag, file]) => [`--${flag}-path`, join(folder, file)])
}

/** Starts registry, resolver and all voters, and waits until they serve. */
export async function startShard(plan: ShardPlan = {}): Promise<Shard> {
  const shard = await openShard(plan)
  shard.startRegistry()
  shard.startResolver()
  for (const voter of shard.voters) shard.start(voter)
  try {
    await leaderOf(shard)
  } catch (error) {
    // Otherwise its processes would be left running.
    await shard.close()
    throw error
  }
  return shard
}

/** Copies a snapshot file to the data directory of a node that has not started yet. */
export function seedNode(shard: Pick<Shard, 'dataDir'>, node: string, seedFile: string): void {
  mkdirSync(shard.dataDir(node), { recursive: true })
  copyFileSync(seedFile, join(shard.dataDir(node), 'seed.snapshot'))
}

export async function healthOf(node: AtApi): Promise<string> {
  const [, text] = await getText(node, '/healthz')
  return text.trim()
}

export async function infoOf(node: AtApi): Promise<ClusterInfo> {
  const [, text] = await getText(node, '/cluster/info')
  return JSON.parse(text) as ClusterInfo
}

/** The leader, once all of these nodes serve and agree on it. Default: all running nodes. */
export async function leaderOf(shard: Shard, among?: readonly ShardNode[]): Promise<ShardNode> {
  const nodes = among ?? shard.running()
  return await happens('all nodes serve and agree on a leader', nodes, async () => {
    const seen = await Promise.all(
      nodes.map(async (node) => ({ node, health: await healthOf(node), info: await infoOf(node) })),
    )
    const leaders = seen.filter(({ health }) => health === 'active_leader')
    const [leader] = leaders
    if (!leader || leaders.length > 1) return undefined
    const agree = seen.every(({ health, info }) => health !== 'unavailable' && info.leader_id === leader.node.name)
    return agree ? leader.node : undefined
  })
}

/** Waits for a health state of a node; fails when the node ends meanwhile. */
export async function becomes(node: ShardNode, ...healths: readonly string[]): Promise<void> {
  const is = async () => !node.isRunning() || healths.includes(await healthOf(node))
  await happens(`${node.name} becomes ${healths.join(' or ')}`, [node], is)
  if (!node.isRunning()) throw new Error(`${node.name} ended:\n${node.output()}`)
}

/**
 * Digest of the nodes once all have applied the same index.
 *
 * @param after an index that all have passed by then: nodes report what they have applied up to a second late
 */
export async function sameDigest(nodes: readonly ShardNode[], after = 0): Promise<string> {
  return await happens('all nodes have applied the same index', nodes, async () => {
    const states = await Promise.all(
      nodes.map(async (node) => {
        const { digest, replica } = await statusOf(node)
        return { digest: digest?.value ?? '', index: replica?.applied_index ?? 0 }
      }),
    )
    const [first] = states
    if (!first || first.index <= after || states.some(({ index }) => index !== first.index)) return undefined
    const digests = new Set(states.map(({ digest }) => digest))
    // At the same index digests must be equal (docs/design/consensus.md#promises); missing ones are polled again.
    return digests.size === 1 ? first.digest : undefined
  })
}

/** POST as an operator, with the response; `token: ''` is an anonymous request. */
export async function postText(
  node: AtApi,
  path: string,
  body?: object,
  token = ADMIN_TOKEN,
): Promise<readonly [number, string]> {
  const response = await fetch(`http://${node.host ?? '127.0.0.1'}:${node.apiPort}${path}`, {
    method: 'POST',
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  return [response.status, await response.text()]
}
