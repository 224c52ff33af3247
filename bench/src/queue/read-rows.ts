/**
 * Reads every row of a SQLite queue, with its pack files, and drops it: what a start of the queue is measured against.
 * Prints how many jobs.
 */
import { openSync, readSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'

const PAGE_ROWS = 2_000
const PAGE_PACKS = 20

/** The content of a pack, see queue/src/sqlite-packs.ts. */
const HEAD_BYTES = 4
const JOB_BYTES = 32
const LENGTH_AT = 24
const ID_LENGTH_AT = 28

const path = process.argv[2] ?? ''
const database = new DatabaseSync(path)
const ofTable = (table: 'jobs' | 'packs' | 'filed_packs') =>
  database.prepare(`SELECT * FROM ${table} WHERE seq > ? ORDER BY seq LIMIT ?`)

function* pagesOf(statement: StatementSync, rows: number) {
  for (let after = 0, isLast = false; !isLast; ) {
    const read = statement.all(after, rows)
    yield read
    after = Number(read.at(-1)?.['seq'])
    isLast = read.length < rows
  }
}

/** As many values as jobs in rows of their own would be. */
function unpacked(data: Uint8Array, count: number): { readonly id: string; readonly payload: Uint8Array }[] {
  const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  const idsAt = HEAD_BYTES + count * JOB_BYTES
  let payloadAt = idsAt + buffer.readInt32LE(0)
  const ids = buffer.toString('utf8', idsAt, payloadAt)
  let idAt = 0
  return Array.from({ length: count }, (_, n) => {
    const at = HEAD_BYTES + n * JOB_BYTES
    const bytes = Math.max(0, buffer.readInt32LE(at + LENGTH_AT))
    const payload = data.slice(payloadAt, payloadAt + bytes)
    payloadAt += bytes
    const from = idAt
    idAt += buffer.readInt32LE(at + ID_LENGTH_AT)
    return { id: ids.slice(from, idAt), payload }
  })
}

const id = Number(database.prepare('PRAGMA user_version').get()?.['user_version']).toString(16).padStart(8, '0')
const files = new Map<number, number>()

function readFiled(file: number, at: number, bytes: number): Uint8Array {
  let handle = files.get(file)
  if (handle === undefined) {
    handle = openSync(`${path}-packs-${id}-${file}`, 'r')
    files.set(file, handle)
  }
  const data = new Uint8Array(bytes)
  readSync(handle, data, 0, bytes, at)
  return data
}

let jobs = 0
for (const rows of pagesOf(ofTable('jobs'), PAGE_ROWS)) jobs += rows.length
for (const packs of pagesOf(ofTable('packs'), PAGE_PACKS))
  for (const { data, count } of packs) jobs += unpacked(data as Uint8Array, Number(count)).length
for (const packs of pagesOf(ofTable('filed_packs'), PAGE_PACKS))
  for (const { file, at, bytes, count } of packs)
    jobs += unpacked(readFiled(Number(file), Number(at), Number(bytes)), Number(count)).length
database.close()
process.stdout.write(`${jobs}\n`)
