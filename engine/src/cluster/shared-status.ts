/**
 * Status of the shard that serving threads read without messages: one block of shared memory, and the rules for reads
 * (docs/design/consensus.md#reads).
 *
 *   offset  cell   holds
 *   0       i32    version: odd while the others change
 *   4       i32    role | 8 when a leader is known
 *   8       f64    freshness: everything acknowledged in the shard before this moment is applied here;
 *                  milliseconds of the clock that all threads share, −∞ before there is such a moment
 *   16      f64    applied index
 *
 * The replica thread writes. Serving threads and the main thread read without locks and read again if the version
 * changed. The role alone is one load. A standalone node has no cells.
 *
 * Monotonic clocks of threads start at different moments, so each side passes the difference to the common clock when
 * it attaches (threads/clock.ts).
 */

import { assert } from '@vacancy/shared'

/**
 * `unavailable`: the node answers no requests. `none`: the node serves reads but accepts no writes, because no leader
 * is known, or because it was elected and has not applied an entry of its term.
 */
export const ROLE = { none: 0, leader: 1, follower: 2, learner: 3, unavailable: 4 } as const
export type RoleCode = (typeof ROLE)[keyof typeof ROLE]

export type ShardFacts = {
  readonly role: RoleCode
  readonly isLeaderKnown: boolean
  readonly applied: number
  /** In milliseconds of the clock of the attaching thread; −∞ for never. */
  readonly freshMs: number
}

export type Cells = {
  readonly i32: Int32Array
  readonly f64: Float64Array
  /** Added to this thread's monotonic milliseconds to get common ones. */
  readonly clockOffsetMs: number
}

const VERSION = 0
const FLAGS = 1
const FRESH = 1
const APPLIED = 2
const LEADER_KNOWN = 8
const ROLE_BITS = 7
const CELLS_BYTES = 64

/** Older data are not served unless the read accepts it. */
export const STALENESS_MS_DEFAULT = 10_000

/** Cells of a node that is not serving yet. */
export function createCells(): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(CELLS_BYTES)
  publishCells(attachCells(buffer, 0), {
    role: ROLE.unavailable,
    isLeaderKnown: false,
    applied: 0,
    freshMs: Number.NEGATIVE_INFINITY,
  })
  return buffer
}

/** @param clockOffsetMs common milliseconds minus monotonic milliseconds of the calling thread */
export function attachCells(buffer: SharedArrayBuffer, clockOffsetMs: number): Cells {
  assert(buffer.byteLength >= CELLS_BYTES, 'cells have their size')
  return { i32: new Int32Array(buffer), f64: new Float64Array(buffer), clockOffsetMs }
}

/** Replica thread only. Called after a batch was published to readers, after a change of role, and on each tick. */
export function publishCells(cells: Cells, facts: ShardFacts): void {
  const { i32, f64, clockOffsetMs } = cells
  const version = Atomics.load(i32, VERSION)
  assert(version % 2 === 0, 'cells have one writer')
  // The version stays within 32 bits: it is only compared with itself.
  Atomics.store(i32, VERSION, (version + 1) | 0)
  Atomics.store(i32, FLAGS, facts.role | (facts.isLeaderKnown ? LEADER_KNOWN : 0))
  f64[FRESH] = facts.freshMs + clockOffsetMs
  f64[APPLIED] = facts.applied
  Atomics.store(i32, VERSION, (version + 2) | 0)
}

export function roleOf(cells: Cells): RoleCode {
  return (Atomics.load(cells.i32, FLAGS) & ROLE_BITS) as RoleCode
}

export function isLeaderKnown(cells: Cells): boolean {
  return (Atomics.load(cells.i32, FLAGS) & LEADER_KNOWN) !== 0
}

/** Upper bound of the age of the data here in milliseconds; ∞ if unknown. */
export function stalenessMs(cells: Cells, nowMs: number): number {
  return nowMs + cells.clockOffsetMs - readConsistently(cells, FRESH)
}

export function readCells(cells: Cells): ShardFacts {
  return {
    role: roleOf(cells),
    isLeaderKnown: isLeaderKnown(cells),
    applied: readConsistently(cells, APPLIED),
    freshMs: readConsistently(cells, FRESH) - cells.clockOffsetMs,
  }
}

/** Another thread's store may tear a 64-bit load. The version shows whether one happened. */
function readConsistently({ i32, f64 }: Cells, cell: number): number {
  for (;;) {
    const before = Atomics.load(i32, VERSION)
    const value = f64[cell]
    if ((before & 1) === 0 && Atomics.load(i32, VERSION) === before) return value
  }
}

/** Options of a read (docs/design/protocol.md#extension-fields). */
export type ReadMode = {
  /** Milliseconds; undefined: the default bound. */
  readonly maxStalenessMs: number | undefined
  /** 0 for none. */
  readonly minIndex: number
  readonly isLinearizable: boolean
}

/**
 * - `serve`: now, from the applied state.
 * - `confirm`: after a confirmation by the replica (reads.ts).
 * - `stale`: the data here may be older than the read accepts.
 * - `unavailable`: this node answers no requests.
 */
export type Admission = 'serve' | 'confirm' | 'stale' | 'unavailable'

/**
 * Whether a read may be served here.
 *
 * @param applied index that readers of this thread find applied
 * @param servedIndex greatest index that this connection was served at; it never decreases
 *   (docs/design/consensus.md#promises)
 */
export function admitRead(
  cells: Cells,
  mode: ReadMode,
  nowMs: number,
  applied: number,
  servedIndex: number,
): Admission {
  if (roleOf(cells) === ROLE.unavailable) return 'unavailable'
  // A fresh ReadIndex is fresher than any bound.
  if (mode.isLinearizable) return 'confirm'
  const bound = mode.maxStalenessMs ?? STALENESS_MS_DEFAULT
  if (stalenessMs(cells, nowMs) > bound) return 'stale'
  return applied < mode.minIndex || applied < servedIndex ? 'confirm' : 'serve'
}
