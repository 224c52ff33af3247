/**
 * Faults as data: a schedule with time and target of each, drawn before the run and executed during it
 * (docs/design/testing.md#the-simulated-world, docs/design/testing.md#a-failing-seed). Unlike a seed, a schedule stays
 * valid when code changes, and it can be shrunk.
 *
 * Targets are node numbers; 0 is the leader at that time. Lasting faults have a length and end with the fault phase at
 * the latest, unless they hit a node outside the majority that must make progress.
 */

import { unreachable } from '@vacancy/shared'
import { between, betweenDecades, chance, pick, type Random, shuffle, streamOf } from '@vacancy/testkit/random'
import { scheduleAt, scheduleIn } from '@vacancy/testkit/scheduler'
import { damage, type SimulatedDisk, stopBefore } from '../../engine/src/testing/disk.ts'
import { listLogFiles, scanLog } from '../../engine/src/wal/scan.ts'
import { stepClock } from './clocks.ts'
import type { Fault, FaultClass, Knobs } from './knobs.ts'
import { block, linkOf, resetConnection, slowDown, speedUp, unblock } from './network.ts'
import { backUpOrRestore } from './restore.ts'
import { note } from './trace.ts'
import {
  type Action,
  endProcess,
  nodeOf,
  restartLater,
  resume,
  runIn,
  type SimulatedNode,
  stall,
  startNode,
  type World,
} from './world.ts'

/** Classes that are network rates, not scheduled events. */
const RATES: readonly FaultClass[] = ['drop', 'duplicate', 'late', 'damage']
/** Backups and restores, not among other faults: how many, and seconds between them. */
const RESTORES = { most: 12, seconds: 5 } as const

export function drawSchedule(seed: number, knobs: Knobs, lengthUs: number): Fault[] {
  const random = streamOf(seed, 'faults')
  const classes = knobs.classes.filter((name) => !RATES.includes(name) && name !== 'restore')
  const schedule = drawRestores(streamOf(seed, 'restores'), knobs)
  if (classes.length === 0) return schedule
  for (
    let atUs = random.below(2 * knobs.faultEveryUs);
    atUs < lengthUs;
    atUs += 1 + random.below(2 * knobs.faultEveryUs)
  ) {
    schedule.push(drawFault(random, knobs, atUs, pick(random, classes)))
    if (schedule.length >= SCHEDULE_MAX) break
  }
  return schedule
}

function drawRestores(random: Random, knobs: Knobs): Fault[] {
  if (!knobs.classes.includes('restore')) return []
  let atUs = 0
  return Array.from({ length: RESTORES.most }, () => {
    atUs += between(random, 1_000_000, RESTORES.seconds * 1_000_000)
    return drawFault(random, knobs, atUs, 'restore')
  })
}

const SCHEDULE_MAX = 5_000

function drawFault(random: Random, knobs: Knobs, atUs: number, kind: FaultClass): Fault {
  const total = knobs.voters + knobs.learners
  const electionUs = knobs.tickMs * knobs.electionTicks * 1_000
  // Most failure modes involve the leader.
  const isOperation = kind === 'membership' || kind === 'transfer'
  const target = chance(random, isOperation ? 0.85 : 0.5) ? 0 : between(random, 1, total)
  const lengthUs = betweenDecades(random, 1_000, electionUs * 10)
  const detail = random.below(1 << 30)
  // Without a side, only the target.
  if (kind === 'partition' && chance(random, 0.5)) return { atUs, kind, target, lengthUs, detail }
  if (kind === 'partition') return { atUs, kind, target, lengthUs, detail, nodes: sideOf(random, total) }
  if (kind === 'oneway') return { atUs, kind, target, lengthUs, detail, nodes: linksOf(random, total) }
  return { atUs, kind, target, lengthUs, detail }
}

/** Two halves, or one isolated node. */
function sideOf(random: Random, total: number): number[] {
  const all = shuffle(
    random,
    Array.from({ length: total }, (_, i) => i + 1),
  )
  return all.slice(0, chance(random, 0.4) ? 1 : 1 + random.below(Math.max(1, total - 1)))
}

/** Some directed links; a node that receives nothing or sends nothing; a ring; a bridge. */
function linksOf(random: Random, total: number): number[] {
  const all = Array.from({ length: total }, (_, i) => i + 1)
  const links: number[] = []
  const shape = random.below(5)
  const one = pick(random, all)
  const order = shuffle(random, [...all])
  for (const from of all) {
    for (const to of all) {
      if (from === to) continue
      const distance = Math.abs(order.indexOf(from) - order.indexOf(to))
      const isCut =
        shape === 0
          ? chance(random, 0.3)
          : shape === 1
            ? to === one
            : shape === 2
              ? from === one
              : shape === 3
                ? distance > 1 && distance < total - 1
                : from !== one && to !== one && order.indexOf(from) % 2 !== order.indexOf(to) % 2
      if (isCut) links.push(from * 16 + to)
    }
  }
  return links
}

