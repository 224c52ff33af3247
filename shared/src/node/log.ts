/**
 * The logger: JSON lines on stderr, or the same as text (docs/design/http.md#process-rules). It is created once and
 * passed down. The message names the event, the fields hold its data: `log.info({ term, index }, 'became leader')`.
 */

import { writeSync } from 'node:fs'
import { type DestinationStream, type Logger, pino, type SerializedError, stdSerializers, stdTimeFunctions } from 'pino'
import { type Clock, systemClock } from '../clock.ts'
import { VacancyError } from '../errors.ts'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
type LogLevel = (typeof LOG_LEVELS)[number]

export const LOG_FORMATS = ['json', 'text'] as const
type LogFormat = (typeof LOG_FORMATS)[number]

/** The subset of a logger that most of the code uses, so that tests can pass a plain object. */
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
  /** Destination of lines, stderr by default. Called with one complete line. */
  readonly write?: (line: string) => void
}

/** Within this time a message is logged once. The next line has the number of repeats. */
const REPEAT_MS = 1_000
/** Distinct messages tracked at once. Beyond it, the oldest is evicted. */
const REPEATS_MAX = 1_000

/**
 * A logger with a repeat limiter per thread. Lines are written synchronously, so that those before a crash are not
 * lost.
 */
export function createLogger(options: LogOptions): Logger {
  const { component, id, zone, shard, clock = systemClock, write = writeToStderr } = options
  const limiter = createRepeatLimiter(clock)
  const base: { readonly [key: string]: unknown } = { component, id, zone, shard }
  const taken = new Set(['time', 'level', 'msg', ...Object.keys(base).filter((key) => base[key] !== undefined)])
  const destination: DestinationStream = {
    write: options.format === 'text' ? (line) => write(formatLine(line)) : write,
  }
  return pino(
    {
      level: options.level,
      base: { ...base },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: (fields) => uniqueKeys(fields, base, taken) },
      serializers: { err: serializeError },
      // Secrets should never be logged. If one is, it is redacted.
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

/** No line has a key twice: what every line says anyway is left out, and another value is called `other_…`. */
function uniqueKeys(
  fields: { [key: string]: unknown },
  base: { readonly [key: string]: unknown },
  taken: ReadonlySet<string>,
): { [key: string]: unknown } {
  if (!Object.keys(fields).some((key) => taken.has(key))) return fields
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([key, value]) => !taken.has(key) || value !== base[key])
      .map(([key, value]) => [taken.has(key) ? `other_${key}` : key, value]),
  )
}

function withRepeats(args: readonly unknown[], repeats: number): unknown[] {
  const [first, ...rest] = args
  if (first instanceof Error) return [{ err: first, repeats }, ...(rest.length > 0 ? rest : [first.message])]
  return typeof first === 'object' && first !== null ? [{ ...first, repeats }, ...rest] : [{ repeats }, ...args]
}

function serializeError(error: Error): SerializedError {
  const serialized = stdSerializers.err(error)
  // Fields may hold request data, so only the message is logged.
  if (error instanceof VacancyError) delete serialized['fields']
  return serialized
}

export type RepeatLimiter = {
  /**
   * Decides whether a message may be logged now.
   *
   * @param late called with the count after the interval, if messages were suppressed
   * @returns how many were suppressed before this one; undefined when this one is suppressed too
   */
  admit(key: string, late: (count: number) => void): number | undefined
}

type Repeat = { untilMs: number; heldBack: number; late: (count: number) => void; timer: NodeJS.Timeout | undefined }

/** Admits each message once in REPEAT_MS and counts the suppressed ones. */
export function createRepeatLimiter(clock: Clock): RepeatLimiter {
  const repeats = new Map<string, Repeat>()
  const report = (repeat: Repeat): void => {
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
        known.timer ??= setTimeout(report, Math.max(1, known.untilMs - nowMs), known).unref()
        return undefined
      }
      const heldBack = known?.heldBack ?? 0
      clearTimeout(known?.timer)
      // Deleted first, so that the map keeps the order of the last admissions.
      repeats.delete(key)
      const [oldest] = repeats.entries()
      if (repeats.size >= REPEATS_MAX && oldest) {
        report(oldest[1])
        repeats.delete(oldest[0])
      }
      repeats.set(key, { untilMs: nowMs + REPEAT_MS, heldBack: 0, late, timer: undefined })
      return heldBack
    },
  }
}

/** Formats a JSON line as text: `2026-11-20T08:00:00.000Z warn  node n1: became leader term=3`. */
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
  const lines = (stack ?? message ?? String(err)).split('\n')
  return lines.map((line) => `  ${textOf(line)}\n`).join('')
}

function wordOf(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[^\s"=]+$/.test(value)
  // JSON leaves the control characters from U+007F on as they are.
  return textOf(isPlain ? value : JSON.stringify(value))
}

/** Escapes control characters: a value from outside must not end a line or control the terminal. */
function textOf(value: unknown): string {
  return String(value ?? '').replaceAll(/\p{Cc}/gu, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Time per wait for a full pipe, and number of waits, before the rest of the line is dropped. */
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
      // The reader is gone, or the disk under the log is full. Neither must stop a node.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || waits === PIPE_WAITS_MAX) return
      waits += 1
      Atomics.wait(pipeWait, 0, 0, PIPE_WAIT_MS)
    }
  }
}
