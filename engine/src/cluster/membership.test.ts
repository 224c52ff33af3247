import { assert, CATCH_UP } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { genesisConfiguration } from '../data/genesis.ts'
import type { Log } from '../env.ts'
import { type Change, JOINED_ID_BASE, resultOf } from '../raft/membership.ts'
import type { Configuration } from '../raft/messages.ts'
import {
  type Answer,
  createMembership,
  DUPLICATE_MS,
  type Membership,
  type MembershipOptions,
  type MembershipPort,
  onFounder,
  onJoin,
  operationsOf,
  STEP_MS_MAX,
  startDemote,
  startPromote,
  startTransfer,
  tickMembership,
} from './membership.ts'

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const inc = (node: string, number = 1): string => Buffer.from(`${node}${number}`.padEnd(16, '.')).toString('hex')

/** A core that accepts every change that yields a configuration, and applies it on request. */
type Core = {
  readonly port: MembershipPort
  id: number
  role: string
  leader: number
  applied: number
  commit: number
  configuration: Configuration
  transferTarget: number
  nowMs: number
  isReady: boolean
  readonly lags: Map<number, number>
  readonly silentPeers: Set<number>
  readonly log: { index: number; change: Change }[]
  readonly requested: { node: string; onAnswer: (answer: Answer) => void }[]
}

function createCore(configuration: Configuration): Core {
  const core: Core = {
    id: 1,
    role: 'leader',
    leader: 1,
    applied: 5_000,
    commit: 5_000,
    configuration,
    transferTarget: 0,
    nowMs: 1_000_000,
    isReady: true,
    lags: new Map(),
    silentPeers: new Set(),
    log: [],
    requested: [],
    port: {
      status: () => ({
        id: core.id,
        role: core.role,
        leader: core.leader,
        commit: core.commit,
        applied: core.applied,
        configuration: core.configuration,
        transferTarget: core.transferTarget,
        peers: core.configuration.members
          .filter(({ id }) => id !== core.id && core.role === 'leader')
          .map(({ id }) => ({
            id,
            match: Math.max(0, core.commit - (core.lags.get(id) ?? 0)),
            state: 'replicate',
            isActive: !core.silentPeers.has(id),
          })),
      }),
      isReady: () => core.isReady && core.role === 'leader',
      proposeChange(change) {
        if (core.log.length > 0) return 'in-flight'
        core.commit++
        core.log.push({ index: core.commit, change })
        return core.commit
      },
      transferLeader(target) {
        core.transferTarget = target
        return 'taken'
      },
      requestLeader: (_, node, onAnswer) => core.requested.push({ node, onAnswer }),
      nowMs: () => core.nowMs,
      wallMs: () => core.nowMs,
      log: silent,
    },
  }
  return core
}

/** Applies the proposed changes. */
function apply(core: Core, membership?: Membership): void {
  for (const { index, change } of core.log.splice(0)) {
    const result = resultOf(core.configuration, change, JOINED_ID_BASE + index)
    assert(typeof result !== 'string', `a change yields a configuration: ${result}`)
    core.configuration = result
  }
  core.applied = core.commit
  if (membership) tickMembership(membership)
}

const SELF = { node: 'a', incarnation: inc('a'), isFounder: true }
const ABC = ['a', 'b', 'c']

function bound(nodes: readonly string[]): Configuration {
  const genesis = genesisConfiguration(nodes)
  return { ...genesis, members: genesis.members.map((member) => ({ ...member, incarnation: inc(member.node) })) }
}

function lead(configuration: Configuration, options: Partial<MembershipOptions> = {}): [Core, Membership] {
  const core = createCore(configuration)
  return [core, createMembership(core.port, { self: SELF, initialVoters: ABC, ...options })]
}

/** A shard of three with the learner x. */
function withLearner(): [Core, Membership, number] {
  const [core, membership] = lead(bound(ABC))
  onJoin(membership, { node: 'x', incarnation: inc('x'), isInitialVoter: false })
  apply(core)
  const id = core.configuration.learners[0]
  assert(id !== undefined, 'x was added')
  return [core, membership, id]
}

