import { createCodecList } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { createFormation, type FormationReport } from '../bootstrap/formation.ts'
import { campaign } from '../raft/raft.ts'
import {
  command,
  configurationOf,
  heartbeatTo,
  incarnationOf,
  leaderOf,
  memberOf as raftOf,
} from '../testing/raft-fixture.ts'
import { decodeFrame, type PeerFrame } from '../transport/frames.ts'
import { createPeers } from '../transport/peers.ts'
import {
  awaitedLoadOf,
  FAST_CAMPAIGN_TICKS,
  idOf,
  isReady,
  type Member,
  nameOf,
  nodeOf,
  nodesOf,
  publishFacts,
  SPOKEN_MAX,
  viewOf,
  votersOf,
} from './member-state.ts'
import {
  adopt,
  install,
  linkOf,
  notPast,
  onFrame,
  onPeerGone,
  onReceived,
  reportTo,
  reportToPeers,
  sendOffer,
} from './peer-link.ts'
import { createReads } from './reads.ts'
import { createShardClock } from './shard-time.ts'
import { attachCells, createCells, ROLE, readCells } from './shared-status.ts'
import { createReceiver, createSender } from './transfer.ts'

type Raft = ReturnType<typeof raftOf>

/** A member around a core; what it reports to operators and to the resolver is recorded. */
function around(raft: Raft, change: object = {}) {
  const now = { monotonicMs: 10_000 }
  const seen = { lines: [] as string[], votes: 0, oldData: [] as number[][], answers: [] as unknown[] }
  const note = (level: string) => (_fields: object, message: string) => void seen.lines.push(`${level}: ${message}`)
  const env = {
    clock: { monotonicMs: () => now.monotonicMs, wallMs: () => 0 },
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    schedule: { after: () => () => undefined },
  }
  const { role, term, leader } = raft
  const replica = {
    ...{
      raft,
      env,
      clock: createShardClock(1, now.monotonicMs),
      loading: undefined,
      installing: undefined,
      isApplying: false,
    },
    ...{ seen: { role, term, leader }, handOvers: [], proposedAt: [], log: () => undefined, refusals: 0 },
    ...{ snapshotRunning: false, sinks: [], orphans: new Map(), waitingSinks: [], leaderChanges: 0 },
    machine: { latestTimeMs: () => 0, publish: () => undefined, digestMarks: () => [] },
  }
  const member = {
    ...{ node: 'n1', env, replica, samples: new Map(), spoken: new Map(), facts: new Map(), running: new Set() },
    ...{ electionTicks: 10, tickMs: 100, cells: attachCells(createCells(), 0), reads: { freshMs: 7_000 } },
    ...{ isSwitching: false, isRemoved: false, isStopped: false, wasVoter: false, cluster: {}, seeds: [], dialled: [] },
    ...{
      campaignIn: 0,
      deathTerm: 0,
      stands: 9,
      receiver: {},
      admin: new Map(),
      peers: createPeers('n1', 'ab'.repeat(32)),
    },
    formation: { self: 'n1', known: new Set(), reports: new Map<string, { report: FormationReport }>() },
    onVoter: () => void seen.votes++,
    onOldData: (lastIndex: number, acknowledged: number) => void seen.oldData.push([lastIndex, acknowledged]),
    ...change,
  }
  return { now, seen, replica, member: member as unknown as Member }
}

const VOTERS = [1, 2, 3]

/** A follower of node 2. */
function follower(log: readonly number[] = [1]): Raft {
  const raft = raftOf({ voters: VOTERS, learners: [4] }, { log })
  heartbeatTo(raft)
  return raft
}

test('nodes have their ids, and ids their nodes; unknown ones have none', () => {
  const { member } = around(follower())
  const { configuration } = member.replica.raft
  member.spoken.set(9, 'n9')
  expect([0, 1, 4, 9].map((id) => nameOf(configuration, id))).toEqual(['', 'n1', 'n4', ''])
  expect([0, 4, 9].map((id) => nodeOf(member, id))).toEqual([undefined, 'n4', 'n9'])
  expect(['n3', 'n9'].map((node) => idOf(member, node))).toEqual([3, 0])
  expect(votersOf(configuration)).toEqual(['n1', 'n2', 'n3'])
  expect(nodesOf(configuration)).toEqual(['n1', 'n2', 'n3', 'n4'])
})

test('a leader is ready once it has applied an entry of its term and shard time has begun', () => {
  const raft = leaderOf({ voters: VOTERS })
  const { member, replica } = around(raft)
  const ready = (change: object) => {
    const before = { termStart: raft.termStart, applied: raft.applied, role: raft.role }
    Object.assign(raft, change)
    const found = isReady(member)
    Object.assign(raft, before)
    return found
  }
  const states = [{}, { role: 'follower' }, { termStart: 0 }, { termStart: raft.applied + 1 }, { applied: 9 }]
  expect(states.map(ready)).toEqual([true, false, false, false, true])
  replica.clock.timeMs = 0
  expect(isReady(member)).toBe(false)
})

