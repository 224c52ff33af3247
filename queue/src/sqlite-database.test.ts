import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { asDiskFull, isDiskFull, openDatabase, pragma, type QueueDatabase, queueId } from './sqlite-database.ts'

let folder: string
let open: DatabaseSync[]
const file = () => join(folder, 'queue.db')

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-database-'))
  open = []
})

afterEach(() => {
  for (const database of open) if (database.isOpen) database.close()
  rmSync(folder, { recursive: true })
})

async function opened(options: object = {}): Promise<QueueDatabase> {
  const usual = { file: file(), partition: 0, partitions: 1, isSynced: false, sparseMs: 0 }
  const queue = await openDatabase({ ...usual, ...options })
  open.push(queue.database)
  return queue
}

/** Another program changes the file, while no queue uses it. */
function change(sql: string): void {
  for (const database of open) if (database.isOpen) database.close()
  const database = new DatabaseSync(file())
  database.exec(sql)
  database.close()
}

const numberOf = (database: DatabaseSync, sql: string) => Object.values(database.prepare(sql).get() ?? {})[0]
const metaOf = (database: DatabaseSync) => ({ ...database.prepare('SELECT * FROM meta').get() })
const tablesOf = (database: DatabaseSync) =>
  database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name)
const TABLES = ['filed_packs', 'finished', 'jobs', 'meta', 'pack_marks', 'packs', 'topics']

describe('a new file', () => {
  it('is readable by its owner alone, and has all tables', async () => {
    const { database } = await opened({ partition: 2, partitions: 4 })
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect(tablesOf(database)).toEqual(TABLES)
    expect(metaOf(database)).toEqual({ id: 1, version: 3, partition: 2, partitions: 4, next_topic: 1 })
  })

  it('has a log, of which 16 MiB are moved to the file, and large pages', async () => {
    const { database } = await opened()
    expect(numberOf(database, 'PRAGMA journal_mode')).toBe('wal')
    expect(numberOf(database, 'PRAGMA locking_mode')).toBe('exclusive')
    expect(pragma(database, 'page_size')).toBe(16_384)
    expect(pragma(database, 'wal_autocheckpoint')).toBe(1_024)
    expect(statSync(`${file()}-wal`).size).toBe(0)
  })

  it.each([
    [false, 0],
    [true, 1],
  ])('is synced by SQLite as configured: %s', async (isSynced, expected) => {
    const { database } = await opened({ isSynced })
    expect(pragma(database, 'synchronous')).toBe(expected)
  })

  it('has an id, which it keeps', async () => {
    const { database } = await opened()
    const id = queueId(database)
    expect(id).toMatch(/^[0-9a-f]{8}$/)
    expect(pragma(database, 'user_version')).toBeGreaterThan(0)
    database.close()
    expect(queueId((await opened()).database)).toBe(id)
    change('PRAGMA user_version = 10')
    expect(queueId((await opened()).database)).toBe('0000000a')
  })
})

