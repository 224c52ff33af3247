/**
 * Reads that the replica must say something about, on their way from a serving thread and back (consensus.md §9, §14):
 * one message a turn of the event loop.
 *
 *   to the replica   Float64Array, 3 cells a read: token · 1 when linearizable · least index, 0 for none
 *   back             as the answers of writes (writes.ts), code 0: it may be served now, at `index` or later
 *
 * Tokens are numbers of the same row as those of writes. That batches of writes are an ArrayBuffer tells the two apart.
 */

export const READ_CELLS = 3

export type AskedReads = { cells: number[] }

export function createAskedReads(): AskedReads {
  return { cells: [] }
}

export function askRead(asked: AskedReads, token: number, isLinearizable: boolean, minIndex: number): void {
  asked.cells.push(token, isLinearizable ? 1 : 0, minIndex)
}

/** The batch as memory of its own, to be transferred. */
export function takeAskedReads(asked: AskedReads): Float64Array<ArrayBuffer> {
  const batch = Float64Array.from(asked.cells)
  asked.cells = []
  return batch
}
