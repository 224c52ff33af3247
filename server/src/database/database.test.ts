import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemClock } from '@vacancy/shared'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { describe, expect, test } from 'vitest'
import type { Tables } from '../parts.ts'
import { startTestControlPlane } from '../testing/control-plane.ts'
import { connectDatabase, openDatabase } from './database.ts'
import { MIGRATIONS } from './migrations/migrations.ts'

/** Rows written with migration 080 as the newest: a transfer, an attention item put aside, a codec plan, an import, and their audit log. */
const ROWS_080 = readFileSync(new URL('../testing/database-080.sql', import.meta.url), 'utf8')

async function createVersion080(where: string): Promise<void> {
  const database = connectDatabase<Tables>(where)
  const migrator = new Migrator({ db: database, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateTo('080-imports-and-codecs')
  if (error) throw error
  await sql`delete from audit_chain`.execute(database)
  for (const statement of ROWS_080.trim().split('\n')) await sql.raw(statement).execute(database)
  await database.destroy()
}

const newFile = () => join(mkdtempSync(join(tmpdir(), 'vacancy-database-')), 'x.sqlite')

onBothDatabases((newDatabase) => {
  test('a database is migrated once and keeps its rows', async () => {
    const where = (await newDatabase()) || newFile()
    const first = await openDatabase<Tables>(where)
    await first.insertInto('settings').values({ name: 'a', value: '1' }).execute()
    await first.destroy()

    const second = await openDatabase<Tables>(where)

    expect(await second.selectFrom('settings').selectAll().execute()).toEqual([{ name: 'a', value: '1' }])
    await second.destroy()
  })

  test('times and counts are read as numbers', async () => {
    const database = await openDatabase<Tables>((await newDatabase()) || newFile())
    const at = Date.parse('2099-12-31T23:59:59.999Z')
    await database
      .insertInto('sign_in_links')
      .values({ hash: 'h', person_id: null, created_at: at, expires_at: at })
      .execute()

    const row = await database
      .selectFrom('sign_in_links')
      .select((column) => ['expires_at', column.fn.countAll<number>().over().as('rows')])
      .executeTakeFirstOrThrow()

    expect(row).toEqual({ expires_at: at, rows: 1 })
    await database.destroy()
  })

  test('concurrent transactions are isolated, and a failed one is rolled back', async () => {
    const database = await openDatabase<Tables>((await newDatabase()) || newFile())
    const failing = database.transaction().execute(async (within) => {
      await within.insertInto('settings').values({ name: 'lost', value: '1' }).execute()
      throw new Error('no')
    })
    const working = database.transaction().execute(async (within) => {
      await within.insertInto('settings').values({ name: 'kept', value: '1' }).execute()
    })

    await expect(failing).rejects.toThrow('no')
    await working
    expect(await database.selectFrom('settings').select('name').execute()).toEqual([{ name: 'kept' }])
    await database.destroy()
  })

  test('a database with tables of version 080 is migrated: stored operations, events, plans and imports have messages', async () => {
    const where =
      (await newDatabase()) || join(mkdtempSync(join(tmpdir(), 'vacancy-database-')), 'control-plane.sqlite')
    await createVersion080(where)
    // The rows of the fixture are of that day; later they would be deleted as expired.
    const clock = { ...systemClock, wallMs: () => Date.parse('2026-11-23T14:00:00Z') }

    const plane = await startTestControlPlane({
      clock,
      ...(where.startsWith('postgres') ? { databaseUrl: where } : { dataDir: dirname(where) }),
    })

    const admin = await plane.signIn('admin')
    const read = async (path: string) => (await admin.call('GET', path)).body
    const { operations } = await read('/api/v1/operations')
    expect(operations).toMatchObject([
      { kind: 'transfer', state: 'done', message: 'n1 leads s1', undo: { node: 'n2' } },
    ])
    const { change } = await read('/api/v1/registry/codec-change')
    expect(change.plan.changes.map(({ message }: { message: string }) => message)).toEqual([
      'sea_view moves from place 2 to 0: what has bit 2 now would be read as another feature',
      'breakfast moves from place 0 to 2: what has bit 0 now would be read as another feature',
      'sauna is new, at place 3',
    ])
    const { imports } = await read('/api/v1/imports')
    expect(imports).toMatchObject([{ state: 'built', message: 'Built in 0.1 s: 60 packages of 30 properties.' }])
    const log = await admin.call('POST', '/api/v1/audit/verify', {})
    expect(log.body).toMatchObject({ brokenAt: null })
    await plane.stop()
    const database = connectDatabase<Tables>(where)
    const events = await database.selectFrom('cluster_events').select('message').orderBy('at').execute()
    expect(events.map(({ message }) => message)).toContain('leadership of s1 moved n2 → n1')
    const aside = await database.selectFrom('attention_aside').selectAll().execute()
    expect(aside).toEqual([
      { item: '4:far-behind:s1', until_at: null, message: 's# / n# is far behind: # entries# # s' },
    ])
    const { plan } = await database.selectFrom('operations').select('plan').executeTakeFirstOrThrow()
    expect(plan).not.toContain('"says"')
    expect(JSON.parse(plan).before.nodes[0]).toEqual({ node: 'n1', role: 'follower', level: 'ok', message: 'Healthy' })
    await database.destroy()
  })

  test('a failed migration changes nothing and can be repeated', async () => {
    const where = (await newDatabase()) || newFile()
    await createVersion080(where)
    const database = connectDatabase<Tables>(where)
    const { id, detail } = await database.selectFrom('imports').select(['id', 'detail']).executeTakeFirstOrThrow()
    const store = (text: string) => database.updateTable('imports').set({ detail: text }).where('id', '=', id).execute()
    await store('{ cut off')

    await expect(openDatabase<Tables>(where)).rejects.toThrow(/cannot be opened/)

    await store(detail)
    await (await openDatabase<Tables>(where)).destroy()
    const row = await database.selectFrom('imports').select('detail').executeTakeFirstOrThrow()
    expect(JSON.parse(row.detail)).toMatchObject({ message: 'Built in 0.1 s: 60 packages of 30 properties.' })
    await database.destroy()
  })

  test('a database of a newer version is refused', async () => {
    const where = (await newDatabase()) || newFile()
    const newer = await openDatabase<Tables>(where)
    await sql`insert into kysely_migration (name, timestamp) values ('999-later', '2099-01-01')`.execute(newer)
    await newer.destroy()

    await expect(openDatabase<Tables>(where)).rejects.toThrow(/cannot be opened: .*999-later/)
  })
})

describe('SQLite', () => {
  test('a file that is not a database is named in the error', async () => {
    const file = newFile()
    writeFileSync(file, 'no database at all, but long enough to look like one '.repeat(100))

    await expect(openDatabase<Tables>(file)).rejects.toThrow(
      `the database ${file} cannot be opened: file is not a database`,
    )
  })

  test('only the owner can read the files', async () => {
    const file = newFile()
    const database = await openDatabase<Tables>(file)

    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600)
    await database.destroy()
  })

  test('every commit is synced before it is acknowledged', async () => {
    const database = await openDatabase<Tables>(newFile())
    const read = async (name: string) =>
      Object.values((await sql.raw(`pragma ${name}`).execute(database)).rows[0] as object)[0]

    expect(await read('journal_mode')).toBe('wal')
    expect(await read('synchronous')).toBe(2)
    expect(await read('foreign_keys')).toBe(1)
    await database.destroy()
  })
})

describe('a full SQLite file', () => {
  test('refuses writes with an error of its own, and keeps what it has', async () => {
    const database = await openDatabase<Tables>(newFile())
    await database.insertInto('settings').values({ name: 'a', value: '1' }).execute()
    const pages = await sql<{ page_count: number }>`pragma page_count`.execute(database)
    await sql.raw(`pragma max_page_count = ${pages.rows[0]?.page_count}`).execute(database)

    const write = database.insertInto('settings').values({ name: 'b', value: 'x'.repeat(100_000) })

    await expect(write.execute()).rejects.toMatchObject({ code: 'disk_full' })
    expect(await database.selectFrom('settings').selectAll().execute()).toEqual([{ name: 'a', value: '1' }])
    await database.destroy()
  })

  test('an invalid statement is no full disk', async () => {
    const database = await openDatabase<Tables>(newFile())

    await expect(sql`select 1 from nowhere`.execute(database)).rejects.toThrow('no such table: nowhere')
    await expect(sql`select 1 from nowhere`.execute(database)).rejects.not.toMatchObject({ code: 'disk_full' })
    await database.destroy()
  })
})
