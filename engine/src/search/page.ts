/**
 * A search that picks a page (docs/design/search.md#pages): match all tables, keep the best entries, write them as hits
 * with what was asked for beside them. Its progress between two slices is plain data that refers to rows; it is valid
 * while the version of every table is the one it began with.
 */

import { assert, LIMITS, metresOfChord } from '@vacancy/shared'
import { SEARCH_FACETS, SEARCH_WANTS } from '@vacancy/shared/wire'
import { addTrailer, finishReply } from '../protocol/reply.ts'
import type { Values } from '../protocol/values.ts'
import { cellsBetween } from '../store/bitmaps.ts'
import { compareBytes, findName, NAMES, nameBytes } from '../store/dictionary.ts'
import { PROPERTY, SEGMENT, STATE, STATE_START, TABLE } from '../store/layout.ts'
import { forEachTable } from '../store/segment.ts'
import { appliedIndex, type Memory } from '../store/store.ts'
import { field, rowCountOf } from '../store/table-fields.ts'
import { isUnchanged, versionOf } from '../store/version.ts'
import { CURSOR, CURSOR_BYTES, cursorText, digestOfSearch } from './cursor.ts'
import {
  cellsTrailer,
  closePass,
  closeRows,
  countsTotals,
  createTally,
  facetsTrailer,
  isLastPass,
  leftOut,
  matchBytes,
  mergeSets,
  modeOf,
  openPass,
  openRows,
  planTally,
  sumsBytes,
} from './facets.ts'
import { type Merge, mergeMatches, resetMerge } from './merge.ts'
import {
  BOX,
  EMITTED,
  ENTRY,
  LIST_AT,
  LIST_ROWS,
  PAGE,
  PAGE_AT,
  PAGE_WIDE,
  PARAMETER,
  POSITION_AT,
  TOTALS_AT,
} from './parameters.ts'
import { planNights, planSearch, segmentOfSearch, tableOfSearch } from './plan.ts'
import { NO_TABLES, type Progress } from './progress.ts'
import type { Search } from './query.ts'
import type { Searcher } from './searcher.ts'
import { endOfSlice, workDone } from './slice.ts'

export const TRAILER = { page: 0xfff8, extras: 0xfff9, facets: 0xfffa, cells: 0xfffb } as const
export const TYPE_RECORDS = 0x0a
const NOT_COUNTED = 0xffff_ffff
const U64_CELLS = 2 ** 32

/** Bytes of the entries and sums, behind the hits in the memory of a reply. */
export function entriesBytes(search: Search): number {
  return search.limit * ENTRY.bytes + sumsBytes(search)
}

function sumsAt({ limit }: Search, entries: number): number {
  return entries + limit * ENTRY.bytes
}

/** The random number of the shard that all its replicas have. */
export function genesisOf({ u8 }: Memory): Uint8Array {
  const at = STATE_START + STATE.genesis * 4
  return u8.subarray(at, at + 16)
}

/**
 * Looks the tables up, before any row is read.
 *
 * @returns '' or why the search is refused
 */
export function beginPage(searcher: Searcher, progress: Progress): string {
  const { memory, search, values } = searcher
  const { tables, versions } = progress
  tables.length = 0
  versions.length = 0
  Object.assign(progress, { propertyTable: 0, propertyVersion: 0, table: 0, nextRow: 0, isStopped: false })
  Object.assign(progress, { matches: 0, after: 0, size: 0, examined: 0, index: appliedIndex(memory) })
  progress.tally = createTally(search)
  progress.unnamed = NO_TABLES
  if (search.page.isAnyRoom) {
    const fault = findTables(searcher, progress)
    if (fault !== '') return fault
  } else {
    const table = tableOfSearch(memory, search, values)
    if (table !== 0) tables.push(table)
  }
  for (const table of tables) versions.push(versionOf(memory, table))
  if (progress.propertyTable !== 0) progress.propertyVersion = versionOf(memory, progress.propertyTable)
  return ''
}

