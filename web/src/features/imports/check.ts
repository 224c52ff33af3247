/**
 * What is wrong with a file, found before a byte of it is sent: the same rules as `build-snapshot`, record by record from
 * whichever pieces of the file are read. Pure: the worker brings the text.
 */
import { IMPORT_COLUMNS, importFileOf, LIMITS, packPropertyId, readImportHeader } from '@vacancy/shared'
import type { FileKind } from '@vacancy/shared/contract'
import { distance } from 'fastest-levenshtein'

export const COLUMNS: Readonly<Record<FileKind, readonly string[]>> = IMPORT_COLUMNS

type Level = 'error' | 'warn' | 'info'
type Spec = { readonly level: Level; readonly says: string; readonly act: string }

export const FINDINGS = {
  header: {
    level: 'error',
    says: 'the header does not name the columns of the file',
    act: 'Correct the header, or remove it: files without a header are read by position.',
  },
  'header-names': {
    level: 'warn',
    says: 'unknown column names: read by position',
    act: 'Verify in the preview that each column holds what its heading says.',
  },
  order: {
    level: 'info',
    says: 'columns in another order: read by name',
    act: 'Nothing; packages in the documented order are read faster.',
  },
  columns: {
    level: 'error',
    says: 'wrong number of columns',
    act: 'Separate cells by commas; put a cell that holds one into quotes.',
  },
  quote: {
    level: 'error',
    says: 'a quote is not closed, or text follows it',
    act: 'Double quotes inside a quoted cell.',
  },
  long: {
    level: 'error',
    says: 'line longer than 65,536 bytes',
    act: 'Check its line ends and quotes.',
  },
  text: {
    level: 'error',
    says: 'name with a line end or another control character, blank, or longer than 255 bytes',
    act: 'Correct the name.',
  },
  utf8: { level: 'error', says: 'not UTF-8', act: 'Export the file as UTF-8.' },
  nul: { level: 'error', says: 'holds NUL bytes: no text', act: 'Export the file as CSV.' },
  feature: {
    level: 'error',
    says: 'rate feature is not in the codec list',
    act: 'Mend the name, or change the codec list first: the import would stop.',
  },
  features: { level: 'error', says: 'more than 24 rate features', act: 'Leave the others out.' },
  date: { level: 'error', says: 'date is no day YYYY-MM-DD', act: 'Write dates as 2026-11-24.' },
  availability: { level: 'error', says: 'availability is not a whole number 0–255', act: 'Cut larger numbers to 255.' },
  price: {
    level: 'error',
    says: 'price is not a whole number 0–4294967294',
    act: 'Prices are whole numbers of the smallest unit; 120.00 is taken.',
  },
  latitude: {
    level: 'error',
    says: 'latitude is not −90 to 90',
    act: 'Check whether latitude and longitude are swapped.',
  },
  longitude: { level: 'error', says: 'longitude is not −180 to 180', act: 'Use a decimal point.' },
  digits: { level: 'info', says: 'position without six fractional digits', act: 'Nothing; six digits are 10 cm.' },
  empty: {
    level: 'error',
    says: 'empty name',
    act: 'Each property has an id, a segment, an area, a type and a category; each package a room type.',
  },
  id: {
    level: 'error',
    says: 'property id is neither a UUID nor 1–14 printable ASCII characters',
    act: 'Use a UUID, or 1–14 letters, digits and signs of ASCII.',
  },
  stars: { level: 'error', says: 'stars are not a whole number 1–5', act: 'Round them.' },
  twice: { level: 'error', says: 'the same property twice', act: 'Keep one of the lines.' },
  'package-twice': { level: 'error', says: 'the same property, room and date twice', act: 'Keep one of the lines.' },
  unknown: {
    level: 'error',
    says: 'package of a property that properties.csv lacks',
    act: 'Add the property, or leave the package out.',
  },
  rooms: {
    level: 'warn',
    says: 'more than 10 room types of a property',
    act: 'Check the names for variants of one room.',
  },
  free: { level: 'warn', says: 'price 0', act: 'Check whether the price is missing.' },
  past: {
    level: 'warn',
    says: 'date before today or past the usual window',
    act: 'Such packages are left out and counted.',
  },
} as const satisfies { readonly [kind: string]: Spec }
type FindingKind = keyof typeof FINDINGS

export type Finding = {
  readonly file: FileKind
  readonly kind: FindingKind
  readonly level: Level
  count: number
  /** Of the first one; null where only a piece from the middle was read. */
  readonly line: number | null
  readonly example: string
}

