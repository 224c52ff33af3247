/** A PostgreSQL server on a port of its own, with commits that are synced, as the user that it must run as. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { freePort } from '@vacancy/testkit/free-port'
import { findOrInstall, unprivileged } from '@vacancy/testkit/installed'
import pg from 'pg'
import { failure } from './failure.ts'
import { familySeconds } from './process-time.ts'
import { NotMeasured } from './verdict.ts'

export type PostgresServer = {
  readonly port: number
  /** Processor time so far. Each connection is a process, and counts. */
  readonly cpuSeconds: () => number
  readonly stop: () => Promise<void>
}

/** May do everything, without a password. */
export const POSTGRES_USER = 'vacancy'
const POLL_MS = 50

/**
 * @param dir an empty or absent folder, given to the user that the server runs as
 * @param settings beside the defaults, as `name=value`
 * @throws NotMeasured when it is not installed
 */
export async function startPostgresServer(dir: string, settings: readonly string[]): Promise<PostgresServer> {
  const bin = findOrInstall({
    programs: ['postgres', 'initdb'],
    folders: '/usr/lib/postgresql/*/bin',
    aptPackage: 'postgresql',
  })
  if (bin === undefined) throw new NotMeasured('PostgreSQL is not installed: postgres and initdb are on no path')
  const user = unprivileged(['postgres', 'nobody'])
  mkdirSync(dir, { recursive: true })
  if (user) chownSync(dir, user.uid, user.gid)
  const options = {
    cwd: dir,
    ...user,
    env: { PATH: [bin, '/usr/bin', '/bin'].join(delimiter), LC_ALL: 'C', HOME: dir },
  }
  const data = join(dir, 'data')
  const init = ['-D', data, '-U', POSTGRES_USER, '-A', 'trust', '-E', 'UTF8']
  execFileSync(join(bin, 'initdb'), init, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  const port = await freePort()
  const all = ['listen_addresses=127.0.0.1', `unix_socket_directories=${dir}`, ...settings]
  const args = ['-D', data, '-p', String(port), ...all.flatMap((one) => ['-c', one])]
  const server = spawn(join(bin, 'postgres'), args, { ...options, stdio: 'ignore' })
  const end = () => server.kill('SIGQUIT')
  process.once('exit', end)
  await untilItResponds(port, server)
  return {
    port,
    cpuSeconds: () => familySeconds(server.pid ?? 0),
    stop: async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGINT')
      await ended
      process.off('exit', end)
    },
  }
}

/** A connection to one of its databases; others are created in `postgres`. */
export async function connectTo(port: number, database = 'postgres'): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: POSTGRES_USER, database })
  await client.connect()
  return client
}

async function untilItResponds(port: number, server: ChildProcess): Promise<void> {
  for (;;) {
    if (server.exitCode !== null) throw failure(`postgres ended with exit code ${server.exitCode}`)
    try {
      const client = await connectTo(port)
      await client.end()
      return
    } catch {
      // It is starting.
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }
}
