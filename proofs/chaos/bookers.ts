/**
 * Bookers of a chaos run: they hold, book, confirm, release, replace and abandon stays while nodes fail, repeat
 * requests, and give up on some. At the end every stay must have a fate that its outcomes allow, nothing may be on
 * hold, and each night must have exactly the rooms that are not booked (docs/design/testing.md#oracles, S1 to S5).
 *
 * After a restore a stay has one of the fates that it may have had while the backup was made. A source of record goes on
 * sending a value that it knows from before the first booking: that changes nothing, and is refused once the data are of
 * another life.
 */

import { setTimeout as wait } from 'node:timers/promises'
import {
  connect,
  type NodeAddress,
  type StayLine,
  VacancyCallError,
  type VacancyClient,
  VacancyRequestError,
  VacancyUnknownOutcomeError,
} from '@vacancy/client'
import { LIMITS } from '@vacancy/shared'
import { dateIn } from '@vacancy/testkit/node'
import { between, betweenDecades, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { addOutcome, allowedFates, type Fate, type StayOutcome } from './stay-fates.ts'

const INNS = ['inn_0', 'inn_1', 'inn_2'] as const
const ROOM_TYPE = 'double'
/** Few nights and rooms, so that stays are refused as well. */
const NIGHTS = 6
const ROOMS = 30
const FIRST_NIGHT = 40
const LANES = 8
const THINK_MS_MAX = 300
const HOLD_SECONDS_MAX = 15
const DEADLINE_MS = 3_000
/** Each booker keeps about so many bookings, and cancels older ones. */
const BOOKINGS_KEPT = 3
/** Some are never cancelled, so that a backup has them for certain. */
const BOOKED_FOR_GOOD = 5
/** Longest hold, a leader change, and repeats of the client. */
const SETTLED_MS = 120_000
const READ_LANES = 32
const SOURCE_MS = 400

export type StayFigures = {
  readonly stays: number
  readonly booked: number
  readonly expired: number
  readonly released: number
  readonly staysUnknown: number
}

/** What stays may be, by id; others are unknown. */
export type Fates = ReadonlyMap<string, readonly Fate[]>

export type Bookers = {
  /** Stays that are booked for certain, and all that were asked for. */
  readonly stays: () => { readonly booked: ReadonlySet<string>; readonly asked: ReadonlySet<string> }
  /** Collects what stays may be in a backup that is made until the function that it returns is called. */
  readonly watch: () => () => Fates
  /** The data are those of a backup, and no node of before runs any more. */
  readonly restored: (fates: Fates) => void
  /** The greatest index of a booking that a booker was told. */
  readonly toldIndex: () => number
  /** One of those that they sell. */
  readonly night: { readonly propertyId: string; readonly roomType: string; readonly date: string }
  /** Starts no more stays, and waits for pending requests. */
  readonly end: () => Promise<void>
  /** Waits until nothing is on hold. @returns violations */
  readonly judge: () => Promise<{ readonly violations: readonly string[]; readonly figures: StayFigures }>
  readonly close: () => void
}

type Booker = {
  readonly random: Random
  readonly client: VacancyClient
  /** Another connection, for repeats. */
  readonly other: VacancyClient
  readonly lane: number
  readonly bookings: string[]
  bookedForGood: number
}

type Desk = {
  /** Changed by `setFates` alone. */
  readonly fates: Map<string, readonly Fate[]>
  /** All that stays were since a backup began; undefined without one. */
  seen: Map<string, Set<Fate>> | undefined
  /** Of the data: one more after each restore. */
  life: number
  readonly lines: Map<string, readonly StayLine[]>
  readonly violations: string[]
  unknown: number
  toldIndex: number
  /** Stays of which a request is on its way, with its kind. */
  readonly asking: Map<string, StayOutcome['kind']>
  /** The nights that are sold. */
  readonly dates: readonly string[]
  isOver: boolean
}

/** @param aheadMs how far the clocks of the shard are ahead */
export async function startBookers(nodes: readonly NodeAddress[], seed: number, aheadMs: number): Promise<Bookers> {
  const open = () => connect({ nodes, deadlineMs: DEADLINE_MS, connectDeadlineMs: 60_000, reads: 'leader' })
  const clients = [await open(), await open()] as const
  const [client] = clients
  const dates = Array.from({ length: NIGHTS }, (_, n) => dateIn(FIRST_NIGHT + n, aheadMs))
  const known = { fates: new Map(), seen: undefined, lines: new Map(), violations: [], asking: new Map() }
  const desk: Desk = { ...known, life: 1, unknown: 0, toldIndex: 0, dates, isOver: false }
  const openedAt = await openInns(client, dates)
  const lanes = Array.from({ length: LANES }, (_, lane) => {
    const random = streamOf(seed, `booker ${lane}`)
    const [own, other] = lane % 2 === 0 ? clients : [clients[1], clients[0]]
    return work(desk, { random, client: own, other, lane, bookings: [], bookedForGood: 0 })
  })
  lanes.push(sendValues(desk, client, streamOf(seed, 'source of record'), openedAt))
  return {
    stays() {
      const { fates, asking } = desk
      const isBooked = (id: string) => !asking.has(id) && fates.get(id)?.every((fate) => fate === 'booked')
      return { booked: new Set([...fates.keys()].filter(isBooked)), asked: new Set(desk.fates.keys()) }
    },
    watch() {
      desk.seen = new Map([...desk.fates].map(([id, fates]) => [id, new Set(fates)]))
      return () => {
        // A request on its way may be in it already.
        for (const [id, kind] of desk.asking) see(desk, id, withUnknown(desk, id, kind))
        const { seen } = desk
        desk.seen = undefined
        return new Map([...(seen ?? [])].map(([id, fates]) => [id, [...fates]]))
      }
    },
    restored(fates) {
      desk.life++
      for (const id of desk.fates.keys()) desk.fates.set(id, fates.get(id) ?? ['none'])
    },
    toldIndex: () => desk.toldIndex,
    night: { propertyId: INNS[0], roomType: ROOM_TYPE, date: dates[0] as string },
    async end() {
      desk.isOver = true
      await Promise.all(lanes)
    },
    judge: () => judge(desk, client),
    close() {
      desk.isOver = true
      for (const each of clients) void each.close()
    },
  }
}

const AT = { segment: 'inns', area: 'valley', propertyType: 'inn', category: 'standard', stars: 2 } as const

/** @returns an index from before all bookings */
async function openInns(client: VacancyClient, dates: readonly string[]): Promise<number> {
  for (const propertyId of INNS) {
    await untilDone(() => client.setProperty({ ...AT, propertyId, latitude: 47, longitude: 11, amenities: [] }))
    for (const date of dates) {
      const night = { propertyId, roomType: ROOM_TYPE, date }
      await untilDone(() => client.setPackage({ ...night, availability: ROOMS, finalPrice: 100, rateFeatures: [] }))
    }
  }
  // The members have to agree on the feature level of stays first.
  return Number((await untilDone(() => client.releaseStay('first', { void: true }))).index)
}

/** Nodes may be electing their first leader. */
function untilDone<T>(call: () => Promise<T>): Promise<T> {
  return until('the inns are open', async () => [await call()] as const).then(([result]) => result)
}

/** The code of an answer; '' without one. */
async function codeOf(answer: Promise<unknown>): Promise<string> {
  return await answer.then(
    () => 'SUCCESS',
    (error: unknown) => (error instanceof VacancyRequestError ? error.code : ''),
  )
}

/** The source of record sends the rooms of before all bookings, as of then. */
async function sendValues(desk: Desk, client: VacancyClient, random: Random, asOf: number): Promise<void> {
  for (; !desk.isOver; await wait(between(random, 1, SOURCE_MS))) {
    const night = { propertyId: pick(random, INNS), roomType: ROOM_TYPE, date: pick(random, desk.dates) }
    const { life } = desk
    const answer = await codeOf(client.setAvailability({ ...night, amount: ROOMS, asOf }))
    const wanted = life === 1 ? 'SUCCESS' : 'TOO_OLD'
    if (answer !== '' && answer !== wanted && life === desk.life)
      desk.violations.push(`a value as of before all bookings was answered with ${answer}, not ${wanted}`)
  }
}

function setFates(desk: Desk, id: string, fates: readonly Fate[]): void {
  desk.fates.set(id, fates)
  see(desk, id, fates)
}

function see({ seen }: Desk, id: string, fates: readonly Fate[]): void {
  seen?.set(id, new Set([...(seen.get(id) ?? []), ...fates]))
}

function withUnknown({ fates }: Desk, id: string, kind: StayOutcome['kind']): readonly Fate[] {
  return addOutcome(fates.get(id) as readonly Fate[], { kind, outcome: 'unknown', state: undefined })
}

async function work(desk: Desk, booker: Booker): Promise<void> {
  const { random } = booker
  for (let n = 0; !desk.isOver; n++) {
    await sell(desk, booker, `b${booker.lane}-${n}`)
    await wait(betweenDecades(random, 1, THINK_MS_MAX))
  }
}

/** One guest, from the first request to the end or to nothing. */
async function sell(desk: Desk, booker: Booker, stayId: string): Promise<void> {
  const { random, client, bookings } = booker
  const lines = linesOf(random, desk.dates)
  desk.lines.set(stayId, lines)
  setFates(desk, stayId, ['none'])
  if (bookings.length > BOOKINGS_KEPT && chance(random, 0.8)) {
    const old = bookings.shift() as string
    if (chance(random, 0.4)) return replace(desk, booker, stayId, old)
    await note(desk, booker, old, 'release', (on) => on.releaseStay(old))
  }
  if (chance(random, 0.4)) {
    const outcome = await note(desk, booker, stayId, 'book', (on) => on.bookStay({ stayId, lines }))
    // The guest gives up, and a booking that arrives later must be refused.
    if (outcome === 'unknown' && chance(random, 0.5))
      await note(desk, booker, stayId, 'void', (on) => on.releaseStay(stayId, { void: true }))
    else keep(desk, booker, stayId)
    return
  }
  const seconds = between(random, LIMITS.holdSecondsMin, HOLD_SECONDS_MAX)
  await note(desk, booker, stayId, 'hold', (on) => on.holdStay({ stayId, lines, seconds }))
  if (chance(random, 0.3)) return
  await wait(betweenDecades(random, 1, 2_000))
  if (chance(random, 0.3)) {
    await note(desk, booker, stayId, 'release', (on) => on.releaseStay(stayId))
    return
  }
  const retake = chance(random, 0.3)
  await note(desk, booker, stayId, retake ? 'retake' : 'confirm', (on) => on.confirmStay(stayId, { retake }))
  keep(desk, booker, stayId)
  if (chance(random, 0.1)) await refuseOthers(desk, client, stayId, random)
}

/** The same id with other lines is a conflict, as long as the stay is held or booked. */
async function refuseOthers(desk: Desk, client: VacancyClient, stayId: string, random: Random): Promise<void> {
  const known = desk.fates.get(stayId) ?? []
  if (known.some((fate) => fate !== 'booked')) return
  const { life } = desk
  const [line] = desk.lines.get(stayId) as [StayLine]
  // Restored data may not know the stay: its price is refused then.
  const others = { stayId, lines: [{ ...line, rooms: 3 + random.below(3) }], maxTotal: 1 }
  const answer = await codeOf(client.bookStay(others))
  if (answer !== '' && answer !== 'CONFLICT' && life === desk.life)
    desk.violations.push(`stay ${stayId} is booked, and with other lines the reply was ${answer} (S4)`)
}

async function replace(desk: Desk, booker: Booker, stayId: string, old: string): Promise<void> {
  const lines = desk.lines.get(stayId) as readonly StayLine[]
  const { life } = desk
  desk.asking.set(old, 'release')
  const outcome = await note(desk, booker, stayId, 'book', (on) => on.bookStay({ stayId, lines, replaces: old }))
  desk.asking.delete(old)
  if (outcome === 'none') {
    keep(desk, booker, old)
    return
  }
  const released = { kind: 'release', outcome, state: undefined } as const
  if (life !== desk.life) setFates(desk, old, withUnknown(desk, old, 'release'))
  else setFates(desk, old, addOutcome(desk.fates.get(old) as readonly Fate[], released))
  keep(desk, booker, stayId)
}

/** A booking is mostly cancelled or replaced later. */
function keep({ fates, life }: Desk, booker: Booker, stayId: string): void {
  if (!fates.get(stayId)?.includes('booked')) return
  if (booker.bookedForGood < BOOKED_FOR_GOOD * life && chance(booker.random, 0.2)) booker.bookedForGood++
  else booker.bookings.push(stayId)
}

function linesOf(random: Random, dates: readonly string[]): StayLine[] {
  return Array.from({ length: pick(random, [1, 1, 2]) }, () => {
    const nights = between(random, 1, 3)
    const arrival = dates[random.below(NIGHTS - nights + 1)] as string
    return { propertyId: pick(random, INNS), roomType: ROOM_TYPE, arrival, nights, rooms: between(random, 1, 2) }
  })
}

/** Sends a request, sometimes several times, and notes what the stay may be afterwards. */
async function note(
  desk: Desk,
  { random, client, other }: Booker,
  stayId: string,
  kind: StayOutcome['kind'],
  call: (client: VacancyClient) => Promise<{ readonly state: string; readonly index: bigint | number }>,
): Promise<StayOutcome['outcome']> {
  const copies = pick(random, [1, 1, 1, 2, 3])
  const { life } = desk
  desk.asking.set(stayId, kind)
  const outcomes = await Promise.all(
    Array.from({ length: copies }, (_, n) => attempt(desk, stayId, kind, () => call(n % 2 === 0 ? client : other))),
  )
  if (life !== desk.life) {
    // Which life of the data the copies met is not known.
    setFates(desk, stayId, withUnknown(desk, stayId, kind))
    desk.asking.delete(stayId)
    return 'unknown'
  }
  // A copy that was refused may have been before or after one that was not: the one with an effect decides.
  const done = outcomes.find(({ outcome }) => outcome === 'done')
  const unknown = outcomes.find(({ outcome }) => outcome === 'unknown')
  const decided = done ?? unknown ?? (outcomes[0] as StayOutcome)
  if (unknown) desk.unknown++
  const states = new Set(outcomes.flatMap(({ outcome, state }) => (outcome === 'done' ? [state] : [])))
  if (states.size > 1) desk.violations.push(`copies of one ${kind} of ${stayId} got ${[...states].join(' and ')} (S4)`)
  let fates = desk.fates.get(stayId) as readonly Fate[]
  // A copy without an outcome may be applied after the one that has one.
  fates = addOutcome(fates, decided)
  if (unknown && done) fates = addOutcome(fates, unknown)
  if (fates.length === 0) desk.violations.push(`${kind} of ${stayId} cannot have the reply ${JSON.stringify(decided)}`)
  setFates(desk, stayId, fates)
  desk.asking.delete(stayId)
  return decided.outcome
}

async function attempt(
  desk: Desk,
  stayId: string,
  kind: StayOutcome['kind'],
  call: () => Promise<{ readonly state: string; readonly index: bigint | number }>,
): Promise<StayOutcome> {
  try {
    const { state, index } = await call()
    desk.toldIndex = Math.max(desk.toldIndex, Number(index))
    return { kind, outcome: 'done', state: state as Fate }
  } catch (error) {
    if (error instanceof VacancyUnknownOutcomeError) return { kind, outcome: 'unknown', state: 'none' }
    const isInvalid = error instanceof VacancyCallError && error.code === 'VALIDATION_ERROR'
    if (error instanceof VacancyCallError && !isInvalid) return { kind, outcome: 'none', state: 'none' }
    desk.violations.push(`unexpected reply to ${kind} of ${stayId}: ${(error as Error).stack}`)
    return { kind, outcome: 'unknown', state: 'none' }
  }
}

// The end

async function judge(
  { fates, lines, violations, unknown, dates }: Desk,
  client: VacancyClient,
): Promise<{ readonly violations: readonly string[]; readonly figures: StayFigures }> {
  const found = new Map<string, Fate>()
  const until = performance.now() + SETTLED_MS
  for (let left = [...fates.keys()]; left.length > 0; ) {
    for (const [id, state] of await readStates(client, left)) if (state !== '' && state !== 'held') found.set(id, state)
    left = left.filter((id) => !found.has(id))
    if (left.length === 0) break
    if (performance.now() > until) {
      violations.push(`${left.length} stays are on hold or unreadable long after the end (S5): ${left.slice(0, 5)}`)
      break
    }
    await wait(500)
  }
  for (const [id, state] of found) {
    const allowed = allowedFates(fates.get(id) as readonly Fate[])
    if (!allowed.includes(state)) violations.push(`stay ${id} is ${state} at the end, not ${allowed.join(' or ')} (S3)`)
  }
  await checkNights(client, found, lines, dates, violations)
  const count = (state: Fate) => [...found.values()].filter((each) => each === state).length
  const figures = { stays: fates.size, booked: count('booked'), expired: count('expired'), released: count('released') }
  return { violations, figures: { ...figures, staysUnknown: unknown } }
}

/** States by id; '' when it could not be read. */
async function readStates(client: VacancyClient, ids: readonly string[]): Promise<Map<string, Fate | ''>> {
  const states = new Map<string, Fate | ''>()
  const left = ids.values()
  const lane = async () => {
    for (const id of left) {
      const state = await client.stay(id, { linearizable: true, deadlineMs: 20_000 }).then(
        (stay) => stay.state as Fate,
        (error: unknown) => (error instanceof VacancyCallError && error.code === 'NOT_FOUND' ? 'none' : ''),
      )
      states.set(id, state)
    }
  }
  await Promise.all(Array.from({ length: READ_LANES }, lane))
  return states
}

/** Every night has all rooms but those of booked stays: none is oversold, none is lost, no stay is taken in part. */
async function checkNights(
  client: VacancyClient,
  found: ReadonlyMap<string, Fate>,
  lines: ReadonlyMap<string, readonly StayLine[]>,
  dates: readonly string[],
  violations: string[],
): Promise<void> {
  const taken = new Map<string, number>()
  for (const [id, state] of found) {
    if (state !== 'booked') continue
    for (const { propertyId, arrival, nights, rooms } of lines.get(id) ?? []) {
      const first = dates.indexOf(arrival)
      for (const date of dates.slice(first, first + nights))
        taken.set(`${propertyId} ${date}`, (taken.get(`${propertyId} ${date}`) ?? 0) + rooms)
    }
  }
  for (const propertyId of INNS) {
    for (const date of dates) {
      const night = { propertyId, roomType: ROOM_TYPE, date }
      const { availability } = await client.getPackage(night, { linearizable: true, deadlineMs: 20_000 })
      const wanted = ROOMS - (taken.get(`${propertyId} ${date}`) ?? 0)
      if (availability !== wanted)
        violations.push(`${propertyId} ${date} has ${availability} rooms left at the end, not ${wanted} (S1, S2, S5)`)
    }
  }
}
