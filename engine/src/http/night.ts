/**
 * `GET /night`: changes of a night that the retained log has, newest first (docs/design/storage.md#history-of-a-night).
 * One request reads a bounded part of the log, and its cursor continues there.
 */

import { formatDay, LIMITS, packPropertyId, parseDay, unpackPropertyId } from '@vacancy/shared'
import { NIGHT_LIMITS, type NodeNight } from '@vacancy/shared/contract'
import { type HttpAnswer, HttpError, json } from '@vacancy/shared/node'
import type { NightNow } from '../store/night-now.ts'
import type { NightAsk, NightMention, SearchFrom } from '../wal/night-log.ts'
import type { NodeHandle } from './handle.ts'
import type { Query } from './listener.ts'
import type { NightState } from './night-events.ts'
import { type NightCarry, type NightChange, nightHistory } from './night-history.ts'

/** Parts of the log are read by a thread in the background: a busy machine takes its time. */
const PART_MS = 20_000

type Limits = { readonly [name in keyof typeof NIGHT_LIMITS]: number }

/** @returns the handler, which serves one request at a time: each holds parts of the log in memory */
export function createNightAnswer(
  handle: NodeHandle,
  limits: Limits = NIGHT_LIMITS,
): (query: Pick<Query, 'parameters'>) => Promise<HttpAnswer> {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return async ({ parameters }) => {
    const request = parse(parameters)
    if (!handle.memory()) throw new HttpError(503, 'the node has not loaded its data yet; see /ready')
    if (waiting >= limits.nightRequestsMax) throw new HttpError(503, 'other histories are being read, repeat')
    waiting++
    const answer = last.then(() => read(handle, request, limits))
    // An error is that of this request alone; the next one begins after it.
    last = answer.catch(() => undefined).finally(() => waiting--)
    return json(200, await answer)
  }
}

type Cursor = { readonly from: SearchFrom; readonly carry: NightCarry }
type NightRequest = { readonly ask: NightAsk; readonly property: string; readonly cursor: Cursor | undefined }

function parse(parameters: URLSearchParams): NightRequest {
  const property = parameters.get('property') ?? ''
  const packed = packPropertyId(property)
  if (!packed) throw new HttpError(400, `property: ${JSON.stringify(property.slice(0, 64))} is not a property id`)
  const date = parameters.get('date') ?? ''
  const day = parseDay(date)
  if (day === undefined) throw new HttpError(400, `date: ${JSON.stringify(date.slice(0, 64))} is not a date YYYY-MM-DD`)
  const roomType = parameters.get('room_type')
  const { nameBytesMax } = LIMITS
  if (roomType !== null && (roomType === '' || Buffer.byteLength(roomType) > nameBytesMax)) {
    throw new HttpError(400, `room_type must have 1 to ${nameBytesMax} bytes`)
  }
  const cursor = parameters.get('cursor')
  return {
    property,
    ask: { property: packed, roomType: roomType ?? '', day },
    cursor: cursor ? readCursor(cursor) : undefined,
  }
}

/** Position in the log, and what is known there: whether property and package exist, rooms left, on hold, price. */
const CURSOR =
  /^(\d{1,10})[.](\d{1,12})[.]([1-9]\d{0,14})[.]([01]?)[.]([01]?)[.]((?:-?\d{1,3})?)[.](\d{0,3})[.](\d{0,10})$/

function readCursor(text: string): Cursor {
  const match = CURSOR.exec(text)
  if (!match) throw new HttpError(400, 'cursor is none that a page of this node had')
  const [sequence, offset, below, property, exists, left, held, price] = match
    .slice(1)
    .map((part) => (part === '' ? undefined : Number(part)))
  return {
    from: { sequence: sequence as number, offset: offset as number, below: below as number },
    carry: { property: flagOf(property), state: { package: flagOf(exists), left, held, price } },
  }
}

function flagOf(value: number | undefined): boolean | undefined {
  return value === undefined ? undefined : value === 1
}

function cursorOf({ sequence, offset, below }: SearchFrom, { property, state }: NightCarry): string {
  const flag = (value: boolean | undefined) => (value === undefined ? '' : Number(value))
  const { left, held, price } = state
  return [sequence, offset, below, flag(property), flag(state.package), left ?? '', held ?? '', price ?? ''].join('.')
}

