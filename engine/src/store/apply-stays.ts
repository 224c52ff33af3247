/**
 * Commands on stays (docs/design/stays.md#rules). Each checks everything on a plan first, then changes. Deadlines that
 * have passed take effect before a command sees its stay, so the log alone decides between a confirmation and expiry.
 */

import { formatDay, isVisible } from '@vacancy/shared'
import { LINE_FLAGS, STAY_STATE, STAY_STATES } from '@vacancy/shared/wire'
import { type ApplyContext, exceedsBudget, fail } from './apply-context.ts'
import { noteDropped } from './as-of.ts'
import { nameCharge, nameGrowth } from './charge.ts'
import { KIND, OUTCOME, outcomeWire, readBytes, readF64, readName, readU8, readU32 } from './command.ts'
import { findName, internName, NAMES, nameCounts } from './dictionary.ts'
import { STATE, STAY, STAY_LINE, STAY_NIGHT, STAY_PROPERTY } from './layout.ts'
import { popDeadline } from './ledger.ts'
import { findProperty } from './property-index.ts'
import { findRoom } from './segment.ts'
import { beginPlan, commit, createStayPlan, endNights, hasPackage, nightIn, planEnd, takeRooms } from './stay-plan.ts'
import { staySetting } from './stay-settings.ts'
import {
  changeStay,
  createStay,
  findStay,
  HOLD_MS_MAX,
  type LineRecord,
  lineCount,
  lineOf,
  moment,
  removeStay,
  stateOf,
  stayBytes,
} from './stays.ts'
import { type Store, state } from './store.ts'
import { field } from './table-fields.ts'

const HOUR_MS = 3_600_000
/** How long a settled stay is remembered, and how long at least when bytes run out. */
const KEPT_MS = 72 * HOUR_MS
const KEPT_MS_MIN = HOUR_MS
/** Expired holds that one entry returns before its own command, and forgotten stays. */
const EXPIRED_OF_ENTRY = 256
const FORGOTTEN_OF_ENTRY = 256

/** Flags of the conditions in BOOKSTAY and HOLDSTAY, and of CONFIRMSTAY and RELEASESTAY. */
export const STAY_FLAGS = { maxTotal: 1, replaces: 2, retake: 4, void: 8 } as const

const plan = createStayPlan()

// Reading commands

type GivenLine = LineRecord & {
  readonly nameStart: number
  readonly nameEnd: number
}

/** A stay command; one object, reused. */
type StayCommand = {
  id: number
  flags: number
  seconds: number
  maxTotal: number
  features: number
  replaces: number
  source: Uint8Array
  lines: GivenLine[]
}

function readCommand({ reader, store }: ApplyContext): StayCommand {
  const id = readBytes(reader, 16)
  const flags = readU8(reader)
  const seconds = readU32(reader)
  const maxTotal = readF64(reader)
  const features = readU32(reader)
  const replaces = readBytes(reader, 16)
  const sourceStart = readName(reader)
  const source = reader.bytes.slice(sourceStart, reader.at)
  const lines: GivenLine[] = []
  for (let left = readU8(reader); left > 0; left--) {
    const idStart = readBytes(reader, 16)
    const nameStart = readName(reader)
    const nameEnd = reader.at
    lines.push({
      id: reader.bytes,
      idStart,
      nameStart,
      nameEnd,
      roomType: findName(store.memory, NAMES.roomType, reader.bytes, nameStart, nameEnd),
      arrival: readU32(reader),
      nights: readU8(reader),
      rooms: readU8(reader),
      flags: readU8(reader),
    })
  }
  return { id, flags, seconds, maxTotal, features, replaces, source, lines }
}

/** The stay of the command; a hold whose deadline has passed is expired first. */
function stayOf(context: ApplyContext, start: number): number {
  const { reader, store } = context
  const stay = findStay(store, reader.bytes, start)
  if (stay !== 0 && isOverdue(store, stay, reader.timeMs)) expire(context, stay)
  return stay
}

