/**
 * Runs one seed: a cluster under faults and load, then a healed majority that must make progress, then everything
 * healed, then a check of the whole history (docs/design/testing.md#simulation).
 */

import { dayOf, formatDay } from '@vacancy/shared'
import { streamOf as randomOf, shuffle } from '@vacancy/testkit/random'
import { runNext, scheduleIn } from '@vacancy/testkit/scheduler'
import { startBuilders } from './builders.ts'
import { drawSchedule, heal, leaderOf, startSchedule } from './faults.ts'
import { checkHistory, type Operation } from './history.ts'
import type { Fault } from './knobs.ts'
import { drawKnobs, FAULT_PHASE_US_MAX, type FaultClass, type Knobs, type Profile } from './knobs.ts'
import { block, unblock } from './network.ts'
import { type OracleName, onRecords, onState, ViolationError, violate } from './oracles.ts'
import { poison } from './poison.ts'
import { orderInLog } from './restore.ts'
import { HOLD_SECONDS_MAX, startStayClients } from './stay-clients.ts'
import { orderOf } from './store-order.ts'
import { traceHash } from './trace.ts'
import { createWorkload, isIdle, startWorkload, stopWorkload, type Workload } from './workload.ts'
import {
  type Counts,
  createWorld,
  endProcess,
  nodeOf,
  type Program,
  runIn,
  type SimulatedNode,
  startNode,
  type World,
} from './world.ts'

export type RunOptions = {
  readonly seed: number
  readonly profile: Profile
  readonly program: Program
  readonly keepsWords?: boolean
  /** Scales the length of the run. */
  readonly length?: number
  /** Overrides for the shrinker and for replays of a schedule. */
  readonly knobs?: Partial<Knobs>
  readonly schedule?: readonly Fault[]
}

type Failure = { readonly oracle: OracleName | 'crash'; readonly message: string; readonly atUs: number }

export type RunResult = {
  readonly seed: number
  readonly profile: Profile
  readonly knobs: Knobs
  readonly schedule: readonly Fault[]
  readonly hash: string
  readonly events: number
  readonly simulatedUs: number
  readonly counts: Counts & { readonly [name: string]: unknown }
  readonly network: World['network']['counts']
  readonly checks: Record<OracleName, number>
  readonly operations: number
  readonly checkSteps: number
  readonly failure: Failure | undefined
  readonly lines: readonly string[]
  /** Of a failed run that keeps words. */
  readonly history: readonly Operation[] | undefined
}

const PROBE_REGISTER = 63
const STABLE_ATTEMPTS = 3
/** A sync of a slow disk that started before everything was healed. */
const SLOW_SYNC_US = 1_100_000
/** Events between checkpoints. */
const CHECKPOINT_EVENTS = 512
/** All records are compared at one in this many checkpoints. */
const RECORDS_EVERY = 8

export function runSeed(options: RunOptions): RunResult {
  const { seed, profile, length = 1 } = options
  const usesStore = options.program.usesStore ?? false
  const knobs = { ...drawKnobs(seed, profile, length, usesStore), ...options.knobs }
  const schedule = options.schedule ?? drawSchedule(seed, knobs, FAULT_PHASE_US_MAX)
  const restore = poison()
  let world: World | undefined
  let failure: Failure | undefined
  let checkSteps = 0
  try {
    world = createWorld({ ...options, knobs })
    checkSteps = runPhases(world, schedule)
  } catch (error) {
    const atUs = world?.scheduler.nowUs ?? 0
    if (error instanceof ViolationError) failure = { oracle: error.oracle, message: error.message, atUs }
    else
      failure = {
        oracle: 'crash',
        message: error instanceof Error ? (error.stack ?? error.message) : String(error),
        atUs,
      }
  } finally {
    restore()
  }
  if (!world) throw new Error(`seed ${seed}: no world: ${failure?.message}`)
  return {
    seed,
    profile,
    knobs,
    schedule,
    hash: traceHash(world.trace),
    events: world.scheduler.ran,
    simulatedUs: world.scheduler.nowUs,
    counts: { ...world.counts, ...world.oracles.reference.counts },
    network: world.network.counts,
    checks: world.oracles.checks,
    operations: world.history.operations.length,
    checkSteps,
    failure,
    lines: world.trace.lines ?? [],
    history: failure && options.keepsWords ? world.history.operations : undefined,
  }
}

