/**
 * Access: sessions of people and API tokens, both kept as hashes, and the one-time links that begin a session. A session
 * can also begin with a token: it has the rights of the token and ends with it. Listeners hear of each end at once, so
 * that an open live channel ends with its session.
 */
import type { Clock } from '@vacancy/shared'
import type { ControlAccess, PersonRole, TokenRole } from '@vacancy/shared/contract'
import { createFailureLimiter, type FailureLimiter } from '@vacancy/shared/node'
import type { Selectable, Transaction } from 'kysely'
import { problem } from '../http/errors.ts'
import type { Principal, ProblemError, Session } from '../http/route.ts'
import { csrfOf, hashSecret } from './secrets.ts'
import type { AccessDatabase, AccessTables } from './tables.ts'

/** A session or token that is used all the time is written down this often. */
export const SEEN_MS = 60_000

export type Visitor = {
  readonly principal: Principal
  /** Of the session or token; '' of nobody. */
  readonly key: string
  readonly session: Session | undefined
  /** Why credentials that were shown are not good; '' when they are, or none were shown. */
  readonly fault: '' | 'token' | 'session'
}

/** What each may ask, beside what is open. */
const PERSON_MAY: { readonly [role in PersonRole]: readonly ControlAccess[] } = {
  viewer: ['viewer', 'query'],
  operator: ['viewer', 'query', 'operator'],
  admin: ['viewer', 'query', 'operator', 'admin'],
}

const TOKEN_MAY: { readonly [role in TokenRole]: readonly ControlAccess[] } = {
  monitoring: ['viewer'],
  client: ['viewer', 'query'],
  admin: ['viewer', 'query', 'operator', 'admin'],
}

/** @param session the asker came with one: also of a token */
export function isAllowed({ kind, role }: Principal, access: ControlAccess, session?: Session): boolean {
  if (access === 'open') return true
  if (access === 'session') return session !== undefined
  if (kind === 'person') return PERSON_MAY[role as PersonRole].includes(access)
  return kind === 'token' && TOKEN_MAY[role as TokenRole].includes(access)
}

/** Where sessions, tokens and links are kept, and who is to know when one ends. */
export type Access = {
  readonly database: AccessDatabase
  readonly clock: Clock
  readonly sessionIdleMs: number
  readonly endListeners: ((key: string) => void)[]
  /** Invalid tokens, by address. */
  readonly failures: FailureLimiter
}

export type Token = Selectable<AccessTables['tokens']>

export function createAccess(options: Pick<Access, 'database' | 'clock' | 'sessionIdleMs'>): Access {
  return { ...options, endListeners: [], failures: createFailureLimiter(options.clock) }
}

/** A session that was not used since then has ended. */
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

/** Reports ended sessions or tokens, once their end is committed. */
export function notifyEnded(access: Access, keys: readonly string[]): void {
  for (const key of keys) for (const listener of access.endListeners) listener(key)
}

export function onEnd(access: Access, listener: (key: string) => void): void {
  access.endListeners.push(listener)
}

/** When a session ends unless it is used. */
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

export function tooManyTries(waitSeconds: number, what: string): ProblemError {
  return problem('too-many-tries', {
    detail: `Too many ${what}: wait ${waitSeconds} s.`,
    hint: `Try again in ${waitSeconds} s.`,
    more: { retryAfterSeconds: waitSeconds },
  })
}

export function isTokenGood(token: { revoked_at: number | null; expires_at: number | null }, nowMs: number): boolean {
  return token.revoked_at === null && (token.expires_at === null || token.expires_at > nowMs)
}
