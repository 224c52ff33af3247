/**
 * The nodes of a shard as a client sees them: which one leads, and which ones serve reads
 * (docs/design/protocol.md#clients).
 *
 *   leader unknown ── a write is executed, or the API reports it ──► leader known
 *        ▲                                                             │
 *        └── 308, 503 or 408 to a write, silence, no connection ───────┘
 *
 * The known leader is only a hint: a node that does not lead refuses a write before it is in any log, so a wrong hint
 * costs one round trip. While no leader is known, one write at a time searches for it, node by node; the others wait
 * and keep their order. When all nodes have refused, the next round follows after a pause.
 *
 * Reads go to the nodes that do not lead: to the less busy of two chosen at random. A node that refused a read as
 * stale, or kept several waiting, is avoided for a while, unless it is the only one left.
 */

import type { Address, Connection } from './connection.ts'
import { searchDelayMs, tellsFate } from './retry.ts'
import type { World } from './world.ts'

/** Which nodes serve reads: the followers while there are any, all nodes, or the leader. */
export type ReadsFrom = 'followers' | 'any' | 'leader'

export type ShardNode = {
  readonly address: Address
  /** Base URL of its HTTP API; undefined: it is not polled. */
  readonly api: string | undefined
  readonly connections: Set<Connection>
  role: 'leader' | 'follower' | 'unknown'
  /** It belongs to another shard, by its API, and receives no requests. */
  isForeign: boolean
  /** It receives no reads until then. */
  staleUntilMs: number
  timeouts: number
  ejections: number
  ejectedUntilMs: number
}

export type Topology = {
  readonly world: World
  readonly nodes: readonly ShardNode[]
  readonly readsFrom: ReadsFrom
  readonly nodeOf: Map<Connection, ShardNode>
  leader: ShardNode | undefined
  /** It has executed a write, or reports that it leads: writes are pipelined. */
  isConfirmed: boolean
  /** Refused a write since the search for a leader began. */
  readonly refusedBy: Set<ShardNode>
  rounds: number
  stopPause: (() => void) | undefined
  /** The write that searches for the leader. */
  probe: { readonly isOut: () => boolean; readonly untilMs: number } | undefined
  /** Called when waiting calls may have a node to go to. */
  changed: () => void
  /** Called when the leader is no longer known. */
  onSearch: () => void
}

/** The properties of a call that determine its node. */
export type Routed = {
  readonly isWrite: boolean
  /** A node reported that the leader can serve this read. */
  readonly prefersLeader: boolean
}

/** How long a node that refused a read is avoided. It may have caught up by then. */
export const STALE_MS = 1_000
export const TIMEOUTS_TO_EJECT = 3
const EJECT_MS_MIN = 1_000
const EJECT_MS_MAX = 30_000

export function createTopology(
  world: World,
  nodes: readonly { readonly address: Address; readonly api: string | undefined }[],
  readsFrom: ReadsFrom,
): Topology {
  return {
    world,
    nodes: nodes.map(({ address, api }) => ({
      address,
      api,
      connections: new Set(),
      role: 'unknown',
      isForeign: false,
      staleUntilMs: 0,
      timeouts: 0,
      ejections: 0,
      ejectedUntilMs: 0,
    })),
    readsFrom,
    nodeOf: new Map(),
    leader: undefined,
    isConfirmed: false,
    refusedBy: new Set(),
    rounds: 0,
    stopPause: undefined,
    probe: undefined,
    changed: () => {},
    onSearch: () => {},
  }
}

export function nodeOpened(topology: Topology, node: ShardNode, connection: Connection): void {
  node.connections.add(connection)
  topology.nodeOf.set(connection, node)
}

export function nodeClosed(topology: Topology, node: ShardNode, connection: Connection): void {
  const wasOpen = node.connections.delete(connection)
  topology.nodeOf.delete(connection)
  if (!wasOpen) return
  blame(topology, node)
  if (node.connections.size === 0 && topology.leader === node) search(topology)
}

/** @returns the node for the call; undefined: it waits, and `changed` is called when to try again */
export function nodeFor(topology: Topology, call: Routed): ShardNode | undefined {
  return call.isWrite ? nodeForWrite(topology) : nodeForRead(topology, call.prefersLeader)
}

function nodeForWrite(topology: Topology): ShardNode | undefined {
  const { leader, isConfirmed, probe, world } = topology
  if (leader && isConfirmed) return leader
  if (probe?.isOut() && world.clock.monotonicMs() < probe.untilMs) return undefined
  if (leader) return leader
  const open = topology.nodes.filter(isOpen)
  const next = open.find((node) => !topology.refusedBy.has(node))
  if (!next && open.length > 0) pause(topology)
  return next
}

function isOpen({ connections, isForeign }: ShardNode): boolean {
  return connections.size > 0 && !isForeign
}

