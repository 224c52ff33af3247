/**
 * A replica in one thread with a simulated env: the production core, driver and log, and a state machine that only
 * records its input. It can be restarted on a crashed disk with one call.
 */

import { assert, dayOf } from '@vacancy/shared'
import { pump } from '../cluster/hand-over.ts'
import { onLogMessage } from '../cluster/log-answers.ts'
import { snapshotWritten } from '../cluster/maintenance.ts'
import { proposeBatch } from '../cluster/proposals.ts'
import { tick } from '../cluster/replica.ts'
import { addSink, createReplica, type Replica } from '../cluster/replica-state.ts'
import type { StaysOfMachine } from '../cluster/stay-answers.ts'
import type { Env } from '../env.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, viewOf } from '../raft/entry.ts'
import { campaign, createRaft } from '../raft/raft.ts'
import type { DigestMark } from '../store/apply-context.ts'
import { beginCommand, COMMAND_HEADER_BYTES, KIND, timeOfCommand, timeSetBy, writeU32 } from '../store/command.ts'
import type { LastSetTime } from '../store/set-time.ts'
import { ANSWER_BYTES, beginProposal, createProposals, endProposal, takeProposals } from '../threads/writes.ts'
import { createInlineLog } from '../wal/inline-log.ts'
import { assertConnects, createWal, openWal, type Recovered, recoveredTerm } from '../wal/open.ts'
import { listLogFiles, replayEntries } from '../wal/scan.ts'
import type { Wal, WalOptions } from '../wal/wal.ts'
import { prepareNext } from '../wal/wal.ts'
import { handleWalMessages, packWal, type ToWal, unpackWal, type WalThread } from '../wal/wal-thread.ts'
import type { SimulatedDisk } from './disk.ts'
import { IDENTITY, SMALL } from './log-fixture.ts'
import { createSimulation, type Simulation } from './simulation.ts'

/** The first bytes of a toy command's body, and its reply. */
export type Command = { readonly token: number; readonly value: number; readonly bytes?: number }
type Answer = { readonly code: number; readonly value: number; readonly index: number }

/** Commands with this value are refused by the state machine, deterministically. */
export const UNLUCKY = 4_000_000_013
const UNLUCKY_CODE = 6

type ToySnapshot = { readonly index: number; readonly term: number; readonly values: readonly number[] }

export type ToyReplica = {
  readonly simulation: Simulation
  readonly disk: SimulatedDisk
  readonly replica: Replica
  readonly wal: Wal
  /** Values of all applied commands, in order. */
  readonly values: number[]
  readonly published: number[]
  /** Size of each applied batch, in entries. */
  readonly turns: number[]
  readonly times: { readonly timeMs: number; readonly day: number }[]
  readonly answers: Map<number, Answer>
  readonly sinks: readonly number[]
  /** Complete snapshots on disk, oldest first; production code stores them in snapshots/. */
  readonly snapshots: ToySnapshot[]
  readonly failures: unknown[]
  /** Days published to readers. */
  readonly days: number[]
  /** How often the snapshot was hurried because writes wait. */
  hurries: number
}

export type ToyOptions = {
  seed?: number
  wal?: WalOptions
  flushThreshold?: number
  snapshotTriggerCount?: number
  snapshotIntervalMs?: number
  snapshots?: ToySnapshot[]
  wallMs?: number
  snapshotTakesMs?: number
  /** From 1, a leader records digests after writes. */
  featureLevel?: number
  /** Whether a sync of the log thread does not return. */
  isHung?: () => boolean
  /** The replica writes small groups itself, as that of a node alone does. */
  writesInline?: boolean
  /** Whether a running snapshot leaves too few spare pages for a command. */
  lacksSparePages?: () => boolean
}

const DIRECTORY = '/wal'
const NOTHING: ToySnapshot = { index: 0, term: 0, values: [] }

/** Starts from the disk, or as a new shard. It is the leader when the simulation has settled. */
/** A machine without a ledger. */
const NO_STAYS: StaysOfMachine = {
  replyTo: () => undefined,
  read: () => ({ code: 0, frame: undefined }),
  admits: () => true,
  nextDeadlineMs: () => Number.POSITIVE_INFINITY,
  status: () => ({
    stays: 0,
    held: 0,
    bytes: 0,
    oversoldNights: 0,
    oversold: [],
    nextDeadlineMs: 0,
    expired: 0,
    overflowedRooms: 0,
    unrecordedRooms: 0,
    evicted: { ended: 0, booked: 0 },
    isFull: false,
    refused: {},
    settings: { stays_bytes: 0, holds_max: 0, holds_max_per_source: 0, day_begins_minutes: 0 },
  }),
}

