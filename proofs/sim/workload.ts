/**
 * The clients of a simulated cluster: they write, read, time out, retry with the same request key at another node, and
 * record every result (docs/design/testing.md#simulation, docs/design/testing.md#the-simulated-world,
 * docs/design/consensus.md#request-keys).
 *
 * A client has one pending operation; an attempt is one request for it. With a request key an operation is retried
 * until it has a result or the client gives up; without one it is only retried after a reply that it is certainly in no
 * log (docs/design/consensus.md#retryable-errors).
 */

import { between, chance, type Random, streamOf } from '@vacancy/testkit/random'
import { cancelEvent, type ScheduledEvent, scheduleIn } from '@vacancy/testkit/scheduler'
import { OUTCOME } from '../../engine/src/store/command.ts'
import { call, complete, type Operation, type OperationKind, type Outcome } from './history.ts'
import { isForgotten } from './machine.ts'
import { checkDurable, onAcknowledged, onFailed, violate } from './oracles.ts'
import { digestOf, note } from './trace.ts'
import { type Answer, noteMembers, runIn, type World } from './world.ts'

type Client = {
  readonly number: number
  readonly random: Random
  readonly isKeyless: boolean
  session: number
  nextNumber: number
  /** The node of the first attempt. */
  node: number
  /** The pending operation. */
  current: Current | undefined
}

type Current = {
  readonly operation: Operation
  /** 0: without a key. */
  readonly session: number
  readonly number: number
  attempts: number
  /** Attempts with an unknown outcome. */
  open: number
  /** Called when this attempt times out. */
  timer: ScheduledEvent | undefined
  /** The current attempt; older ones may still get a reply. */
  token: number
}

export type Workload = {
  readonly world: World
  readonly clients: readonly Client[]
  nextToken: number
  nextSession: number
  isStopped: boolean
}

/** Attempts before a client gives up, enough for one election. */
const ATTEMPTS_MAX = 12
const KINDS: readonly Exclude<OperationKind, 'read'>[] = [
  'set',
  'increase',
  'decrease',
  'decrease',
  'increase',
  'delete',
]

export function createWorkload(world: World): Workload {
  const workload: Workload = {
    world,
    clients: Array.from({ length: world.knobs.clients }, (_, i) => {
      const random = streamOf(world.seed, `client ${i}`)
      return {
        number: i,
        random,
        isKeyless: random.below(100) < world.knobs.keylessPercent,
        session: i + 1,
        nextNumber: firstNumber(world),
        node: between(random, 1, world.knobs.voters),
        current: undefined,
      }
    }),
    nextToken: 1,
    nextSession: world.knobs.clients + 1,
    isStopped: false,
  }
  world.onRestored.push(() => abandon(workload))
  return workload
}

export function startWorkload(workload: Workload): void {
  for (const client of workload.clients) thinkThen(workload, client)
}

/** Clients give up what they were doing, and begin anew. */
function abandon(workload: Workload): void {
  const { world } = workload
  for (const client of workload.clients) {
    const { current } = client
    client.session = workload.nextSession++
    client.nextNumber = firstNumber(world)
    if (!current) continue
    complete(world.history, current.operation, 'unknown')
    world.counts.unknowns++
    finish(workload, client, current)
  }
}

function thinkThen(workload: Workload, client: Client): void {
  const { world } = workload
  scheduleIn(world.scheduler, client.random.below(2 * world.knobs.thinkUs + 1), () => begin(workload, client))
}

function begin(workload: Workload, client: Client): void {
  const { world } = workload
  const { knobs, history } = world
  if (workload.isStopped) return
  const { random } = client
  const register = random.below(knobs.registers)
  const isRead = random.below(100) < knobs.readPercent
  const kind = isRead ? 'read' : (KINDS[random.below(KINDS.length)] as OperationKind)
  const amount = kind === 'set' ? between(random, 0, 20) : between(random, 1, 3)
  const operation = call(history, client.number, register, kind, amount)
  const hasKey = !isRead && !client.isKeyless
  client.current = {
    operation,
    session: hasKey ? client.session : 0,
    number: hasKey ? client.nextNumber++ : 0,
    attempts: 0,
    open: 0,
    timer: undefined,
    token: 0,
  }
  world.counts.requests++
  attempt(workload, client)
}

