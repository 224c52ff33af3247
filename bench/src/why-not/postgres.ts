/** PostgreSQL on a port of its own, through pg. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { failure } from '../failure.ts'
import { connectTo, startPostgresServer } from '../postgres-server.ts'
import { nights, numbered } from './numbers.ts'
import {
  NIGHT_KEY,
  PROPERTY_INDEX,
  pageOf,
  pageStatement,
  type Statement,
  searchStatement,
  TABLES,
  writeSql,
} from './sql.ts'
import type { Connect, RunningSystem, Source } from './system.ts'

/** All else is the default: commits are synced (fsync, synchronous_commit). */
const SETTINGS = [
  'shared_buffers=1GB',
  'work_mem=32MB',
  'max_wal_size=4GB',
  'jit=off',
  'random_page_cost=1.1',
  // A prepared statement is planned once.
  'plan_cache_mode=force_generic_plan',
]
const marker = (n: number) => `$${n}`

export async function startPostgres({ dataset, dir }: Source): Promise<RunningSystem> {
  const server = await startPostgresServer(dir, SETTINGS)
  const files = writeFiles(dataset, dir)
  const client = await connectTo(server.port)
  const begun = performance.now()
  await load(client, files)
  const loadSeconds = (performance.now() - begun) / 1000
  const version = (await client.query<{ server_version: string }>('SHOW server_version')).rows[0]?.server_version ?? ''
  return {
    name: 'postgres',
    version: version.split(' ')[0] ?? '',
    target: { port: server.port, file: '' },
    loadSeconds,
    bytes: async () => {
      const sizes = "SELECT pg_total_relation_size('night') + pg_total_relation_size('property') AS bytes"
      return Number((await client.query<{ bytes: string }>(sizes)).rows[0]?.bytes)
    },
    cpuSeconds: server.cpuSeconds,
    stop: async () => {
      await client.end()
      await server.stop()
    },
  }
}

/** Files that COPY reads, in a folder of the user that the server runs as. */
function writeFiles(dataset: Source['dataset'], dir: string): { property: string; night: string } {
  const { properties } = dataset
  const property = join(dir, 'property.csv')
  const traits = [properties.segment, properties.type, properties.category, properties.stars, properties.area]
  const lines = properties.ids.map((id, no) =>
    [no, id, ...traits.map((column) => column[no]), properties.amenities[no]].join(),
  )
  writeFileSync(property, `${lines.join('\n')}\n`)
  const night = join(dir, 'night.csv')
  writeFileSync(night, '')
  let text: string[] = []
  const flush = () => {
    writeFileSync(night, text.join(''), { flag: 'a' })
    text = []
  }
  for (const each of nights(dataset)) {
    text.push(`${Object.values(each).join()}\n`)
    if (text.length === 100_000) flush()
  }
  flush()
  for (const file of [property, night]) chmodSync(file, 0o644)
  return { property, night }
}

/** The file has the order of the key. Each page has room for new versions of its rows. */
async function load(client: pg.Client, { property, night }: { property: string; night: string }): Promise<void> {
  await client.query(`${TABLES}) WITH (fillfactor = 80)`)
  await client.query(`COPY property FROM '${property}' (FORMAT csv)`)
  await client.query(`COPY night FROM '${night}' (FORMAT csv)`)
  await client.query(`ALTER TABLE night ADD ${NIGHT_KEY}`)
  await client.query(PROPERTY_INDEX)
  await client.query('VACUUM (ANALYZE)')
  await client.query('CHECKPOINT')
}

export const connectPostgres: Connect = async ({ port }, dataset) => {
  const client = await connectTo(port)
  const names = new Map<string, string>()
  const { properties } = dataset
  const prepared = ({ sql, values }: Statement) => {
    const name = names.get(sql) ?? `search_${names.size}`
    names.set(sql, name)
    return { name, text: sql, values: [...values], rowMode: 'array' as const }
  }
  return {
    search(fields) {
      const query = prepared(searchStatement(numbered(dataset, fields), { marker, joinInOrder: ', ' }))
      return async () => (await client.query<[string]>(query)).rows.map(([id]) => id)
    },
    page(fields) {
      const query = prepared(pageStatement(numbered(dataset, fields), marker))
      return async () => pageOf((await client.query<unknown[]>(query)).rows)
    },
    write({ property, roomType, day }, rooms) {
      const [segment, type] = [properties.segment[property] ?? 0, properties.type[property] ?? 0]
      const values = [rooms, segment, roomType, day, type, property]
      const query = { name: 'write', text: writeSql(marker), values }
      return async () => {
        const { rowCount } = await client.query(query)
        if (rowCount !== 1) throw failure(`PostgreSQL changed ${rowCount} rows`)
      }
    },
    close: () => client.end(),
  }
}
