/**
 * Planted defects: rules of docs/design/consensus.md that the core breaks on request, to show that the simulation
 * detects the break (docs/design/testing.md#planted-defects). Each is one switch, read once when a core is created.
 * Shipped programs never set one.
 */

export const RAFT_DEFECTS = [
  /** docs/design/consensus.md#hand-over: votes leave and count before they are durable. */
  'raft/vote-not-durable',
  /** docs/design/consensus.md#hand-over: acknowledgements leave before the entries are durable. */
  'raft/ack-before-persist',
  /** docs/design/consensus.md#hand-over: the leader counts its own entries before they are durable. */
  'raft/own-ack-before-persist',
  /** docs/design/consensus.md#hand-over: committed entries are given out before they are durable here. */
  'raft/apply-before-persist',
  /** docs/design/consensus.md#hand-over: a confirmation counts for entries that were overwritten meanwhile. */
  'raft/stale-confirmation-trusted',
  /**
   * docs/design/consensus.md#when-a-configuration-takes-effect: the commit index is stored later than the entries it
   * came with.
   */
  'raft/commit-not-with-entries',
  /** docs/design/consensus.md#votes: a second vote in the same term. */
  'raft/votes-twice',
  /** docs/design/consensus.md#votes: a vote for a candidate whose log is older. */
  'raft/vote-ignores-log',
  /** docs/design/consensus.md#voter-leases: votes are granted while the leader is heard. */
  'raft/lease-ignored',
  /** docs/design/consensus.md#votes: learners do not answer votes. */
  'raft/learner-refuses-votes',
  /** docs/design/consensus.md#check-quorum: a node stuck at a lower term is not informed. */
  'raft/lower-term-ignored',
  /**
   * docs/design/consensus.md#first-entry-of-a-term, docs/design/consensus.md#invariants: an entry of an earlier term is
   * committed by counting.
   */
  'raft/old-term-commit',
  /** docs/design/consensus.md#check-quorum: a leader without replies continues. */
  'raft/check-quorum-off',
  /** docs/design/consensus.md#when-a-configuration-takes-effect: the outgoing half is ignored. */
  'raft/ignore-outgoing-majority',
  /** docs/design/consensus.md#membership: what a learner stored counts. */
  'raft/learner-counted',
  /** docs/design/consensus.md#when-a-configuration-takes-effect: a change is taken while another is not applied. */
  'raft/second-change-in-flight',
  /**
   * docs/design/consensus.md#when-a-configuration-takes-effect: the end of the joint phase is proposed again and again.
   */
  'raft/joint-left-twice',
  /** docs/design/consensus.md#when-a-configuration-takes-effect: a removed leader continues to lead. */
  'raft/removed-leader-stays',
  /** docs/design/consensus.md#formation: a member that may have forgotten a vote votes. */
  'raft/mute-votes',
  /** docs/design/consensus.md#replication: the window does not pause entries. */
  'raft/window-ignored',
  /** docs/design/consensus.md#replication: a rejection that is long answered takes the peer back. */
  'raft/stale-rejection-trusted',
  /** docs/design/consensus.md#replication: a late, shorter append cuts what follows it. */
  'raft/late-append-truncates',
  /** docs/design/consensus.md#replication: a follower commits entries that were never compared. */
  'raft/commit-beyond-match',
  /** docs/design/consensus.md#replication: the answer to a heartbeat does not wake a probe. */
  'raft/probe-never-recovers',
  /** docs/design/consensus.md#replication: a peer that received its snapshot is not sent entries. */
  'raft/snapshot-state-never-left',
  /** docs/design/storage.md#transfer: an old offer takes the state back. */
  'raft/old-snapshot-taken',
  /** docs/design/consensus.md#invariants: heartbeats carry the whole commit index. */
  'raft/heartbeat-full-commit',
  /** docs/design/consensus.md#leadership-transfer: a transfer whose target is gone stops proposals for ever. */
  'raft/transfer-never-ends',
  /** docs/design/consensus.md#reads: a read is released without asking anybody. */
  'raft/read-without-quorum',
  /** docs/design/consensus.md#reads: a read is taken before the leader has committed an entry of its term. */
  'raft/read-before-own-entry',
  /** docs/design/consensus.md#reads: a read is released by a round that was confirmed before it came. */
  'raft/read-index-after-check',
] as const

export type RaftDefect = (typeof RAFT_DEFECTS)[number]
export type Defects = Readonly<Record<RaftDefect, boolean>>

export function readDefects(names: ReadonlySet<string> | undefined): Defects {
  return Object.fromEntries(RAFT_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as Defects
}
