/**
 * Replies as objects ↔ frames (docs/design/protocol.md#replies, docs/design/protocol.md#successes,
 * docs/design/protocol.md#extension-fields), for clients, tests and tools. The engine writes replies in place.
 */

import { assert } from '../assert.ts'
import { type CodecList, maskOf, namesOf } from '../codecs.ts'
import { baseYearOf, formatDay, packDay, parseDay, unpackDay, unpackDayBetween } from '../dates.ts'
import { PROPERTY_ID_BYTES, unpackPropertyId, unpackPropertyIds } from '../property-id.ts'
import { fitErrorText } from '../text.ts'
import { COMMANDS, type CommandName, type ReplyKind } from './commands.ts'
import {
  addBytes,
  addField,
  addText,
  addU8,
  addU16,
  addU32,
  addU64,
  beginFrame,
  createFieldWriter,
  FIELD_HEADER_BYTES,
  type FieldWriter,
  finishFrame,
  readU64,
} from './fields.ts'
import { readU32 } from './frame.ts'
import {
  addCalendarDays,
  addFlexibleStays,
  type CalendarDay,
  type FlexibleStay,
  takeCalendarDays,
  takeFlexibleStays,
} from './reply-calendar.ts'
import { addCells, addFacets, type MapCell, type SearchFacets, takeCells, takeFacets } from './reply-facets.ts'
import {
  type Cursor,
  currentText,
  ERROR,
  EXTRA_ID,
  isTrailer,
  malformed,
  openReply,
  SUCCESS,
  takeExtra,
  takeField,
  textAt,
} from './reply-fields.ts'
import {
  addList,
  addPage,
  addValues,
  addValuesOf,
  hitWithValues,
  type NightPackage,
  packed,
  type SearchPage,
  type SearchValues,
  takeList,
  takePage,
  takeValuesTrailer,
  type ValueReader,
} from './reply-search.ts'
import { decodeStayLines, encodeStayLine, STAY_STATE, STAY_STATES, type StayLine, type StayState } from './stay.ts'

/** Statistics of a search, requested with `explain`: 1, or 2 with its stages. */
export type SearchExplained = {
  rowsExamined: number
  waitingMicros: number
  searchingMicros: number
  appliedIndex: number | bigint
  /** Parts of `searchingMicros`. One that writes each hit as it finds it has that in `examiningMicros`. */
  stages?: { planningMicros: number; examiningMicros: number; writingMicros: number }
}

/** A line with what is left after the call, for the nights that have a package. Only of a held or booked stay. */
type StayedLine = StayLine & { readonly days?: NightPackage[] }

/** A stay as the reply to the commands that name one. */
export type StayResult = {
  state: StayState
  /** When a held stay expires, ms since 1970. */
  deadlineMs?: number
  /** Prices of all nights, lines and rooms. */
  total: number | bigint
  /** Log index at which the stay reached this state. */
  index: number | bigint
  lines: StayedLine[]
  /** Index of the write, with `wantIndex`. */
  appliedIndex?: number | bigint
}

/** A stay as listed. */
export type StayEntry = {
  stayId: string
  state: StayState
  deadlineMs?: number
  index: number | bigint
  /** Shard time at that index, ms since 1970. */
  timeMs: number
  source: string
  lines: StayLine[]
}

/** What a search counts, where it is asked to. */
type Counted = { facets?: SearchFacets; cells?: MapCell[]; explain?: SearchExplained }
type StayHit = { propertyId: string; days: NightPackage[] } & SearchValues

/** The content of a SUCCESS reply, by its kind. `index` only for a write with `wantIndex`. */
type Results = {
  login: Record<never, never>
  codecs: { rateFeatures: string[] }
  segments: { segments: { segment: string; propertyCount: number }[] }
  empty: { index?: number | bigint }
  /** `values` are in the order of the ids. */
  properties: { propertyIds: string[]; values?: SearchValues[]; page?: SearchPage } & Counted
  /** Compact hits have no days. */
  stays: { numDays: number; properties: StayHit[]; page?: SearchPage } & Counted
  calendar: { nights: number; days: CalendarDay[]; explain?: SearchExplained }
  /** One stay of each property. */
  flexible: { arrivalDays: number; bestStays: FlexibleStay[]; page?: SearchPage; explain?: SearchExplained }
  availability: { availability: number; index?: number | bigint }
  exists: { exists: boolean }
  roomTypes: { roomTypes: string[] }
  dates: { dates: string[] }
  night: { propertyId: string } & NightPackage
  stay: StayResult
  /** `cursor` is '' on the last page. */
  stayList: { stays: StayEntry[]; cursor: string }
}

