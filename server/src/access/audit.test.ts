import { turnableClock } from '@vacancy/shared'
import type { Principal } from '@vacancy/shared/api/route'
import { onBothDatabases } from '@vacancy/testkit/databases'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { type Caller, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { createAudit, csvCell } from './audit.ts'

const ADA: Principal = { kind: 'person', id: 'p1', name: 'ada', role: 'admin' }
const note = (target: string, action = 'test.act') => ({
  principal: ADA,
  address: '127.0.0.1',
  userAgent: 'curl/8.5.0',
  requestId: 'r1',
  action,
  target,
  result: 'done',
})

onBothDatabases((newDatabase) => {
  const clock = turnableClock(Date.parse('2026-11-22T00:00:00Z'))
  let database: Kysely<Tables>
  let where: string
  let plane: TestControlPlane
  let viewer: Caller

  beforeAll(async () => {
    where = await newDatabase()
    plane = await startTestControlPlane({ databaseUrl: where, clock })
    database = await openDatabase<Tables>(where === '' ? `${plane.dataDir}/control-plane.sqlite` : where)
    viewer = await plane.signIn('viewer', 'reader')
  })
  afterAll(async () => {
    await database.destroy()
    await plane.stop()
  })
  const verify = async () => (await viewer.call('POST', '/api/v1/audit/verify')).body

  test('a hundred concurrent entries form one chain', async () => {
    const audit = createAudit(database, clock, () => undefined)
    const before = (await verify()).entries

    await Promise.all(Array.from({ length: 100 }, (_, i) => audit.write(note(`target-${i}`))))

    expect(await verify()).toEqual({ entries: before + 100, brokenAt: null })
  })

  test('an entry is committed or rolled back with its change', async () => {
    const audit = createAudit(database, clock, () => undefined)
    const before = (await verify()).entries

    const failing = database.transaction().execute(async (within) => {
      await audit.write(note('undone'), within)
      throw new Error('the change failed')
    })

    await expect(failing).rejects.toThrow('the change failed')
    expect(await verify()).toEqual({ entries: before, brokenAt: null })
  })

  test('the total waits for appending transactions', async () => {
    const audit = createAudit(database, clock, () => undefined)
    const before = await audit.total()
    const written = Promise.withResolvers<void>()
    const going = Promise.withResolvers<void>()
    const change = database.transaction().execute(async (within) => {
      await audit.write(note('slow'), within)
      written.resolve()
      await going.promise
    })
    await written.promise

    const total = audit.total()
    going.resolve()

    expect(await total).toBe(before + 1)
    await change
  })

  test('entries are listed newest first, in pages, filtered, with the total', async () => {
    const audit = createAudit(database, clock, () => undefined)
    const from = new Date(clock.wallMs() + 60_000).toISOString()
    clock.advance(60_000)
    for (const target of ['s1/n1', 'S1/N2', 's_1', 's%1', 'sx1']) await audit.write(note(target, 'page.test'))
    clock.advance(60_000)
    await audit.write(note('later', 'page.test'))
    const list = async (query: string) => (await viewer.call('GET', `/api/v1/audit?action=page.test&${query}`)).body
    const targets = (body: { entries: { target: string }[] }) => body.entries.map(({ target }) => target)

    const first = await list('limit=4')
    expect(targets(first)).toEqual(['later', 'sx1', 's%1', 's_1'])
    expect(first.total).toBe(6)
    const second = await list(`limit=4&cursor=${first.next}`)
    expect(targets(second)).toEqual(['S1/N2', 's1/n1'])
    expect(second.next).toBeNull()
    // SQL wildcards match literally.
    expect(targets(await list('target=s_1'))).toEqual(['s_1'])
    expect(targets(await list('target=%25'))).toEqual(['s%1'])
    expect(targets(await list('target=s1%2Fn'))).toEqual(['S1/N2', 's1/n1'])
    expect((await list('actor=ADA')).total).toBe(6)
    expect((await list('actor=unknown')).entries).toEqual([])
    expect((await list(`from=${from}&to=${from}`)).total).toBe(5)
  })

  test('filtered entries are exported as JSON lines and as CSV without formulas', async () => {
    const audit = createAudit(database, clock, () => undefined)
    await audit.write({ ...note('=HYPERLINK("http://evil")', 'export.test'), reason: 'first,\n"second"' })

    const jsonl = await viewer.call('GET', '/api/v1/audit/export?format=jsonl&action=export.test')
    expect(jsonl.headers.get('content-disposition')).toMatch(/^attachment; filename="audit-2026-11-22\.jsonl"$/)
    const lines = jsonl.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.length).toBe(1)
    expect(lines[0]).toMatchObject({ target: '=HYPERLINK("http://evil")', reason: 'first,\n"second"' })

    const csv = await viewer.call('GET', '/api/v1/audit/export?format=csv&action=export.test')
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const [head, ...rest] = csv.text.split('\r\n')
    expect(head).toBe(
      'seq,at,actor,actorKind,address,action,target,reason,result,detail,operation,requestId,hash,userAgent',
    )
    expect(rest.join('\r\n')).toContain(`,"'=HYPERLINK(""http://evil"")","first,\n""second""",done,`)
  })

  test('the whole log is exported, oldest first, across pages of the database', async () => {
    const audit = createAudit(database, clock, () => undefined)
    await database.transaction().execute(async (within) => {
      for (let i = 0; i < 1_100; i++) await audit.write(note(`many-${i}`, 'many.test'), within)
    })

    const { text } = await viewer.call('GET', '/api/v1/audit/export?action=many.test')

    const targets = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).target)
    expect(targets).toEqual(Array.from({ length: 1_100 }, (_, i) => `many-${i}`))
  })

  test('expired entries are deleted, and the chain stays valid', async () => {
    const audit = createAudit(database, clock, () => undefined)
    await audit.write(note('old', 'prune.test'))
    clock.advance(10 * 86_400_000)
    const reader = await plane.signIn('viewer')
    await audit.write(note('new', 'prune.test'))

    expect(await audit.prune(5)).toBeGreaterThan(100)

    const { entries } = (await reader.call('GET', '/api/v1/audit?action=prune.test')).body
    expect(entries.map(({ target }: { target: string }) => target)).toEqual(['new'])
    expect((await reader.call('POST', '/api/v1/audit/verify')).body.brokenAt).toBeNull()
  })

  test('a changed, removed or appended entry is detected', async () => {
    const audit = createAudit(database, clock, () => undefined)
    for (const target of ['a', 'b', 'c']) await audit.write(note(target, 'forge.test'))
    const reader = await plane.signIn('viewer', 'checker')
    const check = async () => (await reader.call('POST', '/api/v1/audit/verify')).body.brokenAt
    const { seq } = await database
      .selectFrom('audit')
      .select('seq')
      .where('action', '=', 'forge.test')
      .where('target', '=', 'b')
      .executeTakeFirstOrThrow()
    expect(await check()).toBeNull()

    await database.updateTable('audit').set({ actor: 'eve' }).where('seq', '=', seq).execute()
    expect(await check()).toBe(seq)
    await database.updateTable('audit').set({ actor: 'ada' }).where('seq', '=', seq).execute()
    expect(await check()).toBeNull()

    const row = await database.selectFrom('audit').selectAll().where('seq', '=', seq).executeTakeFirstOrThrow()
    await database.deleteFrom('audit').where('seq', '=', seq).execute()
    expect(await check()).toBe(seq)
    await database.insertInto('audit').values(row).execute()
    expect(await check()).toBeNull()

    const { last } = await database
      .selectFrom('audit')
      .select((column) => column.fn.max('seq').as('last'))
      .executeTakeFirstOrThrow()
    await database.deleteFrom('audit').where('seq', '=', last).execute()
    expect(await check()).toBe(last)
  })
})

test.each([
  ['plain', 'plain'],
  ['=1+1', `"'=1+1"`],
  ['+1', `"'+1"`],
  ['-1', `"'-1"`],
  ['@sum', `"'@sum"`],
  ['\t=1', `"'\t=1"`],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
])('a cell of %j is written as %s', (text, cell) => {
  expect(csvCell(text)).toBe(cell)
})
