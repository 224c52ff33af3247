/**
 * The records of clients in a chaos run: calls and returns, numbered in one order; milliseconds are of the machine's
 * monotonic clock.
 */

import type { Operation } from '../sim/history.ts'

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

/** A request key with two different results. */
export type Doubled = { readonly operation: Recorded; readonly first: string; readonly second: string }

export type Records = {
  readonly operations: Recorded[]
  readonly repeats: number
  readonly doubled: readonly Doubled[]
  readonly restores: readonly Restore[]
}

/** All nodes went back to a backup. `from`, `to` and `at` are numbers of the one order of calls and returns. */
export type Restore = {
  /** What had returned is in the backup. */
  readonly from: number
  /** What was called later is not. */
  readonly to: number
  /** No node of the former life of the data runs any more. */
  readonly at: number
  readonly atMs: number
  /** When the restored nodes served. */
  servesMs: number
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
