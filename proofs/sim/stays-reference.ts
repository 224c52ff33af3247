/**
 * The stays of the log, by the exact model of stays (stays-model.ts), and the comparison of a replica with it: oracles S1,
 * S2, S3, S4 and S6 (docs/design/testing.md#oracles). Stays name the properties of `HOTELS` only.
 */

import { formatDay, lastVisibleDay, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import { STAY_STATE, type StayState } from '@vacancy/shared/wire'
import { viewOf } from '../../engine/src/raft/entry.ts'
import { hex } from '../../engine/src/snapshot/format.ts'
import { decodeLedger, encodeLedger, type LoadedLedger } from '../../engine/src/snapshot/ledger.ts'
import { STAY_FLAGS } from '../../engine/src/store/apply-stays.ts'
import {
  type CommandReader,
  KIND,
  OUTCOME,
  outcomeWire,
  readBytes,
  readF64,
  readName,
  readU8,
  readU32,
} from '../../engine/src/store/command.ts'
import { findName, NAMES } from '../../engine/src/store/dictionary.ts'
import { nameHash } from '../../engine/src/store/digest.ts'
import { readNight } from '../../engine/src/store/read.ts'
import type { Memory } from '../../engine/src/store/store.ts'
import { type Lanes, mix } from './session-model.ts'
import {
  confirmStay,
  createStaysModel,
  debtOn,
  heldOn,
  type ModelAnswer,
  type ModelStay,
  makeRoom,
  ownOn,
  passTime,
  releaseStay,
  type StayLine,
  type StaysModel,
  sellableOn,
  takeStay,
} from './stays-model.ts'

export const HOTELS = ['hotel-0', 'hotel-1', 'hotel-2'] as const
/** By id, in hexadecimal: their names. */
const HOTEL_NAMES = new Map(HOTELS.map((name) => [hex(packPropertyId(name) as Uint8Array), name as string]))
/** `stays_bytes` until the log sets it. */
const BYTES_MAX = 256 << 20

/** The states of a stay with the indexes at which it reached them. */
type Fate = { readonly index: number; readonly state: StayState | 'forgotten' }

export type StaysReference = {
  readonly model: StaysModel
  bytesMax: number
  /** State, deadline, total and index of the stay that the reply to an entry shows. */
  readonly replies: Map<number, string>
  readonly fates: Map<string, Fate[]>
  /** Changes of the model that `fates` has. */
  noted: number
  /** Counters of log events, for the coverage gaps of a report. */
  readonly counts: StayCounts
}

export const STAY_COUNTS = [
  'holds',
  'bookings',
  'expired',
  'released',
  'voided',
  'forgottenStays',
  'refusedStays',
  /** Bookings that a change ended when it was confirmed; changes that gave way; nights that had passed before. */
  'changedStays',
  'abandonedChanges',
  'reinstatedStays',
  'unrecordedStays',
  'keptNights',
  /** Bookings that gave way at least a day, or a week, after they were made. */
  'changedAfterDays',
  'changedAfterWeeks',
  /** Hotels that were set again while rooms of them were on hold. */
  'refreshedBelowHolds',
  /** A booking or hold sent again after its stay was released, and after its record was gone. */
  'lateRepeats',
  'repeatsOfForgotten',
  /** Releases that name another booking or hold than the present one. */
  'lateReleases',
] as const
type StayCounts = Record<(typeof STAY_COUNTS)[number], number>
const COUNT_OF = {
  held: 'holds',
  booked: 'bookings',
  expired: 'expired',
  released: 'released',
  void: 'voided',
  forgotten: 'forgottenStays',
} as const satisfies Record<Fate['state'], keyof StayCounts>

export function createStaysReference(properties: StaysModel['properties']): StaysReference {
  const counts = Object.fromEntries(STAY_COUNTS.map((name) => [name, 0])) as StayCounts
  const model = createStaysModel(properties)
  return { model, bytesMax: BYTES_MAX, replies: new Map(), fates: new Map(), noted: 0, counts }
}

/** Whether stays may name a property. */
export function isHotel(propertyId: string): boolean {
  return HOTEL_NAMES.has(propertyId)
}

// Applying the log

/** What every entry does first. */
export function beginEntry(reference: StaysReference, { timeMs, day }: CommandReader, index: number): void {
  const { model } = reference
  passTime(model, timeMs, index)
  model.today = day
  model.lastDay = lastVisibleDay(day)
  // The command may use the id of a stay that has just expired or was forgotten.
  noteFates(reference, index)
}

/** Notes which stays have reached another state. */
export function noteFates(reference: StaysReference, index: number): void {
  const { model, fates, noted, counts } = reference
  const note = (known: Fate[], state: Fate['state']): void => {
    known.push({ index, state })
    counts[COUNT_OF[state]]++
  }
  for (const [id, known] of fates) {
    const isForgotten = known.at(-1)?.state === 'forgotten'
    if (!isForgotten && !model.stays.has(id)) note(known, 'forgotten')
  }
  if (model.changes === noted) return
  for (const [id, { order, state }] of model.stays) {
    if (order <= noted) continue
    const known = fates.get(id) ?? []
    fates.set(id, known)
    if (known.at(-1)?.state !== state) note(known, state)
  }
  reference.noted = model.changes
}

const CODE_OF: { readonly [wire: string]: number } = {
  '': OUTCOME.done,
  NOT_FOUND: OUTCOME.unknownStay,
  VALIDATION_ERROR: OUTCOME.outsideWindow,
  SOLD_OUT: OUTCOME.soldOut,
  PRICE_CHANGED: OUTCOME.priceChanged,
  EXPIRED: OUTCOME.expired,
  CONFLICT: OUTCOME.conflict,
}

/** @param observed the outcome at the first replica. @returns the expected one */
export function executeStay(reference: StaysReference, reader: CommandReader, index: number, observed: number): number {
  // Whether there was memory is taken from the first replica: then nothing may have changed.
  const isRefused = observed === OUTCOME.refused
  const model = isRefused ? structuredClone(reference.model) : reference.model
  const { error, stay } = answerOf(model, reader, index, reference)
  if (stay && !isRefused) {
    const { state, deadlineMs, total } = stay
    reference.replies.set(index, replyText(STAY_STATE[state], deadlineMs, total, stay.index))
  }
  if (error !== '') reference.counts.refusedStays++
  if (isRefused && error === '') return observed
  return error !== '' && outcomeWire(observed) === error ? observed : (CODE_OF[error] as number)
}

export function replyText(state: number, deadlineMs: number, total: number, index: number): string {
  return `state ${state}, deadline ${deadlineMs}, total ${total}, index ${index}`
}

function answerOf(
  model: StaysModel,
  reader: CommandReader,
  index: number,
  { bytesMax, counts, fates }: StaysReference,
): ModelAnswer {
  const { kind, timeMs } = reader
  const stayId = readId(reader)
  const flags = readU8(reader)
  const seconds = readU32(reader)
  const total = readF64(reader)
  const features = readU32(reader)
  const other = readId(reader)
  readName(reader)
  const lines = Array.from({ length: readU8(reader) }, () => readLine(reader))
  const reinstate = (flags & STAY_FLAGS.reinstate) === 0 ? 0 : readF64(reader)
  const bookedAt = (flags & STAY_FLAGS.bookedAt) === 0 ? undefined : readF64(reader)
  const hasMax = (flags & STAY_FLAGS.maxTotal) !== 0
  const most = hasMax ? { maxTotal: total } : {}
  const before = model.stays.get(stayId)
  const reached = before?.state
  const changed = bookingOf(model, other === '' ? before?.replaces?.id : other)
  let answer: ModelAnswer
  if (kind === KIND.confirmStay) {
    const retake = (flags & STAY_FLAGS.retake) !== 0
    answer = confirmStay(model, { stayId, retake, ...most }, timeMs, index)
  } else if (kind === KIND.releaseStay) {
    const isVoid = (flags & STAY_FLAGS.void) !== 0
    const isUnrecorded = (flags & STAY_FLAGS.unrecorded) !== 0
    const given = lines.length > 0 ? { lines } : {}
    answer = releaseStay(model, { stayId, isVoid, isUnrecorded, bookedAt, ...given }, timeMs, index)
    if (bookedAt !== undefined && answer.error === 'CONFLICT') counts.lateReleases++
  } else {
    const replaces = (flags & STAY_FLAGS.replaces) !== 0 ? { replaces: other } : {}
    const hold = kind === KIND.holdStay ? { seconds } : {}
    if (reached === 'released' && reinstate === 0) counts.lateRepeats++
    if (fates.get(stayId)?.at(-1)?.state === 'forgotten') counts.repeatsOfForgotten++
    answer = takeStay(model, { stayId, lines, features, reinstate, ...most, ...replaces, ...hold }, timeMs, index)
  }
  const after = model.stays.get(stayId)
  if (answer.error === '' && after) countChange(counts, model, after, reached)
  if (changed?.stay.state === 'released') countAge(counts, timeMs - changed.sinceMs)
  // A new record.
  if (after !== undefined && after !== before) makeRoom(model, bytesMax, timeMs)
  return answer
}

/** A stay that is booked, with the time at which it was. */
function bookingOf({ stays }: StaysModel, id = '') {
  const stay = stays.get(id)
  return stay?.state === 'booked' ? { stay, sinceMs: stay.timeMs } : undefined
}

const DAY_MS = 86_400_000

function countAge(counts: StayCounts, ageMs: number): void {
  if (ageMs >= DAY_MS) counts.changedAfterDays++
  if (ageMs >= 7 * DAY_MS) counts.changedAfterWeeks++
}

function countChange(counts: StayCounts, { today }: StaysModel, stay: ModelStay, before: StayState | undefined): void {
  const { state, replaces, isUnrecorded, lines } = stay
  if (state === 'booked' && replaces && before === 'held') counts.changedStays++
  if (state === 'released' && replaces && before === 'held') counts.abandonedChanges++
  if (before === 'released' && (state === 'booked' || state === 'held')) counts.reinstatedStays++
  if (isUnrecorded && before === undefined) counts.unrecordedStays++
  if (state === 'booked' && before === undefined && lines.some(({ arrival }) => arrival < today)) counts.keptNights++
}

function readId(reader: CommandReader): string {
  const start = readBytes(reader, 16)
  const packed = reader.bytes.subarray(start, start + 16)
  return packed.some((byte) => byte !== 0) ? unpackPropertyId(reader.bytes, start) : ''
}

const decoder = new TextDecoder()

function readLine(reader: CommandReader): StayLine {
  const start = readBytes(reader, 16)
  const propertyId = hex(reader.bytes.subarray(start, start + 16))
  const nameStart = readName(reader)
  const roomType = decoder.decode(reader.bytes.subarray(nameStart, reader.at))
  const line = { propertyId, roomType, arrival: readU32(reader), nights: readU8(reader) }
  return { ...line, rooms: readU8(reader), uncounted: readU8(reader) !== 0 }
}

/** A property is set that was not there. */
export function noteNew({ model: { stays }, counts }: StaysReference, id: string): void {
  const isOf = ({ state, lines }: ModelStay) => state === 'held' && lines.some(({ propertyId }) => propertyId === id)
  if ([...stays.values()].some(isOf)) counts.refreshedBelowHolds++
}

export function heldCount({ model }: StaysReference): number {
  return [...model.stays.values()].filter(({ state }) => state === 'held').length
}

// Comparing a replica

export type StayDifference = { readonly oracle: 'S1' | 'S2' | 'S3' | 'S4'; readonly text: string }

/** How the ledger of a replica differs from the log. */
export function staysDifference({ model }: StaysReference, memory: Memory): StayDifference | undefined {
  const ledger = decodeLedger(encodeLedger(memory), 'ledger')
  return recordsDifference(model, ledger) ?? nightsDifference(model, ledger) ?? sellableDifference(model, memory)
}

function differs(oracle: StayDifference['oracle'], text: string): StayDifference {
  return { oracle, text }
}

function recordsDifference(model: StaysModel, { stays, roomTypes }: LoadedLedger): StayDifference | undefined {
  if (stays.length !== model.stays.size) return differs('S4', `${stays.length} stays, not ${model.stays.size}`)
  for (const { id, record, lines, replaced } of stays) {
    const name = unpackPropertyId(id, 0)
    const stay = model.stays.get(name)
    if (!stay) return differs('S4', `stay ${name} is not in the log`)
    const own = replyText(record.state, record.deadlineMs, record.total, record.index)
    const wanted = replyText(STAY_STATE[stay.state], stay.deadlineMs, stay.total, stay.index)
    if (own !== wanted) return differs('S3', `stay ${name} has ${own}, not ${wanted}`)
    const texts = lines.map(({ id: of, roomType, arrival, nights, rooms, flags }) =>
      [HOTEL_NAMES.get(hex(of)), roomTypes[roomType], formatDay(arrival), nights, rooms, flags].join(' '),
    )
    const known = stay.lines.map(({ propertyId, roomType, arrival, nights, rooms, uncounted }) =>
      [HOTEL_NAMES.get(propertyId), roomType, formatDay(arrival), nights, rooms, uncounted ? 1 : 0].join(' '),
    )
    if (texts.join() !== known.join()) return differs('S2', `stay ${name} has other lines: ${texts}, not ${known}`)
    const origin = replaced && unpackPropertyId(replaced.id, 0)
    if (origin !== stay.replaces?.id) return differs('S3', `stay ${name} replaces ${origin}, not ${stay.replaces?.id}`)
  }
  return undefined
}

/** The nights of the ledger add up to the model's, and each hold has all of its nights. */
function nightsDifference(model: StaysModel, { nights, roomTypes }: LoadedLedger): StayDifference | undefined {
  const found = new Map<string, number>()
  for (const { id, roomType, day, held, debt } of nights) {
    const room = roomTypes[roomType] as string
    const wanted = `${heldOn(model, hex(id), room, day)} held, debt ${debtOn(model, hex(id), room, day)}`
    const name = nightName(hex(id), room, day)
    if (`${held} held, debt ${debt}` !== wanted)
      return differs('S1', `${name} has ${held} held, debt ${debt}, not ${wanted}`)
    found.set(name, held)
  }
  for (const [stayId, stay] of model.stays) {
    if (stay.state !== 'held') continue
    for (const { propertyId, roomType, arrival, nights: count } of stay.lines) {
      for (let day = Math.max(arrival, model.droppedBefore); day < arrival + count; day++) {
        const name = nightName(propertyId, roomType, day)
        const held = found.get(name) ?? 0
        const rooms = ownOn(stay, propertyId, roomType, day)
        if (held < rooms) return differs('S2', `stay ${stayId} holds ${rooms} rooms of ${name}, which has ${held}`)
      }
    }
  }
  return undefined
}

function nightName(propertyId: string, room: string, day: number): string {
  return `${HOTEL_NAMES.get(propertyId)} ${room} ${formatDay(day)}`
}

const encoder = new TextEncoder()

/** Words are what may be sold: with debts compared before, sellable − debt = base − held. */
function sellableDifference(model: StaysModel, memory: Memory): StayDifference | undefined {
  for (const [id, hotel] of HOTEL_NAMES) {
    for (const [room, nights] of model.properties.get(id)?.rooms ?? []) {
      const name = encoder.encode(room)
      const number = findName(memory, NAMES.roomType, name, 0, name.length)
      for (const day of nights.keys()) {
        const night = readNight({ memory, reader: 0 }, packPropertyId(hotel) as Uint8Array, number, day)
        const left = typeof night === 'string' ? undefined : night.availability
        const wanted = sellableOn(model, id, room, day)
        if (left !== wanted) return differs('S1', `${nightName(id, room, day)} has ${left} left, not ${wanted}`)
      }
    }
  }
  return undefined
}

// The contribution of the ledger to the state digest, by an independent implementation

export function ledgerDigest(memory: Memory): Lanes {
  const { stays, nights, generations, roomTypes } = decodeLedger(encodeLedger(memory), 'ledger')
  const sum: Lanes = { lo: 0, hi: 0 }
  const add = (kind: number, words: readonly number[]): void => {
    const lanes = { lo: 0x6a09e667 ^ kind, hi: 0xbb67ae85 ^ kind }
    mix(lanes, words)
    sum.lo = (sum.lo + lanes.lo) >>> 0
    sum.hi = (sum.hi + lanes.hi) >>> 0
  }
  const namesOf = (place: number) => textWords(encoder.encode(roomTypes[place]))
  for (const { id, record, source, lines, replaced } of stays) {
    const { deadlineMs, total, index, timeMs, bookedIndex, heldSinceMs } = record
    const moments = [deadlineMs, total, index, timeMs, bookedIndex, heldSinceMs].flatMap(floatWords)
    const ofLines = [...lines, ...(replaced?.lines ?? [])].flatMap((line) => [
      ...[...idWords(line.id), line.generation, ...namesOf(line.roomType), line.arrival],
      (line.nights << 16) | (line.rooms << 8) | line.flags,
    ])
    const origin = replaced ? idWords(replaced.id) : []
    const head = [...idWords(id), record.state * 256 + lines.length, ...moments, ...textWords(source)]
    add(1, [...head, ...origin, ...ofLines])
  }
  for (const { id, generation } of generations) add(2, [...idWords(id), generation])
  for (const { id, roomType, day, held, debt } of nights)
    add(3, [...idWords(id), ...namesOf(roomType), day, held * 256 + debt])
  return sum
}

function idWords(id: Uint8Array): number[] {
  const view = viewOf(id)
  return [0, 4, 8, 12].map((at) => view.getInt32(at, true))
}

function textWords(text: Uint8Array): number[] {
  return [nameHash(0, text, 0, text.length), nameHash(1, text, 0, text.length)]
}

function floatWords(number: number): number[] {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, number, true)
  return [view.getUint32(0, true), view.getUint32(4, true)]
}

// Fates

const NEXT: { readonly [state in Fate['state']]: readonly Fate['state'][] } = {
  held: ['booked', 'released', 'expired'],
  booked: ['released', 'forgotten'],
  // Reinstated.
  released: ['held', 'booked', 'forgotten'],
  void: ['held', 'booked', 'forgotten'],
  // Taken again under its id, or by a confirmation.
  expired: ['held', 'booked', 'void', 'forgotten'],
  forgotten: ['held', 'booked', 'released', 'void'],
}

/** Why the states of the stays are not what they may be; '' if they are. @param promised indexes of acknowledged bookings */
export function fatesDifference({ fates }: StaysReference, promised: ReadonlyMap<string, number>): string {
  for (const [id, known] of fates) {
    for (const [n, { state }] of known.entries()) {
      const before = known[n - 1]?.state ?? 'forgotten'
      if (!NEXT[before].includes(state)) return `stay ${id} was ${before} and became ${state}`
    }
    const index = promised.get(id)
    const later = known.find((fate) => index !== undefined && fate.index > index)
    if (later && later.state !== 'released' && later.state !== 'forgotten')
      return `stay ${id} was acknowledged as booked at index ${index} and became ${later.state} at ${later.index}`
  }
  return ''
}
