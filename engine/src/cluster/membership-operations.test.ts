/** What operators and joining nodes learn of a change of members, and when a change gives up (membership.ts). */

import { CATCH_UP } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { configurationOf, incarnationOf } from '../testing/raft-fixture.ts'
import {
  type Answer,
  createMembership,
  DUPLICATE_MS,
  type Membership,
  type MembershipPort,
  type MembershipView,
  onFounder,
  onJoin,
  operationsOf,
  STEP_MS_MAX,
  startDemote,
  startPromote,
  startTransfer,
  tickMembership,
} from './membership.ts'

type View = { -readonly [key in keyof MembershipView]: MembershipView[key] }

/** The leader n1 of the voters n1 to n3 with the learner n4; all of them have every entry. */
function lead(change: Partial<View> = {}, isFounder = true) {
  const configuration = configurationOf({ voters: [1, 2, 3], learners: [4] })
  const peer = (id: number) => ({ id, match: 100_000, state: 'replicate', isActive: true })
  const view = {
    ...{ id: 1, role: 'leader', leader: 1, commit: 100_000, applied: 100_000, transferTarget: 0, configuration },
    peers: [2, 3, 4].map(peer),
    ...change,
  } as unknown as View
  const now = { ms: 1_000_000 }
  const world = {
    view,
    now,
    isReady: true,
    taken: 'taken' as ReturnType<MembershipPort['transferLeader']>,
    proposed: [] as string[],
    /** Index of the next change, or why it is refused. */
    next: 100_001 as ReturnType<MembershipPort['proposeChange']>,
    targets: [] as number[],
    requests: [] as { node: string; onAnswer: (answer: Answer) => void }[],
    lines: [] as string[],
  }
  const note = (level: string) => (fields: object, message: string) =>
    void world.lines.push(`${level}: ${message} ${JSON.stringify(fields)}`)
  const membership = createMembership(
    {
      status: () => view,
      isReady: () => world.isReady,
      proposeChange(proposal) {
        const steps = proposal === 'leave' ? [] : proposal.steps
        world.proposed.push(steps.map((step) => `${step.type} ${'id' in step ? step.id : step.node}`).join(', '))
        return world.next
      },
      transferLeader(target) {
        if (world.taken === 'taken') world.targets.push(target)
        return world.taken
      },
      requestLeader: (_kind, node, onAnswer) => void world.requests.push({ node, onAnswer }),
      nowMs: () => now.ms,
      wallMs: () => now.ms + 5,
      log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    },
    {
      self: { node: 'n1', incarnation: incarnationOf(1), isFounder },
      initialVoters: ['n1', 'n2', 'n3'],
      defects: undefined,
    },
  )
  return { ...world, world, membership, silence: (id: number, fields: object) => alter(view, id, fields) }
}

function alter(view: View, id: number, fields: object): void {
  view.peers = view.peers.map((peer) => (peer.id === id ? { ...peer, ...fields } : peer))
}

const joinOf = (id: number, incarnation = id) => ({
  ...{ node: `n${id}`, incarnation: incarnationOf(incarnation), isInitialVoter: id < 4, isMember: false },
})
const lastOf = (membership: Membership) => operationsOf(membership).lastOperations[0]
const stepOf = (membership: Membership) => operationsOf(membership).operation?.step

const VOTER_CHANGES = { voters: [1, 2, 3], learners: [4] }

test.each<[string, Partial<View>, boolean, Answer]>([
  ['a follower', { role: 'follower' }, true, { status: 503, text: 'no leader' }],
  ['a leader that is not ready', {}, false, { status: 503, text: 'leader not ready' }],
])('%s refuses operators', (_, change, isReady, refusal) => {
  for (const start of [startPromote, startDemote, startTransfer]) {
    const { membership, world } = lead(change)
    world.isReady = isReady
    expect(start(membership, 'n4')).toEqual(refusal)
    expect(operationsOf(membership).operation).toBeUndefined()
  }
})

test('unknown nodes are not found', () => {
  for (const start of [startPromote, startDemote, startTransfer])
    expect(start(lead().membership, 'n9')).toEqual({ status: 404, text: 'unknown node' })
})

test.each<[string, string, object, Partial<View>, Answer]>([
  ['the leader itself', 'n1', {}, {}, { status: 202, text: 'transfer in progress' }],
  ['a running target', 'n2', {}, { transferTarget: 2 }, { status: 202, text: 'transfer in progress' }],
  ['a learner', 'n4', {}, {}, { status: 409, text: 'the target is a learner' }],
  ['an inactive voter', 'n2', { isActive: false }, {}, { status: 409, text: 'the target is inactive' }],
  [
    'a voter 10,001 entries behind',
    'n2',
    { match: 89_999 },
    {},
    { status: 409, text: 'the target is more than 10,000 entries behind' },
  ],
  ['another target', 'n2', {}, { transferTarget: 3 }, { status: 409, text: 'another transfer is running' }],
  [
    'a voter of a joint configuration',
    'n2',
    {},
    { configuration: configurationOf({ ...VOTER_CHANGES, outgoing: [1, 2] }) },
    { status: 409, text: 'a membership change is not applied' },
  ],
])('leadership goes to %s, or not', (_, node, peer, change, answer) => {
  const { membership, silence, targets } = lead(change)
  silence(2, peer)
  expect([startTransfer(membership, node), targets]).toEqual([answer, []])
})

