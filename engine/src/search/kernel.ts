/**
 * The TypeScript twin of kernel.as.ts: the oracle it is tested against, and what serves where WebAssembly SIMD or
 * shared memory is missing.
 *
 * Match (bitmaps → list of rows → columns, position, nights), pick (row order, the first `limit`) and encode (wire
 * format) are three steps over one parameter block.
 */

import { PROPERTY } from '../store/layout.ts'
import type { Memory } from '../store/store.ts'
import {
  AMENITIES_AT,
  AVAILABLE_AT,
  BITMAPS_AT,
  COLUMNS_AT,
  DATES_AT,
  hitBytes,
  LIST_AT,
  LIST_ROWS,
  PARAMETER,
  PLANES_AT,
  POSITION_AT,
  type SearchKernel,
} from './parameters.ts'

export function createTypescriptKernel(memory: Memory): SearchKernel {
  return (parameters) => search(memory, parameters)
}

function search(memory: Memory, parameters: number): void {
  const { u32 } = memory
  const p = parameters >>> 2
  const endRow = u32[p + PARAMETER.endRow] as number
  const list = (parameters + LIST_AT) >>> 2
  u32[p + PARAMETER.hits] = 0
  u32[p + PARAMETER.written] = u32[p + PARAMETER.out] as number
  u32[p + PARAMETER.examined] = 0
  u32[p + PARAMETER.nextRow] = endRow
  let row = u32[p + PARAMETER.firstRow] as number
  let listed = 0
  while (row < endRow) {
    let bits = candidates(memory, parameters, row >>> 5) & (-1 << (row & 31))
    const base = row & ~31
    if (base + 32 > endRow) bits &= (1 << (endRow - base)) - 1
    while (bits !== 0) {
      const lowest = bits & -bits
      u32[list + listed++] = base + 31 - Math.clz32(lowest)
      bits ^= lowest
    }
    row = base + 32
    if (listed + 32 > LIST_ROWS) {
      if (!finishList(memory, parameters, listed)) return
      listed = 0
    }
  }
  if (listed > 0) finishList(memory, parameters, listed)
}

/** Bits of the 32 rows of a group that pass all bitmaps. */
function candidates(memory: Memory, parameters: number, group: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  let bits = -1
  const bitmaps = u32[p + PARAMETER.bitmaps] as number
  for (let i = 0; i < bitmaps && bits !== 0; i++) {
    bits &= u32[((u32[((parameters + BITMAPS_AT) >>> 2) + i] as number) >>> 2) + group] as number
  }
  if (u32[p + PARAMETER.narrowByAvailable] === 0) return bits
  const nights = u32[p + PARAMETER.nights] as number
  for (let i = 0; i < nights && bits !== 0; i++) {
    bits &= u32[((u32[((parameters + AVAILABLE_AT) >>> 2) + i] as number) >>> 2) + group] as number
  }
  return bits
}

/** Narrows the list and encodes what is left. @returns false when the search ends here */
function finishList(memory: Memory, parameters: number, listed: number): boolean {
  const { u32 } = memory
  const p = parameters >>> 2
  u32[p + PARAMETER.examined] = (u32[p + PARAMETER.examined] as number) + listed
  let count = keepLive(memory, parameters, listed)
  count = keepColumns(memory, parameters, count)
  if (u32[p + PARAMETER.amenities] !== 0) count = keepAmenities(memory, parameters, count)
  if (u32[p + PARAMETER.hasPosition] !== 0) count = keepNear(memory, parameters, count)
  const nights = u32[p + PARAMETER.nights] as number
  for (let night = 0; night < nights && count > 0; night++) count = keepNight(memory, parameters, night, count)
  return encode(memory, parameters, count)
}

