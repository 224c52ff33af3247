/**
 * Stays, nights with holds and generations of properties ⇄ the raw bytes of their block
 * (docs/design/stays.md#ledger). Both lists of stays are in list order, everything else is sorted, so that equal states
 * have equal bytes. Without stays there is no block.
 */

import { compareBytes, LIMITS } from '@vacancy/shared'
import { STAY_STATE } from '@vacancy/shared/wire'
import { keyOf } from '../store/apply-context.ts'
import { keepStays } from '../store/apply-properties.ts'
import { internText, NAMES, nameText } from '../store/dictionary.ts'
import { STATE, STAY, STAY_LINE, STAY_NIGHT, STAY_PROPERTY } from '../store/layout.ts'
import {
  debtOn,
  forEachNight,
  heldOn,
  type NightPackage,
  owePackage,
  packageOfNight,
  removeNight,
  sellableOf,
  setNight,
} from '../store/nights.ts'
import { changeWord } from '../store/planes.ts'
import { findProperty } from '../store/property-index.ts'
import {
  createStay,
  creditCount,
  forEachHeld,
  forEachSettled,
  generationOf,
  type LineRecord,
  lineCount,
  lineOf,
  recordOf,
  removeStay,
  replacedIdOf,
  type StayRecord,
  setGeneration,
  setLineGenerations,
  stayPropertyOf,
} from '../store/stays.ts'
import { type Memory, type Store, state } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import {
  createFieldReader,
  createFieldWriter,
  expectEnd,
  type FieldReader,
  type FieldWriter,
  putBytes,
  putTexts,
  putU8,
  putU32,
  putU64,
  refuse,
  takeBytes,
  takeCount,
  takeTexts,
  takeU8,
  takeU32,
  takeU64,
  written,
} from './columns.ts'

const ID_BYTES = 16
const LINE_BYTES = ID_BYTES + 4 * 3 + 3
const STAY_BYTES_MIN = ID_BYTES + 1 + 6 * 8 + 2
const NIGHT_BYTES = ID_BYTES + 4 * 2 + 2
const GENERATION_BYTES = ID_BYTES + 4

/** Reads one memory image: the store's own, or that of a snapshot. */
export function encodeLedger(memory: Memory): Uint8Array {
  if (state(memory, STATE.stayPropertyHead) === 0 && state(memory, STATE.stayCount) === 0) return new Uint8Array(0)
  const nights: number[] = []
  forEachNight(memory, (night) => nights.push(night))
  const lists = [forEachSettled, forEachHeld].map((forEach) => {
    const stays: number[] = []
    forEach(memory, (stay) => stays.push(stay))
    return stays
  })
  const names = namesOf(memory, lists.flat(), nights)
  const writer = createFieldWriter()
  putTexts(writer, names.texts)
  for (const stays of lists) {
    putU32(writer, stays.length)
    for (const stay of stays) putStay(writer, memory, stay, names.placeOf)
  }
  putU32(writer, nights.length)
  for (const night of sorted(nights.map((each) => nightBytes(memory, each, names.placeOf)))) putBytes(writer, night)
  const generations: Uint8Array[] = []
  for (let property = state(memory, STATE.stayPropertyHead); property !== 0; ) {
    if (generationOf(memory, property) > 0) generations.push(generationBytes(memory, property))
    property = field(memory, property + STAY_PROPERTY.next)
  }
  putU32(writer, generations.length)
  for (const bytes of sorted(generations)) putBytes(writer, bytes)
  return written(writer)
}

type RoomNames = { readonly texts: readonly string[]; readonly placeOf: ReadonlyMap<number, number> }

/** The room types that the ledger names, sorted. */
function namesOf(memory: Memory, stays: readonly number[], nights: readonly number[]): RoomNames {
  const numbers = new Set<number>()
  for (const stay of stays) {
    const lines = lineCount(memory, stay) + creditCount(memory, stay)
    for (let n = 0; n < lines; n++) numbers.add(field(memory, lineOf(stay, n) + STAY_LINE.roomType))
  }
  for (const night of nights) numbers.add(field(memory, night + STAY_NIGHT.roomType))
  const encoder = new TextEncoder()
  const named = [...numbers].map((number) => ({ number, text: nameText(memory, NAMES.roomType, number) }))
  named.sort((a, b) => compareBytes(encoder.encode(a.text), encoder.encode(b.text)))
  return { texts: named.map(({ text }) => text), placeOf: new Map(named.map(({ number }, place) => [number, place])) }
}

function sorted(records: Uint8Array[]): Uint8Array[] {
  return records.sort(compareBytes)
}

