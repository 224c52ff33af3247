/**
 * The nodes of a shard as a client sees them: who leads, and who answers reads (platform.md §1.7, §1.8, §4.3).
 *
 *   leader unknown ── a write is executed, or the API says so ──► leader known
 *        ▲                                                            │
 *        └── 308, 503 or 408 to a write, silence, no connection ──────┘
 *
 * What is believed here is a hint and never more: a node that does not lead refuses a write before it is in any log, so
 * being wrong costs a round trip. While no leader is known, one write at a time finds it out, node by node; the others
 * wait and keep their order. When all nodes have refused, the next round comes after a pause.
 *
 * Reads go to the nodes that do not lead, the less busy of two drawn at random; a node that refused one as stale, or let
 * several wait, is passed over for a while, unless nobody else is left.
 */

import type { Address, Connection } from './connection.ts'
import { searchDelayMs, tellsFate } from './retry.ts'
import type { World } from './world.ts'

/** Where reads go: to the others while there are any, to all, or to the leader. */
export type ReadsFrom = 'followers' | 'any' | 'leader'

export type ShardNode = {
  readonly address: Address
  /** Base of its HTTP API; undefined: nothing is asked there. */
  readonly api: string | undefined
  readonly connections: Set<Connection>
  role: 'leader' | 'follower' | 'unknown'
  /** It belongs to another shard, as its API says: not one request goes there. */
  isForeign: boolean
  /** Reads go elsewhere until then. */
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
  /** It has executed a write, or said that it leads: writes go out without waiting for one another. */
  isConfirmed: boolean
  /** Refused a write since the search for a leader began. */
  readonly refusedBy: Set<ShardNode>
  rounds: number
  stopPause: (() => void) | undefined
  /** The write that finds out who leads. */
  probe: { readonly isOut: () => boolean; readonly untilMs: number } | undefined
  /** Calls that wait may have somewhere to go. */
  changed: () => void
  /** The leader is not known any more. */
  onSearch: () => void
}

/** What of a call matters for where it goes. */
export type Routed = {
  readonly isWrite: boolean
  /** A node has said that the leader can answer it. */
  readonly prefersLeader: boolean
}

/** A node that refused a read is passed over this long; it may have caught up by then. */
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

/** @returns the node that may take the call now; undefined: it waits, and `changed` says when to ask again */
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

/** All have refused: the next round begins a little later. */
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
  const open = nodes.filter(isOpen)
  const usable = open.filter(({ staleUntilMs, ejectedUntilMs }) => staleUntilMs <= nowMs && ejectedUntilMs <= nowMs)
  const wantsLeader = prefersLeader || readsFrom === 'leader'
  if (wantsLeader && leader && usable.includes(leader)) return leader
  const preferred = readsFrom === 'any' ? usable : usable.filter((node) => node !== leader)
  return lessBusy(topology, [preferred, usable, open].find((some) => some.length > 0) ?? [])
}

/** Of two drawn at random: all clients that took the idlest would meet at the same one. */
function lessBusy({ world }: Topology, nodes: readonly ShardNode[]): ShardNode | undefined {
  const first = nodes[Math.floor(world.random() * nodes.length)]
  const others = nodes.filter((node) => node !== first)
  const second = others[Math.floor(world.random() * others.length)]
  return first && second && inFlight(second) < inFlight(first) ? second : first
}

function inFlight({ connections }: ShardNode): number {
  let sum = 0
  for (const { onTheirWay } of connections) sum += onTheirWay.size
  return sum
}

/** A write has left for a node; while no leader is known, those behind it wait for what becomes of it. */
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
  // 503: no leader there, or it hands on or is full. 408: it may have lost its office.
  if (code === '308' || code === '503' || code === '408') doubt(topology, node)
}

function readAnswered({ world }: Topology, node: ShardNode, code: string): void {
  if (code === '503' || code === '405') node.staleUntilMs = world.clock.monotonicMs() + STALE_MS
  else if (code === 'SUCCESS') node.staleUntilMs = 0
}

/** This node leads. */
export function confirm(topology: Topology, node: ShardNode): void {
  // Known; or the answer to a write of before the leader changed, which came late.
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

/** A request had no answer in time. A leader that lets a write wait may be cut off from its followers. */
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

/** A node of another shard: it is not asked for anything again. */
export function nodeForeign(topology: Topology, node: ShardNode): void {
  node.isForeign = true
  if (topology.leader === node) search(topology)
}

export function stopTopology(topology: Topology): void {
  topology.stopPause?.()
  topology.stopPause = undefined
}
