/**
 * The time before a node is a member: it tells the nodes it knows where it stands until they found a shard together or
 * one takes it in (consensus.md §16.4, §7.2). formation.ts decides; here are the timers and the frames.
 */

import type { Env } from '../env.ts'
import type { Configuration } from '../raft/messages.ts'
import {
  beginQuiet,
  type Decision,
  decide,
  type Formation,
  type FormationReport,
  isQuiet,
  knownNodes,
  onPeer,
  onPeerLost,
  REMOVED,
  REPORT_EVERY_MS,
  refusalOf,
  reportFor,
  tellWaiting,
} from './formation.ts'
import type { PeerFrame } from './frames.ts'
import { type Peers, refusePeer, sendFrame, wantPeers } from './peers.ts'

export type Gathering = {
  readonly env: Env
  readonly peers: Peers
  readonly formation: Formation
  /** Nodes of `--seed`, looked for beside those that are known. */
  readonly seeds: readonly string[]
  stop(): void
}

type Phase = {
  onRound(): void
  onFrame(peer: string, frame: PeerFrame): void
}

/** Answers and sends reports once a second until it is stopped. */
function gather(env: Env, peers: Peers, formation: Formation, seeds: readonly string[], phase: Phase): Gathering {
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
        const { type: _type, ...heard } = frame
        turnAway(peers, formation, peer, heard)
        if (onPeer(formation, peer, heard, env.clock.monotonicMs())) report(peers, formation, peer)
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

/** Says and counts that a node does not belong here; formation.ts does not count it. */
export function turnAway(peers: Peers, formation: Formation, peer: string, heard: FormationReport): void {
  const refusal = refusalOf(formation, heard)
  if (refusal !== '') refusePeer(peers, peer, 'formation', refusal)
}

export function report(peers: Peers, formation: Formation, node: string): void {
  if (isQuiet(formation)) return
  sendFrame(peers, node, { type: 'formation', ...reportFor(formation, node) })
}

/**
 * Waits until the nodes that are heard allow a decision.
 *
 * @param hasSeed whether a snapshot that this node can found its shard with has come into its folder
 */
export function startGathering(
  env: Env,
  peers: Peers,
  formation: Formation,
  seeds: readonly string[],
  onDecision: (decision: Exclude<Decision, { kind: 'wait' }>) => void,
  hasSeed: () => boolean = () => false,
): Gathering {
  const round = () => {
    if (isOver) return
    if (formation.held.state === 'empty' && !isQuiet(formation) && hasSeed()) {
      beginQuiet(formation, env.clock.monotonicMs())
      env.log.info({}, 'a snapshot came into the folder: this node will found its shard with it')
    }
    look()
  }
  const look = () => {
    const nowMs = env.clock.monotonicMs()
    const decision = decide(formation, nowMs)
    if (decision.kind !== 'wait') {
      gathering.stop()
      // Reports are answered as before until the next phase takes over.
      return onDecision(decision)
    }
    const told = tellWaiting(formation, nowMs)
    if (told) env.log.info(told.fields, told.message)
  }
  let isOver = false
  const once = () => {
    if (!isOver) look()
  }
  const gathering = gather(env, peers, formation, seeds, { onRound: round, onFrame: once })
  const { stop } = gathering
  gathering.stop = () => {
    isOver = true
    stop()
  }
  return gathering
}

export type Joined = { readonly member: number; readonly configuration: Configuration }

/** Asks whoever leads to be taken in, once a second, until it is (§7.1, §7.2). */
export function startJoining(
  env: Env,
  peers: Peers,
  formation: Formation,
  seeds: readonly string[],
  onJoined: (joined: Joined) => void,
): Gathering {
  let isOver = false
  let told = ''
  const ask = () => {
    if (isOver) return
    const leader = leaderHeard(formation, env.clock.monotonicMs())
    if (leader === undefined) return tell('it waits for the leader of its shard, to be taken in', {})
    askToJoin(peers, formation, leader)
  }
  const tell = (message: string, fields: object) => {
    if (told === message) return
    told = message
    env.log.info(fields, message)
  }
  const gathering = gather(env, peers, formation, seeds, {
    onRound: ask,
    onFrame(peer, frame) {
      if (isOver) return
      // It says that it is no member while it is being made one.
      if (frame.type === 'refused' && frame.reason !== REMOVED)
        tell(`${peer} does not take this node in: ${frame.reason} ${frame.detail}`.trim(), {})
      if (frame.type !== 'joined') return
      isOver = true
      gathering.stop()
      onJoined({ member: frame.member, configuration: frame.configuration })
    },
  })
  return gathering
}

/** Sent again until the node is what it is to be: taken in, and a voter where it is named as one. */
export function askToJoin(peers: Peers, formation: Formation, leader: string): void {
  const { self: node, incarnation, voters } = formation
  if (leader === node) return
  wantPeers(peers, [...knownNodes(formation), leader])
  sendFrame(peers, leader, { type: 'join', node, incarnation, isInitialVoter: voters.includes(node) })
}

/** Who leads the shard that this node is of, by what formed nodes said lately. */
export function leaderHeard(formation: Formation, nowMs: number): string | undefined {
  const { held } = formation
  let newest: { leader: string; atMs: number } | undefined
  for (const { report: heard, atMs, isOpen } of formation.heard.values()) {
    if (heard.state !== 'formed' || heard.leader === '' || !isOpen || nowMs - atMs > 3 * REPORT_EVERY_MS) continue
    if (held.state === 'formed' && heard.clusterId !== held.clusterId) continue
    if (!newest || atMs > newest.atMs) newest = { leader: heard.leader, atMs }
  }
  return newest?.leader
}
