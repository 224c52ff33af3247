/** Rules of docs/design/consensus.md that the core breaks. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile = 'mixed') => simulated('core', profile)

export const RAFT_DEFECTS: readonly Defect[] = inFolder('engine/src/raft', [
  {
    // Votes leave and count before they are durable.
    name: 'raft/vote-not-durable',
    edits: [
      [
        'elections.ts',
        "  askForVotes(raft, 'vote', raft.term, isForced)\n",
        "  askForVotes(raft, 'vote', raft.term, isForced)\n  countOwnVote(raft)\n",
      ],
      ['elections.ts', '  promise(raft, reply)\n', '  send(raft, reply)\n'],
    ],
    foundBy: by('elections'),
  },
  {
    // Acknowledgements leave before the entries are durable.
    name: 'raft/ack-before-persist',
    edits: [
      [
        'follower.ts',
        '  const before = raft.sendAfter[raft.sendAfter.length - 1]\n',
        '  return send(raft, reply)\n  const before = raft.sendAfter[raft.sendAfter.length - 1]\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // The leader counts its own entries before they are durable.
    name: 'raft/own-ack-before-persist',
    edits: [['leader.ts', 'reached(raft, raft.persisted, matchOf)', 'reached(raft, raft.lastIndex, matchOf)']],
    foundBy: by('conflicts'),
  },
  {
    // Committed entries are applied before they are durable here.
    name: 'raft/apply-before-persist',
    edits: [
      [
        'raft.ts',
        'giveOut(raft, entriesMax, Math.min(raft.commit, raft.persisted))',
        'giveOut(raft, entriesMax, raft.commit)',
      ],
    ],
    foundBy: by('conflicts'),
  },
  {
    // A confirmation also counts for entries that were overwritten in the meantime.
    name: 'raft/stale-confirmation-trusted',
    edits: [
      [
        'state.ts',
        '  for (const handed of raft.handed) handed.lastIndex = Math.min(handed.lastIndex, raft.lastIndex)\n',
        '',
      ],
    ],
    foundBy: by('conflicts'),
  },
  {
    // The commit index is stored later than the entries of the same message.
    name: 'raft/commit-not-with-entries',
    edits: [
      [
        'raft.ts',
        '{ term: raft.term, vote: raft.vote, commit: raft.commit }',
        '{ term: raft.term, vote: raft.vote, commit: entries.length > 0 ? handedState.commit : raft.commit }',
      ],
    ],
    foundBy: by('membership'),
  },
  {
    // A second vote in the same term.
    name: 'raft/votes-twice',
    edits: [
      ['elections.ts', 'const isGranted = isFree && ', "const isGranted = (isFree || raft.role !== 'leader') && "],
      ['state.ts', "  assert(raft.vote === 0, 'a vote is given once a term')\n", ''],
    ],
    foundBy: by('elections'),
  },
  {
    // A vote for a candidate whose log is older.
    name: 'raft/vote-ignores-log',
    edits: [
      [
        'elections.ts',
        'const isGranted = isFree && isUpToDate(raft, message.lastTerm, message.lastIndex)',
        'const isGranted = isFree',
      ],
    ],
    foundBy: by('elections'),
  },
  {
    // Votes are granted while the leader is alive.
    name: 'raft/lease-ignored',
    edits: [['elections.ts', '  return raft.electionElapsed < raft.config.electionTicks\n', '  return false\n']],
    foundBy: by('calm'),
  },
  {
    // Learners do not answer vote requests.
    name: 'raft/learner-refuses-votes',
    edits: [
      ['elections.ts', '  const isFree = ', '  if (!isVoter(raft.configuration, raft.id)) return\n  const isFree = '],
    ],
    foundBy: by('membership'),
  },
  {
    // A node stuck at a lower term is not sent the current one.
    name: 'raft/lower-term-ignored',
    edits: [
      [
        'raft.ts',
        '  const { id: from, term } = raft\n  if (type === ',
        '  return\n  const { id: from, term } = raft\n  if (type === ',
      ],
    ],
    foundBy: by(),
  },
  {
    // An entry of an earlier term is committed by counting.
    name: 'raft/old-term-commit',
    edits: [
      [
        'leader.ts',
        '  if (termAt(raft, index) !== raft.term) return\n  commitTo(raft, index)\n',
        '  commitTo(raft, index)\n',
      ],
    ],
    // Needs three leaders that are each cut off at once: too rare in the simulation.
    foundBy: { tests: 'engine/src/raft/elections.test.ts' },
  },
  {
    // A leader without replies continues.
    name: 'raft/check-quorum-off',
    edits: [['heartbeats.ts', '  if (!isQuorum && raft.config.checkQuorum) becomeFollower(raft, raft.term, 0)\n', '']],
    foundBy: by(),
  },
  {
    // The outgoing half of a joint configuration is ignored.
    name: 'raft/ignore-outgoing-majority',
    edits: [
      ['agreement.ts', '  if (raft.configuration.outgoing.length === 0) return incoming\n', '  return incoming\n'],
      ['elections.ts', 'tally(outgoing, votes)', 'tally([], votes)'],
    ],
    foundBy: by('membership'),
  },
  {
    // What a learner stored counts.
    name: 'raft/learner-counted',
    edits: [['agreement.ts', '    if (peer.isVoter) values.push', '    values.push']],
    foundBy: by(),
  },
  {
    // A change is accepted while another is unapplied.
    name: 'raft/second-change-in-flight',
    edits: [['changes.ts', '  return !raft.config.validateChanges\n', '  return true\n']],
    foundBy: by('membership'),
  },
  {
    // The end of the joint phase is proposed again and again.
    name: 'raft/joint-left-twice',
    edits: [
      [
        'changes.ts',
        '  if (raft.changeIndex > raft.applied) return\n',
        '  if (raft.changeIndex > raft.applied && !(raft.changeIndex > raft.termStart)) return\n',
      ],
    ],
    foundBy: by('membership'),
  },
  {
    // A removed leader continues to lead.
    name: 'raft/removed-leader-stays',
    edits: [['changes.ts', ' && raft.config.stepDownOnRemoval) {', ' && false) {']],
    foundBy: by('membership'),
  },
  {
    // A member that may have forgotten a vote votes.
    name: 'raft/mute-votes',
    edits: [['raft.ts', '      if (raft.isMute) return\n', '']],
    foundBy: by('lockstep'),
  },
  {
    // The window does not pause entries.
    name: 'raft/window-ignored',
    edits: [
      [
        'leader.ts',
        '  if (isWaiting(peer)) return false\n',
        "  if (isWaiting(peer) && peer.state !== 'replicate') return false\n",
      ],
      ['leader.ts', ' && isWindowFull(peer)\n', ' && false\n'],
    ],
    foundBy: by(),
  },
  {
    // A stale rejection moves the peer's position back.
    name: 'raft/stale-rejection-trusted',
    edits: [
      [
        'leader.ts',
        '  if (!peer.counts) forgetMatch(peer, agreeable)\n  if (!retreat(peer, index, agreeable)) return\n',
        '  toProbe(peer)\n  peer.next = Math.max(1, agreeable + 1)\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A late, shorter append truncates the entries after it.
    name: 'raft/late-append-truncates',
    edits: [
      [
        'follower.ts',
        '  // docs/design/consensus.md#replication: after `last` the two logs may differ.\n',
        '  if (last < raft.lastIndex) cutLog(raft, Math.max(last, raft.commit) + 1)\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A follower commits entries that were not checked against the leader's log.
    name: 'raft/commit-beyond-match',
    edits: [['follower.ts', 'Math.min(message.commit, last)', 'Math.min(message.commit, raft.lastIndex)']],
    foundBy: by('lockstep'),
  },
  {
    // The answer to a heartbeat does not wake a probe.
    name: 'raft/probe-never-recovers',
    edits: [
      [
        'leader.ts',
        '  peer.isPaused = false\n  if (peer.match < raft.lastIndex ||',
        "  if (peer.state !== 'probe') peer.isPaused = false\n  if (peer.match < raft.lastIndex ||",
      ],
    ],
    foundBy: by(),
  },
  {
    // A peer that installed its snapshot is not sent entries.
    name: 'raft/snapshot-state-never-left',
    edits: [
      ['leader.ts', "  if (peer.state === 'snapshot' && peer.match >= raft.firstIndex - 1) toReplicate(peer)\n", ''],
      ['leader.ts', "  if (peer?.state !== 'snapshot') return\n", '  return\n'],
    ],
    foundBy: by(),
  },
  {
    // A stale offer of a snapshot moves the state back.
    name: 'raft/old-snapshot-taken',
    edits: [['follower.ts', '  if (index <= raft.commit) return acknowledge(raft, from, raft.commit)\n', '']],
    foundBy: by(),
  },
  {
    // Heartbeats carry the whole commit index.
    name: 'raft/heartbeat-full-commit',
    edits: [
      [
        'heartbeats.ts',
        "    const commit = Math.min(peer.match, raft.commit)\n    assert(commit <= peer.match, 'a heartbeat commits only existing entries')\n",
        '    const commit = raft.commit\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A transfer to an unreachable target blocks proposals forever.
    name: 'raft/transfer-never-ends',
    edits: [['transfer.ts', '  if (raft.transferElapsed >= raft.config.electionTicks) abortTransfer(raft)\n', '']],
    foundBy: by('elections'),
  },
  {
    // A read is released without contacting a quorum.
    name: 'raft/read-without-quorum',
    edits: [
      ['reads.ts', '  if (!isHeld && reached(raft, Number.POSITIVE_INFINITY, nothing) > 0) {\n', '  if (!isHeld) {\n'],
    ],
    foundBy: by('lockstep'),
  },
  {
    // A read is accepted before the leader has committed an entry of its term.
    name: 'raft/read-before-own-entry',
    edits: [['reads.ts', 'const isHeld = raft.commit < raft.termStart\n', 'const isHeld = false\n']],
    foundBy: by('lockstep'),
  },
  {
    // A read is released by a round that was confirmed before it arrived.
    name: 'raft/read-index-after-check',
    edits: [
      [
        'reads.ts',
        'reached(raft, Number.POSITIVE_INFINITY, nothing) > 0) {\n',
        '(reached(raft, Number.POSITIVE_INFINITY, nothing) > 0 || raft.peers.some(({ readRound }) => readRound > 0))) {\n',
      ],
    ],
    foundBy: by('reads'),
  },
])
