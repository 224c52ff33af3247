/**
 * Words of one range of rows ⇄ byte planes (docs/design/storage.md#snapshot-format), by kernel.as.ts.
 *
 * Each word is coded against the word of the same row the night before, the first night against an empty word:
 *
 *   byte     holds
 *   0        availability minus the night before, modulo 256
 *   1–3      features, exclusive-or with the night before
 *   4–7      price minus the night before, modulo 2^32, zigzag
 *
 * The arithmetic is reversible for any two words, so an empty one needs no special case: its price counts as -1,
 * because prices are inverted in a word, and two empty nights are equal.
 *
 * The bytes of one night form eight planes of one byte a row. A plane of zeros is omitted, and a mask
 * of one bit per plane marks the planes present: a night equal to the previous one costs only its mask.
 */

import { compileKernel } from '../kernels.ts'

export const BYTES_PER_WORD = 8
export const BYTE_PLANES = 8
/**
 * Both functions walk the nights of one range of rows. All arguments are addresses in the memory of the kernel but for
 * `nights` and `rows`. Addresses of words are multiples of 8, those of 32-bit cells multiples of 4.
 *
 * - `planes` u32 a night: where the words of the range lie that night
 * - `days` u32 a night: its day number
 * - `keysLow`, `keysHigh` u32 a row: rowKey of store/digest.ts in lanes 0 and 1; of no meaning where all words are empty
 * - `masks` one byte a night
 * - `cursors` eight u32: address of the next byte of each plane; advanced by the bytes written or read
 * - `stats` three u32: packages and digest lanes of all nights are added to them
 */
export type SnapshotKernel = {
  encode(
    planes: number,
    nights: number,
    rows: number,
    days: number,
    keysLow: number,
    keysHigh: number,
    masks: number,
    cursors: number,
    stats: number,
  ): void
  /**
   * `available` u32 a night: where the range's bits begin that say which rows have rooms left; they must be 0 before;
   * 0 for no such lists. `nightStats` u32 a night: three cells as in `stats`, added to atomically since other threads
   * may decode other rows of that night; 0 for none.
   */
  decode(
    planes: number,
    nights: number,
    rows: number,
    days: number,
    keysLow: number,
    keysHigh: number,
    masks: number,
    cursors: number,
    stats: number,
    available: number,
    nightStats: number,
  ): void
}

/** @throws VacancyError kernel_unavailable */
export function loadSnapshotKernel(memory: WebAssembly.Memory): SnapshotKernel {
  const { exports } = new WebAssembly.Instance(compileKernel('snapshot'), { env: { memory } })
  return exports as unknown as SnapshotKernel
}
