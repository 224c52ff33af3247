import { expect, test } from 'vitest'
import { judge } from './judge.ts'
import { CONSERVED_ROOMS, type Recorded } from './records.ts'

/** Package 3 has a conserved sum, package 1 does not. */
const KEPT = 3
const FREE = 1

/** Sequential operations: each is called at `at` and returns before the next one, a second later. */
function at(place: number, what: Partial<Recorded>): Recorded {
  const [calledAt, calledMs] = [place * 10, place * 1_000]
  const times = { calledAt, returnedAt: calledAt + 5, calledMs, returnedMs: calledMs + 500 }
  const isWrite = what.kind !== undefined && what.kind !== 'read'
  return {
    ...{ id: place, process: 0, client: 0, key: FREE, kind: 'read', amount: 0, outcome: 'done', value: 0, code: '' },
    ...times,
    mode: isWrite ? 'library' : 'linearizable',
    bound: 0,
    index: isWrite ? place + 1 : 0,
    ...what,
  }
}

const unknown = { outcome: 'unknown', returnedAt: Infinity, returnedMs: Infinity, index: 0 } as const

function judged(...operations: Recorded[]) {
  return judge({ operations, repeats: 0, doubled: [], restores: [] }, 0, 20_000)
}

const BASE = [at(0, { kind: 'set', amount: 10, value: 10 }), at(1, { kind: 'decrease', amount: 3, value: 7 })]

test('a history that one order explains is valid, and its gaps are reported', () => {
  const report = judged(...BASE, at(5, { value: 7 }))

  expect(report.violations).toEqual([])
  expect(report).toMatchObject({ operations: 3, acknowledged: 2, reads: 1, lost: 0, doubled: 0 })
  expect(report.longestWriteGapMs).toBe(18_500)
})

test('an acknowledged write that is missing in the last read is lost', () => {
  const report = judged(...BASE, at(2, { value: 10 }))

  expect(report).toMatchObject({ lost: 1, doubled: 0 })
  expect(report.violations[0]).toContain('lost: client 0 library: decrease 3')
})

test('a write that took effect twice is a duplicate', () => {
  expect(judged(...BASE, at(2, { value: 4 }))).toMatchObject({ lost: 0, doubled: 1 })
})

test('a write of unknown outcome explains both cases', () => {
  const open = at(2, { kind: 'decrease', amount: 7, ...unknown })

  expect(judged(...BASE, open, at(3, { value: 7 })).violations).toEqual([])
  expect(judged(...BASE, open, at(3, { value: 0 })).violations).toEqual([])
})

test('a wrong sum is found without the checker', () => {
  const rows = [
    at(0, { key: KEPT, kind: 'set', amount: CONSERVED_ROOMS, value: CONSERVED_ROOMS }),
    at(1, { key: KEPT, kind: 'decrease', amount: 2, value: 98 }),
    at(2, { key: KEPT, value: 99 }),
  ]

  expect(judged(...rows).violations.some((text) => text.includes('99 rooms at the end, not 98 to 98'))).toBe(true)
})

test.each([
  ['assigned twice', [at(0, { kind: 'set', index: 5 }), at(1, { kind: 'set', index: 5 })]],
  ['less than that of an earlier write', [at(0, { kind: 'set', index: 6 }), at(1, { kind: 'set', index: 5 })]],
])('an index that is %s is a violation', (violation, rows) => {
  expect(judged(...rows).violations.join()).toContain(violation)
})

test.each([
  ['stale', 1_000, 10, false],
  ['stale', 4_000, 10, true],
  ['stale', 1_000, 7, true],
  ['index', 2, 10, false],
  ['index', 1, 10, true],
  ['default', 10_000, 9, false],
] as const)('a read %s %i that shows %i: allowed %s', (mode, bound, value, isFine) => {
  const report = judged(...BASE, at(4, { mode, bound, value }))

  expect(report.violations.length === 0).toBe(isFine)
  expect(report.staleReadsJudged).toBe(1)
})

test('an impossible value, and an unexpected error', () => {
  expect(judged(at(0, { kind: 'set', amount: 256, value: 256 })).negative).toBe(1)
  expect(judged(at(0, { ...unknown, code: 'unexpected TypeError: x' })).violations).toHaveLength(1)
})

// The last write was acknowledged after the backup, and is gone.
const RESTORED = [...BASE, at(4, { kind: 'decrease', amount: 2, value: 5 })]
const RESTORE = { from: 20, to: 30, at: 60, atMs: 6_000, servesMs: 8_000 }

function afterRestore(...operations: Recorded[]) {
  return judge({ operations: [...RESTORED, ...operations], repeats: 0, doubled: [], restores: [RESTORE] }, 0, 20_000)
}

test('after a restore the data are those of the backup, and writes go on from there', () => {
  const next = at(9, { kind: 'increase', amount: 1, value: 8 })
  expect(afterRestore(at(8, { value: 7 }), next, at(10, { value: 8 })).violations).toEqual([])

  expect(afterRestore(at(8, { value: 5 })).violations.join(), 'what came after the backup is still there').toContain(
    'cannot be explained',
  )
  expect(afterRestore(at(8, { value: 10 })).violations.join(), 'what the backup has is lost').toContain('lost')
})

test('a write that was under way at a restore may be in the restored data', () => {
  const open = at(5, { kind: 'decrease', amount: 4, value: 3, returnedAt: 85, returnedMs: 8_500, index: 99 })
  expect(afterRestore(open, at(9, { value: 3 })).violations).toEqual([])
  expect(afterRestore(open, at(9, { value: 7 })).violations).toEqual([])
})
