/**
 * Thread entry: the only connection to the SQLite file. A commit waits for the disk (synchronous = FULL); on a thread
 * of its own it does not block the event loop. One statement at a time, in order of arrival.
 */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

export type DatabaseCall = { readonly id: number; readonly sql: string; readonly parameters: readonly unknown[] }
export type DatabaseReply =
  | { readonly id: number; readonly rows: readonly unknown[]; readonly changes?: bigint }
  | { readonly id: number; readonly error: { readonly message: string; readonly code: number } }

const { file } = workerData as { file: string }
// Only the owner may read the accounts. SQLite gives its other files the same mode.
if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600))
const database = new DatabaseSync(file)
database.exec(
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000',
)

parentPort?.on('message', (call: DatabaseCall | 'close') => {
  if (call === 'close') {
    database.close()
    parentPort?.close()
    return
  }
  parentPort?.postMessage(answer(call))
})

function answer({ id, sql, parameters }: DatabaseCall): DatabaseReply {
  try {
    const statement = database.prepare(sql)
    const values = parameters as SQLInputValue[]
    if (statement.columns().length > 0) return { id, rows: statement.all(...values) }
    return { id, rows: [], changes: BigInt(statement.run(...values).changes) }
  } catch (error) {
    // Reported to the caller; the thread continues with the next statement.
    const { message, errcode } = error as { message: string; errcode?: number }
    return { id, error: { message, code: errcode ?? 0 } }
  }
}