function hasSameLines({ memory }: Store, stay: number, lines: readonly GivenLine[]): boolean {
  const { u8 } = memory
  if (lineCount(memory, stay) !== lines.length) return false
  return lines.every((given, n) => {
    const line = lineOf(stay, n)
    const property = field(memory, line)
    for (let i = 0; i < 16; i++) if (u8[property + i] !== given.id[given.idStart + i]) return false
    return (
      field(memory, line + STAY_LINE.roomType) === given.roomType &&
      field(memory, line + STAY_LINE.arrival) === given.arrival &&
      u8[line + STAY_LINE.nights] === given.nights &&
      u8[line + STAY_LINE.rooms] === given.rooms &&
      u8[line + STAY_LINE.flags] === given.flags
    )
  })
}

function refuse(context: ApplyContext, code: number, detail = ''): undefined {
  fail(context, code, 0, detail)
  return undefined
}

function conflict(context: ApplyContext, stay: number): undefined {
  return refuse(context, OUTCOME.conflict, `state=${STAY_STATES[stateOf(context.store.memory, stay) - 1]}`)
}

/** Counts what a stay command was refused for. */
export function countRefusal({ applied, store }: ApplyContext): void {
  if (applied.code === OUTCOME.done) return
  const { refused } = store.writer.ledger.counts
  const wire = outcomeWire(applied.code)
  refused.set(wire, (refused.get(wire) ?? 0) + 1)
}

// The commands

export function takeStay(context: ApplyContext, index: number): void {
  const { store, reader } = context
  const { memory } = store
  const command = readCommand(context)
  const isHold = reader.kind === KIND.holdStay
  const stay = stayOf(context, command.id)
  const reached = stay === 0 ? STAY_STATE.expired : stateOf(memory, stay)
  if (reached === STAY_STATE.released || reached === STAY_STATE.void) return conflict(context, stay)
  if (reached === STAY_STATE.expired) return takeAgain(context, index, command, stay, isHold)
  if (!hasSameLines(store, stay, command.lines)) return conflict(context, stay)
  if (reached === STAY_STATE.booked || isHold) {
    if (reached === STAY_STATE.held) extendHold(context, stay, command.seconds)
    context.applied.stay = stay
    return
  }
  const total = moment(memory, stay, STAY.total)
  if ((command.flags & STAY_FLAGS.maxTotal) !== 0 && total > command.maxTotal) {
    return refuse(context, OUTCOME.priceChanged, `total=${total}`)
  }
  bookHeld(context, index, stay)
}

function extendHold({ store, reader }: ApplyContext, stay: number, seconds: number): void {
  const { memory } = store
  const since = moment(memory, stay, STAY.heldSinceMs)
  const deadlineMs = Math.min(reader.timeMs + seconds * 1000, since + HOLD_MS_MAX)
  changeStay(store, stay, { deadlineMs })
}

function bookHeld(context: ApplyContext, index: number, stay: number): void {
  const { store, reader } = context
  beginPlan(plan)
  planEnd(plan, store, stay, 'confirm')
  commit(context, plan)
  const { timeMs } = reader
  changeStay(store, stay, { state: STAY_STATE.booked, deadlineMs: 0, index, timeMs, bookedIndex: index })
  context.applied.stay = stay
}

/** Takes the rooms of a stay that has none. @param earlier an expired record of the same id, 0 for none */
function takeAgain(context: ApplyContext, index: number, command: StayCommand, earlier: number, isHold: boolean): void {
  const { store, reader } = context
  const { memory } = store
  const hasReplaced = (command.flags & STAY_FLAGS.replaces) !== 0
  const replaced = hasReplaced ? stayOf(context, command.replaces) : 0
  if (hasReplaced && replaced === 0) return refuse(context, OUTCOME.unknownReplaced)
  beginPlan(plan)
  const ends = replaced !== 0 && isTaken(stateOf(memory, replaced))
  if (ends) planEnd(plan, store, replaced, fateOf(stateOf(memory, replaced)))
  const total = planTaking(context, command, isHold)
  if (total === undefined) return
  if (exceedsBudget(context, growthOf(store, command, isHold), 0)) return
  if (earlier !== 0) removeStay(store, earlier)
  const { timeMs } = reader
  const deadlineMs = isHold ? timeMs + command.seconds * 1000 : 0
  const stay = createStay(
    store,
    reader.bytes,
    command.id,
    {
      state: isHold ? STAY_STATE.held : STAY_STATE.booked,
      deadlineMs,
      total,
      index,
      timeMs,
      bookedIndex: isHold ? 0 : index,
      heldSinceMs: isHold ? timeMs : 0,
    },
    command.source,
    command.lines,
  )
  commit(context, plan)
  if (ends) changeStay(store, replaced, { state: STAY_STATE.released, deadlineMs: 0, index, timeMs })
  context.applied.stay = stay
  makeRoom(store, timeMs)
}

