/** A real member around a core whose peers are simulated: timers, reports, operator requests and its status. */

import { createCodecList, dayOf } from '@vacancy/shared'
import { describe, expect, test } from 'vitest'
import { startJoining } from '../bootstrap/bootstrap.ts'
import { createFormation } from '../bootstrap/formation.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, viewOf } from '../raft/entry.ts'
import { beginCommand, COMMAND_HEADER_BYTES, encodeSettings, KIND, kindOfCommand } from '../store/command.ts'
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
import { beginProposal, createProposals, endProposal, REFUSED, takeProposals } from '../threads/writes.ts'
import { decodeFrame, type PeerFrame } from '../transport/frames.ts'
import { createPeers } from '../transport/peers.ts'
import type { ToWal } from '../wal/wal-thread.ts'
import { type AdminRequest, requestAdmin } from './admin.ts'
import { onLogMessage } from './log-answers.ts'
import { beat, createMember, handOverAtEnd, takeReads } from './member.ts'
import { type AdminAnswer, FAST_CAMPAIGN_TICKS, type MemberParts } from './member-state.ts'
import { proposeBatch, proposeOwn } from './proposals.ts'
import { addSink, createReplica, type ReplicaParts } from './replica-state.ts'
import { attachCells, createCells } from './shared-status.ts'

type Raft = ReturnType<typeof raftOf>

