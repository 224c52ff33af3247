/**
 * Reads packages.csv on one thread: blocks of lines through the kernel, single lines through the slow path.
 *
 * The first pass is shared by all threads and stops at the first error anywhere, because then nothing is written.
 * Errors are reported by a second, explaining pass: one thread reads the file from its beginning, words hold line
 * numbers, and errors come in file order. Errors are therefore independent of how the file was split, and the fast
 * pass needs neither line numbers nor an order between threads.
 */

import { AssertionError, formatDay, LIMITS, unreachable } from '@vacancy/shared'
import {
  cellText,
  faultAt,
  faultInFile,
  LINE_BYTES_MAX,
  type PackageParser,
  packageFaults,
  parsePackage,
  readRecord,
  rowOf,
  scanFault,
} from './csv.ts'
import type { ImportKernel } from './layout.ts'
import { CONTEXT, HEADER, STOP, type Stop } from './layout.ts'
import type { Fault } from './row-errors.ts'
import { type Blocks, nextBlock, openRange, skipLine } from './split.ts'
import { FAILED, leavePass, meetThreads } from './staging.ts'

export type PackageThread = {
  readonly memory: WebAssembly.Memory
  readonly kernel: ImportKernel
  readonly parser: PackageParser
  readonly context: number
  /** Where the bytes of `blocks` are in the memory. */
  readonly buffer: number
  readonly blocks: Blocks
  /** Views of the memory that existed when the thread started: header, contexts and buffers. */
  readonly u8: Uint8Array
  readonly u32: Uint32Array
  readonly f64: Float64Array
}

/** The file's data, after byte order mark and header. */
export type PackageFile = { readonly start: number; readonly end: number; readonly firstLine: number }

/**
 * Called with each error of an explaining pass and the bytes of its line, which are valid during the call. Without
 * it, the first error ends the pass.
 */
type FaultSink = (line: number, fault: Fault, row: Uint8Array) => void

/** Processes range after range until none is left, or some thread has found an error. */
export function readSharedRanges(thread: PackageThread, file: PackageFile, rangeBytes: number): void {
  const { u32, memory } = thread
  try {
    for (;;) {
      const start = file.start + Atomics.add(u32, HEADER.nextRange, 1) * rangeBytes
      if (start >= file.end || Atomics.load(u32, HEADER.failed) !== FAILED.no) return
      const end = Math.min(start + rangeBytes, file.end)
      openRange(thread.blocks, start, end, start === file.start)
      if (!readLines(thread, undefined)) return
    }
  } finally {
    leavePass(memory)
  }
}

/** Reads the whole file in order and reports every error. */
export function explainPackages(thread: PackageThread, file: PackageFile, onFault: FaultSink): void {
  thread.f64[(thread.context + CONTEXT.lines) >>> 3] = file.firstLine
  openRange(thread.blocks, file.start, file.end, true)
  try {
    readLines(thread, onFault)
  } finally {
    leavePass(thread.memory)
  }
}

/** @returns false when the pass has failed */
function readLines(thread: PackageThread, onFault: FaultSink | undefined): boolean {
  const { blocks, context, u32, f64 } = thread
  for (;;) {
    const state = nextBlock(blocks)
    if (state === 'end') return true
    if (state === 'long') {
      if (!onFault) return fail(thread)
      onFault(lineOf(thread), scanFault(thread.parser.cells, 'long'), blocks.bytes.subarray(0, LINE_BYTES_MAX))
      addLines(thread, 1)
      skipLine(blocks)
      continue
    }
    if (!readBlock(thread, onFault)) return false
    const done = (context + CONTEXT.bytesDone) >>> 3
    f64[done] = f64[done] + blocks.end - blocks.start
    if (Atomics.load(u32, HEADER.failed) !== FAILED.no) return false
  }
}

/** Reads blocks.start … blocks.end; moves `end` back to a record that continues beyond it. */
function readBlock(thread: PackageThread, onFault: FaultSink | undefined): boolean {
  const { blocks, kernel, parser, context, buffer, memory, u32 } = thread
  let at = blocks.start
  while (at < blocks.end) {
    // The kernel knows the columns of the documented order only.
    const stop = parser.order ? STOP.odd : kernel.scan(context, buffer + at, buffer + blocks.end)
    if (!parser.order) at = u32[(context + CONTEXT.cursor) >>> 2] - buffer
    if (stop === STOP.crowded) {
      meetThreads(memory)
      if (Atomics.load(u32, HEADER.failed) !== FAILED.no) return false
    } else if (stop === STOP.memoryFull) {
      return outOfMemory(thread)
    } else if (stop !== STOP.done) {
      const next = readSlowly(thread, at, onFault)
      if (next === FAULTY) return false
      if (next === UNFINISHED) {
        blocks.end = at
        return true
      }
      at = next
    }
  }
  return true
}

const FAULTY = -1
const UNFINISHED = -2

