/** Proposals of a replica: turns a batch of commands into log entries. Their outcomes are in answers.ts. */

import { assert } from '@vacancy/shared'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, viewOf, writeEntryHeader } from '../raft/entry.ts'
import { type Dropped, propose } from '../raft/raft.ts'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  type CommandKind,
  KIND,
  kindOfCommand,
  stampCommand,
} from '../store/command.ts'
import { STAYS_LEVEL } from '../store/store.ts'
import { REFUSED } from '../threads/writes.ts'
import { putAnswer, sendAnswers } from './answers.ts'
import { pump } from './hand-over.ts'
import { shardTime } from './keep-time.ts'
import { BATCH_BYTES_MAX, isStuck, type Replica } from './replica-state.ts'

/** A leader proposes expiry at most this often. */
const EXPIRE_EVERY_MS = 250
/** Token and length before each command of a batch (threads/writes.ts). */
const BATCH_HEADER_BYTES = 8

/** Accepts a batch of commands from one serving thread (threads/writes.ts). */
export function proposeBatch(replica: Replica, sink: number, batch: ArrayBuffer): void {
  const source = admitted(replica, sink, new Uint8Array(batch))
  const view = viewOf(source)
  const { raft } = replica
  const timeMs = shardTime(replica)
  const day = replica.machine.time.dayAt(timeMs)
  let at = 0
  while (at < source.length) {
    // As many commands as fit one hand-over to the log.
    const start = at
    let count = 0
    let bytes = 0
    while (at < source.length && bytes < BATCH_BYTES_MAX) {
      const length = view.getUint32(at + 4, true)
      bytes += ENTRY_HEADER_BYTES + length
      at += 8 + length
      count++
    }
    const refusal = refusalOfClients(replica)
    const entries =
      refusal === 0 ? encodeEntries({ source, start, end: at, bytes, term: raft.term, timeMs, day }) : undefined
    const first = entries ? propose(raft, count, entries) : 'overloaded'
    if (typeof first === 'number') {
      waitForBatch(replica, sink, view, start, at)
      replica.proposedAt.push({ lastIndex: raft.lastIndex, atMs: replica.env.clock.monotonicMs() })
      continue
    }
    const code = refusal !== 0 ? refusal : droppedCode(first)
    replica.outcomes.dropped += count
    for (let from = start; from < at; from += 8 + view.getUint32(from + 4, true)) {
      putAnswer(replica, sink, view.getUint32(from, true), code, 0, 0)
    }
  }
  sendAnswers(replica)
  pump(replica)
}

/** The batch without stays for which the ledger has no room: they are refused before any log has them. */
function admitted(replica: Replica, sink: number, batch: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const { machine, raft } = replica
  if (machine.featureLevel() < STAYS_LEVEL || raft.role !== 'leader') return batch
  const view = viewOf(batch)
  const refused: number[] = []
  let refusedBytes = 0
  for (let at = 0; at < batch.length; ) {
    const end = at + BATCH_HEADER_BYTES + view.getUint32(at + 4, true)
    const kind = kindOfCommand(view, at + BATCH_HEADER_BYTES)
    const takesRooms = kind === KIND.bookStay || kind === KIND.holdStay
    if (takesRooms && !machine.stays.admits(batch, at + BATCH_HEADER_BYTES, end)) {
      refused.push(at, end)
      refusedBytes += end - at
      replica.outcomes.dropped++
      putAnswer(replica, sink, view.getUint32(at, true), REFUSED.overloaded, 0, 0)
    }
    at = end
  }
  if (refused.length === 0) return batch
  const rest = new Uint8Array(batch.length - refusedBytes)
  let from = 0
  let to = 0
  for (let n = 0; n <= refused.length; n += 2) {
    const kept = batch.subarray(from, refused[n])
    rest.set(kept, to)
    to += kept.length
    from = refused[n + 1] ?? batch.length
  }
  return rest
}

/** Has holds whose deadline has passed expire, unless other entries do so. */
export function expireHolds(replica: Replica, now: number): void {
  const { machine, raft } = replica
  if (raft.role !== 'leader' || now - replica.lastExpiryMs < EXPIRE_EVERY_MS) return
  if (machine.featureLevel() < STAYS_LEVEL || machine.stays.nextDeadlineMs() > shardTime(replica)) return
  if (proposeOwn(replica, KIND.expireHolds, new Uint8Array(0))) replica.lastExpiryMs = now
}

export function refusalOf(replica: Replica): number {
  const { raft } = replica
  if (replica.isStopping) return replica.link ? REFUSED.noLeader : REFUSED.notServing
  if (raft.role !== 'leader') {
    if (!replica.link) return REFUSED.notServing
    return raft.leader === 0 ? REFUSED.noLeader : REFUSED.notLeader
  }
  // A new shard waits for the voters' clocks.
  if (replica.clock.timeMs === 0) return REFUSED.noLeader
  // The command would wait behind the load, perhaps longer than its client does.
  if (replica.loading) return REFUSED.notServing
  // It would wait as well, for as long as its client does.
  if (isStuck(replica)) return REFUSED.overloaded
  return replica.isDiskFull ? REFUSED.diskFull : 0
}

