import { expect, test } from 'vitest'
import { contentOf, createSimulatedDisk, fillDisk } from '../testing/disk.ts'
import { batchTexts, entries, IDENTITY, replayTexts } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createWal, openWal } from './open.ts'
import type { WalOptions } from './wal.ts'
import { type FromWal, handleWalMessages, type ToWal, type WalThread } from './wal-thread.ts'

const OPTIONS = { fileBytes: 16_384, reserveBytes: 512 }

function startWith(options: WalOptions, flushThreshold: number) {
  const disk = createSimulatedDisk()
  disk.makeDirectory('/wal')
  const { env } = createSimulation({ disk })
  const sent: FromWal[] = []
  const thread: WalThread = {
    wal: createWal(env, '/wal', IDENTITY, { index: 0, term: 0 }, options),
    flushThreshold,
    lends: true,
    send: (message) => sent.push(message),
    monotonicMs: env.clock.monotonicMs,
    isRefusing: false,
    refusals: 0,
  }
  return { disk, env, thread, sent }
}

const start = (flushThreshold = 100) => startWith(OPTIONS, flushThreshold)

/** @param refusals refusals that had arrived when it was sent */
function append(token: number, batches: ReturnType<typeof entries>[], commit = 0, term = 1, refusals = 0): ToWal {
  return { type: 'append', token, hardState: { term, vote: 1, commit }, entries: batches, refusals }
}

const refusalsIn = (sent: FromWal[]) => sent.filter(({ type }) => type === 'refused').length

const reported = (sent: FromWal[]) => sent.map((message) => [message.type, 'token' in message ? message.token : 0])

test('all queued entries go into one group, and its last token is reported', () => {
  const { thread, sent } = start()
  handleWalMessages(thread, [
    append(1, [entries(1, 3, 1)]),
    append(2, [entries(4, 2, 1)]),
    append(3, [entries(6, 1, 1)]),
  ])
  expect(reported(sent)).toEqual([['stored', 3]])
  expect(thread.wal.lastIndex).toBe(6)
})

test('a hand-over larger than a group goes into several and is reported once it is complete', () => {
  const { thread, sent, env } = start(10)
  const batches = [entries(1, 25, 1), entries(26, 7, 1)]
  handleWalMessages(thread, [
    append(1, [entries(1, 0, 1)].slice(1)),
    append(2, batches, 0),
    append(3, [entries(33, 1, 1)], 0),
  ])

  expect(reported(sent)).toEqual([
    ['stored', 1],
    ['stored', 1],
    ['stored', 1],
    ['stored', 3],
  ])
  const { recovered } = openWal(env, '/wal', IDENTITY, { ...OPTIONS, isClean: true })
  expect(replayTexts(env.disk, recovered.scan)).toEqual(batchTexts([...batches, entries(33, 1, 1)]))
})

test('a commit index beyond the group it travels with is cut to what is stored', () => {
  const { thread } = start(10)
  // One message tells a follower both the new entries and their commit.
  handleWalMessages(thread, [append(1, [entries(1, 25, 1)], 20)])
  expect(thread.wal.hardState.commit).toBe(20)
  expect(thread.wal.lastIndex).toBe(25)
})

test('entries are refused until there is room again, but votes are stored', () => {
  const { disk, thread, sent } = start(1000)
  fillDisk(disk)
  const large = Array.from({ length: 12 }, (_, i) => entries(1 + i * 20, 20, 1, 48))
  handleWalMessages(thread, [append(1, large.slice(0, 1)), append(2, large.slice(1)), append(3, [entries(241, 1, 1)])])
  const last = thread.wal.lastIndex
  expect(sent.at(-1)).toMatchObject({ type: 'refused', token: 2 })

  handleWalMessages(thread, [append(4, [], 0, 7, 1), append(5, [entries(last + 1, 1, 7)], 0, 7, 1)])

  expect(reported(sent).slice(-2)).toEqual([
    ['stored', 4],
    ['refused', 5],
  ])
  expect(thread.wal.hardState).toMatchObject({ term: 7 })
  handleWalMessages(thread, [{ type: 'resume' }])
  expect(sent.at(-1)).toEqual({ type: 'resumed', takesEntries: false })
  disk.capacityBytes *= 4
  handleWalMessages(thread, [{ type: 'resume' }, append(6, [entries(last + 1, 1, 7)], 0, 7, 2)])
  expect(reported(sent).slice(-2)).toEqual([
    ['resumed', 0],
    ['stored', 6],
  ])
})

