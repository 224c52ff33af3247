/** A private MariaDB server for a test file, which speaks the protocol of MySQL: found on this machine or installed. */

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { findOrInstall, unprivileged } from './installed.ts'

export type MariaDb = {
  readonly port: number
  readonly user: string
  readonly password: string
  /** Runs statements as the administrator. */
  run(sql: string): void
  close(): Promise<void>
}

const PASSWORD = 'a-password-of-mariadb'

export async function startMariaDb(): Promise<MariaDb> {
  const [server, client, install] = [find('mariadbd'), find('mariadb'), find('mariadb-install-db')]
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-mariadb-'))
  const user = unprivileged(['mysql', 'nobody'])
  if (user) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const socket = join(folder, 'socket')
  execFileSync(install, ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal'], {
    ...user,
    stdio: 'ignore',
  })
  const port = await freePort()
  const args = [
    ...['--no-defaults', `--datadir=${data}`, `--socket=${socket}`, `--pid-file=${join(folder, 'pid')}`],
    ...['--bind-address=127.0.0.1', `--port=${port}`, '--character-set-server=utf8mb4'],
  ]
  const running = spawn(server, args, { ...user, stdio: 'ignore' })
  const run = (sql: string) => {
    execFileSync(client, ['--no-defaults', '-u', 'root', '-S', socket, '--default-character-set=utf8mb4'], {
      input: sql,
    })
  }
  await untilItAnswers(running, client, socket)
  run(`CREATE USER 'reader'@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'; GRANT SELECT ON *.* TO 'reader'@'127.0.0.1';`)
  return {
    ...{ port, user: 'reader', password: PASSWORD, run },
    async close() {
      const ended = new Promise((resolve) => running.once('exit', resolve))
      running.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function find(program: string): string {
  const folder = findOrInstall({ programs: [program], folders: '/usr/{bin,sbin}', aptPackage: 'mariadb-server' })
  if (folder !== undefined) return join(folder, program)
  throw new Error('These tests need a MariaDB server: install one (Debian: apt-get install mariadb-server).')
}

async function untilItAnswers(server: ChildProcess, client: string, socket: string): Promise<void> {
  for (;;) {
    if (server.exitCode !== null) throw new Error(`mariadbd ended with ${server.exitCode}`)
    if (spawnSync(client, ['--no-defaults', '-u', 'root', '-S', socket, '-e', 'SELECT 1']).status === 0) return
    await pause(100)
  }
}
