import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { commonClockOffsetMs } from '../threads/clock.ts'
import {
  admitRead,
  attachCells,
  createCells,
  publishCells,
  type ReadMode,
  ROLE,
  readCells,
  STALENESS_MS_DEFAULT,
  stalenessMs,
} from './shared-status.ts'

const PLAIN: ReadMode = { maxStalenessMs: undefined, minIndex: 0, isLinearizable: false }

function followerAt(applied: number, freshMs: number) {
  const cells = attachCells(createCells(), 0)
  publishCells(cells, { role: ROLE.follower, isLeaderKnown: true, applied, freshMs })
  return cells
}

test('a node without a published status serves nothing', () => {
  const cells = attachCells(createCells(), 0)

  expect(admitRead(cells, PLAIN, 0, 0, 0)).toBe('unavailable')
  expect(stalenessMs(cells, 0)).toBe(Number.POSITIVE_INFINITY)
})

test('published status is read on the clock of the reader', () => {
  const buffer = createCells()
  const writer = attachCells(buffer, 1_000)
  const reader = attachCells(buffer, 400)

  publishCells(writer, { role: ROLE.learner, isLeaderKnown: true, applied: 2 ** 40, freshMs: 50 })

  expect(readCells(reader)).toEqual({ role: ROLE.learner, isLeaderKnown: true, applied: 2 ** 40, freshMs: 650 })
  expect(stalenessMs(reader, 660)).toBe(10)
})

test.each<[string, Partial<ReadMode>, number, number, string]>([
  ['within the default bound', {}, STALENESS_MS_DEFAULT, 0, 'serve'],
  ['beyond the default bound', {}, STALENESS_MS_DEFAULT + 1, 0, 'stale'],
  ['within a bound of its own', { maxStalenessMs: 60_000 }, 60_000, 0, 'serve'],
  ['beyond a bound of its own', { maxStalenessMs: 5 }, 6, 0, 'stale'],
  ['at an index that is applied', { minIndex: 7 }, 0, 0, 'serve'],
  ['at an index that is not', { minIndex: 8 }, 0, 0, 'confirm'],
  ['at an index that is applied, but stale', { minIndex: 7 }, STALENESS_MS_DEFAULT + 1, 0, 'stale'],
  ['linearizable', { isLinearizable: true }, 0, 0, 'confirm'],
  ['linearizable on a stale node, which may have become fresh', { isLinearizable: true }, 60_000, 0, 'confirm'],
  ['on a connection that was served at a later index', {}, 0, 8, 'confirm'],
])('a read %s', (_, mode, ageMs, servedIndex, wanted) => {
  const cells = followerAt(7, 0)

  expect(admitRead(cells, { ...PLAIN, ...mode }, ageMs, 7, servedIndex)).toBe(wanted)
})

test('no read is served while the node is unavailable, linearizable or not', () => {
  const cells = attachCells(createCells(), 0)
  publishCells(cells, { role: ROLE.unavailable, isLeaderKnown: true, applied: 7, freshMs: 0 })

  expect(admitRead(cells, PLAIN, 0, 7, 0)).toBe('unavailable')
  expect(admitRead(cells, { ...PLAIN, isLinearizable: true }, 0, 7, 0)).toBe('unavailable')
})

/** Publishes matching facts as fast as it can, until stopped. */
const WRITER = `
  const { workerData, parentPort } = require('node:worker_threads')
  import(workerData.cells).then(({ attachCells, publishCells, ROLE }) => {
    const cells = attachCells(workerData.buffer, 0)
    const stop = new Int32Array(workerData.stop)
    parentPort.postMessage('on')
    for (let n = 1; Atomics.load(stop, 0) === 0; n++) {
      const applied = (n % 1_000_000) * 1_048_577
      publishCells(cells, { role: ROLE.follower, isLeaderKnown: true, applied, freshMs: applied / 2 })
    }
    parentPort.postMessage('off')
  })
`

test('a reader on another thread never sees half of a number', async () => {
  const buffer = createCells()
  const stop = new SharedArrayBuffer(4)
  const url = new URL('./shared-status.ts', import.meta.url).href
  const worker = new Worker(WRITER, { eval: true, workerData: { buffer, stop, cells: url } })
  await new Promise((resolve) => worker.once('message', resolve))
  const cells = attachCells(buffer, 0)

  const seen = new Set<number>()
  while (seen.size < 1_000) seen.add(readCells(cells).applied)
  Atomics.store(new Int32Array(stop), 0, 1)
  await new Promise((resolve) => worker.once('exit', resolve))

  expect([...seen].filter((applied) => applied % 1_048_577 !== 0)).toEqual([])
})

test('the common clock reads the same on every thread', async () => {
  const code = `
    const { workerData, parentPort } = require('node:worker_threads')
    import(workerData).then(({ commonClockOffsetMs }) =>
      parentPort.postMessage(performance.now() + commonClockOffsetMs()))
  `
  const url = new URL('../threads/clock.ts', import.meta.url).href
  const before = performance.now() + commonClockOffsetMs()
  const worker = new Worker(code, { eval: true, workerData: url })
  const there = await new Promise<number>((resolve) => worker.once('message', resolve))
  const after = performance.now() + commonClockOffsetMs()
  await worker.terminate()

  expect(there).toBeGreaterThan(before - 1)
  expect(there).toBeLessThan(after + 1)
})
