import { afterEach, beforeEach, expect, test } from 'vitest'
import { onBothDatabases } from '../testing/databases.ts'
import { ADMIN, openInventory, PERSON, VIEWER } from '../testing/inventory-world.ts'
import { keepRun } from './history.ts'

const RUN = { shard: 's1', node: null, command: 'GETSEGMENTS', fields: {}, rows: 0, totalMicros: 1, error: '' } as const

onBothDatabases((newDatabase) => {
  let world: Awaited<ReturnType<typeof openInventory>>

  beforeEach(async () => {
    world = await openInventory([], { databaseUrl: await newDatabase() })
  })
  afterEach(async () => await world.close())

  async function problemOf(asked: Promise<unknown>): Promise<{ status: number; code: string }> {
    return await asked.then(
      (answer) => Promise.reject(new Error(`it answered ${JSON.stringify(answer)}`)),
      (error) => error,
    )
  }

  test('the oldest of more than 500 runs goes, pinned ones stay', async () => {
    const row = { person: PERSON.id, shard: 's1', node: null, command: 'GETSEGMENTS', fields: '{}', words: '', ok: 1 }
    const more = { rows: 0, total_micros: 1, error: '' }
    const rows = Array.from({ length: 501 }, (_, at) => ({
      id: `old-${at}`,
      at,
      ...row,
      ...more,
      pinned: at === 0 ? 1 : 0,
    }))
    await world.database.insertInto('playground_history').values(rows).execute()

    await keepRun(world.database, PERSON.id, RUN, 1_000)

    const { entries, total } = await world.ask('GET /api/v1/history', { query: { limit: 500 } })
    expect(total).toBe(501)
    expect(entries[0]).toMatchObject({ id: 'old-0', pinned: true })
    expect(entries[1]?.at).toBe('1970-01-01T00:00:01.000Z')
    const kept = await world.database.selectFrom('playground_history').select('id').execute()
    expect(kept.some(({ id }) => id === 'old-1')).toBe(false)
    expect(kept.some(({ id }) => id === 'old-2')).toBe(true)
  })

  test('runs are found by what stands in them, and nobody sees those of others', async () => {
    const fields = { segment: '100%_sûre \\ "x"' }
    await keepRun(world.database, PERSON.id, { ...RUN, command: 'SEARCHPROP', fields, totalMicros: 1.6 }, 2 ** 41)
    await keepRun(
      world.database,
      PERSON.id,
      { ...RUN, rows: null, totalMicros: null, error: 'wire-503: no' },
      2 ** 41 + 1,
    )
    const find = async (search: string, asker = PERSON) =>
      (await world.ask('GET /api/v1/history', { query: { search } }, asker)).entries.map(({ command }) => command)

    expect(await find('')).toEqual(['GETSEGMENTS', 'SEARCHPROP'])
    expect(await find('', VIEWER)).toEqual([])
    for (const search of ['searchprop', '%', '_', '100%_S', '\\', `sûre`])
      expect(await find(search)).toEqual(['SEARCHPROP'])
    expect(await find("' or 1=1 --")).toEqual([])
    const { entries } = await world.ask('GET /api/v1/history')
    expect(entries[1]).toMatchObject({ fields, totalMicros: 2, ok: true })
    expect(entries[0]).toMatchObject({ count: null, totalMicros: null, ok: false, error: 'wire-503: no' })
  })

  test('saved queries belong to one person and may be seen by all', async () => {
    const body = { name: 'weekend', folder: 'daily', command: 'SEARCHAVAIL', fields: { segment: '{{segment}}' } }
    const mine = await world.ask('POST /api/v1/saved-queries', { body })
    const params = { id: mine.id }

    expect(mine).toMatchObject({ mine: true, visible: 'me', owner: 'ada' })
    const hidden = await problemOf(world.ask('GET /api/v1/saved-queries/{id}', { params }, VIEWER))
    expect(hidden).toMatchObject({ status: 404 })
    await world.ask('PUT /api/v1/saved-queries/{id}', { params, body: { ...body, visible: 'all' } })
    const seen = await world.ask('GET /api/v1/saved-queries', {}, VIEWER)
    expect(seen.queries).toMatchObject([{ id: mine.id, mine: false, fields: { segment: '{{segment}}' } }])
    for (const asked of [
      world.ask('PUT /api/v1/saved-queries/{id}', { params, body }, VIEWER),
      world.ask('DELETE /api/v1/saved-queries/{id}', { params }, VIEWER),
    ]) {
      expect(await problemOf(asked)).toMatchObject({ status: 403, code: 'not-yours' })
    }
    await world.ask('DELETE /api/v1/saved-queries/{id}', { params }, ADMIN)
    expect((await world.ask('GET /api/v1/saved-queries')).queries).toEqual([])
  })
})
