/**
 * A store with the request handling of a serving thread, in one thread: requests in, replies out. For tests that
 * compare replies with a model.
 */

import { assert, type CodecList, createCodecList, yearOf } from '@vacancy/shared'
import { COMMANDS, type CommandName, decodeReply, encodeRequest, type ReplyResult } from '@vacancy/shared/wire'
import { staysOf } from '../cluster/stay-answers.ts'
import { createSearcher } from '../search/search.ts'
import { applyCommand } from '../store/apply.ts'
import { type ApplyContext, createApplyContext } from '../store/apply-context.ts'
import {
  beginCommand,
  type CommandKind,
  type CommandWriter,
  createCommandWriter,
  KIND,
  outcomeText,
  stampCommand,
  writeBytes,
  writeF64,
  writeU8,
  writeU32,
} from '../store/command.ts'
import { STATE } from '../store/layout.ts'
import {
  clearStore,
  createStore,
  FEATURE_LEVEL,
  INDEX_LEVEL,
  type Memory,
  publish,
  type Store,
  scratchOf,
  setState,
} from '../store/store.ts'
import {
  answerRead,
  createDispatcher,
  type Dispatcher,
  isBelowLevel,
  openRequest,
  proposeStayRead,
  proposeWrite,
} from '../tcp/dispatch.ts'
import { type Kernels, loadKernels } from '../threads/kernels.ts'
import { createProposals } from '../threads/writes.ts'
import { referenceKernels } from './search-reference.ts'

const FRAME_HEADER = 9
const DAY_MS = 86_400_000
const SLAB_BYTES = 1 << 20
export const SAMPLE_CODECS = ['free_cancellation', 'breakfast', 'wifi', 'late_checkout', 'half_board']

export type NodeInMemory = {
  readonly store: Store
  readonly context: ApplyContext
  readonly codecs: CodecList
  readonly dispatchers: readonly Dispatcher[]
  day: number
  index: number
  /** Shard time, ms; 0 for an hour after the beginning of the day. */
  timeMs: number
  /** Gets each entry, as a log would. */
  onEntry?: (index: number, bytes: Uint8Array) => void
}

function timeOf({ day, timeMs }: NodeInMemory): number {
  return timeMs === 0 ? day * DAY_MS + 3_600_000 : timeMs
}

/** Fields by name for any command; tests generate them from tables. */
export type LooseFields = { readonly [name: string]: unknown }
export type Answer = {
  readonly error: string
  readonly result: ReplyResult
  readonly code: number
  readonly value: number
  /** Text of the refusal. */
  readonly text?: string
}

/** Scratch memory of a reader, enough for searches and for reading and writing snapshots. */
const SCRATCH_BYTES = 16 << 20

export function createNodeInMemory(day: number, memoryBytes = 96 << 20): NodeInMemory {
  const store = createStore({ memoryBytes, readers: 2, scratchBytes: SCRATCH_BYTES, sessionBytesMax: 1 << 20 })
  return nodeOver(store, day)
}

/** The same for a store that was filled in another way. */
export function nodeOver(store: Store, day: number): NodeInMemory {
  const codecs = createCodecList(SAMPLE_CODECS)
  const kinds = [loadKernels(store.memory), referenceKernels(store.memory)]
  const context = createApplyContext(store, (kinds[0] as (typeof kinds)[0]).put, () => assert(false, 'digests agree'))
  const node: NodeInMemory = { store, context, codecs, dispatchers: [], day, index: 0, timeMs: 0 }
  const wallMs = () => node.day * DAY_MS + 3_600_000
  const dispatchers = kinds.map((kernels, reader) => dispatcherOf(store.memory, reader, { kernels, wallMs }))
  return Object.assign(node, { dispatchers })
}

type Reading = { readonly kernels: Kernels; readonly wallMs: () => number; readonly sliceWork?: number }

/** The requests of one reader, as a serving thread has them. */
export function dispatcherOf(memory: Memory, reader: number, { kernels, wallMs, sliceWork }: Reading): Dispatcher {
  const codecs = createCodecList(SAMPLE_CODECS)
  const searcher = createSearcher({
    ...{ memory, reader, parameters: scratchOf(memory, reader), kernels, codecs },
    ...{
      limits: { datesMax: 14, calendarDays: 366, queryLimit: 1000 },
      monotonicMs: () => 0,
      ...(sliceWork && { sliceWork }),
    },
  })
  return createDispatcher({ searcher, codecs, proposals: createProposals(), wallMs })
}

/** Runs one request like a node. Reads use the kernel and its reference, which must return the same bytes. */
export function ask(node: NodeInMemory, command: CommandName, fields: LooseFields): Answer {
  const payload = encodeRequest({ command, correlationId: 7, fields: fields as never }).subarray(FRAME_HEADER)
  const answers = node.dispatchers.map((dispatcher) => askOne(node, dispatcher, command, payload))
  const first = answers[0] as Answer
  if (COMMANDS[command].access === 'read') {
    assert(JSON.stringify(first) === JSON.stringify(answers[1]), 'the kernel returns what its reference returns')
  }
  return first
}