export type Preview = { readonly cells: readonly string[]; readonly bad: readonly number[] }

export type Checker = {
  readonly kind: FileKind
  readonly codecs: ReadonlySet<string> | undefined
  readonly today: string
  readonly lastDay: string
  readonly findings: Map<FindingKind, Finding>
  readonly preview: Preview[]
  /** Property ids of properties.csv, as far as they were read. */
  readonly ids: Set<string>
  /** Of the packages, whether all ids are known: only then a missing one is sure. */
  readonly knownIds: ReadonlySet<string> | undefined
  readonly roomsOf: Map<string, Set<string>>
  readonly nights: Set<string>
  rows: number
  bytes: number
  header: boolean
  /** Where the file holds each column, when its header names them in another order. */
  order: readonly number[] | undefined
  /** The header was refused: rows are counted, but what their cells mean is not known. */
  isRefused: boolean
  /** Inside a line that is too long, up to its end. */
  isInLongLine: boolean
  lastId: { readonly text: string; readonly key: string | undefined } | undefined
}

/** Keys that are kept to find repeats: of a larger file only some are found. */
const KEPT_MAX = 2_000_000
const PREVIEW_ROWS = 50
/** A sample is the beginning of a file, and pieces that are as long as the longest line. */
export const HEAD_BYTES = 1 << 20
export const PIECE_BYTES = 64 << 10
const PIECES = 32
const EXAMPLE_CHARACTERS = 80
const HEADER_CHARACTERS = 400
/** A longer record is refused, by the builder, too. */
const LINE_BYTES_MAX = 65_536
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f]/
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/
const encoder = new TextEncoder()

export function createChecker(options: {
  readonly kind: FileKind
  readonly codecs: readonly string[] | undefined
  readonly today: string
  readonly lastDay: string
  readonly knownIds?: ReadonlySet<string> | undefined
}): Checker {
  const { kind, codecs, today, lastDay, knownIds } = options
  return {
    kind,
    codecs: codecs && new Set(codecs),
    today,
    lastDay,
    findings: new Map(),
    preview: [],
    ids: new Set(),
    knownIds,
    roomsOf: new Map(),
    nights: new Set(),
    rows: 0,
    bytes: 0,
    header: false,
    order: undefined,
    isRefused: false,
    isInLongLine: false,
    lastId: undefined,
  }
}

/**
 * Reads the whole records of a text.
 *
 * @param firstLine number of its first line; null when that is not known
 * @param isLast nothing follows the text: a record that has no line end is whole
 * @returns the lines that were read, and where in the text the next record begins
 */
export function checkLines(
  checker: Checker,
  text: string,
  firstLine: number | null,
  isLast = true,
): { readonly lines: number; readonly end: number } {
  let at = firstLine === 1 && text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0
  let lines = 0
  if (checker.isInLongLine) {
    at = text.indexOf('\n') + 1
    if (at === 0) return { lines: 0, end: text.length }
    checker.isInLongLine = false
    lines = 1
  }
  while (at < text.length) {
    const record = nextRecord(text, at, isLast)
    if (record === undefined) break
    checkRecord(checker, record, text.slice(at, record.next), firstLine === null ? null : firstLine + lines)
    if (record.next > text.length) checker.isInLongLine = true
    lines += record.lines
    at = Math.min(record.next, text.length)
  }
  return { lines, end: at }
}

type TextRecord = {
  /** Absent when the record has a fault. */
  readonly cells?: readonly string[]
  readonly fault?: 'quote' | 'long'
  /** Where the next one begins; behind the text when the line continues there. */
  readonly next: number
  readonly lines: number
}

/** @returns undefined when the text ends before the record does */
function nextRecord(text: string, start: number, isLast: boolean): TextRecord | undefined {
  const newline = text.indexOf('\n', start)
  const end = newline < 0 ? text.length : newline
  const line = text.slice(start, end > start && text.charCodeAt(end - 1) === RETURN ? end - 1 : end)
  if (line.includes('"')) return quotedRecord(text, start, isLast)
  if (isTooLong(line)) return { fault: 'long', next: newline < 0 && !isLast ? text.length + 1 : end + 1, lines: 1 }
  if (newline < 0 && !isLast) return undefined
  return { cells: line.split(',').map(withoutBlanks), next: end + 1, lines: 1 }
}

const RETURN = 0x0d
const BYTE_ORDER_MARK = 0xfeff

