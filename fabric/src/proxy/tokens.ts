/**
 * The proxy's auth file (docs/proxy.md#tokens): who may send commands, which ones, how many, and the token of the proxy
 * itself towards nodes. Parsing and decisions are pure; openApiTokens follows the file.
 */

import { type Clock, VacancyError } from '@vacancy/shared'
import {
  AUTH_FILE_KEPT,
  findToken,
  isTokenText,
  type Log,
  readExpiry,
  readHash,
  readText,
  readYamlKeys,
  type TokenHash,
  watchFiles,
} from '@vacancy/shared/node'
import { JSON_COMMANDS, type JsonCommand } from './commands.ts'
import { type Refusal, refusal } from './status.ts'

type ApiRole = 'full' | 'read'

/** One entry. The limits are undefined where the file sets none. */
export type ApiToken = TokenHash<ApiRole> & {
  readonly commands: ReadonlySet<string> | undefined
  readonly segments: ReadonlySet<string> | undefined
  /** Requests per second; as many may come at once. */
  readonly rate: number | undefined
  readonly maxInflight: number | undefined
}

export type ApiTokens = {
  readonly tokens: readonly ApiToken[]
  /** Sent to nodes with LOGIN; undefined where they need none. */
  readonly nodeToken: string | undefined
}

const LISTS = { full_access_tokens: 'full', read_only_tokens: 'read' } as const
const TOKENS_MAX = 10_000
const TOKEN_BYTES_MAX = 255
const ALLOWED_MAX = 10_000
const RATE_MAX = 1_000_000
const ENTRY_KEYS = ['token', 'name', 'expires', 'commands', 'segments', 'rate', 'max_inflight']

/**
 * Parses an auth file: `full_access_tokens` and `read_only_tokens`, lists of tokens or of mappings with a `token` and
 * its limits, and `node_token`.
 *
 * @throws VacancyError invalid_tokens, one line per error, and never a token
 */
export function parseApiTokens(text: string, file: string): ApiTokens {
  const faults: string[] = []
  const tokens: ApiToken[] = []
  const known = new Set<string>()
  let nodeToken: string | undefined
  const keys = new Set<string>()
  for (const { key, line, value } of readYamlKeys(text, file, faults)) {
    const fault = (reason: string) => faults.push(`${file}:${line}: ${key}: ${reason}`)
    if (keys.has(key)) fault('is given twice')
    keys.add(key)
    if (key === 'node_token') {
      if (isTokenText(value)) nodeToken = value
      else fault(`must be 1 to ${TOKEN_BYTES_MAX} visible ASCII characters without spaces`)
    } else if (!Object.hasOwn(LISTS, key)) {
      fault('the file has full_access_tokens, read_only_tokens and node_token')
    } else if (value !== null && !Array.isArray(value)) {
      fault('must be a list')
    } else {
      for (const [i, entry] of ((value as unknown[] | null) ?? []).entries()) {
        const token = readEntry(LISTS[key as keyof typeof LISTS], entry, (reason) => fault(`entry ${i + 1}: ${reason}`))
        if (token === undefined) continue
        const hash = Buffer.from(token.hash).toString('hex')
        if (known.has(hash)) fault(`entry ${i + 1}: is the same token as an earlier one`)
        known.add(hash)
        tokens.push(token)
      }
    }
  }
  if (tokens.length > TOKENS_MAX) faults.push(`${file}: ${tokens.length} tokens; the maximum is ${TOKENS_MAX}`)
  if (faults.length > 0) throw new VacancyError('invalid_tokens', { reason: faults.join('\n') })
  return { tokens, nodeToken }
}

function readEntry(role: ApiRole, entry: unknown, fault: (reason: string) => void): ApiToken | undefined {
  const isMapping = typeof entry === 'object' && entry !== null && !Array.isArray(entry)
  const given: { readonly [key: string]: unknown } = isMapping ? { ...entry } : { token: entry }
  let isGood = true
  const bad = (reason: string): undefined => {
    fault(reason)
    isGood = false
    return undefined
  }
  for (const key of Object.keys(given))
    if (!ENTRY_KEYS.includes(key)) bad(`${key}: is not one of ${ENTRY_KEYS.join(', ')}`)
  const hash = readHash(given['token'], bad)
  const { name = '', expires, rate, max_inflight: maxInflight } = given
  if (typeof name !== 'string' || name.length > 64) bad('name: must be text of at most 64 characters')
  const expiresMs = readExpiry(expires)
  if (Number.isNaN(expiresMs)) bad('expires: must be a time like 2027-01-31T00:00:00Z')
  if (rate !== undefined && !(typeof rate === 'number' && rate > 0 && rate <= RATE_MAX)) {
    bad(`rate: must be a number of requests per second, more than 0 and at most ${RATE_MAX}`)
  }
  if (maxInflight !== undefined && !(Number.isInteger(maxInflight) && (maxInflight as number) > 0)) {
    bad('max_inflight: must be a whole number from 1')
  }
  const commands = listOf(given['commands'], 'commands', bad)
  for (const each of commands ?? []) if (!JSON_COMMANDS.has(each)) bad(`commands: ${each} is not a command`)
  const segments = listOf(given['segments'], 'segments', bad)
  if (!isGood || hash === undefined) return undefined
  return {
    hash,
    role,
    name: name as string,
    expiresMs,
    commands,
    segments,
    rate: rate as number | undefined,
    maxInflight: maxInflight as number | undefined,
  }
}

