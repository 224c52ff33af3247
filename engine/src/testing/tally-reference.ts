/** What the search kernel counts of its matches, in TypeScript: what tests compare the compiled one with. */

import {
  FEATURES_AT,
  LIST_AT,
  PARAMETER,
  PLANES_AT,
  SUMS,
  TALLY,
  TALLY_AT,
  TALLY_FLAGS,
  TALLY_WIDE,
  TOTALS_AT,
} from '../search/parameters.ts'
import { PROPERTY } from '../store/layout.ts'
import type { Memory } from '../store/store.ts'

export function putFeatures({ u32 }: Memory, parameters: number, count: number): void {
  const nights = u32[(parameters >>> 2) + PARAMETER.nights]
  for (let i = 0; i < count; i++) {
    let features = 0xffff_ffff
    for (let night = 0; night < nights; night++) {
      const plane = u32[((parameters + PLANES_AT) >>> 2) + night] >>> 2
      features &= u32[plane + u32[((parameters + LIST_AT) >>> 2) + i] * 2]
    }
    u32[((parameters + FEATURES_AT) >>> 2) + i] = features >>> 8
  }
}

export function tally(memory: Memory, parameters: number, count: number): void {
  const { u32, f64, buffer } = memory
  const at = (parameters + TALLY_AT) >>> 2
  const wide = new DataView(buffer, parameters + TALLY_AT)
  const flags = u32[at + TALLY.flags]
  const sums = u32[at + TALLY.sums]
  const totals = new DataView(buffer, parameters + TOTALS_AT)
  const bounds = Array.from({ length: u32[at + TALLY.bounds] }, (_, n) =>
    wide.getBigUint64(TALLY_WIDE.bounds + n * 8, true),
  )
  const increment = (cell: number) => {
    u32[cell] = u32[cell] + 1
  }
  for (let i = 0; i < count; i++) {
    const row = u32[((parameters + LIST_AT) >>> 2) + i]
    const total = totals.getBigUint64(i * 8, true)
    if (flags & TALLY_FLAGS.bits) {
      const cell = ((u32[at + TALLY.bits] + (row >>> 5) * 4) % 2 ** 32) >>> 2
      u32[cell] = u32[cell] | (1 << (row & 31))
    }
    for (let bit = 0; flags & TALLY_FLAGS.features && bit < 24; bit++) {
      if ((u32[((parameters + FEATURES_AT) >>> 2) + i] >>> bit) & 1) increment((sums + SUMS.features) / 4 + bit)
    }
    if (flags & TALLY_FLAGS.ranges) {
      increment((sums + SUMS.ranges) / 4 + bounds.filter((bound) => total >= bound).length)
    }
    const property = u32[(u32[(parameters >>> 2) + PARAMETER.rowProperties] >>> 2) + row]
    if ((flags & TALLY_FLAGS.cells) === 0 || property === 0) continue
    const latitude = f64[(property + PROPERTY.latitude) / 8]
    const longitude = f64[(property + PROPERTY.longitude) / 8]
    const west = wide.getFloat64(TALLY_WIDE.west, true)
    const east = longitude < west ? longitude - west + 360 : longitude - west
    const north = latitude - wide.getFloat64(TALLY_WIDE.south, true)
    const within = (part: number, most: number) => Math.max(0, Math.min(most - 1, Math.floor(part)))
    const column = within(east * wide.getFloat64(TALLY_WIDE.perLongitude, true), u32[at + TALLY.columns])
    const place = within(north * wide.getFloat64(TALLY_WIDE.perLatitude, true), u32[at + TALLY.rows])
    const cell = new DataView(buffer, sums + SUMS.cells + (place * u32[at + TALLY.columns] + column) * SUMS.cellBytes)
    if (total < cell.getBigUint64(0, true)) cell.setBigUint64(0, total, true)
    const add = (to: number, degrees: number) =>
      cell.setBigInt64(to, cell.getBigInt64(to, true) + BigInt(Math.floor(degrees * 1e6 + 0.5)), true)
    add(8, latitude)
    add(16, east)
    cell.setUint32(24, cell.getUint32(24, true) + 1, true)
  }
}

export function overlap({ u32 }: Memory, a: number, b: number, groups: number): number {
  let count = 0
  for (let n = 0; n < groups * 4; n++) {
    for (let bits = u32[(a >>> 2) + n] & u32[(b >>> 2) + n]; bits !== 0; bits &= bits - 1) count++
  }
  return count
}