test.each<[string, () => Raft, object, number]>([
  ['a leader', () => leaderOf({ voters: VOTERS }), {}, ROLE.leader],
  [
    'a leader whose term has not begun',
    () => Object.assign(leaderOf({ voters: VOTERS }), { termStart: 0 }),
    {},
    ROLE.none,
  ],
  ['a follower', follower, {}, ROLE.follower],
  [
    'a candidate',
    () => {
      const raft = raftOf({ voters: VOTERS })
      campaign(raft)
      return raft
    },
    {},
    ROLE.none,
  ],
  ['a learner', () => raftOf({ voters: [2, 3], learners: [1] }), {}, ROLE.learner],
  ['a node that was removed', follower, { isRemoved: true }, ROLE.unavailable],
  ['a node that stops', follower, { isStopped: true }, ROLE.unavailable],
  ['a node that replaces its state', follower, { isSwitching: true }, ROLE.unavailable],
])('serving threads see the role of %s', (_, raft, change, role) => {
  const { member } = around(raft(), change)
  publishFacts(member)
  const isLeaderKnown = member.replica.raft.leader !== 0
  expect(readCells(member.cells as never)).toEqual({
    role,
    isLeaderKnown,
    applied: member.replica.raft.applied,
    freshMs: 7_000,
  })
})

test.each([
  ['looking', false],
  ['keeping', false],
  ['awaited', true],
  ['replacing', true],
  ['placed', true],
] as const)('a node does not serve while a bulk load is %s: %s', (phase, isAwaited) => {
  const { member, replica } = around(follower())
  Object.assign(replica, { loading: { index: 5, digest: 'ab', phase } })
  expect(awaitedLoadOf(member)?.digest).toBe(isAwaited ? 'ab' : undefined)
  publishFacts(member)
  expect(readCells(member.cells as never).role).toBe(isAwaited ? ROLE.unavailable : ROLE.follower)
})

test('a peer is inactive when its last sample is older than an election time-out', () => {
  const { member, now } = around(leaderOf({ voters: VOTERS }))
  member.samples.set(2, { receivedMs: 10_000 } as never)
  const active = () => viewOf(member).peers.map(({ id, isActive }) => [id, isActive])
  now.monotonicMs = 11_000
  // A peer without a sample is judged by the core alone.
  expect(active()).toEqual([
    [2, true],
    [3, true],
  ])
  now.monotonicMs = 11_001
  expect(active()).toEqual([
    [2, false],
    [3, true],
  ])
})

// Frames and connections (peer-link.ts)

test('when the process of the leader is gone, voters campaign one after the other', () => {
  const places: [number, number][] = [1, 2, 3, 5].map((id) => {
    const raft = raftOf({ voters: [1, 2, 3, 4], learners: [5] }, { id, log: [1] })
    heartbeatTo(raft, 1, 0, 4)
    const { member } = around(raft)
    onPeerGone(member, 'n4', true)
    expect([raft.leader, member.deathTerm, member.stands]).toEqual([0, 1, 0])
    return [id, member.campaignIn]
  })
  expect(places).toEqual([
    [1, 1],
    [2, 1 + FAST_CAMPAIGN_TICKS],
    [3, 1 + 2 * FAST_CAMPAIGN_TICKS],
    [5, 0],
  ])
})

test.each<[string, string, boolean]>([
  ['a lost connection', 'n2', false],
  ['the end of another node', 'n3', true],
])('%s leaves the leader in office', (_, peer, isDead) => {
  const { member } = around(follower())
  onPeerGone(member, peer, isDead)
  expect([member.replica.raft.leader, member.campaignIn]).toEqual([2, 0])
})

test('members that are not known to have applied an index are named', () => {
  const raft = follower()
  Object.assign(raft, { applied: 7 })
  const { member } = around(raft)
  member.samples.set(2, { applied: 8 } as never)
  member.samples.set(3, { applied: 7 } as never)
  expect([7, 8, 9].map((index) => notPast(member, index))).toEqual([
    ['n4'],
    ['n1', 'n3', 'n4'],
    ['n1', 'n2', 'n3', 'n4'],
  ])
})

test('a heartbeat beyond the log of its receiver ends a node with old data', () => {
  const beat = (commit: number, term: number) => {
    const { member, seen, replica } = around(follower([1, 1, 3]))
    // What is committed is applied later.
    replica.isApplying = true
    onFrame(member, 'n2', { type: 'heartbeat', from: 2, to: 1, term, commit, readRound: 0 })
    return [member.isStopped, seen.oldData]
  }
  expect(beat(3, 3)).toEqual([false, []])
  expect(beat(4, 3)).toEqual([true, [[3, 4]]])
  expect(beat(4, 2)).toEqual([false, []])
})

