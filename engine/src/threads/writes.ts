/**
 * Write requests on their way from a serving thread to the replica thread and back: one message per turn of the event
 * loop in each direction, not one per write.
 *
 *   to the replica   u32 token · u32 length · command, repeated (store/command.ts)
 *   back             ANSWER_BYTES each: u32 token · u8 outcome · u8 value · u16 attached · f64 index, and if something
 *                    is attached: u32 length · bytes, the text of a refusal or the frame of a reply
 */

import { ERRORS } from '@vacancy/shared'
import { type CommandWriter, createCommandWriter } from '../store/command.ts'

/**
 * How long a write waits for its outcome, within the 1,400 ms of a bridge
 * (docs/design/consensus.md#outcome-of-a-proposal).
 */
export const FATE_MS = 1_200
/** A sync that has not returned for this long may never return: no more writes are accepted. */
export const UNANSWERED_MS = 2_500

export const ANSWER_BYTES = 16
/** What follows an answer. A frame has correlation id 0. */
export const ATTACHED = { none: 0, text: 1, frame: 2 } as const
/**
 * Outcomes of the replica itself, above those of the store. Except for `outcomeUnknown` the command is certainly in no
 * log, or certainly overwritten there by a committed entry of another term (docs/design/consensus.md#retryable-errors,
 * docs/design/consensus.md#outcome-of-a-proposal).
 */
export const REFUSED = {
  overloaded: 240,
  notServing: 241,
  diskFull: 242,
  memoryFull: 243,
  notLeader: 244,
  /** In a log, and its outcome was unknown at the deadline, the disconnect or the end of the node. */
  outcomeUnknown: 245,
  noLeader: 246,
  /** Leadership is being transferred to another node. */
  transferring: 247,
  /** A read requires an index that was not applied in time. */
  notCaughtUp: 248,
  /** A read requires an index that no entry of this shard has: it is of another life of the data. */
  unknownIndex: 249,
} as const

const REFUSED_TEXT: { readonly [code: number]: string } = {
  [REFUSED.overloaded]: ERRORS.overloaded.wire,
  [REFUSED.notServing]: ERRORS.not_serving.wire,
  [REFUSED.diskFull]: ERRORS.disk_full.wire,
  [REFUSED.memoryFull]: ERRORS.memory_full.wire,
  [REFUSED.notLeader]: ERRORS.not_leader.wire,
  [REFUSED.outcomeUnknown]: ERRORS.outcome_unknown.wire,
  [REFUSED.noLeader]: ERRORS.no_leader.wire,
  [REFUSED.transferring]: ERRORS.transferring.wire,
  [REFUSED.notCaughtUp]: ERRORS.not_caught_up.wire,
}

/** @returns the wire text of an outcome of the replica, undefined for one of the store */
export function refusedText(code: number): string | undefined {
  return REFUSED_TEXT[code]
}

/**
 * The state of a write in the log of this node:
 *
 * - `overwritten`: an entry of another term is committed in its slot.
 * - `unsure`: the node no longer leads, and the slot is not committed.
 * - `given-up`: the same, at the deadline, the end of the connection or of the node.
 */
export type LoggedFate = 'overwritten' | 'unsure' | 'given-up'

/**
 * The reply to a write that was logged and not applied (docs/design/consensus.md#retryable-errors,
 * docs/design/consensus.md#outcome-of-a-proposal). Only a write that is certainly in no log may be refused: clients
 * repeat a refused write, and one that is applied later would count twice.
 *
 * @returns one of REFUSED; undefined: its writer waits for the outcome
 */
export function answerOfLogged(fate: LoggedFate): number | undefined {
  switch (fate) {
    case 'overwritten':
      return REFUSED.notLeader
    case 'unsure':
      return undefined
    case 'given-up':
      return REFUSED.outcomeUnknown
  }
}

const BATCH_HEADER_BYTES = 8

/** Commands of one turn being collected. */
export type Proposals = { readonly writer: CommandWriter; count: number; startOfLast: number }

export function createProposals(): Proposals {
  return { writer: createCommandWriter(64 * 1024), count: 0, startOfLast: 0 }
}

/** Reserves the header of the next command. Write it to `proposals.writer`, then call `endProposal`. */
export function beginProposal(proposals: Proposals): CommandWriter {
  const { writer } = proposals
  proposals.startOfLast = writer.at
  writer.at += BATCH_HEADER_BYTES
  return writer
}

/** Removes a proposal whose values turned out to be invalid. */
export function dropProposal(proposals: Proposals): void {
  proposals.writer.at = proposals.startOfLast
}

export function endProposal(proposals: Proposals, token: number): void {
  const { writer, startOfLast } = proposals
  writer.view.setUint32(startOfLast, token, true)
  writer.view.setUint32(startOfLast + 4, writer.at - startOfLast - BATCH_HEADER_BYTES, true)
  proposals.count++
}

/** Returns the batch as its own bytes, to be transferred. */
export function takeProposals(proposals: Proposals): ArrayBuffer {
  const { writer } = proposals
  const bytes = writer.bytes.slice(0, writer.at).buffer as ArrayBuffer
  writer.at = 0
  proposals.count = 0
  return bytes
}
