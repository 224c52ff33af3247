/**
 * Clients that sell stays in simulated runs, and the source of record of their hotels. Holds are confirmed, released,
 * replaced or abandoned; each request is sent one to five times, through any node, and some ids are used with other
 * lines. Meanwhile the source sets absolute values, deletes hotels, and an operator changes how much is remembered.
 */

import { packPropertyId } from '@vacancy/shared'
import { between, betweenDecades, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import { scheduleIn } from '@vacancy/testkit/scheduler'
import { REINSTATE_ANY, STAY_FLAGS } from '../../engine/src/store/apply-stays.ts'
import {
  type CommandKind,
  KIND,
  OUTCOME,
  writeBytes,
  writeF64,
  writeU8,
  writeU32,
} from '../../engine/src/store/command.ts'
import { encodeSetting } from '../../engine/src/store/stay-settings.ts'
import { REFUSED, refusedText } from '../../engine/src/threads/writes.ts'
import { isBehind } from './builders.ts'
import { stepClock } from './clocks.ts'
import { leaderOf } from './faults.ts'
import { onFailed, violate } from './oracles.ts'
import { HOTELS } from './stays-reference.ts'
import { command, firstDay, HOTEL_ROOMS, hotelNight, putName, setHotel } from './store-workload.ts'
import { checkAcknowledged, type Workload } from './workload.ts'
import { runIn, type World } from './world.ts'

/** Clients mostly use one of the newest ids of all clients. */
const NEWEST = 8
const REQUESTS_MAX = 600
/** Nothing is sent while more entries wait for a majority: stays come beside all other writes. */
const WAITING_MAX = 10
const NIGHTS_MAX = 3
/** Few nights, so that stays meet. */
const ARRIVALS = 6
const DAYS_AHEAD = 60
const DAY_MS = 86_400_000
const FILLED = 40
const STAYS_BYTES = 30_000
/** Bounds, the default, and some in between; minutes after midnight UTC. */
const DAY_BEGINS = [-840, -60, 0, 480, 1_200] as const
const TOLD_MAX = 64
/** A hold of a few seconds is over before the run is. */
export const HOLD_SECONDS_MAX = 20

type StayLine = {
  readonly hotel: string
  readonly room: string
  readonly arrival: number
  readonly nights: number
  readonly rooms: number
  readonly flags: number
}

/** What is drawn of stays, and what has been. */
export type StayDraws = {
  readonly random: Random
  /** Some holds last for hours, which no run does. */
  readonly holdsLong: boolean
  /** What each id was first used for; the same for all clients. */
  readonly lines: Map<string, readonly StayLine[]>
  /** The index of the newest reply to a booking, hold or confirmation of each id. */
  readonly indexes: Map<string, number>
}

type Seller = StayDraws & {
  readonly workload: Workload
  readonly everyUs: number
  sent: number
  /** Acknowledged writes of the source, which fills the hotels first. */
  filled: number
}

export function startStayClients(workload: Workload): void {
  const { seed, knobs } = workload.world
  const lines = new Map<string, readonly StayLine[]>()
  const indexes = new Map<string, number>()
  for (let n = 0; n < knobs.stayClients; n++) {
    const random = streamOf(seed, `stays ${n}`)
    const everyUs = betweenDecades(random, 5_000, 200_000)
    next({ workload, random, everyUs, holdsLong: seed % 4 === 0, lines, indexes, sent: 0, filled: 0 })
  }
}

function next(seller: Seller): void {
  const { workload, random, everyUs } = seller
  scheduleIn(workload.world.scheduler, random.below(2 * everyUs + 1), () => {
    if (workload.isStopped || seller.sent >= REQUESTS_MAX) return
    seller.sent++
    act(seller)
    next(seller)
  })
}

function act(seller: Seller): void {
  const { random, workload } = seller
  if (seller.filled < FILLED) {
    const hotel = HOTELS[seller.sent % HOTELS.length] as string
    return sendTo(workload, random, fill(random, hotel), 0, () => void seller.filled++)
  }
  if (chance(random, 0.015)) return passDays(seller)
  if (chance(random, 0.1)) return waitForIndex(workload, random)
  if (chance(random, 0.25)) return sendTo(workload, random, changeOfSource(workload.world, random), 0)
  const { stayId, bytes, promises, takes } = someRequest(seller)
  const copies = pick(random, [1, 1, 1, 2, 3, 5])
  for (let n = 0; n < copies; n++) {
    const delayUs = n === 0 ? 0 : betweenDecades(random, 1_000, 4_000_000)
    sendTo(workload, random, [bytes], delayUs, (index) => {
      // Of repeats the first one.
      if (takes && n === 0) seller.indexes.set(stayId, index)
      if (!promises) return
      const { promised } = workload.world
      promised.set(stayId, Math.max(index, promised.get(stayId) ?? 0))
    })
  }
}

/** Changes come after days and weeks, too: the clocks of all machines advance, in the end beyond all nights. */
function passDays({ workload, random }: Seller): void {
  const { nodes } = workload.world
  const days = between(random, 1, 20)
  for (const { clock } of nodes) {
    if (clock.offsetMs < (DAYS_AHEAD + ARRIVALS) * DAY_MS) stepClock(clock, clock.offsetMs + days * DAY_MS)
  }
}

/** A hotel with rooms on all nights that are sold. */
export function fill(random: Random, hotel: string): Uint8Array[] {
  const nights = Array.from({ length: ARRIVALS + NIGHTS_MAX }, (_, n) => DAYS_AHEAD + n)
  const ofRoom = (room: string) => nights.map((night) => hotelNight(random, 'setPackage', hotel, room, night))
  return [setHotel(random, hotel), ...HOTEL_ROOMS.flatMap(ofRoom)]
}

export function changeOfSource({ toldIndexes }: Pick<World, 'toldIndexes'>, random: Random): Uint8Array[] {
  const hotel = pick(random, HOTELS)
  const draw = random.below(40)
  if (draw < 2) return [setHotel(random, hotel)]
  if (draw < 4) return fill(random, hotel)
  if (draw < 7) {
    // Often a hotel of the same id follows, as in a full refresh: what is on hold stays so.
    const deletion = command(KIND.deleteProperty, undefined, (to) => writeBytes(to, idOf(hotel), 0, 16))
    return [deletion, ...(chance(random, 0.7) ? fill(random, hotel) : [])]
  }
  // With few bytes most stays are refused as long as the others are younger than an hour.
  if (draw === 7) return [setting('stays_bytes', chance(random, 0.1) ? between(random, 1_000, 4_000) : STAYS_BYTES)]
  if (draw === 11 || draw === 12) return [setting('day_begins_minutes', pick(random, DAY_BEGINS))]
  const room = pick(random, HOTEL_ROOMS)
  const kinds = [
    ...(['setAvailability', 'setAvailabilityAsOf', 'increaseAvailability', 'decreaseAvailability'] as const),
    'setPackage',
  ] as const
  const kind =
    draw === 8 ? 'deletePackage' : draw === 9 ? 'deleteDay' : draw === 10 ? 'deleteRoom' : pick(random, kinds)
  const told = kind === 'setAvailabilityAsOf' && chance(random, 0.5) ? pick(random, toldIndexes)?.index : undefined
  return [hotelNight(random, kind, hotel, room, arrivalIn(random), told)]
}

function setting(name: 'stays_bytes' | 'day_begins_minutes', value: number): Uint8Array {
  return command(KIND.setting, undefined, (to) => {
    const body = encodeSetting(name, value)
    writeBytes(to, body, 0, body.length)
  })
}

function idOf(name: string): Uint8Array {
  return packPropertyId(name) as Uint8Array
}

/** Most nights are months ahead, so that clocks that differ by days sell the same ones; some are about to pass. */
function arrivalIn(random: Random): number {
  return chance(random, 0.05) ? random.below(4) : DAYS_AHEAD + random.below(ARRIVALS)
}

function freshLines(random: Random): StayLine[] {
  return Array.from({ length: pick(random, [1, 1, 1, 2, 3]) }, () => ({
    hotel: pick(random, HOTELS),
    room: pick(random, HOTEL_ROOMS),
    arrival: arrivalIn(random),
    nights: between(random, 1, NIGHTS_MAX),
    rooms: between(random, 1, 2),
    flags: random.below(8) === 0 ? 1 : 0,
  }))
}

type Request = {
  readonly stayId: string
  readonly bytes: Uint8Array
  readonly promises: boolean
  readonly takes?: boolean
}

/** The lines of a stay with other numbers of nights: a guest who leaves early, or stays longer. */
function changedLines(random: Random, lines: readonly StayLine[]): StayLine[] {
  return lines.map((line) => ({ ...line, nights: between(random, 1, line.nights + 1) }))
}

export function someRequest({ random, holdsLong, lines: known, indexes }: StayDraws): Request {
  const draw = random.below(20)
  const isNew = known.size === 0 || (draw < 11 && chance(random, 0.75))
  const stayId = isNew ? `stay-${String(known.size).padStart(4, '0')}` : someId(random, known)
  const before = known.get(stayId)
  const replaces = chance(random, 0.3) ? someId(random, known) : ''
  const replaced = chance(random, 0.5) ? known.get(replaces) : undefined
  const first = replaced ? changedLines(random, replaced) : freshLines(random)
  const lines = before && chance(random, 0.9) ? before : first
  if (!before) known.set(stayId, lines)
  const reinstates = chance(random, 0.05)
  const maxTotal = chance(random, 0.15) ? random.below(2_000) : -1
  const features = chance(random, 0.1) ? 1 + random.below(3) : 0
  const taking = { stayId, lines, maxTotal, features, reinstates, replaces: replaces === stayId ? '' : replaces }
  if (draw < 8) {
    const isLong = holdsLong && chance(random, 0.1)
    const seconds = isLong ? between(random, 3_600, 86_400) : between(random, 1, HOLD_SECONDS_MAX)
    return { stayId, promises: false, takes: true, bytes: stayCommand(KIND.holdStay, { ...taking, seconds }) }
  }
  if (draw < 11) return { stayId, promises: true, takes: true, bytes: stayCommand(KIND.bookStay, taking) }
  if (draw < 16) {
    const retake = chance(random, 0.3)
    const limit = retake ? { maxTotal } : {}
    return { stayId, promises: true, takes: true, bytes: stayCommand(KIND.confirmStay, { stayId, retake, ...limit }) }
  }
  const isVoid = chance(random, 0.2)
  const own = !isVoid && chance(random, 0.3) ? { lines, isUnrecorded: chance(random, 0.3) } : {}
  const bookedAt = !isVoid && chance(random, 0.3) ? (indexes.get(stayId) ?? 0) : 0
  return { stayId, promises: false, bytes: stayCommand(KIND.releaseStay, { stayId, isVoid, bookedAt, ...own }) }
}

function someId(random: Random, known: Seller['lines']): string {
  const ids = [...known.keys()]
  return pick(random, chance(random, 0.9) ? ids.slice(-NEWEST) : ids)
}

type Fields = {
  readonly stayId: string
  readonly lines?: readonly StayLine[]
  readonly seconds?: number
  /** −1 for none. */
  readonly maxTotal?: number
  readonly features?: number
  readonly replaces?: string
  readonly retake?: boolean
  readonly isVoid?: boolean
  readonly reinstates?: boolean
  readonly isUnrecorded?: boolean
  /** Index of the booking or hold that a release names; 0 for none. */
  readonly bookedAt?: number
}

function stayCommand(kind: CommandKind, fields: Fields): Uint8Array {
  const { stayId, lines = [], seconds = 0, maxTotal = -1, features = 0, replaces = '', bookedAt = 0 } = fields
  return command(kind, undefined, (to) => {
    writeBytes(to, idOf(stayId), 0, 16)
    writeU8(
      to,
      (maxTotal >= 0 ? STAY_FLAGS.maxTotal : 0) |
        (replaces === '' ? 0 : STAY_FLAGS.replaces) |
        (fields.retake ? STAY_FLAGS.retake : 0) |
        (fields.isVoid ? STAY_FLAGS.void : 0) |
        (fields.reinstates ? STAY_FLAGS.reinstate : 0) |
        (fields.isUnrecorded ? STAY_FLAGS.unrecorded : 0) |
        (bookedAt > 0 ? STAY_FLAGS.bookedAt : 0),
    )
    writeU32(to, seconds)
    writeF64(to, Math.max(0, maxTotal))
    writeU32(to, features)
    writeBytes(to, replaces === '' ? new Uint8Array(16) : idOf(replaces), 0, 16)
    putName(to, 'sim')
    writeU8(to, lines.length)
    for (const { hotel, room, arrival, nights, rooms, flags } of lines) {
      writeBytes(to, idOf(hotel), 0, 16)
      putName(to, room)
      writeU32(to, firstDay() + arrival)
      for (const byte of [nights, rooms, flags]) writeU8(to, byte)
    }
    if (fields.reinstates) writeF64(to, REINSTATE_ANY)
    if (bookedAt > 0) writeF64(to, bookedAt)
  })
}

function sendTo(
  workload: Workload,
  random: Random,
  batch: readonly Uint8Array[],
  delayUs: number,
  onDone?: (index: number) => void,
): void {
  const { world } = workload
  const isStray = chance(random, 0.2)
  const stray = pick(random, world.nodes)
  scheduleIn(world.scheduler, delayUs + random.below(1_000), () => {
    const node = isStray ? stray : leaderOf(world)
    if (!node || isBehind(node, WAITING_MAX)) return
    const { process } = node
    const proposeAll = process?.running?.proposeAll
    if (workload.isStopped || !process || !proposeAll) return
    const commands = batch.map((bytes) => ({ token: workload.nextToken++, bytes: bytes.slice() }))
    for (const { token } of commands) {
      world.onAnswer.set(token, (answer) => {
        world.counts.stayReplies++
        if (answer.kind === 'none') onFailed(world.oracles, token)
        if (answer.kind !== 'result') return
        checkAcknowledged(world, token, answer)
        const index = answer.clientIndex ?? answer.index
        noteTold(world, random, index)
        if (answer.code === OUTCOME.done) onDone?.(index)
      })
    }
    runIn(world, process, 'request', commands.length, () => proposeAll(commands))
  })
}

function noteTold({ toldIndexes, lives: life }: World, random: Random, index: number): void {
  toldIndexes[toldIndexes.length < TOLD_MAX ? toldIndexes.length : random.below(TOLD_MAX)] = { index, life }
}

/** Any node serves a read that has to show an index, or says that no entry has it: then it is of another life. */
function waitForIndex(workload: Workload, random: Random): void {
  const { world } = workload
  const told = pick(random, world.toldIndexes)
  const { process, number } = pick(random, world.nodes)
  if (!told || !process?.running) return
  const token = workload.nextToken++
  world.onAnswer.set(token, (answer) => {
    world.counts.waitedIndexes++
    world.oracles.checks.O7++
    if (answer.kind === 'result' && (answer.clientIndex ?? 0) < told.index)
      violate('O7', `node ${number} served index ${answer.clientIndex} to a client that knows index ${told.index}`)
    if (answer.kind === 'none' && answer.reason === NO_ENTRY && told.life === world.lives)
      violate('O7', `node ${number} says that no entry has index ${told.index}, which it told a client before`)
  })
  runIn(world, process, 'request', told.index, () => process.running?.read(token, 0, told.index))
}

const NO_ENTRY = refusedText(REFUSED.unknownIndex)
