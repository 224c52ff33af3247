/** Segments of a shard with areas and packages by night, and the properties of one segment. */
import { type Clock, LIMITS } from '@vacancy/shared'
import type { RouteRequest } from '@vacancy/shared/api/route'
import {
  NODE_HTTP_LIMITS,
  nodeCoverageBody,
  PLAYGROUND_LIMITS,
  type PropertyDetails,
  SEGMENT_LIMITS,
  type SegmentLine,
  type SegmentProperties,
  type SegmentsAnswer,
  wordsBody,
} from '@vacancy/shared/contract'
import type { RequestFields } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { parseJson, propertiesAt, type Reach, refusedBy, requestNode, send } from '../nodes/ask.ts'
import { type Cache, createCache } from '../nodes/cache.ts'
import { oneNode, targetOf } from '../nodes/target.ts'

/** Requests to a node at a time: a list must not delay its searches. */
const AT_ONCE = 4
/** Filters that divide a segment into parts whose searches fit into one reply. */
const PARTS = [
  ['area', 'area'],
  ['type', 'propertyType'],
  ['category', 'category'],
] as const
const STARS = Array.from({ length: LIMITS.starsMax }, (_, n) => n + LIMITS.starsMin)

export type SegmentsCache = Cache<SegmentsAnswer>

export function createSegmentsCache(clock: Clock): SegmentsCache {
  return createCache(clock, { keepMs: PLAYGROUND_LIMITS.wordsSeconds * 1_000, max: 500 })
}

export async function segmentsOf(
  reach: Reach,
  cache: SegmentsCache,
  { params, query }: Pick<RouteRequest<'GET /api/v1/shards/{shard}/segments'>, 'params' | 'query'>,
): Promise<SegmentsAnswer> {
  const target = targetOf(reach.cluster, params)
  const { after, limit } = query
  return await cache.get(JSON.stringify([target.shard, after, limit]), async () => {
    const node = oneNode(reach.cluster, target)
    const path = `/coverage?${new URLSearchParams({ after, limit: String(limit) })}`
    const { status, body } = await requestNode(reach, node, path, { as: 'client' })
    if (status !== 200) throw refusedBy(node, path, status, body)
    const parsed = nodeCoverageBody.safeParse(parseJson(body))
    if (!parsed.success) throw refusedBy(node, path, status, 'the response has no coverage')
    const { segments, window, more } = parsed.data
    const lines = await inTurns(segments, async ({ name, properties, packages }): Promise<SegmentLine> => {
      const { words, more: isCut } = await wordsAt(reach, node, 'area', name)
      return {
        name,
        properties,
        areas: isCut ? null : words.length,
        packages: packages.reduce((sum, each) => sum + each, 0),
        nights: window === null ? [] : packages,
      }
    })
    const at = new Date(reach.clients.clock.wallMs()).toISOString()
    return { shard: target.shard, node: node.id, window, segments: lines, more, at }
  })
}

async function wordsAt(reach: Reach, node: NodeAddress, kind: 'area' | 'type' | 'category' | 'segment', word: string) {
  const where = kind === 'segment' ? { prefix: word } : { segment: word }
  const path = `/words?${new URLSearchParams({ kind, ...where, limit: String(NODE_HTTP_LIMITS.wordsMax) })}`
  const { status, body } = await requestNode(reach, node, path, { as: 'client' })
  if (status !== 200) throw refusedBy(node, path, status, body)
  const parsed = wordsBody.safeParse(parseJson(body))
  if (!parsed.success) throw refusedBy(node, path, status, 'the response is not a list of words')
  return parsed.data
}

