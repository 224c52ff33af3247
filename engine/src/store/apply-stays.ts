/**
 * Commands on stays (docs/design/stays.md#rules). Each checks everything on a plan first, then changes. Deadlines that
 * have passed take effect before a command sees its stay, so the log alone decides between a confirmation and expiry.
 */

import { formatDay, isVisible } from '@vacancy/shared'
import { LINE_FLAGS, STAY_STATE, STAY_STATES } from '@vacancy/shared/wire'
import { type ApplyContext, exceedsBudget, fail } from './apply-context.ts'
import { nameCharge, nameGrowth } from './charge.ts'
import { KIND, OUTCOME, outcomeWire, readBytes, readF64, readName, readU8, readU32 } from './command.ts'
import { findName, internName, NAMES, nameCounts } from './dictionary.ts'
import { forgetDue, hasStayRoom, makeRoom } from './forget.ts'
import { STATE, STAY, STAY_LINE, STAY_NIGHT, STAY_PROPERTY } from './layout.ts'
import { popDeadline } from './ledger.ts'
import { findProperty } from './property-index.ts'
import { findRoom } from './segment.ts'
import {
  beginPlan,
  commit,
  createStayPlan,
  isPast,
  nightToTake,
  offeredOn,
  planConversion,
  planCredit,
  planEnd,
  planUnrecorded,
} from './stay-plan.ts'
import { staySetting } from './stay-settings.ts'
import {
  changeStay,
  createStay,
  creditCount,
  findStay,
  findStayOf,
  HOLD_MS_MAX,
  isPending,
  type LineRecord,
  lineCount,
  lineOf,
  moment,
  type ReplacedStay,
  removeStay,
  replacedIdOf,
  stateOf,
  stayBytes,
} from './stays.ts'
import { featureLevel, LEDGER_LEVEL, type Store, state } from './store.ts'
import { field } from './table-fields.ts'

/** Expired holds that one entry returns before its own command. */
const EXPIRED_OF_ENTRY = 256

/** Flags of the conditions in BOOKSTAY and HOLDSTAY, and of CONFIRMSTAY and RELEASESTAY. */
export const STAY_FLAGS = {
  maxTotal: 1,
  replaces: 2,
  retake: 4,
  void: 8,
  reinstate: 16,
  unrecorded: 32,
  bookedAt: 64,
} as const

/** In place of an index: a stay is reinstated whenever it was released. */
export const REINSTATE_ANY = 1

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
  /** Index at which the stay was released, or REINSTATE_ANY; 0 without the flag. */
  reinstate: number
  /** Index of the booking or hold that a release ends; 0 for any. */
  bookedAt: number
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
  const reinstate = (flags & STAY_FLAGS.reinstate) === 0 ? 0 : readF64(reader)
  const bookedAt = (flags & STAY_FLAGS.bookedAt) === 0 ? 0 : readF64(reader)
  return { id, flags, seconds, maxTotal, features, replaces, reinstate, bookedAt, source, lines }
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
  if (reached === STAY_STATE.released || reached === STAY_STATE.void) {
    if (!isReinstated(store, stay, command)) return conflict(context, stay)
    return takeAgain(context, index, command, stay, isHold)
  }
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

/** Whether the command names the end of a stay that it wants again, so that a repeat of it does so once. */
function isReinstated({ memory }: Store, stay: number, { reinstate }: StayCommand): boolean {
  return reinstate === REINSTATE_ANY || (reinstate > 0 && reinstate === moment(memory, stay, STAY.index))
}

function extendHold(context: ApplyContext, stay: number, seconds: number): void {
  const { store, reader } = context
  const { memory } = store
  const since = moment(memory, stay, STAY.heldSinceMs)
  const deadlineMs = Math.min(reader.timeMs + seconds * 1000, since + HOLD_MS_MAX)
  changeStay(store, stay, { deadlineMs })
  if (isPending(memory, stay)) keepUntil(store, replacedBy(context, stay), deadlineMs)
}

