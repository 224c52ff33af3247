import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import {
  closePackFiles,
  dropPack,
  keepPack,
  openPackFiles as openFiles,
  type PackFiles,
  type PackPlace,
  readPacked,
  writePacks,
} from './pack-files.ts'
import { openDatabase, type QueueDatabase } from './sqlite-database.ts'

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

describe('pack files', () => {
  const MIB = 1 << 20

  let folder: string
  const prefix = () => join(folder, 'queue.db-packs')
  const names = () => readdirSync(folder).toSorted()

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vacancy-pack-files-'))
  })
  afterEach(() => {
    for (const files of opened.splice(0)) closePackFiles(files)
    rmSync(folder, { recursive: true })
  })

  const opened: PackFiles[] = []
  function openPackFiles(...from: Parameters<typeof openFiles>): PackFiles {
    const files = openFiles(...from)
    opened.push(files)
    return files
  }

  /** Writes and keeps a group of packs of these sizes. The bytes of the nth pack are n + 1. */
  function write(files: PackFiles, ...sizes: readonly number[]): PackPlace[] {
    const start = 8
    const memory = new SharedArrayBuffer(start + sizes.reduce((sum, size) => sum + size, 0))
    let to = start
    const packs = sizes.map((size, n) => {
      const from = to
      to += size
      new Uint8Array(memory, from, size).fill(n + 1)
      return { from, to }
    })
    const places = writePacks(files, memory, packs, false)
    for (const place of places) keepPack(files, place)
    return places
  }

  test('a file that lost its packs is written again; of those that wait for that at most two are kept', () => {
    const files = openPackFiles(prefix(), [])
    const groups = [1, 2, 3, 4].map(() => write(files, 9 * MIB))
    for (const [place] of groups.slice(0, 3)) dropPack(files, place as PackPlace)

    expect(names()).toEqual(['queue.db-packs-1', 'queue.db-packs-2', 'queue.db-packs-4'])
    expect(write(files, 9 * MIB)[0]).toMatchObject({ file: 2, at: 0 })
    expect(write(files, 9 * MIB)[0]).toMatchObject({ file: 1, at: 0 })
    expect(write(files, 9 * MIB)[0]).toMatchObject({ file: 5, at: 0 })
  })

  test('closing keeps a file whose group failed behind its row, which used to be deleted', () => {
    const files = openFiles(prefix(), [])
    const memory = new SharedArrayBuffer(4)
    new Uint8Array(memory).fill(7)
    const places = writePacks(files, memory, [{ from: 0, to: 4 }], false)

    closePackFiles(files)

    const again = openPackFiles(prefix(), places)
    expect(readPacked(again, places[0] as PackPlace)).toEqual(Uint8Array.of(7, 7, 7, 7))
  })
})
