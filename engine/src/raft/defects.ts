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
  /** docs/design/consensus.md#hand-over: committed entries are applied before they are durable here. */
  'raft/apply-before-persist',
  /**
   * docs/design/consensus.md#hand-over: a confirmation also counts for entries that were overwritten in the meantime.
   */
  'raft/stale-confirmation-trusted',
  /**
   * docs/design/consensus.md#when-a-configuration-takes-effect: the commit index is stored later than the entries of
   * the same message.
   */
  'raft/commit-not-with-entries',
  /** docs/design/consensus.md#votes: a second vote in the same term. */
  'raft/votes-twice',
  /** docs/design/consensus.md#votes: a vote for a candidate whose log is older. */
  'raft/vote-ignores-log',
  /** docs/design/consensus.md#voter-leases: votes are granted while the leader is alive. */
  'raft/lease-ignored',
  /** docs/design/consensus.md#votes: learners do not answer vote requests. */
  'raft/learner-refuses-votes',
  /** docs/design/consensus.md#check-quorum: a node stuck at a lower term is not sent the current one. */
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
  /** docs/design/consensus.md#when-a-configuration-takes-effect: a change is accepted while another is unapplied. */
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
  /** docs/design/consensus.md#replication: a stale rejection moves the peer's position back. */
  'raft/stale-rejection-trusted',
  /** docs/design/consensus.md#replication: a late, shorter append truncates the entries after it. */
  'raft/late-append-truncates',
  /**
   * docs/design/consensus.md#replication: a follower commits entries that were not checked against the leader's log.
   */
  'raft/commit-beyond-match',
  /** docs/design/consensus.md#replication: the answer to a heartbeat does not wake a probe. */
  'raft/probe-never-recovers',
  /** docs/design/consensus.md#replication: a peer that installed its snapshot is not sent entries. */
  'raft/snapshot-state-never-left',
  /** docs/design/storage.md#transfer: a stale offer moves the state back. */
  'raft/old-snapshot-taken',
  /** docs/design/consensus.md#invariants: heartbeats carry the whole commit index. */
  'raft/heartbeat-full-commit',
  /** docs/design/consensus.md#leadership-transfer: a transfer to an unreachable target blocks proposals forever. */
  'raft/transfer-never-ends',
  /** docs/design/consensus.md#reads: a read is released without contacting a quorum. */
  'raft/read-without-quorum',
  /** docs/design/consensus.md#reads: a read is accepted before the leader has committed an entry of its term. */
  'raft/read-before-own-entry',
  /** docs/design/consensus.md#reads: a read is released by a round that was confirmed before it arrived. */
  'raft/read-index-after-check',
] as const

export type RaftDefect = (typeof RAFT_DEFECTS)[number]
export type Defects = Readonly<Record<RaftDefect, boolean>>

export function readDefects(names: ReadonlySet<string> | undefined): Defects {
  return Object.fromEntries(RAFT_DEFECTS.map((name) => [name, names?.has(name) ?? false])) as Defects
}
