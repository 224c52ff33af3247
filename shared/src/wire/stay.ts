/**
 * The lines of a stay as packed records (docs/design/stays.md#lines), little-endian:
 *
 *   u8 length · property id · u8 length · room type · 10 B arrival, YYYY-MM-DD · u8 nights · u8 rooms · u8 flags
 */

import { formatDay, parseDay, parseDayBytes } from '../dates.ts'
import { LIMITS } from '../domain.ts'
import { VacancyError } from '../errors.ts'
import { suggestion } from '../names.ts'
import { isUtf8, textOfUtf8 } from '../text.ts'

/** The same rooms on consecutive nights. */
export type StayLine = {
  readonly propertyId: string
  readonly roomType: string
  /** The first night, YYYY-MM-DD. */
  readonly arrival: string
  readonly nights: number
  readonly rooms: number
  /** Takes rooms, but its prices do not count in the total: for stock that is kept twice. */
  readonly uncounted?: boolean | undefined
}

export const STAY_STATES = ['held', 'booked', 'released', 'expired', 'void'] as const
export type StayState = (typeof STAY_STATES)[number]

/** Number of a state on the wire, in the log and in snapshots. */
export const STAY_STATE = { held: 1, booked: 2, released: 3, expired: 4, void: 5 } as const satisfies Record<
  StayState,
  number
>

const LINE_NAMES: readonly (keyof StayLine)[] = ['propertyId', 'roomType', 'arrival', 'nights', 'rooms', 'uncounted']

export const LINE_FLAGS = { uncounted: 1 } as const
const DATE_BYTES = 10
/** Arrival, nights, rooms, flags. */
const TAIL_BYTES = DATE_BYTES + 3
const LINE_BYTES_MAX = 2 + 2 * 255 + TAIL_BYTES

/** One line, indexed but not copied; one object, reused. */
export type StayLineScan = {
  idStart: number
  idEnd: number
  roomTypeStart: number
  roomTypeEnd: number
  /** Number of the day, -1 when it is not a date. */
  arrival: number
  nights: number
  rooms: number
  flags: number
  /** Offset after the line. */
  end: number
}

export function createStayLineScan(): StayLineScan {
  const places = { idStart: 0, idEnd: 0, roomTypeStart: 0, roomTypeEnd: 0 }
  return { ...places, arrival: -1, nights: 0, rooms: 0, flags: 0, end: 0 }
}

/** Parses the line at `start`. Values are not validated. @returns whether a whole line is there */
export function scanStayLine(line: StayLineScan, bytes: Uint8Array, start: number, end: number): boolean {
  if (start >= end) return false
  line.idStart = start + 1
  line.idEnd = line.idStart + (bytes[start] as number)
  if (line.idEnd >= end) return false
  line.roomTypeStart = line.idEnd + 1
  line.roomTypeEnd = line.roomTypeStart + (bytes[line.idEnd] as number)
  const at = line.roomTypeEnd
  line.end = at + TAIL_BYTES
  if (line.end > end) return false
  line.arrival = parseDayBytes(bytes, at)
  line.nights = bytes[at + DATE_BYTES] as number
  line.rooms = bytes[at + DATE_BYTES + 1] as number
  line.flags = bytes[at + DATE_BYTES + 2] as number
  return true
}

const encoder = new TextEncoder()

/**
 * @param line number of the line, for the error
 * @throws VacancyError validation_error when the value is not a line or does not fit its record
 */
export function encodeStayLine(value: unknown, line: number): Uint8Array {
  if (typeof value !== 'object' || value === null) throw invalid(line, 'must be an object')
  const { propertyId, roomType, arrival, nights, rooms, uncounted, ...rest } = value as Record<string, unknown>
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw invalid(line, `has no field ${unknown}${suggestion(unknown, LINE_NAMES)}`)
  const id = nameOf(line, 'propertyId', propertyId)
  const room = nameOf(line, 'roomType', roomType)
  if (typeof arrival !== 'string' || parseDay(arrival) === undefined) throw invalid(line, 'has no arrival date')
  if (uncounted !== undefined && typeof uncounted !== 'boolean') throw invalid(line, 'uncounted must be true or false')
  const bytes = new Uint8Array(2 + id.length + room.length + TAIL_BYTES)
  bytes[0] = id.length
  bytes.set(id, 1)
  bytes[1 + id.length] = room.length
  bytes.set(room, 2 + id.length)
  const at = 2 + id.length + room.length
  bytes.set(encoder.encode(arrival), at)
  bytes[at + DATE_BYTES] = wholeNumber(line, 'nights', nights)
  bytes[at + DATE_BYTES + 1] = wholeNumber(line, 'rooms', rooms)
  bytes[at + DATE_BYTES + 2] = uncounted === true ? LINE_FLAGS.uncounted : 0
  return bytes
}

function nameOf(line: number, name: string, value: unknown): Uint8Array {
  const bytes = typeof value === 'string' ? encoder.encode(value) : undefined
  if (!bytes || bytes.length > LIMITS.nameBytesMax) throw invalid(line, `${name} must be text of at most 255 bytes`)
  return bytes
}

function wholeNumber(line: number, name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255) return value
  throw invalid(line, `${name} must be a whole number, 0 to 255`)
}

function invalid(line: number, reason: string): VacancyError {
  return new VacancyError('validation_error', { reason: `line ${line} ${reason}` })
}

const scan = createStayLineScan()

/** The lines in [start, end); undefined when the bytes are not whole lines with valid dates and UTF-8. */
export function decodeStayLines(bytes: Uint8Array, start: number, end: number): StayLine[] | undefined {
  const lines: StayLine[] = []
  for (let at = start; at < end; at = scan.end) {
    if (end - at > LIMITS.stayLinesMax * LINE_BYTES_MAX || !scanStayLine(scan, bytes, at, end)) return undefined
    const { idStart, idEnd, roomTypeStart, roomTypeEnd, arrival, nights, rooms, flags } = scan
    if (arrival < 0 || !isUtf8(bytes, idStart, idEnd) || !isUtf8(bytes, roomTypeStart, roomTypeEnd)) return undefined
    const propertyId = textOfUtf8(bytes, idStart, idEnd)
    const roomType = textOfUtf8(bytes, roomTypeStart, roomTypeEnd)
    const line = { propertyId, roomType, arrival: formatDay(arrival), nights, rooms }
    lines.push((flags & LINE_FLAGS.uncounted) === 0 ? line : { ...line, uncounted: true })
  }
  return lines
}