function keepLive(memory: Memory, parameters: number, count: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  // With a bitmap the dead rows are gone already: the first one says which rows live.
  if (u32[p + PARAMETER.bitmaps] !== 0) return count
  const list = (parameters + LIST_AT) >>> 2
  const properties = (u32[p + PARAMETER.rowProperties] as number) >>> 2
  let kept = 0
  for (let i = 0; i < count; i++) {
    const row = u32[list + i] as number
    u32[list + kept] = row
    kept += u32[properties + row] === 0 ? 0 : 1
  }
  return kept
}

function keepColumns(memory: Memory, parameters: number, count: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  const list = (parameters + LIST_AT) >>> 2
  const properties = (u32[p + PARAMETER.rowProperties] as number) >>> 2
  const columns = u32[p + PARAMETER.columns] as number
  let left = count
  for (let c = 0; c < columns; c++) {
    const column = u32[((parameters + COLUMNS_AT) >>> 2) + c * 2] as number
    const value = u32[((parameters + COLUMNS_AT) >>> 2) + c * 2 + 1] as number
    let kept = 0
    for (let i = 0; i < left; i++) {
      const row = u32[list + i] as number
      u32[list + kept] = row
      kept += u32[((u32[properties + row] as number) + column) >>> 2] === value ? 1 : 0
    }
    left = kept
  }
  return left
}

function keepAmenities(memory: Memory, parameters: number, count: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  const list = (parameters + LIST_AT) >>> 2
  const properties = (u32[p + PARAMETER.rowProperties] as number) >>> 2
  const wanted = u32[p + PARAMETER.amenities] as number
  let kept = 0
  for (let i = 0; i < count; i++) {
    const row = u32[list + i] as number
    const amenities = (u32[((u32[properties + row] as number) + PROPERTY.amenities) >>> 2] as number) >>> 2
    let all = true
    for (let w = 0; w < wanted && all; w++) {
      const amenity = u32[((parameters + AMENITIES_AT) >>> 2) + w] as number
      const held = amenities === 0 ? 0 : (u32[amenities] as number)
      all = false
      for (let h = 1; h <= held && !all; h++) all = u32[amenities + h] === amenity
    }
    u32[list + kept] = row
    kept += all ? 1 : 0
  }
  return kept
}

function keepNear(memory: Memory, parameters: number, count: number): number {
  const { u32, f64 } = memory
  const p = parameters >>> 2
  const list = (parameters + LIST_AT) >>> 2
  const properties = (u32[p + PARAMETER.rowProperties] as number) >>> 2
  const at = (parameters + POSITION_AT) / 8
  const x = f64[at] as number
  const y = f64[at + 1] as number
  const z = f64[at + 2] as number
  const chordMax = f64[at + 3] as number
  let kept = 0
  for (let i = 0; i < count; i++) {
    const row = u32[list + i] as number
    const position = ((u32[properties + row] as number) + PROPERTY.x) / 8
    const dx = (f64[position] as number) - x
    const dy = (f64[position + 1] as number) - y
    const dz = (f64[position + 2] as number) - z
    u32[list + kept] = row
    kept += dx * dx + dy * dy + dz * dz <= chordMax ? 1 : 0
  }
  return kept
}

/** Both halves of the word last read: two 32-bit loads that belong together. */
const word = { lo: 0, hi: 0 }

/**
 * Reads a word that may be changing. The low half is read again after the high one: equal means that both are of one
 * word, unless it changed there and back within nanoseconds. (The kernel loads 64 bits at once.)
 */
function readWord(memory: Memory, cell: number): void {
  let lo = memory.u32[cell] as number
  for (;;) {
    word.hi = memory.u32[cell + 1] as number
    const again = Atomics.load(memory.u32, cell)
    if (again === lo) break
    lo = again
  }
  word.lo = lo
}

function passes(memory: Memory, p: number): boolean {
  const { u32 } = memory
  const features = u32[p + PARAMETER.features] as number
  return (
    word.hi >= (u32[p + PARAMETER.invertedMin] as number) &&
    word.hi <= (u32[p + PARAMETER.invertedMax] as number) &&
    (word.lo & 0xff) >= (u32[p + PARAMETER.minAvailability] as number) &&
    (word.lo & features) >>> 0 === features
  )
}