/** A record with quotes: commas and line ends inside of them are data. */
function quotedRecord(text: string, start: number, isLast: boolean): TextRecord | undefined {
  const bound = start + LINE_BYTES_MAX
  const limit = Math.min(text.length, bound)
  const isEnd = isLast && text.length <= bound
  const cells: string[] = []
  let secondLine = -1
  let lines = 0
  let at = start
  const cut = (): TextRecord | undefined => {
    const isLong = limit === bound && !isEnd
    if (!isLong && !isLast) return undefined
    if (secondLine >= 0) return { fault: 'quote', next: secondLine, lines: 1 }
    const newline = text.indexOf('\n', at)
    if (newline >= 0) return { fault: isLong ? 'long' : 'quote', next: newline + 1, lines: 1 }
    return { fault: isLong ? 'long' : 'quote', next: isLast ? text.length : text.length + 1, lines: 1 }
  }
  for (;;) {
    while (isBlank(text.charCodeAt(at))) at++
    if (text[at] === '"') {
      let cell = ''
      for (at++; ; ) {
        const quote = text.indexOf('"', at)
        const part = text.slice(at, quote < 0 ? limit : Math.min(quote, limit))
        const newline = part.indexOf('\n')
        if (newline >= 0) {
          if (secondLine < 0) secondLine = at + newline + 1
          lines += part.split('\n').length - 1
        }
        if (quote < 0 || quote >= limit || (quote + 1 >= limit && !isEnd)) return cut()
        cell += part
        at = quote + 1
        if (text[at] !== '"') break
        cell += '"'
        at++
      }
      while (isBlank(text.charCodeAt(at))) at++
      cells.push(cell)
      if (text.charCodeAt(at) === RETURN && (at + 1 >= limit || text[at + 1] === '\n')) {
        if (at + 1 >= limit && !isEnd) return cut()
        at++
      }
      if (at < limit && text[at] !== ',' && text[at] !== '\n') {
        const newline = text.indexOf('\n', at)
        if (newline < 0 && !isLast) return cut()
        return { fault: 'quote', next: newline < 0 ? text.length : newline + 1, lines: lines + 1 }
      }
    } else {
      const from = at
      while (at < limit && text[at] !== ',' && text[at] !== '\n') at++
      if (at >= limit && !isEnd) return cut()
      const isLineEnd = at >= limit || text[at] === '\n'
      cells.push(withoutBlanks(text.slice(from, isLineEnd && text.charCodeAt(at - 1) === RETURN ? at - 1 : at)))
    }
    if (at >= limit) return isEnd ? { cells, next: text.length, lines: lines + 1 } : cut()
    if (text[at] === '\n') return { cells, next: at + 1, lines: lines + 1 }
    at++
  }
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function withoutBlanks(cell: string): string {
  let [start, end] = [0, cell.length]
  while (start < end && isBlank(cell.charCodeAt(start))) start++
  while (end > start && isBlank(cell.charCodeAt(end - 1))) end--
  return start === 0 && end === cell.length ? cell : cell.slice(start, end)
}

function isTooLong(line: string): boolean {
  // A UTF-16 unit has at most three bytes, so most lines need no count.
  return line.length * 3 > LINE_BYTES_MAX && encoder.encode(line).length > LINE_BYTES_MAX
}

/**
 * Whether a piece from the middle of a file may be read by itself. A line with an odd number of quotes begins or ends a
 * cell of several lines, or a broken one: then whether the piece began inside of quotes is not known, nor what its lines are.
 */
function isCertain(piece: string): boolean {
  if (!piece.includes('"')) return true
  return piece.split('\n').every((line) => line.split('"').length % 2 === 1)
}

/** Reads the whole lines of a piece from the middle of a file. @returns false when it cannot be judged by itself */
export function checkPiece(checker: Checker, piece: string, isEnd: boolean): boolean {
  const first = piece.indexOf('\n') + 1
  if (first === 0 && isTooLong(`${piece}\n`)) note(checker, 'long', null, piece)
  const last = isEnd ? piece.length : piece.lastIndexOf('\n') + 1
  const lines = piece.slice(first, last)
  if (first === 0 || !isCertain(lines)) return false
  checker.isInLongLine = false
  checkLines(checker, lines, null)
  return true
}

/**
 * Where the pieces of a sample begin, behind the first MiB: one in each of equal slots, so that no two of them share a
 * line, and one at the end.
 *
 * @param random 0 to 1
 * @returns undefined for a file that is small enough to be read whole
 */
export function samplePlaces(fileBytes: number, random: () => number): number[] | undefined {
  const end = fileBytes - PIECE_BYTES
  const slotBytes = Math.floor((end - HEAD_BYTES) / PIECES)
  if (slotBytes < PIECE_BYTES) return undefined
  const places = Array.from(
    { length: PIECES },
    (_, slot) => HEAD_BYTES + slot * slotBytes + Math.floor(random() * (slotBytes - PIECE_BYTES)),
  )
  return [...places, end]
}

function checkRecord(checker: Checker, { cells, fault }: TextRecord, given: string, line: number | null): void {
  const text = given.replace(/\r?\n$/, '')
  if (cells?.length === 1 && cells[0] === '' && !text.includes('"')) return
  if (cells && checker.rows === 0 && !checker.header && line !== null && isHeader(checker, cells, line)) return
  checker.rows++
  if (checker.isRefused) return
  const bad: number[] = []
  const report = (kind: FindingKind, cell: number, value: string) => {
    if (cell >= 0) bad.push(cell)
    note(checker, kind, line, value)
  }
  if (text.includes('\ufffd')) report('utf8', -1, text)
  if (text.includes('\0')) report('nul', -1, text)
  const { kind, order } = checker
  const wanted = COLUMNS[kind].length
  let shown: readonly string[] = cells ?? [text]
  if (!cells) report(fault ?? 'quote', -1, text)
  else if (cells.length !== wanted) report('columns', -1, `${cells.length} columns instead of ${wanted}: ${text}`)
  else {
    shown = order ? order.map((place) => cells[place] as string) : cells
    if (kind === 'properties') checkProperty(checker, shown, report)
    else checkPackage(checker, shown, report)
  }
  if (checker.preview.length < PREVIEW_ROWS && line !== null) checker.preview.push({ cells: shown, bad })
}

function isHeader(checker: Checker, cells: readonly string[], line: number): boolean {
  const header = readImportHeader(checker.kind, cells)
  if (header.kind === 'none') return false
  checker.header = true
  if (header.kind === 'refused') {
    checker.isRefused = true
    note(checker, 'header', line, `line ${line} ${header.reason}`, HEADER_CHARACTERS)
    return true
  }
  checker.order = header.order
  if (header.order) note(checker, 'order', line, cells.join(','), HEADER_CHARACTERS)
  if (header.warning) note(checker, 'header-names', line, `line ${line} ${header.warning}`, HEADER_CHARACTERS)
  return true
}

type Report = (kind: FindingKind, cell: number, value: string) => void

function checkProperty(checker: Checker, cells: readonly string[], report: Report): void {
  const [id = '', segment = '', area = '', type = '', category = '', stars = '', latitude = '', longitude = ''] = cells
  let isRight = true
  const wrong: Report = (...found) => {
    isRight = false
    report(...found)
  }
  const key = keyOf(checker, id, wrong)
  for (const [at, name] of [segment, area, type, category].entries()) checkName(name, at + 1, cells, wrong)
  if (!/^0*[1-5]$/.test(stars)) wrong('stars', 5, stars)
  if (!isDegrees(latitude, 90)) wrong('latitude', 6, latitude)
  if (!isDegrees(longitude, 180)) wrong('longitude', 7, longitude)
  if (!/\.\d{6}$/.test(latitude) || !/\.\d{6}$/.test(longitude)) report('digits', -1, `${latitude}, ${longitude}`)
  if (key === undefined) return
  // As the builder: a line that is wrong in itself is not a repeat as well.
  if (!checker.ids.has(key)) checker.ids.add(key)
  else if (isRight) report('twice', 0, id)
}

function checkPackage(checker: Checker, cells: readonly string[], report: Report): void {
  const [id = '', room = '', date = '', availability = '', price = '', features = ''] = cells
  let isRight = true
  const wrong: Report = (...found) => {
    isRight = false
    report(...found)
  }
  const key = keyOf(checker, id, wrong)
  checkName(room, 1, cells, wrong)
  const isInWindow = date >= checker.today && date <= checker.lastDay
  if (!isDay(date)) wrong('date', 2, date)
  else if (!isInWindow) report('past', 2, date)
  if (!/^\d+$/.test(availability) || Number(availability) > LIMITS.availabilityMax) {
    wrong('availability', 3, availability)
  }
  if (!/^\d+(?:\.0+)?$/.test(price) || Number(price) > LIMITS.priceMax) wrong('price', 4, price)
  else if (Number(price) === 0) report('free', 4, price)
  checkFeatures(checker, features, wrong)
  if (key === undefined) return
  if (checker.knownIds && !checker.knownIds.has(key)) wrong('unknown', 0, id)
  // Neither what is wrong nor what is left out takes the place of a package.
  if (!isRight || !isInWindow) return
  const rooms = checker.roomsOf.get(key)
  if (rooms) {
    if (!rooms.has(room)) {
      rooms.add(room)
      if (rooms.size === 11) report('rooms', 1, `${id}: ${room}`)
    }
  } else if (checker.roomsOf.size < KEPT_MAX) checker.roomsOf.set(key, new Set([room]))
  const night = `${key},${room},${date}`
  if (checker.nights.has(night)) report('package-twice', -1, night)
  else if (checker.nights.size < KEPT_MAX) checker.nights.add(night)
}

/** @returns what two spellings of one id have in common; undefined when it is not an id */
function keyOf(checker: Checker, id: string, report: Report): string | undefined {
  // Neighbours in a file mostly share their id.
  if (checker.lastId?.text !== id) {
    const packed = packPropertyId(id)
    checker.lastId = { text: id, key: packed && String.fromCharCode(...packed) }
  }
  const { key } = checker.lastId
  if (key === undefined) report(id === '' ? 'empty' : 'id', 0, id)
  return key
}

function checkName(name: string, cell: number, cells: readonly string[], report: Report): void {
  if (name === '') return report('empty', cell, cells.join(','))
  const isLong = name.length * 3 > LIMITS.nameBytesMax && encoder.encode(name).length > LIMITS.nameBytesMax
  if (isLong || CONTROL.test(name) || /^ +$/.test(name)) report('text', cell, JSON.stringify(name))
}

function checkFeatures({ codecs }: Checker, features: string, report: Report): void {
  if (features === '') return
  const names = new Set(features.split('|').map(withoutBlanks))
  names.delete('')
  for (const name of names) {
    if (codecs && !codecs.has(name)) report('feature', 5, withNearest(name, codecs))
  }
  if (names.size > 24) report('features', 5, features)
}

function note(
  { findings, kind: file }: Checker,
  kind: FindingKind,
  line: number | null,
  value: string,
  charactersMax = EXAMPLE_CHARACTERS,
): void {
  const found = findings.get(kind)
  if (found) found.count++
  else {
    const { level } = FINDINGS[kind]
    findings.set(kind, { file, kind, level, count: 1, line, example: value.slice(0, charactersMax) })
  }
}

/** The cells of one record, unquoted and trimmed; undefined when its quotes are wrong. */
export function cellsOf(text: string): readonly string[] | undefined {
  return nextRecord(text, 0, true)?.cells
}

/** Which of the two files a text is the beginning of, or what its first line with data looks like instead. */
export function kindOf(
  text: string,
): { readonly kind: FileKind; readonly fault: '' } | { readonly kind: undefined; readonly fault: string } {
  const start = text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0
  let line = 1
  for (let at = start; at < text.length; ) {
    const { cells, next, lines } = nextRecord(text, at, true) as TextRecord
    if (!cells)
      return { kind: undefined, fault: `has a quote that is not closed, or a line that is too long, in line ${line}` }
    if (cells.length > 1 || cells[0] !== '') {
      const kind = importFileOf(cells)
      if (kind) return { kind, fault: '' }
      const hint = cells.some((cell) => cell.includes('\r')) ? '; lines end with a carriage return alone' : ''
      const [properties, packages] = [COLUMNS.properties.length, COLUMNS.packages.length]
      const found = `${cells.length} ${cells.length === 1 ? 'column' : 'columns'}`
      return {
        kind: undefined,
        fault: `has ${found} in line ${line}; properties have ${properties}, packages ${packages}${hint}`,
      }
    }
    at = next
    line += lines
  }
  return { kind: undefined, fault: 'has no rows' }
}

export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const [month, day] = [Number(text.slice(5, 7)), Number(text.slice(8))]
  if (month < 1 || month > 12 || day < 1) return false
  return day <= 28 || day <= new Date(Date.UTC(Number(text.slice(0, 4)), month, 0)).getUTCDate()
}

function isDegrees(text: string, most: number): boolean {
  return NUMBER.test(text) && Math.abs(Number(text)) <= most
}

function withNearest(name: string, codecs: ReadonlySet<string>): string {
  let nearest = ''
  let least = 3
  for (const codec of codecs) {
    // No text is nearer than their lengths are: a cell of 64 KB is not compared.
    if (Math.abs(name.length - codec.length) >= least) continue
    const far = distance(name.toLowerCase(), codec.toLowerCase())
    if (far < least) [nearest, least] = [codec, far]
  }
  return nearest === '' ? name : `${name} (nearest: ${nearest})`
}
