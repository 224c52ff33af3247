/** The packages of a property by room type and night, from one node, and compared between all nodes of its shard. */
import { formatDay, packPropertyId, parseDay } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import {
  type CalendarNight,
  type CalendarReplicas,
  PLAYGROUND_LIMITS,
  type PropertyCalendar,
  SEGMENT_LIMITS,
} from '@vacancy/shared/contract'
import type { NightPackage, RequestFields } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { orNothing, type PropertyAttributes, propertyAt, type Reach, send, within } from '../nodes/ask.ts'
import { clientOf } from '../nodes/node-clients.ts'
import { indexOf, type LimitsCache, limitsOf } from '../nodes/query.ts'
import { shardToday } from '../nodes/shard-day.ts'
import { oneNode, targetOf } from '../nodes/target.ts'

/** Dates per search while the nodes do not report `max_dates_in_query`: their default. */
const DATES_DEFAULT = 14
const READS_MAX = 4
const PAUSE_MS = 50
const MICROS = 1_000

type Range = { readonly first: number; readonly nights: number }
type Read = Pick<PropertyCalendar, 'property' | 'window' | 'rooms' | 'more' | 'index'>
type CalendarRequest<N extends 'calendar' | 'replicas'> = Pick<
  RouteRequest<
    N extends 'calendar'
      ? 'GET /api/v1/shards/{shard}/properties/{property}'
      : 'GET /api/v1/shards/{shard}/properties/{property}/replicas'
  >,
  'params' | 'query' | 'signal'
>

export async function propertyCalendar(
  reach: Reach,
  limits: LimitsCache,
  { params, query, signal }: CalendarRequest<'calendar'>,
): Promise<PropertyCalendar> {
  const target = targetOf(reach.cluster, { shard: params.shard, node: query.node })
  const node = oneNode(reach.cluster, target)
  const range = await rangeOf(reach, node, query, signal)
  const { datesMax } = await limitsOf(reach, limits, target.shard)
  const [read, client] = await Promise.all([
    readAt(reach, node, {
      ...{ id: params.property, range, datesMax: datesMax ?? DATES_DEFAULT, signal },
      ...(query.atLeast && { minIndex: BigInt(query.atLeast) }),
    }),
    clientOf(reach.clients, [node]),
  ])
  if (!read) throw notFound(params.property, target.shard)
  return {
    shard: target.shard,
    node: node.id,
    role: reach.cluster.node(target.shard, node.id)?.role ?? 'unknown',
    ...read,
    from: formatDay(range.first),
    nights: range.nights,
    rateFeatures: [...client.rateFeatures],
    at: new Date(reach.clients.clock.wallMs()).toISOString(),
  }
}

function notFound(property: string, shard: string): ProblemError {
  return problem('property-not-found', { detail: `Shard ${shard} has no property ${property}.` })
}

async function rangeOf(
  reach: Reach,
  node: NodeAddress,
  { from, nights }: { readonly from?: string | undefined; readonly nights: number },
  signal: AbortSignal,
) {
  const first = from === undefined ? await shardToday(reach, node, signal) : parseDay(from)
  if (first === undefined) throw problem('invalid-request', { detail: `${from} is not a date.`, field: 'from' })
  return { first, nights }
}

type Plan = {
  readonly id: string
  readonly range: Range
  readonly datesMax: number
  /** The node has applied this index before the packages are read. */
  readonly minIndex?: bigint
  readonly signal: AbortSignal
}

/** @returns undefined when the node does not have the property */
async function readAt(reach: Reach, node: NodeAddress, plan: Plan): Promise<Read | undefined> {
  const { id, signal } = plan
  if (packPropertyId(id) === undefined) return undefined
  const property = await propertyAt(reach, node, id, signal)
  if (!property) return undefined
  const names = property.room_types.slice(0, SEGMENT_LIMITS.roomTypesMax)
  const indexes: bigint[] = []
  const read = await Promise.all(names.map((room) => readRoom(reach, node, { ...plan, property, room, indexes })))
  const dates = read.flatMap((room) => room.dates).sort()
  const [from, to] = [dates[0], dates.at(-1)]
  indexes.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const [least, most] = [indexes[0], indexes.at(-1)]
  return {
    property,
    window: from === undefined || to === undefined ? null : { from, to },
    rooms: read.map(({ room, nights }) => ({ room, nights })),
    more: property.room_types.length > names.length,
    index: least === undefined || most === undefined ? null : { from: String(least), to: String(most) },
  }
}

type RoomPlan = Plan & {
  readonly property: PropertyAttributes
  readonly room: string
  /** Applied indexes of the replies. */
  readonly indexes: bigint[]
}
type Room = { readonly room: string; readonly nights: CalendarNight[]; readonly dates: readonly string[] }

