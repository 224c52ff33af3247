/** The environment of a member's replica with a transport and a member of the test: what it opens, counts, finds and hands over. */

import { createCodecList, turnableClock, VacancyError } from '@vacancy/shared'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Member, MemberParts } from '../cluster/member-state.ts'
import type { ClusterOptions, FromReplica, ReplicaOptions } from '../cluster/messages.ts'
import type { Replica } from '../cluster/replica-state.ts'
import type { RecoveredNode } from '../data/recovery-parts.ts'
import type { Env } from '../env.ts'
import { STATE } from '../store/layout.ts'
import type { Peers } from '../transport/peers.ts'
import type { startBootstrap, startJoining } from './bootstrap.ts'
import { openShardPart } from './member-runtime.ts'

const made = vi.hoisted(() => ({
  calls: [] as string[],
  transport: undefined as unknown,
  parts: undefined as unknown,
  options: undefined as unknown,
  bootstrap: undefined as unknown,
  joining: undefined as unknown,
  fits: true,
  reader: undefined as unknown,
  budgets: [] as unknown[],
  state: [0, 0, 0, 0],
  member: { replica: { raft: { role: 'leader', transferTarget: 0, applied: 9 } }, reads: 'reads', sender: 'sender' },
}))

const note = (text: string) => void made.calls.push(text)

vi.mock('../transport/tls-transport.ts', () => ({
  openTlsTransport: (options: unknown) => async () => {
    made.transport = options
    const stream = (n: number) => ({ framesOut: n, framesIn: 2 * n, bytesOut: 3 * n, bytesIn: 4 * n, dropped: 5 * n })
    return {
      close: async () => note('close transport'),
      setPeers: () => undefined,
      send: () => true,
      counters: () => ({
        ...{ opened: 3, accepted: 4, refused: { certificate: 2, checksum: 1, length: 10, version: 0 } },
        ...{ failed: { timeout: 5, refused: 6 }, lost: { checksum: 100, length: 1_000, silence: 7 } },
        streams: { control: stream(1), log: stream(10), bulk: stream(100) },
      }),
    }
  },
}))
vi.mock('../cluster/member.ts', () => ({
  createMember(parts: unknown, options: unknown) {
    Object.assign(made, { parts, options })
    return made.member
  },
  handOverAtEnd() {
    note('hand over')
    return made.member.replica.raft.transferTarget !== 0
  },
  onSwitched: () => note('switched'),
  stopMember: () => note('stop member'),
}))
vi.mock('../cluster/member-state.ts', () => ({ publishFacts: () => note('publish') }))
vi.mock('../cluster/member-status.ts', () => ({ clusterStatus: () => 'the status' }))
vi.mock('../cluster/admin.ts', () => ({
  requestAdmin: (_: unknown, what: { kind: string }) => note(`admin ${what.kind}`),
}))
vi.mock('../cluster/reads.ts', () => ({
  requestReads: (reads: string, sink: number, batch: Float64Array) => note(`${reads} ${sink} ${batch.length}`),
}))
vi.mock('../cluster/shared-status.ts', () => ({ attachCells: () => 'cells' }))
vi.mock('../cluster/transfer.ts', () => ({
  exchangeOverPort: (post: (id: number, request: unknown) => void) => ({
    exchange: () => post(5, 'a request'),
    onExchanged: (id: number, answer: unknown) => note(`exchanged ${id} ${answer}`),
  }),
  pinnedBy: (sender: string) => [sender.length],
}))
vi.mock('../data/data-directory.ts', async (original) => ({
  ...(await original<object>()),
  noteVoter: (directory: string) => note(`voter ${directory}`),
}))
vi.mock('../snapshot/load.ts', async (original) => ({
  ...(await original<object>()),
  readSeedFile: () => made.reader,
  readSnapshotDir: (_: unknown, path: string, chunks: string) => `${path} ${chunks}`,
  openSnapshot(_: unknown, head: string) {
    if (made.reader instanceof Error) throw made.reader
    return head
  },
}))
vi.mock('../snapshot/snapshot.ts', async (original) => ({
  ...(await original<object>()),
  foreignness: () => (made.fits ? undefined : new Error('foreign')),
}))
vi.mock('../snapshot/replace.ts', () => {
  const replace =
    (name: string) => (_: unknown, __: unknown, reader: string, ___: unknown, done: (error?: unknown) => void) => {
      note(`${name} ${reader}`)
      done(made.fits ? undefined : new VacancyError('no_room', { directory: 'x' }))
    }
  return {
    memoryTooSmall(...given: unknown[]) {
      made.budgets.push(given.slice(2))
      return made.fits ? undefined : new VacancyError('no_room', { directory: 'memory' })
    },
    pooledDecoder: () => 'decoder',
    replaceData: replace('load'),
    replaceStore: replace('switch'),
  }
})
vi.mock('../snapshot/words-pool.ts', () => ({
  createWordsPool: (threads: number) => note(`pool of ${threads}`),
  closeWordsPool: async () => note('close pool'),
}))
vi.mock('../store/store.ts', async (original) => ({
  ...(await original<object>()),
  state: (_: unknown, cell: number) => made.state[cell - STATE.genesis],
}))
vi.mock('../store/charge.ts', async (original) => ({ ...(await original<object>()), memoryBudgetOf: () => 77 }))
vi.mock('./bootstrap.ts', () => ({
  startBootstrap: (...given: unknown[]) => void Object.assign(made, { bootstrap: given }),
  startJoining: (...given: unknown[]) => void Object.assign(made, { joining: given }),
}))

