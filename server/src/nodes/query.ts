/** A playground run: one command, its reply, and where the time went. */

import { problem } from '@vacancy/shared/api/errors'
import { ProblemError } from '@vacancy/shared/api/route'
import {
  type CommandAnswer,
  configBody,
  EDGE_TARGET,
  type Hop,
  PLAYGROUND_LIMITS,
  type QueryCommand,
  type ReadRequest,
} from '@vacancy/shared/contract'
import {
  COMMANDS,
  FRAME_HEADER_BYTES,
  MAGIC_FRAME,
  type ReplyResult,
  type RequestFields,
  type SearchExplained,
} from '@vacancy/shared/wire'
import { type Answered, parseJson, type Reach, send, within } from './ask.ts'
import { type Cache, createCache } from './cache.ts'
import { isRouter } from './node-clients.ts'
import { edgeTarget, type Target, targetOf } from './target.ts'

const MICROS = 1_000

export type ShardLimits = { readonly datesMax: number | null; readonly queryLimit: number | null }

export type LimitsCache = Cache<ShardLimits>

export function createLimitsCache(clock: Parameters<typeof createCache>[0]): LimitsCache {
  return createCache(clock, { keepMs: 60_000, max: 1_000 })
}

const UNKNOWN_LIMITS: ShardLimits = { datesMax: null, queryLimit: null }

/** Limits of searches from the configuration of the nodes; null if it cannot be read, or no node responds. */
export async function limitsOf(reach: Reach, cache: LimitsCache, shard: string): Promise<ShardLimits> {
  try {
    return await cache.get(shard, () => readLimits(reach, shard))
  } catch (error) {
    // Nodes refuse requests beyond their limits. A failure to read the limits is not cached.
    if (error instanceof ProblemError) return UNKNOWN_LIMITS
    throw error
  }
}

async function readLimits({ cluster }: Reach, shard: string): Promise<ShardLimits> {
  let silence: ProblemError | undefined
  for (const node of cluster.addresses(shard)) {
    try {
      const { status, body } = await cluster.request(node, '/config', { as: 'admin' })
      const parsed = configBody.safeParse(parseJson(body))
      if (status === 200 && parsed.success)
        return { datesMax: wholeOf(parsed.data['max_dates_in_query']), queryLimit: wholeOf(parsed.data['query_limit']) }
    } catch (error) {
      // The next node has the same configuration.
      if (!(error instanceof ProblemError)) throw error
      silence = error
    }
  }
  if (silence) throw silence
  return UNKNOWN_LIMITS
}

function wholeOf(entry: { readonly value: string | number | boolean } | undefined): number | null {
  const value = Number(entry?.value)
  return Number.isInteger(value) && value > 0 ? value : null
}

/** @param startedMs when the control plane received the request */
export async function runQuery(
  reach: Reach,
  limits: LimitsCache,
  request: ReadRequest & { readonly parsed: RequestFields },
  startedMs: number,
  signal?: AbortSignal,
): Promise<CommandAnswer> {
  const { command, parsed } = request
  const isWrite = COMMANDS[command].access !== 'read'
  const isEdge = request.node === EDGE_TARGET
  const segment = typeof parsed['segment'] === 'string' ? parsed['segment'] : undefined
  const target = isEdge ? edgeTarget(reach.cluster, segment, request.shard) : targetOf(reach.cluster, request)
  const isSearch = command === 'SEARCHPROP' || command === 'SEARCHAVAIL'
  const sent = send(reach, target.nodes, command, parsed, signal)
  const leaderless = isWrite || isEdge ? undefined : leaderlessOf(reach, target)
  const [answered, { queryLimit }] = await Promise.all([
    leaderless ? within(PLAYGROUND_LIMITS.silentMs, sent, () => leaderless) : sent,
    isSearch && !isEdge ? limitsOf(reach, limits, target.shard) : { queryLimit: null },
  ])
  const limit = isSearch ? limitOf(parsed, queryLimit) : null
  const count = rowCount(answered.result)
  return {
    ...identityOf(reach, target, command, answered),
    count,
    limit,
    limited: limit !== null && count >= limit,
    ...measured(answered, (reach.clients.clock.monotonicMs() - startedMs) * MICROS),
  }
}