function isTaken(reached: number): boolean {
  return reached === STAY_STATE.held || reached === STAY_STATE.booked
}

function fateOf(reached: number): 'release-held' | 'release-booked' {
  return reached === STAY_STATE.held ? 'release-held' : 'release-booked'
}

/**
 * Plans the nights of all lines, checked in the documented order: existence, rooms, features and total.
 *
 * @returns the total; undefined when the command is refused
 */
function planTaking(context: ApplyContext, command: StayCommand, isHold: boolean): number | undefined {
  const { reader, store } = context
  const { memory } = store
  for (let n = 0; n < command.lines.length; n++) {
    const line = command.lines[n] as GivenLine
    const property = findProperty(memory, line.id, line.idStart)
    if (property === 0) return refuse(context, OUTCOME.unknownProperty, `property of line ${n} not found`)
    const room = findRoom(memory, property, line.roomType)
    if (room === 0) return refuse(context, OUTCOME.unknownRoomType, `room type of line ${n} not found`)
    for (let i = 0; i < line.nights; i++) {
      const day = line.arrival + i
      if (!isVisible(day, reader.day) || day < state(memory, STATE.droppedBefore)) {
        const reason = 'a night lies outside the window of today to one year ahead'
        return refuse(context, OUTCOME.outsideWindow, `${reason}, line ${n}, ${formatDay(day)}`)
      }
      const night = nightIn(plan, store, property, room, line.roomType, day)
      if (!hasPackage(night)) {
        return refuse(context, OUTCOME.noPackage, `package not found, line ${n}, ${formatDay(day)}`)
      }
    }
  }
  return takeLines(context, command, isHold)
}

function takeLines(context: ApplyContext, command: StayCommand, isHold: boolean): number | undefined {
  const { store } = context
  let total = 0
  let lacksFeature = false
  for (const [n, line] of command.lines.entries()) {
    const property = findProperty(store.memory, line.id, line.idStart)
    const room = findRoom(store.memory, property, line.roomType)
    for (let i = 0; i < line.nights; i++) {
      const night = nightIn(plan, store, property, room, line.roomType, line.arrival + i)
      if (!takeRooms(night, line.rooms, isHold)) {
        const { offered, wanted, day } = night
        return refuse(context, OUTCOME.soldOut, `line=${n} date=${formatDay(day)} left=${offered} wanted=${wanted}`)
      }
      if ((line.flags & LINE_FLAGS.uncounted) === 0) total += (~night.hi >>> 0) * line.rooms
      lacksFeature ||= ((night.lo >>> 8) & command.features) !== command.features
    }
  }
  const isDear = (command.flags & STAY_FLAGS.maxTotal) !== 0 && total > command.maxTotal
  return lacksFeature || isDear ? refuse(context, OUTCOME.priceChanged, `total=${total}`) : total
}

/** Upper bound of what a new stay adds to the charge. */
function growthOf({ memory, writer }: Store, { lines }: StayCommand, isHold: boolean): number {
  let bytes = stayBytes(lines.length) + lines.length * STAY_PROPERTY.bytes
  let names = 0
  let textBytes = 0
  for (const { nights, roomType, nameStart, nameEnd } of lines) {
    if (isHold) bytes += nights * STAY_NIGHT.bytes
    if (roomType >= 0 && nameCounts(memory, NAMES.roomType, roomType)) continue
    names++
    textBytes += nameCharge(nameEnd - nameStart)
  }
  return bytes + (names === 0 ? 0 : nameGrowth(writer.charge, NAMES.roomType, names, textBytes))
}

