/**
 * A search of several arrival days (docs/design/search.md#calendars): the lowest total of each day, or the best stay
 * of each property. Takes the same steps as a page, with the same progress between two slices.
 */

import { assert, LIMITS } from '@vacancy/shared'
import { SEARCH_WANTS } from '@vacancy/shared/wire'
import { addBytes, addRoom, addTrailer, finishReply } from '../protocol/reply.ts'
import { PLANE, SEGMENT, STATE, TABLE } from '../store/layout.ts'
import { planeOf } from '../store/planes.ts'
import { type Memory, state } from '../store/store.ts'
import { field, rowCountOf } from '../store/table-fields.ts'
import { versionOf } from '../store/version.ts'
import {
  ALLOWED,
  ARRIVALS,
  BLOCK_BYTES,
  BY_DAY,
  DAY_BYTES,
  DAY_COUNT,
  DAY_EMPTY_HIGH,
  DAY_NUMBER,
  DAY_RECORD_BYTES,
  DAYS,
  FACTORS,
  FEATURES,
  FIRST_DAY,
  FITS_BITS,
  FITS_BITS_BYTES,
  INVERTED_MAX,
  INVERTED_MIN,
  IS_BOUNDED,
  IS_ONE,
  MAX_TOTAL,
  MIN_TOTAL,
  MOST_NIGHTS,
  NIGHTS,
  OUT,
  PLANES,
  ROOMS_LEFT,
  ROW_IDS,
  ROW_PROPERTIES,
  SPAN,
  STAY_BYTES,
  TABLE as TABLE_AT,
  VISIBLE,
  WITH_FITS,
} from './calendar-block.as.ts'
import { mergeFits, mergeStays } from './calendar-merge.ts'
import { factorsOf } from './calendar-query.ts'
import type { Merge } from './merge.ts'
import {
  beginPage,
  fillValues,
  noteLast,
  pageTrailer,
  pickMerged,
  planPage,
  putU64,
  startMatching,
  TRAILER,
  TYPE_RECORDS,
  valuesBytes,
  withNames,
} from './page.ts'
import { EMITTED, ENTRY, LIST_ROWS, MODE, PAGE, PAGE_AT, PARAMETER } from './parameters.ts'
import { planRows, segmentOfSearch } from './plan.ts'
import type { Progress } from './progress.ts'
import type { Search } from './query.ts'
import type { Searcher } from './searcher.ts'
import { endOfSlice, workDone } from './slice.ts'

/** Work of a night of a row, in words of an ordinary search. */
const NIGHT_WORK = 2
/** Rows of one call of the kernel where it leaves records of them. */
const CHUNK_ROWS = 4096
const CHUNK_LISTS = CHUNK_ROWS / (LIST_ROWS - 32) + 1

/** Bytes behind the reply that are kept between two slices: a DAY record each, or the entries of the page. */
export function keptBytesOfCalendar({ calendar, limit }: Search): number {
  return calendar.form === 'byDay' ? calendar.arrivals * DAY_BYTES : limit * ENTRY.bytes
}

/** Bytes that `advanceCalendar` needs at its address. */
export function scratchBytesOfCalendar(search: Search): number {
  const { calendar } = search
  if (calendar.form === 'byProperty') return BLOCK_BYTES + CHUNK_ROWS * STAY_BYTES
  const fits = FITS_BITS + calendar.arrivals * FITS_BITS_BYTES
  return BLOCK_BYTES + (isMerged(search) ? Math.ceil(CHUNK_LISTS) * fits : 0)
}

