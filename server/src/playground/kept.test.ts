import type { Principal, RouteRequest } from '@vacancy/shared/api/route'
import { type CommandAnswer, PLAYGROUND_LIMITS } from '@vacancy/shared/contract'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readFields } from '../nodes/ask.ts'
import { ADMIN, openPlayground, PERSON, VIEWER } from '../testing/playground-world.ts'
import { keepRun } from './history.ts'
import { createSeal, saveResult } from './results.ts'

const RUN = { shard: 's1', node: null, command: 'GETSEGMENTS', fields: {}, rows: 0, totalMicros: 1, error: '' } as const

const DAY_MS = 86_400_000
const FIELDS = { segment: 'Vienna' }
const ANSWER: CommandAnswer = {
  shard: 's1',
  node: 'n2',
  role: 'follower',
  command: 'SEARCHPROP',
  at: '2026-11-22T16:00:00.000Z',
  result: { propertyIds: ['h1', 'h2'] },
  count: 2,
  limit: 200,
  limited: false,
  index: '41',
  examined: null,
  attempts: 1,
  totalMicros: 1234.5,
  hops: [{ hop: 'waiting', micros: null }],
  bytesOut: 20,
  bytesIn: 40,
  requestFrame: '00',
  replyFrame: '01',
  replyCut: false,
}