function runPhases(world: World, schedule: readonly Fault[]): number {
  const { scheduler, knobs } = world
  const start = randomOf(world.seed, 'start')
  for (const node of world.nodes) scheduleIn(scheduler, start.below(50_000), () => startNode(world, node))
  startSchedule(world, schedule)
  const workload = createWorkload(world)
  startWorkload(workload)
  startBuilders(workload)
  startStayClients(workload)
  let next = CHECKPOINT_EVENTS
  let checkpoints = 0
  while (scheduler.ran < knobs.events && runNext(scheduler, FAULT_PHASE_US_MAX)) {
    if (scheduler.ran < next) continue
    next = scheduler.ran + CHECKPOINT_EVENTS
    checkpoint(world, ++checkpoints % RECORDS_EVERY === 0)
  }
  checkpoint(world, true)
  if (hasMajority(world)) {
    liveness(world, workload)
    converge(world, workload)
    endHolds(world)
  } else world.counts.lostMajorities++
  judgeStays(world)
  noteDates(world)
  return judge(world)
}

/** Checks docs/design/testing.md#oracles on every running node. @param comparesRecords compares all records, which is slow */
function checkpoint(world: World, comparesRecords: boolean): void {
  for (const node of world.nodes) {
    const running = node.process?.running
    if (!running) continue
    world.oracles.checks.O14++
    running.checkBounds()
    const digest = running.digest()
    if (digest) onState(world.oracles, node.number, running.raft.applied, digest.lo, digest.hi)
    const memory = digest && running.memory?.()
    if (memory && comparesRecords) onRecords(world.oracles, node.number, running.raft.applied, memory, orderOf(memory))
  }
}

/** The longest election timeout on the slowest clock, with delays of network and disk. */
function electionUs({ knobs }: World): number {
  const ticks = 2 * knobs.electionTicks * knobs.tickMs * 1_000
  return ticks / (1 - knobs.clockErrorPercent / 100) + 6 * knobs.latencyUsMax + 4 * knobs.syncUsMax
}

/** Election timeouts until a leader must exist; with few ticks to choose from, candidates collide more often. */
function electionsMax({ knobs }: World): number {
  return knobs.electionTicks >= 16 ? 5 : 20
}

/** Runs until the condition holds. @returns false when it does not within the time */
function runUntil(world: World, us: number, holds: () => boolean): boolean {
  const { scheduler } = world
  const end = scheduler.nowUs + us
  let next = scheduler.ran + CHECKPOINT_EVENTS
  while (!holds()) {
    if (!runNext(scheduler, end)) return holds()
    if (scheduler.ran < next) continue
    next = scheduler.ran + CHECKPOINT_EVENTS
    checkpoint(world, false)
  }
  return true
}

/** A random majority of every half of the current configuration, without learners. */
function chooseGroup(world: World): number[] {
  const random = randomOf(world.seed, 'liveness')
  const known = world.nodes
    .filter(({ process }) => process?.running)
    .sort((a, b) => (b.process?.running?.raft.applied ?? 0) - (a.process?.running?.raft.applied ?? 0))[0]
  const voters = known?.process?.running?.voters() ?? []
  const isJoint = known?.process?.running?.isJoint() ?? false
  // A joint configuration needs a majority of both halves; a running change may make any of them voters.
  if (voters.length === 0 || isJoint || world.counts.membershipChanges > 0)
    return world.nodes.filter(({ isDamaged }) => !isDamaged).map(({ number }) => number)
  const whole = voters.filter((number) => isWhole(nodeOf(world, number)))
  return shuffle(random, whole).slice(0, Math.floor(voters.length / 2) + 1 + random.below(2))
}

