/** The writing thread's own part of the ledger (memory.ts): indexes of its records, and the heap of deadlines. */

import { clearIds, createIdIndex } from './id-index.ts'
import type { Ledger } from './memory.ts'

export function createLedger(): Ledger {
  return {
    stays: createIdIndex(),
    properties: new Map(),
    nights: new Map(),
    deadlines: [],
    heldCount: 0,
    heldBySource: new Map(),
    bytes: 0,
    forgetFrom: Number.POSITIVE_INFINITY,
    oversold: new Set(),
    counts: {
      expired: 0,
      overflowed: 0,
      unrecorded: 0,
      evicted: { ended: 0, booked: 0 },
      evictedAtMs: Number.NEGATIVE_INFINITY,
      refused: new Map(),
    },
  }
}

export function clearLedger(ledger: Ledger): void {
  clearIds(ledger.stays)
  ledger.properties.clear()
  ledger.nights.clear()
  ledger.deadlines.length = 0
  ledger.heldCount = 0
  ledger.heldBySource.clear()
  ledger.bytes = 0
  ledger.forgetFrom = Number.POSITIVE_INFINITY
  ledger.oversold.clear()
}

/** A packed id as the key of an index: one character a byte, so that the order of keys is that of the bytes. */
export function keyOfId(bytes: Uint8Array, start: number): string {
  // At once: a key that is put together byte by byte is copied again when a map hashes it.
  const [b, n] = [bytes, start]
  return String.fromCharCode(
    b[n],
    b[n + 1],
    b[n + 2],
    b[n + 3],
    b[n + 4],
    b[n + 5],
    b[n + 6],
    b[n + 7],
    b[n + 8],
    b[n + 9],
    b[n + 10],
    b[n + 11],
    b[n + 12],
    b[n + 13],
    b[n + 14],
    b[n + 15],
  )
}

const packed = new Uint8Array(16)

/** The packed id of a key, until the next call. */
export function idOfKey(key: string): Uint8Array {
  for (let i = 0; i < 16; i++) packed[i] = key.charCodeAt(i)
  return packed
}

export function keyOfNight(property: number, roomType: number, day: number): string {
  return `${property}/${roomType}/${day}`
}

type Deadline = Ledger['deadlines'][number]

function isBefore(a: Deadline, b: Deadline): boolean {
  return a.deadlineMs < b.deadlineMs || (a.deadlineMs === b.deadlineMs && a.id < b.id)
}

export function pushDeadline({ deadlines }: Ledger, deadline: Deadline): void {
  let at = deadlines.length
  deadlines.push(deadline)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!isBefore(deadline, deadlines[parent] as Deadline)) break
    deadlines[at] = deadlines[parent] as Deadline
    at = parent
  }
  deadlines[at] = deadline
}

/** Removes the first deadline. */
export function popDeadline({ deadlines }: Ledger): void {
  const last = deadlines.pop()
  if (last === undefined || deadlines.length === 0) return
  let at = 0
  for (;;) {
    let child = at * 2 + 1
    if (child >= deadlines.length) break
    if (child + 1 < deadlines.length && isBefore(deadlines[child + 1] as Deadline, deadlines[child] as Deadline))
      child++
    if (!isBefore(deadlines[child] as Deadline, last)) break
    deadlines[at] = deadlines[child] as Deadline
    at = child
  }
  deadlines[at] = last
}

/** Rebuilds the heap of exactly these. */
export function replaceDeadlines(ledger: Ledger, deadlines: readonly Deadline[]): void {
  ledger.deadlines.length = 0
  for (const deadline of deadlines) pushDeadline(ledger, deadline)
}
