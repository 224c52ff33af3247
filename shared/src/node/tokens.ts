/**
 * Tokens of an auth file: who may do what. They are kept as hashes, compared in constant time and never told again
 * (platform.md §7.5).
 */

import { readFileSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import { VacancyError } from '../errors.ts'
import { ID_RULE, parseId } from '../ids.ts'
import type { Log } from './log.ts'
import { hashToken, ROLES, type Role, type TokenHash } from './token-check.ts'
import { FILE_LOOK_MS, watchFiles } from './watch.ts'
import { readYamlList, type YamlEntry } from './yaml.ts'

const HASH_PREFIX = 'sha256:'
/** What one LOGIN frame can carry, and far below what an HTTP header can. */
export const TOKEN_BYTES_MAX = 255
export const TOKENS_MAX = 10_000
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** What an auth file of some program may say. */
export type TokenRules<R extends string> = {
  readonly roles: readonly R[]
  /** Roles whose tokens may be bound to a `shard` and a `zone`. */
  readonly scoped?: readonly R[]
}

const NODE_RULES: TokenRules<Role> = { roles: ROLES }

/**
 * Reads an auth file: `tokens`, a list of entries with `token` (itself or `sha256:` and 64 hexadecimal digits), `role`,
 * and if wished `name` and `expires` (RFC 3339), and where the role allows it `shard` and `zone`.
 *
 * @throws VacancyError invalid_tokens, one line a fault, with file and line and never a token
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
  const { token, role, name = '', expires, shard, zone, ...others } = entry.values
  for (const key of Object.keys(others)) fault(`${key}: an entry has token, role, name and expires`)
  const hash = readHash(token, fault)
  const known = rules.roles.find((each) => each === role)
  if (known === undefined) fault(`role: must be one of ${rules.roles.join(', ')}`)
  const scope = readScope({ shard, zone }, rules.scoped ?? [], known, fault)
  if (typeof name !== 'string') fault('name: must be text')
  const expiresMs = expires === undefined ? Number.POSITIVE_INFINITY : readTime(expires)
  if (Number.isNaN(expiresMs)) fault('expires: must be a time like 2027-01-31T00:00:00Z')
  if (faults.length > before || !hash || known === undefined || typeof name !== 'string') return undefined
  return { hash, role: known, name, expiresMs, ...scope }
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

/** The token of an `Authorization: Bearer` header; undefined when the header is missing or of another scheme. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1]
}

export type TokenStore<R extends string = Role> = {
  /** The entries in force; another array after each reload. */
  tokens(): readonly TokenHash<R>[]
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
export function openTokens<R extends string = Role>(options: {
  readonly file: string
  readonly log: Log
  /** Of a program with roles of its own; else those of a node. */
  readonly rules?: TokenRules<R>
  /** Called with the new entries after each reload: other threads need them too. */
  readonly onReload?: (tokens: readonly TokenHash<R>[]) => void
  readonly lookMs?: number
}): TokenStore<R> {
  const { file, log, onReload } = options
  const rules = options.rules ?? (NODE_RULES as unknown as TokenRules<R>)
  let tokens = readTokens(file, rules)
  const reload = (): number => {
    tokens = readTokens(file, rules)
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

function readTokens<R extends string>(file: string, rules: TokenRules<R>): readonly TokenHash<R>[] {
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
  return parseTokens(text, file, rules)
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
  /** Takes one back: for tries that are counted before it is known how they end. */
  forgive(address: string): void
}

/**
 * Slows down guessing: after so many refused tokens in a minute an address is not heard, with any token, until it is
 * over.
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
      // Removed first, so that the map stays in the order in which the minutes began.
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
