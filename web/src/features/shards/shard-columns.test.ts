import { expect, test } from 'vitest'
import { SHARD_COLUMNS, SHARD_TABLE } from './shard-columns.tsx'
import { movedColumn } from './table-columns.ts'

const { idsOf: columnIds, defaults: DEFAULT_COLUMNS, parse: parseColumns, shown: shownColumns } = SHARD_TABLE

const idsOf = (columns: ReturnType<typeof shownColumns>) => columns.map(({ id }) => id)

test('without a choice the default columns are shown, less important ones only on wide screens', () => {
  const columns = shownColumns(null, {})

  expect(idsOf(columns)).toEqual(DEFAULT_COLUMNS)
  expect(idsOf(columns)).toEqual([
    ...['shard', 'state', 'zone', 'leader', 'members', 'spare', 'lag', 'queries', 'writes', 'p99'],
    ...['packages', 'memory', 'window', 'snapshot'],
  ])
  expect(columns.some(({ rank }) => rank === 4)).toBe(true)
})

test('chosen columns are shown once, in order, after the one that names the row, on every screen', () => {
  const columns = shownColumns(['lag', 'zone', 'lag', 'no-such-column', 'shard', 'term'], {})

  expect(idsOf(columns)).toEqual(['shard', 'lag', 'zone', 'term'])
  expect(columns.every(({ rank }) => rank === undefined)).toBe(true)
})

test('with widths set, content is truncated', () => {
  expect(shownColumns(null, { zone: 60 }).every(({ className }) => className?.includes('text-ellipsis'))).toBe(true)
})

test.each([
  ['', null],
  ['no-such-column', null],
  ['lag,zone', ['shard', 'lag', 'zone']],
  ['zone,shard,zone,nonsense', ['shard', 'zone']],
  ['shard', DEFAULT_COLUMNS],
])('the columns of the URL %j', (text, expected) => expect(parseColumns(text)).toEqual(expected))

test('a column moves among the visible ones, never before the one that names the row', () => {
  const ids = ['shard', 'state', 'lag', 'zone']

  expect(movedColumn(ids, 'lag', -1)).toEqual(['shard', 'lag', 'state', 'zone'])
  expect(movedColumn(ids, 'lag', 1)).toEqual(['shard', 'state', 'zone', 'lag'])
  expect(movedColumn(ids, 'state', -1)).toBe(ids)
  expect(movedColumn(ids, 'zone', 1)).toBe(ids)
  expect(movedColumn(ids, 'shard', 1)).toBe(ids)
  expect(movedColumn(ids, 'term', 1)).toBe(ids)
})

test('only unknown columns are the same as no choice', () => {
  expect(columnIds(['renamed-since'])).toEqual(DEFAULT_COLUMNS)
  expect(new Set(SHARD_COLUMNS.map(({ id }) => id)).size).toBe(SHARD_COLUMNS.length)
})
