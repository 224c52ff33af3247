import { expect, test } from 'vitest'
import { type Evidence, type Journal, judge, nightsOf, type StayRecord } from './judge.ts'

const line = { propertyId: 'p', roomType: 'double', arrival: '2026-12-24', nights: 2, rooms: 1 }
const NIGHTS = nightsOf(line)

function stay(id: string, rest: Partial<Journal> = {}): Journal {
  const fate = { deadlineMs: 0, isBooked: true, isReleased: false, isVoid: false }
  return { id, lines: [line], takes: [{ index: 1, left: [[0, 0]] }], ...fate, ...rest }
}

function evidence(journals: Journal[], records: Record<string, StayRecord>, left: readonly number[]): Evidence {
  return {
    journals,
    records: new Map(Object.entries(records)),
    nights: new Map(NIGHTS.map((night, n) => [night, left[n] as number])),
    rooms: 1,
  }
}

const record = (state: StayRecord['state'], index: number, timeMs = 0): StayRecord => ({ state, index, timeMs })

test('stays that follow each other on the last room are fine', () => {
  const first = stay('a', { isReleased: true })
  const second = stay('b', { takes: [{ index: 2, left: [[0, 0]] }] })

  const verdict = judge(evidence([first, second], { a: record('released', 2), b: record('booked', 2) }, [0, 0]))

  expect(verdict).toMatchObject({ booked: 1, released: 1, compared: 2, unplaced: 0, violations: [] })
})

test('a hold that expired and was taken again counts both times', () => {
  const takes = [
    { index: 1, left: [[0, 0]], returnedAt: 5 },
    { index: 6, left: [[0, 0]] },
  ]
  const verdict = judge(evidence([stay('a', { takes })], { a: record('booked', 6) }, [0, 0]))

  expect(verdict).toMatchObject({ booked: 1, compared: 2, violations: [] })
})

test('nights of a take without an index are not compared, but their end is', () => {
  const unknown = stay('a', { takes: [{ index: undefined, left: undefined }] })
  const other = stay('b', { takes: [{ index: 7, left: [[9, 9]] }] })
  const verdict = judge(evidence([unknown, other], { a: record('expired', 3), b: record('booked', 7) }, [1, 0]))

  expect(verdict).toMatchObject({
    unplaced: 1,
    violations: expect.arrayContaining([
      'a was acknowledged as booked and is expired',
      'p/double/2026-12-24 has 1 rooms left at the end, not 0',
    ]),
  })
  expect(verdict.violations).toHaveLength(2)
})

test.each<[string, Journal[], Record<string, StayRecord>, number[], string]>([
  ['a lost stay', [stay('a')], {}, [1, 1], 'a was acknowledged and has no record'],
  [
    'a stay on hold at the end',
    [stay('a', { isBooked: false })],
    { a: record('held', 1) },
    [1, 1],
    'a is still on hold',
  ],
  [
    'a confirmation that expired',
    [stay('a')],
    { a: record('expired', 9) },
    [1, 1],
    'a was acknowledged as booked and is expired',
  ],
  [
    'a release without a request',
    [stay('a', { isBooked: false })],
    { a: record('released', 9) },
    [1, 1],
    'a is released without a request',
  ],
  [
    'an early expiry',
    [stay('a', { isBooked: false, deadlineMs: 1_500 })],
    { a: record('expired', 9, 1_400) },
    [1, 1],
    'a expired 100 ms early',
  ],
  [
    'two stays in one room',
    [stay('a'), stay('b', { takes: [{ index: 2, left: undefined }] })],
    { a: record('booked', 1), b: record('booked', 2) },
    [0, 0],
    'p/double/2026-12-24 is oversold by 1 at 2',
  ],
  [
    'a stay with one of its nights',
    [stay('a', { takes: [{ index: 1, left: [[0, 1]] }] })],
    { a: record('booked', 1) },
    [0, 1],
    'a at 1: p/double/2026-12-25 has 1 left, not 0',
  ],
  [
    'rooms that did not return',
    [stay('a', { isReleased: true })],
    { a: record('released', 4) },
    [1, 0],
    'p/double/2026-12-25 has 0 rooms left at the end, not 1',
  ],
  [
    'a void stay that was booked',
    [stay('a', { takes: [], isBooked: false, isVoid: true })],
    { a: record('booked', 4) },
    [0, 0],
    'a is void and booked',
  ],
])('%s is found', (_, journals, records, left, violation) => {
  expect(judge(evidence(journals, records, left)).violations).toContain(violation)
})