export function confirmStay(context: ApplyContext, index: number): void {
  const { store } = context
  const { memory } = store
  const command = readCommand(context)
  const stay = stayOf(context, command.id)
  if (stay === 0) return fail(context, OUTCOME.unknownStay)
  switch (stateOf(memory, stay)) {
    case STAY_STATE.held:
      return bookHeld(context, index, stay)
    case STAY_STATE.booked:
      context.applied.stay = stay
      return
    case STAY_STATE.expired:
      if ((command.flags & STAY_FLAGS.retake) === 0) return refuse(context, OUTCOME.expired, 'state=expired')
      return retake(context, index, stay, command)
    default:
      return conflict(context, stay)
  }
}

/** Takes the rooms of an expired hold again, as a booking. */
function retake(context: ApplyContext, index: number, stay: number, command: StayCommand): void {
  const { memory } = context.store
  const lines = linesOf(context.store, stay)
  const source = memory.u8.slice(stay + STAY.source, stay + STAY.source + memory.u8[stay + STAY.sourceBytes])
  takeAgain(context, index, { ...command, source, lines, features: 0 }, stay, false)
}

/** The lines of a record, in memory of their own. */
function linesOf({ memory }: Store, stay: number): GivenLine[] {
  return Array.from({ length: lineCount(memory, stay) }, (_, n) => {
    const line = lineOf(stay, n)
    const property = field(memory, line)
    return {
      id: memory.u8.slice(property, property + 16),
      idStart: 0,
      nameStart: 0,
      nameEnd: 0,
      roomType: field(memory, line + STAY_LINE.roomType),
      arrival: field(memory, line + STAY_LINE.arrival),
      nights: memory.u8[line + STAY_LINE.nights],
      rooms: memory.u8[line + STAY_LINE.rooms],
      flags: memory.u8[line + STAY_LINE.flags],
    }
  })
}

export function releaseStay(context: ApplyContext, index: number): void {
  const { store, reader } = context
  const { memory } = store
  const command = readCommand(context)
  const stay = stayOf(context, command.id)
  if (stay === 0) return releaseUnknown(context, index, command)
  if (command.lines.length > 0 && !hasSameLines(store, stay, command.lines)) return conflict(context, stay)
  context.applied.stay = stay
  const reached = stateOf(memory, stay)
  if (!isTaken(reached)) return
  beginPlan(plan)
  planEnd(plan, store, stay, fateOf(reached))
  commit(context, plan)
  changeStay(store, stay, { state: STAY_STATE.released, deadlineMs: 0, index, timeMs: reader.timeMs })
}

/** A booking that is no longer remembered, or a stay that never was one. */
function releaseUnknown(context: ApplyContext, index: number, command: StayCommand): void {
  const { store, reader } = context
  const { lines } = command
  const isVoid = (command.flags & STAY_FLAGS.void) !== 0
  if (lines.length === 0 && !isVoid) return fail(context, OUTCOME.unknownStay)
  if (exceedsBudget(context, growthOf(store, command, false), 0)) return
  beginPlan(plan)
  for (const { id, idStart, roomType, arrival, nights, rooms } of lines) {
    const property = findProperty(store.memory, id, idStart)
    if (property === 0 || roomType < 0) continue
    endNights(plan, store, property, roomType, arrival, nights, rooms, 'release-booked')
  }
  commit(context, plan)
  const known = lines.map((line) => ({ ...line, roomType: numberOf(context, line) }))
  const record = {
    state: lines.length > 0 ? STAY_STATE.released : STAY_STATE.void,
    deadlineMs: 0,
    total: 0,
    index,
    timeMs: reader.timeMs,
    bookedIndex: 0,
    heldSinceMs: 0,
  }
  context.applied.stay = createStay(store, reader.bytes, command.id, record, command.source, known)
  makeRoom(store, reader.timeMs)
}

/** The name of a room type may be new: a line keeps it, whether a room has it or not. */
function numberOf({ store, reader }: ApplyContext, { nameStart, nameEnd }: GivenLine): number {
  return internName(store, NAMES.roomType, reader.bytes, nameStart, nameEnd)
}

