/**
 * The state machine of a simulated node with its snapshots on the node's disk. There are two: the toy one here, and the
 * product's store with the product's snapshots (store-machine.ts), which some seeds run.
 */

import type { CodecList } from '@vacancy/shared'
import type { StateMachine } from '../cluster/replica.ts'
import { type Env, isDiskFull } from '../env.ts'
import { viewOf } from '../raft/entry.ts'
import type { Configuration, SnapshotOffer } from '../raft/messages.ts'
import type { Exchange } from '../snapshot/exchange.ts'
import type { DigestMark } from '../store/apply.ts'
import { COMMAND_HEADER_BYTES, KIND } from '../store/command.ts'
import {
  listToySnapshots,
  readToySnapshot,
  retainToySnapshots,
  type ToyExchangeParts,
  toyExchange,
  writeToySnapshot,
} from './toy-exchange.ts'
import { applyToy, createToyMachine, encodeToy, restoreToy } from './toy-machine.ts'

/** What every replica is compared with. */
export type Reference = Pick<StateMachine, 'apply' | 'digest' | 'lastMaintenanceDay'>

export type Placed = {
  readonly index: number
  readonly term: number
  readonly configuration: Configuration | undefined
}

export type Machine = StateMachine & {
  /** What a register holds; −1: nothing is there. */
  value(register: number): number
  /** Random bits of the shard (G6); zeros until its first entry. */
  genesis(): Uint8Array
  /** Notes the digest behind an index, for the log to name it. */
  mark(index: number): void
  /** Puts the newest snapshot of the disk into the machine, which is new. */
  load(): Placed | undefined
  /** Takes a snapshot of the present state and has it written later; `ended` says why not, in words. */
  takeSnapshot(index: number, term: number, configuration: Configuration, ended: (reason: string) => void): void
  retain(pinned: readonly number[]): void
  readonly exchange: Exchange
  /** @returns why the snapshot in a folder cannot be switched to; empty when it can */
  prepareSwitch(path: string): string
  switchState(offer: SnapshotOffer, done: () => void): void
}

export type MachineParts = {
  readonly env: Env
  readonly dataDir: string
  readonly shardId: string
  readonly codecs: CodecList
  readonly node: number
  readonly chunkBytes: number
  /** Runs it later in this process, after a short time or as long as writing a snapshot takes. */
  readonly later: (work: 'exchange' | 'snapshot', run: () => void) => void
  readonly onDigestMismatch: (index: number) => void
}

/** Digests are noted more often than in production, and logged as often as there is a new one. */
export const MARKS_EVERY = 64
const MARKS_MAX = 64

export function createToyReference(): Reference {
  const machine = createToyMachine()
  return {
    apply: (index, bytes, start, end) => applyToy(machine, index, bytes, start, end),
    digest: () => ({ lo: machine.digestLo, hi: machine.digestHi }),
    lastMaintenanceDay: () => machine.lastMaintenanceDay,
  }
}

export function createToyNode(parts: MachineParts): Machine {
  const { env, dataDir, chunkBytes, onDigestMismatch } = parts
  const { disk } = env
  const toy = createToyMachine()
  const marks: DigestMark[] = []
  const exchangeParts: ToyExchangeParts = {
    disk,
    dataDir,
    shardId: parts.shardId,
    codecsOrderedHash: parts.codecs.orderedHash,
    chunkBytes,
    later: (run) => parts.later('exchange', run),
  }
  const check = (bytes: Uint8Array, start: number): void => {
    const view = viewOf(bytes)
    if (view.getUint16(start, true) !== KIND.digestCheck) return
    const body = start + COMMAND_HEADER_BYTES
    const at = view.getFloat64(body, true)
    const own = marks.find(({ index }) => index === at)
    if (own && (own.lo !== view.getUint32(body + 8, true) || own.hi !== view.getUint32(body + 12, true)))
      onDigestMismatch(at)
  }
  return {
    apply(index, bytes, start, end) {
      check(bytes, start)
      return applyToy(toy, index, bytes, start, end)
    },
    publish: () => undefined,
    digestMarks: () => marks,
    digest: () => ({ lo: toy.digestLo, hi: toy.digestHi }),
    lastMaintenanceDay: () => toy.lastMaintenanceDay,
    latestTimeMs: () => toy.timeMs,
    packagesBefore: () => 0,
    unorderedTables: () => [],
    sweep: () => false,
    value: (register) => toy.values[register] as number,
    genesis: () => toy.genesis.slice(),
    mark(index) {
      marks.push({ index, lo: toy.digestLo, hi: toy.digestHi })
      if (marks.length > MARKS_MAX) marks.shift()
    },
    load() {
      const [path] = listToySnapshots(disk, dataDir)
      if (path === undefined) return undefined
      const { index, term, configuration, state } = readToySnapshot(disk, path)
      restoreToy(toy, state)
      return { index, term, configuration }
    },
    takeSnapshot(index, term, configuration, ended) {
      // Taken at once; it takes a while until it is whole on disk.
      const taken = { index, term, configuration, state: encodeToy(toy) }
      parts.later('snapshot', () => {
        try {
          writeToySnapshot(exchangeParts, taken)
        } catch (error) {
          if (!isDiskFull(error)) throw error
          return ended('the disk is full')
        }
        ended('')
      })
    },
    retain: () => retainToySnapshots(exchangeParts),
    exchange: toyExchange(exchangeParts),
    prepareSwitch: () => '',
    switchState({ index, snapshotTerm }, done) {
      const path = listToySnapshots(disk, dataDir).find((name) => name.endsWith(`toy-${index}-${snapshotTerm}`))
      if (path === undefined) throw new Error('a snapshot is current before its state is')
      restoreToy(toy, readToySnapshot(disk, path).state)
      marks.length = 0
      done()
    },
  }
}
