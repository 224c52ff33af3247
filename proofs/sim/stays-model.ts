/**
 * The exact model of stays (docs/design/stays.md#rules), from feature level 4 on: base, holds and bookings apart, over the
 * packages of the model of the store. The store keeps what is sellable instead; the model derives it.
 */

import type { StayState } from '@vacancy/shared/wire'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The word of a package, with the rooms before holds. */
export type Night = { readonly lo: number; readonly hi: number }
/** By room type and day. */
export type Rooms = Map<string, Map<number, Night>>
/** By id, in hexadecimal. */
type Inventory = ReadonlyMap<string, { readonly rooms: Rooms }>

export type StayLine = {
  readonly propertyId: string
  readonly roomType: string
  /** Day. */
  readonly arrival: number
  readonly nights: number
  readonly rooms: number
  readonly uncounted: boolean
}
export type ModelStay = {
  state: StayState
  deadlineMs: number
  total: number
  index: number
  timeMs: number
  sinceMs: number
  /** 0 while it was never booked. */
  bookedIndex: number
  /** A booking without a record, released by its lines. */
  readonly isUnrecorded?: boolean
  /** Ascending in the order in which stays reached their state. */
  order: number
  lines: readonly StayLine[]
  /** The stay that this hold takes the place of when it is confirmed, with its lines at the time of the hold. */
  readonly replaces?: { readonly id: string; readonly lines: readonly StayLine[] } | undefined
}
export type StaysModel = ReturnType<typeof createStaysModel>

export type ModelAnswer = { readonly error: string; readonly stay?: ModelStay }

/** @param properties changed by the model of the store, too */
export function createStaysModel(properties: Inventory) {
  return {
    properties,
    stays: new Map<string, ModelStay>(),
    /** From this index on all bookings are known. */
    knownFrom: 0,
    /** Nights before it are gone. */
    droppedBefore: 0,
    today: 0,
    lastDay: 0,
    /** Shard time. */
    timeMs: 0,
    /** Changes of states so far. */
    changes: 0,
  }
}

function daysOf({ arrival, nights }: StayLine): number[] {
  return Array.from({ length: nights }, (_, n) => arrival + n)
}

function nightOf({ properties }: StaysModel, propertyId: string, roomType: string, day: number): Night | undefined {
  return properties.get(propertyId)?.rooms.get(roomType)?.get(day)
}

/** Rooms of a night before holds. */
export function baseOf({ lo }: Night): number {
  return lo & 0xff
}

function roomsOn(lines: readonly StayLine[], propertyId: string, roomType: string, day: number): number {
  let rooms = 0
  for (const line of lines) {
    const isHere = line.propertyId === propertyId && line.roomType === roomType && daysOf(line).includes(day)
    if (isHere) rooms += line.rooms
  }
  return rooms
}

/** What a held stay has on hold itself: only what the one that it replaces lacks. */
export function ownOn({ lines, replaces }: ModelStay, propertyId: string, roomType: string, day: number): number {
  const kept = replaces ? roomsOn(replaces.lines, propertyId, roomType, day) : 0
  return Math.max(0, roomsOn(lines, propertyId, roomType, day) - kept)
}

/** Rooms on hold on a night, whether or not there is a package. */
export function heldOn(model: StaysModel, propertyId: string, roomType: string, day: number): number {
  let rooms = 0
  for (const stay of model.stays.values()) if (stay.state === 'held') rooms += ownOn(stay, propertyId, roomType, day)
  return rooms
}

/** What may be sold; undefined without a package. */
export function sellableOn(model: StaysModel, propertyId: string, roomType: string, day: number): number | undefined {
  const night = nightOf(model, propertyId, roomType, day)
  return night && Math.max(0, baseOf(night) - heldOn(model, propertyId, roomType, day))
}

/** Rooms on hold that are not there. */
export function debtOn(model: StaysModel, propertyId: string, roomType: string, day: number): number {
  const night = nightOf(model, propertyId, roomType, day)
  return Math.max(0, heldOn(model, propertyId, roomType, day) - (night ? baseOf(night) : 0))
}

