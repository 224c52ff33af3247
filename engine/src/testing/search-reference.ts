/**
 * The search kernel in TypeScript: what tests compare the compiled one with.
 *
 * Match (bitmaps → list of rows → columns, position, nights), pick (row order, the first `limit`) and encode (wire
 * format) are three steps over one parameter block.
 */

import { SEARCH_ORDERS } from '@vacancy/shared/wire'
import {
  AMENITIES_AT,
  AVAILABLE_AT,
  BITMAPS_AT,
  BOX,
  COLUMN_BYTES,
  COLUMNS_AT,
  DATES_AT,
  EMITTED,
  ENTRY,
  FEATURES_AT,
  hitBytes,
  LIST_AT,
  LIST_ROWS,
  MATCH,
  MODE,
  PAGE,
  PAGE_AT,
  PAGE_WIDE,
  PARAMETER,
  PLANES_AT,
  POSITION_AT,
  TALLY_AT,
  TALLY_FLAGS,
  TOTALS_AT,
} from '../search/parameters.ts'
import { POSITION, PROPERTY } from '../store/layout.ts'
import type { PutWord } from '../store/planes.ts'
import type { Memory } from '../store/store.ts'
import type { Kernels } from '../threads/kernels.ts'
import { calendar, writeDays } from './calendar-reference.ts'
import { overlap, putFeatures, tally } from './tally-reference.ts'

export function referenceKernels(memory: Memory): Kernels {
  return {
    search: (parameters) => search(memory, parameters),
    pick: (parameters, count) => {
      readTotals(memory, parameters, count)
      pick(memory, parameters, count)
    },
    sort: (parameters) => sort(memory, parameters),
    emit: (parameters) => emit(memory, parameters),
    tally: (parameters, count) => {
      readTotals(memory, parameters, count)
      tally(memory, parameters, count)
    },
    overlap: (a, b, groups) => overlap(memory, a, b, groups),
    days: (records, count, to) => writeDays(memory, records, count, to),
    put: plainPutWord(memory),
  }
}

/** Totals of the list are doubles where the caller has computed them. */
function readTotals({ buffer, f64 }: Memory, parameters: number, count: number): void {
  const view = new DataView(buffer, parameters + TOTALS_AT)
  for (let i = 0; i < count; i++) view.setBigUint64(i * 8, BigInt(f64[(parameters + TOTALS_AT) / 8 + i]), true)
}

export function plainPutWord(memory: Memory): PutWord {
  const words = new BigInt64Array(memory.buffer)
  return (address, lo, hi) => {
    Atomics.store(words, address / 8, (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0))
  }
}

function search(memory: Memory, parameters: number): void {
  const { u32 } = memory
  const p = parameters >>> 2
  const endRow = u32[p + PARAMETER.endRow]
  const list = (parameters + LIST_AT) >>> 2
  u32[p + PARAMETER.hits] = 0
  u32[p + PARAMETER.written] = u32[p + PARAMETER.out]
  u32[p + PARAMETER.examined] = 0
  u32[p + PARAMETER.nextRow] = endRow
  let row = u32[p + PARAMETER.firstRow]
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
  const bitmaps = u32[p + PARAMETER.bitmaps]
  for (let i = 0; i < bitmaps && bits !== 0; i++) {
    bits &= u32[(u32[((parameters + BITMAPS_AT) >>> 2) + i] >>> 2) + group]
  }
  if (u32[p + PARAMETER.mode] !== MODE.encode) bits &= nearBox(memory, parameters, group)
  if (u32[p + PARAMETER.narrowByAvailable] === 0) return bits
  const nights = u32[p + PARAMETER.nights]
  for (let i = 0; i < nights && bits !== 0; i++) {
    bits &= u32[(u32[((parameters + AVAILABLE_AT) >>> 2) + i] >>> 2) + group]
  }
  return bits
}