test('a transfer to a voter 10,000 entries behind runs until that voter leads', () => {
  const { membership, silence, targets, view, now } = lead()
  silence(2, { match: 90_000 })
  expect(startTransfer(membership, 'n2')).toEqual({ status: 202, text: 'transfer in progress' })
  expect([targets, operationsOf(membership).operation]).toEqual([
    [2],
    { kind: 'transfer', node: 'n2', startedMs: now.ms + 5, step: 'waits until n2 leads' },
  ])
  view.transferTarget = 2
  tickMembership(membership)
  expect(lastOf(membership)).toBeUndefined()
  Object.assign(view, { role: 'follower', leader: 2 })
  now.ms += 7
  tickMembership(membership)
  expect(lastOf(membership)).toEqual({ kind: 'transfer', node: 'n2', result: 'done', reason: '', atMs: now.ms + 5 })
})

test.each<[string, Partial<View>, number, string | undefined]>([
  ['the core has abandoned it', { transferTarget: 0 }, 0, 'it did not take over within one election time-out'],
  ['another node leads', { role: 'follower', leader: 3 }, 0, 'n3 was elected instead'],
  ['no node leads yet', { role: 'candidate', leader: 0 }, STEP_MS_MAX - 1, undefined],
  ['no node leads', { role: 'candidate', leader: 0 }, STEP_MS_MAX, 'no leader was elected'],
])('a transfer ends when %s', (_, change, afterMs, reason) => {
  const { membership, view, now } = lead()
  startTransfer(membership, 'n2')
  Object.assign(view, { transferTarget: 2, ...change })
  now.ms += afterMs
  tickMembership(membership)
  expect([lastOf(membership)?.result, lastOf(membership)?.reason]).toEqual([reason && 'failed', reason])
})

test('a transfer that the core refuses names the reason', () => {
  const { membership, world } = lead()
  world.taken = 'not-leader' as typeof world.taken
  expect(startTransfer(membership, 'n2')).toEqual({ status: 409, text: 'the transfer was refused: not-leader' })
})

test('the progress of a promotion is shown: how far its node is behind, then its change', () => {
  const { membership, silence, view, proposed } = lead()
  silence(4, { match: 50_000 })
  expect(startPromote(membership, 'n4')).toEqual({ status: 202, text: expect.any(String) })
  expect(stepOf(membership)).toBe(`waits until n4 is ${CATCH_UP.entriesText}: 50,000`)
  expect(startPromote(membership, 'n4').status).toBe(202)
  expect(startPromote(membership, 'n2').status).toBe(202)
  expect(startDemote(membership, 'n4')).toEqual({ status: 409, text: 'another membership operation is running' })
  silence(4, { match: 100_000 - CATCH_UP.entriesMax - 1 })
  tickMembership(membership)
  expect(proposed).toEqual([])
  silence(4, { match: 100_000 - CATCH_UP.entriesMax })
  tickMembership(membership)
  expect([proposed, stepOf(membership)]).toEqual([['promote 4'], 'waits until the change is applied'])
  view.peers = []
  view.applied = view.commit = 100_001
  view.configuration = configurationOf({ voters: [1, 2, 3, 4] })
  tickMembership(membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'promote', node: 'n4', result: 'done' })
})

test('a learner that was not heard from has no number of entries', () => {
  const { membership, view } = lead()
  view.peers = view.peers.filter(({ id }) => id !== 4)
  startPromote(membership, 'n4')
  expect(stepOf(membership)).toContain('not heard from yet')
})

test.each<[string, object]>([
  ['it is silent', { isActive: false }],
  ['it has acknowledged nothing', { match: 0 }],
  ['it receives a snapshot', { state: 'snapshot' }],
])('a learner is not promoted while %s', (_, peer) => {
  const { membership, silence, view, proposed } = lead()
  view.commit = view.applied = 100
  silence(4, { match: 100, ...peer })
  startPromote(membership, 'n4')
  expect(proposed).toEqual([])
})