/** Schedules every fault at its time. */
export function startSchedule(world: World, schedule: readonly Fault[]): void {
  for (const fault of schedule) scheduleAt(world.scheduler, fault.atUs, () => carryOut(world, fault))
}

export function leaderOf(world: World): SimulatedNode | undefined {
  let found: SimulatedNode | undefined
  let term = -1
  for (const node of world.nodes) {
    const raft = node.process?.running?.raft
    if (raft?.role === 'leader' && raft.term > term) {
      term = raft.term
      found = node
    }
  }
  return found
}

function carryOut(world: World, fault: Fault): void {
  if (world.isCalm) return
  const { scheduler, trace } = world
  const node = fault.target === 0 ? leaderOf(world) : world.nodes[fault.target - 1]
  if (!node) return
  note(trace, scheduler.nowUs, node.number, 'fault', fault.detail, () => `${fault.kind} for ${fault.lengthUs} µs`)
  if (!apply(world, fault, node)) return
  world.counts.faults[fault.kind] = (world.counts.faults[fault.kind] ?? 0) + 1
}

/** @returns whether it was applied */
function apply(world: World, fault: Fault, node: SimulatedNode): boolean {
  const { kind, lengthUs, detail } = fault
  const { scheduler, network, nodes } = world
  switch (kind) {
    case 'drop':
    case 'duplicate':
    case 'late':
    case 'damage':
      return false
    case 'partition':
      return partition(world, fault, node)
    case 'oneway':
      return cutLinks(
        world,
        (fault.nodes ?? []).map((link) => [link >>> 4, link & 15] as const),
        lengthUs,
      )
    case 'slowlink': {
      const peer = 1 + (detail % nodes.length)
      if (peer === node.number) return false
      const link = linkOf(network, node.number, peer)
      slowDown(network, link, 1_000 + (detail % 50_000), lengthUs / 10)
      scheduleIn(scheduler, lengthUs * 4, () => speedUp(network, link))
      return true
    }
    case 'reset': {
      const peer = 1 + (detail % nodes.length)
      if (peer === node.number) return false
      resetConnection(network, node.number, peer)
      return true
    }
    case 'kill':
    case 'power':
      return killAndRestart(world, node, kind === 'power', lengthUs)
    case 'killall':
      for (const each of nodes)
        killAndRestart(world, each, (detail >>> each.number) % 2 === 1, lengthUs + (detail % 1_000) * each.number)
      return true
    case 'rolling':
      for (const each of nodes) {
        scheduleIn(scheduler, each.number * lengthUs, () => {
          if (!world.isCalm) killAndRestart(world, each, false, Math.max(1_000, lengthUs / 2))
        })
      }
      return true
    case 'stall':
      if (!node.process) return false
      stall(world, node, lengthUs)
      return true
    case 'slowdisk':
      node.slowDiskUs = 10_000 + (detail % 1_000_000)
      scheduleIn(scheduler, lengthUs * 4, () => {
        node.slowDiskUs = 0
      })
      return true
    case 'hungdisk':
      // A sync that begins now does not return before the end of the fault.
      node.hungUntilUs = Math.max(node.hungUntilUs, scheduler.nowUs + lengthUs * 4)
      return true
    case 'slowapply':
      node.slowApplyUs = 1_000 + (detail % 200_000)
      scheduleIn(scheduler, lengthUs * 4, () => {
        node.slowApplyUs = 0
      })
      return true
    case 'clock':
      return turnClock(world, fault, node)
    case 'transfer':
    case 'membership':
    case 'snapshot':
    case 'maintenance':
    case 'load':
      return operate(world, fault, node)
    case 'restore':
      return backUpOrRestore(world, detail, lengthUs)
    case 'fulldisk':
    case 'cut':
    case 'diskerror':
    case 'corrupt':
    case 'wipe':
    case 'shutdown':
    case 'exhaust':
      return world.program.meet?.(world, node, fault) ?? false
    default:
      return unreachable(kind)
  }
}

/** One clock or all of them step, are corrected, or stop with their machine; or an operator sets the shard time. */
function turnClock(world: World, fault: Fault, node: SimulatedNode): boolean {
  const { detail, lengthUs } = fault
  // In both directions, from milliseconds to months; with the store, whose nights expire, to days.
  const stepMs = (detail % 2 === 0 ? 1 : -1) * 10 ** ((detail >>> 1) % (world.knobs.usesStore ? 10 : 11))
  switch ((detail >>> 8) % 8) {
    case 4:
      for (const { clock } of world.nodes) stepClock(clock, clock.offsetMs + stepMs)
      return true
    case 5:
      for (const { clock } of world.nodes) stepClock(clock, 0)
      return true
    case 6:
      if (!node.process) return false
      stall(world, node, lengthUs)
      scheduleIn(world.scheduler, lengthUs, () => {
        node.clock.suspendedMs += (lengthUs / 1_000) * node.clock.rate
        node.clock.resumedUs = world.scheduler.nowUs
      })
      return true
    case 7:
      for (const { clock } of world.nodes) stepClock(clock, 0)
      return operate(world, fault, node)
    default:
      stepClock(node.clock, node.clock.offsetMs + stepMs)
      return true
  }
}

