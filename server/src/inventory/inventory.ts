/** The playground and completion: what people and programs ask of the data itself, through the control plane. */
import type { ClientOptions } from '@vacancy/client'
import type { Clock } from '@vacancy/shared'
import type { CommandAnswer, PLAYGROUND_ROUTES, QueryAnswer } from '@vacancy/shared/contract'
import { COMMANDS, fieldsToJson, type RequestFields } from '@vacancy/shared/wire'
import type { Logger } from 'pino'
import type { WriteAudit } from '../audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Database } from '../database.ts'
import { type Asked, type Handlers, ProblemError } from '../route.ts'
import { type Reach, readFields } from './ask.ts'
import { forgetRuns, keepRun, listRuns, pinRun } from './history.ts'
import { closeClients, createNodeClients } from './node-clients.ts'
import { confirmationOf, preview } from './preview.ts'
import { propertiesOf } from './properties.ts'
import { createLimitsCache, type LimitsCache, runQuery } from './query.ts'
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
import { targetOf } from './target.ts'
import { whyNot } from './why-not.ts'
import { completion, createWordsCache } from './words.ts'

export type InventoryParts = {
  readonly cluster: Cluster
  readonly database: Database
  readonly audit: WriteAudit
  readonly log: Logger
  readonly clock: Clock
  /** How nodes are reached over the wire protocol: the client token of the configuration, TLS. */
  readonly connection: Pick<ClientOptions, 'token' | 'tls'>
}

export type Inventory = {
  readonly handlers: Handlers<typeof PLAYGROUND_ROUTES>
  /** Deletes what was kept for a while that is over. */
  sweep(): Promise<void>
  /** Closes the connections to the nodes. */
  stop(): Promise<void>
}

type Parts = InventoryParts & { readonly reach: Reach; readonly limits: LimitsCache; readonly seal: Seal }
type QueryAsked = Asked<'POST /api/v1/query'>

export function createInventory(given: InventoryParts): Inventory {
  const { cluster, database, clock, connection } = given
  const reach: Reach = { cluster, clients: createNodeClients(clock, connection) }
  const limits = createLimitsCache(clock)
  const parts: Parts = { ...given, reach, limits, seal: createSeal() }
  const words = createWordsCache(clock)
  const examples = createExampleCache(clock)
  const days = createDaysCache(clock)
  return {
    handlers: {
      'GET /api/v1/playground': (asked) => startOf(reach, { limits, words, examples }, asked),
      'POST /api/v1/query': (asked) => query(parts, asked),
      'POST /api/v1/query/preview': (asked) => preview(reach, asked),
      'POST /api/v1/query/replicas': (asked) => replicas(reach, asked),
      'POST /api/v1/query/why-not': (asked) => whyNot(reach, limits, asked),
      'POST /api/v1/query/relax': (asked) => relax(reach, limits, asked),
      'POST /api/v1/query/properties': (asked) => propertiesOf(reach, asked),
      'GET /api/v1/words': (asked) => completion(reach, words, asked),
      'GET /api/v1/segment-days': (asked) => segmentDays(reach, days, asked),
      'GET /api/v1/history': (asked) => listRuns(database, asked),
      'PUT /api/v1/history/{id}': (asked) => pinRun(database, asked),
      'DELETE /api/v1/history': (asked) => forgetRuns(database, asked),
      'GET /api/v1/saved-queries': (asked) => listSaved(database, asked),
      'GET /api/v1/saved-queries/{id}': (asked) => readSaved(database, asked),
      'POST /api/v1/saved-queries': (asked) => createSaved(database, asked, clock.wallMs()),
      'PUT /api/v1/saved-queries/{id}': (asked) => changeSaved(database, asked, clock.wallMs()),
      'DELETE /api/v1/saved-queries/{id}': (asked) => removeSaved(database, asked),
      'GET /api/v1/saved-results': (asked) => listResults(database, asked, clock.wallMs()),
      'GET /api/v1/saved-results/{id}': (asked) => readResult(database, asked, clock.wallMs()),
      'POST /api/v1/saved-results': (asked) => saveResult(parts, asked, clock.wallMs()),
      'DELETE /api/v1/saved-results/{id}': (asked) => removeResult(parts, asked, clock.wallMs()),
      'GET /api/v1/shared-requests/{id}': (asked) => readSharedRequest(database, asked, clock.wallMs()),
      'POST /api/v1/shared-requests': (asked) => shareRequest(database, asked, clock.wallMs()),
      'GET /api/v1/unsaved-requests/{id}': (asked) => readUnsaved(database, asked),
      'PUT /api/v1/unsaved-requests/{id}': (asked) => keepUnsaved(database, asked, clock.wallMs()),
    },
    async sweep() {
      await removeExpiredResults(database, clock.wallMs())
      await removeExpiredRequests(database, clock.wallMs())
    },
    stop: () => closeClients(reach.clients),
  }
}