test.each<[string, (world: ReturnType<typeof lead>) => void, string]>([
  [
    'its node left the shard',
    ({ view }) => Object.assign(view, { configuration: configurationOf({ voters: [1, 3], learners: [4] }) }),
    'the node is no longer a member',
  ],
  [
    'another change is not applied for half a minute',
    ({ view, now }) => {
      view.configuration = configurationOf({ ...VOTER_CHANGES, outgoing: [1, 2] })
      now.ms += STEP_MS_MAX
    },
    'a membership change is not applied',
  ],
  [
    'the core refuses it for half a minute',
    ({ now }) => {
      now.ms += STEP_MS_MAX
    },
    'the change was refused',
  ],
  [
    'the others are no healthy majority any more',
    ({ silence }) => silence(3, { isActive: false }),
    'the remaining voters would be no healthy majority',
  ],
])('a demotion ends when %s', (_, change, reason) => {
  const begun = lead()
  begun.world.next = 'in-flight' as typeof begun.world.next
  expect(startDemote(begun.membership, 'n2').status).toBe(202)
  tickMembership(begun.membership)
  expect(lastOf(begun.membership)).toBeUndefined()
  change(begun)
  tickMembership(begun.membership)
  expect(lastOf(begun.membership)).toMatchObject({ kind: 'demote', node: 'n2', result: 'failed', reason })
  expect(begun.membership.ended).toEqual({ done: 0, failed: 1 })
})

test('a change that was applied without its effect has failed', () => {
  const { membership, view } = lead()
  startDemote(membership, 'n2')
  view.applied = 100_000
  tickMembership(membership)
  expect(lastOf(membership)).toBeUndefined()
  view.applied = 100_001
  tickMembership(membership)
  expect(lastOf(membership)?.reason).toBe('the change was not accepted')
})

test('the node of a running demotion may be demoted again; others wait', () => {
  const { membership } = lead()
  startDemote(membership, 'n2')
  expect(['n2', 'n3'].map((node) => startDemote(membership, node).status)).toEqual([202, 409])
  const removal = lead()
  startDemote(removal.membership, 'n4')
  expect(removal.proposed).toEqual(['remove 4'])
  expect([startDemote(removal.membership, 'n4').status, startPromote(removal.membership, 'n4').status]).toEqual([
    202, 409,
  ])
})

/** A leader that demotes itself and has lost leadership to n2. */
function passedOn() {
  const world = lead()
  expect(startDemote(world.membership, 'n1').status).toBe(202)
  expect([world.targets, stepOf(world.membership)]).toEqual([[2], 'waits until another voter leads'])
  world.view.transferTarget = 2
  tickMembership(world.membership)
  Object.assign(world.view, { role: 'follower', leader: 2, transferTarget: 0 })
  tickMembership(world.membership)
  return world
}

test('a leader that is demoted moves to the voter with most entries, the first by id among equals', () => {
  const { membership, silence, targets } = lead()
  silence(2, { match: 99_999 })
  startDemote(membership, 'n1')
  expect(targets).toEqual([3])
})

test.each<[Answer, string | undefined]>([
  [{ status: 202, text: 'yes' }, ''],
  [{ status: 404, text: 'unknown node' }, 'the new leader refused: unknown node'],
  [{ status: 503, text: 'no leader' }, undefined],
  [{ status: 409, text: 'the remaining voters would be no healthy majority' }, undefined],
])('the answer of the new leader to a demotion ends it or is tried again: %o', (answer, reason) => {
  const { membership, requests } = passedOn()
  expect([requests.map(({ node }) => node), stepOf(membership)]).toEqual([
    ['n1'],
    'waits until the new leader continues it',
  ])
  requests[0]?.onAnswer(answer)
  expect(lastOf(membership)?.reason).toBe(reason)
  tickMembership(membership)
  expect(requests).toHaveLength(reason === undefined ? 2 : 1)
})

test('a demotion that no new leader answers ends after half a minute', () => {
  const { membership, now } = passedOn()
  now.ms += STEP_MS_MAX - 1
  tickMembership(membership)
  expect(lastOf(membership)).toBeUndefined()
  now.ms += 1
  tickMembership(membership)
  expect(lastOf(membership)?.reason).toBe('the new leader did not answer')
})

test.each<[number, string]>([
  [2, 'leadership moved to n2 before it was done'],
  [0, 'leadership was lost before it was done'],
])('a promotion whose leader lost leadership to %i ends', (leader, reason) => {
  const { membership, silence, view } = lead()
  silence(4, { match: 1 })
  startPromote(membership, 'n4')
  Object.assign(view, { role: 'follower', leader })
  tickMembership(membership)
  expect(lastOf(membership)?.reason).toBe(reason)
})

// Joining

