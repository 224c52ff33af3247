// Runs programs and forwards stop signals. Plain JavaScript: runs on Node 20, before anything is
// installed.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { endAtOnce } from './starter.mjs'

/** One Ctrl-C arrives from the terminal and again from npm. These count as one stop request. */
const SIGNAL_ECHO_MS = 500

/** The running programs: whether one is the first of a process group, and how long it has to end by itself. */
const running = new Map()
let stopSignal = ''
let stopRequestedAtMs = 0

/**
 * From now on SIGINT, SIGTERM and SIGHUP are forwarded to the running programs; after a stop signal no further one
 * starts.
 *
 * @param hangUpStops SIGHUP from a closed terminal is a stop request; otherwise SIGHUP reloads files
 */
export function forwardSignals({ hangUpStops = false } = {}) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => forward(signal))
  process.on('SIGHUP', () => (hangUpStops ? forward('SIGTERM') : signalRunning('SIGHUP')))
}

/** True after a stop signal. */
export function stopRequested() {
  return stopSignal !== ''
}

/**
 * Runs a program to its end. `graceMs`: after a stop signal it is killed when it has not ended by itself. After a signal, the exit code is 128 plus the signal number, as in a shell.
 *
 * @returns its exit code, and its piped output
 */
export function run(node, args, options) {
  return new Promise((resolve) => {
    if (stopSignal !== '') {
      resolve({ code: 128 + constants.signals[stopSignal], output: '' })
      return
    }
    const child = spawn(node, args, options)
    running.set(child, { isGroup: options.detached === true, graceMs: options.graceMs })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('error', (error) => {
      running.delete(child)
      resolve({ code: 1, output: `${error.message}\n` })
    })
    child.on('close', (code, signal) => {
      running.delete(child)
      const wasCut = options?.graceMs !== undefined && stopSignal !== '' && signal === 'SIGKILL'
      const endedBy = wasCut ? stopSignal : signal
      resolve({ code: endedBy === null ? (code ?? 1) : 128 + constants.signals[endedBy], output })
    })
  })
}

/** Forwards a stop signal. */
export function forward(signal) {
  const nowMs = performance.now()
  if (stopSignal !== '' && nowMs - stopRequestedAtMs < SIGNAL_ECHO_MS) return
  stopRequestedAtMs = nowMs
  stopSignal = signal
  signalRunning(signal)
  for (const [child, { isGroup, graceMs }] of running) {
    if (graceMs !== undefined) setTimeout(() => signalOne(child, isGroup, 'SIGKILL'), graceMs).unref()
  }
}

/** Ends the running programs and then this process, immediately. */
export function endAll() {
  signalRunning('SIGKILL')
  endAtOnce()
}

/** For a program with its own process group, the signal goes to the whole group. */
function signalRunning(signal) {
  for (const [child, { isGroup }] of running) signalOne(child, isGroup, signal)
}

function signalOne(child, isGroup, signal) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  if (isGroup) process.kill(-child.pid, signal)
  else child.kill(signal)
}
