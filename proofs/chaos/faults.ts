/**
 * The faults of a chaos run: one row each, drawn by weight; each repairs its own damage. Three lanes run concurrently:
 * processes and network; members and leadership; services and the small disk.
 *
 * Mostly no more nodes are affected at once than a shard tolerates. Occasionally more are, briefly: then the shard
 * stops, and must not lose anything.
 */

import { appendFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EXIT } from '@vacancy/shared'
import { hang, recover } from '@vacancy/testkit/hanging-disk'
import { between, betweenDecades, chance, pick, type Random, shuffle, streamOf } from '@vacancy/testkit/random'
import { OPEN } from '@vacancy/testkit/relay'
import {
  ask,
  emptyDisk,
  type Fleet,
  type FleetNode,
  fillDisk,
  hangFile,
  killNode,
  nodeOf,
  pauseNode,
  resumeNode,
  runningNodes,
  startNode,
  stopNode,
  wipeNode,
} from './fleet.ts'

export type Tally = Map<string, number>

export type Chaos = {
  readonly fleet: Fleet
  /** Founding nodes; the others join and leave. */
  readonly founders: readonly string[]
  readonly tally: Tally
  /** No further faults; running ones end soon. */
  readonly over: AbortSignal
  /** Large writes outside the histories, until the signal aborts. */
  readonly flood: (over: AbortSignal) => Promise<void>
  /** Creates properties until memory is full, keeps it full until the signal aborts, then deletes them. */
  readonly fillMemory: (over: AbortSignal) => Promise<void>
  readonly wipes: { areSafe: boolean }
  /** Longest stall of a process. */
  readonly stallMsMax: number
}

type Lane = Chaos & { readonly random: Random }
type Fault = {
  readonly name: string
  readonly weight: number
  /** @returns false when it is not possible now */
  readonly run: (lane: Lane) => Promise<boolean>
}

/** Runs all lanes until the end. Then everything is repaired, except that stopped processes stay stopped. */
export async function runFaults(chaos: Chaos, seed: number): Promise<void> {
  await Promise.all([
    runLane({ ...chaos, random: streamOf(seed, 'processes and network') }, HARD, 100, 1_500),
    runLane({ ...chaos, random: streamOf(seed, 'members') }, MEMBERS, 300, 3_000),
    runLane({ ...chaos, random: streamOf(seed, 'services') }, SERVICES, 1_000, 8_000),
  ])
}

async function runLane(lane: Lane, faults: readonly Fault[], leastMs: number, mostMs: number): Promise<void> {
  const { random, over } = lane
  const drawn = faults.flatMap((each) => Array.from({ length: each.weight }, () => each))
  while (!over.aborted) {
    await rest(lane, between(random, leastMs, mostMs))
    if (over.aborted) return
    const { name, run } = pick(random, drawn)
    noteFault(lane, `begins: ${name}`)
    if (await run(lane)) count(lane, name)
  }
}

function count(chaos: Chaos, name: string): void {
  chaos.tally.set(name, (chaos.tally.get(name) ?? 0) + 1)
  noteFault(chaos, name)
}

/** A line in the format of node logs, merged with them. */
function noteFault({ fleet }: Pick<Chaos, 'fleet'>, msg: string, more: object = {}): void {
  const { leader, term } = fleet.view
  const row = { level: 'info', time: new Date().toISOString(), id: 'faults', leader, term, ...more, msg }
  appendFileSync(join(fleet.logs, 'faults.log'), `${JSON.stringify(row)}\n`)
}

/** Ends early at the end of the run. */
async function rest({ over }: Chaos, milliseconds: number): Promise<void> {
  await wait(milliseconds, undefined, { signal: over }).catch(() => undefined)
}

async function restUntil(chaos: Chaos, milliseconds: number, holds: () => boolean): Promise<boolean> {
  for (const end = performance.now() + milliseconds; performance.now() < end && !chaos.over.aborted; ) {
    if (holds()) return true
    await rest(chaos, 100)
  }
  return holds()
}

// Processes and network

