import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  acknowledge,
  appendTo,
  applyAll,
  ask,
  drain,
  heartbeatTo,
  leaderOf,
  logOf,
  memberOf,
} from '../testing/raft-fixture.ts'
import { ENTRY_KIND, type EntryBatch, encodeEntry, entryKind, entryTerm, sliceBatch, viewOf } from './entry.ts'
import { tailFirst, termAt, unappliedBatches } from './log.ts'
import {
  applied,
  campaign,
  compactedTo,
  createRaft,
  forgetLeader,
  handBack,
  hasReady,
  nextCommitted,
  persisted,
  propose,
  proposeChange,
  RAFT_LIMITS,
  type Raft,
  type RaftConfig,
  refused,
  step,
  storeCommit,
  takeReady,
} from './raft.ts'

const ID = 1
const RESTORED = { term: 3, vote: 1, commit: 10, lastIndex: 10, lastTerm: 2, applied: 10 }

function commands(term: number, count: number, bytes = 5): Uint8Array {
  const one = encodeEntry(term, ENTRY_KIND.command, new Uint8Array(bytes).fill(7))
  const all = new Uint8Array(one.length * count)
  for (let i = 0; i < count; i++) all.set(one, i * one.length)
  return all
}

function leader(): Raft {
  const raft = createRaft(ID, RESTORED)
  campaign(raft)
  persisted(raft, takeReady(raft).token)
  persisted(raft, takeReady(raft).token)
  const empty = nextCommitted(raft) as EntryBatch
  applied(raft, empty.firstIndex, 1, empty.bytes.length)
  return raft
}

const give = (raft: Raft, count: number, bytes?: number) => propose(raft, count, commands(raft.term, count, bytes))

test('a single voter leads only when its vote is durable', () => {
  const raft = createRaft(ID, RESTORED)
  expect(give(raft, 1)).toBe('no-leader')

  campaign(raft)
  const vote = takeReady(raft)

  expect(vote).toMatchObject({ hardState: { term: 4, vote: ID, commit: 10 }, entries: [] })
  expect(raft.role).toBe('candidate')
  expect(give(raft, 1)).toBe('no-leader')
  persisted(raft, vote.token)
  expect(raft.role).toBe('leader')
})

test('a leader begins its term with one empty entry', () => {
  const raft = createRaft(ID, RESTORED)
  campaign(raft)
  persisted(raft, takeReady(raft).token)

  const { entries } = takeReady(raft)

  expect(entries).toHaveLength(1)
  const view = viewOf(entries[0]?.bytes ?? new Uint8Array(0))
  expect([entries[0]?.firstIndex, entryTerm(view, 0), entryKind(view, 0)]).toEqual([11, 4, ENTRY_KIND.empty])
})

test('entries are given out when they are durable, once and in order', () => {
  const raft = leader()
  expect(give(raft, 3)).toBe(12)
  const first = takeReady(raft)
  expect(give(raft, 2)).toBe(15)
  const second = takeReady(raft)
  expect(nextCommitted(raft)).toBeUndefined()

  persisted(raft, first.token)

  expect(nextCommitted(raft)).toMatchObject({ firstIndex: 12, count: 3 })
  expect(nextCommitted(raft)).toBeUndefined()
  persisted(raft, second.token)
  expect(nextCommitted(raft)).toMatchObject({ firstIndex: 15, count: 2 })
  expect(raft.commit).toBe(16)
})

test('a large batch is given out in slices', () => {
  const raft = leader()
  give(raft, 2500)
  persisted(raft, takeReady(raft).token)

  const slices = [nextCommitted(raft), nextCommitted(raft), nextCommitted(raft), nextCommitted(raft)]

  expect(slices.map((slice) => slice?.count)).toEqual([1024, 1024, 452, undefined])
  expect(slices.map((slice) => slice?.firstIndex)).toEqual([12, 1036, 2060, undefined])
})

test('the commit index of a hand-over goes with its entries', () => {
  const raft = leader()
  give(raft, 1)
  persisted(raft, takeReady(raft).token)
  give(raft, 1)

  expect(takeReady(raft).hardState.commit).toBe(12)
})

test('a commit index that nothing brings along is stored by itself', () => {
  const raft = leader()
  give(raft, 1)
  const { token } = takeReady(raft)
  storeCommit(raft)
  expect(hasReady(raft)).toBe(false)
  persisted(raft, token)

  storeCommit(raft)

  const ready = takeReady(raft)
  expect(ready).toMatchObject({ hardState: { commit: 12 }, entries: [] })
  persisted(raft, ready.token)
  storeCommit(raft)
  expect(hasReady(raft)).toBe(false)
})

