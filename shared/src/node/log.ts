/**
 * The logger: JSON lines on stderr, or the same as text (platform.md §9). Made once and passed down; a message says what
 * happened, its fields with what: `log.info({ term, index }, 'became leader')`.
 */

import { writeSync } from 'node:fs'
import { type DestinationStream, type Logger, pino, type SerializedError, stdSerializers, stdTimeFunctions } from 'pino'
import { type Clock, systemClock } from '../clock.ts'
import { VacancyError } from '../errors.ts'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export const LOG_FORMATS = ['json', 'text'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** What most of the code needs of a logger, so that tests can hand in a plain object. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type LogOptions = {
  readonly level: LogLevel
  readonly format: LogFormat
  /** The program's role: node, build-snapshot, … */
  readonly component: string
  readonly id?: string | undefined
  readonly zone?: string | undefined
  readonly shard?: string | undefined
  readonly clock?: Clock
  /** Where lines go; stderr unless a test says otherwise. Called with one whole line. */
  readonly write?: (line: string) => void
}

/** Within this time a message is logged once; the line after says how often it came. */
export const REPEAT_MS = 1_000
/** Different messages watched for repeats at once; beyond, the oldest is forgotten. */
const REPEATS_MAX = 1_000

/**
 * A logger with its own thread's limiter of repeats. Lines are written at once: what was logged before a crash is there.
 */
export function createLogger(options: LogOptions): Logger {
  const { component, id, zone, shard, clock = systemClock, write = writeToStderr } = options
  const limiter = createRepeatLimiter(clock)
  const destination: DestinationStream = {
    write: options.format === 'text' ? (line) => write(formatLine(line)) : write,
  }
  return pino(
    {
      level: options.level,
      base: { component, id, zone, shard },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serializeError },
      // Nobody should log these; if somebody does, they do not come out.
      redact: ['token', 'authorization', 'password', '*.token', '*.authorization', '*.password'],
      hooks: {
        logMethod(args, method, level) {
          const message = args.length > 1 ? args[1] : args[0]
          const repeats = limiter.admit(`${level} ${String(message)}`, (count) => {
            method.apply(this, withRepeats(args, count) as typeof args)
          })
          if (repeats === undefined) return
          method.apply(this, (repeats > 0 ? withRepeats(args, repeats) : args) as typeof args)
        },
      },
    },
    destination,
  )
}

function withRepeats(args: readonly unknown[], repeats: number): unknown[] {
  const [first, ...rest] = args
  if (first instanceof Error) return [{ err: first, repeats }, ...(rest.length > 0 ? rest : [first.message])]
  return typeof first === 'object' && first !== null ? [{ ...first, repeats }, ...rest] : [{ repeats }, ...args]
}

function serializeError(error: Error): SerializedError {
  const serialized = stdSerializers.err(error)
  // Fields may hold what was in a request; the sentence holds what is fit to be read.
  if (error instanceof VacancyError) delete serialized['fields']
  return serialized
}

export type RepeatLimiter = {
  /**
   * Says whether a message may be logged now.
   *
   * @param late called with the count when the time is over and messages were held back
   * @returns how many were held back before this one; undefined when this one is held back too
   */
  admit(key: string, late: (count: number) => void): number | undefined
}

type Repeat = { untilMs: number; heldBack: number; late: (count: number) => void; timer: NodeJS.Timeout | undefined }

/** Lets each message through once in REPEAT_MS and counts what it holds back. */
export function createRepeatLimiter(clock: Clock): RepeatLimiter {
  const repeats = new Map<string, Repeat>()
  const tell = (repeat: Repeat): void => {
    clearTimeout(repeat.timer)
    repeat.timer = undefined
    const count = repeat.heldBack
    repeat.heldBack = 0
    if (count > 0) repeat.late(count)
  }
  return {
    admit(key, late) {
      const nowMs = clock.monotonicMs()
      const known = repeats.get(key)
      if (known && nowMs < known.untilMs) {
        known.heldBack += 1
        known.late = late
        known.timer ??= setTimeout(tell, Math.max(1, known.untilMs - nowMs), known).unref()
        return undefined
      }
      const heldBack = known?.heldBack ?? 0
      clearTimeout(known?.timer)
      // Removed first, so that the map stays in the order in which messages were last let through.
      repeats.delete(key)
      const [oldest] = repeats.entries()
      if (repeats.size >= REPEATS_MAX && oldest) {
        tell(oldest[1])
        repeats.delete(oldest[0])
      }
      repeats.set(key, { untilMs: nowMs + REPEAT_MS, heldBack: 0, late, timer: undefined })
      return heldBack
    },
  }
}

/** The line of text for a line of JSON: `2026-11-20T08:00:00.000Z warn  node n1: became leader term=3`. */
export function formatLine(line: string): string {
  const { time, level, component, id, zone, shard, msg, err, ...fields } = JSON.parse(line) as {
    [name: string]: unknown
  }
  const place = [component, zone, shard, id].filter((part) => part !== undefined).join(' ')
  const words = Object.entries(fields).map(([name, value]) => `${name}=${wordOf(value)}`)
  const head = [time, String(level).padEnd(5), `${place}:`, textOf(msg), ...words].join(' ')
  return err === undefined ? `${head}\n` : `${head}\n${stackOf(err)}`
}

function stackOf(err: unknown): string {
  const { stack, message } = (err ?? {}) as { stack?: string; message?: string }
  return `${(stack ?? message ?? String(err)).replaceAll(/^/gm, '  ')}\n`
}

function wordOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^[^\s"=]+$/.test(value) ? textOf(value) : JSON.stringify(value)
}

/** Control characters escaped: a value from outside must not end a line or paint the terminal. */
function textOf(value: unknown): string {
  return String(value ?? '').replaceAll(/\p{Cc}/gu, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A pipe that is full is waited for this long, this often, before the rest of the line is given up. */
const PIPE_WAIT_MS = 5
const PIPE_WAITS_MAX = 20
const pipeWait = new Int32Array(new SharedArrayBuffer(4))

function writeToStderr(line: string): void {
  const bytes = Buffer.from(line)
  let written = 0
  let waits = 0
  while (written < bytes.length) {
    try {
      written += writeSync(2, bytes, written)
    } catch (error) {
      // Nobody reads any more, or the disk under the log is full: a node does not stop for that.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || waits === PIPE_WAITS_MAX) return
      waits += 1
      Atomics.wait(pipeWait, 0, 0, PIPE_WAIT_MS)
    }
  }
}
