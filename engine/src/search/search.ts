/**
 * A search, from request bytes to reply bytes: validate, plan, run the kernel, finish
 * (docs/design/overview.md#a-search). Runs on the thread that owns the socket, and writes the hits at their final
 * position in a reply slab.
 *
 * A search with many rows is split into slices of bounded work, so that its thread can serve other requests in
 * between. A slice does not trust the results of the previous one: it looks the table up and plans again, and
 * continues only if the table is the same and its structure is unchanged since the first slice (version.ts).
 * Otherwise the search restarts. Its result therefore equals that of an unsplit search: each word is read once, and
 * no row is found twice or missed because it moved.
 */

import { assert } from '@vacancy/shared'
import {
  addBytes,
  addExtra,
  addU8,
  beginReply,
  createReplyWriter,
  FIELD_HEADER_BYTES,
  finishReply,
  growReply,
  REPLY_HEADER_BYTES,
  type ReplyWriter,
  writeError,
} from '../protocol/reply.ts'
import { appliedIndex } from '../store/store.ts'
import { enterInRequest, isUnchanged, leave, READ_TRIES_MAX, versionOf } from '../store/version.ts'
import {
  advanceCalendar,
  beginCalendar,
  keptBytesOfCalendar,
  mostWorkOfCalendar,
  scratchBytesOfCalendar,
  startCalendar,
  writeCalendar,
} from './calendar.ts'
import { bitsBytes } from './facets.ts'
import { createMerge, type Merge } from './merge.ts'
import {
  advancePage,
  beginPage,
  entriesBytes,
  genesisOf,
  isPageChanging,
  isPageUnchanged,
  isSamePage,
  mostWork,
  startMatching,
  writePage,
} from './page.ts'
import { checkCursor } from './page-query.ts'
import { hitBytes, PARAMETER } from './parameters.ts'
import { checkSearch, planSearch, tableOfSearch } from './plan.ts'
import type { Progress } from './progress.ts'
import type { Search } from './query.ts'
import { endStage, type Searcher, STAGE } from './searcher.ts'
import { endOfSlice, workDone } from './slice.ts'

export { createSearcher, type Searcher } from './searcher.ts'
export { SLICE_WORK } from './slice.ts'

/** Reply field of a search with `explain`: id 0xFFFF (docs/design/protocol.md#extension-fields). */
const EXPLAIN_BYTES = 20
const EXPLAIN_STAGES_BYTES = 32
const TYPE_NUMBER = 2
const TYPE_EXTRA = 9
const PAUSE_MS = 0.05
/** Tries of one call while a table changes, before the search is deferred to a later turn. */
const TRIES_OF_TURN = 4

/** Returned when a reply does not fit between `at` and `end`. */
export const NO_ROOM = -1
/** Returned when the table kept changing: there is no reply. */
export const KEEPS_CHANGING = -2
/** Returned when slices are left: there is no reply yet. `takeSlices` has the results so far. */
export const UNFINISHED = -3

/** Progress of a search. Everything it refers to is looked up again, and compared, before use. */
export type Slices = {
  table: number
  version: number
  /** Today at the first slice: dates of a reply are relative to its year. */
  today: number
  nextRow: number
  examined: number
  hits: number
  /** Number of restarts because the table changed. */
  restarts: number
  workedMs: number
  stageMs: Float64Array
  /** Of a search that picks a page; undefined before its first row. */
  page: Progress | undefined
  /** The reply so far, in its own memory. */
  readonly reply: ReplyWriter
}

function createSlices(): Slices {
  return {
    table: 0,
    version: 0,
    today: 0,
    nextRow: 0,
    examined: 0,
    hits: 0,
    restarts: 0,
    workedMs: 0,
    stageMs: new Float64Array(0),
    page: undefined,
    reply: createReplyWriter(),
  }
}

/** Results of the previous slice; one object per thread, as there is one searcher. */
type Cut = { table: number; version: number; nextRow: number; page: Progress | undefined }
const cut: Cut = { table: 0, version: 0, nextRow: 0, page: undefined }

/**
 * Runs the search in `values.scan`, and writes the reply frame into the store's memory at [at, result).
 *
 * @param waitedMs how long the request waited before this call, for `explain`
 * @returns end of the frame, NO_ROOM, KEEPS_CHANGING or UNFINISHED
 */
