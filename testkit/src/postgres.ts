/**
 * A private PostgreSQL server for a test file: found on this machine, or installed if possible, started in a temporary
 * folder on a free port. Without one the tests fail with instructions.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { findOrInstall, unprivileged } from './installed.ts'

export type Postgres = {
  /** The folder of its programs, with psql. */
  readonly programs: string
  /** The folder that it may write to. */
  readonly folder: string
  /** Address of a new, empty database. */
  createDatabase(): Promise<string>
  stop(): Promise<void>
  /** Restarts it with the same data on the same port. */
  start(): Promise<void>
  close(): Promise<void>
}

const PASSWORD = 'a-password-that-must-not-leak'

type PostgresOptions = {
  /** Its certificate and key, PEM; connections without TLS are then refused. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Keeps what it promised when the machine fails; slower. */
  readonly isSynced?: boolean
  /** A program that starts another one, with its arguments, given the folder that the server may write to. */
  readonly through?: (folder: string) => readonly string[]
}

export async function startPostgres({ isSynced = false, tls, through }: PostgresOptions = {}): Promise<Postgres> {
  const bin = findPostgres()
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-postgres-'))
  const user = unprivileged(['postgres', 'nobody'])
  if (user) chownSync(folder, user.uid, user.gid)
  const options = {
    cwd: folder,
    ...user,
    env: { PATH: `${bin}${delimiter}${process.env['PATH']}`, LC_ALL: 'C', HOME: folder },
  }
  const data = join(folder, 'data')
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'vacancy', '-A', 'trust', '-E', 'UTF8', '--no-sync'], {
    ...options,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (tls !== undefined) {
    const hba = 'hostssl all all 127.0.0.1/32 trust\n'
    for (const [name, text] of Object.entries({ 'server.crt': tls.cert, 'server.key': tls.key, 'pg_hba.conf': hba })) {
      writeFileSync(join(data, name), text, { mode: 0o600 })
      if (user) chownSync(join(data, name), user.uid, user.gid)
    }
  }
  const port = await freePort()
  const mode = tls === undefined ? '' : '?sslmode=require&uselibpqcompat=true'
  const address = (database: string): string => `postgres://vacancy:${PASSWORD}@127.0.0.1:${port}/${database}${mode}`
  let server: ChildProcess | undefined
  let databases = 0

  const start = async (): Promise<void> => {
    const settings = [
      `fsync=${isSynced ? 'on' : 'off'}`,
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${folder}`,
      'max_connections=50',
      `ssl=${tls === undefined ? 'off' : 'on'}`,
    ]
    const own = [join(bin, 'postgres'), '-D', data, '-p', String(port), ...settings.flatMap((one) => ['-c', one])]
    const [program = '', ...args] = [...(through?.(folder) ?? []), ...own]
    server = spawn(program, args, { ...options, stdio: 'ignore' })
    await untilItAnswers(address('postgres'), server)
  }
  const stop = async (): Promise<void> => {
    const running = server
    if (running === undefined || running.exitCode !== null) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    // Immediate, like a machine failure.
    running.kill('SIGQUIT')
    await ended
  }
  await start()
  return {
    programs: bin,
    folder,
    async createDatabase() {
      databases += 1
      const name = `test_${databases}`
      await queryDatabase(address('postgres'), `create database ${name}`)
      return address(name)
    },
    stop,
    start,
    async close() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The folder of `postgres` and `initdb`. */
function findPostgres(): string {
  const folder = findOrInstall({
    programs: ['postgres', 'initdb', 'psql'],
    folders: '/usr/lib/postgresql/*/bin',
    aptPackage: 'postgresql',
  })
  if (folder !== undefined) return folder
  throw new Error(
    'These tests need a PostgreSQL server: install one (Debian: apt-get install postgresql; macOS: brew install postgresql) so that postgres and initdb are on the PATH or in /usr/lib/postgresql.',
  )
}

async function untilItAnswers(address: string, server: ChildProcess): Promise<void> {
  for (;;) {
    if (server.exitCode !== null) throw new Error(`postgres ended with exit code ${server.exitCode}`)
    try {
      await queryDatabase(address, 'select 1')
      return
    } catch {
      // It is starting.
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

export async function queryDatabase(address: string, sql: string): Promise<pg.QueryResult['rows']> {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
