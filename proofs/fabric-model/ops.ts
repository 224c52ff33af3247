/**
 * Operations of the model, their frames, and what must hold of each: an operation carries its number in its fields,
 * and its reply repeats it.
 */

import type { Scheduler } from '@vacancy/testkit/scheduler'
import { type Class, type Counts, count } from './counts.ts'

export type Op = {
  readonly number: number
  readonly segment: string
  readonly command: string
  readonly isWrite: boolean
  readonly hasKey: boolean
  readonly isLong: boolean
  /** A foreign component may have executed it and answered as if not. */
  isInDoubt: boolean
  /** Times that a node got it. */
  arrivals: number
  /** Times that it took effect, and when first: a number that grows with each effect of the run. */
  effects: number
  effectOrder: number
  answer: string
}

export type Law = {
  readonly ops: Op[]
  readonly counts: Counts
  readonly scheduler: Scheduler
  effects: number
  hash: number
  /** What happened to each operation, in words; undefined while it is not wanted. */
  trail: Map<number, string[]> | undefined
}

export function createLaw(counts: Counts, scheduler: Scheduler): Law {
  return { ops: [], counts, scheduler, effects: 0, hash: 0x811c9dc5, trail: undefined }
}

export class Violation extends Error {
  readonly operations: readonly number[]

  constructor(message: string, ...operations: readonly Op[]) {
    super(message)
    this.operations = operations.map(({ number }) => number)
  }
}

/** Notes a step of an operation. */
export function trace({ trail, scheduler }: Law, op: Op | number, what: string): void {
  if (trail === undefined) return
  const number = typeof op === 'number' ? op : op.number
  const steps = trail.get(number)
  const line = `${(scheduler.nowUs / 1000).toFixed(3)} ms ${what}`
  if (steps) steps.push(line)
  else trail.set(number, [line])
}

/** Codes that promise that a write was not executed. */
const NOT_EXECUTED = new Set(['308', '404', '405', '429', '503'])

function promisesNothing(answer: string): boolean {
  return NOT_EXECUTED.has(answer) || /^[A-Z_]+: /.test(answer)
}

export function newOp(law: Law, given: Pick<Op, 'segment' | 'command' | 'isWrite' | 'hasKey' | 'isLong'>): Op {
  const op: Op = {
    ...given,
    number: law.ops.length + 1,
    isInDoubt: false,
    arrivals: 0,
    effects: 0,
    effectOrder: 0,
    answer: '',
  }
  law.ops.push(op)
  count(law.counts, 'requests')
  count(law.counts, op.isWrite ? 'writes' : 'reads')
  if (op.hasKey) count(law.counts, 'writes with a key')
  if (op.isLong) count(law.counts, 'long requests')
  return op
}

export function opOf(law: Law, number: number): Op {
  const op = law.ops[number - 1]
  if (op === undefined) throw new Violation(`a node got operation ${number}, which no client sent`)
  return op
}

/** A node executes a write. A repeated key takes no effect. */
export function execute(law: Law, op: Op): void {
  if (!op.isWrite) return
  if (op.hasKey && op.effects > 0) return count(law.counts, 'repeats of a key')
  op.effects++
  trace(law, op, 'is executed')
  note(law, op.number * 4 + 1)
  if (op.effects > 1) throw new Violation(`write ${op.number} was executed twice`, op)
  op.effectOrder = ++law.effects
  count(law.counts, 'executed writes')
  if (promisesNothing(op.answer) && !op.isInDoubt) {
    throw new Violation(`write ${op.number} was executed after its client got ${op.answer}`, op)
  }
}

/** The client of an operation gets its reply. @param text of an error; '' for success */
export function answered(law: Law, op: Op, text: string): void {
  const isSuccess = text === ''
  if (op.answer !== '') throw new Violation(`request ${op.number} was answered twice: ${op.answer}, then ${text}`, op)
  trace(law, op, `is answered ${text || 'success'}`)
  op.answer = isSuccess ? 'success' : text
  note(law, op.number * 4 + 2)
  const name: Class = isSuccess ? 'success' : /^\d{3}$/.test(text) ? (text as Class) : 'refused by text'
  count(law.counts, name)
  if (text === '308' || text === '405') throw new Violation(`request ${op.number}: a client got ${text}`, op)
  if (!op.isWrite) return
  if (isSuccess && op.effects === 0)
    throw new Violation(`write ${op.number} succeeded without having been executed`, op)
  if (promisesNothing(text) && op.effects > 0 && !op.isInDoubt) {
    throw new Violation(`write ${op.number} was executed and answered ${text}`, op)
  }
}

/** Mixes something into the trace of the run. */
function note(law: Law, what: number): void {
  law.hash = Math.imul(law.hash ^ what ^ law.scheduler.nowUs, 0x01000193) >>> 0
}

const FIELD_NUMBER = 3
const FIELD_BYTES = 9
const SESSION_FIELD = 0x8010

