/**
 * One simulated world: nodes with clocks, disks and processes, the network between them, and the oracles that watch
 * (docs/design/testing.md#simulation).
 *
 * A node runs a `Program`: the core alone (core-node.ts) or the whole driver with the log (driver-node.ts). A program
 * is started on a storage, receives frames and requests, and ends when its process is killed. All code of a process
 * runs through `runIn`, so that a dead process does nothing, a stalled one runs it later, and exceptions end it.
 */

import { assert, VacancyError } from '@vacancy/shared'
import { between, chance, type Random, streamOf } from '@vacancy/testkit/random'
import { cancelEvent, createScheduler, type Scheduler, scheduleIn } from '@vacancy/testkit/scheduler'
import type { Env, Log } from '../../engine/src/env.ts'
import type { Memory } from '../../engine/src/store/store.ts'
import { CrashError } from '../../engine/src/testing/disk.ts'
import type { StreamKind } from '../../engine/src/transport/transport.ts'
import { createClock, type NodeClock, trueUs } from './clocks.ts'
import { createHistory, type History, type Operation } from './history.ts'
import type { Fault, FaultClass, Knobs } from './knobs.ts'
import { createToyReference, type Reference } from './machine.ts'
import { attach, createNetwork, detach, type Network, type Payload, queuedBytesOf, sendPayload } from './network.ts'
import { createOracles, type Oracles, onConfiguration, onFresh, onLeader, ViolationError } from './oracles.ts'
import type { ToyCommand } from './toy-machine.ts'
import { createTrace, note, type Trace, type TraceKind } from './trace.ts'

export type Program = {
  readonly name: string
  /** Its nodes run the production store and log production commands. */
  readonly usesStore?: boolean
  /** Added to the time limits of the final phase. */
  readonly slackUs?: number
  /** One in this many acknowledgements is checked on the disks (docs/design/testing.md#oracles). */
  readonly durableEvery: number
  createStorage(world: World, node: SimulatedNode): unknown
  /** The encoded command for a register. */
  encode(command: ToyCommand): Uint8Array
  /** The reference for its replicas, unless it is the toy machine. */
  createReference?(knobs: Knobs): Reference
  /** The storage after a process has ended; with `isPowerLoss` unsynced data may be lost. */
  afterCrash(world: World, node: SimulatedNode, isPowerLoss: boolean): unknown
  /** @throws when the storage is refused */
  start(host: Host): Running
  damage(payload: Payload, random: Random): Payload | undefined
  /** Injects faults of the disk and of the whole node. @returns whether it was applied */
  meet?(world: World, node: SimulatedNode, fault: Fault): boolean
  /** Replaces the disk by a new one, with the file of a backup. */
  restore?(world: World, node: SimulatedNode, file: Uint8Array | undefined): void
  /** Ends a fault that `meet` started. */
  heal?(world: World, node: SimulatedNode): void
}

/** The result for a client. `none`: certainly in no log. */
export type Answer =
  | {
      readonly kind: 'result'
      readonly code: number
      readonly value: number
      /** Of the log. */
      readonly index: number
      /** As clients see it, where that differs. */
      readonly clientIndex?: number
    }
  | { readonly kind: 'none' | 'unknown'; readonly reason: string }

export type Action =
  | { readonly kind: 'transfer'; readonly target: number }
  | { readonly kind: 'promote' | 'demote'; readonly target: number }
  | { readonly kind: 'snapshot' }
  | { readonly kind: 'set-time' }
  /** Drops the days before today; with a reason, any number of them. */
  | { readonly kind: 'maintenance'; readonly isForced: boolean }
  /** Replaces the data with one of the images. */
  | { readonly kind: 'load'; readonly image: number }