async function query(parts: Parts, asked: QueryAsked): Promise<QueryAnswer> {
  const startedMs = parts.clock.monotonicMs()
  const { command } = asked.body
  const parsed = readFields(command, asked.body.fields)
  const isWrite = COMMANDS[command].access === 'write'
  if (!isWrite) {
    const answer = await kept(parts, asked, parsed, () => run(parts, asked, parsed, startedMs))
    return { ...answer, seal: sealFor(parts, asked, parsed, answer) }
  }
  const { shard } = targetOf(parts.cluster, asked.body)
  const note = async (result: string) =>
    parts.audit({
      asker: asked.asker,
      address: asked.address,
      requestId: asked.requestId,
      action: 'query.write',
      target: `${shard}: ${command}`,
      result,
      detail: JSON.stringify(fieldsToJson(command, parsed)).slice(0, DETAIL_CHARS),
    })
  const refusal = refusalOf(asked, parsed)
  if (refusal) {
    await note('refused')
    throw refusal
  }
  // Written down before it is sent: a write that nobody can be asked about is never made.
  await note('asked')
  const answer = await kept(parts, asked, parsed, async () => {
    try {
      const answer = await run(parts, asked, parsed, startedMs)
      await note('done')
      return answer
    } catch (error) {
      await note(error instanceof ProblemError && error.code !== 'unknown-outcome' ? 'failed' : 'unconfirmed')
      throw error
    }
  })
  return { ...answer, seal: '' }
}

/** Results of who signed in can be saved; measurements, which are many, are left out. */
function sealFor(
  { seal }: Parts,
  { asker, session, body }: QueryAsked,
  parsed: RequestFields,
  answer: CommandAnswer,
): string {
  if (session === undefined || !body.keep) return ''
  return seal({ person: asker.id, node: body.node ?? null, parsed, answer })
}

const DETAIL_CHARS = 2_000

function run({ reach, limits }: Parts, { body, signal }: QueryAsked, parsed: RequestFields, startedMs: number) {
  // Whoever goes away while a write is on its way leaves its outcome unknown: it is seen through.
  const isWrite = COMMANDS[body.command].access === 'write'
  return runQuery(reach, limits, { ...body, parsed }, startedMs, isWrite ? undefined : signal)
}

function refusalOf({ asker, body }: QueryAsked, parsed: RequestFields): ProblemError | undefined {
  const { command } = body
  if (asker.role !== 'operator' && asker.role !== 'admin') {
    return new ProblemError(403, 'needs-operator', `${command} writes: that needs the operator role.`, {
      hint: 'Ask an admin for the role, or use a token of the admin role.',
    })
  }
  if (!body.write) {
    return new ProblemError(400, 'write-mode-off', `${command} writes, and write mode is off.`, {
      field: 'write',
      hint: 'Switch write mode on, or send "write": true.',
    })
  }
  const confirm = confirmationOf(command, parsed)
  if (confirm === body.confirm || confirm === '') return undefined
  return new ProblemError(400, 'not-confirmed', `${command} removes data: repeat ${confirm} in "confirm".`, {
    field: 'confirm',
    hint: 'POST /api/v1/query/preview tells how much it removes.',
  })
}

/** Runs, and puts how it went into the history of who signed in. */
async function kept(parts: Parts, asked: QueryAsked, parsed: RequestFields, runs: () => Promise<CommandAnswer>) {
  try {
    const answer = await runs()
    await remember(
      parts,
      asked,
      parsed,
      { rows: answer.count, totalMicros: answer.totalMicros, error: '' },
      answer.shard,
    )
    return answer
  } catch (error) {
    const text = error instanceof ProblemError ? `${error.code}: ${error.message}` : 'internal'
    await remember(parts, asked, parsed, { rows: null, totalMicros: null, error: text }, asked.body.shard ?? '')
    throw error
  }
}

async function remember(
  { database, log, clock }: Parts,
  { asker, session, body, requestId }: QueryAsked,
  parsed: RequestFields,
  went: { readonly rows: number | null; readonly totalMicros: number | null; readonly error: string },
  shard: string,
): Promise<void> {
  if (session === undefined || !body.keep) return
  const { command, node = null } = body
  try {
    await keepRun(
      database,
      asker.id,
      { shard, node, command, fields: fieldsToJson(command, parsed), ...went },
      clock.wallMs(),
    )
  } catch (error) {
    // A history that cannot be written never hides a result.
    log.warn({ err: error, requestId }, 'a run of the playground is missing in the history')
  }
}