function putStay(writer: FieldWriter, memory: Memory, stay: number, placeOf: RoomNames['placeOf']): void {
  const { u8 } = memory
  const record = recordOf(memory, stay)
  const lines = lineCount(memory, stay)
  const credits = creditCount(memory, stay)
  putBytes(writer, u8.subarray(stay, stay + ID_BYTES))
  putU8(writer, record.state | (credits > 0 ? HAS_CREDITS : 0))
  for (const name of MOMENTS) putU64(writer, record[name])
  const sourceBytes = u8[stay + STAY.sourceBytes]
  putU8(writer, sourceBytes)
  putBytes(writer, u8.subarray(stay + STAY.source, stay + STAY.source + sourceBytes))
  putLines(writer, memory, lineOf(stay, 0), lines, placeOf)
  if (credits === 0) return
  const id = replacedIdOf(memory, stay)
  putBytes(writer, u8.subarray(id, id + ID_BYTES))
  putLines(writer, memory, lineOf(stay, lines), credits, placeOf)
}

/** Flag beside the state of a stay that was to replace another one: its id and lines follow. */
const HAS_CREDITS = 0x80

function putLines(
  writer: FieldWriter,
  memory: Memory,
  first: number,
  count: number,
  placeOf: RoomNames['placeOf'],
): void {
  putU8(writer, count)
  for (let n = 0; n < count; n++) {
    const line = first + n * STAY_LINE.bytes
    const property = field(memory, line)
    putBytes(writer, memory.u8.subarray(property, property + ID_BYTES))
    putU32(writer, field(memory, line + STAY_LINE.generation))
    putU32(writer, placeOf.get(field(memory, line + STAY_LINE.roomType)) as number)
    putU32(writer, field(memory, line + STAY_LINE.arrival))
    putBytes(writer, memory.u8.subarray(line + STAY_LINE.nights, line + STAY_LINE.flags + 1))
  }
}

const MOMENTS = ['deadlineMs', 'total', 'index', 'timeMs', 'bookedIndex', 'heldSinceMs'] as const

function nightBytes(memory: Memory, night: number, placeOf: RoomNames['placeOf']): Uint8Array {
  const bytes = new Uint8Array(NIGHT_BYTES)
  const property = field(memory, night)
  bytes.set(memory.u8.subarray(property, property + ID_BYTES))
  const view = new DataView(bytes.buffer)
  view.setUint32(ID_BYTES, placeOf.get(field(memory, night + STAY_NIGHT.roomType)) as number, true)
  view.setUint32(ID_BYTES + 4, field(memory, night + STAY_NIGHT.day), true)
  bytes[ID_BYTES + 8] = heldOn(memory, night)
  bytes[ID_BYTES + 9] = debtOn(memory, night)
  return bytes
}

function generationBytes(memory: Memory, property: number): Uint8Array {
  const bytes = new Uint8Array(GENERATION_BYTES)
  bytes.set(memory.u8.subarray(property, property + ID_BYTES))
  new DataView(bytes.buffer).setUint32(ID_BYTES, generationOf(memory, property), true)
  return bytes
}

type LoadedLine = Omit<LineRecord, 'id' | 'idStart'> & { readonly id: Uint8Array; readonly generation: number }
type LoadedStay = {
  readonly id: Uint8Array
  readonly record: StayRecord
  readonly source: Uint8Array
  readonly lines: readonly LoadedLine[]
  /** The stay that it was to replace. */
  readonly replaced: { readonly id: Uint8Array; readonly lines: readonly LoadedLine[] } | undefined
}
type LoadedNight = {
  readonly id: Uint8Array
  readonly roomType: number
  readonly day: number
  readonly held: number
  readonly debt: number
}

/** A verified ledger. Room types are places in `roomTypes`. */
export type LoadedLedger = {
  readonly roomTypes: readonly string[]
  readonly stays: readonly LoadedStay[]
  readonly nights: readonly LoadedNight[]
  readonly generations: readonly { readonly id: Uint8Array; readonly generation: number }[]
}

const NO_LEDGER: LoadedLedger = { roomTypes: [], stays: [], nights: [], generations: [] }

/** @throws corrupt_data for bytes that no ledger has */
export function decodeLedger(bytes: Uint8Array, file: string): LoadedLedger {
  if (bytes.length === 0) return NO_LEDGER
  const reader = createFieldReader(bytes, `${file} (stays)`)
  const roomTypes = takeTexts(reader)
  const seen = new Set<string>()
  const stays = [false, true].flatMap((isHeld) => {
    const count = takeCount(reader, STAY_BYTES_MIN)
    return Array.from({ length: count }, () => takeStay(reader, roomTypes.length, isHeld, seen))
  })
  const nights = Array.from({ length: takeCount(reader, NIGHT_BYTES) }, () => ({
    id: takeBytes(reader, ID_BYTES),
    roomType: takePlace(reader, roomTypes.length),
    day: takeU32(reader),
    held: takeU8(reader),
    debt: takeU8(reader),
  }))
  const generations = Array.from({ length: takeCount(reader, GENERATION_BYTES) }, () => ({
    id: takeBytes(reader, ID_BYTES),
    generation: takeU32(reader),
  }))
  expectEnd(reader)
  return { roomTypes, stays, nights, generations }
}

function takePlace(reader: FieldReader, roomTypes: number): number {
  const place = takeU32(reader)
  if (place >= roomTypes) refuse(reader, `room type ${place} of ${roomTypes}`)
  return place
}