/** What is left when a source counts `value` rooms and knows the bookings up to `index`. */
export function baseAsOf(
  model: StaysModel,
  { propertyId, roomType, day }: { propertyId: string; roomType: string; day: number },
  value: number,
  index: number,
): number {
  let base = value
  for (const { state, lines, ...stay } of model.stays.values()) {
    const wasKnown = stay.isUnrecorded === true || (stay.bookedIndex > 0 && stay.bookedIndex <= index)
    const isNew = state === 'booked' && stay.bookedIndex > index
    const sign = isNew ? -1 : state === 'released' && wasKnown && stay.index > index ? 1 : 0
    base += sign * roomsOn(lines, propertyId, roomType, day)
  }
  return Math.min(255, Math.max(0, base))
}

// Time

/** What every entry does first. */
export function passTime(model: StaysModel, timeMs: number, index: number): void {
  model.timeMs = timeMs
  const due = [...model.stays].filter(([, { state, deadlineMs }]) => state === 'held' && deadlineMs <= timeMs)
  due.sort(([a, stay], [b, other]) => stay.deadlineMs - other.deadlineMs || (a < b ? -1 : 1))
  for (const [, stay] of due) reach(model, stay, { state: 'expired', deadlineMs: 0, index, timeMs })
  const today = Math.floor(timeMs / DAY_MS)
  for (const [id, stay] of model.stays) if (stay.state !== 'held' && forgetDayOf(stay) <= today) forget(model, id)
}

function reach(model: StaysModel, stay: ModelStay, change: Partial<ModelStay>): void {
  model.changes++
  Object.assign(stay, change, { order: model.changes })
}

/** The day after the last night; 0 without lines. */
function departureOf({ lines }: ModelStay): number {
  return Math.max(0, ...lines.map(({ arrival, nights }) => arrival + nights))
}

/** 72 h after its last night, or after it ended, rounded up to a whole day. */
function forgetDayOf(stay: ModelStay): number {
  const { state, timeMs } = stay
  const departureMs = departureOf(stay) * DAY_MS
  const longest = timeMs + 366 * DAY_MS
  const ends = { booked: departureMs, released: Math.max(timeMs, departureMs), void: longest, expired: timeMs, held: 0 }
  return Math.ceil((Math.min(ends[state], longest) + 72 * HOUR_MS) / DAY_MS)
}

function forget(model: StaysModel, id: string): void {
  const stay = model.stays.get(id) as ModelStay
  const changedRooms = stay.bookedIndex > 0 || stay.isUnrecorded
  if (changedRooms && departureOf(stay) > model.droppedBefore) model.knownFrom = Math.max(model.knownFrom, stay.index)
  model.stays.delete(id)
}

const LISTS = 512

/** Settled stays as the lists of days have them: the first list is that of 100 days ago. */
function listsOf(model: StaysModel, isBooked: boolean): [id: string, stay: ModelStay][][] {
  const from = Math.max(0, Math.floor(model.timeMs / DAY_MS) - 100)
  const lists: [string, ModelStay][][] = Array.from({ length: LISTS }, () => [])
  const settled = [...model.stays].filter(([, { state }]) => state !== 'held' && (state === 'booked') === isBooked)
  settled.sort(([, a], [, b]) => a.order - b.order)
  for (const each of settled) lists[(((forgetDayOf(each[1]) - from) % LISTS) + LISTS) % LISTS]?.push(each)
  return lists
}

const BYTES = { stay: 112, line: 32, property: 40, night: 32, id: 16 } as const

/** Bytes of the ledger (docs/design/stays.md#ledger). */
function ledgerBytes(model: StaysModel): number {
  let bytes = 0
  const properties = new Set<string>()
  const nights = new Set<string>()
  for (const stay of model.stays.values()) {
    const { state, lines, replaces } = stay
    const all = [...lines, ...(replaces?.lines ?? [])]
    bytes += BYTES.stay + all.length * BYTES.line + (replaces ? BYTES.id : 0)
    for (const { propertyId } of all) properties.add(propertyId)
    for (const line of state === 'held' ? lines : []) {
      for (const day of daysOf(line)) {
        const isOwn = day >= model.droppedBefore && ownOn(stay, line.propertyId, line.roomType, day) > 0
        if (isOwn) nights.add(`${line.propertyId}/${line.roomType}/${day}`)
      }
    }
  }
  return bytes + properties.size * BYTES.property + nights.size * BYTES.night
}

