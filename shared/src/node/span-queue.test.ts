import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createSpanQueue, SPAN_LIMITS } from './span-queue.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A queue with a collector that answers when the test says so. */
function open() {
  const sent: { batch: number[]; done: (fault: string) => void }[] = []
  const faults: string[] = []
  const queue = createSpanQueue<number>(
    (batch, done) => void sent.push({ batch, done }),
    (reason, spans) => void faults.push(`${spans}: ${reason}`),
  )
  const add = (count: number) => {
    for (let n = 0; n < count; n++) queue.add(n)
  }
  return { queue, sent, faults, add }
}

test('spans wait a moment for others and leave together', () => {
  const { queue, sent, add } = open()
  add(3)
  vi.advanceTimersByTime(SPAN_LIMITS.gatherMs - 1)
  expect(sent).toEqual([])
  vi.advanceTimersByTime(1)
  expect(sent.map(({ batch }) => batch)).toEqual([[0, 1, 2]])
  sent[0]?.done('')
  expect(queue.counts()).toEqual({ exported: 3, dropped: 0 })
})

test('one batch is exported at a time, and a full one at once', () => {
  const { sent, add } = open()
  add(SPAN_LIMITS.batch * 2 + 1)
  expect(sent.map(({ batch }) => batch.length)).toEqual([SPAN_LIMITS.batch])
  sent[0]?.done('')
  expect(sent).toHaveLength(2)
  sent[1]?.done('')
  expect(sent).toHaveLength(2)
  vi.advanceTimersByTime(SPAN_LIMITS.gatherMs)
  expect(sent.map(({ batch }) => batch.length)).toEqual([SPAN_LIMITS.batch, SPAN_LIMITS.batch, 1])
})

test('while the collector hangs, spans beyond the bound are dropped and counted', () => {
  const { queue, sent, faults, add } = open()
  add(SPAN_LIMITS.batch + SPAN_LIMITS.queued + 7)
  expect([sent.length, queue.counts().dropped]).toEqual([1, 7])
  vi.advanceTimersByTime(SPAN_LIMITS.exportMs * 2)
  expect(faults).toEqual([`${SPAN_LIMITS.batch}: no answer`])
  expect([sent.length, queue.counts()]).toEqual([2, { exported: 0, dropped: SPAN_LIMITS.batch + 7 }])
  // An answer after all changes nothing.
  sent[0]?.done('')
  expect(queue.counts().exported).toBe(0)
})

test('a batch that fails is dropped with its reason, and the next ones are exported', () => {
  const { queue, sent, faults, add } = open()
  add(2)
  vi.advanceTimersByTime(SPAN_LIMITS.gatherMs)
  sent[0]?.done('connection refused')
  add(1)
  vi.advanceTimersByTime(SPAN_LIMITS.gatherMs)
  sent[1]?.done('')
  expect(faults).toEqual(['2: connection refused'])
  expect(queue.counts()).toEqual({ exported: 1, dropped: 2 })
})

test('an exporter that throws counts as one that fails', () => {
  const queue = createSpanQueue<number>(
    () => {
      throw new Error('no memory')
    },
    () => {},
  )
  queue.add(1)
  vi.advanceTimersByTime(SPAN_LIMITS.gatherMs)
  expect(queue.counts()).toEqual({ exported: 0, dropped: 1 })
})

test('at the end what is left is exported, in several batches if need be', async () => {
  const { queue, sent, add } = open()
  add(SPAN_LIMITS.batch + 1)
  const closed = queue.close()
  sent[0]?.done('')
  sent[1]?.done('')
  await closed
  expect(queue.counts()).toEqual({ exported: SPAN_LIMITS.batch + 1, dropped: 0 })
  queue.add(1)
  expect(queue.counts().dropped).toBe(1)
})

test('an end without spans takes no time, and one with a collector that hangs takes a bounded one', async () => {
  await open().queue.close()
  const { queue, add } = open()
  add(SPAN_LIMITS.batch + 3)
  const closed = queue.close()
  vi.advanceTimersByTime(SPAN_LIMITS.closeMs)
  await closed
  expect(queue.counts()).toEqual({ exported: 0, dropped: 3 })
})