function findTables(searcher: Searcher, progress: Progress): string {
  const { memory, search, values } = searcher
  const { page } = search
  const segment = segmentOfSearch(memory, search, values)
  if (segment === 0) return ''
  const wanted = new Set<number>()
  for (let n = 0; n < page.roomTypes; n++) {
    wanted.add(findName(memory, NAMES.roomType, values.scan.bytes, page.nameStarts[n], page.nameEnds[n]))
  }
  const found: { table: number; name: Uint8Array }[] = []
  const unnamed = new Set<number>()
  const hasAll = page.roomTypes === 0 || (page.disjunctive & SEARCH_FACETS.roomType) !== 0
  forEachTable(memory, segment, (table, roomType) => {
    if (!hasAll && !wanted.has(roomType)) return
    if (page.roomTypes > 0 && !wanted.has(roomType)) unnamed.add(table)
    found.push({ table, name: nameBytes(memory, NAMES.roomType, roomType) })
  })
  const { searchTablesMax, searchRowNightsMax } = LIMITS
  if (found.length > searchTablesMax) {
    return `VALIDATION_ERROR: anyRoomType reads ${found.length} room types, ${searchTablesMax} are accepted, name some in roomTypes`
  }
  const rows = search.hasProperty ? found.length : found.reduce((sum, { table }) => sum + rowCountOf(memory, table), 0)
  if (search.calendar.form === 'none' && rows * search.nights > searchRowNightsMax) {
    return `VALIDATION_ERROR: anyRoomType reads ${rows * search.nights} row nights, ${searchRowNightsMax} are accepted, ask for fewer dates or roomTypes`
  }
  found.sort((a, b) => compareBytes(a.name, b.name))
  progress.tables.push(...found.map(({ table }) => table))
  progress.unnamed = unnamed
  progress.propertyTable = field(memory, segment + SEGMENT.propertyTable)
  return ''
}

/** Whether a table is being changed. */
export function isPageChanging({ versions, propertyVersion }: Progress): boolean {
  return propertyVersion < 0 || versions.some((version) => version < 0)
}

/** Whether all tables are as they were when the search began. */
export function isPageUnchanged(memory: Memory, progress: Progress): boolean {
  const { tables, versions, propertyTable, propertyVersion } = progress
  if (propertyTable !== 0 && !isUnchanged(memory, propertyTable, propertyVersion)) return false
  return tables.every((table, n) => isUnchanged(memory, table, versions[n] as number))
}

/** Whether another lookup finds the same tables with the same versions. */
export function isSamePage(a: Progress, b: Progress): boolean {
  return (
    a.propertyTable === b.propertyTable &&
    a.propertyVersion === b.propertyVersion &&
    a.tables.length === b.tables.length &&
    a.tables.every((table, n) => table === b.tables[n] && a.versions[n] === b.versions[n])
  )
}

/** Writes what the page needs into the parameter block: the counts and entries so far, bounds, cursor, box. */
export function planPage(searcher: Searcher, progress: Progress, entries: number): void {
  const { memory, parameters, search } = searcher
  const { page } = search
  const { u32, f64, u8 } = memory
  const cells = (parameters + PAGE_AT) >>> 2
  const stopAt = search.limit + (page.count === 2 ? 1 : 0)
  u32[cells + PAGE.matches] = progress.matches
  u32[cells + PAGE.after] = progress.after
  // In row order, the first rows are known before all rows are read.
  u32[cells + PAGE.stopAfter] = page.order === 0 && page.count !== 1 && !progress.tally ? stopAt : NOT_COUNTED
  u32[cells + PAGE.order] = page.order
  u32[cells + PAGE.capacity] = search.limit
  u32[cells + PAGE.entries] = entries
  u32[cells + PAGE.size] = progress.size
  search.without = leftOut(progress)
  const hasBounds = (search.without & SEARCH_FACETS.total) === 0
  const minTotal = hasBounds ? page.minTotal : 0
  const maxTotal = hasBounds ? page.maxTotal : Number.MAX_SAFE_INTEGER
  const isBounded = minTotal > 0 || maxTotal < Number.MAX_SAFE_INTEGER
  const needsTotals = isLastPass(progress) || page.isAnyRoom || isBounded || countsTotals(progress)
  u32[cells + PAGE.hasTotals] = page.hasTotals && needsTotals ? 1 : 0
  u32[cells + PAGE.box] = page.box
  u32[cells + PAGE.hasCursor] = page.hasCursor ? 1 : 0
  u32[cells + PAGE.isStopped] = 0
  const wide = parameters + PAGE_AT
  putU64(u32, wide + PAGE_WIDE.minTotal, minTotal)
  putU64(u32, wide + PAGE_WIDE.maxTotal, maxTotal)
  f64[(wide + PAGE_WIDE.south) / 8] = page.south
  f64[(wide + PAGE_WIDE.west) / 8] = page.west
  f64[(wide + PAGE_WIDE.north) / 8] = page.north
  f64[(wide + PAGE_WIDE.east) / 8] = page.east
  const past = page.box === BOX.across ? 360 : 0
  u32[(wide + PAGE_WIDE.latitudeCells) >>> 2] = cellsBetween(page.south, page.north)
  u32[(wide + PAGE_WIDE.longitudeCells) >>> 2] = cellsBetween(page.west, page.east + past)
  planTally(searcher, progress, sumsAt(search, entries))
  if (!page.hasCursor) return
  for (let i = 0; i < 8; i++) {
    u8[wide + PAGE_WIDE.cursorKey + i] = page.cursor[CURSOR.key + i]
    // Ids are compared from their first byte on.
    u8[wide + PAGE_WIDE.cursorHigh + i] = page.cursor[CURSOR.id + 7 - i]
    u8[wide + PAGE_WIDE.cursorLow + i] = page.cursor[CURSOR.id + 15 - i]
  }
}

