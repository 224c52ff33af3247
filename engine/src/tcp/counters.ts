/**
 * Counters of a serving thread in shared memory: the thread adds, the main thread reads and sums (metrics.ts). Each
 * thread has its own block, so that threads do not contend for a cache line.
 */

import { assert } from '@vacancy/shared'
import { COMMAND_LIST } from '@vacancy/shared/wire'

const COMMANDS_MAX = 32

/** Upper bounds of the duration buckets in seconds; one more bucket is above the last. */
export const DURATION_BUCKETS = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
] as const
export const ROW_BUCKETS = [0, 1, 10, 50, 100, 200, 500, 1000, 10_000, 32_767] as const

/** Error codes with their own counter; all others count as `other`. */
export const ERROR_CODES = [
  'VALIDATION_ERROR',
  'NOT_FOUND',
  'OVERFLOW',
  'UNDERFLOW',
  'FORBIDDEN',
  'AUTH_ERROR',
  'PARSE_ERROR',
  '308',
  '405',
  '408',
  '429',
  '500',
  '503',
  'other',
] as const

export const COUNTER = {
  connectionsOpened: 0,
  connectionsClosed: 1,
  rejectedConnections: 2,
  rejectedRequests: 3,
  commands: 4,
  bytesReceived: 5,
  bytesSent: 6,
  errors: 7,
  clientErrors: 8,
  clientDisconnects: 9,
  loginFailures: 10,
  timeouts: 11,
  searchRetries: 12,
  slabsMissing: 13,
  protocolErrors: 14,
  /** Longest stall of the thread's event loop since it was last read, microseconds. */
  stallMicrosMax: 15,
} as const
const SCALARS = 16
const DURATION_CELLS = DURATION_BUCKETS.length + 2
const ROW_CELLS = ROW_BUCKETS.length + 2
const COMMAND_CELLS = 1 + 2 * DURATION_CELLS + ROW_CELLS + ERROR_CODES.length
const CELLS = SCALARS + COMMANDS_MAX * COMMAND_CELLS

assert(COMMAND_LIST.length <= COMMANDS_MAX, 'every command has counters')

/** Doubles: exact to 2^53, one plain store each; a reader may be one addition behind. */
export type Counters = { readonly cells: Float64Array }

export function createCounters(): Counters {
  return { cells: new Float64Array(new SharedArrayBuffer(CELLS * 8)) }
}

export function attachCounters(buffer: SharedArrayBuffer): Counters {
  return { cells: new Float64Array(buffer) }
}

export function count(counters: Counters, counter: number, by = 1): void {
  counters.cells[counter] = counters.cells[counter] + by
}

function add(counters: Counters, cell: number, by: number): void {
  counters.cells[cell] = counters.cells[cell] + by
}

function base(command: number): number {
  return SCALARS + command * COMMAND_CELLS
}

function bucketOf(buckets: readonly number[], value: number): number {
  let i = 0
  while (i < buckets.length && value > buckets[i]) i++
  return i
}

export function countCommand(counters: Counters, command: number): void {
  add(counters, base(command), 1)
  add(counters, COUNTER.commands, 1)
}

/** @param phase 0: waiting, 1: running */
export function countDuration(counters: Counters, command: number, phase: 0 | 1, seconds: number): void {
  const first = base(command) + 1 + phase * DURATION_CELLS
  add(counters, first + bucketOf(DURATION_BUCKETS, seconds), 1)
  add(counters, first + DURATION_CELLS - 1, seconds)
}

export function countRows(counters: Counters, command: number, rows: number): void {
  const first = base(command) + 1 + 2 * DURATION_CELLS
  add(counters, first + bucketOf(ROW_BUCKETS, rows), 1)
  add(counters, first + ROW_CELLS - 1, rows)
}

/** @param text the whole error text; its code is before the first colon */
export function countError(counters: Counters, command: number, text: string): void {
  const colon = text.indexOf(':')
  const code = colon < 0 ? text : text.slice(0, colon)
  const known = (ERROR_CODES as readonly string[]).indexOf(code)
  const at = known < 0 ? ERROR_CODES.length - 1 : known
  add(counters, base(command) + 1 + 2 * DURATION_CELLS + ROW_CELLS + at, 1)
  const ours = code === '500' || code === '503' || code === '429' || code === '408'
  add(counters, ours ? COUNTER.errors : COUNTER.clientErrors, 1)
  if (code === '429') add(counters, COUNTER.rejectedRequests, 1)
}

type Histogram = { readonly counts: number[]; readonly sum: number }
export type CommandCounts = {
  readonly total: number
  readonly queued: Histogram
  readonly running: Histogram
  readonly rows: Histogram
  readonly errors: readonly number[]
}

/** Sum of a counter over threads. */
export function total(all: readonly Counters[], counter: number): number {
  return all.reduce((sum, { cells }) => sum + cells[counter], 0)
}

/** The greatest stall of any thread since the last call, in seconds. */
export function takeStallMax(all: readonly Counters[]): number {
  let worst = 0
  for (const { cells } of all) {
    worst = Math.max(worst, cells[COUNTER.stallMicrosMax])
    cells[COUNTER.stallMicrosMax] = 0
  }
  return worst / 1e6
}

/** Sums of one command over threads. */
export function commandCounts(all: readonly Counters[], command: number): CommandCounts {
  const sumAt = (cell: number) => all.reduce((sum, { cells }) => sum + cells[cell], 0)
  const range = (first: number, cells: number) => Array.from({ length: cells }, (_, i) => sumAt(first + i))
  const histogram = (first: number, cells: number): Histogram => ({
    counts: range(first, cells - 1),
    sum: sumAt(first + cells - 1),
  })
  const first = base(command)
  return {
    total: sumAt(first),
    queued: histogram(first + 1, DURATION_CELLS),
    running: histogram(first + 1 + DURATION_CELLS, DURATION_CELLS),
    rows: histogram(first + 1 + 2 * DURATION_CELLS, ROW_CELLS),
    errors: range(first + 1 + 2 * DURATION_CELLS + ROW_CELLS, ERROR_CODES.length),
  }
}