function partition(world: World, fault: Fault, node: SimulatedNode): boolean {
  const side = fault.nodes ?? [node.number]
  const links: (readonly [number, number])[] = []
  for (const a of world.nodes) {
    for (const b of world.nodes) {
      if (a !== b && side.includes(a.number) !== side.includes(b.number)) links.push([a.number, b.number])
    }
  }
  return cutLinks(world, links, fault.lengthUs * (1 + (fault.detail % 4)))
}

/** Drops all frames of directed links for a while. */
export function cutLinks(world: World, links: readonly (readonly [number, number])[], lengthUs: number): boolean {
  for (const [from, to] of links) block(world.network, from, to)
  scheduleIn(world.scheduler, lengthUs, () => {
    // Then it was healed with the group, or stays broken.
    if (world.isCalm) return
    for (const [from, to] of links) unblock(world.network, from, to)
  })
  return links.length > 0
}

function killAndRestart(world: World, node: SimulatedNode, isPowerLoss: boolean, afterUs: number): boolean {
  if (!node.process) return false
  endProcess(world, node, isPowerLoss ? 'power loss' : 'killed', isPowerLoss)
  restartLater(world, node, afterUs)
  return true
}

/** Requests of operators to the cluster; refusals are valid responses. */
function operate(world: World, { kind, detail }: Fault, node: SimulatedNode): boolean {
  const running = node.process?.running
  if (!running) return false
  const target = 1 + (detail % world.nodes.length)
  const action = actionOf(kind, detail, target)
  let refusal = 'not requested'
  const { process } = node
  if (!process) return false
  runIn(world, process, 'fault', detail, () => {
    refusal = running.act(action)
  })
  return refusal === ''
}

function actionOf(kind: FaultClass, detail: number, target: number): Action {
  switch (kind) {
    case 'snapshot':
      return { kind }
    case 'clock':
      return { kind: 'set-time' }
    case 'maintenance':
      return { kind, isForced: detail % 4 === 0 }
    case 'load':
      return { kind, image: detail % 2 }
    case 'transfer':
      return { kind, target }
    default:
      return { kind: pick4(detail), target }
  }
}

function pick4(detail: number): 'promote' | 'demote' {
  return (detail >>> 8) % 2 === 0 ? 'promote' : 'demote'
}

/** Heals everything inside the group; nodes outside stay broken. */
export function heal(world: World, group: readonly number[]): void {
  const { network } = world
  for (const from of group) {
    for (const to of group) {
      if (from === to) continue
      const link = linkOf(network, from, to)
      network.blocks[link] = 0
      speedUp(network, link)
    }
  }
  for (const number of group) {
    const node = nodeOf(world, number)
    node.slowDiskUs = 0
    node.hungUntilUs = 0
    node.slowApplyUs = 0
    world.program.heal?.(world, node)
    if (node.process) {
      node.process.stalledUntilUs = world.scheduler.nowUs
      resume(world, node.process)
    } else startNode(world, node)
  }
}

/** Faults of any disk that holds a log in a folder. @returns whether it was applied */
export function meetDisk(
  world: World,
  node: SimulatedNode,
  disk: SimulatedDisk,
  { kind, detail }: Fault,
  folder: string,
): boolean {
  if (kind === 'corrupt') return rot(world, node.number, disk, folder, detail)
  if (!node.process) return false
  if (kind === 'cut') {
    stopBefore(disk, detail >>> 1, () => {
      node.stopped = detail % 2 === 0 ? 'killed' : 'power loss'
    })
    return true
  }
  if (kind !== 'diskerror') return false
  node.mayFail = true
  const from = disk.operations.length + (detail % 8)
  disk.fault = ({ number, call }) => {
    if (number < from || (call !== 'write' && call !== 'syncData' && call !== 'syncDirectory')) return undefined
    disk.fault = () => undefined
    return { kind: 'fail', code: 'EIO' }
  }
  return true
}

/**
 * Flips bits in old synced data on a minority of the nodes. Damage to the last group is indistinguishable from a
 * partially written group, so it is left out (docs/design/storage.md#torn-tail-or-corruption).
 */
function rot(world: World, number: number, disk: SimulatedDisk, folder: string, detail: number): boolean {
  const damaged = world.nodes.filter(({ isDamaged }) => isDamaged).length
  const node = world.nodes[number - 1]
  if (!node || node.isDamaged || (damaged + 1) * 2 >= world.knobs.voters) return false
  // The remaining majority is only known without membership changes.
  if (world.counts.membershipChanges > 0) return false
  const reports = disk.stat(folder) ? listLogFiles(disk, folder) : []
  const report = reports[detail % Math.max(1, reports.length)]
  if (!report) return false
  scanLog(disk, reports)
  const valid = Math.floor(report.validBytes / 2)
  if (valid < 64) return false
  node.isDamaged = true
  node.appliedWhenDamaged = node.process?.running?.raft.applied ?? 0
  damage(disk, report.path, (detail >>> 3) % valid, Uint8Array.of((detail >>> 8) & 255))
  return true
}