/** The parts of the log that one request reads, as one. */
type Found = {
  readonly now: NightNow
  readonly mentions: readonly NightMention[]
  readonly others: ReadonlySet<string>
  /** 0 without entries. */
  readonly firstIndex: number
  readonly lastIndex: number
  readonly firstMs: number
  readonly retainedFrom: number
  readonly next: SearchFrom | undefined
}

async function read(handle: NodeHandle, { ask, property, cursor }: NightRequest, limits: Limits): Promise<NodeNight> {
  const found = await search(handle, ask, cursor?.from, limits)
  const { now, mentions, others, firstIndex, lastIndex, firstMs, next } = found
  const { roomType, day } = ask
  const searched = { now, mentions, others, firstIndex, lastIndex, carry: cursor?.carry, roomType, day }
  const { changes, carry } = nightHistory(searched)
  const features = handle.codecs.names
  return {
    property,
    room_type: ask.roomType || null,
    date: formatDay(ask.day),
    applied_index: now.index + now.indexBase,
    changes: changes.map((change) => changeBody(change, now, features)),
    searched:
      firstIndex === 0
        ? null
        : {
            from_index: firstIndex + now.indexBase,
            to_index: lastIndex + now.indexBase,
            from_time: timeOf(firstMs),
          },
    retained_from: found.retainedFrom + now.indexBase,
    next: next ? cursorOf(next, carry) : '',
  }
}

async function search(
  handle: NodeHandle,
  ask: NightAsk,
  begin: SearchFrom | undefined,
  limits: Limits,
): Promise<Found> {
  let found: Found | undefined
  let bytes = 0
  for (let from = begin; ; ) {
    const { now, part, others } = await readPart(handle, ask, from)
    bytes += part.bytes
    const below = from?.below ?? now.index + 1
    const isEmpty = part.firstIndex === 0
    // A snapshot of another node replaced the state: the entries in between are in no log of this node.
    const hasGap = !isEmpty && part.lastIndex < below - 1
    const next = hasGap ? undefined : part.next
    const newer: Found = found ?? {
      ...{ now, mentions: [], others: new Set(), firstIndex: 0, lastIndex: below - 1, firstMs: 0 },
      ...{ retainedFrom: part.retainedFrom, next },
    }
    found =
      isEmpty || hasGap
        ? { ...newer, next, ...(hasGap && { retainedFrom: below }) }
        : {
            ...{ now: newer.now, lastIndex: newer.lastIndex, retainedFrom: part.retainedFrom, next },
            ...{ firstIndex: part.firstIndex, firstMs: part.firstMs },
            mentions: [...part.mentions, ...newer.mentions],
            others: new Set([...newer.others, ...others]),
          }
    const isEnough = bytes >= limits.nightBytesMax || found.mentions.length >= limits.nightChangesMax
    if (!next || isEnough) return found
    from = next
  }
}

async function readPart(handle: NodeHandle, ask: NightAsk, from: SearchFrom | undefined) {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new HttpError(504, 'the log was not read in time, repeat')), PART_MS)
  try {
    const part = await Promise.race([handle.night(ask, from), late])
    if (typeof part === 'string') throw new HttpError(503, part)
    return part
  } finally {
    clearTimeout(timer)
  }
}

function changeBody(change: NightChange, now: NightNow, names: readonly string[]): NodeNight['changes'][number] {
  const { index, timeMs, kind, outcome, room, rooms, price, features, stay, source, digest } = change
  return {
    index: index + now.indexBase,
    at: timeOf(timeMs),
    kind: kind as NonNullable<typeof kind>,
    outcome,
    room_type: room || null,
    rooms: rooms ?? null,
    price: price ?? null,
    features: features === undefined ? null : names.filter((_, bit) => (features & (1 << bit)) !== 0),
    stay: stay ? idOf(stay.key) : null,
    replaces: stay?.replaces ? idOf(stay.replaces) : null,
    source: source ?? null,
    snapshot: digest ?? null,
    before: stateBody(change.before),
    after: stateBody(change.after),
  }
}

function stateBody({ package: exists, left, price }: NightState): NodeNight['changes'][number]['before'] {
  const isThere = exists !== false
  return {
    package: exists ?? null,
    // Rooms on hold that are missing are shown by the page of stays.
    rooms: isThere && left !== undefined ? Math.max(0, left) : null,
    price: isThere ? (price ?? null) : null,
  }
}

function idOf(hex: string): string {
  return unpackPropertyId(Buffer.from(hex, 'hex'), 0)
}

function timeOf(ms: number): string | null {
  return ms === 0 ? null : new Date(ms).toISOString()
}
