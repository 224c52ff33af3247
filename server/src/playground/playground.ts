/** The playground and completion: queries of the data through the control plane. */
import type { ClientOptions } from '@vacancy/client'
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { type Handlers, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import type { CommandAnswer, PLAYGROUND_ROUTES, QueryAnswer } from '@vacancy/shared/contract'
import { COMMANDS, fieldsToJson, type RequestFields } from '@vacancy/shared/wire'
import type { Logger } from 'pino'
import type { WriteAudit } from '../access/audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { type Reach, readFields } from '../nodes/ask.ts'
import { closeClients, createNodeClients } from '../nodes/node-clients.ts'
import { createLimitsCache, type LimitsCache, runQuery } from '../nodes/query.ts'
import { targetOf } from '../nodes/target.ts'
import { calendarReplicas, propertyCalendar } from '../segments/calendar.ts'
import { createSegmentsCache, segmentProperties, segmentsOf } from '../segments/list.ts'
import { changeStay } from '../stays/change.ts'
import { changeSetting } from '../stays/settings.ts'
import { findStay, stayFigures, stayList, stayNights } from '../stays/stays.ts'
import { forgetRuns, keepRun, listRuns, pinRun } from './history.ts'
import { confirmationOf, preview } from './preview.ts'
import { propertiesOf } from './properties.ts'
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
import { createDaysCache, segmentDays } from './segment-days.ts'
import { createExampleCache, startOf } from './start.ts'
import type { PlaygroundDatabase } from './tables.ts'
import { whyNot } from './why-not.ts'
import { completion, createWordsCache } from './words.ts'

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
      'POST /api/v1/query/properties': (request) => propertiesOf(reach, request),
      'GET /api/v1/words': (request) => completion(reach, words, request),
      'GET /api/v1/segment-days': (request) => segmentDays(reach, days, request),
      'GET /api/v1/shards/{shard}/segments': (request) => segmentsOf(reach, segments, request),
      'GET /api/v1/shards/{shard}/segments/{segment}/properties': (request) => segmentProperties(reach, request),
      'GET /api/v1/shards/{shard}/properties/{property}': (request) => propertyCalendar(reach, limits, request),
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
      principal: request.principal,
      address: request.address,
      requestId: request.requestId,
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
