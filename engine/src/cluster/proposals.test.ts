/** A replica whose log, state machine and peers are the test itself: what it hands to each of them, and when it answers. */

import { dayOf } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, entryTerm, viewOf } from '../raft/entry.ts'
import type { Message } from '../raft/messages.ts'
import { campaign } from '../raft/raft.ts'
import { beginCommand, COMMAND_HEADER_BYTES, KIND, timeOfCommand, writeBytes, writeU32 } from '../store/command.ts'
import { acknowledge, appendTo, command, grant, heartbeatTo, memberOf } from '../testing/raft-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import {
  ANSWER_BYTES,
  ATTACHED,
  beginProposal,
  createProposals,
  endProposal,
  REFUSED,
  takeProposals,
} from '../threads/writes.ts'
import type { ToWal } from '../wal/wal-thread.ts'
import { answerStayReads, giveUpWaiting } from './answers.ts'
import { applyCommitted } from './applying.ts'
import { pump } from './hand-over.ts'
import { compactionFloor, onLogMessage, retryLog } from './log-answers.ts'
import { expireHolds, proposeBatch, proposeOwn, refusalOf } from './proposals.ts'
import { addSink, createReplica, type Link, type Replica } from './replica-state.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const NOW = Date.UTC(2026, 10, 20, 23, 59)

type Answer = { token: number; code: number; value: number; index: number; text?: string; frame?: string }
type Outcome = { code?: number; value?: number; index?: number; detail?: string; stay?: number }

type Bench = ReturnType<typeof createBench>

function createBench(voters: readonly number[] = [1]) {
  const simulation = createSimulation({ wallMs: NOW })
  const raft = memberOf({ voters })
  const log: ToWal[] = []
  const sent: Message[] = []
  const applied: { index: number; kind: number; value: number }[] = []
  const events: string[] = []
  const answers: Answer[][] = [[], []]
  const state = { level: 2, admits: (_value: number) => true, nextDeadlineMs: Number.POSITIVE_INFINITY, budgetBytes: 0 }
  const outcomeOf = { of: (_value: number): Outcome => ({}) }
  const nothing = () => undefined
  const link: Link = {
    ...{ onLoadEntry: nothing, onLoaded: nothing, voterClocks: () => [] },
    send: (message) => void sent.push(message),
    onReadState: (context, index) => void events.push(`read ${context} at ${index}`),
    onReadDropped: (context, reason) => void events.push(`no read ${context}: ${reason}`),
    onOffer: (peer) => void events.push(`offer ${peer}`),
    onInstall: ({ index }) => void events.push(`install ${index}`),
    keptIndex: () => Number.POSITIVE_INFINITY,
    onConfiguration: (index) => void events.push(`configuration ${index}`),
    onApplied: () => void events.push(`applied ${raft.applied}`),
    onRole: () => void events.push(`${raft.role} ${raft.term}`),
    hasBegun: () => true,
  }
  const replica: Replica = createReplica({
    env: simulation.env,
    raft,
    machine: {
      apply(index, bytes, start, end) {
        const view = viewOf(bytes)
        const value = end - start >= COMMAND_HEADER_BYTES + 4 ? view.getUint32(start + COMMAND_HEADER_BYTES, true) : 0
        applied.push({ index, kind: view.getUint16(start, true), value })
        return { code: 0, value: value & 255, index, detail: '', stay: 0, ...outcomeOf.of(value) }
      },
      ...{ publish: nothing, digestMarks: () => [], newestMark: () => undefined, digest: () => ({ lo: 0, hi: 0 }) },
      ...{ lastMaintenanceDay: () => 0, latestTimeMs: () => NOW, packagesBefore: () => 0, isUnordered: () => false },
      ...{ orderTables: () => [].values(), sweep: () => false, hasDeleted: () => false, prepareDeletes: nothing },
      ...{ lacksSparePages: () => false, hurrySnapshot: nothing },
      featureLevel: () => state.level,
      indexBase: () => 0,
      budgetUse: () => ({ budgetBytes: state.budgetBytes, chargedBytes: 0, leftBytes: 0 }),
      time: {
        dayAt: dayOf,
        noteDay: nothing,
        effectsOf: () => ({ importNights: undefined, droppedFrom: undefined }),
        lastSet: () => undefined,
      },
      stays: {
        replyTo: ({ stay }) => (stay === 0 ? undefined : Uint8Array.of(stay, 2, 3)),
        read: (bytes, start, end) =>
          bytes[start] === 9 ? { code: 13, frame: undefined } : { code: 0, frame: bytes.slice(start, end) },
        admits: (bytes, start) => state.admits(viewOf(bytes).getUint32(start + COMMAND_HEADER_BYTES, true)),
        nextDeadlineMs: () => state.nextDeadlineMs,
        status: () => {
          throw new Error('no test needs it')
        },
      },
    },
    snapshots: { start: nothing, retain: nothing },
    log: (message) => void log.push(message),
    ...{ onFatal: nothing, onMaintained: nothing, onReserve: nothing },
    ...(voters.length > 1 && { link }),
    space: () => ({ freeBytes: 1, totalBytes: 1 }),
    ...{ snapshotIntervalMs: 0, snapshotTriggerCount: 1_000_000, snapshotIndex: 0 },
    ...{ tornTailBytes: 0, acceptDay: 0, lastTimeMs: NOW },
  })
  for (const list of answers) addSink(replica, (buffer) => list.push(...decode(buffer)))
  return {
    simulation,
    replica,
    raft,
    log,
    sent,
    applied,
    events,
    answers: answers as [Answer[], Answer[]],
    state,
    outcomeOf,
  }
}