/** A running program. */
export type Running = {
  readonly raft: {
    readonly role: string
    readonly term: number
    readonly lastIndex: number
    readonly commit: number
    readonly applied: number
    /** Of the current members; absent before there are any. */
    readonly configurationIndex?: number
  }
  onPayload(from: number, stream: StreamKind, payload: Payload): void
  /** Absent where frames of a former life of the data cannot arrive. */
  knowsLife?(): boolean
  onOpen(peer: number, stream: StreamKind): void
  onClosed(peer: number, stream: StreamKind, isDead: boolean): void
  propose(token: number, command: Uint8Array): void
  /** Several commands in one batch, in this order. */
  proposeAll?: (commands: readonly { readonly token: number; readonly bytes: Uint8Array }[]) => void
  /**
   * A read of one register, linearizable unless it only has to show an index that its client knows; the result is passed to `host.answer` like that of a write. */
  read(token: number, register: number, minIndex?: number): void
  /** @returns why it was refused; empty when it was accepted */
  act(action: Action): string
  /** Voting nodes by number, as known to this node; both halves while joint. */
  voters(): readonly number[]
  /** Groups of voters that each need a majority: two while joint. */
  halves(): readonly (readonly number[])[]
  learners(): readonly number[]
  isJoint(): boolean
  /** For programs whose nodes may rejoin as new members: the own raft id, and those of the voters. */
  raftId?(): number
  voterIds?(): readonly number[]
  /** It lost its disk: it does not vote, and never counts again. */
  readonly isMute?: boolean
  /** State after the applied index; undefined while there is none. */
  digest(): { readonly lo: number; readonly hi: number } | undefined
  /** Takes all free memory, or returns it. @returns whether it was taken */
  exhaust?(takes: boolean): boolean
  /** Its content, if it can be compared record by record. */
  memory?(): Memory | undefined
  /** A backup at or after an index of the log, and the registers in it; undefined if it cannot be taken now. */
  backUp?(
    least: number,
  ): { readonly file: Uint8Array; readonly index: number; readonly value: (register: number) => number } | undefined
  /** Throws when a structure exceeds its limit (docs/design/testing.md#oracles). */
  checkBounds(): void
  /** Whether an entry is durable on this disk (docs/design/testing.md#oracles). */
  isDurable(index: number, term: number): boolean
  /** Starts a graceful shutdown. */
  prepareStop?(): void
  /** By its monotonic clock, the time before which all acknowledged writes are applied here; −∞ for none. */
  freshMs?(): number
}

export type Host = {
  readonly world: World
  readonly node: SimulatedNode
  /** The environment of a program, except for its disk. */
  readonly env: Omit<Env, 'disk'>
  readonly random: Random
  send(to: number, stream: StreamKind, payload: Payload, bytes: number): boolean
  queuedBytes(to: number): number
  answer(token: number, answer: Answer): void
  /** Runs later in this process, unless it has ended: in true time, not by its clock. */
  later(delayUs: number, kind: TraceKind, run: () => void): void
}

export type Process = {
  readonly number: number
  readonly node: SimulatedNode
  running: Running | undefined
  isOver: boolean
  stalledUntilUs: number
  readonly waiting: (() => void)[]
}

export type SimulatedNode = {
  /** From 1; the initial voters first. */
  readonly number: number
  readonly name: string
  readonly clock: NodeClock
  storage: unknown
  process: Process | undefined
  starts: number
  /** Factor and offset for the duration of every sync. */
  slowDiskUs: number
  /** Until then no sync returns. */
  hungUntilUs: number
  slowApplyUs: number
  /** Faults that may end the process, and those that explain a refusal to start. */
  mayFail: boolean
  /** Its memory was taken, so a write within the budget may find none. */
  isExhausted: boolean
  isDamaged: boolean
  /** What it had applied then. */
  appliedWhenDamaged: number
  /** The process or machine stopped during disk operations, whatever these throw. */
  stopped: '' | 'killed' | 'power loss'
  /** When its disk was last replaced by an empty one; 0 if never. */
  wipedAt: number
  /** What its lost disk had: a leader that does not know yet counts it, until the node is a voter anew. */
  hadDurable: Running['isDurable'] | undefined
  /** It was a voter with this disk, so it counts for a majority even when it is down. */
  wasVoter: boolean
  /** Of bare cores: its number, until it joins anew (docs/design/consensus.md#identities). */
  raftId: number
  leaderTerm: number
  /** Its last reported freshness. */
  freshMs: number
  /** How it last ended, for the failure file. */
  lastEnd: string
}

