import { expect, test } from 'vitest'
import { rowsOf } from './report.ts'

test('every target that applies to one node has a row', () => {
  const ids = rowsOf(undefined).map(({ id }) => id)

  expect(ids.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15])
})

test('rows are run in their own order, whatever order is requested', () => {
  expect(rowsOf(['15', '4', '1']).map(({ id }) => id)).toEqual([1, 4, 15])
})

test('a row that does not exist is refused with those that do', () => {
  expect(() => rowsOf(['9'])).toThrow('--only: there is no row 9; there are 1, 2, 3, 4, 5, 6, 7, 8, 10')
})
