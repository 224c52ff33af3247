/**
 * Handovers: the leaders of a zone or machine move one after another, each by an operation of its own. Stored before
 * anything is sent, stopped by the first transfer that is not done, and resumed after a restart.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { problem } from '@vacancy/shared/api/errors'
import { type Caller, type Handlers, type Principal, ProblemError, SYSTEM_CALLER } from '@vacancy/shared/api/route'
import {
  ACCESS_LIMITS,
  HANDOVER_LIMITS,
  type HANDOVER_ROUTES,
  type Handover,
  type HandoverItem,
  type HandoverPlan,
  type HandoverRequest,
  type HandoverView,
  type Operation,
} from '@vacancy/shared/contract'
import { placeText, planBack, planPrepare, textOf } from './handover-plan.ts'
import { isWithin, stopsOf } from './impact.ts'
import { planOperation, startOperation } from './operation-start.ts'
import { isRunning, type Operations, time } from './operation-state.ts'
import type { PlanContext } from './operation-types.ts'
import { getOperation } from './operations.ts'

/** How often the operation of a shard is looked at. */
const WATCH_MS = 100
/** How long a shard may be without an observed leader: after a restart of the process, or during an election. */
const OBSERVED_WITHIN_MS = 15_000

export type HandoverOptions = {
  readonly operations: Operations
  /** All shards, by id. */
  readonly shards: () => readonly string[]
}

export type Handovers = HandoverOptions & { active: ActiveHandover | undefined }

type ActiveHandover = {
  handover: Handover
  readonly principal: Principal
  /** Of the process: the run is resumed later. */
  readonly abort: AbortController
  isLeft: boolean
  done: Promise<void>
}

export function createHandovers(options: HandoverOptions): Handovers {
  return { ...options, active: undefined }
}

export function handoverHandlers(handovers: Handovers): Handlers<typeof HANDOVER_ROUTES> {
  const view = (handover: Handover): HandoverView => {
    const shards = handovers.shards().map((id) => handovers.operations.planContext(id, false).shard)
    return { ...handover, stops: handover.kind === 'prepare' ? stopsOf(handover.scope, shards) : [] }
  }
  return {
    'POST /api/v1/handovers/plan': ({ body, principal }) => planHandover(handovers, body, principal.role === 'admin'),
    'POST /api/v1/handovers': async ({ body, ...caller }) => view(await startHandover(handovers, body, caller)),
    'GET /api/v1/handovers': async () => ({ handovers: await listHandovers(handovers) }),
    'GET /api/v1/handovers/{id}': async ({ params }) => view(await getHandover(handovers, params.id)),
    'POST /api/v1/handovers/{id}/continue': async ({ params, ...caller }) =>
      view(await continueHandover(handovers, params.id, caller)),
    'POST /api/v1/handovers/{id}/leave': async ({ params, ...caller }) =>
      view(await leaveHandover(handovers, params.id, caller)),
  }
}

async function planHandover(handovers: Handovers, request: HandoverRequest, isAdmin: boolean): Promise<HandoverPlan> {
  const { operations, shards } = handovers
  const environment = operations.environment()
  if ('back' in request) {
    const earlier = await getHandover(handovers, request.back)
    const known = new Set(shards())
    const contextOf = (id: string) => (known.has(id) ? operations.planContext(id, isAdmin) : undefined)
    return planBack(earlier, contextOf, environment)
  }
  const scope =
    'zone' in request
      ? ({ kind: 'zone', name: request.zone } as const)
      : ({ kind: 'machine', name: request.machine } as const)
  const contexts = shards().map((id) => operations.planContext(id, isAdmin))
  if (!contexts.some(({ shard }) => shard.nodes.some((node) => isWithin(scope, node)))) {
    throw problem('handover-scope-not-found', { detail: `No node matches ${placeText(scope)}.` })
  }
  return planPrepare(scope, contexts, environment)
}

