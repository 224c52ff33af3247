/**
 * How long does a snapshot from other sources take, beside one from the CSV files? (docs/operators.md#import-from-a-database)
 *
 * Data: the files of a folder, as `npm run bench -- sample` writes them, copied into PostgreSQL and Parquet, and written as
 * CSV with semicolons and other dates. Measured are whole commands, in turns.
 *
 *   node engine/src/import-source/import-source.bench.ts --input DIR --duckdb DIR [--rounds N]
 *
 * `--duckdb` is the folder in which @duckdb/node-api was installed.
 */

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { IMPORT_COLUMNS, type ImportFileKind } from '@vacancy/shared'
import { startPostgres } from '@vacancy/testkit/postgres'

const { values } = parseArgs({
  options: {
    input: { type: 'string', default: '' },
    duckdb: { type: 'string', default: '' },
    rounds: { type: 'string', default: '3' },
  },
})
const VACANCY = resolve(import.meta.dirname, '../../../bin/vacancy.mjs')
const input = resolve(values.input)
const duckdb = resolve(values.duckdb)
const SOURCE_COLUMNS = {
  properties: ['id', 'segment', 'area', 'kind', 'category', 'stars', 'lat', 'lon', 'amenities'],
  packages: ['id', 'room', 'night', 'free', 'price', 'features'],
} as const
const columnsOf = (kind: ImportFileKind) =>
  Object.fromEntries(IMPORT_COLUMNS[kind].map((name, at) => [name, SOURCE_COLUMNS[kind][at]]))
const tableOf = (kind: ImportFileKind, more: object) => ({ columns: columnsOf(kind), ...more })

const work = mkdtempSync(join(tmpdir(), 'vacancy-source-bench-'))
const postgres = await startPostgres()
try {
  const url = await postgres.createDatabase()
  copyFileSync(join(input, 'codecs.yml'), join(work, 'codecs.yml'))
  await fillPostgres(url)
  await writeFiles()
  const mappings: Record<string, object> = {
    postgres: {
      source: { kind: 'postgres', url: 'env:BENCH_URL' },
      properties: tableOf('properties', { table: 'properties' }),
      packages: tableOf('packages', { table: 'packages' }),
    },
    parquet: {
      source: { kind: 'parquet' },
      properties: tableOf('properties', { file: join(work, 'properties.parquet') }),
      packages: tableOf('packages', { file: join(work, 'packages.parquet') }),
    },
    'csv with semicolons': {
      source: { kind: 'csv', delimiter: ';' },
      properties: tableOf('properties', { file: join(work, 'properties.csv') }),
      packages: {
        columns: { ...columnsOf('packages'), Date: { column: 'night', date: 'DD.MM.YYYY' } },
        file: join(work, 'packages.csv'),
      },
    },
  }
  const seconds: Record<string, number[]> = {}
  const env = { ...process.env, BENCH_URL: url }
  const measure = (name: string, command: string, args: string[]) => {
    const out = ['--shard-id', 'bench', '--output-path', join(work, 'out'), '--overwrite']
    const start = performance.now()
    execFileSync(process.execPath, [VACANCY, command, ...args, ...out], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    seconds[name] = [...(seconds[name] ?? []), (performance.now() - start) / 1000]
  }
  for (let round = 0; round < Number(values.rounds); round++) {
    measure('csv', 'build-snapshot', ['--input-path', input])
    for (const [name, mapping] of Object.entries(mappings)) {
      // DuckDB is found from here.
      const file = join(duckdb, `bench-${process.pid}.json`)
      writeFileSync(file, JSON.stringify(mapping))
      measure(name, 'import-source', [file, '--codecs', join(work, 'codecs.yml')])
      rmSync(file)
    }
  }
  const best = Object.entries(seconds).map(([name, all]) => [`${name}, s`, Math.round(Math.min(...all) * 100) / 100])
  process.stdout.write(`${JSON.stringify(Object.fromEntries(best))}\n`)
} finally {
  await postgres.close()
  rmSync(work, { recursive: true })
}

async function fillPostgres(url: string): Promise<void> {
  const types = {
    properties: ['text', 'text', 'text', 'text', 'text', 'smallint', 'float8', 'float8', 'text'],
    packages: ['text', 'text', 'date', 'smallint', 'bigint', 'text'],
  }
  for (const kind of ['properties', 'packages'] as const) {
    const columns = SOURCE_COLUMNS[kind].map((name, at) => `${name} ${types[kind][at]}`).join(', ')
    const sql = `CREATE TABLE ${kind} (${columns}); \\copy ${kind} FROM '${join(input, `${kind}.csv`)}' (FORMAT csv, HEADER)`
    const statements = sql.split('; ').flatMap((each) => ['-c', each])
    execFileSync(join(postgres.programs, 'psql'), ['-q', ...statements, url], { stdio: 'inherit' })
  }
}

async function writeFiles(): Promise<void> {
  const { DuckDBInstance } = createRequire(join(duckdb, 'x.js'))('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  for (const kind of ['properties', 'packages'] as const) {
    const names = SOURCE_COLUMNS[kind].map((name) => `'${name}'`).join(', ')
    await connection.run(
      `CREATE TABLE ${kind} AS SELECT * FROM read_csv('${join(input, `${kind}.csv`)}', header = true, names = [${names}])`,
    )
    await connection.run(`COPY ${kind} TO '${join(work, `${kind}.parquet`)}' (FORMAT parquet)`)
  }
  const other = `SELECT * REPLACE (strftime(night, '%d.%m.%Y') AS night) FROM packages`
  await connection.run(`COPY properties TO '${join(work, 'properties.csv')}' (DELIMITER ';')`)
  await connection.run(`COPY (${other}) TO '${join(work, 'packages.csv')}' (DELIMITER ';')`)
  connection.closeSync()
  instance.closeSync()
}