test('tokens are confirmed in order', () => {
  const raft = leader()
  give(raft, 1)
  takeReady(raft)
  give(raft, 1)
  const second = takeReady(raft)
  expect(() => persisted(raft, second.token)).toThrow('tokens are confirmed in order')
})

test('what was handed out and cannot be applied yet comes again', () => {
  const raft = leader()
  give(raft, 5)
  persisted(raft, takeReady(raft).token)
  const all = nextCommitted(raft) as EntryBatch
  expect([all.firstIndex, all.count]).toEqual([12, 5])

  handBack(raft, 13)
  applied(raft, 13, 2, sliceBatch(all, 12, 13).bytes.length)

  expect([raft.applied, raft.unappliedEntries]).toEqual([13, 3])
  const rest = nextCommitted(raft) as EntryBatch
  expect([rest.firstIndex, rest.count]).toEqual([14, 3])
  expect(() => handBack(raft, 12)).toThrow('applied entries are not taken back')
  handBack(raft, 13)
  expect(nextCommitted(raft)).toEqual(rest)
})

test('a snapshot gets the term of the last applied entry, not that of the leader', () => {
  const raft = createRaft(ID, RESTORED)
  campaign(raft)
  persisted(raft, takeReady(raft).token)
  expect([raft.term, raft.applied, raft.appliedTerm]).toEqual([4, 10, 2])

  persisted(raft, takeReady(raft).token)
  const empty = nextCommitted(raft) as EntryBatch
  applied(raft, 11, 1, empty.bytes.length)

  expect([raft.applied, raft.appliedTerm]).toEqual([11, 4])
})

test('applying skips nothing and never runs ahead', () => {
  const raft = leader()
  give(raft, 2)
  persisted(raft, takeReady(raft).token)
  const batch = nextCommitted(raft) as EntryBatch
  expect(() => applied(raft, 14, 3, 1)).toThrow('returned entries are applied')
  expect(() => applied(raft, 13, 1, 1)).toThrow('applied')
  applied(raft, 13, 2, batch.bytes.length)
  expect([raft.applied, raft.unappliedEntries, raft.unappliedBytes]).toEqual([13, 0, 0])
})

test('what is under way is bounded, but for one proposal when nothing is', () => {
  const raft = leader()
  const huge = RAFT_LIMITS.uncommittedEntries + 1
  expect(give(raft, huge, 0)).toBe(12)
  expect(give(raft, 1)).toBe('overloaded')

  persisted(raft, takeReady(raft).token)
  for (let batch = nextCommitted(raft); batch; batch = nextCommitted(raft)) {
    applied(raft, batch.firstIndex + batch.count - 1, batch.count, batch.bytes.length)
  }
  expect(typeof give(raft, RAFT_LIMITS.uncommittedEntries, 0)).toBe('number')
  expect(give(raft, 1)).toBe('overloaded')
})

test('what the log refuses is taken back, and its indexes are used again', () => {
  const raft = leader()
  give(raft, 2)
  const kept = takeReady(raft)
  give(raft, 3)
  const gone = takeReady(raft)
  give(raft, 4)
  persisted(raft, kept.token)

  expect(refused(raft, gone.token)).toBe(14)

  expect([raft.lastIndex, raft.handed.length, raft.unsent.length]).toEqual([13, 0, 0])
  expect(nextCommitted(raft)).toMatchObject({ firstIndex: 12, count: 2 })
  expect(nextCommitted(raft)).toBeUndefined()
  expect(give(raft, 1)).toBe(14)
  expect(raft.unappliedEntries).toBe(3)
})

test('of a hand-over that was stored in part only the rest is taken back', () => {
  const raft = leader()
  give(raft, 5)
  give(raft, 5)
  const { token } = takeReady(raft)

  expect(refused(raft, token, 18)).toBe(19)

  expect([raft.persisted, raft.commit, raft.lastIndex]).toEqual([18, 18, 18])
  const given = [nextCommitted(raft), nextCommitted(raft), nextCommitted(raft)]
  expect(given.map((batch) => batch && [batch.firstIndex, batch.count])).toEqual([[12, 5], [17, 2], undefined])
})

