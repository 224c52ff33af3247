import { expect, test } from 'vitest'
import { added, changeOf, draftOf, ENTRIES_MAX, faultOf, isSame, moved, removed, renamed } from './codec-list.ts'

const NAMES = ['breakfast', 'free_wifi', 'late']
const namesOf = (draft: ReturnType<typeof draftOf>) => draft.entries.map(({ name }) => name)

test('entries move within the list', () => {
  const draft = draftOf(NAMES)

  expect(namesOf(moved(draft, 0, 1))).toEqual(['free_wifi', 'breakfast', 'late'])
  expect(namesOf(moved(draft, 2, -2))).toEqual(['late', 'breakfast', 'free_wifi'])
  expect(namesOf(moved(draft, 0, -1))).toEqual(NAMES)
  expect(namesOf(moved(draft, 2, 9))).toEqual(NAMES)
})

test('each entry has its change; a different order is a different list', () => {
  const draft = renamed(added(moved(draftOf(NAMES), 0, 1)), 2, 'late_checkout')

  expect(draft.entries.map((entry, at) => changeOf(entry, at, NAMES))).toEqual([
    'from position 1',
    'from position 0',
    'was late',
    'new',
  ])
  expect(isSame(draft, NAMES)).toBe(false)
  expect(isSame(moved(moved(draftOf(NAMES), 0, 1), 0, -1), NAMES)).toBe(true)
})

test.each([
  ['', 'Enter a name'],
  [' late', 'blank'],
  ['a,b', 'Must not contain'],
  ['a\u0007b', 'control'],
  ['x'.repeat(65), '64 bytes'],
  ['BREAKFAST', 'Duplicate of breakfast'],
  ['pool', ''],
])('an entry called %j: %s', (name, error) => {
  const draft = renamed(added(draftOf(NAMES)), 3, name)

  expect(faultOf(draft, draft.entries[3] as (typeof draft.entries)[number])).toContain(error)
})

test('an entry removed and added again is a new entry', () => {
  const draft = renamed(added(removed(draftOf(NAMES), 0)), 3, 'breakfast')

  expect(draft.entries.at(-1)).toEqual({ key: 3, name: 'breakfast', was: null })
  expect(ENTRIES_MAX).toBe(24)
})

test('names have at most 64 bytes, and each fault has its text', () => {
  const fault = (name: string) => {
    const draft = renamed(added(draftOf(NAMES)), 3, name)
    return faultOf(draft, draft.entries[3] as (typeof draft.entries)[number])
  }
  expect([fault('x'.repeat(64)), fault('é'.repeat(32))]).toEqual(['', ''])
  expect(fault('é'.repeat(33))).toContain('64 bytes')
  for (const character of [',', '|', '"', '\\']) expect(fault(`a${character}b`)).toContain('Must not contain')
  // Its own name is not a duplicate.
  const draft = draftOf(NAMES)
  expect(draft.entries.map((entry) => faultOf(draft, entry))).toEqual(['', '', ''])
})
