/** Another commit of this repository, as a clone of its own with its packages and its build. */

import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const OUTPUT_CHARS = 500
const OURS = '@vacancy'

/** The full name of a commit; undefined when the history of this clone lacks it. */
export function commitNamed(name: string): string | undefined {
  const args = ['rev-parse', '--verify', '--quiet', `${name}^{commit}`]
  const { status, stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

/**
 * Makes a folder a clone at another commit, with what `npm start` builds before it starts anything.
 *
 * @param workspaces to build, and with those that they need all that is used; default: all
 * @throws Error when the history of this clone lacks it, or a command fails
 */
export async function makeClone(name: string, folder: string, workspaces: readonly string[] = []): Promise<void> {
  const commit = commitNamed(name)
  if (commit === undefined)
    throw new Error(`The history of this clone lacks commit ${name}. Fetch it, for example with git fetch --unshallow.`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  // Tests run with options of their own, which are not those of a build.
  const { VITEST: _, NODE_OPTIONS: __, ...env } = process.env
  const run = async (program: string, ...args: string[]) => {
    try {
      await promisify(execFile)(program, args, { cwd: folder, env })
    } catch (error) {
      const output = String((error as { stderr?: unknown }).stderr ?? '').trim()
      throw new Error(`${program} ${args[0]} failed: ${output.slice(-OUTPUT_CHARS)}`, { cause: error })
    }
  }
  await run('git', 'clone', '--quiet', '--shared', '--no-checkout', ROOT, '.')
  await run('git', 'checkout', '--quiet', '--detach', commit)
  if (!linkPackages(folder, workspaces)) await run('npm', 'ci', '--no-audit', '--no-fund')
  if (!existsSync(join(folder, 'turbo.json'))) return
  const filters = workspaces.map((workspace) => `--filter=${OURS}/${workspace}`)
  const build = ['run', 'build', '--ui=stream', '--output-logs=errors-only', ...filters]
  await run(process.execPath, 'node_modules/turbo/bin/turbo', ...build)
}

type Manifest = { readonly version: string; readonly dependencies?: { readonly [name: string]: string } }

/** Gives a clone the packages of this one. @returns false, without workspaces or when these need other versions */
function linkPackages(folder: string, workspaces: readonly string[]): boolean {
  const manifestOf = (...place: string[]) =>
    JSON.parse(readFileSync(join(...place, 'package.json'), 'utf8')) as Manifest
  const packages = join(ROOT, 'node_modules')
  const needed = workspaces.flatMap((workspace) => Object.entries(manifestOf(folder, workspace).dependencies ?? {}))
  const isHere = ([name, version]: [string, string]) =>
    name.startsWith(`${OURS}/`) || (existsSync(join(packages, name)) && manifestOf(packages, name).version === version)
  if (workspaces.length === 0 || !needed.every(isHere)) return false
  mkdirSync(join(folder, 'node_modules', OURS), { recursive: true })
  for (const name of readdirSync(packages)) {
    if (name !== OURS && !name.startsWith('.')) symlinkSync(join(packages, name), join(folder, 'node_modules', name))
  }
  for (const workspace of workspaces)
    symlinkSync(join(folder, workspace), join(folder, 'node_modules', OURS, workspace))
  return true
}
