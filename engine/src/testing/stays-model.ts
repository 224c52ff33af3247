/**
 * The exact model of stays (docs/design/stays.md#rules): base, holds and bookings apart, as plain objects. The store
 * keeps what is sellable instead; the model derives it.
 */

import { formatDay } from '@vacancy/shared'
import type { StayLine, StayState } from '@vacancy/shared/wire'

const HOUR_MS = 3_600_000

type ModelNight = { base: number; price: number; features: readonly string[] }
/** The instance of a property: a new one has none of the holds of the one before. */
type ModelProperty = { readonly instance: number; readonly rooms: Map<string, Map<string, ModelNight>> }
/** `deletions`: how often the property of this id had been deleted. */
type ModelLine = StayLine & { readonly instance: number; readonly deletions: number }
type ModelStay = {
  state: StayState
  deadlineMs: number
  total: number
  index: number
  timeMs: number
  sinceMs: number
  /** 0 while it was never booked. */
  bookedIndex: number
  /** A booking that was dropped, and released by its lines later. */
  readonly isOfForgotten?: boolean
  /** Ascending in the order in which stays reached their state. */
  order: number
  lines: readonly ModelLine[]
}
export type StaysModel = {
  readonly properties: Map<string, ModelProperty>
  readonly stays: Map<string, ModelStay>
  instances: number
  readonly deletions: Map<string, number>
  /** From this index on all bookings are known. */
  knownFrom: number
  /** Nights before it are gone. */
  droppedBefore: string
  today: string
  lastDate: string
  overflowed: number
  expired: number
  /** Changes of states so far. */
  changes: number
}

export type ModelAnswer = { readonly error: string; readonly stay?: ModelStay; readonly text?: string }

export function createStaysModel(today: number): StaysModel {
  return {
    properties: new Map(),
    stays: new Map(),
    instances: 0,
    deletions: new Map(),
    knownFrom: 0,
    droppedBefore: '',
    today: formatDay(today),
    lastDate: formatDay(today + 365),
    overflowed: 0,
    expired: 0,
    changes: 0,
  }
}

function datesOf({ arrival, nights }: StayLine): string[] {
  const first = Date.parse(arrival) / 86_400_000
  return Array.from({ length: nights }, (_, n) => formatDay(first + n))
}

function nightOf(model: StaysModel, propertyId: string, roomType: string, date: string): ModelNight | undefined {
  return date < model.droppedBefore ? undefined : model.properties.get(propertyId)?.rooms.get(roomType)?.get(date)
}

/** Rooms on hold on a night of the property as it is now. */
export function heldOn(model: StaysModel, propertyId: string, roomType: string, date: string): number {
  const instance = model.properties.get(propertyId)?.instance
  let rooms = 0
  for (const { state, lines } of model.stays.values()) {
    if (state !== 'held') continue
    for (const line of lines) {
      const isHere = line.propertyId === propertyId && line.instance === instance && line.roomType === roomType
      if (isHere && datesOf(line).includes(date)) rooms += line.rooms
    }
  }
  return rooms
}

/** What may be sold; undefined without a package. */
export function sellableOn(model: StaysModel, propertyId: string, roomType: string, date: string): number | undefined {
  const night = nightOf(model, propertyId, roomType, date)
  return night && Math.max(0, night.base - heldOn(model, propertyId, roomType, date))
}

export function debtOn(model: StaysModel, propertyId: string, roomType: string, date: string): number {
  const night = nightOf(model, propertyId, roomType, date)
  return night ? Math.max(0, heldOn(model, propertyId, roomType, date) - night.base) : 0
}

// Inventory

export function setProperty(model: StaysModel, propertyId: string): void {
  if (model.properties.has(propertyId)) return
  model.instances++
  model.properties.set(propertyId, { instance: model.instances, rooms: new Map() })
}

export function deleteProperty(model: StaysModel, propertyId: string): void {
  if (model.properties.delete(propertyId)) model.deletions.set(propertyId, deletionsOf(model, propertyId) + 1)
}

function deletionsOf({ deletions }: StaysModel, propertyId: string): number {
  return deletions.get(propertyId) ?? 0
}

