/** SQLite inside the process of the client, through node:sqlite. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { failure } from '../failure.ts'
import { nights, numbered } from './numbers.ts'
import { NIGHT_KEY, PROPERTY_INDEX, pageOf, pageStatement, searchStatement, TABLES, writeSql } from './sql.ts'
import type { Connect, RunningSystem, Source } from './system.ts'

/** Writers wait for each other this long. */
const BUSY_MS = 10_000
const marker = (n: number) => `?${n}`

export async function startSqlite({ dataset, dir }: Source): Promise<RunningSystem> {
  const file = join(dir, 'inventory.sqlite')
  const begun = performance.now()
  const database = new DatabaseSync(file)
  // The journal of a WAL database keeps this mode; synced at every commit (synchronous = FULL, below).
  database.exec('PRAGMA journal_mode = WAL')
  database.exec(`${TABLES}, ${NIGHT_KEY}) WITHOUT ROWID`)
  database.exec('BEGIN')
  const { properties } = dataset
  const property = database.prepare('INSERT INTO property VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  for (const [no, id] of properties.ids.entries()) {
    const traits = [properties.segment, properties.type, properties.category, properties.stars, properties.area]
    property.run(no, id, ...traits.map((column) => column[no] ?? 0), properties.amenities[no] ?? 0)
  }
  const night = database.prepare('INSERT INTO night VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  for (const each of nights(dataset)) {
    night.run(each.segment, each.roomType, each.day, each.type, each.property, each.rooms, each.price, each.features)
  }
  database.exec(`${PROPERTY_INDEX}; COMMIT; ANALYZE; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)`)
  const [row] = database.prepare('SELECT sqlite_version() AS version').all()
  database.close()
  return {
    name: 'sqlite',
    version: String(row?.['version']),
    target: { port: 0, file },
    loadSeconds: (performance.now() - begun) / 1000,
    bytes: async () => statSync(file).size,
    cpuSeconds: undefined,
    stop: async () => undefined,
  }
}

export const connectSqlite: Connect = async ({ file }, dataset) => {
  const database = new DatabaseSync(file, { timeout: BUSY_MS })
  database.exec('PRAGMA synchronous = FULL; PRAGMA cache_size = -262144; PRAGMA mmap_size = 1073741824')
  const statements = new Map<string, ReturnType<typeof database.prepare>>()
  const prepared = (sql: string) => {
    const known = statements.get(sql)
    if (known) return known
    const statement = database.prepare(sql)
    statement.setReturnArrays(true)
    statements.set(sql, statement)
    return statement
  }
  const update = database.prepare(writeSql(marker))
  const { properties } = dataset
  return {
    search(fields) {
      // CROSS JOIN: SQLite keeps the order of the tables.
      const { sql, values } = searchStatement(numbered(dataset, fields), { marker, joinInOrder: ' CROSS JOIN ' })
      const statement = prepared(sql)
      return () => (statement.all(...values) as unknown as string[][]).map(([id = '']) => id)
    },
    page(fields) {
      const { sql, values } = pageStatement(numbered(dataset, fields), marker)
      const statement = prepared(sql)
      return () => pageOf(statement.all(...values) as unknown as unknown[][])
    },
    write({ property, roomType, day }, rooms) {
      const [segment, type] = [properties.segment[property] ?? 0, properties.type[property] ?? 0]
      return () => {
        const { changes } = update.run(rooms, segment, roomType, day, type, property)
        if (changes !== 1) throw failure(`SQLite changed ${changes} rows`)
      }
    },
    close: () => database.close(),
  }
}
