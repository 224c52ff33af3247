/**
 * The TypeScript twin of kernel.as.ts: the oracle it is tested against, and what serves where WebAssembly SIMD is
 * missing. It takes every line the slow path (csv.ts) and does the same to the same memory (layout.ts).
 */

import { LIMITS } from '@vacancy/shared'
import { roomHash, rowKey } from '../store/digest.ts'
import { type PackageParser, parsePackage, readRecord } from './csv.ts'
import type { ImportKernel } from './layout.ts'
import {
  BLOCK_BYTES,
  CHUNK_BYTES,
  CHUNK_NIGHTS,
  CONTEXT,
  finishHash,
  HEADER,
  hashId,
  hashRow,
  PAGE_BYTES,
  RESULT_BYTES,
  ROOM,
  ROOM_TEXT_AT,
  ROW,
  STOP,
  type Stop,
} from './layout.ts'

type Twin = {
  readonly parser: PackageParser
  readonly u8: Uint8Array
  readonly u32: Uint32Array
  readonly f64: Float64Array
}

export function createTwin(memory: WebAssembly.Memory, parser: PackageParser): ImportKernel {
  growToLimit(memory)
  const { buffer } = memory
  const twin: Twin = {
    parser,
    u8: new Uint8Array(buffer),
    u32: new Uint32Array(buffer),
    f64: new Float64Array(buffer),
  }
  return {
    scan: (context, start, end) => scan(twin, context, start, end),
    add: (context, night, lo, hi, line) => add(twin, context, night, lo, hi, line),
    remember: () => {},
    census: (list, count, result) => census(twin, list, count, result),
    gather: (_context, list, count, first, nights, target, stride) =>
      gather(twin, { list, count, first, nights, target, stride }),
  }
}

/** All the memory there may be, so that the views below see every address. It costs nothing until it is touched. */
function growToLimit(memory: WebAssembly.Memory): void {
  const pages = (new Uint32Array(memory.buffer)[HEADER.limit] as number) / PAGE_BYTES
  const missing = () => pages - memory.buffer.byteLength / PAGE_BYTES
  try {
    if (missing() > 0) memory.grow(missing())
  } catch (error) {
    // Another thread may have grown it in between.
    if (missing() > 0) throw error
  }
}

function scan(twin: Twin, context: number, start: number, end: number): Stop {
  const { parser, u8, u32, f64 } = twin
  const { cells } = parser
  let at = start
  let stop: Stop = STOP.done
  while (at < end) {
    const scanned = readRecord(cells, u8, at, end, false)
    // Whatever is not one whole, right line is for the slow path to tell.
    const isPlain = scanned === 'blank' || (scanned === 'record' && cells.lines === 1 && !parsePackage(parser))
    if (!isPlain) {
      stop = STOP.odd
      break
    }
    if (scanned === 'record') {
      stop = addParsed(twin, context)
      if (stop !== STOP.done) break
    }
    at = cells.next
    f64[(context + CONTEXT.lines) >>> 3] = (f64[(context + CONTEXT.lines) >>> 3] as number) + 1
  }
  u32[(context + CONTEXT.cursor) >>> 2] = at
  return stop
}

function addParsed(twin: Twin, context: number): Stop {
  const { parser, u32, f64 } = twin
  putPackage(twin.u8, u32, context, parser)
  const night = parser.day - (u32[HEADER.firstDay] as number)
  const line = f64[(context + CONTEXT.lines) >>> 3] as number
  const stop = add(twin, context, night, lowOf(parser), highOf(parser), line)
  if (stop === STOP.unknownProperty) return STOP.odd
  if (stop !== STOP.outside) return stop
  if (u32[HEADER.strictWindow] === 1) return STOP.odd
  f64[(context + CONTEXT.skipped) >>> 3] = (f64[(context + CONTEXT.skipped) >>> 3] as number) + 1
  return STOP.done
}

/** Puts id and room type of the package just parsed where `add` looks for them. */
export function putPackage(u8: Uint8Array, u32: Uint32Array, context: number, parser: PackageParser): void {
  const { id, cells, roomStart, roomEnd } = parser
  for (let i = 0; i < 16; i++) u8[context + CONTEXT.id + i] = id[i] as number
  const at = context + CONTEXT.room
  for (let i = roomStart; i < roomEnd; i++) u8[at + i - roomStart] = cells.text[i] as number
  u32[(context + CONTEXT.roomLength) >>> 2] = roomEnd - roomStart
}

