/** A real member around a core whose peers are simulated: timers, reports, operator requests and its status. */

import { createCodecList } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { createFormation } from '../bootstrap/formation.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, viewOf } from '../raft/entry.ts'
import { COMMAND_HEADER_BYTES, KIND, kindOfCommand } from '../store/command.ts'
import { FEATURE_LEVEL } from '../store/store.ts'
import {
  acknowledge,
  answerHeartbeat,
  give,
  heartbeatTo,
  incarnationOf,
  leaderOf,
  memberOf as raftOf,
} from '../testing/raft-fixture.ts'
import { decodeFrame, type PeerFrame } from '../transport/frames.ts'
import { createPeers } from '../transport/peers.ts'
import type { ToWal } from '../wal/wal-thread.ts'
import { type AdminRequest, adminStatus, requestAdmin } from './admin.ts'
import { createMember, handOverAtEnd, onSwitched, stopMember } from './member.ts'
import { type AdminAnswer, FAST_CAMPAIGN_TICKS, type MemberParts } from './member-state.ts'
import { clusterStatus } from './member-status.ts'
import { createReplica, type ReplicaParts } from './replica-state.ts'
import { attachCells, createCells, ROLE, readCells } from './shared-status.ts'

type Raft = ReturnType<typeof raftOf>

const VOTERS = [1, 2, 3]
const START_MS = 1_000_000
const WALL_MS = Date.UTC(2026, 10, 20)
const DIGEST = 'ab'.repeat(32)

type Knobs = { level: number; budgetBytes: number; genesis: number; isOpen: boolean; spaceBytes: number }
type Pending = { readonly request: { readonly kind: string }; readonly done: (answer: object) => void }

const machineOf = (knobs: Knobs) => ({
  apply: (index: number) => ({ code: 0, value: 0, index, detail: '', stay: 0 }),
  publish: () => undefined,
  digestMarks: () => [],
  newestMark: () => undefined,
  digest: () => ({ lo: 0, hi: 0 }),
  lastMaintenanceDay: () => 0,
  latestTimeMs: () => WALL_MS,
  packagesBefore: () => 0,
  isUnordered: () => false,
  orderTables: () => [].values(),
  sweep: () => false,
  hasDeleted: () => false,
  prepareDeletes: () => undefined,
  lacksSparePages: () => false,
  hurrySnapshot: () => undefined,
  featureLevel: () => knobs.level,
  budgetUse: () => ({ budgetBytes: knobs.budgetBytes, chargedBytes: 0, leftBytes: 0 }),
  stays: { nextDeadlineMs: () => Number.POSITIVE_INFINITY, admits: () => true },
  time: {
    noteDay: () => undefined,
    effectsOf: () => ({ importNights: undefined, droppedFrom: undefined }),
    lastSet: (): object | undefined => undefined,
  },
})

/** Kinds and bodies of the commands in appended entries. */
function commandsOf(messages: readonly ToWal[]): { kind: number; body: Uint8Array }[] {
  const found: { kind: number; body: Uint8Array }[] = []
  for (const message of messages) {
    if (message.type !== 'append') continue
    for (const { bytes } of message.entries) {
      const view = viewOf(bytes)
      for (let at = 0; at < bytes.length; ) {
        const [start, length] = [at + ENTRY_HEADER_BYTES, entryLength(view, at)]
        if (entryKind(view, at) === ENTRY_KIND.command && length > 1)
          found.push({
            kind: kindOfCommand(view, start),
            body: bytes.slice(start + COMMAND_HEADER_BYTES, start + length),
          })
        at = start + length
      }
    }
  }
  return found
}

