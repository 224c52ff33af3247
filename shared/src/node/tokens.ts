/**
 * Tokens of an auth file and their roles. They are kept as hashes, compared in constant time and never revealed
 * (docs/design/http.md#access).
 */

import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import { hasRealDate } from '../dates.ts'
import { VacancyError } from '../errors.ts'
import { ID_RULE, parseId, TOPIC_PATTERN } from '../ids.ts'
import { HttpError } from './http-server.ts'
import type { Log } from './log.ts'
import {
  findToken,
  hashToken,
  ROLES,
  type Role,
  TOKEN_FAILURES_MAX,
  type TokenHash,
  tokenFault,
} from './token-check.ts'
import { readText, watchFiles } from './watch.ts'
import { readYamlList, type YamlEntry } from './yaml.ts'

const HASH_PREFIX = 'sha256:'
/** Fits one LOGIN frame, and is far below the limit of an HTTP header. */
const TOKEN_BYTES_MAX = 255
const TOKENS_MAX = 10_000
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** The allowed content of a program's auth file. */
export type TokenRules<R extends string> = {
  readonly roles: readonly R[]
  /** Roles whose tokens may be bound to a `shard` and a `zone`. */
  readonly scoped?: readonly R[]
  /** Roles whose tokens may be limited to `topics`. */
  readonly withTopics?: readonly R[]
}

const NODE_RULES: TokenRules<Role> = { roles: ROLES }

/**
 * Parses an auth file: `tokens`, a list of entries with `token` (plain text, or `sha256:` and 64 hexadecimal digits),
 * `role`, optionally `name` and `expires` (RFC 3339), and, where the role allows it, `shard`, `zone` and `topics`.
 *
 * @throws VacancyError invalid_tokens, one line per error, with file and line and never a token
 */
export function parseTokens(text: string, file: string): readonly TokenHash[]
export function parseTokens<R extends string>(text: string, file: string, rules: TokenRules<R>): readonly TokenHash<R>[]
export function parseTokens(
  text: string,
  file: string,
  rules: TokenRules<string> = NODE_RULES,
): readonly TokenHash<string>[] {
  const faults: string[] = []
  const entries = readYamlList(text, file, 'tokens', faults)
  const tokens: TokenHash<string>[] = []
  const lines = new Map<string, number>()
  for (const entry of entries.slice(0, TOKENS_MAX)) {
    const token = readEntry(entry, file, rules, faults)
    if (token === undefined) continue
    const key = Buffer.from(token.hash).toString('hex')
    const earlier = lines.get(key)
    if (earlier !== undefined) faults.push(`${file}:${entry.line}: is the same token as in line ${earlier}`)
    lines.set(key, entry.line)
    tokens.push(token)
  }
  if (entries.length > TOKENS_MAX) faults.push(`${file}: ${entries.length} tokens, at most ${TOKENS_MAX}`)
  if (faults.length > 0) throw new VacancyError('invalid_tokens', { reason: faults.join('\n') })
  return tokens
}

function readEntry(
  entry: YamlEntry,
  file: string,
  rules: TokenRules<string>,
  faults: string[],
): TokenHash<string> | undefined {
  const before = faults.length
  const fault = (text: string) => faults.push(`${file}:${entry.line}: ${text}`)
  const { token, role, name = '', expires, shard, zone, topics, ...others } = entry.values
  for (const key of Object.keys(others)) fault(`${key}: an entry has token, role, name and expires`)
  const hash = readHash(token, fault)
  const known = rules.roles.find((each) => each === role)
  if (known === undefined) fault(`role: must be one of ${rules.roles.join(', ')}`)
  const scope = readScope({ shard, zone }, rules.scoped ?? [], known, fault)
  const topicScope = readTopics(topics, rules.withTopics ?? [], known, fault)
  if (typeof name !== 'string') fault('name: must be text')
  const expiresMs = readExpiry(expires)
  if (Number.isNaN(expiresMs)) fault('expires: must be a time like 2027-01-31T00:00:00Z')
  if (faults.length > before || !hash || known === undefined || typeof name !== 'string') return undefined
  return { hash, role: known, name, expiresMs, ...scope, ...topicScope }
}

