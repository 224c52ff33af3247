/**
 * What the replica thread answers about stays: whole reply frames without correlation id, which a serving thread adds
 * (threads/writes.ts). Made right after the command was applied, so that they show the state at its index.
 */

import { formatDay, LIMITS, packDay, unpackPropertyId, yearOf } from '@vacancy/shared'
import { STAY_STATE } from '@vacancy/shared/wire'
import { addBytes, addText, addU8, beginReply, createReplyWriter, finishReply, growReply } from '../protocol/reply.ts'
import type { OversoldNight, StaysStatus } from '../status.ts'
import type { Applied } from '../store/apply-context.ts'
import { isStayAdmitted, settleDeadlines } from '../store/apply-stays.ts'
import {
  COMMAND_HEADER_BYTES,
  type CommandReader,
  createCommandReader,
  KIND,
  kindOfCommand,
  OUTCOME,
  readBytes,
  readF64,
  readName,
  readU8,
  readU32,
} from '../store/command.ts'
import { dayAt } from '../store/day.ts'
import { findName, NAMES, nameBytes } from '../store/dictionary.ts'
import { ROOMS, STATE, STAY, STAY_LINE, STAY_NIGHT, STAY_PROPERTY } from '../store/layout.ts'
import { debtOn, heldOn } from '../store/nights.ts'
import { planeOf, wordAddress } from '../store/planes.ts'
import { findProperty } from '../store/property-index.ts'
import { findRoom } from '../store/segment.ts'
import { ANY_DAY, cursorOf, STAY_READ } from '../store/stay-reads.ts'
import { staySettings } from '../store/stay-settings.ts'
import { findStay, findStayProperty, isCurrent, lineCount, lineOf, moment, stateOf } from '../store/stays.ts'
import { latestTime, type Store, state } from '../store/store.ts'
import { field } from '../store/table-fields.ts'

type StayAnswer = { readonly code: number; readonly frame: Uint8Array | undefined }

/** The ledger as the replica sees it. A frame is valid until the next one is made. */
export type StaysOfMachine = {
  /** The reply to an applied command; undefined for one that names no stay. */
  readonly replyTo: (applied: Applied) => Uint8Array | undefined
  /** Answers a read (tcp/stay-requests.ts). */
  readonly read: (bytes: Uint8Array, start: number, end: number) => StayAnswer
  /** Whether the leader proposes BOOKSTAY or HOLDSTAY now. */
  readonly admits: (bytes: Uint8Array, start: number, end: number) => boolean
  /** When the first hold ends, ms; infinite without holds. */
  readonly nextDeadlineMs: () => number
  readonly status: () => StaysStatus
}

export function staysOf(store: Store): StaysOfMachine {
  const reader = createCommandReader()
  return {
    replyTo: ({ stay }) => (stay === 0 ? undefined : stayFrame(store, stay)),
    read: (bytes, start, end) => {
      Object.assign(reader, {
        bytes,
        view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
        at: start,
        end,
      })
      return readU8(reader) === STAY_READ.one ? readOne(store, reader) : readList(store, reader)
    },
    admits: (bytes, start, end) => admits(store, reader, bytes, start, end),
    nextDeadlineMs: () => settleDeadlines(store)?.deadlineMs ?? Number.POSITIVE_INFINITY,
    status: () => statusOf(store),
  }
}

function statusOf(store: Store): StaysStatus {
  const { ledger } = store.writer
  return {
    stays: state(store.memory, STATE.stayCount),
    held: ledger.heldCount,
    bytes: ledger.bytes,
    oversoldNights: ledger.oversold.size,
    oversold: oversoldNights(store),
    nextDeadlineMs: settleDeadlines(store)?.deadlineMs ?? 0,
    expired: ledger.counts.expired,
    overflowedRooms: ledger.counts.overflowed,
    unrecordedRooms: ledger.counts.unrecorded,
    evicted: { ...ledger.counts.evicted },
    isFull: ledger.counts.evictedAtMs > latestTime(store.memory) - DAY_MS,
    refused: Object.fromEntries(ledger.counts.refused),
    settings: staySettings(store.memory),
  }
}

/** Nights that `/status` names: enough to begin with, whatever went wrong. */
const OVERSOLD_NAMED_MAX = 20

function oversoldNights({ memory, writer }: Store): OversoldNight[] {
  return [...writer.ledger.oversold.values().take(OVERSOLD_NAMED_MAX)].map((night) => ({
    propertyId: unpackPropertyId(memory.u8, field(memory, night)),
    roomType: new TextDecoder().decode(nameBytes(memory, NAMES.roomType, field(memory, night + STAY_NIGHT.roomType))),
    date: formatDay(field(memory, night + STAY_NIGHT.day)),
    held: heldOn(memory, night),
    owed: debtOn(memory, night),
  }))
}

/** Bytes of a stay command before its source. */
const BEFORE_SOURCE = COMMAND_HEADER_BYTES + 16 + 1 + 4 + 8 + 4 + 16