async function startHandover(
  handovers: Handovers,
  { request, basis, reason }: { readonly request: HandoverRequest; readonly basis: string; readonly reason: string },
  caller: Caller,
): Promise<Handover> {
  const { operations } = handovers
  const plan = await planHandover(handovers, request, true)
  await afterLast(handovers)
  try {
    checkStart(handovers, plan, basis, reason)
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    error.isAudited = true
    const note = { action: 'handover.start', target: textOf(plan.scope), result: 'refused', reason }
    await operations.audit({ ...caller, ...note, detail: `${error.code}: ${error.message}` })
    throw error
  }
  const now = operations.clock.wallMs()
  const handover: Handover = {
    id: `handover_${randomUUID()}`,
    ...{ kind: plan.kind, scope: plan.scope, back: plan.back, title: plan.title },
    by: caller.principal.name,
    reason,
    state: 'running',
    message: '',
    createdAt: time(now),
    endedAt: null,
    items: plan.items.map(({ shard, from, to, blocked }) => ({
      ...{ shard, from, to },
      state: blocked === '' ? 'waiting' : 'stays',
      operation: null,
      message: blocked,
      attempts: 0,
    })),
  }
  const active = activeOf(handover, caller.principal)
  // Before the first await, so that of two concurrent starts one is refused.
  handovers.active = active
  try {
    await operations.database.transaction().execute(async (transaction) => {
      const row = { ...rowOf(handover), principal: JSON.stringify(caller.principal), created_at: now }
      await transaction.insertInto('handovers').values(row).execute()
      const note = { action: 'handover.start', target: textOf(plan.scope), result: 'started', reason }
      const detail = `${plan.title}: ${plan.moves} of ${plan.items.length} leaders move`
      await operations.audit({ ...caller, ...note, detail }, transaction)
    })
  } catch (error) {
    handovers.active = undefined
    throw error
  }
  begin(handovers, active)
  return handover
}

/** One that is over may still write its audit entry. */
async function afterLast({ active }: Handovers): Promise<void> {
  if (active && active.handover.state !== 'running') await active.done
}

function checkStart(handovers: Handovers, plan: HandoverPlan, basis: string, reason: string): void {
  const { active } = handovers
  if (active) {
    throw problem('handover-busy', {
      detail: `${active.handover.title} is running.`,
      more: { handover: active.handover },
    })
  }
  if (plan.basis !== basis) throw problem('plan-out-of-date', { more: { plan } })
  if (plan.moves === 0) throw problem('plan-blocked', { detail: 'No leader can move.', more: { plan } })
  if (plan.items.length > HANDOVER_LIMITS.shardsMax) {
    throw problem('plan-blocked', { detail: `A handover moves at most ${HANDOVER_LIMITS.shardsMax} leaders.` })
  }
  if (plan.reasonRequired && reason.length < ACCESS_LIMITS.reasonMin) {
    throw problem('reason-required', {
      detail: `A reason of at least ${ACCESS_LIMITS.reasonMin} characters is required.`,
      field: 'reason',
    })
  }
}

async function getHandover(handovers: Handovers, id: string): Promise<Handover> {
  if (handovers.active?.handover.id === id) return handovers.active.handover
  const row = await handovers.operations.database
    .selectFrom('handovers')
    .select('document')
    .where('id', '=', id)
    .executeTakeFirst()
  if (row) return JSON.parse(row.document) as Handover
  throw problem('handover-not-found', { detail: `There is no handover ${id}.` })
}

async function listHandovers(handovers: Handovers): Promise<Handover[]> {
  const rows = await handovers.operations.database
    .selectFrom('handovers')
    .select('document')
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(HANDOVER_LIMITS.listed)
    .execute()
  const running = handovers.active?.handover
  return rows
    .map(({ document }) => JSON.parse(document) as Handover)
    .map((handover) => (running?.id === handover.id ? running : handover))
}

/** Starts the failed shard again, and those behind it. */
async function continueHandover(handovers: Handovers, id: string, caller: Caller): Promise<Handover> {
  await afterLast(handovers)
  const handover = await getHandover(handovers, id)
  if (handover.state !== 'stopped') {
    throw problem('handover-not-stopped', { detail: `${handover.title} is ${handover.state}.` })
  }
  if (handovers.active) throw problem('handover-busy', { detail: `${handovers.active.handover.title} is running.` })
  const items = handover.items.map(
    (item): HandoverItem => (item.state === 'failed' ? { ...item, state: 'waiting', operation: null } : item),
  )
  const active = activeOf({ ...handover, state: 'running', message: '', endedAt: null, items }, caller.principal)
  handovers.active = active
  await store(handovers, active)
  await handovers.operations.audit({ ...caller, ...noteOf(active.handover, 'handover.continue', 'started') })
  begin(handovers, active)
  return active.handover
}