function listOf(value: unknown, key: string, bad: (reason: string) => undefined): ReadonlySet<string> | undefined {
  if (value === undefined) return undefined
  const isList = Array.isArray(value) && value.length <= ALLOWED_MAX
  if (isList && value.every((each) => typeof each === 'string' && each !== '')) return new Set(value as string[])
  return bad(`${key}: must be a list of at most ${ALLOWED_MAX} texts`)
}

/** The token of a request. Compares with every entry, in constant time. */
export function findApiToken(tokens: readonly ApiToken[], token: string, nowMs: number): ApiToken | undefined {
  return findToken(tokens, token, nowMs) as ApiToken | undefined
}

/** Whether a token may run a command; undefined if it may. */
export function refusalOfCommand(token: ApiToken, command: JsonCommand): Refusal | undefined {
  if (token.role === 'read' && command.isWrite) {
    return refusal(403, 'FORBIDDEN', 'Command not allowed with read-only token')
  }
  if (token.commands && !token.commands.has(command.name)) {
    return refusal(403, 'FORBIDDEN', 'Command not allowed with this token')
  }
  return undefined
}

/**
 * Whether a token may use the segments of a request; undefined if it may. A request that names none reaches all data of
 * its shard, so a limited token may not send it; the codec list belongs to no segment.
 */
export function refusalOfSegment(
  token: ApiToken,
  command: JsonCommand,
  segment: string | undefined,
  bodySegment: string,
): Refusal | undefined {
  const { segments } = token
  if (segments === undefined || command.name === 'GETCODECS') return undefined
  const named = [segment ?? '', bodySegment].filter((each) => each !== '')
  if (named.length > 0 && named.every((each) => segments.has(each))) return undefined
  return refusal(403, 'FORBIDDEN', 'Segment not allowed with this token')
}

/** What the limits of a token count. Kept across reloads, by the hash of the token. */
type Usage = { inflight: number; allowance: number; countedMs: number }

export type TokenLimits = {
  readonly usage: Map<string, Usage>
  readonly clock: Clock
  /** Each of so many workers admits its share. */
  readonly workers: number
}

export function createTokenLimits(clock: Clock, workers: number): TokenLimits {
  return { usage: new Map(), clock, workers }
}

/** @returns a function to call at the end of the request, or the refusal of one too many */
export function admitToken(limits: TokenLimits, token: ApiToken): (() => void) | Refusal {
  if (token.rate === undefined && token.maxInflight === undefined) return NOTHING
  const rate = token.rate === undefined ? undefined : token.rate / limits.workers
  const maxInflight = token.maxInflight === undefined ? undefined : Math.ceil(token.maxInflight / limits.workers)
  const key = Buffer.from(token.hash).toString('base64')
  const nowMs = limits.clock.monotonicMs()
  const used = limits.usage.get(key) ?? { inflight: 0, allowance: Math.max(rate ?? 0, 1), countedMs: nowMs }
  limits.usage.set(key, used)
  if (maxInflight !== undefined && used.inflight >= maxInflight) {
    return refusal(429, '429', 'Too many requests of this token are in flight. Nothing was done. Retry.', 1)
  }
  if (rate !== undefined) {
    // At least one, so that a rate below one a second admits anything at all.
    const most = Math.max(rate, 1)
    used.allowance = Math.min(most, used.allowance + ((nowMs - used.countedMs) / 1000) * rate)
    used.countedMs = nowMs
    if (used.allowance < 1) {
      const waitSeconds = Math.ceil((1 - used.allowance) / rate)
      return refusal(429, '429', 'Too many requests of this token. Nothing was done. Retry.', waitSeconds)
    }
    used.allowance -= 1
  }
  used.inflight++
  return () => {
    used.inflight--
  }
}

const NOTHING = (): void => {}

/** Forgets what is counted for tokens that the file no longer has. */
export function forgetTokens(limits: TokenLimits, tokens: readonly ApiToken[]): void {
  const known = new Set(tokens.map(({ hash }) => Buffer.from(hash).toString('base64')))
  for (const key of limits.usage.keys()) if (!known.has(key)) limits.usage.delete(key)
}

export type ApiTokenStore = {
  readonly current: () => ApiTokens
  /** @throws VacancyError invalid_tokens; the previous tokens stay in force */
  readonly reload: () => void
  readonly close: () => void
}

/**
 * Opens an auth file and follows its changes. A file that disappears or does not parse changes nothing.
 *
 * @throws VacancyError invalid_tokens when it cannot be read or is invalid
 */
export function openApiTokens(options: {
  readonly file: string
  readonly log: Log
  readonly onReload: (tokens: ApiTokens) => void
  readonly lookMs?: number
}): ApiTokenStore {
  const { file, log, onReload, lookMs } = options
  const read = () => parseApiTokens(readText(file, 'invalid_tokens'), file)
  let current = read()
  const reload = (): void => {
    current = read()
    onReload(current)
    log.info({ file, tokens: current.tokens.length }, 'tokens reloaded')
  }
  const close = watchFiles([file], reload, { log, message: AUTH_FILE_KEPT }, lookMs)
  return { current: () => current, reload, close }
}
