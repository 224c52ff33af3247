/**
 * The records of the ledger in shared memory: stays with their lines, and the properties that they name
 * (docs/design/stays.md#ledger). Held stays form a list in the order in which they were held, settled ones a list for
 * each day on which they are forgotten. Lines of a property form a list, too. Nights with holds are in nights.ts.
 */

import { STAY_STATE } from '@vacancy/shared/wire'
import { addCharge } from './charge.ts'
import { touch } from './cow.ts'
import { hashOfName, NAMES } from './dictionary.ts'
import { nameHash } from './digest.ts'
import { findId, putId, removeId } from './id-index.ts'
import { FORGET_SLOTS, STATE, STAY, STAY_LINE, STAY_NIGHT, STAY_PROPERTY } from './layout.ts'
import { idOfKey, keyOfId, pushDeadline, replaceDeadlines } from './ledger.ts'
import {
  addDigest,
  allocateRecord,
  featureLevel,
  LEDGER_LEVEL,
  latestTime,
  type Memory,
  type Store,
  setState,
  state,
} from './store.ts'
import { field, setField } from './table-fields.ts'
import { retire } from './version.ts'

/** One line as a command or a snapshot has it. */
export type LineRecord = {
  /** 16 packed bytes at `idStart`. */
  readonly id: Uint8Array
  readonly idStart: number
  /** Number of the name. */
  readonly roomType: number
  readonly arrival: number
  readonly nights: number
  readonly rooms: number
  readonly flags: number
}

/** Everything of a stay but its lines. */
export type StayRecord = {
  readonly state: number
  readonly deadlineMs: number
  readonly total: number
  readonly index: number
  readonly timeMs: number
  readonly bookedIndex: number
  readonly heldSinceMs: number
}

/** The stay that another one is to replace: its packed id at `idStart`, and its lines as they were then. */
export type ReplacedStay = {
  readonly id: Uint8Array
  readonly idStart: number
  readonly lines: readonly (LineRecord & { readonly generation: number })[]
}

export function stayBytes(lines: number, credits = 0): number {
  return STAY.bytes + (lines + credits) * STAY_LINE.bytes + (credits === 0 ? 0 : ID_BYTES)
}
const ID_BYTES = 16

/** @returns address of the stay with the packed id at `start`, 0 when there is none */
export function findStay({ memory, writer }: Store, bytes: Uint8Array, start: number): number {
  return findId(writer.ledger.stays, memory.u8, bytes, start)
}

/** The same by the text of the id in the heap of deadlines. */
export function findStayOf(store: Store, key: string): number {
  return findStay(store, idOfKey(key), 0)
}

export function stateOf({ u8 }: Memory, stay: number): number {
  return u8[stay + STAY.state]
}

export function lineCount({ u8 }: Memory, stay: number): number {
  return u8[stay + STAY.lines]
}

/** Lines of the stay that this one was to replace, which follow its own: `lineOf(stay, lineCount + n)`. */
export function creditCount({ u8 }: Memory, stay: number): number {
  return u8[stay + STAY.credits]
}

/** Address of the packed id of the stay that this one was to replace; 0 without one. */
export function replacedIdOf(memory: Memory, stay: number): number {
  const credits = creditCount(memory, stay)
  return credits === 0 ? 0 : lineOf(stay, lineCount(memory, stay) + credits)
}

/** Whether the stay waits for its confirmation, which also ends the one that it replaces. */
export function isPending(memory: Memory, stay: number): boolean {
  return creditCount(memory, stay) > 0 && stateOf(memory, stay) === STAY_STATE.held
}

export function lineOf(stay: number, n: number): number {
  return stay + STAY.bytes + n * STAY_LINE.bytes
}

/**
 * Visits the nights of a stay with what it has on hold itself: rooms that the stay which it is to replace keeps for it
 * are not on hold. Lines of a deleted property before feature level 4 have none.
 */
