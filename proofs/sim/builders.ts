/**
 * Clients that change the structure of the store in simulated runs: batches of commands to the leader, some with
 * request keys and sent twice. Replies are compared with the log like all others; the resulting data is compared record
 * by record with the model of the store.
 */

import { betweenDecades, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import { scheduleIn } from '@vacancy/testkit/scheduler'
import { OUTCOME } from '../../engine/src/store/command.ts'
import { leaderOf } from './faults.ts'
import { onAcknowledged, onFailed } from './oracles.ts'
import { type Built, drawBatch, firstCommands, todayAt } from './store-workload.ts'
import { checkAcknowledged, type Workload } from './workload.ts'
import { runIn, type SimulatedNode } from './world.ts'

type Builder = {
  readonly random: Random
  readonly built: Built
  isFounded: boolean
  sent: number
  open: number
  sentAtUs: number
}

/** After this many commands a builder continues in small steps, since each command is applied and checked on every node. */
const COMMANDS_MAX = 3_000
const PATIENCE_US = 20_000_000
/** While this many entries wait for a majority nothing is added: with small messages and slow disks the backlog would never shrink. */
const WAITING_MAX = 100
/** The properties of registers come first: without them no client can write. */
const FOUND_US = 50_000
const FOUND_PATIENCE_US = 500_000

export function startBuilders(workload: Workload): void {
  const { world } = workload
  const { knobs, seed } = world
  // At least one builder runs, for the properties of registers.
  const builders = knobs.usesStore ? Math.max(1, knobs.builders) : knobs.builders
  for (let n = 0; n < builders; n++) {
    const random = streamOf(seed, `builder ${n}`)
    // Builders use the same properties.
    const built = {
      properties: 0,
      propertiesMax: knobs.builtProperties,
      fillsMemory: knobs.memoryBudget > 0,
      session: n << 16,
    }
    next(workload, { random, built, isFounded: false, sent: 0, open: 0, sentAtUs: 0 })
  }
}

function next(workload: Workload, builder: Builder): void {
  const { scheduler, knobs } = workload.world
  if (builder.isFounded && knobs.builders === 0) return
  const isFirst = knobs.usesStore && !builder.isFounded
  const meanUs = isFirst ? Math.min(knobs.buildUs, FOUND_US) : knobs.buildUs
  scheduleIn(scheduler, builder.random.below(2 * meanUs + 1), () => build(workload, builder))
}

function build(workload: Workload, builder: Builder): void {
  if (workload.isStopped) return
  const { world } = workload
  const { random, built } = builder
  next(workload, builder)
  // The next batch is sent when the last one has a reply or timed out.
  const { nowUs } = world.scheduler
  const patienceUs = builder.isFounded ? PATIENCE_US : FOUND_PATIENCE_US
  if (builder.open > 0 && nowUs - builder.sentAtUs < patienceUs) return
  const leader = chance(random, 0.9) ? leaderOf(world) : pick(random, world.nodes)
  if (!leader || isBehind(leader)) return
  builder.open = 0
  builder.sentAtUs = nowUs
  if (!builder.isFounded) {
    send(workload, builder, leader, firstCommands(random), () => {
      builder.isFounded = true
    })
    return
  }
  const batch = drawBatch(random, built, todayAt(nowUs))
  builder.sent += batch.length
  send(workload, builder, leader, builder.sent > COMMANDS_MAX ? batch.slice(0, 2) : batch)
  // Commands with request keys may be sent twice, also to another node; without a key, a second effect would be
  // allowed.
  if (!chance(random, 0.3) || !isKeyed(batch)) return
  scheduleIn(world.scheduler, betweenDecades(random, 1_000, 2_000_000), () => {
    const other = leaderOf(world) ?? pick(random, world.nodes)
    send(workload, builder, other, batch)
  })
}

/** Whether more entries of a node wait for a majority. */
export function isBehind({ process }: SimulatedNode, waitingMax = WAITING_MAX): boolean {
  const raft = process?.running?.raft
  return raft !== undefined && raft.lastIndex - raft.commit > waitingMax
}

const FLAGS_AT = 14

function isKeyed(batch: readonly Uint8Array[]): boolean {
  return batch.every((bytes) => bytes[FLAGS_AT] !== 0)
}

function send(
  workload: Workload,
  builder: Builder,
  node: SimulatedNode,
  batch: readonly Uint8Array[],
  onDone?: () => void,
): void {
  const { world } = workload
  const { process } = node
  const proposeAll = process?.running?.proposeAll
  if (!process || !proposeAll) return
  const commands = batch.map((bytes) => ({ token: workload.nextToken++, bytes }))
  const { sentAtUs } = builder
  builder.open += commands.length
  for (const { token } of commands) {
    world.onAnswer.set(token, (answer) => {
      world.counts.built++
      if (builder.sentAtUs === sentAtUs) builder.open--
      if (answer.kind === 'none') onFailed(world.oracles, token)
      if (answer.kind !== 'result') return
      if (answer.code === OUTCOME.refused) world.counts.memoryRefusals++
      if (answer.code === OUTCOME.outsideWindow) world.counts.outsideWindow++
      // One command of a batch is checked on the disks, like those of other clients.
      if (token === commands[0]?.token) checkAcknowledged(world, token, answer)
      else onAcknowledged(world.oracles, world.scheduler.nowUs, token, answer)
      if (answer.code === OUTCOME.done) onDone?.()
    })
  }
  runIn(world, process, 'request', commands.length, () => proposeAll(commands))
}