function askOne(node: NodeInMemory, dispatcher: Dispatcher, command: CommandName, payload: Uint8Array): Answer {
  const spec = openRequest(dispatcher, payload, 0, payload.length)
  if (!spec) return { error: dispatcher.error, result: {}, code: -1, value: 0 }
  if (isBelowLevel(node.store.memory, spec)) return { error: 'below level', result: {}, code: -1, value: 0 }
  if (spec.group === 'stays' && spec.access === 'read') return readStays(node, dispatcher, command)
  if (spec.access === 'write') return dispatcher === node.dispatchers[0] ? write(node, dispatcher) : NOTHING
  const { memory } = node.store
  const at = scratchOf(memory, dispatcher.view.reader) + 16_384
  const end = answerRead(dispatcher, spec, 7, memory.u8, at, at + SLAB_BYTES, 0)
  assert(end > 0, 'the reply fits')
  const context = { baseYear: yearOf(node.day), codecs: node.codecs }
  const reply = decodeReply(command, memory.u8.slice(at + FRAME_HEADER, end), context)
  return reply.ok
    ? { error: '', result: reply.result as ReplyResult, code: 0, value: 0 }
    : { error: reply.code, result: {}, code: -1, value: 0 }
}

function readStays(node: NodeInMemory, dispatcher: Dispatcher, command: CommandName): Answer {
  const batch = createProposals()
  const error = proposeStayRead(dispatcher, dispatcher.values.scan.command, batch)
  if (error !== '') return { error: error.slice(0, error.indexOf(':')), result: {}, code: -1, value: 0, text: error }
  const { code, frame } = staysOf(node.store).read(batch.writer.bytes, 8, batch.writer.at)
  if (frame) return { error: '', result: stayResult(node, command, frame), code, value: 0 }
  const text = outcomeText(code, 0)
  return { error: text.slice(0, text.indexOf(':')), result: {}, code, value: 0, text }
}

function stayResult(node: NodeInMemory, command: CommandName, frame: Uint8Array): ReplyResult {
  const context = { baseYear: yearOf(node.day), codecs: node.codecs }
  const reply = decodeReply(command, frame.subarray(FRAME_HEADER), context)
  assert(reply.ok, 'the frame of a stay is a success')
  return reply.result as ReplyResult
}

const NOTHING: Answer = { error: '', result: {}, code: 0, value: 0 }

function write(node: NodeInMemory, dispatcher: Dispatcher): Answer {
  const { values, proposals } = dispatcher
  const error = proposeWrite(dispatcher, values.scan.command)
  if (error !== '') return { error: error.slice(0, error.indexOf(':')), result: {}, code: -1, value: 0 }
  const bytes = proposals.writer.bytes.slice(8, proposals.writer.at)
  proposals.writer.at = 0
  stampCommand(new DataView(bytes.buffer), 0, timeOf(node), node.day)
  node.index++
  node.onEntry?.(node.index, bytes)
  const applied = applyCommand(node.context, node.index, bytes, 0, bytes.length)
  const { code, value, detail } = applied
  const frame = staysOf(node.store).replyTo(applied)
  publish(node.store, node.index)
  const text = code === 0 ? '' : outcomeText(code, value, detail)
  const colon = text.indexOf(':')
  const result = frame ? stayResult(node, values.scan.command.name, frame) : {}
  return { error: colon < 0 ? text : text.slice(0, colon), result, code, value, text }
}

/** Applies a command that the cluster itself appends to the log. @returns the outcome's code */
export function applyOwn(node: NodeInMemory, kind: CommandKind, body: (writer: CommandWriter) => void): number {
  const writer = createCommandWriter()
  beginCommand(writer, kind)
  body(writer)
  const bytes = writer.bytes.slice(0, writer.at)
  stampCommand(new DataView(bytes.buffer), 0, node.timeMs === 0 ? node.day * DAY_MS : node.timeMs, node.day)
  node.index++
  node.onEntry?.(node.index, bytes)
  const { code } = applyCommand(node.context, node.index, bytes, 0, bytes.length)
  publish(node.store, node.index)
  return code
}

/** The same with an encoded body. */
export function applyCommandOf(node: NodeInMemory, kind: CommandKind, body: Uint8Array): number {
  return applyOwn(node, kind, (writer) => writeBytes(writer, body, 0, body.length))
}

/** Empties the store, as at the start of the node: a new store takes much longer. */
export function restartEmpty(node: NodeInMemory, day: number): void {
  clearStore(node.store)
  node.day = day
  node.index = 0
  node.timeMs = 0
}

/** From now on, apply uses the newest rules. */
export function raiseFeatureLevel(node: NodeInMemory, level = FEATURE_LEVEL): void {
  applyOwn(node, KIND.featureLevel, (writer) => writeU32(writer, level))
  if (level < INDEX_LEVEL) return
  // As if the clock had not reached 1970: tests name indexes of the log.
  const { store, index } = node
  for (const cell of [STATE.indexBaseLow, STATE.indexBaseHigh, STATE.indexBeginHigh]) setState(store, cell, 0)
  setState(store, STATE.indexBeginLow, index)
  publish(store, index)
}

/** Logs a memory budget, bytes. */
export function setMemoryBudget(node: NodeInMemory, bytes: number): void {
  applyOwn(node, KIND.memoryBudget, (writer) => writeF64(writer, bytes))
}

/** Sorts the rows of a room type's table in one step; without a room type, those of the property table. */
export function orderRows(node: NodeInMemory, segment: string, roomType?: string): number {
  const encoder = new TextEncoder()
  return applyOwn(node, KIND.orderRows, (writer) => {
    for (const [at, name] of [segment, roomType ?? ''].entries()) {
      const bytes = encoder.encode(name)
      writeU8(writer, bytes.length)
      writeBytes(writer, bytes, 0, bytes.length)
      if (at === 0) writeU8(writer, roomType === undefined ? 1 : 0)
    }
  })
}