/** Bits of the 32 rows of a group whose cells are those of the box. */
function nearBox(memory: Memory, parameters: number, group: number): number {
  const { cells, wide } = pageOf(memory, parameters)
  const positions = cells[PAGE.positions] as number
  if (cells[PAGE.box] === BOX.none || positions === 0) return -1
  const stride = wide.getUint32(PAGE_WIDE.positionStride, true)
  const axes = [PAGE_WIDE.latitudeCells, PAGE_WIDE.longitudeCells].map((at) => wide.getUint32(at, true))
  let near = 0
  for (let row = 0; row < 32; row++) {
    const isNear = axes.every((between, axis) => {
      let cell = 0
      for (let bit = 0; bit < POSITION.bitsPerAxis; bit++) {
        const bits = memory.u32[((positions + (axis * POSITION.bitsPerAxis + bit) * stride) >>> 2) + group]
        cell |= ((bits >>> row) & 1) << bit
      }
      const [first, last] = [between & 0xff, between >>> 8]
      return first <= last ? cell >= first && cell <= last : cell >= first || cell <= last
    })
    if (isNear) near |= 1 << row
  }
  return near
}

/** Narrows the list and encodes the remaining rows. @returns false when the search ends here */
function finishList(memory: Memory, parameters: number, listed: number): boolean {
  const { u32 } = memory
  const p = parameters >>> 2
  u32[p + PARAMETER.examined] = u32[p + PARAMETER.examined] + listed
  let count = keepLive(memory, parameters, listed)
  count = keepColumns(memory, parameters, count)
  if (u32[p + PARAMETER.amenities] !== 0) count = keepAmenities(memory, parameters, count)
  if (u32[p + PARAMETER.hasPosition] !== 0) count = keepNear(memory, parameters, count)
  const nights = u32[p + PARAMETER.nights]
  for (let night = 0; night < nights && count > 0; night++) count = keepNight(memory, parameters, night, count)
  const mode = u32[p + PARAMETER.mode]
  if (mode === MODE.encode) return encode(memory, parameters, count)
  const page = pageOf(memory, parameters)
  if (page.cells[PAGE.box] !== BOX.none) count = keepBox(memory, parameters, page, count)
  if (mode === MODE.calendar) {
    calendar(memory, parameters, u32[p + PARAMETER.out], count)
    return true
  }
  const flags = u32[(parameters + TALLY_AT) >>> 2]
  const hasFeatures = (flags & TALLY_FLAGS.features) !== 0
  if (hasFeatures || page.cells[PAGE.hasTotals] !== 0) count = keepTotals(memory, parameters, page, count)
  if (hasFeatures) putFeatures(memory, parameters, count)
  if (mode === MODE.collect) return collect(memory, parameters, count)
  if (flags !== 0) tally(memory, parameters, count)
  if (mode === MODE.count) return true
  pick(memory, parameters, count)
  return page.cells[PAGE.isStopped] === 0
}

/** Keeps the listed rows for which `keeps` is true. */
function keep({ u32 }: Memory, parameters: number, count: number, keeps: (row: number) => boolean): number {
  const list = (parameters + LIST_AT) >>> 2
  let kept = 0
  for (let i = 0; i < count; i++) {
    const row = u32[list + i]
    if (keeps(row)) u32[list + kept++] = row
  }
  return kept
}

function keepLive(memory: Memory, parameters: number, count: number): number {
  // With a bitmap the dead rows are excluded already: the first bitmap marks the live rows.
  if (memory.u32[(parameters >>> 2) + PARAMETER.bitmaps] !== 0) return count
  return keep(memory, parameters, count, (row) => propertyAt(memory, parameters, row) !== 0)
}

function keepColumns(memory: Memory, parameters: number, count: number): number {
  const { u32 } = memory
  const columns = u32[(parameters >>> 2) + PARAMETER.columns]
  let left = count
  for (let c = 0; c < columns; c++) {
    const entry = (parameters + COLUMNS_AT + c * COLUMN_BYTES) >>> 2
    left = keep(memory, parameters, left, (row) => {
      const value = u32[(propertyAt(memory, parameters, row) + u32[entry]) >>> 2]
      return value >= u32[entry + 1] && value <= u32[entry + 2]
    })
  }
  return left
}

