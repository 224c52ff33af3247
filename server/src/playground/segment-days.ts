/** The nights on which a segment has packages, for the playground's calendar; cached for a minute. */
import type { Clock } from '@vacancy/shared'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { nodeCoverageBody, PLAYGROUND_LIMITS, type SegmentDaysAnswer } from '@vacancy/shared/contract'
import { parseJson, type Reach, refusedBy, requestNode } from '../nodes/ask.ts'
import { type Cache, createCache } from '../nodes/cache.ts'
import { oneNode, type Target, targetOf } from '../nodes/target.ts'

export type DaysCache = Cache<SegmentDaysAnswer>

/** Maximum pages to read until the segment is found; segments with the same prefix come before it. */
const PAGES_MAX = 20

export function createDaysCache(clock: Clock): DaysCache {
  return createCache(clock, { keepMs: PLAYGROUND_LIMITS.wordsSeconds * 1_000, max: 500 })
}

export async function segmentDays(
  reach: Reach,
  cache: DaysCache,
  { query }: Pick<RouteRequest<'GET /api/v1/segment-days'>, 'query'>,
): Promise<SegmentDaysAnswer> {
  const target = targetOf(reach.cluster, query)
  const { segment } = query
  return await cache.get(JSON.stringify([target.shard, segment]), async () => ({
    shard: target.shard,
    segment,
    ...(await readDays(reach, target, segment)),
    at: new Date(reach.clients.clock.wallMs()).toISOString(),
  }))
}

async function readDays(
  reach: Reach,
  target: Target,
  segment: string,
): Promise<Pick<SegmentDaysAnswer, 'window' | 'packages'>> {
  const node = oneNode(reach.cluster, target)
  // A node lists its segments by name after a given one. The name without its last character comes before this segment.
  let after = [...segment].slice(0, -1).join('')
  for (let page = 0; page < PAGES_MAX; page++) {
    const path = `/coverage?${new URLSearchParams({ after })}`
    const { status, body } = await requestNode(reach, node, path, { as: 'client' })
    if (status !== 200) throw refusedBy(node, path, status, body)
    const parsed = nodeCoverageBody.safeParse(parseJson(body))
    if (!parsed.success) throw refusedBy(node, path, status, 'the response has no coverage')
    const { segments, window, more } = parsed.data
    const found = segments.find(({ name }) => name === segment)
    if (found) return { window, packages: window === null ? [] : found.packages }
    const last = segments.at(-1)
    if (!more || !last) break
    after = last.name
  }
  return { window: null, packages: [] }
}
