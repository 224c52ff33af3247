/**
 * Rows of CSV and Parquet files, of databases of DuckDB and of MySQL, through DuckDB: a package of 70 MB, which is
 * installed by those who use it and therefore loaded from where the mapping file is, or from beside the program.
 */

import { closeSync, globSync, openSync, readSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { VacancyError } from '@vacancy/shared'
import { secretAt } from '@vacancy/shared/node'
import { diskFailed } from '../env.ts'
import { type CsvSource, type ServerSource, type Source, type TableMapping, urlFault } from './mapping.ts'
import { quotedName, quotedText, ROWS } from './select.ts'
import { NONE_REJECTED, type OpenSource, type Written } from './source.ts'

const PACKAGE = '@duckdb/node-api'
/** The version that the tests use. */
const VERSION = '1.5.5-r.5'
const MEMORY_LIMIT = '2GB'
const REJECTED_SHOWN = 20
const FILES_MAX = 100_000
const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const DECODE_BYTES = 1 << 20

// What is used of the package; it is not here when types are checked.
type Reader = { getRows(): unknown[][] }
type Connection = { runAndReadAll(sql: string): Promise<Reader>; interrupt(): void; closeSync(): void }
type Instance = { connect(): Promise<Connection>; closeSync(): void }
type DuckDb = { DuckDBInstance: { create(path: string, options?: Record<string, string>): Promise<Instance> } }

export type DuckDbOptions = {
  /** Of the mapping file. */
  readonly folder: string
  /** For files that are decoded, and what a query spills. */
  readonly workFolder: string
  readonly threads: number
}

export async function openDuckDb(
  source: Exclude<Source, { kind: 'postgres' }>,
  options: DuckDbOptions,
): Promise<OpenSource> {
  const { DuckDBInstance } = loadDuckDb(options.folder)
  const instance = await DuckDBInstance.create(':memory:', {
    threads: String(options.threads),
    memory_limit: MEMORY_LIMIT,
    temp_directory: join(options.workFolder, 'spilled'),
    // Nothing is downloaded because of what a query says.
    autoinstall_known_extensions: 'false',
  })
  const connection = await instance.connect()
  // Before what ends the process, which would otherwise wait for the end of the query.
  const interrupt = () => connection.interrupt()
  for (const signal of SIGNALS) process.prependListener(signal, interrupt)
  const secrets: string[] = []
  const ask = async (sql: string) => {
    try {
      return (await connection.runAndReadAll(sql)).getRows()
    } catch (error) {
      throw failureOf(error, secrets, options.workFolder)
    }
  }
  if (source.kind === 'duckdb') await ask(`ATTACH ${quotedText(source.file)} AS attached (READ_ONLY)`)
  if (source.kind === 'mysql') await attachMySql(source, ask, secrets)
  if (source.kind === 'duckdb' || source.kind === 'mysql') await ask('USE attached')
  /** What a table reads; files are decoded once. */
  const relations = new Map<TableMapping, string>()
  const relationOf = (table: TableMapping) => {
    const relation = relations.get(table) ?? relationFor(table, options)
    relations.set(table, relation)
    return relation
  }
  let lastScan = -1
  return {
    async describe(table) {
      const rows = await ask(`DESCRIBE SELECT * FROM ${relationOf(table)}`)
      return rows.map(([name, type]) => ({ name: String(name), type: String(type) }))
    },
    async write(table, select, path, rowsMax) {
      const limit = rowsMax === undefined ? '' : ` LIMIT ${rowsMax}`
      const query = `SELECT ${select} FROM ${relationOf(table)} AS ${ROWS}${limit}`
      const to = `${quotedText(path)} (FORMAT csv, HEADER true, DELIMITER ',', QUOTE '"', ESCAPE '"')`
      const [[rows] = [0]] = await ask(`COPY (${query}) TO ${to}`)
      if (table.source.kind !== 'csv') return { rows: Number(rows), rejected: NONE_REJECTED }
      const found = await rejectedIn(ask, lastScan)
      lastScan = found.lastScan
      return { rows: Number(rows), rejected: found.rejected }
    },
    async close() {
      for (const signal of SIGNALS) process.off(signal, interrupt)
      connection.closeSync()
      instance.closeSync()
    },
  }
}

/** @throws VacancyError usage_error with the command that installs it */
function loadDuckDb(folder: string): DuckDb {
  for (const from of [join(folder, 'mapping.json'), import.meta.filename]) {
    const require = createRequire(pathToFileURL(from))
    try {
      require.resolve(PACKAGE)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') continue
      throw error
    }
    try {
      return require(PACKAGE) as DuckDb
    } catch (cause) {
      const reason = `${PACKAGE} is installed but does not start: ${(cause as Error).message}`
      throw new VacancyError('usage_error', { reason }, { cause })
    }
  }
  const command = `npm install --no-save --prefix ${JSON.stringify(folder)} ${PACKAGE}@${VERSION}`
  throw new VacancyError('usage_error', {
    reason: `this source is read through DuckDB, which is not installed. Install it beside the mapping file, then try again:\n${command}`,
  })
}

type Ask = (sql: string) => Promise<unknown[][]>

async function attachMySql(source: ServerSource, ask: Ask, secrets: string[]): Promise<void> {
  const address = secretAt(source.url)
  const fault = urlFault('mysql', address, address !== source.url)
  if (fault !== undefined) throw new VacancyError('usage_error', { reason: `the address of the source ${fault}` })
  const url = new URL(address)
  const password = source.password === '' ? decodeURIComponent(url.password) : secretAt(source.password)
  if (password !== '') secrets.push(password, quotedText(password))
  if (source.extension === '') await installMySql(ask)
  else await ask(`LOAD ${quotedText(source.extension)}`)
  const settings = {
    host: url.hostname,
    port: url.port || '3306',
    database: decodeURIComponent(url.pathname.slice(1)),
    user: decodeURIComponent(url.username),
    password,
  }
  const rows = Object.entries(settings).map(([key, value]) => `${key} ${quotedText(value)}`)
  await ask(`CREATE SECRET server (TYPE mysql, ${rows.join(', ')})`)
  await ask(`ATTACH '' AS attached (TYPE mysql, SECRET server, READ_ONLY)`)
}

async function installMySql(ask: Ask): Promise<void> {
  try {
    await ask('INSTALL mysql')
    await ask('LOAD mysql')
  } catch (cause) {
    throw new VacancyError(
      'usage_error',
      {
        reason: `the extension of DuckDB for MySQL cannot be installed. Download mysql_scanner.duckdb_extension for its version and name the file as "extension" of the source. ${(cause as Error).message}`,
      },
      { cause },
    )
  }
}

function relationFor(table: TableMapping, options: DuckDbOptions): string {
  const files = table.file === undefined ? undefined : scanOf(table, options)
  const named = files ?? (table.table ?? '').split('.').map(quotedName).join('.')
  if (table.sql === undefined) return named
  const source = files === undefined ? '' : `WITH source AS (SELECT * FROM ${files}) `
  return `(${source}SELECT * FROM (${table.sql}\n))`
}

function scanOf({ source, file = '', label }: TableMapping, options: DuckDbOptions): string {
  const files = globSync(file).sort()
  if (files.length === 0) throw new VacancyError('usage_error', { reason: `no file matches ${label} (${file})` })
  if (files.length > FILES_MAX)
    throw new VacancyError('usage_error', { reason: `${label} matches more than ${FILES_MAX} files` })
  const list = (paths: readonly string[]) => `[${paths.map(quotedText).join(', ')}]`
  if (source.kind !== 'csv') return `read_parquet(${list(files)})`
  const decoded = source.encoding === 'utf-8' ? files : files.map((each, at) => decodedCopy(each, source, options, at))
  const settings = {
    delim: quotedText(source.delimiter),
    quote: quotedText(source.quote),
    escape: quotedText(source.quote),
    header: String(source.header),
    // Nothing is guessed but the names and the number of the columns.
    skip: '0',
    comment: "''",
    all_varchar: 'true',
    strict_mode: 'true',
    store_rejects: 'true',
  }
  return `read_csv(${[list(decoded), ...Object.entries(settings).map(([key, value]) => `${key} = ${value}`)].join(', ')})`
}

/** The file in UTF-8. @throws VacancyError data_conflict at bytes that its encoding does not have */
function decodedCopy(file: string, { encoding }: CsvSource, { workFolder }: DuckDbOptions, number: number): string {
  const copy = join(workFolder, `${number}-${basename(file)}`)
  const decoder = new TextDecoder(encoding, { fatal: true })
  const [from, to] = [openSync(file, 'r'), openSync(copy, 'w')]
  const piece = new Uint8Array(DECODE_BYTES)
  let read = 0
  try {
    for (;;) {
      const count = readSync(from, piece)
      const text = Buffer.from(decoder.decode(piece.subarray(0, count), { stream: count > 0 }))
      write(to, copy, text)
      if (count === 0) return copy
      read += count
    }
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause
    const reason = `${file} is not ${encoding}: its bytes around ${read} are invalid`
    throw new VacancyError('data_conflict', { reason }, { cause })
  } finally {
    closeSync(from)
    closeSync(to)
  }
}

function write(file: number, path: string, bytes: Uint8Array): void {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
  } catch (error) {
    throw diskFailed('write', path, error)
  }
}

