/** Tokens as hashes, compared in constant time: what a thread needs to let somebody in, and nothing more. */

import { createHash, timingSafeEqual } from 'node:crypto'

export type Role = 'admin' | 'client' | 'monitoring'

export const ROLES: readonly Role[] = ['admin', 'client', 'monitoring']

/**
 * One entry of an auth file. Plain data, so that it can be sent to other threads. Programs with roles of their own say
 * which; those above are a node's.
 */
export type TokenHash<R extends string = Role> = {
  /** SHA-256 of the token's UTF-8 bytes. */
  readonly hash: Uint8Array
  readonly role: R
  /** What the operator calls it; '' without a name. For logs, instead of the token. */
  readonly name: string
  /** Milliseconds since 1970 from which the token is unknown; Infinity when it does not expire. */
  readonly expiresMs: number
  /** The one shard or zone that the token is good for; absent when it is good for all. */
  readonly shard?: string
  readonly zone?: string
}

/** SHA-256 of a token. */
export function hashToken(token: string | Uint8Array): Uint8Array {
  return createHash('sha256').update(token).digest()
}

/**
 * The role of a token; undefined when it is unknown or has expired. Compares with every entry, whichever fits, so that
 * the time it takes tells nothing.
 *
 * @param token as it came: UTF-8 bytes or text
 */
export function checkToken(tokens: readonly TokenHash[], token: string | Uint8Array, nowMs: number): Role | undefined {
  return findToken(tokens, token, nowMs)?.role
}

/** The entry of a token, for a log line that names who did something; compares as checkToken does. */
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

/** Whether a role may do what asks for another: an admin everything, a client also what monitoring may. */
export function roleMay(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) <= ROLES.indexOf(needed)
}