function admits(store: Store, reader: CommandReader, bytes: Uint8Array, start: number, end: number): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const kind = kindOfCommand(view, start)
  // A repeat finds its stay and needs no room.
  if (findStay(store, bytes, start + COMMAND_HEADER_BYTES) !== 0) return true
  Object.assign(reader, { bytes, view, at: start + BEFORE_SOURCE, end })
  const sourceStart = readName(reader)
  const source = String.fromCharCode(...bytes.subarray(sourceStart, reader.at))
  return isStayAdmitted(store, kind === KIND.holdStay, source, latestTime(store.memory))
}

// Replies

const writer = createReplyWriter()
const TYPE_NUMBER = 3
const TYPE_DAYS = 8
const TYPE_RECORDS = 10
const DAY_BYTES = 11
/** Two names with their lengths, the arrival, nights, rooms and flags. */
const LINE_BYTES_MAX = 2 + 2 * LIMITS.nameBytesMax + 13
/** Largest frame of a reply on one stay, and of one entry of a list. */
const FRAME_BYTES = 32 * 1024

// A reply is made for every stay, so parts are written to buffers that are used again: a new array costs more than its
// content. Each is copied to the reply before the next one of its kind is made.
const NUMBER = new Uint8Array(8)
const NUMBER_CELLS = new DataView(NUMBER.buffer)
const LINES = new Uint8Array(LIMITS.stayLinesMax * LINE_BYTES_MAX)
const DAYS = new Uint8Array(2 + 255 * DAY_BYTES)
const DAYS_CELLS = new DataView(DAYS.buffer)

function u64(value: number): Uint8Array {
  NUMBER_CELLS.setUint32(0, value >>> 0, true)
  NUMBER_CELLS.setUint32(4, Math.floor(value / 2 ** 32), true)
  return NUMBER
}

function begin(): void {
  growReply(writer, FRAME_BYTES)
  beginReply(writer, writer.bytes, 0, writer.bytes.length, 0)
}

function stayFrame(store: Store, stay: number): Uint8Array {
  const { memory } = store
  begin()
  const reached = stateOf(memory, stay)
  addU8(writer, reached)
  addBytes(writer, TYPE_NUMBER, u64(moment(memory, stay, STAY.deadlineMs)))
  addBytes(writer, TYPE_NUMBER, u64(moment(memory, stay, STAY.total)))
  addBytes(writer, TYPE_NUMBER, u64(moment(memory, stay, STAY.index)))
  addBytes(writer, TYPE_RECORDS, linesOf(store, stay))
  if (reached === STAY_STATE.held || reached === STAY_STATE.booked) {
    for (let n = 0; n < lineCount(memory, stay); n++) addBytes(writer, TYPE_DAYS, daysOf(store, lineOf(stay, n)))
  }
  return writer.bytes.subarray(0, finishReply(writer))
}

const encoder = new TextEncoder()

/** Copies a name with its length to LINES. @returns where it ends */
function putName(at: number, name: Uint8Array): number {
  LINES[at] = name.length
  LINES.set(name, at + 1)
  return at + 1 + name.length
}

function linesOf(store: Store, stay: number): Uint8Array {
  const { memory } = store
  let at = 0
  for (let n = 0; n < lineCount(memory, stay); n++) {
    const line = lineOf(stay, n)
    const id = encoder.encodeInto(unpackPropertyId(memory.u8, field(memory, line)), LINES.subarray(at + 1)).written
    LINES[at] = id
    at = putName(at + 1 + id, nameBytes(memory, NAMES.roomType, field(memory, line + STAY_LINE.roomType)))
    at += encoder.encodeInto(formatDay(field(memory, line + STAY_LINE.arrival)), LINES.subarray(at)).written
    LINES[at++] = memory.u8[line + STAY_LINE.nights]
    LINES[at++] = memory.u8[line + STAY_LINE.rooms]
    LINES[at++] = memory.u8[line + STAY_LINE.flags]
  }
  return LINES.subarray(0, at)
}

/** Days as replies have them, by day, for one base year; -1 = before that year. */
const packed = { baseYear: 0, days: new Map<number, number>() }
/** More than the window has. */
const PACKED_MAX = 1_000

function packedDay(day: number, baseYear: number): number {
  if (packed.baseYear !== baseYear || packed.days.size > PACKED_MAX) {
    packed.days.clear()
    packed.baseYear = baseYear
  }
  let found = packed.days.get(day)
  if (found === undefined) {
    // Nights of the last year do not fit the format of dates, and are past.
    found = yearOf(day) < baseYear ? -1 : packDay(day, baseYear)
    packed.days.set(day, found)
  }
  return found
}

