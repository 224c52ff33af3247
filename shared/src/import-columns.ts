/**
 * The columns of the two import files, and how a header row maps to them. Builder, control plane and browser share this
 * file, so that all accept the same headers.
 */

import { nearestName } from './names.ts'
import { cutToBytes } from './text.ts'

export type ImportFileKind = 'properties' | 'packages'

/** In the order of files without a header. */
export const IMPORT_COLUMNS = {
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
} as const satisfies { readonly [kind in ImportFileKind]: readonly string[] }

/** Cells of a data row that may hold any text. A row that names more columns than these cannot be data. */
const TEXT_CELLS = { properties: 6, packages: 3 } as const satisfies { readonly [kind in ImportFileKind]: number }
/** Column names of older samples. */
const ALIASES: { readonly [name: string]: string } = { ratecancel: 'ratefeature' }
const NAMES_SHOWN = 4
const NAME_BYTES_MAX = 40

export type ImportHeader =
  /** The row is data. */
  | { readonly kind: 'none' }
  /**
   * - `order`: position in the file of each column of IMPORT_COLUMNS; undefined when the order is the same
   * - `warning`: what to verify, when unknown names are read by position
   */
  | { readonly kind: 'header'; readonly order?: readonly number[]; readonly warning?: string }
  | { readonly kind: 'refused'; readonly reason: string }

/**
 * Parses the first data row.
 *
 * @param found number of cells in the row; `cells` may hold only the first ones
 */
export function readImportHeader(
  file: ImportFileKind,
  cells: readonly string[],
  found: number = cells.length,
): ImportHeader {
  const columns: readonly string[] = IMPORT_COLUMNS[file]
  const separator = found < columns.length ? otherSeparator(cells) : undefined
  if (separator !== undefined) return { kind: 'refused', reason: separator }
  if (!isHeaderRow(file, cells)) {
    if (!isForeignHeader(file, cells)) return { kind: 'none' }
    const names = `the columns are ${columns.join(', ')}`
    return {
      kind: 'refused',
      reason: `looks like the header of another system: ${listed(cells.map(quoted))}; ${names}`,
    }
  }
  const places = cells.map((cell) => columnOf(columns, cell))
  const missing = columns.filter((_, column) => !places.includes(column))
  const twice = columns.filter((_, column) => places.indexOf(column) !== places.lastIndexOf(column))
  const unknown = cells.filter((_, place) => places[place] === -1)
  const isWhole = found === columns.length && twice.length === 0
  if (isWhole && unknown.length === 0) {
    const order = columns.map((_, column) => places.indexOf(column))
    return order.every((place, column) => place === column) ? { kind: 'header' } : { kind: 'header', order }
  }
  if (isWhole && places.every((column, place) => column === -1 || column === place)) {
    const names = missing.map((name) => `${quoted(cells[columns.indexOf(name)] ?? '')} as ${name}`)
    return { kind: 'header', warning: `has unknown column names and is read by position: ${listed(names)}` }
  }
  const count = found === columns.length ? '' : ` of ${found} columns instead of ${columns.length}`
  if (cells.some((cell) => cell.includes('\r'))) {
    return {
      kind: 'refused',
      reason: `is a header${count} and contains a lone carriage return; end lines with LF or CRLF`,
    }
  }
  const meant = (name: string) => {
    const nearest = found === columns.length ? nearestName(name, missing) : undefined
    return nearest === undefined ? quoted(name) : `${quoted(name)} (nearest: ${nearest})`
  }
  const wrong = [
    ...(unknown.length > 0 ? [`has the unknown ${named(unknown.map(meant))}`] : []),
    ...(twice.length > 0 ? [`names ${listed(twice)} twice`] : []),
    ...(missing.length > 0 ? [`does not name ${listed(missing)}`] : []),
  ]
  const what = wrong.length === 0 ? '' : ` that ${wrong.join(' and ')}`
  return { kind: 'refused', reason: `is a header${count}${what}; the columns are ${columns.join(', ')}` }
}