function keepNight(memory: Memory, parameters: number, night: number, count: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  const list = (parameters + LIST_AT) >>> 2
  const plane = (u32[((parameters + PLANES_AT) >>> 2) + night] as number) >>> 2
  let kept = 0
  for (let i = 0; i < count; i++) {
    const row = u32[list + i] as number
    readWord(memory, plane + row * 2)
    u32[list + kept] = row
    kept += passes(memory, p) ? 1 : 0
  }
  return kept
}

/** Writes rows of the list as hits. @returns false when the limit is reached or the output is full */
function encode(memory: Memory, parameters: number, count: number): boolean {
  const { u32 } = memory
  const p = parameters >>> 2
  const list = (parameters + LIST_AT) >>> 2
  const nights = u32[p + PARAMETER.nights] as number
  const limit = u32[p + PARAMETER.limit] as number
  const bytes = hitBytes(nights)
  const outEnd = u32[p + PARAMETER.outEnd] as number
  for (let i = 0; i < count; i++) {
    const row = u32[list + i] as number
    const at = u32[p + PARAMETER.written] as number
    if (u32[p + PARAMETER.hits] === limit) return false
    if (at + bytes > outEnd) {
      u32[p + PARAMETER.nextRow] = row
      return false
    }
    // The words are read again and may have changed since they matched: then this is no hit any more.
    if (!encodeHit(memory, parameters, row, at)) continue
    u32[p + PARAMETER.written] = at + bytes
    u32[p + PARAMETER.hits] = (u32[p + PARAMETER.hits] as number) + 1
    u32[p + PARAMETER.fieldId] = (u32[p + PARAMETER.fieldId] as number) + (nights === 0 ? 1 : 2)
  }
  return u32[p + PARAMETER.hits] !== limit
}

function encodeHit(memory: Memory, parameters: number, row: number, start: number): boolean {
  const { u8, u32 } = memory
  const p = parameters >>> 2
  const nights = u32[p + PARAMETER.nights] as number
  const fieldId = u32[p + PARAMETER.fieldId] as number
  writeFieldHeader(u8, start, fieldId, 1, 16)
  const id = (u32[p + PARAMETER.rowIds] as number) + row * 16
  for (let i = 0; i < 16; i++) u8[start + 7 + i] = u8[id + i] as number
  if (nights === 0) return true
  let at = start + 23
  writeFieldHeader(u8, at, fieldId + 1, 8, 2 + nights * 11)
  u8[at + 7] = nights & 0xff
  u8[at + 8] = nights >>> 8
  at += 9
  for (let night = 0; night < nights; night++, at += 11) {
    const plane = (u32[((parameters + PLANES_AT) >>> 2) + night] as number) >>> 2
    readWord(memory, plane + row * 2)
    if (!passes(memory, p)) return false
    const date = parameters + DATES_AT + night * 2
    u8[at] = u8[date] as number
    u8[at + 1] = u8[date + 1] as number
    u8[at + 2] = word.lo & 0xff
    writeU32(u8, at + 3, ~word.hi)
    writeU32(u8, at + 7, word.lo >>> 8)
  }
  return true
}

function writeFieldHeader(u8: Uint8Array, at: number, id: number, type: number, bytes: number): void {
  u8[at] = id & 0xff
  u8[at + 1] = (id >>> 8) & 0xff
  u8[at + 2] = type
  writeU32(u8, at + 3, bytes)
}

function writeU32(u8: Uint8Array, at: number, value: number): void {
  u8[at] = value & 0xff
  u8[at + 1] = (value >>> 8) & 0xff
  u8[at + 2] = (value >>> 16) & 0xff
  u8[at + 3] = value >>> 24
}
