/**
 * The clients of a chaos run: eight (client.ts), and one of the run itself, which creates the initial data, fills logs, and
 * reads everything at the end.
 */

import { setTimeout as wait } from 'node:timers/promises'
import { connect, VacancyCallError, type VacancyClient } from '@vacancy/client'
import { dateIn } from '@vacancy/testkit/node'
import { PORTS } from '@vacancy/testkit/shard'
import { type ClientPlan, connectClient, runClient } from './client.ts'
import type { Fleet } from './fleet.ts'
import { createBoard, machineMs, perform, type Recorder } from './recorder.ts'
import {
  CONSERVED_ROOMS,
  type Ground,
  isConserved,
  packagesOf,
  placeOf,
  type Records,
  type Restore,
} from './records.ts'

const CLIENTS: readonly ClientPlan['kind'][] = [
  'library',
  'library',
  'library',
  'own',
  'own',
  'own',
  'keyless',
  'keyless',
]
/** Concurrent operations of one client. */
const LANES = 2
const THINK_MS_MAX = 40
const PROPERTIES = 40
const NIGHTS_A_MINUTE = 30
const NIGHTS_MAX = 360
/** Interval at which the hot packages change. */
const EPOCH_MS = 4_000
const CONNECTED_MS = 60_000
const END_MS = 75_000

export type Crowd = {
  /** When all clients had started. */
  readonly fromMs: number
  readonly flood: (over: AbortSignal) => Promise<void>
  readonly fillMemory: (over: AbortSignal) => Promise<void>
  /** The number of the next call or return of a client. */
  readonly moment: () => number
  /** The data are those of a backup that was made between these moments. @returns its record, to be completed */
  readonly restored: (from: number, to: number) => Restore
  /** Waits until the clients have ended, which they do once the outcomes of their requests are known. */
  readonly end: () => Promise<void>
  /** Reads the final state, which completes the histories. */
  readonly readAll: () => Promise<Records>
  /** Ends all remaining clients. */
  readonly close: () => void
}

/** The nodes as clients reach them, through links that can be cut. */
export function nodesOf({ network }: Fleet): { readonly host: string; readonly port: number }[] {
  return network.nodes.map((node) => ({ host: network.clientHost(node), port: PORTS.tcp }))
}

/** Creates the initial data and starts the clients. @param aheadMs how far the clocks of the shard are ahead */
export async function startCrowd(fleet: Fleet, seed: number, seconds: number, aheadMs: number): Promise<Crowd> {
  const { shard, network } = fleet
  const nights = Math.min(NIGHTS_MAX, NIGHTS_A_MINUTE * Math.max(1, Math.ceil(seconds / 60)))
  const dates = Array.from({ length: nights }, (_, i) => dateIn(2 + i, aheadMs))
  const ground: Ground = { properties: PROPERTIES, dates }
  const board = createBoard()
  const own = { board, client: CLIENTS.length }
  const nodes = nodesOf(fleet)
  const client = await connect({ nodes, deadlineMs: 20_000, connectDeadlineMs: CONNECTED_MS, reads: 'leader' })
  try {
    await layGround(client, ground, own)
  } catch (error) {
    void client.close()
    throw error
  }
  // Half of them also get the HTTP APIs, and query the leader there.
  const withApis = nodes.map((node, i) => ({
    ...node,
    api: `http://${shard.host(network.nodes[i])}:${PORTS.api}`,
  }))
  const clients = await Promise.all(
    CLIENTS.map((kind, at) => {
      const common = { seed, board, ground, lanes: LANES, thinkMsMax: THINK_MS_MAX }
      return connectClient({ ...common, client: at, kind, nodes: at % 2 === 0 ? withApis : nodes })
    }),
  )
  const ended = Promise.all(
    clients.map((each) =>
      runClient(each).catch((error: Error) => {
        fleet.violations.push(`client ${each.plan.client} failed: ${error.stack}`)
      }),
    ),
  )
  const epochs = setInterval(() => void board.epoch++, EPOCH_MS)
  return {
    fromMs: machineMs(),
    flood: (over) => flood(client, over),
    fillMemory: (over) => fillMemory(client, over),
    moment: () => board.moment++,
    restored(from, to) {
      const restore = { from, to, at: board.moment++, atMs: machineMs(), servesMs: Infinity }
      board.restores.push(restore)
      return restore
    },
    async end() {
      board.isOver = true
      const late = wait(END_MS, 'late', { ref: false })
      if ((await Promise.race([ended, late])) === 'late') throw new Error('timed out: the clients end')
    },
    async readAll() {
      const touched = board.operations.filter((each) => each.client < CLIENTS.length).map(({ key }) => key)
      const unread = await readPackages(client, ground, own, new Set(touched))
      if (unread > 0) fleet.violations.push(`${unread} packages could not be read after the last fault was repaired`)
      await client.close()
      return board
    },
    close() {
      clearInterval(epochs)
      board.isOver = true
      // Pending requests end by their deadline.
      for (const each of [client, ...clients.map((one) => one.client)]) void each.close()
    },
  }
}

