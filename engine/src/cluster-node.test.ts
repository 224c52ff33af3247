/** The main-thread part of a member: what it reports to the registry, how requests find their answers, and what it knows before its replica reports. */

import { writeFileSync } from 'node:fs'
import { createCodecList } from '@vacancy/shared'
import type * as Shared from '@vacancy/shared/node'
import { temporaryFolder } from '@vacancy/testkit/node'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ToReplica } from './cluster/messages.ts'
import { type ClusterNodeOptions, codecsOfRegistry, openShard, type ShardParts } from './cluster-node.ts'
import { createCluster, openDataDirectory, writeCluster } from './data/data-directory.ts'
import { createEnv } from './env.ts'
import type { createPuller, PullParts } from './http/snapshot-download.ts'
import type { createRegistryLink, RegistryLink, RegistryOptions } from './registry/registry.ts'
import type { BootstrapStatus, ClusterStatus, ResolverStatus } from './status.ts'
import { FOLLOWING, LEADING, REGISTRY } from './testing/fake-handle.ts'

const CODECS = createCodecList(['breakfast', 'wifi'])
const SELF = { nodeId: 'n1', shardId: 's1', zoneId: 'z1' }
const OPTIONS: ClusterNodeOptions = {
  zoneId: 'z1',
  initialVoters: ['n3', 'n1', 'n2'],
  seeds: ['n2', 'n0', 'n1'],
  formWithMajority: false,
  host: '127.0.0.1',
  tls: undefined,
  registry: { url: 'http://r1:8080,http://r2:8080', tokenFile: '/token', caFile: '/ca' },
  resolver: { url: 'http://resolver', tokenFile: undefined },
}
const silent = { debug() {}, info() {}, warn() {}, error() {} } as unknown as ShardParts['log']

const seen = vi.hoisted(() => ({
  events: [] as string[],
  callers: [] as object[],
  nowMs: 0,
  options: undefined as unknown,
  puller: undefined as unknown,
  stored: undefined as unknown,
}))

vi.mock('@vacancy/shared/node', async (original) => ({
  ...(await original<typeof Shared>()),
  openHttpCaller(options: object) {
    seen.callers.push(options)
    return { request: () => () => undefined, close: () => void seen.events.push('close') }
  },
}))
vi.mock('./registry/registry.ts', () => ({
  createRegistryLink: ((_, options) => {
    seen.options = options
    const link: RegistryLink = {
      takeCodecs(stored, done) {
        seen.stored = stored
        done(CODECS, 'registry')
      },
      watchCodecs: ({ names }) => void seen.events.push(`watch ${names.join()}`),
      start: () => void seen.events.push('start'),
      roleChanged: () => void seen.events.push('role'),
      segmentsChanged: () => void seen.events.push('segments'),
      status: () => REGISTRY,
      stop(done) {
        seen.events.push('deregister')
        done()
      },
    }
    return link
  }) satisfies typeof createRegistryLink,
}))
vi.mock('./http/snapshot-download.ts', () => ({
  createPuller: ((parts) => {
    seen.puller = parts
    return {
      start: () => ({ status: 202, text: 'begun' }),
      status: () => undefined,
      stop: async () => void seen.events.push('end download'),
    }
  }) satisfies typeof createPuller,
}))

const registered = () => seen.options as RegistryOptions
const pulling = () => seen.puller as PullParts

beforeEach(() => {
  Object.assign(seen, { events: [], callers: [], nowMs: 100_000, options: undefined, stored: undefined })
  vi.spyOn(performance, 'now').mockImplementation(() => seen.nowMs)
})
afterEach(() => vi.restoreAllMocks())

function open(differs: Partial<ShardParts> = {}) {
  const sent: ToReplica[] = []
  const shard = openShard({
    ...{ options: OPTIONS, self: SELF, codecs: CODECS, heartbeatMs: 7_000, apiUrl: 'http://a:1', log: silent },
    ...{ send: (message) => void sent.push(message), health: () => 'active_leader', isLoaded: () => true },
    ...{ segments: () => [{ name: 'paris', properties: 2 }], apiScheme: 'https', apiPort: () => 8_443 },
    ...{ dataDir: '/data', loadUrls: 'https' },
    ...differs,
  })
  const report = (status: Partial<ClusterStatus> = {}, resolver?: ResolverStatus) =>
    shard.onReplica({ type: 'cluster', status: { ...LEADING, ...status }, resolver })
  return { shard, sent, report }
}

