/**
 * Finds the leader through the HTTP API of the nodes (docs/design/protocol.md#clients): the node that reports itself
 * as leader and that most of the responding nodes name. Polled every two seconds, and at once when no leader is
 * known. Without API addresses, the leader is found only through replies to writes.
 */

import type { ConnectionOptions } from 'node:tls'
import { confirm, nodeForeign, type ShardNode, STALE_MS, type Topology } from './topology.ts'

const LOOK_EVERY_MS = 2_000
/** Minimum interval between two searches for a leader. */
const LOOK_AGAIN_MS = 100
const ANSWER_MS = 2_000

export type Discovery = {
  readonly topology: Topology
  readonly how: { readonly token: string | undefined; readonly tls: ConnectionOptions | undefined }
  /** Of the first node, in option order, that reported it. */
  shardId: string | undefined
  isLooking: boolean
  isWanted: boolean
  isStopped: boolean
  lastLookMs: number
  stopTimer: () => void
}

type Report = {
  readonly node: ShardNode
  readonly health: string
  readonly nodeId: string
  readonly leaderId: string
  readonly shardId: string
}

/** Starts polling, if a node has an API address. */
export function startDiscovery(topology: Topology, how: Discovery['how']): Discovery {
  const discovery: Discovery = {
    topology,
    how,
    shardId: undefined,
    isLooking: false,
    isWanted: false,
    isStopped: !topology.nodes.some(({ api }) => api !== undefined),
    lastLookMs: Number.NEGATIVE_INFINITY,
    stopTimer: () => {},
  }
  topology.onSearch = () => lookSoon(discovery)
  lookSoon(discovery)
  return discovery
}

export function stopDiscovery(discovery: Discovery): void {
  discovery.isStopped = true
  discovery.stopTimer()
}

function lookSoon(discovery: Discovery): void {
  if (discovery.isStopped) return
  // Never two polls at once: a poll in progress may have sent its requests before the change.
  if (discovery.isLooking) discovery.isWanted = true
  else lookAfter(discovery, discovery.lastLookMs + LOOK_AGAIN_MS - discovery.topology.world.clock.monotonicMs())
}

function lookAfter(discovery: Discovery, ms: number): void {
  const { world } = discovery.topology
  discovery.stopTimer()
  discovery.stopTimer = world.after(Math.max(0, ms), () => void look(discovery))
}

async function look(discovery: Discovery): Promise<void> {
  const { topology } = discovery
  discovery.isLooking = true
  discovery.isWanted = false
  discovery.lastLookMs = topology.world.clock.monotonicMs()
  const reports = await Promise.all(topology.nodes.map((node) => ask(discovery, node)))
  discovery.isLooking = false
  if (discovery.isStopped) return
  learn(
    discovery,
    reports.filter((report) => report !== undefined),
  )
  if (discovery.isWanted && !topology.leader) lookSoon(discovery)
  else lookAfter(discovery, LOOK_EVERY_MS)
}

async function ask({ topology, how }: Discovery, node: ShardNode): Promise<Report | undefined> {
  const { api } = node
  if (api === undefined) return undefined
  const get = (path: string) => topology.world.getText(new URL(path, api), { ...how, answerMs: ANSWER_MS })
  try {
    const [health, info] = await Promise.all([get('/healthz'), get('/node-info')])
    const { node_id: nodeId, leader_id: leaderId, shard_id: shardId } = JSON.parse(info)
    return {
      node,
      health: health.trim(),
      nodeId: textOf(nodeId),
      // Missing or null while unknown.
      leaderId: textOf(leaderId),
      shardId: textOf(shardId),
    }
  } catch {
    // The node does not respond, or is not a Vacancy node. Its connection will show that, and the other nodes are
    // polled as well.
    return undefined
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function learn(discovery: Discovery, reports: readonly Report[]): void {
  const { topology } = discovery
  const ours = reports.filter((report) => isOurs(discovery, report))
  const nowMs = topology.world.clock.monotonicMs()
  for (const { node, health } of ours) {
    if (health === 'active_follower') node.role = 'follower'
    if (health === 'unavailable') node.staleUntilMs = nowMs + LOOK_EVERY_MS + STALE_MS
  }
  const named = mostNamed(ours)
  const leader = ours.find(({ nodeId, health }) => nodeId === named && health === 'active_leader')
  // A leader that executes writes needs no confirmation, least of all from a node with outdated information.
  if (leader && !topology.isConfirmed) confirm(topology, leader.node)
}

function isOurs(discovery: Discovery, { node, shardId }: Report): boolean {
  discovery.shardId ??= shardId === '' ? undefined : shardId
  if (shardId === '' || shardId === discovery.shardId) return true
  nodeForeign(discovery.topology, node)
  return false
}

/** The leader named most often. Nodes that know none do not vote. */
function mostNamed(reports: readonly Report[]): string {
  const votes = new Map<string, number>()
  for (const { leaderId } of reports) if (leaderId !== '') votes.set(leaderId, (votes.get(leaderId) ?? 0) + 1)
  return [...votes].sort(([, a], [, b]) => b - a)[0]?.[0] ?? ''
}