function decode(buffer: ArrayBuffer): Answer[] {
  const view = new DataView(buffer)
  const found: Answer[] = []
  for (let at = 0; at < buffer.byteLength; ) {
    const attached = view.getUint16(at + 6, true)
    const [code, value] = [view.getUint8(at + 4), view.getUint8(at + 5)]
    found.push({ token: view.getUint32(at, true), code, value, index: view.getFloat64(at + 8, true) })
    at += ANSWER_BYTES
    if (attached === ATTACHED.none) continue
    const bytes = Buffer.from(buffer, at + 4, view.getUint32(at, true))
    Object.assign(
      found.at(-1) as Answer,
      attached === ATTACHED.text ? { text: bytes.toString() } : { frame: bytes.toString('hex') },
    )
    at += 4 + bytes.length
  }
  return found
}

/** Confirms all hand-overs to the log. */
function store({ log, replica }: Bench): void {
  const last = log.findLast((message) => message.type === 'append')
  if (last) onLogMessage(replica, { type: 'stored', token: last.token, syncMs: 1, entries: 1, bytes: 10, files: 1 })
}

/** A leader whose empty entry is applied. */
function lead(voters?: readonly number[]): Bench {
  const bench = createBench(voters)
  const { raft, replica } = bench
  campaign(raft)
  pump(replica)
  if (raft.role === 'preCandidate') grant(raft, 2, 'preVoteReply')
  pump(replica)
  store(bench)
  if (raft.role === 'candidate') grant(raft, 2)
  pump(replica)
  store(bench)
  expect(raft.role).toBe('leader')
  confirm(bench)
  bench.log.length = 0
  bench.sent.length = 0
  return bench
}

/** Member 2 has everything. */
function confirm({ raft, replica }: Bench): void {
  if (replica.link) acknowledge(raft, 2)
  pump(replica)
  applyCommitted(replica)
}

type Command = { readonly token: number; readonly value: number; readonly kind?: number; readonly bytes?: number }

function batchOf(commands: readonly Command[]): ArrayBuffer {
  const proposals = createProposals()
  for (const { token, value, kind = KIND.setAvailability, bytes = 0 } of commands) {
    const writer = beginProposal(proposals)
    beginCommand(writer, kind as typeof KIND.setAvailability)
    writeU32(writer, value)
    writeBytes(writer, new Uint8Array(bytes), 0, bytes)
    endProposal(proposals, token)
  }
  return takeProposals(proposals)
}

const give = ({ replica }: Bench, commands: readonly Command[], sink = 0) =>
  proposeBatch(replica, sink, batchOf(commands))
