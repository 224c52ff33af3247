/**
 * The Raft core with one voter: what it decides when there is nobody to ask (consensus.md §3–§6). It opens no file and
 * no socket and knows no clock; what to store and apply comes out of `takeReady` and `nextCommitted`.
 *
 *   follower ── campaign ──► candidate ── vote durable ──► leader
 *
 * A single voter still votes durably before it leads (H3), begins its term with an empty entry (E8), counts an entry
 * as committed only when it is durable and of its own term (A7), and hands out entries once, in order (A9). Peers,
 * their progress and messages are added to this state; the hand-over stays as it is: the own vote and the own
 * acknowledgement are what `persisted` releases.
 */

import { assert } from '@vacancy/shared'
import { ENTRY_KIND, type EntryBatch, encodeEntry } from './entry.ts'
import {
  appendEntries,
  applyTo,
  commitTo,
  createLog,
  giveOut,
  persistTo,
  type RaftLog,
  takeBack,
  takeUnsent,
} from './log.ts'

export type Role = 'follower' | 'candidate' | 'leader'

/** What must survive a crash beside the entries. `vote` is a raft id, 0 for none. */
export type HardState = { readonly term: number; readonly vote: number; readonly commit: number }

/** Where a recovered node stands: everything in its log is durable, and applied. */
export type RestoredState = HardState & {
  readonly lastIndex: number
  /** Term of the last entry; lower than `term` after a vote that brought none. */
  readonly lastTerm: number
  readonly applied: number
}

/** Limits of what may be under way (consensus.md §21). */
export const RAFT_LIMITS = { uncommittedBytes: 64 << 20, uncommittedEntries: 50_000 } as const
/** One slice of work of the thread that applies (consensus.md §13). */
export const APPLY_ENTRIES_MAX = 1_024

export type Dropped = 'not-leader' | 'overloaded'

type Handed = {
  readonly token: number
  readonly hardState: HardState
  readonly lastIndex: number
  readonly lastTerm: number
}

export type Raft = RaftLog & {
  readonly id: number
  role: Role
  term: number
  vote: number
  /** Handed over to be stored, oldest first; tokens are confirmed in order (A22). */
  readonly handed: Handed[]
  /** The hard state that is durable. */
  stored: HardState
  /** Term of the entry at `persisted`. */
  persistedTerm: number
  mustStoreState: boolean
  nextToken: number
}

/** Everything that is to be done now; taken at once (H1). */
export type Ready = {
  /** Store it before or together with the entries (H8). */
  readonly hardState: HardState
  readonly entries: readonly EntryBatch[]
  /** Return it through `persisted` or `refused`. */
  readonly token: number
}

export function createRaft(id: number, restored: RestoredState): Raft {
  assert(id > 0, 'raft ids begin at 1')
  const { term, vote, commit, lastTerm } = restored
  assert(lastTerm <= term, 'no entry is of a term that was never stored (H8)')
  const log = createLog(restored)
  const stored = { term, vote, commit }
  return {
    ...log,
    id,
    role: 'follower',
    term,
    vote,
    handed: [],
    stored,
    persistedTerm: lastTerm,
    mustStoreState: false,
    nextToken: 1,
  }
}

/** Stands for leader in the next term. With one voter the own vote decides, once it is durable (H3). */
export function campaign(raft: Raft): void {
  assert(raft.role === 'follower', 'a follower stands')
  raft.term++
  raft.vote = raft.id
  raft.role = 'candidate'
  raft.mustStoreState = true
}

/**
 * Appends entries that stand one behind the other in `bytes`, with the leader's term in each.
 *
 * @returns index of the first, or why they were not taken
 */
export function propose(raft: Raft, count: number, bytes: Uint8Array): number | Dropped {
  if (raft.role !== 'leader') return 'not-leader'
  return hasRoom(raft, count, bytes.length) ? appendEntries(raft, raft.term, count, bytes) : 'overloaded'
}

