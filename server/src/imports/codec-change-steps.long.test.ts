import { createCodecList } from '@vacancy/shared'
import type { CodecEntries, SnapshotView } from '@vacancy/shared/contract'
import { TEST_CODECS } from '@vacancy/testkit/node'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Caller, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { startNode } from '../testing/nodes.ts'
import { goneNode, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { planOf, type Reported, stepsOf } from './codec-plan.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let plane: TestControlPlane
let admin: Caller
let node: Awaited<ReturnType<typeof startNode>>

beforeAll(async () => {
  node = await startNode()
  plane = await startTestControlPlane({ config: { nodes: [node.apiUrl] } })
  admin = await plane.signIn('admin')
  await eventually(
    async () => {
      const { body } = await admin.call('GET', '/api/v1/registry/codecs')
      expect(body.nodes[0]?.orderedHash).toMatch(/^[0-9a-f]{64}$/)
    },
    { timeout: 45_000 },
  )
})
afterAll(async () => {
  await plane.stop()
  await node.close()
})

const BEFORE = createCodecList(['breakfast', 'free_wifi', 'late'])
const entries = (...given: readonly (readonly [name: string, was: string | null])[]): CodecEntries =>
  given.map(([name, was]) => ({ name, was }))
const same = (names: readonly string[]): CodecEntries => names.map((name) => ({ name, was: name }))

/** A shard of three nodes with these list hashes; undefined: the node is down. */
function shardWith(hashes: readonly (string | undefined)[], packages: number | null = 1_000) {
  const nodes = hashes.map((hash, at) => {
    const id = `n${at + 1}`
    if (hash === undefined) return goneNode({ id }, { code: 'refused', message: 'refused' })
    const status = { value: statusOf({ ordered_hash: hash, packages: packages ?? 0 }), at: NOW }
    return observedNode({ id }, { status, codecs: undefined })
  })
  const { view } = shardOf(nodes)
  return packages === null ? { ...view, packages } : view
}

const snapshot = (id: string, codecHash: string, stored: boolean) =>
  ({ id, codecHash, stored, name: `named-${id}`, shard: 's1', bytes: 7, heldBy: [] }) as unknown as SnapshotView
const query = (id: string, owner: string, shared: number, features: unknown) => ({
  ...{ id, name: id, owner, owner_name: owner, shared },
  fields: JSON.stringify({ rateFeatures: features }),
})

function planned(next: CodecEntries, now: Partial<Reported> = {}) {
  const after = createCodecList(next.map(({ name }) => name))
  const before = { names: [...BEFORE.names], hash: BEFORE.orderedHash, source: 'the registry' }
  const snapshots = [
    snapshot('a', BEFORE.orderedHash, true),
    snapshot('b', after.orderedHash, true),
    snapshot('c', BEFORE.orderedHash, false),
  ]
  const queries = [
    query('q-shared', 'ana', 1, ['late', 'breakfast']),
    query('q-mine', 'me', 0, 'late'),
    query('q-hidden', 'bob', 0, ['late']),
    query('q-other', 'ana', 1, ['breakfast']),
  ]
  const reported: Reported = { registry: null, shards: [], snapshots, ...now }
  return planOf({ before, after, entries: next, snapshots, queries, principal: { id: 'me' } }, reported)
}

test('a plan lists the changes, the invalid snapshots and the uses of removed entries', () => {
  const plan = planned(entries(['free_wifi', 'free_wifi'], ['early_breakfast', 'breakfast'], ['sauna', null]))

  expect(plan.changes.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'moved free_wifi',
    'renamed early_breakfast',
    'moved early_breakfast',
    'added sauna',
    'removed late',
  ])
  expect(plan.snapshots.map(({ id, stored }) => [id, stored])).toEqual([
    ['a', true],
    ['c', false],
  ])
  // Private queries of other people are only counted.
  expect(plan.queries.map(({ id, uses }) => [id, uses])).toEqual([
    ['q-shared', ['breakfast', 'late']],
    ['q-mine', ['late']],
    ['q-other', ['breakfast']],
  ])
  expect(plan.hiddenQueries).toBe(1)
  expect(plan.file).toBe('rate_features:\n  - "free_wifi"\n  - "early_breakfast"\n  - "sauna"\n')
  expect(plan.steps.map(({ id }) => id)).toEqual(['keep', 'stop', 'start', 'data', 'queries'])
})

test('a different order is a change, and breaks no saved query', () => {
  const plan = planned(entries(['late', 'late'], ['free_wifi', 'free_wifi'], ['breakfast', 'breakfast']))

  expect(plan).toMatchObject({ same: false, queries: [], hiddenQueries: 0 })
  expect(plan.changes.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['moved late', 'moved breakfast'])
  expect(plan.snapshots.map(({ id }) => id)).toEqual(['a', 'c'])
  expect(planned(same(BEFORE.names)).same).toBe(true)
})