function begin(raft: Raft, change: { options?: object; knobs?: Partial<Knobs> } = {}) {
  const now = { monotonicMs: START_MS }
  const knobs = { level: FEATURE_LEVEL, budgetBytes: 77, genesis: 1, isOpen: true, spaceBytes: 5e9, ...change.knobs }
  const timers: { atMs: number; run: () => void }[] = []
  const seen = {
    lines: [] as string[],
    sent: [] as { node: string; frame: PeerFrame }[],
    log: [] as ToWal[],
    pending: [] as Pending[],
    snapshots: [] as number[],
    fatal: [] as { code: string }[],
    roles: 0,
  }
  const note = (level: string) => (fields: object, message: string) =>
    void seen.lines.push(`${level}: ${message} ${JSON.stringify(fields)}`)
  const env = {
    clock: { monotonicMs: () => now.monotonicMs, wallMs: () => WALL_MS + now.monotonicMs - START_MS },
    random: { bytes: (count: number) => new Uint8Array(count).fill(7) },
    log: { debug: () => undefined, info: note('info'), warn: note('warn'), error: note('error') },
    schedule: {
      after(delayMs: number, run: () => void) {
        timers.push({ atMs: now.monotonicMs + delayMs, run })
        return () => undefined
      },
    },
  }
  const machine = machineOf(knobs)
  const replica = createReplica({
    ...{ env, raft, machine, onFatal: () => undefined, onMaintained: () => undefined, onReserve: () => undefined },
    log: (message: ToWal) => void seen.log.push(message),
    snapshots: { start: (index: number) => void seen.snapshots.push(index), retain: () => undefined },
    space: () => ({ freeBytes: knobs.spaceBytes, totalBytes: 1e10 }),
    ...{ snapshotIntervalMs: 1e9, snapshotTriggerCount: 1e9, snapshotIndex: 1, tornTailBytes: 0, acceptDay: 0 },
    lastTimeMs: WALL_MS,
  } as unknown as ReplicaParts)
  const peers = createPeers('n1', 'cd'.repeat(32))
  peers.transport = {
    send(node: string, _stream: string, bytes: Uint8Array) {
      const decoded = decodeFrame(bytes)
      if (typeof decoded !== 'string') seen.sent.push({ node, frame: decoded.frame })
      return knobs.isOpen
    },
    setPeers: () => undefined,
  } as unknown as NonNullable<typeof peers.transport>
  const formation = createFormation({
    ...{ self: 'n1', incarnation: incarnationOf(1), shardId: 's', voters: ['n1', 'n2', 'n3'], formatVersion: 1 },
    ...{ codecs: createCodecList(['wifi']), formsWithMajority: false, held: { state: 'empty' } },
    sha256: () => new Uint8Array(32),
  })
  const member = createMember(
    {
      ...{ env, replica, peers, formation, hasMemoryFor: () => true, prepareSwitch: () => undefined },
      exchange: (request: Pending['request'], done: Pending['done']) => void seen.pending.push({ request, done }),
      onFatal: (fault: { code: string }) => void seen.fatal.push(fault),
      cells: attachCells(createCells(), 0),
      genesis: () => new Uint8Array(16).fill(knobs.genesis),
      transportCounts: () => ({ opened: 4 }),
      hostOf: (node: string) => `host-of-${node}`,
      ...{ onRole: () => void seen.roles++, onVoter: () => undefined },
    } as unknown as MemberParts,
    {
      ...{ node: 'n1', incarnation: incarnationOf(1), zoneId: 'zone-a', initialVoters: ['n1', 'n2', 'n3'], seeds: [] },
      ...{ tickMs: 100, electionTicks: 10, heartbeatTicks: 2, sessionBytesMax: 4_096, memoryBudget: 77 },
      cluster: {
        ...{ clusterId: '0b'.repeat(16), baseIndex: 0, baseTerm: 0, voters: ['n1', 'n2', 'n3'], isFounder: true },
        ...{ shardId: 's', codecHash: 'cd'.repeat(32), codecs: ['wifi'] },
      } as never,
      ...change.options,
    },
  )
  const hear = (node: string, frame: PeerFrame) => peers.handler?.onFrame(node, frame)
  /** Time passes in one step, as on a node that was stalled. */
  const jump = (milliseconds: number) => {
    now.monotonicMs += milliseconds
    const due = timers.filter(({ atMs }) => atMs <= now.monotonicMs)
    timers.splice(0, timers.length, ...timers.filter(({ atMs }) => atMs > now.monotonicMs))
    for (const { run } of due) run()
  }
  /** Ticks during which all peers answer a leader. */
  const pass = (ticks: number) => {
    for (let n = 0; n < ticks; n++) {
      jump(100)
      if (raft.role === 'leader') for (const { id } of raft.peers) answerHeartbeat(raft, id)
    }
  }
  const facts = (node: string, memoryBudget = 0, featureLevel = FEATURE_LEVEL) =>
    hear(node, { type: 'facts', featureLevel, memoryBudget, shardTimeMs: 0 })
  const sentTo = (node: string, type: string) =>
    seen.sent.filter((each) => each.node === node && each.frame.type === type)
  return { member, replica, raft, peers, machine, now, knobs, seen, hear, jump, pass, facts, sentTo, timers }
}

function follower(places: Parameters<typeof raftOf>[0] = { voters: VOTERS }, id = 1): Raft {
  const raft = raftOf(places, { id, log: [1] })
  heartbeatTo(raft, 1, 0, id === 2 ? 3 : 2)
  return raft
}

// Time

test('a follower without a leader campaigns after its election time-out, one tick at a time', () => {
  const { raft, pass } = begin(raftOf({ voters: VOTERS }, { log: [1] }))
  pass(9)
  expect(raft.role).toBe('follower')
  pass(1)
  expect(raft.role).toBe('preCandidate')
})

test('a stalled node makes one tick, and counts a stall longer than two heartbeats', () => {
  const { raft, member, jump, seen } = begin(raftOf({ voters: VOTERS }, { log: [1] }))
  jump(200)
  expect([member.stalls, raft.role]).toEqual([0, 'follower'])
  jump(201)
  expect([member.stalls, seen.lines]).toEqual([1, ['warn: replica thread stalled {"milliseconds":201}']])
  jump(60_000)
  expect([member.stalls, raft.role]).toEqual([2, 'follower'])
})