test('a vote that a full disk refused is handed over again', () => {
  const raft = createRaft(ID, RESTORED)
  campaign(raft)
  refused(raft, takeReady(raft).token)

  const again = takeReady(raft)

  expect(again).toMatchObject({ hardState: { term: 4, vote: ID }, entries: [] })
  persisted(raft, again.token)
  expect(raft.role).toBe('leader')
})

test('entries of a restored log that are not applied come with it, to its end', () => {
  expect(() => createRaft(ID, { ...RESTORED, applied: 9 })).toThrow('extend to the end of the log')
  expect(() => createRaft(ID, { ...RESTORED, commit: 11 })).toThrow('committed entries are in the log')
})

test('any order of proposals, confirmations, refusals and applying gives each durable entry once, in order', () => {
  type Step = 'propose' | 'take' | 'persist' | 'refuse' | 'apply' | 'store'
  const steps = fc.array(
    fc.tuple(
      fc.constantFrom<Step>('propose', 'propose', 'take', 'persist', 'persist', 'refuse', 'apply', 'apply', 'store'),
      fc.integer({ min: 1, max: 9 }),
    ),
    { maxLength: 120 },
  )
  fc.assert(
    fc.property(steps, (run) => {
      const raft = leader()
      const durable: number[] = []
      const given: number[] = []
      let next = raft.lastIndex
      for (const [step, number] of run) {
        if (step === 'propose') give(raft, number)
        else if (step === 'take' && hasReady(raft)) takeReady(raft)
        else if (step === 'store') storeCommit(raft)
        else if (step === 'persist' && raft.handed[0]) {
          const { token, lastIndex } = raft.handed[0]
          persisted(raft, token)
          for (; next < lastIndex; ) durable.push(++next)
        } else if (step === 'refuse' && raft.handed[0]) {
          const { token, lastIndex } = raft.handed[0]
          const storedTo = Math.min(lastIndex, raft.persisted + number - 1)
          refused(raft, token, storedTo)
          for (; next < storedTo; ) durable.push(++next)
        } else if (step === 'apply') {
          const batch = nextCommitted(raft, number)
          if (!batch) continue
          for (let i = 0; i < batch.count; i++) given.push(batch.firstIndex + i)
          applied(raft, batch.firstIndex + batch.count - 1, batch.count, batch.bytes.length)
        }
        expect(raft.applied).toBeLessThanOrEqual(raft.commit)
        expect(raft.commit).toBeLessThanOrEqual(raft.persisted)
        expect(raft.persisted).toBeLessThanOrEqual(raft.lastIndex)
        expect(given).toEqual(durable.slice(0, given.length))
      }
      expect(raft.unappliedEntries).toBe(raft.lastIndex - raft.applied)
    }),
  )
})

test('a batch is cut between entries', () => {
  const mixed = new Uint8Array([...commands(1, 2, 3), ...commands(2, 1, 0), ...commands(5, 2, 9)])
  const whole = { firstIndex: 7, count: 5, bytes: mixed }
  expect(sliceBatch(whole, 7, 11)).toBe(whole)
  expect([...sliceBatch(whole, 9, 10).bytes]).toEqual([...commands(2, 1, 0), ...commands(5, 1, 9)])
  expect(() => sliceBatch(whole, 6, 8)).toThrow('a slice is within its batch')
})

// Several members

test('nothing is handed over when there is nothing, and everything that is there at once', () => {
  const raft = memberOf()
  expect(hasReady(raft)).toBe(false)
  expect(() => takeReady(raft)).toThrow('a hand-over contains something')
  appendTo(raft, { entries: logOf([1]) })
  ask(raft, 3, 'preVote', { term: 1, lastIndex: 9, lastTerm: 9 })
  heartbeatTo(raft)
  const ready = takeReady(raft)
  expect(ready).toMatchObject({ mustStore: true, mustSync: true, hardState: { term: 1 } })
  expect([ready.entries.length, ready.sendNow.length, ready.sendAfterPersist.length]).toEqual([1, 1, 2])
  expect(hasReady(raft)).toBe(false)
})

test('messages alone need nothing stored, a commit index alone no sync', () => {
  const raft = memberOf(undefined, { log: [1, 1] })
  heartbeatTo(raft, 1, 2)
  const messages = takeReady(raft)
  expect([messages.mustStore, messages.mustSync, messages.hardState.commit]).toEqual([false, false, 0])
  persisted(raft, messages.token)
  storeCommit(raft)
  const commit = takeReady(raft)
  expect([commit.mustStore, commit.mustSync, commit.hardState.commit]).toEqual([true, false, 2])
})

