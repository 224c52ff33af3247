/**
 * One simulated world: nodes with clocks, disks and processes, the network between them, and the oracles that watch
 * (docs/design/testing.md#simulation).
 *
 * What a node runs is a `Program`: the core alone (core-node.ts) or the whole driver over the log (driver-node.ts). A
 * program is started on a storage, gets frames and requests, and ends by its process being killed. Everything that
 * happens in a process goes through `runIn`, so that a dead process does nothing, a stalled one does it later, and what
 * it throws ends it.
 */

import { assert, VacancyError } from '@vacancy/shared'
import { between, chance, type Random, streamOf } from '@vacancy/testkit/random'
import type { Env, Log } from '../src/env.ts'
import type { Memory } from '../src/store/store.ts'
import { createClock, type NodeClock, trueUs } from '../src/testing/clocks.ts'
import { CrashError } from '../src/testing/disk.ts'
import { cancelEvent, createScheduler, type Scheduler, scheduleIn } from '../src/testing/scheduler.ts'
import type { ToyCommand } from '../src/testing/toy-machine.ts'
import type { StreamKind } from '../src/transport/transport.ts'
import { createHistory, type History, type Operation } from './history.ts'
import type { Fault, FaultClass, Knobs } from './knobs.ts'
import { createToyReference, type Reference } from './machine.ts'
import { attach, createNetwork, detach, type Network, type Payload, queuedBytesOf, sendPayload } from './network.ts'
import { createOracles, type Oracles, onConfiguration, onFresh, onLeader, ViolationError } from './oracles.ts'
import { createTrace, note, type Trace, type TraceKind } from './trace.ts'

export type Program = {
  readonly name: string
  /** Its nodes run the product's store, and log the product's commands. */
  readonly usesStore?: boolean
  /** Added to the time that things may take in the end. */
  readonly slackUs?: number
  /** Of so many acknowledgements one is looked up on the disks (docs/design/testing.md#oracles). */
  readonly durableEvery: number
  createStorage(world: World, node: SimulatedNode): unknown
  /** A command on a register as the log holds it. */
  encode(command: ToyCommand): Uint8Array
  /** What its replicas are compared with, unless it is the toy machine. */
  createReference?(knobs: Knobs): Reference
  /** What is left of the storage of a process that is gone; `isPowerLoss`: of what was not synced, too. */
  afterCrash(world: World, node: SimulatedNode, isPowerLoss: boolean): unknown
  /** @throws when the storage is refused */
  start(host: Host): Running
  damage(payload: Payload, random: Random): Payload | undefined
  /** Faults of the disk and of the whole node. @returns whether it happened */
  meet?(world: World, node: SimulatedNode, fault: Fault): boolean
  /** Ends what `meet` began. */
  heal?(world: World, node: SimulatedNode): void
}

/** What a client is told. `none`: certainly in no log. */
export type Answer =
  | { readonly kind: 'result'; readonly code: number; readonly value: number; readonly index: number }
  | { readonly kind: 'none' | 'unknown'; readonly reason: string }

export type Action =
  | { readonly kind: 'transfer'; readonly target: number }
  | { readonly kind: 'promote' | 'demote' | 'remove'; readonly target: number }
  | { readonly kind: 'snapshot' }
  | { readonly kind: 'set-time' }
  /** The days before today are dropped; with a reason, however many. */
  | { readonly kind: 'maintenance'; readonly isForced: boolean }
  /** One of the images takes the place of the data. */
  | { readonly kind: 'load'; readonly image: number }

