/**
 * Random packages.csv files, valid and invalid, and a slow reference parser to compare with: it splits the whole file
 * with a regular expression and parses values with regular expressions.
 */

import { formatDay } from '@vacancy/shared'
import type { Random } from '@vacancy/testkit/random'

export const CODECS = ['free_cancellation', 'non_refundable', 'breakfast', 'Frühstück', 'late', 'free_wifi']
export const FIRST_DAY = 20_700
/** Not a multiple of 16, so that the last chunk of a row is partial. */
export const DAYS = 75
export const PROPERTIES = [
  'p',
  'p_1',
  'hotel_123',
  'abcdefghijklmn',
  'a b',
  '!x"y"',
  'x',
  '"x"',
  '550e8400-e29b-41d4-a716-446655440000',
  'F47AC10B-58CC-4372-A567-0E02B2C3D479',
  ...Array.from({ length: 40 }, (_, i) => `s${i % 3}_p${i}`),
]
const ROOMS = ['r', 'room1', 'room2', 'Doppelzimmer Süd', 'a room type of more than sixteen bytes', '客室', 'x"y']
const LONG_ROOM = 'l'.repeat(255)

/** The properties of random packages. */
export function propertiesFile(): string[] {
  return PROPERTIES.map((id, i) => {
    const names = `segment ${i % 3},area ${i % 5},${['hotel', 'hostel'][i % 2]},c${i % 4}`
    return `${quotedIfNeeded(id)},${names},${1 + (i % 5)},${i / 2},${-i},a|b${i % 2}\n`
  })
}

export type FileOptions = {
  readonly lines: number
  /** One in this many lines is corrupted; 0 for none. */
  readonly spoilOneIn: number
  /** One in this many lines is written in an unusual but equivalent way; 0 for none. */
  readonly varyOneIn: number
  readonly order: 'grouped' | 'shuffled'
  /** Of prices; none by default. */
  readonly decimals?: number
}

/** @returns the bytes of a file without a header */
export function randomPackages(random: Random, options: FileOptions): Uint8Array {
  const crlf = random.below(4) === 0
  const parts: Uint8Array[] = []
  const encoder = new TextEncoder()
  const used = new Set<string>()
  let [property, room, day, features] = [0, 0, 0, '']
  for (let line = 0; line < options.lines; line++) {
    const isChange = options.order === 'shuffled' || random.below(20) === 0
    if (isChange) {
      property = random.below(PROPERTIES.length)
      room = random.below(ROOMS.length + 1)
    }
    if (isChange || random.below(3) === 0) features = randomFeatures(random)
    day = isChange ? FIRST_DAY - 8 + random.below(DAYS + 16) : day + 1
    const cells = [
      PROPERTIES[property],
      ROOMS[room] ?? LONG_ROOM,
      formatDay(day),
      String(random.below(random.below(8) === 0 ? 256 : 20)),
      randomPrice(random, options.decimals ?? 0),
      features,
    ]
    // A repeated row is an error, so it is kept only when errors are wanted.
    const key = cells.slice(0, 3).join('|')
    if (used.has(key) && (options.spoilOneIn === 0 || random.below(options.spoilOneIn) > 0)) continue
    used.add(key)
    if (options.spoilOneIn > 0 && random.below(options.spoilOneIn) === 0) {
      const column = random.below(cells.length)
      const values = EDGES[column] as readonly string[]
      cells[column] = values[random.below(values.length)]
    }
    const isVaried = options.varyOneIn > 0 && random.below(options.varyOneIn) === 0
    const text =
      (isVaried ? varied(random, cells, options.decimals ?? 0) : cells.map(quotedIfNeeded).join(',')) +
      (crlf || random.below(50) === 0 ? '\r\n' : '\n')
    const bytes = encoder.encode(text)
    const isSpoiled = options.spoilOneIn > 0 && random.below(options.spoilOneIn) === 0
    parts.push(isSpoiled ? spoiled(random, bytes) : bytes)
    if (options.varyOneIn > 0 && random.below(40) === 0) parts.push(encoder.encode(crlf ? '\r\n' : ' \n'))
  }
  const bytes = Buffer.concat(parts)
  return bytes.length > 0 && random.below(3) === 0 ? bytes.subarray(0, bytes.length - 1) : bytes
}

function randomFeatures(random: Random): string {
  return CODECS.filter(() => random.below(2) === 0).join('|')
}

function randomPrice(random: Random, decimals: number): string {
  const digits = 1 + random.below(random.below(6) === 0 ? 10 : 4)
  const whole = Math.floor(Math.min(random.below(10 ** digits), 4_294_967_294) / 10 ** decimals)
  const written = random.below(decimals + 1)
  if (written === 0) return String(whole)
  // The highest price has no room for more.
  const fraction = whole >= Math.floor(4_294_967_294 / 10 ** decimals) ? 0 : random.below(10 ** written)
  return `${whole}.${String(fraction).padStart(written, '0')}`
}

