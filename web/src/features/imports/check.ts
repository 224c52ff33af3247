/**
 * What is wrong with a file, told before a byte of it is sent (console.md §8.2): the same rules as `build-snapshot`, read
 * line by line from whichever pieces of the file are looked at. Pure: the worker brings the bytes.
 */
import type { FileKind } from '@vacancy/shared/contract'

export const COLUMNS: Readonly<Record<FileKind, readonly string[]>> = {
  properties: [
    'PropertyID',
    'Segment',
    'Area',
    'PropertyType',
    'Category',
    'Stars',
    'Latitude',
    'Longitude',
    'Amenities',
  ],
  packages: ['PropertyID', 'RoomType', 'Date', 'Availability', 'FinalPrice', 'RateFeature'],
}

type Level = 'error' | 'warn' | 'info'
type Spec = { readonly level: Level; readonly says: string; readonly act: string }

export const FINDINGS = {
  columns: {
    level: 'error',
    says: 'wrong number of positions',
    act: 'Separate cells by commas; put a cell that holds one into quotes.',
  },
  quote: {
    level: 'error',
    says: 'a quote is not closed, or text follows it',
    act: 'Double quotes inside a quoted cell.',
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
    act: 'Shorten the id.',
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
export type FindingKind = keyof typeof FINDINGS

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
}

/** Keys that are kept to find repeats: of a larger file only some are found. */
const KEPT_MAX = 2_000_000
const PREVIEW_ROWS = 50
const EXAMPLE_CHARACTERS = 80
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-57][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
const SHORT_ID = /^[\x20-\x7e]{1,14}$/

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
  }
}

/** Reads whole lines. @param firstLine number of the first of them; null when nobody knows */
export function checkLines(checker: Checker, text: string, firstLine: number | null): number {
  let line = firstLine
  let start = 0
  let lines = 0
  while (start < text.length) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    const isReturn = end > start && text.charCodeAt(end - 1) === 13
    checkLine(checker, text.slice(start, isReturn ? end - 1 : end), line)
    lines++
    if (line !== null) line++
    start = end + 1
  }
  return lines
}

function checkLine(checker: Checker, given: string, line: number | null): void {
  const text = line === 1 && given.charCodeAt(0) === 0xfeff ? given.slice(1) : given
  if (text.trim() === '') return
  const isFirst = checker.rows === 0 && !checker.header && line !== null
  const cells = cellsOf(text)
  const bad: number[] = []
  const report = (kind: FindingKind, cell: number, value: string) => {
    if (cell >= 0) bad.push(cell)
    note(checker, kind, line, value)
  }
  if (cells && isFirst && isHeaderCell(cells[0] ?? '')) {
    checker.header = true
    return
  }
  checker.rows++
  if (text.includes('\ufffd')) report('utf8', -1, text)
  if (text.includes('\0')) report('nul', -1, text)
  if (!cells) report('quote', -1, text)
  else if (cells.length !== COLUMNS[checker.kind].length) report('columns', -1, text)
  else if (checker.kind === 'properties') checkProperty(checker, cells, report)
  else checkPackage(checker, cells, report)
  if (checker.preview.length < PREVIEW_ROWS && line !== null) checker.preview.push({ cells: cells ?? [text], bad })
}

type Report = (kind: FindingKind, cell: number, value: string) => void

function checkProperty(checker: Checker, cells: readonly string[], report: Report): void {
  const [id = '', segment = '', area = '', type = '', category = '', stars = '', latitude = '', longitude = ''] = cells
  checkId(id, report)
  for (const [at, name] of [segment, area, type, category].entries())
    if (name === '') report('empty', at + 1, cells.join(','))
  if (!/^[1-5]$/.test(stars)) report('stars', 5, stars)
  if (!isDegrees(latitude, 90)) report('latitude', 6, latitude)
  if (!isDegrees(longitude, 180)) report('longitude', 7, longitude)
  if (!/\.\d{6}$/.test(latitude) || !/\.\d{6}$/.test(longitude)) report('digits', -1, `${latitude}, ${longitude}`)
  const key = id.toLowerCase()
  if (checker.ids.has(key)) report('twice', 0, id)
  else checker.ids.add(key)
}

