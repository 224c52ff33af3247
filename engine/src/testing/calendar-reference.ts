/** The kernel of calendars in TypeScript (search/calendar.as.ts): every stay of every row, night by night. */

import {
  ALLOWED,
  ARRIVALS,
  BY_DAY,
  DAY_BYTES,
  DAY_COUNT,
  DAY_ID,
  DAY_NUMBER,
  DAY_RECORD_BYTES,
  DAYS,
  FEATURES,
  FIRST_DAY,
  FITS_BITS,
  FITS_BITS_BYTES,
  FITS_PLACES,
  INVERTED_MAX,
  INVERTED_MIN,
  IS_ONE,
  MAX_TOTAL,
  MIN_TOTAL,
  MOST_NIGHTS,
  NIGHTS,
  OUT,
  PLANES,
  ROOMS_LEFT,
  ROW_IDS,
  ROW_PROPERTIES,
  STAY_BYTES,
  STAY_CODE,
  STAY_PLACE,
  STAY_ROW,
  TABLE,
  VISIBLE,
  WITH_FITS,
} from '../search/calendar-block.as.ts'
import { LIST_AT } from '../search/parameters.ts'
import { PLANE, PROPERTY } from '../store/layout.ts'
import { planeOf } from '../store/planes.ts'
import type { Memory } from '../store/store.ts'

type Stay = { readonly arrival: number; readonly nights: number; readonly total: number }

export function calendar(memory: Memory, parameters: number, block: number, count: number): void {
  const { u32 } = memory
  const view = new DataView(memory.buffer)
  const cell = (at: number) => u32[(block + at) >>> 2]
  const out = cell(OUT)
  const list = (parameters + LIST_AT) >>> 2
  if (count === 0) return
  if (cell(WITH_FITS) !== 0) {
    memory.u8.fill(0, out + FITS_BITS, out + FITS_BITS + cell(ARRIVALS) * FITS_BITS_BYTES)
    u32[out >>> 2] = count
    u32[(block + OUT) >>> 2] = out + FITS_BITS + cell(ARRIVALS) * FITS_BITS_BYTES
  }
  for (let i = 0; i < count; i++) {
    const row = u32[list + i]
    const place = u32[(u32[(cell(ROW_PROPERTIES) >>> 2) + row] + PROPERTY.row) >>> 2]
    if (cell(WITH_FITS) !== 0) u32[((out + FITS_PLACES) >>> 2) + i] = place
    const stays = staysOf(memory, block, row)
    if (cell(BY_DAY) !== 0) for (const stay of stays) countDay(memory, block, row, i, out, stay)
    else {
      const [best] = stays.toSorted(
        (a, b) => a.total * b.nights - b.total * a.nights || a.arrival - b.arrival || a.nights - b.nights,
      )
      if (!best) continue
      const at = cell(OUT)
      view.setBigUint64(at, BigInt(best.total), true)
      u32[(at + STAY_ROW) >>> 2] = row
      u32[(at + STAY_PLACE) >>> 2] = place
      u32[(at + STAY_CODE) >>> 2] = (best.arrival << 8) | best.nights
      u32[(block + OUT) >>> 2] = at + STAY_BYTES
    }
  }
}

/** All stays of a row that fit. */
function staysOf(memory: Memory, block: number, row: number): Stay[] {
  const { u32, u8 } = memory
  const cell = (at: number) => u32[(block + at) >>> 2]
  const view = new DataView(memory.buffer)
  const least = Number(view.getBigUint64(block + MIN_TOTAL, true))
  const most = Number(view.getBigUint64(block + MAX_TOTAL, true))
  const stays: Stay[] = []
  for (let arrival = 0; arrival < cell(ARRIVALS); arrival++) {
    if (u8[block + ALLOWED + arrival] === 0) continue
    let total = 0
    for (let nights = 1; nights <= cell(MOST_NIGHTS); nights++) {
      const plane = wordsOf(memory, block, arrival + nights - 1)
      if (plane === 0) break
      const [low, high] = [u32[(plane + row * 8) >>> 2], u32[(plane + row * 8 + 4) >>> 2]]
      if ((low & 0xff) < cell(ROOMS_LEFT) || ((low & cell(FEATURES)) ^ cell(FEATURES)) !== 0) break
      if (high < cell(INVERTED_MIN) || high > cell(INVERTED_MAX)) break
      total += ~high >>> 0
      if (nights >= cell(NIGHTS) && total >= least && total <= most) stays.push({ arrival, nights, total })
    }
  }
  return stays
}

/** Address of the words of a night; 0 for none. */
function wordsOf(memory: Memory, block: number, night: number): number {
  const cell = (at: number) => memory.u32[(block + at) >>> 2]
  if (cell(IS_ONE) === 0) return cell(PLANES + night * 4)
  if (night < cell(VISIBLE) >>> 16 || night >= (cell(VISIBLE) & 0xffff)) return 0
  const plane = planeOf(memory, cell(TABLE), cell(FIRST_DAY) + night)
  return plane === 0 ? 0 : plane + PLANE.words
}

function countDay(memory: Memory, block: number, row: number, i: number, out: number, stay: Stay): void {
  const { u32 } = memory
  const cell = (at: number) => u32[(block + at) >>> 2]
  const view = new DataView(memory.buffer)
  const { arrival, total } = stay
  const day = cell(DAYS) + arrival * DAY_BYTES
  if (cell(IS_ONE) !== 0) u32[(day + DAY_COUNT) >>> 2] = 1
  else if (cell(WITH_FITS) === 0) u32[(day + DAY_COUNT) >>> 2]++
  else u32[((out + FITS_BITS + arrival * FITS_BITS_BYTES) >>> 2) + (i >>> 5)] |= 1 << (i & 31)
  const key = BigInt(total)
  const [high, low] = [0, 8].map((at) => view.getBigUint64(cell(ROW_IDS) + row * 16 + at)) as [bigint, bigint]
  const best = view.getBigUint64(day, true)
  const [bestHigh, bestLow] = [0, 8].map((at) => view.getBigUint64(day + DAY_ID + at)) as [bigint, bigint]
  if (key > best || (key === best && (high > bestHigh || (high === bestHigh && low >= bestLow)))) return
  view.setBigUint64(day, key, true)
  view.setBigUint64(day + DAY_ID, high)
  view.setBigUint64(day + DAY_ID + 8, low)
}

export function writeDays({ u8, u32 }: Memory, days: number, count: number, to: number): number {
  const view = new DataView(u8.buffer)
  const records = Array.from({ length: count }, (_, n) => days + n * DAY_BYTES)
  const arrivals = records.filter((day) => u32[(day + DAY_NUMBER) >>> 2] !== 0)
  const isFound = (day: number) => u32[(day + DAY_COUNT) >>> 2] > 0
  for (const [n, day] of arrivals.entries()) {
    const at = to + n * DAY_RECORD_BYTES
    u8.fill(0, at, at + DAY_RECORD_BYTES)
    view.setUint16(at, u32[(day + DAY_NUMBER) >>> 2], true)
    if (!isFound(day)) continue
    u8[at + 2] = 1
    u8.set(u8.subarray(day, day + DAY_NUMBER), at + 3)
  }
  return arrivals.filter(isFound).length
}