const join = (node: string, number = 1) => ({
  node,
  incarnation: inc(node, number),
  isInitialVoter: ABC.includes(node),
})
const namesOf = ({ members, voters, learners }: Configuration) => {
  const names = (ids: readonly number[]) => ids.map((id) => members.find((member) => member.id === id)?.node)
  return { voters: names(voters), learners: names(learners) }
}
const lastOf = (membership: Membership) => operationsOf(membership).lastOperations[0]

test('a node that requests to join is added as a learner once, with its own raft id', () => {
  const [core, membership] = lead(bound(ABC))

  expect(onJoin(membership, join('x'))).toEqual({ kind: 'wait', reason: 'it is being added' })
  expect(onJoin(membership, join('x')).kind).toBe('wait')
  expect(core.log).toHaveLength(1)
  apply(core)
  const joined = onJoin(membership, join('x'))

  expect(joined).toMatchObject({ kind: 'joined', member: 1_000 + 5_001 })
  expect(onJoin(membership, join('x'))).toEqual(joined)
  expect(namesOf(core.configuration)).toEqual({ voters: ABC, learners: ['x'] })
})

test('a running member that does not know of its removal is not admitted under another id', () => {
  const [core, membership] = lead(bound(ABC))

  expect(onJoin(membership, { ...join('x'), isInitialVoter: true, isMember: true })).toEqual({
    kind: 'refused',
    reason: 'removed',
    detail: '',
  })
  expect(core.log).toHaveLength(0)
})

test('a learner that was wiped is replaced by a new member in one step', () => {
  const [core, membership, id] = withLearner()
  core.silentPeers.add(id)

  onJoin(membership, join('x', 2))
  apply(core)

  expect(namesOf(core.configuration)).toEqual({ voters: ABC, learners: ['x'] })
  expect(core.configuration.learners).not.toEqual([id])
})

test('there are at most 16 learners', () => {
  const [core, membership] = lead(bound(ABC))
  for (let n = 0; n < 16; n++) {
    onJoin(membership, join(`x${n}`))
    apply(core)
  }

  expect(onJoin(membership, join('y'))).toMatchObject({ kind: 'refused', reason: 'full' })
})

test('founders are bound one by one as they report, starting with the leader itself', () => {
  const [core, membership] = lead(genesisConfiguration(ABC))

  tickMembership(membership)
  apply(core, membership)
  expect(core.configuration.members.map(({ incarnation }) => incarnation)).toEqual([inc('a'), '', ''])

  onFounder(membership, 'c', inc('c'))
  tickMembership(membership)
  apply(core, membership)
  expect(core.configuration.members.map(({ incarnation }) => incarnation)).toEqual([inc('a'), '', inc('c')])
  expect(core.log).toHaveLength(0)
})

test('an initial voter without a founder is replaced, catches up and is promoted', () => {
  const [core, membership] = lead(genesisConfiguration(ABC))
  tickMembership(membership)
  apply(core)
  core.silentPeers.add(3)

  expect(onJoin(membership, join('c')).kind).toBe('wait')
  apply(core, membership)
  const [id] = core.configuration.learners as [number]
  expect(namesOf(core.configuration)).toEqual({ voters: ['a', 'b'], learners: ['c'] })
  expect(onJoin(membership, join('c'))).toMatchObject({ kind: 'joined', member: id })
  expect(operationsOf(membership).operation).toMatchObject({ kind: 'replace', node: 'c' })

  core.lags.set(id, CATCH_UP.entriesMax + 1)
  tickMembership(membership)
  expect(core.log).toHaveLength(0)

  core.lags.set(id, CATCH_UP.entriesMax)
  tickMembership(membership)
  apply(core, membership)
  expect(namesOf(core.configuration)).toEqual({ voters: ['a', 'b', 'c'], learners: [] })
  expect(lastOf(membership)).toMatchObject({ kind: 'replace', node: 'c', result: 'done', reason: '' })
})