onBothDatabases((newDatabase) => {
  let world: Awaited<ReturnType<typeof openPlayground>>

  beforeEach(async () => {
    world = await openPlayground([], { databaseUrl: await newDatabase() })
  })
  afterEach(async () => await world.close())

  async function problemOf(request: Promise<unknown>): Promise<{ status: number; code: string }> {
    return await request.then(
      (answer) => Promise.reject(new Error(`it answered ${JSON.stringify(answer)}`)),
      (error) => error,
    )
  }

  test('beyond 500 runs the oldest is deleted, pinned ones stay', async () => {
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

    const { entries, total } = await world.call('GET /api/v1/history', { query: { limit: 500 } })
    expect(total).toBe(501)
    expect(entries[0]).toMatchObject({ id: 'old-0', pinned: true })
    expect(entries[1]?.at).toBe('1970-01-01T00:00:01.000Z')
    const kept = await world.database.selectFrom('playground_history').select('id').execute()
    expect(kept.some(({ id }) => id === 'old-1')).toBe(false)
    expect(kept.some(({ id }) => id === 'old-2')).toBe(true)
  })

  test('runs are found by their content, and runs of other people are hidden', async () => {
    const fields = { segment: '100%_sûre \\ "x"' }
    await keepRun(world.database, PERSON.id, { ...RUN, command: 'SEARCHPROP', fields, totalMicros: 1.6 }, 2 ** 41)
    await keepRun(
      world.database,
      PERSON.id,
      { ...RUN, rows: null, totalMicros: null, error: 'wire-503: no' },
      2 ** 41 + 1,
    )
    const find = async (search: string, principal = PERSON) =>
      (await world.call('GET /api/v1/history', { query: { search } }, principal)).entries.map(({ command }) => command)

    expect(await find('')).toEqual(['GETSEGMENTS', 'SEARCHPROP'])
    expect(await find('', VIEWER)).toEqual([])
    for (const search of ['searchprop', '%', '_', '100%_S', '\\', `sûre`])
      expect(await find(search)).toEqual(['SEARCHPROP'])
    expect(await find("' or 1=1 --")).toEqual([])
    const { entries } = await world.call('GET /api/v1/history')
    expect(entries[1]).toMatchObject({ fields, totalMicros: 2, ok: true })
    expect(entries[0]).toMatchObject({ count: null, totalMicros: null, ok: false, error: 'wire-503: no' })
  })

  test('saved queries belong to one person and may be visible to everyone', async () => {
    const body = { name: 'weekend', folder: 'daily', command: 'SEARCHAVAIL', fields: { segment: '{{segment}}' } }
    const mine = await world.call('POST /api/v1/saved-queries', { body })
    const params = { id: mine.id }

    expect(mine).toMatchObject({ mine: true, visible: 'me', owner: 'ada' })
    const hidden = await problemOf(world.call('GET /api/v1/saved-queries/{id}', { params }, VIEWER))
    expect(hidden).toMatchObject({ status: 404 })
    await world.call('PUT /api/v1/saved-queries/{id}', { params, body: { ...body, visible: 'all' } })
    const seen = await world.call('GET /api/v1/saved-queries', {}, VIEWER)
    expect(seen.queries).toMatchObject([{ id: mine.id, mine: false, fields: { segment: '{{segment}}' } }])
    for (const request of [
      world.call('PUT /api/v1/saved-queries/{id}', { params, body }, VIEWER),
      world.call('DELETE /api/v1/saved-queries/{id}', { params }, VIEWER),
    ]) {
      expect(await problemOf(request)).toMatchObject({ status: 403, code: 'not-yours' })
    }
    await world.call('DELETE /api/v1/saved-queries/{id}', { params }, ADMIN)
    expect((await world.call('GET /api/v1/saved-queries')).queries).toEqual([])
  })

  const seal = createSeal()

  /** Saves a result as if the control plane had returned it to the person. */
  async function save(answer: CommandAnswer = ANSWER, principal: Principal = PERSON, nowMs = Date.now()) {
    const own = seal({ person: principal.id, node: null, parsed: readFields(answer.command, FIELDS), answer })
    const body = { node: null, fields: FIELDS, answer: { ...answer, seal: own }, browserMicros: 2_000, repeats: null }
    const request = { principal, body } as unknown as RouteRequest<'POST /api/v1/saved-results'>
    return await saveResult({ database: world.database, seal }, request, nowMs)
  }

  test('a saved result is visible to everyone unchanged, and can be removed by its owner or an admin', async () => {
    const { id } = await save()
    const params = { id }

    const seen = await world.call('GET /api/v1/saved-results/{id}', { params }, VIEWER)
    expect(seen).toMatchObject({ owner: 'ada', mine: false, takenAt: ANSWER.at, fields: FIELDS, totalMicros: 1234.5 })
    expect(seen.answer).toEqual(ANSWER)
    const { results, total } = await world.call('GET /api/v1/saved-results')
    expect(results).toMatchObject([{ id, mine: true, count: 2, command: 'SEARCHPROP', shard: 's1' }])
    expect(total).toBe(1)
    const refused = await problemOf(world.call('DELETE /api/v1/saved-results/{id}', { params }, VIEWER))
    expect(refused).toMatchObject({ status: 403, code: 'not-yours' })
    await world.call('DELETE /api/v1/saved-results/{id}', { params }, ADMIN)
    expect(world.notes).toMatchObject([{ action: 'result.remove', target: 's1: SEARCHPROP of ada' }])
    const own = { id: (await save()).id }
    await world.call('DELETE /api/v1/saved-results/{id}', { params: own })
    for (const gone of [params, own, { id: "' or 1=1 --" }]) {
      const missing = await problemOf(world.call('GET /api/v1/saved-results/{id}', { params: gone }))
      expect(missing).toMatchObject({ status: 404, code: 'unknown-result' })
    }
    expect(world.notes).toHaveLength(1)
  })

  test('a saved result expires after 30 days, and the next sweep deletes it', async () => {
    const old = await save(ANSWER, PERSON, Date.now() - 30 * DAY_MS)
    const young = await save(ANSWER, PERSON, Date.now() - 29 * DAY_MS)

    const missing = await problemOf(world.call('GET /api/v1/saved-results/{id}', { params: { id: old.id } }))
    expect(missing).toMatchObject({ status: 404 })
    expect((await world.call('GET /api/v1/saved-results')).results).toMatchObject([{ id: young.id }])
    await world.sweep()
    const left = await world.database.selectFrom('saved_results').select('id').execute()
    expect(left).toEqual([{ id: young.id }])
  })

  test('forged results, results over the size limit and results over the count limit are not saved', async () => {
    const good = { node: null, fields: FIELDS, answer: { ...ANSWER, seal: 'x'.repeat(43) }, browserMicros: 1 }
    const forged = await problemOf(world.call('POST /api/v1/saved-results', { body: good }))
    expect(forged).toMatchObject({ status: 409, code: 'not-this-answer' })

    const ids = Array.from({ length: 120_000 }, (_, n) => `h${n}`)
    const large = await problemOf(save({ ...ANSWER, result: { propertyIds: ids } }))
    expect(large).toMatchObject({ status: 413, code: 'result-too-large', hint: expect.stringContaining('lower limit') })
    expect((large as unknown as Error).message).toBe('This result has 1.04 MiB; the limit is 1 MiB.')

    for (let n = 0; n < PLAYGROUND_LIMITS.resultsMax; n++) await save()
    expect(await problemOf(save())).toMatchObject({ status: 409, code: 'too-many-results' })
    expect(await save(ANSWER, VIEWER)).toMatchObject({ mine: true })
  })

  test('equal long requests share one short id, and expire a year after they were last opened', async () => {
    const body = { shard: 's1', node: null, command: 'SEARCHPROP', fields: { segment: 'Wien', amenities: ['a', 'b'] } }

    const { id } = await world.call('POST /api/v1/shared-requests', { body })
    const again = await world.call('POST /api/v1/shared-requests', { body }, VIEWER)
    const other = await world.call('POST /api/v1/shared-requests', { body: { ...body, shard: 's2' } })

    expect(id).toMatch(/^[\w-]{16}$/)
    expect(again.id).toBe(id)
    expect(other.id).not.toBe(id)
    const days = (count: number) =>
      world.database
        .updateTable('shared_requests')
        .set({ used_at: Date.now() - count * DAY_MS })
        .execute()
    await days(364)
    expect(await world.call('GET /api/v1/shared-requests/{id}', { params: { id } }, VIEWER)).toEqual(body)
    await world.database
      .updateTable('shared_requests')
      .where('id', '=', other.id)
      .set({ used_at: Date.now() - 366 * DAY_MS })
      .execute()
    await world.sweep()
    const left = await world.database.selectFrom('shared_requests').select(['id', 'owner', 'used_at']).execute()
    expect(left).toMatchObject([{ id, owner: PERSON.id }])
    expect(Date.now() - Number(left[0]?.used_at)).toBeLessThan(DAY_MS)
    const gone = await problemOf(world.call('GET /api/v1/shared-requests/{id}', { params: { id: other.id } }))
    expect(gone).toMatchObject({ status: 404, code: 'unknown-link' })
    const long = { ...body, fields: { amenities: Array.from({ length: 4_000 }, (_, n) => `amenity number ${n}`) } }
    expect(await problemOf(world.call('POST /api/v1/shared-requests', { body: long }))).toMatchObject({
      code: 'too-long',
    })
  })

  test('drafts of the last 20 tabs of a person are kept for 7 days, hidden from others', async () => {
    const body = { shard: 's1', node: null, command: 'SEARCHPROP', fields: FIELDS, text: '{ "command": ' }
    const keep = (tab: string, principal = PERSON) =>
      world.call('PUT /api/v1/unsaved-requests/{id}', { params: { id: tab }, body }, principal)
    const read = async (tab: string, principal = PERSON) =>
      (await world.call('GET /api/v1/unsaved-requests/{id}', { params: { id: tab } }, principal)).request

    await keep('t0', VIEWER)
    for (let tab = 0; tab < PLAYGROUND_LIMITS.unsavedMax; tab++) await keep(`t${tab}`)
    const age = (tab: string, days: number) =>
      world.database
        .updateTable('unsaved_requests')
        .set({ at: Date.now() - days * DAY_MS })
        .where('tab', '=', tab)
        .where('person', '=', PERSON.id)
        .execute()
    await age('t0', 1)
    await age('t1', 8)
    await keep('one more')

    expect(await read('one more')).toMatchObject(body)
    expect(await read('t1')).toBeNull()
    expect(await read('t0')).toMatchObject(body)
    await world.sweep()
    expect(await read('t0')).toMatchObject(body)
    await age('t0', 8)
    await world.sweep()
    expect(await read('t0')).toBeNull()
    expect(await read('t0', VIEWER)).toMatchObject(body)
    expect(await read('t0', ADMIN)).toBeNull()
  })
})