const commandsOf = (count: number, from = 1): Command[] =>
  Array.from({ length: count }, (_, n) => ({ token: from + n, value: from + n }))

/** The commands handed to the log. */
function logged({ log }: Bench) {
  const batches = log.flatMap((message) => (message.type === 'append' ? message.entries : []))
  return batches.flatMap(({ bytes, firstIndex }) => {
    const view = viewOf(bytes)
    const entries = []
    for (let at = 0, index = firstIndex; at < bytes.length; at += ENTRY_HEADER_BYTES + entryLength(view, at), index++) {
      const start = at + ENTRY_HEADER_BYTES
      const body = bytes.subarray(start + COMMAND_HEADER_BYTES, start + entryLength(view, at))
      entries.push({
        ...{ index, term: entryTerm(view, at), isCommand: entryKind(view, at) === ENTRY_KIND.command },
        ...{
          kind: view.getUint16(start, true),
          timeMs: timeOfCommand(view, start),
          day: view.getUint32(start + 10, true),
        },
        body: Buffer.from(body).toString('hex'),
      })
    }
    return entries
  })
}

const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer).toString('hex')
const valuesIn = (bench: Bench) => logged(bench).map(({ body }) => Buffer.from(body, 'hex').readUInt32LE(0))
const done = (token: number, index: number, value = token & 255): Answer => ({ token, code: 0, value, index })
const refused = (token: number, code: number): Answer => ({ token, code, value: 0, index: 0 })

test('each command is logged once, in order, with the term, time and day of its leader', () => {
  const bench = lead()
  bench.simulation.advance(61_000)
  give(bench, [
    { token: 7, value: 700 },
    { token: 9, value: 70_000, bytes: 3 },
  ])
  const common = { term: 1, isCommand: true, kind: KIND.setAvailability, timeMs: NOW + 61_000, day: dayOf(NOW) + 1 }
  expect(logged(bench)).toEqual([
    { index: 2, ...common, body: u32(700) },
    { index: 3, ...common, body: `${u32(70_000)}000000` },
  ])
})

test('a write is answered when it is applied, not before, once, and to the thread that sent it', () => {
  const bench = lead()
  give(bench, [{ token: 7, value: 1 }])
  give(bench, [{ token: 7, value: 2 }], 1)
  expect(bench.answers).toEqual([[], []])
  store(bench)
  store(bench)
  confirm(bench)
  expect(bench.answers).toEqual([[done(7, 2, 1)], [done(7, 3, 2)]])
  expect(bench.replica.outcomes).toEqual({ applied: 2, dropped: 0, unknown: 0 })
})

test('20,000 writes in many batches get the answers of their own indexes, attached texts included', () => {
  const bench = lead()
  const random = createRandom(SEED)
  bench.outcomeOf.of = (value) => (value % 97 === 0 ? { detail: `text ${value}` } : {})
  const count = 20_000
  for (let token = 1; token <= count; ) {
    const size = Math.min(count + 1 - token, 1 + random.below(3_000))
    give(bench, commandsOf(size, token))
    token += size
    if (random.below(3) > 0) store(bench)
  }
  store(bench)
  bench.simulation.advance(100)
  const expected = Array.from({ length: count }, (_, n): Answer => {
    const answer = done(n + 1, n + 2)
    return (n + 1) % 97 === 0 ? { ...answer, text: `text ${n + 1}` } : answer
  })
  expect(bench.answers[0].length, `seed ${SEED}`).toBe(count)
  expect(bench.answers[0], `seed ${SEED}`).toEqual(expected)
})

// Refusals