/** What a new stay does last: beyond the bytes of the setting, stays that have ended go, then bookings. */
export function makeRoom(model: StaysModel, bytesMax: number, timeMs: number): void {
  const firstOf = (isBooked: boolean) =>
    listsOf(model, isBooked)
      .flatMap(([first]) => (first ? [first] : []))
      .find(([, stay]) => stay.timeMs <= timeMs - HOUR_MS)
  while (ledgerBytes(model) > bytesMax) {
    const [ended, booked] = [firstOf(false), firstOf(true)]
    if (!ended && !booked) return
    const hasDeparted = booked && departureOf(booked[1]) * DAY_MS <= timeMs
    const isSooner = ended && booked && forgetDayOf(booked[1]) <= forgetDayOf(ended[1])
    const next = booked && (!ended || (hasDeparted && isSooner)) ? booked : ended
    forget(model, (next as [string, ModelStay])[0])
  }
}

/** An operator has set shard time: no hold lasts longer than a day from then, and no stay ended later. */
export function clampStays(model: StaysModel, timeMs: number): void {
  for (const stay of model.stays.values()) {
    if (stay.state !== 'held' || stay.deadlineMs <= timeMs + 24 * HOUR_MS) continue
    reach(model, stay, { deadlineMs: timeMs + 24 * HOUR_MS, sinceMs: timeMs })
  }
  const late = [false, true].flatMap((isBooked) => listsOf(model, isBooked).flat())
  for (const [, stay] of late) if (stay.timeMs > timeMs) reach(model, stay, { timeMs })
  model.timeMs = timeMs
}

// Stays

export type Taking = {
  readonly stayId: string
  readonly lines: readonly StayLine[]
  readonly maxTotal?: number
  /** Bits of rate features. */
  readonly features?: number
  readonly replaces?: string
  readonly seconds?: number
  /** The index of a release, or 1 for any. */
  readonly reinstate?: number
}

/** What a command changes: stays that end, one that stands until a hold is confirmed, and the lines that it takes. */
type Change = {
  readonly ended: readonly ModelStay[]
  readonly standing?: ModelStay | undefined
  readonly lines: readonly StayLine[]
  readonly isHold?: boolean
  /** Whether nights that have passed stay as they were, whoever has them. */
  readonly keepsPast?: boolean
  readonly features?: number
  readonly maxTotal?: number | undefined
}
type Sums = { propertyId: string; roomType: string; day: number; freed: number; released: number; wanted: number }

function isPast({ today, droppedBefore }: StaysModel, day: number): boolean {
  return day < today || day < droppedBefore
}

/** Makes a change if nothing refuses it. States are changed by the caller. */
function change(model: StaysModel, given: Change): { readonly error: string; readonly total: number } {
  const { ended, standing, lines, isHold = false, keepsPast = false, features = 0, maxTotal } = given
  const refused = (error: string) => ({ error, total: 0 })
  const kept = [...ended, ...(standing ? [standing] : [])].flatMap((stay) => (isPending(stay) ? [] : stay.lines))
  const isKept = (propertyId: string, roomType: string, day: number) =>
    keepsPast || roomsOn(lines, propertyId, roomType, day) <= roomsOn(kept, propertyId, roomType, day)
  for (const line of lines) {
    const { propertyId, roomType } = line
    for (const day of daysOf(line)) {
      if (isPast(model, day) && isKept(propertyId, roomType, day)) continue
      if (!model.properties.get(propertyId)?.rooms.has(roomType)) return refused('NOT_FOUND')
      if (isPast(model, day) || day > model.lastDay) return refused('VALIDATION_ERROR')
      if (!nightOf(model, propertyId, roomType, day)) return refused('NOT_FOUND')
    }
  }
  const sums = new Map<string, Sums>()
  const sumOf = (propertyId: string, roomType: string, day: number): Sums => {
    const key = `${propertyId}/${roomType}/${day}`
    const known = sums.get(key) ?? { propertyId, roomType, day, freed: 0, released: 0, wanted: 0 }
    sums.set(key, known)
    return known
  }
  for (const { state, lines: own } of ended) {
    for (const line of state === 'booked' ? own : []) {
      const { propertyId, roomType, rooms } = line
      for (const day of daysOf(line)) {
        const isThere = !isPast(model, day) && nightOf(model, propertyId, roomType, day)
        if (isThere) sumOf(propertyId, roomType, day).freed += rooms
      }
    }
  }
  let total = 0
  let lacks = false
  for (const line of lines) {
    const { propertyId, roomType, rooms, uncounted } = line
    for (const day of daysOf(line)) {
      if (isPast(model, day)) continue
      const night = nightOf(model, propertyId, roomType, day) as Night
      const sum = sumOf(propertyId, roomType, day)
      sum.wanted += rooms
      const ownHeld = ended.filter(({ state }) => state === 'held')
      sum.released = ownHeld.reduce((rest, stay) => rest + ownOn(stay, propertyId, roomType, day), 0)
      const free = sellableOn(model, propertyId, roomType, day) as number
      const credit = standing ? roomsOn(standing.lines, propertyId, roomType, day) : 0
      if (sum.wanted > free + sum.freed + sum.released + credit) return refused('SOLD_OUT')
      if (!isHold && sum.wanted > baseOf(night) + sum.freed) return refused('SOLD_OUT')
      if (!uncounted) total += (~night.hi >>> 0) * rooms
      lacks ||= (features & ~(night.lo >>> 8)) !== 0
    }
  }
  if (lacks || (maxTotal !== undefined && total > maxTotal)) return refused('PRICE_CHANGED')
  for (const { propertyId, roomType, day, freed, wanted } of sums.values()) {
    const { lo, hi } = nightOf(model, propertyId, roomType, day) as Night
    const base = baseOf({ lo, hi }) + freed - (isHold ? 0 : wanted)
    const word = ((lo & 0xffffff00) | Math.min(255, base)) >>> 0
    model.properties.get(propertyId)?.rooms.get(roomType)?.set(day, { lo: word, hi })
  }
  return { error: '', total }
}