/** The same cells in another notation. */
function varied(random: Random, cells: string[], decimals: number): string {
  return cells
    .map((cell, column) => {
      switch (random.below(7)) {
        case 0:
          return `"${cell.replaceAll('"', '""')}"`
        case 1:
          return `${' '.repeat(random.below(2))}${quotedIfNeeded(cell)}${[' ', '  ', '\t', ' \t '][random.below(4)]}`
        case 2:
          return column === 4 && decimals > 0 && !cell.includes('.')
            ? `${cell}.${'0'.repeat(1 + random.below(decimals))}`
            : quotedIfNeeded(cell)
        case 3:
          return column === 3 || column === 4 ? `00${cell}` : quotedIfNeeded(cell)
        case 4:
          return column === 5 ? `${cell.replaceAll('|', ' | ')}|` : quotedIfNeeded(cell)
        case 5:
          return column === 0 && cell.length === 36
            ? random.below(2) === 0
              ? cell.toUpperCase()
              : cell.toLowerCase()
            : quotedIfNeeded(cell)
        default:
          return quotedIfNeeded(cell)
      }
    })
    .join(',')
}

/** A cell that begins with a quote must be quoted, since it would be parsed as quoted otherwise. */
function quotedIfNeeded(cell: string): string {
  return cell.startsWith('"') ? `"${cell.replaceAll('"', '""')}"` : cell
}

/** Cells just inside and just outside the valid range, by column. */
const EDGES: readonly (readonly string[])[] = [
  [
    '',
    'abcdefghijklmno',
    'unknown',
    'é',
    '550e8400-e29b-61d4-a716-446655440000',
    '550e8400-e29b-41d4-a716-44665544000g',
  ],
  ['', 'm'.repeat(255), 'm'.repeat(256), ' ', 'tab\tinside', '"""', 'new', 'neu ü'],
  [
    '',
    '2026-02-29',
    '2028-02-29',
    '2027-13-01',
    '2027-00-10',
    '2026-11-31',
    '2026-11-00',
    '2026-10-32',
    '2026-1-010',
  ].concat([
    '1969-12-31',
    '1970-01-01',
    '2999-12-31',
    '3000-01-01',
    '0000-01-01',
    '2026/11/20',
    '2026-11-2',
    '20261120',
  ]),
  ['', '0', '255', '256', '999', '1000', '0255', '-1', '+1', '1.0', '1 0', '99999999999999999999'],
  [
    '',
    '0',
    '4294967294',
    '4294967295',
    '4294967294.00',
    '04294967294',
    '99999999999',
    '120.',
    '.50',
    '120.50',
    '1.2.0',
  ].concat(['12.0', '120.00000000000', '1e3', '-0', '12345678', '123456789', '12345678.0', '9999999999']),
  [
    '',
    '|',
    'late|',
    '|late',
    'late||breakfast',
    'Late',
    'late breakfast',
    'late|late',
    'lat',
    'late2',
    'x'.repeat(65),
  ].concat(['late|'.repeat(204), 'late|'.repeat(210), 'Fr\u00fchst\u00fcck', 'Fru\u0308hstu\u0308ck']),
]

const ODD_BYTES = [0x00, 0x09, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x2e, 0x2d, 0x30, 0x39, 0x7c, 0x7f, 0x80, 0xc3, 0xff]

/** A line with some bytes changed, removed, repeated or inserted. */
function spoiled(random: Random, bytes: Uint8Array): Uint8Array {
  const line = [...bytes]
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const at = random.below(line.length)
    const odd = ODD_BYTES[random.below(ODD_BYTES.length)]
    switch (random.below(4)) {
      case 0:
        line[at] = odd
        break
      case 1:
        line.splice(at, 1 + random.below(3))
        break
      case 2:
        line.splice(at, 0, odd)
        break
      default:
        line.splice(at, 0, ...line.slice(at, at + 1 + random.below(20)))
    }
    if (line.length === 0) break
  }
  return Uint8Array.from(line)
}

/** The packages of a file, each as `property|room|day|availability|price|features`. */
export type Contents = {
  readonly packages: string[]
  readonly skipped: number
  /** Lines on which an error begins, from 1. */
  readonly faultyLines: number[]
}

