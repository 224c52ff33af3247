/**
 * Messages between Raft nodes (docs/design/protocol.md#peer-frames) and their identities
 * (docs/design/consensus.md#membership). Values only; transport/frames.ts encodes them.
 */

import type { EntryBatch } from './entry.ts'

/**
 * A member of the shard. `id` is the raft id, a number that is never used again: 1 … n in name order for the initial
 * voters, 1,000 + log index of the adding entry for all others (docs/design/consensus.md#identities).
 */
export type Member = {
  readonly id: number
  readonly node: string
  /** 32 lower-case hex digits of IDENTITY; empty while the member is unbound. */
  readonly incarnation: string
}

/** docs/design/consensus.md#membership. All lists ascend; `members` holds exactly voters ∪ outgoing ∪ learners. */
export type Configuration = {
  readonly members: readonly Member[]
  readonly voters: readonly number[]
  /** Voters of the outgoing half; empty unless joint. */
  readonly outgoing: readonly number[]
  readonly learners: readonly number[]
  /** Voters of the outgoing half that become learners when the joint phase ends. */
  readonly staged: readonly number[]
  readonly autoLeave: boolean
}

/**
 * Driver data carried by heartbeats; the core does not read it (docs/design/consensus.md#shard-time,
 * docs/design/consensus.md#apply, docs/design/storage.md#full-disk).
 */
export type Sample = {
  readonly wallMs: number
  readonly isDiskFull: boolean
  /** Index of the last digest check and the digest there; 0 for none. */
  readonly digestIndex: number
  readonly digestLo: number
  readonly digestHi: number
  readonly applied: number
}

type Common = { readonly from: number; readonly to: number; readonly term: number }

/**
 * The commit index of the sender. A receiver with the same entry adopts it. Members with different applied
 * configurations may refuse each other's votes forever; this lets them catch up without a leader.
 */
type Knowledge = { readonly commit: number; readonly commitTerm: number }

export type VoteMessage = Common &
  Knowledge & {
    readonly type: 'preVote' | 'vote'
    readonly lastIndex: number
    readonly lastTerm: number
    /** Part of a leadership transfer: the lease rule docs/design/consensus.md#voter-leases does not hold. */
    readonly isForced: boolean
  }
export type VoteReply = Common &
  Knowledge & { readonly type: 'preVoteReply' | 'voteReply'; readonly isGranted: boolean }
export type AppendMessage = Common & {
  readonly type: 'append'
  readonly prevIndex: number
  readonly prevTerm: number
  /** Contiguous, from `prevIndex + 1`; each batch of one term. */
  readonly entries: readonly EntryBatch[]
  readonly commit: number
}
export type AppendReply = Common & {
  readonly type: 'appendReply'
  /** Last matching index, or the refused `prevIndex`. */
  readonly index: number
  readonly isRejected: boolean
  readonly hintIndex: number
  readonly hintTerm: number
}
export type Heartbeat = Common & {
  readonly type: 'heartbeat'
  readonly commit: number
  /** Number of the read round that the answer confirms; 0 for none. */
  readonly readRound: number
  readonly sample?: Sample | undefined
}
export type HeartbeatReply = Common & {
  readonly type: 'heartbeatReply'
  readonly readRound: number
  readonly sample?: Sample | undefined
}
/**
 * `manifest` is opaque to the core: the driver pulls the chunks it lists and steps the message when all have arrived.
 */
export type SnapshotOffer = Common & {
  readonly type: 'snapshot'
  readonly index: number
  readonly snapshotTerm: number
  readonly configuration: Configuration
  readonly manifest: Uint8Array
}
export type TimeoutNow = Common & { readonly type: 'timeoutNow' }
/** Sent to the leader by a node that received the request; carries no term (0). */
type TransferLeader = Common & { readonly type: 'transferLeader'; readonly target: number }
/** Term 0 in both. */
export type ReadIndexMessage = Common & { readonly type: 'readIndex'; readonly context: number }
export type ReadIndexReply = Common & {
  readonly type: 'readIndexReply'
  readonly context: number
  readonly index: number
}

export type Message =
  | VoteMessage
  | VoteReply
  | AppendMessage
  | AppendReply
  | Heartbeat
  | HeartbeatReply
  | SnapshotOffer
  | TimeoutNow
  | TransferLeader
  | ReadIndexMessage
  | ReadIndexReply