/** A running node without a fault, often the leader; undefined when more nodes would be affected than tolerated. */
function victimOf({ fleet, random }: Lane): FleetNode | undefined {
  const { voters, leader } = fleet.view
  const free = runningNodes(fleet).filter(({ isBusy, isEnding }) => !isBusy && !isEnding)
  if (free.length === 0 || voters.length === 0) return undefined
  const struck = voters.filter((name) => !free.some((node) => node.name === name)).length
  const survives = struck + 1 <= (voters.length - 1) >>> 1
  if (!survives && !chance(random, 0.1)) return undefined
  const leads = free.find(({ name }) => name === leader)
  return leads && chance(random, 0.6) ? leads : pick(random, free)
}

/** Whether the shard keeps a majority without this node. */
function canSpare({ fleet }: Lane, node: FleetNode): boolean {
  const { voters } = fleet.view
  const struck = voters.filter(
    (name) => name !== node.name && (nodeOf(fleet, name).isBusy || !nodeOf(fleet, name).process),
  )
  return struck.length + 1 <= (voters.length - 1) >>> 1
}

function fault(name: string, weight: number, run: Fault['run']): Fault {
  return { name, weight, run }
}

/** A fault at one node, which is reserved meanwhile. */
function atNode(name: string, weight: number, run: (lane: Lane, node: FleetNode) => Promise<void>): Fault {
  return fault(name, weight, async (lane) => {
    const node = victimOf(lane)
    if (!node) return false
    await during(lane, [node], () => run(lane, node))
    return true
  })
}

/** A node starts slowly on a busy machine; until it serves again it counts as affected. */
const SERVES_MS = 20_000

async function startAgain(lane: Lane, node: FleetNode): Promise<void> {
  await startNode(lane.fleet, node)
  await restUntil(lane, SERVES_MS, () => lane.fleet.view.serving.has(node.name))
}

async function during(lane: Lane, nodes: readonly FleetNode[], run: () => Promise<void>): Promise<void> {
  noteFault(lane, 'strikes', { nodes: nodes.map(({ name }) => name) })
  for (const node of nodes) node.isBusy = true
  try {
    await run()
  } finally {
    for (const node of nodes) node.isBusy = false
  }
}

const others = ({ fleet }: Chaos, node: FleetNode) => fleet.network.nodes.filter((name) => name !== node.name)

/** Clocks may be off by days, which is why a majority decides the shard time. */
const CLOCK_STEP_MS_MAX = 3 * 86_400_000

const HELD = { holdsForward: true, holdsBackward: true } as const

