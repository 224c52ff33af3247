/**
 * The Raft core with one voter: what it decides when there is nobody to ask (consensus.md §3–§6). It opens no file and
 * no socket and knows no clock; what to store, send and apply comes out of `takeReady`.
 *
 * A single voter still votes durably before it leads (H3), begins its term with an empty entry (E8), counts an entry
 * as committed only when it is durable and of its own term (A7), and hands out entries once, in order (A9). Peers,
 * their progress and messages are added to this state; the hand-over stays as it is.
 */

import { assert } from '@vacancy/shared'
import { ENTRY_KIND, type EntryBatch, encodeEntry } from './entry.ts'

export type Role = 'follower' | 'candidate' | 'leader'

/** What must survive a crash beside the entries. `vote` is a raft id, 0 for none. */
export type HardState = { readonly term: number; readonly vote: number; readonly commit: number }

export type RestoredState = HardState & { readonly lastIndex: number; readonly applied: number }

/** Limits of what may be under way (consensus.md §21). */
export const RAFT_LIMITS = { uncommittedBytes: 64 << 20, uncommittedEntries: 50_000 } as const

export type Dropped = 'not-leader' | 'overloaded'

type Handed = { readonly token: number; readonly term: number; readonly lastIndex: number; readonly commit: number }

export type Raft = {
  readonly id: number
  role: Role
  term: number
  vote: number
  commit: number
  applied: number
  lastIndex: number
  /** Greatest index that is durable here. */
  persisted: number
  /** Appended since the last hand-over. */
  unsent: EntryBatch[]
  /** Handed over to be stored, oldest first; tokens are confirmed in order (A22). */
  readonly handed: Handed[]
  /** Entries that are not applied yet. */
  readonly pending: EntryBatch[]
  pendingBytes: number
  pendingEntries: number
  handedOut: number
  mustStoreState: boolean
  nextToken: number
}

/** Everything that is to be done now; taken at once (H1). */
export type Ready = {
  /** Store it before or together with the entries (H8). */
  readonly hardState: HardState
  readonly entries: readonly EntryBatch[]
  /** Entries or a vote: a sync is needed before `persisted(token)`. */
  readonly mustSync: boolean
  readonly token: number
}

export function createRaft(id: number, restored: RestoredState): Raft {
  assert(id > 0, 'raft ids begin at 1')
  assert(restored.applied <= restored.lastIndex, 'what is applied is in the log (A2)')
  assert(restored.commit <= restored.lastIndex, 'what is committed is in the log (A2)')
  return {
    id,
    role: 'follower',
    term: restored.term,
    vote: restored.vote,
    commit: restored.commit,
    applied: restored.applied,
    lastIndex: restored.lastIndex,
    persisted: restored.lastIndex,
    unsent: [],
    handed: [],
    pending: [],
    pendingBytes: 0,
    pendingEntries: 0,
    handedOut: restored.applied,
    mustStoreState: false,
    nextToken: 1,
  }
}

/** Stands for leader. With one voter the own vote decides, once it is durable (H3). */
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
  if (raft.pendingEntries + count > RAFT_LIMITS.uncommittedEntries) return 'overloaded'
  if (raft.pendingBytes + bytes.length > RAFT_LIMITS.uncommittedBytes) return 'overloaded'
  return append(raft, count, bytes)
}

function append(raft: Raft, count: number, bytes: Uint8Array): number {
  assert(count > 0 && Number.isSafeInteger(raft.lastIndex + count), 'indexes are safe integers (L4)')
  const batch: EntryBatch = { firstIndex: raft.lastIndex + 1, count, bytes }
  raft.lastIndex += count
  raft.unsent.push(batch)
  raft.pending.push(batch)
  raft.pendingBytes += bytes.length
  raft.pendingEntries += count
  return batch.firstIndex
}

export function hasReady(raft: Raft): boolean {
  return raft.unsent.length > 0 || raft.mustStoreState
}

export function takeReady(raft: Raft): Ready {
  assert(hasReady(raft), 'a hand-over contains something (H1)')
  const ready: Ready = {
    hardState: { term: raft.term, vote: raft.vote, commit: raft.commit },
    entries: raft.unsent,
    mustSync: raft.unsent.length > 0 || raft.mustStoreState,
    token: raft.nextToken++,
  }
  raft.handed.push({ token: ready.token, term: raft.term, lastIndex: raft.lastIndex, commit: raft.commit })
  raft.unsent = []
  raft.mustStoreState = false
  return ready
}

/** Everything handed over up to `token` is durable (H6). */
export function persisted(raft: Raft, token: number): void {
  const handed = raft.handed.shift()
  assert(handed !== undefined && handed.token === token, 'tokens are confirmed in order (A22)')
  assert(handed.lastIndex >= raft.persisted, 'what is durable never shrinks')
  raft.persisted = handed.lastIndex
  if (raft.role === 'candidate' && handed.term === raft.term) becomeLeader(raft)
  // A7: only an entry of the current term is committed by counting; it takes all before it along.
  if (raft.role === 'leader' && handed.term === raft.term && raft.persisted > raft.commit) raft.commit = raft.persisted
}

function becomeLeader(raft: Raft): void {
  raft.role = 'leader'
  append(raft, 1, encodeEntry(raft.term, ENTRY_KIND.empty, new Uint8Array(0)))
}

/**
 * The log refused what was handed over with `token` and everything after it: none of it is on disk. The entries are
 * taken back; they were never committed.
 *
 * @returns the first index that is gone
 */
export function refused(raft: Raft, token: number): number {
  const first = raft.handed[0]
  assert(first !== undefined && first.token === token, 'tokens are refused in order (A22)')
  raft.handed.length = 0
  const from = raft.persisted + 1
  assert(from > raft.commit, 'nothing at or below the commit index is taken back (A4)')
  while (raft.pending.length > 0) {
    const last = raft.pending[raft.pending.length - 1] as EntryBatch
    if (last.firstIndex < from) break
    raft.pending.pop()
    raft.pendingBytes -= last.bytes.length
    raft.pendingEntries -= last.count
  }
  raft.unsent = []
  raft.lastIndex = raft.persisted
  return from
}

/** The next batch of committed entries, each handed out once, in order (A9); undefined when there is none. */
export function nextCommitted(raft: Raft): EntryBatch | undefined {
  const batch = raft.pending[0]
  if (batch === undefined || batch.firstIndex + batch.count - 1 > raft.commit) return undefined
  assert(batch.firstIndex === raft.handedOut + 1, 'entries are applied in index order (A9)')
  raft.pending.shift()
  raft.handedOut = batch.firstIndex + batch.count - 1
  return batch
}

/** The engine has applied up to `index`. */
export function applied(raft: Raft, index: number, entries: number, bytes: number): void {
  assert(index <= raft.commit, 'nothing is applied before it is committed (A9)')
  assert(index > raft.applied, 'applied never goes back (A2)')
  raft.applied = index
  raft.pendingEntries -= entries
  raft.pendingBytes -= bytes
}