/** A held stay that is to be replaced stands at least as long as the one that replaces it. */
function keepUntil(store: Store, stay: number, deadlineMs: number): void {
  const { memory } = store
  const isShorter = stay !== 0 && stateOf(memory, stay) === STAY_STATE.held
  if (isShorter && moment(memory, stay, STAY.deadlineMs) < deadlineMs) changeStay(store, stay, { deadlineMs })
}

/** The stay that a held or expired one is to replace, if it still has the rooms that it had then; else 0. */
function replacedBy(context: ApplyContext, stay: number): number {
  const { store } = context
  const { memory } = store
  const id = replacedIdOf(memory, stay)
  const found = id === 0 ? 0 : findStay(store, memory.u8, id)
  if (found !== 0 && isOverdue(store, found, context.reader.timeMs)) expire(context, found)
  if (found === 0 || !isTaken(stateOf(memory, found)) || isPending(memory, found)) return 0
  const credits = creditCount(memory, stay)
  if (lineCount(memory, found) !== credits) return 0
  for (let n = 0; n < credits; n++) {
    const [own, known] = [lineOf(found, n), lineOf(stay, lineCount(memory, stay) + n)]
    // Up to the flags, a line is what a command gave.
    for (let cell = 0; cell <= STAY_LINE.nights; cell += 4) {
      if (field(memory, own + cell) !== field(memory, known + cell)) return 0
    }
  }
  return found
}

function bookHeld(context: ApplyContext, index: number, stay: number): void {
  const { store, reader } = context
  const { memory } = store
  const isChecked = featureLevel(memory) >= LEDGER_LEVEL
  const replaced = isPending(memory, stay) ? replacedBy(context, stay) : 0
  beginPlan(plan, context, false)
  if (isChecked) {
    planEnd(plan, store, stay)
    if (replaced !== 0) planEnd(plan, store, replaced)
    const lines = linesOf(store, stay)
    // Nights that have passed since it was held are not there to be taken.
    if (!areThere(context, lines, () => true) || takeLines(context, lines, 0) === undefined) return
  } else planConversion(plan, store, stay)
  commit(context, plan)
  const { timeMs } = reader
  changeStay(store, stay, { state: STAY_STATE.booked, deadlineMs: 0, index, timeMs, bookedIndex: index })
  if (replaced !== 0) release(store, replaced, index, timeMs)
  context.applied.stay = stay
}

function release(store: Store, stay: number, index: number, timeMs: number): void {
  changeStay(store, stay, { state: STAY_STATE.released, deadlineMs: 0, index, timeMs })
}

/** The stays that a new one takes the place of. */
type Replacement = {
  /** They end with the command. */
  readonly ended: readonly number[]
  /** Stands until the new one is confirmed; 0 for none. */
  readonly standing: number
  /** Of a cart that the new one continues, the time of the first hold; 0 for none. */
  readonly sinceMs: number
}

const NOTHING_REPLACED: Replacement = { ended: [], standing: 0, sinceMs: 0 }

/** @param replaced address of the stay that the command names */
function replacementOf(context: ApplyContext, replaced: number, isHold: boolean): Replacement {
  const { memory } = context.store
  if (replaced === 0 || !isTaken(stateOf(memory, replaced))) return NOTHING_REPLACED
  const isNew = featureLevel(memory) >= LEDGER_LEVEL
  const sinceMs =
    isNew && stateOf(memory, replaced) === STAY_STATE.held ? moment(memory, replaced, STAY.heldSinceMs) : 0
  // A change that is not confirmed gives way to another change of the same stay.
  const isChange = isPending(memory, replaced)
  const origin = isChange ? replacedBy(context, replaced) : replaced
  if (isHold && isNew) return { ended: isChange ? [replaced] : [], standing: origin, sinceMs }
  const ended = isChange && origin !== 0 ? [replaced, origin] : [replaced]
  return { ended, standing: 0, sinceMs }
}

