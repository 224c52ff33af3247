/** Planning, starting and running operations with a type of the test, against a database in memory. */

import { turnableClock } from '@vacancy/shared'
import type { Operation, Plan, PlanRequest, ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AuditNote } from '../access/audit.ts'
import { openDatabase } from '../database/database.ts'
import { problem } from '../http/errors.ts'
import type { Live } from '../live/state.ts'
import type { Tables } from '../parts.ts'
import { planOperation, startOperation } from './operation-start.ts'
import { OPERATIONS, runningOperations, targetOf } from './operation-state.ts'
import type { OperationType, PlanContext, PlanDraft, Run } from './operation-types.ts'
import {
  cancelOperation,
  createOperations,
  getOperation,
  lastEndedOperations,
  listOperations,
  operationsAt,
  resumeOperations,
  stopOperations,
} from './operations.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const at = (ms: number) => new Date(NOW + ms).toISOString()
const ADMIN = { kind: 'person', id: 'p1', name: 'ana', role: 'admin' } as const
const CALLER = { principal: ADMIN, address: '10.0.0.1', requestId: 'r1' }
const REQUEST: PlanRequest = { kind: 'transfer', shard: 's1', node: 'n2' }

let database: Kysely<Tables>
beforeAll(async () => {
  database = await openDatabase<Tables>(':memory:')
})
afterAll(async () => await database.destroy())
beforeEach(async () => void (await database.deleteFrom('operations').execute()))

const check = (level: 'ok' | 'warn' | 'block', text: string = level): Plan['checks'][number] => ({
  id: text,
  level,
  text,
})
const picture = (spare: number) => ({ spare }) as Plan['before']

const DRAFT: PlanDraft = {
  ...{
    node: 'n2',
    title: 'Transfer leadership of s1 to n2',
    action: 'Transfer',
    before: picture(1),
    after: picture(1),
  },
  ...{ effects: [], checks: [check('ok')], writePause: null, commands: { cli: '', curl: '' }, alternatives: [] },
}

type ShardNode = ShardView['nodes'][number]
const node = (id: string, voter: boolean, answeredAt: string | null) => ({ id, voter, answeredAt }) as ShardNode
const SHARD = {
  ...{ id: 's1', leader: 'n1', term: 4 },
  nodes: [node('n1', true, at(-20)), node('n2', true, at(-10)), node('n3', false, null)],
} as unknown as ShardView

function world(environmentKind: 'production' | 'development' = 'production') {
  const clock = turnableClock(NOW)
  const state = { draft: DRAFT, shard: SHARD, isAdmin: [] as boolean[], failAudit: undefined as Error | undefined }
  const notes: AuditNote[] = []
  const runs: Run[] = []
  const changes: Operation[] = []
  const errors: unknown[] = []
  let work: (run: Run) => Promise<void> = () => new Promise(() => undefined)
  const type: OperationType = {
    plan: () => state.draft,
    run: (run) => {
      runs.push(run)
      return work(run)
    },
  }
  const operations = createOperations({
    ...{ database, clock, types: new Map([['transfer', type]]) },
    live: { offers: [], topics: new Map() } as unknown as Live,
    audit: async (note) => {
      notes.push(note)
      if (state.failAudit) throw state.failAudit
    },
    log: { error: (fields: unknown) => errors.push(fields), info: () => undefined } as unknown as Log,
    environment: () => ({ label: 'TEST', kind: environmentKind }),
    planContext: (shard, isAdmin) => {
      state.isAdmin.push(isAdmin)
      if (shard !== 's1' && shard !== 's2') throw problem('shard-not-found')
      return { now: clock.wallMs(), shard: { ...state.shard, id: shard } } as PlanContext
    },
    onChange: (operation) => void changes.push(operation),
  })
  return {
    ...{ operations, clock, state, notes, runs, changes, errors },
    run: (next: typeof work) => {
      work = next
    },
    plan: (request = REQUEST) => planOperation(operations, request, ADMIN),
    start: (plan: string, change: { reason?: string; confirm?: string; key?: string } = {}) =>
      startOperation(operations, { plan, reason: '', confirm: '', key: undefined, ...change }, CALLER),
    /** Action, target and result of the audit entries. */
    entries: () => notes.splice(0).map(({ action, target, result }) => `${action} ${target} ${result}`),
  }
}

// Plans

