import { expect, test } from 'vitest'
import {
  acknowledge,
  answerHeartbeat,
  appendTo,
  applyAll,
  configurationOf,
  drain,
  E,
  elect,
  give,
  incarnationOf,
  leaderOf,
  memberOf,
  ofType,
} from '../testing/raft-fixture.ts'

import { ENTRY_KIND, encodeEntry } from './entry.ts'
import { type Change, encodeConfiguration, type Step } from './membership.ts'
import type { Configuration } from './messages.ts'
import {
  applied,
  applyConfiguration,
  campaign,
  nextCommitted,
  persisted,
  proposeChange,
  type Raft,
  setCounts,
  status,
  takeReady,
  tick,
  transferLeader,
} from './raft.ts'

const learner = (id: number): Step => ({ type: 'addLearner', node: `n${id}`, incarnation: incarnationOf(id) })
const steps = (...list: Step[]): Change => ({ steps: list })
const voters = ({ configuration }: Raft) => [configuration.voters, configuration.outgoing]

/** Stores the appended entries on every member and applies them here. */
function settle(raft: Raft, from: readonly number[] = raft.peers.map(({ id }) => id)): void {
  drain(raft)
  for (const id of from) if (raft.role === 'leader') acknowledge(raft, id)
  drain(raft)
}

/** The entry as a leader would send it. */
function entryOf(term: number, firstIndex: number, configuration: Configuration) {
  const bytes = encodeEntry(term, ENTRY_KIND.configuration, encodeConfiguration(configuration))
  return { firstIndex, count: 1, bytes }
}

test('a configuration takes effect when its entry is applied, not before', () => {
  const raft = leaderOf()
  expect(proposeChange(raft, steps({ type: 'demote', id: 3 }))).toBe(2)
  drain(raft)
  expect(voters(raft)).toEqual([[1, 2, 3], []])
  acknowledge(raft, 2)
  expect(voters(raft)).toEqual([[1, 2, 3], []])
  drain(raft)
  expect(voters(raft)).toEqual([[1, 2], []])
})

test('a configuration takes effect before its entry is confirmed as applied, on every member', () => {
  const raft = memberOf()
  const after = configurationOf({ voters: [1, 2] })
  appendTo(raft, { entries: [entryOf(1, 1, after)], commit: 1 })
  persisted(raft, takeReady(raft).token)
  nextCommitted(raft)
  expect(() => applied(raft, 1, 1, 0)).toThrow('a change is in force when its entry is applied')
  expect(() => applyConfiguration(raft, 2, after)).toThrow('a configuration is applied with its entry')
  applyConfiguration(raft, 1, after)
  expect(voters(raft)).toEqual([[1, 2], []])
})

test('an entry that is not a configuration is not applied as one', () => {
  const raft = leaderOf()
  give(raft)
  drain(raft)
  acknowledge(raft, 2)
  nextCommitted(raft)
  expect(() => applyConfiguration(raft, 2, raft.configuration)).toThrow('is a configuration')
})

test('one change at a time: a second one is refused until the first is applied', () => {
  const raft = leaderOf()
  proposeChange(raft, steps({ type: 'demote', id: 3 }))
  expect(proposeChange(raft, steps({ type: 'demote', id: 2 }))).toBe('change-in-flight')
  drain(raft)
  acknowledge(raft, 2)
  expect(proposeChange(raft, steps({ type: 'demote', id: 2 }))).toBe('change-in-flight')
  expect(status(raft).takesChanges).toBe(false)
  drain(raft)
  expect(status(raft).takesChanges).toBe(true)
  expect(proposeChange(raft, steps({ type: 'promote', id: 3 }))).toBe(3)
})

test('a new leader refuses changes until an entry of its own term is applied, which covers inherited entries', () => {
  const raft = elect(memberOf(undefined, { log: [1, 1] }))
  expect(proposeChange(raft, steps({ type: 'demote', id: 3 }))).toBe('change-in-flight')
  settle(raft)
  expect(proposeChange(raft, steps({ type: 'demote', id: 3 }))).toBe(4)
})

test('a follower, or a leader that is transferring leadership, refuses a change', () => {
  const raft = memberOf()
  expect(proposeChange(raft, 'leave')).toBe('no-leader')
  appendTo(raft)
  expect(proposeChange(raft, 'leave')).toBe('not-leader')
  const leader = leaderOf()
  transferLeader(leader, 2)
  expect(proposeChange(leader, 'leave')).toBe('transferring')
})

