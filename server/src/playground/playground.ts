/** The playground and completion: queries of the data through the control plane. */
import type { ClientOptions } from '@vacancy/client'
import { type Clock, packPropertyId } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { callerOf, type Handlers, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import {
  type CommandAnswer,
  NODE_HTTP_LIMITS,
  nodeCoverageBody,
  PLAYGROUND_LIMITS,
  type PLAYGROUND_ROUTES,
  type PropertiesAnswer,
  type QueryAnswer,
  type SegmentDaysAnswer,
} from '@vacancy/shared/contract'
import { COMMANDS, fieldsToJson, type RequestFields } from '@vacancy/shared/wire'
import type { Logger } from 'pino'
import type { WriteAudit } from '../access/audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { parseJson, propertiesAt, type Reach, readFields, refusedBy, requestNode } from '../nodes/ask.ts'
import { type Cache, createCache } from '../nodes/cache.ts'
import { closeClients, createNodeClients } from '../nodes/node-clients.ts'
import { createLimitsCache, type LimitsCache, runQuery } from '../nodes/query.ts'
import { oneNode, type Target, targetOf } from '../nodes/target.ts'
import { calendarReplicas, propertyCalendar } from '../segments/calendar.ts'
import { createSegmentsCache, segmentProperties, segmentsOf } from '../segments/list.ts'
import { nightHistory } from '../segments/night.ts'
import { changeStay } from '../stays/change.ts'
import { changeSetting } from '../stays/settings.ts'
import { findStay, stayFigures, stayList, stayNights } from '../stays/stays.ts'
import { arrivalTotals, filterCounts } from './beside-form.ts'
import { forgetRuns, keepRun, listRuns, pinRun } from './history.ts'
import { confirmationOf, preview } from './preview.ts'
import { relax } from './relax.ts'
import { replicas } from './replicas.ts'
import { keepUnsaved, readSharedRequest, readUnsaved, removeExpiredRequests, shareRequest } from './requests.ts'
import {
  createSeal,
  listResults,
  readResult,
  removeExpiredResults,
  removeResult,
  type Seal,
  saveResult,
} from './results.ts'
import { changeSaved, createSaved, listSaved, readSaved, removeSaved } from './saved.ts'
import { createExampleCache, startOf } from './start.ts'
import type { PlaygroundDatabase } from './tables.ts'
import { whyNot } from './why-not.ts'
import { completion, createWordsCache } from './words.ts'

/** The nights on which a segment has packages, for the playground's calendar; cached for a minute. */
type DaysCache = Cache<SegmentDaysAnswer>

/** Maximum pages to read until the segment is found; segments with the same prefix come before it. */
const PAGES_MAX = 20

function createDaysCache(clock: Clock): DaysCache {
  return createCache(clock, { keepMs: PLAYGROUND_LIMITS.wordsSeconds * 1_000, max: 500 })
}

async function segmentDays(
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

export type PlaygroundParts = {
  readonly cluster: Cluster
  readonly database: PlaygroundDatabase
  readonly audit: WriteAudit
  readonly log: Logger
  readonly clock: Clock
  /** Credentials for the wire protocol: the configured client token, TLS. */
  readonly connection: Pick<ClientOptions, 'token' | 'tls'>
}

export type Playground = {
  readonly handlers: Handlers<typeof PLAYGROUND_ROUTES>
  /** Deletes expired rows. */
  sweep(): Promise<void>
  /** Closes the connections to the nodes. */
  stop(): Promise<void>
}

type Parts = PlaygroundParts & { readonly reach: Reach; readonly limits: LimitsCache; readonly seal: Seal }
type QueryRequest = RouteRequest<'POST /api/v1/query'>

export function createPlayground(given: PlaygroundParts): Playground {
  const { cluster, database, clock, connection } = given
  const reach: Reach = { cluster, clients: createNodeClients(clock, connection) }
  const limits = createLimitsCache(clock)
  const parts: Parts = { ...given, reach, limits, seal: createSeal() }
  const words = createWordsCache(clock)
  const examples = createExampleCache(clock)
  const days = createDaysCache(clock)
  const segments = createSegmentsCache(clock)
  return {
    handlers: {
      'GET /api/v1/playground': (request) => startOf(reach, { limits, words, examples }, request),
      'POST /api/v1/query': (request) => query(parts, request),
      'POST /api/v1/query/preview': (request) => preview(reach, request),
      'POST /api/v1/query/replicas': (request) => replicas(reach, request),
      'POST /api/v1/query/why-not': (request) => whyNot(reach, limits, request),
      'POST /api/v1/query/relax': (request) => relax(reach, limits, request),
      'POST /api/v1/query/counts': (request) => filterCounts(reach, request),
      'POST /api/v1/query/arrivals': (request) => arrivalTotals(reach, request),
      'POST /api/v1/query/properties': (request) => propertiesOf(reach, request),
      'GET /api/v1/words': (request) => completion(reach, words, request),
      'GET /api/v1/segment-days': (request) => segmentDays(reach, days, request),
      'GET /api/v1/shards/{shard}/segments': (request) => segmentsOf(reach, segments, request),
      'GET /api/v1/shards/{shard}/segments/{segment}/properties': (request) => segmentProperties(reach, request),
      'GET /api/v1/shards/{shard}/properties/{property}': (request) => propertyCalendar(reach, limits, request),
      'GET /api/v1/shards/{shard}/properties/{property}/night': (request) => nightHistory(reach, request),
      'GET /api/v1/shards/{shard}/properties/{property}/replicas': (request) =>
        calendarReplicas(reach, limits, request),
      'GET /api/v1/shards/{shard}/stays': (request) => stayList(reach, request),
      'GET /api/v1/shards/{shard}/stays/{stay}': (request) => findStay(reach, request),
      'GET /api/v1/shards/{shard}/stay-figures': (request) => stayFigures(reach, request),
      'GET /api/v1/shards/{shard}/properties/{property}/stays': (request) => stayNights(reach, request),
      'POST /api/v1/shards/{shard}/stays/{stay}/confirm': (request) => changeStay(parts, 'confirm', request),
      'POST /api/v1/shards/{shard}/stays/{stay}/release': (request) => changeStay(parts, 'release', request),
      'POST /api/v1/shards/{shard}/settings': (request) => changeSetting(parts, request),
      'GET /api/v1/history': (request) => listRuns(database, request),
      'PUT /api/v1/history/{id}': (request) => pinRun(database, request),
      'DELETE /api/v1/history': (request) => forgetRuns(database, request),
      'GET /api/v1/saved-queries': (request) => listSaved(database, request),
      'GET /api/v1/saved-queries/{id}': (request) => readSaved(database, request),
      'POST /api/v1/saved-queries': (request) => createSaved(database, request, clock.wallMs()),
      'PUT /api/v1/saved-queries/{id}': (request) => changeSaved(database, request, clock.wallMs()),
      'DELETE /api/v1/saved-queries/{id}': (request) => removeSaved(database, request),
      'GET /api/v1/saved-results': (request) => listResults(database, request, clock.wallMs()),
      'GET /api/v1/saved-results/{id}': (request) => readResult(database, request, clock.wallMs()),
      'POST /api/v1/saved-results': (request) => saveResult(parts, request, clock.wallMs()),
      'DELETE /api/v1/saved-results/{id}': (request) => removeResult(parts, request, clock.wallMs()),
      'GET /api/v1/shared-requests/{id}': (request) => readSharedRequest(database, request, clock.wallMs()),
      'POST /api/v1/shared-requests': (request) => shareRequest(database, request, clock.wallMs()),
      'GET /api/v1/unsaved-requests/{id}': (request) => readUnsaved(database, request),
      'PUT /api/v1/unsaved-requests/{id}': (request) => keepUnsaved(database, request, clock.wallMs()),
    },
    async sweep() {
      await removeExpiredResults(database, clock.wallMs())
      await removeExpiredRequests(database, clock.wallMs())
    },
    stop: () => closeClients(reach.clients),
  }
}

async function query(parts: Parts, request: QueryRequest): Promise<QueryAnswer> {
  const startedMs = parts.clock.monotonicMs()
  const { command } = request.body
  const parsed = readFields(command, request.body.fields)
  const isWrite = COMMANDS[command].access === 'write'
  if (!isWrite) {
    const answer = await kept(parts, request, parsed, () => run(parts, request, parsed, startedMs))
    return { ...answer, seal: sealFor(parts, request, parsed, answer) }
  }
  const { shard } = targetOf(parts.cluster, request.body)
  const note = async (result: string) =>
    parts.audit({
      ...callerOf(request),
      action: 'query.write',
      target: `${shard}: ${command}`,
      result,
      detail: JSON.stringify(fieldsToJson(command, parsed)).slice(0, DETAIL_CHARS),
    })
  const refusal = refusalOf(request, parsed)
  if (refusal) {
    await note('refused')
    throw refusal
  }
  // Audited before it is sent, so that no write is missing in the log. The result keeps its stored spelling.
  await note('asked')
  const answer = await kept(parts, request, parsed, async () => {
    try {
      const answer = await run(parts, request, parsed, startedMs)
      await note('done')
      return answer
    } catch (error) {
      await note(error instanceof ProblemError && error.code !== 'unknown-outcome' ? 'failed' : 'unconfirmed')
      throw error
    }
  })
  return { ...answer, seal: '' }
}

/** Results of sessions can be saved, except those of measurements, which are many. */
function sealFor(
  { seal }: Parts,
  { principal, session, body }: QueryRequest,
  parsed: RequestFields,
  answer: CommandAnswer,
): string {
  if (session === undefined || !body.keep) return ''
  return seal({ person: principal.id, node: body.node ?? null, parsed, answer })
}

const DETAIL_CHARS = 2_000

function run({ reach, limits }: Parts, { body, signal }: QueryRequest, parsed: RequestFields, startedMs: number) {
  // A write is completed even if the caller disconnects: otherwise its outcome would be unknown.
  const isWrite = COMMANDS[body.command].access === 'write'
  return runQuery(reach, limits, { ...body, parsed }, startedMs, isWrite ? undefined : signal)
}

function refusalOf({ principal, body }: QueryRequest, parsed: RequestFields): ProblemError | undefined {
  const { command } = body
  if (principal.role !== 'operator' && principal.role !== 'admin') {
    return problem('forbidden', { detail: `${command} writes, which needs the operator role.` })
  }
  if (!body.write) {
    return problem('write-mode-off', { detail: `${command} writes, but write mode is off.`, field: 'write' })
  }
  const confirm = confirmationOf(command, parsed)
  if (confirm === body.confirm || confirm === '') return undefined
  return problem('not-confirmed', {
    detail: `${command} removes data: send ${confirm} in "confirm".`,
    field: 'confirm',
    hint: 'POST /api/v1/query/preview shows how much it removes.',
  })
}

/** Runs a query and stores it in the history of the session's owner. */
async function kept(parts: Parts, request: QueryRequest, parsed: RequestFields, runs: () => Promise<CommandAnswer>) {
  try {
    const answer = await runs()
    await remember(
      parts,
      request,
      parsed,
      { rows: answer.count, totalMicros: answer.totalMicros, error: '' },
      answer.shard,
    )
    return answer
  } catch (error) {
    const text = error instanceof ProblemError ? `${error.code}: ${error.message}` : 'internal'
    await remember(parts, request, parsed, { rows: null, totalMicros: null, error: text }, request.body.shard ?? '')
    throw error
  }
}

async function remember(
  { database, log, clock }: Parts,
  { principal, session, body, requestId }: QueryRequest,
  parsed: RequestFields,
  went: { readonly rows: number | null; readonly totalMicros: number | null; readonly error: string },
  shard: string,
): Promise<void> {
  if (session === undefined || !body.keep) return
  const { command, node = null } = body
  try {
    await keepRun(
      database,
      principal.id,
      { shard, node, command, fields: fieldsToJson(command, parsed), ...went },
      clock.wallMs(),
    )
  } catch (error) {
    // A failed write of the history must not hide the result.
    log.warn({ err: error, requestId }, 'storing a playground run failed')
  }
}

/** Attributes of the properties of a result, in as few requests to one node as possible. */
async function propertiesOf(
  reach: Reach,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/properties'>, 'body' | 'signal'>,
): Promise<PropertiesAnswer> {
  const target = targetOf(reach.cluster, body)
  const node = oneNode(reach.cluster, target)
  const ids = [...new Set(body.ids)]
  const askable = ids.filter((id) => packPropertyId(id) !== undefined)
  const answers = await Promise.all(
    batchesOf(askable, NODE_HTTP_LIMITS.propertyIdsMax).map((batch) => propertiesAt(reach, node, batch, signal)),
  )
  const found = answers.flatMap(({ properties }) => properties)
  const known = new Set(found.map(({ id }) => id))
  return {
    shard: target.shard,
    node: node.id,
    properties: found,
    missing: ids.filter((id) => !known.has(id)),
  }
}

function batchesOf<T>(entries: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(entries.length / size) }, (_, n) => entries.slice(n * size, (n + 1) * size))
}