test('ids of new members are remembered until there are too many, the oldest goes first', () => {
  const { member } = around(follower())
  const beat = (id: number) =>
    onFrame(member, `n${id}`, { type: 'heartbeatReply', from: id, to: 1, term: 1, readRound: 0 })
  for (let id = 2; id < 100 + SPOKEN_MAX; id++) if (id < 5 || id >= 100) beat(id)
  expect([member.spoken.size, member.spoken.get(100)]).toEqual([SPOKEN_MAX, 'n100'])
  beat(101)
  expect(member.spoken.has(100)).toBe(true)
  beat(500)
  expect([member.spoken.size, member.spoken.has(100), member.spoken.get(101)]).toEqual([SPOKEN_MAX, false, 'n101'])
})

test('a node learns that it was removed from its peers, and other refusals are only logged', () => {
  const { member, seen } = around(follower())
  onFrame(member, 'n2', { type: 'refused', reason: 'codecs', detail: '' })
  onFrame(member, 'n2', { type: 'joined', member: 1, configuration: configurationOf({ voters: VOTERS }) })
  expect([member.isRemoved, seen.lines]).toEqual([false, ['warn: refused by a peer']])
  onFrame(member, 'n2', { type: 'refused', reason: 'removed', detail: '' })
  onFrame(member, 'n2', { type: 'refused', reason: 'removed', detail: '' })
  expect([member.isRemoved, seen.lines.length]).toEqual([true, 2])
  expect(seen.lines[1]).toMatch(/^error: this node is no longer a member/)
  const again = around(follower())
  onFrame(again.member, 'n2', { type: 'joined', member: 1_007, configuration: configurationOf({ voters: VOTERS }) })
  expect(again.member.isRemoved).toBe(true)
})

test.each<[string, number, number, readonly number[], boolean]>([
  ['a founder that is a member', 1, 50, [1, 2], false],
  ['a founder that is none', 1, 50, [2, 3], true],
  ['a node that was added later than this configuration', 1_050, 50, [2, 3], false],
  ['a node that was added before it', 1_050, 51, [2, 3], true],
  ['a node that was added and is a member', 1_050, 51, [2, 1_050], false],
])('%s: removed by a configuration or not', (_, id, configurationIndex, voters, isRemoved) => {
  const raft = raftOf({ voters }, { id })
  Object.assign(raft, { configurationIndex })
  const { member } = around(raft)
  adopt(member, raft.configuration)
  expect(member.isRemoved).toBe(isRemoved)
})

test('a node that joined notes when it is a voter for the first time; a founder does not', () => {
  const raft = raftOf({ voters: [2, 3], learners: [1] })
  const { member, seen } = around(raft, { cluster: { isFounder: false } })
  adopt(member, raft.configuration)
  expect([member.wasVoter, seen.votes]).toEqual([false, 0])
  for (let n = 0; n < 2; n++) adopt(member, configurationOf({ voters: VOTERS }))
  expect([member.wasVoter, seen.votes]).toEqual([true, 1])
  const founder = around(raftOf({ voters: VOTERS }), { cluster: { isFounder: true } })
  adopt(founder.member, configurationOf({ voters: VOTERS }))
  expect([founder.member.wasVoter, founder.seen.votes]).toEqual([false, 0])
})

test('the reply to a request of an operator reaches its caller once', () => {
  const { member, seen } = around(follower())
  member.admin.set(5, { onAnswer: (answer) => void seen.answers.push(answer), deadlineMs: 0 })
  for (let n = 0; n < 2; n++) onFrame(member, 'n2', { type: 'adminReply', id: 5, ok: false, status: 409, text: 'no' })
  onFrame(member, 'n2', { type: 'adminReply', id: 6, ok: true, status: 202, text: 'yes' })
  expect([seen.answers, member.admin.size]).toEqual([[{ status: 409, text: 'no' }], 0])
})

/** The same with a transport that accepts frames or not, and a leader's own parts. */
function connected(raft: Raft, change: object = {}) {
  const isOpen = { now: true }
  const sent: { node: string; frame: PeerFrame | undefined }[] = []
  const wanted: (readonly string[])[] = []
  const roles: string[] = []
  const formation = createFormation({
    ...{ self: 'n1', incarnation: incarnationOf(1), shardId: 's', voters: ['n1', 'n2', 'n3'], formatVersion: 1 },
    ...{ codecs: createCodecList(['wifi']), formsWithMajority: false, held: { state: 'empty' } },
    sha256: () => new Uint8Array(32),
  })
  const genesis = { bytes: new Uint8Array(16) }
  const world = around(raft, {
    ...{
      formation,
      initialVoters: ['n1', 'n2', 'n3'],
      elections: { won: 0, lost: 0, refused: 0 },
      memoryBudget: 77,
      readyTerm: 0,
    },
    ...{
      reads: createReads({ firstContext: 0, applied: () => raft.applied } as never),
      sender: { outgoing: new Map(), backoff: new Map() },
      membership: {},
      offered: undefined,
    },
    cluster: { clusterId: '0b'.repeat(16), baseIndex: 0, baseTerm: 0, voters: ['n1', 'n2', 'n3'], isFounder: true },
    genesis: () => genesis.bytes,
    onRole: () => void roles.push(raft.role),
    ...change,
  })
  const { peers } = world.member
  peers.transport = {
    send(node, _stream, bytes) {
      const decoded = decodeFrame(bytes)
      sent.push({ node, frame: typeof decoded === 'string' ? undefined : decoded.frame })
      return isOpen.now
    },
    setPeers: (nodes) => void wanted.push(nodes),
  } as Partial<NonNullable<typeof peers.transport>> as NonNullable<typeof peers.transport>
  return { ...world, isOpen, sent, wanted, roles, genesis, link: linkOf(world.member) }
}

