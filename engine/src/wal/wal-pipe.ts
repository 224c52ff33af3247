/** How the messages that every write needs look between the replica and its log (pipe.ts); the others are rare. */

import type { Encoding } from '../pipe.ts'
import type { EntryBatch } from '../raft/entry.ts'
import type { WalTail } from './wal.ts'
import type { FromWal, ToWal } from './wal-thread.ts'

/** Token, refusals, term, vote, commit, batches, whether there is a tail. */
const APPEND_BYTES = 56
/** First index, count, bytes. */
const BATCH_BYTES = 24
/** Token, milliseconds of the sync, entries, bytes, files, whether there is a tail. */
const STORED_BYTES = 48
const TAIL_BYTES = 14 * 8

const padded = (bytes: number) => Math.ceil(bytes / 8) * 8

/**
 *   append   7 × f64: token · refusals · term · vote · commit · number of batches · 1 with a tail, the tail, then for
 *            each batch 3 × f64: first index · entries · length, and its bytes
 */
export const TO_WAL: Encoding<ToWal> = {
  length(message) {
    if (message.type !== 'append') return undefined
    let bytes = APPEND_BYTES + (message.tail ? TAIL_BYTES : 0)
    for (const batch of message.entries) bytes += BATCH_BYTES + padded(batch.bytes.length)
    return bytes
  },
  write(message, view, bytes, start) {
    if (message.type !== 'append') return
    const { token, refusals, hardState, entries, tail } = message
    const { term, vote, commit } = hardState
    let at = writeNumbers(view, start, [token, refusals, term, vote, commit, entries.length, tail ? 1 : 0])
    at = writeTail(view, at, tail)
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
    const tail = number(start + 48) === 1 ? readTail(view, at) : undefined
    if (tail) at += TAIL_BYTES
    for (let left = number(start + 40); left > 0; left--) {
      const length = number(at + 16)
      const body = bytes.subarray(at + BATCH_BYTES, at + BATCH_BYTES + length)
      entries.push({ firstIndex: number(at), count: number(at + 8), bytes: body })
      at += BATCH_BYTES + padded(length)
    }
    return { type: 'append', token, refusals, hardState, entries, ...(tail && { tail }) }
  },
}

/** stored: 6 × f64: token · milliseconds of the sync · entries · bytes · files · 1 with a tail, the tail */
export const FROM_WAL: Encoding<FromWal> = {
  length(message) {
    if (message.type !== 'stored') return undefined
    return STORED_BYTES + (message.tail ? TAIL_BYTES : 0)
  },
  write(message, view, _bytes, at) {
    if (message.type !== 'stored') return
    const { token, syncMs, entries, bytes, files, tail } = message
    writeTail(view, writeNumbers(view, at, [token, syncMs, entries, bytes, files, tail ? 1 : 0]), tail)
  },
  read(view, _bytes, at) {
    const number = (place: number) => view.getFloat64(at + place * 8, true)
    const [token, syncMs, entries, bytes, files] = [number(0), number(1), number(2), number(3), number(4)]
    const tail = number(5) === 1 ? readTail(view, at + STORED_BYTES) : undefined
    return { type: 'stored', token, syncMs, entries, bytes, files, tail }
  },
}

/** 14 × f64, in the order of the two functions. @returns where it ends */
function writeTail(view: DataView, at: number, tail: WalTail | undefined): number {
  if (!tail) return at
  const { descriptor, offset, dirtyBytes, sequence, chain, group, hardState, lastIndex, file } = tail
  const { term, vote, commit } = hardState
  const ofFile = [file.sequence, file.firstIndex, file.bytes, file.lastIndex]
  const ofLog = [descriptor, offset, dirtyBytes, sequence, chain, group, term, vote, commit, lastIndex]
  return writeNumbers(view, at, [...ofLog, ...ofFile])
}

function readTail(view: DataView, at: number): WalTail {
  const number = (place: number) => view.getFloat64(at + place * 8, true)
  return {
    descriptor: number(0),
    offset: number(1),
    dirtyBytes: number(2),
    sequence: number(3),
    chain: number(4),
    group: number(5),
    hardState: { term: number(6), vote: number(7), commit: number(8) },
    lastIndex: number(9),
    file: { sequence: number(10), firstIndex: number(11), bytes: number(12), lastIndex: number(13) },
  }
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
