/**
 * Leader election: campaigns, votes and the restrictions on granting them (docs/design/consensus.md#elections).
 *
 *               time-out              quorum would          quorum does
 *   follower ───────────► preCandidate ────────► candidate ────────► leader
 *      ▲                       │                     │                 │
 *      └── lost, higher term, another leader ─────────┴── no quorum ────┘
 */

import { assert } from '@vacancy/shared'
import { becomeLeader } from './leader.ts'
import { commitTo, termAt } from './log.ts'
import { isVoter } from './membership.ts'
import type { TimeoutNow, VoteMessage, VoteReply } from './messages.ts'
import { jointTally, type Tally, tally } from './quorum.ts'
import {
  becomeFollower,
  drawTimeout,
  isElectable,
  isUpToDate,
  knowledge,
  promise,
  type Raft,
  send,
  setTerm,
  setVote,
} from './state.ts'

/**
 * Starts a campaign, with a pre-vote first unless pre-votes are off. Does nothing where
 * docs/design/consensus.md#when-a-node-does-not-campaign forbids it.
 */
export function campaign(raft: Raft): void {
  if (raft.role === 'leader' || !mayStand(raft)) return
  if (raft.config.preVote) becomePreCandidate(raft)
  else becomeCandidate(raft, false)
}

/**
 * docs/design/consensus.md#when-a-node-does-not-campaign: not while a configuration that this node has not applied may
 * be in force.
 */
function mayStand(raft: Raft): boolean {
  if (!isElectable(raft) || raft.standsBack || raft.snapshot !== undefined) return false
  return !raft.configurations.some((index) => index <= raft.commit)
}

/** Changes neither term nor vote, so other members are not affected. */
function becomePreCandidate(raft: Raft): void {
  raft.role = 'preCandidate'
  raft.leader = 0
  drawTimeout(raft)
  raft.votes.clear()
  raft.votes.set(raft.id, true)
  if (standing(raft) === 'won') return becomeCandidate(raft, false)
  askForVotes(raft, 'preVote', raft.term + 1, false)
}

function becomeCandidate(raft: Raft, isForced: boolean): void {
  assert(isElectable(raft), 'a learner is never a candidate')
  setTerm(raft, raft.term + 1)
  setVote(raft, raft.id)
  raft.role = 'candidate'
  raft.leader = 0
  drawTimeout(raft)
  raft.votes.clear()
  askForVotes(raft, 'vote', raft.term, isForced)
}

/**
 * docs/design/consensus.md#hand-over: a candidate asks for votes when its own is durable. If a crash could make a leader
 * forget its term, it could lead it once more, with other entries.
 */
function askForVotes(raft: Raft, type: 'preVote' | 'vote', term: number, isForced: boolean): void {
  const { id: from, lastIndex, lastTerm, configuration } = raft
  const known = knowledge(raft)
  const ask = type === 'vote' ? promise : send
  for (const { id } of configuration.members) {
    if (id === from || !isVoter(configuration, id)) continue
    ask(raft, { type, from, to: id, term, lastIndex, lastTerm, isForced, ...known })
  }
}

/** docs/design/consensus.md#hand-over: this node's vote for itself is durable now. */
export function countOwnVote(raft: Raft): void {
  if (raft.role !== 'candidate') return
  assert(raft.vote === raft.id, 'a candidate has voted for itself')
  raft.votes.set(raft.id, true)
  conclude(raft)
}

/** docs/design/consensus.md#votes */
function standing(raft: Raft): Tally {
  const { configuration, votes } = raft
  const { voters, outgoing } = configuration
  return jointTally(tally(voters, votes), tally(outgoing, votes))
}

function conclude(raft: Raft): void {
  const result = standing(raft)
  if (result === 'pending') return
  if (result === 'lost') return becomeFollower(raft, raft.term, 0)
  if (raft.role === 'preCandidate') becomeCandidate(raft, false)
  else becomeLeader(raft)
}

/**
 * The commit position in a vote request or reply: a member that has this entry has all earlier entries, and all of them
 * are committed. A configuration is in force where its entry is applied
 * (docs/design/consensus.md#when-a-configuration-takes-effect), so members may campaign in different configurations. A
 * removed member with a longer log refuses its vote to members that have not applied its removal. Exchanging the commit
 * index resolves that without a leader.
 */
export function learnCommitted(raft: Raft, { commit, commitTerm }: VoteMessage | VoteReply): void {
  if (raft.snapshot || commit <= raft.commit || termAt(raft, commit) !== commitTerm) return
  commitTo(raft, commit)
  if (raft.role === 'leader') raft.mustBroadcast = true
}

/** A node in contact with a leader does not vote to replace it (docs/design/consensus.md#voter-leases). */
export function isLeaseHeld(raft: Raft): boolean {
  if (!raft.config.checkQuorum || raft.leader === 0) return false
  return raft.electionElapsed < raft.config.electionTicks
}

/** docs/design/consensus.md#votes; the term of the message is the current one or, for a pre-vote, a later one. */
export function onVote(raft: Raft, message: VoteMessage): void {
  const { type, from, term } = message
  const isPre = type === 'preVote'
  // Learners answer as well: an entry they have not received may have promoted them (docs/design/consensus.md#votes).
  const isFree = raft.vote === from || (raft.vote === 0 && raft.leader === 0) || (isPre && term > raft.term)
  const isGranted = isFree && isUpToDate(raft, message.lastTerm, message.lastIndex)
  const replyType = isPre ? 'preVoteReply' : 'voteReply'
  const reply: VoteReply = {
    type: replyType,
    from: raft.id,
    to: from,
    // A grant repeats the requested term: it does not change the voter's term.
    term: isGranted ? term : raft.term,
    isGranted,
    ...knowledge(raft),
  }
  if (isGranted && !isPre) {
    // Only a granted real vote resets the election timer (docs/design/consensus.md#votes).
    raft.electionElapsed = 0
    setVote(raft, from)
  }
  promise(raft, reply)
}

export function onVoteReply(raft: Raft, { type, from, term, isGranted }: VoteReply): void {
  const isCandidate = type === 'preVoteReply' ? raft.role === 'preCandidate' : raft.role === 'candidate'
  if (!isCandidate || raft.votes.has(from)) return
  // A pre-vote grant carries the requested term. Grants of earlier rounds no longer count.
  if (type === 'preVoteReply' && isGranted && term !== raft.term + 1) return
  raft.votes.set(from, isGranted)
  conclude(raft)
}

/**
 * The leader transfers leadership: no pre-vote, and voters ignore their lease
 * (docs/design/consensus.md#leadership-transfer).
 */
export function onTimeoutNow(raft: Raft, _message: TimeoutNow): void {
  if (raft.role === 'follower' && mayStand(raft)) becomeCandidate(raft, true)
}