/** The running transfer ends by itself; a request that was sent cannot be revoked. */
async function leaveHandover(handovers: Handovers, id: string, caller: Caller): Promise<Handover> {
  const handover = await getHandover(handovers, id)
  if (handover.state !== 'running' && handover.state !== 'stopped') {
    throw problem('handover-not-stopped', { detail: `${handover.title} is ${handover.state}.` })
  }
  const running = handovers.active?.handover.id === id ? handovers.active : undefined
  const active = running ?? activeOf(handover, caller.principal)
  active.isLeft = true
  await handovers.operations.audit({ ...caller, ...noteOf(handover, 'handover.leave', 'done') })
  if (running) await running.done
  else await end(handovers, active, 'left')
  return active.handover
}

/** Resumes the handover that was running when the process ended. */
export async function resumeHandovers(handovers: Handovers): Promise<void> {
  const row = await handovers.operations.database
    .selectFrom('handovers')
    .select(['document', 'principal'])
    .where('state', '=', 'running')
    .orderBy('created_at')
    .executeTakeFirst()
  if (!row) return
  const active = activeOf(JSON.parse(row.document) as Handover, JSON.parse(row.principal) as Principal)
  handovers.operations.log.info({ handover: active.handover.id }, 'resuming a handover')
  handovers.active = active
  begin(handovers, active)
}

export async function stopHandovers({ active }: Handovers): Promise<void> {
  active?.abort.abort()
  await active?.done
}

function activeOf(handover: Handover, principal: Principal): ActiveHandover {
  return { handover, principal, abort: new AbortController(), isLeft: false, done: Promise.resolve() }
}

function begin(handovers: Handovers, active: ActiveHandover): void {
  active.done = run(handovers, active)
    .catch(async (error: unknown) => {
      handovers.operations.log.error({ err: error, handover: active.handover.id }, 'a handover failed')
      const message = `Internal error of the control plane: ${(error as Error).message}. See its log.`
      await end(handovers, active, 'stopped', message)
    })
    .finally(() => {
      if (handovers.active === active) handovers.active = undefined
    })
}

async function run(handovers: Handovers, active: ActiveHandover): Promise<void> {
  for (const [at, { state }] of active.handover.items.entries()) {
    if (state !== 'waiting' && state !== 'running') continue
    if (active.isLeft || active.abort.signal.aborted) break
    const outcome = await move(handovers, active, at)
    if (outcome === 'aborted') return
    if (outcome === 'failed') {
      const { shard, message } = active.handover.items[at] as HandoverItem
      if (!active.isLeft) return await end(handovers, active, 'stopped', `${shard}: ${message}`)
    }
  }
  // The next start of the process resumes it.
  if (active.abort.signal.aborted) return
  await end(handovers, active, active.isLeft ? 'left' : 'done')
}

type Outcome = 'moved' | 'failed' | 'aborted'

async function move(handovers: Handovers, active: ActiveHandover, at: number): Promise<Outcome> {
  const { operations } = handovers
  const item = active.handover.items[at] as HandoverItem
  const settle = async (state: HandoverItem['state'], message: string): Promise<Outcome> => {
    await change(handovers, active, at, { state, message })
    return state === 'failed' ? 'failed' : 'moved'
  }
  try {
    if (item.operation === null && item.state === 'waiting') {
      if (!(await isObserved(handovers, active, item.shard))) {
        return active.abort.signal.aborted ? 'aborted' : await settle('failed', 'no leader is observed')
      }
      const elsewhere = leadsElsewhere(active.handover, item, operations.planContext(item.shard, true))
      if (elsewhere !== undefined) return await settle('skipped', elsewhere)
    }
    const operation = await transfer(handovers, active, at)
    const ended = await endOf(operations, operation, active.abort.signal)
    if (!ended) return 'aborted'
    return await settle(ended.state === 'done' ? 'done' : 'failed', ended.message)
  } catch (error) {
    if (error instanceof ProblemError) return await settle('failed', error.message)
    throw error
  }
}

