/** Tokens as hashes, compared in constant time: the part that threads need to authenticate a request. */

import { createHash, timingSafeEqual } from 'node:crypto'

export type Role = 'admin' | 'client' | 'monitoring'

export const ROLES: readonly Role[] = ['admin', 'client', 'monitoring']

/**
 * One entry of an auth file. Plain data, so that it can be sent to other threads. A program may define its own roles;
 * the default ones are a node's.
 */
export type TokenHash<R extends string = Role> = {
  /** SHA-256 of the token's UTF-8 bytes. */
  readonly hash: Uint8Array
  readonly role: R
  /** The operator's name for it; '' if unnamed. Logged instead of the token. */
  readonly name: string
  /** Milliseconds since 1970 at which the token expires; Infinity if it does not. */
  readonly expiresMs: number
  /** The only shard or zone that the token is valid for; absent when it is valid for all. */
  readonly shard?: string
  readonly zone?: string
  /** The only topics that the token is valid for, each a name or the beginning of one with `*`; absent for all. */
  readonly topics?: readonly string[]
}

/** Failed attempts that an address has per minute before it is blocked for the rest of the minute. */
export const TOKEN_FAILURES_MAX = 20

/** SHA-256 of a token. */
export function hashToken(token: string | Uint8Array): Uint8Array {
  return createHash('sha256').update(token).digest()
}

/**
 * The entry of a token; undefined when it is unknown or expired. Compares with every entry, so that the time taken
 * reveals nothing.
 *
 * @param token as received: UTF-8 bytes or text
 */
export function findToken<R extends string = Role>(
  tokens: readonly TokenHash<R>[],
  token: string | Uint8Array,
  nowMs: number,
): TokenHash<R> | undefined {
  const hash = hashToken(token)
  let found: TokenHash<R> | undefined
  for (const entry of tokens) {
    if (timingSafeEqual(entry.hash, hash) && nowMs < entry.expiresMs) found = entry
  }
  return found
}

export function endedText(expiresMs: number): string {
  return `the token ended at ${new Date(expiresMs).toISOString()}`
}

/** Why a token is refused, for the one who sent it: that and when it ended, or that it is not known. */
export function tokenFault<R extends string>(
  tokens: readonly TokenHash<R>[],
  token: string | Uint8Array | undefined,
  nowMs: number,
): string {
  const ended = token === undefined ? undefined : findToken(tokens, token, Number.NEGATIVE_INFINITY)
  if (ended === undefined || nowMs < ended.expiresMs) return 'invalid token'
  return endedText(ended.expiresMs)
}

/** What a connection may do, and if it may not, why. */
export type Standing = { readonly role: Role | undefined; readonly fault: string }

export const LOGGED_OUT: Standing = { role: undefined, fault: 'login required' }

/**
 * The standing of an open connection, as the auth file and the clock have it now.
 *
 * @param entry of the token that it logged in with; undefined when the file no longer has it
 */
export function standingOf(entry: TokenHash | undefined, nowMs: number): Standing {
  if (entry === undefined) return LOGGED_OUT
  if (nowMs < entry.expiresMs) return { role: entry.role, fault: '' }
  // Without colons: only the one after the code of an error reaches the client.
  const [date = '', time = ''] = new Date(entry.expiresMs).toISOString().split('T')
  return { role: undefined, fault: `the token ended on ${date} at ${time.slice(0, 8).replaceAll(':', '.')} UTC` }
}

/** Whether a role satisfies another: an admin satisfies all, a client also monitoring. */
export function roleMay(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) <= ROLES.indexOf(needed)
}
