/** A small Debian system in a folder, for tests of what is installed: without Node, but with libatomic, which Node needs. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { findOrInstall } from './installed.ts'

/** For `apt-get`: its sources of Debian, each with the name of its release. */
const SOURCES = ['indextargets', '--format', '$(REPO_URI) $(CODENAME)', 'Origin: Debian', 'Component: main']

/** The folder of the system, which tests must not change; made at the first use and kept in a cache folder. */
export function debianRoot(): string {
  const root = join(homedir(), '.cache', 'vacancy', 'debian')
  if (!existsSync(root)) makeRoot(root)
  return root
}

function makeRoot(root: string): void {
  const folder = findOrInstall({ programs: ['debootstrap'], folders: '/usr/sbin', aptPackage: 'debootstrap' })
  const sources = spawnSync('apt-get', SOURCES, { encoding: 'utf8' }).stdout ?? ''
  // Not that of updates.
  const [, mirror, codename] = /^(\S+) (\w+)$/m.exec(sources) ?? []
  if (folder === undefined || mirror === undefined || codename === undefined)
    throw new Error('These tests need root on Debian with debootstrap (apt-get install debootstrap).')
  mkdirSync(join(root, '..'), { recursive: true })
  const work = mkdtempSync(`${root}-`)
  try {
    const args = ['--variant=minbase', '--include=libatomic1', codename, work, mirror]
    const { status, stdout } = spawnSync(join(folder, 'debootstrap'), args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`debootstrap ${args.join(' ')} ended with ${status}:\n${stdout}`)
    chmodSync(work, 0o755)
    // Another test may have been faster: then its tree stays.
    if (!existsSync(root)) renameSync(work, root)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
