/** Stored imports, snapshots and codec list plans on PostgreSQL, which returns some numbers as text. */
import { TEST_CODECS } from '@vacancy/testkit/node'
import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Caller, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { beginImport, csvFiles, importEnds } from '../testing/import-files.ts'
import { startNode } from '../testing/nodes.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let postgres: Postgres
let node: Awaited<ReturnType<typeof startNode>>
let plane: TestControlPlane
let admin: Caller

beforeAll(async () => {
  postgres = await startPostgres()
  node = await startNode()
  const databaseUrl = await postgres.createDatabase()
  plane = await startTestControlPlane({ databaseUrl, config: { nodes: [node.apiUrl] } })
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
  await plane?.stop()
  await node?.close()
  await postgres?.close()
})

test('a codec list plan is saved, read back and discarded', async () => {
  const entries = [...TEST_CODECS].reverse().map((name) => ({ name, was: name }))
  const { body: plan } = await admin.call('POST', '/api/v1/registry/codec-plan', { entries })
  const given = { entries, reason: 'on another database', confirm: plan.after.hash }

  const kept = await admin.call('POST', '/api/v1/registry/codec-change', given)
  const read = await admin.call('GET', '/api/v1/registry/codec-change')
  const away = await admin.call('DELETE', `/api/v1/registry/codec-change/${kept.body.id}`)

  expect([kept.status, away.status]).toEqual([201, 204])
  expect(read.body.change).toMatchObject({ id: kept.body.id, createdAt: kept.body.createdAt })
})

test('rejected rows are omitted, and the snapshot is listed, archived and counted', async () => {
  const { properties, packages } = csvFiles(4, 3)
  const bad = Buffer.from('hotel_0,double,never,3,120,breakfast\n')
  const { id } = await beginImport(plane.url, admin, { properties, packages: Buffer.concat([packages, bad]) })
  await importEnds(admin, id)

  const again = await admin.call('POST', `/api/v1/imports/${id}/again`, { reason: 'on another database' })
  const built = await importEnds(admin, again.body.id)

  expect(built).toMatchObject({ state: 'built', counters: { agree: true, rejected: { packages: 1 } } })
  const { headers } = admin
  const archive = await fetch(`${plane.url}/api/v1/snapshots/${built.snapshot}/archive`, { headers })
  expect((await archive.arrayBuffer()).byteLength).toBe(Number(archive.headers.get('content-length')))
  const { body: listed } = await admin.call('GET', '/api/v1/snapshots')
  expect(listed.snapshots).toContainEqual(expect.objectContaining({ id: built.snapshot, packages: 12, segments: 3 }))
  expect((await admin.call('GET', '/api/v1/snapshots/matrix')).body.shards).toHaveLength(1)
})