/** Its disk holds everything it promised as a voter. */
function isWhole({ isDamaged, wasVoter }: SimulatedNode): boolean {
  return !isDamaged && wasVoter
}

/**
 * Whether enough disks are left for a majority: otherwise a shard must stop
 * (docs/design/testing.md#the-simulated-world). Voters with a new or replaced disk do not count until a leader has
 * admitted them.
 */
function hasMajority(world: World): boolean {
  const configurations = world.nodes.flatMap(({ process }) => (process?.running ? [process.running] : []))
  const newest = configurations.sort((a, b) => b.raft.applied - a.raft.applied)[0]
  const voters = newest?.voters() ?? []
  if (voters.length === 0) return world.nodes.every((node) => !node.isDamaged && node.wipedAt === 0)
  const whole = voters.filter((number) => isWhole(nodeOf(world, number)))
  return whole.length * 2 > voters.length
}

function liveness(world: World, workload: Workload): void {
  const { network, oracles, counts } = world
  const group = chooseGroup(world)
  // A sync that began on a hung disk returns when its hang was to end.
  const hungUs = Math.max(0, ...group.map((number) => nodeOf(world, number).hungUntilUs - world.scheduler.nowUs))
  world.isCalm = true
  world.group = group
  network.isCalm = true
  heal(world, group)
  breakOthers(world, group)
  oracles.checks.O13++
  hinder(world, group)
  const election = electionUs(world)
  const probe = startProbe(world, workload)
  const slack = (world.program.slackUs ?? 0) + SLOW_SYNC_US + hungUs
  if (!runUntil(world, (electionsMax(world) + 2) * election + slack, () => probe.index > 0)) {
    const what = leaderOf(world) ? 'acknowledge no write' : 'have no leader'
    violate(
      'O13',
      `nodes ${group.join(', ')} ${what} ${electionsMax(world) + 2} election timeouts after they were healed`,
    )
  }
  const behind = () => membersOf(world, group).filter((number) => appliedAt(world, number) < probe.index)
  if (!runUntil(world, 20 * election + 2 * slack, () => behind().length === 0)) {
    violate('O13', `nodes ${behind().join(', ')} have not caught up with index ${probe.index}`)
  }
  oracles.checks.O12++
  const isJoint = () => membersOf(world, group).some((number) => nodeOf(world, number).process?.running?.isJoint())
  if (!runUntil(world, 10 * election + slack, () => !isJoint())) violate('O12', 'the joint phase does not end')
  // The end of a joint phase may have removed the leader from the voters: then it steps down
  // (docs/design/consensus.md#when-a-configuration-takes-effect).
  const isSettled = () => {
    const leader = leaderOf(world)
    return leader?.process?.running?.voters().includes(leader.number) === true
  }
  if (!runUntil(world, electionsMax(world) * election + slack, isSettled)) violate('O13', 'no voter leads')
  stopWorkload(workload)
  // An up-to-date node has the best chance to win against a healthy leader.
  const index = () => leaderOf(world)?.process?.running?.raft.lastIndex ?? 0
  const isQuiet = () =>
    isIdle(workload) && membersOf(world, group).every((number) => appliedAt(world, number) === index())
  runUntil(world, 10 * election + slack, isQuiet)
  let muffled = muffle(world, group)
  // An earlier transfer or removal may depose the leader once more, through delayed frames.
  for (let attempt = 1; ; attempt++) {
    const before = counts.elections
    runUntil(world, 20 * world.knobs.heartbeatTicks * world.knobs.tickMs * 1_000 + 2 * election, () => false)
    if (counts.elections === before) break
    if (attempt === STABLE_ATTEMPTS) violate('O13', 'leaders are elected although the previous ones were healthy')
    if (!runUntil(world, electionsMax(world) * election + slack, isSettled)) violate('O13', 'no voter leads')
    // Another follower of the new leader, once the one before has caught up.
    if (muffled) unblock(network, ...muffled)
    runUntil(world, 10 * election + slack, isQuiet)
    muffled = muffle(world, group)
  }
}