test('a timer that fires early makes no tick until nine tenths of a tick have passed', () => {
  const { member, now, timers } = begin(raftOf({ voters: VOTERS }, { log: [1] }))
  const run = (sinceTick: number) => {
    now.monotonicMs = member.lastTickMs + sinceTick
    for (const timer of timers.splice(0)) timer.run()
    return member.lastTickMs === now.monotonicMs
  }
  expect([89, 90, 91].map(run)).toEqual([false, true, true])
})

test('a stopped member has no timer, hears nothing and does not serve', () => {
  const { member, peers, pass, timers, sentTo } = begin(follower())
  stopMember(member)
  expect(readCells(member.cells as never).role).toBe(ROLE.unavailable)
  pass(20)
  expect([peers.handler, timers.length, sentTo('n2', 'formation')]).toEqual([undefined, 0, []])
})

test('a member reports once a second', () => {
  const { pass, sentTo } = begin(follower())
  const counts = [1, 9, 1, 10, 10].map((ticks) => {
    pass(ticks)
    return sentTo('n3', 'facts').length
  })
  expect(counts).toEqual([1, 1, 2, 3, 4])
})

test('voters stand for election in turn after the process of their leader is gone, and again a round later', () => {
  const { raft, member, pass, peers } = begin(follower({ voters: [1, 2, 3, 4] }))
  peers.handler?.onClosed?.('n2', 'control', true)
  expect(raft.leader).toBe(0)
  pass(1)
  expect([raft.role, member.stands, member.campaignIn]).toEqual(['preCandidate', 1, 4 * FAST_CAMPAIGN_TICKS])
  pass(4 * FAST_CAMPAIGN_TICKS - 1)
  expect(member.stands).toBe(1)
  pass(1)
  expect(member.stands).toBe(2)
})

test('a later voter waits for its turn, and does not stand when another election has begun', () => {
  const roleAfter = (ticks: number, change: (world: ReturnType<typeof begin>) => void = () => undefined) => {
    const world = begin(follower({ voters: VOTERS }, 2))
    // The leader is node 3, and node 2 is the second of the others.
    world.peers.handler?.onClosed?.('n3', 'control', true)
    change(world)
    world.pass(ticks)
    return [world.raft.role, world.member.stands]
  }
  expect(roleAfter(FAST_CAMPAIGN_TICKS)).toEqual(['follower', 0])
  expect(roleAfter(FAST_CAMPAIGN_TICKS + 1)).toEqual(['preCandidate', 1])
  const spent = ({ member }: ReturnType<typeof begin>, stands: number) => Object.assign(member, { stands })
  expect(roleAfter(FAST_CAMPAIGN_TICKS + 1, (world) => spent(world, 4))).toEqual(['preCandidate', 5])
  expect(roleAfter(FAST_CAMPAIGN_TICKS + 1, (world) => spent(world, 5))).toEqual(['follower', 5])
  expect(roleAfter(FAST_CAMPAIGN_TICKS + 1, ({ raft }) => heartbeatTo(raft, 2, 0, 1))).toEqual(['follower', 0])
  expect(roleAfter(FAST_CAMPAIGN_TICKS + 1, ({ member }) => Object.assign(member, { deathTerm: 0 }))).toEqual([
    'follower',
    0,
  ])
})

// Connections

test('an opened control connection gets a report at once, a bulk connection none', () => {
  const { peers, seen } = begin(follower())
  peers.handler?.onOpen?.('n3', 'bulk')
  expect(seen.sent).toEqual([])
  peers.handler?.onOpen?.('n3', 'control')
  expect(seen.sent.map(({ node, frame }) => [node, frame.type])).toEqual([
    ['n3', 'formation'],
    ['n3', 'facts'],
  ])
})

test('what a node reported is forgotten with its control connection, and a leader probes it', () => {
  const { peers, raft, member, facts } = begin(leaderOf({ voters: VOTERS }))
  const states = () => raft.peers.map(({ state }) => state)
  facts('n2')
  peers.handler?.onClosed?.('n2', 'bulk', false)
  expect([member.facts.has(2), member.running.has('n2'), states()]).toEqual([true, true, ['probe', 'replicate']])
  peers.handler?.onClosed?.('n2', 'control', false)
  expect([member.facts.has(2), member.running.has('n2')]).toEqual([false, false])
  peers.handler?.onClosed?.('n9', 'control', false)
  expect(states()).toEqual(['probe', 'replicate'])
})

test('the core finds nodes by raft id, and frames carry its own', () => {
  const { peers } = begin(follower())
  expect([peers.raftId, peers.nodeOf(3), peers.nodeOf(8)]).toEqual([1, 'n3', undefined])
})

// What all replicas must agree on

