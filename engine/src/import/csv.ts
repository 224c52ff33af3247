/**
 * Bytes → cells → values of both files (docs/design/storage.md#import): the slow path of the kernel, its reference in
 * tests, and the parser of properties.csv. Errors carry column and value; the caller adds file and line.
 */

import { type CodecList, IMPORT_COLUMNS, LIMITS, packPropertyIdInto, parseDayBytes } from '@vacancy/shared'
import { textFault } from '@vacancy/shared/wire'
import type { Fault } from './row-errors.ts'

/** A longer line is refused and skipped. The longest valid line is about 10 KB: 64 amenities of 64 bytes. */
export const LINE_BYTES_MAX = 65_536
const PACKAGE_CELLS = IMPORT_COLUMNS.packages.length

const TAB = 0x09
const NEWLINE = 0x0a
const RETURN = 0x0d
const BLANK = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const BAR = 0x7c
/** Nine columns, and a margin so that an error can name the number of cells. */
const CELLS_KEPT = 32
const VALUE_CHARACTERS_MAX = 80

/** The cells of one record. Cell i is text[starts[i], ends[i]), unquoted and trimmed. */
export type Cells = {
  readonly text: Uint8Array
  readonly starts: Int32Array
  readonly ends: Int32Array
  /** May exceed the number of kept cells. */
  count: number
  /** Offset of the next record. */
  next: number
  /** Line ends within the record; 0 for the last record of a file without one. */
  lines: number
}

export function createCells(): Cells {
  return {
    text: new Uint8Array(LINE_BYTES_MAX + 2),
    starts: new Int32Array(CELLS_KEPT),
    ends: new Int32Array(CELLS_KEPT),
    count: 0,
    next: 0,
    lines: 0,
  }
}

/**
 * - `record`: the cells are available
 * - `blank`: an empty line
 * - `incomplete`: the record continues after `end`
 * - `unclosed`: a quote opens and does not close; `next` is the line after the opening one
 * - `trailing`: text after a closing quote; `next` is the line after it
 * - `long`: more than LINE_BYTES_MAX; `next` is where the limit was exceeded, within the line
 */
export type Scanned = 'record' | 'blank' | 'incomplete' | 'unclosed' | 'trailing' | 'long'