export type Result<Name extends CommandName = CommandName> = Results[(typeof COMMANDS)[Name]['reply']]

/** Any result: the union of all results' fields. */
export type ReplyResult = { readonly [Key in AllKeys]?: ValueIn<Results[ReplyKind], Key> }

type AllKeys = { [Kind in ReplyKind]: keyof Results[Kind] }[ReplyKind]
type ValueIn<Of, Key extends PropertyKey> = Of extends unknown ? (Key extends keyof Of ? Of[Key] : never) : never

/** The context of the dates and masks of a reply. */
export type ReplyContext = {
  /**
   * Base year of packed dates when a reply is written: the year of the writer's day. A reader does not know it. It
   * gives `dates` instead, except for a frame whose request is not at hand. The nights of stays need neither.
   */
  readonly baseYear?: number
  /** To read a reply: the nights of its request, YYYY-MM-DD. Packed dates are among them. */
  readonly dates?: readonly string[]
  /** Undefined while unknown, as before the reply to GETCODECS. Replies with rate features are then refused. */
  readonly codecs: CodecList | undefined
}

const TYPE_TEXT = 0x01
const TYPE_SMALL = 0x02
const TYPE_NUMBER = 0x03
const TYPE_DAYS = 0x08
const TYPE_CODECS = 0x09
const TYPE_RECORDS = 0x0a
const DAY_BYTES = 11
const EXPLAIN_BYTES = 20
const EXPLAIN_STAGES_BYTES = 32

const writer = createFieldWriter()

/** The frame of a SUCCESS reply. */
export function encodeReply<Name extends CommandName>(
  command: Name,
  correlationId: number,
  result: Result<Name>,
  context: ReplyContext,
): Uint8Array {
  beginFrame(writer, correlationId, SUCCESS)
  const encode = ENCODE[COMMANDS[command].reply] as (to: FieldWriter, result: unknown, context: ReplyContext) => void
  encode(writer, result, context)
  return finishFrame(writer)
}

const ENCODE: {
  readonly [Kind in ReplyKind]: (to: FieldWriter, result: Results[Kind], context: ReplyContext) => void
} = {
  login: () => assert(false, 'the reply to LOGIN is bare text'),
  codecs: (to, { rateFeatures }) => addText(to, 1, TYPE_CODECS, rateFeatures.join(',')),
  segments: (to, { segments }) => {
    for (const { segment, propertyCount } of segments) {
      addText(to, to.fields + 1, TYPE_TEXT, segment)
      addU32(to, to.fields + 1, propertyCount)
    }
  },
  empty: addIndex,
  properties: (to, { propertyIds, values, page, ...counted }) => {
    for (const id of propertyIds) addBytes(to, to.fields + 1, TYPE_TEXT, packed(id))
    addPage(to, page)
    addValues(to, values ?? [])
    addCounted(to, counted)
  },
  stays: (to, { numDays, properties, page, ...counted }, context) => {
    addU16(to, 1, numDays)
    const isCompact = properties.some(({ days }) => days.length === 0)
    if (isCompact) addList(to, properties)
    else {
      for (const { propertyId, days } of properties) {
        addBytes(to, to.fields + 1, TYPE_TEXT, packed(propertyId))
        addDays(to, days, context)
      }
    }
    addPage(to, page)
    if (!isCompact) addValues(to, properties)
    addCounted(to, counted)
  },
  calendar: (to, { nights, days, explain }) => {
    addU8(to, 1, nights)
    addCalendarDays(to, days)
    addExplain(to, explain)
  },
  flexible: (to, { arrivalDays, bestStays, page, explain }) => {
    addU16(to, 1, arrivalDays)
    addFlexibleStays(to, bestStays)
    addPage(to, page)
    addExplain(to, explain)
  },
  availability: (to, result) => {
    addU8(to, 1, result.availability)
    addIndex(to, result)
  },
  exists: (to, { exists }) => addU8(to, 1, exists ? 1 : 0),
  roomTypes: (to, { roomTypes }) => addTexts(to, roomTypes),
  dates: (to, { dates }) => addTexts(to, dates),
  night: (to, night, context) => {
    addText(to, 1, TYPE_TEXT, night.propertyId)
    addText(to, 2, TYPE_TEXT, night.date)
    addU8(to, 3, night.availability)
    addU32(to, 4, night.finalPrice)
    addU32(to, 5, packedFeatures(night.rateFeatures, context))
  },
  stay: (to, stay, context) => {
    addU8(to, 1, STAY_STATE[stay.state])
    addU64(to, 2, stay.deadlineMs ?? 0)
    addU64(to, 3, stay.total)
    addU64(to, 4, stay.index)
    addBytes(to, 5, TYPE_RECORDS, packedLines(stay.lines))
    for (const { days } of stay.lines) if (days) addDays(to, days, context)
    addIndex(to, { index: stay.appliedIndex })
  },
  stayList: (to, { stays, cursor }) => {
    for (const stay of stays) addStayEntry(to, stay)
    addText(to, to.fields + 1, TYPE_TEXT, cursor)
  },
}