test('the first leader logs random bits and settings once; a shard that has its bits gets none', () => {
  const fresh = begin(leaderOf({ voters: VOTERS }), { knobs: { genesis: 0 } })
  fresh.pass(5)
  const [genesis, settings, ...rest] = commandsOf(fresh.seen.log)
  expect([genesis?.kind, settings?.kind, rest]).toEqual([KIND.genesis, KIND.settings, []])
  expect([...(genesis?.body ?? [])]).toEqual(new Array<number>(16).fill(7))
  const others = [begin(leaderOf({ voters: VOTERS })), begin(follower(), { knobs: { genesis: 0 } })]
  for (const { pass } of others) pass(5)
  expect(others.map(({ seen }) => commandsOf(seen.log))).toEqual([[], []])
})

const numberIn = ({ kind, body }: { kind: number; body: Uint8Array }) =>
  kind === KIND.memoryBudget ? viewOf(body).getFloat64(0, true) : viewOf(body).getUint32(0, true)

test.each<[string, Partial<Knobs>, string, readonly (readonly [number, number])[]]>([
  [
    'the level of all members with the least memory, 0 being no limit',
    { level: 0, budgetBytes: 0 },
    'n2 50, n3 0, n4 1',
    [
      [KIND.featureLevel, FEATURE_LEVEL],
      [KIND.memoryBudget, 50],
    ],
  ],
  [
    'no level above that of a learner',
    { level: 0, budgetBytes: 0 },
    `n2 90, n3 90, n4 90 ${FEATURE_LEVEL - 1}`,
    [
      [KIND.featureLevel, FEATURE_LEVEL - 1],
      [KIND.memoryBudget, 77],
    ],
  ],
  ['nothing while a voter has not reported', { level: 0, budgetBytes: 0 }, 'n2 50, n4 50', []],
  ['nothing while a learner supports no level', { level: 0, budgetBytes: 5 }, 'n2 50, n3 50', []],
  ['nothing when level and budget are in force', { budgetBytes: 50 }, 'n2 50, n3 60, n4 1', []],
  ['a budget that changed, alone', { budgetBytes: 60 }, 'n2 50, n3 60, n4 1', [[KIND.memoryBudget, 50]]],
])('a leader logs %s', (_, knobs, reports, expected) => {
  const { facts, pass, seen } = begin(leaderOf({ voters: VOTERS, learners: [4] }), { knobs })
  for (const report of reports.split(', ')) {
    const [node = '', budget, level = FEATURE_LEVEL] = report.split(' ')
    facts(node, Number(budget), Number(level))
  }
  pass(10)
  expect(commandsOf(seen.log).map((each) => [each.kind, numberIn(each)])).toEqual(expected)
})

test('rules that are not in force are proposed again after 2 s; nodes without a limit have budget 0', () => {
  const { facts, pass, seen } = begin(leaderOf({ voters: VOTERS }), {
    knobs: { budgetBytes: 5 },
    options: { memoryBudget: 0 },
  })
  facts('n2')
  facts('n3')
  const counts = [1, 19, 1].map((ticks) => {
    pass(ticks)
    return commandsOf(seen.log).map(numberIn)
  })
  expect(counts).toEqual([[0], [0], [0, 0]])
})

test('a follower logs no rules', () => {
  const { facts, pass, seen } = begin(follower(), { knobs: { level: 0, budgetBytes: 0 } })
  for (const node of ['n2', 'n3']) facts(node)
  pass(3)
  expect(commandsOf(seen.log)).toEqual([])
})

// Hand-over

/** A leader whose voter 3 has more of the log than voter 2. */
function ahead(): Raft {
  const raft = leaderOf({ voters: VOTERS, learners: [4] })
  give(raft, 3)
  acknowledge(raft, 3, 4)
  acknowledge(raft, 2, 2)
  acknowledge(raft, 4, 4)
  return raft
}

test.each<[string, (world: ReturnType<typeof begin>) => void, number]>([
  ['with a full disk', ({ replica }) => Object.assign(replica, { isDiskFull: true }), 3],
  ['whose syncs are slow for 10 s', ({ replica }) => Object.assign(replica, { slowSyncMs: 10_000 }), 3],
  ['whose syncs are slow for less', ({ replica }) => Object.assign(replica, { slowSyncMs: 9_999 }), 0],
  ['with a healthy disk', () => undefined, 0],
  [
    'with a full disk, as has the most advanced voter',
    ({ replica, member, now }) => {
      Object.assign(replica, { isDiskFull: true })
      member.samples.set(3, { isDiskFull: true, receivedMs: now.monotonicMs } as never)
    },
    2,
  ],
  [
    'with a full disk and no reachable voter',
    ({ replica, raft }) => {
      Object.assign(replica, { isDiskFull: true })
      for (const peer of raft.peers) if (peer.id !== 4) peer.isActive = peer.wasActive = false
    },
    0,
  ],
])('a leader %s hands over to the most advanced voter that can lead', (_, change, target) => {
  const world = begin(ahead())
  change(world)
  world.jump(100)
  expect(world.raft.transferTarget).toBe(target)
})

