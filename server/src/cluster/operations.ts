/**
 * Operations (console.md §6.6): written down before anything leaves, one a shard at a time, and gone on with after a
 * restart. What each kind does stands in kinds.ts and its makers; here is what they have in common.
 */
import { createHash, randomUUID } from 'node:crypto'
import { assert, type Clock } from '@vacancy/shared'
import {
  ACCESS_LIMITS,
  END_STATES,
  type Environment,
  type Operation,
  type OperationState,
  type Plan,
  type PlanRequest,
} from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WriteAudit } from '../audit.ts'
import type { Database } from '../database.ts'
import type { Live } from '../live.ts'
import { type Asker, ProblemError } from '../route.ts'
import type { Kind, Kinds, Look, PlanDraft, Run } from './kinds.ts'
import { LATE_MS } from './membership.ts'

export const OPERATIONS = {
  planMs: 60_000,
  /** So long a plan is remembered after it ran out, to make it anew for who starts it late. */
  planKeptMs: 600_000,
  plansMax: 2_000,
  answerCharsMax: 2_000,
  stepsMax: 64,
} as const

export type Caller = { readonly asker: Asker; readonly address: string; readonly requestId: string }

export type OperationsDeps = {
  readonly database: Database
  readonly live: Live
  readonly audit: WriteAudit
  readonly log: Log
  readonly clock: Clock
  readonly kinds: Kinds
  readonly environment: () => Environment
  /** Throws ProblemError 404 for a shard that is not known. */
  readonly look: (shard: string, isAdmin: boolean) => Look
  /** An operation of the shard began, moved on or ended. */
  readonly onChange: (operation: Operation) => void
}

export type Operations = {
  plan(request: PlanRequest, asker: Asker): Promise<Plan>
  start(
    asked: { plan: string; reason: string; confirm: string; key: string | undefined },
    caller: Caller,
  ): Promise<Operation>
  cancel(id: string, caller: Caller): Promise<Operation>
  get(id: string): Promise<Operation | undefined>
  list(query: {
    readonly shard?: string | undefined
    readonly state?: 'running' | 'ended' | undefined
    readonly cursor?: string | undefined
    readonly limit: number
  }): Promise<{ operations: Operation[]; next: string | null }>
  running(): readonly Operation[]
  /** The last that ended of each shard, of the last day. */
  lastEnded(): readonly Operation[]
  /** Goes on with what ran when the process ended. */
  resume(): Promise<void>
  stop(): Promise<void>
}

type Running = {
  operation: Operation
  readonly plan: Plan
  readonly abort: AbortController
  /** Writes one after the other. */
  writing: Promise<void>
  done: Promise<void>
}

const DAY_MS = 86_400_000
/** Kinds whose end may still come when it was not confirmed. */
const WATCHED_ON: ReadonlySet<string> = new Set(['transfer', 'promote', 'demote', 'transfer-then-demote'])