/** Those that the leader knows as members: removed nodes receive no entries. */
function membersOf(world: World, group: readonly number[]): number[] {
  const leader = leaderOf(world)?.process?.running
  const members = [...(leader?.voters() ?? []), ...(leader?.learners() ?? [])]
  return group.filter((number) => members.includes(number))
}

/** An operator requests a transfer to a node that does not respond: it must time out. */
function hinder(world: World, group: readonly number[]): void {
  const random = randomOf(world.seed, 'hinder')
  const outside = world.nodes.filter(({ number }) => !group.includes(number))
  const leader = leaderOf(world)
  const target = outside[random.below(Math.max(1, outside.length))]
  const process = leader?.process
  if (!target || !leader || !process?.running || !group.includes(leader.number) || random.below(3) > 0) return
  runIn(world, process, 'request', target.number, () =>
    process.running?.act({ kind: 'transfer', target: target.number }),
  )
}

/**
 * One follower no longer receives frames of the leader, but all receive its own frames: as long as the others hear from
 * the leader, they must not let it depose the leader (docs/design/consensus.md#voter-leases). Only for a majority
 * without that follower.
 *
 * @returns the link that is blocked
 */
function muffle(world: World, group: readonly number[]): readonly [from: number, to: number] | undefined {
  const leader = leaderOf(world)
  const voters = leader?.process?.running?.voters() ?? []
  if (!leader || !group.includes(leader.number) || !world.knobs.checkQuorum) return undefined
  const others = group.filter((number) => number !== leader.number && voters.includes(number))
  if (others.length * 2 <= voters.length) return undefined
  block(world.network, leader.number, others[0])
  return [leader.number, others[0]]
}

/**
 * Nodes outside the group stay broken in one of four ways: dead, isolated, receiving nothing, or sending nothing. None
 * of them may prevent progress of the group; a node that sends but receives nothing is the most disruptive.
 */
function breakOthers(world: World, group: readonly number[]): void {
  const random = randomOf(world.seed, 'others')
  const { network, nodes } = world
  for (const { number } of nodes) {
    if (group.includes(number)) continue
    const drawn = random.below(4)
    // Without a lease, a node that receives nothing may disturb the others forever.
    const kind = world.knobs.checkQuorum ? drawn : 0
    if (kind === 0) endProcess(world, nodeOf(world, number), 'left dead', random.below(2) === 0)
    for (const other of nodes) {
      if (other.number === number) continue
      if (kind === 1 || kind === 2) block(network, other.number, number)
      if (kind === 1 || kind === 3) block(network, number, other.number)
    }
  }
}

/** Writes to every leader until one write is acknowledged. */
function startProbe(world: World, workload: Workload): { index: number } {
  const probe = { index: 0 }
  const ask = (): void => {
    if (probe.index > 0) return
    for (const { process } of world.nodes) {
      if (process?.running?.raft.role !== 'leader') continue
      const token = workload.nextToken++
      // A separate empty register: it is logged like any other command, even with little memory.
      const probed = { kind: 'increase', register: PROBE_REGISTER, amount: 1, attempt: token } as const
      const bytes = world.program.encode({ ...probed, session: 0, number: 0 })
      world.onAnswer.set(token, (answer) => {
        if (answer.kind === 'result') probe.index = answer.index
      })
      runIn(world, process, 'request', token, () => process.running?.propose(token, bytes))
    }
    scheduleIn(world.scheduler, electionUs(world) / 4, ask)
  }
  ask()
  return probe
}

/** Heals everything and checks that all nodes reach the same state. */
function converge(world: World, workload: Workload): void {
  stopWorkload(workload)
  const all = world.nodes.map(({ number }) => number)
  world.group = all
  heal(world, all)
  const election = electionUs(world)
  const isEven = () => {
    if (!isIdle(workload)) return false
    const index = leaderOf(world)?.process?.running?.raft.lastIndex ?? -1
    const isThere = (number: number) => hasApplied(nodeOf(world, number), index)
    return index >= world.oracles.committed && membersOf(world, all).every(isThere)
  }
  if (!runUntil(world, 60 * election + 4 * (world.program.slackUs ?? 0), isEven)) {
    const where = world.nodes.map(
      ({ number, process, lastEnd }) => `${number}: ${process?.running ? process.running.raft.applied : lastEnd}`,
    )
    violate('O13', `everything is healed but the nodes do not reach the same state: ${where.join('; ')}`)
  }
  checkpoint(world, true)
}