/** An entry before the genesis has an index of the former life of the data (docs/design/consensus.md#indexes). */
function refusalOfClients(replica: Replica): number {
  const refusal = refusalOf(replica)
  return refusal === 0 && replica.link?.hasBegun() === false ? REFUSED.noLeader : refusal
}

/** The error code of a proposal that is certainly in no log (docs/design/consensus.md#retryable-errors). */
function droppedCode(reason: Dropped): number {
  switch (reason) {
    case 'not-leader':
      return REFUSED.notLeader
    case 'no-leader':
      return REFUSED.noLeader
    case 'transferring':
      return REFUSED.transferring
    default:
      return REFUSED.overloaded
  }
}

type BatchPart = {
  readonly source: Uint8Array
  readonly start: number
  readonly end: number
  /** Of the entries. */
  readonly bytes: number
  readonly term: number
  readonly timeMs: number
  readonly day: number
}

function encodeEntries({ source, start, end, bytes, term, timeMs, day }: BatchPart): Uint8Array {
  const view = viewOf(source)
  const entries = new Uint8Array(bytes)
  const target = viewOf(entries)
  let to = 0
  for (let at = start; at < end; ) {
    const length = view.getUint32(at + 4, true)
    writeEntryHeader(target, to, term, ENTRY_KIND.command, length)
    entries.set(source.subarray(at + 8, at + 8 + length), to + ENTRY_HEADER_BYTES)
    stampCommand(target, to + ENTRY_HEADER_BYTES, timeMs, day)
    to += ENTRY_HEADER_BYTES + length
    at += 8 + length
  }
  return entries
}

function waitForBatch(replica: Replica, sink: number, view: DataView, start: number, end: number): void {
  fillWaiting(replica)
  for (let at = start; at < end; at += 8 + view.getUint32(at + 4, true)) {
    replica.waitingSinks.push(sink + 1)
    replica.waitingTokens.push(view.getUint32(at, true))
  }
  assert(replica.waitingFrom + replica.waitingSinks.length === replica.raft.lastIndex + 1, 'each entry has a waiter')
}

/** Entries without a waiter, such as the empty one of a term, have a place in the list too. */
function fillWaiting(replica: Replica): void {
  const { raft } = replica
  const unsent = raft.unsent[raft.unsent.length - 1]
  const due = (unsent?.firstIndex ?? raft.lastIndex + 1) - replica.waitingFrom
  while (replica.waitingSinks.length < due) {
    replica.waitingSinks.push(0)
    replica.waitingTokens.push(0)
  }
}

/** Proposes a command of the node itself. @returns whether it was accepted */
export function proposeOwn(replica: Replica, kind: CommandKind, body: Uint8Array): boolean {
  if (refusalOf(replica) !== 0) return false
  const { own, raft } = replica
  own.at = 0
  beginCommand(own, kind)
  const length = COMMAND_HEADER_BYTES + body.length
  const entries = new Uint8Array(ENTRY_HEADER_BYTES + length)
  const view = viewOf(entries)
  writeEntryHeader(view, 0, raft.term, ENTRY_KIND.command, length)
  entries.set(own.bytes.subarray(0, COMMAND_HEADER_BYTES), ENTRY_HEADER_BYTES)
  entries.set(body, ENTRY_HEADER_BYTES + COMMAND_HEADER_BYTES)
  const timeMs = shardTime(replica)
  stampCommand(view, ENTRY_HEADER_BYTES, timeMs, replica.machine.time.dayAt(timeMs))
  const first = propose(raft, 1, entries)
  if (typeof first !== 'number') return false
  fillWaiting(replica)
  replica.waitingSinks.push(0)
  replica.waitingTokens.push(0)
  replica.proposedAt.push({ lastIndex: raft.lastIndex, atMs: replica.env.clock.monotonicMs() })
  pump(replica)
  return true
}

/** Proposes that apply follows newer rules from this entry on. The caller knows that all members support them. */
export function raiseFeatureLevel(replica: Replica, level: number): boolean {
  if (replica.machine.featureLevel() >= level) return true
  const body = new Uint8Array(4)
  viewOf(body).setUint32(0, level, true)
  return proposeOwn(replica, KIND.featureLevel, body)
}

/** Logs the least memory of the voters. @returns whether the entry is applied or proposed */
export function setMemoryBudget(replica: Replica, bytes: number): boolean {
  if (replica.machine.budgetUse().budgetBytes === bytes) return true
  const body = new Uint8Array(8)
  viewOf(body).setFloat64(0, bytes, true)
  return proposeOwn(replica, KIND.memoryBudget, body)
}