test.each<[string, (bench: Bench) => void, number, readonly number[] | undefined]>([
  ['nothing is in the way', () => undefined, 0, undefined],
  [
    'a standalone node stops',
    ({ replica }) => Object.assign(replica, { isStopping: true }),
    REFUSED.notServing,
    undefined,
  ],
  ['a member stops', ({ replica }) => Object.assign(replica, { isStopping: true }), REFUSED.noLeader, [1, 2, 3]],
  [
    'a new shard has no time',
    ({ replica }) => Object.assign(replica.clock, { timeMs: 0 }),
    REFUSED.noLeader,
    undefined,
  ],
  [
    'a bulk load is applied',
    ({ replica }) => Object.assign(replica, { loading: { index: 9, digest: '', phase: 'looking' } }),
    REFUSED.notServing,
    undefined,
  ],
  ['the disk is full', ({ replica }) => Object.assign(replica, { isDiskFull: true }), REFUSED.diskFull, undefined],
])('a write while %s', (_, change, code, voters) => {
  const bench = lead(voters)
  change(bench)
  expect(refusalOf(bench.replica)).toBe(code)
  give(bench, commandsOf(2))
  expect(bench.answers[0]).toEqual(code === 0 ? [] : [refused(1, code), refused(2, code)])
  expect(bench.replica.outcomes.dropped).toBe(code === 0 ? 0 : 2)
  expect(valuesIn(bench)).toEqual(code === 0 ? [1, 2] : [])
  expect(proposeOwn(bench.replica, KIND.genesis, new Uint8Array(16))).toBe(code === 0)
})

test('a node that does not lead names the reason: no leader, another leader, or not serving at all', () => {
  const member = createBench([1, 2, 3])
  expect(refusalOf(member.replica)).toBe(REFUSED.noLeader)
  heartbeatTo(member.raft)
  expect(refusalOf(member.replica)).toBe(REFUSED.notLeader)
  expect(refusalOf(createBench().replica)).toBe(REFUSED.notServing)
})

test.each<[string, (bench: Bench) => void, number]>([
  ['leadership is handed over', ({ raft }) => Object.assign(raft, { transferTarget: 2 }), REFUSED.transferring],
  [
    'too many entries are not committed',
    (bench) => {
      give(bench, commandsOf(1, 50))
      bench.log.length = 0
      Object.assign(bench.raft, { limits: { ...bench.raft.limits, uncommittedEntries: 1 } })
    },
    REFUSED.overloaded,
  ],
])('while %s writes are refused and certainly in no log', (_, change, code) => {
  const bench = lead([1, 2, 3])
  change(bench)
  give(bench, commandsOf(2), 1)
  expect(bench.answers).toEqual([[], [refused(1, code), refused(2, code)]])
  expect(bench.replica.outcomes).toEqual({ applied: 0, dropped: 2, unknown: 0 })
  expect(valuesIn(bench)).toEqual([])
  expect(proposeOwn(bench.replica, KIND.genesis, new Uint8Array(16))).toBe(false)
})

// Commands of the node itself

test('holds expire from their deadline on, at most every 250 ms', () => {
  const bench = lead()
  const { replica, simulation, state } = bench
  const expired = () => {
    bench.log.length = 0
    expireHolds(replica, simulation.env.clock.monotonicMs())
    return logged(bench).map(({ kind }) => kind)
  }
  state.nextDeadlineMs = NOW + 250
  simulation.advance(249)
  expect(expired()).toEqual([])
  simulation.advance(1)
  expect(expired()).toEqual([KIND.expireHolds])
  simulation.advance(249)
  expect(expired()).toEqual([])
  simulation.advance(1)
  expect(expired()).toEqual([KIND.expireHolds])
  simulation.advance(1_000)
  state.nextDeadlineMs = NOW + 1_501
  expect(expired()).toEqual([])
  state.nextDeadlineMs = NOW + 1_500
  state.level = 1
  expect(expired()).toEqual([])
  state.level = 2
  replica.isDiskFull = true
  expect(expired()).toEqual([])
  replica.isDiskFull = false
  expect(expired()).toEqual([KIND.expireHolds])
})

test('a node that does not lead has no hold expire', () => {
  const bench = createBench([1, 2, 3])
  bench.state.nextDeadlineMs = 0
  bench.simulation.advance(1_000)
  expireHolds(bench.replica, 1_000)
  expect(bench.log).toEqual([])
})

// Outcomes of writes of a leader that lost its quorum or its office

const FATE_MS = 1_200