export function takeStay(model: StaysModel, given: Taking, timeMs: number, index: number): ModelAnswer {
  const { stayId, lines, maxTotal, replaces, seconds, reinstate = 0 } = given
  const stay = model.stays.get(stayId)
  const isHold = seconds !== undefined
  const isOver = stay && (stay.state === 'released' || stay.state === 'void')
  if (isOver && reinstate !== 1 && reinstate !== stay.index) return { error: 'CONFLICT' }
  if (stay && !isOver && stay.state !== 'expired') {
    if (!isSame(stay.lines, lines)) return { error: 'CONFLICT' }
    if (stay.state === 'booked') return { error: '', stay }
    if (isHold) extend(model, stay, timeMs + seconds * 1000)
    else if (maxTotal !== undefined && stay.total > maxTotal) return { error: 'PRICE_CHANGED' }
    else return book(model, stay, timeMs, index)
    return { error: '', stay }
  }
  const old = replaces === undefined ? undefined : model.stays.get(replaces)
  if (replaces !== undefined && !old) return { error: 'NOT_FOUND' }
  return take(model, given, { replaced: old && isTaken(old) ? old : undefined, timeMs, index })
}

function extend(model: StaysModel, stay: ModelStay, deadlineMs: number): void {
  stay.deadlineMs = Math.min(deadlineMs, stay.sinceMs + 24 * HOUR_MS)
  keepUntil(replacedBy(model, stay), stay.deadlineMs)
}

/** A cart that is to be replaced stands at least as long as the new one. */
function keepUntil(stay: ModelStay | undefined, deadlineMs: number): void {
  if (stay?.state === 'held') stay.deadlineMs = Math.max(stay.deadlineMs, deadlineMs)
}

function isPending({ state, replaces }: ModelStay): boolean {
  return state === 'held' && replaces !== undefined
}

/** The stay that a hold replaces, if it still has the same rooms. */
function replacedBy({ stays }: StaysModel, { replaces }: ModelStay): ModelStay | undefined {
  const found = replaces && stays.get(replaces.id)
  return found && isTaken(found) && !isPending(found) && isSame(found.lines, replaces.lines) ? found : undefined
}

function idOf({ stays }: StaysModel, stay: ModelStay): string {
  for (const [id, each] of stays) if (each === stay) return id
  return ''
}

