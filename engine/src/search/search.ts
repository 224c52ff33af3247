/**
 * A search, request bytes to reply bytes: check, plan, kernel, finish (architecture.md, journey a). Runs on the thread
 * that owns the socket and writes the hits at their final place in a reply slab.
 */

import type { CodecList } from '@vacancy/shared'
import { appliedIndex, type Memory } from '../store/store.ts'
import { enter, isUnchanged, leave, READ_TRIES_MAX, versionOf } from '../store/version.ts'
import { PARAMETER, type SearchKernel } from './parameters.ts'
import { checkSearch, createSearch, planSearch, type Search, type SearchLimits, tableOfSearch } from './plan.ts'
import {
  addBytes,
  addExtra,
  beginReply,
  createReplyWriter,
  finishReply,
  type ReplyWriter,
  writeError,
} from './reply.ts'
import { createValues, type Values } from './values.ts'

/** Reply field of a search that asked to be explained: id 0xFFFF, 20 bytes (wire-protocol.md §12). */
const EXPLAIN_BYTES = 20
const EXPLAIN_FIELD_BYTES = 7 + EXPLAIN_BYTES
const TYPE_NUMBER = 2
const TYPE_EXTRA = 9
const PAUSE_MS = 0.05

/** What one thread needs to search; everything in it is reused from search to search. */
export type Searcher = {
  readonly memory: Memory
  /** This thread's reader slot (version.ts). */
  readonly reader: number
  /** Address of its parameter block. */
  readonly parameters: number
  readonly kernel: SearchKernel
  readonly limits: SearchLimits
  readonly values: Values
  readonly search: Search
  readonly writer: ReplyWriter
  readonly monotonicMs: () => number
  /** Facts of the last search, for metrics. */
  hits: number
  examined: number
  retries: number
}

export function createSearcher(options: {
  memory: Memory
  reader: number
  parameters: number
  kernel: SearchKernel
  limits: SearchLimits
  codecs: CodecList
  monotonicMs: () => number
}): Searcher {
  const { codecs, ...rest } = options
  return {
    ...rest,
    values: createValues(codecs),
    search: createSearch(),
    writer: createReplyWriter(),
    hits: 0,
    examined: 0,
    retries: 0,
  }
}

/** Returned instead of the end of a reply that does not fit between `at` and `end`. */
export const NO_ROOM = -1
/** Returned when the table kept changing: nothing was answered. */
export const KEEPS_CHANGING = -2

/**
 * Answers the search that `values.scan` holds, as a frame in the store's memory at [at, result).
 *
 * @param waitedMs how long the request waited before this call, for an explained search
 * @returns end of the frame, NO_ROOM or KEEPS_CHANGING
 */
export function runSearch(
  searcher: Searcher,
  forStay: boolean,
  correlationId: number,
  at: number,
  end: number,
  waitedMs: number,
): number {
  const { values, search, limits, memory } = searcher
  searcher.hits = 0
  searcher.examined = 0
  checkSearch(search, values, limits, forStay)
  if (values.fault !== '') return writeError(memory.u8, at, end, correlationId, values.fault)
  const started = search.explain ? searcher.monotonicMs() : 0
  for (let tries = 0; tries < READ_TRIES_MAX; tries++) {
    enter(memory, searcher.reader)
    const result = tryOnce(searcher, forStay, correlationId, at, end)
    leave(memory, searcher.reader)
    if (result === NO_ROOM) return NO_ROOM
    if (result !== KEEPS_CHANGING) return search.explain ? explain(searcher, end, waitedMs, started) : result
    searcher.retries++
    // The writer never wakes this word: the wait is a pause, short beside any change that covers a table.
    Atomics.wait(memory.fence, 0, 0, PAUSE_MS)
  }
  return KEEPS_CHANGING
}

function tryOnce(searcher: Searcher, forStay: boolean, correlationId: number, at: number, end: number): number {
  const { memory, parameters, search, values, writer } = searcher
  const { u8, u32 } = memory
  beginReply(writer, u8, at, end, correlationId)
  if (forStay) addBytes(writer, TYPE_NUMBER, nightsField(search.nights))
  if (writer.at > end) return NO_ROOM
  const table = tableOfSearch(memory, search, values)
  if (table === 0) return finishReply(writer)
  const version = versionOf(memory, table)
  if (version < 0) return KEEPS_CHANGING
  if (planSearch(memory, parameters, search, values, table)) {
    const p = parameters >>> 2
    u32[p + PARAMETER.limit] = search.limit
    u32[p + PARAMETER.fieldId] = writer.fields + 1
    u32[p + PARAMETER.out] = writer.at
    u32[p + PARAMETER.outEnd] = search.explain ? end - EXPLAIN_FIELD_BYTES : end
    searcher.kernel(parameters)
    searcher.hits = u32[p + PARAMETER.hits] as number
    searcher.examined = u32[p + PARAMETER.examined] as number
    if (u32[p + PARAMETER.nextRow] !== u32[p + PARAMETER.endRow]) return NO_ROOM
    writer.at = u32[p + PARAMETER.written] as number
    writer.fields += searcher.hits * (forStay ? 2 : 1)
  }
  return isUnchanged(memory, table, version) ? finishReply(writer) : KEEPS_CHANGING
}

const nightsBytes = new Uint8Array(2)

function nightsField(nights: number): Uint8Array {
  nightsBytes[0] = nights & 0xff
  nightsBytes[1] = nights >>> 8
  return nightsBytes
}

const explainBytes = new Uint8Array(EXPLAIN_BYTES)
const explainView = new DataView(explainBytes.buffer)

function explain(searcher: Searcher, end: number, waitedMs: number, started: number): number {
  const { writer, memory } = searcher
  explainView.setUint32(0, searcher.examined, true)
  explainView.setUint32(4, Math.round(waitedMs * 1000), true)
  explainView.setUint32(8, Math.round((searcher.monotonicMs() - started) * 1000), true)
  explainView.setBigUint64(12, BigInt(appliedIndex(memory)), true)
  writer.end = end
  addExtra(writer, TYPE_EXTRA, explainBytes)
  return finishReply(writer)
}
