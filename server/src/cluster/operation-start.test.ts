/** Planning, starting and running operations with a type of the test, against a database in memory. */

import { turnableClock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { AuditNote } from '@vacancy/shared/api/route'
import type { Operation, Plan, PlanRequest, ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Live } from '../live/state.ts'
import type { Tables } from '../parts.ts'
import { planOperation, startOperation } from './operation-start.ts'
import type { OperationType, PlanContext, PlanDraft, Run } from './operation-types.ts'
import { cancelOperation, createOperations } from './operations.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const at = (ms: number) => new Date(NOW + ms).toISOString()
const ADMIN = { kind: 'person', id: 'p1', name: 'ana', role: 'admin' } as const
const CALLER = { principal: ADMIN, address: '10.0.0.1', userAgent: '', requestId: 'r1' }
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
    readAgain: async () => undefined,
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
    plan: (request = REQUEST) => planOperation(operations, request, CALLER),
    start: (plan: string, change: { reason?: string; confirm?: string; key?: string } = {}) =>
      startOperation(operations, { plan, reason: '', confirm: '', key: undefined, ...change }, CALLER),
    /** Action, target and result of the audit entries. */
    entries: () => notes.splice(0).map(({ action, target, result }) => `${action} ${target} ${result}`),
  }
}

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

test('an operation whose entry cannot be written is not started', async () => {
  const { plan, start, state, runs } = world()
  state.failAudit = new Error('disk full')
  await expect(start((await plan()).id)).rejects.toThrow('disk full')
  expect([runs, await database.selectFrom('operations').selectAll().execute()]).toEqual([[], []])
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