export function createOperations(deps: OperationsDeps): Operations {
  const { database, clock, kinds, log, live } = deps
  const plans = new Map<string, Plan>()
  const active = new Map<string, Running>()
  const ended = new Map<string, Operation>()

  live.offer(/^op:/, async (topic) => (await get(topic.slice('op:'.length))) ?? undefined)
  live.offer(/^ops$/, () => ({ operations: runningNow(), next: null }))

  const runningNow = () => [...active.values()].map(({ operation }) => operation).filter(isRunning)

  async function makePlan(
    request: PlanRequest,
    isAdmin: boolean,
  ): Promise<{ readonly plan: Plan; readonly draft: PlanDraft }> {
    const kind = kindOf(request)
    const look = deps.look(request.shard, isAdmin)
    const draft = await kind.plan(request, look)
    const plan = completePlan(request, draft, look, deps.environment())
    for (const [id, { takenAt }] of plans) {
      if (plans.size < OPERATIONS.plansMax && look.now - Date.parse(takenAt) < OPERATIONS.planKeptMs) break
      plans.delete(id)
    }
    plans.set(plan.id, plan)
    return { plan, draft }
  }

  function kindOf({ kind }: PlanRequest): Kind {
    const known = kinds.get(kind)
    if (known) return known
    throw new ProblemError(400, 'kind-not-available', `this control plane does not know how to ${kind}`, {
      field: 'kind',
    })
  }

  async function get(id: string): Promise<Operation | undefined> {
    const running = active.get(id)
    if (running) return running.operation
    const row = await database.selectFrom('operations').select('document').where('id', '=', id).executeTakeFirst()
    return row && (JSON.parse(row.document) as Operation)
  }

  async function start(
    asked: { plan: string; reason: string; confirm: string; key: string | undefined },
    caller: Caller,
  ): Promise<Operation> {
    if (asked.key !== undefined) {
      const query = database.selectFrom('operations').select('id').where('idempotency_key', '=', asked.key)
      const earlier = await query.executeTakeFirst()
      if (earlier) return (await get(earlier.id)) as Operation
    }
    const shown = plans.get(asked.plan)
    if (!shown) {
      throw new ProblemError(404, 'plan-not-found', 'this plan is not known', {
        hint: 'Plans are kept for 10 minutes: make a new one.',
        field: 'plan',
      })
    }
    const { plan, draft } = await makePlan(shown.request, true)
    const busy = runningNow().find(({ shard }) => shard === plan.shard)
    if (busy) throw shardBusy(busy)
    checkShown(shown, plan, clock.wallMs())
    checkConfirmed(plan, asked)

    const now = clock.wallMs()
    const operation = newOperation(plan, draft, asked.reason, caller, now)
    try {
      await database.transaction().execute(async (transaction) => {
        await transaction
          .insertInto('operations')
          .values({
            ...rowOf(operation),
            idempotency_key: asked.key ?? null,
            plan: JSON.stringify(plan),
            created_at: now,
          })
          .execute()
        const detail = plan.checks.flatMap(({ level, text }) => (level === 'warn' ? [text] : [])).join('; ')
        const note = {
          action: 'operation.start',
          target: targetOf(operation),
          result: 'started',
          reason: asked.reason,
          detail,
        }
        await deps.audit({ ...caller, ...note, operation: operation.id }, transaction)
      })
    } catch (cause) {
      // Two were started at once: the database keeps one a shard.
      const other = runningNow().find(({ shard }) => shard === plan.shard)
      if (other) throw shardBusy(other)
      throw cause
    }
    plans.delete(asked.plan)
    begin(operation, plan, false)
    return operation
  }

  function begin(operation: Operation, plan: Plan, isResumed: boolean): void {
    const running: Running = {
      operation,
      plan,
      abort: new AbortController(),
      writing: Promise.resolve(),
      done: Promise.resolve(),
    }
    active.set(operation.id, running)
    tellChange(running)
    const kind = kinds.get(operation.kind)
    assert(kind !== undefined, `${operation.kind} was planned by a kind that is there`)
    running.done = kind
      .run(runOf(running, isResumed))
      .catch(async (error: unknown) => {
        log.error({ err: error, operation: operation.id }, 'an operation failed')
        if (isRunning(running.operation)) {
          await end(running, 'unconfirmed', `The control plane failed at it: ${(error as Error).message}. See its log.`)
        }
      })
      .finally(() => {
        active.delete(operation.id)
      })
  }

  function runOf(running: Running, isResumed: boolean): Run {
    return {
      operation: () => running.operation,
      plan: running.plan,
      isResumed,
      signal: running.abort.signal,
      now: () => clock.wallMs(),
      set: (change) => write(running, change),
      step(id, change) {
        const { steps, requestedAt } = running.operation
        const known = steps.find((step) => step.id === id)
        const now = clock.wallMs()
        const isOver = change.state === 'done' || change.state === 'failed'
        const step = {
          ...{ id, text: id, state: 'running' as const, at: null, milliseconds: null, evidence: '' },
          ...known,
          ...(isOver && { at: time(now), milliseconds: requestedAt === null ? null : now - Date.parse(requestedAt) }),
          ...change,
        }
        const next = known ? steps.map((each) => (each.id === id ? step : each)) : [...steps, step]
        return write(running, { steps: next.slice(0, OPERATIONS.stepsMax) })
      },
      end: (state, says) => end(running, state, says),
    }
  }

  async function end(running: Running, state: OperationState, says: string): Promise<void> {
    const endedAt = time(clock.wallMs())
    await write(running, { state, says, notice: '', endedAt, cancellable: false })
    const { operation } = running
    ended.set(operation.shard, operation)
    await deps.audit({
      asker: 'system',
      address: '',
      requestId: '',
      action: 'operation.end',
      target: targetOf(operation),
      result: state,
      detail: says,
      operation: operation.id,
    })
  }

  /** In memory at once, on disk when it resolves. */
  function write(running: Running, change: Partial<Operation>): Promise<void> {
    const answer = change.answer?.slice(0, OPERATIONS.answerCharsMax)
    running.operation = { ...running.operation, ...change, ...(answer !== undefined && { answer }) }
    const row = rowOf(running.operation)
    running.writing = running.writing.then(async () => {
      await database.updateTable('operations').set(row).where('id', '=', row.id).execute()
    })
    tellChange(running)
    return running.writing
  }

  function tellChange({ operation }: Running): void {
    live.touch(`op:${operation.id}`)
    live.touch('ops')
    deps.onChange(operation)
  }

  return {
    plan: async (request, asker) => (await makePlan(request, asker.role === 'admin')).plan,
    start,
    get,
    running: runningNow,
    lastEnded: () =>
      [...ended.values()].filter(({ endedAt }) => clock.wallMs() - Date.parse(endedAt as string) < DAY_MS),
    async cancel(id, caller) {
      const running = active.get(id)
      const operation = running?.operation ?? (await get(id))
      if (!operation) throw notFound(id)
      if (!running || !operation.cancellable) {
        throw new ProblemError(
          409,
          'not-cancellable',
          `${operation.title} can no longer be cancelled: it is ${operation.state}`,
          {
            hint: 'What was sent to a node cannot be taken back. Wait for its end and plan the way back.',
          },
        )
      }
      running.abort.abort()
      await end(running, 'cancelled', `Cancelled by ${caller.asker.name}`)
      const note = { action: 'operation.cancel', target: targetOf(operation), result: 'done', operation: id }
      await deps.audit({ ...caller, ...note })
      return running.operation
    },
    async list({ shard, state, cursor, limit }) {
      let query = database.selectFrom('operations').select(['id', 'created_at', 'document'])
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
          .map(({ id, document }) => active.get(id)?.operation ?? (JSON.parse(document) as Operation)),
        next: rows.length > limit && last ? `${last.created_at}.${last.id}` : null,
      }
    },
    async resume() {
      const since = clock.wallMs() - DAY_MS
      const rows = await database
        .selectFrom('operations')
        .select(['document', 'plan', 'state', 'ended_at'])
        .where(({ eb, or }) => or([eb('ended_at', 'is', null), eb('ended_at', '>', since)]))
        .orderBy('created_at')
        .execute()
      for (const row of rows) {
        const operation = JSON.parse(row.document) as Operation
        const plan = JSON.parse(row.plan) as Plan
        if (row.ended_at !== null) {
          ended.set(operation.shard, operation)
          const isLate = operation.state === 'unconfirmed' && clock.wallMs() - Number(row.ended_at) < LATE_MS
          if (!isLate || !WATCHED_ON.has(operation.kind)) continue
        }
        if (kinds.has(operation.kind)) {
          log.info({ operation: operation.id, state: operation.state }, 'going on with an operation')
          begin(operation, plan, operation.state !== 'armed')
        }
      }
    },
    async stop() {
      for (const { abort } of active.values()) abort.abort()
      await Promise.all([...active.values()].map(({ done }) => done))
    },
  }
}