/** What is left when a source counts `value` rooms and knows the bookings up to `index`. */
export function baseAsOf(
  model: StaysModel,
  { propertyId, roomType, date }: { propertyId: string; roomType: string; date: string },
  value: number,
  index: number,
): number {
  let base = value
  for (const { state, lines, ...stay } of model.stays.values()) {
    const wasKnown = stay.isOfForgotten === true || (stay.bookedIndex > 0 && stay.bookedIndex <= index)
    const sign =
      state === 'booked' && stay.bookedIndex > index
        ? -1
        : state === 'released' && wasKnown && stay.index > index
          ? 1
          : 0
    for (const line of lines) {
      const isOfNight = line.propertyId === propertyId && line.roomType === roomType && datesOf(line).includes(date)
      if (isOfNight && line.deletions === deletionsOf(model, propertyId)) base += sign * line.rooms
    }
  }
  return Math.min(255, Math.max(0, base))
}

export function setPackage(
  model: StaysModel,
  propertyId: string,
  roomType: string,
  date: string,
  given: { availability?: number; finalPrice?: number; rateFeatures?: readonly string[] },
): void {
  const rooms = model.properties.get(propertyId)?.rooms
  if (!rooms) return
  const nights = rooms.get(roomType) ?? new Map<string, ModelNight>()
  rooms.set(roomType, nights)
  const night = nights.get(date) ?? { base: 0, price: 0, features: [] }
  nights.set(date, night)
  if (given.availability !== undefined) night.base = given.availability
  if (given.finalPrice !== undefined) night.price = given.finalPrice
  if (given.rateFeatures !== undefined) night.features = given.rateFeatures
}

/** @returns the error, '' after a change */
export function changeRooms(
  model: StaysModel,
  command: 'SETROOMAVL' | 'INCROOMAVL' | 'DECROOMAVL',
  propertyId: string,
  roomType: string,
  date: string,
  amount: number,
): string {
  const night = nightOf(model, propertyId, roomType, date)
  if (!night) return 'NOT_FOUND'
  if (command === 'SETROOMAVL') night.base = amount
  if (command === 'INCROOMAVL') {
    if (night.base + amount > 255) return 'OVERFLOW'
    night.base += amount
  }
  if (command === 'DECROOMAVL') {
    if (night.base - heldOn(model, propertyId, roomType, date) < amount) return 'UNDERFLOW'
    night.base -= amount
  }
  return ''
}

export function dropBefore(model: StaysModel, date: string): void {
  if (date <= model.droppedBefore) return
  model.droppedBefore = date
  for (const { rooms } of model.properties.values()) {
    for (const nights of rooms.values()) for (const day of nights.keys()) if (day < date) nights.delete(day)
  }
}

// Time

/** What every entry does first. */
export function passTime(model: StaysModel, timeMs: number, index: number): void {
  const due = [...model.stays].filter(([, { state, deadlineMs }]) => state === 'held' && deadlineMs <= timeMs)
  due.sort(([a, stay], [b, other]) => stay.deadlineMs - other.deadlineMs || (a < b ? -1 : 1))
  for (const [, stay] of due) {
    reach(model, stay, { state: 'expired', deadlineMs: 0, index, timeMs })
    model.expired++
  }
  forgetSettled(model, (oldest) => oldest.timeMs <= timeMs - 72 * HOUR_MS)
}

function reach(model: StaysModel, stay: ModelStay, change: Partial<ModelStay>): void {
  model.changes++
  Object.assign(stay, change, { order: model.changes })
}

/** Drops settled records, oldest first, up to the first one that is to be kept. */
function forgetSettled(model: StaysModel, isDropped: (oldest: ModelStay) => boolean): void {
  const settled = [...model.stays].filter(([, { state }]) => state !== 'held')
  settled.sort(([, a], [, b]) => a.order - b.order)
  for (const [id, stay] of settled) {
    if (!isDropped(stay)) return
    if (stay.bookedIndex > 0 || stay.isOfForgotten) model.knownFrom = Math.max(model.knownFrom, stay.index)
    model.stays.delete(id)
  }
}

const BYTES = { stay: 112, line: 32, property: 40, night: 32 } as const

/** Bytes of the ledger (docs/design/stays.md#ledger). */
function ledgerBytes(model: StaysModel): number {
  let bytes = 0
  const properties = new Set<string>()
  const nights = new Set<string>()
  for (const { state, lines } of model.stays.values()) {
    bytes += BYTES.stay + lines.length * BYTES.line
    for (const line of lines) {
      properties.add(line.propertyId)
      if (state !== 'held' || !isHere(model, line)) continue
      for (const date of datesOf(line)) {
        if (date >= model.droppedBefore) nights.add(`${line.propertyId}/${line.roomType}/${date}`)
      }
    }
  }
  return bytes + properties.size * BYTES.property + nights.size * BYTES.night
}