const HARD: readonly Fault[] = [
  atNode('kill -9', 8, async (lane, node) => {
    const { fleet, random } = lane
    if (node.name === fleet.view.leader) count(lane, 'of these, of the leader')
    await killNode(fleet, node)
    await rest(lane, betweenDecades(random, 1, 5_000))
    if (chance(random, 0.2)) {
      await startNode(fleet, node)
      await rest(lane, betweenDecades(random, 50, 1_500))
      await killNode(fleet, node)
      count(lane, 'kill -9 while starting')
    }
    await startAgain(lane, node)
  }),
  fault('kill -9 of all nodes', 1, async (lane) => {
    const { fleet, random } = lane
    const nodes = runningNodes(fleet).filter(({ isBusy, isEnding }) => !isBusy && !isEnding)
    await during(lane, nodes, async () => {
      await Promise.all(nodes.map((node) => killNode(fleet, node)))
      for (const node of shuffle(random, [...nodes])) {
        await rest(lane, betweenDecades(random, 1, 800))
        await startNode(fleet, node)
      }
      for (const node of nodes) await startAgain(lane, node)
    })
    return nodes.length > 0
  }),
  atNode('stop and continue', 6, async (lane, node) => {
    pauseNode(node)
    await rest(lane, betweenDecades(lane.random, 1, lane.stallMsMax))
    resumeNode(node)
  }),
  atNode('disk hangs', 5, async (lane, node) => {
    const { fleet, random } = lane
    const led = node.name === fleet.view.leader
    hang(hangFile(fleet, node))
    await rest(lane, betweenDecades(random, 100, 12_000))
    if (led && fleet.view.leader !== node.name) count(lane, 'another voter led while the disk of the leader hung')
    if (chance(random, 0.2)) {
      // What it has not stored is in no promise.
      await killNode(fleet, node)
      count(lane, 'kill -9 while the disk hangs')
    }
    recover(hangFile(fleet, node))
    if (!node.process) await startAgain(lane, node)
  }),
  atNode('descriptors used up by idle connections', 2, async (lane, { process }) => {
    if (!process) return
    const idle = Array.from({ length: 600 }, () => connect(process.tcpPort, process.host).on('error', () => undefined))
    await rest(lane, betweenDecades(lane.random, 500, 6_000))
    for (const socket of idle) socket.destroy()
  }),
  atNode('a second process on the directory', 2, async ({ fleet }, node) => {
    if (!node.process) return
    // Its own ports, as in another container.
    const config = { tcp_port: 0, api_port: 0, quic_port: 0 }
    const second = fleet.shard.start(node.name, { config })
    const { code } = await second.ended
    if (code !== EXIT.conflict)
      fleet.violations.push(`a second ${node.name} ended with code ${code}\n${second.output()}`)
  }),
  atNode('graceful shutdown', 4, async (lane, node) => {
    await stopNode(lane.fleet, node)
    await rest(lane, betweenDecades(lane.random, 1, 4_000))
    await startAgain(lane, node)
  }),
  atNode('clock stepped', 3, async (lane, node) => {
    const { fleet, random } = lane
    const sign = chance(random, 0.5) ? 1 : -1
    await stopNode(fleet, node)
    node.clockOffsetMs = node.usualOffsetMs + sign * betweenDecades(random, 30_000, CLOCK_STEP_MS_MAX)
    await startAgain(lane, node)
    await rest(lane, betweenDecades(random, 1_000, 10_000))
    await stopNode(fleet, node)
    node.clockOffsetMs = node.usualOffsetMs
    await startAgain(lane, node)
  }),
  atNode('node cut off from the others', 4, async (lane, node) => {
    const { network } = lane.fleet
    const rest_ = others(lane, node)
    network.between([node.name], rest_, HELD)
    network.between(rest_, [node.name], HELD)
    // Its clients may still reach it, or not.
    const cutsClients = chance(lane.random, 0.5)
    if (cutsClients) network.clientLink(node.name).set({ ...OPEN, ...HELD })
    await rest(lane, betweenDecades(lane.random, 100, 8_000))
    network.between([node.name], rest_, OPEN)
    network.between(rest_, [node.name], OPEN)
    if (cutsClients) network.clientLink(node.name).set(OPEN)
  }),
  atNode('one way cut', 4, async (lane, node) => {
    const { network } = lane.fleet
    const some = others(lane, node).filter(() => chance(lane.random, 0.7))
    // It sends nothing or receives nothing: frames travel in both directions of connections dialled by either side.
    const isMute = chance(lane.random, 0.5)
    const [out, back] = isMute
      ? [{ holdsForward: true }, { holdsBackward: true }]
      : [{ holdsBackward: true }, { holdsForward: true }]
    network.between([node.name], some, out)
    network.between(some, [node.name], back)
    await rest(lane, betweenDecades(lane.random, 100, 6_000))
    network.between([node.name], some, OPEN)
    network.between(some, [node.name], OPEN)
  }),
  fault('split in two', 2, async (lane) => {
    const { fleet, random } = lane
    const nodes = shuffle(random, [...fleet.network.nodes])
    const cut = between(random, 1, nodes.length - 1)
    const [left, right] = [nodes.slice(0, cut), nodes.slice(cut)]
    if (runningNodes(fleet).some(({ isBusy }) => isBusy)) return false
    await during(lane, [...fleet.nodes.values()], async () => {
      fleet.network.between(left, right, HELD)
      fleet.network.between(right, left, HELD)
      await rest(lane, betweenDecades(random, 200, 6_000))
      fleet.network.between(left, right, OPEN)
      fleet.network.between(right, left, OPEN)
    })
    return true
  }),
  atNode('slow links', 3, async (lane, node) => {
    const { network } = lane.fleet
    const rest_ = others(lane, node)
    const slow = {
      delayMs: betweenDecades(lane.random, 2, 300),
      bytesPerSecond: chance(lane.random, 0.5) ? betweenDecades(lane.random, 20_000, 2_000_000) : 0,
    }
    network.between([node.name], rest_, slow)
    network.between(rest_, [node.name], slow)
    await rest(lane, betweenDecades(lane.random, 200, 6_000))
    network.between([node.name], rest_, OPEN)
    network.between(rest_, [node.name], OPEN)
  }),
  fault('connections reset', 3, async ({ fleet, random }) => {
    const node = pick(random, fleet.network.nodes)
    for (const other of fleet.network.nodes) {
      if (other === node) continue
      fleet.network.link(node, other).reset()
      fleet.network.link(other, node).reset()
    }
    return true
  }),
  fault('clients cut off or reset', 3, async (lane) => {
    const { fleet, random } = lane
    const leads = chance(random, 0.6) && fleet.view.leader !== ''
    const link = fleet.network.clientLink(leads ? fleet.view.leader : pick(random, fleet.network.nodes))
    if (chance(random, 0.4)) link.reset()
    else {
      // Requests arrive but responses do not, or neither.
      link.set({ ...OPEN, holdsBackward: true, holdsForward: chance(random, 0.5) })
      await rest(lane, betweenDecades(random, 50, 3_000))
      link.set(OPEN)
    }
    return true
  }),
]