test('a wiped voter is replaced only while the others are a healthy majority, one at a time', () => {
  const [core, membership] = lead(bound(['a', 'b', 'c', 'd', 'e']))
  core.silentPeers.add(2).add(3).add(4)

  expect(onJoin(membership, join('b', 2))).toMatchObject({ kind: 'wait', reason: expect.stringContaining('majority') })
  core.silentPeers.delete(4)
  expect(onJoin(membership, join('b', 2)).kind).toBe('wait')
  apply(core, membership)
  expect(core.configuration.voters).toEqual([1, 3, 4, 5])

  core.lags.set(core.configuration.learners[0], 1e6)
  expect(onJoin(membership, join('c', 2))).toEqual({ kind: 'wait', reason: 'another membership operation is running' })
})

test('a second process under one id is refused while the first one answers', () => {
  const [core, membership] = lead(bound(ABC))

  expect(onJoin(membership, join('b', 2))).toEqual({ kind: 'wait', reason: 'its earlier process still answers' })
  core.nowMs += DUPLICATE_MS
  expect(onJoin(membership, join('b', 2))).toMatchObject({ kind: 'refused', reason: 'duplicate' })

  core.silentPeers.add(2)
  expect(onJoin(membership, join('b', 2))).toEqual({ kind: 'wait', reason: 'it is being replaced' })
})

test('an unfinished replacement continues under the next leader, because the node still requests to join', () => {
  const [core, first] = lead(bound(ABC))
  core.silentPeers.add(3)
  onJoin(first, join('c', 2))
  apply(core, first)
  core.role = 'follower'
  core.leader = 2
  tickMembership(first)
  expect(lastOf(first)).toMatchObject({
    kind: 'replace',
    result: 'failed',
    reason: 'leadership moved to b before it was done',
  })

  core.role = 'leader'
  core.id = 2
  const second = createMembership(core.port, { self: { ...SELF, node: 'b' }, initialVoters: ABC })
  onJoin(second, join('c', 2))
  tickMembership(second)
  tickMembership(second)
  apply(core, second)

  expect(namesOf(core.configuration)).toEqual({ voters: ABC, learners: [] })
  expect(lastOf(second)).toMatchObject({ kind: 'replace', result: 'done' })
})

test('a replaced voter that is then demoted stays a learner: its earlier join request is void', () => {
  const [core, membership] = lead(bound(ABC))
  core.silentPeers.add(3)
  onJoin(membership, join('c', 2))
  apply(core, membership)
  tickMembership(membership)
  apply(core, membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'replace', result: 'done' })

  startDemote(membership, 'c')
  apply(core, membership)
  tickMembership(membership)
  apply(core, membership)

  expect(namesOf(core.configuration)).toEqual({ voters: ['a', 'b'], learners: ['c'] })
  expect(operationsOf(membership).operation).toBeUndefined()
})

test('promotion waits until the learner has caught up', () => {
  const [core, membership, id] = withLearner()
  core.lags.set(id, 52_340)
  core.commit = 100_000
  core.applied = 100_000

  expect(startPromote(membership, 'x')).toEqual({ status: 202, text: 'add in progress' })
  expect(operationsOf(membership).operation?.step).toBe('waits until x is at most 1,000 entries behind: 52,340')
  expect(core.log).toHaveLength(0)

  core.lags.set(id, 1_000)
  tickMembership(membership)
  apply(core, membership)
  expect(namesOf(core.configuration)).toEqual({ voters: [...ABC, 'x'], learners: [] })
  expect(lastOf(membership)).toMatchObject({ kind: 'promote', node: 'x', result: 'done' })
})

test('a learner that never replied has not caught up, however short the log', () => {
  const [core, membership, id] = withLearner()
  core.commit = 500
  core.applied = 500
  core.lags.set(id, 500)
  membership.changeIndex = 0

  startPromote(membership, 'x')
  tickMembership(membership)

  expect(core.log).toHaveLength(0)
})

test('promotion ends after ten minutes without catching up', () => {
  const [core, membership, id] = withLearner()
  core.silentPeers.add(id)
  startPromote(membership, 'x')

  core.nowMs += CATCH_UP.waitMs
  tickMembership(membership)

  expect(lastOf(membership)).toMatchObject({ result: 'failed', reason: 'it did not catch up within 10 minutes' })
  expect(operationsOf(membership).operation).toBeUndefined()
})