// Expiry and retention

function isOverdue({ memory }: Store, stay: number, timeMs: number): boolean {
  return stateOf(memory, stay) === STAY_STATE.held && moment(memory, stay, STAY.deadlineMs) <= timeMs
}

function expire(context: ApplyContext, stay: number): void {
  const { store, reader, applied } = context
  beginPlan(plan)
  planEnd(plan, store, stay, 'release-held')
  commit(context, plan)
  changeStay(store, stay, { state: STAY_STATE.expired, deadlineMs: 0, index: applied.index, timeMs: reader.timeMs })
  store.writer.ledger.counts.expired++
}

/** Returns the rooms of holds whose deadline has passed, in the order of deadline and id. */
function expireHolds(context: ApplyContext): void {
  const { store, reader } = context
  const { ledger } = store.writer
  const { timeMs } = reader
  for (let n = 0; n < EXPIRED_OF_ENTRY; ) {
    const first = ledger.deadlines[0]
    if (first === undefined || first.deadlineMs > timeMs) return
    popDeadline(ledger)
    const stay = ledger.stays.get(first.id) ?? 0
    // The hold was confirmed, released or extended.
    if (stay === 0 || moment(store.memory, stay, STAY.deadlineMs) !== first.deadlineMs) continue
    expire(context, stay)
    n++
  }
}

/** The first deadline of a hold; undefined without holds. Drops entries of stays that are no longer held until then. */
export function settleDeadlines({ memory, writer: { ledger } }: Store): { readonly deadlineMs: number } | undefined {
  for (;;) {
    const first = ledger.deadlines[0]
    if (first === undefined) return undefined
    const stay = ledger.stays.get(first.id) ?? 0
    if (stay !== 0 && moment(memory, stay, STAY.deadlineMs) === first.deadlineMs) return first
    popDeadline(ledger)
  }
}

/** What an entry does before its own command: expired holds return their rooms, old records go. */
export function keepLedger(context: ApplyContext): void {
  const { store, reader } = context
  if (store.writer.ledger.deadlines.length > 0) expireHolds(context)
  for (let n = 0; n < FORGOTTEN_OF_ENTRY; n++) {
    const oldest = state(store.memory, STATE.settledHead)
    if (oldest === 0 || moment(store.memory, oldest, STAY.timeMs) > reader.timeMs - KEPT_MS) return
    drop(store, oldest)
  }
}

/** When bytes run out, the oldest settled records go. */
function makeRoom(store: Store, timeMs: number): void {
  const { memory, writer } = store
  const limit = staySetting(memory, 'stays_bytes')
  while (writer.ledger.bytes > limit) {
    const oldest = state(memory, STATE.settledHead)
    if (oldest === 0 || moment(memory, oldest, STAY.timeMs) > timeMs - KEPT_MS_MIN) return
    drop(store, oldest)
  }
}

function drop(store: Store, stay: number): void {
  noteDropped(store, stay)
  removeStay(store, stay)
}

// Admission by the leader, before a command is in any log

/** Share of `stays_bytes` that records which cannot go may take. */
const BUSY_SHARE = 0.9

/** Whether the leader proposes another stay of a source now. */
export function isStayAdmitted(store: Store, isHold: boolean, source: string, timeMs: number): boolean {
  const { memory, writer } = store
  const { ledger } = writer
  if (isHold && ledger.heldCount >= staySetting(memory, 'holds_max')) return false
  if (isHold && (ledger.heldBySource.get(source) ?? 0) >= staySetting(memory, 'holds_max_per_source')) return false
  const limit = staySetting(memory, 'stays_bytes') * BUSY_SHARE
  let bytes = ledger.bytes
  for (let stay = state(memory, STATE.settledHead); bytes >= limit && stay !== 0; ) {
    if (moment(memory, stay, STAY.timeMs) > timeMs - KEPT_MS_MIN) return false
    bytes -= stayBytes(lineCount(memory, stay))
    stay = field(memory, stay + STAY.next)
  }
  return bytes < limit
}
