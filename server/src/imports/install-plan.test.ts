import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turnableClock } from '@vacancy/shared'
import type { ClusterInfo } from '@vacancy/shared/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Cluster } from '../cluster/cluster.ts'
import type { NodeObservation } from '../cluster/observation.ts'
import type { PlanContext } from '../cluster/operation-types.ts'
import { openDatabase } from '../database/database.ts'
import { HASH, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { type GoldenOfPlan, type InstallParts, installType } from './install.ts'
import { matrixOf, restorableOf } from './matrix.ts'
import type { ImportTables } from './tables.ts'

/** The checks of the plan to install a snapshot; install.test.ts carries one out. */

const DIGEST = 'd'.repeat(64)
const GIB = 2 ** 30
let folder: string
let parts: InstallParts
let close: () => Promise<void>
let baseUrl = 'http://console:8080'
const golden: GoldenOfPlan = { checks: [], isGrave: false, found: '' }

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-install-plan-'))
  const database = await openDatabase<ImportTables>(join(folder, 'control-plane.sqlite'))
  const document = JSON.stringify({ codecHash: HASH, packages: 5, properties: 2, window: null })
  for (const [id, shard, installable] of [
    [DIGEST, 's1', 1],
    ['e'.repeat(64), 's2', 0],
  ] as const)
    await database
      .insertInto('snapshots')
      .values({
        ...{ id, name: 'spring', shard, bytes: GIB, sha256: id, import_id: 'i1', by_name: 'ada', created_at: NOW },
        ...{ installable, document, counters: '{}', sources: '[]' },
      })
      .execute()
  const clock = turnableClock(NOW)
  parts = {
    // No node of the shard can be reached: its data counts as present.
    cluster: { addresses: () => [] } as unknown as Cluster,
    snapshots: { database, clock, folder } as unknown as InstallParts['snapshots'],
    clock,
    golden: async () => golden,
    baseUrl: () => baseUrl,
  }
  close = () => database.destroy()
})
afterAll(async () => {
  await close()
  rmSync(folder, { recursive: true })
})

const members = { voters: ['n1', 'n2'], learners: ['n3'] }
/** Free space in GiB; null: not reported. */
const nodeOf = (id: string, free: number | null, change: Partial<NodeObservation> = {}) => {
  const disk = free === null ? null : { free_bytes: free * GIB, full: false }
  const value = statusOf({ disk: disk as ReturnType<typeof statusOf>['disk'] })
  return observedNode({ id, ...members }, { status: { value, at: NOW }, ...change })
}
async function checksOf(nodes: readonly NodeObservation[], look: Partial<PlanContext> = {}, snapshot = DIGEST) {
  const draft = await installType(parts).plan(
    { kind: 'install', shard: 's1', snapshot },
    {
      ...{ now: NOW, shard: shardOf(nodes).view, observations: nodes, running: undefined, isAdmin: true },
      ...{ hasAdminToken: true, clusterPause: null, bridges: [], baseUrl: 'http://console' },
      ...look,
    },
  )
  return Object.fromEntries(draft.checks.map(({ id, level, text }) => [id, [level, text]]))
}

test.each([
  ['enough on all', [3, 3, 3], ['ok', 'each voter has 2.42 GB of free disk space']],
  // Twice the file of 1 GiB, and 256 MiB: 2.25 GiB are 2.42 GB.
  ['exactly enough', [2.25, 2.25, 2.25], ['ok', 'each voter has 2.42 GB of free disk space']],
  ['too little on a voter', [3, 2, 3], ['block', 'n2 has 2.15 GB free; 2.42 GB needed']],
  ['too little on two voters', [1, 2, 3], ['block', 'n1 has 1.07 GB free, n2 has 2.15 GB free; 2.42 GB needed']],
  ['too little on a learner, which gets the data later', [3, 3, 0.1], ['ok', expect.anything()]],
  ['unknown on a voter', [3, null, 3], ['warn', 'not known: each voter has 2.42 GB of free disk space']],
  ['unknown on one voter and too little on the other', [null, 1, 3], ['block', expect.anything()]],
])('disk space: %s', async (_, free, expected) => {
  const nodes = free.map((each, n) => nodeOf(`n${n + 1}`, each))

  expect((await checksOf(nodes))['space']).toEqual(expected)
})

test('a snapshot must be stored here, be built for the shard with its codec list, and have equal counters', async () => {
  const nodes = ['n1', 'n2', 'n3'].map((id) => nodeOf(id, 9))
  const others = nodes.map((node) => ({
    ...node,
    status: { value: statusOf({ ordered_hash: 'b'.repeat(64) }), at: NOW },
    codecs: undefined,
  }))

  const good = await checksOf(nodes)
  expect(Object.entries(good).filter(([, [level]]) => level === 'block')).toEqual([])
  expect(await checksOf(others, {}, 'e'.repeat(64))).toMatchObject({
    counters: ['block', 'its counters differ: import the files again'],
    shard: ['block', 'it was built for shard s2: import the files again for s1'],
    codecs: ['block', 'built with a codec list that differs from the nodes: import the files again'],
  })
  const missing = await checksOf(nodes, {}, 'f'.repeat(64))
  expect(missing['snapshot']).toEqual(['block', 'the snapshot is not stored here'])
  expect(missing).not.toHaveProperty('space')
})

test.each([
  ['http://console:8080', 'ok'],
  ['http://10.0.0.1:8080', 'ok'],
  ['http://127.0.0.1:8080', 'block'],
  ['http://localhost:8080', 'block'],
  ['http://[::1]:8080', 'block'],
])('nodes on other machines reach this control plane at %s: %s', async (url, level) => {
  const before = baseUrl
  baseUrl = url

  const checks = await checksOf(['n1', 'n2', 'n3'].map((id) => nodeOf(id, 9)))

  baseUrl = before
  expect(checks['reach']?.[0]).toBe(level)
})