async function isObserved(handovers: Handovers, { abort }: ActiveHandover, shard: string): Promise<boolean> {
  const { operations } = handovers
  const until = operations.clock.wallMs() + OBSERVED_WITHIN_MS
  const hasLeader = () =>
    handovers.shards().includes(shard) && operations.planContext(shard, true).shard.leader !== null
  while (!hasLeader()) {
    if (abort.signal.aborted || operations.clock.wallMs() > until) return false
    await sleep(WATCH_MS, undefined, { signal: abort.signal }).catch(() => undefined)
  }
  return true
}

/** Why there is nothing to move any more; undefined when there is. */
function leadsElsewhere(handover: Handover, item: HandoverItem, { shard }: PlanContext): string | undefined {
  if (shard.leader === null || shard.leader === item.from) return undefined
  if (shard.leader === item.to) return `${item.to} leads already`
  const leader = shard.nodes.find(({ id }) => id === shard.leader)
  const isDone = handover.kind === 'prepare' && leader !== undefined && !isWithin(handover.scope, leader)
  return isDone ? `${shard.leader} leads, outside ${placeText(handover.scope)}` : undefined
}

/** Its operation: the one that runs already after a restart, else a new one. */
async function transfer(handovers: Handovers, active: ActiveHandover, at: number): Promise<string> {
  const { operations } = handovers
  const item = active.handover.items[at] as HandoverItem
  if (item.operation !== null) return item.operation
  // A process that ended between the start and this row finds the operation by its key.
  const attempts = item.state === 'running' ? item.attempts : item.attempts + 1
  await change(handovers, active, at, { state: 'running', message: '', attempts })
  const { principal, handover } = active
  const caller = { ...SYSTEM_CALLER, principal, requestId: handover.id }
  const plan = await planOperation(
    operations,
    { kind: 'transfer', shard: item.shard, ...(item.to !== null && { node: item.to }) },
    caller,
  )
  const operation = await startOperation(
    operations,
    {
      plan: plan.id,
      reason: handover.reason,
      confirm: plan.confirmText,
      key: `${handover.id}.${at}.${attempts}`,
    },
    caller,
  )
  await change(handovers, active, at, { operation: operation.id })
  return operation.id
}

/** @returns undefined when the process ends first */
async function endOf(operations: Operations, id: string, signal: AbortSignal): Promise<Operation | undefined> {
  for (;;) {
    const operation = await getOperation(operations, id)
    if (operation && !isRunning(operation)) return operation
    if (!operation || signal.aborted) return undefined
    await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined)
  }
}

function change(handovers: Handovers, active: ActiveHandover, at: number, by: Partial<HandoverItem>): Promise<void> {
  const items = active.handover.items.map((item, index) => (index === at ? { ...item, ...by } : item))
  active.handover = { ...active.handover, items }
  return store(handovers, active)
}

async function end(
  handovers: Handovers,
  active: ActiveHandover,
  state: Exclude<Handover['state'], 'running'>,
  message = '',
): Promise<void> {
  const { operations } = handovers
  const endedAt = state === 'stopped' ? null : time(operations.clock.wallMs())
  const handover = { ...active.handover, state, message, endedAt }
  await operations.database.transaction().execute(async (transaction) => {
    await transaction.updateTable('handovers').set(rowOf(handover)).where('id', '=', handover.id).execute()
    await operations.audit({ ...SYSTEM_CALLER, ...noteOf(handover, 'handover.end', state) }, transaction)
  })
  // Its audit entry is written before its end is shown.
  active.handover = handover
}

async function store({ operations }: Handovers, { handover }: ActiveHandover): Promise<void> {
  await operations.database.updateTable('handovers').set(rowOf(handover)).where('id', '=', handover.id).execute()
}

function noteOf({ scope, reason, message, items }: Handover, action: string, result: string) {
  const moved = items.filter(({ state }) => state === 'done').length
  const detail = `${moved} of ${items.length} leaders moved${message === '' ? '' : `. ${message}`}`
  return { action, target: textOf(scope), result, reason, detail }
}

function rowOf(handover: Handover) {
  return { id: handover.id, state: handover.state, document: JSON.stringify(handover) }
}