test('a plan is valid for a minute and names the state it is based on', async () => {
  const { plan, operations } = world()
  const made = await plan()
  expect(made).toMatchObject({
    ...{ kind: 'transfer', request: REQUEST, shard: 's1', node: 'n2', takenAt: at(0), validUntil: at(60_000) },
    ...{ observedAt: at(-10), blocked: false, confirm: 1, confirmText: 's1' },
    ...{ basis: { leader: 'n1', term: 4 }, environment: { label: 'TEST', kind: 'production' } },
  })
  expect(made.id).toMatch(/^plan_[\w-]{36}$/)
  expect(made.basis.peersHash).toMatch(/^[0-9a-f]{16}$/)
  expect([...operations.plans.values()]).toEqual([made])
})

test('a shard whose nodes never responded has no time of observation', async () => {
  const { plan, state } = world()
  state.shard = { ...SHARD, nodes: [node('n1', true, null)] }
  expect((await plan()).observedAt).toBeNull()
})

test.each<[string, Partial<PlanDraft>, 1 | 2 | 3, boolean]>([
  ['one without warnings', {}, 1, false],
  ['one with a warning', { checks: [check('ok'), check('warn')] }, 2, false],
  ['one that removes data', { removesData: true }, 3, false],
  ['one that uses up the last spare voter', { after: picture(0) }, 3, false],
  ['one that leaves none, where there was none', { before: picture(0), after: picture(0) }, 1, false],
  ['one that leaves one of two', { before: picture(2), after: picture(1) }, 1, false],
  ['one with a failed check', { checks: [check('block')] }, 1, true],
])('%s needs its level of confirmation', async (_, change, confirm, blocked) => {
  const { plan, state } = world()
  state.draft = { ...DRAFT, ...change }
  expect(await plan()).toMatchObject({ confirm, blocked })
  const development = world('development')
  development.state.draft = state.draft
  expect(await development.plan()).toMatchObject({ confirm: 1, blocked })
})

test('who is not an admin plans as such', async () => {
  const { operations, state } = world()
  await planOperation(operations, REQUEST, { ...ADMIN, role: 'viewer' })
  await planOperation(operations, REQUEST, ADMIN)
  expect(state.isAdmin).toEqual([false, true])
})

test('an unknown type cannot be planned', async () => {
  const { plan } = world()
  await expect(plan({ ...REQUEST, kind: 'promote' })).rejects.toMatchObject({
    ...{ code: 'kind-not-available', message: 'This control plane has no operation type promote.', field: 'kind' },
  })
})

test('expired plans are forgotten after ten minutes, and the oldest ones when there are 2,000', async () => {
  const { plan, clock, operations } = world()
  const first = await plan()
  clock.advance(OPERATIONS.planKeptMs - 1)
  const second = await plan()
  expect([...operations.plans.keys()]).toEqual([first.id, second.id])
  clock.advance(1)
  const third = await plan()
  expect([...operations.plans.keys()]).toEqual([second.id, third.id])
  for (let id = 0; id < OPERATIONS.plansMax - 2; id++) operations.plans.set(`p${id}`, third)
  const last = await plan()
  expect(operations.plans.size).toBe(OPERATIONS.plansMax)
  expect([operations.plans.has(second.id), operations.plans.has(third.id)]).toEqual([false, true])
  expect(operations.plans.has(last.id)).toBe(true)
})

// Starts

test('a start stores the operation with its entry, and runs it', async () => {
  const { plan, start, state, notes, runs, operations, changes } = world()
  state.draft = { ...DRAFT, checks: [check('warn', 'slow'), check('ok'), check('warn', 'late')] }
  state.draft = { ...state.draft, writePause: { expected: 40, worst: 90, source: '' } }
  const made = await plan()
  const operation = await start(made.id, { reason: 'because of it' })

  expect(operation).toMatchObject({
    ...{ kind: 'transfer', shard: 's1', node: 'n2', title: DRAFT.title, by: 'ana', reason: 'because of it' },
    ...{ state: 'requested', message: 'Requested', createdAt: at(0), requestedAt: at(0), endedAt: null, steps: [] },
    ...{ cancellable: false, expectedPauseMs: 40, uncertaintyMs: 50 },
  })
  expect(notes).toEqual([
    {
      ...CALLER,
      ...{ action: 'operation.start', target: 's1/n2', result: 'started', reason: 'because of it' },
      ...{ detail: 'slow; late', operation: operation.id },
    },
  ])
  expect([runs.length, runs[0]?.isResumed, runs[0]?.plan.basis]).toEqual([1, false, made.basis])
  expect([operations.plans.has(made.id), changes.length]).toEqual([false, 1])
  expect(runningOperations(operations)).toEqual([operation])
  const row = await database.selectFrom('operations').selectAll().executeTakeFirstOrThrow()
  expect(row).toMatchObject({ id: operation.id, state: 'requested', ended_at: null, created_at: NOW })
  expect(JSON.parse(row.document)).toEqual(operation)
})

