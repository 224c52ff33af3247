/** Stays as JSON (docs/proxy.md#stays): lines of requests, and replies through the reference decoder. Pure. */

import { formatDay, knownValues, parseDay } from '@vacancy/shared'
import type { NightPackage, StayEntry, StayLine, StayResult } from '@vacancy/shared/wire'

const LINES_MAX = 16

/** The lines of a body, or what is wrong with them. */
export function readLines(name: string, value: unknown): readonly StayLine[] | string {
  if (!Array.isArray(value) || value.length === 0 || value.length > LINES_MAX) {
    return `${name} must be an array of 1 to ${LINES_MAX} lines`
  }
  const lines: StayLine[] = []
  for (const [n, given] of value.entries()) {
    const line = readLine(given)
    if (typeof line === 'string') return `${name}[${n}]${line}`
    lines.push(line)
  }
  return lines
}

const LINE_NAMES = ['property_id', 'room_type', 'arrival', 'nights', 'rooms', 'uncounted'] as const

function readLine(given: unknown): StayLine | string {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return ' must be an object'
  const values = knownValues(given, LINE_NAMES)
  if (typeof values === 'string') return `: ${values}`
  const {
    property_id,
    room_type,
    arrival,
    nights,
    rooms,
    uncounted = false,
  } = values as {
    readonly [name in (typeof LINE_NAMES)[number]]: unknown
  }
  if (!isName(property_id)) return '.property_id must be text of at most 255 bytes'
  if (!isName(room_type)) return '.room_type must be text of at most 255 bytes'
  const day = typeof arrival === 'string' ? parseDay(arrival) : undefined
  if (day === undefined) return '.arrival must be a date, YYYY-MM-DD'
  if (!isByte(nights)) return '.nights must be a whole number from 1 to 30'
  if (!isByte(rooms)) return '.rooms must be a whole number from 1 to 255'
  if (typeof uncounted !== 'boolean') return '.uncounted must be true or false'
  const line = { propertyId: property_id, roomType: room_type, arrival: formatDay(day), nights, rooms }
  return uncounted ? { ...line, uncounted } : line
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && Buffer.byteLength(value) <= 255
}

function isByte(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255
}

/** The fields of a stay, without the braces. */
export function stayJson({ state, deadlineMs, total, index, lines, appliedIndex }: StayResult): string {
  const body = {
    state,
    ...(deadlineMs !== undefined && { deadline: momentOf(deadlineMs) }),
    total: exact(total),
    index: exact(index),
    lines: lines.map(({ days, ...line }) => ({ ...lineOf(line), ...(days && { days: days.map(nightOf) }) })),
    ...(appliedIndex !== undefined && { applied_index: exact(appliedIndex) }),
  }
  return JSON.stringify(body).slice(1, -1)
}

/** The fields of a list of stays, without the braces. */
export function stayListJson(stays: readonly StayEntry[], cursor: string): string {
  const body = {
    stays: stays.map(({ stayId, state, deadlineMs, index, timeMs, source, lines }) => ({
      stay_id: stayId,
      state,
      ...(deadlineMs !== undefined && { deadline: momentOf(deadlineMs) }),
      index: exact(index),
      time: momentOf(timeMs),
      source,
      lines: lines.map(lineOf),
    })),
    cursor,
  }
  return JSON.stringify(body).slice(1, -1)
}

function lineOf({ propertyId, roomType, arrival, nights, rooms, uncounted }: StayLine): object {
  const line = { property_id: propertyId, room_type: roomType, arrival, nights, rooms }
  return uncounted ? { ...line, uncounted } : line
}

function nightOf({ date, availability, finalPrice, rateFeatures }: NightPackage): object {
  return { date, left: availability, final_price: finalPrice, rate_feature: rateFeatures }
}

const MOMENT_MAX = 8_640_000_000_000_000

/** A moment as UTC text; a number that is none, as a hostile node may send, as decimal text. */
function momentOf(ms: number): string {
  return ms <= MOMENT_MAX ? new Date(ms).toISOString() : String(ms)
}

function exact(value: number | bigint): number | string {
  return typeof value === 'bigint' ? value.toString() : value
}
