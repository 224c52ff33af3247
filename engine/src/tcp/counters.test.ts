import { COMMANDS } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import {
  attachCounters,
  COUNTER,
  type Counters,
  commandCounts,
  count,
  countCommand,
  countDuration,
  countError,
  countRows,
  createCounters,
  DURATION_BUCKETS,
  ERROR_CODES,
  ROW_BUCKETS,
  takeStallMax,
  total,
} from './counters.ts'

const CODE = COMMANDS.SEARCHAVAIL.code
const codes = Object.values(COMMANDS).map(({ code }) => code)

test('each bucket includes its upper bound, and the last one has none', () => {
  for (const [bucket, bound] of DURATION_BUCKETS.entries()) {
    const counters = createCounters()
    countDuration(counters, CODE, 0, bound)
    countDuration(counters, CODE, 1, bound * 1.001)
    const { queued, running } = commandCounts([counters], CODE)
    expect(queued.counts).toEqual(oneAt(bucket, DURATION_BUCKETS.length + 1))
    expect(queued.sum).toBe(bound)
    expect(running.counts).toEqual(oneAt(bucket + 1, DURATION_BUCKETS.length + 1))
    expect(running.sum).toBe(bound * 1.001)
  }
  for (const [bucket, bound] of ROW_BUCKETS.entries()) {
    const counters = createCounters()
    countRows(counters, CODE, bound)
    expect(commandCounts([counters], CODE).rows).toEqual({ counts: oneAt(bucket, ROW_BUCKETS.length + 1), sum: bound })
    const above = createCounters()
    countRows(above, CODE, bound + 1)
    const next = bucket === 0 ? 1 : bucket + 1
    expect(commandCounts([above], CODE).rows.counts).toEqual(oneAt(next, ROW_BUCKETS.length + 1))
  }
})

test('no two totals share a cell, and none is a cell of a command', () => {
  const cells = Object.values(COUNTER)
  expect(new Set(cells).size).toBe(cells.length)
  const counters = createCounters()
  for (const cell of cells) count(counters, cell, 1)
  for (const code of codes) expect(sumOf(counters, code)).toBe(0)
})

test('counts of one command do not reach those of another, or the totals', () => {
  for (const code of codes) {
    const counters = createCounters()
    countCommand(counters, code)
    countDuration(counters, code, 0, 100)
    countDuration(counters, code, 1, 200)
    countRows(counters, code, 100_000)
    countError(counters, code, 'an unknown code: text')

    const counts = commandCounts([counters], code)
    expect(counts.total).toBe(1)
    expect(counts.queued).toEqual({ counts: oneAt(15, 16), sum: 100 })
    expect(counts.running).toEqual({ counts: oneAt(15, 16), sum: 200 })
    expect(counts.rows).toEqual({ counts: oneAt(10, 11), sum: 100_000 })
    expect(counts.errors).toEqual(oneAt(ERROR_CODES.length - 1, ERROR_CODES.length))
    for (const other of codes.filter((candidate) => candidate !== code)) {
      expect(sumOf(counters, other)).toBe(0)
    }
    expect(totals(counters)).toEqual({ commands: 1, clientErrors: 1 })
  }
})

test.each(ERROR_CODES.map((code, at) => [code, at] as const))('an error %s has its own counter', (code, at) => {
  const counters = createCounters()
  countError(counters, CODE, `${code}: text with: a colon`)
  countError(counters, CODE, code)

  const ofNode = ['500', '503', '429', '408'].includes(code)
  expect(commandCounts([counters], CODE).errors).toEqual(oneAt(at, ERROR_CODES.length).map((one) => 2 * one))
  expect(totals(counters)).toEqual({
    [ofNode ? 'errors' : 'clientErrors']: 2,
    ...(code === '429' ? { rejectedRequests: 2 } : {}),
  })
})

test('an error text that begins with a colon has no known code', () => {
  const counters = createCounters()
  countError(counters, CODE, ':500')
  expect(commandCounts([counters], CODE).errors.at(-1)).toBe(1)
})

test('threads are added up, and another thread sees the counts', () => {
  const [first, second] = [createCounters(), createCounters()]
  count(first, COUNTER.bytesSent, 5)
  count(attachCounters(second.cells.buffer as SharedArrayBuffer), COUNTER.bytesSent, 7)
  count(second, COUNTER.bytesSent)
  countCommand(first, CODE)
  countCommand(second, CODE)

  expect(total([first, second], COUNTER.bytesSent)).toBe(13)
  expect(total([first, second], COUNTER.commands)).toBe(2)
  expect(commandCounts([first, second], CODE).total).toBe(2)
})

test('the longest stall is that of any thread, in seconds, and starts again once it was read', () => {
  const threads = [createCounters(), createCounters(), createCounters()]
  for (const [at, micros] of [20, 2_500_000, 300].entries())
    count(threads[at] as Counters, COUNTER.stallMicrosMax, micros)

  expect(takeStallMax(threads)).toBe(2.5)
  expect(takeStallMax(threads)).toBe(0)
})

function oneAt(at: number, length: number): number[] {
  return Array.from({ length }, (_, i) => (i === at ? 1 : 0))
}

/** Everything counted for a command. */
function sumOf(counters: Counters, command: number): number {
  const { total: commands, queued, running, rows, errors } = commandCounts([counters], command)
  return [commands, queued.sum, running.sum, rows.sum, ...queued.counts, ...running.counts, ...rows.counts, ...errors]
    .map(Math.abs)
    .reduce((sum, value) => sum + value, 0)
}

/** The counters that are not of one command and are not 0. */
function totals(counters: Counters): { [name: string]: number } {
  const all = Object.entries(COUNTER).map(([name, counter]) => [name, total([counters], counter)] as const)
  return Object.fromEntries(all.filter(([, value]) => value !== 0))
}