/** Takes the rooms of a stay that has none. @param earlier an ended record of the same id, 0 for none */
function takeAgain(context: ApplyContext, index: number, command: StayCommand, earlier: number, isHold: boolean): void {
  const hasReplaced = (command.flags & STAY_FLAGS.replaces) !== 0
  const replaced = hasReplaced ? stayOf(context, command.replaces) : 0
  if (hasReplaced && replaced === 0) return refuse(context, OUTCOME.unknownReplaced)
  take(context, index, command, earlier, isHold, replacementOf(context, replaced, isHold))
}

function take(
  context: ApplyContext,
  index: number,
  command: StayCommand,
  earlier: number,
  isHold: boolean,
  { ended, standing, sinceMs }: Replacement,
): void {
  const { store, reader } = context
  const { memory } = store
  beginPlan(plan, context, isHold)
  for (const stay of ended) planEnd(plan, store, stay)
  if (standing !== 0) planCredit(plan, store, standing)
  const total = planTaking(context, command, [...ended, standing])
  if (total === undefined) return
  const credits = standing === 0 ? 0 : lineCount(memory, standing)
  if (exceedsBudget(context, growthOf(store, command, isHold, credits), 0)) return
  const standingStay = standing === 0 ? undefined : replacedStay(store, standing)
  if (earlier !== 0) removeStay(store, earlier)
  const { timeMs } = reader
  const heldSinceMs = isHold ? sinceMs || timeMs : 0
  const deadlineMs = isHold ? Math.min(timeMs + command.seconds * 1000, heldSinceMs + HOLD_MS_MAX) : 0
  const reached = isHold ? STAY_STATE.held : STAY_STATE.booked
  const record = { state: reached, deadlineMs, total, index, timeMs, bookedIndex: isHold ? 0 : index, heldSinceMs }
  const { id, source, lines } = command
  const stay = createStay(store, reader.bytes, id, record, source, lines, standingStay)
  commit(context, plan)
  // The stay that gave its place reaches its state last.
  for (const each of ended) release(store, each, index, timeMs)
  keepUntil(store, standing, deadlineMs)
  context.applied.stay = stay
  makeRoom(store, timeMs)
}

/** What a new hold remembers of the stay that it is to replace. */
function replacedStay(store: Store, stay: number): ReplacedStay {
  const { memory } = store
  const lines = linesOf(store, stay).map((line, n) => ({
    ...line,
    generation: field(memory, lineOf(stay, n) + STAY_LINE.generation),
  }))
  return { id: memory.u8.slice(stay, stay + 16), idStart: 0, lines }
}

function isTaken(reached: number): boolean {
  return reached === STAY_STATE.held || reached === STAY_STATE.booked
}

/**
 * Plans the nights of all lines, checked in the documented order: existence, rooms, features and total.
 *
 * @param replaced stays whose nights that have passed the new one may keep
 * @returns the total; undefined when the command is refused
 */
function planTaking(context: ApplyContext, command: StayCommand, replaced: readonly number[]): number | undefined {
  if (!areThere(context, command.lines, keptNights(context, command, replaced))) return undefined
  const total = takeLines(context, command.lines, command.features)
  if (total === undefined) return undefined
  const isDear = (command.flags & STAY_FLAGS.maxTotal) !== 0 && total > command.maxTotal
  return isDear ? refuse(context, OUTCOME.priceChanged, `total=${total}`) : total
}

/** Nights that have passed, and that the new stay may keep: as many rooms as the stays had whose place it takes. */
function keptNights({ store }: ApplyContext, { lines }: StayCommand, replaced: readonly number[]) {
  // A change has had none but those of the stay that it changes.
  const origins = replaced.filter((stay) => stay !== 0 && !isPending(store.memory, stay))
  if (origins.length === 0 || featureLevel(store.memory) < LEDGER_LEVEL) return () => false
  const kept = new Map<string, number>()
  for (const stay of origins) addRooms(linesOf(store, stay), kept)
  const wanted = addRooms(lines, new Map())
  return (night: string) => (wanted.get(night) as number) <= (kept.get(night) ?? 0)
}