test('an invalid change is refused without appending an entry', () => {
  const raft = leaderOf()
  expect(proposeChange(raft, 'leave')).toBe('not-joint')
  expect(proposeChange(raft, steps({ type: 'promote', id: 9 }))).toBe('unknown-member')
  expect(raft.lastIndex).toBe(1)
})

test('without the checks a second change is accepted; the invariant detects it', () => {
  const raft = leaderOf(undefined, { validateChanges: false })
  proposeChange(raft, steps({ type: 'demote', id: 3 }))
  expect(proposeChange(raft, steps({ type: 'demote', id: 2 }))).toBe(3)
  expect(() => drain(raft)).not.toThrow()
})

test('a new member gets its id from its entry, counts as active and is probed', () => {
  const raft = leaderOf()
  const index = proposeChange(raft, steps(learner(9)))
  settle(raft, [2, 3])
  const id = 1_000 + Number(index)
  expect(status(raft).peers.at(-1)).toMatchObject({ id, match: 0, state: 'probe', isActive: true })
  expect(raft.configuration.learners).toEqual([id])
  give(raft)
  drain(raft)
  acknowledge(raft, id)
  expect(raft.commit).toBe(2)
})

test('check-quorum does not fire before the first contact with a new voter', () => {
  const raft = leaderOf({ voters: [1] })
  proposeChange(raft, steps({ type: 'addVoter', node: 'n2', incarnation: incarnationOf(2) }))
  settle(raft)
  for (let n = 0; n < E; n++) tick(raft)
  expect([raft.role, voters(raft)[0]]).toEqual(['leader', [1, 1_002]])
})

test('a joint phase needs both majorities and is left exactly once, after it takes effect', () => {
  const raft = leaderOf({ voters: [1, 2, 3], learners: [4, 5] })
  proposeChange(
    raft,
    steps({ type: 'promote', id: 4 }, { type: 'promote', id: 5 }, { type: 'demote', id: 2 }, { type: 'demote', id: 3 }),
  )
  settle(raft, [2])
  expect(voters(raft)).toEqual([
    [1, 4, 5],
    [1, 2, 3],
  ])
  expect([raft.lastIndex, raft.configuration.staged]).toEqual([3, [2, 3]])

  give(raft)
  drain(raft)
  acknowledge(raft, 4)
  expect(raft.commit).toBe(2)
  acknowledge(raft, 3, 3)
  expect(raft.commit).toBe(3)
  acknowledge(raft, 3)
  drain(raft)

  expect(voters(raft)).toEqual([[1, 4, 5], []])
  expect([raft.configuration.learners, raft.lastIndex]).toEqual([[2, 3], 4])
})

test('a new leader leaves an inherited joint phase', () => {
  const joint = configurationOf({ voters: [1, 2], outgoing: [1, 3], autoLeave: true })
  const raft = elect(memberOf(joint, { log: [1] }))
  expect(raft.lastIndex).toBe(2)
  settle(raft)
  expect([raft.lastIndex, raft.configuration.outgoing]).toEqual([3, [1, 3]])
  settle(raft)
  expect([raft.lastIndex, raft.configuration.outgoing]).toEqual([3, []])
})

test('a joint phase without auto-leave waits for an explicit leave', () => {
  const raft = leaderOf({ voters: [1, 2, 3], learners: [4] })
  proposeChange(raft, { steps: [{ type: 'promote', id: 4 }], phase: 'joint', autoLeave: false })
  settle(raft)
  expect([status(raft).isJoint, raft.lastIndex]).toEqual([true, 2])
  expect(proposeChange(raft, steps({ type: 'demote', id: 2 }))).toBe('is-joint')
  expect(proposeChange(raft, 'leave')).toBe(3)
  settle(raft)
  expect(status(raft).isJoint).toBe(false)
})

test('a leader that is demoted or removed steps down when it applies the change', () => {
  for (const type of ['demote', 'remove'] as const) {
    const raft = leaderOf()
    proposeChange(raft, steps({ type, id: 1 }))
    drain(raft)
    expect(typeof give(raft)).toBe('number')
    acknowledge(raft, 2)
    drain(raft)
    expect([raft.role, raft.leader, give(raft)]).toEqual(['follower', 0, 'no-leader'])
  }
})

test('a leader that is no longer a voter does not count itself and refuses proposals', () => {
  const raft = leaderOf({ voters: [1, 2, 3, 4] }, { stepDownOnRemoval: false })
  proposeChange(raft, steps({ type: 'remove', id: 1 }))
  drain(raft)
  expect(typeof give(raft)).toBe('number')
  acknowledge(raft, 2, 2)
  acknowledge(raft, 3, 2)
  drain(raft)
  expect([raft.role, give(raft), proposeChange(raft, steps(learner(9)))]).toEqual([
    'leader',
    'not-leader',
    'not-leader',
  ])
  acknowledge(raft, 2)
  expect(raft.commit).toBe(2)
  acknowledge(raft, 3)
  expect(raft.commit).toBe(3)
})