function completePlan(request: PlanRequest, draft: PlanDraft, look: Look, environment: Environment): Plan {
  const { shard, now } = look
  const { node, title, action, before, after, effects, checks, writePause, commands, alternatives } = draft
  const warns = checks.some(({ level }) => level === 'warn')
  const isGrave = draft.removesData === true || (after.spare < 1 && after.spare < before.spare)
  const members = shard.nodes.map(({ id, voter }) => `${id}=${voter}`).join(',')
  const facts = `${members};${draft.basis ?? ''}`
  const observed = shard.nodes.flatMap(({ answeredAt }) => (answeredAt === null ? [] : [answeredAt])).sort()
  return {
    id: `plan_${randomUUID()}`,
    kind: request.kind,
    request,
    shard: shard.id,
    node,
    takenAt: time(now),
    validUntil: time(now + OPERATIONS.planMs),
    observedAt: observed.at(-1) ?? null,
    basis: {
      leader: shard.leader,
      term: shard.term,
      peersHash: createHash('sha256').update(facts).digest('hex').slice(0, 16),
    },
    title,
    action,
    before,
    after,
    effects: [...effects],
    checks,
    blocked: checks.some(({ level }) => level === 'block'),
    // Where mistakes cost nothing, one button is enough.
    confirm: environment.kind === 'development' ? 1 : isGrave ? 3 : warns ? 2 : 1,
    confirmText: draft.confirmText ?? shard.id,
    writePause,
    commands,
    environment,
    alternatives,
  }
}