export function putU64(u32: Uint32Array, at: number, value: number): void {
  const low = value >>> 0
  u32[at >>> 2] = low
  u32[(at >>> 2) + 1] = (value - low) / U64_CELLS
}

/** Prepares to match the first row. @param merge used if `isMerged`; its content is forgotten */
export function startMatching(
  { memory, search }: Searcher,
  progress: Progress,
  merge: Merge,
  isMerged = search.page.isAnyRoom,
): void {
  progress.merge = isMerged ? merge : undefined
  const { facets } = search.page
  const hasSets = (facets & (SEARCH_FACETS.rateFeatures | SEARCH_FACETS.total)) !== 0
  if (progress.merge && progress.propertyTable !== 0) {
    resetMerge(merge, rowCountOf(memory, progress.propertyTable), hasSets)
  }
}

/** No search of these tables does more work, in words. */
export function mostWork({ memory, search }: Searcher, { tables, tally }: Progress): number {
  const weight = (search.nights + WEIGHT_OTHERS_MOST + 16 * search.amenities) * (tally?.passes.length ?? 1)
  return tables.reduce((sum, table) => sum + rowCountOf(memory, table), 0) * weight
}
/** Columns of area, type, category, stars and least stars, and a position. */
const WEIGHT_OTHERS_MOST = 6 * 8

/**
 * Matches rows for one slice of work.
 *
 * @param entries address of the entries, where those of earlier slices are
 * @param at memory for collected matches, up to the entries
 * @param work in words
 * @returns the work that is left, −1 when rows are left
 */
export function advancePage(searcher: Searcher, progress: Progress, entries: number, at: number, work: number): number {
  const sums = sumsAt(searcher.search, entries)
  let left = work
  for (;;) {
    left = advancePass(searcher, progress, entries, at, left)
    if (!progress.isStopped && progress.table < progress.tables.length) return -1
    if (!closePass(searcher, progress, sums)) return Math.max(0, left)
    progress.table = 0
    if (progress.merge) startMatching(searcher, progress, progress.merge)
    if (left <= 0) return -1
  }
}

/** Continues one pass over the tables. @returns the work that is left */
function advancePass(searcher: Searcher, progress: Progress, entries: number, at: number, work: number): number {
  const { memory, parameters, search, values, kernel } = searcher
  const { u32 } = memory
  const p = parameters >>> 2
  const cells = (parameters + PAGE_AT) >>> 2
  const sums = sumsAt(search, entries)
  openPass(searcher, progress, sums)
  planPage(searcher, progress, entries)
  let left = work
  while (progress.table < progress.tables.length && !progress.isStopped && left > 0) {
    const table = progress.tables[progress.table] as number
    const isSkipped = progress.unnamed.has(table) && (search.without & SEARCH_FACETS.roomType) === 0
    if (isSkipped || !planSearch(memory, parameters, search, values, table)) {
      progress.table++
      progress.nextRow = 0
      continue
    }
    const planned = u32[p + PARAMETER.endRow]
    u32[p + PARAMETER.firstRow] = Math.min(planned, Math.max(u32[p + PARAMETER.firstRow], progress.nextRow))
    const stop = openRows(searcher, progress, sums, endOfSlice(searcher, planned, left))
    u32[p + PARAMETER.endRow] = stop
    u32[p + PARAMETER.mode] = modeOf(progress)
    u32[p + PARAMETER.out] = at
    u32[p + PARAMETER.outEnd] = entries
    kernel(parameters)
    progress.examined += u32[p + PARAMETER.examined]
    left -= workDone(searcher, stop)
    closeRows(searcher, progress, sums, stop)
    if (progress.merge) {
      const bytes = matchBytes(progress)
      const count = (u32[p + PARAMETER.written] - at) / bytes
      mergeMatches(memory, progress.merge, at, count, bytes, progress.table)
      mergeSets(searcher, progress, at, count)
    }
    progress.nextRow = u32[p + PARAMETER.nextRow]
    progress.isStopped = u32[cells + PAGE.isStopped] === 1
    if (progress.nextRow !== planned) continue
    progress.table++
    progress.nextRow = 0
  }
  if (!progress.merge) {
    progress.matches = u32[cells + PAGE.matches]
    progress.after = u32[cells + PAGE.after]
    progress.size = u32[cells + PAGE.size]
  }
  return left
}