/** @returns '' or why the search is refused */
export function beginCalendar(searcher: Searcher, progress: Progress): string {
  const { memory, search, values } = searcher
  const fault = beginPage(searcher, progress)
  if (fault !== '') return fault
  const { tables } = progress
  if (tables.length > 0 && search.calendar.form === 'byProperty') {
    progress.propertyTable = field(memory, segmentOfSearch(memory, search, values) + SEGMENT.propertyTable)
    progress.propertyVersion = versionOf(memory, progress.propertyTable)
  }
  const rows = search.hasProperty ? tables.length : tables.reduce((sum, table) => sum + rowCountOf(memory, table), 0)
  const rowDays = rows * search.calendar.nightsRead
  const { calendarRowDaysMax } = LIMITS
  if (rowDays <= calendarRowDaysMax) return ''
  const { name } = values.scan.command
  return `VALIDATION_ERROR: ${name} reads ${rowDays} row days, ${calendarRowDaysMax} are accepted, ask for fewer arrival days or roomTypes, or for a propertyId`
}

/** Any room type is counted once for each property, and a property has one best stay: both are merged. */
function isMerged(search: Search): boolean {
  return search.calendar.form === 'byProperty' || (search.page.isAnyRoom && !isOfOne(search))
}

/** Days of one property: no two rows are compared by id, and each day counts at most one. */
function isOfOne({ calendar, hasProperty }: Search): boolean {
  return calendar.form === 'byDay' && hasProperty
}

export function startCalendar(searcher: Searcher, progress: Progress, merge: Merge): void {
  startMatching(searcher, progress, merge, isMerged(searcher.search))
}

/** No search of these tables does more work, in words. */
export function mostWorkOfCalendar({ memory, search }: Searcher, { tables }: Progress): number {
  return tables.reduce((sum, table) => sum + rowCountOf(memory, table), 0) * search.calendar.nightsRead * NIGHT_WORK
}

/**
 * Searches rows for one slice of work.
 *
 * @param kept address of what earlier slices left
 * @param at memory for the kernel, up to there
 * @param work in words
 * @returns the work that is left, −1 when rows are left
 */
export function advanceCalendar(
  searcher: Searcher,
  progress: Progress,
  kept: number,
  at: number,
  work: number,
): number {
  const { memory, parameters, search, values, kernel } = searcher
  const { u32 } = memory
  const p = parameters >>> 2
  const words = search.calendar.nightsRead * NIGHT_WORK
  if (progress.table === 0 && progress.nextRow === 0 && search.calendar.form === 'byDay')
    clearDays(memory, kept, search)
  planPage(searcher, progress, kept)
  openBlock(searcher, at, kept)
  let left = work
  while (progress.table < progress.tables.length && left > 0) {
    const table = progress.tables[progress.table] as number
    const isPlanned = planRows(memory, parameters, search, values, table) && planBlock(searcher, table, at)
    const planned = isPlanned ? u32[p + PARAMETER.endRow] : 0
    let first = Math.max(u32[p + PARAMETER.firstRow], progress.nextRow)
    while (first < planned && left > 0) {
      u32[p + PARAMETER.firstRow] = first
      const stop = Math.min(endOfSlice(searcher, planned, left, words), endOfChunk(search, first, planned))
      u32[p + PARAMETER.endRow] = stop
      u32[(at + OUT) >>> 2] = at + BLOCK_BYTES
      kernel(parameters)
      progress.examined += u32[p + PARAMETER.examined]
      left -= workDone(searcher, stop, words)
      mergeChunk(searcher, progress, kept, at)
      first = stop
    }
    progress.nextRow = first
    if (first < planned) continue
    progress.table++
    progress.nextRow = 0
  }
  return progress.table >= progress.tables.length ? Math.max(0, left) : -1
}

function endOfChunk(search: Search, first: number, planned: number): number {
  return isMerged(search) ? Math.min(planned, (first & -128) + CHUNK_ROWS) : planned
}

function mergeChunk({ memory, search }: Searcher, progress: Progress, kept: number, at: number): void {
  const { merge } = progress
  if (!merge) return
  const [from, end] = [at + BLOCK_BYTES, memory.u32[(at + OUT) >>> 2]]
  assert(end <= at + scratchBytesOfCalendar(search), 'the records of a chunk fit')
  if (search.calendar.form === 'byProperty') mergeStays(memory, merge, from, end, progress.table)
  else mergeFits(memory, merge, from, end, kept, search.calendar.arrivals)
}