test('promote has no effect on a voter and is otherwise refused as documented', () => {
  const [core, membership, id] = withLearner()
  expect(startPromote(membership, 'b')).toEqual({ status: 202, text: 'add in progress' })
  expect(startPromote(membership, 'unknown')).toEqual({ status: 404, text: 'unknown node' })

  core.silentPeers.add(id)
  startPromote(membership, 'x')
  expect(startPromote(membership, 'x').status).toBe(202)
  expect(startDemote(membership, 'b')).toEqual({ status: 409, text: 'another membership operation is running' })

  core.isReady = false
  expect(startPromote(membership, 'x')).toEqual({ status: 503, text: 'leader not ready' })
  core.role = 'follower'
  expect(startPromote(membership, 'x')).toEqual({ status: 503, text: 'no leader' })
})

test('there are at most 7 voters', () => {
  const seven = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const [core, membership] = lead(bound(seven))
  onJoin(membership, join('x'))
  apply(core)

  expect(startPromote(membership, 'x')).toEqual({ status: 409, text: 'there are 7 voters already' })
})

test('a demoted voter becomes a learner, and a demoted learner leaves', () => {
  const [core, membership] = lead(bound(ABC))

  expect(startDemote(membership, 'c')).toEqual({ status: 202, text: 'remove in progress' })
  apply(core, membership)
  expect(namesOf(core.configuration)).toEqual({ voters: ['a', 'b'], learners: ['c'] })
  expect(lastOf(membership)).toMatchObject({ kind: 'demote', result: 'done' })

  expect(startDemote(membership, 'c').status).toBe(202)
  apply(core, membership)
  expect(namesOf(core.configuration)).toEqual({ voters: ['a', 'b'], learners: [] })
  expect(lastOf(membership)).toMatchObject({ kind: 'remove', result: 'done' })
  expect(startDemote(membership, 'c').status).toBe(404)
})

test('the last voter cannot be demoted, nor one that a healthy majority needs', () => {
  const [, alone] = lead(bound(['a']))
  expect(startDemote(alone, 'a')).toEqual({ status: 409, text: 'it is the last voter' })

  const [core, membership] = lead(bound(ABC))
  core.silentPeers.add(2)
  expect(startDemote(membership, 'c')).toEqual({
    status: 409,
    text: 'the remaining voters would be no healthy majority',
  })
  core.silentPeers.delete(2)
  core.lags.set(2, CATCH_UP.entriesMax + 1)
  expect(startDemote(membership, 'c').status).toBe(409)
  core.lags.delete(2)
  expect(startDemote(membership, 'c').status).toBe(202)
})

test('a leader that is demoted moves leadership first, and the new leader demotes it', () => {
  const [core, membership] = lead(bound(ABC))
  core.lags.set(2, 10)

  expect(startDemote(membership, 'a').status).toBe(202)
  expect(core.transferTarget).toBe(3)
  expect(core.log).toHaveLength(0)
  core.role = 'follower'
  core.leader = 3
  tickMembership(membership)
  core.requested.shift()?.onAnswer({ status: 503, text: 'leader not ready' })
  tickMembership(membership)
  core.requested.shift()?.onAnswer({ status: 409, text: 'the remaining voters would be no healthy majority' })
  tickMembership(membership)
  expect(core.requested.map(({ node }) => node)).toEqual(['a'])
  core.requested.shift()?.onAnswer({ status: 202, text: 'remove in progress' })

  expect(lastOf(membership)).toMatchObject({ kind: 'demote', node: 'a', result: 'done' })
})

test('a demotion of the leader fails when leadership does not move', () => {
  const [core, membership] = lead(bound(ABC))
  startDemote(membership, 'a')

  core.transferTarget = 0
  tickMembership(membership)

  expect(lastOf(membership)).toMatchObject({ result: 'failed', reason: 'leadership did not move to another voter' })
})

