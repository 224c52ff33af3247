/** Status that a member reports about itself and its shard. */

import { formatDay } from '@vacancy/shared'
import { knownNodes } from '../bootstrap/formation.ts'
import { isVoter } from '../raft/membership.ts'
import { type ClusterStatus, type FinishedOperation, type MemberStatus, OPERATIONS_KEPT } from '../status.ts'
import { loadOperationOf } from './bulk-load-coordinator.ts'
import { isClockSuspect } from './clock-samples.ts'
import { timeText } from './keep-time.ts'
import { awaitedLoadOf, isReady, type Member, nameOf, nodesOf } from './member-state.ts'
import { operationsOf } from './membership.ts'
import { installStatusOf } from './transfer.ts'

/** The last time an operator set shard time, as every member knows it from the log. */
function setTimes({ replica, cluster }: Member): FinishedOperation[] {
  const last = replica.machine.time.lastSet()
  if (!last) return []
  const { fromMs, toMs, importNights: nights } = last
  const needs = nights ? `; nights ${formatDay(nights.from)} to ${formatDay(nights.end - 1)} need a new import` : ''
  const reason = `from ${timeText(fromMs)} to ${timeText(toMs)}${needs}`
  return [{ kind: 'set-time', node: cluster.shardId, result: 'done', reason, atMs: toMs }]
}

/** Membership changes and loads in one list. */
function allOperations(member: Member): ReturnType<typeof operationsOf> {
  const { membership, loads } = member
  const { operation, lastOperations } = operationsOf(membership)
  return {
    operation: operation ?? loadOperationOf(loads),
    lastOperations: [...lastOperations, ...loads.finished, ...setTimes(member)]
      .sort((a, b) => b.atMs - a.atMs)
      .slice(0, OPERATIONS_KEPT),
  }
}

export function clusterStatus(member: Member): ClusterStatus {
  const { replica, env, reads, membership, receiver, sender, loads } = member
  const { raft } = replica
  const now = env.clock.monotonicMs()
  const { configuration } = raft
  return {
    nodeId: member.node,
    zoneId: member.zoneId,
    clusterId: member.cluster.clusterId,
    role: ownRole(member),
    term: raft.term,
    leader: nameOf(configuration, raft.leader),
    isLeading: isReady(member),
    members: configuration.members.map(({ id, node }) => memberStatus(member, id, node)),
    isJoint: configuration.outgoing.length > 0,
    isRemoved: member.isRemoved,
    peers: [...new Set([...nodesOf(configuration), ...knownNodes(member.formation), ...member.dialled])]
      .filter((node) => node !== member.node)
      .sort(),
    stalenessMs: reads.freshMs === Number.NEGATIVE_INFINITY ? undefined : Math.max(0, now - reads.freshMs),
    bootstrap: undefined,
    installing: installStatusOf(receiver),
    awaitedLoad: awaitedLoadOf(member),
    ...allOperations(member),
    operationsEnded: {
      done: membership.ended.done + loads.ended.done,
      failed: membership.ended.failed + loads.ended.failed,
    },
    isClockSuspect: isClockSuspect(member),
    transport: member.transportCounts(),
    elections: member.elections,
    leaderChanges: replica.leaderChanges,
    proposals: replica.outcomes,
    tickStalls: member.stalls,
    transfers: {
      sending: sender.outgoing.size,
      receiving: receiver.incoming ? 1 : 0,
      sent: sender.sent,
      received: receiver.received,
      failed: sender.failed + receiver.failed,
      durationMs: sender.lastDurationMs,
      loadMs: undefined,
      writePauseMs: undefined,
    },
  }
}

function ownRole({ replica: { raft } }: Member): ClusterStatus['role'] {
  if (raft.role === 'leader' || raft.role === 'follower') {
    return raft.configuration.learners.includes(raft.id) ? 'learner' : raft.role
  }
  return 'candidate'
}

function memberStatus(member: Member, id: number, node: string): MemberStatus {
  const { replica, samples, env } = member
  const { raft } = replica
  const peer = raft.peers.find((each) => each.id === id)
  const isVoting = isVoter(raft.configuration, id)
  const isSelf = id === raft.id
  const leads = raft.leader === id
  const base = {
    id: node,
    isVoter: isVoting,
    role: isSelf
      ? ownRole(member)
      : leads
        ? ('leader' as const)
        : isVoting
          ? ('follower' as const)
          : ('learner' as const),
    host: member.hostOf(node),
    roundTrip: undefined,
  }
  if (isSelf) {
    return { ...base, health: 'active', progress: undefined, matchIndex: raft.lastIndex, lagEntries: 0, lagMs: 0 }
  }
  if (!peer) {
    return {
      ...base,
      health: 'unknown',
      progress: undefined,
      matchIndex: undefined,
      lagEntries: undefined,
      lagMs: undefined,
    }
  }
  const sample = samples.get(id)
  const silentMs = sample ? env.clock.monotonicMs() - sample.receivedMs : Number.POSITIVE_INFINITY
  const isReachable = silentMs <= member.electionTicks * member.tickMs
  const health = peer.state === 'snapshot' ? 'installing' : isReachable ? 'active' : 'inactive'
  const lagEntries = Math.max(0, raft.commit - peer.match)
  return {
    ...base,
    health,
    progress: peer.state,
    matchIndex: peer.match,
    lagEntries,
    lagMs: lagEntries === 0 ? 0 : undefined,
  }
}
