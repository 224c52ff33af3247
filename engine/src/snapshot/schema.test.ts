import { expect, test } from 'vitest'
import { firstPlanes, packTables, type TableShape, unpackTables, windowOf } from './schema.ts'

const table = (segment: number, roomType: number, rows: number[], days: Uint32Array): TableShape => ({
  segment,
  roomType,
  rows: Uint32Array.from(rows),
  days,
})
const days = (...numbers: number[]) => Uint32Array.from(numbers)

test('planes are numbered table by table, and the last number is that of all', () => {
  const tables = [table(0, 0, [1], days(5, 6)), table(0, 1, [1], days()), table(1, 0, [2], days(5, 6, 7))]

  expect([...firstPlanes(tables)]).toEqual([0, 2, 2, 5])
  expect([...firstPlanes([])]).toEqual([0])
})

test('the window spans the first and last day of all tables with rows', () => {
  expect(windowOf([table(0, 0, [1], days(7, 9)), table(0, 1, [1], days(8, 12)), table(0, 2, [1], days(5))])).toEqual({
    from: 5,
    to: 12,
  })
  expect(windowOf([table(0, 0, [1], days(0))])).toEqual({ from: 0, to: 0 })
})

test.each<[string, TableShape[]]>([
  ['no tables', []],
  ['no days', [table(0, 0, [1], days())]],
  ['no rows', [table(0, 0, [], days(5))]],
])('%s have no window', (_, tables) => {
  expect(windowOf(tables)).toBeUndefined()
  expect(windowOf([...tables, table(1, 0, [1], days(8, 9))])).toEqual({ from: 8, to: 9 })
})

test('packed tables unpack unchanged, and tables with the same list of days share it', () => {
  const shared = days(10, 11)
  const other = days(10, 12)
  const tables = [
    table(0, 3, [4, 2], shared),
    table(0, 5, [], shared),
    table(2, 1, [7], other),
    table(3, 1, [8, 9, 1], shared),
  ]

  const packed = packTables(tables)

  expect(unpackTables(packed)).toEqual(tables)
  expect(packed.dayLists.map((list) => [...list])).toEqual([
    [10, 11],
    [10, 12],
    [10, 11],
  ])
  expect(unpackTables(packTables([]))).toEqual([])
})

test('packed numbers are in shared memory, so that a thread gets them without a copy', () => {
  const { segment, roomType, rowStart, rows, dayList } = packTables([table(0, 3, [4, 2], days(1))])

  for (const column of [segment, roomType, rowStart, rows, dayList]) {
    expect(column.buffer).toBeInstanceOf(SharedArrayBuffer)
  }
  expect([...rowStart]).toEqual([0, 2])
})
