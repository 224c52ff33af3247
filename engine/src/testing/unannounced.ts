/** Finds words that change before `touch` announced it to a snapshot in progress. */
import type { Store } from '../store/store.ts'

/** Receives the calls of `touch`, of which a test replaces the module. */
export type TouchWatch = { touched: (address: number, bytes: number) => void }

/**
 * Runs a change.
 *
 * @param exempt addresses of words that only readers use, such as versions of tables
 * @returns addresses of words in use that differ now, and were not announced before
 */
export function unannounced(
  { memory, writer }: Store,
  watch: TouchWatch,
  operation: () => void,
  exempt: readonly number[] = [],
): number[] {
  const ranges = [
    [writer.recordsStart, writer.gap.low],
    [writer.gap.high, writer.spare.start],
  ].map(([from = 0, end = 0]) => {
    const words = memory.u32.slice(from >>> 2, end >>> 2)
    return { first: from >>> 2, words, isAnnounced: new Uint8Array(words.length) }
  })
  const late: number[] = []
  const check = ({ first, words, isAnnounced }: (typeof ranges)[number], n: number) => {
    const address = (first + n) * 4
    if (isAnnounced[n] === 0 && memory.u32[first + n] !== words[n] && !exempt.includes(address)) late.push(address)
  }
  watch.touched = (address, bytes) => {
    for (const range of ranges) {
      const end = Math.min(range.words.length, ((address + bytes + 3) >>> 2) - range.first)
      for (let n = Math.max(0, (address >>> 2) - range.first); n < end; n++) {
        check(range, n)
        range.isAnnounced[n] = 1
      }
    }
  }
  operation()
  watch.touched = () => undefined
  for (const range of ranges) {
    for (let n = 0; n < range.words.length; n++) check(range, n)
  }
  return late
}
