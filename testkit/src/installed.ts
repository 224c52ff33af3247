/** Servers of other projects: found on this machine, or installed with apt where that is possible. */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export type Wanted = {
  /** Programs that must be in one folder. */
  readonly programs: readonly string[]
  /** Folders besides those of PATH, with wildcards; the last match wins. */
  readonly folders?: string
  /** Debian package that contains them. */
  readonly aptPackage: string
}

/** @returns the folder of the programs; undefined when they are absent and cannot be installed */
export function findOrInstall(wanted: Wanted): string | undefined {
  const found = look(wanted)
  if (found !== undefined) return found
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) return undefined
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  spawnSync('apt-get', ['update'], options)
  spawnSync('apt-get', ['install', '-y', '--no-install-recommends', wanted.aptPackage], options)
  return look(wanted)
}

function look({ programs, folders }: Wanted): string | undefined {
  const packaged = folders === undefined ? [] : globSync(folders).sort().reverse()
  const all = [...packaged, ...(process.env['PATH'] ?? '').split(delimiter)]
  return all.find((folder) => programs.every((name) => existsSync(join(folder, name))))
}

/** The first of these users that exists, for a server that refuses to run as root; undefined when this is not root. */
export function unprivileged(names: readonly string[]): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of names) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }))
    if (uid?.status === 0 && gid?.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  }
  throw new Error(`This server cannot run as root, and none of these users exists: ${names.join(', ')}.`)
}