/** Picks from the properties that were found in several tables. */
export function pickMerged(searcher: Searcher, progress: Progress, merge: Merge): void {
  const { memory, parameters, pages } = searcher
  const { u32, f64 } = memory
  const p = parameters >>> 2
  u32[p + PARAMETER.rowIds] = field(memory, progress.propertyTable + TABLE.rowIds)
  u32[p + PARAMETER.rowProperties] = field(memory, progress.propertyTable + TABLE.rowProperties)
  const list = (parameters + LIST_AT) >>> 2
  const totals = (parameters + TOTALS_AT) / 8
  for (let from = 0; from < merge.count; from += LIST_ROWS) {
    const count = Math.min(LIST_ROWS, merge.count - from)
    for (let i = 0; i < count; i++) {
      const row = merge.touched[from + i]
      u32[list + i] = row
      f64[totals + i] = merge.totals[row]
    }
    pages.pick(parameters, count)
  }
}

/**
 * Writes the hits and all fields after them. The reply is open, with the number of nights.
 *
 * @param end of the reply
 * @param entries address of the entries, behind it
 * @returns false when it did not fit
 */
export function writePage(
  searcher: Searcher,
  progress: Progress,
  end: number,
  entries: number,
  forStay: boolean,
): boolean {
  const { memory, parameters, search, writer, values, pages } = searcher
  const { u32 } = memory
  const { page } = search
  const cells = (parameters + PAGE_AT) >>> 2
  planPage(searcher, progress, entries)
  // The matches of earlier slices lie where the kernel expects them; of several tables they are picked now.
  if (progress.merge && progress.propertyTable !== 0) {
    pickMerged(searcher, progress, progress.merge)
    progress.matches = u32[cells + PAGE.matches]
    progress.after = u32[cells + PAGE.after]
    progress.size = u32[cells + PAGE.size]
  }
  pages.sort(parameters)
  const last = noteLast(memory, entries, progress)
  const listAt = writer.at
  const stride = page.isCompact ? 16 + valuesBytes(page.want) : 0
  if (page.isCompact) writer.at += LIST_HEAD_BYTES
  const p = parameters >>> 2
  u32[p + PARAMETER.nights] = search.nights
  u32[p + PARAMETER.written] = writer.at
  u32[p + PARAMETER.fieldId] = writer.fields + 1
  u32[p + PARAMETER.outEnd] = end
  u32[cells + PAGE.stride] = stride
  u32[cells + PAGE.hasTotalValue] = page.want & SEARCH_WANTS.total
  u32[cells + PAGE.emitted] = 0
  u32[cells + PAGE.isFull] = 0
  if (writer.at > end) return false
  emitAll(searcher, progress, entries)
  if (u32[cells + PAGE.isFull] !== 0) return false
  const hits = u32[cells + PAGE.emitted]
  searcher.hits = hits
  writer.at = u32[p + PARAMETER.written]
  writer.end = end
  if (page.isCompact) writeList(searcher, progress, end, entries, listAt, hits)
  else writer.fields += hits * (forStay ? 2 : 1)
  if (page.count !== 0) addTrailer(writer, TRAILER.page, TYPE_RECORDS, pageTrailer(searcher, progress, last, values))
  if (page.want !== 0 && !page.isCompact) {
    const bytes = new Uint8Array(1 + hits * valuesBytes(page.want))
    bytes[0] = page.want
    fillValues(searcher, entries, hits, bytes, 1, valuesBytes(page.want), page.want)
    addTrailer(writer, TRAILER.extras, TYPE_RECORDS, withNames(searcher, progress, hits, bytes))
  }
  const { tally } = progress
  if (tally && page.facets !== 0) addTrailer(writer, TRAILER.facets, TYPE_RECORDS, facetsTrailer(tally))
  if (page.columns !== 0) {
    addTrailer(writer, TRAILER.cells, TYPE_RECORDS, cellsTrailer(searcher, sumsAt(search, entries)))
  }
  return writer.at <= writer.end && finishReply(writer) >= 0
}