test('a follower with a full disk hands nothing over', () => {
  const world = begin(follower())
  Object.assign(world.replica, { isDiskFull: true })
  world.jump(100)
  expect([world.raft.transferTarget, world.member.nextHandoverMs]).toEqual([0, 0])
})

test.each([
  ['full', { isDiskFull: true }, 10_000],
  ['slow', { slowSyncMs: 20_000 }, 300_000],
])('a hand-over because of a %s disk is logged, and tried again later', (word, change, againMs) => {
  const { replica, raft, member, jump, seen, now } = begin(ahead())
  Object.assign(replica, change)
  jump(100)
  expect(member.nextHandoverMs - now.monotonicMs).toBe(againMs)
  expect(seen.lines).toContain(`warn: leadership is handed over: the disk of this node is ${word} {"to":"n3"}`)
  const tryAt = (atMs: number) => {
    Object.assign(raft, { transferTarget: 0 })
    Object.assign(member, { nextHandoverMs: now.monotonicMs + 100 + atMs })
    jump(100)
    return raft.transferTarget
  }
  expect([tryAt(1), tryAt(0)]).toEqual([0, 3])
})

test('a node that ends hands leadership to the most advanced voter, and waits for a hand-over that runs', () => {
  const leading = begin(ahead())
  expect([handOverAtEnd(leading.member), leading.raft.transferTarget]).toEqual([true, 3])
  expect(handOverAtEnd(leading.member)).toBe(true)
  expect(handOverAtEnd(begin(follower()).member)).toBe(false)
  expect(handOverAtEnd(begin(leaderOf({ voters: [1] })).member)).toBe(false)
})

// Snapshots and bulk loads

test('the end of an installation is reported to the leader', () => {
  const { member, sentTo } = begin(follower())
  Object.assign(member, { isSwitching: true, offered: { index: 40 } })
  onSwitched(member)
  expect([member.isSwitching, member.offered]).toEqual([false, undefined])
  expect(sentTo('n2', 'offerReply').map(({ frame }) => frame)).toMatchObject([{ index: 40, reason: 'installed' }])
  onSwitched(member)
  expect(sentTo('n2', 'offerReply')).toHaveLength(1)
})

test('a snapshot that cannot be installed ends a node only while its core waits for it', () => {
  const { member, replica, seen } = begin(follower())
  const { port } = member.receiver
  Object.assign(member, { offered: {} })
  port.onFailed('no-space', '', 'install')
  expect([member.offered, seen.fatal]).toEqual([undefined, []])
  Object.assign(replica, { installing: { index: 9 } })
  port.onFailed('failed', 'in the test', 'load')
  expect(seen.fatal).toEqual([])
  port.onFailed('failed', 'in the test', 'install')
  expect(seen.fatal.map(String)).toEqual([
    expect.stringContaining('a snapshot cannot be installed: failed in the test'),
  ])
})

test('an installation without room marks the disk as full and is tried again after 5 s', () => {
  const { member, replica, timers, now } = begin(follower())
  const { port } = member.receiver
  port.onDelayed('failed', '')
  expect(replica.isDiskFull).toBe(false)
  port.onDelayed('no-space', '')
  expect(replica.isDiskFull).toBe(true)
  expect(timers.slice(1).map(({ atMs }) => atMs - now.monotonicMs)).toEqual([5_000, 5_000])
})

test('a load is proposed with its digest, and refused by a node without loads', () => {
  const { member, seen } = begin(leaderOf({ voters: VOTERS, learners: [4] }))
  const { port } = member.loads
  expect(port.propose(DIGEST)).toBe(true)
  const [load] = commandsOf(seen.log)
  expect([load?.kind, Buffer.from(load?.body.subarray(0, 32) ?? []).toString('hex')]).toEqual([KIND.bulkLoad, DIGEST])
  expect(port.check('/x')).toBe('this node does not accept bulk loads')
  expect([port.voters(), port.others(), port.isLeader()]).toEqual([['n1', 'n2', 'n3'], ['n2', 'n3', 'n4'], true])
  expect(begin(follower()).member.loads.port.isLeader()).toBe(false)
})

// Operator requests

function request(world: ReturnType<typeof begin>, what: AdminRequest): AdminAnswer[] {
  const answers: AdminAnswer[] = []
  requestAdmin(world.member, what, (answer) => void answers.push(answer))
  return answers
}
const PROMOTE = { kind: 'promote', node: 'n4' } as const

test('a member forwards a request to its leader, and answers its caller once with the reply', () => {
  const world = begin(follower())
  const answers = request(world, PROMOTE)
  request(world, PROMOTE)
  const frames = world.sentTo('n2', 'admin').map(({ frame }) => frame)
  expect(frames).toEqual([1, 2].map((id) => ({ type: 'admin', id, ...PROMOTE, digest: '', detail: '' })))
  expect(answers).toEqual([])
  world.hear('n2', { type: 'adminReply', id: 1, ok: true, status: 202, text: 'yes' })
  expect(answers).toEqual([{ status: 202, text: 'yes' }])
})

