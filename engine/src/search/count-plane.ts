/** The TypeScript twin of `countPlane` in kernel.as.ts. */

import { packageHash } from '../store/digest.ts'
import { PLANE } from '../store/layout.ts'
import type { Memory } from '../store/store.ts'
import type { CountPlane } from './kernels.ts'

export function countTypescriptPlane(memory: Memory): CountPlane {
  const { u32 } = memory
  return (plane, capacity, rows, keysLow, keysHigh, day) => {
    const words = (plane + PLANE.words) >>> 2
    const bits = words + capacity * 2
    let packages = 0
    let low = 0
    let high = 0
    for (let row = 0; row < rows; row++) {
      const lo = u32[words + row * 2] as number
      const hi = u32[words + row * 2 + 1] as number
      if ((row & 31) === 0) u32[bits + (row >>> 5)] = 0
      if ((lo | hi) === 0) continue
      packages++
      if ((lo & 0xff) !== 0) u32[bits + (row >>> 5)] = (u32[bits + (row >>> 5)] as number) | (1 << (row & 31))
      low = (low + packageHash(0, u32[(keysLow >>> 2) + row] as number, day, lo, hi)) | 0
      high = (high + packageHash(1, u32[(keysHigh >>> 2) + row] as number, day, lo, hi)) | 0
    }
    const header = plane >>> 2
    u32[header] = day
    u32[header + 1] = packages
    u32[header + 2] = low
    u32[header + 3] = high
  }
}
