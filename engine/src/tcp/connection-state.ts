/** Types of a client connection and of the serving thread that owns it. */

import type { Socket } from 'node:net'
import type { Role, TokenHash } from '@vacancy/shared/tokens'
import type { CommandSpec, FrameSink, FrameSplitter } from '@vacancy/shared/wire'
import type { Cells } from '../cluster/shared-status.ts'
import type { Slices } from '../search/search.ts'
import type { Memory } from '../store/store.ts'
import type { DirectReplies, TakenOffer } from '../threads/direct-replies.ts'
import type { ReadBatch } from '../threads/reads.ts'
import type { Proposals } from '../threads/writes.ts'
import type { Counters } from './counters.ts'
import type { Deferred } from './deferred.ts'
import type { Dispatcher, Listing } from './dispatch.ts'
import type { Slabs } from './slabs.ts'

export const LIMITS_OF_THREAD = {
  /** Unanswered writes of one thread; beyond: 429. */
  writesInFlight: 16_384,
  /** Unanswered writes of one connection; beyond: reading from it pauses until one is answered. */
  writesPerConnection: 1_024,
  /** Requests handled between two ticks of the timer, 50 ms apart; beyond: 429, so that a backlog cannot grow. */
  requestsPerTick: 65_536,
  /** Reads of one connection that wait for the replica; beyond: reading from it pauses until one is answered. */
  readsPerConnection: 1_024,
  /** Deferred reads of one connection; beyond: reading from it pauses until one is answered. */
  deferredPerConnection: 64,
  /** A frame must be complete this long after its first byte. */
  halfFrameMs: 20_000,
} as const

/** A write in flight. */
export type Waiting = {
  /** Undefined: it was answered by the timeout, and the outcome is still to come. */
  connection: Connection | undefined
  command: CommandSpec
  correlationId: number
  wantsIndex: boolean
  since: number
  readonly token: number
  /** The replica wrote the reply itself. */
  taken: TakenOffer | undefined
}

/** A read that waits for a confirmation of the replica. */
export type PendingRead = {
  /** Undefined: it was answered by the timeout, and the confirmation is still to come. */
  connection: Connection | undefined
  readonly command: CommandSpec
  readonly bytes: Uint8Array
  readonly correlationId: number
  readonly isLinearizable: boolean
  readonly since: number
}

/** A read of stays that the replica answers. */
export type StayRead = {
  /** Undefined: it was answered by the timeout. */
  connection: Connection | undefined
  readonly command: CommandSpec
  readonly correlationId: number
  readonly since: number
}

/** A read that a later turn answers. */
export type DeferredRead = {
  readonly connection: Connection
  readonly command: CommandSpec
  readonly bytes: Uint8Array
  readonly correlationId: number
  readonly since: number
  /** Progress of a search; undefined for a read that has not begun. */
  slices: Slices | undefined
  /** Progress of a list of segments. */
  readonly listing: Listing | undefined
  /** Tries while its table was being changed. */
  tries: number
}

/** For `GET /debug/slow`. */
export type SlowRead = {
  readonly command: string
  readonly milliseconds: number
  readonly rows: number
  /** Of the caller, where the request names one. */
  readonly traceId: string | null
}

/** State shared by all connections of a thread. */
export type ServingThread = {
  readonly memory: Memory
  readonly dispatcher: Dispatcher
  readonly counters: Counters
  readonly slabs: Slabs
  readonly connections: Set<Connection>
  readonly waiting: Map<number, Waiting>
  /** Replies that the replica writes itself; undefined with TLS. */
  readonly direct: DirectReplies | undefined
  /** Status of the shard; undefined on a standalone node. */
  readonly cells: Cells | undefined
  readonly pendingReads: Map<number, PendingRead>
  /** Reads of stays that the replica answers, and those of this turn. */
  readonly stayReads: Map<number, StayRead>
  readonly stayBatch: Proposals
  /** Reads of this turn. */
  readonly readBatch: ReadBatch
  readonly deferred: Deferred<DeferredRead>
  readonly requireLogin: boolean
  readonly authenticate: (token: Uint8Array) => Principal | undefined
  /** @returns whether the address has too many failures to get a reply */
  readonly noteLoginFailure: (address: string, token: Uint8Array) => boolean
  readonly sendBufferBytes: number
  readonly requestBytesMax: number
  readonly skipBytesMax: number
  readonly monotonicMs: () => number
  /** Schedules the batches for the replica to be sent at the end of this turn. */
  readonly scheduleBatches: () => void
  /** Sends them at once: a search begins, which takes longer than to send them. */
  readonly sendBatches: () => void
  /** Takes the answers of the replica that have come during this turn. */
  readonly takeAnswers: () => void
  /** Reads that take at least this long are reported. */
  readonly slowMs: number
  readonly slow: (read: SlowRead) => void
  nextToken: number
  requestsThisTick: number
  /** When the read before the present frame was answered, on this thread's clock, which saves a look at it; 0 for no such read. */
  readMs: number
  leaderReads: boolean
  draining: boolean
  /** Its thread may wait for the disk: it has left a request unanswered for long. */
  isReplicaSilent: boolean
}

