/**
 * The phase before a node is a member: it exchanges reports with the nodes it knows until they found a shard together
 * or a shard admits it (docs/design/consensus.md#formation, docs/design/consensus.md#joining). formation.ts decides.
 * This file has the timers and the frames.
 */

import type { Env } from '../env.ts'
import type { Configuration } from '../raft/messages.ts'
import type { FormationReport } from '../transport/formation-report.ts'
import type { PeerFrame } from '../transport/frames.ts'
import { type Peers, refusePeer, sendFrame, wantPeers } from '../transport/peers.ts'
import {
  beginQuiet,
  type Decision,
  decide,
  describeWaiting,
  type Formation,
  isQuiet,
  knownNodes,
  onPeer,
  onPeerLost,
  REMOVED,
  REPORT_EVERY_MS,
  raftIdOf,
  refusalOf,
  reportFor,
} from './formation.ts'

export type Bootstrap = {
  readonly env: Env
  readonly peers: Peers
  readonly formation: Formation
  /** Nodes of `--seed`, dialled in addition to the known ones. */
  readonly seeds: readonly string[]
  stop(): void
}

type Phase = {
  onRound(): void
  onFrame(peer: string, frame: PeerFrame): void
}

/** Replies to reports and sends them once a second until it is stopped. */
function exchangeReports(
  env: Env,
  peers: Peers,
  formation: Formation,
  seeds: readonly string[],
  phase: Phase,
): Bootstrap {
  let cancel: () => void = () => undefined
  const round = () => {
    cancel = env.schedule.after(REPORT_EVERY_MS, round)
    const nodes = [...knownNodes(formation), ...seeds]
    wantPeers(peers, nodes)
    for (const node of new Set(nodes)) if (node !== peers.self) report(peers, formation, node)
    phase.onRound()
  }
  peers.handler = {
    onFrame(peer, frame) {
      if (frame.type === 'formation') {
        const { type: _type, ...received } = frame
        refuseForeign(peers, formation, peer, received)
        if (onPeer(formation, peer, received, env.clock.monotonicMs())) report(peers, formation, peer)
      }
      phase.onFrame(peer, frame)
    },
    onOpen: (peer, stream) => {
      if (stream === 'control') report(peers, formation, peer)
    },
    onClosed: (peer, stream) => {
      if (stream === 'control') onPeerLost(formation, peer)
    },
  }
  cancel = env.schedule.after(0, round)
  return { env, peers, formation, seeds, stop: () => cancel() }
}

/** Refuses a node that does not belong to this shard and counts it; formation.ts does not count it. */
export function refuseForeign(peers: Peers, formation: Formation, peer: string, received: FormationReport): void {
  const refusal = refusalOf(formation, received)
  if (refusal !== '') refusePeer(peers, peer, 'formation', refusal)
}

export function report(peers: Peers, formation: Formation, node: string): void {
  if (isQuiet(formation)) return
  sendFrame(peers, node, { type: 'formation', ...reportFor(formation, node) })
}

/**
 * Waits until the received reports allow a decision.
 *
 * @param hasSeed whether a snapshot that this node can found its shard with has arrived in its folder
 */
export function startBootstrap(
  env: Env,
  peers: Peers,
  formation: Formation,
  seeds: readonly string[],
  onDecision: (decision: Exclude<Decision, { kind: 'wait' }>) => void,
  hasSeed: () => boolean = () => false,
): Bootstrap {
  const round = () => {
    if (isOver) return
    if (formation.held.state === 'empty' && !isQuiet(formation) && hasSeed()) {
      beginQuiet(formation, env.clock.monotonicMs())
      env.log.info({}, 'snapshot found in the folder, founding the shard with it')
    }
    look()
  }
  const look = () => {
    const nowMs = env.clock.monotonicMs()
    const decision = decide(formation, nowMs)
    if (decision.kind !== 'wait') {
      bootstrap.stop()
      // Reports get replies until the next phase takes over.
      return onDecision(decision)
    }
    const logged = describeWaiting(formation, nowMs)
    if (logged) env.log.info(logged.fields, logged.message)
  }
  let isOver = false
  const once = () => {
    if (!isOver) look()
  }
  const bootstrap = exchangeReports(env, peers, formation, seeds, { onRound: round, onFrame: once })
  const { stop } = bootstrap
  bootstrap.stop = () => {
    isOver = true
    stop()
  }
  return bootstrap
}

export type Joined = { readonly member: number; readonly configuration: Configuration }

/** Sends a join request to the leader once a second until the node is admitted. */
export function startJoining(
  env: Env,
  peers: Peers,
  formation: Formation,
  seeds: readonly string[],
  onJoined: (joined: Joined) => void,
): Bootstrap {
  let isOver = false
  let logged = ''
  const ask = () => {
    if (isOver) return
    const leader = reportedLeader(formation, env.clock.monotonicMs())
    if (leader === undefined) return log('waiting for the leader of the shard to admit this node', {})
    requestJoin(peers, formation, leader)
  }
  const log = (message: string, fields: object) => {
    if (logged === message) return
    logged = message
    env.log.info(fields, message)
  }
  const bootstrap = exchangeReports(env, peers, formation, seeds, {
    onRound: ask,
    onFrame(peer, frame) {
      if (isOver) return
      // The leader refuses frames of a non-member until it is admitted.
      if (frame.type === 'refused' && frame.reason !== REMOVED)
        log(`${peer} did not admit this node: ${frame.reason} ${frame.detail}`.trim(), {})
      if (frame.type !== 'joined' || !isAddressee(formation, frame)) return
      isOver = true
      bootstrap.stop()
      onJoined({ member: frame.member, configuration: frame.configuration })
    },
  })
  return bootstrap
}

/** A reply to an earlier incarnation of this node may arrive late. */
export function isAddressee({ self: node, incarnation }: Formation, { member, configuration }: Joined): boolean {
  return raftIdOf(configuration, { node, incarnation, isFounder: false }) === member
}

/** Repeated until the node is admitted, and is a voter if it is an initial voter. */
export function requestJoin(peers: Peers, formation: Formation, leader: string): void {
  const { self: node, incarnation, voters } = formation
  if (leader === node) return
  wantPeers(peers, [...knownNodes(formation), leader])
  sendFrame(peers, leader, { type: 'join', node, incarnation, isInitialVoter: voters.includes(node) })
}

/** The leader of this node's shard according to recent reports of formed nodes. */
export function reportedLeader(formation: Formation, nowMs: number): string | undefined {
  const { held } = formation
  let newest: { leader: string; atMs: number } | undefined
  for (const { report: received, atMs, isOpen } of formation.reports.values()) {
    if (received.state !== 'formed' || received.leader === '' || !isOpen || nowMs - atMs > 3 * REPORT_EVERY_MS) continue
    if (held.state === 'formed' && received.clusterId !== held.clusterId) continue
    if (!newest || atMs > newest.atMs) newest = { leader: received.leader, atMs }
  }
  return newest?.leader
}