test('leadership is transferred to an active voter that is not far behind', () => {
  const [core, membership] = withLearner()
  core.commit = 50_000
  core.applied = 50_000
  core.lags.set(2, 10_001)
  core.silentPeers.add(3)

  expect(startTransfer(membership, 'unknown')).toEqual({ status: 404, text: 'unknown node' })
  expect(startTransfer(membership, 'x')).toEqual({ status: 409, text: 'the target is a learner' })
  expect(startTransfer(membership, 'c')).toEqual({ status: 409, text: 'the target is inactive' })
  expect(startTransfer(membership, 'b')).toEqual({
    status: 409,
    text: 'the target is more than 10,000 entries behind',
  })
  expect(startTransfer(membership, 'a')).toEqual({ status: 202, text: 'transfer in progress' })
  expect(core.transferTarget).toBe(0)

  core.lags.set(2, 10_000)
  core.silentPeers.delete(3)
  expect(startTransfer(membership, 'b').status).toBe(202)
  expect(startTransfer(membership, 'b').status).toBe(202)
  expect(startTransfer(membership, 'c')).toEqual({ status: 409, text: 'another transfer is running' })
  core.role = 'follower'
  core.leader = 2
  tickMembership(membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'transfer', node: 'b', result: 'done' })
})

test('no transfer begins while a membership change is not applied', () => {
  const [core, membership] = lead(bound(ABC))
  onJoin(membership, join('x'))

  expect(startTransfer(membership, 'b')).toEqual({ status: 409, text: 'a membership change is not applied' })
  apply(core)
  expect(startTransfer(membership, 'b').status).toBe(202)
})

test('a transfer that the core abandoned is reported as failed', () => {
  const [core, membership] = lead(bound(ABC))
  startTransfer(membership, 'b')

  core.transferTarget = 0
  tickMembership(membership)

  expect(lastOf(membership)).toMatchObject({ kind: 'transfer', result: 'failed' })
})

test('the result of a change whose leader is gone follows from the configuration once its index is applied', () => {
  const [core, membership] = lead(bound(ABC))
  startDemote(membership, 'c')
  core.role = 'follower'
  core.leader = 2

  tickMembership(membership)
  expect(operationsOf(membership).operation).toBeDefined()
  apply(core, membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'demote', result: 'done' })

  const [other, lost] = lead(bound(ABC))
  startDemote(lost, 'c')
  other.role = 'follower'
  other.leader = 2
  other.log.length = 0
  apply(other, lost)
  expect(lastOf(lost)).toMatchObject({ result: 'failed', reason: 'leadership moved to b before it was done' })
})

test('a change that is never committed fails after half a minute', () => {
  const [core, membership] = lead(bound(ABC))
  startDemote(membership, 'c')
  core.role = 'follower'
  core.leader = 0

  core.nowMs += STEP_MS_MAX
  tickMembership(membership)

  expect(lastOf(membership)).toMatchObject({ result: 'failed', reason: 'leadership was lost before it was done' })
})

test.each<[string, Partial<Core>, string]>([
  ['the core has abandoned it', {}, 'b did not take over within one election time-out'],
  ['another voter leads', { role: 'follower', leader: 3 }, 'c was elected instead'],
  ['no voter leads after half a minute', { role: 'candidate', leader: 0 }, 'no leader was elected'],
])('a transfer of leadership fails when %s', (_, change, reason) => {
  const [core, membership] = lead(bound(ABC))
  startTransfer(membership, 'b')
  Object.assign(core, { role: 'candidate', leader: 0 })
  core.nowMs += STEP_MS_MAX - 1
  tickMembership(membership)
  expect(lastOf(membership)).toBeUndefined()

  Object.assign(core, { role: 'leader', leader: 1, transferTarget: 0 }, change)
  core.nowMs += 1
  tickMembership(membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'transfer', node: 'b', result: 'failed', reason })
})

