import { expect, test } from 'vitest'
import { createSimulatedDisk } from '../testing/disk.ts'
import { batchTexts, entries, IDENTITY, replayTexts } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createInlineLog } from './inline-log.ts'
import { createWal, openWal } from './open.ts'
import { PIECE_BYTES, prepareNext } from './wal.ts'
import { type FromWal, handleWalMessages, packWal, type ToWal, unpackWal, type WalThread } from './wal-thread.ts'

const OPTIONS = { fileBytes: 16_384, reserveBytes: 512 }

/** A replica and its log thread, which answers when it is told to. */
function start() {
  const disk = createSimulatedDisk()
  disk.makeDirectory('/wal')
  const { env } = createSimulation({ disk })
  const wal = createWal(env, '/wal', IDENTITY, { index: 0, term: 0 }, OPTIONS)
  const queue: ToWal[] = []
  const answers: FromWal[] = []
  const seen: (readonly [string, number])[] = []
  const clock = { nowMs: 0, syncMs: 0 }
  const monotonicMs = () => {
    clock.nowMs += clock.syncMs
    return clock.nowMs
  }
  const thread: WalThread = {
    wal,
    flushThreshold: 100,
    lends: true,
    send: (message) => answers.push(message),
    monotonicMs,
    isRefusing: false,
    refusals: 0,
  }
  const log = createInlineLog({
    wal: { ...unpackWal(structuredClone(packWal(wal))), disk },
    toThread: (message) => queue.push(structuredClone(message)),
    onStored: ({ token }) => seen.push(['replica', token]),
    onWaiting: () => undefined,
    monotonicMs,
  })
  const prepare = () => {
    while (prepareNext(wal, PIECE_BYTES));
  }
  const handle = () => {
    handleWalMessages(thread, queue.splice(0))
    prepare()
  }
  prepare()
  const deliver = () => {
    for (const message of answers.splice(0)) {
      log.onAnswer(message)
      seen.push([message.type === 'stored' ? 'thread' : message.type, 'token' in message ? message.token : 0])
    }
  }
  let nextIndex = 1
  let token = 0
  const batches: ReturnType<typeof entries>[] = []
  const send = (count: number, bytes?: number) => {
    const batch = entries(nextIndex, count, 1, bytes)
    batches.push(batch)
    nextIndex += count
    const hardState = { term: 1, vote: 1, commit: 0 }
    log.send({ type: 'append', token: ++token, hardState, entries: [batch], refusals: thread.refusals })
  }
  return {
    clock,
    disk,
    thread,
    seen,
    queue,
    log,
    /** Hands over so many entries and stores them. */
    write(count: number, bytes?: number) {
      send(count, bytes)
      log.settle()
    },
    send,
    handle,
    deliver,
    answer() {
      handle()
      deliver()
    },
    /** What a restart finds. */
    texts() {
      const { recovered } = openWal(env, '/wal', IDENTITY, { ...OPTIONS, isClean: true })
      return replayTexts(disk, recovered.scan)
    },
    expected: () => batchTexts(batches),
  }
}

test('the replica writes small groups itself once the thread has lent it the end of the log', () => {
  const { write, answer, seen, queue, texts, expected } = start()
  write(1)
  expect([seen, queue.length]).toEqual([[], 1])
  answer()
  write(1)
  write(3)
  expect(queue).toEqual([])
  expect(seen).toEqual([
    ['thread', 1],
    ['replica', 2],
    ['replica', 3],
  ])
  expect(texts()).toEqual(expected())
})

test('a group waits at most a sync for as many entries as the last one had and as came during its sync', () => {
  const world = start()
  const { clock, log } = world
  const waits = (count: number) => {
    world.send(count)
    return log.gatherMs() > 0
  }
  world.write(1)
  world.answer()
  clock.syncMs = 0.125
  world.write(2)
  expect(log.gatherMs()).toBe(0)
  expect([waits(1), log.gatherMs(), waits(1)]).toEqual([true, 0.125, false])
  log.settle()
  // The first look after it finds one that came meanwhile.
  expect([waits(1), waits(1), waits(1)]).toEqual([true, true, false])
  clock.syncMs = 1
  log.settle()
  expect([waits(1), log.gatherMs()]).toEqual([true, 0.2])
})

test('while the thread has anything to answer, all goes to it, in order, and it continues behind the replica', () => {
  const { write, answer, log, seen, texts, expected } = start()
  write(1)
  answer()
  write(2)
  write(9)
  write(1)
  log.send({ type: 'compact', floor: 0 })
  write(1)
  answer()
  write(1)
  expect(seen).toEqual([
    ['thread', 1],
    ['replica', 2],
    ['thread', 4],
    ['compacted', 0],
    ['thread', 5],
    ['replica', 6],
  ])
  expect(texts()).toEqual(expected())
})

test.each(['append', 'compact'])('an answer that crosses a later message (%s) lends nothing', (later) => {
  const { write, handle, deliver, answer, log, seen, texts, expected } = start()
  write(1)
  handle()
  if (later === 'append') write(1)
  else log.send({ type: 'compact', floor: 0 })
  deliver()
  write(1)
  expect(seen).toEqual([['thread', 1]])
  answer()
  write(1)
  expect(seen.at(-1)).toEqual(['replica', later === 'append' ? 4 : 3])
  expect(texts()).toEqual(expected())
})

test('large groups, slow disks and new files are left to the thread', () => {
  const { write, answer, clock, thread, queue, texts, expected } = start()
  const isInline = (count: number, bytes?: number) => {
    write(count, bytes)
    const isSent = queue.length > 0
    answer()
    return !isSent
  }
  write(1)
  answer()
  expect([isInline(8), isInline(9), isInline(1), isInline(1)]).toEqual([true, false, false, true])

  clock.syncMs = 3
  // Only its end shows that this one was slow.
  expect([isInline(1), isInline(1), isInline(1)]).toEqual([true, false, false])
  clock.syncMs = 0
  expect([isInline(1), isInline(1)]).toEqual([false, true])

  const before = thread.wal.files.length
  while (thread.wal.files.length === before) isInline(4, 200)
  // The first write to a file finds the next one to be prepared.
  expect([isInline(1), isInline(1)]).toEqual([false, true])
  expect(texts()).toEqual(expected())
})

test('a write without space is wiped by the thread, and refused by it alone', () => {
  const { write, answer, disk, seen, texts, thread } = start()
  write(1)
  answer()
  disk.copiesOnWrite = true
  disk.capacityBytes = 2 ** 40 - disk.space('/').freeBytes
  write(1)
  answer()
  expect(seen).toEqual([
    ['thread', 1],
    ['refused', 2],
  ])
  disk.capacityBytes = 2 ** 40
  handleWalMessages(thread, [{ type: 'resume' }])
  expect(texts()).toEqual(batchTexts([entries(1, 1, 1)]))
})