/** The principal of a connection: its role, and the name of its token. */
export type Principal = {
  readonly role: Role
  readonly source: Uint8Array
  /** The entry of the auth file; absent where tokens are not checked. */
  readonly token?: TokenHash
}

/** The payload of a request in the bytes of its chunk. */
export type Frame = {
  bytes: Uint8Array
  start: number
  end: number
  correlationId: number
  inEnvelope: boolean
}

export type Held = Readonly<Frame> & { readonly deadline: number }

/** What the replica answers to a write. */
export type WriteOutcome = {
  readonly token: number
  readonly code: number
  readonly value: number
  readonly index: number
  /** Text of a refusal. */
  readonly detail: string
  /** The reply, where the replica made it. */
  readonly frame: Uint8Array | undefined
}

export type Connection = {
  readonly thread: ServingThread
  readonly socket: Socket
  readonly splitter: FrameSplitter
  readonly sink: FrameSink
  /** Continues with frames that waited. */
  readonly resume: () => void
  /** The kernel has taken a write. */
  readonly onSent: () => void
  role: Role | undefined
  /** Why there is no role. */
  roleFault: string
  /** Of the last LOGIN, as the auth file has it now. */
  token: TokenHash | undefined
  /** Name of the token, at most 32 bytes. */
  source: Uint8Array
  /** Slab being filled, 0 when none; replies of this read event are at [slabStart, slabAt). */
  slab: number
  slabAt: number
  /** Writes without a reply yet. */
  writes: number
  /** The write whose reply the replica may write to the socket (threads/direct-replies.ts). */
  offered: Waiting | undefined
  /** Reads waiting for a confirmation of the replica. */
  pendingReads: number
  /** Reads that a later turn answers. */
  deferred: number
  /**
   * Greatest index that a request of this connection was served at; it never decreases
   * (docs/design/consensus.md#promises).
   */
  servedIndex: number
  /** A frame that waits for the writes, the confirmed reads, or an applied index. */
  held: Held | undefined
  /** Replies made outside a read event: those of writes. */
  small: Buffer
  smallAt: number
  paused: boolean
  closing: boolean
  /** No frame follows: the connection closes when its deferred reads are answered. */
  isLast: boolean
  /** Monotonic ms of the first byte of an unfinished frame, 0 for none. */
  halfSince: number
  /**
   * Output sent so far, the bytes of the current write that the kernel has not taken, and since when neither changed.
   */
  flushedBytes: number
  unsentBytes: number
  stalledSince: number
}

/** Writes a reply. @returns its end, or a negative number if it was not written */
export type WriteReply = (target: Uint8Array, at: number, end: number) => number

/**
 * Bytes of the current write that the kernel has not taken. Node counts a write only when it is complete, and one may
 * be a megabyte: without this, a client that reads slowly but steadily would look stalled.
 */
export function unsentBytes(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? 0
}

/** Not bytes.slice: for a Buffer that is a view, and the chunk is reused after this turn. */
export function copyOf({ bytes, start, end }: Frame): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes, start, end)
}

/** The next token of a request to the replica. */
export function takeToken(thread: ServingThread): number {
  const token = thread.nextToken
  thread.nextToken = (token + 1) >>> 0
  return token
}
