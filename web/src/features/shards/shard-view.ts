/** Derived data of the shard page: sentences, candidates, leader reports. Pure. */

import type { NodeView, ShardView } from '@vacancy/shared/contract'
import { duration } from '../../lib/format.ts'
import * as copy from './shard-copy.ts'

/** Why leadership cannot be transferred now; undefined when it can. */
export function whyNoTransfer(shard: ShardView): string | undefined {
  if (shard.mode === 'standalone') return copy.transfer.standalone
  if (shard.leader === null) return copy.transfer.noLeader
  if (shard.nodes.every((node) => node.id === shard.leader || node.voter === false)) {
    return copy.transfer.noOtherVoter
  }
  return undefined
}

/**
 * The default target of a transfer: among the other voters the healthiest with the shortest lag. The plan checks it like
 * any other.
 */
export function bestTarget(shard: ShardView): string | undefined {
  const order = ['ok', 'info', 'warn', 'unk', 'crit']
  const others = shard.nodes.filter((node) => node.id !== shard.leader && node.voter !== false)
  const [best] = others.toSorted(
    (a, b) => order.indexOf(a.level) - order.indexOf(b.level) || lagOf(a) - lagOf(b) || (a.id < b.id ? -1 : 1),
  )
  return best?.id
}

function lagOf(node: NodeView): number {
  return node.lagEntries ?? Number.POSITIVE_INFINITY
}

export type LeaderReport = { readonly node: string; readonly names: string | null }

/**
 * The leader that each node reports: '' for none, null without a recent report. Nodes agree when all reports are the same.
 */
export function leaderReports(shard: ShardView): {
  readonly reports: readonly LeaderReport[]
  readonly agree: boolean
} {
  const reports = shard.nodes.map((node) => ({
    node: node.id,
    names: node.freshness === 'live' || node.freshness === 'delayed' ? node.namesLeader : null,
  }))
  const leaders = new Set(reports.map((report) => report.names).filter((names) => names !== null))
  return { reports, agree: leaders.size <= 1 }
}

export type Trouble = {
  readonly title: string
  /** What does not work until it is over. */
  readonly effect: string
  readonly causes: string
}

/** Title and usual causes of a state without writes; undefined in other states. */
export function troubleOf(shard: ShardView): Trouble | undefined {
  switch (shard.state) {
    case 'no-leader':
    case 'electing':
      return {
        title: shard.state === 'electing' ? copy.trouble.electing : copy.trouble.noLeader,
        effect: copy.trouble.noWrites,
        causes: copy.trouble.noLeaderCauses,
      }
    case 'quorum-lost':
      return { title: copy.trouble.quorumLost, effect: copy.trouble.noWrites, causes: copy.trouble.quorumLostCauses }
    case 'forming':
      return { title: copy.trouble.forming, effect: '', causes: copy.trouble.formingCauses }
    case 'unknown':
      return { title: copy.trouble.unknown, effect: '', causes: copy.trouble.unknownCauses }
    default:
      return undefined
  }
}

/** How many more voters may fail, or how many must come back. */
export function spareText({ spare, voters, votersUp, majority }: ShardView): string {
  if (votersUp < majority) return copy.spare.needs(majority - votersUp, voters)
  return (spare ?? 0) > 0 ? copy.spare.canLose(spare, voters) : copy.spare.cannotLose(voters)
}

/** What an election waits for. */
export function electionText({ votersUp, majority, electionTimeoutMs }: ShardView): string {
  if (votersUp >= majority) {
    return copy.trouble.election(duration(electionTimeoutMs))
  }
  return copy.trouble.waiting(majority - votersUp)
}

const AWAY: readonly NodeView['state'][] = ['unreachable', 'not-answering', 'cores-changed', 'unavailable', 'unknown']

/** Voters without which the shard has no majority. */
export function votersAway(shard: ShardView): readonly NodeView[] {
  return shard.nodes.filter((node) => node.voter !== false && AWAY.includes(node.state))
}

/** Of the voters that respond, the one with the longest log: it wins an election once a majority can vote. */
export function bestCandidate(shard: ShardView): NodeView | undefined {
  const isUp = ({ freshness, state }: NodeView) =>
    (freshness === 'live' || freshness === 'delayed') && !AWAY.includes(state)
  const voters = shard.nodes.filter((node) => node.voter !== false && node.lastIndex !== null && isUp(node))
  const [best] = voters.toSorted(
    (a, b) => (b.lastIndex ?? 0) - (a.lastIndex ?? 0) || (b.term ?? 0) - (a.term ?? 0) || (a.id < b.id ? -1 : 1),
  )
  return best
}

/** A shard and its nodes as plain text, for a ticket or a terminal. */
export function shardText(shard: ShardView, at: string): string {
  const lines = shard.nodes.map((node) => {
    const lag = node.lagEntries === null ? copy.summary.lagUnknown : copy.summary.lag(node.lagEntries)
    const seen = node.answeredAt === null ? copy.summary.neverResponded : copy.summary.lastResponse(node.answeredAt)
    return `  ${node.id}  ${node.role}${node.voter === false ? '' : copy.summary.voter}  ${node.message}  ${lag}  ${seen}`
  })
  const leader = shard.leader === null ? copy.shard.noLeader : copy.summary.leader(shard.leader, shard.leaderSince)
  return [
    `${shard.id}: ${shard.message}`,
    `  ${copy.summary.place(shard.zone, leader, shard.term, shard.since)}`,
    ...(shard.waitsFor === '' ? [] : [`  ${copy.summary.waitsFor(shard.waitsFor)}`]),
    ...lines,
    `  ${copy.summary.at(at)}`,
  ].join('\n')
}
