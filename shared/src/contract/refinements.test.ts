/** Rules of bodies and queries that no OpenAPI document can state. */

import { expect, test } from 'vitest'
import { ACCESS_ROUTES } from './access.ts'
import { PAST_ROUTES } from './past.ts'

test.each([
  ['producer', ['mail'], true],
  ['consumer', ['mail*'], true],
  ['producer', null, true],
  ['admin', null, true],
  ['admin', ['mail'], false],
  ['client', ['mail'], false],
])('a token of the role %s with topics %j is valid: %s', (role, topics, expected) => {
  const { success, error } = ACCESS_ROUTES['POST /api/v1/tokens'].body.safeParse({ name: 'a', role, topics })

  expect(success).toBe(expected)
  if (!success) expect(error.issues[0]?.path).toEqual(['topics'])
})

const name = (of: string) => ({ name: of, filter: '', sort: '', columns: null })
const widths = (columns: number) => Object.fromEntries(Array.from({ length: columns }, (_, n) => [`c${n}`, 100]))

test.each([
  ['32 widths', { widths: widths(32) }, true],
  ['33 widths', { widths: widths(33) }, false],
  ['two views', { views: [name('a'), name('b')] }, true],
  ['two views of one name', { views: [name('a'), name('b'), name('a')] }, false],
])('preferences of a table with %s are valid: %s', (_, table, expected) => {
  const { body } = ACCESS_ROUTES['PUT /api/v1/me/preferences']

  expect(body.safeParse({ shards: table }).success).toBe(expected)
})

test('events are selected by their kinds', () => {
  const { query } = PAST_ROUTES['GET /api/v1/events']
  const accepts = (kinds: string) => query.safeParse({ kinds }).success

  expect([accepts('leader'), accepts('leader,restart'), accepts('leader,other'), accepts('')]).toEqual([
    true,
    true,
    false,
    false,
  ])
})
