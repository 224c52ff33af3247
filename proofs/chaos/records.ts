/**
 * The records of clients in a chaos run, and reading them: one line per call and per return, in one file per client.
 * Sequence numbers come from a counter shared by all clients, so the order across clients is exact; milliseconds are of
 * the machine's monotonic clock.
 */

import { readFileSync } from 'node:fs'
import type { Operation, OperationKind, Outcome } from '../sim/history.ts'

/**
 * For writes, the source of the request key: the client library, the caller, or none. For reads, the consistency:
 * linearizable, default, bounded staleness, or an index.
 */
export type Mode = 'library' | 'own' | 'keyless' | 'linearizable' | 'default' | 'stale' | 'index'

/** An operation of a chaos run: the fields for the checker (history.ts), and more. */
export type Recorded = Operation & {
  readonly client: number
  readonly mode: Mode
  /** Maximum staleness in milliseconds, or minimum index. */
  readonly bound: number
  readonly calledMs: number
  returnedMs: number
  /** Index of an acknowledged write; 0 for others. */
  index: number
  /** Error code; '' for none. */
  code: string
}

type CallLine = readonly ['c', number, number, OperationKind, number, number, number, Mode, number]
type ReturnLine = readonly ['r', number, Outcome, number, number, number, number, string]
/** A repeat of a completed write: the first and the repeated result. */
type RepeatLine = readonly ['d', number, string, string]
export type Line = CallLine | ReturnLine | RepeatLine

/** A request key with two different results. */
export type Doubled = { readonly operation: Recorded; readonly first: string; readonly second: string }

export type Records = {
  readonly operations: Recorded[]
  readonly repeats: number
  readonly doubled: readonly Doubled[]
}

/** Reads the files of all clients into one history, in the order of the calls. */
export function readRecords(files: readonly string[]): Records {
  const operations: Recorded[] = []
  const doubled: Doubled[] = []
  let repeats = 0
  for (const [client, file] of files.entries()) {
    const own = new Map<number, Recorded>()
    for (const text of readFileSync(file, 'utf8').split('\n')) {
      // The last line of an interrupted client may be incomplete.
      if (!text.endsWith(']')) continue
      const line = JSON.parse(text) as Line
      const [kind, id] = line
      if (kind === 'c') own.set(id, recordedOf(client, line))
      else if (kind === 'r') completeRecorded(own.get(id) as Recorded, line)
      else {
        repeats++
        const operation = own.get(id) as Recorded
        if (line[2] !== line[3]) doubled.push({ operation, first: line[2], second: line[3] })
      }
    }
    operations.push(...own.values())
  }
  operations.sort((a, b) => a.calledAt - b.calledAt)
  return { operations, repeats, doubled }
}

function recordedOf(client: number, [, id, key, kind, amount, calledAt, calledMs, mode, bound]: CallLine): Recorded {
  return {
    id: client * 10_000_000 + id,
    process: client,
    client,
    key,
    kind,
    amount,
    calledAt,
    calledMs,
    mode,
    bound,
    returnedAt: Number.POSITIVE_INFINITY,
    returnedMs: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
    value: 0,
    index: 0,
    code: '',
  }
}

function completeRecorded(operation: Recorded, line: ReturnLine): void {
  const [, , outcome, value, returnedAt, returnedMs, index, code] = line
  operation.outcome = outcome
  operation.value = value
  operation.code = code
  if (outcome === 'unknown') return
  operation.returnedAt = returnedAt
  operation.returnedMs = returnedMs
  operation.index = index
}

// Packages by number

export type Ground = { readonly properties: number; readonly dates: readonly string[] }

const ROOMS = ['single', 'double'] as const

export function packagesOf({ properties, dates }: Ground): number {
  return properties * ROOMS.length * dates.length
}

/** The package of a key. */
export function placeOf(
  { properties, dates }: Ground,
  key: number,
): { readonly propertyId: string; readonly roomType: string; readonly date: string } {
  const property = key % properties
  const room = Math.floor(key / properties) % ROOMS.length
  const night = Math.floor(key / properties / ROOMS.length)
  return { propertyId: `chaos_${property}`, roomType: ROOMS[room], date: dates[night] }
}

/** After the first write these packages are only decremented and incremented, so the final value is a sum. */
export function isConserved(key: number): boolean {
  return key % 3 === 0
}
export const CONSERVED_ROOMS = 100
