/** Records the clients of a chaos run (records.ts), and executes single operations for them. */

import {
  type CallOptions,
  type VacancyClient,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from '@vacancy/client'
import type { OperationKind, Outcome } from '../sim/history.ts'
import { type Doubled, type Ground, type Mode, placeOf, type Recorded, type Restore } from './records.ts'

/** What all clients of a run share: their records, in the order of the calls, and more. */
export type Board = {
  readonly operations: Recorded[]
  readonly doubled: Doubled[]
  readonly restores: Restore[]
  repeats: number
  /** The number of the next call or return. */
  moment: number
  /** Greatest index of an acknowledged write. */
  index: number
  /** Which packages are hot. */
  epoch: number
  /** The clients shall end. */
  isOver: boolean
}

export function createBoard(): Board {
  return { operations: [], doubled: [], restores: [], repeats: 0, moment: 0, index: 0, epoch: 0, isOver: false }
}

/** The monotonic clock shared by all processes of this machine. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

export type Recorder = { readonly board: Board; readonly client: number }

/** The result of one attempt. */
export type Answer = {
  readonly outcome: Outcome
  readonly value: number
  readonly index: number
  readonly code: string
}

export type OperationCall = { readonly key: number; readonly kind: OperationKind; readonly amount: number }
export type RequestKey = { readonly session: string; readonly requestNumber: number }

export function noteCall({ board, client }: Recorder, call: OperationCall, mode: Mode, bound = 0): Recorded {
  const times = { calledAt: board.moment++, calledMs: machineMs(), returnedAt: Infinity, returnedMs: Infinity }
  const id = board.operations.length
  const result = { outcome: 'unknown', value: 0, index: 0, code: '' } as const
  const operation: Recorded = { id, process: client, client, ...call, mode, bound, ...times, ...result }
  board.operations.push(operation)
  return operation
}

export function noteReturn({ board }: Recorder, operation: Recorded, { outcome, value, index, code }: Answer): void {
  Object.assign(operation, { outcome, value, code })
  const [returnedAt, returnedMs] = [board.moment++, machineMs()]
  if (outcome === 'unknown') return
  Object.assign(operation, { returnedAt, returnedMs, index })
  board.index = Math.max(board.index, index)
}

/** A completed write was repeated. */
export function noteRepeat({ board }: Recorder, operation: Recorded, ...answers: readonly [Answer, Answer]): void {
  board.repeats++
  const [first, second] = answers.map((answer) => JSON.stringify(answer)) as [string, string]
  if (first !== second) board.doubled.push({ operation, first, second })
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

/** Executes one operation, and records its call and return. */
export async function perform(
  {
    recorder,
    client,
    ground,
  }: { readonly recorder: Recorder; readonly client: VacancyClient; readonly ground: Ground },
  operation: OperationCall,
  mode: Mode,
  options: CallOptions = {},
  bound = 0,
): Promise<Answer> {
  const noted = noteCall(recorder, operation, mode, bound)
  const answer = await attempt(client, ground, operation, options)
  noteReturn(recorder, noted, answer)
  return answer
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
