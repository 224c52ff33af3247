/** What only replies of searches have: counts of matches by value and by cell (docs/design/protocol.md#counts-of-a-search). */

import { LIMITS } from '../domain.ts'
import { addBytes, type FieldWriter, readU64 } from './fields.ts'
import { type Cursor, malformed, takeTrailer, textAt } from './reply-fields.ts'
import { SEARCH_FACETS } from './search.ts'

const FACETS_ID = 0xfffa
const CELLS_ID = 0xfffb
const TYPE_RECORDS = 0x0a
const NO_TOTAL = 2n ** 64n - 1n
const CELL_BYTES = 22
const MICRODEGREES = 1e6

export type FacetCount<Value extends string | number = string> = { value: Value; count: number }
/** Totals in a range, both ends included; the last range has no end. */
export type TotalCount = { minTotal: number; maxTotal?: number; count: number }

/** Counts of all matches, on this page and others: most first; of totals, all ranges in their order. */
export type SearchFacets = {
  propertyType?: FacetCount[]
  category?: FacetCount[]
  stars?: FacetCount<number>[]
  area?: FacetCount[]
  amenities?: FacetCount[]
  /** Of properties whose nights all have it. */
  rateFeatures?: FacetCount[]
  total?: TotalCount[]
  roomType?: FacetCount[]
}

/** The matches of a part of the box, of which there is at least one. */
export type MapCell = {
  /** From the western edge, and from the southern edge of the box, from 0. */
  column: number
  row: number
  count: number
  /** Lowest total; in SEARCHAVAIL only. */
  lowestTotal?: number | bigint
  /** Mean position, in degrees to six places. */
  latitude: number
  longitude: number
}

type Facet = keyof typeof SEARCH_FACETS
const FACETS = Object.keys(SEARCH_FACETS) as Facet[]
const encoder = new TextEncoder()

function textOf(entry: FacetCount | FacetCount<number> | TotalCount): string {
  return String('value' in entry ? entry.value : entry.minTotal)
}

export function addFacets(to: FieldWriter, facets: SearchFacets | undefined): void {
  if (!facets) return
  const parts = FACETS.flatMap((facet, number) => {
    const entries = facets[facet]
    if (!entries) return []
    const values = entries.flatMap((entry) => {
      const text = encoder.encode(textOf(entry))
      return [text.length, ...text, ...u32(entry.count)]
    })
    return [number, entries.length & 0xff, entries.length >>> 8, ...values]
  })
  addBytes(to, FACETS_ID, TYPE_RECORDS, Uint8Array.from(parts))
}

function u32(value: number): number[] {
  return [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff)
}

export function takeFacets(from: Cursor): { facets?: SearchFacets } {
  if (!takeTrailer(from, FACETS_ID)) return {}
  const { view, bytes } = from
  const broken = () => malformed(from.command, `field ${from.id} has other counts than it says`)
  const facets: { [facet in Facet]?: { value: string; count: number }[] } = {}
  let at = from.start
  while (at < from.at) {
    const facet = FACETS[bytes[at] as number]
    if (facet === undefined || at + 3 > from.at) throw broken()
    const entries: FacetCount[] = []
    const count = view.getUint16(at + 1, true)
    at += 3
    for (let n = 0; n < count; n++) {
      const end = at + 1 + (bytes[at] ?? 0)
      if (at >= from.at || end + 4 > from.at) throw broken()
      entries.push({ value: textAt(from, at + 1, end), count: view.getUint32(end, true) })
      at = end + 4
    }
    facets[facet] = entries
  }
  const { stars, total, ...rest } = facets
  return {
    facets: {
      ...rest,
      ...(stars && { stars: stars.map(({ value, count }) => ({ value: Number(value), count })) }),
      ...(total && { total: ranges(total) }),
    },
  }
}

/** Each range ends below the beginning of the next one. */
function ranges(entries: readonly FacetCount[]): TotalCount[] {
  return entries.map(({ value, count }, n) => {
    const next = entries[n + 1]
    return { minTotal: Number(value), ...(next && { maxTotal: Number(next.value) - 1 }), count }
  })
}

export function addCells(to: FieldWriter, cells: readonly MapCell[] | undefined): void {
  if (!cells) return
  const bytes = new Uint8Array(cells.length * CELL_BYTES)
  const view = new DataView(bytes.buffer)
  for (const [n, { column, row, count, lowestTotal, latitude, longitude }] of cells.entries()) {
    const at = n * CELL_BYTES
    bytes[at] = column
    bytes[at + 1] = row
    view.setUint32(at + 2, count, true)
    view.setBigUint64(at + 6, lowestTotal === undefined ? NO_TOTAL : BigInt(lowestTotal), true)
    view.setInt32(at + 14, Math.round(latitude * MICRODEGREES), true)
    view.setInt32(at + 18, Math.round(longitude * MICRODEGREES), true)
  }
  addBytes(to, CELLS_ID, TYPE_RECORDS, bytes)
}

export function takeCells(from: Cursor): { cells?: MapCell[] } {
  if (!takeTrailer(from, CELLS_ID)) return {}
  const { view, bytes, start, length } = from
  if (length % CELL_BYTES !== 0) throw malformed(from.command, `field ${from.id} has a part of a cell`)
  const cells = Array.from({ length: length / CELL_BYTES }, (_, n) => {
    const at = start + n * CELL_BYTES
    const [column, row] = [bytes[at] as number, bytes[at + 1] as number]
    if (column >= LIMITS.mapCellsMax || row >= LIMITS.mapCellsMax) {
      throw malformed(from.command, `field ${from.id} has a cell beyond its box`)
    }
    const hasTotal = view.getBigUint64(at + 6, true) !== NO_TOTAL
    return {
      ...{ column, row, count: view.getUint32(at + 2, true) },
      ...(hasTotal && { lowestTotal: readU64(view, at + 6) }),
      latitude: view.getInt32(at + 14, true) / MICRODEGREES,
      longitude: view.getInt32(at + 18, true) / MICRODEGREES,
    }
  })
  return { cells }
}