test('messages go to the node of their receiver; heartbeats carry a sample', () => {
  const { link, sent, member } = connected(leaderOf({ voters: VOTERS }))
  const beat = (to: number) => link.send({ type: 'heartbeat', from: 1, to, term: 1, commit: 0, readRound: 0 })
  for (const to of [1, 2, 9]) beat(to)
  member.spoken.set(9, 'n9')
  beat(9)
  expect(member.peers.sent).toBe(2)
  expect(sent.map(({ node }) => node)).toEqual(['n2', 'n9'])
})

test('entries that the transport did not accept are sent again, to that peer alone', () => {
  const raft = leaderOf({ voters: VOTERS })
  const { link, isOpen } = connected(raft)
  const states = () => raft.peers.map(({ state }) => state)
  const append = () =>
    link.send({ type: 'append', from: 1, to: 2, term: 1, prevIndex: 1, prevTerm: 1, entries: [], commit: 1 })
  append()
  expect(states()).toEqual(['replicate', 'replicate'])
  isOpen.now = false
  link.send({ type: 'heartbeat', from: 1, to: 3, term: 1, commit: 0, readRound: 0 })
  append()
  expect(states()).toEqual(['probe', 'replicate'])
})

test('the random bits of a shard and the start of a term become known with the entries that bring them', () => {
  const raft = leaderOf({ voters: VOTERS })
  const { link, genesis, member, roles } = connected(raft)
  genesis.bytes = new Uint8Array(16).fill(3)
  link.onApplied()
  link.onApplied()
  expect(member.peers.common.genesis).toBe(genesis.bytes)
  expect([roles, member.readyTerm]).toEqual([['leader'], raft.term])
  const behind = connected(follower())
  behind.link.onApplied()
  expect(behind.roles).toEqual([])
})

test('a change of the role is logged, counted and reported', () => {
  const leading = connected(leaderOf({ voters: VOTERS }))
  leading.link.onRole()
  expect([leading.member.elections.won, leading.seen.lines, leading.roles]).toEqual([
    1,
    ['info: this node leads the shard'],
    ['leader'],
  ])
  const following = connected(follower(), { campaignIn: 5 })
  following.link.onRole()
  expect([following.member.campaignIn, following.seen.lines]).toEqual([0, ['info: follows a leader']])
  const alone = connected(raftOf({ voters: VOTERS }), { campaignIn: 5 })
  alone.link.onRole()
  expect([alone.member.campaignIn, alone.seen.lines]).toEqual([5, ['info: no leader']])
})

const NEWEST = { index: 1, term: 1, membership: undefined } as unknown as Parameters<typeof sendOffer>[2]

test('only a leader offers a snapshot, and none of a state that it has not applied', () => {
  const offered = (raft: Raft, index: number) =>
    sendOffer(connected(raft).member, 2, { ...NEWEST, index }, new Uint8Array(1))
  expect(offered(follower(), 0)).toBe(false)
  expect(offered(leaderOf({ voters: VOTERS }), 2)).toBe(false)
})

test('each second a member reports to all others, with its memory; shard time only where it leads', () => {
  const kinds = (raft: Raft) => {
    const { member, sent } = connected(raft)
    reportToPeers(member)
    return sent.map(
      ({ node, frame }) =>
        `${node} ${frame?.type}${frame?.type === 'facts' ? ` ${frame.memoryBudget} ${frame.shardTimeMs > 0}` : ''}`,
    )
  }
  const others = (isLeader: boolean) =>
    ['n2', 'n3'].flatMap((node) => [`${node} formation`, `${node} facts 77 ${isLeader}`])
  expect(kinds(leaderOf({ voters: VOTERS }))).toEqual(others(true))
  expect(kinds(raftOf({ voters: VOTERS }))).toEqual(others(false))
})

test.each<[string, object, boolean]>([
  ['an initial voter that joined and is no voter yet', {}, true],
  ['a founder', { isFounder: true }, false],
  ['a node that is no initial voter', { initialVoters: ['n2', 'n3'] }, false],
  ['a node that was a voter', { wasVoter: true }, false],
  ['a node that was removed', { isRemoved: true }, false],
])('%s requests to join its leader: %o', (_, { isFounder = false, ...change }: { isFounder?: boolean }, joins) => {
  const raft = raftOf({ voters: [2, 3], learners: [1] }, { log: [1] })
  heartbeatTo(raft)
  const { member, sent } = connected(raft, change)
  Object.assign(member.cluster, { isFounder })
  reportToPeers(member)
  const joined = sent.filter(({ frame }) => frame?.type === 'join').map(({ node }) => node)
  expect(joined).toEqual(joins ? ['n2'] : [])
})

