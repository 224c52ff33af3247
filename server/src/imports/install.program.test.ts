/**
 * From two files to a shard that serves them, with real processes: an upload and a build interrupted by the end of the
 * control plane, an install into a running shard and its undo, and a shard that forms with a snapshot.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NodeCoverage, Operation, Plan, UploadView } from '@vacancy/shared/contract'
import { ADMIN_TOKEN } from '@vacancy/testkit/shard'
import { eventually, happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Caller, callerOf, personOf } from '../testing/control-plane.ts'
import { beginImport, beginUpload, csvFiles, importEnds, sendChunk, sendRest } from '../testing/import-files.ts'
import { startShard, type TestNode, type TestShard } from '../testing/nodes.ts'

// Registry, resolver, three nodes and a control plane on two shared cores.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 })

const PROGRAM = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const HOTELS = 2_000
const NIGHTS = 30
const CHUNK = 300_000
const END = ['done', 'elsewhere', 'no-change', 'refused', 'unconfirmed', 'cancelled']

type Process = { readonly url: string; readonly admin: Caller; readonly kill: () => Promise<void> }

let folder: string
let shard: TestShard
let plane: Process

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-install-'))
  shard = await startShard({ nodes: ['n1', 'n2', 'n3'] })
  plane = await startProcess()
})
afterAll(async () => {
  await plane?.kill()
  await shard?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The control plane as operators start it, on a folder shared by all tests. */
