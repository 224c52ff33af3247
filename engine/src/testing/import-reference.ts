/**
 * The import kernel in TypeScript: what tests compare the compiled one with. It parses every line on the slow path
 * (csv.ts), with the same effect on the same memory (layout.ts).
 */

import { LIMITS } from '@vacancy/shared'
import { type PackageParser, parsePackage, readRecord } from '../import/csv.ts'
import type { ImportKernel } from '../import/layout.ts'
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
} from '../import/layout.ts'
import { highOf, lowOf, putPackage } from '../import/packages.ts'
import { roomHash, rowKey } from '../store/digest.ts'

type Machine = {
  readonly parser: PackageParser
  readonly u8: Uint8Array
  readonly u32: Uint32Array
  readonly f64: Float64Array
}

export function createImportReference(memory: WebAssembly.Memory, parser: PackageParser): ImportKernel {
  growToLimit(memory)
  const { buffer } = memory
  const machine: Machine = {
    parser,
    u8: new Uint8Array(buffer),
    u32: new Uint32Array(buffer),
    f64: new Float64Array(buffer),
  }
  return {
    scan: (context, start, end) => scan(machine, context, start, end),
    add: (context, night, lo, hi, line) => add(machine, context, night, lo, hi, line),
    remember: () => {},
    census: (list, count, result) => census(machine, list, count, result),
    gather: (_context, list, count, first, nights, target, stride) =>
      gather(machine, { list, count, first, nights, target, stride }),
  }
}

/** The maximum memory, so that the views below cover every address. It costs nothing until it is touched. */
function growToLimit(memory: WebAssembly.Memory): void {
  const pages = new Uint32Array(memory.buffer)[HEADER.limit] / PAGE_BYTES
  const missing = () => pages - memory.buffer.byteLength / PAGE_BYTES
  try {
    if (missing() > 0) memory.grow(missing())
  } catch (error) {
    // Another thread may have grown it meanwhile.
    if (missing() > 0) throw error
  }
}

function scan(machine: Machine, context: number, start: number, end: number): Stop {
  const { parser, u8, u32, f64 } = machine
  const { cells } = parser
  let at = start
  let stop: Stop = STOP.done
  while (at < end) {
    const scanned = readRecord(cells, u8, at, end, false)
    // Anything but one complete, valid line is left to the slow path.
    const isPlain = scanned === 'blank' || (scanned === 'record' && cells.lines === 1 && !parsePackage(parser))
    if (!isPlain) {
      stop = STOP.odd
      break
    }
    if (scanned === 'record') {
      stop = addParsed(machine, context)
      if (stop !== STOP.done) break
    }
    at = cells.next
    f64[(context + CONTEXT.lines) >>> 3] = f64[(context + CONTEXT.lines) >>> 3] + 1
  }
  u32[(context + CONTEXT.cursor) >>> 2] = at
  return stop
}

function addParsed(machine: Machine, context: number): Stop {
  const { parser, u32, f64 } = machine
  putPackage(machine.u8, u32, context, parser)
  const night = parser.day - u32[HEADER.firstDay]
  const line = f64[(context + CONTEXT.lines) >>> 3]
  const stop = add(machine, context, night, lowOf(parser), highOf(parser), line)
  if (stop === STOP.unknownProperty) return STOP.odd
  if (stop !== STOP.outside) return stop
  if (u32[HEADER.strictWindow] === 1) return STOP.odd
  f64[(context + CONTEXT.skipped) >>> 3] = f64[(context + CONTEXT.skipped) >>> 3] + 1
  return STOP.done
}

function add(machine: Machine, context: number, night: number, lo: number, hi: number, line: number): Stop {
  const { u32, f64 } = machine
  const id = (context + CONTEXT.id) >>> 2
  const idHash = hashId(u32[id], u32[id + 1], u32[id + 2], u32[id + 3])
  const property = findProperty(machine, id, idHash)
  if (property < 0) return STOP.unknownProperty
  if (night < 0 || night >= u32[HEADER.days]) return STOP.outside
  const text = context + CONTEXT.room
  const length = u32[(context + CONTEXT.roomLength) >>> 2]
  const room = findRoom(machine, text, length, hashText(machine, text, length))
  let row = room === 0 ? 0 : findRow(machine, id, room, hashRow(idHash, room))
  if (row === 0) {
    const made = createRow(machine, context, { id, idHash, property, room, text, length, base: night })
    if (made.stop !== STOP.done) return made.stop
    row = made.row
  }
  const place = placeOf(u32, row, night)
  const chunk = chunkOf(machine, context, row, place)
  if (chunk === 0) return STOP.memoryFull
  const word = (chunk >>> 2) + (place % CHUNK_NIGHTS) * 2
  const before = u32[word + 1] * 2 ** 32 + u32[word]
  if (before !== 0) {
    f64[(context + CONTEXT.firstLine) >>> 3] = before
    return STOP.duplicate
  }
  const isExplaining = u32[HEADER.explain] === 1
  u32[word] = isExplaining ? line % 2 ** 32 : lo
  u32[word + 1] = isExplaining ? Math.floor(line / 2 ** 32) : hi
  f64[(context + CONTEXT.accepted) >>> 3] = f64[(context + CONTEXT.accepted) >>> 3] + 1
  return STOP.done
}