/** @param isLast `end` is the end of the file */
export function readRecord(cells: Cells, bytes: Uint8Array, start: number, end: number, isLast: boolean): Scanned {
  const bound = start + LINE_BYTES_MAX
  const limit = Math.min(end, bound)
  const isEof = isLast && end <= bound
  const { text } = cells
  let length = 0
  let at = start
  // The first line end inside a quote: where reading resumes if the quote never closes.
  let secondLine = -1
  let wasQuoted = false
  cells.count = 0
  cells.lines = 0

  for (;;) {
    while (at < limit && isBlank(bytes[at])) at++
    const cellStart = length
    if (at < limit && bytes[at] === QUOTE) {
      wasQuoted = true
      at++
      for (;;) {
        if (at >= limit) return cut()
        const byte = bytes[at]
        if (byte === QUOTE) {
          if (at + 1 >= limit && !isEof) return cut()
          if (at + 1 >= limit || bytes[at + 1] !== QUOTE) break
          at++
        } else if (byte === NEWLINE) {
          if (secondLine < 0) secondLine = at + 1
          cells.lines++
        }
        text[length++] = byte
        at++
      }
      at++
      while (at < limit && isBlank(bytes[at])) at++
      keep(cellStart, length)
      if (at < limit && bytes[at] === RETURN && (at + 1 < limit ? bytes[at + 1] === NEWLINE : true)) {
        if (at + 1 >= limit && !isEof) return cut()
        at++
      }
      if (at < limit && bytes[at] !== COMMA && bytes[at] !== NEWLINE) return trailing()
    } else {
      while (at < limit) {
        const byte = bytes[at]
        if (byte === COMMA || byte === NEWLINE) break
        text[length++] = byte
        at++
      }
      if (at >= limit && !isEof) return cut()
      let cellEnd = length
      if ((at >= limit || bytes[at] === NEWLINE) && cellEnd > cellStart && text[cellEnd - 1] === RETURN) cellEnd--
      while (cellEnd > cellStart && isBlank(text[cellEnd - 1])) cellEnd--
      keep(cellStart, cellEnd)
    }
    if (at >= limit) {
      if (!isEof) return cut()
      cells.next = end
      break
    }
    if (bytes[at] === NEWLINE) {
      cells.lines++
      cells.next = at + 1
      break
    }
    at++
  }
  return cells.count === 1 && !wasQuoted && cells.starts[0] === cells.ends[0] ? 'blank' : 'record'

  function keep(from: number, to: number): void {
    if (cells.count < CELLS_KEPT) {
      cells.starts[cells.count] = from
      cells.ends[cells.count] = to
    }
    cells.count++
  }

  /** The bytes end, or the limit is reached, before the record ends. */
  function cut(): Scanned {
    const isTooLong = limit === bound && !isEof
    if (!isTooLong && !isLast) return 'incomplete'
    if (!wasQuoted || (isTooLong && secondLine < 0)) {
      cells.next = at
      return 'long'
    }
    cells.lines = secondLine < 0 ? 0 : 1
    cells.next = secondLine < 0 ? end : secondLine
    return 'unclosed'
  }

  function trailing(): Scanned {
    while (at < limit && bytes[at] !== NEWLINE) at++
    if (at < limit) {
      cells.lines++
      cells.next = at + 1
      return 'trailing'
    }
    if (!isEof) return cut()
    cells.next = end
    return 'trailing'
  }
}

function isBlank(byte: number): boolean {
  return byte === BLANK || byte === TAB
}

/** A record without its line end, unchanged, truncated at the limit. */
export function rowOf(bytes: Uint8Array, start: number, next: number): Uint8Array {
  let end = next
  if (end > start && bytes[end - 1] === NEWLINE) end--
  if (end > start && bytes[end - 1] === RETURN) end--
  return bytes.subarray(start, Math.min(end, start + LINE_BYTES_MAX))
}

/** The error of a record without usable cells. */
export function scanFault(cells: Cells, scanned: 'unclosed' | 'trailing' | 'long'): Fault {
  if (scanned === 'long') return { kind: 'long', column: 0, value: '', expected: LINE_BYTES_MAX }
  if (scanned === 'unclosed') return { kind: 'unclosed', column: cells.count + 1, value: '' }
  return faultAt(cells, 'trailing', cells.count - 1)
}

const decoder = new TextDecoder()

/** A cell for an error text: invalid UTF-8 is shown as U+FFFD, long text is truncated. */
export function cellText(cells: Cells, cell: number): string {
  if (cell >= cells.count || cell >= CELLS_KEPT) return ''
  const start = cells.starts[cell]
  const end = Math.min(cells.ends[cell], start + 4 * VALUE_CHARACTERS_MAX)
  return cutText(decoder.decode(cells.text.subarray(start, end)))
}

/** All cells of the record, for errors that concern no single cell. */
export function recordText(cells: Cells): string {
  const kept = Math.min(cells.count, CELLS_KEPT)
  return cutText(Array.from({ length: kept }, (_, cell) => cellText(cells, cell)).join(','))
}

function cutText(text: string): string {
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
}

/** The kept cells, as text. */
export function cellTexts(cells: Cells): string[] {
  return Array.from({ length: Math.min(cells.count, CELLS_KEPT) }, (_, cell) => cellText(cells, cell))
}

/**
 * The columns of a file whose header names them in another order than IMPORT_COLUMNS. The cells of each record are
 * rearranged, and the columns of its errors mapped back.
 */
export type ColumnOrder = readonly number[]