export function forEachOwnNight(
  memory: Memory,
  stay: number,
  visit: (property: number, roomType: number, day: number, rooms: number) => void,
): void {
  const lines = lineCount(memory, stay)
  if (creditCount(memory, stay) === 0) {
    for (let n = 0; n < lines; n++) forEachNightOfLine(memory, lineOf(stay, n), visit)
    return
  }
  type OwnNight = { readonly property: number; readonly roomType: number; readonly day: number; rooms: number }
  const nights = new Map<string, OwnNight>()
  for (let n = 0; n < lines; n++) {
    forEachNightOfLine(memory, lineOf(stay, n), (property, roomType, day, rooms) => {
      const key = `${property}/${roomType}/${day}`
      const night = nights.get(key)
      if (night) night.rooms += rooms
      else nights.set(key, { property, roomType, day, rooms })
    })
  }
  for (let n = lines; n < lines + creditCount(memory, stay); n++) {
    forEachNightOfLine(memory, lineOf(stay, n), (property, roomType, day, rooms) => {
      const night = nights.get(`${property}/${roomType}/${day}`)
      if (night) night.rooms -= rooms
    })
  }
  for (const { property, roomType, day, rooms } of nights.values()) if (rooms > 0) visit(property, roomType, day, rooms)
}

/** @param visit gets the ledger's property, the room type, the day and the rooms of the line */
export function forEachNightOfLine(
  memory: Memory,
  line: number,
  visit: (property: number, roomType: number, day: number, rooms: number) => void,
): void {
  if (!isCurrent(memory, line)) return
  const arrival = field(memory, line + STAY_LINE.arrival)
  const roomType = field(memory, line + STAY_LINE.roomType)
  for (let n = 0; n < memory.u8[line + STAY_LINE.nights]; n++) {
    visit(field(memory, line), roomType, arrival + n, memory.u8[line + STAY_LINE.rooms])
  }
}

/** The day after the last night of a stay; 0 without lines. */
export function departureOf(memory: Memory, stay: number): number {
  let departure = 0
  for (let n = 0; n < lineCount(memory, stay); n++) {
    const line = lineOf(stay, n)
    departure = Math.max(departure, field(memory, line + STAY_LINE.arrival) + memory.u8[line + STAY_LINE.nights])
  }
  return departure
}

export function moment({ f64 }: Memory, stay: number, cell: number): number {
  return f64[(stay + cell) / 8]
}

/** Creates a stay with its lines. Its name numbers exist. @param replaced the stay that it is to replace */
export function createStay(
  store: Store,
  id: Uint8Array,
  idStart: number,
  record: StayRecord,
  source: Uint8Array,
  lines: readonly LineRecord[],
  replaced?: ReplacedStay,
): number {
  const { memory, writer } = store
  const credits = replaced?.lines ?? []
  const bytes = stayBytes(lines.length, credits.length)
  // Properties first: a stay is complete before anything else is allocated.
  const properties = [...lines, ...credits].map((line) => stayPropertyOf(store, line.id, line.idStart))
  const stay = allocateRecord(store, bytes)
  touch(store, stay, bytes)
  memory.u8.set(id.subarray(idStart, idStart + 16), stay + STAY.id)
  memory.u8[stay + STAY.lines] = lines.length
  memory.u8[stay + STAY.credits] = credits.length
  memory.u8[stay + STAY.sourceBytes] = source.length
  memory.u8.set(source, stay + STAY.source)
  putId(writer.ledger.stays, memory.u8, stay)
  for (const [n, line] of lines.entries()) {
    writeLine(store, stay, lineOf(stay, n), properties[n] as number, line)
    linkLine(store, lineOf(stay, n))
  }
  for (const [n, line] of credits.entries()) {
    const at = lineOf(stay, lines.length + n)
    writeLine(store, stay, at, properties[lines.length + n] as number, line)
    setField(store, at + STAY_LINE.generation, line.generation)
  }
  if (replaced && credits.length > 0) {
    memory.u8.set(replaced.id.subarray(replaced.idStart, replaced.idStart + ID_BYTES), replacedIdOf(memory, stay))
  }
  setState(store, STATE.stayCount, state(memory, STATE.stayCount) + 1)
  countBytes(store, bytes)
  writeRecord(store, stay, record)
  append(store, stay)
  addStayDigest(store, stay, 1)
  return stay
}

/** The property counts the line. */
function writeLine(store: Store, stay: number, line: number, property: number, record: LineRecord): void {
  const { u8, u32 } = store.memory
  const cell = line >>> 2
  u32[cell] = property
  u32[cell + STAY_LINE.generation / 4] = field(store.memory, property + STAY_PROPERTY.generation)
  u32[cell + STAY_LINE.roomType / 4] = record.roomType
  u32[cell + STAY_LINE.arrival / 4] = record.arrival
  u8[line + STAY_LINE.nights] = record.nights
  u8[line + STAY_LINE.rooms] = record.rooms
  u8[line + STAY_LINE.flags] = record.flags
  u32[cell + STAY_LINE.stay / 4] = stay
  refer(store, property, 1)
}

