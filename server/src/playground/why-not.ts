/** Explains why a property is in a result or not, from reads at one node, checked against the node's own result. */

import { problem } from '@vacancy/shared/api/errors'
import { ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import type { MissingSource, WhyAnswer } from '@vacancy/shared/contract'
import {
  decodeRequest,
  encodeRequest,
  FRAME_HEADER_BYTES,
  type NightPackage,
  type RequestFields,
} from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { orNothing, type PropertyAttributes, propertyAt, type Reach, readFields, send } from '../nodes/ask.ts'
import { type LimitsCache, limitsOf } from '../nodes/query.ts'
import { oneNode, targetOf } from '../nodes/target.ts'
import { bestRoom, type Examined, roomTypesOf, type SearchCommand } from './match.ts'

/** Related reads are repeated when data was written between them. */
const TRIES_MAX = 4

export async function whyNot(
  reach: Reach,
  limits: LimitsCache,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/why-not'>, 'body' | 'signal'>,
): Promise<WhyAnswer> {
  const { command, property } = body
  if (command !== 'SEARCHPROP' && command !== 'SEARCHAVAIL') {
    throw problem('no-search', {
      detail: `${command} is not a search.`,
      field: 'command',
      hint: 'Use SEARCHPROP or SEARCHAVAIL.',
    })
  }
  const fields = asEngineReads(command, readFields(command, body.fields))
  const target = targetOf(reach.cluster, body)
  const node = oneNode(reach.cluster, target)
  const { queryLimit } = await limitsOf(reach, limits, target.shard)
  const base = { property, shard: target.shard, node: node.id, foundIn: [], missing: [] }
  for (let tries = 1; ; tries++) {
    const evidence = await readEvidence(reach, node, command, fields, property, signal)
    if (!evidence.attributes) {
      const where = await shardsWith(reach, target.shard, property, signal)
      return { ...base, ...notFound(property, target.shard, where), index: evidence.index }
    }
    const examined = bestRoom(command, fields, evidence.attributes, evidence.nights)
    const place = evidence.found.indexOf(
      property.toLowerCase() === evidence.attributes.id ? evidence.attributes.id : property,
    )
    // SEARCHPROP has no property filter: beyond the limit of a reply only the rules decide whether it matches.
    const isConclusive =
      evidence.matches !== undefined || place >= 0 || evidence.found.length < (queryLimit ?? Number.POSITIVE_INFINITY)
    const engine = evidence.matches ?? place >= 0
    const agrees = !isConclusive || engine === examined.matches
    if ((!evidence.isOneState || !agrees) && tries < TRIES_MAX) continue
    const verdict = agrees ? verdictOf(examined, place, fields, evidence.found.length, queryLimit) : unsettled(engine)
    return {
      ...base,
      index: evidence.index,
      checks: [...examined.checks],
      wouldMatchIf: [...examined.wouldMatchIf],
      ...verdict,
    }
  }
}

/** The fields as decoded from a frame, with lists trimmed and without repeats. */
export function asEngineReads(command: SearchCommand, fields: RequestFields): RequestFields {
  const frame = encodeRequest({ command, correlationId: 0, fields })
  return decodeRequest(frame.subarray(FRAME_HEADER_BYTES)).fields
}

type Evidence = {
  readonly attributes: PropertyAttributes | undefined
  /** By room type that the search may take. */
  readonly nights: ReadonlyMap<string, ReadonlyMap<string, NightPackage | undefined>>
  /** Whether it matches in the engine, for searches that can be limited to one property. */
  readonly matches: boolean | undefined
  /** Ids of the search without its limit, in the order of the reply. */
  readonly found: readonly string[]
  readonly index: string
  /** No entry was applied between the first read and the last. */
  readonly isOneState: boolean
}

async function readEvidence(
  reach: Reach,
  node: NodeAddress,
  command: SearchCommand,
  fields: RequestFields,
  id: string,
  signal: AbortSignal,
): Promise<Evidence> {
  // A page is a limit, too.
  const { limit: _, cursor: __, ...unlimited } = fields
  const search = { ...unlimited, explain: 1 }
  const before = await (command === 'SEARCHAVAIL'
    ? ownStay(reach, node, search, id, signal)
    : all(reach, node, command, search, signal))
  const attributes = await propertyAt(reach, node, id, signal)
  const rooms = attributes ? (command === 'SEARCHAVAIL' ? roomTypesOf(fields, attributes) : ['']) : []
  const nights = new Map<string, ReadonlyMap<string, NightPackage | undefined>>()
  for (const roomType of rooms) {
    const own = command === 'SEARCHAVAIL' ? await nightsOf(reach, node, { ...fields, roomType }, id, signal) : new Map()
    nights.set(roomType, own)
  }
  const after = await all(reach, node, command, search, signal)
  return {
    attributes,
    nights,
    matches: command === 'SEARCHAVAIL' ? before.ids.length > 0 : undefined,
    found: after.ids,
    index: after.index,
    isOneState: before.index === after.index,
  }
}

/** The engine's result for this property alone. A search for another property never matches it. */
async function ownStay(reach: Reach, node: NodeAddress, search: RequestFields, id: string, signal: AbortSignal) {
  const found = await all(reach, node, 'SEARCHAVAIL', { ...search, propertyId: id }, signal)
  const { propertyId } = search
  return propertyId === undefined || propertyId === id ? found : { ...found, ids: [] }
}

async function all(
  reach: Reach,
  node: NodeAddress,
  command: SearchCommand,
  search: RequestFields,
  signal: AbortSignal,
): Promise<{ readonly ids: readonly string[]; readonly index: string }> {
  if (command === 'SEARCHPROP') {
    const { result } = await send(reach, [node], command, search, signal)
    return { ids: result.propertyIds, index: String(result.explain?.appliedIndex) }
  }
  const { result } = await send(reach, [node], command, search, signal)
  return { ids: result.properties.map(({ propertyId }) => propertyId), index: String(result.explain?.appliedIndex) }
}

async function nightsOf(
  reach: Reach,
  node: NodeAddress,
  { roomType, dates }: RequestFields,
  propertyId: string,
  signal: AbortSignal,
): Promise<Map<string, NightPackage | undefined>> {
  const nights = await Promise.all(
    (dates as readonly string[]).map(async (date) => {
      const fields = { propertyId, roomType, date }
      const answered = await orNothing(send(reach, [node], 'GETPROPROOMDAY', fields, signal))
      return [date, answered?.result] as const
    }),
  )
  return new Map(nights)
}

type Verdict = Pick<WhyAnswer, 'verdict' | 'message' | 'rank'>

function verdictOf(
  { matches, checks }: Examined,
  place: number,
  fields: RequestFields,
  found: number,
  queryLimit: number | null,
): Verdict {
  if (!matches) {
    const failed = checks.filter(({ ok }) => !ok).length
    return {
      verdict: 'filtered',
      message: failed === 1 ? 'One condition is not met.' : `${failed} conditions are not met.`,
      rank: null,
    }
  }
  const own = fields['limit'] === undefined ? Number.POSITIVE_INFINITY : Number(fields['limit'])
  const limit = Math.min(own, queryLimit ?? Number.POSITIVE_INFINITY)
  const ofAtLeast = queryLimit !== null && found >= queryLimit
  const most = ofAtLeast ? `more than ${found - 1}` : String(found)
  if (place < 0) {
    return {
      verdict: 'beyond-limit',
      message: `It matches, but is not among the first ${found}, the limit of a reply.`,
      rank: { place: found + 1, of: found, ofAtLeast: true, limit: found },
    }
  }
  if (place >= limit) {
    return {
      verdict: 'beyond-limit',
      message: `It matches at position ${place + 1} of ${most}, beyond the limit of ${limit}.`,
      rank: { place: place + 1, of: found, ofAtLeast, limit },
    }
  }
  return {
    verdict: 'in-result',
    message: `It is in the result at position ${place + 1} of ${most}.`,
    rank: { place: place + 1, of: found, ofAtLeast, limit: Number.isFinite(limit) ? limit : found },
  }
}

function unsettled(engine: boolean): Verdict {
  const answer = engine ? 'returns it' : 'does not return it'
  return {
    verdict: 'unsettled',
    message: `The node ${answer}, which the values below do not explain, because they changed during the read. Try again.`,
    rank: null,
  }
}

type Elsewhere = { readonly foundIn: readonly string[]; readonly missing: readonly MissingSource[] }

async function shardsWith(reach: Reach, but: string, propertyId: string, signal: AbortSignal): Promise<Elsewhere> {
  const foundIn: string[] = []
  const missing: MissingSource[] = []
  const others = reach.cluster.shards().filter(({ id }) => id !== but)
  await Promise.all(
    others.map(async ({ id }) => {
      try {
        const { result } = await send(reach, reach.cluster.addresses(id), 'PROPEXIST', { propertyId }, signal)
        if (result.exists) foundIn.push(id)
      } catch (error) {
        // A silent shard is listed and does not hide the results of others.
        if (!(error instanceof ProblemError)) throw error
        const since = new Date(reach.clients.clock.wallMs()).toISOString()
        missing.push({ source: id, code: error.code, message: error.message, since })
      }
    }),
  )
  return { foundIn: foundIn.sort(), missing }
}

function notFound(property: string, shard: string, { foundIn, missing }: Elsewhere) {
  const silent = missing.length === 0 ? '' : ` ${missing.length} shards did not respond.`
  const message =
    foundIn.length > 0
      ? `${property} is not in ${shard}, but in ${foundIn.join(', ')}.`
      : `${shard} has no property ${property}${silent === '' ? ', nor has any other shard' : ''}: it was removed or never existed.${silent}`
  return {
    verdict: foundIn.length > 0 ? ('elsewhere' as const) : ('nowhere' as const),
    message,
    rank: null,
    checks: [],
    wouldMatchIf: [],
    foundIn: [...foundIn],
    missing: [...missing],
  }
}
