/** Shards of the model: three nodes with a leader, which refuse, forget, stall, die and lie about correlation ids. */

import { betweenDecades, chance, pick, type Random, shuffle } from '@vacancy/testkit/random'
import type { Address } from '../../fabric/src/forward/world.ts'
import { count } from './counts.ts'
import { createProcess, type End, kill, later, type Net, type Process } from './net.ts'
import { execute, type Law, numberOf, type Op, opOf, refusalFrame, successFrame, takeFrames, trace } from './ops.ts'

export type NodeKnobs = {
  /** Per request, each. */
  readonly faultP: number
  readonly delayUs: number
  readonly slowP: number
  readonly replyBytes: number
  readonly replyBytesMax: number
}

export type Shard = {
  readonly id: string
  readonly zone: string
  readonly law: Law
  readonly random: Random
  readonly knobs: NodeKnobs
  readonly nodes: Node[]
  /** Undefined during an election. */
  leader: Node | undefined
  previousLeader: Node | undefined
  leaderReads: boolean
}

export type Node = {
  readonly shard: Shard
  readonly id: string
  address: Address
  process: Process
  /** Writes that were proposed and have no outcome yet, in order. */
  pending: Pending[]
}

type Pending = { readonly op: Op; readonly reply: (frame: Buffer) => void; readonly id: number; isOver: boolean }

type Connection = {
  readonly node: Node
  readonly end: End
  readonly stream: { bytes: Buffer }
  /** Requests are taken up in order. */
  nextUs: number
  commitUs: number
  writes: (() => void)[]
  waiting: Buffer[]
}

export function createShard(net: Net, law: Law, id: string, zone: string, random: Random, knobs: NodeKnobs): Shard {
  const leaderReads = chance(random, 0.5)
  const shard: Shard = {
    ...{ id, zone, law, random, knobs, nodes: [], leaderReads },
    ...{ leader: undefined, previousLeader: undefined },
  }
  for (let i = 0; i < 3; i++) {
    const node: Node = {
      ...{ shard, id: `${id}-n${i}`, address: { host: `${id}-n${i}`, port: 7000 }, pending: [] },
      process: createProcess(net, ''),
    }
    shard.nodes.push(node)
    startNode(net, node)
  }
  shard.leader = shard.nodes[0]
  return shard
}

export function startNode(net: Net, node: Node): void {
  net.listeners.delete(keyOf(node.address))
  const process = createProcess(net, node.id)
  node.process = process
  node.pending = []
  net.listeners.set(keyOf(node.address), process)
  process.accept = (end) => {
    const connection: Connection = {
      ...{ node, end, stream: { bytes: NO_BYTES }, nextUs: 0, commitUs: 0, writes: [], waiting: [] },
    }
    return {
      data: (chunk) => takeFrames(connection.stream, chunk, (frame) => take(connection, frame)),
      closed: () => {},
    }
  }
}

const NO_BYTES = Buffer.alloc(0)

export function keyOf({ host, port }: Address): string {
  return `${host}:${port}`
}

/** Another leader, or none for a while. Of the old leader's proposals some were committed, the first ones. */
export function changeLeader(shard: Shard, next: Node | undefined): void {
  const { random, law } = shard
  const old = shard.leader
  if (old === next) return
  count(law.counts, next === undefined ? 'no leader' : 'leader change')
  if (old !== undefined) shard.previousLeader = old
  shard.leader = next
  if (old === undefined) return
  const { pending } = old
  old.pending = []
  const committed = random.below(pending.length + 1)
  for (const [place, one] of pending.entries()) {
    one.isOver = true
    if (place < committed) execute(law, one.op)
    count(law.counts, 'write of an old leader')
    one.reply(refusalFrame(one.id, '408'))
  }
}

const FATES = [
  ...['429', '503', '500 after', '500 before', '408 after', '408 before', 'silent', 'late', 'dies before'],
  ...['dies after', 'wrong id', 'twice', 'rubbish', 'too large', 'text', '308'],
] as const
type Fate = (typeof FATES)[number] | 'success'

/** These end a connection or a process, and are rarer. */
const HARSH: ReadonlySet<string> = new Set(['dies before', 'dies after', 'rubbish', 'too large', 'silent', 'late'])

function fateOf({ random, knobs }: Shard, net: Net): Fate {
  if (net.isHealed || !chance(random, knobs.faultP)) return 'success'
  const fate = pick(random, FATES)
  return HARSH.has(fate) && !chance(random, 0.3) ? 'success' : fate
}

function take(connection: Connection, frame: Buffer): void {
  const { node } = connection
  const { shard, process } = node
  const { random, knobs, law } = shard
  const { net } = process
  const nowUs = net.scheduler.nowUs
  const op = opOf(law, numberOf(frame, 0))
  const id = frame.readUInt32LE(1)
  op.arrivals++
  const drawn = fateOf(shard, net)
  // The refusal of a write with a key would be stored with the key.
  const fate = drawn === 'text' && op.hasKey ? 'success' : drawn
  trace(law, op, `${node.id} gets it: ${fate}`)
  const delay =
    random.below(knobs.delayUs) +
    (!net.isHealed && chance(random, knobs.slowP) ? betweenDecades(random, 5_000, 400_000) : 0)
  if (!op.isWrite) {
    later(process, delay, () => read(connection, op, id, fate))
    return
  }
  connection.nextUs = Math.max(connection.nextUs, nowUs + delay)
  connection.writes.push(() => write(connection, op, id, fate))
  later(process, connection.nextUs - nowUs, () => connection.writes.shift()?.())
}