test.each<[string, AdminRequest, object]>([
  ['drop-load', { kind: 'drop-load', digest: DIGEST }, { digest: DIGEST, detail: '', node: '' }],
  ['set-time', { kind: 'set-time', confirm: false }, { digest: '', detail: '', node: '' }],
  ['set-time', { kind: 'set-time', confirm: true }, { digest: '', detail: 'confirm', node: '' }],
  ['setting', { kind: 'setting', name: 'holds_max', value: 5 }, { digest: '', detail: 'holds_max=5', node: '' }],
  ['demote', { kind: 'demote', node: 'n3' }, { digest: '', detail: '', node: 'n3' }],
])('%s is forwarded with its parameters: %o', (kind, what, fields) => {
  const world = begin(follower())
  request(world, what)
  expect(world.sentTo('n2', 'admin').map(({ frame }) => frame)).toEqual([{ type: 'admin', id: 1, kind, ...fields }])
})

test('a request without a reply ends after 6 s', () => {
  const world = begin(follower())
  const answers = request(world, PROMOTE)
  world.jump(5_999)
  expect(answers).toEqual([])
  world.jump(100)
  expect(answers).toEqual([{ status: 503, text: 'the leader did not answer' }])
})

test('requests are refused without a leader, without a connection, and when 64 wait', () => {
  const none = { status: 503, text: 'no leader' }
  expect(request(begin(raftOf({ voters: VOTERS })), PROMOTE)).toEqual([none])
  const cut = begin(follower(), { knobs: { isOpen: false } })
  expect([request(cut, PROMOTE), cut.member.admin.size]).toEqual([[none], 0])
  const busy = begin(follower())
  for (let n = 0; n < 63; n++) request(busy, PROMOTE)
  expect(request(busy, PROMOTE)).toEqual([])
  expect(request(busy, PROMOTE)).toEqual([{ status: 503, text: 'cluster busy, please retry' }])
})

test('below their feature level time and settings are refused here, since an older leader does not know the frames', () => {
  const world = begin(follower(), { knobs: { level: 0 } })
  const answers = [
    ...request(world, { kind: 'set-time', confirm: true }),
    ...request(world, { kind: 'setting', name: 'holds_max', value: 1 }),
  ]
  expect(answers).toMatchObject([{ status: 409 }, { status: 409 }])
  expect(world.sentTo('n2', 'admin')).toEqual([])
})

test('a load is first obtained here, and its leader gets only the digest', () => {
  const world = begin(follower())
  const answers = request(world, { kind: 'load', digest: DIGEST })
  world.seen.pending[0]?.done({ state: 'missing' })
  expect(world.sentTo('n2', 'admin').map(({ frame }) => frame)).toMatchObject([
    { kind: 'load', node: '', digest: DIGEST },
  ])
  expect(answers).toEqual([])
})

const adminFrame = (kind: 'promote' | 'setting' | 'set-time' | 'demote' | 'transfer', node = '', detail = '') =>
  ({ type: 'admin', id: 9, kind, node, digest: '', detail }) as const

test('a leader decides what members forward; a node that does not lead refuses it', () => {
  const world = begin(leaderOf({ voters: VOTERS, learners: [4] }))
  const replies = () => world.sentTo('n2', 'adminReply').map(({ frame }) => frame)
  world.hear('n2', adminFrame('setting', '', 'holds_max=50'))
  world.hear('n2', adminFrame('promote', 'n9'))
  world.hear('n2', adminFrame('transfer', 'n3'))
  expect(replies()).toMatchObject([
    { id: 9, ok: true, status: 202, text: 'holds_max = 50 was proposed' },
    { id: 9, ok: false, status: 404 },
    { id: 9, ok: true, status: 202 },
  ])
  expect([world.raft.transferTarget, commandsOf(world.seen.log).map(({ kind }) => kind)]).toEqual([3, [KIND.setting]])
  const behind = begin(follower())
  behind.hear('n3', adminFrame('promote', 'n3'))
  expect(behind.sentTo('n3', 'adminReply').map(({ frame }) => frame)).toMatchObject([
    { id: 9, ok: false, status: 503, text: 'no leader' },
  ])
})

test('a leader proposes a change of members once, and knows the entry to wait for', () => {
  const world = begin(leaderOf({ voters: VOTERS, learners: [4] }))
  expect(request(world, { kind: 'demote', node: 'n3' })).toMatchObject([{ status: 202 }])
  world.pass(5)
  expect(world.member.membership.operation).toMatchObject({ phase: 'changing', changeIndex: world.raft.lastIndex })
  const appended = world.seen.log.filter(({ type }) => type === 'append')
  expect(appended).toHaveLength(1)
})

