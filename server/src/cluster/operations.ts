/**
 * Operations: stored before anything is sent, one per shard at a time, and resumed after a restart. This is the part
 * common to all types; operation-types.ts describes what each type adds.
 */

import { problem } from '@vacancy/shared/api/errors'
import type { Caller, ProblemError } from '@vacancy/shared/api/route'
import type { Operation, Plan } from '@vacancy/shared/contract'
import { offerTopics } from '../live/topics.ts'
import { LATE_MS } from './membership-operations.ts'
import { beginRun, endRun } from './operation-run.ts'
import { type Operations, type OperationsOptions, runningOperations, targetOf } from './operation-state.ts'

const DAY_MS = 86_400_000

/** Types whose unconfirmed operations may still complete. */
const WATCHED_ON: ReadonlySet<string> = new Set([
  'transfer',
  'promote',
  'demote',
  'transfer-then-demote',
  'replace-voter',
])

export function createOperations(options: OperationsOptions): Operations {
  const operations: Operations = { ...options, plans: new Map(), active: new Map(), ended: new Map() }
  offerTopics(
    options.live,
    /^op:/,
    async (topic) => (await getOperation(operations, topic.slice('op:'.length))) ?? undefined,
  )
  offerTopics(options.live, /^ops$/, () => ({ operations: runningOperations(operations), next: null }))
  return operations
}

export async function getOperation(operations: Operations, id: string): Promise<Operation | undefined> {
  const running = operations.active.get(id)
  if (running) return running.operation
  const row = await operations.database
    .selectFrom('operations')
    .select('document')
    .where('id', '=', id)
    .executeTakeFirst()
  return row && (JSON.parse(row.document) as Operation)
}

/** Of a day: more operations than people start. */
const OF_THEN_MAX = 1_000

/** Operations that were running at a moment, and those that had ended within `keptMs` before it, oldest first. */
export async function operationsAt(
  operations: Operations,
  at: number,
  keptMs: number,
): Promise<{ readonly running: readonly Operation[]; readonly ended: readonly Operation[] }> {
  const rows = await operations.database
    .selectFrom('operations')
    .select(['document', 'ended_at'])
    .where('created_at', '<=', at)
    .where(({ eb, or }) => or([eb('ended_at', 'is', null), eb('ended_at', '>', at - keptMs)]))
    .orderBy('created_at', 'desc')
    .limit(OF_THEN_MAX)
    .execute()
  // PostgreSQL returns large numbers as text.
  const hadEnded = (row: (typeof rows)[number]) => row.ended_at !== null && Number(row.ended_at) <= at
  const read = (some: typeof rows) => some.reverse().map(({ document }) => JSON.parse(document) as Operation)
  return { running: read(rows.filter((row) => !hadEnded(row))), ended: read(rows.filter(hadEnded)) }
}

/** The last operation of each shard that ended within the last day. */
export function lastEndedOperations(operations: Operations): readonly Operation[] {
  return [...operations.ended.values()].filter(
    ({ endedAt }) => operations.clock.wallMs() - Date.parse(endedAt as string) < DAY_MS,
  )
}

export async function cancelOperation(operations: Operations, id: string, caller: Caller): Promise<Operation> {
  const running = operations.active.get(id)
  const operation = running?.operation ?? (await getOperation(operations, id))
  if (!operation) throw notFound(id)
  if (!running || !operation.cancellable) {
    throw problem('not-cancellable', {
      detail: `${operation.title} can no longer be cancelled: it is ${operation.state}.`,
    })
  }
  running.abort.abort()
  await endRun(operations, running, 'cancelled', `Cancelled by ${caller.principal.name}`)
  const note = { action: 'operation.cancel', target: targetOf(operation), result: 'done', operation: id }
  await operations.audit({ ...caller, ...note })
  return running.operation
}

export async function listOperations(
  operations: Operations,
  {
    shard,
    state,
    cursor,
    limit,
  }: {
    readonly shard?: string | undefined
    readonly state?: 'running' | 'ended' | undefined
    readonly cursor?: string | undefined
    readonly limit: number
  },
): Promise<{ operations: Operation[]; next: string | null }> {
  let query = operations.database.selectFrom('operations').select(['id', 'created_at', 'document'])
  if (shard !== undefined) query = query.where('shard', '=', shard)
  if (state !== undefined) query = query.where('ended_at', state === 'running' ? 'is' : 'is not', null)
  const from = cursor === undefined ? undefined : readCursor(cursor)
  if (from) {
    query = query.where(({ eb, or, and }) =>
      or([eb('created_at', '<', from.at), and([eb('created_at', '=', from.at), eb('id', '<', from.id)])]),
    )
  }
  const rows = await query
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
  const last = rows[limit - 1]
  return {
    operations: rows
      .slice(0, limit)
      .map(({ id, document }) => operations.active.get(id)?.operation ?? (JSON.parse(document) as Operation)),
    next: rows.length > limit && last ? `${last.created_at}.${last.id}` : null,
  }
}

/** The plan of the newest operation of a kind that was done on a shard. */
export async function lastPlan(operations: Operations, kind: Plan['kind'], shard: string): Promise<Plan | undefined> {
  const row = await operations.database
    .selectFrom('operations')
    .select('plan')
    .where('kind', '=', kind)
    .where('shard', '=', shard)
    .where('state', '=', 'done')
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  return row && (JSON.parse(row.plan) as Plan)
}

/** Resumes operations that were running when the process ended. */
export async function resumeOperations(operations: Operations): Promise<void> {
  const since = operations.clock.wallMs() - DAY_MS
  const rows = await operations.database
    .selectFrom('operations')
    .select(['document', 'plan', 'state', 'ended_at'])
    .where(({ eb, or }) => or([eb('ended_at', 'is', null), eb('ended_at', '>', since)]))
    .orderBy('created_at')
    .execute()
  for (const row of rows) {
    const operation = JSON.parse(row.document) as Operation
    const plan = JSON.parse(row.plan) as Plan
    if (row.ended_at !== null) {
      operations.ended.set(operation.shard, operation)
      const isLate = operation.state === 'unconfirmed' && operations.clock.wallMs() - Number(row.ended_at) < LATE_MS
      if (!isLate || !WATCHED_ON.has(operation.kind)) continue
    }
    if (operations.types.has(operation.kind)) {
      operations.log.info({ operation: operation.id, state: operation.state }, 'resuming an operation')
      beginRun(operations, operation, plan, operation.state !== 'armed')
    }
  }
}

export async function stopOperations(operations: Operations): Promise<void> {
  for (const { abort } of operations.active.values()) abort.abort()
  await Promise.all([...operations.active.values()].map(({ done }) => done))
}

export function notFound(id: string): ProblemError {
  return problem('operation-not-found', { detail: `There is no operation ${id}.` })
}

function readCursor(cursor: string): { readonly at: number; readonly id: string } | undefined {
  const [at = '', id = ''] = cursor.split('.', 2)
  if (/^\d{1,15}$/.test(at) && id !== '') return { at: Number(at), id }
  throw problem('invalid-cursor', { field: 'cursor' })
}