/** A program that runs. */
export type Running = {
  readonly raft: {
    readonly role: string
    readonly term: number
    readonly lastIndex: number
    readonly commit: number
    readonly applied: number
    /** Of the members in force; absent before there are any. */
    readonly configurationIndex?: number
  }
  onPayload(from: number, stream: StreamKind, payload: Payload): void
  onOpen(peer: number, stream: StreamKind): void
  onClosed(peer: number, stream: StreamKind, isDead: boolean): void
  propose(token: number, command: Uint8Array): void
  /** Several in one batch, in this order. */
  proposeAll?: (commands: readonly { readonly token: number; readonly bytes: Uint8Array }[]) => void
  /** A linearizable read of one register, answered through `host.answer` like a write. */
  read(token: number, register: number): void
  /** @returns why not; empty when it was taken */
  act(action: Action): string
  /** Nodes by number that vote, as this one knows it; both halves while joint. */
  voters(): readonly number[]
  /** The voters that must agree, each group by a majority of its own: two while joint. */
  halves(): readonly (readonly number[])[]
  learners(): readonly number[]
  isJoint(): boolean
  /** Where nodes may come back as other members: the own raft id, and those of the voters. */
  raftId?(): number
  voterIds?(): readonly number[]
  /** State behind the applied index; nothing while there is none. */
  digest(): { readonly lo: number; readonly hi: number } | undefined
  /** Takes all memory that no block is in, or gives it back. @returns whether it was taken */
  exhaust?(takes: boolean): boolean
  /** What it holds, where that can be compared record by record. */
  memory?(): Memory | undefined
  /** Throws when something grew beyond its bound (docs/design/testing.md#oracles). */
  checkBounds(): void
  /** Whether an entry is durable here, as the disk knows it (docs/design/testing.md#oracles). */
  isDurable(index: number, term: number): boolean
  /** Begins an orderly stop. */
  prepareStop?(): void
  /** By its own monotonic clock, the moment before which everything acknowledged is applied here; −∞ for none. */
  freshMs?(): number
}

export type Host = {
  readonly world: World
  readonly node: SimulatedNode
  /** Everything but the disk, which is the program's. */
  readonly env: Omit<Env, 'disk'>
  readonly random: Random
  send(to: number, stream: StreamKind, payload: Payload, bytes: number): boolean
  queuedBytes(to: number): number
  answer(token: number, answer: Answer): void
  /** Runs later in this process, unless it is gone by then: of the machine's time, not of its clock. */
  later(delayUs: number, kind: TraceKind, run: () => void): void
  isAlive(): boolean
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
  /** Factor and addition to the time of every sync. */
  slowDiskUs: number
  slowApplyUs: number
  /** Faults that may end the process by themselves, and those that explain a refusal to start. */
  mayFail: boolean
  /** Its memory was taken, so that a write that fits the budget may find none. */
  isExhausted: boolean
  isDamaged: boolean
  /** Process or machine have stopped in the middle of their work on the disk; whatever that throws. */
  stopped: '' | 'killed' | 'power was lost'
  /** When its disk was last replaced by an empty one; 0 for never. */
  wipedAt: number
  /** With this disk it was seen to be a voter: it counts for a majority, whether it runs or not. */
  wasVoter: boolean
  /** An operator took it out for good. */
  isRemoved: boolean
  leaderTerm: number
  /** What it said last of its freshness. */
  freshMs: number
  /** Its last end, for the failure file. */
  lastEnd: string
}

export type Counts = {
  readonly faults: Record<FaultClass, number>
  elections: number
  snapshotsTaken: number
  snapshotsInstalled: number
  membershipChanges: number
  transfers: number
  restarts: number
  refusals: number
  entries: number
  requests: number
  answers: number
  reads: number
  unknowns: number
  /** Answers to builders, and how many of them refused for want of memory or of a day. */
  built: number
  memoryRefusals: number
  outsideWindow: number
  /** Nodes that ended because their memory had no block for a write that fits the budget. */
  exhausted: number
  maintenances: number
  loads: number
  /** Runs that ended without a majority of whole disks: nothing but safety was asked of them. */
  lostMajorities: number
}

