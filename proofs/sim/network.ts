/**
 * The simulated network: frames are delayed, duplicated, reordered, damaged or lost
 * (docs/design/testing.md#the-simulated-world).
 *
 * A link is directed. Its faults are counted, so that overlapping partitions heal one by one. On top of links are
 * connections between pairs of nodes, as in the transport: they open when both nodes run and reach each other, close
 * immediately when the other process dies, and time out when nothing arrives.
 */

import { assert } from '@vacancy/shared'
import { between, chance, type Random } from '@vacancy/testkit/random'
import { type Scheduler, scheduleIn } from '@vacancy/testkit/scheduler'
import { STREAMS, type StreamKind } from '../../engine/src/transport/transport.ts'

export type NetworkKnobs = {
  readonly latencyUsMin: number
  readonly latencyUsMax: number
  readonly dropP: number
  readonly duplicateP: number
  /** Rate of frames delayed by up to `lateUsMax`, which later frames overtake. */
  readonly lateP: number
  readonly lateUsMax: number
  /** Rate of truncated or corrupted frames; the receiver must detect them. */
  readonly damageP: number
  readonly queueBytesMax: number
  /** A stream delivers in order, as TCP does, except for late and repeated frames. A calm network always does. */
  readonly isOrdered: boolean
}

/** Encoded bytes, or a message of a bare core without a wire format. */
export type Payload = Uint8Array | object

export type NetworkEnd = {
  /** Whether the process can tell frames of its shard before a restore from those of now; absent where it always can. */
  knowsLife?(): boolean
  onPayload(from: number, stream: StreamKind, payload: Payload): void
  onOpen(peer: number, stream: StreamKind): void
  onClosed(peer: number, stream: StreamKind, isDead: boolean): void
}

type Frame = {
  readonly from: number
  readonly to: number
  readonly stream: StreamKind
  readonly payload: Payload
  /** The life of the data in which it was sent. */
  readonly life: number
  /** It says so: its sender has applied the genesis. */
  readonly isNamed: boolean
}

export type Network = {
  readonly nodes: number
  readonly knobs: NetworkKnobs
  readonly scheduler: Scheduler
  readonly random: Random
  readonly ends: (NetworkEnd | undefined)[]
  /** By link (from · nodes + to): faults that block it, bytes a second (0: any), added delay. */
  readonly blocks: Uint16Array
  readonly bytesPerSecond: Float64Array
  readonly delayUs: Float64Array
  /** When the link has sent its queue. */
  readonly freeAtUs: Float64Array
  /** Frames that a slow link has not delivered yet, in the order they were sent. */
  readonly slowFrames: readonly Set<Frame>[]
  /** When the last frame of each stream of a link arrives. */
  readonly lastArrivalUs: { readonly [stream in StreamKind]: Float64Array }
  /** Whether a node thinks that it is connected to another; counts up with each change. */
  readonly isConnected: Uint8Array
  readonly isConnecting: Uint8Array
  readonly counts: ReturnType<typeof createCounts>
  /** Rates no longer apply; only existing blocks remain. */
  isCalm: boolean
  /** Counts the restores of the shard. */
  life: number
  readonly damage: (payload: Payload, random: Random) => Payload | undefined
}

const RETRY_US = 150_000
/** Timeout of a silent connection. */
const SILENCE_US = { min: 300_000, max: 8_000_000 }

export function createNetwork(
  nodes: number,
  knobs: NetworkKnobs,
  scheduler: Scheduler,
  random: Random,
  damage: Network['damage'],
): Network {
  const links = (nodes + 1) * (nodes + 1)
  return {
    nodes,
    knobs,
    scheduler,
    random,
    ends: new Array<NetworkEnd | undefined>(nodes + 1).fill(undefined),
    blocks: new Uint16Array(links),
    bytesPerSecond: new Float64Array(links),
    delayUs: new Float64Array(links),
    freeAtUs: new Float64Array(links),
    slowFrames: Array.from({ length: links }, () => new Set<Frame>()),
    lastArrivalUs: {
      control: new Float64Array(links),
      append: new Float64Array(links),
      bulk: new Float64Array(links),
    },
    isConnected: new Uint8Array(links),
    isConnecting: new Uint8Array(links),
    counts: createCounts(),
    isCalm: false,
    life: 0,
    damage,
  }
}

function createCounts() {
  return { sent: 0, delivered: 0, dropped: 0, duplicated: 0, late: 0, damaged: 0, blocked: 0, resets: 0 }
}