/** What is left on the nights of a line that have a package. */
function daysOf({ memory }: Store, line: number): Uint8Array {
  const property = isCurrent(memory, line) ? findProperty(memory, memory.u8, field(memory, line)) : 0
  const room = property === 0 ? 0 : findRoom(memory, property, field(memory, line + STAY_LINE.roomType))
  const baseYear = yearOf(dayAt(memory, latestTime(memory)))
  let days = 0
  for (let n = 0; room !== 0 && n < memory.u8[line + STAY_LINE.nights]; n++) {
    const day = field(memory, line + STAY_LINE.arrival) + n
    const plane = day < state(memory, STATE.droppedBefore) ? 0 : planeOf(memory, field(memory, room + ROOMS.table), day)
    if (plane === 0) continue
    const cell = wordAddress(plane, field(memory, room + ROOMS.row)) >>> 2
    const [lo, hi] = [memory.u32[cell], memory.u32[cell + 1]]
    const date = packedDay(day, baseYear)
    if ((lo | hi) === 0 || date < 0) continue
    const at = 2 + days++ * DAY_BYTES
    DAYS_CELLS.setUint16(at, date, true)
    DAYS[at + 2] = lo & 0xff
    DAYS_CELLS.setUint32(at + 3, ~hi >>> 0, true)
    DAYS_CELLS.setUint32(at + 7, lo >>> 8, true)
  }
  DAYS_CELLS.setUint16(0, days, true)
  return DAYS.subarray(0, 2 + days * DAY_BYTES)
}

const DAY_MS = 86_400_000

function readOne(store: Store, reader: CommandReader): StayAnswer {
  const stay = findStay(store, reader.bytes, readBytes(reader, 16))
  if (stay === 0) return { code: OUTCOME.unknownStay, frame: undefined }
  return { code: OUTCOME.done, frame: stayFrame(store, stay) }
}

function readList(store: Store, reader: CommandReader): StayAnswer {
  const { memory } = store
  const id = readBytes(reader, 16)
  const nameStart = readName(reader)
  const nameEnd = reader.at
  const day = readU32(reader)
  const limit = readU8(reader)
  const beforeIndex = readF64(reader)
  const beforeId = reader.bytes.slice(readBytes(reader, 16), reader.at)
  const property = findStayProperty(store, reader.bytes, id)
  if (property === 0 && findProperty(memory, reader.bytes, id) === 0) {
    return { code: OUTCOME.unknownProperty, frame: undefined }
  }
  const isAnyRoom = nameEnd === nameStart
  const roomType = isAnyRoom ? -1 : findName(memory, NAMES.roomType, reader.bytes, nameStart, nameEnd)
  const found = new Set<number>()
  for (let line = property === 0 ? 0 : field(memory, property + STAY_PROPERTY.firstLine); line !== 0; ) {
    const first = field(memory, line + STAY_LINE.arrival)
    const covers = day === ANY_DAY || (day >= first && day < first + memory.u8[line + STAY_LINE.nights])
    if (covers && (isAnyRoom || field(memory, line + STAY_LINE.roomType) === roomType)) {
      found.add(field(memory, line + STAY_LINE.stay))
    }
    line = field(memory, line + STAY_LINE.next)
  }
  const newest = [...found].map((stay) => ({ stay, index: moment(memory, stay, STAY.index), id: idOf(store, stay) }))
  newest.sort((a, b) => b.index - a.index || compare(b.id, a.id))
  const isLater = ({ index, id: own }: (typeof newest)[number]) =>
    beforeIndex === 0 || index < beforeIndex || (index === beforeIndex && compare(own, beforeId) < 0)
  const rest = newest.filter(isLater)
  return { code: OUTCOME.done, frame: listFrame(store, rest, limit) }
}

function idOf({ memory }: Store, stay: number): Uint8Array {
  return memory.u8.slice(stay, stay + 16)
}

function compare(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < 16; i++) if (a[i] !== b[i]) return a[i] - b[i]
  return 0
}

type Listed = { readonly stay: number; readonly index: number; readonly id: Uint8Array }

function listFrame(store: Store, rest: readonly Listed[], limit: number): Uint8Array {
  begin()
  const page = rest.slice(0, limit)
  for (const { stay } of page) {
    growReply(writer, writer.at + FRAME_BYTES)
    addBytes(writer, TYPE_RECORDS, entryOf(store, stay))
  }
  const last = page.at(-1)
  addText(writer, last && rest.length > page.length ? cursorOf(last.index, last.id) : '')
  return writer.bytes.subarray(0, finishReply(writer))
}

/** Id, state, deadline, index, time, source and lines. */
function entryOf(store: Store, stay: number): Uint8Array {
  const { memory } = store
  const sourceBytes = memory.u8[stay + STAY.sourceBytes]
  const lines = linesOf(store, stay)
  const bytes = new Uint8Array(16 + 1 + 24 + 1 + sourceBytes + 1 + lines.length)
  bytes.set(idOf(store, stay))
  bytes[16] = stateOf(memory, stay)
  bytes.set(u64(moment(memory, stay, STAY.deadlineMs)), 17)
  bytes.set(u64(moment(memory, stay, STAY.index)), 25)
  bytes.set(u64(moment(memory, stay, STAY.timeMs)), 33)
  bytes[41] = sourceBytes
  bytes.set(memory.u8.subarray(stay + STAY.source, stay + STAY.source + sourceBytes), 42)
  bytes[42 + sourceBytes] = lineCount(memory, stay)
  bytes.set(lines, 43 + sourceBytes)
  return bytes
}