/** Writes all entries: of one table at once, of several tables in runs. */
function emitAll(searcher: Searcher, progress: Progress, entries: number): void {
  const { memory, parameters, search, values } = searcher
  const { u32 } = memory
  const cells = (parameters + PAGE_AT) >>> 2
  const { merge, size } = progress
  if (!merge) {
    const table = progress.tables[0]
    if (table === undefined || !planSearch(memory, parameters, search, values, table)) return
    emitRun(searcher, 0, size)
    return
  }
  for (let n = 0; n < size; n++) {
    const entry = (entries + n * ENTRY.bytes) >>> 2
    const row = u32[entry + ENTRY.row / 4]
    u32[entry + ENTRY.row / 4] = merge.rows[row]
    u32[entry + ENTRY.source / 4] = merge.sources[row]
  }
  const p = parameters >>> 2
  for (let from = 0, to = 0; from < size; from = to) {
    const sourceOf = (n: number) => u32[(entries + n * ENTRY.bytes + ENTRY.source) >>> 2]
    const source = sourceOf(from)
    while (to < size && sourceOf(to) === source) to++
    const table = progress.tables[source] as number
    u32[p + PARAMETER.rowIds] = field(memory, table + TABLE.rowIds)
    u32[p + PARAMETER.rowProperties] = field(memory, table + TABLE.rowProperties)
    if (planNights(memory, parameters, search, values, table)) emitRun(searcher, from, to)
  }
  assert(u32[cells + PAGE.emitted] <= size, 'an entry is one hit at most')
}

function emitRun({ memory, parameters, pages }: Searcher, from: number, to: number): void {
  const cells = (parameters + PAGE_AT) >>> 2
  memory.u32[cells + PAGE.from] = from
  memory.u32[cells + PAGE.to] = to
  pages.emit(parameters)
}

/** Key and id of the last entry, before hits take the place of entries; undefined where nothing follows. */
export function noteLast(memory: Memory, entries: number, { size, after }: Progress): Uint8Array | undefined {
  if (after <= size || size === 0) return undefined
  const at = entries + (size - 1) * ENTRY.bytes
  return memory.u8.slice(at, at + ENTRY.row)
}

const LIST_HEAD_BYTES = 7 + 1 + 4

/** Bytes of the values of one hit. */
export function valuesBytes(want: number): number {
  return (
    (want & SEARCH_WANTS.total ? 8 : 0) +
    (want & SEARCH_WANTS.distance ? 4 : 0) +
    (want & SEARCH_WANTS.position ? 8 : 0) +
    (want & SEARCH_WANTS.roomType ? 2 : 0)
  )
}

/** Completes the list of a compact reply, whose records have id and total. */
function writeList(
  searcher: Searcher,
  progress: Progress,
  end: number,
  entries: number,
  listAt: number,
  hits: number,
): void {
  const { memory, search, writer } = searcher
  const { want } = search.page
  const stride = 16 + valuesBytes(want)
  const total = want & SEARCH_WANTS.total
  const { u8 } = memory
  fillValues(searcher, entries, hits, u8, listAt + LIST_HEAD_BYTES + 16 + (total ? 8 : 0), stride, want & ~total)
  const names = withNames(searcher, progress, hits, new Uint8Array(0))
  const start = listAt + 7
  if (writer.at + names.length > end) {
    writer.at = end + 1
    return
  }
  u8.set(names, writer.at)
  writer.at += names.length
  writer.fields++
  const view = new DataView(memory.buffer, listAt)
  view.setUint16(0, writer.fields, true)
  view.setUint8(2, TYPE_RECORDS)
  view.setUint32(3, writer.at - start, true)
  view.setUint8(7, want)
  view.setUint32(8, hits, true)
}