test('a confirmation does not count for what was replaced while the disk was busy', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1, 1, 1]) })
  const first = takeReady(raft)
  appendTo(raft, { term: 2, prevIndex: 1, prevTerm: 1, entries: logOf([2, 2], 2), commit: 3 })
  const second = takeReady(raft)
  expect(second.entries[0]?.firstIndex).toBe(2)

  persisted(raft, first.token)

  expect([raft.persisted, nextCommitted(raft)?.count]).toEqual([1, 1])
  persisted(raft, second.token)
  expect(raft.persisted).toBe(3)
})

test('an entry that is replaced by one of the same term again waits for its own confirmation', () => {
  const raft = memberOf()
  const readies = [1, 2, 1].map((term, turn) => {
    appendTo(raft, { term: turn + 2, from: 2 + (turn % 2), prevIndex: 0, prevTerm: 0, entries: logOf([term]) })
    return takeReady(raft)
  })
  const durable = readies.map(({ token }) => {
    persisted(raft, token)
    return raft.persisted
  })
  expect(durable).toEqual([0, 0, 1])
})

test('a follower is given committed entries when they are durable here', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1, 1]), commit: 2 })
  const { token } = takeReady(raft)
  expect([raft.commit, nextCommitted(raft)]).toEqual([2, undefined])
  persisted(raft, token)
  expect(nextCommitted(raft)).toMatchObject({ firstIndex: 1, count: 1 })
})

test('in lock-step one hand-over is open at a time', () => {
  const raft = memberOf(undefined, { isLockStep: true })
  appendTo(raft, { entries: logOf([1]) })
  const { token } = takeReady(raft)
  appendTo(raft, { entries: logOf([1], 2) })
  expect(() => takeReady(raft)).toThrow('one hand-over is open in lock-step')
  persisted(raft, token)
  expect(takeReady(raft).entries).toHaveLength(1)
})

test('a leader whose disk is full steps down and keeps what is durable; the rest may be with others', () => {
  const raft = leaderOf()
  give(raft, 2)
  const { token } = takeReady(raft)
  acknowledge(raft, 2)

  expect(refused(raft, token)).toBe(2)

  expect([raft.role, raft.leader, raft.lastIndex, raft.commit]).toEqual(['follower', 0, 1, 1])
  expect(give(raft, 1)).toBe('no-leader')
})

test('a single leader steps down, too, when a member that left was sent the entries', () => {
  const raft = leaderOf({ voters: [1], learners: [2] })
  give(raft, 1)
  drain(raft)
  proposeChange(raft, { steps: [{ type: 'remove', id: 2 }] })
  give(raft, 1)
  const change = takeReady(raft)
  give(raft, 1)
  const { token } = takeReady(raft)
  persisted(raft, change.token)
  applyAll(raft)
  expect(raft.peers).toEqual([])
  refused(raft, token)
  expect(raft.role).toBe('follower')
})

test('a follower whose disk is full forgets what it did not promise, and takes it again', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1]), commit: 1 })
  persisted(raft, takeReady(raft).token)
  appendTo(raft, { entries: logOf([1, 1, 1], 2), commit: 4 })
  const { token } = takeReady(raft)
  appendTo(raft, { entries: logOf([1], 5) })

  expect(refused(raft, token, 3)).toBe(4)

  expect([raft.lastIndex, raft.persisted, raft.commit, hasReady(raft)]).toEqual([3, 3, 3, false])
  expect(raft.stored.commit).toBe(3)
  appendTo(raft, { prevIndex: 3, prevTerm: 1, entries: logOf([1], 4) })
  expect(raft.lastIndex).toBe(4)
})

test('a vote that was refused along with entries is handed over again, and not answered before', () => {
  const raft = memberOf()
  appendTo(raft, { entries: logOf([1]) })
  forgetLeader(raft)
  ask(raft, 3, 'vote', { term: 2, lastIndex: 9, lastTerm: 1 })
  const { token } = takeReady(raft)
  refused(raft, token)
  const again = takeReady(raft)
  expect([again.hardState, again.sendAfterPersist]).toEqual([{ term: 2, vote: 3, commit: 0 }, []])
})