describe('a file', () => {
  it('of an old version becomes one of this version, with what is in it', async () => {
    await opened()
    for (const version of [1, 2]) {
      change(`DROP TABLE packs; DROP TABLE filed_packs; DROP TABLE pack_marks;
        UPDATE meta SET version = ${version}, next_topic = 9`)
      const { database } = await opened()
      expect(metaOf(database)).toEqual({ id: 1, version: 3, partition: 0, partitions: 1, next_topic: 9 })
      expect(tablesOf(database)).toEqual(TABLES)
    }
  })

  it('with smaller pages keeps them, and as long a log', async () => {
    const database = new DatabaseSync(file())
    database.exec('PRAGMA page_size = 4096; PRAGMA user_version = 7; CREATE TABLE other (a)')
    database.close()
    const { database: old } = await opened()
    expect([pragma(old, 'page_size'), pragma(old, 'wal_autocheckpoint')]).toEqual([4_096, 4_096])
  })

  it.each([
    ['UPDATE meta SET version = 4', {}, 'it has version 4, this program reads version 3'],
    ['UPDATE meta SET version = 0', {}, 'it has version 0, this program reads version 3'],
    ['UPDATE meta SET partitions = 2', {}, 'it has 2 partitions, the setting partitions is 1'],
    ['UPDATE meta SET partitions = 2, partition = 1', { partitions: 2 }, 'it is partition 1, not 0'],
    ['UPDATE meta SET version = 2, partitions = 2', {}, 'it has 2 partitions, the setting partitions is 1'],
  ])('is refused and stays as it was after %s', async (sql, options, message) => {
    const { database } = await opened()
    const before = metaOf(database)
    change(sql)
    await expect(opened(options)).rejects.toThrow(message)
    expect(before).toMatchObject({ version: 3 })
  })

  it('that another connection uses is refused', async () => {
    await opened()
    await expect(opened()).rejects.toThrow(/^database is locked$/)
  })

  it('that is no database, or damaged, is refused', async () => {
    writeFileSync(join(folder, 'text.db'), 'a text that is long enough to be no database'.repeat(50))
    await expect(opened({ file: join(folder, 'text.db') })).rejects.toThrow('file is not a database')
    const { database } = await opened()
    database.close()
    const bytes = readFileSync(file())
    writeFileSync(file(), bytes.fill(0xff, 16_384 * 2, 16_384 * 5))
    const error = await opened().catch((thrown) => thrown)
    expect(error.message).toMatch(/^damaged: .*page 3.*; .*page 4/)
    // It is closed again.
    writeFileSync(file(), '')
    expect(metaOf((await opened()).database)).toMatchObject({ version: 3 })
  })
})