test('the registry gets the addresses, the names and the start of this node', () => {
  open()
  expect(seen.callers).toEqual([{ tokenFile: '/token', caFile: '/ca', name: 'registry', log: silent }])
  expect(registered()).toMatchObject({
    ...{ addresses: ['http://r1:8080', 'http://r2:8080'], node: 'n1', shard: 's1', zone: 'z1' },
    ...{ heartbeatMs: 7_000, apiUrl: 'http://a:1', startedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
  })
  const { instance } = registered()
  expect(instance).toMatch(/^[0-9a-f]{32}$/)
  open()
  expect(registered().instance).not.toBe(instance)
  expect(seen.events).toEqual(['watch breakfast,wifi', 'watch breakfast,wifi'])
})

test('before its replica reports, a node has no role and would dial the other voters and seeds', () => {
  const { shard } = open()
  const info = shard.handle.info()

  expect(registered().report()).toMatchObject({
    ...{ health: 'active_leader', role: undefined, term: 0, leader: undefined, mayPublish: false },
  })
  expect(info).toMatchObject({
    ...{ nodeId: 'n1', zoneId: 'z1', clusterId: '', role: 'follower', term: 0, leader: '', members: [] },
    ...{ peers: ['n0', 'n2', 'n3'], isLeading: false, isJoint: false, isRemoved: false, isClockSuspect: false },
    ...{ leaderChanges: 0, tickStalls: 0, lastOperations: [], proposals: {}, elections: {}, operationsEnded: {} },
  })
  expect(Object.values(info.transport).filter((value) => value !== 0)).toEqual([{}])
  expect(Object.values(info.transfers).filter((value) => value !== 0)).toEqual([undefined, undefined, undefined])
  expect([shard.handle.leaderUrl(), shard.handle.resolver()]).toEqual(['', undefined])
})

test.each<[string, Partial<ClusterStatus>, boolean, object]>([
  ['a leader', {}, true, { role: 'leader', term: 3, leader: 'n1', mayPublish: true }],
  ['a leader that loads', {}, false, { role: 'leader', term: 3, leader: 'n1', mayPublish: false }],
  ['a follower', FOLLOWING, true, { role: 'follower', term: 3, leader: 'n1', mayPublish: false }],
  ['a candidate', { role: 'candidate', leader: '', isLeading: false }, true, { role: undefined, leader: undefined }],
  ['a node without members', { members: [] }, true, { role: undefined, leader: 'n1' }],
  ['a leader of a new term', { isLeading: false, term: 9 }, true, { role: 'leader', term: 9, mayPublish: false }],
])('%s reports to the registry', (_, status, isLoaded, reported) => {
  const { report } = open({ isLoaded: () => isLoaded })
  report(status)
  expect(registered().report()).toMatchObject(reported)
  expect(registered().report().segments()).toEqual([{ name: 'paris', properties: 2 }])
})

test.each<[string, Partial<ClusterStatus>, boolean]>([
  ['the same', {}, false],
  ['another role', { role: 'follower' }, true],
  ['another term', { term: 4 }, true],
  ['no lead yet', { isLeading: false }, true],
  ['another number of stalls', { tickStalls: 9 }, false],
])('a report with %s is a change of roles for the registry: %s', (_, change, isChange) => {
  const { report } = open()
  report()
  seen.events.length = 0
  report(change)
  expect(seen.events.includes('role')).toBe(isChange)
})

test('a leader compares its segments at most every two seconds, and another node never', () => {
  const { report } = open()
  const comparedAfter = (ms: number, status: Partial<ClusterStatus> = {}) => {
    seen.nowMs += ms
    seen.events.length = 0
    report(status)
    return seen.events.includes('segments')
  }
  const found = [comparedAfter(0), comparedAfter(1_999), comparedAfter(1), comparedAfter(1_999), comparedAfter(2_000)]
  expect(found).toEqual([true, false, true, false, true])
  expect([comparedAfter(9_000, FOLLOWING), comparedAfter(0)]).toEqual([false, true])
})

test('each request has its own number, and gets the answer with that number once', async () => {
  const { shard, sent } = open()
  const first = shard.handle.request({ kind: 'load', file: '/a' })
  const second = shard.handle.request({ kind: 'load', file: '/b' })
  expect(sent).toEqual([
    { type: 'admin-request', id: 1, what: { kind: 'load', file: '/a' } },
    { type: 'admin-request', id: 2, what: { kind: 'load', file: '/b' } },
  ])
  shard.onReplica({ type: 'admin-reply', id: 2, answer: { status: 202, text: 'second' } })
  shard.onReplica({ type: 'admin-reply', id: 2, answer: { status: 404, text: 'again' } })
  shard.onReplica({ type: 'admin-reply', id: 1, answer: { status: 409, text: 'first' } })
  shard.onReplica({ type: 'admin-reply', id: 7, answer: { status: 404, text: 'unknown' } })
  expect([await first, await second]).toEqual([
    { status: 409, text: 'first' },
    { status: 202, text: 'second' },
  ])
  expect(shard.handle.info().members).toEqual([])
  shard.handle.setPeers(['n8', 'n9'])
  expect(sent[2]).toEqual({ type: 'dial', nodes: ['n8', 'n9'] })
})

test.each([
  ['127.0.0.1', 'https://127.0.0.1:8443'],
  ['node-1.example', 'https://node-1.example:8443'],
  ['::1', 'https://[::1]:8443'],
  ['', ''],
])('the leader at %j is reached at %j', (host, url) => {
  const { shard, report } = open()
  report({
    members: LEADING.members.map((member) => (member.id === 'n1' ? { ...member, host } : { ...member, host: 'x' })),
  })
  expect(shard.handle.leaderUrl()).toBe(url)
  report({ leader: '' })
  expect(shard.handle.leaderUrl()).toBe('')
})

test('a waiting node is seen by downloads, and is a member once it has members', () => {
  const { shard, report } = open()
  const waiting: BootstrapStatus = { waitsFor: 'voters', why: 'n2 is missing', needed: 2, voters: [] }
  expect(pulling()).toMatchObject({ dataDir: '/data', shardId: 's1', codecs: CODECS, urls: 'https' })
  expect(pulling().wallMs()).toBeGreaterThan(1_700_000_000_000)
  expect([pulling().waiting(), pulling().isMember()]).toEqual([undefined, false])
  shard.onReplica({ type: 'bootstrap', status: waiting })
  expect([pulling().waiting(), pulling().isMember(), shard.handle.info().nodeId]).toEqual([waiting, false, 'n1'])
  const resolver = { isReachable: true } as unknown as ResolverStatus
  report({}, resolver)
  expect([pulling().waiting(), pulling().isMember(), shard.handle.resolver()]).toEqual([undefined, true, resolver])
  expect(shard.handle.info()).toEqual(LEADING)
  expect([shard.handle.registry(), shard.handle.pulled()]).toEqual([REGISTRY, undefined])
  expect(shard.handle.pull({ url: 'http://x', digest: 'a' })).toEqual({ status: 202, text: 'begun' })
})

test('a stop ends the download, deregisters, and closes the connection, in this order', async () => {
  const { shard } = open()
  shard.start()
  await shard.stop()
  expect(seen.events).toEqual(['watch breakfast,wifi', 'start', 'end download', 'deregister', 'close'])
})

test('a start takes the codec list with that of its data as the stored one, and closes the connection', async () => {
  const dataDir = temporaryFolder()
  expect(await codecsOfRegistry(OPTIONS, SELF, dataDir, silent)).toBe(CODECS)
  expect([seen.stored, seen.events]).toEqual([undefined, ['close']])
  expect(registered()).toMatchObject({ heartbeatMs: 10_000, node: 'n1' })
  expect(registered().report()).toEqual({
    ...{ health: 'unavailable', role: undefined, term: 0, leader: undefined, mayPublish: false },
    segments: expect.any(Function),
  })
  expect(registered().report().segments()).toEqual([])

  const directory = openDataDirectory(createEnv(silent), dataDir, { nodeId: 'n1' })
  const base = { index: 1, term: 1 }
  const genesis = { shardId: 's1', codecs: createCodecList(['sauna']), base, snapshotDigest: '', voters: ['n1'] }
  writeCluster(
    directory,
    createCluster(genesis, () => new Uint8Array(32)),
  )
  await codecsOfRegistry(OPTIONS, SELF, dataDir, silent)
  expect(seen.stored).toMatchObject({ names: ['sauna'] })
})

test('a damaged folder has no stored list, and recovery reports it; any other failure is not hidden', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(`${dataDir}/CLUSTER`, 'damaged')
  expect(await codecsOfRegistry(OPTIONS, SELF, dataDir, silent)).toBe(CODECS)
  expect(seen.stored).toBeUndefined()

  await expect(codecsOfRegistry(OPTIONS, SELF, `${dataDir}/a\0b`, silent)).rejects.toThrow(/null bytes/)
})
