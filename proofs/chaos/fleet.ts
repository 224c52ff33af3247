/**
 * The processes of a chaos run: starts and ends them, detects unexpected ends, and polls the state of the shard, so
 * that faults can target its leader.
 */

import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EXIT } from '@vacancy/shared'
import type { ClusterInfo, NodeStatus } from '@vacancy/shared/contract'
import { hangingDisk } from '@vacancy/testkit/hanging-disk'
import { ADMIN_TOKEN, type Service, type Shard, type ShardNode } from '@vacancy/testkit/shard'
import type { Network } from './network.ts'

const POLL_MS = 250
const ANSWER_MS = 1_500
/**
 * A graceful shutdown ends within this time (docs/design/storage.md#shutdown); later the node is killed, which is a
 * violation.
 */
const STOP_MS = 25_000
/** Space for two log files, the reserve and snapshots. */
const DISK_BYTES = 448 << 20
const BALLAST_FILE = 'ballast'
const BALLAST_PIECE_BYTES = 1 << 20

export type FleetNode = ReturnType<typeof createNode>

export type Fleet = {
  readonly shard: Shard
  readonly network: Network
  readonly nodes: ReadonlyMap<string, FleetNode>
  /** All processes of nodes so far. */
  readonly lives: ShardNode[]
  readonly services: { registry: Service; resolver: Service }
  /** The output of the processes, one file per process. */
  readonly logs: string
  /** Violations by nodes. */
  readonly violations: string[]
  /** The report of the node with the highest term. */
  view: View
  /** The node with its data on a small disk; undefined when mounting is not permitted. */
  smallDisk: string | undefined
  isClosed: boolean
}

type View = {
  readonly leader: string
  readonly term: number
  readonly voters: readonly string[]
  readonly learners: readonly string[]
  readonly isChanging: boolean
  readonly applied: ReadonlyMap<string, number>
  /** Nodes that report that they serve. */
  readonly serving: ReadonlySet<string>
}

/** @param offsetsMs of the wall clocks of nodes, in their order */
export function createFleet(shard: Shard, network: Network, offsetsMs: readonly number[]): Fleet {
  const logs = join(shard.folder, 'logs')
  mkdirSync(logs, { recursive: true })
  const nodes = shard.nodes.map((name, n) => createNode(name, offsetsMs[n] ?? 0))
  return {
    shard,
    network,
    lives: [],
    nodes: new Map(nodes.map((node) => [node.name, node])),
    services: { registry: shard.startRegistry(), resolver: shard.startResolver() },
    logs,
    violations: [],
    view: { leader: '', term: 0, voters: [], learners: [], isChanging: false, applied: new Map(), serving: new Set() },
    smallDisk: undefined,
    isClosed: false,
  }
}

function createNode(name: string, usualOffsetMs: number) {
  return {
    name,
    process: undefined as ShardNode | undefined,
    /** A fault is active on it. */
    isBusy: false,
    isPaused: false,
    /** The run is ending its process. */
    isEnding: false,
    /** A full disk may end it or prevent its start. */
    mayRefuse: false,
    /** Wall clock offset of its next process, and its usual one. */
    clockOffsetMs: usualOffsetMs,
    usualOffsetMs,
    starts: 0,
  }
}

export function nodeOf(fleet: Fleet, name: string): FleetNode {
  return fleet.nodes.get(name) as FleetNode
}

export function runningNodes(fleet: Fleet): FleetNode[] {
  return [...fleet.nodes.values()].filter(({ process }) => process !== undefined)
}

// Processes of a node

/** While it exists, syncs of the node do not return. */
export const hangFile = ({ shard }: Fleet, { name }: FleetNode): string => join(shard.folder, `hang-${name}`)

/** Few descriptors, so that connections can use them up. */
const LIMITED = ['sh', '-c', 'ulimit -n 512; exec "$@"', 'sh'] as const

export async function startNode(fleet: Fleet, node: FleetNode, flags: readonly string[] = []): Promise<void> {
  if (fleet.isClosed || node.process) return
  await fleet.network.setUp(node.name, true)
  node.starts++
  node.isEnding = false
  const { clockOffsetMs } = node
  const resolverUrl = fleet.network.resolverUrl(node.name)
  const environment = hangingDisk(hangFile(fleet, node))
  const process = fleet.shard.start(node.name, { resolverUrl, flags, clockOffsetMs, environment, wrapper: LIMITED })
  node.process = process
  fleet.lives.push(process)
  void process.ended.then(({ code, signal }) => {
    writeFileSync(join(fleet.logs, `${node.name}.${node.starts}.log`), process.output())
    if (node.process === process) node.process = undefined
    if (node.isEnding || fleet.isClosed) return
    void fleet.network.setUp(node.name, false)
    // A node that ends because of a full disk reports it, and a supervisor restarts it.
    if (node.mayRefuse && code === EXIT.write) return
    fleet.violations.push(
      `${node.name} ended unexpectedly: code ${code}, signal ${signal}\n${lastLines(process.output())}`,
    )
  })
}

export async function killNode(fleet: Fleet, node: FleetNode): Promise<void> {
  const { process } = node
  if (!process) return
  node.isEnding = true
  const killed = process.kill()
  await fleet.network.setUp(node.name, false)
  await killed
  node.process = undefined
  node.isPaused = false
}

