// Ends a program together with its starter. The starter passes a pipe and writes nothing into it. When the starter ends
// in any way, the system closes its side, and the program ends at once. npm passes no pipe: it is polled. Plain
// JavaScript: runs on Node 20, before anything is installed.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import path from 'node:path'
import { isMainThread } from 'node:worker_threads'

/** Environment variable with the file descriptor of the pipe. Also in shared/src/node/starter.ts. */
const STARTER_FD = 'VACANCY_STARTER_FD'
const USAGE_EXIT_CODE = 64
/** Polling interval, since the end of a parent without a pipe causes no event. */
const LOOK_MS = 100
const NPM = /^(npm|npx|pnpm|pnpx|yarn)(-cli)?([.]c?js)?$/

/** Options of `spawn` under which a program ends with this process, if it calls `endWithStarter`. */
export function endingWithUs(options) {
  const { stdio = 'pipe', env = process.env } = options
  const [input, output, errors] = typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio
  return { ...options, stdio: [input, output, errors, 'pipe'], env: { ...env, [STARTER_FD]: '3' } }
}

/** Ends this process with all threads immediately when its starter has ended. Without a starter's pipe it does nothing. */
export function endWithStarter() {
  const fd = process.env[STARTER_FD]
  // Child processes have their own pipes.
  delete process.env[STARTER_FD]
  if (fd === undefined || !isMainThread) return
  let line
  try {
    line = new Socket({ fd: Number(fd), readable: true, writable: false })
  } catch (error) {
    console.error(`vacancy: ${STARTER_FD}: "${fd}" is not an open pipe: ${error.message}`)
    process.exit(USAGE_EXIT_CODE)
  }
  line.on('error', endAtOnce).on('close', endAtOnce)
  line.resume()
  line.unref()
}

/** Like `kill -9`: no handler can delay it, and every acknowledged write is on disk. */
export function endAtOnce() {
  process.kill(process.pid, 'SIGKILL')
}

/**
 * Watches the npm (or npx) that started this process, directly or through its shell.
 *
 * @param onStop the shell has ended: npm forwards SIGTERM to it, but the shell does not forward it
 * @param onGone npm has ended
 */
export function watchNpm({ onStop, onGone }) {
  const parent = process.ppid
  const { npm, shell } = findNpm(parent)
  if (npm === undefined) return
  const timer = setInterval(() => {
    const hasParent = process.ppid === parent
    if (hasParent && (shell === undefined || isChildOf(shell, npm))) return
    clearInterval(timer)
    if (!hasParent && shell !== undefined) onStop()
    else onGone()
  }, LOOK_MS)
  timer.unref()
}

function findNpm(parent) {
  const above = lookAt(parent)
  if (above === undefined) return {}
  if (isNpm(above.words)) return { npm: parent }
  if (above.words[1] !== '-c') return {}
  return isNpm(lookAt(above.parent)?.words ?? []) ? { npm: above.parent, shell: parent } : {}
}

/** npm changes its process title; the first words are that title, or node and the file of npm. */
function isNpm(words) {
  return words.slice(0, 2).some((word) => NPM.test(path.basename(word)))
}

/** The parent and the command line of a process; undefined if unknown. */
function lookAt(pid) {
  if (process.platform === 'linux') {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/)
      return { parent: parentOf(pid), words }
    } catch {
      // It has just ended, or belongs to another user whose processes are hidden.
      return undefined
    }
  }
  const { stdout } = spawnSync('ps', ['-o', 'ppid=,command=', '-p', String(pid)], { encoding: 'utf8' })
  const [parent, ...words] = (stdout ?? '').trim().split(/\s+/)
  return parent ? { parent: Number(parent), words } : undefined
}

function isChildOf(pid, parent) {
  try {
    if (process.platform === 'linux') return parentOf(pid) === parent
    return process.kill(parent, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The name of a process is in parentheses and may contain any character. */
function parentOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}