function take(
  model: StaysModel,
  { stayId, lines, maxTotal, features = 0, seconds }: Taking,
  { replaced, timeMs, index }: { replaced: ModelStay | undefined; timeMs: number; index: number },
): ModelAnswer {
  const isHold = seconds !== undefined
  // A change of a change takes its place; the stay that both change stands.
  const isChange = replaced && isPending(replaced)
  const origin = isChange ? replacedBy(model, replaced) : replaced
  const standing = isHold ? origin : undefined
  const ended = [...(isChange ? [replaced] : []), ...(!isHold && origin ? [origin] : [])]
  const { error, total } = change(model, { ended, standing, lines, isHold, features, maxTotal })
  if (error !== '') return { error }
  const sinceMs = replaced?.state === 'held' ? replaced.sinceMs : timeMs
  const deadlineMs = isHold ? Math.min(timeMs + seconds * 1000, sinceMs + 24 * HOUR_MS) : 0
  const link = standing && { id: idOf(model, standing), lines: standing.lines }
  const times = { deadlineMs, index, timeMs, sinceMs: isHold ? sinceMs : 0, bookedIndex: isHold ? 0 : index }
  const stay: ModelStay = { state: isHold ? 'held' : 'booked', total, order: 0, lines, replaces: link, ...times }
  model.stays.set(stayId, stay)
  reach(model, stay, {})
  for (const each of ended) reach(model, each, { state: 'released', deadlineMs: 0, index, timeMs })
  keepUntil(standing, deadlineMs)
  return { error: '', stay }
}

function isSame(a: readonly StayLine[], b: readonly StayLine[]): boolean {
  const content = ({ propertyId, roomType, arrival, nights, rooms, uncounted = false }: StayLine) =>
    JSON.stringify([propertyId, roomType, arrival, nights, rooms, uncounted])
  return a.length === b.length && a.every((line, n) => content(line) === content(b[n] as StayLine))
}

function isTaken({ state }: ModelStay): boolean {
  return state === 'held' || state === 'booked'
}

/** A hold becomes a booking, and ends the stay that it replaces, if all of its rooms are there. */
function book(model: StaysModel, stay: ModelStay, timeMs: number, index: number): ModelAnswer {
  const replaced = replacedBy(model, stay)
  const ended = [stay, ...(replaced ? [replaced] : [])]
  const { error } = change(model, { ended, lines: stay.lines, keepsPast: true })
  if (error !== '') return { error }
  reach(model, stay, { state: 'booked', deadlineMs: 0, index, timeMs, bookedIndex: index })
  if (replaced) reach(model, replaced, { state: 'released', deadlineMs: 0, index, timeMs })
  return { error: '', stay }
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
    const { lines } = stay
    const given = { stayId, lines, ...(maxTotal !== undefined && { maxTotal }) }
    const answer = take(model, given, { replaced: replacedBy(model, stay), timeMs, index })
    const isOver = lines.some((line) => daysOf(line).some((day) => isPast(model, day)))
    return answer.error === 'VALIDATION_ERROR' && isOver ? { error: 'EXPIRED' } : answer
  }
  return stay.state === 'held' ? book(model, stay, timeMs, index) : { error: 'CONFLICT' }
}

type Release = {
  readonly stayId: string
  readonly lines?: readonly StayLine[]
  readonly isVoid?: boolean
  readonly isUnrecorded?: boolean
  /** Index of the booking or hold that it ends; without it, any. */
  readonly bookedAt?: number | undefined
}

export function releaseStay(
  model: StaysModel,
  { stayId, lines, isVoid = false, isUnrecorded = false, bookedAt }: Release,
  timeMs: number,
  index: number,
): ModelAnswer {
  const stay = model.stays.get(stayId)
  if (stay) {
    if (lines && !isSame(stay.lines, lines)) return { error: 'CONFLICT' }
    if (isTaken(stay) && bookedAt !== undefined && bookedAt !== stay.index) return { error: 'CONFLICT' }
    if (isVoid && stay.state === 'expired') reach(model, stay, { state: 'void', index, timeMs })
    if (!isTaken(stay)) return { error: '', stay }
    change(model, { ended: [stay], lines: [] })
    reach(model, stay, { state: 'released', deadlineMs: 0, index, timeMs })
    return { error: '', stay }
  }
  if (!isVoid && !isUnrecorded) return { error: 'NOT_FOUND' }
  const times = { deadlineMs: 0, index, timeMs, sinceMs: 0, bookedIndex: 0 }
  const settled = { ...times, total: 0, order: 0, lines: lines ?? [], isUnrecorded }
  if (isUnrecorded) change(model, { ended: [{ ...settled, state: 'booked' }], lines: [] })
  const released: ModelStay = { state: isUnrecorded ? 'released' : 'void', ...settled }
  reach(model, released, {})
  model.stays.set(stayId, released)
  return { error: '', stay: released }
}
