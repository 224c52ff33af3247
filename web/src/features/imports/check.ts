/**
 * Checks a file before its upload by the rules of `build-snapshot`, record by record in any pieces of the file. Pure: the
 * worker reads the text.
 */
import { IMPORT_COLUMNS, importFileOf, LIMITS, otherSeparator, packPropertyId, readImportHeader } from '@vacancy/shared'
import type { FileKind } from '@vacancy/shared/contract'
import { distance } from 'fastest-levenshtein'
import * as copy from './check-copy.ts'

export const COLUMNS: Readonly<Record<FileKind, readonly string[]>> = IMPORT_COLUMNS

type Level = 'error' | 'warn' | 'info'

const FINDINGS = {
  header: 'error',
  'header-names': 'warn',
  order: 'info',
  columns: 'error',
  quote: 'error',
  long: 'error',
  text: 'error',
  utf8: 'error',
  nul: 'error',
  feature: 'error',
  features: 'error',
  date: 'error',
  availability: 'error',
  price: 'error',
  'price-decimals': 'error',
  latitude: 'error',
  longitude: 'error',
  digits: 'info',
  empty: 'error',
  id: 'error',
  stars: 'error',
  twice: 'error',
  'package-twice': 'error',
  unknown: 'error',
  rooms: 'warn',
  free: 'warn',
  past: 'warn',
} as const satisfies Record<keyof typeof copy.findings, Level>
type FindingKind = keyof typeof FINDINGS

export type Finding = {
  readonly file: FileKind
  readonly kind: FindingKind
  readonly level: Level
  count: number
  /** Of the first occurrence; null when it is in a piece from the middle of the file. */
  readonly line: number | null
  readonly example: string
}

type Preview = { readonly cells: readonly string[]; readonly bad: readonly number[] }

export type Checker = ReturnType<typeof createChecker>

/** Keys kept to find duplicates; in larger files only some are found. */
const KEPT_MAX = 2_000_000
const PREVIEW_ROWS = 50
/** A sample is the start of a file and pieces as long as the longest line. */
export const HEAD_BYTES = 1 << 20
export const PIECE_BYTES = 64 << 10
const PIECES = 32
const EXAMPLE_CHARACTERS = 80
const HEADER_CHARACTERS = 400
/** The builder rejects longer records as well. */
const LINE_BYTES_MAX = 65_536
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters.
const CONTROL = /[\u0000-\u001f\u007f]/
/** Whole part and decimals. */
const PRICE = /^(\d+)(?:\.(\d+))?$/
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/
const encoder = new TextEncoder()

export function createChecker(options: {
  readonly kind: FileKind
  readonly codecs: readonly string[] | undefined
  readonly today: string
  readonly lastDay: string
  readonly priceDecimals: number
  readonly knownIds?: ReadonlySet<string> | undefined
}) {
  const { kind, codecs, today, lastDay, priceDecimals, knownIds } = options
  return {
    kind,
    codecs: codecs && new Set(codecs),
    today,
    lastDay,
    priceDecimals,
    findings: new Map<FindingKind, Finding>(),
    preview: [] as Preview[],
    /** Property ids of properties.csv read so far. */
    ids: new Set<string>(),
    /** For packages: all property ids, if known. */
    knownIds,
    roomsOf: new Map<string, Set<string>>(),
    nights: new Set<string>(),
    rows: 0,
    bytes: 0,
    header: false,
    /** Position of each column in the file, if the header has another order. */
    order: undefined as readonly number[] | undefined,
    /** The header is invalid: rows are counted but not checked. */
    isRefused: false,
    /** Inside a line that is too long, up to its end. */
    isInLongLine: false,
    lastId: undefined as { readonly text: string; readonly key: string | undefined } | undefined,
  }
}

/**
 * Checks the complete records of a text.
 *
 * @param firstLine number of its first line; null when unknown
 * @param isLast nothing follows the text, so a record without line end is complete
 * @returns the number of lines read, and the start of the next record in the text
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
  /** Absent when the record is malformed. */
  readonly cells?: readonly string[]
  readonly fault?: 'quote' | 'long'
  /** Start of the next record; past the text when the line continues there. */
  readonly next: number
  readonly lines: number
}

/** @returns undefined when the text ends within the record */
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

