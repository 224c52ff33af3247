/** Error texts for lines: `packages.csv:1042: RateFeature (column 6) "free_wfi" is not in the codec list; …`. */

import { isUtf8 } from 'node:buffer'
import { nearestName } from '@vacancy/shared'

export type Fault = {
  readonly kind: keyof typeof FAULTS
  /** Starts at 1; 0 for an error of the whole line. */
  readonly column: number
  readonly value: string
  readonly found?: number
  readonly expected?: number
  readonly reason?: string
  readonly codecs?: readonly string[]
  readonly firstLine?: number
  readonly range?: string
}

/** One text per kind; braces name fields of the error. */
const FAULTS = {
  columns: 'has {found} cells instead of {expected}',
  unclosed: 'opens a quote that is not closed',
  trailing: 'has text after a closing quote',
  long: 'is longer than {expected} bytes',
  empty: 'is empty',
  text: '{reason}',
  property_id: 'is neither a UUID (version 1–5 or 7) nor 1–14 printable ASCII characters',
  reserved_segment: 'is a reserved name and cannot be a segment',
  stars: 'is not a whole number from 1 to 5',
  latitude: 'is not a number from -90 to 90',
  longitude: 'is not a number from -180 to 180',
  amenity: 'as an amenity {reason}',
  amenities: 'are {found} amenities, more than {expected}',
  date: 'is not a date YYYY-MM-DD',
  window: 'is outside the window {range}',
  availability: 'is not a whole number from 0 to 255',
  price: 'is not a whole number from 0 to 4294967294',
  price_fraction: '{reason}',
  feature: 'is not in the codec list{nearest}',
  unknown_property: 'is not a property of properties.csv',
  property_twice: 'repeats the property of line {firstLine}',
  package_twice: 'repeats property, room type and date of line {firstLine}',
  rooms: 'is room type {found} of its property; {expected} is the limit',
} as const

/** An error with its location, for display, reports and counts. */
export type Finding = {
  readonly file: string
  /** Starts at 1; 0 for the file as a whole. */
  readonly line: number
  readonly column: number
  readonly name: string
  /** Of an import from a source: the column of the file, while `name` is that of the source and `line` a row of it. */
  readonly as?: string
  readonly value: string
  readonly kind: string
  readonly message: string
  /** The original line; absent when it was not kept. */
  readonly row?: Uint8Array
}

/** @param columns names of the file's columns */
export function findingOf(
  file: string,
  line: number,
  columns: readonly string[],
  fault: Fault,
  row?: Uint8Array,
): Finding {
  const name = columns[fault.column - 1] ?? ''
  const { kind, column, value } = fault
  return { file, line, column, name, value, kind, message: sentenceOf(fault), ...(row && { row }) }
}

/** An error of a whole file: missing rows, a wrong encoding. */
export function fileFinding(file: string, kind: string, message: string): Finding {
  return { file, line: 0, column: 0, name: '', value: '', kind, message }
}

/** For programs: the row as text, or as base64 when it is not UTF-8. */
export function findingLine({ row, ...finding }: Finding): string {
  if (!row) return JSON.stringify(finding)
  const bytes = Buffer.from(row.buffer, row.byteOffset, row.byteLength)
  return JSON.stringify({
    ...finding,
    ...(isUtf8(bytes) ? { row: bytes.toString() } : { row64: bytes.toString('base64') }),
  })
}

export function printedFinding({ file, line, column, name, as, value, message }: Finding): string {
  if (line === 0) return `${file}: ${message}`
  // As JSON, so that quotes and control characters of the value are distinguishable.
  const shown = JSON.stringify(value)
  const isRow = as !== undefined
  const place = isRow ? `${file} row ${line}` : `${file}:${line}`
  if (column === 0) return `${place}: the ${isRow ? 'row' : 'line'} ${message}${value === '' ? '' : `: ${shown}`}`
  const named = isRow ? `${name}${name === as ? '' : ` as ${as}`}` : `${name} (column ${column})`
  return `${place}: ${named}${value === '' ? '' : ` ${shown}`} ${message}`
}

function sentenceOf(fault: Fault): string {
  return FAULTS[fault.kind].replace(/\{(\w+)\}/g, (_, field: string) => {
    if (field === 'nearest') return nearest(fault)
    return String(fault[field as keyof Fault] ?? '')
  })
}

function nearest({ value, codecs = [] }: Fault): string {
  const name = nearestName(value, codecs)
  return name === undefined ? ` (${codecs.join(', ')})` : `; the nearest entry is ${JSON.stringify(name)}`
}