const movedStarts = new Int32Array(CELLS_KEPT)
const movedEnds = new Int32Array(CELLS_KEPT)

/** Brings the cells of the current record into the order of IMPORT_COLUMNS. */
export function arrangeCells(cells: Cells, order: ColumnOrder): void {
  movedStarts.set(cells.starts)
  movedEnds.set(cells.ends)
  for (let column = 0; column < order.length; column++) {
    cells.starts[column] = movedStarts[order[column]]
    cells.ends[column] = movedEnds[order[column]]
  }
}

/** An error of rearranged cells, with the column in the file. */
export function faultInFile(fault: Fault, order: ColumnOrder | undefined): Fault {
  if (order === undefined || fault.column === 0) return fault
  return { ...fault, column: order[fault.column - 1] + 1 }
}

/** Parses records of packages.csv; one per thread. Its fields hold the last package. */
export type PackageParser = ReturnType<typeof createPackageParser>

export function createPackageParser(codecs: CodecList, order?: ColumnOrder, priceDecimals = 0) {
  const encoder = new TextEncoder()
  return {
    codecs,
    codecBytes: codecs.names.map((name) => encoder.encode(name)),
    cells: createCells(),
    order,
    /** Of the price column. */
    priceDecimals,
    id: new Uint8Array(16),
    /** The room type is cells.text[roomStart, roomEnd). */
    roomStart: 0,
    roomEnd: 0,
    day: 0,
    availability: 0,
    price: 0,
    mask: 0,
  }
}

/**
 * Validates the six cells of the current record, after bringing them into the order of IMPORT_COLUMNS.
 *
 * @returns the first error, with the column in that order
 */
export function parsePackage(parser: PackageParser): Fault | undefined {
  const fault = arrangePackage(parser)
  if (fault) return fault
  for (const parse of COLUMNS) {
    const found = parse(parser)
    if (found) return found
  }
  return undefined
}

/** The same with every error. */
export function packageFaults(parser: PackageParser): Fault[] {
  const fault = arrangePackage(parser)
  return fault ? [fault] : COLUMNS.flatMap((parse) => parse(parser) ?? [])
}

const COLUMNS = [parseId, parseRoom, parseDate, parseAvailability, parsePrice, parseFeatures] as const

function arrangePackage({ cells, order }: PackageParser): Fault | undefined {
  if (cells.count !== PACKAGE_CELLS) {
    return {
      kind: 'columns',
      column: 0,
      value: recordText(cells),
      found: cells.count,
      expected: PACKAGE_CELLS,
    }
  }
  if (order) arrangeCells(cells, order)
  return undefined
}

function parseId({ cells, id }: PackageParser): Fault | undefined {
  const { text, starts, ends } = cells
  return packPropertyIdInto(text, starts[0], ends[0], id, 0) ? undefined : faultAt(cells, 'property_id', 0)
}

function parseRoom(parser: PackageParser): Fault | undefined {
  const { cells } = parser
  parser.roomStart = cells.starts[1]
  parser.roomEnd = cells.ends[1]
  return textFaultAt(cells, 1, LIMITS.nameBytesMax)
}

function parseDate(parser: PackageParser): Fault | undefined {
  const { cells } = parser
  const { text, starts, ends } = cells
  parser.day = ends[2] - starts[2] === 10 ? parseDayBytes(text, starts[2]) : -1
  return parser.day < 0 ? faultAt(cells, 'date', 2) : undefined
}

function parseAvailability(parser: PackageParser): Fault | undefined {
  const { cells } = parser
  parser.availability = wholeNumber(cells.text, cells.starts[3], cells.ends[3])
  return parser.availability <= LIMITS.availabilityMax ? undefined : faultAt(cells, 'availability', 3)
}

/**
 * `120`, or with decimals `120.50`. Without `--price-decimals` a point is refused even before zeros: a list whose prices
 * happen to end in .00 would become a hundredth of what it says.
 */
