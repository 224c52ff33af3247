import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  acknowledge,
  assertProgress,
  createProgress,
  forgetMatch,
  isReachable,
  isWaiting,
  isWindowFull,
  noteProbe,
  noteSent,
  type Progress,
  retreat,
  toProbe,
  toReplicate,
  toSnapshot,
} from './progress.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const LIMITS = { inflightMessages: 3, inflightBytes: 100 }

/** A peer that has everything up to `match` and gets entries. */
function replicating(match = 5, limits = LIMITS): Progress {
  const progress = createProgress(2, 1, limits)
  acknowledge(progress, match)
  toReplicate(progress)
  return progress
}

test('a new peer counts, is active, and is probed at its first index', () => {
  const progress = createProgress(2, 9, LIMITS)
  expect(progress).toMatchObject({
    ...{ id: 2, isVoter: false, isOutgoing: false, counts: true, state: 'probe', match: 0, next: 9 },
    ...{ isActive: true, wasActive: false, isPaused: false, pendingSnapshot: 0, sentCommit: 0, readRound: 0 },
    ...{ reading: 0, readingTo: 0, window: { messages: 3, count: 0, bytes: 0 } },
  })
  expect([isWaiting(progress), isWindowFull(progress)]).toEqual([false, false])
  expect(() => createProgress(2, 9, { inflightMessages: 0, inflightBytes: 1 })).toThrow('at least one message')
  expect(createProgress(2, 9, { inflightMessages: 1, inflightBytes: 1 }).window.messages).toBe(1)
})

test('a peer is reachable that answered in this interval or the one before', () => {
  const progress = createProgress(2, 1, LIMITS)
  const cases = [false, true].flatMap((isActive) => [false, true].map((wasActive) => ({ isActive, wasActive })))
  expect(cases.map((each) => isReachable({ ...progress, ...each }))).toEqual([false, true, true, true])
})

test('in probe one message is in flight, and the next index stays a guess', () => {
  const progress = createProgress(2, 4, LIMITS)
  noteSent(progress, 6, 50)
  expect(progress).toMatchObject({ isPaused: true, next: 4, window: { count: 0, bytes: 0 } })
  expect(isWaiting(progress)).toBe(true)
  // An acknowledgement that is no news does not end the wait.
  expect(acknowledge(progress, 0)).toBe(false)
  expect(progress.isPaused).toBe(true)
  expect(acknowledge(progress, 3)).toBe(true)
  expect(progress).toMatchObject({ isPaused: false, match: 3, next: 4 })
  expect(acknowledge(progress, 8)).toBe(true)
  expect(progress).toMatchObject({ match: 8, next: 9 })
  expect(acknowledge(progress, 7)).toBe(false)
  expect(progress).toMatchObject({ match: 8, next: 9 })
})

test('entries are sent in order', () => {
  const progress = replicating(5)
  expect(() => noteSent(progress, 5, 1)).toThrow('entries are sent in order')
  noteSent(progress, 6, 1)
  expect(progress.next).toBe(7)
})

test('the window is full with its messages or its bytes, and a message may pass the bytes', () => {
  const byMessages = replicating()
  for (const [index, isFull] of [
    [6, false],
    [7, false],
    [8, true],
  ] as const) {
    noteSent(byMessages, index, 1)
    expect([isWindowFull(byMessages), byMessages.isPaused, isWaiting(byMessages)]).toEqual([isFull, isFull, isFull])
  }
  expect(() => noteSent(byMessages, 9, 1)).toThrow('messages in flight never exceed')

  for (const [bytes, isFull] of [
    [99, false],
    [100, true],
    [1_000, true],
  ] as const) {
    const byBytes = replicating()
    noteSent(byBytes, 6, bytes)
    expect([isWindowFull(byBytes), byBytes.isPaused]).toEqual([isFull, isFull])
  }
})

test('a message without entries pauses a probe and a full window, nothing else', () => {
  const probe = createProgress(2, 1, LIMITS)
  noteProbe(probe)
  expect(probe.isPaused).toBe(true)
  const open = replicating()
  noteProbe(open)
  expect(open.isPaused).toBe(false)
  noteSent(open, 6, 100)
  open.isPaused = false
  noteProbe(open)
  expect(open.isPaused).toBe(true)
})

test('the window holds the messages that are not acknowledged, in order', () => {
  const random = createRandom(SEED)
  for (const inflightMessages of [1, 2, 5]) {
    const limits = { inflightMessages, inflightBytes: 60 }
    const progress = replicating(0, limits)
    let model: [lastIndex: number, bytes: number][] = []
    let next = 1
    let matched = 0
    for (let n = 0; n < 300; n++) {
      const label = `seed ${SEED}, step ${n}, ${inflightMessages} messages`
      if (!isWindowFull(progress) && random.below(2) === 0) {
        const message: [number, number] = [next + random.below(3), 1 + random.below(30)]
        noteSent(progress, ...message)
        model.push(message)
        next = message[0] + 1
      } else if (random.below(3) > 0) {
        const index = Math.min(next - 1, matched + random.below(4))
        expect(acknowledge(progress, index), label).toBe(index > matched)
        matched = Math.max(matched, index)
        model = model.filter(([last]) => last > index)
      }
      const bytes = model.reduce((sum, [, each]) => sum + each, 0)
      const isFull = model.length >= inflightMessages || bytes >= 60
      expect(progress.window, label).toMatchObject({ count: model.length, bytes, messages: inflightMessages })
      expect([progress.next, isWindowFull(progress)], label).toEqual([next, isFull])
    }
  }
})