/** Each with how a mapping of import-source names it. */
const SEPARATORS = { ';': ['semicolons', ';'], '\t': ['tabs', '\\t'], '|': ['bars', '|'] } as const

/** Completes "hotels.csv …" for a row that has too few commas and more of another sign than cells. */
export function otherSeparator(cells: readonly string[]): string | undefined {
  const row = cells.join(',')
  const found = Object.entries(SEPARATORS).find(([sign]) => row.split(sign).length > Math.max(cells.length, 3))
  if (found === undefined) return undefined
  const [, [name, written]] = found
  return `separates its cells by ${name}; save the file with commas, or use vacancy import-source with "delimiter": "${written}"`
}

/** Cells of data that begin with a digit or a sign; a word in all of them is the name of a column. */
const NUMBER_CELLS = { properties: [5, 6, 7], packages: [2, 3, 4] } as const satisfies {
  readonly [kind in ImportFileKind]: readonly number[]
}

function isForeignHeader(file: ImportFileKind, cells: readonly string[]): boolean {
  return NUMBER_CELLS[file].every((cell) => /^\s*\p{L}/u.test(cells[cell] ?? ''))
}

/** The cells of a first row, without quotes and blanks around them. A comma inside quotes is data. */
export function firstCells(row: string): string[] {
  const cells = ['']
  let isQuoted = false
  for (const character of row) {
    if (character === '"') isQuoted = !isQuoted
    else if (character === ',' && !isQuoted) cells.push('')
    else cells.push((cells.pop() ?? '') + character)
  }
  return cells.map((cell) => cell.trim())
}

/** The file that a first row belongs to: by the names of a header, else by the number of cells. */
export function importFileOf(cells: readonly string[]): ImportFileKind | undefined {
  const [properties, packages] = [knownNames('properties', cells), knownNames('packages', cells)]
  const isHeader = isHeaderRow('properties', cells) || isHeaderRow('packages', cells)
  if (isHeader && properties !== packages) return properties > packages ? 'properties' : 'packages'
  if (cells.length === IMPORT_COLUMNS.properties.length) return 'properties'
  return cells.length === IMPORT_COLUMNS.packages.length ? 'packages' : undefined
}

/** True for a row that names the property id first, or beside another column, or more columns than data could. */
function isHeaderRow(file: ImportFileKind, cells: readonly string[]): boolean {
  const places = cells.map((cell) => columnOf(IMPORT_COLUMNS[file], cell))
  const known = knownNames(file, cells)
  return places[0] === 0 || (places.includes(0) && known >= 2) || known > TEXT_CELLS[file]
}

function knownNames(file: ImportFileKind, cells: readonly string[]): number {
  const columns: readonly string[] = IMPORT_COLUMNS[file]
  return new Set(cells.map((cell) => columnOf(columns, cell)).filter((column) => column >= 0)).size
}

/** The column that a name means, as in a header; undefined for none. */
export function importColumnOf(file: ImportFileKind, name: string): string | undefined {
  return IMPORT_COLUMNS[file][columnOf(IMPORT_COLUMNS[file], name)]
}

/** @returns -1 for an unknown name */
function columnOf(columns: readonly string[], cell: string): number {
  const given = plain(cell)
  const name = Object.hasOwn(ALIASES, given) ? ALIASES[given] : given
  return columns.findIndex((column) => column.toLowerCase() === name)
}

/** Lower case, without `_`, `-` and blanks. */
function plain(cell: string): string {
  return cell.toLowerCase().replace(/[_\-\s]/g, '')
}

function quoted(name: string): string {
  return JSON.stringify(cutToBytes(name, NAME_BYTES_MAX))
}

function named(names: readonly string[]): string {
  return `${names.length === 1 ? 'name' : 'names'} ${listed(names)}`
}

function listed(names: readonly string[]): string {
  const more = names.length - NAMES_SHOWN
  return more > 0 ? `${names.slice(0, NAMES_SHOWN).join(', ')} and ${more} more` : names.join(', ')
}
