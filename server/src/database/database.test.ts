import { mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Tables } from '../parts.ts'
import { startTestControlPlane } from '../testing/control-plane.ts'
import { onBothDatabases } from '../testing/databases.ts'
import { type Postgres, startPostgres } from '../testing/postgres.ts'
import { openDatabase } from './database.ts'

const newFile = () => join(mkdtempSync(join(tmpdir(), 'vacancy-database-')), 'x.sqlite')

onBothDatabases((newDatabase) => {
  test('a database is brought up to date once, and found as it was', async () => {
    const where = (await newDatabase()) || newFile()
    const first = await openDatabase<Tables>(where)
    await first.insertInto('settings').values({ name: 'a', value: '1' }).execute()
    await first.destroy()

    const second = await openDatabase<Tables>(where)

    expect(await second.selectFrom('settings').selectAll().execute()).toEqual([{ name: 'a', value: '1' }])
    await second.destroy()
  })

  test('times and counts come back as numbers', async () => {
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

  test('two transactions at once do not see into each other, and one that fails leaves nothing', async () => {
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

  test('a database of a newer version is not touched', async () => {
    const where = (await newDatabase()) || newFile()
    const newer = await openDatabase<Tables>(where)
    await sql`insert into kysely_migration (name, timestamp) values ('999-later', '2099-01-01')`.execute(newer)
    await newer.destroy()

    await expect(openDatabase<Tables>(where)).rejects.toThrow(/cannot be opened: .*999-later/)
  })
})

describe('SQLite', () => {
  test('a file that is none is named', async () => {
    const file = newFile()
    writeFileSync(file, 'no database at all, but long enough to look like one '.repeat(100))

    await expect(openDatabase<Tables>(file)).rejects.toThrow(
      `the database ${file} cannot be opened: file is not a database`,
    )
  })

  test('the file is for its owner alone', async () => {
    const file = newFile()
    const database = await openDatabase<Tables>(file)

    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600)
    await database.destroy()
  })

  test('every commit is on the disk before it is answered', async () => {
    const database = await openDatabase<Tables>(newFile())
    const read = async (name: string) =>
      Object.values((await sql.raw(`pragma ${name}`).execute(database)).rows[0] as object)[0]

    expect(await read('journal_mode')).toBe('wal')
    expect(await read('synchronous')).toBe(2)
    expect(await read('foreign_keys')).toBe(1)
    await database.destroy()
  })
})

describe('PostgreSQL that goes away', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => await postgres.close())

  test('the control plane says so, goes on, and works again when it is back', async () => {
    const plane = await startTestControlPlane({ databaseUrl: await postgres.createDatabase() })
    const admin = await plane.signIn('admin')
    const { password } = new URL(await postgres.createDatabase())

    await postgres.stop()
    const gone = await plane.nobody().call('GET', '/ready')
    expect(gone.status).toBe(503)
    expect(gone.body.reasons[0].name).toBe('database')
    expect((await plane.nobody().call('GET', '/health')).status).toBe(200)
    const failed = await admin.call('GET', '/api/v1/people')
    expect(failed.status).toBe(503)
    expect(failed.body).toMatchObject({ code: 'database-down' })

    await postgres.start()
    expect((await plane.nobody().call('GET', '/ready')).body).toEqual({ ready: true, reasons: [] })
    expect((await admin.call('GET', '/api/v1/people')).status).toBe(200)
    await plane.stop()
    for (const text of [gone.text, failed.text, ...plane.log]) expect(text).not.toContain(password)
  })

  test('one that cannot be reached ends the start with its place, and without the password', async () => {
    const opening = openDatabase<Tables>('postgres://user:hidden@127.0.0.1:1/name')

    await expect(opening).rejects.toThrow(
      'the PostgreSQL database 127.0.0.1:1/name cannot be opened: connect ECONNREFUSED',
    )
    await expect(opening).rejects.not.toThrow('hidden')
  })
})