/** R8: bounded, but for one proposal of any size when nothing else is under way. */
function hasRoom(raft: Raft, count: number, bytes: number): boolean {
  if (raft.unappliedEntries === 0) return true
  if (raft.unappliedEntries + count > RAFT_LIMITS.uncommittedEntries) return false
  return raft.unappliedBytes + bytes <= RAFT_LIMITS.uncommittedBytes
}

/**
 * Has the commit index stored when no entries are on their way that would bring it along (W5). Called once a heartbeat
 * interval. Besides sparing work, it is what tells damage to the last acknowledged group from a torn one (V4).
 */
export function storeCommit(raft: Raft): void {
  if (raft.handed.length === 0 && raft.commit > raft.stored.commit) raft.mustStoreState = true
}

export function hasReady(raft: Raft): boolean {
  return raft.unsent.length > 0 || raft.mustStoreState
}

export function takeReady(raft: Raft): Ready {
  assert(hasReady(raft), 'a hand-over contains something (H1)')
  const hardState = { term: raft.term, vote: raft.vote, commit: raft.commit }
  assert(hardState.term >= raft.stored.term, 'the term never decreases (A1)')
  const ready = { hardState, entries: takeUnsent(raft), token: raft.nextToken++ }
  raft.handed.push({ token: ready.token, hardState, lastIndex: raft.lastIndex, lastTerm: raft.lastTerm })
  raft.mustStoreState = false
  return ready
}

/** Everything handed over up to `token` is durable (H6). */
export function persisted(raft: Raft, token: number): void {
  const handed = raft.handed.shift()
  assert(handed !== undefined && handed.token === token, 'tokens are confirmed in order (A22)')
  raft.stored = handed.hardState
  raft.persistedTerm = handed.lastTerm
  persistTo(raft, handed.lastIndex)
  // A vote of an earlier term counts for nothing any more (H6).
  if (raft.role === 'candidate' && handed.hardState.term === raft.term) becomeLeader(raft)
  else commitOwn(raft)
}

function becomeLeader(raft: Raft): void {
  assert(raft.stored.term === raft.term && raft.stored.vote === raft.id, 'the vote is durable before it counts (H3)')
  raft.role = 'leader'
  appendEntries(raft, raft.term, 1, encodeEntry(raft.term, ENTRY_KIND.empty, new Uint8Array(0)))
}

/** A7: only an entry of the current term is committed by counting; it takes all before it along. */
function commitOwn(raft: Raft): void {
  if (raft.role === 'leader' && raft.persistedTerm === raft.term) commitTo(raft, raft.persisted)
}

/**
 * The log had no room for what was handed over with `token` and everything after it. What it did not store is taken
 * back: it is certainly in no log, so its proposers may repeat it (X5). Right for one voter only: a leader with peers
 * has sent its entries to them.
 *
 * @param storedTo the last index the log holds all the same: a hand-over can be larger than one group
 * @returns the first index that is gone
 */
export function refused(raft: Raft, token: number, storedTo = raft.persisted): number {
  const first = raft.handed[0]
  assert(first !== undefined && first.token === token, 'tokens are refused in order (A22)')
  raft.handed.length = 0
  if (storedTo > raft.persisted) {
    // Entries of this hand-over; its hard state went with them (H8), its commit index may not have.
    raft.stored = { ...first.hardState, commit: raft.stored.commit }
    raft.persistedTerm = first.lastTerm
    persistTo(raft, storedTo)
    commitOwn(raft)
  }
  takeBack(raft, raft.persisted, raft.persistedTerm)
  // A vote that was refused along with entries is handed over again: there is room kept for it (W4).
  if (raft.stored.term !== raft.term || raft.stored.vote !== raft.vote) raft.mustStoreState = true
  return raft.lastIndex + 1
}

/** The next committed entries, each handed out once, in order (A9); undefined when there are none. */
export function nextCommitted(raft: Raft, entriesMax = APPLY_ENTRIES_MAX): EntryBatch | undefined {
  return giveOut(raft, entriesMax)
}

/** The engine has applied up to `index`. */
export function applied(raft: Raft, index: number, entries: number, bytes: number): void {
  applyTo(raft, index, entries, bytes)
}
