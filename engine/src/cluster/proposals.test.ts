/** A replica whose log, state machine and peers are the test itself: what it hands to each of them, and when it answers. */

import { dayOf } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  encodeEntry,
  entryKind,
  entryLength,
  entryTerm,
  viewOf,
} from '../raft/entry.ts'
import { encodeConfiguration } from '../raft/membership.ts'
import type { Message } from '../raft/messages.ts'
import { campaign, readIndex } from '../raft/raft.ts'
import { beginCommand, COMMAND_HEADER_BYTES, KIND, timeOfCommand, writeBytes, writeU32 } from '../store/command.ts'
import {
  acknowledge,
  answerHeartbeat,
  appendTo,
  command,
  configurationOf,
  grant,
  heartbeatTo,
  memberOf,
} from '../testing/raft-fixture.ts'
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
import { applyCommitted } from './applying.ts'
import { compactionFloor, onLogMessage, retryLog } from './log-answers.ts'
import {
  answerRead,
  answerStayReads,
  expireHolds,
  giveUpWaiting,
  proposeBatch,
  proposeOwn,
  pump,
  raiseFeatureLevel,
  refusalOf,
  setMemoryBudget,
} from './proposals.ts'
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
      budgetUse: () => ({ budgetBytes: state.budgetBytes, chargedBytes: 0, leftBytes: 0 }),
      time: {
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

test('the outcome, the text of a refusal and the frame of a stay reach the writer', () => {
  const bench = lead()
  const outcomes: Outcome[] = [
    { code: 5, value: 3 },
    { code: 15, detail: 'süd' },
    { stay: 200, detail: 'not sent' },
    {},
  ]
  bench.outcomeOf.of = (value) => outcomes[value] ?? {}
  give(
    bench,
    [0, 1, 2, 3].map((value) => ({ token: 10 + value, value })),
  )
  store(bench)
  expect(bench.answers[0]).toEqual([
    { token: 10, code: 5, value: 3, index: 2 },
    { token: 11, code: 15, value: 1, index: 3, text: 'süd' },
    { token: 12, code: 0, value: 2, index: 4, frame: 'c80203' },
    { token: 13, code: 0, value: 3, index: 5 },
  ])
})

test('a repeated request is answered with its first index and counted', () => {
  const bench = lead()
  bench.outcomeOf.of = (value) => (value === 2 ? { index: 1 } : {})
  give(bench, commandsOf(3))
  store(bench)
  expect(bench.answers[0].map(({ index }) => index)).toEqual([2, 1, 4])
  expect(bench.replica.repeats).toBe(1)
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

test('commands are handed to the log in parts: one ends with the command that reaches 512 KiB', () => {
  const bench = lead()
  const bytes = 200 * 1024
  give(
    bench,
    commandsOf(7).map((each) => ({ ...each, bytes })),
  )
  const counts = bench.log.flatMap((message) =>
    message.type === 'append' ? message.entries.map(({ count }) => count) : [],
  )
  expect(counts).toEqual([3, 3, 1])
  expect(valuesIn(bench)).toEqual([1, 2, 3, 4, 5, 6, 7])
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

test('stays without room in the ledger are refused, and the other commands of their batch keep their order', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 30; round++) {
    const bench = lead()
    const kinds = [KIND.bookStay, KIND.holdStay, KIND.confirmStay, KIND.setAvailability]
    const given = commandsOf(1 + random.below(8)).map((each) => ({
      ...each,
      kind: kinds[random.below(4)],
      bytes: random.below(5),
    }))
    bench.state.admits = (value) => value % 2 === 0
    const isRefused = ({ value, kind }: Command) =>
      value % 2 === 1 && (kind === KIND.bookStay || kind === KIND.holdStay)
    give(bench, given)
    const why = `seed ${SEED}, round ${round}`
    expect(valuesIn(bench), why).toEqual(given.filter((each) => !isRefused(each)).map(({ value }) => value))
    expect(bench.answers[0], why).toEqual(
      given.filter(isRefused).map(({ token }) => refused(token, REFUSED.overloaded)),
    )
    expect(bench.replica.outcomes.dropped, why).toBe(bench.answers[0].length)
  }
})

test('below the level of stays, and where another node leads, the ledger is not consulted', () => {
  const below = lead()
  const refusing = () => {
    throw new Error('not consulted')
  }
  Object.assign(below.state, { level: 1, admits: refusing })
  give(below, [{ token: 1, value: 1, kind: KIND.bookStay }])
  expect(valuesIn(below)).toEqual([1])
  const follower = createBench([1, 2, 3])
  Object.assign(follower.state, { admits: refusing })
  give(follower, [{ token: 1, value: 1, kind: KIND.bookStay }])
  expect(follower.answers[0]).toEqual([refused(1, REFUSED.noLeader)])
})

// Commands of the node itself

test('feature level and memory budget are logged once, and only when they change', () => {
  const bench = lead()
  expect(raiseFeatureLevel(bench.replica, 2)).toBe(true)
  expect(setMemoryBudget(bench.replica, 0)).toBe(true)
  expect(logged(bench)).toEqual([])
  expect(raiseFeatureLevel(bench.replica, 3)).toBe(true)
  expect(setMemoryBudget(bench.replica, 2 ** 40)).toBe(true)
  const budget = Buffer.from(Float64Array.of(2 ** 40).buffer).toString('hex')
  const common = { term: 1, isCommand: true, timeMs: NOW, day: dayOf(NOW) }
  expect(logged(bench)).toEqual([
    { index: 2, ...common, kind: KIND.featureLevel, body: u32(3) },
    { index: 3, ...common, kind: KIND.memoryBudget, body: budget },
  ])
  store(bench)
  // No client waits for them.
  expect(bench.answers[0]).toEqual([])
  give(bench, commandsOf(1))
  store(bench)
  expect(bench.answers[0]).toEqual([done(1, 4)])
})

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

// Hand-overs

test('a follower acknowledges entries only once they are durable, in order', () => {
  const bench = createBench([1, 2, 3])
  const { raft, replica, sent, log } = bench
  for (const index of [1, 2, 3]) {
    appendTo(raft, {
      term: 1,
      prevIndex: index - 1,
      prevTerm: index === 1 ? 0 : 1,
      entries: [{ firstIndex: index, count: 1, bytes: command(1) }],
    })
    pump(replica)
  }
  const tokens = log.flatMap((message) => (message.type === 'append' ? [message.token] : []))
  expect(tokens).toHaveLength(3)
  const confirmed = () => sent.flatMap((message) => (message.type === 'appendReply' ? [message.index] : []))
  expect(confirmed()).toEqual([])
  const stored = (token: number) =>
    onLogMessage(replica, { type: 'stored', token, syncMs: 1, entries: 1, bytes: 1, files: 1 })
  stored(tokens[1] as number)
  expect(confirmed().at(-1)).toBe(2)
  stored(tokens[2] as number)
  expect(confirmed().at(-1)).toBe(3)
})

test('a configuration counts from the moment its entry is applied', () => {
  const bench = createBench([1, 2, 3])
  const bytes = encodeEntry(1, ENTRY_KIND.configuration, encodeConfiguration(configurationOf({ voters: [1, 2] })))
  appendTo(bench.raft, { term: 1, prevIndex: 0, prevTerm: 0, entries: [{ firstIndex: 1, count: 1, bytes }] })
  pump(bench.replica)
  store(bench)
  expect(bench.raft.configuration.voters).toEqual([1, 2, 3])
  heartbeatTo(bench.raft, 1, 1)
  pump(bench.replica)
  applyCommitted(bench.replica)
  expect(bench.raft.configuration.voters).toEqual([1, 2])
  expect(bench.events).toEqual(['follower 1', 'configuration 1', 'applied 1'])
})

test('the time from a proposal to its result is observed once per batch, that of own commands, too', () => {
  const bench = lead()
  const { replica, simulation } = bench
  give(bench, commandsOf(3))
  simulation.advance(20)
  expect(proposeOwn(replica, KIND.genesis, new Uint8Array(16))).toBe(true)
  simulation.advance(400)
  store(bench)
  const { counts, sum } = replica.commitTime
  expect(counts.reduce((all, count) => all + count, 0)).toBe(2)
  expect(sum).toBeCloseTo(0.82, 9)
  expect(replica.proposedAt).toEqual([])
})

// Replies of the log

test('the figures of the log are those of its last reply, and slow syncs in a row add up', () => {
  const { replica } = lead()
  const groups = replica.groups
  const slow = [999, 1_000, 2_500, 999].map((syncMs, n) => {
    onLogMessage(replica, { type: 'stored', token: 0, syncMs, entries: 5, bytes: 100 + n, files: 2 + n })
    return replica.slowSyncMs
  })
  expect(slow).toEqual([0, 1_000, 3_500, 0])
  expect([replica.groups - groups, replica.walBytes, replica.walFiles]).toEqual([4, 103, 5])
  expect(replica.fsync.sum).toBeCloseTo(0.001 * groups + 5.498, 9)
  onLogMessage(replica, { type: 'compacted', deleted: 1, firstIndex: 0, bytes: 7, files: 1 })
  expect([replica.walBytes, replica.walFiles]).toEqual([7, 1])
})

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

test.each<[string, Partial<Replica>, number]>([
  ['a new shard keeps all', {}, 1],
  ['the older of two snapshots', { snapshotIndexBefore: 4, snapshotIndexLast: 8, keptEntries: 0 }, 5],
  ['entries before the newest snapshot', { snapshotIndexBefore: 9, snapshotIndexLast: 9, keptEntries: 6 }, 4],
  ['more entries than there are', { snapshotIndexBefore: 9, snapshotIndexLast: 9, keptEntries: 10 }, 1],
  ['no more than is applied', { snapshotIndexBefore: 50, snapshotIndexLast: 50, keptEntries: 0 }, 12],
])('the log is kept from its floor: %s', (_, change, floor) => {
  const bench = lead()
  give(bench, commandsOf(10))
  store(bench)
  expect(compactionFloor(Object.assign(bench.replica, change))).toBe(floor)
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

test('a read of the leader is confirmed by its followers, and dropped when it loses its office', () => {
  const bench = lead([1, 2, 3])
  const { raft, replica, events } = bench
  events.length = 0
  readIndex(raft, 70)
  pump(replica)
  expect(events).toEqual([])
  answerHeartbeat(raft, 2)
  pump(replica)
  expect(events).toEqual(['read 70 at 1'])
  readIndex(raft, 71)
  pump(replica)
  heartbeatTo(raft, 2)
  pump(replica)
  expect(events.slice(1)).toEqual(expect.arrayContaining(['no read 71: not-leader']))
})

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

test('a confirmed read gets its index at once', () => {
  const bench = lead()
  answerRead(bench.replica, 1, 4_294_967_295, 0, 2 ** 40)
  expect(bench.answers).toEqual([[], [{ token: 4_294_967_295, code: 0, value: 0, index: 2 ** 40 }]])
})
