/** How the messages that every write needs look between the replica and its log (pipe.ts); the others are rare. */

import type { Encoding } from '../pipe.ts'
import type { EntryBatch } from '../raft/entry.ts'
import type { FromWal, ToWal } from './wal-thread.ts'

/** Token, refusals, term, vote, commit, batches. */
const APPEND_BYTES = 48
/** First index, count, bytes. */
const BATCH_BYTES = 24
const STORED_BYTES = 40

const padded = (bytes: number) => Math.ceil(bytes / 8) * 8

/**
 *   append   6 × f64: token · refusals · term · vote · commit · number of batches, then for each batch
 *            3 × f64: first index · entries · length, and its bytes
 */
export const TO_WAL: Encoding<ToWal> = {
  length(message) {
    if (message.type !== 'append') return undefined
    let bytes = APPEND_BYTES
    for (const batch of message.entries) bytes += BATCH_BYTES + padded(batch.bytes.length)
    return bytes
  },
  write(message, view, bytes, start) {
    if (message.type !== 'append') return
    const { token, refusals, hardState, entries } = message
    const { term, vote, commit } = hardState
    let at = writeNumbers(view, start, [token, refusals, term, vote, commit, entries.length])
    for (const batch of entries) {
      at = writeNumbers(view, at, [batch.firstIndex, batch.count, batch.bytes.length])
      bytes.set(batch.bytes, at)
      at += padded(batch.bytes.length)
    }
  },
  read(view, bytes, start) {
    const number = (at: number) => view.getFloat64(at, true)
    const [token, refusals] = [number(start), number(start + 8)]
    const hardState = { term: number(start + 16), vote: number(start + 24), commit: number(start + 32) }
    const entries: EntryBatch[] = []
    let at = start + APPEND_BYTES
    for (let left = number(start + 40); left > 0; left--) {
      const length = number(at + 16)
      const body = bytes.subarray(at + BATCH_BYTES, at + BATCH_BYTES + length)
      entries.push({ firstIndex: number(at), count: number(at + 8), bytes: body })
      at += BATCH_BYTES + padded(length)
    }
    return { type: 'append', token, refusals, hardState, entries }
  },
}

/** stored: 5 × f64: token · milliseconds of the sync · entries · bytes · files */
export const FROM_WAL: Encoding<FromWal> = {
  length: ({ type }) => (type === 'stored' ? STORED_BYTES : undefined),
  write(message, view, _bytes, at) {
    if (message.type !== 'stored') return
    const { token, syncMs, entries, bytes, files } = message
    writeNumbers(view, at, [token, syncMs, entries, bytes, files])
  },
  read(view, _bytes, at) {
    const number = (place: number) => view.getFloat64(at + place * 8, true)
    const [token, syncMs, entries, bytes, files] = [number(0), number(1), number(2), number(3), number(4)]
    return { type: 'stored', token, syncMs, entries, bytes, files }
  },
}

/** @returns where they end */
function writeNumbers(view: DataView, start: number, numbers: readonly number[]): number {
  let at = start
  for (const number of numbers) {
    view.setFloat64(at, number, true)
    at += 8
  }
  return at
}