const VOTERS = [1, 2, 3]
const START_MS = 1_000_000
const WALL_MS = Date.UTC(2026, 10, 20)

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
  indexBase: () => 0,
  budgetUse: () => ({ budgetBytes: knobs.budgetBytes, chargedBytes: 0, leftBytes: 0 }),
  stays: { nextDeadlineMs: () => Number.POSITIVE_INFINITY, admits: () => true },
  time: {
    dayAt: dayOf,
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
    /** By the timer of the ticks. */
    wakes: 0,
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
      shownGenesis: () => new Uint8Array(16).fill(knobs.genesis),
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
    seen.wakes += due.length
    beat(member)
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

test('a stalled node makes one tick, and counts a stall longer than two heartbeats', () => {
  const { raft, member, jump, seen } = begin(raftOf({ voters: VOTERS }, { log: [1] }))
  jump(200)
  expect([member.stalls, raft.role]).toEqual([0, 'follower'])
  jump(201)
  expect([member.stalls, seen.lines]).toEqual([1, ['warn: replica thread stalled {"milliseconds":201}']])
  jump(60_000)
  expect([member.stalls, raft.role]).toEqual([2, 'follower'])
})

test('a leader sends a commit with the next entries, or by itself when none come in two milliseconds', () => {
  const { raft, replica, seen, hear, jump } = begin(leaderOf({ voters: VOTERS }))
  const write = () => {
    proposeOwn(replica, KIND.settings, encodeSettings(4_096))
    const { term: at, lastIndex: index } = raft
    const reply = { isRejected: false, hintIndex: 0, hintTerm: 0 }
    hear('n2', { type: 'appendReply', from: 2, to: 1, term: at, index, ...reply })
    for (const message of seen.log.splice(0)) {
      const group = { syncMs: 1, entries: 1, bytes: 0, files: 1 }
      if (message.type === 'append') onLogMessage(replica, { type: 'stored', token: message.token, ...group })
    }
    expect(raft.commit).toBe(index)
  }
  /** Of the appends to a peer: the commit index, and the entries. */
  const sent = () =>
    seen.sent.splice(0).flatMap(({ node, frame }) => {
      if (node !== 'n3' || frame.type !== 'append') return []
      return [[frame.commit, frame.entries.reduce((sum, { count }) => sum + count, 0)]]
    })
  const first = raft.lastIndex + 1
  write()
  expect(sent()).toEqual([[first - 1, 1]])
  for (let index = first + 1; index < first + 5; index++) {
    jump(0.5)
    expect(sent()).toEqual([])
    write()
    expect(sent()).toEqual([[index - 1, 1]])
  }
  jump(1)
  jump(1)
  expect(sent()).toEqual([[raft.commit, 0]])
  jump(1)
  expect(sent()).toEqual([])
})

describe('while nothing is under way the timer sleeps over ticks', () => {
  const TICK_MS = 30
  const options = { tickMs: TICK_MS, electionTicks: 60, heartbeatTicks: 15 }

  /** A follower whose disk and leader answer at once, and whose leader sends a heartbeat every 15 ticks while it lives. */
  function quiet() {
    const raft = raftOf({ voters: VOTERS }, { id: 1, electionTicks: 60, heartbeatTicks: 15 })
    heartbeatTo(raft, 1)
    const world = begin(raft, { options })
    const answerAll = () => {
      for (const { frame } of world.seen.sent.splice(0)) {
        if (frame.type !== 'readIndex') continue
        const { context, from, term } = frame
        world.hear('n2', { type: 'readIndexReply', from: 2, to: from, term, context, index: 0 })
      }
      const group = { syncMs: 1, entries: 0, bytes: 0, files: 1 }
      for (const message of world.seen.log.splice(0))
        if (message.type === 'append') onLogMessage(world.replica, { type: 'stored', token: message.token, ...group })
    }
    const tickAlong = (ticks: number, isLeaderAlive = true) => {
      for (let n = 1; n <= ticks; n++) {
        world.jump(TICK_MS)
        answerAll()
        if (isLeaderAlive && n % 15 === 0)
          world.hear('n2', { type: 'heartbeat', from: 2, to: 1, term: 1, commit: 0, readRound: n })
      }
    }
    tickAlong(64)
    world.seen.wakes = 0
    return { ...world, tickAlong }
  }

  test('it wakes for rounds of reads only, and its ticks count', () => {
    const { raft, seen, tickAlong } = quiet()
    tickAlong(600)
    expect(seen.wakes).toBeLessThan(120)

    const left = raft.electionTimeout - raft.electionElapsed
    tickAlong(left - 1, false)
    expect(raft.role).toBe('follower')
    tickAlong(1, false)
    expect(raft.role).toBe('preCandidate')
  })

  test('the end of the connection to a dead leader wakes it', () => {
    const { member, raft, peers, jump } = quiet()
    expect(member.ticksAsleep).toBeGreaterThan(3)
    peers.handler?.onClosed?.('n2', 'control', true)
    jump(TICK_MS)
    expect(raft.role).toBe('preCandidate')
  })

  test('a stall while it sleeps is counted', () => {
    const { member, jump } = quiet()
    jump(450)
    expect(member.stalls).toBe(0)
    jump(600)
    expect(member.stalls).toBe(1)
  })

  test('a read that waits wakes it with the next beat', () => {
    const { member } = quiet()
    expect(member.ticksAsleep).toBeGreaterThan(3)
    takeReads(member, 0, Float64Array.of(1, 1, 0))
    expect(member.ticksAsleep).toBe(0)
  })
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

test('a leader takes no write of a client before the genesis of this life of the data', () => {
  const { replica, pass, seen } = begin(leaderOf({ voters: VOTERS }), { knobs: { genesis: 0 } })
  const codes: number[] = []
  const sink = addSink(replica, (answers) => void codes.push(new DataView(answers).getUint8(4)))
  const write = () => {
    const proposals = createProposals()
    beginCommand(beginProposal(proposals), KIND.setAvailability)
    endProposal(proposals, 1)
    proposeBatch(replica, sink, takeProposals(proposals))
  }
  write()
  expect([codes, commandsOf(seen.log)]).toEqual([[REFUSED.noLeader], []])
  pass(5)
  write()
  expect(commandsOf(seen.log).map(({ kind }) => kind)).toEqual([KIND.genesis, KIND.settings, KIND.setAvailability])
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
  ['whose disk has not answered for 2.5 s', ({ replica }) => Object.assign(replica, { unansweredMs: 2_500 }), 3],
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

test.each([
  ['full', { isDiskFull: true }, 10_000],
  ['slow', { slowSyncMs: 20_000 }, 300_000],
  ['stuck', { pausedMs: 30_000 }, 2_000],
])('a hand-over because of a %s disk is logged, and tried again later', (word, change, againMs) => {
  const { replica, raft, member, jump, seen, now } = begin(ahead())
  Object.assign(replica, change)
  jump(100)
  expect(member.lastHandoverMs).toBe(now.monotonicMs)
  expect(seen.lines).toContain(`warn: leadership is handed over: the disk of this node is ${word} {"to":"n3"}`)
  const tryAt = (atMs: number) => {
    Object.assign(raft, { transferTarget: 0 })
    Object.assign(member, { lastHandoverMs: now.monotonicMs + 100 + atMs - againMs })
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

// Membership

const ADMITTED = 6_537
/** What a leader replies that knows node 1 under this id, admitted with this incarnation. */
function joinedAs(id: number, incarnation = incarnationOf(1)): Extract<PeerFrame, { type: 'joined' }> {
  const configuration = raftOf({ voters: [2, 3], learners: [id] }).configuration
  const members = configuration.members.map((each) => (each.id === id ? { id, node: 'n1', incarnation } : each))
  return { type: 'joined', member: id, configuration: { ...configuration, members } }
}

test('a running member that was removed and admitted again becomes the member it was admitted as', () => {
  const { raft, member, peers, hear } = begin(follower({ voters: [2, 3], learners: [1] }))
  hear('n2', { type: 'refused', reason: 'removed', detail: '' })

  hear('n2', joinedAs(ADMITTED, incarnationOf(9)))
  expect([raft.id, member.isRemoved]).toEqual([1, true])
  hear('n2', joinedAs(ADMITTED))
  expect([raft.id, peers.raftId, member.isRemoved]).toEqual([ADMITTED, ADMITTED, false])
  // Sent before, but late.
  hear('n2', joinedAs(1_732))
  expect([raft.id, peers.raftId, member.isRemoved]).toEqual([ADMITTED, ADMITTED, false])
})

test('a candidate that was removed and admitted again as a learner campaigns no more', () => {
  const { raft, hear, pass } = begin(follower())
  pass(40)
  expect(raft.role).toBe('preCandidate')
  hear('n2', joinedAs(ADMITTED))
  pass(40)
  expect(raft.role).toBe('follower')
})

test('a leader tells a member that reports and is silent what it is, and a stranger that it was removed', () => {
  const { hear, jump, sentTo } = begin(leaderOf({ voters: [1], learners: [2] }))
  jump(100)
  const [own] = sentTo('n2', 'formation')
  const report = (number: number) => hear('n2', { ...own?.frame, incarnation: incarnationOf(number) } as PeerFrame)
  report(2)
  expect(sentTo('n2', 'joined')).toEqual([])
  for (let n = 0; n < 20; n++) jump(100)
  report(2)
  expect(sentTo('n2', 'joined')).toMatchObject([{ frame: { member: 2 } }])
  report(9)
  expect(sentTo('n2', 'refused')).toMatchObject([{ frame: { reason: 'removed' } }])
})

test('a node that joins takes no reply to an earlier incarnation of it', () => {
  const { member, peers, hear, timers } = begin(follower())
  const taken: number[] = []
  const after = (delayMs: number, run: () => void) => {
    timers.push({ atMs: delayMs, run })
    return () => undefined
  }
  startJoining({ ...member.env, schedule: { after } }, peers, member.formation, [], (joined) => {
    taken.push(joined.member)
  })
  hear('n2', joinedAs(1_732, incarnationOf(9)))
  hear('n2', joinedAs(ADMITTED))
  expect(taken).toEqual([ADMITTED])
})

// Operator requests

function request(world: ReturnType<typeof begin>, what: AdminRequest): AdminAnswer[] {
  const answers: AdminAnswer[] = []
  requestAdmin(world.member, what, (answer) => void answers.push(answer))
  return answers
}
const PROMOTE = { kind: 'promote', node: 'n4' } as const

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

test('a change for a plan of another term is refused by the node that got it, also by one that leads no more', () => {
  const leading = begin(ahead())
  const { term } = leading.raft
  const transfer = (of: number): AdminRequest => ({ kind: 'transfer', node: 'n3', term: of })
  expect(request(leading, transfer(term - 1))).toMatchObject([
    { status: 409, text: expect.stringContaining('leads in') },
  ])
  expect(leading.raft.transferTarget).toBe(0)
  const other = begin(follower())
  expect(request(other, transfer(other.raft.term))).toMatchObject([{ status: 409 }])
  expect(other.sentTo('n2', 'admin')).toEqual([])
  expect(request(leading, transfer(term))).toEqual([{ status: 202, text: 'transfer in progress' }])
})

test('below their feature level time, settings and leaves are refused here, since an older leader does not know the frames', () => {
  const world = begin(follower(), { knobs: { level: 0 } })
  const answers = [
    ...request(world, { kind: 'set-time', confirm: true }),
    ...request(world, { kind: 'setting', name: 'holds_max', value: 1 }),
    ...request(world, { kind: 'leave', forMs: 1_000 }),
  ]
  expect(answers).toMatchObject([{ status: 409 }, { status: 409 }, { status: 503 }])
  expect(world.sentTo('n2', 'admin')).toEqual([])
})