test('a plan needs an administrator, a token of the nodes and a shard with a leader and a majority', async () => {
  const nodes = ['n1', 'n2', 'n3'].map((id) => nodeOf(id, 9))
  const leaderless = ['n1', 'n2', 'n3'].map((id) =>
    observedNode({ id, leader: '', health: 'active_follower', ...members }),
  )

  expect(await checksOf(nodes, { isAdmin: false, hasAdminToken: false })).toMatchObject({
    admin: ['block', 'needs the admin role'],
    token: ['block', 'this control plane has no admin token for the nodes: set node_admin_token'],
    idle: ['ok', 'no other operation'],
    leader: ['ok', 'n1 leads'],
    majority: ['ok', '2 of 2 voters answer, 2 must hold it'],
  })
  expect(await checksOf(leaderless)).toMatchObject({ leader: ['block', 'no leader that could start it'] })
})

const viewOf = (nodes: readonly NodeObservation[]) => shardOf(nodes).view
const digest = (letter: string) => letter.repeat(64)

/** A node with this newest snapshot; null: it has none, undefined: it reported none. */
function holding(
  id: string,
  snapshot: string | null | undefined,
  change: Partial<NodeObservation> = {},
): NodeObservation {
  const own = snapshot && {
    ...{ id: snapshot, created_at: '2026-11-22T11:00:00.000Z', shard_id: 's1', last_index: 40, last_term: 4 },
    ...{ properties: 1, packages: 2, segments: 1, window: null, codec_hash: HASH, bytes: 300, duration_ms: 1 },
    origin: 'periodic' as const,
  }
  const status = { value: statusOf({ snapshot: own || null, wal: own ? { bytes: 1, files: 1 } : null }), at: NOW }
  return observedNode({ id }, { status: snapshot === undefined ? undefined : status, ...change })
}
const away = {
  answeredAt: NOW - 60_000,
  missed: 9,
  error: { code: 'refused', message: 'refused', since: NOW - 60_000 },
}

test.each([
  ['all hold the same', [digest('a'), digest('a'), digest('a')], 'yes', '3 of 3 voters', '3 of 3 hold aaaaaaaa…'],
  ['each has its own', [digest('a'), digest('b'), digest('c')], 'yes', '3 of 3 voters', '1 of 3 hold'],
  ['two have nothing', [digest('a'), null, null], 'no', '1 of 3 voters', '1 of 3 hold aaaaaaaa…'],
  ['two did not report', [digest('a'), undefined, undefined], 'unknown', 'n2, n3 did not report', '1 of 1'],
] as const)('after a full stop, when %s', (_, held, verdict, message, same) => {
  const shard = viewOf(held.map((snapshot, at) => holding(`n${at + 1}`, snapshot)))

  const found = restorableOf(shard, undefined)

  expect(found.verdict).toBe(verdict)
  expect(found.message).toContain(message)
  expect(found.message).toContain('2 needed')
  if (same !== '1 of 1') expect(found.same).toContain(same)
})

test('a voter that does not respond is listed, and never counted as holding nothing', () => {
  const shard = viewOf([holding('n1', digest('a')), holding('n2', null), holding('n3', digest('a'), away)])

  const found = restorableOf(shard, undefined)

  expect([found.verdict, found.message]).toEqual(['unknown', expect.stringMatching(/^n3 did not respond; 1 of 3/)])
})

test('a forming shard needs the same snapshot on a majority of its initial voters', () => {
  const founders = (...held: string[]): NonNullable<ClusterInfo['bootstrap']> => ({
    ...{ waits_for: 'snapshot', why: '', needed: 2 },
    voters: held.map((snapshot, at) => ({
      ...{ id: `n${at + 1}`, index: 1, detail: '' },
      ...(snapshot === '?' ? { state: 'silent' as const, snapshot: '' } : { state: 'seeded' as const, snapshot }),
    })),
  })
  const shard = viewOf([holding('n1', undefined), holding('n2', undefined), holding('n3', undefined)])
  const verdict = (...held: string[]) => restorableOf(shard, founders(...held))

  expect(verdict(digest('a'), digest('a'), digest('b')).message).toBe('2 of 3 initial voters hold aaaaaaaa…, 2 needed')
  expect(verdict(digest('a'), digest('b'), digest('c')).message).toBe('1 of 3 initial voters hold aaaaaaaa…, 2 needed')
  expect(verdict(digest('a'), '?', digest('b')).message).toMatch(/^n2 did not respond; 1 of 3/)
  expect(verdict('', '', '').verdict).toBe('no')
  expect(verdict('?', '?', '').verdict).toBe('unknown')
})

test('the matrix marks the snapshot of the majority, and the last report of a node that does not respond', () => {
  const nodes = [holding('n1', digest('a')), holding('n2', digest('a')), holding('n3', digest('b'), away)]
  const built = {
    id: digest('c'),
    name: 'hotels',
    stored: true,
    codecsCurrent: true,
    createdAt: '2026-11-20T00:00:00.000Z',
  }

  const matrix = matrixOf(viewOf(nodes), [built], undefined)

  expect(matrix.snapshots.map(({ id, voters, majority }) => [id[0], voters, majority])).toEqual([
    ['c', 0, false],
    ['a', 2, true],
    ['b', 1, false],
  ])
  expect(matrix.nodes.map(({ node, report, holds }) => [node, report, holds?.[0]])).toEqual([
    ['n1', 'current', 'a'],
    ['n2', 'current', 'a'],
    ['n3', 'last', 'b'],
  ])
})
