/**
 * A leader's state about one peer: its position, messages in flight and the window
 * (docs/design/consensus.md#replication, docs/design/consensus.md#invariants).
 *
 *   probe ───── acknowledged ────────► replicate
 *     ▲  ▲                                │  │
 *     │  └─ rejected, unreachable ────────┘  │
 *     │                                      ▼
 *     └── reported, failed, acknowledged ── snapshot ◄── entries compacted (from any state)
 */

import { assert } from '@vacancy/shared'

export type ProgressState = 'probe' | 'replicate' | 'snapshot'

/** Unacknowledged messages with entries, oldest first: last index and bytes of each. */
type Window = {
  readonly messagesMax: number
  /**
   * How many may be in flight now: halved by a rejection, raised by one for each message that is acknowledged. On a
   * network that reorders, a full window sent again for each rejection would cause as many new rejections.
   */
  messages: number
  readonly bytesMax: number
  readonly lastIndexes: Float64Array
  readonly sizes: Float64Array
  head: number
  count: number
  bytes: number
}

export type Progress = ReturnType<typeof createProgress>

/**
 * Whether a peer replied within about one check-quorum interval. `isActive` alone is false for all peers right after a
 * check.
 */
export function isReachable({ isActive, wasActive }: Progress): boolean {
  return isActive || wasActive
}

export type WindowLimits = { readonly inflightMessages: number; readonly inflightBytes: number }

/**
 * docs/design/consensus.md#when-a-configuration-takes-effect: a new peer counts as active, so that check-quorum waits
 * for its first contact.
 */
export function createProgress(id: number, next: number, limits: WindowLimits) {
  assert(limits.inflightMessages >= 1, 'a window allows at least one message')
  return {
    id,
    isVoter: false,
    isOutgoing: false,
    /** Whether its acknowledgements count: not before the member is bound (docs/design/consensus.md#identities). */
    counts: true,
    state: 'probe' as ProgressState,
    /** The log of the peer matches the leader's up to this index. */
    match: 0,
    /** First index to send. */
    next,
    /** Answered since the quorum was last checked (docs/design/consensus.md#check-quorum). */
    isActive: true,
    /** Answered in the interval before that. */
    wasActive: false,
    /** A probe is in flight, or the window is full: entries wait for a reply. */
    isPaused: false,
    /** Index of the offered snapshot; 0 for none. */
    pendingSnapshot: 0,
    /** Greatest commit index sent to it with an append (docs/design/consensus.md#replication). */
    sentCommit: 0,
    /** Latest round of reads it confirmed (docs/design/consensus.md#reads). */
    readRound: 0,
    /** First index of the entries being read from disk for it, and the upper bound; 0 for none. */
    reading: 0,
    readingTo: 0,
    window: {
      messagesMax: limits.inflightMessages,
      messages: limits.inflightMessages,
      bytesMax: limits.inflightBytes,
      lastIndexes: new Float64Array(limits.inflightMessages),
      sizes: new Float64Array(limits.inflightMessages),
      head: 0,
      count: 0,
      bytes: 0,
    },
  }
}

export function isWindowFull({ window }: Progress): boolean {
  return window.count >= window.messages || window.bytes >= window.bytesMax
}

/** Sends nothing until it answers. */
export function isWaiting(progress: Progress): boolean {
  return progress.state === 'snapshot' || progress.isPaused || progress.reading !== 0
}

/** Entries up to `lastIndex` are in flight. */
export function noteSent(progress: Progress, lastIndex: number, bytes: number): void {
  assert(lastIndex >= progress.next, 'entries are sent in order')
  if (progress.state === 'probe') {
    progress.isPaused = true
    return
  }
  const { window } = progress
  assert(window.count < window.messagesMax, 'messages in flight never exceed the window')
  const at = (window.head + window.count) % window.messagesMax
  window.lastIndexes[at] = lastIndex
  window.sizes[at] = bytes
  window.count++
  window.bytes += bytes
  progress.next = lastIndex + 1
  progress.isPaused = isWindowFull(progress)
}

/**
 * A message without entries is in flight: one in probe, and one for a full window until the next heartbeat
 * (docs/design/consensus.md#replication).
 */
export function noteProbe(progress: Progress): void {
  progress.isPaused = progress.state === 'probe' || isWindowFull(progress)
}

/** Messages that end at or below `index` have arrived. */
function freeTo(window: Window, index: number): void {
  while (window.count > 0 && window.lastIndexes[window.head] <= index) {
    window.bytes -= window.sizes[window.head]
    window.head = (window.head + 1) % window.messagesMax
    window.count--
    if (window.messages < window.messagesMax) window.messages++
  }
}

function emptyWindow(window: Window): void {
  window.head = 0
  window.count = 0
  window.bytes = 0
}

/** @returns whether `match` grew */
export function acknowledge(progress: Progress, index: number): boolean {
  const isNews = index > progress.match
  if (isNews) progress.match = index
  progress.next = Math.max(progress.next, index + 1)
  if (progress.state === 'replicate') {
    freeTo(progress.window, index)
    progress.isPaused = isWindowFull(progress)
  } else if (progress.state === 'probe' && isNews) progress.isPaused = false
  return isNews
}

/**
 * docs/design/consensus.md#replication: the peer lacks the entry before the ones it was sent; `agreeable` is where its
 * log and the leader's may match.
 *
 * @returns false for a stale rejection, which is ignored
 */
export function retreat(progress: Progress, refusedIndex: number, agreeable: number): boolean {
  if (progress.state === 'snapshot') return false
  if (progress.state === 'replicate') {
    if (refusedIndex <= progress.match) return false
    progress.window.messages = Math.max(1, progress.window.messages >> 1)
    toProbe(progress)
    return true
  }
  // A peer that revokes an acknowledgement gets the next request with a heartbeat, which avoids a tight loop.
  if (refusedIndex !== progress.next - 1 || refusedIndex <= progress.match) return false
  progress.next = Math.max(Math.min(refusedIndex, agreeable + 1), progress.match + 1)
  progress.sentCommit = Math.min(progress.sentCommit, progress.next - 1)
  progress.isPaused = false
  return true
}

/** `next` is a guess again; after a completed snapshot it is accurate. */
export function toProbe(progress: Progress, known = progress.match): void {
  reset(progress, 'probe')
  progress.next = Math.max(progress.match, known) + 1
  progress.sentCommit = Math.min(progress.sentCommit, progress.next - 1)
}

/**
 * Forgets its acknowledgements: they may come from another incarnation of the id. Only for members that do not count,
 * or that start to.
 */
export function forgetMatch(progress: Progress, known = 0): void {
  progress.match = Math.min(progress.match, known)
  progress.sentCommit = Math.min(progress.sentCommit, progress.match)
}

export function toReplicate(progress: Progress): void {
  reset(progress, 'replicate')
  progress.next = progress.match + 1
}

export function toSnapshot(progress: Progress): void {
  reset(progress, 'snapshot')
}

function reset(progress: Progress, state: ProgressState): void {
  progress.state = state
  progress.isPaused = false
  progress.pendingSnapshot = 0
  progress.reading = 0
  emptyWindow(progress.window)
}

/** docs/design/consensus.md#invariants */
export function assertProgress(progress: Progress, lastIndex: number): void {
  assert(progress.match >= 0, 'a match is an index')
  assert(progress.match < progress.next, 'acknowledged entries are not sent again')
  assert(progress.match <= lastIndex, 'a peer has no entries beyond its leader')
}