function nightName({ id, idStart, roomType }: LineRecord, day: number): string {
  return `${String.fromCharCode(...id.subarray(idStart, idStart + 16))}/${roomType}/${day}`
}

/** Rooms of lines by night. */
function addRooms(lines: readonly LineRecord[], rooms: Map<string, number>): Map<string, number> {
  for (const line of lines) {
    for (let day = line.arrival; day < line.arrival + line.nights; day++) {
      const name = nightName(line, day)
      rooms.set(name, (rooms.get(name) ?? 0) + line.rooms)
    }
  }
  return rooms
}

/**
 * Whether property, room type and package of each night are there.
 *
 * @param isKept whether a night that has passed stays as it was, by its name
 */
function areThere(context: ApplyContext, lines: readonly GivenLine[], isKept: (night: string) => boolean): boolean {
  const { reader, store } = context
  const { memory } = store
  const refuseLine = (code: number, detail: string) => {
    refuse(context, code, detail)
    return false
  }
  for (const [n, line] of lines.entries()) {
    let room = 0
    for (let day = line.arrival; day < line.arrival + line.nights; day++) {
      if (isPast(plan, store, day) && isKept(nightName(line, day))) continue
      const property = findProperty(memory, line.id, line.idStart)
      if (property === 0) return refuseLine(OUTCOME.unknownProperty, `property of line ${n} not found`)
      room ||= findRoom(memory, property, line.roomType)
      if (room === 0) return refuseLine(OUTCOME.unknownRoomType, `room type of line ${n} not found`)
      if (!isVisible(day, reader.day) || day < state(memory, STATE.droppedBefore)) {
        // A confirmation names no dates: what is too late is the stay.
        if (reader.kind === KIND.confirmStay && isPast(plan, store, day))
          return refuseLine(OUTCOME.expired, `state=expired line=${n} date=${formatDay(day)}`)
        const reason = 'a night lies outside the window of today to one year ahead'
        return refuseLine(OUTCOME.outsideWindow, `${reason}, line ${n}, ${formatDay(day)}`)
      }
      if (!nightToTake(plan, store, property, room, line.roomType, day)) {
        return refuseLine(OUTCOME.noPackage, `package not found, line ${n}, ${formatDay(day)}`)
      }
    }
  }
  return true
}

/** Plans to take the rooms of nights that are there. @returns the total; undefined when the command is refused */
function takeLines(context: ApplyContext, lines: readonly GivenLine[], features: number): number | undefined {
  const { store } = context
  let total = 0
  let lacksFeature = false
  for (const [n, line] of lines.entries()) {
    const property = findProperty(store.memory, line.id, line.idStart)
    const room = property === 0 ? 0 : findRoom(store.memory, property, line.roomType)
    for (let day = line.arrival; day < line.arrival + line.nights; day++) {
      if (isPast(plan, store, day)) continue
      const night = nightToTake(plan, store, property, room, line.roomType, day)
      if (!night) continue
      night.wanted += line.rooms
      const offered = offeredOn(plan, store, night)
      if (night.wanted > offered) {
        const { wanted } = night
        return refuse(context, OUTCOME.soldOut, `line=${n} date=${formatDay(day)} left=${offered} wanted=${wanted}`)
      }
      if ((line.flags & LINE_FLAGS.uncounted) === 0) total += (~night.hi >>> 0) * line.rooms
      lacksFeature ||= ((night.lo >>> 8) & features) !== features
    }
  }
  return lacksFeature ? refuse(context, OUTCOME.priceChanged, `total=${total}`) : total
}

/** Upper bound of what a new stay adds to the charge. */
function growthOf({ memory, writer }: Store, { lines }: StayCommand, isHold: boolean, credits = 0): number {
  let bytes = stayBytes(lines.length, credits) + lines.length * STAY_PROPERTY.bytes
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
  const replacement = replacementOf(context, replacedBy(context, stay), false)
  take(context, index, { ...command, source, lines, features: 0 }, stay, false, replacement)
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
  if (isOfFormerLife(store, stay, command)) return conflict(context, stay)
  context.applied.stay = stay
  const { timeMs } = reader
  if (isVoided(store, stay, command)) changeStay(store, stay, { state: STAY_STATE.void, index, timeMs })
  const reached = stateOf(memory, stay)
  if (!isTaken(reached)) return
  beginPlan(plan, context, false)
  planEnd(plan, store, stay)
  commit(context, plan)
  release(store, stay, index, timeMs)
}

