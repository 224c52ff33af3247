/** `vacancy backup` against a server in the place of a node: which node is used, what is waited for, what is refused. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, parseDay } from '@vacancy/shared'
import type { ClusterInfo, NodeStatus } from '@vacancy/shared/contract'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { createEnv } from '../env.ts'
import { BACKUP_PATHS, backupRoutes } from '../http/backup.ts'
import type { Query } from '../http/listener.ts'
import { buildSnapshot } from '../import/import.ts'
import { backupCommand } from './backup.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const root = mkdtempSync(join(tmpdir(), 'vacancy-backup-'))
const dataDir = join(root, 'data')
const FIRST_DAY = parseDay('2026-09-01') as number

beforeAll(async () => {
  mkdirSync(dataDir)
  writeFileSync(join(root, 'properties.csv'), 'p1,alps,A,hotel,luxury,4,1,2,wifi\np2,alps,B,hotel,luxury,4,1,2,wifi\n')
  writeFileSync(join(root, 'packages.csv'), 'p1,double,2026-09-01,3,120,\np2,double,2026-09-02,1,80,\n')
  const built = await buildSnapshot(createEnv(silent), {
    ...{ shardId: 's1', inputPath: root, outputPath: dataDir, codecs: createCodecList(['breakfast']) },
    ...{
      firstDay: FIRST_DAY,
      lastDay: FIRST_DAY + 30,
      outOfWindow: 'skip',
      errorsMax: 1,
      overwrite: false,
      threads: 1,
    },
  })
  expect(built.ok).toBe(true)
})
afterAll(() => rmSync(root, { recursive: true }))

const SNAPSHOT = {
  ...{ id: 'x', created_at: '2026-09-01T00:00:00.000Z', shard_id: 's1', last_index: 5, last_term: 1, segments: 1 },
  ...{ properties: 2, packages: 2, window: null, codec_hash: '0'.repeat(64), bytes: 1, origin: 'requested' as const },
  duration_ms: 1,
}
const STATUS: NodeStatus = {
  ...{ mode: 'standalone', version: '0.1.0', shard_id: 's1', health: 'active', reasons: [], codec_mismatch: null },
  ...{ started_at: '2026-09-01T00:00:00.000Z', uptime_seconds: 1, cores: { start: 2, now: 2 }, serving_threads: 1 },
  ...{ connections: 0, kernels: 'wasm', ordered_hash: '0'.repeat(64), memory: { rss: 1, heap: 1, arraybuffers: 1 } },
  ...{ properties: 2, packages: 2, sessions: 0, segments: [], wal: null, disk: { free_bytes: 1, full: false } },
  replica: {
    ...{ role: 'leader', term: 1, first_index: 1, last_index: 5, commit_index: 5, applied_index: 5, lag_entries: 0 },
  },
  ...{ digest: null, snapshot: SNAPSHOT, snapshot_running: false, maintenance: null, cluster: null },
}
const INFO: ClusterInfo = {
  ...{ leader_id: 'n1', members: { voters: ['n1', 'n2'], learners: [] }, node_id: 'n1', shard_id: 's1', zone_id: '' },
  ...{ cluster_id: 'c1', leader_url: '', term: 1, first_index: 1, last_index: 5, commit_index: 5, applied_index: 5 },
  ...{ joint: false, nodes: [], bootstrap: null, operation: null, last_operation: null },
}
const clustered = (info: ClusterInfo): NodeStatus => ({
  ...STATUS,
  mode: 'clustered',
  cluster: {
    ...{ info, leading: true, staleness_seconds: 0, peers: [], installing: null, awaited_load: null, pull: null },
    ...{ clock_suspect: false, connections_rejected: {}, registry: null, resolver: null },
  },
})

/** A node of which a test decides everything. Paths in `requests` are in the order of their arrival. */
type FakeNode = {
  readonly requests: string[]
  readonly server: Server
  port: number
  status: () => NodeStatus
  info: ClusterInfo
  /** Status, and what happens to the body of a manifest or chunk. */
  serve: (path: string, body: Uint8Array) => { readonly status: number; readonly body: Uint8Array }
}