/** Lines that are no rows, with too few or too many cells or broken quotes, in scans after `lastScan`. */
async function rejectedIn(
  ask: Ask,
  lastScan: number,
): Promise<{ readonly rejected: Written['rejected']; readonly lastScan: number }> {
  const isNew = `scan_id > ${lastScan}`
  const [[count, last] = []] = await ask(`SELECT count(*), max(scan_id) FROM reject_errors WHERE ${isNew}`)
  if (!count || Number(count) === 0) return { rejected: NONE_REJECTED, lastScan }
  const rows = await ask(
    `SELECT s.file_path, e.line, e.error_message, e.csv_line FROM reject_errors e JOIN reject_scans s USING (scan_id, file_id) WHERE ${isNew} ORDER BY s.file_path, e.line LIMIT ${REJECTED_SHOWN}`,
  )
  const first = rows.map(([file, line, reason, text]) => ({
    ...{ file: basename(String(file)), line: Number(line), reason: String(reason), text: String(text ?? '') },
  }))
  return { rejected: { count: Number(count), first }, lastScan: Number(last) }
}

/** An error of DuckDB in its first lines, without secrets. */
function failureOf(error: unknown, secrets: readonly string[], workFolder: string): VacancyError {
  const message = error instanceof Error ? error.message : String(error)
  const shown = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), message)
  const reason = `DuckDB: ${shown.slice(0, 2000).trim()}`
  if (/No space left|Could not write/i.test(shown))
    return new VacancyError('disk_failed', { operation: 'write', file: workFolder, reason })
  return new VacancyError('usage_error', { reason })
}