function timeoutUs({ world: { knobs } }: Workload): number {
  return knobs.tickMs * knobs.electionTicks * 1_500 + 4 * knobs.latencyUsMax + 20_000
}

/**
 * With the store, sessions may be evicted for lack of space or after a day: a repeat of number 1, which opens a
 * session, would then take effect again. So number 1 is used for a request that changes nothing and is sent once.
 */
function firstNumber({ knobs }: World): number {
  return knobs.usesStore ? 2 : 1
}

/** A register that is never written. */
const NOTHING_REGISTER = 62

function attempt(workload: Workload, client: Client): void {
  const { world } = workload
  const { current, random } = client
  if (!current) return
  const token = workload.nextToken++
  current.token = token
  current.attempts++
  current.open++
  // Sometimes a follower is used: it serves reads and refuses writes.
  if (random.below(100) < world.knobs.roamPercent) client.node = between(random, 1, world.nodes.length)
  current.timer = scheduleIn(world.scheduler, timeoutUs(workload), () => onTimeout(workload, client, current, token))
  send(workload, client, current, token, client.node)
  // A concurrent duplicate to another node, only with a key, which makes it harmless.
  if (current.session !== 0 && chance(random, 0.03)) {
    const second = workload.nextToken++
    current.open++
    send(workload, client, current, second, between(random, 1, world.nodes.length))
  }
}

function send(workload: Workload, client: Client, current: Current, token: number, to: number): void {
  const { world } = workload
  const { kind, key: register, amount } = current.operation
  world.sent.set(token, current.operation)
  world.onAnswer.set(token, (answer) => onAnswered(workload, client, current, token, answer))
  const { session, number } = current
  const { encode } = world.program
  const bytes = kind === 'read' ? undefined : encode({ kind, register, amount, attempt: token, session, number })
  const isFirst = world.knobs.usesStore && number === firstNumber(world) && current.attempts === 1
  const opener = isFirst
    ? encode({ kind: 'delete', register: NOTHING_REGISTER, amount: 0, attempt: workload.nextToken, session, number: 1 })
    : undefined
  const openerToken = opener ? workload.nextToken++ : 0
  note(
    world.trace,
    world.scheduler.nowUs,
    to,
    'request',
    token,
    () => `${token}: ${kind} ${register} ${amount} key ${session}/${number}`,
  )
  scheduleIn(world.scheduler, 50 + client.random.below(1_000), () => {
    const process = world.nodes[to - 1]?.process
    if (!process?.running) return
    runIn(world, process, 'request', bytes ? digestOf(bytes) : register, () => {
      if (opener) process.running?.propose(openerToken, opener)
      if (bytes) process.running?.propose(token, bytes)
      else process.running?.read(token, register)
    })
  })
}

/** The node has replied; the client receives it a little later, or never. */
function onAnswered(workload: Workload, client: Client, current: Current, token: number, answer: Answer): void {
  const { world } = workload
  const isWrite = current.operation.kind !== 'read'
  note(world.trace, world.scheduler.nowUs, 0, 'answer', token, () => `${token}: ${JSON.stringify(answer)}`)
  world.counts.answers++
  if (isWrite && answer.kind === 'none') onFailed(world.oracles, token)
  if (isWrite && answer.kind === 'result' && !isForgotten(answer.code)) checkAcknowledged(world, token, answer)
  if (chance(client.random, 0.01)) return
  scheduleIn(world.scheduler, 50 + client.random.below(1_000), () => onHeard(workload, client, current, token, answer))
}

/** Checks docs/design/testing.md#oracles, the expensive ones as often as the program allows. */
export function checkAcknowledged(world: World, token: number, answer: Extract<Answer, { kind: 'result' }>): void {
  const { index } = answer
  onAcknowledged(world.oracles, world.scheduler.nowUs, token, answer)
  if (token % world.program.durableEvery !== 0) return
  world.oracles.checks.O9++
  const term = world.oracles.terms[index] ?? 0
  // The replying node may have just applied a membership change.
  for (const { process } of world.nodes) if (process?.running) noteMembers(world, process.running)
  // A node that is down may hold it as well; a node with a corrupt disk did, and one whose disk was lost may have.
  const holders = world.nodes.filter(
    ({ process, isDamaged, hadDurable }) =>
      isDamaged || hadDurable?.(index, term) || (process?.running?.isDurable(index, term) ?? true),
  )
  checkDurable(
    world.oracles,
    index,
    holders.map(({ number }) => number),
  )
}

