import type { SavedView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { viewHref, withView } from './views.ts'

const behind: SavedView = {
  name: 'behind',
  filter: 'state:behind lag:>1000',
  sort: 'lag:down',
  columns: ['shard', 'lag'],
}

test('a view is a link', () => {
  expect(viewHref(behind)).toBe('/shards?filter=state%3Abehind+lag%3A%3E1000&sort=lag%3Adown&columns=shard%2Clag')
  expect(viewHref({ filter: '', sort: '', columns: null })).toBe('/shards')
})

test('a view replaces one of the same name, a new one comes last', () => {
  const others = [behind, { ...behind, name: 'zone eu', filter: 'zone:eu' }]

  expect(withView(others, { ...behind, filter: '' }).map(({ name, filter }) => [name, filter])).toEqual([
    ['behind', ''],
    ['zone eu', 'zone:eu'],
  ])
  expect(withView(others, { ...behind, name: 'new' }).map(({ name }) => name)).toEqual(['behind', 'zone eu', 'new'])
})