/** Halves of the word of the package just parsed (store/layout.ts). */
export function lowOf({ availability, mask }: PackageParser): number {
  return (availability | (mask << 8)) >>> 0
}

export function highOf({ price }: PackageParser): number {
  return ~price >>> 0
}

function add(twin: Twin, context: number, night: number, lo: number, hi: number, line: number): Stop {
  const { u32, f64 } = twin
  const id = (context + CONTEXT.id) >>> 2
  const idHash = hashId(u32[id] as number, u32[id + 1] as number, u32[id + 2] as number, u32[id + 3] as number)
  const property = findProperty(twin, id, idHash)
  if (property < 0) return STOP.unknownProperty
  if (night < 0 || night >= (u32[HEADER.days] as number)) return STOP.outside
  const text = context + CONTEXT.room
  const length = u32[(context + CONTEXT.roomLength) >>> 2] as number
  const room = findRoom(twin, text, length, hashText(twin, text, length))
  let row = room === 0 ? 0 : findRow(twin, id, room, hashRow(idHash, room))
  if (row === 0) {
    const made = createRow(twin, context, { id, idHash, property, room, text, length, base: night })
    if (made.stop !== STOP.done) return made.stop
    row = made.row
  }
  const place = placeOf(u32, row, night)
  const chunk = chunkOf(twin, context, row, place)
  if (chunk === 0) return STOP.memoryFull
  const word = (chunk >>> 2) + (place % CHUNK_NIGHTS) * 2
  const before = (u32[word + 1] as number) * 2 ** 32 + (u32[word] as number)
  if (before !== 0) {
    f64[(context + CONTEXT.firstLine) >>> 3] = before
    return STOP.duplicate
  }
  const isExplaining = u32[HEADER.explain] === 1
  u32[word] = isExplaining ? line % 2 ** 32 : lo
  u32[word + 1] = isExplaining ? Math.floor(line / 2 ** 32) : hi
  f64[(context + CONTEXT.accepted) >>> 3] = (f64[(context + CONTEXT.accepted) >>> 3] as number) + 1
  return STOP.done
}

/** @param id cell of the packed id @returns ordinal, -1 if there is no such property */
function findProperty({ u32 }: Twin, id: number, idHash: number): number {
  const slots = (u32[HEADER.propertySlots] as number) >>> 2
  const shift = u32[HEADER.propertyShift] as number
  const ids = (u32[HEADER.propertyIds] as number) >>> 2
  const last = 0xffffffff >>> shift
  for (let slot = idHash >>> shift; ; slot = (slot + 1) & last) {
    const ordinal = u32[slots + slot] as number
    if (ordinal === 0) return -1
    if (isSameId(u32, ids + (ordinal - 1) * 4, id)) return ordinal - 1
  }
}

function isSameId(u32: Uint32Array, a: number, b: number): boolean {
  return u32[a] === u32[b] && u32[a + 1] === u32[b + 1] && u32[a + 2] === u32[b + 2] && u32[a + 3] === u32[b + 3]
}

function hashText({ u8 }: Twin, start: number, length: number): number {
  let h = length
  for (let i = 0; i < length; i += 16) {
    const word = (at: number) => byte(at) | (byte(at + 1) << 8) | (byte(at + 2) << 16) | (byte(at + 3) << 24)
    h = finishHash(h + hashId(word(i), word(i + 4), word(i + 8), word(i + 12)))
  }
  return h

  function byte(at: number): number {
    return at < length ? (u8[start + at] as number) : 0
  }
}

function isRoom({ u8, u32 }: Twin, record: number, text: number, length: number, hash: number): boolean {
  const cell = record >>> 2
  if (u32[cell + ROOM.hash] !== hash || u32[cell + ROOM.length] !== length) return false
  for (let i = 0; i < length; i++) {
    if (u8[record + ROOM_TEXT_AT + i] !== u8[text + i]) return false
  }
  return true
}

function findRoom(twin: Twin, text: number, length: number, hash: number): number {
  const { u32 } = twin
  const slots = (u32[HEADER.roomSlots] as number) >>> 2
  const shift = u32[HEADER.roomShift] as number
  const last = 0xffffffff >>> shift
  for (let slot = hash >>> shift; ; slot = (slot + 1) & last) {
    const record = Atomics.load(u32, slots + slot * 2)
    if (record === 0 || isRoom(twin, record, text, length, hash)) return record
  }
}