function parsePrice(parser: PackageParser): Fault | undefined {
  const { cells, priceDecimals } = parser
  const { text } = cells
  const start = cells.starts[4]
  const end = cells.ends[4]
  let dot = start
  while (dot < end && text[dot] !== 0x2e) dot++
  parser.price = wholeNumber(text, start, dot) * 10 ** priceDecimals
  if (dot < end && !Number.isNaN(parser.price)) {
    const decimals = end - dot - 1
    const fraction = wholeNumber(text, dot + 1, end)
    if (Number.isNaN(fraction)) return faultAt(cells, 'price', 4)
    if (decimals > priceDecimals)
      return { ...faultAt(cells, 'price_fraction', 4), reason: FRACTION[priceDecimals] ?? '' }
    parser.price += fraction * 10 ** (priceDecimals - decimals)
  }
  return parser.price <= LIMITS.priceMax ? undefined : faultAt(cells, 'price', 4)
}

/** By the decimals that the file is said to have. */
const FRACTION = [
  'has decimals; prices are whole numbers in your smallest unit, unless --price-decimals says how many decimals they have',
  ...[1, 2, 3, 4].map((most) => `has more decimals than --price-decimals ${most}`),
]

/** Names separated by `|`. Blanks around them are trimmed, empty ones and repeats ignored. Compared exactly. */
function parseFeatures(parser: PackageParser): Fault | undefined {
  const { cells, codecBytes, codecs } = parser
  const { text } = cells
  const end = cells.ends[5]
  let mask = 0
  for (let start = cells.starts[5]; start < end; ) {
    const bar = barFrom(text, start, end)
    const nameStart = skipBlanks(text, start, bar)
    const nameEnd = dropBlanks(text, nameStart, bar)
    if (nameStart < nameEnd) {
      const bit = codecBytes.findIndex((name) => isSameBytes(name, text, nameStart, nameEnd))
      if (bit < 0) {
        const value = cutText(decoder.decode(text.subarray(nameStart, Math.min(nameEnd, nameStart + 320))))
        return { kind: 'feature', column: 6, value, codecs: codecs.names }
      }
      mask |= 1 << bit
    }
    start = bar + 1
  }
  parser.mask = mask
  return undefined
}

/** @returns position of the next `|`, `end` if there is none */
export function barFrom(text: Uint8Array, start: number, end: number): number {
  let bar = start
  while (bar < end && text[bar] !== BAR) bar++
  return bar
}

export function skipBlanks(text: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && isBlank(text[at])) at++
  return at
}

export function dropBlanks(text: Uint8Array, start: number, end: number): number {
  let at = end
  while (at > start && isBlank(text[at - 1])) at--
  return at
}

function isSameBytes(name: Uint8Array, text: Uint8Array, start: number, end: number): boolean {
  if (name.length !== end - start) return false
  for (let i = 0; i < name.length; i++) {
    if (name[i] !== text[start + i]) return false
  }
  return true
}

/** @returns NaN for anything but digits. Large numbers lose digits but stay large */
export function wholeNumber(text: Uint8Array, start: number, end: number): number {
  if (start >= end) return Number.NaN
  let value = 0
  for (let i = start; i < end; i++) {
    const digit = text[i] - 0x30
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return value
}

export function faultAt(cells: Cells, kind: Fault['kind'], cell: number): Fault {
  return { kind, column: cell + 1, value: cellText(cells, cell) }
}

/** Names: valid UTF-8, no control characters, not empty or only blanks (docs/design/protocol.md#text-and-lists). */
export function textFaultAt(cells: Cells, cell: number, bytesMax: number): Fault | undefined {
  const start = cells.starts[cell]
  const end = cells.ends[cell]
  if (start === end) return { kind: 'empty', column: cell + 1, value: '' }
  const reason = textFault(cells.text, start, end, bytesMax)
  return reason === '' ? undefined : { kind: 'text', column: cell + 1, value: cellText(cells, cell), reason }
}