/** The reference parser. Lines are shorter than the limit. */
export function readObviously(bytes: Uint8Array, isStrict: boolean, decimals = 0): Contents {
  let text = Buffer.from(bytes).toString('latin1')
  if (text !== '' && !text.endsWith('\n')) text += '\n'
  const known = new Set(PROPERTIES.map((id) => (id.length === 36 ? id.toLowerCase() : id)))
  const taken = new Map<string, string>()
  const rooms = new Map<string, Set<string>>()
  const faultyLines: number[] = []
  let skipped = 0
  let line = 1
  for (let at = 0; at < text.length; ) {
    const record = readRecordObviously(text, at)
    const lines = text.slice(at, record.next).split('\n').length - 1
    if (record.cells && !(record.cells.length === 1 && record.cells[0] === '' && !record.isQuoted)) {
      const read = readCellsObviously(record.cells, decimals)
      const days = read ? Number(read.day) - FIRST_DAY : 0
      const key = read ? `${read.id}|${read.room}|${read.day}` : ''
      if (!read || !known.has(read.id)) faultyLines.push(line)
      else if (days < 0 || days >= DAYS) {
        if (isStrict) faultyLines.push(line)
        else skipped++
      } else if (taken.has(key)) faultyLines.push(line)
      else {
        taken.set(key, `${key}|${read.availability}|${read.price}|${read.mask}`)
        rooms.set(read.id, (rooms.get(read.id) ?? new Set()).add(read.room))
      }
    } else if (!record.cells) faultyLines.push(line)
    line += lines
    at = record.next
  }
  return { packages: [...taken.values()].sort(), skipped, faultyLines }
}

function readRecordObviously(text: string, start: number): { cells?: string[]; isQuoted?: boolean; next: number } {
  const cells: string[] = []
  let isQuoted = false
  let at = start
  for (;;) {
    const quoted = /[ \t]*"((?:[^"]|"")*)"(?!")[ \t]*(?:\r(?=\n))?/y
    quoted.lastIndex = at
    const match = quoted.exec(text)
    if (match) {
      isQuoted = true
      cells.push(match[1].replaceAll('""', '"'))
      at = quoted.lastIndex
      if (text[at] !== ',' && text[at] !== '\n') return { next: text.indexOf('\n', at) + 1 }
    } else if (/^[ \t]*"/.test(text.slice(at, at + 1000))) {
      // The quote is not closed: parsing continues at the next line.
      return { next: text.indexOf('\n', text.indexOf('"', at)) + 1 }
    } else {
      const plain = /[^,\n]*/y
      plain.lastIndex = at
      let cell = (plain.exec(text) as RegExpExecArray)[0]
      at = plain.lastIndex
      if (text[at] === '\n' && cell.endsWith('\r')) cell = cell.slice(0, -1)
      cells.push(cell.replace(/^[ \t]+|[ \t]+$/g, ''))
    }
    at++
    if (text[at - 1] === '\n') return { cells, isQuoted, next: at }
  }
}

const ID = /^(?:[!-~](?:[ -~]{0,12}[!-~])?|[0-9a-f]{8}-[0-9a-f]{4}-[1-57][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})$/i

function readCellsObviously(cells: string[], decimals: number) {
  if (cells.length !== 6) return undefined
  const [id, room, date, availability, price, features] = cells as [string, string, string, string, string, string]
  if (!ID.test(id) || !isName(room)) return undefined
  const ms = /^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(`${date}T00:00:00Z`) : Number.NaN
  if (Number.isNaN(ms) || ms < 0 || new Date(ms).toISOString().slice(0, 10) !== date) return undefined
  if (!/^\d+$/.test(availability) || Number(availability) > 255) return undefined
  const [whole = '', fraction = ''] = price.split('.')
  if (!/^\d+(\.\d+)?$/.test(price) || fraction.length > decimals) return undefined
  const units = Number(whole + fraction.padEnd(decimals, '0'))
  if (units > 4_294_967_294) return undefined
  let mask = 0
  for (const part of features.split('|')) {
    const name = part.replace(/^[ \t]+|[ \t]+$/g, '')
    if (name === '') continue
    const bit = CODECS.findIndex((codec) => Buffer.from(codec).toString('latin1') === name)
    if (bit < 0) return undefined
    mask |= 1 << bit
  }
  return {
    id: id.length === 36 ? id.toLowerCase() : id,
    room: Buffer.from(room, 'latin1').toString(),
    day: String(ms / 86_400_000),
    availability: Number(availability),
    price: units,
    mask,
  }
}

/** @param latin1 the bytes of a name, one per character */
function isName(latin1: string): boolean {
  const bytes = Buffer.from(latin1, 'latin1')
  if (bytes.length < 1 || bytes.length > 255 || bytes.some((byte) => byte < 32 || byte === 127)) return false
  if (bytes.every((byte) => byte === 32)) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
