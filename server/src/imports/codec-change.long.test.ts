/** A codec list change with a real registry and a real node: each step is detected as done. */

import type { CodecChange, Operation, Plan } from '@vacancy/shared/contract'
import { TEST_CODECS } from '@vacancy/testkit/node'
import { ADMIN_TOKEN } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Caller, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { beginImport, csvFiles, importEnds } from '../testing/import-files.ts'
import { startShard, type TestShard } from '../testing/nodes.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 })

const HOTELS = 40
const NIGHTS = 3
/** One entry removed, one added, and the others moved. */
const NEXT = ['sauna', 'breakfast', 'refundable']

let shard: TestShard
let plane: TestControlPlane
let admin: Caller

beforeAll(async () => {
  shard = await startShard({ nodes: ['n1'], voters: ['n1'] })
  const { registryUrl: registry, resolverUrl: resolver } = shard
  plane = await startTestControlPlane({ config: { registry, resolver, nodeAdminToken: ADMIN_TOKEN } })
  admin = await plane.signIn('admin')
})
afterAll(async () => {
  await plane?.stop()
  await shard?.close()
})

/** Imports the files and installs the snapshot. */
async function importAndInstall(): Promise<string> {
  const view = await importEnds(admin, (await beginImport(plane.url, admin, csvFiles(HOTELS, NIGHTS))).id)
  if (view.snapshot === null) throw new Error(`${view.message} ${view.log.join('\n')}`)
  const plan = await happens('nothing blocks the install', shard.nodes(), async () => {
    const request = { kind: 'install', shard: 's1', snapshot: view.snapshot }
    const { body, text } = await admin.call('POST', '/api/v1/plans', request)
    if ((body as Plan).blocked !== false) throw new Error(text)
    return body as Plan
  })
  const confirmed = { plan: plan.id, reason: 'the test wants it', confirm: plan.confirmText }
  const begun = await admin.call('POST', '/api/v1/operations', confirmed)
  if (begun.status !== 202) throw new Error(begun.text)
  const ended = await happens('it is installed', shard.nodes(), async () => {
    const { body } = await admin.call('GET', `/api/v1/operations/${begun.body.id}`)
    return (body as Operation).endedAt === null ? undefined : (body as Operation)
  })
  expect([ended.state, ended.message]).toEqual(['done', expect.any(String)])
  return view.snapshot
}

/** Waits until a step is done; returns the states of all steps. */
async function stepDone(id: string): Promise<{ [step: string]: string }> {
  return await happens(`${id} is done`, shard.nodes(), async () => {
    const { body } = await admin.call('GET', '/api/v1/registry/codec-change')
    const change = body.change as CodecChange
    const states = Object.fromEntries(change.plan.steps.map((step) => [step.id, step.state]))
    return states[id] === 'done' ? states : undefined
  })
}

test('a new list is applied step by step, and each step is detected as done', async () => {
  const old = await importAndInstall()
  const { body: usage } = await admin.call('GET', '/api/v1/registry/codec-usage')
  expect(usage.shards).toEqual([
    {
      shard: 's1',
      of: expect.objectContaining({ snapshot: old, packages: HOTELS * NIGHTS }),
      packages: { breakfast: HOTELS * NIGHTS, refundable: 0, sea_view: 0 },
    },
  ])
  const entries = NEXT.map((name) => ({ name, was: TEST_CODECS.includes(name) ? name : null }))
  const { body: plan } = await admin.call('POST', '/api/v1/registry/codec-plan', { entries })
  expect(plan.before.source).toContain('registry')
  expect(plan.snapshots.map(({ id }: { id: string }) => id)).toContain(old)
  const reason = 'the sauna is ready'
  const kept = await admin.call('POST', '/api/v1/registry/codec-change', { entries, reason, confirm: plan.after.hash })
  expect([kept.status, kept.body.complete]).toEqual([201, false])

  const stop = plan.steps.find(({ id }: { id: string }) => id === 'stop')
  expect(stop.commands[0].code).toContain(`${shard.node('n1').apiUrl}/shutdown`)
  await fetch(`${shard.node('n1').apiUrl}/shutdown`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: '{"confirm":true}',
  })
  expect(await stepDone('stop')).toMatchObject({ registry: 'open', start: 'open', data: 'open' })
  await shard.changeCodecs(NEXT)
  expect(await stepDone('registry')).toMatchObject({ stop: 'done', start: 'open' })
  shard.start('n1')
  expect(await stepDone('start')).toMatchObject({ stop: 'done', registry: 'done', data: 'open' })
  const next = await importAndInstall()
  expect(await stepDone('data')).toEqual({ keep: 'hand', ...allDone })

  const { body } = await admin.call('GET', '/api/v1/registry/codec-change')
  expect(body.change).toMatchObject({ complete: true, reason })
  const { body: listed } = await admin.call('GET', '/api/v1/snapshots')
  const current = new Map<string, boolean>(
    listed.snapshots.map((each: { id: string; codecsCurrent: boolean }) => [each.id, each.codecsCurrent]),
  )
  expect([current.get(old), current.get(next)]).toEqual([false, true])
})

const allDone = { stop: 'done', registry: 'done', start: 'done', data: 'done' }