function isRow(u32: Uint32Array, record: number, id: number, room: number): boolean {
  return u32[(record >>> 2) + ROW.room] === room && isSameId(u32, record >>> 2, id)
}

function findRow({ u32 }: Twin, id: number, room: number, hash: number): number {
  const slots = (u32[HEADER.rowSlots] as number) >>> 2
  const shift = u32[HEADER.rowShift] as number
  const last = 0xffffffff >>> shift
  for (let slot = hash >>> shift; ; slot = (slot + 1) & last) {
    const record = Atomics.load(u32, slots + slot * 2)
    if (record === 0 || isRow(u32, record, id, room)) return record
  }
}

type NewRow = {
  id: number
  idHash: number
  property: number
  room: number
  text: number
  length: number
  base: number
}

function createRow(twin: Twin, context: number, sought: NewRow): { stop: Stop; row: number } {
  const { u32 } = twin
  const rowShift = u32[HEADER.rowShift] as number
  const isHalfFull = (count: number, shift: number) => Atomics.load(u32, count) >= 0x80000000 >>> shift
  if (isHalfFull(HEADER.rows, rowShift) || isHalfFull(HEADER.rooms, u32[HEADER.roomShift] as number)) {
    return { stop: STOP.crowded, row: 0 }
  }
  const counts = ((u32[HEADER.propertyRooms] as number) >>> 2) + sought.property
  if (Atomics.load(u32, counts) >= LIMITS.roomTypesPerPropertyMax) return { stop: STOP.tooManyRooms, row: 0 }
  const room = sought.room || createRoom(twin, context, sought.text, sought.length)
  const record = room === 0 ? 0 : takeSpare(u32, context + CONTEXT.spareRow) || allocate(u32, context, rowBytes(u32))
  if (record === 0) return { stop: STOP.memoryFull, row: 0 }
  const hash = hashRow(sought.idHash, room)
  const cell = record >>> 2
  for (let i = 0; i < 4; i++) u32[cell + ROW.id + i] = u32[sought.id + i] as number
  u32[cell + ROW.room] = room
  u32[cell + ROW.property] = sought.property
  u32[cell + ROW.hash] = hash
  u32[cell + ROW.base] = sought.base
  const slots = (u32[HEADER.rowSlots] as number) >>> 2
  const last = 0xffffffff >>> rowShift
  for (let slot = hash >>> rowShift; ; slot = (slot + 1) & last) {
    const at = slots + slot * 2
    const other = Atomics.compareExchange(u32, at, 0, record)
    if (other === 0) {
      u32[at + 1] = (hash | 1) >>> 0
      Atomics.add(u32, HEADER.rows, 1)
      const before = Atomics.add(u32, counts, 1)
      return { stop: before >= LIMITS.roomTypesPerPropertyMax ? STOP.tooManyRooms : STOP.done, row: record }
    }
    if (isRow(u32, other, sought.id, room)) {
      u32[(context + CONTEXT.spareRow) >>> 2] = record
      return { stop: STOP.done, row: other }
    }
  }
}

function rowBytes(u32: Uint32Array): number {
  return u32[HEADER.rowBytes] as number
}

function createRoom(twin: Twin, context: number, text: number, length: number): number {
  const { u8, u32 } = twin
  const hash = hashText(twin, text, length)
  const record = allocate(u32, context, (ROOM_TEXT_AT + length + 63) & ~63)
  if (record === 0) return 0
  u32[(record >>> 2) + ROOM.hash] = hash
  u32[(record >>> 2) + ROOM.length] = length
  u8.copyWithin(record + ROOM_TEXT_AT, text, text + length)
  const slots = (u32[HEADER.roomSlots] as number) >>> 2
  const shift = u32[HEADER.roomShift] as number
  const last = 0xffffffff >>> shift
  for (let slot = hash >>> shift; ; slot = (slot + 1) & last) {
    const at = slots + slot * 2
    const other = Atomics.compareExchange(u32, at, 0, record)
    if (other === 0) {
      u32[at + 1] = (hash | 1) >>> 0
      Atomics.add(u32, HEADER.rooms, 1)
      return record
    }
    if (isRoom(twin, other, text, length, hash)) return other
  }
}