test('a proposal at a follower is refused with whether there is a leader', () => {
  const raft = memberOf()
  expect(give(raft, 1)).toBe('no-leader')
  heartbeatTo(raft)
  expect(give(raft, 1)).toBe('not-leader')
})

test('a node continues from its state: terms, entries that are not applied, commit index', () => {
  const entries = logOf([2, 2, 3], 4)
  const restored = { term: 5, vote: 2, commit: 4, lastIndex: 6, lastTerm: 3, applied: 3, appliedTerm: 2, firstIndex: 2 }
  const terms = [
    { term: 1, firstIndex: 1 },
    { term: 2, firstIndex: 3 },
    { term: 3, firstIndex: 6 },
  ]
  const raft = memberOf(undefined, { restored: { ...restored, terms, entries } })
  expect([1, 2, 3, 4, 5, 6, 7, 0].map((index) => termAt(raft, index))).toEqual([1, 1, 2, 2, 2, 3, -1, -1])
  expect([raft.persisted, raft.unappliedEntries, hasReady(raft)]).toEqual([6, 3, false])
  expect(nextCommitted(raft)).toMatchObject({ firstIndex: 4, count: 1 })
  expect(nextCommitted(raft)).toBeUndefined()
})

test('what is restored fits together', () => {
  const whole = { log: [1, 2] }
  const broken = [
    { commit: 3 },
    { applied: 1, commit: 0 },
    { lastTerm: 1 },
    { lastIndex: 3 },
    { firstIndex: 2 },
    { term: 1 },
    { applied: 1, commit: 1, appliedTerm: 3, entries: logOf([2], 2), terms: [{ term: 1, firstIndex: 0 }] },
  ]
  expect(() => memberOf(undefined, whole)).not.toThrow()
  for (const restored of broken) {
    expect(() => memberOf(undefined, { ...whole, restored }), JSON.stringify(restored)).toThrow()
  }
  const unnamed: RaftConfig = { ...memberOf().config, id: 0 }
  expect(() => createRaft(unnamed, RESTORED)).toThrow('begin at 1')
  expect(() => createRaft({ ...unnamed, id: 1 }, RESTORED)).toThrow('who the others are')
})

test('applied entries stay in memory for peers that lag, up to a bound, and then go', () => {
  const batch = 100 * commands(1, 1).length
  const raft = leaderOf(undefined, { keepBytes: 3 * (batch + 300) })
  for (let n = 0; n < 400; n++) {
    propose(raft, 100, commands(raft.term, 100))
    for (const ready of [takeReady(raft)]) persisted(raft, ready.token)
    acknowledge(raft, 2)
    applyAll(raft)
  }
  expect([raft.tailBytes <= raft.keepBytes, raft.tail.length < 200, raft.applied]).toEqual([true, true, 40_001])
  expect(tailFirst(raft)).toBe(40_001 - 300 + 1)
  compactedTo(raft, 39_900)
  compactedTo(raft, 5)
  expect([raft.firstIndex, tailFirst(raft), termAt(raft, 39_899), termAt(raft, 39_898)]).toEqual([
    39_900, 39_802, 1, -1,
  ])
  compactedTo(raft, 40_002)
  expect(tailFirst(raft)).toBe(40_002)
  expect(() => compactedTo(raft, 40_003)).toThrow('only applied entries are compacted')
})

test('so many changes of term are remembered; the oldest go as if they were compacted', () => {
  const raft = memberOf(undefined, { keepBytes: 1 << 30 })
  for (let term = 1; term <= 10_050; term++) {
    appendTo(raft, { term, entries: logOf([term], term), commit: term })
    drain(raft)
  }
  expect([raft.runs.length <= 10_000, raft.lastIndex, raft.firstIndex > 1]).toEqual([true, 10_050, true])
})

test('entries that are not applied yet can be looked through', () => {
  const raft = leaderOf()
  expect(unappliedBatches(raft)).toEqual([])
  give(raft, 3)
  expect(unappliedBatches(raft).map(({ firstIndex, count }) => [firstIndex, count])).toEqual([[2, 3]])
})

test('messages for another node, or from the node itself, are refused', () => {
  const raft = memberOf()
  const vote = { type: 'timeoutNow', term: 0 } as const
  expect(() => step(raft, { ...vote, from: 2, to: 3 })).toThrow('for this node')
  expect(() => step(raft, { ...vote, from: 1, to: 1 })).toThrow('for this node')
})
