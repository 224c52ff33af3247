/** Stays of a shard: found by id, listed, and counted by night for the calendar of a property. Reads only. */
import { formatDay, packPropertyId, parseDay, unpackPropertyId } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import {
  SEGMENT_LIMITS,
  STAY_PAGE_LIMITS,
  type StayFigures,
  type StayListEntry,
  type StayNights,
  type StayRecord,
  statusBody,
} from '@vacancy/shared/contract'
import type { RequestFields, StayEntry, StayLine, StayResult } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { type Answered, parseJson, type Reach, refusedBy, requestNode, send } from '../nodes/ask.ts'
import { shardToday } from '../nodes/shard-day.ts'
import { oneNode, type Target, targetOf } from '../nodes/target.ts'

type Listing = RouteRequest<'GET /api/v1/shards/{shard}/stays'>
type Finding = RouteRequest<'GET /api/v1/shards/{shard}/stays/{stay}'>
type Figures = RouteRequest<'GET /api/v1/shards/{shard}/stay-figures'>
type Nights = RouteRequest<'GET /api/v1/shards/{shard}/properties/{property}/stays'>
type ReadInput<R extends { readonly params: unknown; readonly query: unknown }> = Pick<R, 'params' | 'query'> & {
  readonly signal: AbortSignal
}

const HEX_ID = /^(?:urn:uuid:)?\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/i

/**
 * The id of a stay as its record shows it. UUIDs may have any case, braces, no hyphens, or `urn:uuid:` before them.
 *
 * @throws ProblemError invalid-stay-id
 */
export function stayIdOf(given: string): string {
  const text = given.trim()
  const uuid = HEX_ID.exec(text)
  const packed = packPropertyId(uuid ? uuid.slice(1).join('-') : text)
  if (packed === undefined) throw problem('invalid-stay-id', { detail: `${text} is not the id of a stay.` })
  return unpackPropertyId(packed, 0)
}

/** @throws ProblemError stays-unsupported below the feature level of stays */
export async function sendStay<Name extends 'GETSTAY' | 'LISTSTAYS' | 'CONFIRMSTAY' | 'RELEASESTAY'>(
  reach: Reach,
  target: Target,
  nodes: readonly NodeAddress[],
  command: Name,
  fields: RequestFields,
  signal?: AbortSignal,
): Promise<Answered<Name>> {
  try {
    return await send(reach, nodes, command, fields, signal)
  } catch (error) {
    if (!(error instanceof ProblemError) || !error.message.includes(`unknown command ${command}`)) throw error
    throw problem('stays-unsupported', {
      detail: `${target.shard} has no stays: they need feature level 2 of the shard.`,
      more: { code: error.code },
      cause: error,
    })
  }
}

/** Reads on one node. Below the feature level of stays, and while it is behind, a follower leads to the leader. */
async function readStays<Name extends 'GETSTAY' | 'LISTSTAYS'>(
  reach: Reach,
  target: Target,
  command: Name,
  fields: RequestFields,
  signal?: AbortSignal,
): Promise<Answered<Name>> {
  const node = oneNode(reach.cluster, target)
  const leader = leaderOf(reach, target)
  return await sendStay(reach, target, leader && leader !== node ? [node, leader] : [node], command, fields, signal)
}

export async function stayList(reach: Reach, { params, query, signal }: ReadInput<Listing>) {
  const target = targetOf(reach.cluster, { shard: params.shard })
  const { property, room, date, cursor, limit } = query
  const fields = fieldsOf({ property, room, date, cursor, limit })
  const { result, node } = await readStays(reach, target, 'LISTSTAYS', fields, signal).catch(
    unknownProperty(property, target.shard),
  )
  return { ...readOf(reach, target, node), property, stays: result.stays.map(entryOf), next: result.cursor }
}

type ListFields = {
  readonly property: string
  readonly room?: string | undefined
  readonly date?: string | undefined
  readonly cursor?: string | undefined
  readonly limit?: number
}

function fieldsOf({ property, room, date, cursor, limit }: ListFields): RequestFields {
  return {
    propertyId: property,
    ...(room && { roomType: room }),
    ...(date && { date }),
    ...(cursor && { cursor }),
    ...(limit && { limit }),
  }
}

