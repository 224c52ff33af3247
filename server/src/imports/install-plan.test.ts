/** The checks of the plan to install a snapshot; install.test.ts carries one out. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turnableClock } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Cluster } from '../cluster/cluster.ts'
import type { NodeObservation } from '../cluster/observation.ts'
import type { PlanContext } from '../cluster/operation-types.ts'
import { openDatabase } from '../database/database.ts'
import { HASH, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { type InstallParts, installType } from './install.ts'
import type { ImportTables } from './tables.ts'

const DIGEST = 'd'.repeat(64)
const GIB = 2 ** 30
let folder: string
let parts: InstallParts
let close: () => Promise<void>
let baseUrl = 'http://console:8080'

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