const nodes: FakeNode[] = []

async function startNode(host = '127.0.0.1', port = 0): Promise<FakeNode> {
  const node: FakeNode = {
    requests: [],
    server: createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://node')
      node.requests.push(`${request.method} ${url.pathname}`)
      const answer = (status: number, body: Uint8Array | string) => void response.writeHead(status).end(body)
      if (url.pathname === '/status') return answer(200, JSON.stringify(node.status()))
      if (url.pathname === '/cluster/info') return answer(200, JSON.stringify(node.info))
      if (url.pathname === '/save-snapshot') return answer(202, 'snapshot in progress')
      const route = backupRoutes(dataDir).find(({ path }) => path === url.pathname)
      if (!route) return answer(404, 'no such path')
      const { body } = route.answer({ parameters: url.searchParams } as Query) as { body: Uint8Array }
      const served = node.serve(url.pathname, body)
      answer(served.status, served.body)
    }),
    port: 0,
    status: () => STATUS,
    info: INFO,
    serve: (_, body) => ({ status: 200, body }),
  }
  await new Promise<void>((resolve) => node.server.listen(port, host, resolve))
  node.port = (node.server.address() as AddressInfo).port
  nodes.push(node)
  return node
}

let node: FakeNode
let folder: string
const written: string[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(root, 'out-'))
  node = await startNode()
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0)
  }
})
afterEach(async () => {
  vi.restoreAllMocks()
  written.length = 0
  await Promise.all(nodes.splice(0).map(({ server }) => new Promise((resolve) => server.close(resolve))))
})

type Options = { nodes?: string[]; overwrite?: boolean; waitSecs?: number; json?: boolean }

async function backUp({ nodes: hosts = [`127.0.0.1:${node.port}`], waitSecs = 5, ...rest }: Options = {}) {
  const flags = { node: hosts, outputPath: folder, overwrite: false, json: true, waitSecs, ...rest }
  const run = backupCommand.run as unknown as (parsed: { flags: object }) => Promise<number>
  const code = await run({ flags })
  return { code, document: JSON.parse(written.at(-1) ?? '') as Record<string, unknown> }
}
const failure = (reason: string | RegExp) => expect.objectContaining({ message: expect.stringMatching(reason) })

test('a backup is the snapshot of the node, and reports what it holds', async () => {
  const { code, document } = await backUp()

  const file = join(folder, 'seed.snapshot')
  expect(code).toBe(0)
  expect(document).toMatchObject({ file, node: `127.0.0.1:${node.port}`, shardId: 's1', properties: 2, packages: 2 })
  expect(document['bytes']).toBe(readFileSync(file).length)
  expect(readFileSync(file)).toEqual(readFileSync(join(dataDir, 'seed.snapshot')))
  expect(node.requests).not.toContain('POST /save-snapshot')
})

test('an existing file stays unless it is to be replaced', async () => {
  const file = join(folder, 'seed.snapshot')
  writeFileSync(file, 'mine')
  await expect(backUp()).rejects.toThrow(failure(`${file} exists`))
  expect([readFileSync(file, 'utf8'), node.requests]).toEqual(['mine', []])
  await backUp({ overwrite: true })
  expect(readFileSync(file).length).toBeGreaterThan(500)
})

test('of several nodes the first that responds is used', async () => {
  const gone = await startNode()
  await new Promise((resolve) => gone.server.close(resolve))
  const { document } = await backUp({ nodes: [`127.0.0.1:${gone.port}`, `127.0.0.1:${node.port}`] })
  expect(document['node']).toBe(`127.0.0.1:${node.port}`)
  await expect(backUp({ nodes: [`127.0.0.1:${gone.port}`], overwrite: true })).rejects.toThrow(failure(`${gone.port}`))
})

const member = (id: string, host: string, change = {}) => ({
  ...{ id, role: 'follower' as const, voter: true, health: 'active' as const, match_index: 5, lag_entries: 0 },
  ...{ lag_seconds: 0, host, ...change },
})