test('entries that continue what was refused are not taken, also when there is room again', () => {
  const { disk, thread, sent } = start(1000)
  const { capacityBytes } = fillDisk(disk)
  const large = Array.from({ length: 12 }, (_, i) => entries(1 + i * 20, 20, 1, 48))
  handleWalMessages(thread, [append(1, large)])
  const last = thread.wal.lastIndex
  expect(sent.at(-1)).toMatchObject({ type: 'refused', token: 1 })

  // The disk was slow meanwhile: what is in front of this resume is refused, and was built upon behind it.
  disk.capacityBytes = capacityBytes * 4
  const queue = [append(2, [entries(last + 1, 2, 1)], 0, 1, 1), append(4, [entries(last + 3, 1, 1)], 0, 1, 1)] as const
  handleWalMessages(thread, [queue[0], { type: 'resume' }, queue[1]])
  expect(sent.slice(-2)).toMatchObject([
    { type: 'refused', token: 2 },
    { type: 'resumed', takesEntries: true },
  ])
  expect(thread.wal.lastIndex).toBe(last)
  handleWalMessages(thread, [append(5, [entries(last + 1, 2, 1)], 0, 1, 2)])
  expect(sent.at(-1)).toMatchObject({ type: 'stored', token: 5 })
})

/** The log as it is when even the room for votes and marks is used up. */
function usedUp() {
  const started = start(1_000)
  const { disk, thread, sent } = started
  handleWalMessages(thread, [append(1, [entries(1, 20, 1)], 20)])
  fillDisk(disk)
  for (let i = 0; i < 40; i++) {
    handleWalMessages(thread, [append(2 + i, [entries(21 + i * 20, 20, 1, 48)], 20, 1, thread.refusals)])
  }
  for (let term = 2; term <= 40; term++) {
    handleWalMessages(thread, [append(100 + term, [], 20, term, thread.refusals)])
  }
  expect(sent.at(-1)).toMatchObject({ type: 'refused' })
  return started
}

test('a refused vote let the log store entries that the core had taken back with it (seed 6963925)', () => {
  const { disk, thread, sent } = usedUp()
  const before = thread.wal.lastIndex
  // There is room when the log comes to a resume that was under way, and to entries behind it that were sent before
  // the refusal of this vote arrived.
  const refusals = thread.refusals
  disk.capacityBytes = 2 ** 40
  const behind = append(200, [entries(before + 1, 3, 41)], before + 3, 41, refusals)
  handleWalMessages(thread, [append(199, [], 20, 41, refusals), { type: 'resume' }, behind])

  expect(sent.slice(-2)).toMatchObject([
    { type: 'refused', token: 199 },
    { type: 'resumed', takesEntries: true },
  ])
  expect(thread.wal.lastIndex).toBe(before)
})

test('a commit index refused where writes copy let entries behind it through (seed 6963925)', () => {
  const { disk, thread, sent } = start()
  handleWalMessages(thread, [append(1, [entries(1, 5, 1)], 3)])
  // A refused write leaves bytes that are written over before the next group; that takes room where writes copy.
  fillDisk(disk).copiesOnWrite = true
  disk.capacityBytes += 600
  handleWalMessages(thread, [append(2, [entries(6, 60, 1, 48)], 3)])
  expect(sent.at(-1)).toMatchObject({ type: 'refused', token: 2 })
  disk.capacityBytes = 2 ** 40
  handleWalMessages(thread, [{ type: 'resume' }])
  fillDisk(disk).copiesOnWrite = true
  handleWalMessages(thread, [append(3, [], 5, 1, 1)])
  const isRefused = reported(sent).some(([type, token]) => type === 'refused' && token === 3)
  expect(isRefused).toBe(true)

  disk.capacityBytes = 2 ** 40
  handleWalMessages(thread, [append(4, [entries(6, 1, 1)], 5, 1, 1)])
  expect(thread.wal.lastIndex).toBe(5)
  handleWalMessages(thread, [append(5, [entries(6, 1, 1)], 5, 1, 2)])
  expect(thread.wal).toMatchObject({ lastIndex: 6, hardState: { commit: 5 } })
})

test('what a refusal kept from being replaced does not become committed behind it', () => {
  const { disk, thread, sent } = start(30)
  // The rest of the file has no room for a group, and the disk none for another file.
  handleWalMessages(thread, [append(1, [entries(1, 170, 1, 48)], 160)])
  expect(thread.wal.lastIndex).toBe(170)
  fillDisk(disk)
  // Another leader replaces entries 165 to 170 and more, which are committed before the disk comes to them.
  handleWalMessages(thread, [append(2, [entries(165, 60, 2, 48)], 160, 2)])
  handleWalMessages(thread, [append(3, [], 170, 3, 1)])
  expect(reported(sent).slice(-2)).toEqual([
    ['refused', 2],
    ['stored', 3],
  ])
  expect(thread.wal.hardState.commit).toBe(160)
})

test('a group takes the commit index of its own hand-overs: behind it other entries may come', () => {
  const { thread } = start(10)
  // Another leader replaces entries 5 to 10, and has committed up to 8.
  handleWalMessages(thread, [append(1, [entries(1, 10, 1)], 0), append(2, [entries(5, 6, 2)], 8, 2)])

  expect(thread.wal.hardState).toEqual({ term: 2, vote: 1, commit: 8 })
})

test('a group holds so many batches as their records fit beside them', () => {
  const { thread, sent } = startWith({ fileBytes: 4 * 1024 * 1024, reserveBytes: 1_024 }, 100_000)
  const batches = Array.from({ length: 8_200 }, (_, i) => entries(1 + i, 1, 1))

  handleWalMessages(thread, [append(1, batches)])

  expect(sent).toMatchObject([
    { type: 'stored', token: 0, entries: 8_192 },
    { type: 'stored', token: 1, entries: 8 },
  ])
})