export type World = {
  readonly seed: number
  readonly knobs: Knobs
  readonly program: Program
  readonly defects: ReadonlySet<string>
  readonly scheduler: Scheduler
  readonly trace: Trace
  readonly network: Network
  readonly oracles: Oracles
  readonly history: History
  readonly nodes: readonly SimulatedNode[]
  readonly counts: Counts
  readonly diskRandom: Random
  readonly applyRandom: Random
  readonly sometimesRandom: Random
  readonly onAnswer: Map<number, (answer: Answer) => void>
  /** What each sending of the history was for. */
  readonly sent: Map<number, Operation>
  /** Which sending an entry came from, by index and term. */
  readonly proposed: Map<string, number>
  /** When the entry of a bulk load was first handed to a log, by index and term: a moment of the history. */
  readonly loadMoments: Map<string, number>
  /** What bulk loads wrote into the registers of the history, with the indexes of their entries. */
  readonly loaded: Map<Operation, number>
  /** Whether an operator has requested a bulk load. */
  asksForLoads: boolean
  processes: number
  /** No new faults: the phase in which a majority must get on. */
  isCalm: boolean
  /** While it is calm: who is healed. */
  group: readonly number[]
}

export type WorldOptions = {
  readonly seed: number
  readonly knobs: Knobs
  readonly program: Program
  readonly defects?: ReadonlySet<string>
  readonly keepsWords?: boolean
}

const NO_DEFECTS: ReadonlySet<string> = new Set()
/** What a stalled process finds when it goes on; more than this was never read from its sockets. */
const WAITING_MAX = 20_000
/** A thousandth of how wrong clocks are from the start; beside the store by days, for it has nights and sessions. */
const FAR_MS = 100_000_000
const FAR_MS_OF_STORE = 1_000_000

export function createWorld(options: WorldOptions): World {
  const { seed, knobs, program, defects = NO_DEFECTS, keepsWords = false } = options
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
      clock: createClock(scheduler, rate, Math.max(-1.6e12, offsetMs), clocks.below(1_000_000)),
      storage: undefined,
      process: undefined,
      starts: 0,
      slowDiskUs: 0,
      slowApplyUs: 0,
      mayFail: false,
      isExhausted: false,
      isDamaged: false,
      stopped: '',
      wipedAt: 0,
      wasVoter: false,
      isRemoved: false,
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
    defects,
    scheduler,
    trace: createTrace(keepsWords),
    network,
    oracles: createOracles(program.createReference?.(knobs) ?? createToyReference()),
    history: createHistory(),
    nodes,
    counts: createCounts(),
    diskRandom: streamOf(seed, 'disk'),
    applyRandom: streamOf(seed, 'apply'),
    sometimesRandom: streamOf(seed, 'sometimes'),
    onAnswer: new Map(),
    sent: new Map(),
    proposed: new Map(),
    loadMoments: new Map(),
    loaded: new Map(),
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

function createCounts(): Counts {
  return {
    faults: {} as Counts['faults'],
    elections: 0,
    snapshotsTaken: 0,
    snapshotsInstalled: 0,
    membershipChanges: 0,
    transfers: 0,
    restarts: 0,
    refusals: 0,
    entries: 0,
    requests: 0,
    answers: 0,
    reads: 0,
    unknowns: 0,
    built: 0,
    memoryRefusals: 0,
    outsideWindow: 0,
    exhausted: 0,
    maintenances: 0,
    loads: 0,
    lostMajorities: 0,
  }
}

export function nodeOf(world: World, number: number): SimulatedNode {
  const node = world.nodes[number - 1]
  assert(node !== undefined, 'nodes are numbered from 1')
  return node
}

/** Starts a process on what is on the node's disk. */
export function startNode(world: World, node: SimulatedNode): void {
  if (node.process || node.isRemoved) return
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
      onPayload: (from, stream, payload) =>
        runIn(world, process, 'frame', from, () => running.onPayload(from, stream, payload)),
      onOpen: (peer, stream) => runIn(world, process, 'open', peer, () => running.onOpen(peer, stream)),
      onClosed: (peer, stream, isDead) =>
        runIn(world, process, 'closed', peer, () => running.onClosed(peer, stream, isDead)),
    })
  })
}

/** Once it is calm only those start again that are to be healed. */
export function restartLater(world: World, node: SimulatedNode, afterUs: number): void {
  scheduleIn(world.scheduler, afterUs, () => {
    if (!world.isCalm || world.group.includes(node.number)) startNode(world, node)
  })
}