/** A late repeat of a release: its stay ended, and the id was booked or held again since. */
function isOfFormerLife({ memory }: Store, stay: number, { bookedAt }: StayCommand): boolean {
  return bookedAt > 0 && isTaken(stateOf(memory, stay)) && moment(memory, stay, STAY.index) !== bookedAt
}

/** An expired hold may be taken again under its id: `void` excludes that. Below feature level 4 it did not. */
function isVoided({ memory }: Store, stay: number, { flags }: StayCommand): boolean {
  const isExpired = stateOf(memory, stay) === STAY_STATE.expired
  return isExpired && (flags & STAY_FLAGS.void) !== 0 && featureLevel(memory) >= LEDGER_LEVEL
}

/** A stay that never was, or a booking that is not remembered. */
function releaseUnknown(context: ApplyContext, index: number, command: StayCommand): void {
  const { store, reader } = context
  const { lines, flags } = command
  const isVoid = (flags & STAY_FLAGS.void) !== 0
  // Without the flag its lines prove nothing: the rooms may never have been taken.
  const isKnown = (flags & STAY_FLAGS.unrecorded) !== 0 || featureLevel(store.memory) < LEDGER_LEVEL
  if ((lines.length === 0 || !isKnown) && !isVoid) return fail(context, OUTCOME.unknownStay)
  if (exceedsBudget(context, growthOf(store, command, false), 0)) return
  beginPlan(plan, context, false)
  for (const line of lines) {
    const property = findProperty(store.memory, line.id, line.idStart)
    if (property === 0 || line.roomType < 0) continue
    store.writer.ledger.counts.unrecorded += planUnrecorded(plan, store, property, line.roomType, line)
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

// Expiry

function isOverdue({ memory }: Store, stay: number, timeMs: number): boolean {
  return stateOf(memory, stay) === STAY_STATE.held && moment(memory, stay, STAY.deadlineMs) <= timeMs
}

function expire(context: ApplyContext, stay: number): void {
  const { store, reader, applied } = context
  beginPlan(plan, context, false)
  planEnd(plan, store, stay)
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
    const stay = findStayOf(store, first.id)
    // The hold was confirmed, released or extended.
    if (stay === 0 || moment(store.memory, stay, STAY.deadlineMs) !== first.deadlineMs) continue
    expire(context, stay)
    n++
  }
}

/** The first deadline of a hold; undefined without holds. Drops entries of stays that are no longer held until then. */
export function settleDeadlines(store: Store): { readonly deadlineMs: number } | undefined {
  const { memory, writer } = store
  const { ledger } = writer
  for (;;) {
    const first = ledger.deadlines[0]
    if (first === undefined) return undefined
    const stay = findStayOf(store, first.id)
    if (stay !== 0 && moment(memory, stay, STAY.deadlineMs) === first.deadlineMs) return first
    popDeadline(ledger)
  }
}

/** What an entry does before its own command: expired holds return their rooms, old records go. */
export function keepLedger(context: ApplyContext): void {
  if (context.store.writer.ledger.deadlines.length > 0) expireHolds(context)
  forgetDue(context)
}

// Admission by the leader, before a command is in any log

/** Whether the leader proposes another stay of a source now. */
export function isStayAdmitted(store: Store, isHold: boolean, source: string, timeMs: number): boolean {
  const { memory, writer } = store
  const { ledger } = writer
  if (isHold && ledger.heldCount >= staySetting(memory, 'holds_max')) return false
  if (isHold && (ledger.heldBySource.get(source) ?? 0) >= staySetting(memory, 'holds_max_per_source')) return false
  return hasStayRoom(store, timeMs)
}