test('a member with a leader dials its members, and without one every node that it knows', () => {
  const dialled = (raft: Raft) => {
    const { member, wanted } = connected(raft, { seeds: ['seed'], dialled: ['extra'] })
    member.formation.known.add('learned')
    adopt(member, raft.configuration)
    return wanted.at(-1)
  }
  expect(dialled(follower())).toEqual(['extra', 'n2', 'n3', 'n4'])
  const all = ['extra', 'learned', 'n2', 'n3', 'seed']
  expect(dialled(raftOf({ voters: VOTERS }))).toEqual(all)
  // A leader that has not this node among its members does not settle it.
  const stranger = raftOf({ voters: [2, 3] }, { log: [1] })
  heartbeatTo(stranger)
  expect(dialled(stranger)).toEqual(all)
})

// Reports, joins and snapshots

/** A member with the production parts of a transfer; requests to its disk are recorded. */
function whole(raft: Raft, change: object = {}) {
  const disk: { request: { kind: string }; done: (answer: object) => void }[] = []
  const logged: { type: string }[] = []
  const fatal: unknown[] = []
  const snapshots: number[] = []
  const world = connected(raft, {
    ...{ hasMemoryFor: (packages: number) => packages <= 10, prepareSwitch: () => undefined },
    ...{ onFatal: (fault: unknown) => void fatal.push(fault), loads: { port: {}, finished: [], ended: {} } },
    ...change,
  })
  const { member, now, replica } = world
  const exchange = (request: { kind: string }, done: (answer: object) => void) => void disk.push({ request, done })
  const send = (node: string, frame: PeerFrame) => world.sent.push({ node, frame }) > 0
  const log = { debug: () => undefined, warn: () => undefined, info: () => undefined, error: () => undefined }
  const common = { send, exchange, nowMs: () => now.monotonicMs, log }
  const failed: string[] = []
  const receiver = createReceiver(
    {
      ...common,
      sources: () => ['n2'],
      onReady: (received: Parameters<typeof onReceived>[1]) => onReceived(member, received),
      onFailed: (reason: string) => void failed.push(reason),
      onDelayed: () => undefined,
    } as unknown as Parameters<typeof createReceiver>[0],
    { shardId: 's', codecsOrderedHash: 'cd' },
  )
  const sender = createSender({
    ...{ ...common, after: () => undefined, sendOffer: () => true, reportSnapshot: () => undefined },
  } as unknown as Parameters<typeof createSender>[0])
  Object.assign(member, { receiver, sender })
  Object.assign(replica, {
    ...{ log: (message: { type: string }) => void logged.push(message), snapshotIndexLast: 1, snapshotEarliestMs: 0 },
    snapshots: { start: (index: number) => void snapshots.push(index) },
  })
  return { ...world, disk, logged, fatal, snapshots, failed, receiver, sender }
}

type FrameOf<Type extends PeerFrame['type']> = Extract<PeerFrame, { readonly type: Type }>
type SentFrames = { readonly sent: { readonly node: string; readonly frame: PeerFrame | undefined }[] }

const isOf = <Type extends PeerFrame['type']>(frame: PeerFrame | undefined, type: Type): frame is FrameOf<Type> =>
  frame?.type === type

const sentOf = <Type extends PeerFrame['type']>(
  { sent }: SentFrames,
  type: Type,
): ({ readonly to: string } & FrameOf<Type>)[] =>
  sent.flatMap(({ node, frame }) => (isOf(frame, type) ? [{ to: node, ...frame }] : []))

test.each<[string, object, boolean]>([
  ['in which nothing has happened', {}, true],
  ['of a later term', { term: 1 }, false],
  ['that voted', { vote: 2 }, false],
  ['that knows a leader', { leader: 2 }, false],
  ['with an entry', { lastIndex: 1 }, false],
])('a member %s reports whether its shard may be founded again', (_, change, isUntouched) => {
  const raft = raftOf({ voters: VOTERS })
  const world = connected(raft)
  Object.assign(raft, change)
  reportTo(world.member, 'n3')
  const leader = raft.leader === 0 ? '' : 'n2'
  expect(sentOf(world, 'formation')).toMatchObject([
    { to: 'n3', state: 'formed', isUntouched, leader, isFounder: true, contentDigest: '', index: 0, term: 0 },
  ])
})

test('a member is a founder unless its data say otherwise', () => {
  const reported = [undefined, true, false].map((isFounder) => {
    const world = connected(raftOf({ voters: VOTERS }))
    Object.assign(world.member.cluster, { isFounder })
    reportTo(world.member, 'n2')
    return sentOf(world, 'formation')[0]?.isFounder
  })
  expect(reported).toEqual([true, true, false])
})