function checkPackage(checker: Checker, cells: readonly string[], report: Report): void {
  const [id = '', room = '', date = '', availability = '', price = '', features = ''] = cells
  checkId(id, report)
  if (room === '') report('empty', 1, cells.join(','))
  if (!isDay(date)) report('date', 2, date)
  else if (date < checker.today || date > checker.lastDay) report('past', 2, date)
  if (!/^\d{1,3}$/.test(availability) || Number(availability) > 255) report('availability', 3, availability)
  if (!/^\d{1,10}(?:\.0*)?$/.test(price) || Number(price) > 4_294_967_294) report('price', 4, price)
  else if (Number(price) === 0) report('free', 4, price)
  checkFeatures(checker, features, report)
  const key = id.toLowerCase()
  if (checker.knownIds && !checker.knownIds.has(key)) report('unknown', 0, id)
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

function checkFeatures({ codecs }: Checker, features: string, report: Report): void {
  if (features === '') return
  const names = features.split('|')
  let known = 0
  for (const given of names) {
    const name = given.trim()
    if (name === '') continue
    known++
    if (codecs && !codecs.has(name)) report('feature', 5, withNearest(name, codecs))
  }
  if (known > 24) report('features', 5, features)
}

function checkId(id: string, report: Report): void {
  if (id === '') report('empty', 0, id)
  else if (!SHORT_ID.test(id) && !UUID.test(id)) report('id', 0, id)
}

function note({ findings, kind: file }: Checker, kind: FindingKind, line: number | null, value: string): void {
  const found = findings.get(kind)
  if (found) found.count++
  else
    findings.set(kind, {
      file,
      kind,
      level: FINDINGS[kind].level,
      count: 1,
      line,
      example: value.slice(0, EXAMPLE_CHARACTERS),
    })
}

/** The cells of a line, unquoted and trimmed; undefined when its quotes are wrong. */
export function cellsOf(text: string): string[] | undefined {
  if (!text.includes('"')) return text.split(',').map((cell) => cell.trim())
  const cells: string[] = []
  let at = 0
  for (;;) {
    while (text[at] === ' ' || text[at] === '\t') at++
    if (text[at] === '"') {
      let cell = ''
      for (at++; ; at++) {
        if (at >= text.length) return undefined
        if (text[at] !== '"') cell += text[at]
        else if (text[at + 1] === '"') cell += text[at++]
        else break
      }
      at++
      while (text[at] === ' ' || text[at] === '\t') at++
      if (at < text.length && text[at] !== ',') return undefined
      cells.push(cell.trim())
    } else {
      const comma = text.indexOf(',', at)
      const end = comma < 0 ? text.length : comma
      cells.push(text.slice(at, end).trim())
      at = end
    }
    if (at >= text.length) return cells
    at++
  }
}

/** Which of the two files a beginning is of; undefined when neither. */
export function kindOf(text: string): FileKind | undefined {
  for (const line of text.replace(/^\ufeff/, '').split('\n')) {
    if (line.trim() === '') continue
    const cells = cellsOf(line.replace(/\r$/, ''))
    if (!cells) return undefined
    if (isHeaderCell(cells[0] ?? ''))
      return cells.length === 9 ? 'properties' : cells.length === 6 ? 'packages' : undefined
    if (cells.length === 9) return 'properties'
    return cells.length === 6 ? 'packages' : undefined
  }
  return undefined
}

function isHeaderCell(cell: string): boolean {
  return cell.toLowerCase().replaceAll(/[_\-\s]/g, '') === 'propertyid'
}

export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const [month, day] = [Number(text.slice(5, 7)), Number(text.slice(8))]
  if (month < 1 || month > 12 || day < 1) return false
  return day <= 28 || day <= new Date(Date.UTC(Number(text.slice(0, 4)), month, 0)).getUTCDate()
}

function isDegrees(text: string, most: number): boolean {
  return /^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(text) && Math.abs(Number(text)) <= most
}

function withNearest(name: string, codecs: ReadonlySet<string>): string {
  let nearest = ''
  let least = 3
  for (const codec of codecs) {
    const distance = editDistance(name.toLowerCase(), codec.toLowerCase(), least)
    if (distance < least) [nearest, least] = [codec, distance]
  }
  return nearest === '' ? name : `${name} (nearest: ${nearest})`
}

/** Levenshtein's, as far as it is below `most`. */
function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
