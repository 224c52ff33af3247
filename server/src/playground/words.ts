/** Names in use for completion, from the nodes; cached for a minute. */
import { type Clock, packPropertyId } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import {
  type CompletionAnswer,
  NODE_HTTP_LIMITS,
  PLAYGROUND_LIMITS,
  type WORD_KINDS,
  wordsBody,
} from '@vacancy/shared/contract'
import { parseJson, type Reach, refusedBy, requestNode, send } from '../nodes/ask.ts'
import { type Cache, createCache } from '../nodes/cache.ts'
import { clientOf } from '../nodes/node-clients.ts'
import { oneNode, type Target, targetOf } from '../nodes/target.ts'

type Words = { readonly words: CompletionAnswer['words']; readonly more: boolean; readonly at: string }
export type WordsCache = Cache<Words>

export function createWordsCache(clock: Clock): WordsCache {
  return createCache(clock, { keepMs: PLAYGROUND_LIMITS.wordsSeconds * 1_000, max: 500 })
}

export async function completion(
  reach: Reach,
  cache: WordsCache,
  { query, signal }: Pick<RouteRequest<'GET /api/v1/words'>, 'query' | 'signal'>,
): Promise<CompletionAnswer> {
  const { kind, segment, prefix, limit } = query
  const target = targetOf(reach.cluster, query)
  const stamp = () => new Date(reach.clients.clock.wallMs()).toISOString()
  const read = (begins: string) =>
    cache.get(JSON.stringify([target.shard, kind, segment, begins]), async () => {
      if (kind === 'rate_feature') return { words: await features(reach, target), more: false, at: stamp() }
      if (kind === 'property') return { ...(await properties(reach, target, segment)), at: stamp() }
      return { ...(await wordsOf(reach, target, kind, segment, begins)), at: stamp() }
    })
  // All names of a kind need one read, unless there are more than a node returns at once.
  const all = await read('')
  const from = all.more && prefix !== '' && kind !== 'property' ? await read(prefix) : all
  let words = from.words.filter(({ word }) => word.startsWith(prefix))
  if (kind === 'property' && words.length === 0 && (await isProperty(reach, target, prefix, signal))) {
    words = [{ word: prefix, properties: null }]
  }
  return {
    shard: target.shard,
    kind,
    words: words.slice(0, limit),
    more: from.more || words.length > limit,
    at: from.at,
  }
}

async function wordsOf(
  reach: Reach,
  target: Target,
  kind: (typeof WORD_KINDS)[number],
  segment: string | undefined,
  prefix: string,
): Promise<Omit<Words, 'at'>> {
  const node = oneNode(reach.cluster, target)
  const request = new URLSearchParams({ kind, prefix, limit: String(NODE_HTTP_LIMITS.wordsMax) })
  if (segment) request.set('segment', segment)
  const path = `/words?${request}`
  const { status, body } = await requestNode(reach, node, path, { as: 'client' })
  if (status !== 200) throw refusedBy(node, path, status, body)
  const parsed = wordsBody.safeParse(parseJson(body))
  if (!parsed.success) throw refusedBy(node, path, status, 'the response is not a list of words')
  return { words: parsed.data.words, more: parsed.data.more }
}

async function features({ clients }: Reach, { nodes }: Target): Promise<CompletionAnswer['words']> {
  const client = await clientOf(clients, nodes)
  return client.rateFeatures.map((word) => ({ word, properties: null }))
}

/** The first properties of a segment by id, as many as one search returns. */
async function properties(
  reach: Reach,
  target: Target,
  segment: string | undefined,
): Promise<Pick<Words, 'words' | 'more'>> {
  if (!segment) {
    throw problem('segment-missing', { field: 'segment' })
  }
  const { result } = await send(reach, target.nodes, 'SEARCHPROP', { segment })
  const words = result.propertyIds.toSorted().map((word) => ({ word, properties: null }))
  const exact = await countOf(reach, target, segment)
  return { words, more: exact === undefined || exact > words.length }
}

async function countOf(reach: Reach, target: Target, segment: string): Promise<number | undefined> {
  const { words } = await wordsOf(reach, target, 'segment', segment, '')
  return words[0]?.properties ?? undefined
}

async function isProperty(reach: Reach, target: Target, id: string, signal: AbortSignal): Promise<boolean> {
  if (packPropertyId(id) === undefined) return false
  const { result } = await send(reach, target.nodes, 'PROPEXIST', { propertyId: id }, signal)
  return result.exists
}