async function startProcess(): Promise<Process> {
  const config = join(folder, 'control-plane.yml')
  const lines = [
    ...['listen_port: 0', 'web: false', 'environment_kind: production', `data_dir: ${join(folder, 'data')}`],
    ...[`registry: ${shard.registryUrl}`, `resolver: ${shard.resolverUrl}`, `node_admin_token: ${ADMIN_TOKEN}`],
    // A node that waits for its shard to form has not registered yet.
    `nodes: ${JSON.stringify(shard.nodes().map(({ apiUrl }) => apiUrl))}`,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`, { mode: 0o600 })
  const child = spawn(process.execPath, [PROGRAM, 'control-plane', '--config', config, '--sign-in', 'ana'])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const code = await happens('the control plane serves', [{ id: 'control plane', output: () => output }], () => {
    if (child.exitCode !== null) throw new Error(output)
    return /^sign-in: .*#code=(\S+)$/m.exec(output)?.[1]
  })
  const url = /^serving: (\S+)$/m.exec(output)?.[1] ?? ''
  const answer = await callerOf(url, {}).call('POST', '/api/v1/session/link', { code })
  return { url, admin: personOf(url, answer), kill: () => ended(child) }
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.once('close', () => resolve())
    child.kill('SIGKILL')
  })
}

async function coverageOf(node: TestNode): Promise<NodeCoverage> {
  const response = await fetch(`${node.apiUrl}/coverage`)
  return (await response.json()) as NodeCoverage
}

/** Plans, starts and waits for the end. */
async function operate(kind: 'install' | 'undo-install', snapshot?: string): Promise<Operation> {
  const { admin } = plane
  const request = { kind, shard: 's1', ...(snapshot !== undefined && { snapshot }) }
  const planned = await happens('nothing blocks the plan', shard.nodes(), async () => {
    const { body, text } = await admin.call('POST', '/api/v1/plans', request)
    const plan = body as Plan
    if (plan.blocked !== false) throw new Error(text)
    return plan
  })
  const begun = await admin.call('POST', '/api/v1/operations', {
    plan: planned.id,
    reason: 'the test wants it',
    confirm: planned.confirmText,
  })
  if (begun.status !== 202) throw new Error(begun.text)
  return await happens(`${kind} is over`, shard.nodes(), async () => {
    const { body } = await admin.call('GET', `/api/v1/operations/${begun.body.id}`)
    return END.includes(body.state) ? (body as Operation) : undefined
  })
}

let snapshot = ''

test('an upload and a build continue after the control plane was killed', async () => {
  const { properties, packages } = csvFiles(HOTELS, NIGHTS)
  const first = await beginUpload(plane.admin, 'properties', properties)
  const second = await beginUpload(plane.admin, 'packages', packages)
  const body = { name: 'hotels', shard: 's1', properties: first.id, packages: second.id }
  const { body: begun } = await plane.admin.call('POST', '/api/v1/imports', body)
  await sendRest(plane.url, plane.admin, first, properties)
  expect((await sendChunk(plane.url, plane.admin, second.id, 0, packages.subarray(0, CHUNK))).status).toBe(200)
  // How much of this chunk arrives is undefined.
  const cut = sendChunk(plane.url, plane.admin, second.id, CHUNK, packages.subarray(CHUNK, 2 * CHUNK)).catch(
    () => undefined,
  )

  await plane.kill()
  await cut
  plane = await startProcess()

  const { body: upload } = await plane.admin.call('GET', `/api/v1/uploads/${second.id}`)
  const { offset } = upload as UploadView
  expect([CHUNK, 2 * CHUNK]).toContain(offset)
  const wrong = await sendChunk(plane.url, plane.admin, second.id, 5, packages.subarray(5, 10))
  expect(wrong).toMatchObject({ status: 409, body: { offset } })
  await sendRest(plane.url, plane.admin, upload, packages, CHUNK)
  await happens('it builds', shard.nodes(), async () => {
    const { body: view } = await plane.admin.call('GET', `/api/v1/imports/${begun.id}`)
    return view.state !== 'uploading'
  })

  await plane.kill()
  plane = await startProcess()

  const view = await importEnds(plane.admin, begun.id)
  expect(view).toMatchObject({ state: 'built', counters: { agree: true, readBack: { packages: HOTELS * NIGHTS } } })
  snapshot = view.snapshot ?? ''
})

test('it is installed on the running shard, and every node holds the same counts', async () => {
  const { body: before } = await plane.admin.call('GET', `/api/v1/snapshots/compare?a=shard:s1&b=${snapshot}`)
  expect(before).toMatchObject({ equal: false, a: { packages: 0 }, b: { packages: HOTELS * NIGHTS } })

  const operation = await operate('install', snapshot)

  expect([operation.state, operation.message]).toEqual(['done', expect.stringMatching(/[23] of 3 voters serve it/)])
  const steps = operation.steps.map(({ id, state }) => [id, state])
  expect(steps).toEqual(['request', 'fetch', 'load', 'counts'].map((id) => [id, 'done']))
  await happens('all nodes hold it', shard.nodes(), async () => {
    const all = await Promise.all(shard.nodes().map(coverageOf))
    return all.every(({ packages, segments }) => packages === HOTELS * NIGHTS && segments.length === 3)
  })
  const { body: after } = await plane.admin.call('GET', `/api/v1/snapshots/compare?a=shard:s1&b=${snapshot}`)
  expect(after).toMatchObject({ equal: true, codecsEqual: true })
  const { body: details } = await plane.admin.call('GET', `/api/v1/snapshots/${snapshot}`)
  expect(details).toMatchObject({ servedBy: ['s1'], installs: [{ state: 'done', shard: 's1' }] })
  const refused = await plane.admin.call('POST', `/api/v1/snapshots/${snapshot}/delete`, { confirm: snapshot })
  expect(refused).toMatchObject({ status: 409, body: { code: 'snapshot-in-use' } })
})

test('installing on a shard with data needs its name as confirmation, and undo restores the previous data', async () => {
  const { id } = await beginImport(plane.url, plane.admin, csvFiles(10, 2))
  const { snapshot: small } = await importEnds(plane.admin, id)
  const { body: plan } = await plane.admin.call('POST', '/api/v1/plans', {
    kind: 'install',
    shard: 's1',
    snapshot: small,
  })
  expect(plan).toMatchObject({ confirm: 3, confirmText: 's1', after: { data: { packages: 20, properties: 10 } } })
  expect((await operate('install', small ?? '')).state).toBe('done')
  await happens('all nodes hold the small one', shard.nodes(), async () =>
    (await Promise.all(shard.nodes().map(coverageOf))).every(({ packages }) => packages === 20),
  )

  const back = await operate('undo-install')

  expect([back.state, back.message]).toEqual(['done', expect.stringContaining('voters serve it')])
  await happens('all nodes hold the previous data', shard.nodes(), async () =>
    (await Promise.all(shard.nodes().map(coverageOf))).every(({ packages }) => packages === HOTELS * NIGHTS),
  )
})

test('two empty voters that wait for the third receive the snapshot, and the shard forms with it', async () => {
  await plane.kill()
  await shard.close()
  shard = await startShard({ nodes: ['n1', 'n2', 'n3'], started: [] })
  for (const id of ['n1', 'n2']) shard.start(id)
  plane = await startProcess()

  const operation = await operate('install', snapshot)

  expect([operation.state, operation.message]).toEqual(['done', expect.stringContaining('as the snapshot')])
  shard.start('n3')
  const all = () => Promise.all(shard.nodes().map(coverageOf))
  await eventually(
    async () => expect((await all()).map(({ packages }) => packages)).toEqual([1, 2, 3].map(() => HOTELS * NIGHTS)),
    { timeout: 240_000, interval: 250 },
  )
})