test('a smaller quorum may commit entries at once', () => {
  const raft = leaderOf({ voters: [1, 2, 3, 4] })
  proposeChange(raft, steps({ type: 'demote', id: 4 }))
  give(raft)
  drain(raft)
  acknowledge(raft, 2, 2)
  acknowledge(raft, 3, 2)
  acknowledge(raft, 2)
  expect(raft.commit).toBe(2)
  drain(raft)
  expect(raft.commit).toBe(3)
})

test('removing the target aborts a leadership transfer', () => {
  const raft = leaderOf({ voters: [1, 2, 3] })
  proposeChange(raft, steps({ type: 'remove', id: 3 }))
  drain(raft)
  transferLeader(raft, 3)
  acknowledge(raft, 2)
  drain(raft)
  expect([status(raft).transferTarget, raft.peers.map(({ id }) => id)]).toEqual([0, [2]])
})

test('the state of a removed member is dropped', () => {
  const raft = leaderOf()
  setCounts(raft, 3, true)
  proposeChange(raft, steps({ type: 'remove', id: 3 }))
  settle(raft, [2])
  expect([...raft.counts.keys()]).toEqual([])
  answerHeartbeat(raft, 3)
  acknowledge(raft, 3)
  expect(raft.peers.map(({ id }) => id)).toEqual([2])
})

test('a member does not campaign while a committed change is unapplied', () => {
  const raft = memberOf()
  appendTo(raft, { entries: [entryOf(1, 1, configurationOf({ voters: [1, 2] }))], commit: 1 })
  persisted(raft, takeReady(raft).token)
  campaign(raft)
  expect(raft.role).toBe('follower')
  applyAll(raft)
  campaign(raft)
  expect(raft.role).toBe('preCandidate')
})

test('a candidate that is no longer a voter becomes a follower', () => {
  const raft = memberOf(undefined, { preVote: false })
  appendTo(raft, { entries: [entryOf(1, 1, configurationOf({ voters: [2, 3], learners: [1] }))] })
  persisted(raft, takeReady(raft).token)
  campaign(raft)
  expect(raft.role).toBe('candidate')
  raft.commit = 1
  drain(raft)
  expect(raft.role).toBe('follower')
})

test('a change that another leader overwrites never takes effect', () => {
  const raft = memberOf()
  appendTo(raft, { entries: [entryOf(1, 1, configurationOf({ voters: [1, 2] }))] })
  expect(raft.configurations).toEqual([1])
  const empty = { firstIndex: 1, count: 1, bytes: encodeEntry(2, ENTRY_KIND.empty, new Uint8Array(0)) }
  appendTo(raft, { term: 2, prevIndex: 0, prevTerm: 0, entries: [empty], commit: 1 })
  drain(raft)
  expect([raft.configurations, voters(raft)]).toEqual([[], [[1, 2, 3], []]])
})

test('two configurations above the durable commit index violate the invariant', () => {
  const one = entryOf(1, 1, configurationOf({ voters: [1, 2] }))
  const two = entryOf(1, 2, configurationOf({ voters: [1] }))
  const raft = memberOf()
  appendTo(raft, { entries: [one, two] })
  expect(() => takeReady(raft)).toThrow('at most one configuration above the durable commit index')
  const informed = memberOf()
  appendTo(informed, { entries: [one, two], commit: 1 })
  expect(takeReady(informed).hardState.commit).toBe(1)
  const restored = { lastIndex: 2, lastTerm: 1, term: 1, entries: [one, two] }
  expect(() => memberOf(undefined, { restored })).toThrow('at most one configuration above the commit index')
  expect(() => memberOf(undefined, { restored: { ...restored, commit: 1 } })).not.toThrow()
})

test('a single voter grows to a shard of three by successive changes', () => {
  const raft = leaderOf({ voters: [1] })
  for (const n of [2, 3]) {
    const id = 1_000 + Number(proposeChange(raft, steps(learner(n))))
    settle(raft)
    answerHeartbeat(raft, id)
    expect(ofType(drain(raft), 'append', id)).toHaveLength(1)
    acknowledge(raft, id)
    settle(raft)
    proposeChange(raft, steps({ type: 'promote', id }))
    settle(raft)
  }
  expect(voters(raft)[0]).toHaveLength(3)
})