test('a leader that is not ready sets neither time nor settings', () => {
  const world = begin(Object.assign(leaderOf({ voters: VOTERS }), { termStart: 0 }))
  const answers = [
    ...request(world, { kind: 'set-time', confirm: true }),
    ...request(world, { kind: 'setting', name: 'holds_max', value: 1 }),
  ]
  expect(answers).toEqual(new Array(2).fill({ status: 503, text: 'no leader' }))
})

test('the status of a reply is one that callers know', () => {
  expect([202, 404, 409, 503, 200, 500, 0].map(adminStatus)).toEqual([202, 404, 409, 503, 503, 503, 503])
})

// Setting the time

test('setting a time that is right changes nothing; without agreeing clocks it is refused', () => {
  const right = begin(leaderOf({ voters: [1] }))
  const agrees = `Shard time is ${new Date(WALL_MS).toISOString()} and agrees with the clock.`
  expect(request(right, { kind: 'set-time', confirm: true })).toEqual([{ status: 409, text: agrees }])
  const alone = begin(leaderOf({ voters: VOTERS }))
  const [answer] = request(alone, { kind: 'set-time', confirm: true })
  expect(answer).toMatchObject({ status: 409, text: expect.stringContaining('No majority of the 3 voters') })
})

/** A single voter whose shard time is ahead of its clock by some days. */
function aheadBy(days: number) {
  const world = begin(leaderOf({ voters: [1] }))
  world.replica.clock.timeMs = WALL_MS + days * 86_400_000
  world.replica.clock.monotonicMs = world.now.monotonicMs
  return world
}

test('the plan names times and nights that were missed, and only a confirmed one is proposed', () => {
  const world = aheadBy(2)
  const [answer] = request(world, { kind: 'set-time', confirm: false })
  expect(answer?.status).toBe(202)
  expect(JSON.parse(answer?.text ?? '')).toEqual({
    ...{ applied: false, shard_time: '2026-11-22T00:00:00.000Z', new_time: '2026-11-20T00:00:00.000Z' },
    ...{ import_nights: null, missed_nights: { from: '2026-11-20', to: '2026-11-21' }, dropped_from: null },
  })
  expect(commandsOf(world.seen.log)).toEqual([])
})

test('a confirmed time is answered once it is applied', () => {
  const world = aheadBy(2)
  const answers = request(world, { kind: 'set-time', confirm: true })
  expect(commandsOf(world.seen.log).map(({ kind }) => kind)).toEqual([KIND.setTime])
  world.jump(100)
  expect(answers).toEqual([])
  world.machine.time.lastSet = () => ({ count: 1, fromMs: 0, toMs: WALL_MS + 1 })
  world.jump(20)
  world.machine.time.lastSet = () => ({ count: 1, fromMs: 0, toMs: WALL_MS })
  expect(answers).toEqual([])
  world.jump(20)
  expect(answers).toMatchObject([{ status: 202, text: expect.stringContaining('"applied":true') }])
})

test('a confirmed time that is not applied within 4 s, or before the node stops, has an unknown outcome', () => {
  const late = aheadBy(2)
  const answers = request(late, { kind: 'set-time', confirm: true })
  late.jump(3_999)
  expect(answers).toEqual([])
  late.jump(20)
  expect(answers).toMatchObject([{ status: 503, text: expect.stringContaining('not known') }])
  const stopping = aheadBy(2)
  const ended = request(stopping, { kind: 'set-time', confirm: true })
  Object.assign(stopping.replica, { isStopping: true })
  stopping.jump(20)
  expect(ended).toMatchObject([{ status: 503 }])
})

test('a leader with a full disk sets no time', () => {
  const world = aheadBy(2)
  Object.assign(world.replica, { isDiskFull: true })
  expect(request(world, { kind: 'set-time', confirm: true })).toMatchObject([
    { status: 503, text: expect.stringContaining('Nothing was changed') },
  ])
})

// Status (member-status.ts)

test('a leader reports its members with their progress, and how far each is behind', () => {
  const raft = ahead()
  const { member, now } = begin(raft)
  member.samples.set(2, { receivedMs: now.monotonicMs - 1_000 } as never)
  member.samples.set(3, { receivedMs: now.monotonicMs - 1_001 } as never)
  const [, second] = raft.peers
  if (second) Object.assign(second, { match: raft.commit + 5 })
  const { members, ...shard } = clusterStatus(member)
  const lag = raft.commit - 2
  expect(
    members.map(({ role, isVoter, health, matchIndex, lagEntries, lagMs }) => [
      role,
      isVoter,
      health,
      matchIndex,
      lagEntries,
      lagMs,
    ]),
  ).toEqual([
    ['leader', true, 'active', raft.lastIndex, 0, 0],
    ['follower', true, 'active', 2, lag, lag === 0 ? 0 : undefined],
    ['follower', true, 'inactive', raft.commit + 5, 0, 0],
    ['learner', false, 'inactive', 4, 0, 0],
  ])
  expect(members.map(({ id, host }) => [id, host])).toEqual(['n1', 'n2', 'n3', 'n4'].map((n) => [n, `host-of-${n}`]))
  expect(shard).toMatchObject({
    ...{ nodeId: 'n1', zoneId: 'zone-a', clusterId: '0b'.repeat(16), role: 'leader', leader: 'n1', isLeading: true },
    ...{ isJoint: false, isRemoved: false, peers: ['n2', 'n3', 'n4'], term: 1, transport: { opened: 4 } },
  })
})

