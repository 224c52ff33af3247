/** Servers of other projects: found on this machine, or installed with apt where that is possible. */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
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

/**
 * Programs on the PATH, or from a Debian package that is unpacked into a cache folder, so that no service starts.
 *
 * @returns their files; undefined when they are absent and cannot be unpacked
 */
export function findOrUnpack(programs: readonly string[], aptPackage: string): readonly string[] | undefined {
  const cache = join(homedir(), '.cache', 'vacancy', aptPackage)
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), join(cache, 'usr', 'bin')]
  const find = () => folders.find((folder) => programs.every((name) => existsSync(join(folder, name))))
  if (find() === undefined) unpack(aptPackage, cache)
  const folder = find()
  return folder === undefined ? undefined : programs.map((name) => join(folder, name))
}

function unpack(name: string, into: string): void {
  mkdirSync(join(into, '..'), { recursive: true })
  const work = mkdtempSync(`${into}-`)
  try {
    if (!download(name, work)) {
      // The lists of packages may be missing or old.
      spawnSync('apt-get', ['update'])
      if (!download(name, work)) return
    }
    const [file] = readdirSync(work).filter((each) => each.endsWith('.deb'))
    const tree = join(work, 'tree')
    if (file === undefined || spawnSync('dpkg', ['-x', join(work, file), tree]).status !== 0) return
    // Another test may have been faster: then its tree stays.
    if (!existsSync(into)) renameSync(tree, into)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function download(name: string, cwd: string): boolean {
  return spawnSync('apt-get', ['download', name], { cwd }).status === 0
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