/** @param id cell of the packed id @returns ordinal, -1 if the property does not exist */
function findProperty({ u32 }: Machine, id: number, idHash: number): number {
  const slots = u32[HEADER.propertySlots] >>> 2
  const shift = u32[HEADER.propertyShift]
  const ids = u32[HEADER.propertyIds] >>> 2
  const last = 0xffffffff >>> shift
  for (let slot = idHash >>> shift; ; slot = (slot + 1) & last) {
    const ordinal = u32[slots + slot]
    if (ordinal === 0) return -1
    if (isSameId(u32, ids + (ordinal - 1) * 4, id)) return ordinal - 1
  }
}

function isSameId(u32: Uint32Array, a: number, b: number): boolean {
  return u32[a] === u32[b] && u32[a + 1] === u32[b + 1] && u32[a + 2] === u32[b + 2] && u32[a + 3] === u32[b + 3]
}

function hashText({ u8 }: Machine, start: number, length: number): number {
  let h = length
  for (let i = 0; i < length; i += 16) {
    const word = (at: number) => byte(at) | (byte(at + 1) << 8) | (byte(at + 2) << 16) | (byte(at + 3) << 24)
    h = finishHash(h + hashId(word(i), word(i + 4), word(i + 8), word(i + 12)))
  }
  return h

  function byte(at: number): number {
    return at < length ? u8[start + at] : 0
  }
}

function isRoom({ u8, u32 }: Machine, record: number, text: number, length: number, hash: number): boolean {
  const cell = record >>> 2
  if (u32[cell + ROOM.hash] !== hash || u32[cell + ROOM.length] !== length) return false
  for (let i = 0; i < length; i++) {
    if (u8[record + ROOM_TEXT_AT + i] !== u8[text + i]) return false
  }
  return true
}

function findRoom(machine: Machine, text: number, length: number, hash: number): number {
  const { u32 } = machine
  const slots = u32[HEADER.roomSlots] >>> 2
  const shift = u32[HEADER.roomShift]
  const last = 0xffffffff >>> shift
  for (let slot = hash >>> shift; ; slot = (slot + 1) & last) {
    const record = Atomics.load(u32, slots + slot * 2)
    if (record === 0 || isRoom(machine, record, text, length, hash)) return record
  }
}

function isRow(u32: Uint32Array, record: number, id: number, room: number): boolean {
  return u32[(record >>> 2) + ROW.room] === room && isSameId(u32, record >>> 2, id)
}