export type Counts = ReturnType<typeof createCounts>

/** What a shard can be restored from (restore.ts). */
export type Backup = {
  readonly file: Uint8Array
  /** Of the log. */
  readonly index: number
  /** The state that it has. */
  readonly reference: Reference
  /** Values of the registers of clients; −1 for none. */
  readonly values: readonly number[]
  /** Bookings that were acknowledged before it. */
  readonly promised: ReadonlyMap<string, number>
  readonly timeMs: number
  readonly timeAtUs: number
}

export type World = {
  readonly seed: number
  readonly knobs: Knobs
  readonly program: Program
  readonly scheduler: Scheduler
  readonly trace: Trace
  readonly network: Network
  /** Of the present life of the data. */
  oracles: Oracles
  readonly history: History
  readonly nodes: readonly SimulatedNode[]
  readonly counts: Counts
  readonly diskRandom: Random
  readonly sometimesRandom: Random
  readonly onAnswer: Map<number, (answer: Answer) => void>
  /** The operation of each attempt. */
  readonly sent: Map<number, Operation>
  /** The attempt of an entry, by index and term. */
  readonly proposed: Map<string, number>
  /** When the entry of a bulk load was first handed to a log, by index and term, in history time. */
  readonly loadMoments: Map<string, number>
  /** Registers written by bulk loads, with the indexes of their entries. */
  readonly loaded: Map<Operation, number>
  /** The data were restored as many times, less one. */
  lives: number
  /** The newest one. */
  backup: Backup | undefined
  /** By write of a former life of the data, its place in the order of all writes. */
  readonly pastOrder: Map<Operation, number>
  /** Called when the shard was restored: what clients were told last may never have happened. */
  readonly onRestored: (() => void)[]
  /** Some indexes that clients were told, in this or a former life of the data. */
  readonly toldIndexes: { readonly index: number; readonly life: number }[]
  /** Index of the last acknowledged booking of each stay. */
  promised: Map<string, number>
  /** Whether an operator has requested a bulk load. */
  asksForLoads: boolean
  processes: number
  /** No new faults: the phase in which a majority must make progress. */
  isCalm: boolean
  /** In that phase: the healed nodes. */
  group: readonly number[]
}

export type WorldOptions = {
  readonly seed: number
  readonly knobs: Knobs
  readonly program: Program
  readonly keepsWords?: boolean
}

/** Input queued for a stalled process; more stays unread in its sockets. */
const WAITING_MAX = 20_000
/** Initial clock offset in thousandths; with the store up to days, because of its nights and sessions. */
const FAR_MS = 100_000_000
const FAR_MS_OF_STORE = 1_000_000

