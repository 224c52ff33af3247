/** The state machine of a simulated node with its snapshots on disk, and its reference. */

import type { StateMachine } from '../../engine/src/cluster/replica-state.ts'
import type { Configuration, SnapshotOffer } from '../../engine/src/raft/messages.ts'
import type { Exchange } from '../../engine/src/snapshot/exchange.ts'
import { OUTCOME } from '../../engine/src/store/command.ts'
import type { Memory } from '../../engine/src/store/store.ts'
import type { StayDifference } from './stays-reference.ts'
import { applyToy, createToyMachine } from './toy-machine.ts'

type Outcome = { readonly code: number; readonly value: number; readonly index: number }

/** A request of an unknown session, or older than the stored results: it had no effect. */
export function isForgotten(code: number): boolean {
  return code === OUTCOME.sessionExpired || code === OUTCOME.tooOld
}

/** The reference for every replica. */
export type Reference = {
  /** @param observed the result of the first replica; @returns the expected result */
  apply(index: number, bytes: Uint8Array, start: number, end: number, observed: Outcome): Outcome
  lastMaintenanceDay(): number
  /** Counters of log events, in addition to those of the world. */
  readonly counts?: { readonly [name: string]: number }
  /** Absent when replicas are only compared with each other. */
  digest?(): { readonly lo: number; readonly hi: number }
  /** The present state as a restored shard begins with it: a copy, whose later changes are its own. */
  restored?(): Reference
  /** How the state of a replica at the same index differs, as text. */
  differenceFrom?(memory: Memory): string
  /** Of a store with stays. */
  readonly stays?: {
    /** What the reply to an entry shows of its stay; undefined without one. */
    replyAt(index: number): string | undefined
    differenceFrom(memory: Memory): StayDifference | undefined
    /** Stays on hold. */
    held(): number
    /** Latest deadline of a hold, ms. */
    lastDeadlineMs(): number
    /** Why a stay had more or other fates than one; '' for none. */
    fatesDifference(promised: ReadonlyMap<string, number>): string
  }
}

export type Machine = StateMachine & {
  readonly memory: Memory
  /** The value of a register; −1 when empty. */
  value(register: number): number
  /** Records the digest after an index, to be logged. */
  mark(index: number): void
  /** Takes a snapshot of the current state and writes it during further writes. `ended` receives the reason of a failure, or ''. */
  takeSnapshot(
    index: number,
    term: number,
    configuration: Configuration,
    ended: (reason: string, ranOutOfPages: boolean) => void,
  ): void
  /** The present state as a file to start from; undefined while a snapshot is written. */
  backUp(index: number, term: number): Uint8Array | undefined
  retain(pinned: readonly number[]): void
  readonly exchange: Exchange
  /** @returns why switching to the snapshot in a folder is impossible; empty when it is possible */
  prepareSwitch(path: string): string
  switchState(offer: SnapshotOffer, done: () => void): void
  /** Takes or returns all memory without blocks, as fragmentation would. */
  exhaust(takes: boolean): void
  readonly bulkData: {
    check(path: string): string
    replace(path: string, digest: string, done: () => void): void
  }
}

/** Digests are recorded more often than in production, and every new one is logged. */
export const MARKS_EVERY = 64

export function createToyReference(): Reference {
  const machine = createToyMachine()
  return {
    apply: (index, bytes, start) => applyToy(machine, index, bytes, start),
    digest: () => ({ lo: machine.digestLo, hi: machine.digestHi }),
    lastMaintenanceDay: () => 0,
  }
}