function keepAmenities(memory: Memory, parameters: number, count: number): number {
  const { u32 } = memory
  const at = (parameters + AMENITIES_AT) >>> 2
  const wanted = u32.subarray(at, at + u32[(parameters >>> 2) + PARAMETER.amenities])
  return keep(memory, parameters, count, (row) => {
    const amenities = u32[(propertyAt(memory, parameters, row) + PROPERTY.amenities) >>> 2] >>> 2
    const held = u32.subarray(amenities + 1, amenities + 1 + (amenities === 0 ? 0 : u32[amenities]))
    return wanted.every((amenity) => held.includes(amenity))
  })
}

function keepNear(memory: Memory, parameters: number, count: number): number {
  const { f64 } = memory
  const at = (parameters + POSITION_AT) / 8
  return keep(memory, parameters, count, (row) => {
    const position = (propertyAt(memory, parameters, row) + PROPERTY.x) / 8
    const [dx, dy, dz] = [0, 1, 2].map((axis) => f64[position + axis] - f64[at + axis]) as [number, number, number]
    return dx * dx + dy * dy + dz * dz <= f64[at + 3]
  })
}

/** Both halves of the last word read: two consistent 32-bit loads. */
const word = { lo: 0, hi: 0 }

/**
 * Reads a word that may be changing. The low half is read again after the high one. If it is unchanged, both halves
 * belong to one word, unless it changed back and forth within nanoseconds. (The WebAssembly kernel loads 64 bits at
 * once.)
 */
function readWord(memory: Memory, cell: number): void {
  let lo = memory.u32[cell]
  for (;;) {
    word.hi = memory.u32[cell + 1]
    const again = Atomics.load(memory.u32, cell)
    if (again === lo) break
    lo = again
  }
  word.lo = lo
}

function passes(memory: Memory, p: number): boolean {
  const { u32 } = memory
  const features = u32[p + PARAMETER.features]
  return (
    word.hi >= u32[p + PARAMETER.invertedMin] &&
    word.hi <= u32[p + PARAMETER.invertedMax] &&
    (word.lo & 0xff) >= u32[p + PARAMETER.minAvailability] &&
    (word.lo & features) >>> 0 === features
  )
}

function keepNight(memory: Memory, parameters: number, night: number, count: number): number {
  const plane = memory.u32[((parameters + PLANES_AT) >>> 2) + night] >>> 2
  return keep(memory, parameters, count, (row) => {
    readWord(memory, plane + row * 2)
    return passes(memory, parameters >>> 2)
  })
}

/** Writes rows of the list as hits. @returns false when the limit is reached or the output is full */
function encode(memory: Memory, parameters: number, count: number): boolean {
  const { u32 } = memory
  const p = parameters >>> 2
  const list = (parameters + LIST_AT) >>> 2
  const nights = u32[p + PARAMETER.nights]
  const limit = u32[p + PARAMETER.limit]
  const bytes = hitBytes(nights)
  const outEnd = u32[p + PARAMETER.outEnd]
  for (let i = 0; i < count; i++) {
    const row = u32[list + i]
    const at = u32[p + PARAMETER.written]
    if (u32[p + PARAMETER.hits] === limit) return false
    if (at + bytes > outEnd) {
      u32[p + PARAMETER.nextRow] = row
      return false
    }
    // The words are read again. If they changed since the match, this is no longer a hit.
    if (!encodeHit(memory, parameters, row, at)) continue
    u32[p + PARAMETER.written] = at + bytes
    u32[p + PARAMETER.hits] = u32[p + PARAMETER.hits] + 1
    u32[p + PARAMETER.fieldId] = u32[p + PARAMETER.fieldId] + (nights === 0 ? 1 : 2)
  }
  return u32[p + PARAMETER.hits] !== limit
}

