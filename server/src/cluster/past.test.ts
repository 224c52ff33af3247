/** The cluster as it was: states, events, operations and changes at and between moments, with a database in memory. */

import { turnableClock } from '@vacancy/shared'
import type { ClusterEvent, Operation, ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import { createEvents } from '../history/events.ts'
import { createPictures, recordAll, recordGone, recordShard } from '../history/pictures.ts'
import type { Live } from '../live/state.ts'
import type { Tables } from '../parts.ts'
import { goneNode, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import type { ClusterModule } from './cluster-state.ts'
import { createOperations } from './operations.ts'
import { differences, pastHandlers } from './past.ts'

let database: Kysely<Tables>
let world: ReturnType<typeof openWorld>

beforeAll(async () => {
  database = await openDatabase<Tables>(':memory:')
})
afterAll(async () => await database.destroy())
beforeEach(async () => {
  for (const table of ['cluster_events', 'cluster_pictures', 'operations'] as const)
    await database.deleteFrom(table).execute()
  world = openWorld()
})

const { view: SHARD } = shardOf(['n1', 'n2', 'n3'].map((id) => observedNode({ id })))
const { view: FAILING } = shardOf([
  observedNode({ id: 'n1' }),
  observedNode({ id: 'n2' }),
  goneNode({ id: 'n3' }, { code: 'refused', message: 'connection refused' }),
])
const named = (id: string, view: ShardView = SHARD): ShardView => ({ ...view, id })
const text = (ms: number) => new Date(NOW + ms).toISOString()

function openWorld() {
  const clock = turnableClock(NOW)
  const log = { error: () => undefined } as unknown as Log
  const events = createEvents(database, log, clock.wallMs)
  const pictures = createPictures(database, log, clock.wallMs)
  const operations = createOperations({
    ...{ database, clock, log, types: new Map(), live: { offers: [], topics: new Map() } as unknown as Live },
    environment: () => ({ label: 'TEST', kind: 'production' }),
    planContext: () => {
      throw new Error('nothing is planned')
    },
    ...{ audit: async () => undefined, onChange: () => undefined },
  })
  const deps = { clock, environment: () => ({ label: 'TEST', kind: 'production' }) }
  const handlers = pastHandlers({ deps, events, pictures, operations } as unknown as ClusterModule)
  return { clock, pictures, handlers }
}

/** Calls a handler as a route does. */
// biome-ignore lint/suspicious/noExplicitAny: tests know the shape of each response.
async function call(name: string, query: object, params: object = {}): Promise<any> {
  const handler = (world.handlers as unknown as { [route: string]: (request: unknown) => Promise<unknown> })[
    `GET /api/v1/${name}`
  ]
  return await handler?.({ query, params })
}

async function event(id: string, at: number, change: Partial<Tables['cluster_events']> = {}) {
  const row = { id, at: NOW + at, shard: 's1', node: null, kind: 'state', level: 'warn', message: id, ...change }
  await database.insertInto('cluster_events').values(row).execute()
}

async function operation(id: string, createdAt: number, change: Partial<Operation> = {}) {
  const document = {
    ...{ id, kind: 'transfer', shard: 's1', node: 'n2', title: `title of ${id}`, by: 'ana', reason: '', state: 'done' },
    ...{ message: 'n2 leads s1', notice: 'slow', createdAt: text(createdAt), requestedAt: text(createdAt + 10) },
    ...{ endedAt: null, uncertaintyMs: 50, pauseMs: 40, expectedPauseMs: null, answer: 'ok', cancellable: true },
    ...{ undo: { kind: 'transfer', shard: 's1', node: 'n1' }, progress: { done: 1, total: 2, unit: 'x' }, steps: [] },
    ...change,
  } as Operation
  const ended = document.endedAt === null ? null : Date.parse(document.endedAt)
  const row = { id, kind: 'transfer', shard: document.shard, state: 'done', idempotency_key: null, plan: '{}' } as const
  await database
    .insertInto('operations')
    .values({ ...row, created_at: NOW + createdAt, ended_at: ended, document: JSON.stringify(document) })
    .execute()
  return document
}

/** Pictures: all shards at 0, a failing s1 at 1 s, no s2 from 2 s; now is 10 s. */
function record() {
  recordAll(world.pictures, [named('s1'), named('s2')])
  world.clock.advance(1_000)
  recordShard(world.pictures, FAILING)
  world.clock.advance(1_000)
  recordGone(world.pictures, 's2')
  world.clock.advance(8_000)
}

// States

test('a shard is shown as it was at a moment', async () => {
  record()
  expect(await call('past/shards/{shard}', { at: text(999) }, { shard: 's1' })).toEqual(SHARD)
  expect(await call('past/shards/{shard}', { at: text(1_000) }, { shard: 's1' })).toEqual(FAILING)
  expect((await call('past/shards/{shard}', { at: text(1_999) }, { shard: 's2' })).id).toBe('s2')
  await expect(call('past/shards/{shard}', { at: text(2_000) }, { shard: 's2' })).rejects.toMatchObject({
    ...{ code: 'shard-not-found', message: 'There was no shard s2 at 22 Nov 2026, 12:00:02 UTC.' },
  })
})

test('a node is shown as it was, without its configuration', async () => {
  record()
  const { node, ...rest } = await call('past/shards/{shard}/nodes/{node}', { at: 'now' }, { shard: 's1', node: 'n3' })
  expect(node).toEqual(FAILING.nodes.find(({ id }) => id === 'n3'))
  expect(rest).toEqual({ sources: [], config: null, configError: 'Configurations of the past are not recorded.' })
  const unknown = call('past/shards/{shard}/nodes/{node}', { at: 'now' }, { shard: 's1', node: 'n9' })
  await expect(unknown).rejects.toMatchObject({ code: 'node-not-found', message: 's1 had no node n9 then.' })
})

test('a moment without a picture before it, or in the future, was not recorded', async () => {
  const at = { shard: 's1' }
  await expect(call('past/shards/{shard}', { at: text(-1) }, at)).rejects.toMatchObject({
    ...{ code: 'not-recorded', field: 'at' },
    message: 'The state of the cluster was not recorded at 22 Nov 2026, 11:59:59 UTC.',
  })
  record()
  await expect(call('past/shards/{shard}', { at: text(-1) }, at)).rejects.toMatchObject({
    hint: 'The first recorded state is of 22 Nov 2026, 12:00:00 UTC.',
  })
  expect((await call('past/shards/{shard}', { at: text(10_000) }, at)).id).toBe('s1')
  await expect(call('past/shards/{shard}', { at: text(10_001) }, at)).rejects.toMatchObject({ code: 'not-recorded' })
})

// Summary

test('the summary of a moment has its shards, events and running operations', async () => {
  record()
  await event('before', 500)
  await event('routine', 900, { kind: 'snapshot' })
  await event('after', 1_501)
  await operation('op_running', 1_000, { endedAt: text(9_000) })
  const summary = await call('past/summary', { at: text(1_500) })

  expect(summary).toMatchObject({ at: text(1_500), environment: { label: 'TEST' }, counts: { shards: 2, nodes: 6 } })
  expect(summary.events.map(({ id }: ClusterEvent) => id)).toEqual(['before'])
  expect(summary.running).toEqual([
    {
      ...{ id: 'op_running', kind: 'transfer', title: 'title of op_running', percent: null },
      ...{ message: 'It was running at this moment.', href: '/operations/op_running' },
    },
  ])
  expect(summary.missing).toEqual(FAILING.missing)
  expect(summary.attention.length).toBeGreaterThan(0)
  for (const item of summary.attention) expect(Date.parse(item.since)).toBeLessThanOrEqual(NOW + 1_500)
})

test('of the operations that ended, the last of each shard may need attention, for a day', async () => {
  record()
  await operation('op_old', -86_400_000, { endedAt: text(-86_395_000), state: 'unconfirmed', shard: 's2' })
  await operation('op_first', 0, { endedAt: text(100), state: 'unconfirmed' })
  await operation('op_last', 200, { endedAt: text(300), state: 'unconfirmed' })
  const operations = async (at: number) => {
    const { attention } = await call('past/summary', { at: text(at) })
    const ids: string[] = attention.map(({ id }: { id: string }) => id)
    return ids.filter((id) => id.includes('op_')).sort()
  }
  expect(await operations(299)).toEqual(['5:op_first', '5:op_old'])
  expect(await operations(300)).toEqual(['5:op_last', '5:op_old'])
  expect(await operations(5_000)).toEqual(['5:op_last'])
})

test('the summary has the last thirty events', async () => {
  record()
  for (let at = 0; at < 31; at++) await event(`e${at}`, at)
  const { events } = await call('past/summary', { at: 'now' })
  expect([events.length, events[0].id, events.at(-1).id]).toEqual([30, 'e30', 'e1'])
})

// Events

test('events are those of a time, newest first, of the wanted kinds', async () => {
  await event('a', -60_000, { kind: 'leader' })
  await event('b', -1_000)
  await event('c', -500, { kind: 'role', node: 'n1' })
  await event('d', 1)
  const found = await call('events', { from: 'now-1m', to: 'now', limit: 10 })
  expect(found).toMatchObject({ from: text(-60_000), to: text(0) })
  expect(found.events.map(({ id }: ClusterEvent) => id)).toEqual(['c', 'b', 'a'])
  const some = await call('events', { from: 'now-1m', to: 'now', kinds: 'leader,role', limit: 10 })
  expect(some.events.map(({ id }: ClusterEvent) => id)).toEqual(['c', 'a'])
})

test.each(['events', 'past/timeline', 'past/changes'])(
  'a time that ends before it begins is refused by %s',
  async (name) => {
    const query = { limit: 1, steps: 1 }
    for (const from of ['now', text(1)])
      await expect(call(name, { from, to: 'now', ...query })).rejects.toMatchObject({
        code: 'bad-range',
        field: 'from',
      })
    await expect(call(name, { from: 'now-1m', to: 'x', ...query })).rejects.toMatchObject({
      code: 'bad-time',
      field: 'to',
    })
  },
)

test('the timeline has the events of each step, and since when states are known', async () => {
  await event('a', 500, { kind: 'leader' })
  const query = { from: text(0), to: text(10_000), steps: 4 }
  expect(await call('past/timeline', query)).toEqual({
    ...{ from: text(0), to: text(10_000), stepSeconds: 2.5, oldest: null, recordedFrom: null },
    ...{ events: [1, 0, 0, 0], leaders: [1, 0, 0, 0] },
  })
  record()
  expect(await call('past/timeline', { ...query, from: text(-10_000) })).toMatchObject({
    ...{ stepSeconds: 5, oldest: text(0), recordedFrom: text(0), events: [0, 0, 1, 0] },
  })
})

// Operations

test('an operation is shown as far as it was', async () => {
  const step = (id: string, at: number | null) => ({
    ...{ id, text: id, state: 'done' as const, at: at === null ? null : text(at), milliseconds: at, evidence: 'seen' },
  })
  const steps = [step('sent', 1_020), step('seen', 1_050)]
  const document = await operation('op_1', 1_000, { endedAt: text(1_100), steps })
  const then = (at: number) => call('past/operations/{id}', { at: text(at) }, { id: 'op_1' })

  await expect(then(999)).rejects.toMatchObject({ code: 'operation-not-found' })
  const running = {
    endedAt: null,
    pauseMs: null,
    progress: null,
    undo: null,
    cancellable: false,
    notice: '',
    answer: '',
  }
  const waiting = { state: 'waiting', at: null, milliseconds: null, evidence: '' }
  expect(await then(1_000)).toMatchObject({
    ...{ ...running, state: 'armed', requestedAt: null, message: 'It was running at this moment.' },
    steps: [
      { id: 'sent', text: 'sent', ...waiting },
      { id: 'seen', text: 'seen', ...waiting },
    ],
  })
  expect(await then(1_010)).toMatchObject({ ...running, state: 'requested', requestedAt: text(1_010) })
  expect(await then(1_020)).toMatchObject({ ...running, state: 'verifying', steps: [steps[0], waiting] })
  expect(await then(1_099)).toMatchObject({ ...running, state: 'verifying', steps })
  expect(await then(1_100)).toEqual(document)
})

// Changes

test('changes are the differences of two states, with the events between them', async () => {
  record()
  await event('at the start', 500)
  await event('between', 501)
  await event('at the end', 3_000)
  await event('later', 3_001)
  const found = await call('past/changes', { from: text(500), to: text(3_000) })
  expect(found).toMatchObject({ from: text(500), to: text(3_000), more: false })
  expect(found.events.map(({ id }: ClusterEvent) => id)).toEqual(['between', 'at the end'])
  expect(new Set(found.changes.map(({ shard }: ClusterEvent) => shard))).toEqual(new Set(['s1', 's2']))
  const one = await call('past/changes', { from: text(500), to: text(3_000), shard: 's2' })
  expect(one.changes).toEqual([
    { shard: 's2', node: null, kind: 'membership', level: 'info', message: 's2 is no longer known' },
  ])
  expect(one.events).toEqual([])
})

test('the state that was not recorded is named by its field', async () => {
  record()
  await expect(call('past/changes', { from: text(-500), to: text(1) })).rejects.toMatchObject({ field: 'from' })
  await expect(call('past/changes', { from: text(1), to: text(10_001) })).rejects.toMatchObject({ field: 'to' })
})

test('at most 500 events are between two moments', async () => {
  record()
  const row = (at: number) => ({ shard: 's1', node: null, kind: 'state', level: 'ok', message: '', at: NOW + 1 + at })
  const insert = async (from: number, to: number) => {
    const rows = Array.from({ length: to - from }, (_, at) => ({ id: `e${from + at}`, ...row(from + at) }))
    await database.insertInto('cluster_events').values(rows).execute()
  }
  await insert(0, 500)
  const ask = async () => await call('past/changes', { from: text(0), to: text(9_000) })
  expect(await ask()).toMatchObject({ more: false, events: { length: 500 } })
  await insert(500, 501)
  const found = await ask()
  expect([found.more, found.events.length, found.events[0].id]).toEqual([true, 500, 'e0'])
})

test('a shard that appeared is a change, and an unchanged one is not', () => {
  const state = (...shards: readonly ShardView[]) => ({ at: NOW, picturedAt: NOW, shards })
  expect(differences(state(SHARD), state(SHARD))).toEqual([])
  expect(differences(state(), state(SHARD))).toEqual([
    {
      ...{ shard: 's1', node: null, kind: 'membership', level: 'info' },
      message: `s1 was discovered: ${SHARD.message}`,
    },
  ])
})