/** A record with quotes, which may contain commas and line ends. */
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
  // A UTF-16 unit has at most three bytes in UTF-8, so most lines need no encoding.
  return line.length * 3 > LINE_BYTES_MAX && encoder.encode(line).length > LINE_BYTES_MAX
}

/**
 * Whether a piece from the middle of a file can be checked by itself. A line with an odd number of quotes starts or ends
 * a multi-line or malformed cell; then it is unknown whether the piece starts inside quotes.
 */
function isCertain(piece: string): boolean {
  if (!piece.includes('"')) return true
  return piece.split('\n').every((line) => line.split('"').length % 2 === 1)
}

/** Checks the complete lines of a piece from the middle of a file. @returns false when it cannot be checked by itself */
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
 * Positions of the sample pieces after the first MiB: one in each of equal slots, so that no two share a line, and one at
 * the end.
 *
 * @param random 0 to 1
 * @returns undefined for a file small enough to be read completely
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
  else if (cells.length !== wanted) report('columns', -1, copy.check.columnCount(cells.length, wanted, text))
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
    note(checker, 'header', line, copy.check.inLine(line, header.reason), HEADER_CHARACTERS)
    return true
  }
  checker.order = header.order
  if (header.order) note(checker, 'order', line, cells.join(','), HEADER_CHARACTERS)
  if (header.warning) note(checker, 'header-names', line, copy.check.inLine(line, header.warning), HEADER_CHARACTERS)
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
  // As in the builder, an invalid line does not count as a duplicate.
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
  checkPrice(checker, price, wrong, report)
  checkFeatures(checker, features, wrong)
  if (key === undefined) return
  if (checker.knownIds && !checker.knownIds.has(key)) wrong('unknown', 0, id)
  // Invalid and skipped packages do not count as duplicates.
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

function checkPrice({ priceDecimals }: Checker, price: string, wrong: Report, report: Report): void {
  const [, whole = '', decimals = ''] = PRICE.exec(price) ?? []
  if (whole === '') return wrong('price', 4, price)
  if (decimals.length > priceDecimals) return wrong('price-decimals', 4, price)
  const amount = Number(whole + decimals.padEnd(priceDecimals, '0'))
  if (amount > LIMITS.priceMax) wrong('price', 4, price)
  else if (amount === 0) report('free', 4, price)
}

/** @returns the same key for all spellings of an id; undefined for an invalid id */
function keyOf(checker: Checker, id: string, report: Report): string | undefined {
  // Consecutive lines mostly have the same id.
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
    findings.set(kind, { file, kind, level: FINDINGS[kind], count: 1, line, example: value.slice(0, charactersMax) })
  }
}

/** The cells of a record, unquoted and trimmed; undefined for malformed quotes. */
export function cellsOf(text: string): readonly string[] | undefined {
  return nextRecord(text, 0, true)?.cells
}

/** The kind of file that starts with this text, or why it is neither. */
export function kindOf(
  text: string,
): { readonly kind: FileKind; readonly fault: '' } | { readonly kind: undefined; readonly fault: string } {
  const start = text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0
  let line = 1
  for (let at = start; at < text.length; ) {
    const { cells, next, lines } = nextRecord(text, at, true) as TextRecord
    if (!cells) return { kind: undefined, fault: copy.fileFaults.brokenLine(line) }
    if (cells.length > 1 || cells[0] !== '') {
      const kind = importFileOf(cells)
      if (kind) return { kind, fault: '' }
      const separator = otherSeparator(cells)
      if (separator) return { kind: undefined, fault: separator }
      const hint = cells.some((cell) => cell.includes('\r')) ? copy.fileFaults.carriageReturns : ''
      const [properties, packages] = [COLUMNS.properties.length, COLUMNS.packages.length]
      return {
        kind: undefined,
        fault: copy.fileFaults.columns(cells.length, line, properties, packages) + hint,
      }
    }
    at = next
    line += lines
  }
  return { kind: undefined, fault: copy.fileFaults.noRows }
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
    // The distance is at least the difference of lengths: a cell of 64 KB is not compared.
    if (Math.abs(name.length - codec.length) >= least) continue
    const far = distance(name.toLowerCase(), codec.toLowerCase())
    if (far < least) [nearest, least] = [codec, far]
  }
  return nearest === '' ? name : copy.check.nearest(name, nearest)
}