function encodeHit(memory: Memory, parameters: number, row: number, start: number): boolean {
  const { u8, u32 } = memory
  const p = parameters >>> 2
  const nights = u32[p + PARAMETER.nights]
  const fieldId = u32[p + PARAMETER.fieldId]
  writeFieldHeader(u8, start, fieldId, 1, 16)
  const id = u32[p + PARAMETER.rowIds] + row * 16
  for (let i = 0; i < 16; i++) u8[start + 7 + i] = u8[id + i]
  if (nights === 0) return true
  let at = start + 23
  writeFieldHeader(u8, at, fieldId + 1, 8, 2 + nights * 11)
  u8[at + 7] = nights & 0xff
  u8[at + 8] = nights >>> 8
  at += 9
  for (let night = 0; night < nights; night++, at += 11) {
    const plane = u32[((parameters + PLANES_AT) >>> 2) + night] >>> 2
    readWord(memory, plane + row * 2)
    if (!passes(memory, p)) return false
    const date = parameters + DATES_AT + night * 2
    u8[at] = u8[date]
    u8[at + 1] = u8[date + 1]
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

type PageView = { readonly cells: Uint32Array; readonly wide: DataView }

function pageOf({ buffer }: Memory, parameters: number): PageView {
  const at = parameters + PAGE_AT
  return { cells: new Uint32Array(buffer, at, PAGE_WIDE.minTotal / 4), wide: new DataView(buffer, at) }
}

function keepRows(memory: Memory, parameters: number, count: number, keeps: (row: number, at: number) => boolean) {
  const { u32 } = memory
  const list = (parameters + LIST_AT) >>> 2
  const totals = (parameters + TOTALS_AT) >>> 2
  let kept = 0
  for (let i = 0; i < count; i++) {
    const row = u32[list + i]
    if (!keeps(row, i)) continue
    u32[list + kept] = row
    u32[totals + kept * 2] = u32[totals + i * 2]
    u32[totals + kept * 2 + 1] = u32[totals + i * 2 + 1]
    kept++
  }
  return kept
}

function propertyAt({ u32 }: Memory, parameters: number, row: number): number {
  return u32[(u32[(parameters >>> 2) + PARAMETER.rowProperties] >>> 2) + row]
}

function keepBox(memory: Memory, parameters: number, { cells, wide }: PageView, count: number): number {
  const edge = (at: number) => wide.getFloat64(at, true)
  const [south, north] = [edge(PAGE_WIDE.south), edge(PAGE_WIDE.north)]
  const [west, east] = [edge(PAGE_WIDE.west), edge(PAGE_WIDE.east)]
  return keepRows(memory, parameters, count, (row) => {
    const property = propertyAt(memory, parameters, row)
    const latitude = memory.f64[(property + PROPERTY.latitude) / 8]
    const longitude = memory.f64[(property + PROPERTY.longitude) / 8]
    const [eastOf, westOf] = [longitude >= west, longitude <= east]
    return (
      latitude >= south && latitude <= north && (cells[PAGE.box] === BOX.across ? eastOf || westOf : eastOf && westOf)
    )
  })
}

function keepTotals(memory: Memory, parameters: number, { wide }: PageView, count: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  const totals = new DataView(memory.buffer, parameters + TOTALS_AT)
  const [least, most] = [wide.getBigUint64(PAGE_WIDE.minTotal, true), wide.getBigUint64(PAGE_WIDE.maxTotal, true)]
  const list = (parameters + LIST_AT) >>> 2
  for (let i = 0; i < count; i++) {
    let total = 0n
    for (let night = 0; night < u32[p + PARAMETER.nights]; night++) {
      const plane = u32[((parameters + PLANES_AT) >>> 2) + night] >>> 2
      total += BigInt(~u32[plane + u32[list + i] * 2 + 1] >>> 0)
    }
    totals.setBigUint64(i * 8, total, true)
  }
  return keepRows(memory, parameters, count, (_, at) => {
    const total = totals.getBigUint64(at * 8, true)
    return total >= least && total <= most
  })
}

function collect(memory: Memory, parameters: number, count: number): boolean {
  const { u32, f64 } = memory
  const p = parameters >>> 2
  const totals = (parameters + TOTALS_AT) >>> 2
  for (let i = 0; i < count; i++) {
    const row = u32[((parameters + LIST_AT) >>> 2) + i]
    const at = u32[p + PARAMETER.written]
    const hasFeatures = (u32[(parameters + TALLY_AT) >>> 2] & TALLY_FLAGS.features) !== 0
    const bytes = hasFeatures ? MATCH.bytesWithFeatures : MATCH.bytes
    if (at + bytes > u32[p + PARAMETER.outEnd]) {
      u32[p + PARAMETER.nextRow] = row
      return false
    }
    const place = u32[(propertyAt(memory, parameters, row) + PROPERTY.row) >>> 2]
    f64[at / 8] = u32[totals + i * 2] + u32[totals + i * 2 + 1] * 2 ** 32
    u32.set([row, place], (at + MATCH.row) >>> 2)
    if (hasFeatures) u32[(at + MATCH.features) >>> 2] = u32[((parameters + FEATURES_AT) >>> 2) + i]
    u32[p + PARAMETER.written] = at + bytes
  }
  return true
}

function keyOf(memory: Memory, parameters: number, order: number, property: number, total: bigint): bigint {
  const { u32, f64 } = memory
  if (order === SEARCH_ORDERS.total) return total
  if (order === SEARCH_ORDERS.totalDown) return 2n ** 64n - 1n - total
  if (order === SEARCH_ORDERS.stars) return (BigInt(255 - u32[(property + PROPERTY.stars) >>> 2]) << 56n) | total
  if (order !== SEARCH_ORDERS.distance) return 0n
  const from = (property + PROPERTY.x) / 8
  const to = (parameters + POSITION_AT) / 8
  const [dx, dy, dz] = [f64[from] - f64[to], f64[from + 1] - f64[to + 1], f64[from + 2] - f64[to + 2]]
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, dx * dx + dy * dy + dz * dz)
  return bits.getBigUint64(0)
}

type Candidate = { readonly key: bigint; readonly high: bigint; readonly low: bigint; readonly row: number }

function isLess(a: Omit<Candidate, 'row'>, b: Omit<Candidate, 'row'>): boolean {
  if (a.key !== b.key) return a.key < b.key
  return a.high !== b.high ? a.high < b.high : a.low < b.low
}

function entryAt(view: DataView, at: number): Candidate {
  return {
    key: view.getBigUint64(at + ENTRY.key, true),
    high: view.getBigUint64(at + ENTRY.high, true),
    low: view.getBigUint64(at + ENTRY.low, true),
    row: view.getUint32(at + ENTRY.row, true),
  }
}

function putEntry(view: DataView, at: number, { key, high, low, row }: Candidate): void {
  view.setBigUint64(at + ENTRY.key, key, true)
  view.setBigUint64(at + ENTRY.high, high, true)
  view.setBigUint64(at + ENTRY.low, low, true)
  view.setBigUint64(at + ENTRY.row, BigInt(row), true)
}

/** Keeps the entries sorted: simpler than a heap, and equal after `sort`. */
function pick(memory: Memory, parameters: number, count: number): void {
  const { u32 } = memory
  const { cells, wide } = pageOf(memory, parameters)
  const order = cells[PAGE.order] as number
  const capacity = cells[PAGE.capacity] as number
  const view = new DataView(memory.buffer)
  const at = (n: number) => (cells[PAGE.entries] as number) + n * ENTRY.bytes
  const cursor = {
    key: wide.getBigUint64(PAGE_WIDE.cursorKey, true),
    high: wide.getBigUint64(PAGE_WIDE.cursorHigh, true),
    low: wide.getBigUint64(PAGE_WIDE.cursorLow, true),
  }
  cells[PAGE.matches] = (cells[PAGE.matches] as number) + count
  for (let i = 0; i < count; i++) {
    const row = u32[((parameters + LIST_AT) >>> 2) + i]
    const total = cells[PAGE.hasTotals] === 0 ? 0n : view.getBigUint64(parameters + TOTALS_AT + i * 8, true)
    const key = keyOf(memory, parameters, order, propertyAt(memory, parameters, row), total)
    const id = u32[(parameters >>> 2) + PARAMETER.rowIds] + row * 16
    const candidate = { key, high: view.getBigUint64(id), low: view.getBigUint64(id + 8), row }
    if (cells[PAGE.hasCursor] !== 0 && !isLess(cursor, candidate)) continue
    cells[PAGE.after] = (cells[PAGE.after] as number) + 1
    let place = cells[PAGE.size] as number
    while (order !== SEARCH_ORDERS.row && place > 0 && isLess(candidate, entryAt(view, at(place - 1)))) place--
    if (place < capacity) {
      const last = Math.min(cells[PAGE.size] as number, capacity - 1)
      memory.u8.copyWithin(at(place + 1), at(place), at(last))
      putEntry(view, at(place), candidate)
      cells[PAGE.size] = last + 1
    }
    if ((cells[PAGE.after] as number) < (cells[PAGE.stopAfter] as number)) continue
    cells[PAGE.isStopped] = 1
    return
  }
}

/** The entries are sorted; those of a kernel that a slice continues would not be. */
function sort(_memory: Memory, _parameters: number): void {}

function emit(memory: Memory, parameters: number): void {
  const { u8, u32 } = memory
  const { cells, wide } = pageOf(memory, parameters)
  const view = new DataView(memory.buffer)
  const p = parameters >>> 2
  const [nights, stride] = [u32[p + PARAMETER.nights], cells[PAGE.stride] as number]
  const bytes = stride === 0 ? hitBytes(nights) : stride
  const order = cells[PAGE.order] as number
  const hasKeyOfTotal = nights > 0 && [1, 2, 4].includes(order)
  for (let i = cells[PAGE.from] as number; i < (cells[PAGE.to] as number); i++) {
    const entry = (cells[PAGE.entries] as number) + i * ENTRY.bytes
    const { key, row } = entryAt(view, entry)
    const source = view.getUint32(entry + ENTRY.source, true)
    const property = propertyAt(memory, parameters, row)
    if (property === 0) continue
    const at = u32[p + PARAMETER.written]
    if (at + bytes > u32[p + PARAMETER.outEnd]) {
      cells[PAGE.isFull] = 1
      return
    }
    // The hit in full is written in any case; where it does not count, another one takes its place.
    const total = stride === 0 ? totalOfHit(memory, parameters, row, at) : totalOfRow(memory, parameters, row)
    if (total < 0n) continue
    const isBounded = cells[PAGE.hasTotals] !== 0
    if (
      isBounded &&
      (total < wide.getBigUint64(PAGE_WIDE.minTotal, true) || total > wide.getBigUint64(PAGE_WIDE.maxTotal, true))
    )
      continue
    if (hasKeyOfTotal && keyOf(memory, parameters, order, property, total) !== key) continue
    if (stride > 0) {
      const id = u32[p + PARAMETER.rowIds] + row * 16
      u8.copyWithin(at, id, id + 16)
      if (cells[PAGE.hasTotalValue] !== 0) view.setBigUint64(at + 16, total, true)
    }
    const record = (cells[PAGE.entries] as number) + (cells[PAGE.emitted] as number) * ENTRY.bytes
    view.setBigUint64(record + EMITTED.total, total, true)
    view.setUint32(record + EMITTED.property, property, true)
    view.setUint32(record + EMITTED.row, row, true)
    view.setUint32(record + EMITTED.source, source, true)
    cells[PAGE.emitted] = (cells[PAGE.emitted] as number) + 1
    u32[p + PARAMETER.written] = at + bytes
    u32[p + PARAMETER.fieldId] = u32[p + PARAMETER.fieldId] + (nights === 0 ? 1 : 2)
  }
}

function totalOfRow(memory: Memory, parameters: number, row: number): bigint {
  const p = parameters >>> 2
  let total = 0n
  for (let night = 0; night < memory.u32[p + PARAMETER.nights]; night++) {
    readWord(memory, (memory.u32[((parameters + PLANES_AT) >>> 2) + night] >>> 2) + row * 2)
    if (!passes(memory, p)) return -1n
    total += BigInt(~word.hi >>> 0)
  }
  return total
}

function totalOfHit(memory: Memory, parameters: number, row: number, at: number): bigint {
  if (!encodeHit(memory, parameters, row, at)) return -1n
  const view = new DataView(memory.buffer)
  let total = 0n
  const nights = memory.u32[(parameters >>> 2) + PARAMETER.nights]
  for (let night = 0; night < nights; night++) total += BigInt(view.getUint32(at + 32 + night * 11 + 3, true))
  return total
}
