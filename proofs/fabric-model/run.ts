/**
 * One seed of the model: a platform of production routers and bridges over simulated connections, its faults, its end,
 * and what must hold (docs/design/fabric.md#model-of-forwarding).
 */

import { betweenDecades, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import { runNext, scheduleAt } from '@vacancy/testkit/scheduler'
import { drain, type Forwarder } from '../../fabric/src/forward/forwarder.ts'
import { closePool } from '../../fabric/src/forward/hops.ts'
import { type Connection, type Crowd, dial, judgeConnections, request, startClients } from './clients.ts'
import { type Counts, count, PRODUCTION_CLASSES } from './counts.ts'
import { bury, createNet, createProcess, cut, healNet, kill, type Net, stall } from './net.ts'
import { createLaw, type Law, newOp, type Op, Violation } from './ops.ts'
import { type Component, createComponent, type Platform, spreadAddress, spreadNews, start } from './platform.ts'
import { changeLeader, createShard, keyOf, type Node, type Shard, startNode } from './shard.ts'

type Run = {
  readonly seed: number
  readonly net: Net
  readonly law: Law
  readonly counts: Counts
  readonly platform: Platform
  readonly crowd: Crowd
  readonly random: Random
  readonly faultGapUs: number
}

export type Outcome = { readonly counts: Counts; readonly events: number; readonly hash: number }

const S = 1_000_000
/** From the end of the faults until everything must work: drains, back-offs and greetings are over. */
const HEALING_US = 14 * S
const REQUESTS = 1_000

/**
 * @param say gets the steps of the operations that a violation names
 * @throws Violation what must not be, or an error of production code
 */
export async function runSeed(seed: number, say?: (line: string) => void): Promise<Outcome> {
  const run = createRun(seed)
  if (say !== undefined) run.law.trail = new Map()
  let rejection: unknown
  const note = (reason: unknown) => {
    rejection ??= reason
  }
  process.on('unhandledRejection', note)
  try {
    await play(run)
    // Rejections are reported after the promises of a turn.
    await new Promise((resolve) => setImmediate(resolve))
  } catch (error) {
    for (const number of error instanceof Violation ? error.operations : []) {
      for (const line of run.law.trail?.get(number) ?? []) say?.(`${number}: ${line}`)
    }
    throw error
  } finally {
    process.off('unhandledRejection', note)
  }
  if (rejection !== undefined) throw rejection
  return { counts: run.counts, events: run.net.scheduler.ran, hash: run.law.hash }
}

function createRun(seed: number): Run {
  const counts: Counts = new Map()
  const random = streamOf(seed, 'knobs')
  const isRough = chance(random, 0.7)
  const net = createNet(seed, counts, {
    latencyUs: betweenDecades(random, 50, 3_000),
    jitterUs: betweenDecades(random, 10, 5_000),
    kernelBytes: betweenDecades(random, 2_000, 100_000),
    splitP: chance(random, 0.3) ? 0.2 : 0.01,
    cutP: isRough ? 0.15 : 0,
    refuseP: isRough ? 0.05 : 0,
    stallP: chance(random, 0.5) ? 0.0005 : 0,
  })
  const law = createLaw(counts, net.scheduler)
  const deadlineMs = pick(random, [400, 900, 1_800])
  const limits = {
    ...{ frameBytesMax: 2_048, skipBytesMax: 8_192, rubbishBytesMax: 4_096, stalledMsMax: 1_500 },
    ...{ inFlightMax: pick(random, [8, 32, 1_024]), queuedBytesMax: pick(random, [2_000, 32_000, 4_000_000]) },
    ...{ frameMsMax: 2_500, idleMsMax: 5_000, totalInFlightMax: pick(random, [30, 50_000, 50_000]), deadlineMs: 0 },
  }
  const platform: Platform = {
    ...{ net, law, counts, random: streamOf(seed, 'platform'), shards: [], segments: new Map(), components: [] },
    forwarders: [],
    hidden: new Set(),
    knobs: {
      ...{ limits, deadlineMs, linksPerHop: pick(random, [1, 2, 4]), keepaliveMs: 1_500, responseBytesMax: 16_384 },
      ...{ hopQueuedBytesMax: pick(random, [1_000, 16_000, 262_144]), newsUs: betweenDecades(random, 2_000, 3 * S) },
      hedgeAfterMs: seed % 2 === 0 ? pick(streamOf(seed, 'hedges'), [5, 20, 60]) : 0,
      ...{ resolverFaultP: isRough ? 0.1 : 0, foreignP: chance(random, 0.35) ? 0.4 : 0, foreignFaultP: 0.03 },
    },
  }
  const nodes = {
    ...{ faultP: isRough ? betweenDecades(random, 10, 300) / 1_000 : 0.002, delayUs: 1_500 },
    ...{ slowP: chance(random, 0.5) ? 0.02 : 0, replyBytes: pick(random, [100, 2_000, 8_000]), replyBytesMax: 16_384 },
  }
  build(platform, nodes, random)
  const { frameBytesMax, skipBytesMax, rubbishBytesMax } = limits
  const crowd: Crowd = {
    ...{ net, law, random: streamOf(seed, 'clients'), segments: [...platform.segments.keys()], connections: [] },
    knobs: {
      ...{ burstMax: pick(random, [1, 4, 20]), gapUs: pick(random, [20_000, 100_000]), badP: 0.3, deadlineMs },
      ...{ keyP: pick(random, [0, 0.3, 1]), writeP: pick(random, [0.2, 0.5, 0.9]) },
      ...{ frameBytesMax, skipBytesMax, rubbishBytesMax },
    },
    edges: () => platform.components.filter(({ role }) => role === 'edge'),
    isOver: false,
  }
  const faultGapUs = isRough ? betweenDecades(random, 30_000, 600_000) : 3 * S
  return { seed, net, law, counts, platform, crowd, random: streamOf(seed, 'faults'), faultGapUs }
}

function build(platform: Platform, nodes: Shard['knobs'], random: Random): void {
  const { net, law, shards, segments } = platform
  const edges = 1 + random.below(2)
  for (let i = 0; i < edges; i++) createComponent(platform, 'edge', `edge-${i}`, '')
  for (const zone of ['z1', 'z2']) {
    for (let i = 0; i < 2; i++) createComponent(platform, 'zone', `${zone}-r${i}`, zone)
    const shardsOfZone = zone === 'z1' ? 2 : 1
    for (let i = 0; i < shardsOfZone; i++) {
      const id = `${zone}-s${i}`
      const shard = createShard(net, law, id, zone, streamOf(net.seed, id), nodes)
      shards.push(shard)
      segments.set(`segment-${id}`, shard)
      for (let b = 0; b < 2; b++) createComponent(platform, 'bridge', `${id}-b${b}`, zone, shard)
    }
  }
  segments.set('segment-more', shards[0] as Shard)
  for (const component of platform.components) {
    const isLate = chance(random, 0.1)
    if (!isLate) start(component)
    else scheduleAt(net.scheduler, random.below(S), () => start(component))
  }
}

async function play(run: Run): Promise<void> {
  const { net, crowd, law } = run
  startClients(crowd, 4 + run.random.below(4))
  scheduleAt(net.scheduler, 300_000, () => fault(run))
  // A crowd that sends slowly, or cannot send, ends all the same.
  for (let us = 0; us < 30 * S && law.ops.length < REQUESTS; us += 100_000) await runUntil(run, us)
  crowd.isOver = true
  heal(run)
  await runUntil(run, net.scheduler.nowUs + HEALING_US)
  const probes = probe(run)
  await runUntil(run, net.scheduler.nowUs + run.platform.knobs.deadlineMs * 1000 + S)
  for (const { op } of probes.flatMap(({ pending }) => [...pending.values()]))
    throw new Violation(`after the faults, request ${op.number} has no reply`, op)
  for (const op of law.ops.slice(-probes.length * crowd.segments.length * 2)) {
    // Hops with small buffers are full for a moment when all segments are pending at once.
    if (op.answer !== 'success' && op.answer !== '429' && !mayBeMisled(run, op))
      throw new Violation(`after the faults, request ${op.number} was answered ${op.answer}`, op)
  }
  // The longest deadline, and the late replies.
  await runUntil(run, net.scheduler.nowUs + run.platform.knobs.deadlineMs * 10_000)
  judgeConnections(crowd)
  for (const component of run.platform.components) judgeIdle(component)
  for (const { end } of crowd.connections) if (!end.isClosed) end.destroy()
  await runUntil(run, net.scheduler.nowUs + 2 * S)
  for (const component of run.platform.components) end(run, component)
  await runUntil(run, net.scheduler.nowUs + 12 * S)
  for (const component of run.platform.components) judgeEnd(component)
  for (const { counters } of run.platform.forwarders) {
    for (const name of PRODUCTION_CLASSES) count(run.counts, name, counters[name])
  }
}

async function runUntil({ net }: Run, untilUs: number): Promise<void> {
  const { scheduler } = net
  await settle(net)
  while (runNext(scheduler, untilUs)) if (net.hasMicrotasks) await settle(net)
  scheduler.nowUs = Math.max(scheduler.nowUs, untilUs)
}

/** Enough turns of the promise queue for the longest chain of production code. */
const TURNS = 12

async function settle(net: Net): Promise<void> {
  while (net.hasMicrotasks) {
    net.hasMicrotasks = false
    for (let i = 0; i < TURNS; i++) await undefined
  }
}

type Fault = (run: Run) => void

function fault(run: Run): void {
  const { net, random, crowd } = run
  if (crowd.isOver) return
  pick(random, FAULTS)(run)
  scheduleAt(net.scheduler, net.scheduler.nowUs + betweenDecades(random, 10_000, run.faultGapUs), () => fault(run))
}

function alive({ platform }: Run): Component[] {
  return platform.components.filter(({ process }) => process.isAlive && !process.isGone && process.accept !== undefined)
}

function nodesOf({ platform }: Run): Node[] {
  return platform.shards.flatMap(({ nodes }) => nodes)
}

const FAULTS: readonly Fault[] = [
  killComponent,
  killComponent,
  drainComponent,
  killNode,
  killNode,
  (run) => {
    const shard = pick(run.random, run.platform.shards)
    changeLeader(shard, pick(run.random, shard.nodes))
  },
  (run) => {
    const shard = pick(run.random, run.platform.shards)
    changeLeader(shard, undefined)
    after(run, betweenDecades(run.random, 10_000, 2 * S), () => elect(run, shard))
  },
  (run) => {
    const processes = [...alive(run), ...nodesOf(run)].map(({ process }) => process)
    const one = pick(run.random, processes)
    count(run.counts, 'process stalled')
    stall(one, betweenDecades(run.random, 5_000, 3 * S))
  },
  (run) => {
    const one = pick(run.random, alive(run).length > 0 ? alive(run) : run.platform.components)
    const ends = [...one.process.ends].filter((end) => end.isOpen)
    if (ends.length === 0) return
    count(run.counts, 'wire cut')
    cut(pick(run.random, ends))
  },
  (run) => {
    const { platform, random } = run
    count(run.counts, 'segment moved')
    platform.segments.set('segment-more', pick(random, platform.shards))
    spreadNews(platform)
  },
  (run) => {
    const { platform, random } = run
    const one = pick(
      random,
      platform.components.filter(({ role }) => role !== 'edge'),
    )
    if (platform.hidden.has(one.id)) return
    count(run.counts, 'hop list changed')
    platform.hidden.add(one.id)
    spreadNews(platform)
    after(run, betweenDecades(random, 50_000, 2 * S), () => {
      platform.hidden.delete(one.id)
      spreadNews(platform)
    })
  },
]

function after({ net }: Run, us: number, then: () => void): void {
  scheduleAt(net.scheduler, net.scheduler.nowUs + us, then)
}

function elect(run: Run, shard: Shard): void {
  if (shard.leader !== undefined) return
  const up = shard.nodes.filter(({ process }) => process.isAlive && !process.isGone)
  if (up.length > 0) changeLeader(shard, pick(run.random, up))
}

function killComponent(run: Run): void {
  const components = alive(run)
  if (components.length === 0) return
  const one = pick(run.random, components)
  const withMachine = chance(run.random, 0.2)
  count(run.counts, withMachine ? 'machine gone' : one.role === 'bridge' ? 'bridge killed' : 'router killed')
  kill(one.process, withMachine)
  after(run, betweenDecades(run.random, 5_000, 2 * S), () => restart(run, one))
}

function restart(run: Run, component: Component): void {
  const { process, role } = component
  const { random, platform, net } = run
  if (process.isAlive && !process.isGone) return
  bury(process)
  component.unfollow()
  component.inbounds.clear()
  count(run.counts, 'restart')
  if (!net.isHealed && role !== 'edge' && platform.knobs.foreignP > 0 && chance(random, 0.3)) {
    component.isForeign = !component.isForeign
    count(run.counts, component.isForeign ? 'becomes foreign' : 'becomes ours')
  }
  if (role !== 'edge' && chance(random, 0.3)) {
    count(run.counts, 'new address')
    net.listeners.delete(keyOf(component.address))
    component.address = { host: component.id, port: component.address.port + 1 }
    start(component)
    spreadAddress(platform, component.id)
  } else start(component)
}

function drainComponent(run: Run): void {
  const components = alive(run).filter(({ forwarder }) => forwarder !== undefined && !forwarder.isDraining)
  if (components.length === 0) return
  const one = pick(run.random, components)
  const { forwarder, process } = one
  if (forwarder === undefined) return
  count(run.counts, one.role === 'bridge' ? 'bridge drained' : 'router drained')
  one.unfollow()
  process.isLeaving = true
  whenDrained(run, forwarder, () => {
    closePool(forwarder.pool)
    // Its last bytes leave before the process ends.
    after(run, 50_000, () => {
      if (one.process !== process || !process.isAlive) return
      kill(process, false)
      restart(run, one)
    })
  })
}

function killNode(run: Run): void {
  const node = pick(run.random, nodesOf(run))
  const { process, shard } = node
  if (!process.isAlive || process.isGone) return
  const withMachine = chance(run.random, 0.2)
  count(run.counts, withMachine ? 'machine gone' : 'node killed')
  if (shard.leader === node) changeLeader(shard, undefined)
  kill(process, withMachine)
  after(run, betweenDecades(run.random, 5_000, 2 * S), () => mend(run, node))
}

function mend(run: Run, node: Node): void {
  const { process, shard } = node
  if (!process.isAlive || process.isGone) {
    bury(process)
    startNode(run.net, node)
  }
  elect(run, shard)
}

/** Ends all faults; what is stalled continues in its time. */
function heal(run: Run): void {
  const { platform, net } = run
  net.isHealed = true
  platform.hidden.clear()
  for (const component of platform.components) {
    if (!component.process.isAlive || component.process.isGone) restart(run, component)
  }
  for (const node of nodesOf(run)) mend(run, node)
  healNet(net, [
    ...[...platform.components, ...nodesOf(run)].map(({ process }) => process),
    ...run.crowd.connections.map(({ end }) => end.process),
  ])
  spreadNews(platform)
  // Nodes that died on their own are not started by a fault.
  after(run, S, () => {
    for (const node of nodesOf(run)) mend(run, node)
  })
}

/** Asks each edge for each segment: everything must work again. */
function probe(run: Run): Connection[] {
  const { crowd, law, platform, net } = run
  const probes: Connection[] = []
  for (const edge of crowd.edges()) {
    const process = createProcess(net, 'probe')
    const connection = dial(crowd, process, edge, 'plain', undefined)
    probes.push(connection)
    for (const segment of platform.segments.keys()) {
      for (const isWrite of [false, true]) {
        const command = isWrite ? 'SETROOMAVL' : 'PROPEXIST'
        request(connection, newOp(law, { segment, command, isWrite, hasKey: false, isLong: false }), isWrite)
      }
    }
  }
  return probes
}

/** An existing component does not tell who it is: a wrong address that leads to one goes unnoticed. */
function mayBeMisled({ platform }: Run, { answer }: Op): boolean {
  return answer === '404' && platform.knobs.foreignP > 0 && platform.knobs.resolverFaultP > 0
}

/** Nothing is in flight: every table is empty. */
function judgeIdle({ id, forwarder, inbounds }: Component): void {
  if (forwarder === undefined) return
  const leaks = {
    inFlight: forwarder.inFlight,
    held: forwarder.held.size,
    deadlines: Number(forwarder.usual.first !== undefined) + Number(forwarder.long.first !== undefined),
    ofClients: sum([...inbounds].map(({ inFlight }) => inFlight)),
    lanes: sum([...inbounds].map(({ lanes }) => lanes.size)),
    ofHops: sum([...forwarder.pool.hops.values()].map(({ inFlight }) => inFlight)),
    ofLinks: sum([...forwarder.pool.hops.values()].flatMap(({ links }) => links.map((link) => link.inFlight.size))),
    dirty: forwarder.dirty.size,
  }
  for (const [name, left] of Object.entries(leaks)) {
    if (left !== 0) throw new Violation(`${id}: ${left} left in ${name} when nothing is in flight`)
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

function end(run: Run, component: Component): void {
  const { forwarder } = component
  if (forwarder === undefined) return
  component.unfollow()
  component.process.isLeaving = true
  whenDrained(run, forwarder, () => closePool(forwarder.pool))
}

const LOOK_US = 20_000

/** Drains a forwarder, and lets promises settle meanwhile. */
function whenDrained(run: Run, forwarder: Forwarder, then: () => void): void {
  let isDone = false
  drain(forwarder, 1_000).then(() => {
    isDone = true
    then()
  })
  const look = () => {
    run.net.hasMicrotasks = true
    if (!isDone) after(run, LOOK_US, look)
  }
  look()
}

/** A stopped component keeps no connection and no timer of its own. */
function judgeEnd({ id, forwarder, process, role }: Component): void {
  if (forwarder === undefined) return
  // Bytes for a peer that is gone are never taken; the end of the process ends that connection.
  const open = [...process.ends].filter((one) => one.peer?.isClosed === false)
  if (open.length > 0) throw new Violation(`${id} stopped with ${open.length} open connections`)
  // A bridge's discovery polls on.
  if (process.timers > 0) throw new Violation(`${id} (${role}) stopped with ${process.timers} timers`)
}