/** What a new stay does last: beyond the bytes of the setting, old records go. */
export function makeRoom(model: StaysModel, bytesMax: number, timeMs: number): void {
  forgetSettled(model, (oldest) => ledgerBytes(model) > bytesMax && oldest.timeMs <= timeMs - HOUR_MS)
}

/** An operator has set shard time: no hold lasts longer than a day from then. */
export function clampHolds(model: StaysModel, timeMs: number): void {
  for (const stay of model.stays.values()) {
    if (stay.state !== 'held' || stay.deadlineMs <= timeMs + 24 * HOUR_MS) continue
    reach(model, stay, { deadlineMs: timeMs + 24 * HOUR_MS, sinceMs: timeMs })
  }
}

// Stays

export type Taking = {
  readonly stayId: string
  readonly lines: readonly StayLine[]
  readonly maxTotal?: number
  readonly rateFeatures?: readonly string[]
  readonly replaces?: string
  readonly seconds?: number
}

export function takeStay(
  model: StaysModel,
  { stayId, lines, maxTotal, rateFeatures = [], replaces, seconds }: Taking,
  timeMs: number,
  index: number,
): ModelAnswer {
  const stay = model.stays.get(stayId)
  const isHold = seconds !== undefined
  if (stay && (stay.state === 'released' || stay.state === 'void')) return { error: 'CONFLICT' }
  if (stay && stay.state !== 'expired') {
    if (!isSame(stay.lines, lines)) return { error: 'CONFLICT' }
    if (stay.state === 'booked') return { error: '', stay }
    if (isHold) stay.deadlineMs = Math.min(timeMs + seconds * 1000, stay.sinceMs + 24 * HOUR_MS)
    else if (maxTotal !== undefined && stay.total > maxTotal) return { error: 'PRICE_CHANGED' }
    else book(model, stay, timeMs, index)
    return { error: '', stay }
  }
  const old = replaces === undefined ? undefined : model.stays.get(replaces)
  if (replaces !== undefined && !old) return { error: 'NOT_FOUND' }
  for (const { propertyId, roomType, ...line } of lines) {
    if (!model.properties.get(propertyId)?.rooms.has(roomType)) return { error: 'NOT_FOUND' }
    for (const date of datesOf({ propertyId, roomType, ...line })) {
      if (date < model.today || date > model.lastDate || date < model.droppedBefore)
        return { error: 'VALIDATION_ERROR' }
      if (!nightOf(model, propertyId, roomType, date)) return { error: 'NOT_FOUND' }
    }
  }
  // Everything happens on a copy, which replaces the model if nothing is refused.
  const draft = structuredClone(model)
  const replaced = replaces === undefined ? undefined : draft.stays.get(replaces)
  const ends = replaced !== undefined && isTaken(replaced)
  if (ends) end(draft, replaced, timeMs, index)
  let total = 0
  let lacks = false
  const taken: ModelLine[] = []
  const times = { deadlineMs: 0, index, timeMs, sinceMs: timeMs, bookedIndex: 0 }
  const newcomer: ModelStay = { state: 'held', total: 0, order: 0, lines: taken, ...times }
  draft.stays.set(stayId, newcomer)
  for (const line of lines) {
    const { instance } = draft.properties.get(line.propertyId) as ModelProperty
    for (const date of datesOf(line)) {
      const night = nightOf(draft, line.propertyId, line.roomType, date) as ModelNight
      const left = sellableOn(draft, line.propertyId, line.roomType, date) as number
      if (left < line.rooms) return { error: 'SOLD_OUT' }
      if (!line.uncounted) total += night.price * line.rooms
      lacks ||= rateFeatures.some((name) => !night.features.includes(name))
    }
    taken.push({ ...line, instance, deletions: deletionsOf(draft, line.propertyId) })
  }
  if (lacks || (maxTotal !== undefined && total > maxTotal)) return { error: 'PRICE_CHANGED' }
  newcomer.total = total
  if (isHold) reach(draft, newcomer, { deadlineMs: timeMs + seconds * 1000 })
  else book(draft, newcomer, timeMs, index)
  // The replaced stay reaches its state last.
  if (ends) reach(draft, replaced, {})
  adopt(model, draft)
  return { error: '', stay: newcomer }
}

