/** Rules of docs/design/consensus.md that the core breaks. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile = 'mixed') => simulated('core', profile)

const inRaft = inFolder('engine/src/raft')

export const RAFT_DEFECTS: readonly Defect[] = [
  ...inRaft(by('elections'), {
    // Votes leave and count before they are durable.
    'raft/vote-not-durable': [
      'elections.ts: term, isForced)\n → term, isForced)\n  countOwnVote(raft)\n',
      'elections.ts: promise(raft → send(raft',
    ],
    // A second vote in the same term.
    'raft/votes-twice': [
      "elections.ts: isGranted = isFree → isGranted = (isFree || raft.role !== 'leader')",
      "state.ts:   assert(raft.vote === 0, 'a vote is given once a term')\n → ",
    ],
    // A vote for a candidate whose log is older.
    'raft/vote-ignores-log': 'elections.ts:  && isUpToDate(raft, message.lastTerm, message.lastIndex) → ',
    // A transfer to an unreachable target blocks proposals forever.
    'raft/transfer-never-ends':
      'transfer.ts:   if (raft.transferElapsed >= raft.config.electionTicks) abortTransfer(raft)\n → ',
  }),
  ...inRaft(by(), {
    // Acknowledgements leave before the entries are durable.
    'raft/ack-before-persist': 'follower.ts: const before → return send(raft, reply)\n  const before',
    // A node stuck at a lower term is not sent the current one.
    'raft/lower-term-ignored': 'raft.ts: const { id: from → return\n  const { id: from',
    // A leader without replies continues.
    'raft/check-quorum-off':
      'heartbeats.ts:   if (!isQuorum && raft.config.checkQuorum) becomeFollower(raft, raft.term, 0)\n → ',
    // What a learner stored counts.
    'raft/learner-counted': 'agreement.ts: if (peer.isVoter)  → ',
    // The window does not pause entries.
    'raft/window-ignored': [
      "leader.ts: peer)) return  → peer) && peer.state !== 'replicate') return ",
      'leader.ts: isWindowFull(peer) → false',
    ],
    // A stale rejection moves the peer's position back.
    'raft/stale-rejection-trusted':
      'leader.ts: if (!peer.counts) forgetMatch(peer, agreeable)\n  if (!retreat(peer, index, agreeable)) return → toProbe(peer)\n  peer.next = Math.max(1, agreeable + 1)',
    // A late, shorter append truncates the entries after it.
    'raft/late-append-truncates':
      'follower.ts: // docs/design/consensus.md#replication: after `last` the two logs may differ. → if (last < raft.lastIndex) cutLog(raft, Math.max(last, raft.commit) + 1)',
    // The answer to a heartbeat does not wake a probe.
    'raft/probe-never-recovers': "leader.ts: peer.isPaused = false → if (peer.state !== 'probe') peer.isPaused = false",
    // A peer that installed its snapshot is not sent entries.
    'raft/snapshot-state-never-left': [
      "leader.ts:   if (peer.state === 'snapshot' && peer.match >= raft.firstIndex - 1) toReplicate(peer)\n → ",
      "leader.ts: if (peer?.state !== 'snapshot') return\n → return\n",
    ],
    // A stale offer of a snapshot moves the state back.
    'raft/old-snapshot-taken':
      'follower.ts:   if (index <= raft.commit) return acknowledge(raft, from, raft.commit)\n → ',
    // Heartbeats carry the whole commit index.
    'raft/heartbeat-full-commit':
      "heartbeats.ts: Math.min(peer.match, raft.commit)\n    assert(commit <= peer.match, 'a heartbeat commits only existing entries') → raft.commit",
  }),
  ...inRaft(by('conflicts'), {
    // The leader counts its own entries before they are durable.
    'raft/own-ack-before-persist': 'leader.ts: raft.persisted → raft.lastIndex',
    // Committed entries are applied before they are durable here.
    'raft/apply-before-persist': 'raft.ts: Math.min(raft.commit, raft.persisted)) → raft.commit)',
    // A confirmation also counts for entries that were overwritten in the meantime.
    'raft/stale-confirmation-trusted':
      'state.ts:   for (const handed of raft.handed) handed.lastIndex = Math.min(handed.lastIndex, raft.lastIndex)\n → ',
  }),
  ...inRaft(by('membership'), {
    // The commit index is stored later than the entries of the same message.
    'raft/commit-not-with-entries': 'raft.ts: commit: raft → commit: entries.length > 0 ? handedState.commit : raft',
    // Learners do not answer vote requests.
    'raft/learner-refuses-votes':
      'elections.ts: const isFree → if (!isVoter(raft.configuration, raft.id)) return\n  const isFree',
    // The outgoing half of a joint configuration is ignored.
    'raft/ignore-outgoing-majority': [
      'agreement.ts: if (raft.configuration.outgoing.length === 0)  → ',
      'elections.ts: tally(outgoing → tally([]',
    ],
    // A change is accepted while another is unapplied.
    'raft/second-change-in-flight': 'changes.ts: !raft.config.validateChanges → true',
    // The end of the joint phase is proposed again and again.
    'raft/joint-left-twice': 'changes.ts: raft.applied) → raft.applied && !(raft.changeIndex > raft.termStart))',
    // A removed leader continues to lead.
    'raft/removed-leader-stays': 'changes.ts: raft.config.stepDownOnRemoval → false',
    // A member that has just joined counts as if it had what is committed.
    'raft/joined-has-all':
      'state.ts: createProgress(member.id, raft.lastIndex + 1, limits) → { ...createProgress(member.id, raft.lastIndex + 1, limits), match: raft.commit }',
    // Two voters change at once without a joint phase.
    'raft/joint-skipped': 'membership.ts: moved <= 1 & → moved <= 2 &',
  }),
  ...inRaft(by('calm'), {
    // Votes are granted while the leader is alive.
    'raft/lease-ignored': 'elections.ts: raft.electionElapsed < raft.config.electionTicks → false',
  }),
  ...inRaft(
    { tests: 'engine/src/raft/elections.test.ts' },
    {
      // An entry of an earlier term is committed by counting.
      'raft/old-term-commit': 'leader.ts: if (termAt(raft, index) !== raft.term) return\n   → ',
    },
  ),
  ...inRaft(by('lockstep'), {
    // A member that may have forgotten a vote votes.
    'raft/mute-votes': 'raft.ts:       if (raft.isMute) return\n → ',
    // A follower commits entries that were not checked against the leader's log.
    'raft/commit-beyond-match': 'follower.ts: commit, last → commit, raft.lastIndex',
    // A read is released without contacting a quorum.
    'raft/read-without-quorum': 'reads.ts:  && reached(raft, Number.POSITIVE_INFINITY, nothing) > 0 → ',
    // A read is accepted before the leader has committed an entry of its term.
    'raft/read-before-own-entry': 'reads.ts:  raft.commit < raft.termStart →  false',
  }),
  ...inRaft(by('reads'), {
    // A read is released by a round that was confirmed before it arrived.
    'raft/read-index-after-check':
      'reads.ts: reached(raft, Number.POSITIVE_INFINITY, nothing) > 0 → (reached(raft, Number.POSITIVE_INFINITY, nothing) > 0 || raft.peers.some(({ readRound }) => readRound > 0))',
  }),
  ...inRaft(
    { tests: 'engine/src/raft/elections.test.ts' },
    {
      // A candidate asks for votes before its own is durable, and may forget the term that it leads.
      'raft/asks-before-own-vote': "elections.ts: const ask = type === 'vote' ? promise : send → const ask = send",
    },
  ),
]
