// Runs `npm ci` when the installed packages differ from the lockfile.
// Plain JavaScript: runs on Node 20, before anything is installed.
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { run } from './program.mjs'

const LOCK_LOOK_MS = 200
/** How long an install has to end after a stop signal. */
const STOP_MS = 1_000

/**
 * The first difference between the installed packages and package-lock.json; '' without one.
 *
 * Compared by content against the lockfile npm leaves in node_modules: a checkout gives files new
 * times without changing them, and npm writes that file only after an installation went through.
 */
export function installFault(root) {
  const wanted = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages
  let installed
  try {
    installed = JSON.parse(readFileSync(path.join(root, 'node_modules/.package-lock.json'), 'utf8')).packages
  } catch {
    return 'nothing is installed yet'
  }
  for (const [place, entry] of Object.entries(wanted)) {
    if (place === '' || isWorkspace(place)) continue
    const found = installed[place]
    // Packages of other platforms are optional and not installed.
    if (found === undefined && entry.optional) continue
    if (found === undefined) return `${place} is missing`
    if (found.version !== entry.version || found.integrity !== entry.integrity) return `${place} has another version`
  }
  const extra = Object.keys(installed).find((place) => !isWorkspace(place) && wanted[place] === undefined)
  return extra === undefined ? '' : `${extra} is no longer used`
}

function isWorkspace(place) {
  return !place.startsWith('node_modules/')
}

/** Installs if needed. Concurrent commands install once. Resolves to an exit code. */
export async function ensureInstalled(root, say) {
  if (installFault(root) === '') return 0
  const unlock = await lock(path.join(root, '.vacancy/install.lock'), say)
  try {
    const fault = installFault(root)
    if (fault === '') return 0
    say(`installing packages (${fault}); 1.1 GB, about a minute …`)
    return await npmCi(root)
  } finally {
    unlock()
  }
}

async function npmCi(root) {
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  // Under `npm start` the same npm continues; its path is a JavaScript file.
  // npm takes back what it did before it ends, which can take as long; the next command installs again anyway.
  const isWindows = process.platform === 'win32'
  const options = { cwd: root, stdio: ['ignore', 2, 2], detached: !isWindows, graceMs: STOP_MS }
  const { code, output } = npm?.endsWith('.js')
    ? await run(process.execPath, [npm, ...args], options)
    : await run('npm', args, { ...options, shell: isWindows })
  if (output !== '') console.error(`vacancy: npm could not be started: ${output.trim()}`)
  return code
}

/** Acquires a lock file with the id of its owner; waits while the owner is running, and takes over from a dead one. */
async function lock(file, say) {
  mkdirSync(path.dirname(file), { recursive: true })
  const own = `${file}.${process.pid}`
  // Linked into place with its content, so that readers never see a lock without an owner.
  writeFileSync(own, String(process.pid))
  try {
    for (let announced = false; ; announced = true) {
      try {
        linkSync(own, file)
        return () => rmSync(file, { force: true })
      } catch (error) {
        if (error.code !== 'EEXIST') throw error
      }
      const owner = readOwner(file)
      if (owner !== undefined && !isAlive(owner)) rmSync(file, { force: true })
      else if (!announced) say(`process ${owner ?? '?'} is installing packages, waiting for it (${file}) …`)
      await wait(LOCK_LOOK_MS)
    }
  } finally {
    rmSync(own, { force: true })
  }
}

/** The owner's process id; undefined when the lock was just released. */
function readOwner(file) {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10)
  } catch {
    return undefined
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}