/** Adds a line to the list of its property. */
function linkLine(store: Store, line: number): void {
  const property = field(store.memory, line)
  const first = field(store.memory, property + STAY_PROPERTY.firstLine)
  setField(store, line + STAY_LINE.next, first)
  if (first !== 0) setField(store, first + STAY_LINE.previous, line)
  setField(store, property + STAY_PROPERTY.firstLine, line)
}

function writeRecord(store: Store, stay: number, record: StayRecord): void {
  const { memory } = store
  touch(store, stay, STAY.bytes)
  memory.u8[stay + STAY.state] = record.state
  const { f64 } = memory
  f64[(stay + STAY.deadlineMs) / 8] = record.deadlineMs
  f64[(stay + STAY.total) / 8] = record.total
  f64[(stay + STAY.index) / 8] = record.index
  f64[(stay + STAY.timeMs) / 8] = record.timeMs
  f64[(stay + STAY.bookedIndex) / 8] = record.bookedIndex
  f64[(stay + STAY.heldSinceMs) / 8] = record.heldSinceMs
}

export function recordOf(memory: Memory, stay: number): StayRecord {
  return {
    state: stateOf(memory, stay),
    deadlineMs: moment(memory, stay, STAY.deadlineMs),
    total: moment(memory, stay, STAY.total),
    index: moment(memory, stay, STAY.index),
    timeMs: moment(memory, stay, STAY.timeMs),
    bookedIndex: moment(memory, stay, STAY.bookedIndex),
    heldSinceMs: moment(memory, stay, STAY.heldSinceMs),
  }
}

/** Changes a stay and moves it to the end of the list of its state. */
export function changeStay(store: Store, stay: number, change: Partial<StayRecord>): void {
  addStayDigest(store, stay, -1)
  unlink(store, stay)
  writeRecord(store, stay, { ...recordOf(store.memory, stay), ...change })
  append(store, stay)
  addStayDigest(store, stay, 1)
}

export function removeStay(store: Store, stay: number): void {
  const { memory, writer } = store
  addStayDigest(store, stay, -1)
  unlink(store, stay)
  removeId(writer.ledger.stays, memory.u8, stay)
  const lines = lineCount(memory, stay)
  const credits = creditCount(memory, stay)
  for (let n = 0; n < lines; n++) unlinkLine(store, lineOf(stay, n))
  for (let n = lines; n < lines + credits; n++) refer(store, field(memory, lineOf(stay, n)), -1)
  const bytes = stayBytes(lines, credits)
  setState(store, STATE.stayCount, state(memory, STATE.stayCount) - 1)
  countBytes(store, -bytes)
  retire(store, false, stay, bytes)
}

function unlinkLine(store: Store, line: number): void {
  const { memory } = store
  const property = field(memory, line)
  const previous = field(memory, line + STAY_LINE.previous)
  const next = field(memory, line + STAY_LINE.next)
  if (previous === 0) setField(store, property + STAY_PROPERTY.firstLine, next)
  else setField(store, previous + STAY_LINE.next, next)
  if (next !== 0) setField(store, next + STAY_LINE.previous, previous)
  refer(store, property, -1)
}

export function countBytes(store: Store, bytes: number): void {
  store.writer.ledger.bytes += bytes
  addCharge(store, bytes)
}

// The lists, oldest first

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** So long after its last night, or after it ended, a stay is remembered. */
export const KEPT_MS = 72 * HOUR_MS
/** No night is further ahead, so a later booking of an id that has ended could name none. */
const WINDOW_MS = 366 * DAY_MS

/**
 * The first day on which a settled stay is forgotten. A booking is remembered until after its last night. So is a stay
 * that was released: a late repeat of its booking must not take the rooms again. The nights of a void one are unknown.
 */
export function forgetDayOf(memory: Memory, stay: number): number {
  const reached = stateOf(memory, stay)
  const timeMs = moment(memory, stay, STAY.timeMs)
  const departureMs = departureOf(memory, stay) * DAY_MS
  let endMs = timeMs
  if (reached === STAY_STATE.booked) endMs = departureMs
  if (reached === STAY_STATE.released) endMs = Math.max(timeMs, departureMs)
  if (reached === STAY_STATE.void) endMs = timeMs + WINDOW_MS
  return Math.ceil((Math.min(endMs, timeMs + WINDOW_MS) + KEPT_MS) / DAY_MS)
}

