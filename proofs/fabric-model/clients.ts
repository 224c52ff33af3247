/** Clients of the model: several connections each, many requests in flight, and bad manners of every kind. */

import { betweenDecades, chance, pick, type Random } from '@vacancy/testkit/random'
import type { Address } from '../../fabric/src/forward/world.ts'
import { type Class, count } from './counts.ts'
import { connect, createProcess, type End, endSending, later, type Net, type Pipe, type Process } from './net.ts'
import {
  answered,
  type Law,
  newOp,
  type Op,
  type Reply,
  readReply,
  requestFrame,
  takeFrames,
  Violation,
} from './ops.ts'

type ClientKnobs = {
  readonly burstMax: number
  readonly gapUs: number
  readonly badP: number
  readonly keyP: number
  readonly writeP: number
  readonly deadlineMs: number
  readonly frameBytesMax: number
  readonly skipBytesMax: number
  readonly rubbishBytesMax: number
}

export type Crowd = {
  readonly net: Net
  readonly law: Law
  readonly random: Random
  readonly knobs: ClientKnobs
  readonly segments: readonly string[]
  readonly edges: () => readonly { readonly address: Address; readonly process: Process }[]
  readonly connections: Connection[]
  /** No further requests from now on. */
  isOver: boolean
}

type Style = 'plain' | 'leaves' | 'half-closes' | 'slow' | 'bad'

type Pending = { readonly op: Op; readonly end: number; readonly sentUs: number }

export type Connection = {
  readonly crowd: Crowd
  /** The one that accepted it. */
  edge: Process
  readonly end: End
  readonly style: Style
  readonly pending: Map<number, Pending>
  /** By segment, in the order of sending. */
  readonly writes: Map<string, Op[]>
  nextId: number
  sent: number
  replied: number
  isOpen: boolean
  /** Sent bytes that the edge may take for the reason to close. */
  isForfeit: boolean
  /** Whatever it sent now would belong to its unfinished frame. */
  isMidFrame: boolean
  stalledBeforeUs: number
}

const UNKNOWN_COMMAND_P = 0.02
const WRONG_FLAG_P = 0.02
const READS = ['SEARCHPROP', 'PROPEXIST', 'GETPROPROOMDAY'] as const
const WRITES = ['SETROOMAVL', 'INCROOMAVL', 'DECROOMAVL', 'SETPROP'] as const

export function startClients(crowd: Crowd, clients: number): void {
  for (let i = 0; i < clients; i++) {
    const process = createProcess(crowd.net, `client ${i}`)
    later(process, crowd.random.below(200_000), () => open(crowd, process))
  }
}

function open(crowd: Crowd, process: Process): void {
  const { net, random, knobs } = crowd
  if (crowd.isOver) return
  const edge = pick(random, crowd.edges())
  const style: Style = chance(random, knobs.badP)
    ? pick(random, ['leaves', 'half-closes', 'slow', 'bad', 'bad'])
    : 'plain'
  const again = () => void later(process, betweenDecades(random, 1_000, 500_000), () => open(crowd, process))
  const connection = dial(crowd, process, edge, style, again)
  const life = betweenDecades(random, 50_000, 8_000_000)
  later(process, life, () => {
    if (connection.end.isClosed) return
    if (style === 'half-closes') {
      count(net.counts, 'client half-closes')
      connection.isForfeit = true
      endSending(connection.end)
    } else if (style !== 'plain') {
      count(net.counts, 'client leaves')
      connection.isForfeit = true
      connection.end.destroy()
    }
  })
}

/** Opens a connection that sends on its own, unless `again` is undefined. */
export function dial(
  crowd: Crowd,
  process: Process,
  edge: { readonly address: Address; readonly process: Process },
  style: Style,
  again: (() => void) | undefined,
): Connection {
  const { net, random } = crowd
  const stream = { bytes: Buffer.alloc(0) }
  const end: End = connect(process, edge.address, {
    opened() {
      connection.isOpen = true
      // It may have been started since it was dialled.
      connection.edge = end.peer.process
      connection.stalledBeforeUs = stalledUsOf(end.peer.process)
      if (again !== undefined) talk(connection)
    },
    data: (chunk) => takeFrames(stream, chunk, (frame) => hear(connection, frame)),
    closed(reason) {
      connection.isOpen = false
      judgeClose(connection, reason)
      again?.()
    },
  })
  const connection: Connection = {
    ...{ crowd, edge: edge.process, end, style, pending: new Map(), writes: new Map(), nextId: 1, sent: 0, replied: 0 },
    ...{ isOpen: false, isForfeit: false, isMidFrame: false, stalledBeforeUs: stalledUsOf(edge.process) },
  }
  if (chance(random, 0.2)) connection.nextId = 0xffff_fff0
  crowd.connections.push(connection)
  if (style === 'slow') later(process, 10_000 + random.below(300_000), () => readSlowly(connection))
  count(net.counts, 'keepalive', 0)
  return connection
}

function readSlowly(connection: Connection): void {
  const { end, crowd } = connection
  if (end.isClosed) return
  count(crowd.net.counts, 'slow reader')
  connection.isForfeit = true
  end.pause()
  later(end.process, betweenDecades(crowd.random, 10_000, 6_000_000), () => end.resume())
}