export function startToy(disk: SimulatedDisk, options: ToyOptions = {}): ToyReplica {
  const { seed = 1, wallMs, snapshots = [], snapshotTakesMs = 50 } = options
  const simulation = createSimulation({ seed, disk, ...(wallMs !== undefined && { wallMs }) })
  const { env } = simulation
  if (!disk.stat(DIRECTORY)) disk.makeDirectory(DIRECTORY)
  disk.syncDirectory('/')
  const isNew = listLogFiles(disk, DIRECTORY).length === 0
  const walOptions = options.wal ?? SMALL
  const opened = isNew
    ? { wal: createWal(env, DIRECTORY, IDENTITY, NOTHING, walOptions), recovered: undefined }
    : openWal(env, DIRECTORY, IDENTITY, { ...walOptions, isClean: false })
  const base = snapshots.at(-1) ?? NOTHING
  const values = [...base.values]
  const times: { timeMs: number; day: number }[] = []
  const restored = restore(disk, opened.recovered, base, values, times)
  const log = createLog(env, disk, opened.wal, options, () => replica)
  let turn = 0
  let newestMark: DigestMark | undefined
  const known = { timeMs: times.at(-1)?.timeMs ?? 0, lastSet: undefined as LastSetTime | undefined }
  const toy: ToyReplica = {
    simulation,
    disk,
    wal: opened.wal,
    values,
    times,
    published: [],
    turns: [],
    answers: new Map(),
    snapshots,
    failures: [],
    days: [],
    hurries: 0,
    sinks: [],
    replica: createReplica({
      env,
      raft: createRaft(1, restored),
      machine: {
        apply(index, bytes, start, end) {
          turn++
          const view = viewOf(bytes)
          const kind = view.getUint16(start, true)
          if (kind === KIND.digestCheck && view.getFloat64(start + COMMAND_HEADER_BYTES, true) === 0)
            newestMark = { index, lo: values.length, hi: 0 }
          if (kind === KIND.setTime) noteSetTime(known, timeOfCommand(view, start), timeSetBy(view, start))
          if (kind !== KIND.setAvailability) return { code: 0, value: 0, index, detail: '', stay: 0 }
          assert(end - start >= COMMAND_HEADER_BYTES + 4, 'a toy command has a value')
          known.timeMs = timeOfCommand(view, start)
          times.push({ timeMs: known.timeMs, day: view.getUint32(start + 10, true) })
          const value = view.getUint32(start + COMMAND_HEADER_BYTES, true)
          if (value === UNLUCKY) return { code: UNLUCKY_CODE, value: 0, index, detail: '', stay: 0 }
          values.push(value)
          return { code: 0, value: value & 255, index, detail: '', stay: 0 }
        },
        publish(index) {
          toy.published.push(index)
          toy.turns.push(turn)
          turn = 0
        },
        digestMarks: () => [{ index: Math.floor(values.length / 4_096) * 4_096, lo: values.length, hi: 0 }],
        newestMark: () => newestMark,
        digest: () => ({ lo: values.length, hi: values.reduce((sum, value) => (sum * 31 + value) >>> 0, 7) }),
        lastMaintenanceDay: () => 0,
        latestTimeMs: () => known.timeMs,
        packagesBefore: () => 0,
        isUnordered: () => false,
        orderTables: () => [].values(),
        sweep: () => false,
        indexBase: () => 0,
        featureLevel: () => options.featureLevel ?? 0,
        stays: NO_STAYS,
        hasDeleted: () => false,
        prepareDeletes: () => undefined,
        budgetUse: () => ({ budgetBytes: 0, chargedBytes: 0, leftBytes: 0 }),
        lacksSparePages: () => options.lacksSparePages?.() ?? false,
        hurrySnapshot: () => void toy.hurries++,
        time: {
          dayAt: dayOf,
          noteDay: (day) => toy.days.push(day),
          effectsOf: () => ({ importNights: undefined, droppedFrom: undefined }),
          lastSet: () => known.lastSet,
        },
      },
      snapshots: {
        start(index, term) {
          const snapshot = { index, term, values: [...values] }
          env.schedule.after(snapshotTakesMs, () => {
            snapshots.push(snapshot)
            snapshotWritten(replica, index, term, snapshotTakesMs)
          })
        },
        retain: () => void snapshots.splice(0, snapshots.length - 2),
      },
      log,
      onFatal: (failure) => toy.failures.push(failure),
      onMaintained: () => undefined,
      onReserve: () => undefined,
      space: () => disk.space('/'),
      snapshotIntervalMs: options.snapshotIntervalMs ?? 60_000,
      snapshotTriggerCount: options.snapshotTriggerCount ?? 10_000,
      snapshotIndex: base.index,
      tornTailBytes: opened.recovered?.tornBytes ?? 0,
      acceptDay: 0,
      lastTimeMs: times.at(-1)?.timeMs ?? 0,
    }),
  }
  const { replica } = toy
  const sinks = [0, 1].map(() => addSink(replica, (answers) => noteAnswers(toy, answers)))
  Object.assign(toy, { sinks })
  campaign(replica.raft)
  pump(replica)
  const beat = (): void => {
    tick(replica)
    env.schedule.after(100, beat)
  }
  env.schedule.after(100, beat)
  return toy
}

