/** Records one client's part of a chaos run (records.ts), and executes single operations for it. */

import { closeSync, openSync, writeSync } from 'node:fs'
import {
  type CallOptions,
  type VacancyClient,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from '@vacancy/client'
import type { OperationKind, Outcome } from '../sim/history.ts'
import { type Ground, type Line, type Mode, placeOf } from './records.ts'

/**
 * Memory shared by all clients of a run.
 *
 *   bytes    holds                                          writer
 *   0–7      sequence number of the next call or return               all, by Atomics.add
 *   8–15     greatest index of an acknowledged write        all, by compare and exchange
 *   16–19    1 once clients shall end                       the run
 *   20–23    which packages are hot                         the run
 */
export type Board = { readonly wide: BigInt64Array; readonly words: Int32Array }
const [MOMENT, INDEX, ENDED, EPOCH] = [0, 1, 4, 5] as const
export const BOARD_BYTES = 24

export function boardOn(memory: SharedArrayBuffer): Board {
  return { wide: new BigInt64Array(memory), words: new Int32Array(memory) }
}

export const isOver = ({ words }: Board) => Atomics.load(words, ENDED) === 1
export const endClients = ({ words }: Board) => void Atomics.store(words, ENDED, 1)
export const epochOf = ({ words }: Board) => Atomics.load(words, EPOCH)
export const nextEpoch = ({ words }: Board) => void Atomics.add(words, EPOCH, 1)
export const acknowledgedIndex = ({ wide }: Board) => Number(Atomics.load(wide, INDEX))

function momentOf({ wide }: Board): number {
  return Number(Atomics.add(wide, MOMENT, 1n))
}

function noteIndex({ wide }: Board, index: number): void {
  const found = BigInt(index)
  for (let seen = Atomics.load(wide, INDEX); seen < found; ) {
    const before = Atomics.compareExchange(wide, INDEX, seen, found)
    if (before === seen) return
    seen = before
  }
}

/** The monotonic clock shared by all threads and processes of this machine. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

export type Recorder = { readonly board: Board; readonly file: number; pending: string[]; nextId: number }

const LINES_A_WRITE = 64

export function openRecorder(path: string, board: Board): Recorder {
  return { board, file: openSync(path, 'w'), pending: [], nextId: 0 }
}

export function closeRecorder(recorder: Recorder): void {
  flush(recorder)
  closeSync(recorder.file)
}

function note(recorder: Recorder, line: Line): void {
  recorder.pending.push(JSON.stringify(line))
  if (recorder.pending.length >= LINES_A_WRITE) flush(recorder)
}

function flush(recorder: Recorder): void {
  if (recorder.pending.length > 0) writeSync(recorder.file, `${recorder.pending.join('\n')}\n`)
  recorder.pending = []
}

/** The result of one attempt. */
export type Answer = {
  readonly outcome: Outcome
  readonly value: number
  readonly index: number
  readonly code: string
}

export type OperationCall = { readonly key: number; readonly kind: OperationKind; readonly amount: number }
export type RequestKey = { readonly session: string; readonly requestNumber: number }

export function noteCall(recorder: Recorder, { key, kind, amount }: OperationCall, mode: Mode, bound = 0): number {
  const id = recorder.nextId++
  note(recorder, ['c', id, key, kind, amount, momentOf(recorder.board), machineMs(), mode, bound])
  return id
}

export function noteReturn(recorder: Recorder, id: number, { outcome, value, index, code }: Answer): void {
  note(recorder, ['r', id, outcome, value, momentOf(recorder.board), machineMs(), index, code])
  if (index > 0) noteIndex(recorder.board, index)
}

export function noteRepeat(recorder: Recorder, id: number, first: Answer, second: Answer): void {
  note(recorder, ['d', id, JSON.stringify(first), JSON.stringify(second)])
}

/** Executes one operation, with the client's own retries. Never rejects. */
export async function attempt(
  client: VacancyClient,
  ground: Ground,
  { key, kind, amount }: OperationCall,
  options: CallOptions & { readonly requestKey?: RequestKey | undefined } = {},
): Promise<Answer> {
  const { requestKey, ...callOptions } = options
  const night = placeOf(ground, key)
  const writing = { ...night, ...requestKey, wantIndex: 1 }
  try {
    switch (kind) {
      case 'read': {
        const { availability } = await client.getPackage(night, callOptions)
        return { outcome: 'done', value: availability, index: 0, code: '' }
      }
      case 'set': {
        const values = { availability: amount, finalPrice: 1_000, rateFeatures: [] }
        const { index } = await client.send('SETROOMPKG', { ...writing, ...values }, callOptions)
        return { outcome: 'done', value: amount, index: Number(index), code: '' }
      }
      case 'delete': {
        const { index } = await client.send('DELROOMDAY', writing, callOptions)
        return { outcome: 'done', value: 0, index: Number(index), code: '' }
      }
      default: {
        const command = kind === 'increase' ? 'INCROOMAVL' : 'DECROOMAVL'
        const { availability, index } = await client.send(command, { ...writing, amount }, callOptions)
        return { outcome: 'done', value: availability, index: Number(index), code: '' }
      }
    }
  } catch (error) {
    return answerOf(error, kind)
  }
}

/** Each refusal ends with the current value: `…, 3 left`, `…, it is 254`, `not enough rooms left, there are 0`. */
const LEFT = /(?:, (\d+) left|, (?:it is|there are) (\d+))$/

function answerOf(error: unknown, kind: OperationKind): Answer {
  const none = { value: 0, index: 0 }
  if (error instanceof VacancyUnknownOutcomeError) return { ...none, outcome: 'unknown', code: error.code }
  if (error instanceof VacancyRetryError) {
    return { ...none, outcome: kind === 'read' ? 'unknown' : 'none', code: error.code }
  }
  if (error instanceof VacancyRequestError) {
    if (error.code === 'NOT_FOUND') return { ...none, outcome: 'missing', code: error.code }
    const left = LEFT.exec(error.message)
    if (left) return { ...none, outcome: 'refused', value: Number(left[1] ?? left[2]), code: error.code }
  }
  // Unexpected: the judge reports it.
  const name = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { ...none, outcome: 'unknown', code: `unexpected ${name}` }
}