function headOf(memory: Memory, stay: number): number {
  const reached = stateOf(memory, stay)
  if (reached === STAY_STATE.held) return STATE.heldHead
  if (featureLevel(memory) < LEDGER_LEVEL) return STATE.settledHead
  return forgetHead(reached === STAY_STATE.booked ? STATE.bookedDays : STATE.endedDays, forgetDayOf(memory, stay))
}

/** @param days STATE.endedDays or STATE.bookedDays */
export function forgetHead(days: number, day: number): number {
  return days + (day % FORGET_SLOTS) * 2
}

/** The earliest day whose list may have stays: none is forgotten more than so many days before or after shard time. */
const PAST_SLOTS = 100

/** The lists of a ring in the order of their days. @param visit gets the first stay of a list, 0 for an empty one */
export function findInDays(memory: Memory, days: number, isFound: (first: number) => boolean): number {
  const from = Math.max(0, Math.floor(latestTime(memory) / DAY_MS) - PAST_SLOTS)
  for (let day = from; day < from + FORGET_SLOTS; day++) {
    const first = state(memory, forgetHead(days, day))
    if (first !== 0 && isFound(first)) return first
  }
  return 0
}

/** Settled stays in the order of their lists, which is equal on all replicas. */
export function forEachSettled(memory: Memory, visit: (stay: number) => void): void {
  forEachOfList(memory, STATE.settledHead, visit)
  for (const days of [STATE.endedDays, STATE.bookedDays]) {
    findInDays(memory, days, (first) => {
      forEachFrom(memory, first, visit)
      return false
    })
  }
}

export function forEachHeld(memory: Memory, visit: (stay: number) => void): void {
  forEachOfList(memory, STATE.heldHead, visit)
}

function forEachOfList(memory: Memory, head: number, visit: (stay: number) => void): void {
  forEachFrom(memory, state(memory, head), visit)
}

function forEachFrom(memory: Memory, first: number, visit: (stay: number) => void): void {
  for (let stay = first; stay !== 0; ) {
    const next = field(memory, stay + STAY.next)
    visit(stay)
    stay = next
  }
}

/** The step to the level at which settled stays have lists by days. The level is set in between. */
export function relistSettled(store: Store, raiseLevel: () => void): void {
  const settled: number[] = []
  forEachOfList(store.memory, STATE.settledHead, (stay) => settled.push(stay))
  for (const stay of settled) unlink(store, stay)
  raiseLevel()
  for (const stay of settled) append(store, stay)
}

function append(store: Store, stay: number): void {
  const { memory, writer } = store
  const head = headOf(memory, stay)
  const tail = state(memory, head + 1)
  setField(store, stay + STAY.previous, tail)
  setField(store, stay + STAY.next, 0)
  if (tail === 0) setState(store, head, stay)
  else setField(store, tail + STAY.next, stay)
  setState(store, head + 1, stay)
  const { ledger } = writer
  if (head !== STATE.heldHead) {
    if (head !== STATE.settledHead) ledger.forgetFrom = Math.min(ledger.forgetFrom, forgetDayOf(memory, stay))
    return
  }
  pushDeadline(ledger, { deadlineMs: moment(memory, stay, STAY.deadlineMs), id: keyOfId(memory.u8, stay) })
  countHeld(store, stay, 1)
  // Each extension of a hold leaves an entry behind.
  if (ledger.deadlines.length > 2 * ledger.heldCount + DEADLINES_SPARE) tidyDeadlines(store)
}
const DEADLINES_SPARE = 1024

function tidyDeadlines(store: Store): void {
  const { memory } = store
  const held: { deadlineMs: number; id: string }[] = []
  forEachHeld(memory, (stay) => {
    held.push({ deadlineMs: moment(memory, stay, STAY.deadlineMs), id: keyOfId(memory.u8, stay) })
  })
  replaceDeadlines(store.writer.ledger, held)
}