/** Includes every acknowledged command, whichever node replies. Without a leader no node can promise that. */
function freshly(reach: Reach, target: Target): RequestFields {
  return leaderOf(reach, target) ? { linearizable: 1 } : {}
}

function unknownProperty(property: string, shard: string) {
  return (error: unknown): never => {
    if (!(error instanceof ProblemError) || error.code !== 'wire-not-found') throw error
    throw problem('property-not-found', { detail: `Shard ${shard} has no property ${property}.`, cause: error })
  }
}

export async function findStay(
  reach: Reach,
  { params, signal }: Pick<ReadInput<Finding>, 'params' | 'signal'>,
): Promise<StayRecord> {
  const target = targetOf(reach.cluster, { shard: params.shard })
  return await readStay(reach, target, stayIdOf(params.stay), signal)
}

export async function readStay(reach: Reach, target: Target, id: string, signal?: AbortSignal): Promise<StayRecord> {
  const fields = { stayId: id, ...freshly(reach, target) }
  const { result, node } = await readStays(reach, target, 'GETSTAY', fields, signal).catch((error: unknown) => {
    if (!(error instanceof ProblemError) || error.code !== 'wire-not-found') throw error
    throw problem('stay-not-found', { detail: `${target.shard} has no stay ${id}.`, cause: error })
  })
  const listed = await entryOfStay(reach, target, { id, result }, signal)
  return recordOf(reach, target, node, id, result, { since: timeOf(listed?.timeMs), source: listed?.source ?? null })
}

/** Source and time are only in lists. The lists are in the order of indexes, so few pages are read. */
async function entryOfStay(
  reach: Reach,
  target: Target,
  { id, result }: { readonly id: string; readonly result: StayResult },
  signal?: AbortSignal,
): Promise<StayEntry | undefined> {
  const [line] = result.lines
  if (!line) return undefined
  const at = { property: line.propertyId, room: line.roomType, date: line.arrival }
  let cursor = ''
  for (let page = 0; page < STAY_PAGE_LIMITS.calendarPagesMax; page++) {
    const fields = fieldsOf({ ...at, cursor })
    const listed = await readStays(reach, target, 'LISTSTAYS', fields, signal).catch((error: unknown) => {
      // The property was deleted: the stay remains, its list does not.
      if (error instanceof ProblemError && (error.code === 'wire-not-found' || error.code === 'wire-validation-error'))
        return undefined
      throw error
    })
    const found = listed?.result.stays.find(({ stayId }) => stayId === id)
    const oldest = listed?.result.stays.at(-1)
    if (found || !oldest || listed?.result.cursor === '' || BigInt(oldest.index) < BigInt(result.index)) return found
    cursor = listed?.result.cursor ?? ''
  }
  return undefined
}

function readOf({ cluster, clients }: Reach, { shard }: Target, { id }: NodeAddress) {
  const role = cluster.node(shard, id)?.role ?? ('unknown' as const)
  return { shard, node: id, role, at: new Date(clients.clock.wallMs()).toISOString() }
}

export function recordOf(
  reach: Reach,
  target: Target,
  node: NodeAddress,
  id: string,
  { state, deadlineMs, total, index, lines }: StayResult,
  { since, source }: Pick<StayRecord, 'since' | 'source'>,
): StayRecord {
  return {
    ...readOf(reach, target, node),
    ...{ id, state, deadline: timeOf(deadlineMs), total: String(total), index: String(index) },
    ...{ since, source },
    lines: lines.map(({ days, ...line }) => ({
      ...lineOf(line),
      days:
        days?.map(({ date, availability, finalPrice, rateFeatures }) => ({
          ...{ date, left: availability, price: finalPrice, features: [...rateFeatures] },
        })) ?? null,
    })),
  }
}

function entryOf({ stayId, state, deadlineMs, index, timeMs, source, lines }: StayEntry): StayListEntry {
  return {
    ...{ id: stayId, state, deadline: timeOf(deadlineMs), index: String(index), source },
    since: new Date(timeMs).toISOString(),
    lines: lines.map(lineOf),
  }
}

function lineOf({ propertyId, roomType, arrival, nights, rooms, uncounted }: StayLine) {
  return { property: propertyId, room: roomType, arrival, nights, rooms, uncounted: uncounted === true }
}