export async function segmentProperties(
  reach: Reach,
  request: Pick<
    RouteRequest<'GET /api/v1/shards/{shard}/segments/{segment}/properties'>,
    'params' | 'query' | 'signal'
  >,
): Promise<SegmentProperties> {
  const { params, query, signal } = request
  const { segment } = params
  const target = targetOf(reach.cluster, params)
  const node = oneNode(reach.cluster, target)
  const { words } = await wordsAt(reach, node, 'segment', segment)
  const total = words.find(({ word }) => word === segment)?.properties ?? null
  const listed = await idsOf(reach, node, { segment, ...filtersOf(query) }, total ?? 0, signal)
  const ids = listed.ids.slice(0, SEGMENT_LIMITS.propertiesMax)
  const batches = batchesOf(ids, NODE_HTTP_LIMITS.propertyIdsMax)
  const found = await inTurns(batches, (batch) => propertiesAt(reach, node, batch, signal))
  const properties: PropertyDetails[] = found.flatMap((page) => page.properties)
  return {
    shard: target.shard,
    segment,
    node: node.id,
    total,
    properties: properties.sort((a, b) => (a.id < b.id ? -1 : 1)),
    more: listed.more || ids.length < listed.ids.length,
    at: new Date(reach.clients.clock.wallMs()).toISOString(),
  }
}

type Filters = RouteRequest<'GET /api/v1/shards/{shard}/segments/{segment}/properties'>['query']

function filtersOf({ area, type, category, stars, amenity }: Filters): RequestFields {
  return {
    ...(area && { area }),
    ...(type && { propertyType: type }),
    ...(category && { category }),
    ...(stars !== undefined && { minStars: stars }),
    ...(amenity && { amenities: [amenity] }),
  }
}

type Ids = { readonly ids: readonly string[]; readonly more: boolean }

/**
 * Ids of all matches. A reply has at most `query_limit` ids: a search that reaches it is divided by area, type, category
 * and stars until its parts fit.
 */
async function idsOf(reach: Reach, node: NodeAddress, fields: RequestFields, total: number, signal: AbortSignal) {
  const found = new Set<string>()
  const isFull = () => searches >= SEGMENT_LIMITS.searchesMax || found.size >= SEGMENT_LIMITS.propertiesMax
  let searches = 0
  const search = async (part: RequestFields) => {
    searches += 1
    return (await send(reach, [node], 'SEARCHPROP', part, signal)).result.propertyIds
  }
  // The whole segment shows the limit of a reply: with filters, a reply that is cut looks like one that is not.
  const whole = await search({ segment: fields['segment'] })
  const limit = whole.length < total ? whole.length : Number.POSITIVE_INFINITY
  const first = Object.keys(fields).length > 1 ? await search(fields) : whole
  for (const id of first) found.add(id)
  /** @returns whether all matches of the part were found */
  const divide = async (part: RequestFields, [division, ...others]: readonly Division[]): Promise<boolean> => {
    if (!division) return false
    let isComplete = true
    for (const value of division.values) {
      if (isFull()) return false
      const narrower = { ...part, [division.field]: value }
      const ids = await search(narrower)
      for (const id of ids) found.add(id)
      if (ids.length >= limit) isComplete = (await divide(narrower, others)) && isComplete
    }
    return isComplete
  }
  const isComplete = first.length < limit || (await divide(fields, await divisionsOf(reach, node, fields)))
  return { ids: [...found], more: !isComplete } satisfies Ids
}

type Division = { readonly field: string; readonly values: readonly (string | number)[] }

async function divisionsOf(reach: Reach, node: NodeAddress, fields: RequestFields): Promise<Division[]> {
  const segment = String(fields['segment'])
  const free = PARTS.filter(([, field]) => fields[field] === undefined)
  const divisions = await inTurns(free, async ([kind, field]): Promise<Division> => {
    const { words } = await wordsAt(reach, node, kind, segment)
    return { field, values: words.map(({ word }) => word) }
  })
  const least = Number(fields['minStars'] ?? 1)
  return [...divisions, { field: 'stars', values: STARS.filter((stars) => stars >= least) }]
}

function batchesOf<T>(entries: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(entries.length / size) }, (_, n) => entries.slice(n * size, (n + 1) * size))
}

/** Results in the order of the entries, with a few at work at a time. */
async function inTurns<T, R>(entries: readonly T[], work: (entry: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async () => {
    for (let at = next++; at < entries.length; at = next++) results[at] = await work(entries[at] as T)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, entries.length) }, worker))
  return results
}
