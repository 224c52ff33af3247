/** Golden searches with a real node, and a node that is started on a real snapshot. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@vacancy/client'
import type { GoldenCheck, GoldenSearch, Plan } from '@vacancy/shared/contract'
import { eventually, until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Caller, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { beginImport, csvFiles, importEnds, nightIn } from '../testing/import-files.ts'
import { startNode } from '../testing/nodes.ts'

// A build, a node that serves and one on each snapshot, on two shared cores.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 })

let dataDir: string
let plane: TestControlPlane
let admin: Caller
let node: Awaited<ReturnType<typeof startNode>>
let shard: string
let snapshot: string

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'vacancy-golden-'))
  // As a control plane leaves it that was killed during a check.
  mkdirSync(join(dataDir, 'imports/golden/node-old/data'), { recursive: true })
  node = await startNode({ stuckMs: 180_000 })
  const client = await connect({ host: node.host, port: node.tcpPort })
  const place = { area: 'valley', propertyType: 'hotel', category: 'standard', stars: 3, amenities: [] }
  for (const [propertyId, segment] of [
    ['hotel_0', 'segment_0'],
    ['hotel_3', 'segment_0'],
    ['old_1', 'segment_old'],
  ] as const)
    await client.setProperty({ propertyId, segment, ...place, latitude: 47, longitude: 11 })
  await client.close()
  plane = await startTestControlPlane({ dataDir, config: { nodes: [node.apiUrl] } })
  admin = await plane.signIn('admin')
  shard = await until('the shard is known', async () => {
    const { body } = await admin.call('GET', '/api/v1/shards')
    const [first] = body.shards
    if (first?.state !== 'standalone') throw new Error(JSON.stringify(body))
    return first.id as string
  })
  const { id } = await beginImport(plane.url, admin, csvFiles(30, 6), { shard })
  const view = await importEnds(admin, id)
  snapshot = view.snapshot ?? ''
})
afterAll(async () => {
  await plane?.stop()
  await node?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

async function add(name: string, given: object): Promise<GoldenSearch> {
  const body = { shard, name, command: 'SEARCHPROP', ...given }
  const { status, text, body: made } = await admin.call('POST', '/api/v1/golden-searches', body)
  if (status !== 201) throw new Error(text)
  return made
}

const folder = () => readdirSync(join(dataDir, 'imports/golden'))
const plan = async (): Promise<Plan> =>
  (await admin.call('POST', '/api/v1/plans', { kind: 'install', shard, snapshot })).body
const golden = ({ checks }: Plan) =>
  checks.filter(({ id }) => id.startsWith('golden')).map(({ level, text }) => [level, text])
const planned = () =>
  until('the golden searches have been run', async () => {
    const now = await plan()
    if (golden(now).some(([level]) => level === 'block')) throw new Error(JSON.stringify(golden(now)))
    return now
  })

test('what a killed control plane left behind is removed at the start', () => {
  expect(folder()).toEqual([])
})

let old: GoldenSearch

test('they are run on the running shard, and tell whether the expectation holds today', async () => {
  await add('Grown', { fields: { segment: 'segment_0' }, expect: { atLeast: 10, contains: ['hotel_3'] } })
  await add('Next week', {
    command: 'SEARCHAVAIL',
    // Long past: it moves with the day.
    ...{ fields: { segment: 'segment_1', roomType: 'double', dates: ['2020-01-01', '2020-01-02'] }, daysAhead: 2 },
    expect: { atLeast: 10, p99Ms: 10_000 },
  })
  old = await add('Old', { fields: { segment: 'segment_old' }, expect: { contains: ['old_1'] } })

  const { body: run } = await admin.call('POST', `/api/v1/shards/${shard}/golden-run`, {})

  expect(run.results).toMatchObject([
    { name: 'Grown', verdict: 'failed', message: 'finds 2 properties, at least 10 expected' },
    { name: 'Next week', verdict: 'failed', count: 0, message: expect.stringMatching(/^finds 0 .*; p99 [\d.]+ ms$/) },
    { name: 'Old', verdict: 'passed', message: 'finds 1 property' },
  ])
  const { body: list } = await admin.call('GET', `/api/v1/golden-searches?shard=${shard}`)
  expect(list.searches.map(({ last }: GoldenSearch) => last?.verdict)).toEqual(['failed', 'failed', 'passed'])
  const { body: audit } = await admin.call('GET', '/api/v1/audit?action=golden.run')
  expect(audit.entries[0]).toMatchObject({
    target: shard,
    detail: expect.stringContaining('not passed: Grown, Next week'),
  })
})

test('one is tried without being stored, and a refused one says why', async () => {
  const body = {
    shard,
    command: 'SEARCHAVAIL',
    fields: { segment: 'segment_0', roomType: 'double' },
    expect: { atLeast: 1 },
  }
  const past = { ...body, fields: { ...body.fields, dates: ['2020-01-01'] } }

  const { body: tried } = await admin.call('POST', '/api/v1/golden-searches/try', past)

  expect(tried).toMatchObject({ verdict: 'failed', count: null, message: expect.stringMatching(/^refused: /) })
  const incomplete = await admin.call('POST', '/api/v1/golden-searches/try', body)
  expect(incomplete).toMatchObject({ status: 400, body: { code: 'invalid-fields' } })
  expect((await admin.call('GET', '/api/v1/golden-searches')).body.searches).toHaveLength(3)
})

test('the plan of an install runs them on the snapshot, and names the one that would lose its results', async () => {
  const first = await plan()
  expect(golden(first)).toEqual([
    ['block', expect.stringMatching(/^golden searches are being run on this snapshot: \d of 3$/)],
  ])

  const done = await planned()

  const { leader, term, peersHash } = first.basis
  expect(done.basis).toMatchObject({ leader, term, peersHash })
  expect(done.basis.found).not.toBe(first.basis.found)
  const { body: audit } = await admin.call('GET', '/api/v1/audit?action=golden.check')
  expect(audit.entries).toMatchObject([
    { actorKind: 'person', result: 'started', detail: `${snapshot}, for the plan of its install` },
  ])
  expect(golden(done)).toEqual([
    ['warn', '1 of 3 golden searches lose their results'],
    ['warn', 'Old: finds 0 properties; without old_1 (1 on the shard now)'],
  ])
  // In development otherwise the button is enough.
  expect(done).toMatchObject({ environment: { kind: 'development' }, confirm: 3, confirmText: shard })
  const { body: check } = await admin.call('GET', `/api/v1/snapshots/${snapshot}/golden-check`)
  expect(check as GoldenCheck).toMatchObject({
    state: 'done',
    message: '1 of 3 fail.',
    results: [
      { name: 'Grown', verdict: 'passed', count: 10 },
      { name: 'Next week', verdict: 'passed', count: 10, p99Ms: expect.any(Number) },
      { name: 'Old', verdict: 'failed', count: 0 },
    ],
  })
  expect(folder()).toEqual([])
})

test('when the failing one is removed the plan runs the rest again, and all pass', async () => {
  await admin.call('DELETE', `/api/v1/golden-searches/${old.id}`)

  const done = await planned()

  expect(golden(done)).toEqual([['ok', 'all 2 golden searches pass']])
  expect(done.confirm).toBe(1)
})

test('a check that cannot be run says why, and never counts as passed', async () => {
  writeFileSync(join(dataDir, 'imports/snapshots', `${snapshot}.snapshot`), `no snapshot of ${nightIn(0)}`)
  const { status } = await admin.call('POST', `/api/v1/snapshots/${snapshot}/golden-check`, {})
  expect(status).toBe(202)

  await eventually(async () => {
    const { body } = await admin.call('GET', `/api/v1/snapshots/${snapshot}/golden-check`)
    expect(body).toMatchObject({ state: 'not-run', message: expect.stringMatching(/^its node ended with \d+: /) })
  })

  const done = await planned()
  expect(golden(done)).toEqual([['warn', expect.stringMatching(/^golden searches were not run: its node ended with/)]])
  expect(done.confirm).toBe(3)
  expect(folder()).toEqual([])
})
