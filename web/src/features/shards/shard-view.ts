/** What the page of a shard makes of what is known of it: sentences, candidates, who says what. Pure. */

import type { NodeView, ShardView } from '@vacancy/shared/contract'
import { counted, duration } from '../../lib/format.ts'

/** Why leadership cannot be transferred now, in a sentence; undefined when it can be planned. */
export function whyNoTransfer(shard: ShardView): string | undefined {
  if (shard.mode === 'standalone') return 'Nothing to transfer: a standalone node has no copies'
  if (shard.leader === null) return 'Nothing to transfer: no leader'
  if (shard.nodes.every((node) => node.id === shard.leader || node.voter === false)) {
    return 'Nobody to transfer to: there is no other voter'
  }
  return undefined
}

/**
 * Who should lead next when nobody is named: a voter that is not the leader, answers, is worst in nothing and has the
 * shortest lag. The plan checks it like any other.
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

export type LeaderWord = { readonly node: string; readonly names: string | null }

/**
 * Who says who leads. Nodes agree when all that say something name one and the same; '' is a node that knows none, null
 * one that did not say.
 */
export function leaderWords(shard: ShardView): { readonly words: readonly LeaderWord[]; readonly agree: boolean } {
  const words = shard.nodes.map((node) => ({
    node: node.id,
    names: node.freshness === 'live' || node.freshness === 'delayed' ? node.namesLeader : null,
  }))
  const said = new Set(words.map((word) => word.names).filter((names) => names !== null))
  return { words, agree: said.size <= 1 }
}

export type Trouble = {
  readonly title: string
  readonly causes: string
}

/** What usually brings a shard into a state in which it does not write; undefined in all others. */
export function troubleOf(shard: ShardView): Trouble | undefined {
  switch (shard.state) {
    case 'no-leader':
    case 'electing':
      return {
        title: shard.state === 'electing' ? 'Electing a leader' : 'No leader',
        causes:
          'Usually voters do not reach each other (a network that drops packets, a firewall, a certificate that ran out), or their clocks of elections are set alike and votes split again and again.',
      }
    case 'quorum-lost':
      return {
        title: 'Quorum lost',
        causes:
          'Too few voters answer for anything to be decided. Start the nodes named below, or bring their network back: the shard goes on by itself. Until then it cannot write, and members cannot change.',
      }
    case 'forming':
      return {
        title: 'Forming',
        causes:
          'An empty shard forms once its founders are up and see each other, or once it is told to form with fewer.',
      }
    case 'unknown':
      return {
        title: 'No node answers',
        causes:
          'None of its nodes answered this control plane. Either all of them are down, or the way from here to them is: their addresses and last errors stand below.',
      }
    default:
      return undefined
  }
}

/** How many voters more may fail, or how many have to come back. */
export function spareSays({ spare, voters, votersUp, majority }: ShardView): string {
  if (votersUp < majority) return `needs ${majority - votersUp} more of ${voters} voters`
  return (spare ?? 0) > 0 ? `can lose ${spare} of ${voters}` : `cannot lose another of ${voters}`
}

/** What has to happen before there is a leader. */
export function waitSays({ votersUp, majority, electionTimeoutMs }: ShardView): string {
  if (votersUp >= majority) {
    return `A new leader is usually chosen within one election timeout, ${duration(electionTimeoutMs)}.`
  }
  return `No leader can be chosen until ${counted(majority - votersUp, 'more voter')} ${majority - votersUp === 1 ? 'answers' : 'answer'}.`
}

/** Of the voters that answer, the one whose log is furthest; undefined when none can be elected. */
export function bestCandidate(shard: ShardView): string | undefined {
  if (shard.votersUp < shard.majority) return undefined
  const isUp = ({ freshness }: ShardView['nodes'][number]) => freshness === 'live' || freshness === 'delayed'
  const voters = shard.nodes.filter((node) => node.voter !== false && node.lastIndex !== null && isUp(node))
  const [best] = voters.toSorted(
    (a, b) => (b.lastIndex ?? 0) - (a.lastIndex ?? 0) || (b.term ?? 0) - (a.term ?? 0) || (a.id < b.id ? -1 : 1),
  )
  return best?.id
}

/** A shard and its nodes as plain text, for a ticket or a terminal. */
export function shardText(shard: ShardView, at: string): string {
  const lines = shard.nodes.map((node) => {
    const lag = node.lagEntries === null ? 'lag not told' : `lag ${node.lagEntries}`
    const seen = node.answeredAt === null ? 'never answered' : `answered ${node.answeredAt}`
    return `  ${node.id}  ${node.role}${node.voter === false ? '' : ' (voter)'}  ${node.message}  ${lag}  ${seen}`
  })
  const leader = shard.leader === null ? 'no leader' : `leader ${shard.leader} since ${shard.leaderSince ?? 'not told'}`
  return [
    `${shard.id}: ${shard.message}`,
    `  zone ${shard.zone}, ${leader}, term ${shard.term ?? 'not told'}, state since ${shard.since}`,
    ...(shard.waitsFor === '' ? [] : [`  waits for: ${shard.waitsFor}`]),
    ...lines,
    `  as seen at ${at}`,
  ].join('\n')
}