/** The nights that have a package are listed first: a search finds only properties with one on each of its dates. */
async function readRoom(reach: Reach, node: NodeAddress, plan: RoomPlan): Promise<Room> {
  const { property, room, range, datesMax, signal, indexes } = plan
  const fields = { propertyId: property.id, roomType: room }
  const after = plan.minIndex === undefined ? {} : { minIndex: plan.minIndex }
  const listed = await orNothing(send(reach, [node], 'PROPROOMDATELIST', { ...fields, ...after }, signal))
  const dates = listed?.result.dates ?? []
  const wanted = dates.filter((date) => isIn(date, range))
  const parts = Array.from({ length: Math.ceil(wanted.length / datesMax) }, (_, n) =>
    wanted.slice(n * datesMax, (n + 1) * datesMax),
  )
  const nights = await Promise.all(
    parts.map(async (part) => {
      const search = { ...fields, segment: property.segment, dates: part, availability: 0, explain: 1 }
      const { result } = await send(reach, [node], 'SEARCHAVAIL', search, signal)
      const index = indexOf(result)
      if (index !== null) indexes.push(BigInt(index))
      // A package was removed since the list was read: the others are read one by one.
      return result.properties[0]?.days ?? (await nightsOf(reach, node, fields, part, signal))
    }),
  )
  return { room, nights: nights.flat().map(nightOf), dates }
}

function isIn(date: string, { first, nights }: Range): boolean {
  const day = parseDay(date)
  return day !== undefined && day >= first && day < first + nights
}

async function nightsOf(
  reach: Reach,
  node: NodeAddress,
  fields: RequestFields,
  dates: readonly string[],
  signal: AbortSignal,
): Promise<NightPackage[]> {
  const found = await Promise.all(
    dates.map((date) => orNothing(send(reach, [node], 'GETPROPROOMDAY', { ...fields, date }, signal))),
  )
  return found.flatMap((answered) => answered?.result ?? [])
}

function nightOf({ date, availability, finalPrice, rateFeatures }: NightPackage): CalendarNight {
  return { date, availability, price: finalPrice, features: [...rateFeatures] }
}

type Answered = { readonly row: CalendarReplicas['nodes'][number]; readonly read: Read | undefined }

export async function calendarReplicas(
  reach: Reach,
  limits: LimitsCache,
  { params, query, signal }: CalendarRequest<'replicas'>,
): Promise<CalendarReplicas> {
  const target = targetOf(reach.cluster, params)
  const { shard, nodes } = target
  const range = await rangeOf(reach, oneNode(reach.cluster, target), query, signal)
  const { datesMax } = await limitsOf(reach, limits, shard)
  const plan = { id: params.property, range, datesMax: datesMax ?? DATES_DEFAULT, signal }
  const answers = new Map<string, Answered>()
  for (let reads = 1; ; reads++) {
    await Promise.all(
      nodes.map(async (node) => {
        // A silent node is not read again in later rounds.
        if (answers.get(node.id)?.row.error) return
        answers.set(node.id, await rowOf(reach, shard, node, plan))
      }),
    )
    const rows = nodes.map(({ id }) => answers.get(id) as Answered)
    const answered = rows.filter(({ row }) => row.error === '')
    const differences = differencesOf(rows)
    const indexes = new Set(answered.flatMap(({ row }) => (row.index ? [row.index.from, row.index.to] : [])))
    // Replicas at different indexes may differ temporarily, which is not shown as a difference.
    if (differences.length > 0 && indexes.size > 1 && reads < READS_MAX) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      continue
    }
    if (answered.length > 0 && answered.every(({ read }) => read === undefined)) throw notFound(params.property, shard)
    return {
      shard,
      at: new Date(reach.clients.clock.wallMs()).toISOString(),
      nodes: rows.map(({ row }) => row),
      equal: answered.length > 0 && differences.length === 0,
      answered: answered.length,
      reads,
      differences: differences.slice(0, SEGMENT_LIMITS.differencesMax),
      differencesCut: differences.length > SEGMENT_LIMITS.differencesMax,
    }
  }
}

async function rowOf(reach: Reach, shard: string, node: NodeAddress, plan: Plan): Promise<Answered> {
  const { clock } = reach.clients
  const startedMs = clock.monotonicMs()
  const role = reach.cluster.node(shard, node.id)?.role ?? 'unknown'
  const row = { node: node.id, role, index: null, micros: null, packages: null, error: '' }
  const ms = PLAYGROUND_LIMITS.silentMs
  const late = () => problem('node-timeout', { detail: `no response within ${ms} ms` })
  try {
    const read = await within(ms, readAt(reach, node, plan), late)
    const packages = read?.rooms.reduce((sum, { nights }) => sum + nights.length, 0) ?? 0
    const micros = (clock.monotonicMs() - startedMs) * MICROS
    return { row: { ...row, index: read?.index ?? null, micros, packages }, read }
  } catch (error) {
    // A silent node is a row of the result.
    if (!(error instanceof ProblemError)) throw error
    return { row: { ...row, error: error.message }, read: undefined }
  }
}

function differencesOf(rows: readonly Answered[]): CalendarReplicas['differences'] {
  const cells = rows.map(({ read }) => {
    const nights = (read?.rooms ?? []).flatMap(({ room, nights }) =>
      nights.map((night) => [JSON.stringify([room, night.date]), night] as const),
    )
    return new Map(nights)
  })
  const isAnswered = rows.map(({ row }) => row.error === '')
  const keys = [...new Set(cells.flatMap((each) => [...each.keys()]))].sort()
  return keys.flatMap((key) => {
    const values = cells.map((each) => each.get(key) ?? null)
    const texts = new Set(values.filter((_, at) => isAnswered[at]).map((night) => JSON.stringify(night)))
    if (texts.size < 2) return []
    const [room, date] = JSON.parse(key) as [string, string]
    return [{ room, date, values }]
  })
}