function read(connection: Connection, op: Op, id: number, fate: Fate): void {
  const { node } = connection
  const { shard } = node
  if (node === shard.leader && !shard.leaderReads) {
    count(shard.law.counts, 'node 405')
    return send(connection, refusalFrame(id, '405'))
  }
  finish(connection, op, id, fate === '308' ? 'success' : fate)
}

function write(connection: Connection, op: Op, id: number, fate: Fate): void {
  const { node } = connection
  const { shard, process } = node
  const { law, random } = shard
  if (node !== shard.leader || fate === '308') {
    const code = shard.leader === undefined && chance(random, 0.5) ? '503' : '308'
    count(law.counts, code === '503' ? 'node 503' : 'node 308')
    return send(connection, refusalFrame(id, code))
  }
  // The result of a key that was executed is repeated.
  if (fate === 'text' && op.effects > 0) return finish(connection, op, id, 'success')
  if (WITHOUT_EXECUTION.has(fate)) return finish(connection, op, id, fate)
  const pending: Pending = { op, id, isOver: false, reply: (frame) => send(connection, frame) }
  node.pending.push(pending)
  const { nowUs } = process.net.scheduler
  connection.commitUs = Math.max(connection.commitUs, nowUs + random.below(2_000))
  later(process, connection.commitUs - nowUs, () => {
    if (pending.isOver) return
    // Proposals are committed in order, so those before it are too.
    while (!pending.isOver) {
      const first = node.pending.shift() as Pending
      first.isOver = true
      execute(law, first.op)
      if (first !== pending) later(process, 0, () => first.reply(successFrame(first.id, first.op, 0)))
    }
    finish(connection, op, id, fate)
  })
}

const WITHOUT_EXECUTION: ReadonlySet<Fate> = new Set([
  ...(['429', '503', '500 before', '408 before', 'dies before', 'text'] as const),
])

/** The rest of a request's way: its fate, once it was executed or refused. */
function finish(connection: Connection, op: Op, id: number, fate: Fate): void {
  const { node, end } = connection
  const { shard, process } = node
  const { random, knobs, law } = shard
  const { counts } = law
  const success = successFrame(id, op, chance(random, 0.2) ? random.below(knobs.replyBytes) : 0)
  switch (fate) {
    case 'success':
      return send(connection, success)
    case '429':
    case '503':
      count(counts, fate === '429' ? 'node 429' : 'node 503')
      return send(connection, refusalFrame(id, fate))
    case '500 after':
    case '500 before':
      count(counts, fate === '500 after' ? 'node 500 executed' : 'node 500 not executed')
      return send(connection, refusalFrame(id, '500'))
    case '408 after':
    case '408 before':
      count(counts, fate === '408 after' ? 'node 408 executed' : 'node 408 not executed')
      return send(connection, refusalFrame(id, '408'))
    case 'text':
      return send(connection, refusalFrame(id, `UNDERFLOW: ${op.number}`))
    case 'silent':
      return count(counts, 'node silent')
    case 'late':
      count(counts, 'node late')
      later(process, betweenDecades(random, 200_000, 4_000_000), () => send(connection, success))
      return
    case 'wrong id':
      count(counts, 'node wrong id')
      send(connection, refusalFrame(0x8000_0000 + random.below(1 << 30), '404'))
      return send(connection, success)
    case 'twice':
      count(counts, 'node replies twice')
      send(connection, success)
      return send(connection, Buffer.from(success))
    case 'rubbish':
      count(counts, 'node rubbish')
      end.write(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'))
      return
    case 'too large': {
      count(counts, 'node reply too large')
      const frame = refusalFrame(id, 'x')
      frame.writeUInt32LE(knobs.replyBytesMax + 1, 5)
      end.write(frame)
      return
    }
    case 'dies before':
    case 'dies after':
      count(counts, fate === 'dies before' ? 'node dies before execution' : 'node dies after execution')
      if (shard.leader === node) changeLeader(shard, undefined)
      kill(process, false)
  }
}

/** Replies of one turn may leave in any order. */
function send(connection: Connection, frame: Buffer): void {
  const { waiting, node, end } = connection
  const { shard, process } = node
  waiting.push(frame)
  if (waiting.length > 1) return
  later(process, shard.random.below(300), () => {
    const frames = waiting.splice(0)
    if (frames.length > 1 && chance(shard.random, 0.5)) {
      shuffle(shard.random, frames)
      count(shard.law.counts, 'node replies out of order')
    }
    for (const one of frames) end.write(one)
  })
}
