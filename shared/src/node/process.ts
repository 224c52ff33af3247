/**
 * The life cycle of a program: start, ready, drain, deadline, signals, exit code (docs/design/http.md#process-rules,
 * docs/design/storage.md#shutdown). The program provides start and stop. This module decides when they run, and what
 * happens if they fail.
 */

import { AssertionError } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { EXIT, errorRow, VacancyError } from '../errors.ts'
import type { Log } from './log.ts'

/** Time a program has to finish requests in flight (`--drain-secs`). */
const DRAIN_MS = 10_000
/**
 * One Ctrl-C may arrive twice: from the terminal, and forwarded by npm or a launcher. Two signals within this time
 * count as one.
 */
const SIGNAL_ECHO_MS = 500

/** The exit code of a program that ends with an error (docs/design/http.md#process-rules). */
export function exitCodeOf(error: unknown): number {
  if (error instanceof AssertionError) return EXIT.assertion
  if (error instanceof VacancyError) return errorRow(error.code).exit ?? EXIT.failure
  return EXIT.failure
}

/** The printed text of an error: the message of a VacancyError, all details of a bug. */
export function reportOf(error: unknown): string {
  if (error instanceof VacancyError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Why a program stops: its exit code, and a text for the log. */
type Stop = { readonly code: number; readonly reason: string }

type Life = {
  /** Requests a graceful shutdown. A second call has no effect. */
  stop(why: Stop): void
  /** Aborted when the shutdown begins: for code that waits or repeats. */
  readonly stopping: AbortSignal
}

export type Program = {
  /** Opens all resources. Resolves when the program serves. */
  readonly start: (life: Life) => Promise<void>
  /** Stops accepting, drains, flushes and closes. Called once, also after a failed start. */
  readonly stop: (why: Stop) => Promise<void>
  /** SIGHUP: reloads tokens and certificates. */
  readonly reload?: () => void | Promise<void>
}

/**
 * Runs a program to its end and exits.
 *
 * - SIGTERM and SIGINT shut it down gracefully; a second one, or the deadline, ends it immediately.
 * - An uncaught error ends it immediately with the exit code of the error: its state cannot be trusted.
 *
 * @returns when the program serves
 * @throws the error of a failed start, after stop was called
 */
export async function runProgram(
  program: Program,
  options: { readonly log: Log; readonly drainMs?: number },
): Promise<void> {
  const { log, drainMs = DRAIN_MS } = options
  const stopping = new AbortController()
  let stopRequestedAtMs = 0

  const end = (code: number): never => process.exit(code)
  const crash = (error: unknown): void => {
    log.error({ err: error, exitCode: exitCodeOf(error) }, 'uncaught error')
    end(exitCodeOf(error))
  }
  const stop = (why: Stop): void => {
    if (stopping.signal.aborted) return
    stopRequestedAtMs = performance.now()
    log.info({ reason: why.reason, exitCode: why.code }, 'stopping')
    stopping.abort()
    setTimeout(() => {
      log.error({ drainMs }, 'shutdown timed out, exiting immediately')
      end(why.code === EXIT.ok ? EXIT.failure : why.code)
    }, drainMs)
    program.stop(why).then(() => {
      log.info({ exitCode: why.code }, 'stopped')
      end(why.code)
    }, crash)
  }
  const onStopSignal = (signal: NodeJS.Signals): void => {
    if (!stopping.signal.aborted) return stop({ code: EXIT.ok, reason: signal })
    if (performance.now() - stopRequestedAtMs < SIGNAL_ECHO_MS) return
    log.warn({ signal }, 'second stop signal, exiting immediately')
    end(EXIT.failure)
  }
  const onReloadSignal = async (): Promise<void> => {
    try {
      await program.reload?.()
    } catch (error) {
      // An invalid file must not stop a process that runs with the previous one.
      log.error({ err: error }, 'reload failed, keeping the previous settings')
    }
  }

  process.on('SIGTERM', onStopSignal)
  process.on('SIGINT', onStopSignal)
  process.on('SIGHUP', onReloadSignal)
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)

  try {
    await program.start({ stop, stopping: stopping.signal })
  } catch (error) {
    // A stop during the start made it fail, and is already in progress.
    if (stopping.signal.aborted) return
    await closeAfterFailedStart(program, { log, drainMs, code: exitCodeOf(error) })
    throw error
  }
}

/** Whatever fails here, the reported error is that of the start. */
async function closeAfterFailedStart(
  program: Program,
  { log, drainMs, code }: { readonly log: Log; readonly drainMs: number; readonly code: number },
): Promise<void> {
  const deadline = Promise.withResolvers<void>()
  const timer = setTimeout(deadline.resolve, drainMs)
  try {
    await Promise.race([program.stop({ code, reason: 'the start failed' }), deadline.promise])
  } catch (error) {
    log.warn({ err: error }, 'cleanup after a failed start failed')
  } finally {
    clearTimeout(timer)
  }
}

type Reason = { readonly name: string; readonly message: string; readonly since: string }

export type Readiness = {
  /** Sets the named reason why the program is not ready. An empty text removes it. */
  set(name: string, message: string): void
  /** For `/ready`: whether it is ready, why not, and since when. */
  read(): { readonly ready: boolean; readonly since: string; readonly reasons: readonly Reason[] }
}

/** Reasons why a program is not ready, by name. It is ready without any. */
export function createReadiness(clock: Clock): Readiness {
  const reasons = new Map<string, Reason>()
  const now = (): string => new Date(clock.wallMs()).toISOString()
  let since = now()
  return {
    set(name, message) {
      const wasReady = reasons.size === 0
      const known = reasons.get(name)
      if (message === '') reasons.delete(name)
      else reasons.set(name, { name, message, since: known?.since ?? now() })
      if (wasReady !== (reasons.size === 0)) since = now()
    },
    read: () => ({ ready: reasons.size === 0, since, reasons: [...reasons.values()] }),
  }
}