test('a rejection halves the window down to one message; each arrival widens it by one', () => {
  const progress = createProgress(2, 1, { inflightMessages: 8, inflightBytes: 1_000 })
  acknowledge(progress, 5)
  const seen: number[] = []
  for (let n = 0; n < 4; n++) {
    toReplicate(progress)
    expect(retreat(progress, 6, 5)).toBe(true)
    seen.push(progress.window.messages)
  }
  expect(seen).toEqual([4, 2, 1, 1])
  toReplicate(progress)
  for (let index = 6; index <= 20; index++) {
    noteSent(progress, index, 1)
    acknowledge(progress, index)
  }
  expect(progress.window.messages).toBe(8)
})

test('a rejection in replication is stale at or below what matched, and leads to a probe above it', () => {
  for (const refused of [0, 4, 5]) {
    const progress = replicating(5)
    noteSent(progress, 7, 10)
    expect(retreat(progress, refused, 0)).toBe(false)
    expect(progress).toMatchObject({ state: 'replicate', next: 8, window: { count: 1, bytes: 10 } })
  }
  const progress = replicating(5)
  noteSent(progress, 7, 10)
  expect(retreat(progress, 6, 2)).toBe(true)
  expect(progress).toMatchObject({ state: 'probe', match: 5, next: 6, isPaused: false, window: { count: 0, bytes: 0 } })
})

test.each<[what: string, refused: number, agreeable: number, next: number | 'stale']>([
  ['to where the logs may agree', 9, 4, 5],
  ['not before what matched', 9, 1, 4],
  ['at least by one entry', 9, 30, 9],
  ['by one entry', 9, 8, 9],
  ['by two entries', 9, 7, 8],
  ['not for another position', 8, 4, 'stale'],
  ['not for a later position', 10, 4, 'stale'],
])('in probe a rejection moves back: %s', (_, refused, agreeable, next) => {
  const progress = createProgress(2, 1, LIMITS)
  acknowledge(progress, 3)
  progress.next = 10
  progress.sentCommit = 9
  progress.isPaused = true
  expect(retreat(progress, refused, agreeable)).toBe(next !== 'stale')
  const expected =
    next === 'stale' ? { next: 10, isPaused: true, sentCommit: 9 } : { next, isPaused: false, sentCommit: next - 1 }
  expect(progress).toMatchObject({ match: 3, ...expected })
})

test('a peer that revokes what it acknowledged is not answered at once', () => {
  const progress = createProgress(2, 1, LIMITS)
  acknowledge(progress, 3)
  toProbe(progress)
  progress.isPaused = true
  expect([retreat(progress, 3, 0), progress.next, progress.isPaused]).toEqual([false, 4, true])
})

test('while a snapshot is due nothing is sent and a rejection means nothing', () => {
  const progress = replicating(5)
  noteSent(progress, 7, 10)
  progress.reading = 3
  progress.pendingSnapshot = 4
  toSnapshot(progress)
  expect(progress).toMatchObject({ state: 'snapshot', isPaused: false, reading: 0, pendingSnapshot: 0 })
  expect(progress.window).toMatchObject({ head: 0, count: 0, bytes: 0 })
  expect([isWaiting(progress), retreat(progress, 7, 6)]).toEqual([true, false])
  expect(acknowledge(progress, 9)).toBe(true)
  expect(progress).toMatchObject({ state: 'snapshot', match: 9, next: 10 })
})

test('a probe begins behind what matched, or behind an installed snapshot', () => {
  for (const [known, next] of [
    [undefined, 6],
    [4, 6],
    [5, 6],
    [9, 10],
  ] as const) {
    const progress = replicating(5)
    progress.sentCommit = 7
    noteSent(progress, 8, 10)
    toProbe(progress, known)
    expect(progress).toMatchObject({ state: 'probe', match: 5, next, sentCommit: Math.min(7, next - 1) })
    expect(progress.window).toMatchObject({ count: 0, bytes: 0 })
  }
})

test('forgotten acknowledgements take the sent commit index with them', () => {
  const progress = replicating(5)
  progress.sentCommit = 5
  forgetMatch(progress, 9)
  expect(progress).toMatchObject({ match: 5, sentCommit: 5 })
  forgetMatch(progress, 3)
  expect(progress).toMatchObject({ match: 3, sentCommit: 3 })
  progress.sentCommit = 1
  forgetMatch(progress)
  expect(progress).toMatchObject({ match: 0, sentCommit: 0 })
})

test('a peer that is being read for waits', () => {
  const progress = replicating()
  progress.reading = 3
  expect(isWaiting(progress)).toBe(true)
  toReplicate(progress)
  expect([isWaiting(progress), progress.next]).toEqual([false, 6])
})

test('a position that cannot be is a broken invariant', () => {
  const at = (match: number, next: number) => ({ ...createProgress(2, next, LIMITS), match })
  assertProgress(at(0, 1), 0)
  assertProgress(at(5, 6), 5)
  expect(() => assertProgress(at(-1, 1), 5)).toThrow('a match is an index')
  expect(() => assertProgress(at(5, 5), 5)).toThrow('are not sent again')
  expect(() => assertProgress(at(6, 7), 5)).toThrow('beyond its leader')
})
