/**
 * Foreign nodes and connections are refused, counted and logged, with real processes
 * (docs/design/protocol.md#peer-frames, docs/design/http.md#node-flags).
 */

import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { closeClient, getText, metric, openClient, somewhere, statusOf, succeed } from '@vacancy/testkit/node'
import {
  becomes,
  certs,
  healthOf,
  leaderOf,
  openShard,
  PORTS,
  postText,
  type Service,
  type Shard,
  type ShardNode,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { createAuthority, createNodeCertificate } from '../cli/certificates.ts'
import { createEnv } from '../env.ts'
import { encodeFrame, PROTOCOL_VERSION } from '../transport/frames.ts'
import { openTlsTransport } from '../transport/tls-transport.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

let shard: Shard
let registry: Service
let nodes: ShardNode[]

beforeAll(async () => {
  shard = await openShard({ tls: true })
  registry = shard.startRegistry()
  shard.startResolver()
  nodes = shard.voters.map((voter) => shard.start(voter))
  const leader = await leaderOf(shard)
  const client = await openClient(leader)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  closeClient(client)
})
afterAll(() => shard.close())
beforeEach(async () => void (await leaderOf(shard, nodes)))

const rejections = async (node: ShardNode): Promise<Record<string, number>> =>
  (await statusOf(node)).cluster?.connections_rejected ?? {}

/** A member counts and logs the refusal. */
async function isRefused(reason: string, message: string): Promise<void> {
  await happens(`a member refuses for ${reason}: ${message}`, nodes, async () => {
    for (const node of nodes) {
      const counts = await rejections(node)
      if ((counts[reason] ?? 0) > 0 && node.output().includes(message)) return true
    }
    return undefined
  })
}

async function endsWith(node: ShardNode, code: number, message: string): Promise<void> {
  const ended = await node.ended
  expect(node.output()).toContain(message)
  expect(ended).toEqual({ code, signal: null })
}

const pair = (name: string) => ({
  cert: readFileSync(join(shard.certificates, `${name}.pem`), 'utf8'),
  key: readFileSync(join(shard.certificates, `${name}.key`), 'utf8'),
})
const write = (name: string, { cert, key }: { cert: string; key: string }) => {
  writeFileSync(join(shard.certificates, `${name}.pem`), cert)
  writeFileSync(join(shard.certificates, `${name}.key`), key)
}
const authorityOf = () => ({
  cert: readFileSync(join(shard.certificates, 'ca.pem'), 'utf8'),
  key: readFileSync(join(shard.certificates, 'ca.key'), 'utf8'),
})
const material = (own: { cert: string; key: string }, clientCa: string) => ({
  ...own,
  clientCa,
  notBeforeMs: 0,
  notAfterMs: 0,
  fingerprint: '',
})
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

test('a node with the certificate of another node, or one of a foreign authority, does not start', async () => {
  await endsWith(shard.start('node-4', { certificate: 'node-5' }), 64, 'the certificate is that of node node-5')

  const other = await createAuthority({ nowMs: Date.now(), days: 5 })
  write('stranger', await createNodeCertificate(other, { node: 'node-4', hosts: [], nowMs: Date.now(), days: 5 }))
  await endsWith(shard.start('node-4', { certificate: 'stranger' }), 64, 'was not issued by the cluster authority')
})

test('an expired certificate and one of another authority are refused by the members', async () => {
  const authority = authorityOf()
  const day = 86_400_000
  const expired = await createNodeCertificate(authority, {
    node: 'node-4',
    hosts: [],
    nowMs: Date.now() - 9 * day,
    days: 5,
  })
  const other = await createAuthority({ nowMs: Date.now(), days: 5 })
  const foreign = await createNodeCertificate(other, { node: 'node-4', hosts: [], nowMs: Date.now(), days: 5 })
  // Either of two processes without mutual trust may close first. If the caller does, the member sees no reason.
  const refusals = async () => {
    const { certificate = 0, tls = 0, peerClosed = 0 } = await rejections(nodes[0] as ShardNode)
    return certificate + tls + peerClosed
  }
  const opened: string[] = []
  for (const { own, ca } of [
    { own: expired, ca: authority.cert },
    { own: foreign, ca: other.cert },
  ]) {
    const before = await refusals()
    const transport = await openTlsTransport({
      env: createEnv(silent),
      node: 'node-4',
      host: shard.host('node-4'),
      port: 0,
      tls: material(own, ca),
      addressOf: async (node) => ({ host: shard.host(node), port: PORTS.quic }),
    })({ onFrame: (peer) => opened.push(peer), onOpen: (peer) => opened.push(peer), onClosed: () => {} })
    transport.setPeers(['node-1'])
    await happens('it is refused', nodes, async () => (await refusals()) > before)
    await transport.close()
  }
  expect(opened).toEqual([])
})

test('random bytes on the port between nodes change nothing', async () => {
  const [node] = nodes as [ShardNode]
  // Some random bytes look like the start of a handshake. The caller then leaves, which counts as a refusal.
  const refusals = async () => Object.values(await rejections(node)).reduce((sum, count) => sum + count, 0)
  const before = await refusals()
  for (let i = 0; i < 10; i++) {
    const socket = connectTcp({ host: node.host, port: node.quicPort })
    socket.on('error', () => {})
    // Reads the replies: a socket with unread data never closes.
    socket.resume()
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.end(Buffer.from(crypto.getRandomValues(new Uint8Array(2_000))))
    await new Promise((resolve) => socket.once('close', resolve))
  }
  await happens('they are counted', [node], async () => (await refusals()) >= before + 10)
  expect(await metric(node, 'cluster_connection_rejected_total')).toBeGreaterThanOrEqual(10)
  expect(await healthOf(node)).not.toBe('unavailable')
})

test('frames of another version, cluster and codec list are refused', async () => {
  const { cert, key } = pair('node-4')
  const transport = await openTlsTransport({
    env: createEnv(silent),
    node: 'node-4',
    host: shard.host('node-4'),
    port: 0,
    tls: material({ cert, key }, authorityOf().cert),
    addressOf: async (node) => ({ host: shard.host(node), port: PORTS.quic }),
  })({ onFrame: () => {}, onOpen: () => {}, onClosed: () => {} })
  transport.setPeers(['node-1', 'node-2', 'node-3'])
  const common = {
    version: PROTOCOL_VERSION,
    clusterId: new Uint8Array(16),
    genesis: new Uint8Array(16),
    codecHash: new Uint8Array(8),
  }
  const frame = { type: 'chunkMissing', id: 1, digest: '00'.repeat(32) } as const
  const cases: [Uint8Array, string, string][] = [
    [encodeFrame({ ...common, version: PROTOCOL_VERSION + 1 }, frame), 'version', 'another version'],
    [encodeFrame({ ...common, clusterId: new Uint8Array(16).fill(7) }, frame), 'cluster', 'another cluster'],
    [
      encodeFrame({ ...common, genesis: new Uint8Array(16).fill(7) }, frame),
      'genesis',
      'this shard before it was restored',
    ],
    [encodeFrame(common, frame), 'codecs', 'its codec list differs'],
  ]
  for (const [bytes, reason, message] of cases) {
    await happens('the frame is sent', nodes, () => transport.send('node-1', 'control', bytes))
    await isRefused(reason, message)
  }
  await transport.close()
})

test('a node of another shard, a folder of another node, an id that is taken', async () => {
  // The members may take it for the previous process of node-2 for a while, so this takes the longest.
  const duplicate = shard.start('node-5', {
    id: 'node-2',
    certificate: 'node-2',
    dataDir: join(shard.folder, 'duplicate'),
  })
  const foreign = shard.start('node-4', { shardId: 'shard-2' })
  await isRefused('formation', 'it belongs to shard shard-2')
  await happens('it waits', [foreign], async () =>
    (await getText(foreign, '/ready'))[1].includes('initial voters report'),
  )
  await foreign.kill()
  rmSync(foreign.dataDir, { recursive: true })

  const [first] = nodes as [ShardNode]
  cpSync(first.dataDir, shard.dataDir('node-4'), { recursive: true })
  rmSync(join(shard.dataDir('node-4'), 'LOCK'), { force: true })
  await endsWith(shard.start('node-4'), 65, 'belongs to node node-1, not to node-4')

  await endsWith(duplicate, 65, 'give each node an id of its own')
  const inUse = shard.start('node-5', { id: 'node-2', certificate: 'node-2', dataDir: shard.dataDir('node-2') })
  await endsWith(inUse, 65, 'is in use')
})

test('a certificate is replaced without a restart', async () => {
  const [first] = nodes as [ShardNode]
  const expires = () => metric(first, 'tls_cert_not_after_seconds')
  const before = await expires()
  const made = ['--node-id', 'node-1', '--out', shard.certificates]
  await certs(['node', '--ca', shard.certificates, ...made, '--force', '--days', '5'])
  expect(await postText(first, '/tls-rotate')).toEqual([202, '{"message":"certificate rotation started"}'])
  await happens('the new one is in force', [first], async () => (await expires()) < before)

  const inForce = await expires()
  const own = pair('node-1')
  write('node-1', pair('node-2'))
  const [status, text] = await postText(first, '/tls-rotate')
  expect(status).toBe(500)
  expect(text).toContain('the certificate is that of node node-2, not of node-1')
  expect(await expires()).toBe(inForce)
  write('node-1', own)
})

test('a registry that is away, restarted empty, or serves another codec list', async () => {
  await registry.kill()
  const leader = await leaderOf(shard, nodes)
  const at = nodes.findIndex((node) => node !== leader)
  const follower = () => nodes[at] as ShardNode
  await happens('all nodes report it', nodes, async () =>
    (await getText(leader, '/ready'))[1].includes('registry_unreachable'),
  )
  await follower().stop()
  nodes[at] = shard.start(follower().name)
  await becomes(follower(), 'active_follower')

  for (const name of readdirSync(shard.folder).filter((name) => name.startsWith('registry-state')))
    rmSync(join(shard.folder, name))
  registry = shard.startRegistry()
  await happens('the segments are there again', nodes, async () => {
    const response = await fetch(`${registry.url}/shards/shard-1/segments`)
    return response.ok && (await response.text()).includes('alpine')
  })

  await registry.kill()
  registry = shard.startRegistry(['late_checkout'])
  await happens('all see the other list', nodes, async () => {
    const seen = await Promise.all(nodes.map(async (node) => (await statusOf(node)).cluster?.registry?.codec_mismatch))
    return seen.every((mismatch) => typeof mismatch === 'string')
  })
  await leaderOf(shard, nodes)
  await follower().stop()
  await endsWith(shard.start(follower().name), 65, 'another codec list')

  await registry.kill()
  registry = shard.startRegistry()
  nodes[at] = shard.start(follower().name)
  await leaderOf(shard, nodes)
})