/** Time that a process was stalled so far. */
function stalledUsOf({ stalledUs, stalledUntilUs, net }: Process): number {
  return stalledUs - Math.max(0, stalledUntilUs - net.scheduler.nowUs)
}

/** Sends requests as long as the connection lives. */
function talk(connection: Connection): void {
  const { end, crowd, style } = connection
  const { random, knobs } = crowd
  if (end.isClosed || end.out.finAtUs > 0 || crowd.isOver) return
  const burst = 1 + random.below(knobs.burstMax)
  for (let i = 0; i < burst; i++) {
    if (style === 'bad' && chance(random, 0.05)) misbehave(connection)
    if (connection.isMidFrame) return
    if (connection.isForfeit && style === 'bad' && chance(random, 0.5)) continue
    ask(connection)
  }
  later(end.process, betweenDecades(random, 200, knobs.gapUs), () => talk(connection))
}

function ask(connection: Connection): void {
  const { crowd } = connection
  const { random, knobs, law, net } = crowd
  const isUnknown = chance(random, 0.01)
  const segment = isUnknown ? 'nowhere' : pick(random, crowd.segments)
  if (isUnknown) count(net.counts, 'unknown segment')
  let isWrite = chance(random, knobs.writeP)
  let command: string = pick(random, isWrite ? WRITES : READS)
  let flag = isWrite
  const isLong = isWrite && chance(random, 0.005)
  if (isLong) command = 'DELSEGMENT'
  else if (chance(random, UNKNOWN_COMMAND_P)) {
    command = 'COMMANDOFLATER'
    count(net.counts, 'unknown command')
  } else if (chance(random, WRONG_FLAG_P)) {
    count(net.counts, 'wrong write flag')
    flag = !flag
  }
  if (command === 'COMMANDOFLATER') isWrite = flag
  const hasKey = isWrite && chance(random, knobs.keyP)
  request(connection, newOp(law, { segment, command, isWrite, hasKey, isLong }), flag)
}

/** Sends a request. */
export function request(connection: Connection, op: Op, flag: boolean): void {
  const { crowd } = connection
  const { random, knobs } = crowd
  const padding = chance(random, 0.05) ? random.below(knobs.frameBytesMax - 200) : 0
  const id = takeId(connection)
  const frame = requestFrame(op, id, flag, padding)
  transmit(connection, frame)
  await_(connection, op, id)
  if (!op.isWrite) return
  const writes = connection.writes.get(op.segment)
  if (writes) writes.push(op)
  else connection.writes.set(op.segment, [op])
}

function takeId(connection: Connection): number {
  const id = connection.nextId
  connection.nextId = (id + 1) >>> 0
  return id
}

function transmit(connection: Connection, bytes: Buffer): void {
  connection.sent += bytes.length
  connection.end.write(bytes)
}

function await_({ pending, sent, crowd }: Connection, op: Op, id: number): void {
  pending.set(id, { op, end: sent, sentUs: crowd.net.scheduler.nowUs })
}

const MANNERS = ['rubbish', 'too much rubbish', 'frame skipped', 'frame far too large', 'frame never finished'] as const
const MORE_MANNERS = ['lengths that do not add up', 'keepalive', 'bare frame to a router', 'rubbish'] as const

function misbehave(connection: Connection): void {
  const { crowd } = connection
  const { random, knobs, law, net } = crowd
  const how: Class = chance(random, 0.3) ? pick(random, MANNERS) : pick(random, MORE_MANNERS)
  const nothing = { command: 'SEARCHPROP', isWrite: false, hasKey: false, isLong: false }
  count(net.counts, how)
  switch (how) {
    case 'rubbish':
      return transmit(connection, Buffer.alloc(1 + random.below(60), 0x41))
    case 'too much rubbish':
      connection.isForfeit = true
      return transmit(connection, Buffer.alloc(knobs.rubbishBytesMax + 1, 0x41))
    case 'frame skipped':
    case 'frame far too large': {
      const isFar = how === 'frame far too large'
      if (isFar) connection.isForfeit = true
      const id = takeId(connection)
      const op = newOp(law, { ...nothing, segment: crowd.segments[0] as string })
      transmit(connection, requestFrame(op, id, false, isFar ? knobs.skipBytesMax : knobs.frameBytesMax))
      if (!isFar) await_(connection, op, id)
      return
    }
    case 'frame never finished': {
      connection.isForfeit = true
      connection.isMidFrame = true
      const op = newOp(law, { ...nothing, segment: crowd.segments[0] as string })
      const frame = requestFrame(op, takeId(connection), false, 0)
      transmit(connection, frame.subarray(0, 1 + random.below(frame.length - 1)))
      if (chance(random, 0.5)) endSending(connection.end)
      return
    }
    case 'lengths that do not add up': {
      const id = takeId(connection)
      const op = newOp(law, { ...nothing, segment: crowd.segments[0] as string })
      const frame = requestFrame(op, id, false, 20)
      const inner = 7 + op.segment.length
      frame.writeUInt32LE(frame.readUInt32LE(inner + 5) - 1, inner + 5)
      transmit(connection, frame)
      return await_(connection, op, id)
    }
    case 'bare frame to a router': {
      const id = takeId(connection)
      const op = newOp(law, { ...nothing, segment: '' })
      transmit(connection, requestFrame(op, id, false, 0))
      return await_(connection, op, id)
    }
    default:
      return transmit(connection, Buffer.from('fe180000000d5f5f6b656570616c6976655f5f00ff0000000000000000', 'hex'))
  }
}

