/** Beginning and ending sessions, and the one-time links that begin them. */

import type { Session } from '@vacancy/shared/api/route'
import type { Me } from '@vacancy/shared/contract'
import type { Transaction } from 'kysely'
import {
  type Access,
  idleSince,
  isTokenGood,
  lastMsOf,
  markTokenUsed,
  notifyEnded,
  type Token,
  tokenSessionOf,
} from './access.ts'
import { csrfOf, hashSecret, newSecret } from './secrets.ts'
import type { AccessTables } from './tables.ts'

/** A one-time link is valid for a day. */
const LINK_MS = 86_400_000

type NewSession = {
  readonly personId: string
  readonly signedInBy: Exclude<Me['signedInBy'], 'token'>
  readonly address: string
}

/** Begins a session; the secret is the value of its cookie. */
export async function beginSession(
  access: Access,
  within: Transaction<AccessTables>,
  { personId, signedInBy, address }: NewSession,
): Promise<{ secret: string; session: Session }> {
  const secret = newSecret()
  const key = hashSecret(secret)
  const nowMs = access.clock.wallMs()
  await within
    .insertInto('sessions')
    .values({
      hash: key,
      person_id: personId,
      signed_in_by: signedInBy,
      address,
      created_at: nowMs,
      last_seen_at: nowMs,
    })
    .execute()
  await within.updateTable('people').set({ last_seen_at: nowMs }).where('id', '=', personId).execute()
  const owner = { kind: 'person', id: personId } as const
  const expiresAt = lastMsOf(access, { signed_in_by: signedInBy, created_at: nowMs })
  return { secret, session: { key, owner, csrf: csrfOf(secret), signedInBy, lastSeenAt: nowMs, expiresAt } }
}

/** Begins a session with an API token. Undefined for an unknown, revoked or expired one, and one of the job queue. */
export async function beginTokenSession(
  access: Access,
  within: Transaction<AccessTables>,
  { value, address }: { readonly value: string; readonly address: string },
): Promise<{ secret: string; session: Session; token: Token } | undefined> {
  const nowMs = access.clock.wallMs()
  // Looked up by its hash, so the time it takes reveals nothing about the value.
  const token = await within.selectFrom('tokens').selectAll().where('hash', '=', hashSecret(value)).executeTakeFirst()
  if (token === undefined || !isTokenGood(token, nowMs)) return undefined
  if (token.role === 'producer' || token.role === 'consumer') return undefined
  const secret = newSecret()
  const key = hashSecret(secret)
  await within
    .insertInto('token_sessions')
    .values({ hash: key, token_id: token.id, address, created_at: nowMs, last_seen_at: nowMs })
    .execute()
  await markTokenUsed(within, token.id, nowMs, address)
  return { secret, token, session: tokenSessionOf(secret, token, nowMs) }
}

/** Ends the sessions that began with a token. */
export async function endTokenSessions(within: Transaction<AccessTables>, tokenId: string): Promise<readonly string[]> {
  const ended = await within.deleteFrom('token_sessions').where('token_id', '=', tokenId).returning('hash').execute()
  return ended.map(({ hash }) => hash)
}

/** Ends the sessions of a person, except one. */
export async function endSessions(
  within: Transaction<AccessTables>,
  personId: string,
  butKey = '',
): Promise<readonly string[]> {
  const ended = await within
    .deleteFrom('sessions')
    .where('person_id', '=', personId)
    .where('hash', '!=', butKey)
    .returning('hash')
    .execute()
  return ended.map(({ hash }) => hash)
}

export async function endSession(within: Transaction<AccessTables>, key: string): Promise<void> {
  await within.deleteFrom('sessions').where('hash', '=', key).execute()
  await within.deleteFrom('token_sessions').where('hash', '=', key).execute()
}

/** A one-time code for a person, or, with null, for the set-up. Earlier codes of the same person become invalid. */
export async function createLink(
  access: Access,
  within: Transaction<AccessTables>,
  personId: string | null,
): Promise<string> {
  const code = newSecret()
  const nowMs = access.clock.wallMs()
  await within
    .deleteFrom('sign_in_links')
    .where('person_id', personId === null ? 'is' : '=', personId)
    .execute()
  await within
    .insertInto('sign_in_links')
    .values({ hash: hashSecret(code), person_id: personId, created_at: nowMs, expires_at: nowMs + LINK_MS })
    .execute()
  return code
}

/** Redeems a code. Undefined for an unknown, used or expired one. */
export async function useLink(
  access: Access,
  within: Transaction<AccessTables>,
  code: string,
): Promise<{ readonly personId: string | null } | undefined> {
  // Deleting the row redeems the code: of two concurrent requests only one finds it.
  const used = await within
    .deleteFrom('sign_in_links')
    .where('hash', '=', hashSecret(code))
    .returning(['person_id', 'expires_at'])
    .executeTakeFirst()
  return used && used.expires_at > access.clock.wallMs() ? { personId: used.person_id } : undefined
}

/** Deletes expired sessions and links. */
export async function deleteExpiredAccess(access: Access): Promise<void> {
  const old = await access.database
    .deleteFrom('sessions')
    .where('last_seen_at', '<=', idleSince(access))
    .returning('hash')
    .execute()
  const nowMs = access.clock.wallMs()
  await access.database.deleteFrom('sign_in_links').where('expires_at', '<=', nowMs).execute()
  const expired = access.database
    .selectFrom('tokens')
    .select('id')
    .where(({ or, eb }) => or([eb('revoked_at', 'is not', null), eb('expires_at', '<=', nowMs)]))
  const ofTokens = await access.database
    .deleteFrom('token_sessions')
    .where(({ or, eb }) => or([eb('last_seen_at', '<=', idleSince(access)), eb('token_id', 'in', expired)]))
    .returning('hash')
    .execute()
  notifyEnded(
    access,
    [...old, ...ofTokens].map(({ hash }) => hash),
  )
}

export async function countSessions(access: Access): Promise<number> {
  const counts = await Promise.all(
    (['sessions', 'token_sessions'] as const).map((table) =>
      access.database
        .selectFrom(table)
        .select((column) => column.fn.countAll<number>().as('count'))
        .where('last_seen_at', '>', idleSince(access))
        .executeTakeFirstOrThrow(),
    ),
  )
  return counts.reduce((sum, { count }) => sum + Number(count), 0)
}
