import { expect, test } from 'vitest'
import { columnIds, movedColumn, parseColumns, SHARD_COLUMNS, shownColumns, USUAL_COLUMNS } from './shard-columns.tsx'

const idsOf = (columns: ReturnType<typeof shownColumns>) => columns.map(({ id }) => id)

test('while nobody chose, the usual columns stand, and the less important ones leave narrow screens', () => {
  const columns = shownColumns(null, {})

  expect(idsOf(columns)).toEqual(USUAL_COLUMNS)
  expect(idsOf(columns)).toEqual([
    ...['shard', 'state', 'zone', 'leader', 'members', 'spare', 'lag', 'queries', 'writes', 'p99'],
    ...['packages', 'memory', 'window', 'snapshot'],
  ])
  expect(columns.some(({ rank }) => rank === 4)).toBe(true)
})

test('chosen columns stand in their order, once, behind the one that names the row, on every screen', () => {
  const columns = shownColumns(['lag', 'zone', 'lag', 'no-such-column', 'shard', 'term'], {})

  expect(idsOf(columns)).toEqual(['shard', 'lag', 'zone', 'term'])
  expect(columns.every(({ rank }) => rank === undefined)).toBe(true)
})

test('where somebody set widths, what does not fit is cut', () => {
  expect(shownColumns(null, { zone: 60 }).every(({ className }) => className?.includes('text-ellipsis'))).toBe(true)
})

test.each([
  ['', null],
  ['no-such-column', null],
  ['lag,zone', ['shard', 'lag', 'zone']],
  ['zone,shard,zone,nonsense', ['shard', 'zone']],
  ['shard', USUAL_COLUMNS],
])('the columns of the address %j', (text, expected) => expect(parseColumns(text)).toEqual(expected))

test('a column moves among those that are shown, never before the one that names the row', () => {
  const ids = ['shard', 'state', 'lag', 'zone']

  expect(movedColumn(ids, 'lag', -1)).toEqual(['shard', 'lag', 'state', 'zone'])
  expect(movedColumn(ids, 'lag', 1)).toEqual(['shard', 'state', 'zone', 'lag'])
  expect(movedColumn(ids, 'state', -1)).toBe(ids)
  expect(movedColumn(ids, 'zone', 1)).toBe(ids)
  expect(movedColumn(ids, 'shard', 1)).toBe(ids)
  expect(movedColumn(ids, 'term', 1)).toBe(ids)
})

test('nothing that is known is the same as nothing chosen', () => {
  expect(columnIds(['renamed-since'])).toEqual(USUAL_COLUMNS)
  expect(new Set(SHARD_COLUMNS.map(({ id }) => id)).size).toBe(SHARD_COLUMNS.length)
})
