import { expect, test } from 'vitest'
import { limitsTable } from './pages.ts'

test('a table of limits has a row for each, with its digits in groups', () => {
  expect(
    limitsTable(
      { bytesMax: 1_048_576, radius: 6371008.8, path: '/live' },
      { bytesMax: 'A.', radius: 'B.', path: 'C.' },
    ),
  ).toBe(
    [
      '| Limit | Value | What it bounds |',
      '|---|---|---|',
      '| `bytesMax` | 1,048,576 | A. |',
      '| `radius` | 6,371,008.8 | B. |',
      '| `path` | /live | C. |',
    ].join('\n'),
  )
})
