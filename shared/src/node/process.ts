/**
 * The life of a program: start, ready, drain, deadline, signals, exit code (platform.md §9, consensus.md §18). The
 * program says how to start and how to stop; when, and what happens if it does not, is decided here.
 */

import { AssertionError } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { EXIT, errorRow, VacancyError } from '../errors.ts'
import type { Log } from './log.ts'

/** Time a program has to finish what is in flight (`--drain-secs`). */
export const DRAIN_MS = 10_000
/**
 * One Ctrl-C may arrive twice: from the terminal, and passed on by npm or a launcher. Within this time it is one.
 */
export const SIGNAL_ECHO_MS = 500

/** The exit code of a program that ends with an error (platform.md §9). */
export function exitCodeOf(error: unknown): number {
  if (error instanceof AssertionError) return EXIT.assertion
  if (error instanceof VacancyError) return errorRow(error.code).exit ?? EXIT.failure
  return EXIT.failure
}

/** What to print about an error: its sentence when it is one of ours, everything it knows when it is a bug. */
export function reportOf(error: unknown): string {
  if (error instanceof VacancyError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Why a program stops: with which exit code, and in words for the log. */
export type Stop = { readonly code: number; readonly reason: string }

export type Life = {
  /** Asks for the orderly stop. A second call changes nothing. */
  stop(why: Stop): void
  /** Aborted when the stop begins: for what waits or repeats. */
  readonly stopping: AbortSignal
}

export type Program = {
  /** Opens everything; resolves when it serves. */
  readonly start: (life: Life) => Promise<void>
  /** Stops accepting, finishes what is in flight, flushes, closes. Called once, and after a start that failed, too. */
  readonly stop: (why: Stop) => Promise<void>
  /** SIGHUP: reads tokens and certificates again. */
  readonly reload?: () => void | Promise<void>
}

/**
 * Runs a program to its end and exits.
 *
 * - SIGTERM and SIGINT stop it in order; a second one, or the deadline, ends it at once.
 * - An error nobody caught ends it at once, with the exit code of the error: its state is not to be trusted.
 *
 * @returns when the program serves
 * @throws what its start threw, after stop was called
 */
export async function runProgram(
  program: Program,
  options: { readonly log: Log; readonly drainMs?: number },
): Promise<void> {
  const { log, drainMs = DRAIN_MS } = options
  const stopping = new AbortController()
  let askedAtMs = 0

  const end = (code: number): never => process.exit(code)
  const crash = (error: unknown): void => {
    log.error({ err: error, exitCode: exitCodeOf(error) }, 'ended by an error that nobody expected')
    end(exitCodeOf(error))
  }
  const stop = (why: Stop): void => {
    if (stopping.signal.aborted) return
    askedAtMs = performance.now()
    log.info({ reason: why.reason, exitCode: why.code }, 'stopping')
    stopping.abort()
    setTimeout(() => {
      log.error({ drainMs }, 'not done in time, ending at once')
      end(why.code === EXIT.ok ? EXIT.failure : why.code)
    }, drainMs)
    program.stop(why).then(() => {
      log.info({ exitCode: why.code }, 'stopped')
      end(why.code)
    }, crash)
  }
  const onStopSignal = (signal: NodeJS.Signals): void => {
    if (!stopping.signal.aborted) return stop({ code: EXIT.ok, reason: signal })
    if (performance.now() - askedAtMs < SIGNAL_ECHO_MS) return
    log.warn({ signal }, 'told to stop twice, ending at once')
    end(EXIT.failure)
  }
  const onReloadSignal = async (): Promise<void> => {
    try {
      await program.reload?.()
    } catch (error) {
      // A file with a slip must not stop what runs with the old one.
      log.error({ err: error }, 'reload failed, everything stays as it was')
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
    // A stop that came during the start is what made it fail, and goes on by itself.
    if (stopping.signal.aborted) return
    await closeAfterFailedStart(program, { log, drainMs, code: exitCodeOf(error) })
    throw error
  }
}

/** Whatever happens here, the error that is told is the one of the start. */
async function closeAfterFailedStart(
  program: Program,
  { log, drainMs, code }: { readonly log: Log; readonly drainMs: number; readonly code: number },
): Promise<void> {
  const deadline = Promise.withResolvers<void>()
  const timer = setTimeout(deadline.resolve, drainMs)
  try {
    await Promise.race([program.stop({ code, reason: 'the start failed' }), deadline.promise])
  } catch (error) {
    log.warn({ err: error }, 'closing after a failed start failed as well')
  } finally {
    clearTimeout(timer)
  }
}

export type Reason = { readonly name: string; readonly says: string; readonly since: string }

export type Readiness = {
  /** States why the program cannot do its work under a name; an empty sentence takes the reason away. */
  set(name: string, says: string): void
  /** For `/ready`: whether it can, why not, and since when. */
  read(): { readonly ready: boolean; readonly since: string; readonly reasons: readonly Reason[] }
}

/** What keeps a program from its work, by name. It is ready when nothing does. */
export function createReadiness(clock: Clock): Readiness {
  const reasons = new Map<string, Reason>()
  const now = (): string => new Date(clock.wallMs()).toISOString()
  let since = now()
  return {
    set(name, says) {
      const wasReady = reasons.size === 0
      const known = reasons.get(name)
      if (says === '') reasons.delete(name)
      else reasons.set(name, { name, says, since: known?.since ?? now() })
      if (wasReady !== (reasons.size === 0)) since = now()
    },
    read: () => ({ ready: reasons.size === 0, since, reasons: [...reasons.values()] }),
  }
}