function findRow({ u32 }: Machine, id: number, room: number, hash: number): number {
  const slots = u32[HEADER.rowSlots] >>> 2
  const shift = u32[HEADER.rowShift]
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

function createRow(machine: Machine, context: number, sought: NewRow): { stop: Stop; row: number } {
  const { u32 } = machine
  const rowShift = u32[HEADER.rowShift]
  const isHalfFull = (count: number, shift: number) => Atomics.load(u32, count) >= 0x80000000 >>> shift
  if (isHalfFull(HEADER.rows, rowShift) || isHalfFull(HEADER.rooms, u32[HEADER.roomShift])) {
    return { stop: STOP.crowded, row: 0 }
  }
  const counts = (u32[HEADER.propertyRooms] >>> 2) + sought.property
  if (Atomics.load(u32, counts) >= LIMITS.roomTypesPerPropertyMax) return { stop: STOP.tooManyRooms, row: 0 }
  const room = sought.room || createRoom(machine, context, sought.text, sought.length)
  const record = room === 0 ? 0 : takeSpare(u32, context + CONTEXT.spareRow) || allocate(u32, context, rowBytes(u32))
  if (record === 0) return { stop: STOP.memoryFull, row: 0 }
  const hash = hashRow(sought.idHash, room)
  const cell = record >>> 2
  for (let i = 0; i < 4; i++) u32[cell + ROW.id + i] = u32[sought.id + i]
  u32[cell + ROW.room] = room
  u32[cell + ROW.property] = sought.property
  u32[cell + ROW.hash] = hash
  u32[cell + ROW.base] = sought.base
  const slots = u32[HEADER.rowSlots] >>> 2
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
  return u32[HEADER.rowBytes]
}

function createRoom(machine: Machine, context: number, text: number, length: number): number {
  const { u8, u32 } = machine
  const hash = hashText(machine, text, length)
  const record = allocate(u32, context, (ROOM_TEXT_AT + length + 63) & ~63)
  if (record === 0) return 0
  u32[(record >>> 2) + ROOM.hash] = hash
  u32[(record >>> 2) + ROOM.length] = length
  u8.copyWithin(record + ROOM_TEXT_AT, text, text + length)
  const slots = u32[HEADER.roomSlots] >>> 2
  const shift = u32[HEADER.roomShift]
  const last = 0xffffffff >>> shift
  for (let slot = hash >>> shift; ; slot = (slot + 1) & last) {
    const at = slots + slot * 2
    const other = Atomics.compareExchange(u32, at, 0, record)
    if (other === 0) {
      u32[at + 1] = (hash | 1) >>> 0
      Atomics.add(u32, HEADER.rooms, 1)
      return record
    }
    if (isRoom(machine, other, text, length, hash)) return other
  }
}

/** Position of a night in the chunks of a row (layout.ts). */
function placeOf(u32: Uint32Array, row: number, night: number): number {
  const place = night - u32[(row >>> 2) + ROW.base]
  return place < 0 ? place + spanOf(u32) : place
}

/** Nights of the window, rounded up to whole chunks. */
function spanOf(u32: Uint32Array): number {
  return Math.ceil(u32[HEADER.days] / CHUNK_NIGHTS) * CHUNK_NIGHTS
}

/** @returns address of the word of a night of a row, 0 if the row has no chunk for it */
export function wordAt(u32: Uint32Array, row: number, night: number): number {
  const place = placeOf(u32, row, night)
  const chunk = u32[(row >>> 2) + ROW.chunks + (place >>> 4)]
  return chunk === 0 ? 0 : chunk + (place % CHUNK_NIGHTS) * 8
}

function chunkOf({ u32 }: Machine, context: number, row: number, place: number): number {
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

/** Memory allocated in vain because another thread was first. */
function takeSpare(u32: Uint32Array, address: number): number {
  const spare = u32[address >>> 2]
  u32[address >>> 2] = 0
  return spare
}

function allocate(u32: Uint32Array, context: number, bytes: number): number {
  const next = (context + CONTEXT.blockNext) >>> 2
  const end = (context + CONTEXT.blockEnd) >>> 2
  let at = u32[next]
  if (u32[end] - at < bytes) {
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
    if (u32[HEADER.limit] - top < BLOCK_BYTES) return 0
    if (Atomics.compareExchange(u32, HEADER.top, top, top + BLOCK_BYTES) === top) return top
  }
}

function census({ u8, u32 }: Machine, list: number, count: number, result: number): void {
  u8.fill(0, result, result + RESULT_BYTES)
  let packages = 0
  const digest: [number, number] = [0, 0]
  for (let i = 0; i < count; i++) {
    const row = u32[(list >>> 2) + i]
    const room = u32[(row >>> 2) + ROW.room] >>> 2
    const nameHashes = [u32[room + ROOM.nameHash0], u32[room + ROOM.nameHash1]] as const
    for (const lane of [0, 1] as const) digest[lane] += roomHash(lane, rowKey(lane, u8, row, nameHashes[lane]))
    for (let night = 0; night < u32[HEADER.days]; night++) {
      const word = wordAt(u32, row, night) >>> 2
      if (word === 0 || (u32[word] | u32[word + 1]) === 0) continue
      packages++
      const byte = result + 16 + (night >>> 3)
      u8[byte] = u8[byte] | (1 << (night & 7))
    }
  }
  u32[result >>> 2] = packages
  u32[(result >>> 2) + 1] = digest[0] % 2 ** 32
  u32[(result >>> 2) + 2] = digest[1] % 2 ** 32
}

type Gathering = { list: number; count: number; first: number; nights: number; target: number; stride: number }

function gather({ u32 }: Machine, { list, count, first, nights, target, stride }: Gathering): void {
  const span = spanOf(u32)
  for (let i = 0; i < count; i++) {
    const row = u32[(list >>> 2) + i]
    let to = target / 4 + i * 2
    for (let bit = 0; bit < CHUNK_NIGHTS; bit++) {
      if (((nights >>> bit) & 1) === 0) continue
      const word = wordAt(u32, row, (first + bit) % span) >>> 2
      u32[to] = word === 0 ? 0 : u32[word]
      u32[to + 1] = word === 0 ? 0 : u32[word + 1]
      to += stride / 4
    }
  }
}
