/**
 * Rows of PostgreSQL: COPY writes CSV on the server, and its bytes go to the file unread. Both tables are read in one
 * read-only transaction, that is as they were at one moment.
 */

import { closeSync, openSync, writeSync } from 'node:fs'
import { VacancyError } from '@vacancy/shared'
import { postgresUrl, secretAt, tlsFault } from '@vacancy/shared/node'
import pg from 'pg'
import { diskFailed } from '../env.ts'
import { type ServerSource, type TableMapping, urlFault } from './mapping.ts'
import { quotedName, ROWS } from './select.ts'
import { NONE_REJECTED, type OpenSource } from './source.ts'

const CONNECT_MS = 30_000
const WRITE_BYTES = 1 << 20
/** Of the classes of SQLSTATE: data that a query cannot convert, and queries that are wrong or not allowed. */
const OF_QUERY = /^(?:22|42|0A|3F)/

export async function openPostgres(source: ServerSource): Promise<OpenSource> {
  const client = new pg.Client({
    connectionString: addressOf(source),
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'vacancy import-source',
  })
  let lost: Error | undefined
  client.on('error', (error) => {
    lost = error
  })
  const run = async (sql: string, values: unknown[] = []) => {
    try {
      return await client.query({ text: sql, values, rowMode: 'array' as const })
    } catch (error) {
      throw failureOf(lost ?? error)
    }
  }
  try {
    await client.connect()
  } catch (error) {
    throw failureOf(error)
  }
  for (const sql of [
    'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL timezone = 'UTC'",
    'SET LOCAL standard_conforming_strings = on',
  ])
    await run(sql)
  return {
    async describe(table) {
      const { fields } = await run(`SELECT * FROM ${relationOf(table)} AS ${ROWS} LIMIT 0`)
      const oids = [...new Set(fields.map(({ dataTypeID }) => dataTypeID))]
      const { rows } = await run('SELECT oid::int8, format_type(oid, NULL) FROM pg_type WHERE oid = ANY($1::oid[])', [
        oids,
      ])
      const types = new Map(rows.map(([oid, type]) => [Number(oid), String(type)]))
      return fields.map(({ name, dataTypeID }) => ({ name, type: types.get(dataTypeID) ?? 'text' }))
    },
    async write(table, select, path, rowsMax) {
      const limit = rowsMax === undefined ? '' : ` LIMIT ${rowsMax}`
      const query = `SELECT ${select} FROM ${relationOf(table)} AS ${ROWS}${limit}`
      try {
        const rows = await copyTo(client, `COPY (${query}) TO STDOUT (FORMAT csv, HEADER, ENCODING 'UTF8')`, path)
        return { rows, rejected: NONE_REJECTED }
      } catch (error) {
        throw failureOf(lost ?? error)
      }
    },
    async close() {
      await client.end()
    },
  }
}

function addressOf({ kind, url, password }: ServerSource): string {
  const address = secretAt(url)
  const fault = urlFault(kind, address, address !== url) ?? tlsFault(address, { pgSslmode: '', pgSslrootcert: '' })
  if (fault !== undefined) throw new VacancyError('usage_error', { reason: `the address of the source ${fault}` })
  const parsed = new URL(address)
  if (password !== '') parsed.password = encodeURIComponent(secretAt(password))
  return postgresUrl(parsed.href)
}

function relationOf({ table, sql }: TableMapping): string {
  if (table !== undefined) return table.split('.').map(quotedName).join('.')
  return `(${sql}\n)`
}

/** An error of the server or the connection, as far as a person can act on it. */
function failureOf(error: unknown): unknown {
  if (error instanceof VacancyError || !(error instanceof Error)) return error
  const { code = '', hint } = error as Error & { code?: string; hint?: string }
  const reason = `PostgreSQL: ${error.message === '' ? code : error.message}${hint === undefined ? '' : ` (${hint})`}`
  return new VacancyError(OF_QUERY.test(code) ? 'usage_error' : 'failure', { reason }, { cause: error })
}

/** @returns the number of rows */
async function copyTo(client: pg.Client, sql: string, path: string): Promise<number> {
  const file = openSync(path, 'w')
  const buffer = new Uint8Array(WRITE_BYTES)
  let used = 0
  const write = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
  }
  const flush = () => {
    write(buffer.subarray(0, used))
    used = 0
  }
  /** The driver uses the bytes of a message again: they are copied or written at once, while the server waits. */
  const add = (chunk: Uint8Array) => {
    if (used + chunk.length > buffer.length) flush()
    if (chunk.length > buffer.length) return write(chunk)
    buffer.set(chunk, used)
    used += chunk.length
  }
  let failure: unknown
  const attempt = (step: () => void) => {
    try {
      step()
    } catch (error) {
      failure = diskFailed('write', path, error)
      // What the server still sends is not read.
      void client.end()
    }
  }
  try {
    return await new Promise((resolve, reject) => {
      const query = Object.assign(new pg.Query(sql), {
        callback: (error: Error | null, result?: pg.QueryResult) => {
          if (error === null && failure === undefined) attempt(flush)
          if (failure === undefined && error === null) resolve(result?.rowCount ?? 0)
          else reject(failure ?? error)
        },
        handleCopyData: ({ chunk }: { chunk: Uint8Array }) => {
          if (failure === undefined) attempt(() => add(chunk))
        },
      })
      client.query(query)
    })
  } finally {
    closeSync(file)
  }
}
