/**
 * Splits a file into ranges, assigned to the next free thread, and a range into blocks of whole lines.
 *
 * A line belongs to the range in which it begins, so ranges may be cut at any byte: a thread skips the line that
 * began before its range, and reads beyond its range to the end of its last line.
 */

import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import {
  FORM_ROWS,
  formatOf,
  IMPORT_COLUMNS,
  type ImportFileKind,
  otherForm,
  readImportHeader,
  VacancyError,
} from '@vacancy/shared'
import type { Opened } from '@vacancy/shared/node'
import { arrangeCells, type ColumnOrder, cellTexts, createCells, LINE_BYTES_MAX, readRecord } from './csv.ts'
import { PADDING_BYTES } from './layout.ts'

const NEWLINE = 0x0a
/** The shortest line a package can have: `p,r,2026-01-01,1,1,` and its end. */
const LINE_BYTES_MIN = 20
/** Bytes read at a time beyond a range, to find the end of its last line. */
const TAIL_BYTES = 4096

/** An open file and the offset of its data, after byte order mark and header. */
export type CsvFile = {
  readonly file: number
  readonly path: string
  readonly bytes: number
  readonly opened: Opened
  readonly dataStart: number
  /** Number of the line at dataStart, from 1. */
  readonly firstLine: number
  /** Estimated bytes per line, from the first lines. */
  readonly lineBytes: number
  /** Names of its columns, from left to right. */
  readonly columns: readonly string[]
  /** Present when the columns are not in the order of IMPORT_COLUMNS. */
  readonly order?: ColumnOrder
  /** What to verify in the header. */
  readonly warning?: string
  /** Why the whole file is unreadable, if it is. */
  readonly fault?: { readonly kind: 'form' | 'header'; readonly message: string }
}

/** @throws VacancyError `usage_error` for what cannot be read */
export function openCsv(path: string, kind: ImportFileKind): CsvFile {
  let file: number | undefined
  try {
    // Checked before opening: a pipe would wait for its writer.
    if (!statSync(path).isFile()) throw new Error('not a regular file')
    file = openSync(path, 'r')
    const { dev, ino, size: bytes, mtimeMs } = fstatSync(file)
    const head = new Uint8Array(Math.min(bytes, 2 * LINE_BYTES_MAX))
    readSync(file, head, 0, head.length, 0)
    const opened = { dev, ino, size: bytes, mtimeMs }
    const csv = { file, path, bytes, opened, lineBytes: lineBytesOf(head), columns: IMPORT_COLUMNS[kind] }
    const format = formatOf(head)
    if (format) {
      const fault = { kind: 'form', message: `${format.is}; ${format.fix}` } as const
      return { ...csv, dataStart: bytes, firstLine: 1, fault }
    }
    const start = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0
    const data = findData(kind, head, start, bytes)
    return { ...csv, ...data, ...(!data.fault && findForm(kind, head, bytes, data)) }
  } catch (cause) {
    if (file !== undefined) closeSync(file)
    throw new VacancyError('usage_error', { reason: `${path} cannot be read: ${(cause as Error).message}` }, { cause })
  }
}

function lineBytesOf(head: Uint8Array): number {
  let lines = 1
  for (let at = head.indexOf(NEWLINE); at >= 0; at = head.indexOf(NEWLINE, at + 1)) lines++
  return Math.max(LINE_BYTES_MIN, head.length / lines)
}

type Data = Pick<CsvFile, 'dataStart' | 'firstLine'> & Partial<Pick<CsvFile, 'columns' | 'order' | 'warning' | 'fault'>>

/** Skips empty lines and the header, which is resolved here once for all lines. */
function findData(kind: ImportFileKind, head: Uint8Array, start: number, bytes: number): Data {
  const cells = createCells()
  let at = start
  let line = 1
  while (at < head.length) {
    const scanned = readRecord(cells, head, at, head.length, head.length === bytes)
    if (scanned === 'record') {
      const header = readImportHeader(kind, cellTexts(cells), cells.count)
      if (header.kind === 'none') break
      if (header.kind === 'refused') {
        return {
          dataStart: bytes,
          firstLine: line,
          fault: { kind: 'header', message: `line ${line} ${header.reason}` },
        }
      }
      const { order, warning } = header
      return {
        dataStart: cells.next,
        firstLine: line + cells.lines,
        ...(order && { order, columns: columnsInFile(kind, order) }),
        ...(warning !== undefined && { warning: `line ${line} ${warning}` }),
      }
    }
    if (scanned !== 'blank') break
    at = cells.next
    line += cells.lines
  }
  return { dataStart: at, firstLine: line }
}

/** A form of dates or decimals that every row seems to have is an error of the file. */
function findForm(
  kind: ImportFileKind,
  head: Uint8Array,
  bytes: number,
  { dataStart, firstLine, order }: Data,
): Pick<CsvFile, 'dataStart' | 'fault'> | undefined {
  const cells = createCells()
  const rows: string[][] = []
  const lines: number[] = []
  let line = firstLine
  for (let at = dataStart; at < head.length && rows.length < FORM_ROWS; at = cells.next) {
    const scanned = readRecord(cells, head, at, head.length, head.length === bytes)
    // A broken record has an error of its own.
    if (scanned !== 'record' && scanned !== 'blank') break
    if (scanned === 'record') {
      if (order && cells.count === order.length) arrangeCells(cells, order)
      rows.push(cellTexts(cells))
      lines.push(line)
    }
    line += cells.lines
  }
  const form = otherForm(kind, rows)
  if (form === undefined) return undefined
  const { column, row, looksLike, mapping } = form
  const value = JSON.stringify(rows[row]?.[column])
  const message = `line ${lines[row]} ${IMPORT_COLUMNS[kind][column]} ${value} looks like ${looksLike}, as in the rows around it; a mapping of vacancy import-source reads it with ${mapping}`
  return { dataStart: bytes, fault: { kind: 'form', message } }
}

