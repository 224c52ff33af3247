/**
 * Clients of a platform that count: each has ten requests in flight, raises counters by one and reads them. A counter is
 * the availability of a package of its own, from 0 up, so that its last value shows how many increments were executed.
 */

import {
  connect,
  type VacancyClient,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from '@vacancy/client'
import { formatDay } from '@vacancy/shared'

const CLIENTS = 8
const IN_FLIGHT = 10
/** Below 255, the largest availability. */
const INCREMENTS_MAX = 200
const ROOM_TYPE = 'counter'
/** Of a call without a key, as an application has it. */
const DEADLINE_MS = 2_000
/** A call with a key is repeated until its outcome is known; no fault lasts as long. */
const KEYED_DEADLINE_MS = 120_000
/** Every this many requests of a client is a read. */
const READ_EVERY = 4
/** A refused request is not sent again at once. */
const REFUSED_PAUSE_MS = 20

type Counter = {
  readonly segment: string
  readonly propertyId: string
  readonly date: string
  readonly isKeyed: boolean
  /** Increments that were sent, acknowledged, and those with an unknown outcome. */
  sent: number
  acknowledged: number
  unknown: number
}

type CountingClient = {
  readonly name: string
  readonly isKeyed: boolean
  readonly segment: string
  readonly client: VacancyClient
  readonly counters: Counter[]
  /** Counters that were begun, so that no name is used twice. */
  opened: number
  opening: Promise<Counter> | undefined
}

export type Crowd = {
  readonly clients: readonly CountingClient[]
  readonly violations: string[]
  readonly sums: Sums
  /** First day of the counters, day number. */
  readonly firstDay: number
  isOver: boolean
  lastAcknowledgedMs: number
  longestGapMs: number
}

/** @param routers of the edges, as host:port */
export async function openCrowd(
  routers: readonly string[],
  segments: readonly string[],
  firstDay: number,
): Promise<Crowd> {
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, n): Promise<CountingClient> => {
      const isKeyed = n % 2 === 0
      const [first = '', ...others] = n % 4 < 2 ? routers : routers.toReversed()
      const deadlineMs = isKeyed ? KEYED_DEADLINE_MS : DEADLINE_MS
      return {
        name: `client-${n}`,
        isKeyed,
        segment: segments[n % segments.length] as string,
        client: await connect({
          routers: [first, ...others],
          requestKeys: isKeyed,
          deadlineMs,
          maxInFlight: IN_FLIGHT,
        }),
        counters: [],
        opened: 0,
        opening: undefined,
      }
    }),
  )
  const sums = { requests: 0, reads: 0, failedReads: 0, refused: 0, acknowledged: 0, unknown: 0, counters: 0 }
  const gaps = { lastAcknowledgedMs: performance.now(), longestGapMs: 0 }
  return { clients, violations: [], sums, firstDay, isOver: false, ...gaps }
}

/** Sends requests until the crowd is over. Resolves when every request has its outcome. */
export async function runCrowd(crowd: Crowd): Promise<void> {
  await Promise.all(
    crowd.clients.flatMap((each) => Array.from({ length: IN_FLIGHT }, (_, lane) => runLane(crowd, each, lane))),
  )
}

export async function closeCrowd({ clients }: Crowd): Promise<void> {
  await Promise.all(clients.map(({ client }) => client.close()))
}

async function runLane(crowd: Crowd, each: CountingClient, lane: number): Promise<void> {
  for (let turn = lane; !crowd.isOver; turn++) {
    const counter = await currentCounter(crowd, each)
    if (counter === undefined) continue
    crowd.sums.requests++
    if (turn % READ_EVERY === 0) await read(crowd, each, counter)
    else await increment(crowd, each, counter)
  }
}

/** The counter in use, or a new one. Undefined when the crowd is over or the new one could not be made. */
async function currentCounter(crowd: Crowd, each: CountingClient): Promise<Counter | undefined> {
  const last = each.counters.at(-1)
  if (last !== undefined && last.sent < INCREMENTS_MAX) return last
  each.opening ??= openCounter(crowd, each).finally(() => {
    each.opening = undefined
  })
  try {
    return await each.opening
  } catch (error) {
    // The place is not used again: the write may be executed later.
    if (!isRetryable(error) && !(error instanceof VacancyUnknownOutcomeError)) throw error
    await pause()
    return undefined
  }
}

