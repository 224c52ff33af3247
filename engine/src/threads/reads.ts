/**
 * Reads that the replica must confirm, on their way from a serving thread and back (docs/design/consensus.md#reads):
 * one message per turn of the event loop.
 *
 *   to the replica   Float64Array, 3 cells per read: token · 1 when linearizable · least index, 0 for none
 *   back             like the replies of writes (writes.ts), code 0: it may be served now, at `index` or later
 *
 * Tokens share one sequence with those of writes. Batches of writes are an ArrayBuffer, which distinguishes the two.
 */

export const READ_CELLS = 3

export type ReadBatch = { cells: number[] }

export function createReadBatch(): ReadBatch {
  return { cells: [] }
}

export function addRead(batch: ReadBatch, token: number, isLinearizable: boolean, minIndex: number): void {
  batch.cells.push(token, isLinearizable ? 1 : 0, minIndex)
}

/** Returns the batch in its own memory, to be transferred. */
export function takeReadBatch(batch: ReadBatch): Float64Array<ArrayBuffer> {
  const taken = Float64Array.from(batch.cells)
  batch.cells = []
  return taken
}