/** Why a read of a shard cannot be served now. The client would look for a leader until its deadline. */
function leaderlessOf({ cluster }: Reach, { shard, nodes }: Target): ProblemError | undefined {
  const view = cluster.shards().find(({ id }) => id === shard)
  if (nodes.length < 2 || (view?.state !== 'quorum-lost' && view?.state !== 'no-leader')) return undefined
  return problem('no-leader', { detail: `${shard} has no leader: ${view.message}.` })
}

function identityOf({ cluster, clients }: Reach, { shard }: Target, command: QueryCommand, answered: Answered) {
  return {
    shard,
    node: answered.node.id,
    role: isRouter(answered.node) ? 'edge router' : (cluster.node(shard, answered.node.id)?.role ?? 'unknown'),
    command,
    at: new Date(clients.clock.wallMs()).toISOString(),
    result: plain(answered.result),
  }
}

/** JSON numbers are exact only up to 2^53 − 1. */
export function plain(result: object): { [name: string]: unknown } {
  return JSON.parse(JSON.stringify(result, (_, value) => (typeof value === 'bigint' ? value.toString() : value)))
}

function limitOf({ limit }: RequestFields, queryLimit: number | null): number | null {
  const own = limit === undefined ? undefined : Number(limit)
  if (own === undefined) return queryLimit
  return queryLimit === null ? own : Math.min(own, queryLimit)
}

/** The number of rows of a result, as shown in tables. */
export function rowCount(result: ReplyResult): number {
  const list = result.properties ?? result.propertyIds ?? result.segments ?? result.dates ?? result.roomTypes
  if (list !== undefined) return list.length
  if (result.exists !== undefined) return result.exists ? 1 : 0
  if (result.rateFeatures !== undefined && result.propertyId === undefined) return result.rateFeatures.length
  return result.availability === undefined ? 0 : 1
}

/** The applied index in a reply. */
export function indexOf({ explain, index }: ReplyResult): string | null {
  const applied = explain?.appliedIndex ?? index
  return applied === undefined ? null : String(applied)
}

function measured({ result: known, reply, attempts }: Answered, totalMicros: number) {
  const result: ReplyResult = known
  const { explain } = result
  const tripMicros = reply.milliseconds * MICROS
  const node = explain ? explain.waitingMicros + explain.searchingMicros : 0
  const hops: Hop[] = [
    { hop: 'control-plane', micros: Math.max(0, totalMicros - tripMicros) },
    { hop: 'network', micros: Math.max(0, tripMicros - node) },
    { hop: 'waiting', micros: explain?.waitingMicros ?? null },
    ...(explain?.stages
      ? stagesOf(explain.stages)
      : [{ hop: 'searching' as const, micros: explain?.searchingMicros ?? null }]),
  ]
  const frame = frameOf(reply)
  return {
    index: indexOf(result),
    examined: explain?.rowsExamined ?? null,
    attempts,
    totalMicros,
    hops,
    bytesOut: reply.request.length,
    bytesIn: frame.length,
    requestFrame: Buffer.from(reply.request).toString('hex'),
    replyFrame: frame.subarray(0, PLAYGROUND_LIMITS.replyBytesMax).toString('hex'),
    replyCut: frame.length > PLAYGROUND_LIMITS.replyBytesMax,
  }
}

function stagesOf({ planningMicros, examiningMicros, writingMicros }: NonNullable<SearchExplained['stages']>): Hop[] {
  return [
    { hop: 'planning', micros: planningMicros },
    { hop: 'examining', micros: examiningMicros },
    { hop: 'writing', micros: writingMicros },
  ]
}

/** The frame of a reply, with the correlation id of the request. */
function frameOf({ request, answer }: Answered['reply']): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES)
  header[0] = MAGIC_FRAME
  header.set(request.subarray(1, 5), 1)
  header.writeUInt32LE(answer.length, 5)
  return Buffer.concat([header, answer])
}