function adopt(model: StaysModel, draft: StaysModel): void {
  model.properties.clear()
  for (const [id, property] of draft.properties) model.properties.set(id, property)
  model.stays.clear()
  for (const [id, stay] of draft.stays) model.stays.set(id, stay)
  model.overflowed = draft.overflowed
  model.changes = draft.changes
}

function isSame(a: readonly StayLine[], b: readonly StayLine[]): boolean {
  const content = ({ propertyId, roomType, arrival, nights, rooms, uncounted = false }: StayLine) =>
    JSON.stringify([propertyId, roomType, arrival, nights, rooms, uncounted])
  return a.length === b.length && a.every((line, n) => content(line) === content(b[n] as StayLine))
}

function isTaken({ state }: ModelStay): boolean {
  return state === 'held' || state === 'booked'
}

/** A hold becomes a booking: held and base fall together. */
function book(model: StaysModel, stay: ModelStay, timeMs: number, index: number): void {
  for (const line of stay.lines) {
    if (model.properties.get(line.propertyId)?.instance !== line.instance) continue
    for (const date of datesOf(line)) {
      const night = nightOf(model, line.propertyId, line.roomType, date)
      if (night) night.base -= line.rooms
    }
  }
  reach(model, stay, { state: 'booked', deadlineMs: 0, index, timeMs, bookedIndex: index })
}

/** A hold or booking ends. A cancelled booking raises the base, up to 255. */
function end(model: StaysModel, stay: ModelStay, timeMs: number, index: number): void {
  if (stay.state === 'booked')
    giveBack(
      model,
      stay.lines.filter((line) => isHere(model, line)),
    )
  reach(model, stay, { state: 'released', deadlineMs: 0, index, timeMs })
}

function isHere(model: StaysModel, line: ModelLine): boolean {
  return model.properties.get(line.propertyId)?.instance === line.instance
}

function giveBack(model: StaysModel, lines: readonly StayLine[]): void {
  for (const line of lines) {
    for (const date of datesOf(line)) {
      const night = nightOf(model, line.propertyId, line.roomType, date)
      if (!night) continue
      model.overflowed += Math.max(0, night.base + line.rooms - 255)
      night.base = Math.min(255, night.base + line.rooms)
    }
  }
}

export function confirmStay(
  model: StaysModel,
  { stayId, retake = false, maxTotal }: { stayId: string; retake?: boolean; maxTotal?: number },
  timeMs: number,
  index: number,
): ModelAnswer {
  const stay = model.stays.get(stayId)
  if (!stay) return { error: 'NOT_FOUND' }
  if (stay.state === 'booked') return { error: '', stay }
  if (stay.state === 'expired' && !retake) return { error: 'EXPIRED' }
  if (stay.state === 'expired') {
    const lines = stay.lines.map(({ instance: _, deletions: _deletions, ...line }) => line)
    return takeStay(model, { stayId, lines, ...(maxTotal !== undefined && { maxTotal }) }, timeMs, index)
  }
  if (stay.state !== 'held') return { error: 'CONFLICT' }
  book(model, stay, timeMs, index)
  return { error: '', stay }
}

export function releaseStay(
  model: StaysModel,
  { stayId, lines, isVoid = false }: { stayId: string; lines?: readonly StayLine[]; isVoid?: boolean },
  timeMs: number,
  index: number,
): ModelAnswer {
  const stay = model.stays.get(stayId)
  if (stay) {
    if (lines && !isSame(stay.lines, lines)) return { error: 'CONFLICT' }
    if (isTaken(stay)) end(model, stay, timeMs, index)
    return { error: '', stay }
  }
  if (!lines && !isVoid) return { error: 'NOT_FOUND' }
  if (lines) giveBack(model, lines)
  const known = (lines ?? []).map((line) => ({
    ...line,
    instance: -1,
    deletions: deletionsOf(model, line.propertyId),
  }))
  const times = { deadlineMs: 0, index, timeMs, sinceMs: 0, bookedIndex: 0 }
  const settled = { ...times, total: 0, order: 0, lines: known, isOfForgotten: lines !== undefined }
  const released: ModelStay = { state: lines ? 'released' : 'void', ...settled }
  reach(model, released, {})
  model.stays.set(stayId, released)
  return { error: '', stay: released }
}