function onHeard(workload: Workload, client: Client, current: Current, token: number, answer: Answer): void {
  // After an unknown outcome it may still take effect.
  if (answer.kind !== 'unknown') current.open--
  // It has given up, or received the result from another attempt.
  if (client.current !== current) return
  const { operation } = current
  const { history } = workload.world
  if (answer.kind === 'result') {
    const { code, value } = answer
    if (isForgotten(code)) {
      client.session = workload.nextSession++
      client.nextNumber = firstNumber(workload.world)
      // An attempt without a reply may have taken effect before its session was evicted.
      complete(history, operation, current.open === 0 ? 'none' : 'unknown')
    } else if (operation.kind === 'read')
      complete(history, operation, value < 0 ? 'missing' : 'done', Math.max(0, value))
    else {
      // For a written package, the store replies without a value.
      const isSet = operation.kind === 'set' && code === OUTCOME.done
      complete(history, operation, outcomeOf(operation.kind, code), isSet ? operation.amount : value)
    }
    return finish(workload, client, current)
  }
  if (answer.kind === 'unknown' && current.session === 0 && operation.kind !== 'read') {
    complete(history, operation, 'unknown')
    workload.world.counts.unknowns++
    return finish(workload, client, current)
  }
  if (token !== current.token) return
  if (current.timer) cancelEvent(current.timer)
  askElsewhere(workload, client, current)
}

/** The outcome of a write for the history; `none`: it had no effect. */
export function outcomeOf(kind: OperationKind, code: number): Outcome {
  switch (code) {
    case OUTCOME.done:
      return 'done'
    case OUTCOME.unknownProperty:
    case OUTCOME.unknownRoomType:
    case OUTCOME.noPackage:
      // Every register needs its property, which is written with the first entry of the shard.
      return kind === 'set' ? 'none' : 'missing'
    case OUTCOME.overflow:
    case OUTCOME.underflow:
      return 'refused'
    case OUTCOME.outsideWindow:
    case OUTCOME.refused:
      return 'none'
    default:
      return violate('O4', `a ${kind} returned ${code}`)
  }
}

function onTimeout(workload: Workload, client: Client, current: Current, token: number): void {
  if (client.current !== current || current.token !== token) return
  if (current.session === 0 && current.operation.kind !== 'read') {
    // Without a key it may not be sent again, since it may be in a log (docs/design/consensus.md#retryable-errors).
    complete(workload.world.history, current.operation, 'unknown')
    workload.world.counts.unknowns++
    client.node = between(client.random, 1, workload.world.nodes.length)
    return finish(workload, client, current)
  }
  askElsewhere(workload, client, current)
}

function askElsewhere(workload: Workload, client: Client, current: Current): void {
  const { world } = workload
  const { random } = client
  if (workload.isStopped || current.attempts >= ATTEMPTS_MAX) {
    complete(world.history, current.operation, current.open === 0 ? 'none' : 'unknown')
    if (current.open > 0) world.counts.unknowns++
    return finish(workload, client, current)
  }
  client.node = between(random, 1, world.nodes.length)
  const waitUs = Math.round((world.knobs.tickMs * world.knobs.electionTicks * 1_000 * (1 + random.below(4))) / 16)
  scheduleIn(world.scheduler, waitUs, () => {
    if (client.current === current) attempt(workload, client)
  })
}

function finish(workload: Workload, client: Client, current: Current): void {
  if (current.timer) cancelEvent(current.timer)
  client.current = undefined
  thinkThen(workload, client)
}

/** Starts no new operations; pending ones get their result or time out. */
export function stopWorkload(workload: Workload): void {
  workload.isStopped = true
}

export function isIdle(workload: Workload): boolean {
  return workload.clients.every(({ current }) => current === undefined)
}