/** What another node reports to this one. */
function reportOf(node: string, id: number, change: object = {}): PeerFrame {
  const other = connected(raftOf({ voters: VOTERS }), {})
  reportTo(other.member, 'n3')
  const [frame] = sentOf(other, 'formation')
  const { to: _to, ...report } = frame as NonNullable<typeof frame>
  return { ...report, incarnation: incarnationOf(id), echo: incarnationOf(1), members: [node], ...change } as PeerFrame
}

test.each<[string, string, object, number]>([
  ['a member', 'n2', { isFounder: false }, 0],
  ['a node that was replaced under its name', 'n2', { incarnation: incarnationOf(77), isFounder: false }, 1],
  ['a node that is no member', 'n8', { isFounder: false }, 1],
  ['a node of another cluster', 'n8', { isFounder: false, clusterId: '0c'.repeat(16) }, 0],
  ['a node that is not formed', 'n8', { state: 'empty', isFounder: false, clusterId: '0b'.repeat(16) }, 0],
])('a leader tells %s that it was removed, or not', (_, node, change, refusals) => {
  const world = whole(leaderOf({ voters: VOTERS }))
  onFrame(world.member, node, reportOf(node, 2, change))
  expect(sentOf(world, 'refused')).toEqual(
    new Array(refusals).fill({ type: 'refused', to: node, reason: 'removed', detail: '' }),
  )
  const following = whole(follower())
  onFrame(following.member, node, reportOf(node, 2, change))
  expect(sentOf(following, 'refused')).toEqual([])
})

test('facts of a peer are noted, and it runs as a member', () => {
  const { member } = connected(follower())
  onFrame(member, 'n3', { type: 'facts', featureLevel: 2, memoryBudget: 9, shardTimeMs: 0 })
  expect([[...member.running], member.facts.get(3)]).toEqual([['n3'], { featureLevel: 2, memoryBudget: 9 }])
})

test('samples come with heartbeats and their replies', () => {
  const { member } = connected(follower())
  const sample = { wallMs: 5, isDiskFull: true, digestIndex: 0, digestLo: 0, digestHi: 0, applied: 3 }
  onFrame(member, 'n3', { type: 'heartbeatReply', from: 3, to: 1, term: 1, readRound: 0, sample })
  onFrame(member, 'n2', { type: 'heartbeat', from: 2, to: 1, term: 1, commit: 0, readRound: 0, sample })
  expect([2, 3].map((id) => member.samples.get(id))).toMatchObject([{ applied: 3, receivedMs: 10_000 }, sample])
})

test('frames that name this node as their sender are dropped', () => {
  const { member } = connected(follower())
  onFrame(member, 'n2', { type: 'heartbeat', from: 1, to: 1, term: 9, commit: 0, readRound: 0 })
  expect([member.replica.raft.term, member.spoken.size]).toEqual([1, 0])
})

const HELD = 64 * 1024 * 1024

test.each([
  ['there is room for it', { phase: 'awaited' }, HELD - 1, 2],
  ['it is full', { phase: 'awaited' }, HELD, 1],
  ['no load is applied', undefined, HELD, 2],
])('entries behind a bulk load are held in memory: %s', (_, loading, unappliedBytes, lastIndex) => {
  const raft = follower()
  const { member, replica } = connected(raft)
  Object.assign(replica, { loading, isApplying: true })
  Object.assign(raft, { unappliedBytes })
  const entries = [{ firstIndex: 2, count: 1, bytes: command(1) }]
  onFrame(member, 'n2', { type: 'append', from: 2, to: 1, term: 1, prevIndex: 1, prevTerm: 1, entries, commit: 0 })
  expect(raft.lastIndex).toBe(lastIndex)
})

const offer = (index: number, term = 1): Extract<PeerFrame, { type: 'snapshot' }> => {
  const configuration = configurationOf({ voters: VOTERS })
  return { type: 'snapshot', from: 2, to: 1, term, index, snapshotTerm: 1, configuration, manifest: Uint8Array.of(1) }
}

test('a snapshot ahead of the commit index is received from its leader, in the term of the offer', () => {
  const world = whole(follower())
  onFrame(world.member, 'n2', offer(9, 4))
  expect([world.replica.raft.term, world.replica.raft.leader, world.member.offered?.index]).toEqual([4, 2, 9])
  expect(world.receiver.incoming?.offer).toMatchObject({ node: 'n2', index: 9, term: 1 })
  onFrame(world.member, 'n2', offer(12, 4))
  expect(world.member.offered?.index).toBe(12)
  Object.assign(world.replica, { installing: { index: 12 } })
  onFrame(world.member, 'n2', offer(15, 4))
  expect(world.member.offered?.index).toBe(12)
})

test.each([
  ['of an earlier term', 9, 2],
  ['at the commit index', 1, 3],
])('a snapshot %s is not received', (_, index, term) => {
  const raft = raftOf({ voters: VOTERS }, { log: [3] })
  heartbeatTo(raft, 3, 1)
  const world = whole(raft)
  Object.assign(world.replica, { isApplying: true })
  onFrame(world.member, 'n2', offer(index, term))
  expect([world.member.offered, world.disk]).toEqual([undefined, []])
})

