// Runs one program after another and passes on the signals that ask to stop.
// Plain JavaScript: runs on Node 20, before anything is installed.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { endAtOnce } from './starter.mjs'

/** One Ctrl-C reaches us from the terminal and again from npm. Those are one request to stop, not two. */
const SIGNAL_ECHO_MS = 500

let running
/** The running program is the first of a process group. */
let isGroup = false
let stopSignal = ''
let stopAskedAtMs = 0

/**
 * From now on SIGINT, SIGTERM and SIGHUP go to the running program; after a stop no further one starts.
 *
 * @param hangUpStops a closed terminal is a request to stop; else SIGHUP is one to read files again
 */
export function forwardSignals({ hangUpStops = false } = {}) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => forward(signal))
  process.on('SIGHUP', () => (hangUpStops ? forward('SIGTERM') : signalRunning('SIGHUP')))
}

/** True after a stop signal. */
export function stopAsked() {
  return stopSignal !== ''
}

/**
 * Runs a program to its end. One that a signal ended gives 128 plus the signal's number, as in a shell.
 *
 * @returns its exit code, and what it wrote to piped output
 */
export function run(node, args, options) {
  return new Promise((resolve) => {
    if (stopSignal !== '') {
      resolve({ code: 128 + constants.signals[stopSignal], output: '' })
      return
    }
    const child = spawn(node, args, options)
    running = child
    isGroup = options.detached === true
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('error', (error) => {
      running = undefined
      resolve({ code: 1, output: `${error.message}\n` })
    })
    child.on('close', (code, signal) => {
      running = undefined
      resolve({ code: signal === null ? (code ?? 1) : 128 + constants.signals[signal], output })
    })
  })
}

/** Forwards a stop signal. */
export function forward(signal) {
  const nowMs = performance.now()
  if (stopSignal !== '' && nowMs - stopAskedAtMs < SIGNAL_ECHO_MS) return
  stopAskedAtMs = nowMs
  stopSignal = signal
  signalRunning(signal)
}

/** Ends the running program and then this process, at once. */
export function endAll() {
  signalRunning('SIGKILL')
  endAtOnce()
}

/** A program with a process group of its own is signalled with all that it started. */
function signalRunning(signal) {
  if (running?.pid === undefined || running.exitCode !== null || running.signalCode !== null) return
  if (isGroup) process.kill(-running.pid, signal)
  else running.kill(signal)
}
