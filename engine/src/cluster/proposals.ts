/** Proposals of a replica: turns a batch of commands into log entries, and their outcomes into replies. */

import { assert, dayOf } from '@vacancy/shared'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, viewOf, writeEntryHeader } from '../raft/entry.ts'
import { type Dropped, hasReady, persisted, propose, provideEntries, type Ready, takeReady } from '../raft/raft.ts'
import type { Applied } from '../store/apply-context.ts'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  type CommandKind,
  KIND,
  kindOfCommand,
  stampCommand,
} from '../store/command.ts'
import { STAYS_LEVEL } from '../store/store.ts'
import { ANSWER_BYTES, ATTACHED, answerOfLogged, REFUSED } from '../threads/writes.ts'
import { readClocks, resumeTime, shardTime } from './keep-time.ts'
import {
  type Answers,
  BATCH_BYTES_MAX,
  type HandOver,
  isBetweenStates,
  type Orphan,
  type Replica,
} from './replica-state.ts'

/**
 * How long a write waits for its outcome, within the 1,400 ms of a bridge
 * (docs/design/consensus.md#outcome-of-a-proposal).
 */
const FATE_MS = 1_200
/** A leader proposes expiry at most this often. */
const EXPIRE_EVERY_MS = 250
/** Token and length before each command of a batch (threads/writes.ts). */
const BATCH_HEADER_BYTES = 8