test('a wiped voter is replaced, which is an operation that operators see', () => {
  const { membership, silence, proposed, view, now } = lead()
  silence(3, { isActive: false })
  expect(onJoin(membership, joinOf(3, 33))).toEqual({ kind: 'wait', reason: 'it is being replaced' })
  expect([proposed, operationsOf(membership).operation]).toEqual([
    ['remove 3, addLearner n3'],
    { kind: 'replace', node: 'n3', startedMs: now.ms + 5, step: 'waits until the change is applied' },
  ])
  expect(startPromote(membership, 'n3').status).toBe(202)
  expect(startTransfer(membership, 'n2')).toEqual({ status: 409, text: 'a membership change is not applied' })
  view.applied = view.commit = 100_001
  const members = configurationOf({ voters: [1, 2], learners: [4] }).members
  const replaced = { id: 1_200, node: 'n3', incarnation: incarnationOf(33) }
  view.configuration = { ...configurationOf({ voters: [1, 2], learners: [4, 1_200] }), members: [...members, replaced] }
  view.peers = [...view.peers, { id: 1_200, match: 1, state: 'replicate', isActive: true } as never]
  tickMembership(membership)
  expect(stepOf(membership)).toMatch(/^waits until n3 is .*: 100,000$/)
})

test('a wiped voter waits while an operation runs or the others are no healthy majority', () => {
  const answers = (change: (world: ReturnType<typeof lead>) => void) => {
    const world = lead()
    world.silence(3, { isActive: false })
    change(world)
    const answer = onJoin(world.membership, joinOf(3, 33))
    return [answer, world.proposed]
  }
  expect(answers(({ silence }) => silence(2, { isActive: false }))).toEqual([
    { kind: 'wait', reason: 'the remaining voters would be no healthy majority' },
    [],
  ])
  expect(
    answers(({ membership, silence }) => {
      silence(4, { match: 1 })
      startPromote(membership, 'n4')
    }),
  ).toEqual([{ kind: 'wait', reason: 'another membership operation is running' }, []])
  // A change that the core refuses begins no operation.
  const refused = lead()
  refused.silence(3, { isActive: false })
  refused.world.next = 'in-flight' as typeof refused.world.next
  onJoin(refused.membership, joinOf(3, 33))
  expect(operationsOf(refused.membership).operation).toBeUndefined()
})

test('a second process under one id waits for ten seconds of requests, then it is refused', () => {
  const { membership, now } = lead()
  const duplicate = () => onJoin(membership, joinOf(3, 33))
  expect(duplicate()).toEqual({ kind: 'wait', reason: 'its earlier process still answers' })
  for (let atMs = 0; atMs < DUPLICATE_MS - 1_000; atMs += 1_000) {
    now.ms += 1_000
    tickMembership(membership)
    expect(duplicate().kind).toBe('wait')
  }
  now.ms += 1_000
  expect(duplicate()).toMatchObject({ kind: 'refused', reason: 'duplicate' })
  // Another folder begins to count again.
  expect(onJoin(membership, joinOf(3, 34)).kind).toBe('wait')
})

test.each([
  [60_000, 'refused'],
  [60_001, 'wait'],
])('after %i ms without a request, that of a second process is answered with: %s', (silenceMs, answer) => {
  const { membership, now } = lead()
  expect(onJoin(membership, joinOf(3, 33)).kind).toBe('wait')
  now.ms += silenceMs
  tickMembership(membership)
  expect(onJoin(membership, joinOf(3, 33)).kind).toBe(answer)
})

test('a process that runs as the leader is a second one, too', () => {
  const { membership } = lead()
  expect(onJoin(membership, joinOf(1, 11))).toEqual({ kind: 'wait', reason: 'its earlier process still answers' })
})

test('joins wait for a change that is not applied, and are refused by a node that does not lead', () => {
  const joint = lead({ configuration: configurationOf({ ...VOTER_CHANGES, outgoing: [1, 2] }) })
  expect(onJoin(joint.membership, joinOf(9))).toEqual({ kind: 'wait', reason: 'a membership change is not applied' })
  const behind = lead({ role: 'follower', leader: 2 })
  expect(onJoin(behind.membership, joinOf(9))).toEqual({ kind: 'refused', reason: 'not-leader', detail: 'n2' })
  const early = lead()
  early.world.isReady = false
  expect(onJoin(early.membership, joinOf(9))).toEqual({ kind: 'wait', reason: 'leader not ready' })
})

test.each([
  [true, ['bind 1']],
  [false, []],
])('a leader binds itself first if it is a founder: %s', (isFounder, proposed) => {
  const unbound = configurationOf({ voters: [1, 2, 3], unbound: [1, 2] })
  const world = lead({ configuration: unbound }, isFounder)
  tickMembership(world.membership)
  expect(world.proposed).toEqual(proposed)
  onFounder(world.membership, 'n3', incarnationOf(3))
  if (!isFounder) onFounder(world.membership, 'n2', incarnationOf(2))
  tickMembership(world.membership)
  expect(world.proposed).toEqual(isFounder ? ['bind 1'] : ['bind 2'])
})