export function linkOf(network: Network, from: number, to: number): number {
  assert(from >= 1 && from <= network.nodes && to >= 1 && to <= network.nodes, 'nodes are numbered from 1')
  return from * (network.nodes + 1) + to
}

/** Attaches a running node: it listens, and connects to all others. */
export function attach(network: Network, node: number, end: NetworkEnd): void {
  assert(network.ends[node] === undefined, 'a node has one process')
  network.ends[node] = end
  for (let peer = 1; peer <= network.nodes; peer++) if (peer !== node) connectSoon(network, node, peer, 1_000)
}

/** Detaches an ended process. `isReset`: its machine is up and resets the connections. */
export function detach(network: Network, node: number, isReset: boolean): void {
  network.ends[node] = undefined
  for (let peer = 1; peer <= network.nodes; peer++) {
    if (peer === node) continue
    network.isConnected[linkOf(network, node, peer)] = 0
    const link = linkOf(network, peer, node)
    if (network.isConnected[link] === 0) continue
    const receivesReset = isReset && network.blocks[linkOf(network, node, peer)] === 0
    const after = receivesReset ? latencyOf(network) : between(network.random, SILENCE_US.min, SILENCE_US.max)
    scheduleIn(network.scheduler, after, () => {
      // It may have reconnected.
      if (network.ends[node] === undefined) disconnect(network, peer, node, receivesReset)
    })
  }
}

/** Sends without waiting. @returns false when it was dropped immediately */
export function sendPayload(
  network: Network,
  from: number,
  to: number,
  stream: StreamKind,
  payload: Payload,
  bytes: number,
): boolean {
  const { knobs, counts, random, scheduler } = network
  const link = linkOf(network, from, to)
  if (network.isConnected[link] === 0) return false
  let delay = latencyOf(network) + network.delayUs[link]
  const rate = network.bytesPerSecond[link]
  if (rate > 0) {
    const waiting = Math.max(0, network.freeAtUs[link] - scheduler.nowUs)
    if ((waiting / 1e6) * rate > knobs.queueBytesMax) return false
    network.freeAtUs[link] = scheduler.nowUs + waiting + (bytes / rate) * 1e6
    delay += waiting + (bytes / rate) * 1e6
  }
  counts.sent++
  if (network.blocks[link] !== 0) {
    counts.blocked++
    return true
  }
  if (network.isCalm || knobs.isOrdered) {
    const arrivals = network.lastArrivalUs[stream]
    delay = Math.max(delay, arrivals[link] - scheduler.nowUs)
    arrivals[link] = scheduler.nowUs + delay
  }
  if (network.isCalm) {
    deliverIn(network, delay, from, to, stream, payload)
    return true
  }
  if (chance(random, knobs.dropP)) {
    counts.dropped++
    return true
  }
  if (chance(random, knobs.lateP)) {
    counts.late++
    delay += random.below(knobs.lateUsMax)
  }
  if (chance(random, knobs.duplicateP)) {
    counts.duplicated++
    // Occasionally minutes later: very old frames must be harmless.
    const later = random.below(20) === 0 ? random.below(120_000_000) : random.below(knobs.lateUsMax)
    deliverIn(network, delay + later, from, to, stream, payload)
  }
  if (chance(random, knobs.damageP)) {
    counts.damaged++
    const damaged = network.damage(payload, random)
    // The receiver detects it and closes the connection.
    if (damaged === undefined) scheduleIn(scheduler, delay, () => resetConnection(network, from, to))
    else deliverIn(network, delay, from, to, stream, damaged)
    return true
  }
  deliverIn(network, delay, from, to, stream, payload)
  return true
}

export function queuedBytesOf(network: Network, from: number, to: number): number {
  const link = linkOf(network, from, to)
  const rate = network.bytesPerSecond[link]
  return rate === 0 ? 0 : Math.max(0, ((network.freeAtUs[link] - network.scheduler.nowUs) / 1e6) * rate)
}

export function slowDown(network: Network, link: number, bytesPerSecond: number, delayUs: number): void {
  network.bytesPerSecond[link] = bytesPerSecond
  network.delayUs[link] = delayUs
}

