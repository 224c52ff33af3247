/** Golden searches in the database: what is stored, and what is refused. */
import type { AuditNote, RouteRequest } from '@vacancy/shared/api/route'
import { GOLDEN_LIMITS, GOLDEN_ROUTES, type GoldenSearch } from '@vacancy/shared/contract'
import { onBothDatabases } from '@vacancy/testkit/databases'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Cluster } from '../cluster/cluster.ts'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { PERSON } from '../testing/playground-world.ts'
import { changeGolden, createGolden, keepRun, listGolden, removeGolden, type Searches } from './searches.ts'

const SEARCH = {
  shard: 's1',
  name: 'Alps',
  command: 'SEARCHPROP',
  fields: { segment: 'alps' },
  expect: { atLeast: 20 },
}
const STAY = { segment: 'alps', roomType: 'double', dates: ['2026-12-04', '2026-12-05'] }
const UUID = '6f8a1c2e-53b0-4f57-9c1b-2f3f5a7d9e01'

onBothDatabases((newDatabase) => {
  let database: Kysely<Tables>
  let searches: Searches
  let notes: AuditNote[]
  let nowMs: number

  beforeEach(async () => {
    database = await openDatabase<Tables>((await newDatabase()) || ':memory:')
    notes = []
    nowMs = Date.parse('2026-11-29T10:00:00.000Z')
    searches = {
      database,
      audit: async (note) => void notes.push(note),
      cluster: { shards: () => [{ id: 's1' }, { id: 's2' }] } as unknown as Cluster,
      nowMs: () => nowMs,
    }
  })
  afterEach(() => database.destroy())

  const requestOf = (body: object, id = '') =>
    ({
      body: GOLDEN_ROUTES['POST /api/v1/golden-searches'].body.parse(body),
      ...{ params: { id }, principal: PERSON, address: '', userAgent: '', requestId: 'r1' },
    }) as unknown as RouteRequest<'POST /api/v1/golden-searches'> & RouteRequest<'PUT /api/v1/golden-searches/{id}'>
  const create = (change: object = {}): Promise<GoldenSearch> =>
    createGolden(searches, requestOf({ ...SEARCH, ...change }))
  const change = (id: string, changed: object) => changeGolden(searches, requestOf({ ...SEARCH, ...changed }, id))
  const remove = (id: string) => removeGolden(searches, requestOf(SEARCH, id))

  test('it is stored, changed and removed by anybody who may, each with an audit entry', async () => {
    const made = await create()
    nowMs += 1_000
    const changed = await change(made.id, { name: 'Alps, far', command: 'SEARCHAVAIL', fields: STAY, daysAhead: 30 })

    expect(await listGolden(searches, 's1')).toEqual([changed])
    expect(changed).toMatchObject({
      name: 'Alps, far',
      daysAhead: 30,
      by: 'ada',
      createdAt: made.createdAt,
      last: null,
    })
    expect(await listGolden(searches, 's2')).toEqual([])

    await remove(made.id)

    expect(await listGolden(searches)).toEqual([])
    await expect(remove(made.id)).rejects.toMatchObject({ code: 'golden-not-found', status: 404 })
    expect(notes.map(({ action, target }) => [action, target])).toEqual([
      ['golden.create', 's1: Alps'],
      ['golden.change', 's1: Alps, far'],
      ['golden.delete', 's1: Alps, far'],
    ])
  })

  test('a name is used once in a shard', async () => {
    const alps = await create()
    await create({ shard: 's2' })
    const other = await create({ name: 'Coast' })

    await expect(create()).rejects.toMatchObject({ code: 'golden-name-taken', status: 409, field: 'name' })
    await expect(change(other.id, {})).rejects.toMatchObject({ code: 'golden-name-taken' })
    expect((await change(alps.id, { expect: { atLeast: 5 } })).expect.atLeast).toBe(5)
  })

  test('a shard has a limit of golden searches', async () => {
    for (let n = 0; n < GOLDEN_LIMITS.searchesMax; n++) await create({ name: `Search ${n}` })

    await expect(create()).rejects.toMatchObject({ code: 'too-many-golden-searches', status: 409 })
    await create({ shard: 's2' })
  })

  test('the last result is kept until the search changes', async () => {
    const ran = await create()
    const outcome = { verdict: 'passed', message: 'finds 21 properties', count: 21, p99Ms: null } as const
    const run = {
      shard: 's1',
      node: 'n2',
      at: '2026-11-29T10:00:01.000Z',
      results: [{ id: ran.id, name: 'Alps', ...outcome }],
    }
    await keepRun(searches, [ran], run)

    expect((await listGolden(searches))[0]?.last).toEqual({ ...outcome, at: run.at, node: 'n2' })

    nowMs += 1_000
    await change(ran.id, { expect: { atLeast: 30 } })
    // A run of what it was before ends late.
    await keepRun(searches, [ran], run)

    expect((await listGolden(searches))[0]?.last).toBeNull()
  })

  test.each([
    ['an unknown shard', { shard: 's9' }, 'shard-not-found', 'shard'],
    ['an unknown field', { fields: { segment: 'alps', sort: 'price' } }, 'invalid-fields', 'fields'],
    [
      'a field that continues another search',
      { fields: { segment: 'alps', cursor: 'x' } },
      'invalid-request',
      'fields',
    ],
    ['no expectation', { expect: {} }, 'invalid-request', 'expect'],
    ['more than the search returns', { fields: { segment: 'alps', limit: 10 } }, 'invalid-request', 'expect'],
    ['a text that is no property id', { expect: { contains: [UUID, 'a much too long id'] } }, 'invalid-id', 'expect'],
    ['a day ahead without dates', { daysAhead: 3 }, 'invalid-request', 'daysAhead'],
  ])('it is refused with %s', async (_, wrong, code, field) => {
    await expect(create(wrong)).rejects.toMatchObject({ code, field })
    expect(await listGolden(searches)).toEqual([])
  })
})