function packedLines(lines: readonly StayedLine[]): Uint8Array {
  const parts = lines.map(({ days: _, ...line }, n) => encodeStayLine(line, n))
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** Id, state, deadline, index, time and the length of the source: what precedes the source of a listed stay. */
const ENTRY_HEAD_BYTES = PROPERTY_ID_BYTES + 1 + 8 + 8 + 8 + 1

function addStayEntry(to: FieldWriter, stay: StayEntry): void {
  const source = new TextEncoder().encode(stay.source)
  const lines = packedLines(stay.lines)
  const at = addField(to, to.fields + 1, TYPE_RECORDS, ENTRY_HEAD_BYTES + source.length + 1 + lines.length)
  const { bytes, view } = to
  bytes.set(packed(stay.stayId), at)
  view.setUint8(at + 16, STAY_STATE[stay.state])
  view.setBigUint64(at + 17, BigInt(stay.deadlineMs ?? 0), true)
  view.setBigUint64(at + 25, BigInt(stay.index), true)
  view.setBigUint64(at + 33, BigInt(stay.timeMs), true)
  view.setUint8(at + 41, source.length)
  bytes.set(source, at + ENTRY_HEAD_BYTES)
  view.setUint8(at + ENTRY_HEAD_BYTES + source.length, stay.lines.length)
  bytes.set(lines, at + ENTRY_HEAD_BYTES + source.length + 1)
}

function addTexts(to: FieldWriter, texts: readonly string[]): void {
  for (const text of texts) addText(to, to.fields + 1, TYPE_TEXT, text)
}

function addIndex(to: FieldWriter, { index }: { index?: number | bigint | undefined }): void {
  if (index !== undefined) addU64(to, EXTRA_ID, index)
}

function addExplain(to: FieldWriter, explain: SearchExplained | undefined): void {
  if (!explain) return
  const { stages } = explain
  const at = addField(to, EXTRA_ID, TYPE_CODECS, stages ? EXPLAIN_STAGES_BYTES : EXPLAIN_BYTES)
  to.view.setUint32(at, explain.rowsExamined, true)
  to.view.setUint32(at + 4, explain.waitingMicros, true)
  to.view.setUint32(at + 8, explain.searchingMicros, true)
  to.view.setBigUint64(at + 12, BigInt(explain.appliedIndex), true)
  if (!stages) return
  to.view.setUint32(at + 20, stages.planningMicros, true)
  to.view.setUint32(at + 24, stages.examiningMicros, true)
  to.view.setUint32(at + 28, stages.writingMicros, true)
}

function addDays(to: FieldWriter, days: readonly NightPackage[], context: ReplyContext): void {
  const { baseYear } = context
  let at = addField(to, to.fields + 1, TYPE_DAYS, 2 + days.length * DAY_BYTES)
  to.view.setUint16(at, days.length, true)
  at += 2
  for (const { date, availability, finalPrice, rateFeatures } of days) {
    const day = parseDay(date)
    assert(day !== undefined && baseYear !== undefined, 'the dates of a reply are valid and have a base year')
    to.view.setUint16(at, packDay(day, baseYear), true)
    to.view.setUint8(at + 2, availability)
    to.view.setUint32(at + 3, finalPrice, true)
    to.view.setUint32(at + 7, packedFeatures(rateFeatures, context), true)
    at += DAY_BYTES
  }
}

function packedFeatures(names: readonly string[], { codecs }: ReplyContext): number {
  const mask = names.length === 0 ? 0 : codecs && maskOf(codecs, names)
  assert(mask !== undefined, 'the rate features of a reply are in the codec list')
  return mask
}

/**
 * The frame of an ERROR reply. The text is a bare number or `CODE: explanation`. It is changed as needed to follow
 * docs/design/protocol.md#errors.
 */
export function encodeError(correlationId: number, text: string): Uint8Array {
  beginFrame(writer, correlationId, ERROR)
  addText(writer, 1, TYPE_TEXT, fitErrorText(text))
  return finishFrame(writer)
}

export type Reply<Name extends CommandName = CommandName> =
  | { readonly ok: true; readonly result: Result<Name> }
  | {
      readonly ok: false
      /** The part before the colon: one of WIRE_CODES, or any text from other servers. */
      readonly code: string
      /** The part after it; '' for a bare number. */
      readonly message: string
    }

/**
 * Decodes a reply from the payload of its frame.
 *
 * @param command the command of the request
 * @throws VacancyError malformed_reply when the payload is not a valid reply to the command
 */
export function decodeReply<Name extends CommandName>(
  command: Name,
  payload: Uint8Array,
  context: ReplyContext,
): Reply<Name> {
  const cursor = openReply(command, payload)
  if (payload[0] === ERROR.length) return decodeError(cursor)
  const decode = DECODE[COMMANDS[command].reply] as (from: Cursor, context: ReplyContext) => Result<Name>
  const result = decode(cursor, context)
  if (cursor.fieldsLeft > 0) throw malformed(command, `it has ${cursor.fieldsLeft} fields too many`)
  if (cursor.at !== payload.length) throw malformed(command, 'bytes follow the last field')
  return { ok: true, result }
}

/** The offset of the code in the error frames of existing routers and bridges. */
const ROUTER_ERROR = { claimedBytes: 4, sentBytes: 7, codeBytes: 3 }

function decodeError(cursor: Cursor): Reply<never> {
  const { bytes, at, command } = cursor
  if (cursor.fieldsLeft === 0) throw malformed(command, 'it is an error without a text')
  // Existing routers claim 4 bytes and send a u32 of 3 and three digits (docs/design/protocol.md#errors).
  const isRouterError =
    bytes.length - at === FIELD_HEADER_BYTES + ROUTER_ERROR.sentBytes &&
    bytes[at + 2] === TYPE_TEXT &&
    readU32(bytes, at + 3) === ROUTER_ERROR.claimedBytes
  if (isRouterError) {
    return { ok: false, code: textAt(cursor, bytes.length - ROUTER_ERROR.codeBytes, bytes.length), message: '' }
  }
  takeField(cursor, TYPE_TEXT, -1)
  const text = textAt(cursor, cursor.start, cursor.start + cursor.length)
  const colon = text.indexOf(':')
  if (colon < 0) return { ok: false, code: text, message: '' }
  return { ok: false, code: text.slice(0, colon), message: text.slice(colon + 1).trim() }
}

const DECODE: { readonly [Kind in ReplyKind]: (from: Cursor, context: ReplyContext) => Results[Kind] } = {
  login: (from) => {
    throw malformed(from.command, 'it is a frame, not bare text')
  },
  codecs: (from) => {
    takeField(from, TYPE_CODECS, -1)
    return { rateFeatures: currentText(from).split(',') }
  },
  segments: (from) => {
    const segments = []
    while (from.fieldsLeft > 0) {
      takeField(from, TYPE_TEXT, -1)
      const segment = currentText(from)
      takeField(from, TYPE_NUMBER, 4)
      segments.push({ segment, propertyCount: from.view.getUint32(from.start, true) })
    }
    return { segments }
  },
  empty: (from) => takeIndex(from),
  properties: (from) => {
    const start = from.at + FIELD_HEADER_BYTES
    let count = 0
    for (; from.fieldsLeft > 0 && !isTrailer(from); count++) takeField(from, TYPE_TEXT, PROPERTY_ID_BYTES)
    const stride = FIELD_HEADER_BYTES + PROPERTY_ID_BYTES
    const propertyIds = unpackPropertyIds(from.bytes, start, stride, count)
    const page = takePage(from)
    const reader = takeValuesTrailer(from, count)
    const values = reader && propertyIds.map((_, n) => addValuesOf<SearchValues>({}, reader, n))
    return { propertyIds, ...(values && { values }), ...page, ...takeCounted(from) }
  },
  stays: (from, context) => {
    takeField(from, TYPE_SMALL, 2)
    const numDays = from.view.getUint16(from.start, true)
    const list = takeList(from)
    const hits = list ? undefined : takeHits(from, context, numDays)
    const page = takePage(from)
    const values = takeValuesTrailer(from, list?.length ?? hits?.count ?? 0)
    if (list && values) for (const [n, hit] of list.entries()) addValuesOf(hit, values, n)
    const properties = list ?? (hits ? hitsFrom(from, hits, values) : [])
    return { numDays, properties, ...page, ...takeCounted(from) }
  },
  calendar: (from) => {
    takeField(from, TYPE_SMALL, 1)
    const nights = from.view.getUint8(from.start)
    return { nights, days: takeCalendarDays(from), ...takeExplain(from) }
  },
  flexible: (from) => {
    takeField(from, TYPE_SMALL, 2)
    const arrivalDays = from.view.getUint16(from.start, true)
    const bestStays = takeFlexibleStays(from)
    return { arrivalDays, bestStays, ...takePage(from), ...takeExplain(from) }
  },
  availability: (from) => {
    takeField(from, TYPE_SMALL, 1)
    const availability = from.view.getUint8(from.start)
    return { availability, ...takeIndex(from) }
  },
  exists: (from) => {
    takeField(from, TYPE_SMALL, 1)
    return { exists: from.view.getUint8(from.start) === 1 }
  },
  roomTypes: (from) => ({ roomTypes: takeTexts(from) }),
  dates: (from) => ({ dates: takeTexts(from) }),
  night: (from, context) => {
    const propertyId = takeNightId(from)
    takeField(from, TYPE_TEXT, -1)
    const date = currentText(from)
    takeField(from, TYPE_SMALL, 1)
    const availability = from.view.getUint8(from.start)
    takeField(from, TYPE_NUMBER, 4)
    const finalPrice = from.view.getUint32(from.start, true)
    takeField(from, TYPE_NUMBER, 4)
    return { propertyId, date, availability, finalPrice, rateFeatures: featuresAt(from, from.start, context) }
  },
  stay: (from, context) => {
    takeField(from, TYPE_SMALL, 1)
    const state = stateAt(from, from.start)
    takeField(from, TYPE_NUMBER, 8)
    const deadline = deadlineAt(from, from.start)
    takeField(from, TYPE_NUMBER, 8)
    const total = readU64(from.view, from.start)
    takeField(from, TYPE_NUMBER, 8)
    const index = readU64(from.view, from.start)
    takeField(from, TYPE_RECORDS, -1)
    const lines = linesIn(from, from.start, from.at)
    const stayed = state === 'held' || state === 'booked'
    const withDays = stayed ? lines.map((line) => ({ ...line, days: takeDaysOfLine(from, line, context) })) : lines
    const extra = takeIndex(from)
    const appliedIndex = extra.index === undefined ? {} : { appliedIndex: extra.index }
    return { state, ...deadline, total, index, lines: withDays, ...appliedIndex }
  },
  stayList: (from) => {
    const stays: StayEntry[] = []
    while (from.fieldsLeft > 1) stays.push(takeStayEntry(from))
    takeField(from, TYPE_TEXT, -1)
    return { stays, cursor: currentText(from) }
  },
}

function stateAt(from: Cursor, at: number): StayState {
  const state = STAY_STATES[from.view.getUint8(at) - 1]
  if (state === undefined) throw malformed(from.command, `field ${from.id} has an unknown state`)
  return state
}

function deadlineAt(from: Cursor, at: number): { deadlineMs?: number } {
  const deadlineMs = Number(readU64(from.view, at))
  return deadlineMs === 0 ? {} : { deadlineMs }
}

function linesIn(from: Cursor, start: number, end: number): StayLine[] {
  const lines = decodeStayLines(from.bytes, start, end)
  if (!lines) throw malformed(from.command, `field ${from.id} has lines that cannot be read`)
  return lines
}

function takeStayEntry(from: Cursor): StayEntry {
  takeField(from, TYPE_RECORDS, -1)
  const { start, at: end, view, bytes } = from
  const broken = () => malformed(from.command, `field ${from.id} is not a stay`)
  if (end - start <= ENTRY_HEAD_BYTES) throw broken()
  const sourceEnd = start + ENTRY_HEAD_BYTES + view.getUint8(start + 41)
  if (sourceEnd >= end) throw broken()
  const lines = linesIn(from, sourceEnd + 1, end)
  if (lines.length !== view.getUint8(sourceEnd)) throw broken()
  return {
    stayId: unpackPropertyId(bytes, start),
    state: stateAt(from, start + 16),
    ...deadlineAt(from, start + 17),
    index: readU64(view, start + 25),
    timeMs: Number(readU64(view, start + 33)),
    source: textAt(from, start + ENTRY_HEAD_BYTES, sourceEnd),
    lines,
  }
}

function takeTexts(from: Cursor): string[] {
  const texts = []
  while (from.fieldsLeft > 0) {
    takeField(from, TYPE_TEXT, -1)
    texts.push(currentText(from))
  }
  return texts
}

/**
 * Vacancy sends plain text; some servers send the packed form here (docs/design/protocol.md#generations-of-clients,
 * row 3).
 */
function takeNightId(from: Cursor): string {
  takeField(from, TYPE_TEXT, -1)
  // No property id is text of 16 bytes.
  return from.length === PROPERTY_ID_BYTES ? unpackPropertyId(from.bytes, from.start) : currentText(from)
}

/** @param wanted number of days; -1 for as many as there are */
function takeDaysField(from: Cursor, wanted: number): void {
  takeField(from, TYPE_DAYS, wanted < 0 ? -1 : 2 + wanted * DAY_BYTES)
  const { view } = from
  if (from.length < 2 || (from.length - 2) % DAY_BYTES !== 0)
    throw malformed(from.command, `field ${from.id} has no days`)
  const numDays = (from.length - 2) / DAY_BYTES
  if (view.getUint16(from.start, true) !== numDays) throw malformed(from.command, `field ${from.id} has different days`)
}

/** Base year of the reply, whose first days are those of the current field. */
function baseYearIn(from: Cursor, packed: readonly number[], { dates, baseYear }: ReplyContext): number {
  if (dates === undefined) {
    assert(baseYear !== undefined, 'packed dates are read with the request, or with their base year')
    return baseYear
  }
  const found = baseYearOf(
    packed,
    dates.map((date) => parseDay(date.trim()) ?? -1),
  )
  if (packed.length > 0 && found < 0)
    throw malformed(from.command, `field ${from.id} has a date that was not requested`)
  return found
}

const HIT_ID_AT = FIELD_HEADER_BYTES
const HIT_DAYS_AT = HIT_ID_AT + PROPERTY_ID_BYTES
const HIT_NIGHTS_AT = HIT_DAYS_AT + FIELD_HEADER_BYTES + 2

/** Hits of the same length, one after the other. */
type Hits = {
  readonly first: number
  readonly stride: number
  readonly count: number
  readonly nights: number
  /** Undefined without a hit. */
  readonly reader: NightReader | undefined
}

/** Checks all hits before any becomes an object. */
function takeHits(from: Cursor, context: ReplyContext, nights: number): Hits {
  const first = from.at
  const stride = HIT_NIGHTS_AT + nights * DAY_BYTES
  let reader: NightReader | undefined
  let count = 0
  for (; from.fieldsLeft > 0; count++) {
    if (reader && isHit(from, stride, nights)) {
      from.at += stride
      from.fieldsLeft -= 2
      from.taken += 2
      continue
    }
    if (isTrailer(from)) break
    takeField(from, TYPE_TEXT, PROPERTY_ID_BYTES)
    takeDaysField(from, nights)
    reader ??= nightReaderOf(from, context)
  }
  return { first, stride, count, nights, reader }
}

function hitsFrom(from: Cursor, hits: Hits, values: ValueReader | undefined): StayHit[] {
  const { first, stride, count, nights, reader } = hits
  const found = new Array<StayHit>(count)
  if (!reader) return found
  const ids = unpackPropertyIds(from.bytes, first + HIT_ID_AT, stride, count)
  for (let i = 0, at = first; i < count; i++, at += stride) {
    const propertyId = ids[i] as string
    const days = nightsFrom(from, reader, at + HIT_NIGHTS_AT, nights)
    found[i] = values ? new hitWithValues(propertyId, days, values, i) : { propertyId, days }
  }
  return found
}

/** Whether the next two fields are a hit; quicker than to take them, which says what is wrong with them. */
function isHit({ view, at, taken, fieldsLeft }: Cursor, stride: number, numDays: number): boolean {
  if (fieldsLeft < 2 || view.byteLength - at < stride) return false
  const daysAt = at + HIT_DAYS_AT
  return (
    view.getUint16(at, true) === taken + 1 &&
    view.getUint8(at + 2) === TYPE_TEXT &&
    view.getUint32(at + 3, true) === PROPERTY_ID_BYTES &&
    view.getUint16(daysAt, true) === taken + 2 &&
    view.getUint8(daysAt + 2) === TYPE_DAYS &&
    view.getUint32(daysAt + 3, true) === 2 + numDays * DAY_BYTES &&
    view.getUint16(daysAt + FIELD_HEADER_BYTES, true) === numDays
  )
}

/** What the nights of a search reply share. Most hits have the same dates, and few lists of features. */
type NightReader = {
  readonly codecs: CodecList | undefined
  readonly baseYear: number
  /** Nights of the last request, and the first packed ones of its reply: the same ones have the same base year. */
  asked: readonly string[] | undefined
  packed: readonly number[]
  /** By packed date; '' until needed. */
  readonly dates: string[]
  /** The masks of `lists`, each at its hash. */
  readonly masks: Uint32Array
  /** Hits share them, so they are frozen. */
  readonly lists: string[][]
}

const PACKED_DATES = 4096
/** 1,024 lists are more than any data set uses at a time. */
const LIST_BITS = 10
const NO_FEATURES: string[] = Object.freeze([]) as unknown as string[]

/** Of the last reply, since the next one probably has the same dates and features. */
let lastReader: NightReader | undefined

function nightReaderOf(from: Cursor, context: ReplyContext): NightReader {
  const { codecs, dates: asked } = context
  if (lastReader && lastReader.codecs === codecs && isLikeLast(lastReader, from, asked)) return lastReader
  const packed = packedDatesOf(from)
  const baseYear = baseYearIn(from, packed, context)
  if (!lastReader || lastReader.codecs !== codecs || lastReader.baseYear !== baseYear) {
    const dates = new Array<string>(PACKED_DATES).fill('')
    const lists = new Array<string[]>(1 << LIST_BITS).fill(NO_FEATURES)
    lastReader = { codecs, baseYear, asked: undefined, packed, dates, masks: new Uint32Array(1 << LIST_BITS), lists }
  }
  lastReader.asked = asked && [...asked]
  lastReader.packed = packed
  return lastReader
}

function isLikeLast({ asked, packed }: NightReader, { view, start }: Cursor, dates: ReplyContext['dates']): boolean {
  if (!asked || !dates || asked.length !== dates.length) return false
  for (let i = 0; i < dates.length; i++) if (dates[i] !== asked[i]) return false
  if (view.getUint16(start, true) !== packed.length) return false
  for (let i = 0; i < packed.length; i++) {
    if (view.getUint16(start + 2 + i * DAY_BYTES, true) !== packed[i]) return false
  }
  return true
}

function packedDatesOf(from: Cursor): number[] {
  const packed = []
  for (let at = from.start + 2; at < from.at; at += DAY_BYTES) packed.push(from.view.getUint16(at, true))
  return packed
}

function nightsFrom(from: Cursor, reader: NightReader, start: number, count: number): NightPackage[] {
  const { view } = from
  const { dates, masks, lists } = reader
  // Not by `push`, which makes room for 17.
  const nights = new Array<NightPackage>(count)
  for (let i = 0, at = start; i < count; i++, at += DAY_BYTES) {
    const packed = view.getUint16(at, true)
    const mask = view.getUint32(at + 7, true)
    const place = Math.imul(mask, 0x9e37_79b1) >>> (32 - LIST_BITS)
    nights[i] = {
      date: dates[packed] || dateOf(from, reader, packed),
      availability: view.getUint8(at + 2),
      finalPrice: view.getUint32(at + 3, true),
      rateFeatures: masks[place] === mask ? (lists[place] as string[]) : listOf(from, reader, mask, place),
    }
  }
  return nights
}

function dateOf(from: Cursor, { dates, baseYear }: NightReader, packed: number): string {
  const day = unpackDay(packed, baseYear)
  if (day < 0) throw malformed(from.command, 'it has a date that does not exist')
  const text = formatDay(day)
  dates[packed] = text
  return text
}

function listOf(from: Cursor, { codecs, masks, lists }: NightReader, mask: number, place: number): string[] {
  const names = Object.freeze(namesOfMask(from, codecs, mask)) as string[]
  masks[place] = mask
  lists[place] = names
  return names
}

/** The nights of a line are close to its arrival, so that their dates need no base year. */
function takeDaysOfLine(from: Cursor, { arrival, nights }: StayLine, context: ReplyContext): NightPackage[] {
  takeDaysField(from, -1)
  const first = parseDay(arrival) ?? -1
  return nightsIn(from, context, (packed) => unpackDayBetween(packed, first, first + nights - 1))
}

function nightsIn(from: Cursor, context: ReplyContext, dayOf: (packed: number) => number): NightPackage[] {
  const { view } = from
  const days: NightPackage[] = []
  for (let at = from.start + 2; at < from.at; at += DAY_BYTES) {
    const day = dayOf(view.getUint16(at, true))
    if (day < 0) throw malformed(from.command, `field ${from.id} has a date that does not exist`)
    days.push({
      date: formatDay(day),
      availability: view.getUint8(at + 2),
      finalPrice: view.getUint32(at + 3, true),
      rateFeatures: featuresAt(from, at + 7, context),
    })
  }
  return days
}

function featuresAt(from: Cursor, at: number, { codecs }: ReplyContext): string[] {
  return namesOfMask(from, codecs, from.view.getUint32(at, true))
}

/** A bit without a name means that the codec list has changed. */
function namesOfMask(from: Cursor, codecs: CodecList | undefined, mask: number): string[] {
  if (mask === 0) return []
  const names = codecs && namesOf(codecs, mask)
  if (!names) throw malformed(from.command, 'a rate feature is not in the codec list')
  return names
}

function takeIndex(from: Cursor): { index?: number | bigint } {
  return takeExtra(from, TYPE_NUMBER, 8) ? { index: readU64(from.view, from.start) } : {}
}

function addCounted(to: FieldWriter, { facets, cells, explain }: Counted): void {
  addFacets(to, facets)
  addCells(to, cells)
  addExplain(to, explain)
}

function takeCounted(from: Cursor): Counted {
  return { ...takeFacets(from), ...takeCells(from), ...takeExplain(from) }
}

function takeExplain(from: Cursor): { explain?: SearchExplained } {
  const hasStages = from.bytes.length - from.at === FIELD_HEADER_BYTES + EXPLAIN_STAGES_BYTES
  if (!takeExtra(from, TYPE_CODECS, hasStages ? EXPLAIN_STAGES_BYTES : EXPLAIN_BYTES)) return {}
  const { view, start } = from
  const explain = {
    rowsExamined: view.getUint32(start, true),
    waitingMicros: view.getUint32(start + 4, true),
    searchingMicros: view.getUint32(start + 8, true),
    appliedIndex: readU64(view, start + 12),
    ...(hasStages && {
      stages: {
        planningMicros: view.getUint32(start + 20, true),
        examiningMicros: view.getUint32(start + 24, true),
        writingMicros: view.getUint32(start + 28, true),
      },
    }),
  }
  return { explain }
}