export function createWorld(options: WorldOptions): World {
  const { seed, knobs, program, keepsWords = false } = options
  const scheduler = createScheduler()
  const total = knobs.voters + knobs.learners
  const clocks = streamOf(seed, 'clocks')
  const nodes = Array.from({ length: total }, (_, i): SimulatedNode => {
    const rate = 1 + ((clocks.below(2_001) - 1_000) / 1_000) * (knobs.clockErrorPercent / 100)
    const farMs = knobs.usesStore ? FAR_MS_OF_STORE : FAR_MS
    const offsetMs = chance(clocks, 0.3) ? (clocks.below(2_001) - 1_000) * farMs : clocks.below(2_000) - 1_000
    return {
      number: i + 1,
      name: `n${String(i + 1).padStart(2, '0')}`,
      clock: createClock(scheduler, knobs.epochMs, rate, Math.max(-1.6e12, offsetMs), clocks.below(1_000_000)),
      storage: undefined,
      process: undefined,
      starts: 0,
      slowDiskUs: 0,
      hungUntilUs: 0,
      slowApplyUs: 0,
      mayFail: false,
      isExhausted: false,
      isDamaged: false,
      appliedWhenDamaged: 0,
      stopped: '',
      wipedAt: 0,
      hadDurable: undefined,
      wasVoter: false,
      raftId: i + 1,
      leaderTerm: 0,
      freshMs: Number.NEGATIVE_INFINITY,
      lastEnd: '',
    }
  })
  const lateUsMax = knobs.tickMs * knobs.electionTicks * 10_000
  const networkKnobs = { ...knobs, lateUsMax, queueBytesMax: 1 << 20 }
  const network = createNetwork(total, networkKnobs, scheduler, streamOf(seed, 'network'), program.damage)
  const world: World = {
    seed,
    knobs,
    program,
    scheduler,
    trace: createTrace(keepsWords),
    network,
    oracles: createOracles(program.createReference?.(knobs) ?? createToyReference()),
    history: createHistory(),
    nodes,
    counts: createCounts(),
    diskRandom: streamOf(seed, 'disk'),
    sometimesRandom: streamOf(seed, 'sometimes'),
    onAnswer: new Map(),
    sent: new Map(),
    proposed: new Map(),
    loadMoments: new Map(),
    loaded: new Map(),
    lives: 1,
    backup: undefined,
    pastOrder: new Map(),
    onRestored: [],
    toldIndexes: [],
    promised: new Map(),
    asksForLoads: false,
    processes: 0,
    isCalm: false,
    group: [],
  }
  if (!knobs.classes.includes('membership'))
    world.oracles.clocks = nodes.slice(0, knobs.voters).map(({ clock }) => clock)
  for (const node of nodes) node.storage = program.createStorage(world, node)
  return world
}

function createCounts() {
  return {
    faults: {} as Record<FaultClass, number>,
    ...{ elections: 0, snapshotsTaken: 0, snapshotsInstalled: 0, membershipChanges: 0, transfers: 0 },
    ...{ restarts: 0, refusals: 0, entries: 0, requests: 0, answers: 0, reads: 0, unknowns: 0 },
    /** Replies to builders, and how many of them were refusals for lack of memory or of a day. */
    ...{ built: 0, memoryRefusals: 0, outsideWindow: 0 },
    /** Replies about hotels and stays. */
    stayReplies: 0,
    /** Nodes that ended because they had no memory block for a write within the budget. */
    exhausted: 0,
    maintenances: 0,
    loads: 0,
    /** Reads that waited for an index that a client knew. */
    waitedIndexes: 0,
    backups: 0,
    /** Runs over a New Year, and over the end of a 28 February before a 29th. */
    newYears: 0,
    leapDays: 0,
    /** Runs that ended without a majority of intact disks, for which only safety was checked. */
    lostMajorities: 0,
  }
}

export function nodeOf(world: World, number: number): SimulatedNode {
  const node = world.nodes[number - 1]
  assert(node !== undefined, 'nodes are numbered from 1')
  return node
}

/** Starts a process on the node's disk. */
export function startNode(world: World, node: SimulatedNode): void {
  if (node.process) return
  const process: Process = {
    number: ++world.processes,
    node,
    running: undefined,
    isOver: false,
    stalledUntilUs: 0,
    waiting: [],
  }
  node.process = process
  node.leaderTerm = 0
  node.freshMs = Number.NEGATIVE_INFINITY
  if (node.starts++ > 0) world.counts.restarts++
  note(world.trace, world.scheduler.nowUs, node.number, 'start', node.starts)
  const host = createHost(world, process)
  runIn(world, process, 'start', node.starts, () => {
    const running = world.program.start(host)
    process.running = running
    attach(world.network, node.number, {
      knowsLife: () => process.running?.knowsLife?.() ?? true,
      onPayload: (from, stream, payload) =>
        runIn(world, process, 'frame', from, () => running.onPayload(from, stream, payload)),
      onOpen: (peer, stream) => runIn(world, process, 'open', peer, () => running.onOpen(peer, stream)),
      onClosed: (peer, stream, isDead) =>
        runIn(world, process, 'closed', peer, () => running.onClosed(peer, stream, isDead)),
    })
  })
}