function readScope(
  given: { readonly shard: unknown; readonly zone: unknown },
  scoped: readonly string[],
  role: string | undefined,
  fault: (text: string) => void,
): { shard?: string; zone?: string } {
  const scope: { shard?: string; zone?: string } = {}
  for (const key of ['shard', 'zone'] as const) {
    const value = given[key]
    if (value === undefined) continue
    const id = typeof value === 'string' ? parseId(value) : undefined
    if (scoped.length === 0) fault(`${key}: an entry has token, role, name and expires`)
    else if (role !== undefined && !scoped.includes(role)) fault(`${key}: is for the role ${scoped.join(', ')}`)
    else if (id === undefined) fault(`${key}: must be ${ID_RULE}`)
    else scope[key] = id
  }
  return scope
}

/** A topic name, or the beginning of one followed by `*`. */
const TOPIC_PATTERNS_MAX = 1_000

function readTopics(
  given: unknown,
  withTopics: readonly string[],
  known: string | undefined,
  fault: (text: string) => void,
): { topics?: readonly string[] } {
  if (given === undefined) return {}
  if (withTopics.length === 0) fault('topics: an entry has token, role, name and expires')
  else if (known !== undefined && !withTopics.includes(known))
    fault(`topics: is for the roles ${withTopics.join(', ')}`)
  else if (
    Array.isArray(given) &&
    given.length > 0 &&
    given.length <= TOPIC_PATTERNS_MAX &&
    given.every((pattern) => typeof pattern === 'string' && TOPIC_PATTERN.test(pattern))
  )
    return { topics: given as string[] }
  else fault('topics: must be a list of topic names, each of which may end in *')
  return {}
}

/** The hash of a token: of its text, or given as `sha256:` and 64 hexadecimal digits. */
export function readHash(token: unknown, fault: (text: string) => void): Uint8Array | undefined {
  if (typeof token !== 'string') {
    fault(token === undefined ? 'token: is missing' : 'token: must be text; put it in quotes')
    return undefined
  }
  if (token.startsWith(HASH_PREFIX)) {
    const hex = token.slice(HASH_PREFIX.length)
    if (/^[0-9a-fA-F]{64}$/.test(hex)) return Buffer.from(hex, 'hex')
    fault(`token: after ${HASH_PREFIX} come 64 hexadecimal digits`)
    return undefined
  }
  if (isTokenText(token)) return hashToken(token)
  fault(`token: must be 1 to ${TOKEN_BYTES_MAX} visible ASCII characters without spaces`)
  return undefined
}

/** Anything else could not be sent in an Authorization header. */
export function isTokenText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= TOKEN_BYTES_MAX && /^[\x21-\x7e]+$/.test(value)
}

/** Milliseconds since 1970 at which a token ends, Infinity without a time; NaN for what is no time. */
export function readExpiry(expires: unknown): number {
  if (expires === undefined) return Number.POSITIVE_INFINITY
  return typeof expires === 'string' && RFC_3339.test(expires) && hasRealDate(expires)
    ? Date.parse(expires)
    : Number.NaN
}

/** The token of an `Authorization: Bearer` header; undefined without one or with another scheme. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1]
}

/** Logged when a changed auth file cannot be used. */
export const AUTH_FILE_KEPT = 'the auth file changed but cannot be used; keeping the previous tokens'

export type TokenStore<R extends string = Role> = {
  /** The current entries; a new array after each reload. */
  tokens(): readonly TokenHash<R>[]
  /**
   * Reloads the file, as `/reload-tokens` and SIGHUP do.
   *
   * @returns the number of tokens
   * @throws VacancyError invalid_tokens; the previous tokens stay in force
   */
  reload(): number
  close(): void
}

