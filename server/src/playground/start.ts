/** The initial data of the playground: codec list, window, limits, and a search with results. */
import type { Clock } from '@vacancy/shared'
import { dayOf, formatDay, parseDay } from '@vacancy/shared'
import { ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import type { MissingSource, PlaygroundAnswer, PlaygroundShard, ShardView } from '@vacancy/shared/contract'
import { SEARCH_ORDERS, SEARCH_WANTS } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { addressText, type Reach, send } from '../nodes/ask.ts'
import { type Cache, createCache } from '../nodes/cache.ts'
import { clientOf } from '../nodes/node-clients.ts'
import { type LimitsCache, limitsOf } from '../nodes/query.ts'
import { targetOf } from '../nodes/target.ts'
import { completion, type WordsCache } from './words.ts'

type Example = PlaygroundShard['example']
export type ExampleCache = Cache<Example>

/** Days from today that are tried to find a search with results. */
const DAYS_TRIED = [1, 7, 0, 14, 30, 60, 90]
const NIGHTS = 3
const PAGE = 25
const WORDS_TRIED = 3
const EXAMPLE_MS = 10_000

export function createExampleCache(clock: Clock): ExampleCache {
  return createCache(clock, { keepMs: 60_000, max: 1_000 })
}

export async function startOf(
  reach: Reach,
  caches: { readonly limits: LimitsCache; readonly words: WordsCache; readonly examples: ExampleCache },
  { query }: Pick<RouteRequest<'GET /api/v1/playground'>, 'query'>,
): Promise<PlaygroundAnswer> {
  const views = reach.cluster.shards()
  const shards = views.map(({ id, level, message }) => ({ id, level, message }))
  const chosen = query.shard ?? (views.find(({ votersUp, nodes }) => votersUp > 0 || nodes.some(isUp)) ?? views[0])?.id
  const edges = reach.cluster.edges().flatMap(({ tcp }) => (tcp ? [addressText(tcp)] : []))
  const entrances = { edges, proxies: [...reach.cluster.proxies()] }
  if (chosen === undefined) return { shards, ...entrances, shard: null, missing: [] }
  const { shard } = targetOf(reach.cluster, { shard: chosen })
  const missing: MissingSource[] = []
  /** An unavailable part is omitted and listed in `missing`; the form works without it. */
  const part = async <T>(source: string, ask: () => Promise<T>, without: T): Promise<T> => {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      const since = new Date(reach.clients.clock.wallMs()).toISOString()
      missing.push({ source, code: error.code, message: error.message, since })
      return without
    }
  }
  const nodes = reach.cluster.addresses(shard)
  const view = reach.cluster.shard(shard)
  const [rateFeatures, { datesMax, queryLimit }] = await Promise.all([
    part('rate features', async () => [...(await clientOf(reach.clients, nodes)).rateFeatures], []),
    limitsOf(reach, caches.limits, shard),
  ])
  const example = await part(
    'example',
    () => caches.examples.get(shard, () => findExample(reach, caches.words, shard, view, datesMax)),
    null,
  )
  return {
    shards,
    ...entrances,
    shard: {
      id: shard,
      rateFeatures,
      window: view?.window ?? null,
      datesMax,
      queryLimit,
      nodes: nodes.map(({ id, tcp }) => {
        const node = reach.cluster.node(shard, id)
        return {
          id,
          role: node?.role ?? 'unknown',
          state: node?.state ?? 'unknown',
          tcp: tcp ? addressText(tcp) : null,
        }
      }),
      segments: view?.segments ?? null,
      example,
    },
    missing,
  }
}

function isUp({ freshness, state }: ShardView['nodes'][number]): boolean {
  return freshness === 'live' && state !== 'unavailable'
}

/**
 * A search for the segment and room type with most properties, on the first nights that have any. Concurrent callers
 * share it, and one that disconnects does not abort it for the others.
 */
async function findExample(
  reach: Reach,
  words: WordsCache,
  shard: string,
  view: ShardView | undefined,
  datesMax: number | null,
): Promise<Example> {
  const signal = AbortSignal.timeout(EXAMPLE_MS)
  const most = async (kind: 'segment' | 'room_type', segment?: string) => {
    const query = { shard, kind, prefix: '', limit: 200, ...(segment !== undefined && { segment }) }
    const found = await completion(reach, words, { query, signal })
    return found.words.toSorted((a, b) => (b.properties ?? 0) - (a.properties ?? 0)).slice(0, WORDS_TRIED)
  }
  const { nodes } = targetOf(reach.cluster, { shard })
  const nights = Math.min(NIGHTS, datesMax ?? NIGHTS)
  const segments = await most('segment')
  for (const { word: segment } of segments) {
    for (const { word: roomType } of await most('room_type', segment)) {
      for (const first of daysToTry(reach.clients.clock, view)) {
        const dates = Array.from({ length: nights }, (_, night) => formatDay(first + night))
        const fields = { segment, roomType, dates, explain: 2 }
        const { result } = await send(reach, nodes, 'SEARCHAVAIL', { ...fields, limit: 1 }, signal)
        if (result.properties.length === 0) continue
        return { command: 'SEARCHAVAIL', fields: await cheapestFirst(reach, nodes, fields, signal) }
      }
    }
  }
  const [first] = segments
  return first ? { command: 'SEARCHPROP', fields: { segment: first.word, explain: 2 } } : null
}

/** The first page of the cheapest, with totals; the search as it is on a node that has no order yet. */
async function cheapestFirst(
  reach: Reach,
  nodes: readonly NodeAddress[],
  fields: { readonly segment: string; readonly roomType: string; readonly dates: string[]; readonly explain: number },
  signal: AbortSignal,
) {
  const ordered = { ...fields, order: SEARCH_ORDERS.total, want: SEARCH_WANTS.total, count: 1, limit: PAGE }
  try {
    await send(reach, nodes, 'SEARCHAVAIL', ordered, signal)
    return ordered
  } catch (error) {
    if (error instanceof ProblemError && error.status === 400) return fields
    throw error
  }
}

function daysToTry(clock: Clock, view: ShardView | undefined): number[] {
  const today = dayOf(clock.wallMs())
  const from = Math.max(today, (view?.window && parseDay(view.window.from)) ?? today)
  return DAYS_TRIED.map((days) => from + days)
}