test('an armed operation waits, and can be cancelled', async () => {
  const { plan, start, state, operations, entries, runs } = world()
  state.draft = { ...DRAFT, isArmed: true }
  const operation = await start((await plan()).id)
  expect(operation).toMatchObject({
    ...{ state: 'armed', message: 'Waiting to start', requestedAt: null, cancellable: true, expectedPauseMs: null },
  })
  entries()
  const cancelled = await cancelOperation(operations, operation.id, CALLER)
  expect(cancelled).toMatchObject({
    state: 'cancelled',
    message: 'Cancelled by ana',
    endedAt: at(0),
    cancellable: false,
  })
  expect(runs[0]?.signal.aborted).toBe(true)
  expect(entries()).toEqual(['operation.end s1/n2 cancelled', 'operation.cancel s1/n2 done'])
})

test('an operation that was requested cannot be cancelled, and an unknown one neither', async () => {
  const { plan, start, operations } = world()
  const { id } = await start((await plan()).id)
  await expect(cancelOperation(operations, id, CALLER)).rejects.toMatchObject({
    ...{ code: 'not-cancellable', message: `${DRAFT.title} can no longer be cancelled: it is requested.` },
  })
  await expect(cancelOperation(operations, 'op_x', CALLER)).rejects.toMatchObject({
    ...{ code: 'operation-not-found', message: 'There is no operation op_x.' },
  })
})

test('a repeated start with the same key is the operation of the first', async () => {
  const { plan, start } = world()
  const made = await plan()
  const first = await start(made.id, { key: 'key-00000001' })
  expect(await start(made.id, { key: 'key-00000001' })).toEqual(first)
  await expect(start(made.id, { key: 'key-00000002' })).rejects.toMatchObject({ code: 'plan-not-found', field: 'plan' })
})

test('a refused start has an audit entry of the plan', async () => {
  const { start, plan, notes, clock } = world()
  await expect(start('plan_x', { reason: 'why' })).rejects.toMatchObject({ code: 'plan-not-found', isAudited: true })
  expect(notes[0]).toMatchObject({ action: 'operation.start', target: 'plan_x', result: 'refused', reason: 'why' })
  const { id } = await plan()
  clock.advance(60_001)
  await expect(start(id)).rejects.toMatchObject({ code: 'plan-out-of-date' })
  expect(notes[1]).toMatchObject({ target: 's1/n2', detail: expect.stringMatching(/^plan-out-of-date: /) })
})

test('a plan can be started until it expires, and a later start gets the new plan', async () => {
  const { plan, start, clock, operations } = world()
  const made = await plan()
  clock.advance(60_001)
  const error = await start(made.id).catch((reason: unknown) => reason)
  const more = (error as { more: { plan: Plan } }).more.plan
  expect([more.takenAt, operations.plans.has(more.id)]).toEqual([at(60_001), true])
  clock.advance(60_000)
  expect((await start(more.id)).state).toBe('requested')
})

type State = ReturnType<typeof world>['state']

test.each<[string, Partial<Pick<State, 'shard' | 'draft'>>]>([
  ['the leader', { shard: { ...SHARD, leader: 'n2' } }],
  ['the term', { shard: { ...SHARD, term: 5 } }],
  ['a voter', { shard: { ...SHARD, nodes: [node('n1', true, null), node('n2', false, null)] } }],
  ['further inputs', { draft: { ...DRAFT, basis: 'other' } }],
  ['the target', { draft: { ...DRAFT, node: 'n3' } }],
  ['the confirmation', { draft: { ...DRAFT, checks: [check('warn')] } }],
  ['a check that fails now', { draft: { ...DRAFT, checks: [check('block')] } }],
])('a start after a change of %s needs a new plan', async (_, change) => {
  const { plan, start, state, runs } = world()
  const { id } = await plan()
  Object.assign(state, change)
  await expect(start(id)).rejects.toMatchObject({ status: 409, code: 'plan-out-of-date' })
  expect(runs).toEqual([])
})