function clearDays({ u32 }: Memory, kept: number, { calendar }: Search): void {
  const { arrivals, first, isArrival } = calendar
  u32.fill(0xffff_ffff, kept >>> 2, (kept + arrivals * DAY_BYTES) >>> 2)
  for (let day = 0, cell = kept >>> 2; day < arrivals; day++, cell += DAY_BYTES / 4) {
    u32[cell + 1] = DAY_EMPTY_HIGH
    u32[cell + DAY_COUNT / 4] = 0
    u32[cell + DAY_NUMBER / 4] = isArrival[day] === 1 ? first + day : 0
  }
}

/** Writes what the block has of the search, before that of a table. */
function openBlock(searcher: Searcher, at: number, kept: number): void {
  const { memory, search, values } = searcher
  const { u32, u8 } = memory
  const { calendar, page } = search
  const cell = cellsAt(memory, at)
  const span = calendar.arrivals + calendar.mostNights - 1
  cell(BY_DAY, calendar.form === 'byDay' ? 1 : 0)
  cell(NIGHTS, calendar.nights)
  cell(MOST_NIGHTS, calendar.mostNights)
  cell(SPAN, span)
  cell(ARRIVALS, calendar.arrivals)
  cell(DAYS, kept)
  cell(WITH_FITS, calendar.form === 'byDay' && isMerged(search) ? 1 : 0)
  cell(IS_BOUNDED, page.minTotal > 0 || page.maxTotal < Number.MAX_SAFE_INTEGER ? 1 : 0)
  putU64(u32, at + MIN_TOTAL, page.minTotal)
  putU64(u32, at + MAX_TOTAL, page.maxTotal)
  for (const [n, factor] of factorsOf(calendar).entries()) cell(FACTORS + n * 4, factor)
  cell(IS_ONE, isOfOne(search) ? 1 : 0)
  cell(FIRST_DAY, calendar.first)
  const from = Math.max(0, state(memory, STATE.droppedBefore) - calendar.first)
  const end = Math.max(0, Math.min(span, values.lastDay + 1 - calendar.first))
  cell(VISIBLE, (Math.min(from, end) << 16) | end)
  u8.set(calendar.isArrival, at + ALLOWED)
}

function cellsAt({ u32 }: Memory, at: number): (place: number, value: number) => void {
  return (place, value) => {
    u32[(at + place) >>> 2] = value
  }
}

/** Writes what the block has of the planned rows of a table. @returns false when no night has packages, or bounds exclude all */
function planBlock({ memory, parameters, search }: Searcher, table: number, at: number): boolean {
  const { u32 } = memory
  const { calendar } = search
  const p = parameters >>> 2
  const cell = cellsAt(memory, at)
  cell(ROOMS_LEFT, u32[p + PARAMETER.minAvailability])
  cell(FEATURES, u32[p + PARAMETER.features])
  cell(INVERTED_MIN, u32[p + PARAMETER.invertedMin])
  cell(INVERTED_MAX, u32[p + PARAMETER.invertedMax])
  cell(ROW_IDS, u32[p + PARAMETER.rowIds])
  cell(ROW_PROPERTIES, u32[p + PARAMETER.rowProperties])
  cell(TABLE_AT, table)
  // The kernel reads no nights of its own, and no totals: the block has them.
  u32[p + PARAMETER.nights] = 0
  u32[p + PARAMETER.narrowByAvailable] = 0
  u32[p + PARAMETER.mode] = MODE.calendar
  u32[p + PARAMETER.out] = at
  const hasPrices = u32[p + PARAMETER.invertedMin] <= u32[p + PARAMETER.invertedMax]
  if (isOfOne(search)) return hasPrices
  const visible = u32[(at + VISIBLE) >>> 2]
  let hasPackages = false
  for (let night = 0; night < calendar.arrivals + calendar.mostNights - 1; night++) {
    const isVisible = night >= visible >>> 16 && night < (visible & 0xffff)
    const plane = calendar.isRead[night] === 1 && isVisible ? planeOf(memory, table, calendar.first + night) : 0
    cell(PLANES + night * 4, plane === 0 ? 0 : plane + PLANE.words)
    hasPackages ||= plane !== 0
  }
  return hasPackages && hasPrices
}