/** In the calm phase only healed nodes restart. */
export function restartLater(world: World, node: SimulatedNode, afterUs: number): void {
  scheduleIn(world.scheduler, afterUs, () => {
    if (!world.isCalm || world.group.includes(node.number)) startNode(world, node)
  })
}

/** Ends the process at any point. */
export function endProcess(world: World, node: SimulatedNode, how: string, isPowerLoss: boolean): void {
  const { process } = node
  if (!process) return
  process.isOver = true
  process.running = undefined
  process.waiting.length = 0
  node.process = undefined
  node.stopped = ''
  node.isExhausted = false
  node.lastEnd = how
  note(world.trace, world.scheduler.nowUs, node.number, 'stop', isPowerLoss ? 1 : 0, () => how)
  if (world.network.ends[node.number]) detach(world.network, node.number, !isPowerLoss)
  node.storage = world.program.afterCrash(world, node, isPowerLoss)
}

/** Runs code in a process: now, later if it is stalled, never if it has ended. */
export function runIn(world: World, process: Process, kind: TraceKind, digest: number, run: () => void): void {
  if (process.isOver) return
  const { nowUs } = world.scheduler
  if (nowUs < process.stalledUntilUs) {
    if (process.waiting.length < WAITING_MAX) process.waiting.push(() => runIn(world, process, kind, digest, run))
    return
  }
  const { node } = process
  note(world.trace, nowUs, node.number, kind, digest)
  try {
    run()
  } catch (error) {
    onThrown(world, process, error)
    return
  }
  look(world, process)
}

/** Handles an exception of a process. A fault may explain it; otherwise it is a bug. */
function onThrown(world: World, process: Process, error: unknown): void {
  const { node } = process
  if (error instanceof ViolationError) throw error
  if (process.isOver) return
  const { stopped } = node
  const isCrash = stopped !== '' || error instanceof CrashError
  const code = error instanceof VacancyError ? error.code : ''
  const isDiskFailure = code === 'disk_failed' && node.mayFail
  const isRefusal = code === 'corrupt_data' && node.isDamaged
  const isFull = code === 'no_room' && node.mayFail
  const isOutOfMemory = code === 'memory_exhausted' && node.isExhausted
  if (!isCrash && !isDiskFailure && !isRefusal && !isFull && !isOutOfMemory) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const explained = new ViolationError('O11', `node ${node.number} ended without a fault: ${text}`)
    throw Object.assign(explained, { cause: error })
  }
  if (isRefusal) {
    world.counts.refusals++
    world.oracles.checks.O10++
  }
  if (isOutOfMemory) world.counts.exhausted++
  world.oracles.checks.O11++
  const how = stopped === '' ? 'the machine stopped' : `${stopped} between two operations of the disk`
  endProcess(world, node, isCrash ? how : code, isCrash && stopped !== 'killed')
  // The supervisor restarts it, unless its disk is damaged, since it would only fail again.
  if (!isRefusal) restartLater(world, node, world.knobs.tickMs * world.knobs.electionTicks * 2_000)
}

function look(world: World, process: Process): void {
  const { running, node } = process
  if (!running) return
  const { raft } = running
  checkFreshness(world, node, running)
  noteMembers(world, running)
  if (!node.wasVoter && !running.isMute)
    node.wasVoter = !running.raftId || (running.voterIds?.().includes(running.raftId()) ?? true)
  if (node.wasVoter) node.hadDurable = undefined
  if (raft.role === 'leader' && raft.term !== node.leaderTerm) {
    node.leaderTerm = raft.term
    world.counts.elections++
    note(world.trace, world.scheduler.nowUs, node.number, 'leader', raft.term, () => `of term ${raft.term}`)
    onLeader(world.oracles, node.number, raft.term, raft.lastIndex)
  }
}

/** The configuration in force at the applied index of a process. */
export function noteMembers({ oracles }: World, { raft, halves }: Running): void {
  const { configurationIndex = -1 } = raft
  if (configurationIndex > oracles.configurationIndex) onConfiguration(oracles, configurationIndex, halves())
}