function unlink(store: Store, stay: number): void {
  const { memory } = store
  const head = headOf(memory, stay)
  const previous = field(memory, stay + STAY.previous)
  const next = field(memory, stay + STAY.next)
  if (previous === 0) setState(store, head, next)
  else setField(store, previous + STAY.next, next)
  if (next === 0) setState(store, head + 1, previous)
  else setField(store, next + STAY.previous, previous)
  if (head === STATE.heldHead) countHeld(store, stay, -1)
}

function countHeld({ memory, writer: { ledger } }: Store, stay: number, sign: 1 | -1): void {
  ledger.heldCount += sign
  const source = sourceKey(memory, stay)
  const held = (ledger.heldBySource.get(source) ?? 0) + sign
  if (held === 0) ledger.heldBySource.delete(source)
  else ledger.heldBySource.set(source, held)
}

/** The source as the key of a map: one character a byte. */
function sourceKey({ u8 }: Memory, stay: number): string {
  const start = stay + STAY.source
  return String.fromCharCode(...u8.subarray(start, start + u8[stay + STAY.sourceBytes]))
}

/** A hold ends at most so long after it began. */
export const HOLD_MS_MAX = 24 * 3_600_000

/** Shard time was set back: no hold lasts longer than a day from now. */
export function clampHolds(store: Store, timeMs: number): void {
  const { memory } = store
  const late: number[] = []
  forEachHeld(memory, (stay) => {
    if (moment(memory, stay, STAY.deadlineMs) > timeMs + HOLD_MS_MAX) late.push(stay)
  })
  for (const stay of late) {
    changeStay(store, stay, { deadlineMs: timeMs + HOLD_MS_MAX, heldSinceMs: timeMs })
  }
}

/** Shard time is now: no stay reached its state later, so that none is remembered for longer than the lists reach. */
export function clampSettled(store: Store, timeMs: number): void {
  const { memory } = store
  if (featureLevel(memory) < LEDGER_LEVEL) return
  const late: number[] = []
  forEachSettled(memory, (stay) => {
    if (moment(memory, stay, STAY.timeMs) > timeMs) late.push(stay)
  })
  for (const stay of late) changeStay(store, stay, { timeMs })
}

// Properties

/** The ledger's property of a packed id; created when missing. The caller adds what refers to it. */
export function stayPropertyOf(store: Store, id: Uint8Array, idStart: number): number {
  const { memory, writer } = store
  const key = keyOfId(id, idStart)
  const found = writer.ledger.properties.get(key)
  if (found !== undefined) return found
  const property = allocateRecord(store, STAY_PROPERTY.bytes)
  touch(store, property, STAY_PROPERTY.bytes)
  memory.u8.set(id.subarray(idStart, idStart + 16), property)
  const head = state(memory, STATE.stayPropertyHead)
  memory.u32[(property + STAY_PROPERTY.next) >>> 2] = head
  if (head !== 0) setField(store, head + STAY_PROPERTY.previous, property)
  setState(store, STATE.stayPropertyHead, property)
  writer.ledger.properties.set(key, property)
  countBytes(store, STAY_PROPERTY.bytes)
  return property
}

export function findStayProperty({ writer }: Store, id: Uint8Array, idStart: number): number {
  return writer.ledger.properties.size === 0 ? 0 : (writer.ledger.properties.get(keyOfId(id, idStart)) ?? 0)
}

/** Counts lines and nights that refer to a property. Without any it is forgotten. */
export function refer(store: Store, property: number, sign: 1 | -1): void {
  const { memory, writer } = store
  const references = field(memory, property + STAY_PROPERTY.references) + sign
  setField(store, property + STAY_PROPERTY.references, references)
  if (references > 0) return
  addPropertyDigest(store, property, -1)
  const previous = field(memory, property + STAY_PROPERTY.previous)
  const next = field(memory, property + STAY_PROPERTY.next)
  if (previous === 0) setState(store, STATE.stayPropertyHead, next)
  else setField(store, previous + STAY_PROPERTY.next, next)
  if (next !== 0) setField(store, next + STAY_PROPERTY.previous, previous)
  writer.ledger.properties.delete(keyOfId(memory.u8, property))
  countBytes(store, -STAY_PROPERTY.bytes)
  retire(store, false, property, STAY_PROPERTY.bytes)
}

/** A property of this id was deleted: stays with it keep no rooms of a later one. */
export function nextGeneration(store: Store, property: number): void {
  addPropertyDigest(store, property, -1)
  setField(store, property + STAY_PROPERTY.generation, generationOf(store.memory, property) + 1)
  addPropertyDigest(store, property, 1)
}

