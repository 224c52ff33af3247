/** Planning and starting an operation. It starts only if its plan is still valid. */
import { createHash, randomUUID } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import { type Caller, ProblemError } from '@vacancy/shared/api/route'
import { ACCESS_LIMITS, type Environment, type Operation, type Plan, type PlanRequest } from '@vacancy/shared/contract'
import { beginRun, rowOf } from './operation-run.ts'
import { OPERATIONS, type Operations, runningOperations, targetOf, time } from './operation-state.ts'
import type { OperationType, PlanContext, PlanDraft } from './operation-types.ts'
import { getOperation } from './operations.ts'

type StartRequest = {
  readonly plan: string
  readonly reason: string
  readonly confirm: string
  readonly key: string | undefined
}

async function makePlan(
  operations: Operations,
  request: PlanRequest,
  isAdmin: boolean,
  caller: Caller,
): Promise<{ readonly plan: Plan; readonly draft: PlanDraft }> {
  const kind = typeOf(operations, request)
  const context = { ...operations.planContext(request.shard, isAdmin), caller }
  const draft = await kind.plan(request, context)
  const plan = completePlan(request, draft, context, operations.environment())
  for (const [id, { takenAt }] of operations.plans) {
    if (operations.plans.size < OPERATIONS.plansMax && context.now - Date.parse(takenAt) < OPERATIONS.planKeptMs) break
    operations.plans.delete(id)
  }
  operations.plans.set(plan.id, plan)
  return { plan, draft }
}

function typeOf(operations: Operations, { kind }: PlanRequest): OperationType {
  const known = operations.types.get(kind)
  if (known) return known
  throw problem('kind-not-available', { detail: `This control plane has no operation type ${kind}.`, field: 'kind' })
}

export async function startOperation(
  operations: Operations,
  request: StartRequest,
  caller: Caller,
): Promise<Operation> {
  if (request.key !== undefined) {
    const query = operations.database.selectFrom('operations').select('id').where('idempotency_key', '=', request.key)
    const earlier = await query.executeTakeFirst()
    if (earlier) return (await getOperation(operations, earlier.id)) as Operation
  }
  const shown = operations.plans.get(request.plan)
  try {
    return await startShown(operations, shown, request, caller)
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    error.isAudited = true
    const target = shown ? targetOf({ shard: shown.request.shard, node: shown.node }) : request.plan
    await operations.audit({
      ...caller,
      ...{ action: 'operation.start', target, result: 'refused', reason: request.reason },
      detail: `${error.code}: ${error.message}`,
    })
    throw error
  }
}

async function startShown(
  operations: Operations,
  shown: Plan | undefined,
  request: StartRequest,
  caller: Caller,
): Promise<Operation> {
  if (!shown) {
    throw problem('plan-not-found', { field: 'plan' })
  }
  // What was polled may be a second old, and the shown plan older.
  await operations.readAgain(shown.shard)
  const { plan, draft } = await makePlan(operations, shown.request, true, caller)
  const busy = runningOperations(operations).find(({ shard }) => shard === plan.shard)
  if (busy) throw shardBusy(busy)
  checkShown(shown, plan, operations.clock.wallMs())
  checkConfirmed(plan, request)

  const now = operations.clock.wallMs()
  const operation = newOperation(plan, draft, request.reason, caller, now)
  try {
    await operations.database.transaction().execute(async (transaction) => {
      await transaction
        .insertInto('operations')
        .values({
          ...rowOf(operation),
          idempotency_key: request.key ?? null,
          plan: JSON.stringify(plan),
          created_at: now,
        })
        .execute()
      const detail = plan.checks.flatMap(({ level, text }) => (level === 'warn' ? [text] : [])).join('; ')
      const note = {
        action: 'operation.start',
        target: targetOf(operation),
        result: 'started',
        reason: request.reason,
        detail,
      }
      await operations.audit({ ...caller, ...note, operation: operation.id }, transaction)
    })
  } catch (cause) {
    // Of two concurrent starts the database accepts one per shard.
    if (cause instanceof ProblemError) throw cause
    const other = await storedRunning(operations, plan.shard)
    if (other) throw shardBusy(other)
    throw cause
  }
  operations.plans.delete(request.plan)
  beginRun(operations, operation, plan, false)
  return operation
}

export async function planOperation(operations: Operations, request: PlanRequest, caller: Caller): Promise<Plan> {
  return (await makePlan(operations, request, caller.principal.role === 'admin', caller)).plan
}

/** From the database: an operation that was started concurrently may not be in memory yet. */
async function storedRunning(operations: Operations, shard: string): Promise<Operation | undefined> {
  const row = await operations.database
    .selectFrom('operations')
    .select('document')
    .where('shard', '=', shard)
    .where('ended_at', 'is', null)
    .executeTakeFirst()
  return row && (JSON.parse(row.document) as Operation)
}

function completePlan(request: PlanRequest, draft: PlanDraft, context: PlanContext, environment: Environment): Plan {
  const { shard, now } = context
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
      ...(draft.found !== undefined && { found: draft.found }),
    },
    title,
    action,
    before,
    after,
    effects: [...effects],
    checks,
    blocked: checks.some(({ level }) => level === 'block'),
    // In development, the button is enough, unless much of the data goes.
    confirm: draft.removesMuch ? 3 : environment.kind === 'development' ? 1 : isGrave ? 3 : warns ? 2 : 1,
    confirmText: draft.confirmText ?? shard.id,
    ...(draft.changes && { changes: draft.changes }),
    writePause,
    commands,
    environment,
    alternatives,
  }
}

function newOperation(plan: Plan, draft: PlanDraft, reason: string, { principal }: Caller, now: number): Operation {
  const isArmed = draft.isArmed === true
  return {
    id: `op_${randomUUID()}`,
    kind: plan.kind,
    shard: plan.shard,
    node: plan.node,
    title: plan.title,
    by: principal.name,
    reason,
    state: isArmed ? 'armed' : 'requested',
    message: isArmed ? 'Waiting to start' : 'Requested',
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

/** @throws ProblemError when the plan has changed since it was shown */
function checkShown(shown: Plan, now: Plan, nowMs: number): void {
  const isMoved = JSON.stringify(shown.basis) !== JSON.stringify(now.basis) || shown.node !== now.node
  const isGraver = now.confirm > shown.confirm || (now.blocked && !shown.blocked)
  if (isMoved || isGraver || nowMs > Date.parse(shown.validUntil)) {
    throw problem('plan-out-of-date', { more: { plan: now } })
  }
  if (now.blocked) {
    const why = now.checks.find(({ level }) => level === 'block')
    throw problem('plan-blocked', {
      detail: `The plan is blocked: ${why?.text}`,
      hint: why?.fix?.label ?? 'Resolve the failed check, then plan again.',
      more: { plan: now },
    })
  }
}

function checkConfirmed(plan: Plan, request: { readonly reason: string; readonly confirm: string }): void {
  if (plan.confirm >= 2 && request.reason.length < ACCESS_LIMITS.reasonMin) {
    throw problem('reason-required', {
      detail: `A reason of at least ${ACCESS_LIMITS.reasonMin} characters is required.`,
      field: 'reason',
    })
  }
  if (plan.confirm === 3 && request.confirm !== plan.confirmText) {
    throw problem('not-confirmed', {
      detail: `Type "${plan.confirmText}" to confirm.`,
      hint: 'Send the displayed id of the plan in `confirm`.',
      field: 'confirm',
    })
  }
}

function shardBusy(operation: Operation): ProblemError {
  return problem('shard-busy', { detail: `${operation.title} is running.`, more: { operation } })
}
