/**
 * The simulated network and its processes: connections that are split, slowed, stalled and cut at any byte, and
 * processes that stall and die (docs/design/fabric.md#model-of-forwarding).
 *
 * Bytes that have not left a process are references, as in the real one: a sender that changes them corrupts its own
 * stream. They are copied when they leave.
 */

import { betweenDecades, chance, type Random, streamOf } from '@vacancy/testkit/random'
import { cancelEvent, createScheduler, type Scheduler, scheduleAt } from '@vacancy/testkit/scheduler'
import type { Address, Wire, WireEvents, World } from '../../fabric/src/forward/world.ts'
import { type Counts, count } from './counts.ts'

export type NetKnobs = {
  readonly latencyUs: number
  readonly jitterUs: number
  /** Bytes that leave a process without being received. */
  readonly kernelBytes: number
  readonly splitP: number
  /** Per connection: cut after a number of bytes. */
  readonly cutP: number
  readonly refuseP: number
  /** Per chunk: nothing moves for a while. */
  readonly stallP: number
}

export type Net = {
  readonly scheduler: Scheduler
  readonly seed: number
  readonly random: Random
  readonly counts: Counts
  readonly knobs: NetKnobs
  /** By address. */
  readonly listeners: Map<string, Process>
  /** Promises may have been settled in this event. */
  hasMicrotasks: boolean
  /** The faults are over. */
  isHealed: boolean
}

/** What the process behind an end gets. */
export type EndEvents = Partial<WireEvents> & {
  data(chunk: Buffer): void
  closed(reason: string): void
  /** The other side sends no more; without this handler the connection is closed then. */
  ended?(): void
}

export type Process = ReturnType<typeof createProcess>

export type End = Wire & {
  readonly process: Process
  readonly out: Pipe
  readonly in: Pipe
  events: EndEvents | undefined
  peer: End
  isOpen: boolean
  isClosed: boolean
  isPaused: boolean
  /** Closes when its bytes have left. */
  isEnding: boolean
}

const CONNECT_US = 1_000_000

export function createNet(seed: number, counts: Counts, knobs: NetKnobs): Net {
  return {
    scheduler: createScheduler(),
    seed,
    random: streamOf(seed, 'net'),
    counts,
    knobs,
    listeners: new Map(),
    hasMicrotasks: false,
    isHealed: false,
  }
}

export function createProcess(net: Net, name: string) {
  return {
    net,
    name,
    ends: new Set<End>(),
    isAlive: true,
    /** Its machine is gone: the other sides notice nothing. */
    isGone: false,
    /** It closes its connections in order. */
    isLeaving: false,
    stalledUntilUs: 0,
    stalledUs: 0,
    timers: 0,
    accept: undefined as ((end: End, remote: string) => EndEvents) | undefined,
  }
}

/** Runs something in a process; never when it is dead, later while it is stalled. @returns cancels it */
export function later(process: Process, us: number, run: () => void): () => void {
  const { scheduler } = process.net
  const fire = () => {
    if (!process.isAlive || process.isGone) return
    if (process.stalledUntilUs > scheduler.nowUs) event = scheduleAt(scheduler, process.stalledUntilUs, fire)
    else run()
  }
  let event = scheduleAt(scheduler, scheduler.nowUs + us, fire)
  return () => cancelEvent(event)
}

/** What production code sees of the simulation. */
export function worldOf(process: Process): World {
  const { net } = process
  const random = streamOf(net.seed, `world ${process.name} ${net.scheduler.nowUs}`)
  return {
    nowMs: () => net.scheduler.nowUs / 1000,
    random: () => random.next() / 2 ** 32,
    after(ms, run) {
      process.timers++
      let isOver = false
      const stop = later(process, Math.round(ms * 1000), () => {
        isOver = true
        process.timers--
        net.hasMicrotasks = true
        run()
      })
      return () => {
        if (isOver) return
        isOver = true
        process.timers--
        stop()
      }
    },
    atTurnEnd: (run) => void later(process, net.random.below(200), run),
    connect: (address, events) => connect(process, address, events),
  }
}

export function connect(process: Process, address: Address, events: EndEvents & { opened(): void }): End {
  const { net } = process
  const { random, knobs, counts } = net
  const end = createEnd(process)
  end.events = events
  later(process, knobs.latencyUs + random.below(knobs.jitterUs + 1), () => {
    if (end.isClosed) return
    const listener = net.listeners.get(`${address.host}:${address.port}`)
    if (listener?.isGone) {
      later(process, CONNECT_US, () => {
        if (end.isClosed) return
        count(counts, 'connect timed out')
        destroy(end, 'not open within 1000 ms')
      })
      return
    }
    if (listener?.accept === undefined || !listener.isAlive || (!net.isHealed && chance(random, knobs.refuseP))) {
      count(counts, 'connect refused')
      destroy(end, 'connection refused')
      return
    }
    join(end, listener)
    end.isOpen = true
    events.opened()
    admit(end)
  })
  return end
}

