/** The context and outcome of applying a command, and code shared by several commands. */

import { isVisible } from '@vacancy/shared'
import { fitsBudget, growthLeft } from './charge.ts'
import { type CommandReader, createCommandReader, OUTCOME, readBytes, readName } from './command.ts'
import { findName, hashOfName, NAMES } from './dictionary.ts'
import { roomHash, rowKey } from './digest.ts'
import { PROPERTY, ROOMS, SEGMENT, STATE, TABLE } from './layout.ts'
import { changeWord, type PutWord } from './planes.ts'
import { findProperty } from './property-index.ts'
import { addToSegmentDigest, roomCount, roomEntry, segmentOf } from './segment.ts'
import { addDigest, type Digest, type Memory, type Store, state } from './store.ts'
import { field, setField } from './table-fields.ts'

/** The outcome of a command. One reused object: read it before the next command. */
export type Applied = {
  code: number
  /** New availability; what is left, for overflow and underflow. */
  value: number
  /** Index at which the command took effect, as clients see it; an earlier one for a retry. */
  index: number
  /** Explanation of a refusal, instead of that of its code; '' for none. */
  detail: string
  /** Address of the stay that the command concerns, until the next command; 0 for none. */
  stay: number
}

/** The state digest right after the command at an index. */
export type DigestMark = Digest & { readonly index: number }

export type ApplyContext = {
  readonly store: Store
  readonly put: PutWord
  /**
   * Called when a digest in the log differs from this replica's: it must stop serving
   * (docs/design/consensus.md#promises).
   */
  readonly onDigestMismatch: (index: number, expected: Digest, own: Digest) => void
  /** Digests at every DIGEST_EVERY-th index, until a check in the log names them. */
  readonly marks: DigestMark[]
  /** The last digest recorded at an index at which all replicas record one; undefined since the start or a load. */
  newestMark: DigestMark | undefined
  /** Newest index at which a digest in the log matched this replica's; 0 if none since the start. */
  agreedIndex: number
  /** Content digest of the snapshot that has just replaced this store's data, hexadecimal; '' for none. */
  loaded: string
  readonly reader: CommandReader
  readonly applied: Applied
}

export function createApplyContext(
  store: Store,
  put: PutWord,
  onDigestMismatch: ApplyContext['onDigestMismatch'],
): ApplyContext {
  return {
    store,
    put,
    onDigestMismatch,
    marks: [],
    newestMark: undefined,
    agreedIndex: 0,
    loaded: '',
    reader: createCommandReader(),
    applied: { code: 0, value: 0, index: 0, detail: '', stay: 0 },
  }
}

export function fail(context: ApplyContext, code: number, value = 0, detail = ''): void {
  context.applied.code = code
  context.applied.value = value
  context.applied.detail = detail
}

export function inWindow(context: ApplyContext, day: number): boolean {
  const visible = isVisible(day, context.reader.day) && day >= state(context.store.memory, STATE.droppedBefore)
  if (!visible) fail(context, OUTCOME.outsideWindow)
  return visible
}

/** Kept free beyond the known need of a command. */
const MEMORY_MARGIN_BYTES = 256 * 1024

/**
 * Refuses a command that would grow the state beyond the memory budget. Called before the first change.
 *
 * @param growth upper bound of the growth of the charge, in bytes (charge.ts)
 * @param largest charge of the largest table after the command
 */
export function exceedsBudget(context: ApplyContext, growth: number, largest: number): boolean {
  const { store } = context
  if (fitsBudget(store, growth, largest)) return false
  store.writer.lackingAt = Math.max(0, growthLeft(store))
  fail(context, OUTCOME.refused)
  return true
}

/** Below feature level 1: refuses a command that may need more memory than this replica has left. */
export function lacksMemory(context: ApplyContext, bytes: number): boolean {
  if (promiseMemory(context.store, bytes)) return false
  const { gap } = context.store.writer
  context.store.writer.lackingAt = gap.high - gap.low
  fail(context, OUTCOME.refused)
  return true
}

/** Keeps so many bytes free for the current command. @returns false when fewer are available */
export function promiseMemory({ writer }: Store, bytes: number): boolean {
  writer.promisedBytes = bytes + MEMORY_MARGIN_BYTES
  return writer.gap.high - writer.gap.low >= writer.promisedBytes
}

/** Reads an id and finds its property. @returns 0, with the outcome set, when there is none */
export function readProperty(context: ApplyContext): number {
  const { reader, store } = context
  return findProperty(store.memory, reader.bytes, readBytes(reader, 16))
}

export function readRoomType(context: ApplyContext): number {
  const start = readName(context.reader)
  return findName(context.store.memory, NAMES.roomType, context.reader.bytes, start, context.reader.at)
}

export function keyOf(memory: Memory, property: number, roomType: number, lane: 0 | 1): number {
  return rowKey(lane, memory.u8, property + PROPERTY.id, hashOfName(memory, NAMES.roomType, roomType, lane))
}

export function addRoomDigest(store: Store, property: number, roomType: number, sign: 1 | -1): void {
  const low = roomHash(0, keyOf(store.memory, property, roomType, 0))
  const high = roomHash(1, keyOf(store.memory, property, roomType, 1))
  addDigest(store, Math.imul(low, sign), Math.imul(high, sign))
  addToSegmentDigest(store, property, Math.imul(low, sign), Math.imul(high, sign))
}

export function change(
  context: ApplyContext,
  table: number,
  plane: number,
  row: number,
  property: number,
  roomType: number,
  lo: number,
  hi: number,
): void {
  const { store, put } = context
  const { memory } = store
  const low = keyOf(memory, property, roomType, 0)
  const delta = changeWord(store, put, table, plane, row, lo, hi, low, keyOf(memory, property, roomType, 1))
  if (delta !== 0) addToSegment(store, field(memory, table + TABLE.segment), delta)
}

function addToSegment(store: Store, name: number, packages: number): void {
  const segment = segmentOf(store.memory, name)
  setField(store, segment + SEGMENT.packages, field(store.memory, segment + SEGMENT.packages) + packages)
}

export function missing(context: ApplyContext, code: number): false {
  fail(context, code)
  return false
}

export function forEachRoomTable(memory: Memory, property: number, visit: (table: number) => void): void {
  const rooms = roomCount(memory, property)
  for (let n = 0; n < rooms; n++) visit(field(memory, roomEntry(memory, property, n) + ROOMS.table))
}