test('when even the room for votes and marks is used up they are refused, and wait for more', () => {
  const { disk, thread, sent } = start(1_000)
  handleWalMessages(thread, [append(1, [entries(1, 20, 1)], 20)])
  fillDisk(disk)
  for (let i = 0; i < 40; i++)
    handleWalMessages(thread, [append(2 + i, [entries(21 + i * 20, 20, 1, 48)], 20, 1, refusalsIn(sent))])
  const before = sent.length
  for (let term = 2; term <= 40; term++) handleWalMessages(thread, [append(100 + term, [], 20, term, refusalsIn(sent))])
  const votes = sent.slice(before)
  const stored = votes.filter(({ type }) => type === 'stored').length
  expect(stored).toBeGreaterThan(0)
  expect(votes.slice(stored).every(({ type }) => type === 'refused')).toBe(true)
  expect(thread.wal.hardState.term).toBe(1 + stored)

  // A mark without room is not reported.
  handleWalMessages(thread, [{ type: 'mark', mark: { index: 20, term: 1 } }])
  expect(sent.at(-1)).toMatchObject({ type: 'refused' })

  // The next vote is on its way already when the resume is: it is refused first, and must not be in its way.
  disk.capacityBytes = 2 ** 40
  const refusals = refusalsIn(sent)
  handleWalMessages(thread, [append(199, [], 20, 41, refusals), { type: 'resume' }])
  handleWalMessages(thread, [append(200, [], 20, 41, refusals + 1)])
  expect(sent.slice(-3)).toMatchObject([
    { type: 'refused', token: 199 },
    { type: 'resumed', takesEntries: true },
    { type: 'stored', token: 200 },
  ])
})

test('a mark brings the commit index that covers it, and compaction follows', () => {
  const { thread, sent } = start()
  for (let i = 0; i < 30; i++) handleWalMessages(thread, [append(i + 1, [entries(1 + i * 10, 10, 1, 80)], i * 10)])
  const files = thread.wal.files.length
  handleWalMessages(thread, [
    { type: 'mark', mark: { index: 300, term: 1 } },
    { type: 'compact', floor: 301 },
  ])
  expect(sent.slice(-2)).toMatchObject([{ type: 'marked' }, { type: 'compacted', deleted: files - 1, files: 1 }])
})

test('closing wipes the remains of a refused write, so that a clean shutdown is recognized', () => {
  const { disk, thread, sent } = start()
  handleWalMessages(thread, [append(1, [entries(1, 3, 1)])])
  const { offset, files } = thread.wal
  fillDisk(disk).copiesOnWrite = true
  disk.capacityBytes += 600
  handleWalMessages(thread, [append(2, [entries(4, 30, 1)])])
  const path = files.at(-1)?.path ?? ''
  expect(
    contentOf(disk, path)
      .subarray(offset)
      .some((byte) => byte !== 0),
  ).toBe(true)
  disk.capacityBytes += 10_000

  handleWalMessages(thread, [{ type: 'close' }])

  expect(sent.at(-1)).toEqual({ type: 'closed', isClean: true })
  expect(
    contentOf(disk, path)
      .subarray(offset)
      .every((byte) => byte === 0),
  ).toBe(true)
})

test('queued entries are stored before a later mark, load and end, and each is reported', () => {
  const { disk, thread, sent } = start()
  handleWalMessages(thread, [append(1, [entries(1, 5, 1)], 3), { type: 'mark', mark: { index: 5, term: 1 } }])
  expect(sent.map(({ type }) => type)).toEqual(['stored', 'marked'])
  expect(thread.wal.hardState.commit).toBe(5)

  handleWalMessages(thread, [append(2, [entries(6, 2, 1)], 5), { type: 'install', mark: { index: 40, term: 1 } }])
  expect(sent.at(-1)).toEqual({ type: 'installed', mark: { index: 40, term: 1 }, isDone: true })
  handleWalMessages(thread, [append(3, [entries(41, 1, 1)], 40), { type: 'resume' }])
  expect(sent.at(-1)).toEqual({ type: 'resumed', takesEntries: true })

  fillDisk(disk)
  const fill = Array.from({ length: 40 }, (_, i) => append(4 + i, [entries(42 + i * 10, 10, 1, 48)], 41))
  handleWalMessages(thread, fill)
  expect(sent.some(({ type }) => type === 'refused')).toBe(true)
  handleWalMessages(thread, [{ type: 'install', mark: { index: 1_000, term: 1 } }])
  expect(sent.at(-1)).toMatchObject({ type: 'installed', isDone: false })
  disk.capacityBytes = 2 ** 40
  handleWalMessages(thread, [{ type: 'install', mark: { index: 1_000, term: 1 } }, { type: 'close' }])
  expect(sent.slice(-2)).toMatchObject([{ isDone: true }, { type: 'closed' }])
})