/**
 * Writes all fields behind the first one, which the open reply has.
 *
 * @param end of the reply
 * @param kept address of what the slices left, behind it
 * @returns false when it did not fit
 */
export function writeCalendar(searcher: Searcher, progress: Progress, end: number, kept: number): boolean {
  const { memory, search, writer, values } = searcher
  const { page, calendar } = search
  writer.end = end
  if (calendar.form === 'byDay') {
    const to = addRoom(writer, TYPE_RECORDS, 2 + calendar.arrivalDays * DAY_RECORD_BYTES)
    if (to < 0) return false
    memory.u8[to] = calendar.arrivalDays & 0xff
    memory.u8[to + 1] = calendar.arrivalDays >>> 8
    searcher.hits = searcher.pages.days(kept, calendar.arrivals, to + 2)
    return finishReply(writer) >= 0
  }
  planPage(searcher, progress, kept)
  const cells = (searcher.parameters + PAGE_AT) >>> 2
  if (progress.merge && progress.propertyTable !== 0) pickMerged(searcher, progress, progress.merge)
  progress.matches = memory.u32[cells + PAGE.matches]
  progress.after = memory.u32[cells + PAGE.after]
  progress.size = memory.u32[cells + PAGE.size]
  searcher.pages.sort(searcher.parameters)
  const last = noteLast(memory, kept, progress)
  addBytes(writer, TYPE_RECORDS, listOfStays(searcher, progress, kept))
  if (page.count !== 0) addTrailer(writer, TRAILER.page, TYPE_RECORDS, pageTrailer(searcher, progress, last, values))
  searcher.hits = progress.size
  return finishReply(writer) >= 0
}

const LIST_HEAD_BYTES = 5
/** Packed id, arrival, nights, total. */
const STAY_HEAD_BYTES = 16 + 2 + 1 + 8

/** The picked stays; their entries become records of EMITTED. */
function listOfStays(searcher: Searcher, progress: Progress, entries: number): Uint8Array {
  const { memory, search } = searcher
  const { u32, u8 } = memory
  const { merge, size } = progress
  const want = search.page.want & ~SEARCH_WANTS.total
  const stride = STAY_HEAD_BYTES + valuesBytes(want)
  const bytes = new Uint8Array(LIST_HEAD_BYTES + size * stride)
  const view = new DataView(bytes.buffer)
  bytes[0] = want
  view.setUint32(1, size, true)
  const [ids, properties] = merge
    ? [TABLE.rowIds, TABLE.rowProperties].map((place) => field(memory, progress.propertyTable + place))
    : []
  for (let n = 0; n < size; n++) {
    assert(merge !== undefined && ids !== undefined && properties !== undefined, 'stays are merged by property')
    const entry = (entries + n * ENTRY.bytes) >>> 2
    const place = u32[entry + ENTRY.row / 4]
    const at = LIST_HEAD_BYTES + n * stride
    bytes.set(u8.subarray(ids + place * 16, ids + place * 16 + 16), at)
    view.setUint16(at + 16, search.calendar.first + (merge.stays[place] >>> 8), true)
    view.setUint8(at + 18, merge.stays[place] & 0xff)
    view.setBigUint64(at + 19, BigInt(merge.totals[place]), true)
    u32[entry + EMITTED.property / 4] = field(memory, properties + place * 4)
    u32[entry + EMITTED.source / 4] = merge.sources[place]
  }
  fillValues(searcher, entries, size, bytes, LIST_HEAD_BYTES + STAY_HEAD_BYTES, stride, want)
  return withNames(searcher, progress, size, bytes)
}
