/**
 * Access: sessions of people and API tokens, both kept as hashes, and the one-time links that begin a session. A
 * session can also begin with a token: it has the rights of the token and ends with it. Listeners are notified of each
 * end immediately, so that an open live channel closes with its session.
 */
import type { Clock } from '@vacancy/shared'
import type { Session } from '@vacancy/shared/api/route'
import { createFailureLimiter, ENDING_MS, type FailureLimiter } from '@vacancy/shared/node'
import type { Selectable, Transaction } from 'kysely'
import { csrfOf, hashSecret } from './secrets.ts'
import type { AccessDatabase, AccessTables } from './tables.ts'

/** How often the last use of a session or token is stored while it is in constant use. */
export const SEEN_MS = 60_000

/** The storage of sessions, tokens and links, and the listeners for their end. */
export type Access = {
  readonly database: AccessDatabase
  readonly clock: Clock
  readonly sessionIdleMs: number
  /** How long a session by single sign-on lasts, in use or not. */
  readonly ssoSessionMs: number
  readonly endListeners: ((key: string) => void)[]
  /** Failed token attempts, by address. */
  readonly failures: FailureLimiter
}

export type Token = Selectable<AccessTables['tokens']>

export function createAccess(options: Pick<Access, 'database' | 'clock' | 'sessionIdleMs' | 'ssoSessionMs'>): Access {
  return { ...options, endListeners: [], failures: createFailureLimiter(options.clock) }
}

/** A session last used before this time has ended. */
export function idleSince(access: Access): number {
  return access.clock.wallMs() - access.sessionIdleMs
}

export async function markTokenUsed(
  within: AccessDatabase | Transaction<AccessTables>,
  id: string,
  nowMs: number,
  address: string,
): Promise<void> {
  await within
    .updateTable('tokens')
    .set({ last_used_at: nowMs, last_used_from: address })
    .where('id', '=', id)
    .execute()
}

/** Tokens with an end that are not revoked. Who made one for less than the time of the warning knows that it ends. */
export async function tokensThatEnd({ database }: Access) {
  const rows = await database
    .selectFrom('tokens')
    .select(['name', 'role', 'created_at', 'expires_at'])
    .where('revoked_at', 'is', null)
    .where('expires_at', 'is not', null)
    .execute()
  return rows
    .map(({ name, role, created_at, expires_at }) => ({
      name,
      role,
      createdMs: created_at,
      expiresMs: expires_at ?? 0,
    }))
    .filter(({ createdMs, expiresMs }) => expiresMs - createdMs > ENDING_MS)
}

/** Notifies listeners of ended sessions or tokens, after their end is committed. */
export function notifyEnded(access: Access, keys: readonly string[]): void {
  for (const key of keys) for (const listener of access.endListeners) listener(key)
}

export function onEnd(access: Access, listener: (key: string) => void): void {
  access.endListeners.push(listener)
}

/** When a session of a person ends regardless of use; null for never. */
export function lastMsOf(
  access: Access,
  session: Pick<Selectable<AccessTables['sessions']>, 'signed_in_by' | 'created_at'>,
): number | null {
  return session.signed_in_by === 'single sign-on' ? session.created_at + access.ssoSessionMs : null
}

/** When an unused session ends. */
export function sessionEndMs(access: Access, { lastSeenAt, expiresAt }: Session): number {
  return Math.min(lastSeenAt + access.sessionIdleMs, expiresAt ?? Number.POSITIVE_INFINITY)
}

export function tokenSessionOf(
  secret: string,
  token: { id: string; expires_at: number | null },
  lastSeenAt: number,
): Session {
  return {
    key: hashSecret(secret),
    owner: { kind: 'token', id: token.id },
    csrf: csrfOf(secret),
    signedInBy: 'token',
    lastSeenAt,
    expiresAt: token.expires_at,
  }
}

export function isTokenGood(token: { revoked_at: number | null; expires_at: number | null }, nowMs: number): boolean {
  return token.revoked_at === null && (token.expires_at === null || token.expires_at > nowMs)
}