/** Ends the process, whatever it is doing. */
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

/** Runs something in a process: now, later when it is stalled, never when it is gone. */
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

/** Something came out of a process. A fault may explain it; otherwise it is a bug. */
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
    const explained = new ViolationError('O11', `node ${node.number} ended without a fault that explains it: ${text}`)
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
  // Whoever looks after it starts it again; one whose disk is damaged would only say so again.
  if (!isRefusal) restartLater(world, node, world.knobs.tickMs * world.knobs.electionTicks * 2_000)
}

function look(world: World, process: Process): void {
  const { running, node } = process
  if (!running) return
  const { raft } = running
  checkFreshness(world, node, running)
  noteMembers(world, running)
  if (!node.wasVoter) node.wasVoter = !running.raftId || (running.voterIds?.().includes(running.raftId()) ?? true)
  if (raft.role === 'leader' && raft.term !== node.leaderTerm) {
    node.leaderTerm = raft.term
    world.counts.elections++
    note(world.trace, world.scheduler.nowUs, node.number, 'leader', raft.term, () => `of term ${raft.term}`)
    onLeader(world.oracles, node.number, raft.term, raft.lastIndex)
  }
}

/** What is in force where a process has come to. */
export function noteMembers({ oracles }: World, { raft, halves }: Running): void {
  const { configurationIndex = -1 } = raft
  if (configurationIndex > oracles.configurationIndex) onConfiguration(oracles, configurationIndex, halves())
}

const SUSPENSION_SEEN_US = 30_000_000

/**
 * docs/design/testing.md#oracles, against true time: how long ago that moment is, is told by the node's clock alone.
 */
function checkFreshness({ scheduler, oracles }: World, node: SimulatedNode, { freshMs, raft }: Running): void {
  const fresh = freshMs?.() ?? Number.NEGATIVE_INFINITY
  if (fresh === node.freshMs) return
  node.freshMs = fresh
  if (fresh === Number.NEGATIVE_INFINITY) return
  // A machine that was suspended does not know that time went by: what it measured before is as old as that.
  if (scheduler.nowUs - node.clock.resumedUs < SUSPENSION_SEEN_US) return
  const agoUs = trueUs(node.clock, node.clock.clock.monotonicMs() - fresh)
  // Less than what is lost in floating point.
  onFresh(oracles, node.number, scheduler.nowUs - agoUs - 1, raft.applied)
}

/** The process does nothing for a while; what comes in waits. */
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
      defects: world.defects,
      sometimes: (_name, p) =>
        !world.isCalm && world.knobs.sometimesP > 0 && chance(world.sometimesRandom, p * world.knobs.sometimesP),
    },
    send(to, stream, payload, bytes) {
      assert(!process.isOver, 'only a process that lives sends')
      return sendPayload(network, node.number, to, stream, payload, bytes)
    },
    queuedBytes: (to) => queuedBytesOf(network, node.number, to),
    answer(token, answer) {
      const onAnswer = world.onAnswer.get(token)
      // The client is gone, or has its answer.
      if (!onAnswer) return
      world.onAnswer.delete(token)
      onAnswer(answer)
    },
    later(delayUs, kind, run) {
      scheduleIn(scheduler, delayUs, () => runIn(world, process, kind, 0, run))
    },
    isAlive: () => !process.isOver,
  }
  return host
}

function textOf(fields: object): string {
  try {
    return JSON.stringify(fields)
  } catch {
    // A circle in what was logged: the message says enough.
    return ''
  }
}

/** How long one sync takes now. */
export function syncUs(world: World, node: SimulatedNode): number {
  const { syncUsMin, syncUsMax } = world.knobs
  // Mostly quick: the slow ones are the exception on real disks, too.
  const us = chance(world.diskRandom, 0.8) ? syncUsMin : between(world.diskRandom, syncUsMin, syncUsMax)
  return us + node.slowDiskUs
}