test('a leader that cannot commit reports an unknown outcome after 1.2 s, and nothing when it is applied later', () => {
  const bench = lead([1, 2, 3])
  const { simulation, replica, answers } = bench
  proposeOwn(replica, KIND.genesis, new Uint8Array(16))
  give(bench, commandsOf(2))
  simulation.advance(1)
  give(bench, commandsOf(1, 3))
  store(bench)
  simulation.advance(FATE_MS - 2)
  giveUpWaiting(replica, FATE_MS - 1)
  expect(answers[0]).toEqual([])
  giveUpWaiting(replica, FATE_MS)
  expect(answers[0]).toEqual([refused(1, REFUSED.outcomeUnknown), refused(2, REFUSED.outcomeUnknown)])
  giveUpWaiting(replica, FATE_MS)
  expect(answers[0]).toHaveLength(2)
  confirm(bench)
  expect(answers[0].slice(2)).toEqual([done(3, 5)])
  expect(replica.outcomes).toEqual({ applied: 1, dropped: 0, unknown: 2 })
})

/** A leader with two writes that its follower does not have, after member 2 has been elected. */
function overthrown(): Bench {
  const bench = lead([1, 2, 3])
  give(bench, commandsOf(2))
  store(bench)
  bench.simulation.advance(10)
  heartbeatTo(bench.raft, 2, 1)
  pump(bench.replica)
  store(bench)
  return bench
}

test('a write that the next leader commits is answered with its result', () => {
  const bench = overthrown()
  expect(bench.answers[0]).toEqual([])
  appendTo(bench.raft, { term: 2, entries: [{ firstIndex: 4, count: 1, bytes: command(2) }], commit: 3 })
  pump(bench.replica)
  store(bench)
  expect(bench.answers[0]).toEqual([done(1, 2), done(2, 3)])
  expect(bench.replica.outcomes).toEqual({ applied: 2, dropped: 0, unknown: 0 })
  expect(bench.replica.orphans.size).toBe(0)
})

test('a write that the next leader replaces may be repeated', () => {
  const bench = overthrown()
  const entries = [{ firstIndex: 2, count: 1, bytes: commandOf(2, 99) }]
  appendTo(bench.raft, { term: 2, prevIndex: 1, prevTerm: 1, entries, commit: 2 })
  pump(bench.replica)
  store(bench)
  expect(bench.answers[0]).toEqual([refused(1, REFUSED.notLeader)])
  expect(bench.replica.outcomes).toEqual({ applied: 0, dropped: 1, unknown: 0 })
  giveUpWaiting(bench.replica, 10 + FATE_MS - 1)
  expect(bench.answers[0]).toHaveLength(1)
  giveUpWaiting(bench.replica, 10 + FATE_MS)
  expect(bench.answers[0].slice(1)).toEqual([refused(2, REFUSED.outcomeUnknown)])
  expect(bench.replica.outcomes.unknown).toBe(1)
  expect(bench.replica.orphans.size).toBe(0)
})

function commandOf(term: number, value: number): Uint8Array {
  const batch = new Uint8Array(batchOf([{ token: 0, value }]))
  const entry = new Uint8Array(ENTRY_HEADER_BYTES + batch.length - 8)
  entry.set(command(term).subarray(0, ENTRY_HEADER_BYTES))
  viewOf(entry).setUint32(ENTRY_HEADER_BYTES - 4, batch.length - 8, true)
  entry.set(batch.subarray(8), ENTRY_HEADER_BYTES)
  return entry
}

test('a node that leads again answers the writes of its new term', () => {
  const bench = overthrown()
  const { raft, replica } = bench
  Object.assign(raft, { leader: 0 })
  campaign(raft)
  pump(replica)
  grant(raft, 2, 'preVoteReply')
  pump(replica)
  store(bench)
  grant(raft, 2)
  pump(replica)
  store(bench)
  expect(raft.role).toBe('leader')
  give(bench, commandsOf(1, 50))
  store(bench)
  confirm(bench)
  bench.simulation.settle()
  // The earlier ones were committed with the term: they have their results, too.
  expect(bench.answers[0]).toEqual([done(1, 2), done(2, 3), done(50, 5)])
  expect(bench.events.filter((event) => event.startsWith('leader'))).toEqual(['leader 1', 'leader 3'])
  // This node, member 2, and this node again.
  expect(replica.leaderChanges).toBe(3)
})