export function generationOf(memory: Memory, property: number): number {
  return field(memory, property + STAY_PROPERTY.generation)
}

/** For loading: the generation of a property, once its lines and nights are there. */
export function setGeneration(store: Store, id: Uint8Array, idStart: number, generation: number): void {
  const property = findStayProperty(store, id, idStart)
  if (property === 0) return
  setField(store, property + STAY_PROPERTY.generation, generation)
  addPropertyDigest(store, property, 1)
}

/** For loading: the generations of the lines of a stay. */
export function setLineGenerations(store: Store, stay: number, generations: readonly number[]): void {
  addStayDigest(store, stay, -1)
  for (const [n, generation] of generations.entries()) {
    setField(store, lineOf(stay, n) + STAY_LINE.generation, generation)
  }
  addStayDigest(store, stay, 1)
}

/** Whether the line still concerns the property of its id. */
export function isCurrent(memory: Memory, line: number): boolean {
  return field(memory, line + STAY_LINE.generation) === generationOf(memory, field(memory, line))
}

// Digest

/** Both lanes of a hash that is being computed. */
let low = 0
let high = 0

function begin(kind: number): void {
  low = 0x6a09e667 ^ kind
  high = 0xbb67ae85 ^ kind
}

function mix(word: number): void {
  low = Math.imul(low ^ word, 0xcc9e2d51)
  low ^= low >>> 15
  high = Math.imul(high ^ word, 0x85ebca6b)
  high ^= high >>> 13
}

function mixId({ u8 }: Memory, start: number): void {
  for (let i = start; i < start + 16; i += 4) mix(u8[i] | (u8[i + 1] << 8) | (u8[i + 2] << 16) | (u8[i + 3] << 24))
}

function mixName(memory: Memory, roomType: number): void {
  mix(hashOfName(memory, NAMES.roomType, roomType, 0))
  mix(hashOfName(memory, NAMES.roomType, roomType, 1))
}

function addSum(store: Store, sign: 1 | -1): void {
  addDigest(store, Math.imul(low, sign), Math.imul(high, sign))
}

const HASHED = [STAY.deadlineMs, STAY.total, STAY.index, STAY.timeMs, STAY.bookedIndex, STAY.heldSinceMs] as const

function addStayDigest(store: Store, stay: number, sign: 1 | -1): void {
  const { memory } = store
  const { u8, u32 } = memory
  const lines = lineCount(memory, stay)
  const credits = creditCount(memory, stay)
  begin(1)
  mixId(memory, stay)
  mix(stateOf(memory, stay) * 256 + lines)
  for (const cell of HASHED) {
    mix(u32[(stay + cell) >>> 2])
    mix(u32[((stay + cell) >>> 2) + 1])
  }
  const source = stay + STAY.source
  mix(nameHash(0, u8, source, source + u8[stay + STAY.sourceBytes]))
  mix(nameHash(1, u8, source, source + u8[stay + STAY.sourceBytes]))
  if (credits > 0) mixId(memory, replacedIdOf(memory, stay))
  for (let n = 0; n < lines + credits; n++) {
    const line = lineOf(stay, n)
    mixId(memory, field(memory, line))
    mix(field(memory, line + STAY_LINE.generation))
    mixName(memory, field(memory, line + STAY_LINE.roomType))
    mix(field(memory, line + STAY_LINE.arrival))
    mix((u8[line + STAY_LINE.nights] << 16) | (u8[line + STAY_LINE.rooms] << 8) | u8[line + STAY_LINE.flags])
  }
  addSum(store, sign)
}

function addPropertyDigest(store: Store, property: number, sign: 1 | -1): void {
  const generation = generationOf(store.memory, property)
  if (generation === 0) return
  begin(2)
  mixId(store.memory, property)
  mix(generation)
  addSum(store, sign)
}

export function addNightDigest(store: Store, night: number, sign: 1 | -1): void {
  const { memory } = store
  begin(3)
  mixId(memory, field(memory, night))
  mixName(memory, field(memory, night + STAY_NIGHT.roomType))
  mix(field(memory, night + STAY_NIGHT.day))
  mix(memory.u8[night + STAY_NIGHT.held] * 256 + memory.u8[night + STAY_NIGHT.debt])
  addSum(store, sign)
}
