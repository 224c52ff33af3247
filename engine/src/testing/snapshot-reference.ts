/** The snapshot kernel in TypeScript: what tests compare the compiled one with. snapshot/codec.ts describes both. */

import { assert } from '@vacancy/shared'
import { BYTE_PLANES, BYTES_PER_WORD, type SnapshotKernel } from '../snapshot/codec.ts'
import { packageHash } from '../store/digest.ts'

export function createSnapshotReference(memory: WebAssembly.Memory): SnapshotKernel {
  const u8 = new Uint8Array(memory.buffer)
  const u32 = new Uint32Array(memory.buffer)

  const encode: SnapshotKernel['encode'] = (planes, nights, rows, days, keysLow, keysHigh, masks, cursors, stats) => {
    const deltas = new Uint32Array(rows * 2)
    let before = 0
    for (let night = 0; night < nights; night++) {
      const words = cellOf(planes) + night
      const at = u32[words]
      assert(at % BYTES_PER_WORD === 0, 'words lie on 8-byte boundaries')
      u8[masks + night] = differences(at, before, rows, deltas)
      const day = u32[cellOf(days) + night]
      sum(at, rows, day, keysLow, keysHigh, (cell, value) => {
        u32[cellOf(stats) + cell] = u32[cellOf(stats) + cell] + value
      })
      for (let plane = 0; plane < BYTE_PLANES; plane++) {
        if (((u8[masks + night] >>> plane) & 1) === 0) continue
        const cursor = u32[cellOf(cursors) + plane]
        for (let row = 0; row < rows; row++) {
          u8[cursor + row] = deltas[row * 2 + (plane >> 2)] >>> ((plane & 3) * 8)
        }
        u32[cellOf(cursors) + plane] = cursor + rows
      }
      before = at
    }
  }

  /** @returns mask of the bytes that are not 0 in all rows */
  function differences(words: number, before: number, rows: number, deltas: Uint32Array): number {
    let lows = 0
    let highs = 0
    for (let row = 0; row < rows; row++) {
      const cell = (words + row * BYTES_PER_WORD) / 4
      const old = (before + row * BYTES_PER_WORD) / 4
      const oldLow = before === 0 ? 0 : u32[old]
      const oldHigh = before === 0 ? 0 : u32[old + 1]
      const low = lowDelta(u32[cell], oldLow)
      const high = zigzag((oldHigh - u32[cell + 1]) | 0)
      deltas[row * 2] = low
      deltas[row * 2 + 1] = high
      lows |= low
      highs |= high
    }
    let mask = 0
    for (let byte = 0; byte < 4; byte++) {
      if (((lows >>> (byte * 8)) & 0xff) !== 0) mask |= 1 << byte
      if (((highs >>> (byte * 8)) & 0xff) !== 0) mask |= 16 << byte
    }
    return mask
  }

  const decode: SnapshotKernel['decode'] = (
    planes,
    nights,
    rows,
    days,
    keysLow,
    keysHigh,
    masks,
    cursors,
    stats,
    available,
    nightStats,
  ) => {
    let before = 0
    for (let night = 0; night < nights; night++) {
      const words = u32[cellOf(planes) + night]
      assert(words % BYTES_PER_WORD === 0, 'words lie on 8-byte boundaries')
      const mask = u8[masks + night]
      const bits = available === 0 ? 0 : u32[cellOf(available) + night]
      restore(words, before, rows, mask, cursors, bits)
      const sums = nightStats === 0 ? 0 : u32[cellOf(nightStats) + night]
      sum(words, rows, u32[cellOf(days) + night], keysLow, keysHigh, (cell, value) => {
        u32[cellOf(stats) + cell] = u32[cellOf(stats) + cell] + value
        if (sums !== 0) Atomics.add(u32, cellOf(sums) + cell, value)
      })
      before = words
    }
  }

  function restore(words: number, before: number, rows: number, mask: number, cursors: number, bits: number): void {
    for (let row = 0; row < rows; row++) {
      let low = 0
      let high = 0
      for (let plane = 0; plane < BYTE_PLANES; plane++) {
        if (((mask >>> plane) & 1) === 0) continue
        const byte = u8[u32[cellOf(cursors) + plane] + row]
        if (plane < 4) low |= byte << (plane * 8)
        else high |= byte << ((plane - 4) * 8)
      }
      const cell = (words + row * BYTES_PER_WORD) / 4
      const old = (before + row * BYTES_PER_WORD) / 4
      const oldLow = before === 0 ? 0 : u32[old]
      const oldHigh = before === 0 ? 0 : u32[old + 1]
      u32[cell] = ((low + oldLow) & 0xff) | ((low ^ oldLow) & 0xffffff00)
      u32[cell + 1] = oldHigh - ((high >>> 1) ^ -(high & 1))
      if (bits !== 0 && (u32[cell] & 0xff) !== 0) {
        u8[bits + (row >>> 3)] = u8[bits + (row >>> 3)] | (1 << (row & 7))
      }
    }
    for (let plane = 0; plane < BYTE_PLANES; plane++) {
      const cell = cellOf(cursors) + plane
      if (((mask >>> plane) & 1) !== 0) u32[cell] = u32[cell] + rows
    }
  }

  /** Counts and hashes the packages of a night and gives the three numbers to `add`. */
  function sum(
    words: number,
    rows: number,
    day: number,
    keysLow: number,
    keysHigh: number,
    add: (cell: number, value: number) => void,
  ): void {
    let packages = 0
    let digestLow = 0
    let digestHigh = 0
    for (let row = 0; row < rows; row++) {
      const cell = (words + row * BYTES_PER_WORD) / 4
      const lo = u32[cell]
      const hi = u32[cell + 1]
      if ((lo | hi) === 0) continue
      packages++
      digestLow = (digestLow + packageHash(0, u32[cellOf(keysLow) + row], day, lo, hi)) | 0
      digestHigh = (digestHigh + packageHash(1, u32[cellOf(keysHigh) + row], day, lo, hi)) | 0
    }
    add(0, packages)
    add(1, digestLow)
    add(2, digestHigh)
  }

  return { encode, decode }
}

function cellOf(address: number): number {
  return address / 4
}

function lowDelta(now: number, before: number): number {
  return ((now - before) & 0xff) | ((now ^ before) & 0xffffff00)
}

function zigzag(difference: number): number {
  return (difference << 1) ^ (difference >> 31)
}