export function runSearch(
  searcher: Searcher,
  forStay: boolean,
  correlationId: number,
  at: number,
  end: number,
  waitedMs: number,
): number {
  const { values, search, limits, memory, writer } = searcher
  searcher.hits = 0
  searcher.examined = 0
  searcher.retries = 0
  checkSearch(search, values, limits, forStay)
  if (search.hasPage) checkCursor(search, values, genesisOf(memory))
  if (values.fault !== '') return writeError(memory.u8, at, end, correlationId, values.fault)
  const started = search.explain ? searcher.monotonicMs() : 0
  if (search.explainStages) {
    searcher.stageMs.fill(0)
    searcher.stageSince = started
  }
  const tries = triesOfTurn(searcher)
  for (let n = 0; n < tries; n++) {
    if (n > 0) pause(searcher)
    enterInRequest(memory, searcher.reader)
    const result = search.hasPage
      ? tryPage(searcher, forStay, correlationId, at, end)
      : tryOnce(searcher, forStay, correlationId, at, end)
    leave(memory, searcher.reader)
    if (result === NO_ROOM || result === UNFINISHED || values.fault !== '') return result
    if (result !== KEEPS_CHANGING) {
      return search.explain ? explain(searcher, writer, waitedMs, searcher.monotonicMs() - started) : result
    }
    searcher.retries++
  }
  return KEEPS_CHANGING
}

/** A thread that can retry later waits for a table only briefly, and only while no other read is deferred. */
export function triesOfTurn({ sliceWork, workLeft }: Searcher): number {
  if (sliceWork === Number.POSITIVE_INFINITY) return READ_TRIES_MAX
  return workLeft > 0 ? TRIES_OF_TURN : 1
}

/** Short compared with any change that marks a table. The writer never wakes this word. */
function pause({ memory }: Searcher): void {
  Atomics.wait(memory.fence, 0, 0, PAUSE_MS)
}

/** Steps of a search that keeps a progress over several tables. */
type Steps = {
  readonly begin: (searcher: Searcher, progress: Progress) => string
  /** Bytes behind the reply that belong to the progress. */
  readonly keptBytes: (search: Search) => number
  /** Bytes needed where `advance` gets its memory. */
  readonly scratchBytes: (search: Search) => number
  readonly mostWork: (searcher: Searcher, progress: Progress) => number
  readonly start: (searcher: Searcher, progress: Progress, merge: Merge) => void
  readonly advance: (searcher: Searcher, progress: Progress, kept: number, at: number, work: number) => number
  readonly write: (searcher: Searcher, progress: Progress, end: number, kept: number, forStay: boolean) => boolean
}

/** Least memory for collected matches. */
const MATCHES_BYTES_MIN = 1 << 16
const OF_PAGE: Steps = {
  begin: beginPage,
  keptBytes: entriesBytes,
  scratchBytes: () => MATCHES_BYTES_MIN,
  mostWork,
  start: startMatching,
  advance: advancePage,
  write: writePage,
}
const OF_CALENDAR: Steps = {
  begin: beginCalendar,
  keptBytes: keptBytesOfCalendar,
  scratchBytes: scratchBytesOfCalendar,
  mostWork: mostWorkOfCalendar,
  start: startCalendar,
  advance: advanceCalendar,
  write: writeCalendar,
}

function stepsOf({ calendar }: Search): Steps {
  return calendar.form === 'none' ? OF_PAGE : OF_CALENDAR
}

/** Opens a reply with its first field: nights of the stay, or arrival days of a search by property. */
function openReply(
  { search, writer, memory }: Searcher,
  forStay: boolean,
  correlationId: number,
  at: number,
  end: number,
) {
  const { calendar } = search
  beginReply(writer, memory.u8, at, end, correlationId)
  if (calendar.form === 'byDay') addU8(writer, calendar.nights)
  else if (calendar.form === 'byProperty') addBytes(writer, TYPE_NUMBER, u16Field(calendar.arrivalDays))
  else if (forStay) addBytes(writer, TYPE_NUMBER, u16Field(search.nights))
}

