/**
 * Writes of clients to the production store in simulated runs. Registers are packages that only the clients of the
 * history change, while their properties move and their tables grow, shrink and are sorted. All other data belongs to
 * builders: hundreds of properties, nights at both edges of the calendar, and all deletes.
 */

import { dayOf, packPropertyId } from '@vacancy/shared'
import { between, chance, pick, type Random } from '@vacancy/testkit/random'
import {
  beginCommand,
  type CommandKind,
  type CommandWriter,
  createCommandWriter,
  GIVEN,
  KIND,
  REQUEST_KEY_BYTES,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from '../../engine/src/store/command.ts'
import { EPOCH_MS } from './clocks.ts'
import { HOTELS } from './stays-reference.ts'
import type { ToyCommand } from './toy-machine.ts'

const PROPERTIES = 4
const ROOM_TYPES = 4
let epochMs = EPOCH_MS

/** Simulated time of the next run begins then, in UTC. */
export function beginRunAt(ms: number): void {
  epochMs = ms
}

export function beginOfRun(): number {
  return epochMs
}

/** True days; a node's clock may differ. */
export function firstDay(): number {
  return dayOf(epochMs)
}

/** Far enough in the future for every clock of these runs, and within the sellable year. */
const REGISTER_DAYS_AHEAD = 300
const YEAR = 365

/** Segments of registers, which move between them and are never deleted. */
const KEPT_SEGMENTS = ['valley', 'lake', 'city'] as const
const PASSING_SEGMENTS = ['camp', 'fair'] as const
const SEGMENTS = [...KEPT_SEGMENTS, ...PASSING_SEGMENTS]
const AREAS = ['north', 'south', 'old town', 'hills', 'station']
const TYPES = ['hotel', 'hostel', 'flat']
const CATEGORIES = ['budget', 'luxury', 'großzügig']
const AMENITIES = ['pool', 'bar', 'spa', 'gym', 'sauna', 'parking']

const encoder = new TextEncoder()
const ROOM_NAMES = Array.from({ length: ROOM_TYPES }, (_, n) => encoder.encode(`room${n}`))
const PROPERTY_IDS = Array.from({ length: PROPERTIES }, (_, n) => new Uint8Array(16).fill(n + 1))

/** The package of a register. */
export function placeOf(register: number): {
  readonly id: Uint8Array
  readonly room: Uint8Array
  readonly day: number
} {
  return {
    id: PROPERTY_IDS[register % PROPERTIES] as Uint8Array,
    room: ROOM_NAMES[(register >>> 2) % ROOM_TYPES] as Uint8Array,
    day: firstDay() + REGISTER_DAYS_AHEAD + (register >>> 4),
  }
}

const writer = createCommandWriter(512)
const key = new Uint8Array(REQUEST_KEY_BYTES)
const keyView = new DataView(key.buffer)

type RequestKey = { readonly session: number; readonly number: number }

export function command(
  kind: CommandKind,
  requestKey: RequestKey | undefined,
  body: (writer: CommandWriter) => void,
): Uint8Array {
  writer.at = 0
  if (requestKey) {
    keyView.setUint32(0, requestKey.session, true)
    keyView.setUint32(16, requestKey.number, true)
    beginCommand(writer, kind, key)
  } else beginCommand(writer, kind)
  body(writer)
  return writer.bytes.slice(0, writer.at)
}

export function putName(to: CommandWriter, name: string | Uint8Array): void {
  const bytes = typeof name === 'string' ? encoder.encode(name) : name
  writeName(to, bytes, 0, bytes.length)
}

const KIND_OF = {
  increase: KIND.increaseAvailability,
  decrease: KIND.decreaseAvailability,
  delete: KIND.deletePackage,
} as const

/** A command on a register. Setting a possibly empty register writes a package. */
export function encodeOnStore({ kind, register, amount, session, number }: ToyCommand): Uint8Array {
  const { id, room, day } = placeOf(register)
  const requestKey = session === 0 ? undefined : { session, number }
  if (kind === 'set') return putPackage(id, room, day, amount, 100 + register, 0, requestKey)
  return command(KIND_OF[kind], requestKey, (to) => {
    writeBytes(to, id, 0, 16)
    writeU32(to, day)
    if (kind !== 'delete') writeU8(to, amount)
    putName(to, room)
  })
}

function putPackage(
  id: Uint8Array,
  room: string | Uint8Array,
  day: number,
  availability: number,
  price: number,
  features: number,
  requestKey?: RequestKey,
): Uint8Array {
  return command(KIND.setPackage, requestKey, (to) => {
    writeBytes(to, id, 0, 16)
    writeU32(to, day)
    writeU8(to, GIVEN.availability | GIVEN.price | (features > 0 ? GIVEN.features : 0))
    writeU8(to, availability)
    writeU32(to, price)
    writeU32(to, features)
    putName(to, room)
  })
}

function putProperty(random: Random, id: Uint8Array, segment: string, requestKey?: RequestKey): Uint8Array {
  return command(KIND.setProperty, requestKey, (to) => {
    writeBytes(to, id, 0, 16)
    writeU8(to, between(random, 1, 5))
    writeF64(to, 47 + random.below(1_000) / 10_000)
    writeF64(to, 8 + random.below(1_000) / 10_000)
    for (const name of [segment, pick(random, AREAS), pick(random, TYPES), pick(random, CATEGORIES)]) putName(to, name)
    const amenities = AMENITIES.filter(() => chance(random, 0.3))
    writeU8(to, amenities.length)
    for (const amenity of amenities) putName(to, amenity)
  })
}

function builtId(number: number): Uint8Array {
  const id = new Uint8Array(16).fill(0xb0)
  new DataView(id.buffer).setUint32(0, number, true)
  return id
}

/** The properties of registers, written at the start of every run. */
export function firstCommands(random: Random): Uint8Array[] {
  return PROPERTY_IDS.map((id) => putProperty(random, id, pick(random, KEPT_SEGMENTS)))
}

/** The content of a bulk load: all registers, and some other properties. */
export function imageCommands(random: Random, properties: number): Uint8Array[] {
  const commands = firstCommands(random)
  for (let register = 0; register < IMAGE_REGISTERS; register++) {
    const { id, room, day } = placeOf(register)
    commands.push(putPackage(id, room, day, imageValue(register), 100 + register, 0))
  }
  for (let number = 0; number < properties; number++) {
    const id = builtId(number)
    commands.push(putProperty(random, id, pick(random, SEGMENTS)))
    for (let night = 0; night < 3; night++)
      commands.push(putPackage(id, `room${random.below(2)}`, firstDay() + 60 + random.below(200), 5, 80, 1))
  }
  // Hotels are part of the data, except one: its holds end.
  for (const hotel of HOTELS.slice(0, -1)) {
    commands.push(setHotel(random, hotel))
    for (let night = 60; night < 70; night++)
      for (const room of HOTEL_ROOMS) commands.push(hotelNight(random, 'setPackage', hotel, room, night))
  }
  return commands
}

export const HOTEL_ROOMS = ['double', 'suite'] as const

/** Hotels may be in segments that are deleted. */
export function setHotel(random: Random, hotel: string): Uint8Array {
  return putProperty(random, packPropertyId(hotel) as Uint8Array, pick(random, SEGMENTS))
}

const HOTEL_KINDS = {
  setAvailability: KIND.setAvailability,
  setAvailabilityAsOf: KIND.setAvailabilityAsOf,
  increaseAvailability: KIND.increaseAvailability,
  decreaseAvailability: KIND.decreaseAvailability,
  deletePackage: KIND.deletePackage,
  deleteDay: KIND.deleteDay,
  deleteRoom: KIND.deleteRoom,
} as const

/** Of the log of a run. */
export const LOG_INDEXES = 3_000

/** A change of one night of a hotel, by days from the first. Few rooms, so that stays are refused and debts arise. */
export function hotelNight(
  random: Random,
  kind: keyof typeof HOTEL_KINDS | 'setPackage',
  hotel: string,
  room: string,
  daysAhead: number,
  asOf = random.below(LOG_INDEXES),
): Uint8Array {
  const id = packPropertyId(hotel) as Uint8Array
  const day = firstDay() + daysAhead
  const rooms = random.below(chance(random, 0.05) ? 256 : 8)
  if (kind === 'setPackage') return putPackage(id, room, day, rooms, random.below(300), random.below(4))
  return command(HOTEL_KINDS[kind], undefined, (to) => {
    if (kind === 'setAvailabilityAsOf') writeF64(to, asOf)
    writeBytes(to, id, 0, 16)
    if (kind !== 'deleteRoom') writeU32(to, day)
    // Serving threads refuse to raise or lower by 0.
    if (kind === 'setAvailability' || kind === 'setAvailabilityAsOf') writeU8(to, rooms)
    else if (kind === 'increaseAvailability' || kind === 'decreaseAvailability') writeU8(to, Math.max(1, rooms))
    if (kind !== 'deleteDay') putName(to, room)
  })
}

/** Clients use registers below it. */
export const IMAGE_REGISTERS = 6
export const imageValue = (register: number): number => 7 + register

/** State of a builder. */
export type Built = {
  properties: number
  readonly propertiesMax: number
  readonly fillsMemory: boolean
  session: number
}

/** The next batch of a builder. @param today true days since the start of the run */
export function drawBatch(random: Random, built: Built, today: number): Uint8Array[] {
  const total = built.fillsMemory ? 22 : 20
  const drawn = random.below(total)
  if (built.properties < built.propertiesMax && drawn < 8) return grow(random, built, today)
  const some = between(random, 1, 12)
  const each = (most: number, draw: () => Uint8Array) => Array.from({ length: Math.min(some, most) }, draw)
  const anyId = () => builtId(random.below(Math.max(1, built.properties)))
  if (drawn < 10) return each(12, () => writeNight(random, anyId(), today, undefined))
  if (drawn < 12) {
    // Occasionally a property of registers moves, with all its packages.
    return each(6, () => {
      const isRegisters = chance(random, 0.2)
      const id = isRegisters ? pick(random, PROPERTY_IDS) : anyId()
      return putProperty(random, id, pick(random, isRegisters ? KEPT_SEGMENTS : SEGMENTS))
    })
  }
  if (drawn < 15) return each(6, () => deletion(random, anyId(), today))
  if (drawn === 15)
    return each(4, () => command(KIND.deleteProperty, undefined, (to) => writeBytes(to, anyId(), 0, 16)))
  if (drawn === 16) return [command(KIND.deleteSegment, undefined, (to) => putName(to, pick(random, PASSING_SEGMENTS)))]
  if (drawn < 19) {
    // Each with a new session, which evicts others.
    return Array.from({ length: between(random, 5, 60) }, () =>
      writeNight(random, anyId(), today, { session: 1_000_000 + built.session++, number: 1 }),
    )
  }
  return calendar(random, anyId(), today, built.fillsMemory ? YEAR : 30)
}

/** Dozens of rows in one table. */
function grow(random: Random, built: Built, today: number): Uint8Array[] {
  const segment = pick(random, SEGMENTS)
  const room = `room${random.below(2)}`
  const count = Math.min(between(random, 30, 150), built.propertiesMax - built.properties)
  return Array.from({ length: count }, () => {
    const id = builtId(built.properties++)
    return [putProperty(random, id, segment), putPackage(id, room, today + random.below(5), 3, 90, random.below(4))]
  }).flat()
}

function dayNear(random: Random, today: number): number {
  // Both sides of both edges of the writable range, and some days in between.
  return pick(random, [
    today - 1,
    today,
    today + 1,
    today + YEAR - 1,
    today + YEAR,
    today + YEAR + 1,
    today + random.below(YEAR),
  ])
}

function writeNight(random: Random, id: Uint8Array, today: number, requestKey: RequestKey | undefined): Uint8Array {
  const room = `room${random.below(ROOM_TYPES)}`
  const day = dayNear(random, today)
  if (chance(random, 0.5))
    return putPackage(id, room, day, random.below(256), random.below(300), random.below(4), requestKey)
  const kind = pick(random, [KIND.setAvailability, KIND.increaseAvailability, KIND.decreaseAvailability])
  return command(kind, requestKey, (to) => {
    writeBytes(to, id, 0, 16)
    writeU32(to, day)
    writeU8(to, random.below(60))
    putName(to, room)
  })
}

function deletion(random: Random, id: Uint8Array, today: number): Uint8Array {
  const kind = pick(random, [KIND.deletePackage, KIND.deleteDay, KIND.deleteRoom])
  return command(kind, undefined, (to) => {
    writeBytes(to, id, 0, 16)
    if (kind !== KIND.deleteRoom) writeU32(to, dayNear(random, today))
    if (kind !== KIND.deleteDay) putName(to, `room${random.below(ROOM_TYPES)}`)
  })
}

/** Many nights of one row: each needs memory for all rows of the table. */
function calendar(random: Random, id: Uint8Array, today: number, nights: number): Uint8Array[] {
  const room = `room${random.below(ROOM_TYPES)}`
  const first = random.below(YEAR)
  return Array.from({ length: nights }, (_, n) => putPackage(id, room, today + ((first + n) % YEAR), 2, 70, 0))
}

/** The true current day. */
export function todayAt(nowUs: number): number {
  return dayOf(epochMs + nowUs / 1_000)
}