const OPTIONS = {
  ...{ dataDir: '/data', shardId: 's1', nodeId: 'n1', codecs: ['wifi'], memoryBytes: 800, readers: 3, loadThreads: 8 },
  sessionBytesMax: 55,
} as unknown as ReplicaOptions
const CLUSTER = {
  ...{ zoneId: 'z1', initialVoters: ['n1', 'n2'], seeds: ['n3'], formWithMajority: false, tickMs: 30 },
  ...{ electionTicks: 60, heartbeatTicks: 15, host: '127.0.0.1', port: 7, tls: undefined, requireNodeId: undefined },
  ...{ resolver: { url: 'http://resolver:1', tokenFile: undefined }, apiHost: 'me', apiPort: 8_080 },
  cells: new SharedArrayBuffer(8),
} as ClusterOptions
const CLUSTER_ID = '0123456789abcdef0123456789abcdef'
const HEX_16 = 'ab'.repeat(16)

beforeEach(() => {
  Object.assign(made, {
    calls: [],
    bootstrap: undefined,
    joining: undefined,
    fits: true,
    reader: undefined,
    budgets: [],
  })
  made.member.replica.raft.transferTarget = 0
  made.member.replica.raft.role = 'leader'
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => void vi.useRealTimers())

async function open() {
  const sent: FromReplica[] = []
  const toBulk: object[] = []
  const files = new Set<string>()
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const env = {
    ...{ clock: turnableClock(1_000_000), log, disk: { stat: (path: string) => files.has(path) || undefined } },
    random: { bytes: () => Uint8Array.of(0, 0, 1, 44) },
    schedule: { after: () => () => undefined },
  } as unknown as Env
  const part = await openShardPart(env, OPTIONS, CLUSTER, (message) => void sent.push(message))
  const replica = { raft: made.member.replica.raft } as unknown as Replica
  const join = (node = nodeOf()) => part.join(node, replica, (message) => void toBulk.push(message))
  return { part, sent, toBulk, files, replica, join }
}

/** A node with data; its members are those with these incarnations. */
function nodeOf(raft: object = {}, members: readonly object[] = []): RecoveredNode {
  return {
    ...{ directory: { identity: { nodeId: 'n1', incarnation: HEX_16 } }, shardId: 's1' },
    store: { memory: 'memory' },
    context: { marks: [1, 2], newestMark: 1, loaded: 'before' },
    cluster: { clusterId: CLUSTER_ID, baseIndex: 5, baseTerm: 1, voters: ['n1', 'n2'] },
    raft: { term: 1, vote: 0, lastIndex: 5, applied: 5, configuration: { members }, ...raft },
  } as unknown as RecoveredNode
}

const peersOf = () => (made.bootstrap ?? made.joining) as Parameters<typeof startBootstrap>
const partsOf = () => made.parts as MemberParts

test('the listener has the address of this node, and a second process with its id ends it', async () => {
  const { sent } = await open()
  const { onDuplicate, ...options } = made.transport as { onDuplicate: (peer: string) => void }
  expect(options).toMatchObject({ node: 'n1', host: '127.0.0.1', port: 7, tls: undefined })
  onDuplicate('n2')
  expect(sent).toMatchObject([
    {
      type: 'failed',
      code: 'data_conflict',
      message: expect.stringContaining('n2 is connected to another process that runs as n1'),
    },
  ])
})

test('before the node is a member nothing is pinned or stopped, and the end closes the listener', async () => {
  const { part } = await open()
  expect(part.pinned()).toEqual([])
  part.freeze()
  part.reload()
  await part.close()
  expect(made.calls).toEqual(['close transport'])
  expect(() => part.sendStatus()).toThrow('the replica is a member')
})

test('a member passes requests on, and the end stops it', async () => {
  const { part, join, sent, toBulk } = await open()
  void part.takePart(nodeOf())
  expect(made.calls).toEqual([])
  join()
  part.request({ kind: 'transfer' } as never, () => undefined)
  part.requestReads(4, new Float64Array(3))
  part.onExchanged(6, 'done' as never)
  part.handOver()
  part.dial(['n9'])
  part.sendStatus()
  part.freeze()
  ;(partsOf().exchange as unknown as () => void)()
  expect(made.calls).toEqual([
    ...['publish', 'admin transfer', 'reads 4 3', 'exchanged 6 done', 'hand over', 'stop member'],
  ])
  expect([part.pinned(), (made.member as unknown as Member).dialled]).toEqual([[6], ['n9']])
  expect(toBulk).toEqual([{ type: 'exchange', id: 5, ask: 'a request' }])
  const resolver = { address: 'http://resolver:1', durations: {}, errors: { node: 0 }, error: '' }
  expect(sent).toEqual([{ type: 'cluster', status: 'the status', resolver }])
  partsOf().onRole()
  expect(sent[1]).toEqual(sent[0])
  made.calls.length = 0
  await part.close()
  expect(made.calls).toEqual(['stop member', 'close transport'])
  expect(made.options).toMatchObject({
    ...{ node: 'n1', incarnation: HEX_16, zoneId: 'z1', tickMs: 30, electionTicks: 60, heartbeatTicks: 15 },
    ...{ initialVoters: ['n1', 'n2'], seeds: ['n3'], sessionBytesMax: 55, memoryBudget: 77 },
  })
})

test('the counts of the transport are sums over its streams, and refusals include those of frames', async () => {
  const { part, join } = await open()
  void part.takePart(nodeOf())
  peersOf()[1].refused['formation'] = 8
  join()
  expect(partsOf().transportCounts()).toEqual({
    ...{ opened: 3, accepted: 4, rejected: { certificate: 2, checksum: 1, length: 10, formation: 8 }, errors: 11 },
    ...{ dropped: 1_107, messagesSent: 111, messagesReceived: 222, bytesSent: 333, bytesReceived: 444 },
    ...{ sendErrors: 555, receiveErrors: 1_111 },
  })
})

test('a leader that leaves waits for its successor, at most one election timeout', async () => {
  const { part, join } = await open()
  void part.takePart(nodeOf())
  join()
  const { raft } = made.member.replica
  let left = 0
  const leave = () => part.leave().then(() => left++)
  await leave()
  expect(left).toBe(1)

  raft.transferTarget = 2
  const begun = leave()
  await vi.advanceTimersByTimeAsync(1_795)
  expect(left).toBe(1)
  await vi.advanceTimersByTimeAsync(10)
  await begun
  expect(left).toBe(2)

  for (const end of [{ role: 'follower' }, { transferTarget: 0 }]) {
    Object.assign(raft, { role: 'leader', transferTarget: 2 })
    const waiting = leave()
    await vi.advanceTimersByTimeAsync(20)
    const before = left
    Object.assign(raft, end)
    await vi.advanceTimersByTimeAsync(10)
    await waiting
    expect(left).toBe(before + 1)
  }
})

const DIRECTORY = { identity: { incarnation: HEX_16 } }

test('a node that looks for its shard reports twice a second why it waits, until the decision', async () => {
  const { part, sent } = await open()
  const holding = { directory: DIRECTORY, shardId: 's1', codecs: createCodecList(['wifi']), held: { state: 'empty' } }
  const found = part.found(holding as never)
  vi.advanceTimersByTime(499)
  expect(sent).toEqual([])
  vi.advanceTimersByTime(1)
  expect(sent.map(({ type }) => type)).toEqual(['phase', 'bootstrap'])
  expect(sent[0]).toMatchObject({ phase: 'forming', detail: expect.stringMatching(/./) })
  const [, , formation, seeds, onDecision] = peersOf()
  expect([formation.self, formation.shardId, seeds]).toEqual(['n1', 's1', ['n3']])
  onDecision({ kind: 'reread' } as never)
  expect(await found).toEqual({ kind: 'reread' })
  vi.advanceTimersByTime(5_000)
  expect(sent).toHaveLength(2)

  const again = part.found(holding as never)
  expect(peersOf()[2]).toBe(formation)
  peersOf()[4]({ kind: 'fail', error: new VacancyError('no_room', { directory: 'x' }) })
  await expect(again).rejects.toThrow(VacancyError)
})

test('a seed in the folder counts when it is complete and of this shard', async () => {
  const { part, files } = await open()
  void part.found({ directory: DIRECTORY, shardId: 's1', held: { state: 'empty' } } as never)
  const hasSeed = peersOf()[5] as () => boolean
  expect(hasSeed()).toBe(false)
  files.add('/data/seed.snapshot')
  expect(hasSeed()).toBe(true)
  made.fits = false
  expect(hasSeed()).toBe(false)
})

test('a node that is not a member waits to be admitted, and has the number that the shard gave it', async () => {
  const { part, sent } = await open()
  const taken = part.takePart(nodeOf({ vote: 2, applied: 6 }))
  vi.advanceTimersByTime(500)
  expect(sent).toMatchObject([
    { type: 'phase', phase: 'joining', detail: 'waiting for the leader to admit this node' },
    { type: 'bootstrap' },
  ])
  const [, peers, formation, seeds, onJoined] = made.joining as Parameters<typeof startJoining>
  expect(Buffer.from((peers as Peers).common.clusterId).toString('hex')).toBe(CLUSTER_ID)
  expect([formation.held, seeds]).toEqual([
    {
      ...{ state: 'formed', clusterId: CLUSTER_ID, digest: '', index: 5, term: 1, voters: ['n1', 'n2'] },
      ...{ isFounder: true, isUntouched: false, leader: '' },
    },
    ['n3'],
  ])
  const configuration = { members: ['of the reply'] } as never
  onJoined({ member: 4, configuration })
  const [config, raft] = await taken
  expect(config).toMatchObject({
    ...{ id: 4, electionTicks: 60, heartbeatTicks: 15, preVote: true, checkQuorum: true },
    ...{ stepDownOnRemoval: true, validateChanges: true },
  })
  expect([config.random(1_000), config.random(7)]).toEqual([300, 300 % 7])
  expect(raft).toMatchObject({ vote: 2, configuration })
  vi.advanceTimersByTime(5_000)
  expect(sent).toHaveLength(2)
})

test.each<[object, boolean]>([
  [{}, true],
  [{ term: 2 }, false],
  [{ vote: 1 }, false],
  [{ lastIndex: 6 }, false],
])('a formed node with the log %j is untouched: %s', async (raft, isUntouched) => {
  const { part } = await open()
  void part.takePart(nodeOf(raft))
  expect((made.joining as Parameters<typeof startJoining>)[2].held).toMatchObject({ isUntouched })
})

test('the genesis of a shard is that of its state after the founding snapshot, and zero up to it', async () => {
  made.state = [1, 2, 3, 0x04000000]
  const { part, join, replica } = await open()
  const genesis = (applied: number) => {
    replica.raft.applied = applied
    return [...partsOf().genesis()]
  }
  void part.takePart(nodeOf())
  join()
  expect(genesis(5)).toEqual(Array.from({ length: 16 }, () => 0))
  expect(genesis(6)).toEqual([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4])
})

test('packages need eight bytes each', async () => {
  const { part, join } = await open()
  void part.takePart(nodeOf())
  join()
  expect([partsOf().hasMemoryFor(99), partsOf().hasMemoryFor(100)]).toEqual([true, false])
})

test('this node has its own address, and another one that of the resolver', async () => {
  const { part, join } = await open()
  void part.takePart(nodeOf())
  join()
  expect([partsOf().hostOf('n1'), partsOf().hostOf('n2')]).toEqual(['me', ''])
})

test('a prepared snapshot replaces the store once, and forgets what was written before', async () => {
  const { part, join, replica, toBulk } = await open()
  const node = nodeOf()
  void part.takePart(node)
  join(node)
  const switchState = () => replica.switchState?.({} as never, () => note('done'))
  expect(switchState).toThrow('the snapshot to switch to was prepared')
  expect(partsOf().prepareSwitch('/new')).toBeUndefined()
  made.calls.length = 0
  switchState()
  expect(made.calls).toEqual([
    ...['pool of 3', expect.stringMatching(/^switch \/new \/data\//), 'close pool', 'done', 'switched'],
  ])
  expect([node.context, toBulk]).toEqual([{ marks: [], newestMark: undefined, loaded: '' }, [{ type: 'forget' }]])
  expect(made.budgets).toEqual([[8, 800, 0]])
  expect(switchState).toThrow('the snapshot to switch to was prepared')
})

test('a bulk load replaces the data, and a snapshot that does not fit is refused before', async () => {
  const { part, join, sent, toBulk } = await open()
  const node = nodeOf()
  void part.takePart(node)
  join(node)
  const { prepareSwitch } = partsOf()
  const bulkData = partsOf().bulkData as NonNullable<MemberParts['bulkData']>
  expect(bulkData.check('/new')).toBe('')
  made.calls.length = 0
  bulkData.replace('/new', 'digest', () => note('done'))
  expect(made.calls).toEqual(['pool of 3', expect.stringMatching(/^load \/new \/data\//), 'close pool', 'done'])
  expect([node.context.loaded, toBulk, sent]).toEqual(['digest', [{ type: 'forget' }], []])
  expect(made.budgets).toEqual([
    [8, 800, undefined],
    [8, 800, undefined],
  ])
  made.fits = false
  expect(bulkData.check('/new')).toContain('memory')
  expect(prepareSwitch('/new')).toBeInstanceOf(VacancyError)
  bulkData.replace('/new', 'digest', () => note('not done'))
  expect(sent).toMatchObject([{ type: 'failed', code: 'no_room' }])
  expect(made.calls).not.toContain('not done')
  made.reader = new Error('a defect')
  expect(() => bulkData.check('/new')).toThrow('a defect')
})

test('an old copy of the data ends the node with what to do', async () => {
  const { part, join, sent } = await open()
  void part.takePart(nodeOf())
  join()
  partsOf().onOldData?.(7, 9)
  expect(sent).toMatchObject([
    {
      ...{ type: 'failed', code: 'data_conflict' },
      message: expect.stringMatching(/\/data ends at entry 7, and node n1 has acknowledged entries up to 9.*--rejoin/),
    },
  ])
})