/** Where a night lies in the chunks of a row (layout.ts). */
export function placeOf(u32: Uint32Array, row: number, night: number): number {
  const place = night - (u32[(row >>> 2) + ROW.base] as number)
  return place < 0 ? place + spanOf(u32) : place
}

/** Nights of the window, rounded up to whole chunks. */
function spanOf(u32: Uint32Array): number {
  return Math.ceil((u32[HEADER.days] as number) / CHUNK_NIGHTS) * CHUNK_NIGHTS
}

/** @returns address of the word of a night of a row, 0 if it has no chunk there */
export function wordAt(u32: Uint32Array, row: number, night: number): number {
  const place = placeOf(u32, row, night)
  const chunk = u32[(row >>> 2) + ROW.chunks + (place >>> 4)] as number
  return chunk === 0 ? 0 : chunk + (place % CHUNK_NIGHTS) * 8
}

function chunkOf({ u32 }: Twin, context: number, row: number, place: number): number {
  const at = (row >>> 2) + ROW.chunks + (place >>> 4)
  const known = Atomics.load(u32, at)
  if (known !== 0) return known
  const chunk = takeSpare(u32, context + CONTEXT.spareChunk) || allocate(u32, context, CHUNK_BYTES)
  if (chunk === 0) return 0
  const other = Atomics.compareExchange(u32, at, 0, chunk)
  if (other === 0) return chunk
  u32[(context + CONTEXT.spareChunk) >>> 2] = chunk
  return other
}

/** What was made for nothing because another thread came first. */
function takeSpare(u32: Uint32Array, address: number): number {
  const spare = u32[address >>> 2] as number
  u32[address >>> 2] = 0
  return spare
}

function allocate(u32: Uint32Array, context: number, bytes: number): number {
  const next = (context + CONTEXT.blockNext) >>> 2
  const end = (context + CONTEXT.blockEnd) >>> 2
  let at = u32[next] as number
  if ((u32[end] as number) - at < bytes) {
    at = takeBlock(u32)
    if (at === 0) return 0
    u32[end] = at + BLOCK_BYTES
  }
  u32[next] = at + bytes
  return at
}

function takeBlock(u32: Uint32Array): number {
  for (;;) {
    const top = Atomics.load(u32, HEADER.top)
    if ((u32[HEADER.limit] as number) - top < BLOCK_BYTES) return 0
    if (Atomics.compareExchange(u32, HEADER.top, top, top + BLOCK_BYTES) === top) return top
  }
}

function census({ u8, u32 }: Twin, list: number, count: number, result: number): void {
  u8.fill(0, result, result + RESULT_BYTES)
  let packages = 0
  const digest: [number, number] = [0, 0]
  for (let i = 0; i < count; i++) {
    const row = u32[(list >>> 2) + i] as number
    const room = (u32[(row >>> 2) + ROW.room] as number) >>> 2
    const nameHashes = [u32[room + ROOM.nameHash0] as number, u32[room + ROOM.nameHash1] as number] as const
    for (const lane of [0, 1] as const) digest[lane] += roomHash(lane, rowKey(lane, u8, row, nameHashes[lane]))
    for (let night = 0; night < (u32[HEADER.days] as number); night++) {
      const word = wordAt(u32, row, night) >>> 2
      if (word === 0 || ((u32[word] as number) | (u32[word + 1] as number)) === 0) continue
      packages++
      const byte = result + 16 + (night >>> 3)
      u8[byte] = (u8[byte] as number) | (1 << (night & 7))
    }
  }
  u32[result >>> 2] = packages
  u32[(result >>> 2) + 1] = digest[0] % 2 ** 32
  u32[(result >>> 2) + 2] = digest[1] % 2 ** 32
}

type Gathering = { list: number; count: number; first: number; nights: number; target: number; stride: number }

function gather({ u32 }: Twin, { list, count, first, nights, target, stride }: Gathering): void {
  const span = spanOf(u32)
  for (let i = 0; i < count; i++) {
    const row = u32[(list >>> 2) + i] as number
    let to = target / 4 + i * 2
    for (let bit = 0; bit < CHUNK_NIGHTS; bit++) {
      if (((nights >>> bit) & 1) === 0) continue
      const word = wordAt(u32, row, (first + bit) % span) >>> 2
      u32[to] = word === 0 ? 0 : (u32[word] as number)
      u32[to + 1] = word === 0 ? 0 : (u32[word + 1] as number)
      to += stride / 4
    }
  }
}