test('a plan that became easier to confirm can be started', async () => {
  const { plan, start, state } = world()
  state.draft = { ...DRAFT, checks: [check('warn')] }
  const { id } = await plan()
  state.draft = DRAFT
  expect((await start(id)).state).toBe('requested')
})

test('a blocked plan cannot be started, and its first failed check tells why', async () => {
  const { plan, start, state } = world()
  state.draft = { ...DRAFT, checks: [check('ok'), { ...check('block', 'no leader'), fix: { label: 'Wait.' } }] }
  await expect(start((await plan()).id)).rejects.toMatchObject({
    ...{
      code: 'plan-blocked',
      message: 'The plan is blocked: no leader',
      hint: 'Wait.',
      more: { plan: { shard: 's1' } },
    },
  })
  state.draft = { ...DRAFT, checks: [check('block', 'no leader')] }
  await expect(start((await plan()).id)).rejects.toMatchObject({ hint: 'Resolve the failed check, then plan again.' })
})

test('level 2 needs a reason of eight characters', async () => {
  const { plan, start, state } = world()
  state.draft = { ...DRAFT, checks: [check('warn')] }
  const { id } = await plan()
  await expect(start(id, { reason: '1234567' })).rejects.toMatchObject({
    ...{ code: 'reason-required', message: 'A reason of at least 8 characters is required.', field: 'reason' },
  })
  expect((await start(id, { reason: '12345678' })).state).toBe('requested')
})

test('level 3 needs the displayed text as well', async () => {
  const { plan, start, state } = world()
  state.draft = { ...DRAFT, removesData: true, confirmText: 'n2' }
  const { id } = await plan()
  const reason = '12345678'
  await expect(start(id, { confirm: 'n2' })).rejects.toMatchObject({ code: 'reason-required' })
  await expect(start(id, { reason, confirm: 's1' })).rejects.toMatchObject({
    ...{ code: 'not-confirmed', message: 'Type "n2" to confirm.', field: 'confirm' },
  })
  expect((await start(id, { reason, confirm: 'n2' })).state).toBe('requested')
})

test('one operation runs on a shard, whether it is in memory or only stored', async () => {
  const { plan, start, operations } = world()
  const plans = [await plan(), await plan(), await plan()] as [Plan, Plan, Plan]
  const first = await start(plans[0].id)
  const busy = { code: 'shard-busy', message: `${DRAFT.title} is running.`, more: { operation: { id: first.id } } }
  await expect(start(plans[1].id)).rejects.toMatchObject(busy)
  operations.active.clear()
  await expect(start(plans[2].id)).rejects.toMatchObject(busy)
  expect((await start((await plan({ ...REQUEST, shard: 's2' })).id)).shard).toBe('s2')
})

test('an operation whose entry cannot be written is not started', async () => {
  const { plan, start, state, runs } = world()
  state.failAudit = new Error('disk full')
  await expect(start((await plan()).id)).rejects.toThrow('disk full')
  expect([runs, await database.selectFrom('operations').selectAll().execute()]).toEqual([[], []])
})

// Runs

test('steps get their time and stay in order; the end is stored, audited and kept', async () => {
  const { plan, start, run, clock, operations, notes, changes } = world()
  run(async (each) => {
    await each.step('sent', { text: 'Sent' })
    clock.advance(30)
    await each.step('sent', { state: 'done', evidence: 'it replied' })
    await each.step('sent', { state: 'done', text: 'Sent!' })
    await each.step('seen', { state: 'failed' })
    await each.set({ answer: 'x'.repeat(OPERATIONS.answerCharsMax + 1), notice: 'Longer than usual' })
    await each.end('done', 'n2 leads s1')
  })
  const { id } = await start((await plan()).id)
  await operations.active.get(id)?.done

  const ended = (await getOperation(operations, id)) as Operation
  expect(ended).toMatchObject({
    ...{ state: 'done', message: 'n2 leads s1', notice: '', endedAt: at(30), cancellable: false },
    steps: [
      { id: 'sent', text: 'Sent!', state: 'done', at: at(30), milliseconds: 30, evidence: 'it replied' },
      { id: 'seen', text: 'seen', state: 'failed', at: at(30), milliseconds: 30, evidence: '' },
    ],
  })
  expect(ended.answer.length).toBe(2_000)
  expect(notes.at(-1)).toMatchObject({
    ...{ principal: 'system', action: 'operation.end', target: 's1/n2', result: 'done', detail: 'n2 leads s1' },
    operation: id,
  })
  expect([operations.active.size, changes.at(-1)?.state]).toEqual([0, 'done'])
  expect(lastEndedOperations(operations)).toEqual([ended])
  clock.advance(86_400_000)
  expect(lastEndedOperations(operations)).toEqual([])
})