/** The log thread, and the replica's part of it. @returns how a replica tells it something */
function createLog(
  env: Env,
  disk: SimulatedDisk,
  wal: Wal,
  options: ToyOptions,
  replica: () => Replica,
): (message: ToWal) => void {
  const queue: ToWal[] = []
  const thread: WalThread = {
    wal,
    flushThreshold: options.flushThreshold ?? 2000,
    lends: options.writesInline === true,
    send: (message) =>
      void env.schedule.after(options.writesInline ? 1 : 0, () => {
        inline.onAnswer(message)
        onLogMessage(replica(), message)
        settle()
      }),
    monotonicMs: env.clock.monotonicMs,
    isRefusing: false,
    refusals: 0,
  }
  const flush = (): void => {
    if (options.isHung?.()) return void env.schedule.after(10, flush)
    handleWalMessages(thread, queue.splice(0))
    prepareNext(thread.wal, 1024)
  }
  const toThread = (message: ToWal): void => {
    // Data passed between threads is copied.
    queue.push(structuredClone(message))
    if (queue.length === 1) env.schedule.after(0, flush)
  }
  const inline = createInlineLog({
    wal: { ...unpackWal(structuredClone(packWal(wal))), disk },
    toThread,
    onStored: (message) => onLogMessage(replica(), message),
    onWaiting: () => void env.schedule.after(0, settle),
    monotonicMs: env.clock.monotonicMs,
  })
  const settle = (): void => {
    while (inline.settle() > 0);
  }
  return options.writesInline ? inline.send : toThread
}

type Known = { timeMs: number; lastSet: LastSetTime | undefined }

function noteSetTime(known: Known, fromMs: number, toMs: number): void {
  const count = (known.lastSet?.count ?? 0) + 1
  known.lastSet = { count, fromMs, toMs, importNights: undefined, droppedFrom: undefined }
  known.timeMs = toMs
}

function restore(
  disk: SimulatedDisk,
  recovered: Recovered | undefined,
  base: ToySnapshot,
  values: number[],
  times: { timeMs: number; day: number }[],
) {
  if (!recovered) return { term: 0, vote: 0, commit: 0, lastIndex: 0, lastTerm: 0, applied: 0 }
  assertConnects(recovered, base)
  replayEntries(disk, recovered.scan, base.index + 1, (_, count, bytes, start) => {
    const view = viewOf(bytes)
    let at = start
    for (let i = 0; i < count; i++) {
      const body = at + ENTRY_HEADER_BYTES
      if (entryKind(view, at) === ENTRY_KIND.command && view.getUint16(body, true) === KIND.setAvailability) {
        const value = view.getUint32(body + COMMAND_HEADER_BYTES, true)
        if (value !== UNLUCKY) values.push(value)
        times.push({ timeMs: view.getUint32(body + 2, true) + view.getUint32(body + 6, true) * 2 ** 32, day: 0 })
      }
      at = body + entryLength(view, at)
    }
  })
  const { lastIndex, hardState } = recovered
  const lastTerm = recoveredTerm(recovered, lastIndex) || base.term
  return { ...hardState, commit: lastIndex, lastIndex, lastTerm, applied: lastIndex }
}

function noteAnswers(toy: ToyReplica, answers: ArrayBuffer): void {
  const view = new DataView(answers)
  for (let at = 0; at < answers.byteLength; at += ANSWER_BYTES) {
    const token = view.getUint32(at, true)
    assert(!toy.answers.has(token), 'every proposal has exactly one outcome')
    toy.answers.set(token, {
      code: view.getUint8(at + 4),
      value: view.getUint8(at + 5),
      index: view.getFloat64(at + 8, true),
    })
  }
}

/** One batch of a serving thread. */
export function give(toy: ToyReplica, commands: readonly Command[], sink = 0): void {
  const proposals = createProposals()
  for (const { token, value, bytes = 0 } of commands) {
    const writer = beginProposal(proposals)
    beginCommand(writer, KIND.setAvailability)
    writeU32(writer, value)
    for (let i = 0; i < bytes; i += 4) writeU32(writer, 0)
    endProposal(proposals, token)
  }
  proposeBatch(toy.replica, toy.sinks[sink] ?? 0, takeProposals(proposals))
}