function takeStay(reader: FieldReader, roomTypes: number, isHeld: boolean, seen: Set<string>): LoadedStay {
  const id = takeBytes(reader, ID_BYTES)
  if (seen.has(String(id))) refuse(reader, 'a stay occurs twice')
  seen.add(String(id))
  const flagged = takeU8(reader)
  const reached = flagged & ~HAS_CREDITS
  const isKnown = reached >= STAY_STATE.held && reached <= STAY_STATE.void
  if (!isKnown || (reached === STAY_STATE.held) !== isHeld) refuse(reader, `a stay has state ${reached}`)
  const [deadlineMs, total, index, timeMs, bookedIndex, heldSinceMs] = MOMENTS.map(() => takeU64(reader)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const sourceBytes = takeU8(reader)
  if (sourceBytes > LIMITS.sourceBytesMax) refuse(reader, `a source has ${sourceBytes} bytes`)
  const source = takeBytes(reader, sourceBytes)
  const lines = takeLines(reader, roomTypes)
  const replaced =
    flagged === reached ? undefined : { id: takeBytes(reader, ID_BYTES), lines: takeLines(reader, roomTypes) }
  if (replaced?.lines.length === 0) refuse(reader, 'the stay to replace has no lines')
  const record = { state: reached, deadlineMs, total, index, timeMs, bookedIndex, heldSinceMs }
  return { id, record, source, lines, replaced }
}

function takeLines(reader: FieldReader, roomTypes: number): LoadedLine[] {
  const count = takeU8(reader)
  if (count > LIMITS.stayLinesMax) refuse(reader, `a stay has ${count} lines`)
  if (count * LINE_BYTES > reader.bytes.length - reader.at) refuse(reader, 'lines of a stay are missing')
  return Array.from({ length: count }, () => ({
    id: takeBytes(reader, ID_BYTES),
    generation: takeU32(reader),
    roomType: takePlace(reader, roomTypes),
    arrival: takeU32(reader),
    nights: takeU8(reader),
    rooms: takeU8(reader),
    flags: takeU8(reader),
  }))
}

/** Loads a ledger into a store that has none. */
export function restoreLedger(store: Store, { roomTypes, stays, nights, generations }: LoadedLedger): void {
  const numbers = roomTypes.map((name) => internText(store, NAMES.roomType, name))
  const named = (line: LoadedLine) => ({ ...line, idStart: 0, roomType: numbers[line.roomType] as number })
  for (const { id, record, source, lines, replaced } of stays) {
    const credits = replaced && { id: replaced.id, idStart: 0, lines: replaced.lines.map(named) }
    const stay = createStay(store, id, 0, record, source, lines.map(named), credits)
    setLineGenerations(
      store,
      stay,
      lines.map(({ generation }) => generation),
    )
  }
  for (const { id, roomType, day, held, debt } of nights) {
    setNight(store, stayPropertyOf(store, id, 0), numbers[roomType] as number, day, held, debt)
  }
  for (const { id, generation } of generations) setGeneration(store, id, 0, generation)
}

// Bulk load: the data change, the ledger stays

/**
 * Removes the ledger that came with the data of a bulk load. Its holds are part of what the source counts as left.
 */
export function dissolveLedger(store: Store): void {
  const { memory } = store
  const nights: number[] = []
  forEachNight(memory, (night) => nights.push(night))
  for (const night of nights) {
    const word = packageOfNight(store, night)
    if (word)
      putLeft(
        store,
        word,
        Math.min(LIMITS.availabilityMax, Math.max(0, word.left + heldOn(memory, night) - debtOn(memory, night))),
      )
    removeNight(store, night)
  }
  const stays: number[] = []
  for (const forEach of [forEachSettled, forEachHeld]) forEach(memory, (stay) => stays.push(stay))
  for (const stay of stays) removeStay(store, stay)
}

/** Applies what is held to the data of a bulk load, whose values include rooms on hold. */
export function holdInData(store: Store): void {
  const { memory, writer } = store
  for (const property of [...writer.ledger.properties.values()]) {
    if (findProperty(memory, memory.u8, property) === 0) keepStays(store, property)
  }
  const nights: number[] = []
  forEachNight(memory, (night) => nights.push(night))
  for (const night of nights) {
    const word = packageOfNight(store, night)
    if (word) putLeft(store, word, sellableOf(store, night, word.left))
    else owePackage(store, night)
  }
}

function putLeft(
  store: Store,
  { property, roomType, table, plane, row, lo, hi, left }: NightPackage,
  next: number,
): void {
  if (next === left) return
  const { memory } = store
  const [low, high] = [keyOf(memory, property, roomType, 0), keyOf(memory, property, roomType, 1)]
  // Not atomic: no reader is in the store while a bulk load replaces its data.
  const put = (address: number, ...word: [lo: number, hi: number]) => memory.u32.set(word, address >>> 2)
  changeWord(store, put, table, plane, row, ((lo & 0xffffff00) | next) >>> 0, hi, low, high)
}