/** The link is fast again: frames that are still on their way arrive next, before any new one. */
export function speedUp(network: Network, link: number): void {
  const { scheduler, lastArrivalUs } = network
  network.bytesPerSecond[link] = 0
  network.delayUs[link] = 0
  network.freeAtUs[link] = scheduler.nowUs
  const frames = network.slowFrames[link]
  if (frames.size === 0) return
  const delay = latencyOf(network)
  for (const stream of STREAMS) lastArrivalUs[stream][link] = scheduler.nowUs + delay
  for (const frame of frames) scheduleIn(scheduler, delay, () => deliver(network, frame))
  frames.clear()
}

function deliverIn(
  network: Network,
  delayUs: number,
  from: number,
  to: number,
  stream: StreamKind,
  payload: Payload,
): void {
  const isNamed = network.ends[from]?.knowsLife?.() !== false
  const frame: Frame = { from, to, stream, payload, life: network.life, isNamed }
  const link = linkOf(network, from, to)
  if (network.bytesPerSecond[link] === 0) {
    scheduleIn(network.scheduler, delayUs, () => deliver(network, frame))
    return
  }
  const frames = network.slowFrames[link]
  frames.add(frame)
  scheduleIn(network.scheduler, delayUs, () => {
    if (frames.delete(frame)) deliver(network, frame)
  })
}

function deliver(network: Network, { from, to, stream, payload, life, isNamed }: Frame): void {
  const end = network.ends[to]
  // No connection outlives both of its processes. Late frames of a former life test the genesis that tells them apart,
  // which both nodes have from their first entry on.
  if (life !== network.life && (!isNamed || end?.knowsLife?.() === false)) return
  // A block that started meanwhile drops frames in flight.
  if (!end || network.blocks[linkOf(network, from, to)] !== 0) return
  network.counts.delivered++
  end.onPayload(from, stream, payload)
}

function latencyOf({ knobs, random }: Network): number {
  return between(random, knobs.latencyUsMin, knobs.latencyUsMax)
}

function connectSoon(network: Network, a: number, b: number, delayUs: number): void {
  const link = linkOf(network, Math.min(a, b), Math.max(a, b))
  if (network.isConnecting[link] !== 0) return
  network.isConnecting[link] = 1
  const attempt = (): void => {
    const there = linkOf(network, a, b)
    const back = linkOf(network, b, a)
    if (network.isConnected[there] !== 0 && network.isConnected[back] !== 0) {
      network.isConnecting[link] = 0
      return
    }
    const isHeard = network.blocks[there] === 0 && network.blocks[back] === 0
    if (!isHeard || !network.ends[a] || !network.ends[b]) {
      if (network.ends[a] || network.ends[b]) scheduleIn(network.scheduler, RETRY_US, attempt)
      else network.isConnecting[link] = 0
      return
    }
    network.isConnecting[link] = 0
    opened(network, a, b)
    opened(network, b, a)
  }
  scheduleIn(network.scheduler, delayUs + network.random.below(1_000), attempt)
}

function opened(network: Network, node: number, peer: number): void {
  const link = linkOf(network, node, peer)
  if (network.isConnected[link] !== 0) return
  network.isConnected[link] = 1
  for (const stream of STREAMS) network.ends[node]?.onOpen(peer, stream)
}

function disconnect(network: Network, node: number, peer: number, isDead: boolean): void {
  const link = linkOf(network, node, peer)
  if (network.isConnected[link] === 0) return
  network.isConnected[link] = 0
  for (const stream of STREAMS) network.ends[node]?.onClosed(peer, stream, isDead)
  connectSoon(network, node, peer, RETRY_US)
}

/** Both ends lose the connection while both processes are up. */
export function resetConnection(network: Network, a: number, b: number): void {
  network.counts.resets++
  disconnect(network, a, b, false)
  disconnect(network, b, a, false)
}

/** Drops all frames until `unblock` has been called as often. */
export function block(network: Network, from: number, to: number): void {
  const link = linkOf(network, from, to)
  network.blocks[link] = network.blocks[link] + 1
  scheduleIn(network.scheduler, between(network.random, SILENCE_US.min, SILENCE_US.max), () => {
    if (network.blocks[link] === 0) return
    // One direction is not acknowledged, so both ends time out.
    disconnect(network, to, from, false)
    disconnect(network, from, to, false)
  })
}

export function unblock(network: Network, from: number, to: number): void {
  const link = linkOf(network, from, to)
  assert(network.blocks[link] !== 0, 'a link is unblocked once per block')
  network.blocks[link] = network.blocks[link] - 1
}