function columnsInFile(kind: ImportFileKind, order: ColumnOrder): string[] {
  return order.map((_, place) => IMPORT_COLUMNS[kind][order.indexOf(place)])
}

/** A range is at most this long, so that the threads end at about the same time. */
const RANGE_BYTES_MAX = 32 * 1024 * 1024
const RANGE_BYTES_MIN = 1024 * 1024
const RANGES_A_THREAD = 8

/** @returns bytes of each range but the last */
export function rangeBytesFor(bytes: number, threads: number): number {
  const wanted = Math.ceil(bytes / (threads * RANGES_A_THREAD))
  return Math.min(RANGE_BYTES_MAX, Math.max(RANGE_BYTES_MIN, wanted))
}

/**
 * Reads a range block by block. bytes[start, end) are whole lines; bytes[end, filled) begin the next one. After
 * `filled` there are PADDING_BYTES of any content.
 */
export type Blocks = ReturnType<typeof createBlocks>

/** @param bytes where blocks are read to; PADDING_BYTES of it stay free at its end */
export function createBlocks(file: number, path: string, fileBytes: number, bytes: Uint8Array) {
  const capacity = bytes.length - PADDING_BYTES
  return {
    file,
    path,
    fileBytes,
    bytes,
    capacity,
    /** Next byte of the file to read. */
    position: 0,
    rangeEnd: 0,
    start: 0,
    end: 0,
    filled: 0,
    /** Nothing of the file follows `filled`. */
    isLast: false,
  }
}

/**
 * Goes to a range.
 *
 * @param isFirst a line begins at `start`; otherwise the line that holds the byte before `start` is passed over
 */
export function openRange(blocks: Blocks, start: number, end: number, isFirst: boolean): void {
  blocks.position = isFirst ? start : start - 1
  blocks.rangeEnd = end
  blocks.start = 0
  blocks.end = 0
  blocks.filled = 0
  blocks.isLast = false
  if (!isFirst) skipLine(blocks)
}

/**
 * Fetches the next whole lines. What lies behind blocks.end is kept and comes first.
 *
 * @returns `long` when the buffer is full of one line: then call `skipLine`
 */
export function nextBlock(blocks: Blocks): 'lines' | 'long' | 'end' {
  const { bytes } = blocks
  bytes.copyWithin(0, blocks.end, blocks.filled)
  blocks.filled -= blocks.end
  blocks.start = 0
  blocks.end = 0
  if (blocks.position < blocks.rangeEnd) fill(blocks, blocks.rangeEnd - blocks.position)
  if (blocks.position >= blocks.rangeEnd) finishLastLine(blocks)
  blocks.isLast = blocks.position >= blocks.fileBytes
  if (blocks.filled === 0) return 'end'
  if (blocks.isLast && bytes[blocks.filled - 1] !== NEWLINE) bytes[blocks.filled++] = NEWLINE
  blocks.end = bytes.subarray(0, blocks.filled).lastIndexOf(NEWLINE) + 1
  return blocks.end === 0 ? 'long' : 'lines'
}

/** Passes over bytes up to the next newline, and over that. */
export function skipLine(blocks: Blocks): void {
  const { bytes } = blocks
  blocks.end = 0
  do {
    blocks.filled = 0
    // Also behind the range: the line that holds its last byte is its own to pass over.
    fill(blocks, Math.max(blocks.rangeEnd - blocks.position, TAIL_BYTES))
    const newline = bytes.subarray(0, blocks.filled).indexOf(NEWLINE)
    if (newline >= 0) {
      const behind = blocks.position - blocks.filled + newline + 1
      if (behind >= blocks.rangeEnd) {
        // The line ended the range: what was read of the next one is not ours.
        blocks.position = behind
        blocks.rangeEnd = behind
        blocks.filled = 0
      } else {
        blocks.end = newline + 1
        cutAtRange(blocks)
      }
      return
    }
  } while (blocks.position < blocks.fileBytes)
  blocks.filled = 0
  blocks.rangeEnd = blocks.position
}

/** Gives back what was read behind the range. */
function cutAtRange(blocks: Blocks): void {
  const over = blocks.position - blocks.rangeEnd
  if (over <= 0) return
  blocks.position -= over
  blocks.filled -= over
}

/** Where the range ends inside a line, reads on to the end of that line, and not a byte further. */
function finishLastLine(blocks: Blocks): void {
  const { bytes, capacity } = blocks
  while (blocks.filled > 0 && bytes[blocks.filled - 1] !== NEWLINE) {
    if (blocks.position >= blocks.fileBytes || blocks.filled >= capacity) return
    const from = blocks.filled
    fill(blocks, TAIL_BYTES)
    const newline = bytes.subarray(from, blocks.filled).indexOf(NEWLINE)
    if (newline < 0) continue
    blocks.position -= blocks.filled - (from + newline + 1)
    blocks.filled = from + newline + 1
  }
}

function fill(blocks: Blocks, wanted: number): void {
  const { file, path, bytes, capacity, fileBytes } = blocks
  let left = Math.min(wanted, capacity - blocks.filled, fileBytes - blocks.position)
  while (left > 0) {
    const count = readSync(file, bytes, blocks.filled, left, blocks.position)
    if (count === 0) {
      throw new VacancyError('failure', { reason: `${path} became shorter while it was read.` })
    }
    blocks.filled += count
    blocks.position += count
    left -= count
  }
}
