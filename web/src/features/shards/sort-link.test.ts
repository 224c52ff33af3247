import { expect, test } from 'vitest'
import { formatSort, parseSort } from './sort-link.ts'

test('a sort order round-trips through its link', () => {
  for (const sort of [
    { column: 'lag', down: true },
    { column: 'zone', down: false },
  ]) {
    expect(parseSort(formatSort(sort), ['lag', 'zone'])).toEqual(sort)
  }
})

test.each(['', 'nothing', 'lag:up', 'lag:down:down'])('%j is no order', (text) => {
  expect(parseSort(text, ['lag'])).toBeUndefined()
})