test.each<[string, (core: Core) => void, string]>([
  [
    'its node has left the shard',
    (core) => {
      core.configuration = bound(['a', 'b'])
    },
    'the node is no longer a member',
  ],
  [
    'the core refuses it for half a minute',
    (core) => {
      core.nowMs += STEP_MS_MAX
    },
    'the change was refused',
  ],
  [
    'the others are no healthy majority any more',
    (core) => core.silentPeers.add(2),
    'the remaining voters would be no healthy majority',
  ],
  [
    'it is applied without its effect',
    (core) => {
      core.log.length = 0
      core.nowMs += 1_000
    },
    'the change was not accepted',
  ],
])('a demotion fails when %s', (_, change, reason) => {
  const [core, membership] = lead(bound(ABC))
  if (reason !== 'the change was not accepted')
    core.log.push({ index: 1, change: { type: 'steps', steps: [] } as never })
  startDemote(membership, 'c')
  tickMembership(membership)
  expect(lastOf(membership)).toBeUndefined()

  change(core)
  if (core.log.length === 0) core.applied = core.commit
  tickMembership(membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'demote', node: 'c', result: 'failed', reason })
})

test.each<[string, Answer | undefined, string]>([
  ['refuses it', { status: 404, text: 'unknown node' }, 'the new leader refused: unknown node'],
  ['does not answer for half a minute', undefined, 'the new leader did not answer'],
])('a demotion of the leader fails when the new leader %s', (_, answer, reason) => {
  const [core, membership] = lead(bound(ABC))
  startDemote(membership, 'a')
  expect(operationsOf(membership).operation?.step).toBe('waits until another voter leads')
  Object.assign(core, { role: 'follower', leader: 2, transferTarget: 0 })
  tickMembership(membership)
  expect(operationsOf(membership).operation?.step).toBe('waits until the new leader continues it')
  if (answer) core.requested.shift()?.onAnswer(answer)
  else core.nowMs += STEP_MS_MAX
  tickMembership(membership)
  expect(lastOf(membership)).toMatchObject({ kind: 'demote', node: 'a', result: 'failed', reason })
})

test('the last 20 operations are kept, newest first', () => {
  const [core, membership] = withLearner()
  for (let n = 0; n < 25; n++) {
    core.transferTarget = 0
    startTransfer(membership, n % 2 === 0 ? 'b' : 'c')
    core.transferTarget = 0
    tickMembership(membership)
  }

  const { lastOperations } = operationsOf(membership)
  expect(lastOperations).toHaveLength(20)
  expect(lastOperations[0]?.node).toBe('b')
})

test('under random requests each change moves one voter and at least one voter stays', () => {
  const runs = Number(process.env['MEMBERSHIP_RUNS'] ?? 200)
  const first = Number(process.env['MEMBERSHIP_SEED'] ?? 1)
  for (let run = 0; run < runs; run++) {
    const random = createRandom(first + run)
    const [core, membership] = lead(genesisConfiguration(ABC))
    const nodes = ['a', 'b', 'c', 'x', 'y']
    for (let step = 0; step < 100; step++) {
      const before = core.configuration
      const node = nodes[random.below(nodes.length)]
      core.nowMs += random.below(5_000)
      const acts = [
        () => node !== 'a' && onJoin(membership, join(node, 1 + random.below(2))),
        () => onFounder(membership, node, inc(node)),
        () => startPromote(membership, node),
        () => startDemote(membership, node),
        () => startTransfer(membership, node),
        () => core.silentPeers.add(2 + random.below(2)),
        () => core.silentPeers.clear(),
        () => {
          core.transferTarget = 0
        },
        () => tickMembership(membership),
        () => apply(core, membership),
      ]
      acts[random.below(acts.length)]?.()
      const seed = `MEMBERSHIP_SEED=${first + run}`
      const moved = [
        ...before.voters.filter((id) => !core.configuration.voters.includes(id)),
        ...core.configuration.voters.filter((id) => !before.voters.includes(id)),
      ]
      expect(moved.length, seed).toBeLessThanOrEqual(1)
      expect(core.configuration.outgoing, seed).toEqual([])
      expect(core.log.length, seed).toBeLessThanOrEqual(1)
      // A raft id belongs to one incarnation forever (docs/design/consensus.md#identities).
      for (const { id, incarnation } of before.members) {
        const after = core.configuration.members.find((member) => member.id === id)
        if (incarnation !== '' && after) expect(after.incarnation, seed).toBe(incarnation)
      }
    }
  }
})