const AFTER = createCodecList(['late', 'free_wifi', 'breakfast'])
const OLD = BEFORE.orderedHash
const NEW = AFTER.orderedHash
test.each<[string, string | undefined, readonly (string | undefined)[], number | null, Record<string, string>]>([
  ['nothing is done', OLD, [OLD, OLD, OLD], 9, { stop: 'open', registry: 'open', start: 'open', data: 'open' }],
  [
    'all nodes are stopped',
    OLD,
    [undefined, undefined, undefined],
    9,
    { stop: 'done', registry: 'open', start: 'open' },
  ],
  ['the registry is down', undefined, [undefined, undefined, undefined], 9, { registry: 'unknown' }],
  ['the registry is new', NEW, [undefined, undefined, undefined], 9, { registry: 'done', start: 'open', data: 'open' }],
  ['one node is still down', NEW, [NEW, NEW, undefined], 0, { stop: 'done', start: 'open', data: 'open' }],
  ['one node runs with the old list', NEW, [NEW, NEW, OLD], 0, { stop: 'open', start: 'open' }],
  ['all are back, and empty', NEW, [NEW, NEW, NEW], 0, { stop: 'done', start: 'done', data: 'open' }],
  ['all are back with one package', NEW, [NEW, NEW, NEW], 1, { start: 'done', data: 'done' }],
  ['all are back, and their packages are unknown', NEW, [NEW, NEW, NEW], null, { start: 'done', data: 'open' }],
  ['all are back with data', NEW, [NEW, NEW, NEW], 9, { stop: 'done', registry: 'done', start: 'done', data: 'done' }],
])('the states of the steps are detected: %s', (_, hash, hashes, packages, expected) => {
  const plan = planned(AFTER.names.map((name) => ({ name, was: name })))
  const registry = { address: 'http://registry:8090', hash }

  const steps = stepsOf(plan, { registry, shards: [shardWith(hashes, packages)], snapshots: [] })

  expect(Object.fromEntries(steps.map(({ id, state }) => [id, state]))).toMatchObject({ keep: 'hand', ...expected })
  for (const { state, evidence } of steps) expect(evidence === '').toBe(state === 'hand')
})

test('without a shard and without a registry the steps are not done, but unknown', () => {
  const plan = planned(AFTER.names.map((name) => ({ name, was: name })))

  const steps = stepsOf(plan, { registry: null, shards: [], snapshots: [] })

  const seen = steps.map(({ id, state, evidence }) => `${id}: ${state}, ${evidence}`)
  expect(seen).toEqual(expect.arrayContaining(['start: unknown, no node is known', 'data: unknown, no shard is known']))
  expect(seen.filter((step) => step.includes(': done'))).toEqual([])
})

test('an admin plans a change, saves it with its hash and a reason, everyone can follow it, and it can be discarded', async () => {
  const viewer = await plane.signIn('viewer')
  const next = { entries: [...same(TEST_CODECS).reverse()] }
  expect((await viewer.call('POST', '/api/v1/registry/codec-plan', next)).status).toBe(403)

  const { status, body: plan } = await admin.call('POST', '/api/v1/registry/codec-plan', next)
  expect([status, plan.same, plan.before.names]).toEqual([200, false, TEST_CODECS])
  const keep = (body: object) => admin.call('POST', '/api/v1/registry/codec-change', { ...next, ...body })
  const reason = 'winter features come first'
  expect((await keep({ reason, confirm: plan.before.hash })).body).toMatchObject({ code: 'not-confirmed' })
  expect((await keep({ reason: 'short', confirm: plan.after.hash })).body).toMatchObject({ code: 'invalid-request' })
  expect((await keep({ reason, confirm: plan.before.hash, entries: same(TEST_CODECS) })).body.code).toBe('no-change')
  expect((await viewer.call('GET', '/api/v1/registry/codec-change')).body).toEqual({ change: null })

  const kept = await keep({ reason, confirm: plan.after.hash })

  expect(kept).toMatchObject({ status: 201, body: { reason, complete: false, plan: { after: plan.after } } })
  expect((await keep({ reason, confirm: plan.after.hash })).body).toMatchObject({ code: 'change-open' })
  const { body: followed } = await viewer.call('GET', '/api/v1/registry/codec-change')
  expect(followed.change).toMatchObject({ id: kept.body.id, by: admin.me?.person.name })
  const { body: log } = await admin.call('GET', '/api/v1/audit?action=codecs.plan')
  expect(log.entries[0]).toMatchObject({ target: plan.after.hash, result: 'kept', reason })
  const away = () => admin.call('DELETE', `/api/v1/registry/codec-change/${kept.body.id}`)
  expect([(await away()).status, (await away()).status]).toEqual([204, 404])
  expect((await viewer.call('GET', '/api/v1/registry/codec-change')).body).toEqual({ change: null })
})

test.each<[string, CodecEntries | object, number, string]>([
  ['the same name twice', entries(['a', null], ['A', null]), 400, 'invalid-codecs'],
  ['a comma in a name', entries(['a,b', null]), 400, 'invalid-codecs'],
  ['no entry', [], 400, 'invalid-request'],
  ['25 entries', Array.from({ length: 25 }, (_, i) => ({ name: `f${i}`, was: null })), 400, 'invalid-request'],
  ['an unknown origin', entries(['a', 'nothing']), 409, 'list-moved-on'],
  ['one origin twice', entries(['a', TEST_CODECS[0] ?? ''], ['b', TEST_CODECS[0] ?? '']), 409, 'list-moved-on'],
])('%s is refused', async (_, given, status, code) => {
  const answer = await admin.call('POST', '/api/v1/registry/codec-plan', { entries: given })

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test('the feature counts of a shard are unknown if its data was not built here', async () => {
  const { body } = await admin.call('GET', '/api/v1/registry/codec-usage')

  expect(body.shards).toEqual([{ shard: expect.any(String), of: null, packages: null }])
})