async function openCounter(crowd: Crowd, each: CountingClient): Promise<Counter> {
  const { segment, client, isKeyed, counters } = each
  const propertyId = `${each.name}-${++each.opened}`
  const attributes = { area: 'chaos', propertyType: 'hotel', category: 'standard', stars: 3, amenities: [] }
  await client.setProperty({ segment, propertyId, ...attributes, latitude: 0, longitude: 0 }, { segment })
  const date = formatDay(crowd.firstDay + 1)
  const fields = { propertyId, roomType: ROOM_TYPE, date, availability: 0, finalPrice: 100, rateFeatures: [] }
  await client.setPackage(fields, { segment })
  const counter = { segment, propertyId, date, isKeyed, sent: 0, acknowledged: 0, unknown: 0 }
  counters.push(counter)
  crowd.sums.counters++
  return counter
}

async function increment(crowd: Crowd, each: CountingClient, counter: Counter): Promise<void> {
  const { propertyId, date, segment } = counter
  counter.sent++
  try {
    await each.client.increaseAvailability({ propertyId, roomType: ROOM_TYPE, date, amount: 1 }, { segment })
    counter.acknowledged++
    crowd.sums.acknowledged++
    const nowMs = performance.now()
    crowd.longestGapMs = Math.max(crowd.longestGapMs, nowMs - crowd.lastAcknowledgedMs)
    crowd.lastAcknowledgedMs = nowMs
  } catch (error) {
    if (error instanceof VacancyUnknownOutcomeError) {
      counter.unknown++
      crowd.sums.unknown++
      if (each.isKeyed) crowd.violations.push(`${each.name}: no outcome of a write with a key: ${error.message}`)
    } else if (isRetryable(error)) {
      crowd.sums.refused++
      await pause()
    } else crowd.violations.push(`${each.name}: an increment of ${propertyId} ${date} ended with ${String(error)}`)
  }
}

async function read(crowd: Crowd, each: CountingClient, counter: Counter): Promise<void> {
  const { propertyId, date, segment } = counter
  crowd.sums.reads++
  try {
    const { availability } = await each.client.getPackage({ propertyId, roomType: ROOM_TYPE, date }, { segment })
    if (availability > counter.sent)
      crowd.violations.push(`${each.name}: ${propertyId} ${date} is ${availability} after ${counter.sent} increments`)
  } catch (error) {
    // A follower that is behind has no such package yet.
    const isBehind = error instanceof VacancyRequestError && error.code === 'NOT_FOUND'
    if (isBehind) return
    if (!isRetryable(error)) crowd.violations.push(`${each.name}: a read of ${propertyId} ended with ${String(error)}`)
    crowd.sums.failedReads++
    await pause()
  }
}

/** A read never has an unknown outcome; a write with this error was not executed. */
function isRetryable(error: unknown): boolean {
  return error instanceof VacancyRetryError || (error as { code?: string }).code === '404'
}

const pause = () => new Promise((resolve) => setTimeout(resolve, REFUSED_PAUSE_MS))

export type Sums = {
  requests: number
  reads: number
  failedReads: number
  refused: number
  counters: number
  acknowledged: number
  unknown: number
}

/**
 * Compares each counter with what its client knows.
 *
 * @param leaderOf a client of the leader that has a segment
 * @returns violations, and how many increments without an outcome were executed
 */
export async function judgeCounters(
  { clients }: Crowd,
  leaderOf: (segment: string) => VacancyClient,
): Promise<{ readonly violations: string[]; readonly executedUnknown: number }> {
  const violations: string[] = []
  let executedUnknown = 0
  for (const counter of clients.flatMap(({ counters }) => counters)) {
    const { segment, propertyId, date, acknowledged: least, unknown, isKeyed } = counter
    const leader = leaderOf(segment)
    const { availability } = await leader.getPackage({ propertyId, roomType: ROOM_TYPE, date }, { linearizable: true })
    const most = least + (isKeyed ? 0 : unknown)
    executedUnknown += Math.max(0, availability - least)
    if (availability < least) violations.push(`lost: ${propertyId} ${date} is ${availability}, ${least} acknowledged`)
    if (availability > most)
      violations.push(`executed twice: ${propertyId} ${date} is ${availability}, ${least} + ${unknown} unknown`)
  }
  return { violations, executedUnknown }
}