function hear(connection: Connection, frame: Buffer): void {
  const { crowd, pending, end } = connection
  const reply = readReply(frame)
  if (reply === undefined) throw new Violation(`a client got a malformed reply: ${frame.toString('hex').slice(0, 80)}`)
  connection.replied += reply.length
  const question = pending.get(reply.id)
  if (question === undefined)
    throw new Violation(`a client got a reply to ${reply.id}, which it did not send: ${reply.text}`)
  judgeReply(question.op, reply)
  pending.delete(reply.id)
  answered(crowd.law, question.op, reply.text)
  const arrivedUs = timeOf(end.out.reads, question.end) ?? question.sentUs
  const repliedUs = timeOf(end.in.writes, connection.replied) ?? arrivedUs
  judgeTime(connection, question.op, arrivedUs, repliedUs)
}

function judgeReply(op: Op, { number, text }: Reply): void {
  if (text === '' && number !== op.number) throw new Violation(`request ${op.number} got the reply of ${number}`, op)
  const named = /^UNDERFLOW: (\d+)$/.exec(text)?.[1]
  if (named !== undefined && Number(named) !== op.number) {
    throw new Violation(`request ${op.number} got the refusal of ${named}`, op)
  }
}

/** When a stream had its first `end` bytes. */
function timeOf(log: Pipe['writes'], end: number): number | undefined {
  let low = 0
  let high = log.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((log[middle] as Pipe['writes'][number]).end < end) low = middle + 1
    else high = middle
  }
  return log[low]?.atUs
}

/** A tick, the end of a turn, and a little. */
const SLACK_MS = 30
/** More after a stall: its timers are late, and the bytes that came meanwhile. */
const STALLED_SLACK_MS = 60
const LONG_FACTOR = 10

function judgeTime(connection: Connection, op: Op, fromUs: number, toUs: number): void {
  const { crowd, edge, stalledBeforeUs } = connection
  const stalledMs = Math.max(0, edge.stalledUs - stalledBeforeUs) / 1000
  const slackMs = SLACK_MS + (stalledMs > 0 ? STALLED_SLACK_MS : 0)
  const limitMs = crowd.knobs.deadlineMs * (op.isLong ? LONG_FACTOR : 1) + slackMs + stalledMs
  const ms = (toUs - fromUs) / 1000
  if (ms > limitMs)
    throw new Violation(
      `request ${op.number} was answered ${op.answer || 'never'} after ${ms} ms, the limit is ${limitMs} ms`,
      op,
    )
}

function judgeClose(connection: Connection, reason: string): void {
  const { pending, crowd, edge, end, isForfeit, style } = connection
  count(crowd.net.counts, 'unanswered: connection gone', pending.size)
  if (style === 'slow' && reason !== 'closed here') count(crowd.net.counts, 'slow reader closed')
  if (
    isForfeit ||
    reason !== 'closed by the other side' ||
    !edge.isAlive ||
    edge.isLeaving ||
    end.in.wasFaulty ||
    end.out.wasFaulty
  )
    return
  // Idle clients are closed in the end.
  if (edge.stalledUs > connection.stalledBeforeUs || crowd.isOver) return
  throw new Violation(`an edge closed the connection of a client in good standing`)
}

/** After the end: every request that reached an edge which lives has its answer, and writes kept their order. */
export function judgeConnections(crowd: Crowd): void {
  const { nowUs } = crowd.net.scheduler
  for (const connection of crowd.connections) {
    const { end, pending, edge, isForfeit } = connection
    for (const writes of connection.writes.values()) judgeOrder(writes)
    if (end.isClosed || !edge.isAlive || end.in.isFinSeen || isForfeit) continue
    for (const { op, end: at } of pending.values()) {
      const arrivedUs = timeOf(end.out.reads, at)
      if (arrivedUs !== undefined) judgeTime(connection, op, arrivedUs, nowUs)
      else throw new Violation(`request ${op.number} was never read`, op)
    }
  }
}

/**
 * Writes whose outcome is known took effect in the order of sending. One with a key may be sent again after a lost
 * connection, and then comes after later ones that were executed before the loss.
 */
function judgeOrder(writes: readonly Op[]): void {
  let last: Op | undefined
  for (const op of writes) {
    if (op.effects === 0 || op.answer !== 'success' || (op.hasKey && op.arrivals > 1)) continue
    if (last !== undefined && op.effectOrder < last.effectOrder) {
      throw new Violation(`write ${op.number} was executed before ${last.number}, which was sent first`, op, last)
    }
    last = op
  }
}