// Replies of the log

test('entries for which the disk has no room are refused, and writes are accepted again after 5 s', () => {
  const bench = lead()
  const { replica, simulation, log } = bench
  give(bench, commandsOf(2))
  give(bench, commandsOf(2, 3))
  const tokens = log.flatMap((message) => (message.type === 'append' ? [message.token] : []))
  expect(tokens).toHaveLength(2)
  log.length = 0
  onLogMessage(replica, { type: 'refused', token: tokens[0] as number, storedTo: 3 })
  expect(bench.answers[0].slice(0, 2)).toEqual([refused(3, REFUSED.diskFull), refused(4, REFUSED.diskFull)])
  expect(bench.answers[0].slice(2)).toEqual([done(1, 2), done(2, 3)])
  expect([replica.isDiskFull, replica.refusals]).toEqual([true, 1])
  give(bench, commandsOf(1, 9))
  expect(bench.answers[0].at(-1)).toEqual(refused(9, REFUSED.diskFull))
  const resumes = () => log.filter(({ type }) => type === 'resume').length
  simulation.advance(4_999)
  expect(resumes()).toBe(0)
  simulation.advance(1)
  expect(resumes()).toBe(1)
  onLogMessage(replica, { type: 'resumed', takesEntries: false })
  expect(replica.isDiskFull).toBe(true)
  retryLog(replica)
  retryLog(replica)
  simulation.advance(5_000)
  expect(resumes()).toBe(2)
  onLogMessage(replica, { type: 'resumed', takesEntries: true })
  expect(replica.isDiskFull).toBe(false)
  const messages = simulation.lines.map(({ message }) => message)
  expect(messages.filter((message) => message.includes('disk'))).toEqual([
    'disk full, writes refused',
    'the disk takes writes again',
  ])
  give(bench, commandsOf(1, 10))
  store(bench)
  expect(bench.answers[0].at(-1)).toEqual(done(10, 4))
})

test('10,000 entries before the newest snapshot are kept', () => {
  const { replica } = lead()
  const at = (snapshotIndexLast: number) => {
    Object.assign(replica, { snapshotIndexLast, snapshotIndexBefore: snapshotIndexLast })
    return compactionFloor(replica)
  }
  expect([at(10_000), at(10_001), at(10_002)]).toEqual([1, 2, 2])
})

test('a leader keeps the log that a reachable follower lacks, unless it is over 1 GiB', () => {
  const bench = lead([1, 2])
  const { replica } = bench
  give(bench, commandsOf(10))
  store(bench)
  acknowledge(bench.raft, 2, 4)
  pump(replica)
  Object.assign(bench.raft, { applied: 11 })
  Object.assign(replica, { snapshotIndexLast: 11, snapshotIndexBefore: 11, keptEntries: 0 })
  const floors = [0, 2 ** 30, 2 ** 30 + 1].map((walBytes) => compactionFloor(Object.assign(replica, { walBytes })))
  expect(floors).toEqual([5, 5, 12])
})

// Reads of stays

test('reads of stays are answered from the applied state, at its index', () => {
  const bench = lead()
  const read = (token: number, ...bytes: number[]) =>
    Buffer.concat([Buffer.from(u32(token) + u32(bytes.length), 'hex'), Uint8Array.from(bytes)])
  const batch = Buffer.concat([read(5, 1, 2, 3), read(6, 9), read(7, 4)])
  answerStayReads(bench.replica, 1, batch)
  expect(bench.answers).toEqual([
    [],
    [
      { token: 5, code: 0, value: 0, index: 1, frame: '010203' },
      { token: 6, code: 13, value: 0, index: 1 },
      { token: 7, code: 0, value: 0, index: 1, frame: '04' },
    ],
  ])
  Object.assign(bench.replica, { loading: { index: 2, digest: '', phase: 'replacing' } })
  answerStayReads(bench.replica, 0, read(8, 1))
  expect(bench.answers[0]).toEqual([{ token: 8, code: REFUSED.notServing, value: 0, index: 1 }])
})