function join(end: End, listener: Process): void {
  const { net } = listener
  const { random, knobs } = net
  const peer = createEnd(listener, end)
  end.peer = peer
  peer.isOpen = true
  if (!net.isHealed && chance(random, knobs.cutP)) {
    const pipe = chance(random, 0.5) ? end.out : end.in
    pipe.cutAt = betweenDecades(random, 1, 60_000)
  }
  const { accept } = listener
  later(listener, 0, () => {
    if (peer.isClosed || accept === undefined) return
    peer.events = accept(peer, end.process.name)
    pump(peer)
  })
}

/** One direction of a connection. */
export type Pipe = ReturnType<typeof createPipe>
/** When the first so many bytes were there. */
type Mark = { readonly end: number; readonly atUs: number }

function createPipe() {
  return {
    queued: [] as Uint8Array[],
    queuedBytes: 0,
    flight: [] as { bytes: Buffer; atUs: number }[],
    flightBytes: 0,
    lastAtUs: 0,
    /** Bytes that the receiver got, and their number at which the connection is cut. */
    delivered: 0,
    cutAt: Number.POSITIVE_INFINITY,
    written: 0,
    /** Of the sender, and of the receiver. */
    writes: [] as Mark[],
    reads: [] as Mark[],
    /** It was stalled or cut. */
    wasFaulty: false,
    stalledUntilUs: 0,
    mustDrain: false,
    finAtUs: 0,
    isFinSent: false,
    isFinSeen: false,
  }
}

function createEnd(process: Process, peer?: End): End {
  const end: End = {
    process,
    out: peer?.in ?? createPipe(),
    in: peer?.out ?? createPipe(),
    events: undefined,
    peer: undefined as unknown as End,
    isOpen: false,
    isClosed: false,
    isPaused: false,
    isEnding: false,
    write: (bytes) => write(end, bytes),
    pause: () => {
      if (!end.isPaused) count(process.net.counts, 'reading paused')
      end.isPaused = true
    },
    resume: () => {
      end.isPaused = false
      later(process, 0, () => pump(end))
    },
    destroy: () => destroy(end),
    destroySoon: () => {
      end.isEnding = true
      endSending(end)
    },
    get writableLength() {
      return end.out.queuedBytes
    },
  }
  if (peer !== undefined) end.peer = peer
  process.ends.add(end)
  return end
}

function write(end: End, bytes: Uint8Array): boolean {
  const { out } = end
  if (end.isClosed || out.finAtUs > 0 || bytes.length === 0) return false
  out.queued.push(bytes)
  out.queuedBytes += bytes.length
  out.written += bytes.length
  out.writes.push({ end: out.written, atUs: end.process.net.scheduler.nowUs })
  admit(end)
  if (out.queuedBytes === 0) return true
  out.mustDrain = true
  return false
}

/** Lets queued bytes leave the process while there is room. */
function admit(end: End): void {
  const { out, process } = end
  const { net } = process
  if (!end.isOpen || end.isClosed) return
  while (out.queued.length > 0 && out.flightBytes < net.knobs.kernelBytes) {
    const first = out.queued[0] as Uint8Array
    const room = net.knobs.kernelBytes - out.flightBytes
    const part = first.subarray(0, room)
    if (part.length === first.length) out.queued.shift()
    else out.queued[0] = first.subarray(room)
    out.queuedBytes -= part.length
    ship(end, Buffer.from(part))
  }
  if (out.queuedBytes > 0) return count(net.counts, 'buffer full')
  if (out.mustDrain) {
    out.mustDrain = false
    later(process, 0, () => {
      if (!end.isClosed) end.events?.drained?.()
    })
  }
  if (out.finAtUs > 0) sendFin(end)
}

function ship(end: End, bytes: Buffer): void {
  const { out, process } = end
  const { net } = process
  const { random, knobs, scheduler } = net
  if (!net.isHealed && chance(random, knobs.stallP)) {
    count(net.counts, 'wire stalled')
    out.wasFaulty = true
    out.stalledUntilUs = scheduler.nowUs + betweenDecades(random, 5_000, 3_000_000)
  }
  out.lastAtUs = Math.max(out.lastAtUs, scheduler.nowUs + knobs.latencyUs + random.below(knobs.jitterUs + 1))
  out.flight.push({ bytes, atUs: out.lastAtUs })
  out.flightBytes += bytes.length
  pumpAt(end.peer, out.lastAtUs)
}

function pumpAt(end: End, atUs: number): void {
  later(end.process, atUs - end.process.net.scheduler.nowUs, () => pump(end))
}