const RECEIVED = { index: 9, term: 1, manifest: Uint8Array.of(1), contentDigest: '', packages: 10 } as const

test('a complete snapshot goes to the core in the present term; an unwanted one does not', () => {
  const steps = (change: (world: ReturnType<typeof whole>) => void) => {
    const world = whole(follower())
    Object.assign(world.member, { offered: offer(9) })
    Object.assign(world.receiver, { incoming: { phase: 'ready', offer: {}, node: 'n2', manifest: RECEIVED.manifest } })
    Object.assign(world.replica, { link: world.link })
    change(world)
    onReceived(world.member, { ...RECEIVED, purpose: 'install' })
    const { installing, raft } = world.replica
    return [installing !== undefined || raft.snapshot !== undefined, world.failed]
  }
  expect(steps(() => undefined)).toEqual([true, []])
  expect(steps(({ member }) => heartbeatTo(member.replica.raft, 7))).toEqual([true, []])
  expect(steps(({ member }) => Object.assign(member, { offered: undefined }))).toEqual([false, []])
  expect(steps(({ member }) => Object.assign(member, { offered: offer(8) }))).toEqual([false, []])
  expect(steps(({ member }) => Object.assign(member, { hasMemoryFor: () => false }))).toEqual([false, ['no-memory']])
  expect(steps(({ member }) => Object.assign(member.replica.raft, { leader: 0 }))).toEqual([false, []])
})

test('chunks that were lost during an installation continue it', () => {
  const world = whole(follower())
  Object.assign(world.replica, { installing: { index: 9, snapshotTerm: 1 } })
  Object.assign(world.receiver, { incoming: { phase: 'ready', offer: {}, manifest: RECEIVED.manifest } })
  onReceived(world.member, { ...RECEIVED, index: 8, purpose: 'install' })
  expect(world.disk).toEqual([])
  onReceived(world.member, { ...RECEIVED, purpose: 'install' })
  expect(world.disk.map(({ request }) => request.kind)).toEqual(['current'])
})

test('a snapshot is made current when the core waits for it and it is complete, unless the node stops', () => {
  const kinds = (change: { isStopped?: boolean; installing?: object; phase?: string }) => {
    const world = whole(follower())
    const { isStopped = false, installing = { index: 9, snapshotTerm: 1 }, phase = 'ready' } = change
    Object.assign(world.member, { isStopped })
    Object.assign(world.replica, { installing: 'none' in installing ? undefined : installing })
    Object.assign(world.receiver, { incoming: { phase, offer: {}, manifest: RECEIVED.manifest } })
    install(world.member)
    return world.disk.map(({ request }) => request.kind)
  }
  expect(kinds({})).toEqual(['current'])
  expect(kinds({ isStopped: true })).toEqual([])
  expect(kinds({ installing: { none: true } })).toEqual([])
  expect(kinds({ phase: 'pulling' })).toEqual([])
})

test('the log restarts at a snapshot that is current; a node that cannot switch to it ends', () => {
  const ended = (fault: object | undefined) => {
    const world = whole(follower(), { prepareSwitch: () => fault })
    Object.assign(world.replica, { installing: { index: 9, snapshotTerm: 1 } })
    Object.assign(world.receiver, { incoming: { phase: 'ready', offer: {}, manifest: RECEIVED.manifest } })
    world.link.onInstall({} as never)
    world.disk[0]?.done({ state: 'current', path: '/snapshots/9' })
    return [world.member.isSwitching, world.logged, world.fatal]
  }
  expect(ended(undefined)).toEqual([true, [{ type: 'install', mark: { index: 9, term: 1 } }], []])
  const fault = { code: 'disk_failed' }
  expect(ended(fault)).toEqual([true, [], [fault]])
})

test('a peer behind the log is offered a snapshot, and one is written where none reaches the log', () => {
  const offered = (snapshotIndexLast: number, firstIndex: number, id = 2) => {
    const raft = leaderOf({ voters: VOTERS })
    const world = whole(raft)
    Object.assign(world.replica, { snapshotIndexLast })
    Object.assign(raft, { firstIndex })
    world.link.onOffer(id)
    return [world.snapshots.length, [...world.sender.outgoing.keys()]]
  }
  expect(offered(5, 6)).toEqual([0, [2]])
  expect(offered(5, 7)).toEqual([1, [2]])
  expect(offered(0, 1)).toEqual([1, [2]])
  expect(offered(5, 6, 9)).toEqual([0, []])
})

test('a join request is answered: admitted, refused, or with nothing while it must wait', () => {
  const configuration = configurationOf({ voters: VOTERS })
  const answers = (role: string, isReady: boolean) => {
    const status = () => ({ role, leader: 2, configuration, id: 1, peers: [] })
    const membership = { port: { status, isReady: () => isReady, nowMs: () => 0 }, joins: new Map() }
    const world = whole(follower(), { membership })
    onFrame(world.member, 'n3', { type: 'join', node: 'n3', incarnation: incarnationOf(3), isInitialVoter: true })
    return [...sentOf(world, 'joined'), ...sentOf(world, 'refused')]
  }
  expect(answers('leader', true)).toEqual([{ type: 'joined', to: 'n3', member: 3, configuration }])
  expect(answers('leader', false)).toEqual([])
  expect(answers('follower', false)).toEqual([{ type: 'refused', to: 'n3', reason: 'not-leader', detail: 'n2' }])
})