describe('the statements', () => {
  it('keep a topic, its later configuration, and the highest number', async () => {
    const { database, statements } = await opened()
    statements.topic.run(4, 'orders', '{"a":1}', 50)
    statements.topic.run(4, 'ignored', '{"a":2}', 60)
    statements.nextTopic.run(5, 5)
    statements.nextTopic.run(3, 3)
    const row = { topic_no: 4, name: 'orders', config: '{"a":2}', created_at: 50 }
    expect({ ...database.prepare('SELECT * FROM topics').get() }).toEqual(row)
    expect(metaOf(database)).toMatchObject({ next_topic: 5 })
    statements.topicGone.run('#4', '', 4)
    expect({ ...database.prepare('SELECT * FROM topics').get() }).toEqual({ ...row, name: '#4', config: '' })
    statements.topicSwept.run(5)
    expect(numberOf(database, 'SELECT count(*) FROM topics')).toBe(1)
    statements.topicSwept.run(4)
    expect(numberOf(database, 'SELECT count(*) FROM topics')).toBe(0)
  })

  it('read jobs behind a number up to another one, in order, some at a time', async () => {
    const { statements } = await opened()
    for (const seq of [5, 3, 9, 7]) statements.put.run(seq, 1, `j${seq}`, 2, 3, 4, 5, 6, 7, new Uint8Array(seq))
    const seqs = (...given: [number, number, number]) =>
      (statements.rows.all(...given) as unknown as unknown[][]).map(([seq]) => seq)
    expect(seqs(0, 100, 10)).toEqual([3, 5, 7, 9])
    expect(seqs(3, 7, 10)).toEqual([5, 7])
    expect(seqs(0, 100, 2)).toEqual([3, 5])
    const [row] = statements.rows.all(2, 3, 1) as unknown as unknown[][]
    expect(row).toEqual([3, 1, 2, 0, 3, 0, 0, 4, 5, 6, 7, 0, 3, 'j3', '', '', '', new Uint8Array(3)])
    statements.put.run(10, 1, 'null', 2, 3, 4, 5, 6, 7, null)
    expect((statements.rows.all(9, 10, 1) as unknown as unknown[][])[0]?.slice(12)).toEqual([
      -1,
      'null',
      '',
      '',
      '',
      null,
    ])
    statements.done.run(5, 7)
    expect(seqs(0, 100, 10)).toEqual([3, 9, 10])
    statements.update.run(12, 1, 2, 3, 4, 5, 6, 'rejected', 'error', '[]', 9)
    const [, updated] = statements.rows.all(3, 100, 2) as unknown as unknown[][]
    expect(updated).toEqual([
      12,
      1,
      4,
      1,
      3,
      2,
      3,
      4,
      5,
      6,
      5,
      6,
      9,
      'j9',
      'rejected',
      'error',
      '[]',
      new Uint8Array(9),
    ])
  })

  it('keep the last time of an id that finished, and forget one id or those of a topic', async () => {
    const { database, statements } = await opened()
    for (const [topic, id, at] of [
      [1, 'a', 10],
      [1, 'a', 20],
      [1, 'b', 30],
      [1, 'c', 35],
      [2, 'a', 40],
    ] as const)
      statements.finished.run(topic, id, at)
    const left = () =>
      database
        .prepare('SELECT * FROM finished ORDER BY finished_at')
        .all()
        .map((row) => Object.values(row).join())
    expect(left()).toEqual(['1,a,20', '1,b,30', '1,c,35', '2,a,40'])
    statements.forget.run(1, 'b')
    expect(left()).toEqual(['1,a,20', '1,c,35', '2,a,40'])
    statements.forgetTopic.run(1)
    expect(left()).toEqual(['2,a,40'])
  })

  it('remove 2,000 jobs of a topic at a time', async () => {
    const { database, statements } = await opened()
    database.exec('BEGIN')
    for (let seq = 1; seq <= 2_003; seq++) statements.put.run(seq, seq === 7 ? 2 : 1, `j${seq}`, 0, 0, 0, 0, 0, 0, null)
    database.exec('COMMIT')
    expect(statements.sweep.run(1, 2_000).changes).toBe(2_000)
    expect(statements.sweep.run(1, 2_000).changes).toBe(2)
    expect(database.prepare('SELECT seq FROM jobs').all()).toMatchObject([{ seq: 7 }])
  })

  it('keep packs, in their row or in a file, and which of their jobs are gone', async () => {
    const { database, statements } = await opened()
    statements.pack.run(1, 2, 8, 50, new Uint8Array([1, 2]))
    statements.pack.run(20, 2, 8, 51, new Uint8Array([3]))
    expect(statements.readPack.get(1)).toMatchObject({ created_at: 50, data: new Uint8Array([1, 2]) })
    statements.filed.run(9, 0, 8, 60, 1, 100, 200, 300)
    statements.filed.run(30, 0, 8, 61, 1, 300, 200, 300)
    const row = { seq: 9, topic_no: 0, count: 8, created_at: 60, file: 1, at: 100, bytes: 200, checksum: 300 }
    expect({ ...database.prepare('SELECT * FROM filed_packs').get() }).toEqual(row)
    expect(statements.filedCreated.get(30)).toMatchObject({ created_at: 61 })
    statements.marks.run(1, new Uint8Array([1]))
    statements.marks.run(1, new Uint8Array([3]))
    statements.marks.run(9, new Uint8Array([4]))
    statements.marksGone.run(9)
    expect(database.prepare('SELECT * FROM pack_marks').all()).toMatchObject([{ seq: 1, marks: new Uint8Array([3]) }])
    statements.packGone.run(1)
    statements.filedGone.run(9)
    expect(statements.readPack.get(1)).toBeUndefined()
    expect(statements.readPack.get(20)).toBeDefined()
    expect(statements.filedCreated.get(9)).toBeUndefined()
    expect(statements.filedCreated.get(30)).toBeDefined()
  })
})

describe('an error', () => {
  it.each([
    ['ENOSPC', true],
    ['EDQUOT', true],
    ['EIO', false],
    [undefined, false],
  ])('of the file system with the code %s tells whether the disk is full', (code, isFull) => {
    const error = Object.assign(new Error('no space'), { code })
    const seen = asDiskFull(error)
    expect(isDiskFull(seen)).toBe(isFull)
    expect((seen as Error).message).toBe('no space')
    expect(seen === error).toBe(!isFull)
  })

  it('of SQLite tells the same', async () => {
    const { database } = await opened()
    database.exec('PRAGMA max_page_count = 1')
    const grow = () => database.exec('CREATE TABLE large AS SELECT zeroblob(1000000) AS data')
    const thrown = (run: () => void) => {
      try {
        run()
        return undefined
      } catch (error) {
        return error
      }
    }
    expect(isDiskFull(thrown(grow))).toBe(true)
    expect(isDiskFull(thrown(() => database.exec('not a statement')))).toBe(false)
  })
})
