import type { Comparison, SnapshotDifferences } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { codecDifferences, daysThatDiffer, differingFirst, propertyChanges } from './compare-view.ts'
import * as copy from './copy.ts'

test('days that differ are counted, with the largest loss and gain', () => {
  expect(daysThatDiffer({ days: [0, 4, -2, 9, -7, 0] })).toEqual({
    count: 4,
    least: { day: 4, by: -7 },
    most: { day: 3, by: 9 },
  })
  // Of equal ones the first; a change by one is a change.
  expect(daysThatDiffer({ days: [1, -1, 1, -1] })).toEqual({
    count: 4,
    least: { day: 1, by: -1 },
    most: { day: 0, by: 1 },
  })
  expect(daysThatDiffer({ days: [0, 3] })).toEqual({ count: 1, least: undefined, most: { day: 1, by: 3 } })
  expect(daysThatDiffer({ days: [-3, 0] })).toEqual({ count: 1, least: { day: 0, by: -3 }, most: undefined })
  expect(daysThatDiffer({ days: [0, 0] })).toEqual({ count: 0, least: undefined, most: undefined })
})

test('segments that differ come first, also when only their properties or their presence differ', () => {
  const segment = (name: string, days: number[], properties = 0, side: 'both' | 'a' = 'both') =>
    ({
      name,
      in: side,
      properties: { a: 1, b: 1 + properties },
      packages: { a: 0, b: 0 },
      days,
    }) satisfies Comparison['segments'][number]

  const sorted = differingFirst([
    segment('equal', [0, 0]),
    segment('gone', [0, 0], 0, 'a'),
    segment('properties', [0, 0], 3),
    segment('moved', [-5, 5]),
    segment('same', [0, 0]),
  ])

  expect(sorted.map(({ name }) => name)).toEqual(['moved', 'properties', 'gone', 'equal', 'same'])
})

test('codec lists differ by entries of one list and by places, since order matters', () => {
  expect(codecDifferences(['breakfast', 'sea', 'refund'], ['breakfast', 'refund', 'pool'])).toEqual([
    { name: 'sea', a: 1, b: null },
    { name: 'refund', a: 2, b: 1 },
    { name: 'pool', a: null, b: 2 },
  ])
  expect(codecDifferences(['breakfast'], ['breakfast'])).toEqual([])
  expect(codecDifferences(null, ['breakfast'])).toBeUndefined()
})

describe('properties that differ', () => {
  const none = { count: 0, first: [] }
  const differences = (over: Partial<SnapshotDifferences>): SnapshotDifferences => ({
    ...{ a: 'a', b: 'b', onlyA: none, onlyB: none, changed: none },
    ...over,
  })
  const one = { id: 'hotel_1', segment: 'alpine' }

  test('are listed as removed, added and changed', () => {
    const found = propertyChanges(
      differences({
        changed: { count: 1, first: [{ ...one, id: 'hotel_3', what: ['rooms', 'packages'] }] },
        onlyB: { count: 1, first: [{ ...one, id: 'hotel_2' }] },
        onlyA: { count: 1, first: [one] },
      }),
    )

    expect(found.rows.map((row) => [row.id, copy.compare.propertyIn(row.in, row.what)])).toEqual([
      ['hotel_1', 'only in A'],
      ['hotel_2', 'only in B'],
      ['hotel_3', 'room types, packages'],
    ])
    expect([found.isEqual, found.cutTo]).toEqual([false, undefined])
  })

  test('can be more than are listed', () => {
    expect(propertyChanges(differences({ onlyB: { count: 2_000, first: [one] } })).cutTo).toBe(1)
  })

  test('do not exist in equal snapshots', () => {
    expect(propertyChanges(differences({}))).toEqual({ rows: [], isEqual: true, cutTo: undefined })
  })
})