test('a leader offers a snapshot of its applied state, with the founders where it names no members', () => {
  const offered = (membership: object | undefined) => {
    const raft = leaderOf({ voters: VOTERS })
    const [peer] = raft.peers
    Object.assign(peer ?? {}, { state: 'snapshot' })
    const world = whole(raft)
    Object.assign(world.replica, { link: world.link })
    const isTaken = sendOffer(world.member, 2, { ...NEWEST, membership } as never, Uint8Array.of(1))
    return [isTaken, sentOf(world, 'snapshot').map(({ index, configuration }) => [index, configuration.members.length])]
  }
  expect(offered(undefined)).toEqual([true, [[1, 3]]])
  expect(offered(configurationOf({ voters: [1, 2] }))).toEqual([true, [[1, 2]]])
})

test('what the core reports reaches the parts of the member', () => {
  const loader = { port: { replica: { loading: undefined }, env: { clock: { monotonicMs: () => 0 } } }, failures: 5 }
  const raft = leaderOf({ voters: VOTERS })
  const port = { wallMs: () => 0, log: { info: () => undefined, warn: () => undefined } }
  const loads = { port, running: undefined, finished: [], ended: { done: 0, failed: 0 } }
  const world = whole(raft, { loader, loads })
  Object.assign(loader.port.replica, { snapshotFailures: 9 })
  world.member.samples.set(2, { wallMs: 500, receivedMs: 9_000 } as never)
  expect(world.link.voterClocks(10_000)).toEqual([1_500])
  world.link.onLoadEntry({} as never)
  expect(loader.failures).toBe(9)
  world.link.onLoaded({ digest: 'ab' } as never)
  expect([world.snapshots, loads.ended.done]).toEqual([[raft.applied], 1])
  world.link.onConfiguration(9, configurationOf({ voters: [2, 3] }))
  expect(world.member.isRemoved).toBe(true)
  world.sender.outgoing.set(2, { node: 'n2', index: 4, startedMs: world.now.monotonicMs, progressMs: 0 })
  expect(world.link.keptIndex()).toBe(4)
})

test('founders without an incarnation count from the start, others not', () => {
  const raft = leaderOf({ voters: VOTERS, unbound: [2] })
  raft.counts.clear()
  adopt(connected(raft).member, raft.configuration)
  expect([...raft.counts]).toEqual([[2, true]])
})

test.each([
  [1_000, 50, true],
  [1_001, 1, false],
  [1_001, 2, true],
])('a node with raft id %i that is no member at index %i was removed: %s', (id, configurationIndex, isRemoved) => {
  const raft = raftOf({ voters: [2, 3] }, { id })
  Object.assign(raft, { configurationIndex })
  const { member, seen } = around(raft)
  for (let n = 0; n < 2; n++) adopt(member, raft.configuration)
  expect([member.isRemoved, seen.lines.length]).toEqual([isRemoved, isRemoved ? 1 : 0])
})

test('the report of a member that holds a load, and pieces of a snapshot, reach their transfer', () => {
  const running = { reference: { contentDigest: 'ab' }, holders: new Set<string>() }
  const port = { self: 'n1', voters: () => ['n1', 'n2', 'n3'], isReady: () => false }
  const loads = { port, running: { ...running, refusals: new Map() }, finished: [] }
  const world = whole(follower(), { loads })
  onFrame(world.member, 'n3', { type: 'bulkHolds', digest: 'ab', isComplete: true, reason: '' })
  expect([...running.holders]).toEqual(['n3'])
  onFrame(world.member, 'n3', { type: 'chunkRequest', id: 4, digest: 'cd'.repeat(32), offset: 0, length: 5 })
  expect(world.disk.map(({ request }) => request.kind)).toEqual(['read'])
  world.sender.outgoing.set(3, { node: 'n3', index: 4, startedMs: 0, progressMs: 0 })
  onFrame(world.member, 'n3', { type: 'offerReply', index: 4, ok: true, reason: 'installed' })
  expect(world.sender.sent).toBe(1)
  const pulled = { lacking: new Set<string>(), again: [] as object[] }
  const request = { chunk: pulled, node: 'n2', offset: 0, length: 5, atMs: 0 }
  const incoming = { phase: 'x', requests: new Map([[8, request]]), pulling: [], waiting: [], storing: 0 }
  Object.assign(world.receiver, { incoming })
  onFrame(world.member, 'n2', { type: 'chunkMissing', id: 8, digest: 'cd'.repeat(32) })
  expect([incoming.requests.size, [...pulled.lacking]]).toEqual([0, ['n2']])
})
