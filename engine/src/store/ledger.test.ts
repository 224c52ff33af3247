/** Keys of the ledger, and its heap of deadlines against a sorted list. */
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  clearLedger,
  createLedger,
  keyOfId,
  keyOfNight,
  popDeadline,
  pushDeadline,
  replaceDeadlines,
} from './ledger.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
type Deadline = ReturnType<typeof createLedger>['deadlines'][number]

const sorted = (list: readonly Deadline[]) =>
  list.toSorted((a, b) => a.deadlineMs - b.deadlineMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))

function drain(ledger: ReturnType<typeof createLedger>): Deadline[] {
  const found: Deadline[] = []
  for (let first = ledger.deadlines[0]; first !== undefined; first = ledger.deadlines[0]) {
    found.push(first)
    popDeadline(ledger)
  }
  return found
}

test('deadlines come in the order of time, and of ids at the same time', () => {
  const random = createRandom(SEED)
  const ledger = createLedger()
  let expected: Deadline[] = []
  for (let step = 0; step < 600; step++) {
    if (random.below(5) < 3) {
      const deadline = { deadlineMs: random.below(40), id: `id${random.below(1000)}` } as Deadline
      pushDeadline(ledger, deadline)
      expected = sorted([...expected, deadline])
    } else {
      popDeadline(ledger)
      expected.shift()
    }
    expect(ledger.deadlines.length, `VACANCY_SEED=${SEED}, step ${step}`).toBe(expected.length)
    expect(ledger.deadlines[0], `VACANCY_SEED=${SEED}, step ${step}`).toEqual(expected[0])
  }
  expect(drain(ledger), `VACANCY_SEED=${SEED}`).toEqual(expected)
})

test('deadlines are replaced by exactly the given ones', () => {
  const ledger = createLedger()
  for (const deadlineMs of [9, 1, 5]) pushDeadline(ledger, { deadlineMs, id: 'old' } as Deadline)
  const given = [7, 3, 8, 3, 1].map((deadlineMs, n) => ({ deadlineMs, id: `n${n}` }) as Deadline)
  replaceDeadlines(ledger, given)
  expect(drain(ledger)).toEqual(sorted(given))
  popDeadline(ledger)
  expect(ledger.deadlines).toEqual([])
})

test('a key of an id has all of its 16 bytes, in order', () => {
  const bytes = Uint8Array.from({ length: 20 }, (_, n) => 250 - n * 7)
  expect([...keyOfId(bytes, 2)].map((letter) => letter.charCodeAt(0))).toEqual([...bytes.subarray(2, 18)])
})

test('keys of nights differ in property, room type and day', () => {
  expect(keyOfNight(88, 2, 20_000)).toBe('88/2/20000')
})

test('a new ledger is empty, and a cleared one is, too', () => {
  const ledger = createLedger()
  expect(ledger).toEqual({
    ...{ stays: new Map(), properties: new Map(), nights: new Map(), deadlines: [], heldCount: 0 },
    ...{ heldBySource: new Map(), bytes: 0, oversold: new Set() },
    counts: { expired: 0, overflowed: 0, refused: new Map() },
  })
  const filled = createLedger()
  const maps = [filled.stays, filled.properties, filled.nights, filled.heldBySource] as Map<unknown, unknown>[]
  for (const map of maps) map.set('a', 1)
  filled.oversold.add('a' as never)
  filled.heldCount = 3
  filled.bytes = 5
  pushDeadline(filled, { deadlineMs: 1, id: 'a' } as Deadline)
  clearLedger(filled)
  expect(filled).toEqual(ledger)
})