function tryPage(searcher: Searcher, forStay: boolean, correlationId: number, at: number, end: number): number {
  const { memory, search, values, writer, progress } = searcher
  const steps = stepsOf(search)
  searcher.hits = 0
  openReply(searcher, forStay, correlationId, at, end)
  const entries = entriesAt(search, end)
  if (entries - aligned(writer.at) < steps.scratchBytes(search)) return NO_ROOM
  values.fault = steps.begin(searcher, progress)
  if (values.fault !== '') return writeError(memory.u8, at, end, correlationId, values.fault)
  if (isPageChanging(progress)) return KEEPS_CHANGING
  cut.page = undefined
  cut.table = 0
  const isBusy = searcher.workLeft <= 0 && steps.mostWork(searcher, progress) > searcher.sliceWork
  if (isBusy) return isPageUnchanged(memory, progress) ? UNFINISHED : KEEPS_CHANGING
  steps.start(searcher, progress, searcher.merge)
  endStage(searcher, STAGE.planning)
  const left = steps.advance(searcher, progress, entries, aligned(writer.at), searcher.sliceWork)
  endStage(searcher, STAGE.examining)
  searcher.examined = progress.examined
  if (left < 0) {
    searcher.workLeft -= searcher.sliceWork
    if (!isPageUnchanged(memory, progress)) return KEEPS_CHANGING
    progress.entries = memory.u8.slice(entries, entries + steps.keptBytes(search))
    cut.page = progress
    return UNFINISHED
  }
  if (!steps.write(searcher, progress, entries - explainBytes(search), entries, forStay)) return NO_ROOM
  writer.end = entries
  return isPageUnchanged(memory, progress) ? writer.at : KEEPS_CHANGING
}

/** What is kept is behind all that the search writes; the bits of facets are behind it. */
function entriesAt(search: Search, end: number): number {
  return (end - stepsOf(search).keptBytes(search) - bitsBytes(search)) & ~15
}

function aligned(at: number): number {
  return (at + 15) & ~15
}

function tryOnce(searcher: Searcher, forStay: boolean, correlationId: number, at: number, end: number): number {
  const { memory, parameters, search, values, writer } = searcher
  const { u8, u32 } = memory
  // Discards the hits of an earlier try.
  searcher.hits = 0
  searcher.examined = 0
  beginReply(writer, u8, at, end, correlationId)
  if (forStay) addBytes(writer, TYPE_NUMBER, u16Field(search.nights))
  if (writer.at > end) return NO_ROOM
  const table = tableOfSearch(memory, search, values)
  if (table === 0) return finishReply(writer)
  const version = versionOf(memory, table)
  if (version < 0) return KEEPS_CHANGING
  if (planSearch(memory, parameters, search, values, table)) {
    const p = parameters >>> 2
    const planned = u32[p + PARAMETER.endRow]
    const stop = endOfSlice(searcher, planned)
    cut.table = table
    cut.version = version
    cut.nextRow = stop
    if (stop < planned && searcher.workLeft <= 0) {
      cut.nextRow = 0
      return isUnchanged(memory, table, version) ? UNFINISHED : KEEPS_CHANGING
    }
    u32[p + PARAMETER.endRow] = stop
    runKernel(searcher, search.limit, writer.fields + 1, writer.at, end - explainBytes(search))
    searcher.hits = u32[p + PARAMETER.hits]
    searcher.examined = u32[p + PARAMETER.examined]
    if (stop < planned) searcher.workLeft -= workDone(searcher, stop)
    if (u32[p + PARAMETER.nextRow] !== stop) return NO_ROOM
    writer.at = u32[p + PARAMETER.written]
    writer.fields += searcher.hits * (forStay ? 2 : 1)
    if (stop < planned && searcher.hits < search.limit) {
      return isUnchanged(memory, table, version) ? UNFINISHED : KEEPS_CHANGING
    }
  }
  return isUnchanged(memory, table, version) ? finishReply(writer) : KEEPS_CHANGING
}

/** Runs the kernel on the planned rows with the limits that the plan leaves open. */
function runKernel(searcher: Searcher, limit: number, fieldId: number, out: number, end: number) {
  const { memory, parameters, kernel } = searcher
  const { u32 } = memory
  const p = parameters >>> 2
  u32[p + PARAMETER.limit] = limit
  u32[p + PARAMETER.fieldId] = fieldId
  u32[p + PARAMETER.out] = out
  u32[p + PARAMETER.outEnd] = end
  endStage(searcher, STAGE.planning)
  kernel(parameters)
  endStage(searcher, STAGE.examining)
}