/** A leader proposes expiry every 250 ms, in ticks of a clock that may be slow. */
const EXPIRY_US = 2_000_000

/** Holds end by themselves, soon after their deadline. Those of hours do so after the run. */
function endHolds(world: World): void {
  const { oracles } = world
  const { stays } = oracles.reference
  const lastMs = stays?.lastDeadlineMs() ?? 0
  const leftMs = lastMs - oracles.timeMs
  if (!stays || lastMs === 0 || leftMs > HOLD_SECONDS_MAX * 1_000) return
  oracles.checks.S5++
  const slackUs = (electionsMax(world) + 2) * electionUs(world) + SLOW_SYNC_US + EXPIRY_US
  const rate = 1 - world.knobs.clockErrorPercent / 100
  if (!runUntil(world, (Math.max(0, leftMs) * 1_000) / rate + slackUs, () => stays.held() === 0))
    violate('S5', `${stays.held()} stays are still on hold ${Math.round(slackUs / 1_000)} ms after their deadline`)
  checkpoint(world, true)
}

/** Which days the run has passed, by true time. */
function noteDates({ knobs, scheduler, counts }: World): void {
  const [from, to] = [knobs.epochMs, knobs.epochMs + scheduler.nowUs / 1_000].map((ms) => formatDay(dayOf(ms)))
  if (from?.slice(0, 4) !== to?.slice(0, 4)) counts.newYears++
  if (from?.endsWith('-02-28') && to?.endsWith('-02-29')) counts.leapDays++
}

function judgeStays({ oracles, promised }: World): void {
  const { stays } = oracles.reference
  if (!stays) return
  oracles.checks.S3++
  const difference = stays.fatesDifference(promised)
  if (difference !== '') violate('S3', difference)
}

function appliedAt(world: World, number: number): number {
  return nodeOf(world, number).process?.running?.raft.applied ?? 0
}

/** A node with a corrupt disk may stay down, after reporting the corruption. */
function hasApplied({ isDamaged, process }: SimulatedNode, index: number): boolean {
  const running = process?.running
  // A mute member learns what is committed only from appends, the last of which may be lost.
  if (running?.isMute && running.raft.lastIndex === index) return true
  return isDamaged || running?.raft.applied === index
}

function judge(world: World): number {
  const { oracles, history } = world
  oracles.checks.O6 += history.operations.length
  const verdict = checkHistory(history.operations, { order: orderInLog(world) })
  if (verdict.verdict === 'linearizable') return verdict.steps
  const stuck = verdict.verdict === 'impossible' ? ` before one of ${JSON.stringify(verdict.stuck.slice(0, 4))}` : ''
  return violate('O6', `register ${verdict.key}: ${verdict.verdict} after ${verdict.steps} steps${stuck}`)
}

/** The same run with some of its faults. */
export function withoutClasses(
  result: RunResult,
  classes: readonly FaultClass[],
): Pick<RunOptions, 'knobs' | 'schedule'> {
  const kept = result.knobs.classes.filter((name) => !classes.includes(name))
  const rate = (name: FaultClass, value: number) => (kept.includes(name) ? value : 0)
  const { dropP, duplicateP, lateP, damageP } = result.knobs
  return {
    knobs: {
      ...result.knobs,
      classes: kept,
      dropP: rate('drop', dropP),
      duplicateP: rate('duplicate', duplicateP),
      lateP: rate('late', lateP),
      damageP: rate('damage', damageP),
    },
    schedule: result.schedule.filter(({ kind }) => kept.includes(kind)),
  }
}