// Members and leadership

const EFFECT_MS = 20_000
/** A wiped voter is admitted, receives all data, and is promoted. */
const REPLACED_MS = 60_000

async function change({ fleet, random }: Lane, path: string): Promise<boolean> {
  // Any node forwards it.
  const node = pick(random, runningNodes(fleet))
  if (!node) return false
  const answer = await ask(node, path, 'POST')
  noteFault({ fleet }, `POST ${path} to ${node.name}`, { ...answer })
  return answer?.status === 202
}

const isVoter = ({ fleet }: Chaos, name: string) => fleet.view.voters.includes(name)
const isLearner = ({ fleet }: Chaos, name: string) => fleet.view.learners.includes(name)

/** Waits for the shard to report the change; counts only accepted changes. */
async function changed(lane: Lane, path: string, name: string, holds: () => boolean): Promise<boolean> {
  if (!(await change(lane, path))) {
    count(lane, 'changes refused')
    return false
  }
  const hasEffect = await restUntil(lane, EFFECT_MS, holds)
  count(lane, hasEffect ? name : `${name}, without effect in time`)
  return hasEffect
}

const MEMBERS: readonly Fault[] = [
  fault('leadership transfer requested', 6, async (lane) => {
    const { leader, voters } = lane.fleet.view
    const target = pick(
      lane.random,
      voters.filter((name) => name !== leader),
    )
    if (target === undefined) return false
    if (!(await change(lane, `/admin/transfer-leader/${target}`))) return false
    if (await restUntil(lane, 3_000, () => lane.fleet.view.leader === target)) count(lane, 'leadership transferred')
    return true
  }),
  fault('step of a node that joins and leaves', 5, async (lane) => {
    const { fleet, founders, random } = lane
    const spare = [...fleet.nodes.values()].find(({ name }) => !founders.includes(name))
    if (!spare || spare.isBusy) return false
    const { name } = spare
    if (!spare.process) {
      await startNode(fleet, spare)
      if (await restUntil(lane, EFFECT_MS, () => isLearner(lane, name))) count(lane, 'learner added')
    } else if (isVoter(lane, name)) {
      await changed(lane, `/admin/remove-member/${name}`, 'voter demoted', () => isLearner(lane, name))
    } else if (isLearner(lane, name)) {
      if (chance(random, 0.6))
        await changed(lane, `/admin/add-member/${name}`, 'learner promoted', () => isVoter(lane, name))
      else await removeNode(lane, spare)
    } else return false
    return true
  }),
  fault('step of a founder', 3, async (lane) => {
    const { fleet, founders, random } = lane
    const demoted = founders.find((name) => isLearner(lane, name))
    if (demoted) {
      return await changed(lane, `/admin/add-member/${demoted}`, 'learner promoted', () => isVoter(lane, demoted))
    }
    if (fleet.view.voters.length < founders.length) return false
    const name = pick(random, founders)
    return await changed(lane, `/admin/remove-member/${name}`, 'voter demoted', () => isLearner(lane, name))
  }),
  fault('wiped voter returns', 2, wipeVoter),
]