/** Copies the results before UNFINISHED into their own memory. */
export function takeSlices(searcher: Searcher, workedMs: number): Slices {
  const { writer, values } = searcher
  const slices = createSlices()
  slices.table = cut.table
  slices.version = cut.version
  slices.nextRow = cut.nextRow
  slices.today = values.today
  slices.workedMs = workedMs
  slices.stageMs = searcher.stageMs.slice()
  if (searcher.search.hasPage) {
    if (!cut.page) return slices
    // Its matches stay; the thread takes other memory for its next search.
    slices.page = { ...cut.page, tables: [...cut.page.tables], versions: [...cut.page.versions] }
    if (cut.page.merge) searcher.merge = createMerge()
    return slices
  }
  slices.examined = searcher.examined
  slices.hits = searcher.hits
  slices.workedMs = workedMs
  const bytes = writer.at - writer.start
  growReply(slices.reply, bytes)
  slices.reply.bytes.set(writer.bytes.subarray(writer.start, writer.at))
  slices.reply.at = bytes
  slices.reply.fields = writer.fields
  return slices
}

/**
 * Runs the next slice of the search in `values.scan`.
 *
 * @param at,end a range of the store's memory for the hits of one slice
 * @returns end of the frame in `slices.reply`, KEEPS_CHANGING while the table is being changed, or UNFINISHED
 */
export function runSlice(
  searcher: Searcher,
  forStay: boolean,
  correlationId: number,
  slices: Slices,
  at: number,
  end: number,
  waitedMs: number,
): number {
  const { values, search, limits, memory } = searcher
  const { reply } = slices
  const started = searcher.monotonicMs()
  searcher.stageMs.set(slices.stageMs)
  searcher.stageSince = started
  searcher.retries = 0
  checkSearch(search, values, limits, forStay)
  if (search.hasPage) checkCursor(search, values, genesisOf(memory))
  // Midnight may have passed since the first slice.
  if (values.fault !== '') return refuseSlice(slices, correlationId, values.fault)
  enterInRequest(memory, searcher.reader)
  const attempt = search.hasPage ? tryPageSlice : trySlice
  const result = attempt(searcher, forStay, correlationId, slices, at, end)
  leave(memory, searcher.reader)
  if (values.fault !== '') return refuseSlice(slices, correlationId, values.fault)
  slices.workedMs += searcher.monotonicMs() - started
  slices.stageMs.set(searcher.stageMs)
  if (result === KEEPS_CHANGING) searcher.retries++
  if (result < 0) return result
  searcher.hits = slices.hits
  searcher.examined = slices.examined
  if (!search.explain) return finishReply(reply)
  growReply(reply, reply.at + explainBytes(search))
  return explain(searcher, reply, waitedMs, slices.workedMs)
}

function refuseSlice({ reply }: Slices, correlationId: number, fault: string): number {
  growReply(reply, ERROR_ROOM_BYTES)
  return writeError(reply.bytes, 0, reply.end, correlationId, fault)
}

/** Returned by a slice instead of the values of NO_ROOM and others when the search is complete. */
const DONE = 0
const ERROR_ROOM_BYTES = 1024

function tryPageSlice(
  searcher: Searcher,
  forStay: boolean,
  correlationId: number,
  slices: Slices,
  at: number,
  end: number,
): number {
  const { memory, search, values, writer, progress: found } = searcher
  const { reply } = slices
  const steps = stepsOf(search)
  values.fault = steps.begin(searcher, found)
  if (values.fault !== '') return DONE
  if (isPageChanging(found)) return KEEPS_CHANGING
  if (!slices.page || !isSamePage(slices.page, found) || slices.today !== values.today) {
    if (slices.page) {
      slices.restarts++
      searcher.retries++
    }
    const merge = slices.page?.merge ?? createMerge()
    slices.page = { ...found, tables: [...found.tables], versions: [...found.versions], entries: new Uint8Array(0) }
    steps.start(searcher, slices.page, merge)
    slices.today = values.today
  }
  const { page } = slices
  const entries = entriesAt(search, end)
  memory.u8.set(page.entries, entries)
  endStage(searcher, STAGE.planning)
  const left = steps.advance(searcher, page, entries, aligned(at), searcher.sliceWork)
  endStage(searcher, STAGE.examining)
  searcher.workLeft -= left < 0 ? searcher.sliceWork : searcher.sliceWork - left
  // The results are valid only if nothing moved. Otherwise the next slice finds another version, and restarts.
  if (!isPageUnchanged(memory, page)) return UNFINISHED
  slices.examined = page.examined
  if (left < 0) {
    page.entries = memory.u8.slice(entries, entries + steps.keptBytes(search))
    return UNFINISHED
  }
  searcher.hits = 0
  openReply(searcher, forStay, correlationId, at, end)
  const isWritten = steps.write(searcher, page, entries, entries, forStay)
  assert(isWritten, 'a slab holds any page and its entries')
  if (!isPageUnchanged(memory, page)) return UNFINISHED
  growReply(reply, writer.at - at)
  reply.bytes.set(memory.u8.subarray(at, writer.at))
  reply.at = writer.at - at
  reply.fields = writer.fields
  slices.hits = searcher.hits
  return DONE
}