/** Writes values of each hit at `at`, `at + stride` … */
export function fillValues(
  { memory, parameters }: Searcher,
  entries: number,
  hits: number,
  into: Uint8Array,
  at: number,
  stride: number,
  want: number,
): void {
  const { u32, f64 } = memory
  if (want === 0) return
  const view = new DataView(into.buffer, into.byteOffset, into.byteLength)
  const point = (parameters + POSITION_AT) / 8
  for (let n = 0; n < hits; n++) {
    const record = (entries + n * ENTRY.bytes) >>> 2
    const property = u32[record + EMITTED.property / 4]
    let to = at + n * stride
    if (want & SEARCH_WANTS.total) {
      view.setUint32(to, u32[record], true)
      view.setUint32(to + 4, u32[record + 1], true)
      to += 8
    }
    if (want & SEARCH_WANTS.distance) {
      const from = (property + PROPERTY.x) / 8
      const dx = f64[from] - f64[point]
      const dy = f64[from + 1] - f64[point + 1]
      const dz = f64[from + 2] - f64[point + 2]
      view.setUint32(to, metresOfChord(dx * dx + dy * dy + dz * dz), true)
      to += 4
    }
    if (want & SEARCH_WANTS.position) {
      view.setInt32(to, Math.round(f64[(property + PROPERTY.latitude) / 8] * 1e6), true)
      view.setInt32(to + 4, Math.round(f64[(property + PROPERTY.longitude) / 8] * 1e6), true)
      to += 8
    }
    // The place of its name among those of the reply.
    if (want & SEARCH_WANTS.roomType) view.setUint16(to, placeOf(u32[record + EMITTED.source / 4], n), true)
  }
}

/** Names of a reply in the order of their first hit, by table. */
const places: number[] = []

function placeOf(source: number, hit: number): number {
  if (hit === 0) places.length = 0
  const place = places.indexOf(source)
  return place >= 0 ? place : places.push(source) - 1
}

/** Appends the names of the room types, if they are wanted. */
export function withNames(
  { memory, search }: Searcher,
  progress: Progress,
  hits: number,
  bytes: Uint8Array,
): Uint8Array {
  if ((search.page.want & SEARCH_WANTS.roomType) === 0) return bytes
  if (hits === 0) places.length = 0
  const names = places.map((source) => {
    const table = progress.tables[source] as number
    return nameBytes(memory, NAMES.roomType, field(memory, table + TABLE.roomType))
  })
  const all = new Uint8Array(bytes.length + names.reduce((sum, name) => sum + 1 + name.length, 2))
  all.set(bytes)
  let at = bytes.length
  all[at] = names.length & 0xff
  all[at + 1] = names.length >>> 8
  at += 2
  for (const name of names) {
    all[at] = name.length
    all.set(name, at + 1)
    at += 1 + name.length
  }
  return all
}

/** Matches, index, whether more follow, and the cursor behind the page. */
export function pageTrailer(
  { memory, search }: Searcher,
  progress: Progress,
  last: Uint8Array | undefined,
  values: Values,
): Uint8Array {
  const { page } = search
  const more = progress.after > progress.size
  const text = last && page.order !== 0 ? cursorText(cursorAfter(memory, search, progress, last, values)) : undefined
  const bytes = new Uint8Array(18 + (text?.length ?? 0))
  const view = new DataView(bytes.buffer)
  if (page.count === 1) view.setBigUint64(0, BigInt(progress.matches), true)
  else view.setBigUint64(0, 2n ** 64n - 1n, true)
  view.setBigUint64(8, BigInt(progress.index), true)
  view.setUint8(16, more ? 1 : 0)
  view.setUint8(17, text?.length ?? 0)
  if (text) bytes.set(text, 18)
  return bytes
}

function cursorAfter(memory: Memory, search: Search, progress: Progress, last: Uint8Array, values: Values): Uint8Array {
  const { page } = search
  const cursor = new Uint8Array(CURSOR_BYTES)
  const [to, view] = [new DataView(cursor.buffer), new DataView(last.buffer)]
  cursor[CURSOR.order] = page.order
  cursor.set(last.subarray(ENTRY.key, ENTRY.key + 8), CURSOR.key)
  to.setBigUint64(CURSOR.id, view.getBigUint64(ENTRY.high, true))
  to.setBigUint64(CURSOR.id + 8, view.getBigUint64(ENTRY.low, true))
  const before = new DataView(page.cursor.buffer)
  const index = BigInt(progress.index)
  to.setBigUint64(CURSOR.first, page.hasCursor ? before.getBigUint64(CURSOR.first, true) : index, true)
  const newest = page.hasCursor ? before.getBigUint64(CURSOR.newest, true) : 0n
  const now = BigInt(appliedIndex(memory))
  to.setBigUint64(CURSOR.newest, newest > now ? newest : now, true)
  to.setUint32(CURSOR.digest, digestOfSearch(values, genesisOf(memory)), true)
  return cursor
}