function timeOf(ms: number | undefined): string | null {
  return ms === undefined || ms === 0 ? null : new Date(ms).toISOString()
}

/** What the leader reports of its stays; without a leader, any node. */
export async function stayFigures(
  reach: Reach,
  { params, signal }: Pick<ReadInput<Figures>, 'params' | 'signal'>,
): Promise<StayFigures> {
  const target = targetOf(reach.cluster, { shard: params.shard })
  const node = writeNode(reach, target)
  const path = '/status'
  const { status, body } = await requestNode(reach, node, path, { as: 'monitoring', signal })
  const parsed = statusBody.safeParse(parseJson(body))
  if (status !== 200 || !parsed.success) throw refusedBy(node, path, status, body)
  const { stays } = parsed.data
  if (!stays) {
    throw problem('stays-unsupported', { detail: `${node.id} runs a version without stays.` })
  }
  return {
    ...readOf(reach, target, node),
    ...{ records: stays.stays, held: stays.held, nextDeadline: stays.next_deadline, bytes: stays.bytes },
    ...{ oversoldNights: stays.oversold_nights, oversold: stays.oversold ?? [] },
    settings: { ...stays.settings, day_begins_minutes: stays.settings.day_begins_minutes ?? null },
  }
}

/** The leader; without one any node. */
export function writeNode(reach: Reach, target: Target): NodeAddress {
  return leaderOf(reach, target) ?? oneNode(reach.cluster, target)
}

function leaderOf({ cluster }: Reach, { shard, nodes }: Target): NodeAddress | undefined {
  return nodes.find(({ id }) => {
    const role = cluster.node(shard, id)?.role
    return role === 'leader' || role === 'standalone'
  })
}

type Night = StayNights['nights'][number]

export async function stayNights(reach: Reach, { params, query, signal }: ReadInput<Nights>): Promise<StayNights> {
  const target = targetOf(reach.cluster, { shard: params.shard })
  const first =
    query.from === undefined ? await shardToday(reach, writeNode(reach, target), signal) : parseDay(query.from)
  if (first === undefined) throw problem('invalid-request', { detail: `${query.from} is not a date.`, field: 'from' })
  const end = first + Math.min(query.nights, SEGMENT_LIMITS.nightsMax)
  const nights = new Map<string, Night>()
  let cursor = ''
  let node: NodeAddress
  let pages = 0
  do {
    const fields = fieldsOf({ property: params.property, cursor })
    const listed = await readStays(reach, target, 'LISTSTAYS', fields, signal).catch(
      unknownProperty(params.property, target.shard),
    )
    for (const stay of listed.result.stays) countNights(nights, stay, params.property, first, end)
    node = listed.node
    cursor = listed.result.cursor
  } while (cursor !== '' && ++pages < STAY_PAGE_LIMITS.calendarPagesMax)
  const figures = await stayFigures(reach, { params: { shard: target.shard }, signal })
  for (const { property_id, room_type, date, owed } of figures.oversold) {
    const night = property_id === params.property ? nights.get(keyOf(room_type, date)) : undefined
    if (night) night.owed = owed
  }
  const sorted = [...nights.values()].sort((a, b) =>
    a.date === b.date ? (a.room < b.room ? -1 : 1) : a.date < b.date ? -1 : 1,
  )
  return { ...readOf(reach, target, node), nights: sorted, more: cursor !== '' }
}

function countNights(
  nights: Map<string, Night>,
  { state, lines }: StayEntry,
  property: string,
  first: number,
  end: number,
): void {
  if (state !== 'held' && state !== 'booked') return
  /** A stay with two lines on a night is one stay. */
  const counted = new Set<string>()
  for (const line of lines) {
    const arrival = parseDay(line.arrival)
    if (arrival === undefined || line.propertyId !== property) continue
    for (let day = Math.max(arrival, first); day < Math.min(arrival + line.nights, end); day++) {
      const key = keyOf(line.roomType, formatDay(day))
      const night = nights.get(key) ?? {
        ...{ room: line.roomType, date: formatDay(day), held: 0, booked: 0, stays: 0, owed: 0 },
      }
      night[state] += line.rooms
      if (!counted.has(key)) night.stays++
      counted.add(key)
      nights.set(key, night)
    }
  }
}

function keyOf(room: string, date: string): string {
  return `${date} ${room}`
}