/** Accepts a batch of commands from one serving thread (threads/writes.ts). */
export function proposeBatch(replica: Replica, sink: number, batch: ArrayBuffer): void {
  const source = admitted(replica, sink, new Uint8Array(batch))
  const view = new DataView(source.buffer)
  const { raft } = replica
  const timeMs = shardTime(replica)
  const day = dayOf(timeMs)
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
    const refusal = refusalOf(replica)
    const entries = refusal === 0 ? encodeEntries(view, source, start, at, bytes, raft.term, timeMs, day) : undefined
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
  return replica.isDiskFull ? REFUSED.diskFull : 0
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

function encodeEntries(
  view: DataView,
  source: Uint8Array,
  start: number,
  end: number,
  bytes: number,
  term: number,
  timeMs: number,
  day: number,
): Uint8Array {
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
  stampCommand(view, ENTRY_HEADER_BYTES, timeMs, dayOf(timeMs))
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

/**
 * Takes the ready work of the core: messages to peers, entries and promises to the log, reads
 * (docs/design/consensus.md#hand-over).
 */
export function pump(replica: Replica): void {
  const { raft } = replica
  noticeRole(replica)
  while (hasReady(raft)) {
    const ready = takeReady(raft)
    handOver(replica, ready)
    noticeRole(replica)
  }
}

function handOver(replica: Replica, ready: Ready): void {
  const { link } = replica
  const { token, hardState, entries, snapshot } = ready
  if (link) {
    for (const message of ready.sendNow) link.send(message)
    for (const { context, index } of ready.readStates) link.onReadState(context, index)
    for (const { context, reason } of ready.droppedReads) link.onReadDropped(context, reason)
    for (const read of ready.logReads) readForPeer(replica, read)
    for (const { peer } of ready.offers) link.onOffer(peer)
  }
  replica.handOvers.push({ token, isStored: !ready.mustStore, promises: ready.sendAfterPersist })
  if (ready.mustStore) replica.log({ type: 'append', token, hardState, entries, refusals: replica.refusals })
  else confirmStored(replica)
  if (!snapshot) return
  assert(link !== undefined && !replica.installing, 'one snapshot at a time comes from a peer')
  replica.installing = snapshot
  link.onInstall(snapshot)
}

/** A peer needs entries that are no longer in memory. */
function readForPeer(replica: Replica, { peer, firstIndex, lastIndex, bytesMax }: Ready['logReads'][number]): void {
  const { raft, readLog } = replica
  if (!readLog) return provideEntries(raft, peer, 'compacted')
  const start = raft.runs.findLastIndex((run) => run.firstIndex <= firstIndex)
  const terms = raft.runs.slice(Math.max(0, start)).filter((run) => run.firstIndex <= lastIndex)
  readLog({ firstIndex, lastIndex, bytesMax, terms }, (batches) => {
    provideEntries(raft, peer, batches)
    pump(replica)
  })
}

/** All hand-overs up to `token` are durable. */
export function markStored(replica: Replica, token: number): void {
  for (const handed of replica.handOvers) {
    if (handed.token > token) break
    handed.isStored = true
  }
  confirmStored(replica)
}

/**
 * Confirms durable hand-overs to the core in order and sends the promises made with them
 * (docs/design/consensus.md#invariants, docs/design/consensus.md#hand-over).
 */
function confirmStored(replica: Replica): void {
  const { handOvers, raft, link } = replica
  while (handOvers[0]?.isStored) {
    const { token, promises } = handOvers.shift() as HandOver
    persisted(raft, token)
    for (const message of promises) link?.send(message)
  }
}

/** Reacts when the node gains or loses leadership or follows another leader. */
function noticeRole(replica: Replica): void {
  const { raft, seen } = replica
  const { role, term, leader } = raft
  if (role === seen.role && term === seen.term && leader === seen.leader) return
  replica.seen = { role, term, leader }
  const led = seen.role === 'leader'
  const leads = role === 'leader'
  if (led && (!leads || term !== seen.term)) orphanWaiting(replica, seen.term)
  if (leads && (!led || term !== seen.term)) beginTerm(replica)
  if (leader !== 0 && leader !== seen.leader) replica.leaderChanges++
  replica.link?.onRole()
}

function beginTerm(replica: Replica): void {
  const { raft } = replica
  resumeTime(replica)
  readClocks(replica)
  // The empty entry of the term is there already and has no waiter.
  replica.waitingFrom = raft.lastIndex + 1
  replica.waitingSinks = []
  replica.waitingTokens = []
  replica.waitingHead = 0
  replica.proposedAt = []
}

/**
 * This node led and does not know the outcome of these proposals yet. As a follower it will learn it
 * (docs/design/consensus.md#outcome-of-a-proposal).
 */
function orphanWaiting(replica: Replica, term: number): void {
  const deadlineMs = replica.env.clock.monotonicMs() + FATE_MS
  for (let n = replica.waitingHead; n < replica.waitingSinks.length; n++) {
    const sink = replica.waitingSinks[n]
    if (sink === 0) continue
    const index = replica.waitingFrom + n
    const token = replica.waitingTokens[n]
    const code = answerOfLogged('unsure', replica.env.defects)
    if (code !== undefined) putAnswer(replica, sink - 1, token, code, 0, 0)
    else addOrphan(replica, index, { term, sink: sink - 1, token, deadlineMs })
  }
  replica.waitingSinks = []
  replica.waitingTokens = []
  replica.waitingHead = 0
  replica.proposedAt = []
  sendAnswers(replica)
}

function addOrphan(replica: Replica, index: number, orphan: Orphan): void {
  const known = replica.orphans.get(index)
  if (known) known.push(orphan)
  else replica.orphans.set(index, [orphan])
}

/**
 * An entry is applied at the index of earlier proposals: either the proposed entry or one that replaced it for good
 * (docs/design/consensus.md#outcome-of-a-proposal).
 */
export function settleOrphans(replica: Replica, index: number, term: number, result: Applied | undefined): void {
  for (const orphan of replica.orphans.get(index) ?? []) {
    if (orphan.term === term && result) {
      replica.outcomes.applied++
      putApplied(replica, orphan.sink, orphan.token, result)
      continue
    }
    replica.outcomes.dropped++
    const code = answerOfLogged('overwritten', replica.env.defects) ?? REFUSED.outcomeUnknown
    putAnswer(replica, orphan.sink, orphan.token, code, 0, 0)
  }
  replica.orphans.delete(index)
}

/** At the deadline, and when the node ends, the outcome is unknown (docs/design/consensus.md#outcome-of-a-proposal). */
export function giveUpWaiting(replica: Replica, nowMs: number): void {
  const code = answerOfLogged('given-up', replica.env.defects) ?? REFUSED.outcomeUnknown
  for (const [index, orphans] of replica.orphans) {
    const left = orphans.filter(({ deadlineMs }) => deadlineMs > nowMs)
    if (left.length === orphans.length) continue
    for (const orphan of orphans) {
      if (orphan.deadlineMs > nowMs) continue
      replica.outcomes.unknown++
      putAnswer(replica, orphan.sink, orphan.token, code, 0, 0)
    }
    if (left.length === 0) replica.orphans.delete(index)
    else replica.orphans.set(index, left)
  }
  let givenUpTo = 0
  for (const { lastIndex, atMs } of replica.proposedAt) if (nowMs - atMs >= FATE_MS) givenUpTo = lastIndex
  const end = Math.min(givenUpTo - replica.waitingFrom + 1, replica.waitingSinks.length)
  for (let n = replica.waitingHead; n < end; n++) {
    const sink = replica.waitingSinks[n]
    if (sink === 0) continue
    replica.outcomes.unknown++
    putAnswer(replica, sink - 1, replica.waitingTokens[n], code, 0, 0)
    replica.waitingSinks[n] = 0
  }
  sendAnswers(replica)
}

/** The reply for an entry leaves when it is applied, and only once (docs/design/consensus.md#invariants). */
export function answer(replica: Replica, index: number, result: Applied | undefined): void {
  const n = index - replica.waitingFrom
  if (n < 0 || n >= replica.waitingSinks.length) return
  const sink = replica.waitingSinks[n]
  if (sink > 0 && result) {
    replica.outcomes.applied++
    putApplied(replica, sink - 1, replica.waitingTokens[n], result)
  }
  replica.waitingHead = n + 1
  if (replica.waitingHead < 8192) return
  replica.waitingSinks.splice(0, replica.waitingHead)
  replica.waitingTokens.splice(0, replica.waitingHead)
  replica.waitingFrom += replica.waitingHead
  replica.waitingHead = 0
}

const encoder = new TextEncoder()

/** Answers with the outcome of a command, right after it was applied. */
function putApplied(replica: Replica, sink: number, token: number, result: Applied): void {
  const frame = replica.machine.stays.replyTo(result)
  const text = result.detail === '' ? undefined : encoder.encode(result.detail)
  putAnswer(replica, sink, token, result.code, result.value, result.index)
  if (frame) attach(replica, sink, ATTACHED.frame, frame)
  else if (text) attach(replica, sink, ATTACHED.text, text)
}

/** Attaches bytes to the last answer. */
function attach(replica: Replica, sink: number, kind: number, bytes: Uint8Array): void {
  const answers = replica.sinks[sink] as Answers
  growAnswers(answers, 4 + bytes.length)
  const { view, at } = answers
  view.setUint16(at - ANSWER_BYTES + 6, kind, true)
  view.setUint32(at, bytes.length, true)
  new Uint8Array(answers.buffer).set(bytes, at + 4)
  answers.at += 4 + bytes.length
}

function growAnswers(answers: Answers, bytes: number): void {
  if (answers.at + bytes <= answers.buffer.byteLength) return
  const grown = new ArrayBuffer(Math.max(answers.buffer.byteLength * 2, answers.at + bytes))
  new Uint8Array(grown).set(new Uint8Array(answers.buffer, 0, answers.at))
  answers.buffer = grown
  answers.view = new DataView(grown)
}

export function putAnswer(
  replica: Replica,
  sink: number,
  token: number,
  code: number,
  value: number,
  index: number,
): void {
  const answers = replica.sinks[sink] as Answers
  growAnswers(answers, ANSWER_BYTES)
  const { view, at } = answers
  view.setUint32(at, token, true)
  view.setUint8(at + 4, code)
  view.setUint8(at + 5, value)
  view.setUint16(at + 6, 0, true)
  view.setFloat64(at + 8, index, true)
  answers.at += ANSWER_BYTES
}

/** Answers reads of stays from the applied state, in the form of a batch of proposals. */
export function answerStayReads(replica: Replica, sink: number, batch: Uint8Array): void {
  const view = viewOf(batch)
  for (let at = 0; at < batch.length; ) {
    const token = view.getUint32(at, true)
    const end = at + 8 + view.getUint32(at + 4, true)
    const isReadable = !isBetweenStates(replica)
    const { code, frame } = isReadable
      ? replica.machine.stays.read(batch, at + 8, end)
      : { code: REFUSED.notServing, frame: undefined }
    putAnswer(replica, sink, token, code, 0, replica.raft.applied)
    if (frame) attach(replica, sink, ATTACHED.frame, frame)
    at = end
  }
  sendAnswers(replica)
}

/** Answers a read that waited for a confirmation of the shard (reads.ts). */
export function answerRead(replica: Replica, sink: number, token: number, code: number, index: number): void {
  putAnswer(replica, sink, token, code, 0, index)
  sendAnswers(replica)
}

export function sendAnswers(replica: Replica): void {
  for (const answers of replica.sinks) {
    if (answers.at === 0) continue
    answers.sink(answers.buffer.slice(0, answers.at))
    answers.at = 0
  }
}