/**
 * Opens an auth file and follows its changes.
 *
 * @throws VacancyError invalid_tokens when it cannot be read or is invalid
 */
export function openTokens<R extends string = Role>(options: {
  readonly file: string
  readonly log: Log
  /** The roles of the program; those of a node by default. */
  readonly rules?: TokenRules<R>
  /** Called with the new entries after each reload, to pass them to other threads. */
  readonly onReload?: (tokens: readonly TokenHash<R>[]) => void
  readonly lookMs?: number
}): TokenStore<R> {
  const { file, log, onReload } = options
  const rules = options.rules ?? (NODE_RULES as unknown as TokenRules<R>)
  const read = () => parseTokens(readText(file, 'invalid_tokens'), file, rules)
  let tokens = read()
  const reload = (): number => {
    tokens = read()
    onReload?.(tokens)
    log.info({ file, tokens: tokens.length }, 'tokens reloaded')
    return tokens.length
  }
  const close = watchFiles([file], reload, { log, message: AUTH_FILE_KEPT }, options.lookMs)
  return { tokens: () => tokens, reload, close }
}

const FAILURE_WINDOW_MS = 60_000
/** Addresses tracked at once. Beyond it, the oldest is evicted. */
const FAILURE_ADDRESSES_MAX = 10_000

export type FailureLimiter = {
  /** Whole seconds that an address has to wait, for Retry-After; 0 when it may try. */
  waitSeconds(address: string): number
  /** Counts a refused token. */
  failed(address: string): void
  /** Uncounts an attempt, for attempts counted before their result is known. */
  forgive(address: string): void
}

/**
 * Slows down guessing: after too many refused tokens in a minute, every request of an address is refused until the
 * minute is over.
 */
export function createFailureLimiter(clock: Clock, failuresMax: number = TOKEN_FAILURES_MAX): FailureLimiter {
  const failures = new Map<string, { count: number; endsMs: number }>()
  return {
    waitSeconds(address) {
      const record = failures.get(address)
      const leftMs = record && record.count >= failuresMax ? record.endsMs - clock.monotonicMs() : 0
      return Math.max(0, Math.ceil(leftMs / 1000))
    },
    failed(address) {
      const nowMs = clock.monotonicMs()
      const record = failures.get(address)
      if (record && nowMs < record.endsMs) {
        record.count += 1
        return
      }
      // Deleted first, so that the map keeps the order in which the minutes began.
      failures.delete(address)
      const [oldest] = failures.keys()
      if (failures.size >= FAILURE_ADDRESSES_MAX && oldest !== undefined) failures.delete(oldest)
      failures.set(address, { count: 1, endsMs: nowMs + FAILURE_WINDOW_MS })
    },
    forgive(address) {
      const record = failures.get(address)
      if (record && record.count > 0) record.count -= 1
    },
  }
}

/**
 * The token of an HTTP request.
 *
 * @throws HttpError 401 without a valid one, 429 after too many invalid ones of its address
 */
export function requireToken<R extends string>(
  tokens: readonly TokenHash<R>[],
  failures: FailureLimiter,
  { socket, headers: { authorization } }: IncomingMessage,
  nowMs: number,
): TokenHash<R> {
  const address = socket.remoteAddress ?? ''
  const token = bearerToken(authorization)
  const found = token === undefined ? undefined : findToken(tokens, token, nowMs)
  // Before the limit: failures of other callers at its address must not block a valid token.
  if (found) return found
  const wait = failures.waitSeconds(address)
  if (wait > 0) throw new HttpError(429, 'too many failed tries', { 'Retry-After': String(wait) })
  if (authorization === undefined) throw unauthorized('missing authorization header')
  failures.failed(address)
  throw unauthorized(tokenFault(tokens, token, nowMs))
}

export function unauthorized(message: string): HttpError {
  return new HttpError(401, message, { 'WWW-Authenticate': 'Bearer' })
}