/** Arbitrary attributes. */
const SOMEWHERE = {
  segment: 'alpine',
  area: 'valley',
  propertyType: 'hotel',
  category: 'standard',
  stars: 3,
  latitude: 47,
  longitude: 11,
  amenities: ['wifi'],
} as const

/** Properties, and the packages with conserved sums. */
export async function layGround(client: VacancyClient, ground: Ground, recorder: Recorder): Promise<void> {
  for (let i = 0; i < ground.properties; i++) {
    const { propertyId } = placeOf(ground, i)
    await client.setProperty({ ...SOMEWHERE, propertyId })
  }
  const keys = Array.from({ length: packagesOf(ground) }, (_, key) => key).filter(isConserved)
  await Promise.all(
    keys.map(async (key) => {
      const operation = { key, kind: 'set', amount: CONSERVED_ROOMS } as const
      const answer = await perform({ recorder, client, ground }, operation, 'library')
      if (answer.outcome !== 'done') throw new Error(`creating the initial data failed: ${answer.code}`)
    }),
  )
}

const FLOOD_LANES = 8
const FLOOD_WORDS = 48
const WORD_LENGTH = 60

const BALLAST_SEGMENT = 'chaos_ballast'
const BALLAST_LANES = 64

/**
 * Creates properties with lists of known amenities until the shard refuses them for lack of memory, continues until the
 * fault ends, then deletes their segment. Other clients must not be affected.
 */
async function fillMemory(client: VacancyClient, over: AbortSignal): Promise<void> {
  const amenities = Array.from({ length: 60 }, (_, i) => `ballast_${i}`)
  let count = 0
  const lane = async () => {
    while (!over.aborted) {
      const property = { ...SOMEWHERE, segment: BALLAST_SEGMENT, propertyId: `ballast_${count++}`, amenities }
      // Refused for lack of memory, or there is no leader.
      await client.setProperty(property, { deadlineMs: 2_000 }).catch(() => wait(50))
    }
  }
  await Promise.all(Array.from({ length: BALLAST_LANES }, lane))
  for (let tries = 0; tries < 50; tries++) {
    try {
      return await client.deleteSegment({ segment: BALLAST_SEGMENT }, { deadlineMs: 5_000 })
    } catch (error) {
      // An attempt with an unknown outcome succeeded.
      if (error instanceof VacancyCallError && error.code === 'NOT_FOUND') return
      await wait(200)
    }
  }
  throw new Error('the ballast could not be deleted')
}

/** Fills the logs of all nodes by writing the same large property repeatedly. */
async function flood(client: VacancyClient, over: AbortSignal): Promise<void> {
  const amenities = Array.from({ length: FLOOD_WORDS }, (_, i) => `${i}_`.padEnd(WORD_LENGTH, 'x'))
  const lane = async () => {
    while (!over.aborted) {
      const written = client.setProperty({ ...SOMEWHERE, propertyId: 'chaos_flood', amenities }, { deadlineMs: 2_000 })
      // Without a leader, writes fail.
      await written.catch(() => wait(100))
    }
  }
  await Promise.all(Array.from({ length: FLOOD_LANES }, lane))
}

const READ_LANES = 256

/** @returns packages that could not be read */
export async function readPackages(
  client: VacancyClient,
  ground: Ground,
  recorder: Recorder,
  keys: ReadonlySet<number>,
): Promise<number> {
  let unread = 0
  const left = keys.values()
  // Lanes share the remaining reads, since a client limits concurrent requests.
  const lane = async () => {
    for (const key of left) {
      const operation = { key, kind: 'read', amount: 0 } as const
      const options = { linearizable: true }
      const answer = await perform({ recorder, client, ground }, operation, 'linearizable', options)
      if (answer.outcome === 'unknown') unread++
    }
  }
  await Promise.all(Array.from({ length: READ_LANES }, lane))
  return unread
}