/** Reads the record at `at`. @returns offset of the next one, or FAULTY, or UNFINISHED */
function readSlowly(thread: PackageThread, at: number, onFault: FaultSink | undefined): number {
  const { parser, blocks } = thread
  const { cells } = parser
  const scanned = readRecord(cells, blocks.bytes, at, blocks.filled, blocks.isLast)
  if (scanned === 'incomplete') return onFault ? UNFINISHED : faulty(thread)
  // No cell may hold a line end, so a record over several lines is a fault; and in a shared pass the next of these
  // lines may be another thread's.
  if (!onFault && cells.lines !== 1 && scanned !== 'blank') return faulty(thread)
  let faults: readonly Fault[] = []
  if (scanned === 'record') {
    faults = onFault ? packageFaults(parser) : [parsePackage(parser) ?? []].flat()
    if (faults.length === 0) faults = [addPackage(thread, at) ?? []].flat()
  } else if (scanned !== 'blank') faults = [scanFault(cells, scanned)]
  if (Atomics.load(thread.u32, HEADER.failed) === FAILED.memoryFull) return FAULTY
  if (faults.length > 0 && !onFault) return faulty(thread)
  if (scanned === 'long') cells.next = blocks.bytes.indexOf(0x0a, cells.next) + 1
  const row = rowOf(blocks.bytes, at, cells.next)
  for (const fault of faults)
    onFault?.(lineOf(thread), scanned === 'record' ? faultInFile(fault, parser.order) : fault, row)
  addLines(thread, scanned === 'long' ? 1 : cells.lines)
  return cells.next
}

/** @returns the error of the package, by itself or in conflict with others */
function addPackage(thread: PackageThread, at: number): Fault | undefined {
  const { parser, kernel, context, memory, u8, u32, f64 } = thread
  const { cells } = parser
  putPackage(u8, u32, context, parser)
  const night = parser.day - u32[HEADER.firstDay]
  let stop: Stop
  do {
    stop = kernel.add(context, night, lowOf(parser), highOf(parser), lineOf(thread))
    if (stop === STOP.crowded) meetThreads(memory)
  } while (stop === STOP.crowded && Atomics.load(u32, HEADER.failed) === FAILED.no)
  switch (stop) {
    case STOP.done:
      rememberFeatures(thread, at)
      return undefined
    case STOP.outside: {
      if (u32[HEADER.strictWindow] === 1) return windowFault(thread)
      const skipped = (context + CONTEXT.skipped) >>> 3
      f64[skipped] = f64[skipped] + 1
      return undefined
    }
    case STOP.unknownProperty:
      return faultAt(cells, 'unknown_property', 0)
    case STOP.duplicate: {
      const value = [0, 1, 2].map((cell) => cellText(cells, cell)).join(',')
      const firstLine = f64[(context + CONTEXT.firstLine) >>> 3]
      return { kind: 'package_twice', column: 0, value, firstLine }
    }
    case STOP.tooManyRooms: {
      const expected = LIMITS.roomTypesPerPropertyMax
      return { ...faultAt(cells, 'rooms', 1), found: expected + 1, expected }
    }
    case STOP.memoryFull:
    case STOP.crowded:
      // The header tells the caller that the pass has failed.
      if (stop === STOP.memoryFull) outOfMemory(thread)
      return undefined
    case STOP.odd:
      throw new AssertionError('the kernel adds what the slow path has read')
    default:
      return unreachable(stop)
  }
}

/** Copies id and room type of the parsed package to where `add` reads them. */
function putPackage(u8: Uint8Array, u32: Uint32Array, context: number, parser: PackageParser): void {
  const { id, cells, roomStart, roomEnd } = parser
  for (let i = 0; i < 16; i++) u8[context + CONTEXT.id + i] = id[i]
  const at = context + CONTEXT.room
  for (let i = roomStart; i < roomEnd; i++) u8[at + i - roomStart] = cells.text[i]
  u32[(context + CONTEXT.roomLength) >>> 2] = roomEnd - roomStart
}

/** Halves of the word of the parsed package (store/layout.ts). */
function lowOf({ availability, mask }: PackageParser): number {
  return (availability | (mask << 8)) >>> 0
}

function highOf({ price }: PackageParser): number {
  return ~price >>> 0
}

function windowFault({ parser, u32 }: PackageThread): Fault {
  const first = u32[HEADER.firstDay]
  const range = `${formatDay(first)} to ${formatDay(first + u32[HEADER.days] - 1)}`
  return { ...faultAt(parser.cells, 'window', 2), range }
}

/**
 * Lets the kernel know the text of the rate features that only the slow path could read, so that a file full of it
 * (`a | b`) is read fast. Only where no quote is: then the sixth cell is what follows the fifth comma.
 */
function rememberFeatures({ parser, blocks, kernel, context, buffer }: PackageThread, at: number): void {
  // Then the kernel reads no lines.
  if (parser.order) return
  const end = parser.cells.next
  const line = blocks.bytes.subarray(at, end)
  if (line.includes(QUOTE)) return
  let text = at
  for (let commas = 0; commas < 5; commas++) text = blocks.bytes.indexOf(COMMA, text) + 1
  kernel.remember(context, buffer + text, end - text, parser.mask)
}

const QUOTE = 0x22
const COMMA = 0x2c

function lineOf({ f64, context }: PackageThread): number {
  return f64[(context + CONTEXT.lines) >>> 3]
}

function addLines({ f64, context }: PackageThread, lines: number): void {
  const cell = (context + CONTEXT.lines) >>> 3
  f64[cell] = f64[cell] + lines
}

function faulty({ u32 }: PackageThread): typeof FAULTY {
  Atomics.compareExchange(u32, HEADER.failed, FAILED.no, FAILED.needsExplaining)
  return FAULTY
}

function fail(thread: PackageThread): false {
  faulty(thread)
  return false
}

function outOfMemory({ u32 }: PackageThread): false {
  Atomics.store(u32, HEADER.failed, FAILED.memoryFull)
  return false
}