function newOperation(plan: Plan, draft: PlanDraft, reason: string, { asker }: Caller, now: number): Operation {
  const isArmed = draft.isArmed === true
  return {
    id: `op_${randomUUID()}`,
    kind: plan.kind,
    shard: plan.shard,
    node: plan.node,
    title: plan.title,
    by: asker.name,
    reason,
    state: isArmed ? 'armed' : 'requested',
    says: isArmed ? 'Waits until it can begin' : 'Requested',
    notice: '',
    createdAt: time(now),
    requestedAt: isArmed ? null : time(now),
    endedAt: null,
    steps: [],
    uncertaintyMs: 50,
    pauseMs: null,
    expectedPauseMs: plan.writePause?.expected ?? null,
    answer: '',
    cancellable: isArmed,
    undo: null,
    progress: null,
  }
}

function rowOf(operation: Operation) {
  return {
    id: operation.id,
    kind: operation.kind,
    shard: operation.shard,
    state: operation.state,
    ended_at: operation.endedAt === null ? null : Date.parse(operation.endedAt),
    document: JSON.stringify(operation),
  }
}

/** @throws ProblemError when it is not what was shown any more */
function checkShown(shown: Plan, now: Plan, nowMs: number): void {
  const isMoved = JSON.stringify(shown.basis) !== JSON.stringify(now.basis) || shown.node !== now.node
  const isGraver = now.confirm > shown.confirm || (now.blocked && !shown.blocked)
  if (isMoved || isGraver || nowMs > Date.parse(shown.validUntil)) {
    throw new ProblemError(409, 'plan-out-of-date', 'the cluster is not as it was when this was planned', {
      hint: 'Look at the new plan and start that one.',
      more: { plan: now },
    })
  }
  if (now.blocked) {
    const why = now.checks.find(({ level }) => level === 'block')
    throw new ProblemError(409, 'plan-blocked', `this cannot be done now: ${why?.text}`, {
      hint: why?.fix?.label ?? 'Mend what the check names, then plan again.',
      more: { plan: now },
    })
  }
}

function checkConfirmed(plan: Plan, asked: { readonly reason: string; readonly confirm: string }): void {
  if (plan.confirm >= 2 && asked.reason.length < ACCESS_LIMITS.reasonMin) {
    throw new ProblemError(
      400,
      'reason-required',
      `a reason of at least ${ACCESS_LIMITS.reasonMin} characters is needed`,
      {
        hint: 'Say why, for the audit log: the plan has a warning.',
        field: 'reason',
      },
    )
  }
  if (plan.confirm === 3 && asked.confirm !== plan.confirmText) {
    throw new ProblemError(400, 'confirm-required', `"${plan.confirmText}" must be typed to confirm`, {
      hint: 'Type or paste the id that the plan shows into confirm.',
      field: 'confirm',
    })
  }
}

function shardBusy(operation: Operation): ProblemError {
  return new ProblemError(409, 'shard-busy', `${operation.title} is running`, {
    hint: 'One operation runs on a shard at a time: wait until it is over.',
    more: { operation },
  })
}

export function notFound(id: string): ProblemError {
  return new ProblemError(404, 'operation-not-found', `there is no operation ${id}`, {
    hint: 'GET /api/v1/operations lists them.',
  })
}

function readCursor(cursor: string): { readonly at: number; readonly id: string } | undefined {
  const [at = '', id = ''] = cursor.split('.', 2)
  if (/^\d{1,15}$/.test(at) && id !== '') return { at: Number(at), id }
  throw new ProblemError(400, 'bad-cursor', 'cursor is not one that a page before gave', {
    field: 'cursor',
    hint: 'Begin without it.',
  })
}

function isRunning({ state }: Operation): boolean {
  return !END_STATES.includes(state)
}

function targetOf({ shard, node }: Operation): string {
  return node === null ? shard : `${shard}/${node}`
}

function time(ms: number): string {
  return new Date(ms).toISOString()
}
