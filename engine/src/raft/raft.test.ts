import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ENTRY_KIND, type EntryBatch, encodeEntry, entryKind, entryTerm, sliceBatch, viewOf } from './entry.ts'
import {
  applied,
  campaign,
  createRaft,
  hasReady,
  nextCommitted,
  persisted,
  propose,
  RAFT_LIMITS,
  type Raft,
  refused,
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

test('a single voter leads only when its vote is durable (H3)', () => {
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

test('a leader begins its term with one empty entry (E8)', () => {
  const raft = createRaft(ID, RESTORED)
  campaign(raft)
  persisted(raft, takeReady(raft).token)

  const { entries } = takeReady(raft)

  expect(entries).toHaveLength(1)
  const view = viewOf(entries[0]?.bytes ?? new Uint8Array(0))
  expect([entries[0]?.firstIndex, entryTerm(view, 0), entryKind(view, 0)]).toEqual([11, 4, ENTRY_KIND.empty])
})

test('entries are given out when they are durable, once and in order (A9, H5)', () => {
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

test('a large batch is given out in slices (§13)', () => {
  const raft = leader()
  give(raft, 2500)
  persisted(raft, takeReady(raft).token)

  const slices = [nextCommitted(raft), nextCommitted(raft), nextCommitted(raft), nextCommitted(raft)]

  expect(slices.map((slice) => slice?.count)).toEqual([1024, 1024, 452, undefined])
  expect(slices.map((slice) => slice?.firstIndex)).toEqual([12, 1036, 2060, undefined])
})

test('the commit index of a hand-over goes with its entries (M10)', () => {
  const raft = leader()
  give(raft, 1)
  persisted(raft, takeReady(raft).token)
  give(raft, 1)

  expect(takeReady(raft).hardState.commit).toBe(12)
})

test('a commit index that nothing brings along is stored by itself (W5)', () => {
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

test('tokens are confirmed in order (A22)', () => {
  const raft = leader()
  give(raft, 1)
  takeReady(raft)
  give(raft, 1)
  const second = takeReady(raft)
  expect(() => persisted(raft, second.token)).toThrow('A22')
})

test('a snapshot is told the term of the last applied entry, not that of the leader', () => {
  const raft = createRaft(ID, RESTORED)
  campaign(raft)
  persisted(raft, takeReady(raft).token)
  expect([raft.term, raft.applied, raft.appliedTerm]).toEqual([4, 10, 2])

  persisted(raft, takeReady(raft).token)
  const empty = nextCommitted(raft) as EntryBatch
  applied(raft, 11, 1, empty.bytes.length)

  expect([raft.applied, raft.appliedTerm]).toEqual([11, 4])
})

test('applying skips nothing and never runs ahead (A9)', () => {
  const raft = leader()
  give(raft, 2)
  persisted(raft, takeReady(raft).token)
  const batch = nextCommitted(raft) as EntryBatch
  expect(() => applied(raft, 14, 3, 1)).toThrow('A9')
  expect(() => applied(raft, 13, 1, 1)).toThrow('A9')
  applied(raft, 13, 2, batch.bytes.length)
  expect([raft.applied, raft.unappliedEntries, raft.unappliedBytes]).toEqual([13, 0, 0])
})

test('what is under way is bounded, but for one proposal when nothing is (R8)', () => {
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

test('what the log refuses is taken back, and its indexes are used again (X5)', () => {
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

test('of a hand-over that was stored in part only the rest is taken back (X5)', () => {
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
  expect(() => createRaft(ID, { ...RESTORED, applied: 9 })).toThrow('go on to the end of the log')
  expect(() => createRaft(ID, { ...RESTORED, commit: 11 })).toThrow('A2')
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
  expect(() => sliceBatch(whole, 6, 8)).toThrow('a slice lies within its batch')
})
