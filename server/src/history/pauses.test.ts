/** Write pauses: the estimate for the next transfer, from the last ones. */

import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { createPauses, type Pauses } from './pauses.ts'

let database: Kysely<Tables>
let pauses: Pauses

beforeAll(async () => {
  database = await openDatabase<Tables>(':memory:')
})
afterAll(async () => await database.destroy())
beforeEach(async () => {
  await database.deleteFrom('write_pauses').execute()
  pauses = createPauses(database)
})

const add = (operation: string, milliseconds: number, shard = 's1', at = milliseconds) =>
  pauses.add({ operation, shard, at, milliseconds })

test('the median, the lower of two, and the worst of a shard and of all', async () => {
  await add('a', 40)
  expect(pauses.of('s1')).toEqual({ median: 40, worst: 40, count: 1 })
  await add('b', 100)
  expect(pauses.of('s1')).toEqual({ median: 40, worst: 100, count: 2 })
  await add('c', 9)
  await add('d', 500, 's2')
  expect([pauses.of('s1'), pauses.of('s2')]).toEqual([
    { median: 40, worst: 100, count: 3 },
    { median: 500, worst: 500, count: 1 },
  ])
  expect(pauses.ofAll()).toEqual({ median: 40, worst: 500, count: 4 })
})

test('the last twenty count, also after a restart, and each operation once', async () => {
  for (let at = 0; at < 21; at++) await add(`o${at}`, at === 0 ? 9_999 : 100 + at, 's1', at)
  await database
    .insertInto('write_pauses')
    .values({ operation: 'o5', shard: 's1', at: 99, milliseconds: 1 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const expected = { median: 110, worst: 120, count: 20 }
  expect(pauses.of('s1')).toEqual(expected)
  await add('o20', 5, 's9', 99)
  const again = createPauses(database)
  await again.load()
  expect([again.of('s1'), again.of('s9')]).toEqual([expected, null])
})