const SUSPENSION_SEEN_US = 30_000_000

/** Checks docs/design/testing.md#oracles against true time, since the age is measured only by the node's clock. */
function checkFreshness({ scheduler, oracles }: World, node: SimulatedNode, { freshMs, raft }: Running): void {
  const fresh = freshMs?.() ?? Number.NEGATIVE_INFINITY
  if (fresh === node.freshMs) return
  node.freshMs = fresh
  if (fresh === Number.NEGATIVE_INFINITY) return
  // A suspended machine does not measure the time of its suspension: values measured before are older by that.
  if (scheduler.nowUs - node.clock.resumedUs < SUSPENSION_SEEN_US) return
  const agoUs = trueUs(node.clock, node.clock.clock.monotonicMs() - fresh)
  // Below the floating point error.
  onFresh(oracles, node.number, scheduler.nowUs - agoUs - 1, raft.applied)
}

/** Stalls the process; its input is queued. */
export function stall(world: World, node: SimulatedNode, us: number): void {
  const { process } = node
  if (!process) return
  process.stalledUntilUs = Math.max(process.stalledUntilUs, world.scheduler.nowUs + us)
  scheduleIn(world.scheduler, us, () => resume(world, process))
}

export function resume(world: World, process: Process): void {
  if (process.isOver || world.scheduler.nowUs < process.stalledUntilUs) return
  const waiting = process.waiting.splice(0)
  for (const run of waiting) run()
}

function createHost(world: World, process: Process): Host {
  const { node } = process
  const { scheduler, network, trace } = world
  const random = streamOf(world.seed, `node ${node.number} start ${node.starts}`)
  const quiet = (): void => undefined
  const say =
    (level: string) =>
    (fields: object, message: string): void => {
      if (trace.lines)
        note(trace, scheduler.nowUs, node.number, 'note', 0, () => `${level} ${message} ${textOf(fields)}`)
    }
  const log: Log = trace.lines
    ? { debug: quiet, info: say('info'), warn: say('warn'), error: say('error') }
    : { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const host: Host = {
    world,
    node,
    random,
    env: {
      clock: node.clock.clock,
      random: { bytes: (count) => Uint8Array.from({ length: count }, () => random.below(256)) },
      schedule: {
        after(delayMs, run) {
          const event = scheduleIn(scheduler, trueUs(node.clock, delayMs), () => runIn(world, process, 'timer', 0, run))
          return () => cancelEvent(event)
        },
      },
      host: { processId: process.number, bootId: `boot-of-${node.name}`, startOf: () => undefined },
      log,
      sometimes: (_name, p) =>
        !world.isCalm && world.knobs.sometimesP > 0 && chance(world.sometimesRandom, p * world.knobs.sometimesP),
    },
    send(to, stream, payload, bytes) {
      assert(!process.isOver, 'only a live process sends')
      return sendPayload(network, node.number, to, stream, payload, bytes)
    },
    queuedBytes: (to) => queuedBytesOf(network, node.number, to),
    answer(token, answer) {
      const onAnswer = world.onAnswer.get(token)
      // The client has ended, or has its result.
      if (!onAnswer) return
      world.onAnswer.delete(token)
      onAnswer(answer)
    },
    later(delayUs, kind, run) {
      scheduleIn(scheduler, delayUs, () => runIn(world, process, kind, 0, run))
    },
  }
  return host
}

function textOf(fields: object): string {
  try {
    return JSON.stringify(fields)
  } catch {
    // A circular structure in the log fields: the message suffices.
    return ''
  }
}

/** The duration of one sync. */
export function syncUs(world: World, node: SimulatedNode): number {
  const { syncUsMin, syncUsMax } = world.knobs
  // Mostly fast; slow syncs are the exception on real disks as well.
  const us = chance(world.diskRandom, 0.8) ? syncUsMin : between(world.diskRandom, syncUsMin, syncUsMax)
  return us + node.slowDiskUs + Math.max(0, node.hungUntilUs - world.scheduler.nowUs)
}
