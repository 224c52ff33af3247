/**
 * Planted defects: rules of consensus.md that the core breaks when it is told to, so that the simulation can be shown
 * to notice (reliability.md §7). Each is one switch, read once when a core is made; nothing that ships sets one.
 */

export const RAFT_DEFECTS = [
  /** H2, H3: votes leave and count before they are durable. */
  'raft/vote-not-durable',
  /** H2: acknowledgements leave before the entries are durable. */
  'raft/ack-before-persist',
  /** H3: the leader counts its own entries before they are durable. */
  'raft/own-ack-before-persist',
  /** H5: committed entries are given out before they are durable here. */
  'raft/apply-before-persist',
  /** H6: a confirmation counts for entries that were overwritten meanwhile. */
  'raft/stale-confirmation-trusted',
  /** M10: the commit index is stored later than the entries it came with. */
  'raft/commit-not-with-entries',
  /** E1: a second vote in the same term. */
  'raft/votes-twice',
  /** E1: a vote for a candidate whose log is older. */
  'raft/vote-ignores-log',
  /** E2: votes are granted while the leader is heard. */
  'raft/lease-ignored',
  /** E4: learners do not answer votes. */
  'raft/learner-refuses-votes',
  /** E7: who is stuck at a lower term is not told. */
  'raft/lower-term-ignored',
  /** E8, A7: an entry of an earlier term is committed by counting. */
  'raft/old-term-commit',
  /** E9: a leader nobody answers goes on. */
  'raft/check-quorum-off',
  /** M6: the half that is left is not asked. */
  'raft/ignore-outgoing-majority',
  /** M1: what a learner stored counts. */
  'raft/learner-counted',
  /** M3: a change is taken while another is not applied. */
  'raft/second-change-in-flight',
  /** M4: the end of the joint phase is proposed again and again. */
  'raft/joint-left-twice',
  /** M7: who was removed goes on leading. */
  'raft/removed-leader-stays',
  /** G3: a member that may have forgotten a vote votes. */
  'raft/mute-votes',
  /** R1: the window does not pause entries. */
  'raft/window-ignored',
  /** R2: a rejection that is long answered takes the peer back. */
  'raft/stale-rejection-trusted',
  /** R3: a late, shorter append cuts what follows it. */
  'raft/late-append-truncates',
  /** R4: a follower commits entries that nobody has compared. */
  'raft/commit-beyond-match',
  /** R5: the answer to a heartbeat does not wake a probe. */
  'raft/probe-never-recovers',
  /** §6: a peer that received its snapshot is not sent entries. */
  'raft/snapshot-state-never-left',
  /** §16.3: an old offer takes the state back. */
  'raft/old-snapshot-taken',
  /** A13: heartbeats carry the whole commit index. */
  'raft/heartbeat-full-commit',
  /** §8: a transfer whose target is gone stops proposals for ever. */
  'raft/transfer-never-ends',
  /** RI1: a read is released without asking anybody. */
  'raft/read-without-quorum',
  /** RI2: a read is taken before the leader has committed an entry of its term. */
  'raft/read-before-own-entry',
  /** RI1, RI5: a read is released by a round that was confirmed before it came. */
  'raft/read-index-after-check',
] as const

export type RaftDefect = (typeof RAFT_DEFECTS)[number]
export type Defects = Readonly<Record<RaftDefect, boolean>>

export function readDefects(names: ReadonlySet<string> | undefined): Defects {
  return Object.fromEntries(RAFT_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as Defects
}