test('a follower knows its leader, and nothing of the progress of others', () => {
  const raft = follower({ voters: VOTERS, learners: [4] })
  const { members, role, leader, isLeading } = clusterStatus(begin(raft).member)
  expect([role, leader, isLeading]).toEqual(['follower', 'n2', false])
  expect(members.map((each) => [each.role, each.health, each.progress, each.matchIndex, each.lagEntries])).toEqual([
    ['follower', 'active', undefined, 1, 0],
    ['leader', 'unknown', undefined, undefined, undefined],
    ['follower', 'unknown', undefined, undefined, undefined],
    ['learner', 'unknown', undefined, undefined, undefined],
  ])
})

test('a node is a learner, a candidate, or part of a joint configuration', () => {
  const learner = begin(follower({ voters: [2, 3], learners: [1] }))
  expect(clusterStatus(learner.member)).toMatchObject({ role: 'learner', isJoint: false })
  const candidate = begin(raftOf({ voters: VOTERS }, { log: [1] }))
  candidate.pass(10)
  expect(clusterStatus(candidate.member)).toMatchObject({ role: 'candidate', leader: '' })
  const joint = begin(follower({ voters: VOTERS, outgoing: [1, 2, 4] }))
  expect(clusterStatus(joint.member).isJoint).toBe(true)
})

test('a member that receives a snapshot is installing', () => {
  const raft = leaderOf({ voters: VOTERS })
  const [peer] = raft.peers
  if (peer) Object.assign(peer, { state: 'snapshot' })
  expect(clusterStatus(begin(raft).member).members[1]?.health).toBe('installing')
})

test('staleness is the age of the last confirmation, and unknown before the first', () => {
  const { member, now } = begin(follower())
  const at = (freshMs: number) => {
    member.reads.freshMs = freshMs
    return clusterStatus(member).stalenessMs
  }
  expect([Number.NEGATIVE_INFINITY, now.monotonicMs - 30, now.monotonicMs + 5].map(at)).toEqual([undefined, 30, 0])
})

test('operations of membership and loads are one list, the newest first, with the last setting of the time', () => {
  const { member, machine } = begin(follower())
  const loads = [30, 10].map((atMs) => ({ kind: 'load', node: '', result: 'done', reason: '', atMs }))
  Object.assign(member.loads, { finished: loads, ended: { done: 3, failed: 2 } })
  Object.assign(member.membership, { ended: { done: 10, failed: 20 } })
  machine.time.lastSet = () => ({ count: 1, fromMs: 0, toMs: 20, importNights: { from: 20_000, end: 20_003 } })
  const { lastOperations, operationsEnded, operation } = clusterStatus(member)
  expect(lastOperations.map(({ kind, atMs }) => [kind, atMs])).toEqual([
    ['load', 30],
    ['set-time', 20],
    ['load', 10],
  ])
  expect(lastOperations[1]).toMatchObject({
    ...{ node: 's', result: 'done' },
    reason: expect.stringMatching(
      /^from {2}to 1970-01-01T00:00:00.020Z; nights 2024-10-04 to 2024-10-06 need a new import$/,
    ),
  })
  expect([operationsEnded, operation]).toEqual([{ done: 13, failed: 22 }, undefined])
  machine.time.lastSet = () => ({ count: 1, fromMs: 0, toMs: 20, importNights: undefined })
  expect(clusterStatus(member).lastOperations[1]?.reason).not.toContain('import')
})

test('transfers of both directions are counted', () => {
  const { member } = begin(follower())
  Object.assign(member.sender, { sent: 3, failed: 4, lastDurationMs: 50 })
  Object.assign(member.receiver, { received: 5, failed: 6 })
  const { transfers } = clusterStatus(member)
  expect(transfers).toMatchObject({ sending: 0, receiving: 0, sent: 3, received: 5, failed: 10, durationMs: 50 })
  Object.assign(member.receiver, { incoming: { ...INCOMING } })
  expect(clusterStatus(member).transfers.receiving).toBe(1)
})

const INCOMING = {
  offer: { node: 'n2', index: 9, term: 1, manifest: new Uint8Array(0) },
  ...{ phase: 'pulling', requests: new Map(), bytesDone: 1, bytesTotal: 2, waiting: [], pulling: [], verifying: [] },
}