/** A request in its envelope, or bare for the segment ''. */
export function requestFrame(op: Op, id: number, flag: boolean, padding: number): Buffer {
  const { command, segment, hasKey } = op
  const payload = 1 + command.length + 2 + 11 + (padding > 0 ? 7 + padding : 0) + (hasKey ? 15 : 0)
  const envelope = segment === '' ? 0 : 7 + segment.length
  const frame = Buffer.alloc(envelope + 9 + payload, 0x2e)
  let at = 0
  if (envelope > 0) {
    frame[0] = 0xfe
    frame.writeUInt32LE(frame.length - 5, 1)
    frame[5] = segment.length
    frame.write(segment, 6, 'latin1')
    frame[envelope - 1] = flag ? 1 : 0
    at = envelope
  }
  frame[at] = 0xff
  frame.writeUInt32LE(id, at + 1)
  frame.writeUInt32LE(payload, at + 5)
  at += 9
  frame[at] = command.length
  frame.write(command, at + 1, 'latin1')
  at += 1 + command.length
  frame.writeUInt16LE(1 + (padding > 0 ? 1 : 0) + (hasKey ? 1 : 0), at)
  at = field(frame, at + 2, 1, FIELD_NUMBER, 4)
  frame.writeUInt32LE(op.number, at)
  at += 4
  if (padding > 0) at = field(frame, at, 2, FIELD_BYTES, padding) + padding
  if (hasKey) field(frame, at, SESSION_FIELD, FIELD_NUMBER, 8)
  return frame
}

function field(frame: Buffer, at: number, id: number, type: number, length: number): number {
  frame.writeUInt16LE(id, at)
  frame[at + 2] = type
  frame.writeUInt32LE(length, at + 3)
  return at + 7
}

/** The operation of a request, whose bare frame begins at `inner`. */
export function numberOf(frame: Buffer, inner: number): number {
  return frame.readUInt32LE(inner + 9 + 1 + (frame[inner + 9] as number) + 2 + 7)
}

/** SUCCESS with the number of the operation. */
export function successFrame(id: number, op: Op, padding: number): Buffer {
  const frame = Buffer.alloc(9 + 8 + 2 + 11 + (padding > 0 ? 7 + padding : 0), 0x2b)
  begin(frame, id, 'SUCCESS', padding > 0 ? 2 : 1)
  const at = field(frame, 19, 1, FIELD_NUMBER, 4)
  frame.writeUInt32LE(op.number, at)
  if (padding > 0) field(frame, at + 4, 2, FIELD_BYTES, padding)
  return frame
}

/** ERROR as components of this project and nodes write it. */
export function refusalFrame(id: number, text: string): Buffer {
  const frame = Buffer.alloc(9 + 6 + 2 + 7 + text.length)
  begin(frame, id, 'ERROR', 1)
  frame.write(text, field(frame, 17, 1, 1, text.length), 'latin1')
  return frame
}

/** ERROR as existing routers and bridges write it: the field claims 4 bytes, and 7 follow. */
export function malformedFrame(id: number, code: string): Buffer {
  const frame = Buffer.alloc(9 + 6 + 2 + 7 + 7)
  begin(frame, id, 'ERROR', 1)
  const at = field(frame, 17, 1, 1, 4)
  frame.writeUInt32LE(3, at)
  frame.write(code, at + 4, 'latin1')
  return frame
}

/** What a node answers to GETCODECS: one field of raw bytes. */
export function listFrame(id: number): Buffer {
  const names = 'a,b'
  const frame = Buffer.alloc(9 + 8 + 2 + 7 + names.length)
  begin(frame, id, 'SUCCESS', 1)
  frame.write(names, field(frame, 19, 1, FIELD_BYTES, names.length), 'latin1')
  return frame
}

function begin(frame: Buffer, id: number, status: string, fields: number): void {
  frame[0] = 0xff
  frame.writeUInt32LE(id, 1)
  frame.writeUInt32LE(frame.length - 9, 5)
  frame[9] = status.length
  frame.write(status, 10, 'latin1')
  frame.writeUInt16LE(fields, 10 + status.length)
}

export type Reply = { readonly id: number; readonly number: number; readonly text: string; readonly length: number }

/** A reply as a client reads it; undefined for one that no component or node of the model writes. */
export function readReply(frame: Buffer): Reply | undefined {
  const id = frame.readUInt32LE(1)
  const { length } = frame
  const status = frame.toString('latin1', 10, 10 + (frame[9] as number))
  if (status === 'SUCCESS') return { id, number: frame.readUInt32LE(26), text: '', length }
  if (status !== 'ERROR' || frame.readUInt32LE(20) !== length - 24) return undefined
  return { id, number: 0, text: frame.toString('latin1', 24), length }
}

/** Cuts a stream into whole frames, written without a look at production code. */
export type Stream = { bytes: Buffer }

export function takeFrames(stream: Stream, chunk: Buffer, take: (frame: Buffer, inner: number) => void): void {
  const bytes = Buffer.concat([stream.bytes, chunk])
  let at = 0
  for (;;) {
    const left = bytes.length - at
    if (left < 9) break
    const isEnvelope = bytes[at] === 0xfe
    const length = isEnvelope ? 5 + bytes.readUInt32LE(at + 1) : 9 + bytes.readUInt32LE(at + 5)
    if (!isEnvelope && bytes[at] !== 0xff) throw new Violation(`a frame begins with byte ${bytes[at]}`)
    if (left < length) break
    const frame = bytes.subarray(at, at + length)
    take(frame, isEnvelope ? 7 + (frame[5] as number) : 0)
    at += length
  }
  stream.bytes = bytes.subarray(at)
}