test('at most 64 steps are kept', async () => {
  const { plan, start, run, operations } = world()
  run(async (each) => {
    for (let step = 0; step < 65; step++) void each.step(`step-${step}`, {})
    await each.end('done', '')
  })
  const { id } = await start((await plan()).id)
  await operations.active.get(id)?.done
  expect((await getOperation(operations, id))?.steps.length).toBe(64)
})

test('a run that fails ends unconfirmed; one that fails after its end keeps it', async () => {
  const { plan, start, run, operations, errors } = world()
  const error = new Error('a defect')
  run(() => Promise.reject(error))
  const first = await start((await plan()).id)
  await operations.active.get(first.id)?.done
  expect(await getOperation(operations, first.id)).toMatchObject({
    ...{ state: 'unconfirmed', message: 'Internal error of the control plane: a defect. See its log.' },
  })
  expect(errors).toEqual([{ err: error, operation: first.id }])
  run(async (each) => {
    await each.end('done', 'over')
    throw error
  })
  const second = await start((await plan()).id)
  await operations.active.get(second.id)?.done
  expect(await getOperation(operations, second.id)).toMatchObject({ state: 'done', message: 'over' })
})

test('after a restart running operations are resumed, and measured steps keep their times', async () => {
  const before = world()
  before.run((each) => each.step('sent', { state: 'done', evidence: 'first' }))
  const { id } = await before.start((await before.plan()).id)
  await before.operations.active.get(id)?.done

  const after = world()
  after.clock.advance(5_000)
  after.run(async (each) => {
    await each.step('sent', { state: 'done', evidence: 'second' })
    await each.step('seen', { state: 'done', evidence: 'second' })
  })
  await resumeOperations(after.operations)
  await stopOperations(after.operations)
  expect(after.runs.map(({ isResumed, signal }) => [isResumed, signal.aborted])).toEqual([[true, true]])
  expect((await getOperation(after.operations, id))?.steps).toMatchObject([
    { id: 'sent', at: at(0), evidence: 'first' },
    { id: 'seen', at: at(5_000), milliseconds: 5_000, evidence: 'second' },
  ])
})

test('operations are listed newest first in pages, and found at a moment', async () => {
  const { plan, start, clock, run, operations } = world()
  run((each) => each.end('done', ''))
  const ids: string[] = []
  for (const shard of ['s1', 's2', 's1']) {
    ids.unshift((await start((await plan({ ...REQUEST, shard })).id)).id)
    await Promise.all([...operations.active.values()].map(({ done }) => done))
    clock.advance(10)
  }
  const list = async (more: object) => {
    const { operations: found, next } = await listOperations(operations, { limit: 2, ...more })
    return [found.map(({ id }) => ids.indexOf(id)), next] as const
  }
  const [page, next] = await list({})
  expect([page, next]).toEqual([[0, 1], `${NOW + 10}.${ids[1]}`])
  expect(await list({ cursor: next })).toEqual([[2], null])
  expect(await list({ shard: 's1' })).toEqual([[0, 2], null])
  expect(await list({ state: 'running' })).toEqual([[], null])
  expect(await list({ state: 'ended', limit: 3 })).toEqual([[0, 1, 2], null])
  const then = await operationsAt(operations, NOW + 10, 10)
  expect([then.running, then.ended.map(({ id }) => ids.indexOf(id))]).toEqual([[], [1]])
})

test('a target is a shard, or a node in it', () => {
  expect([targetOf({ shard: 's1', node: null }), targetOf({ shard: 's1', node: 'n2' })]).toEqual(['s1', 's1/n2'])
})