function trySlice(
  searcher: Searcher,
  forStay: boolean,
  correlationId: number,
  slices: Slices,
  at: number,
  end: number,
): number {
  const { memory, parameters, search, values } = searcher
  const { u32 } = memory
  const { reply } = slices
  const table = tableOfSearch(memory, search, values)
  const version = table === 0 ? 0 : versionOf(memory, table)
  if (version < 0) return KEEPS_CHANGING
  if (reply.at === 0 || slices.table !== table || slices.version !== version || slices.today !== values.today) {
    if (reply.at > 0) {
      slices.restarts++
      searcher.retries++
    }
    begin(slices, forStay, correlationId, search)
    slices.table = table
    slices.version = version
    slices.today = values.today
  }
  if (table === 0) return DONE
  if (!planSearch(memory, parameters, search, values, table)) {
    // Its days were dropped, so hits on them are invalid.
    begin(slices, forStay, correlationId, search)
    return isUnchanged(memory, table, version) ? DONE : KEEPS_CHANGING
  }
  const p = parameters >>> 2
  const planned = u32[p + PARAMETER.endRow]
  const first = Math.min(planned, Math.max(u32[p + PARAMETER.firstRow], slices.nextRow))
  u32[p + PARAMETER.firstRow] = first
  const stop = endOfSlice(searcher, planned)
  u32[p + PARAMETER.endRow] = stop
  runKernel(searcher, search.limit - slices.hits, reply.fields + 1, at, end)
  searcher.workLeft -= workDone(searcher, stop)
  // The results are valid only if nothing moved. Otherwise the next slice finds another version, and restarts.
  if (!isUnchanged(memory, table, version)) return UNFINISHED
  const bytes = u32[p + PARAMETER.written] - at
  const hits = u32[p + PARAMETER.hits]
  growReply(reply, reply.at + bytes)
  reply.bytes.set(memory.u8.subarray(at, at + bytes), reply.at)
  reply.at += bytes
  reply.fields += hits * (forStay ? 2 : 1)
  slices.hits += hits
  slices.examined += u32[p + PARAMETER.examined]
  slices.nextRow = u32[p + PARAMETER.nextRow]
  return slices.hits === search.limit || slices.nextRow === planned ? DONE : UNFINISHED
}

/** An empty reply, before any row was examined. */
function begin(slices: Slices, forStay: boolean, correlationId: number, search: Search): void {
  const { reply } = slices
  growReply(reply, REPLY_HEADER_BYTES + hitBytes(search.nights))
  beginReply(reply, reply.bytes, 0, reply.end, correlationId)
  if (forStay) addBytes(reply, TYPE_NUMBER, u16Field(search.nights))
  slices.nextRow = 0
  slices.hits = 0
  slices.examined = 0
}

const u16Bytes = new Uint8Array(2)

function u16Field(value: number): Uint8Array {
  u16Bytes[0] = value & 0xff
  u16Bytes[1] = value >>> 8
  return u16Bytes
}

/** What the explanation takes behind the hits. */
function explainBytes({ explain, explainStages }: Search): number {
  return explain ? FIELD_HEADER_BYTES + (explainStages ? EXPLAIN_STAGES_BYTES : EXPLAIN_BYTES) : 0
}

const explained = new Uint8Array(EXPLAIN_STAGES_BYTES)
const explainedShort = explained.subarray(0, EXPLAIN_BYTES)
const explainView = new DataView(explained.buffer)

function explain(searcher: Searcher, writer: ReplyWriter, waitedMs: number, tookMs: number): number {
  const { memory, search, stageMs } = searcher
  endStage(searcher, STAGE.writing)
  explainView.setUint32(0, searcher.examined, true)
  explainView.setUint32(4, Math.round(waitedMs * 1000), true)
  explainView.setUint32(8, Math.round(tookMs * 1000), true)
  explainView.setBigUint64(12, BigInt(appliedIndex(memory)), true)
  for (const [n, ms] of stageMs.entries()) explainView.setUint32(EXPLAIN_BYTES + 4 * n, Math.round(ms * 1000), true)
  addExtra(writer, TYPE_EXTRA, search.explainStages ? explained : explainedShort)
  return finishReply(writer)
}
