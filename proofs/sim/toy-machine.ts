/**
 * A minimal state machine of bare cores: registers and request keys (docs/design/consensus.md#request-keys).
 *
 * A command is a production command (store/command.ts) with a body of its own:
 *
 *   u8 register · u8 amount · u32 attempt     attempt: unique for each attempt, so that each can be found in a log
 */

import { deserialize, serialize } from 'node:v8'
import { assert } from '@vacancy/shared'
import { viewOf } from '../../engine/src/raft/entry.ts'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  type CommandKind,
  type CommandWriter,
  KIND,
  OUTCOME,
  REQUEST_KEY_BYTES,
  writeU8,
  writeU32,
} from '../../engine/src/store/command.ts'
import type { OperationKind } from './history.ts'

const REGISTERS_MAX = 64
const KIND_OF = {
  set: KIND.setAvailability,
  increase: KIND.increaseAvailability,
  decrease: KIND.decreaseAvailability,
  delete: KIND.deletePackage,
} as const satisfies Record<Exclude<OperationKind, 'read'>, CommandKind>

/** Per session; few, because every snapshot contains all of them. */
const KEPT_RESULTS = 16
const MISSING = -1

type ToyResult = { code: number; value: number; index: number }

export type ToyMachine = {
  /** −1: the register is empty. */
  readonly values: Int16Array
  /** Session → request number → result. */
  readonly sessions: Map<number, Map<number, ToyResult>>
  digestLo: number
  digestHi: number
  applied: number
  readonly result: ToyResult
}

export type ToyCommand = {
  readonly kind: Exclude<OperationKind, 'read'>
  readonly register: number
  readonly amount: number
  readonly attempt: number
  /** 0: without a request key. */
  readonly session: number
  readonly number: number
}

export function createToyMachine(): ToyMachine {
  return {
    values: new Int16Array(REGISTERS_MAX).fill(MISSING),
    sessions: new Map(),
    digestLo: 0,
    digestHi: 0,
    applied: 0,
    result: { code: 0, value: 0, index: 0 },
  }
}

const keyBytes = new Uint8Array(REQUEST_KEY_BYTES)
const keyView = viewOf(keyBytes)

export function writeToyCommand(writer: CommandWriter, command: ToyCommand): void {
  const { kind, register, amount, attempt, session, number } = command
  if (session === 0) beginCommand(writer, KIND_OF[kind])
  else {
    keyView.setUint32(0, session, true)
    keyView.setUint32(16, number, true)
    beginCommand(writer, KIND_OF[kind], keyBytes)
  }
  writeU8(writer, register)
  writeU8(writer, amount)
  writeU32(writer, attempt)
}

/** The attempt of a logged command. */
export function attemptOf(bytes: Uint8Array, start: number): number {
  const view = viewOf(bytes)
  return view.getUint32(bodyOf(view, start) + 2, true)
}

/** Offset of the body, after header and request key. */
function bodyOf(view: DataView, start: number): number {
  return start + COMMAND_HEADER_BYTES + (view.getUint8(start + COMMAND_HEADER_BYTES - 1) === 0 ? 0 : REQUEST_KEY_BYTES)
}

/** Applies one command; the result object is reused. */
export function applyToy(machine: ToyMachine, index: number, bytes: Uint8Array, start: number): ToyResult {
  const { result } = machine
  const view = viewOf(bytes)
  const kind = view.getUint16(start, true)
  assert(index > machine.applied, 'entries are applied in order')
  machine.applied = index
  result.code = OUTCOME.done
  result.value = 0
  result.index = index
  const body = bodyOf(view, start)
  if (body === start + COMMAND_HEADER_BYTES) execute(machine, kind, bytes, body)
  else executeOnce(machine, kind, bytes, view, body)
  return result
}

function executeOnce(machine: ToyMachine, kind: number, bytes: Uint8Array, view: DataView, body: number): void {
  const { result } = machine
  const session = view.getUint32(body - REQUEST_KEY_BYTES, true)
  const number = view.getUint32(body - REQUEST_KEY_BYTES + 16, true)
  let results = machine.sessions.get(session)
  if (!results) {
    if (number > 1) {
      result.code = OUTCOME.sessionExpired
      return
    }
    results = new Map()
    machine.sessions.set(session, results)
  }
  const earlier = results.get(number)
  if (earlier) return void Object.assign(result, earlier)
  // Number 0 represents everything below the window.
  const closed = results.get(0)?.index ?? 0
  if (number <= closed) {
    result.code = OUTCOME.tooOld
    return
  }
  execute(machine, kind, bytes, body)
  results.set(number, { ...result })
  add(machine, hashOf(session, number, result))
  const old = results.get(number - KEPT_RESULTS)
  if (old) {
    add(machine, -hashOf(session, number - KEPT_RESULTS, old))
    results.delete(number - KEPT_RESULTS)
  }
  if (number - KEPT_RESULTS > closed) results.set(0, { code: 0, value: 0, index: number - KEPT_RESULTS })
}

function hashOf(session: number, number: number, { code, value, index }: ToyResult): number {
  return hash(session, number, code * 256 + value, index)
}

function execute(machine: ToyMachine, kind: number, bytes: Uint8Array, body: number): void {
  const { values, result } = machine
  const register = bytes[body]
  const amount = bytes[body + 1]
  const before = values[register]
  let after = before
  if (kind === KIND.setAvailability) after = amount
  else if (before === MISSING) result.code = OUTCOME.noPackage
  else if (kind === KIND.increaseAvailability) {
    if (before + amount > 255) result.code = OUTCOME.overflow
    else after = before + amount
  } else if (kind === KIND.decreaseAvailability) {
    if (amount > before) result.code = OUTCOME.underflow
    else after = before - amount
  } else after = MISSING
  result.value = Math.max(0, after)
  if (after === before) return
  values[register] = after
  // The digest is a sum over the state, independent of its history.
  add(machine, -hash(register, before, 1, 0))
  add(machine, hash(register, after, 1, 0))
}

function add(machine: ToyMachine, value: number): void {
  machine.digestLo = (machine.digestLo + value) >>> 0
  machine.digestHi = (machine.digestHi + Math.imul(value, 0x9e3779b1)) >>> 0
}

function hash(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(a ^ 0x27d4eb2f, 0x85ebca6b) ^ Math.imul(b + 0x165667b1, 0xc2b2ae35)
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ c, 0x2c1b3c6d) ^ Math.imul(d, 0x297a2d39)
  return mixed ^ (mixed >>> 16)
}

/** The whole state as bytes, for a snapshot. */
export function encodeToy(machine: ToyMachine): Uint8Array {
  return serialize(machine)
}

/** Replaces the state of `machine`. */
export function restoreToy(machine: ToyMachine, bytes: Uint8Array): void {
  Object.assign(machine, deserialize(bytes))
}