/** All nodes have refused: the next round starts after a delay. */
function pause(topology: Topology): void {
  if (topology.stopPause) return
  const { world } = topology
  topology.onSearch()
  topology.stopPause = world.after(searchDelayMs(topology.rounds++, world.random()), () => {
    topology.stopPause = undefined
    topology.refusedBy.clear()
    topology.changed()
  })
}

function nodeForRead(topology: Topology, prefersLeader: boolean): ShardNode | undefined {
  const { leader, nodes, readsFrom } = topology
  const nowMs = topology.world.clock.monotonicMs()
  const isUsable = (node: ShardNode) => isOpen(node) && node.staleUntilMs <= nowMs && node.ejectedUntilMs <= nowMs
  const wantsLeader = prefersLeader || readsFrom === 'leader'
  if (wantsLeader && leader && isUsable(leader)) return leader
  const preferred = nodes.filter((node) => (readsFrom === 'any' || node !== leader) && isUsable(node))
  if (preferred.length > 0) return lessBusy(topology, preferred)
  const usable = nodes.filter(isUsable)
  return lessBusy(topology, usable.length > 0 ? usable : nodes.filter(isOpen))
}

/** The less busy of two chosen at random: if all clients chose the idlest node, they would all choose the same one. */
function lessBusy({ world }: Topology, nodes: readonly ShardNode[]): ShardNode | undefined {
  const place = Math.floor(world.random() * nodes.length)
  const other = Math.floor(world.random() * (nodes.length - 1))
  const first = nodes[place]
  const second = nodes[other < place ? other : other + 1]
  return first && second && inFlight(second) < inFlight(first) ? second : first
}

function inFlight({ connections }: ShardNode): number {
  let sum = 0
  for (const { onTheirWay } of connections) sum += onTheirWay.size
  return sum
}

/** A write was sent to a node. While no leader is known, later writes wait for its outcome. */
export function writeSent(topology: Topology, isOut: () => boolean, waitMs: number): void {
  if (topology.isConfirmed) return
  topology.probe = { isOut, untilMs: topology.world.clock.monotonicMs() + waitMs }
}

/** @param code SUCCESS, or the code of the ERROR */
export function nodeAnswered(topology: Topology, connection: Connection, isWrite: boolean, code: string): void {
  const node = topology.nodeOf.get(connection)
  if (!node) return
  node.timeouts = 0
  node.ejections = 0
  if (!isWrite) return readAnswered(topology, node, code)
  if (tellsFate(code)) return confirm(topology, node)
  if (code === '308') node.role = 'follower'
  // 503: no leader known there, a transfer, or it is full. 408: it may have lost leadership.
  if (code === '308' || code === '503' || code === '408') doubt(topology, node)
}

function readAnswered({ world }: Topology, node: ShardNode, code: string): void {
  if (code === '503' || code === '405') node.staleUntilMs = world.clock.monotonicMs() + STALE_MS
  else if (code === 'SUCCESS') node.staleUntilMs = 0
}

/** This node leads. */
export function confirm(topology: Topology, node: ShardNode): void {
  // Already known; or a late reply to a write from before the leader change.
  if (topology.leader && topology.isConfirmed) return
  for (const other of topology.nodes) if (other.role === 'leader') other.role = 'follower'
  node.role = 'leader'
  topology.leader = node
  topology.isConfirmed = true
  topology.rounds = 0
  topology.refusedBy.clear()
  topology.stopPause?.()
  topology.stopPause = undefined
  topology.changed()
}

/** This node does not lead, or not for now. */
function doubt(topology: Topology, node: ShardNode): void {
  if (topology.leader === node) search(topology)
  if (!topology.leader) topology.refusedBy.add(node)
  topology.changed()
}

function search(topology: Topology): void {
  if (topology.leader?.role === 'leader') topology.leader.role = 'unknown'
  topology.leader = undefined
  topology.isConfirmed = false
  topology.onSearch()
}

/** A request had no reply in time. A leader that keeps a write waiting may be cut off from its followers. */
export function nodeSilent(topology: Topology, connection: Connection, isWrite: boolean): void {
  const node = topology.nodeOf.get(connection)
  if (!node) return
  blame(topology, node)
  if (isWrite) doubt(topology, node)
}

function blame({ world }: Topology, node: ShardNode): void {
  if (++node.timeouts < TIMEOUTS_TO_EJECT) return
  node.timeouts = 0
  node.ejectedUntilMs = world.clock.monotonicMs() + Math.min(EJECT_MS_MAX, EJECT_MS_MIN * 2 ** node.ejections++)
}

/** A node of another shard: it receives no further requests. */
export function nodeForeign(topology: Topology, node: ShardNode): void {
  node.isForeign = true
  if (topology.leader === node) search(topology)
}

export function stopTopology(topology: Topology): void {
  topology.stopPause?.()
  topology.stopPause = undefined
}