/** Sends SIGTERM. Exceeding the time limit, or an exit code other than 0, is a violation. */
export async function stopNode(fleet: Fleet, node: FleetNode): Promise<void> {
  const { process } = node
  if (!process) return
  node.isEnding = true
  const late = setTimeout(() => {
    fleet.violations.push(`${node.name} did not end within ${STOP_MS} ms of SIGTERM\n${lastLines(process.output())}`)
    process.signal('SIGKILL')
  }, STOP_MS)
  const { code, signal } = await process.stop()
  clearTimeout(late)
  await fleet.network.setUp(node.name, false)
  node.process = undefined
  if (code !== 0 && signal === null) {
    fleet.violations.push(`${node.name} ended with code ${code} after SIGTERM\n${lastLines(process.output())}`)
  }
}

export function pauseNode(node: FleetNode): void {
  node.isPaused = true
  node.process?.signal('SIGSTOP')
}

export function resumeNode(node: FleetNode): void {
  node.isPaused = false
  node.process?.signal('SIGCONT')
}

/**
 * Deletes the data of a stopped node, if it ever ran. The folder stays, since a file system may be mounted there.
 */
export function wipeNode(fleet: Fleet, { name }: FleetNode): void {
  const folder = fleet.shard.dataDir(name)
  if (!existsSync(folder)) return
  for (const file of readdirSync(folder)) rmSync(join(folder, file), { recursive: true, force: true })
}

const LINES = 25

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-LINES).join('\n')
}

// A small disk

/** Mounts a separate file system for a node. @returns whether that is permitted here */
export function mountSmallDisk(fleet: Fleet, name: string): boolean {
  const folder = fleet.shard.dataDir(name)
  mkdirSync(folder, { recursive: true })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return false
  }
  fleet.smallDisk = name
  return true
}

export function unmountSmallDisk(fleet: Fleet): void {
  if (fleet.smallDisk === undefined) return
  execFileSync('umount', ['-l', fleet.shard.dataDir(fleet.smallDisk)], { stdio: 'ignore' })
  fleet.smallDisk = undefined
}

/** Writes until the disk is full. */
export function fillDisk(fleet: Fleet): void {
  const file = openSync(join(fleet.shard.dataDir(fleet.smallDisk as string), BALLAST_FILE), 'a')
  try {
    for (let bytes = BALLAST_PIECE_BYTES; bytes >= 1; ) {
      try {
        if (writeSync(file, new Uint8Array(bytes)) < bytes) bytes >>>= 1
      } catch {
        // Not enough space: the rest is filled with smaller writes.
        bytes >>>= 1
      }
    }
  } finally {
    closeSync(file)
  }
}

export function emptyDisk(fleet: Fleet): void {
  if (fleet.smallDisk !== undefined) rmSync(join(fleet.shard.dataDir(fleet.smallDisk), BALLAST_FILE), { force: true })
}

// Reports of nodes

export async function ask(
  node: FleetNode,
  path: string,
  method = 'GET',
): Promise<{ readonly status: number; readonly body: string } | undefined> {
  const { process } = node
  if (!process) return undefined
  try {
    const signal = AbortSignal.timeout(method === 'GET' ? ANSWER_MS : 8_000)
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_TOKEN}` }
    const response = await fetch(`http://${process.host}:${process.apiPort}${path}`, {
      method,
      signal,
      ...(method === 'POST' && { body: '{}', headers }),
    })
    return { status: response.status, body: await response.text() }
  } catch {
    // It is starting, stopped, or has ended.
    return undefined
  }
}

async function read<T>(node: FleetNode, path: string): Promise<T | undefined> {
  const answer = await ask(node, path)
  return answer?.status === 200 ? (JSON.parse(answer.body) as T) : undefined
}

/** Polls until the fleet is closed. */
export async function watchFleet(fleet: Fleet): Promise<void> {
  while (!fleet.isClosed) {
    await pollFleet(fleet)
    await wait(POLL_MS)
  }
}

export async function pollFleet(fleet: Fleet): Promise<void> {
  const responsive = runningNodes(fleet).filter(({ isPaused }) => !isPaused)
  const infos = await Promise.all(responsive.map(async (node) => await read<ClusterInfo>(node, '/cluster/info')))
  const healths = await Promise.all(responsive.map(async (node) => (await ask(node, '/healthz'))?.body ?? ''))
  const reports = infos
    .filter((info) => info !== undefined)
    .sort((a, b) => b.term - a.term || b.applied_index - a.applied_index)
  // The leader has the newest information.
  const best = reports.find((info) => info.leader_id === info.node_id) ?? reports[0]
  if (!best) return
  fleet.view = {
    leader: best.leader_id,
    term: best.term,
    voters: best.members.voters,
    learners: best.members.learners,
    isChanging: best.operation !== null || best.joint,
    serving: new Set(responsive.filter((_, i) => healths[i]?.startsWith('active')).map(({ name }) => name)),
    applied: new Map(reports.map((info) => [info.node_id, info.applied_index])),
  }
}

export type Standing = {
  readonly name: string
  readonly health: string
  readonly digest: string
  readonly index: number
  readonly leader: string
}

/** The state of the running nodes; a node that does not respond has health ''. */
export async function standings(fleet: Fleet): Promise<Standing[]> {
  return await Promise.all(
    runningNodes(fleet).map(async (node) => {
      const status = await read<NodeStatus>(node, '/status')
      return {
        name: node.name,
        health: status?.health ?? '',
        digest: status?.digest?.value ?? '',
        index: status?.replica?.applied_index ?? 0,
        leader: status?.cluster?.info.leader_id ?? '',
      }
    }),
  )
}