async function removeNode(lane: Lane, node: FleetNode): Promise<void> {
  const { name } = node
  const isGone = () => !isLearner(lane, name) && !isVoter(lane, name)
  if (!(await changed(lane, `/admin/remove-member/${name}`, 'learner removed', isGone))) return
  if (node.isBusy) return
  await during(lane, [node], async () => {
    await killNode(lane.fleet, node)
    wipeNode(lane.fleet, node)
  })
}

/** Only one at a time, and only while all others hold all data: a second one could destroy the last copy. */
async function wipeVoter(lane: Lane): Promise<boolean> {
  const { fleet, founders, random, over, wipes } = lane
  const areWhole =
    wipes.areSafe &&
    founders.every((name) => isVoter(lane, name) && nodeOf(fleet, name).process && !nodeOf(fleet, name).isBusy)
  if (!areWhole || fleet.view.isChanging) return false
  const node = nodeOf(fleet, pick(random, founders))
  node.isBusy = true
  await killNode(fleet, node)
  wipeNode(fleet, node)
  await rest(lane, betweenDecades(random, 1, 3_000))
  await startNode(fleet, node)
  const isOut = await restUntil(lane, REPLACED_MS, () => !isVoter(lane, node.name))
  const isBack = isOut && (await restUntil(lane, REPLACED_MS, () => isVoter(lane, node.name)))
  node.isBusy = false
  if (isBack || over.aborted) return true
  // No other node may be wiped until this one is known to be a voter again.
  wipes.areSafe = false
  count(lane, isOut ? 'wiped voter not promoted in time' : 'wiped voter not replaced in time')
  return true
}

// Services and the disk

const SERVICES: readonly Fault[] = [
  ...(['registry', 'resolver'] as const).map((service) =>
    fault(`${service} killed and started`, 2, async (lane) => {
      const { services, shard } = lane.fleet
      await services[service].kill()
      await rest(lane, betweenDecades(lane.random, 10, 6_000))
      services[service] = service === 'registry' ? shard.startRegistry() : shard.startResolver()
      return true
    }),
  ),
  fault('memory full', 3, async (lane) => {
    const over = AbortSignal.any([lane.over, AbortSignal.timeout(MEMORY_MS)])
    let wasFull = false
    const looking = (async () => {
      while (!over.aborted) {
        const leader = runningNodes(lane.fleet).find(({ name }) => name === lane.fleet.view.leader)
        const ready = leader && (await ask(leader, '/ready'))
        wasFull ||= ready?.body.includes('memory_full') ?? false
        await rest(lane, 250)
      }
    })()
    await Promise.all([lane.fillMemory(over), looking])
    return wasFull
  }),
  fault('disk full', 5, async (lane) => {
    const { fleet, random } = lane
    if (fleet.smallDisk === undefined) return false
    const node = nodeOf(fleet, fleet.smallDisk)
    node.mayRefuse = true
    fillDisk(fleet)
    // Its log has free space, so entries are large meanwhile; and a start creates a new log file.
    const flooded = lane.flood(AbortSignal.any([lane.over, AbortSignal.timeout(FLOOD_MS)]))
    await rest(lane, betweenDecades(random, 500, FLOOD_MS))
    if (chance(random, 0.5) && !node.isBusy && node.process && canSpare(lane, node)) {
      await during(lane, [node], async () => {
        await killNode(fleet, node)
        await startNode(fleet, node)
        count(lane, 'started on a full disk')
        await rest(lane, betweenDecades(random, 200, 5_000))
      })
    }
    emptyDisk(fleet)
    count(lane, 'disk full')
    await flooded
    // Operations that started on the full disk may still fail.
    await rest(lane, SETTLE_MS)
    node.mayRefuse = false
    if (!node.process && !node.isBusy) {
      count(lane, 'ended by a full disk')
      await during(lane, [node], () => startAgain(lane, node))
    }
    return true
  }),
]

const FLOOD_MS = 12_000
const MEMORY_MS = 40_000
const SETTLE_MS = 1_000