/** Gives an end what has arrived. */
function pump(end: End): void {
  const pipe = end.in
  const { net } = end.process
  const { scheduler, random, knobs, counts } = net
  if (end.events === undefined) return
  for (;;) {
    if (end.isPaused && !end.isClosed) return
    const [head] = pipe.flight
    if (head === undefined || head.atUs > scheduler.nowUs) break
    if (pipe.stalledUntilUs > scheduler.nowUs) return pumpAt(end, pipe.stalledUntilUs)
    let { bytes } = head
    if (bytes.length > 1 && chance(random, knobs.splitP)) {
      count(counts, 'chunk split')
      bytes = bytes.subarray(0, 1 + random.below(bytes.length - 1))
    }
    const isCut = pipe.delivered + bytes.length >= pipe.cutAt
    if (isCut) bytes = bytes.subarray(0, pipe.cutAt - pipe.delivered)
    if (bytes.length === head.bytes.length) pipe.flight.shift()
    else {
      head.bytes = head.bytes.subarray(bytes.length)
      head.atUs = scheduler.nowUs + random.below(3) * 100
      if (head.atUs > scheduler.nowUs) pumpAt(end, head.atUs)
    }
    pipe.flightBytes -= bytes.length
    pipe.delivered += bytes.length
    if (bytes.length > 0) pipe.reads.push({ end: pipe.delivered, atUs: scheduler.nowUs })
    // Bytes for a closed connection reset it.
    if (end.isClosed) return reset(end.peer)
    if (bytes.length > 0) {
      const given = Buffer.from(bytes)
      end.events.data(given)
      // Valid during the call only.
      given.fill(0xee)
    }
    if (isCut) {
      count(counts, 'wire cut')
      return cut(end)
    }
    if (!end.peer.isClosed) admit(end.peer)
  }
  if (pipe.isFinSent && !pipe.isFinSeen && pipe.flight.length === 0 && pipe.finAtUs <= scheduler.nowUs) seeFin(end)
}

function seeFin(end: End): void {
  end.in.isFinSeen = true
  if (end.isClosed || end.events === undefined) return
  if (end.events.ended) end.events.ended()
  else destroy(end, 'closed by the other side')
}

/** The connection breaks; the two sides notice at times of their own. */
export function cut(end: End): void {
  const { random } = end.process.net
  for (const one of [end, end.peer]) {
    if (one === undefined) continue
    const us = chance(random, 0.7) ? random.below(2_000) : betweenDecades(random, 2_000, 1_000_000)
    one.in.wasFaulty = true
    one.in.stalledUntilUs = Number.MAX_SAFE_INTEGER
    one.in.flight = []
    later(one.process, us, () => destroy(one, 'connection reset'))
  }
}

function reset(end: End): void {
  later(end.process, end.process.net.knobs.latencyUs, () => destroy(end, 'connection reset'))
}

/** Ends one side, and notifies its process. */
function destroy(end: End, reason = 'closed here'): void {
  if (end.isClosed) return
  const { process, out } = end
  const { net } = process
  end.isClosed = true
  out.queued = []
  out.queuedBytes = 0
  process.ends.delete(end)
  later(process, 0, () => end.events?.closed(reason))
  if (!end.isOpen || end.peer === undefined) return
  if (out.flight.length > 0 && chance(net.random, 0.3)) {
    count(net.counts, 'bytes lost at a close')
    out.flight = []
    out.flightBytes = 0
  }
  sendFin(end)
}

/** Sends no more; the other side may. */
export function endSending(end: End): void {
  if (end.isClosed || end.out.finAtUs > 0) return
  end.out.finAtUs = 1
  admit(end)
}

function sendFin(end: End): void {
  const { out, process } = end
  if (out.isFinSent) return
  const { scheduler, knobs } = process.net
  out.isFinSent = true
  out.finAtUs = Math.max(out.lastAtUs, scheduler.nowUs + knobs.latencyUs)
  pumpAt(end.peer, out.finAtUs)
  if (end.isEnding) later(process, 0, () => destroy(end))
}

export function stall(process: Process, us: number): void {
  const { nowUs } = process.net.scheduler
  const from = Math.max(nowUs, process.stalledUntilUs)
  process.stalledUntilUs = Math.max(process.stalledUntilUs, nowUs + us)
  process.stalledUs += process.stalledUntilUs - from
}

/** Kills a process. Its system closes the connections; with its machine gone, nothing does. */
export function kill(process: Process, withMachine: boolean): void {
  const { net } = process
  if (withMachine) {
    process.isGone = true
    return
  }
  process.isAlive = false
  for (const end of [...process.ends]) destroy(end)
  if (process.stalledUntilUs > net.scheduler.nowUs) process.stalledUntilUs = 0
}

/** The machine of a process is back without it: its connections are reset. */
export function bury(process: Process): void {
  if (!process.isGone) return
  process.isAlive = false
  for (const end of [...process.ends]) {
    end.isClosed = true
    process.ends.delete(end)
    if (end.peer !== undefined) reset(end.peer)
  }
}

/** Ends all stalls. */
export function healNet(net: Net, processes: Iterable<Process>): void {
  net.isHealed = true
  for (const process of processes) {
    for (const end of process.ends) {
      if (end.in.stalledUntilUs !== Number.MAX_SAFE_INTEGER) end.in.stalledUntilUs = 0
      end.in.cutAt = Number.POSITIVE_INFINITY
      if (end.events !== undefined) later(process, 0, () => pump(end))
    }
  }
}
