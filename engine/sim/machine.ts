/** The state machine of a simulated node with its snapshots on the node's disk, and what it is compared with. */

import type { StateMachine } from '../src/cluster/replica-state.ts'
import type { Configuration, SnapshotOffer } from '../src/raft/messages.ts'
import type { Exchange } from '../src/snapshot/exchange.ts'
import { OUTCOME } from '../src/store/command.ts'
import type { Memory } from '../src/store/store.ts'
import { applyToy, createToyMachine } from '../src/testing/toy-machine.ts'

type Outcome = { readonly code: number; readonly value: number; readonly index: number }

/** A request of a session that is not known, or below the results that are kept: whatever it was, it did nothing. */
export function isForgotten(code: number): boolean {
  return code === OUTCOME.sessionExpired || code === OUTCOME.tooOld
}

/** What every replica is compared with. */
export type Reference = {
  /** @param observed what the first replica came to; @returns what it had to come to */
  apply(index: number, bytes: Uint8Array, start: number, end: number, observed: Outcome): Outcome
  lastMaintenanceDay(): number
  /** What happened in the log, beside what a world counts itself. */
  readonly counts?: { readonly [name: string]: number }
  /** Absent where replicas are compared with each other. */
  digest?(): { readonly lo: number; readonly hi: number }
  /** What a replica that has applied as much holds differently, in words. */
  differenceFrom?(memory: Memory): string
}

export type Machine = StateMachine & {
  readonly memory: Memory
  /** What a register holds; −1: nothing is there. */
  value(register: number): number
  /** Random bits of the shard (docs/design/consensus.md#formation); zeros until its first entry. */
  genesis(): Uint8Array
  /** Notes the digest behind an index, for the log to name it. */
  mark(index: number): void
  /** Takes a snapshot of the present state and writes it while writes continue; `ended` gets the reason of a failure, or ''. */
  takeSnapshot(
    index: number,
    term: number,
    configuration: Configuration,
    ended: (reason: string, ranOutOfPages: boolean) => void,
  ): void
  retain(pinned: readonly number[]): void
  readonly exchange: Exchange
  /** @returns why the snapshot in a folder cannot be switched to; empty when it can */
  prepareSwitch(path: string): string
  switchState(offer: SnapshotOffer, done: () => void): void
  /** Takes or gives back all memory that no block was in yet, as blocks of unlucky sizes would. */
  exhaust(takes: boolean): void
  readonly bulkData: {
    check(path: string): string
    replace(path: string, digest: string, done: () => void): void
  }
}

/** Digests are noted more often than in production, and logged as often as there is a new one. */
export const MARKS_EVERY = 64

export function createToyReference(): Reference {
  const machine = createToyMachine()
  return {
    apply: (index, bytes, start, end) => applyToy(machine, index, bytes, start, end),
    digest: () => ({ lo: machine.digestLo, hi: machine.digestHi }),
    lastMaintenanceDay: () => machine.lastMaintenanceDay,
  }
}