test('a leader is spared: its first healthy follower of the same cluster is used', async () => {
  const follower = await startNode('127.0.0.2', node.port)
  follower.info = { ...INFO, node_id: 'n4' }
  const members = [
    member('n1', '127.0.0.2', { role: 'leader' }),
    member('n2', '127.0.0.2', { health: 'inactive' }),
    member('n3', ''),
    // The address of n4.
    member('n5', '127.0.0.2'),
    member('n4', '127.0.0.2'),
  ]
  node.status = () => clustered({ ...INFO, nodes: members })

  const { document } = await backUp()

  expect(document['node']).toBe('n4')
  expect(follower.requests.slice(0, 2)).toEqual(['GET /cluster/info', 'GET /cluster/info'])
  expect(node.requests).toEqual(['GET /status'])
})

test('without a usable follower, or when it follows itself, the named node is used', async () => {
  node.status = () => clustered({ ...INFO, nodes: [member('n2', '127.0.0.3')] })
  expect((await backUp()).document['node']).toBe('n1')
  expect(written.join('')).toContain('n2 skipped: ')
  const follower = await startNode('127.0.0.2', node.port)
  follower.info = { ...INFO, node_id: 'n2', cluster_id: 'other' }
  node.status = () => clustered({ ...INFO, nodes: [member('n2', '127.0.0.2')] })
  expect((await backUp({ overwrite: true })).document['node']).toBe('n1')
  node.status = () => clustered({ ...INFO, leader_id: 'n2', nodes: [member('n2', '127.0.0.2')] })
  const before = follower.requests.length
  expect((await backUp({ overwrite: true })).document['node']).toBe('n1')
  expect(follower.requests.length).toBe(before)
})

test('a snapshot that is too old is requested once, also after one that was running', async () => {
  let looks = 0
  node.status = () => {
    looks++
    const last_index = looks < 5 ? 4 : 5
    return { ...STATUS, snapshot: { ...SNAPSHOT, last_index }, snapshot_running: looks < 4 }
  }
  await backUp()
  expect(node.requests.filter((path) => path === 'POST /save-snapshot')).toEqual(['POST /save-snapshot'])
})

test.each<[string, Partial<NodeStatus>, string]>([
  ['without its data', { replica: null }, 'has not loaded its data'],
  ['with a full disk', { snapshot: null, disk: { free_bytes: 0, full: true } }, 'is full: no snapshot can be written'],
  ['that writes no snapshot', { snapshot: null }, 'wrote no snapshot of entry 5 within 0.3 s'],
])('a node %s makes no backup', async (_, change, reason) => {
  node.status = () => ({ ...STATUS, ...change })
  await expect(backUp({ waitSecs: 0.3 })).rejects.toThrow(failure(new RegExp(reason)))
  expect(readdirSync(folder)).toEqual([])
})

test('a chunk that does not match its digest is refused, and no file is left', async () => {
  node.serve = (path, body) => {
    const damaged = Uint8Array.from(body)
    if (path === BACKUP_PATHS.chunk) damaged[20] = (damaged[20] ?? 0) ^ 1
    return { status: 200, body: damaged }
  }
  await expect(backUp()).rejects.toThrow(failure(/chunk [0-9a-f]{12} of 127.0.0.1:\d+ is damaged/))
  expect(readdirSync(folder)).toEqual([])
})

test('snapshots that are replaced while they are fetched are fetched again, three times in all', async () => {
  let missing = 2
  node.serve = (path, body) => ({ status: path === BACKUP_PATHS.chunk && missing-- > 0 ? 404 : 200, body })
  await backUp()
  expect(node.requests.filter((path) => path === 'GET /backup/manifest').length).toBe(3)
  missing = 3
  await expect(backUp({ overwrite: true })).rejects.toThrow(failure('replaced its snapshots 3 times'))
  expect(readdirSync(folder)).toEqual(['seed.snapshot'])
})
