/**
 * Tokens of an auth file: who may do what. They are kept as hashes, compared in constant time and never told again
 * (platform.md §7.5).
 */

import { readFileSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import { VacancyError } from '../errors.ts'
import type { Log } from './log.ts'
import { hashToken, ROLES, type Role, type TokenHash } from './token-check.ts'
import { FILE_LOOK_MS, watchFiles } from './watch.ts'
import { readYamlList, type YamlEntry } from './yaml.ts'

const HASH_PREFIX = 'sha256:'
/** What one LOGIN frame can carry, and far below what an HTTP header can. */
export const TOKEN_BYTES_MAX = 255
export const TOKENS_MAX = 10_000
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/**
 * Reads an auth file: `tokens`, a list of entries with `token` (itself or `sha256:` and 64 hexadecimal digits), `role`,
 * and if wished `name` and `expires` (RFC 3339).
 *
 * @throws VacancyError invalid_tokens, one line a fault, with file and line and never a token
 */
export function parseTokens(text: string, file: string): readonly TokenHash[] {
  const faults: string[] = []
  const entries = readYamlList(text, file, 'tokens', faults)
  const tokens: TokenHash[] = []
  const lines = new Map<string, number>()
  for (const entry of entries.slice(0, TOKENS_MAX)) {
    const token = readEntry(entry, file, faults)
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

function readEntry(entry: YamlEntry, file: string, faults: string[]): TokenHash | undefined {
  const before = faults.length
  const fault = (text: string) => faults.push(`${file}:${entry.line}: ${text}`)
  const { token, role, name = '', expires, ...others } = entry.values
  for (const key of Object.keys(others)) fault(`${key}: an entry has token, role, name and expires`)
  const hash = readHash(token, fault)
  if (!isRole(role)) fault(`role: must be one of ${ROLES.join(', ')}`)
  if (typeof name !== 'string') fault('name: must be text')
  const expiresMs = expires === undefined ? Number.POSITIVE_INFINITY : readTime(expires)
  if (Number.isNaN(expiresMs)) fault('expires: must be a time like 2027-01-31T00:00:00Z')
  if (faults.length > before || !hash || !isRole(role) || typeof name !== 'string') return undefined
  return { hash, role, name, expiresMs }
}

function readHash(token: unknown, fault: (text: string) => void): Uint8Array | undefined {
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
  // Anything else could not be sent in an Authorization header.
  if (/^[\x21-\x7e]+$/.test(token) && token.length <= TOKEN_BYTES_MAX) return hashToken(token)
  fault(`token: must be 1 to ${TOKEN_BYTES_MAX} visible ASCII characters without blanks`)
  return undefined
}

function readTime(expires: unknown): number {
  return typeof expires === 'string' && RFC_3339.test(expires) ? Date.parse(expires) : Number.NaN
}

function isRole(role: unknown): role is Role {
  return ROLES.includes(role as Role)
}

/** The token of an `Authorization: Bearer` header; undefined when the header is missing or of another scheme. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1]
}

export type TokenStore = {
  /** The entries in force; another array after each reload. */
  tokens(): readonly TokenHash[]
  /**
   * Reads the file again, as `/reload-tokens` and SIGHUP do.
   *
   * @returns how many tokens it has
   * @throws VacancyError invalid_tokens; the old tokens stay in force
   */
  reload(): number
  close(): void
}

/**
 * Opens an auth file and follows its changes.
 *
 * @throws VacancyError invalid_tokens when it cannot be read or has faults
 */
export function openTokens(options: {
  readonly file: string
  readonly log: Log
  /** Called with the new entries after each reload: other threads need them too. */
  readonly onReload?: (tokens: readonly TokenHash[]) => void
  readonly lookMs?: number
}): TokenStore {
  const { file, log, onReload } = options
  let tokens = readTokens(file)
  const reload = (): number => {
    tokens = readTokens(file)
    onReload?.(tokens)
    log.info({ file, tokens: tokens.length }, 'tokens reloaded')
    return tokens.length
  }
  const close = watchFiles(
    [file],
    () => {
      try {
        reload()
      } catch (error) {
        // A file that is just being written, or a slip: who may come in today may come in until it is mended.
        log.error({ file, err: error }, 'the auth file changed but cannot be used; the old tokens stay')
      }
    },
    options.lookMs ?? FILE_LOOK_MS,
  )
  return { tokens: () => tokens, reload, close }
}

function readTokens(file: string): readonly TokenHash[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new VacancyError(
      'invalid_tokens',
      { reason: `${file}: cannot be read: ${(error as Error).message}` },
      { cause: error },
    )
  }
  return parseTokens(text, file)
}

/** Failed tries an address has in a minute before it has to wait for the rest of it. */
export const TOKEN_FAILURES_MAX = 20
const FAILURE_WINDOW_MS = 60_000
/** Addresses remembered at once; beyond, the oldest is forgotten. */
const FAILURE_ADDRESSES_MAX = 10_000

export type FailureLimiter = {
  /** Whole seconds an address has to wait, for Retry-After; 0 when it may try. */
  waitSeconds(address: string): number
  /** Counts a token that was refused. */
  failed(address: string): void
}

/** Slows down guessing: after 20 refused tokens in a minute an address is not heard, with any token, until it is over. */
export function createFailureLimiter(clock: Clock): FailureLimiter {
  const failures = new Map<string, { count: number; endsMs: number }>()
  return {
    waitSeconds(address) {
      const record = failures.get(address)
      const leftMs = record && record.count >= TOKEN_FAILURES_MAX ? record.endsMs - clock.monotonicMs() : 0
      return Math.max(0, Math.ceil(leftMs / 1000))
    },
    failed(address) {
      const nowMs = clock.monotonicMs()
      const record = failures.get(address)
      if (record && nowMs < record.endsMs) {
        record.count += 1
        return
      }
      // Removed first, so that the map stays in the order in which the minutes began.
      failures.delete(address)
      const [oldest] = failures.keys()
      if (failures.size >= FAILURE_ADDRESSES_MAX && oldest !== undefined) failures.delete(oldest)
      failures.set(address, { count: 1, endsMs: nowMs + FAILURE_WINDOW_MS })
    },
  }
}
