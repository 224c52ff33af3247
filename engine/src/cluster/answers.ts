/** Outcomes of proposals: which writer gets which answer, and when. Also answers to reads that the replica thread serves. */

import { viewOf } from '../raft/entry.ts'
import type { Applied } from '../store/apply-context.ts'
import { ANSWER_BYTES, ATTACHED, answerOfLogged, FATE_MS, REFUSED } from '../threads/writes.ts'
import { type Answers, isBetweenStates, type Orphan, type Replica } from './replica-state.ts'

/**
 * This node led and does not know the outcome of these proposals yet. As a follower it will learn it
 * (docs/design/consensus.md#outcome-of-a-proposal).
 */
export function orphanWaiting(replica: Replica, term: number): void {
  const deadlineMs = replica.env.clock.monotonicMs() + FATE_MS
  for (let n = replica.waitingHead; n < replica.waitingSinks.length; n++) {
    const sink = replica.waitingSinks[n]
    if (sink === 0) continue
    const index = replica.waitingFrom + n
    const token = replica.waitingTokens[n]
    const code = answerOfLogged('unsure')
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
    const code = answerOfLogged('overwritten') ?? REFUSED.outcomeUnknown
    putAnswer(replica, orphan.sink, orphan.token, code, 0, 0)
  }
  replica.orphans.delete(index)
}

/** At the deadline, and when the node ends, the outcome is unknown (docs/design/consensus.md#outcome-of-a-proposal). */
export function giveUpWaiting(replica: Replica, nowMs: number): void {
  const code = answerOfLogged('given-up') ?? REFUSED.outcomeUnknown
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
    putAnswer(replica, sink, token, code, 0, replica.raft.applied + replica.machine.indexBase())
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
