/** Stays of a property over several tables, by the row of the property in the table of all properties. */

import type { Memory } from '../store/store.ts'
import {
  DAY_BYTES,
  DAY_COUNT,
  FITS_BITS,
  FITS_BITS_BYTES,
  FITS_PLACES,
  STAY_BYTES,
  STAY_CODE,
  STAY_PLACE,
  STAY_ROW,
} from './calendar-block.as.ts'
import type { Merge } from './merge.ts'

/** Adds the number of stays' nights and arrival to a merge, in `stays`: arrival « 8 | nights. */
export function mergeStays({ u32 }: Memory, merge: Merge, at: number, end: number, source: number): void {
  if (merge.stays.length < merge.totals.length) merge.stays = new Uint32Array(merge.totals.length)
  const { totals, rows, sources, stays, touched } = merge
  const known = totals.length
  for (let cell = at >>> 2; cell < end >>> 2; cell += STAY_BYTES / 4) {
    const place = u32[cell + STAY_PLACE / 4]
    // Beyond them are properties that are newer than the search.
    if (place >= known) continue
    const total = u32[cell] + u32[cell + 1] * 2 ** 32
    const stay = u32[cell + STAY_CODE / 4]
    const held = totals[place]
    if (held === Number.POSITIVE_INFINITY) touched[merge.count++] = place
    else {
      // Prices per night are compared without division. Of equal ones the first arrival, then the shorter stay.
      const difference = total * (stays[place] & 0xff) - held * (stay & 0xff)
      if (difference > 0 || (difference === 0 && stay >= stays[place])) continue
    }
    totals[place] = total
    rows[place] = u32[cell + STAY_ROW / 4]
    sources[place] = source
    stays[place] = stay
  }
}

/**
 * Counts the properties that fit on each arrival day, each once. The merge keeps their days: `rows` is the place of a
 * property's bits in `stays`.
 */
export function mergeFits(memory: Memory, merge: Merge, at: number, end: number, days: number, arrivals: number): void {
  const { u32 } = memory
  const width = (arrivals + 31) >>> 5
  const block = FITS_BITS + arrivals * FITS_BITS_BYTES
  for (let from = at; from < end; from += block) {
    const count = u32[from >>> 2]
    if (merge.stays.length < (merge.count + count) * width) {
      const grown = new Uint32Array((merge.count + count) * width * 2)
      grown.set(merge.stays)
      merge.stays = grown
    }
    for (let i = 0; i < count; i++) {
      const place = u32[((from + FITS_PLACES) >>> 2) + i]
      if (place >= merge.totals.length || merge.totals[place] === 0) continue
      merge.totals[place] = 0
      merge.rows[place] = merge.count * width
      merge.stays.fill(0, merge.rows[place], merge.rows[place] + width)
      merge.touched[merge.count++] = place
    }
    for (let day = 0; day < arrivals; day++) countFits(memory, merge, from, day, days + day * DAY_BYTES + DAY_COUNT)
  }
}

function countFits({ u32 }: Memory, merge: Merge, from: number, day: number, counter: number): void {
  const { rows, stays, totals } = merge
  const [offset, mask] = [day >>> 5, 1 << (day & 31)]
  const places = (from + FITS_PLACES) >>> 2
  const bitsAt = (from + FITS_BITS + day * FITS_BITS_BYTES) >>> 2
  const groups = (u32[from >>> 2] + 31) >>> 5
  let found = 0
  for (let group = 0; group < groups; group++) {
    for (let bits = u32[bitsAt + group]; bits !== 0; bits &= bits - 1) {
      const place = u32[places + group * 32 + 31 - Math.clz32(bits & -bits)]
      if (place >= totals.length) continue
      const cell = rows[place] + offset
      if ((stays[cell] & mask) !== 0) continue
      stays[cell] |= mask
      found++
    }
  }
  u32[counter >>> 2] += found
}
