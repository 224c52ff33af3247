/** The principal behind a request, by its session cookie or API token. */
import type { IncomingHttpHeaders } from 'node:http'
import { tooManyTries } from '@vacancy/shared/api/admission'
import type { Principal, Session, Visitor } from '@vacancy/shared/api/route'
import { bearerToken, endedText } from '@vacancy/shared/node'
import { type Access, idleSince, isTokenGood, lastMsOf, markTokenUsed, SEEN_MS, tokenSessionOf } from './access.ts'
import { cookieOf, csrfOf, hashSecret } from './secrets.ts'

const ANONYMOUS: Principal = { kind: 'anonymous', id: '', name: '', role: undefined }

async function identifyToken(access: Access, authorization: string, address: string): Promise<Visitor> {
  const value = bearerToken(authorization)
  const nowMs = access.clock.wallMs()
  const row =
    value === undefined
      ? undefined
      : await access.database.selectFrom('tokens').selectAll().where('hash', '=', hashSecret(value)).executeTakeFirst()
  if (row === undefined || !isTokenGood(row, nowMs)) {
    // Limited only now: many clients may share an address, and a valid token must not wait because of invalid ones.
    const wait = access.failures.waitSeconds(address)
    if (wait > 0) throw tooManyTries(wait, 'invalid tokens')
    access.failures.failed(address)
    const isEnded = row?.revoked_at === null && row.expires_at !== null
    return isEnded ? { ...anonymous('token'), detail: endedText(row.expires_at as number) } : anonymous('token')
  }
  if (row.last_used_at === null || nowMs - row.last_used_at >= SEEN_MS || row.last_used_from !== address)
    await markTokenUsed(access.database, row.id, nowMs, address)
  const principal: Principal = { kind: 'token', id: row.id, name: row.name, role: row.role }
  return { principal, key: row.id, session: undefined, fault: '' }
}

/** The session of a key with its token, while both are valid. */
async function tokenSession(access: Access, key: string) {
  const row = await access.database
    .selectFrom('token_sessions')
    .innerJoin('tokens', 'tokens.id', 'token_sessions.token_id')
    .select(['tokens.id', 'tokens.name', 'tokens.role', 'tokens.expires_at', 'tokens.revoked_at'])
    .select('token_sessions.last_seen_at')
    .where('token_sessions.hash', '=', key)
    .where('token_sessions.last_seen_at', '>', idleSince(access))
    .executeTakeFirst()
  return row !== undefined && isTokenGood(row, access.clock.wallMs()) ? row : undefined
}

async function identifyTokenSession(access: Access, secret: string, address: string): Promise<Visitor> {
  const key = hashSecret(secret)
  const row = await tokenSession(access, key)
  if (row === undefined) return anonymous('session')
  const nowMs = access.clock.wallMs()
  const isDue = nowMs - row.last_seen_at >= SEEN_MS
  if (isDue) {
    await access.database.updateTable('token_sessions').set({ last_seen_at: nowMs }).where('hash', '=', key).execute()
    await markTokenUsed(access.database, row.id, nowMs, address)
  }
  const session = tokenSessionOf(secret, row, isDue ? nowMs : row.last_seen_at)
  return { principal: { kind: 'token', id: row.id, name: row.name, role: row.role }, key, session, fault: '' }
}

async function identifySession(access: Access, secret: string, address: string): Promise<Visitor> {
  const key = hashSecret(secret)
  const nowMs = access.clock.wallMs()
  const row = await access.database
    .selectFrom('sessions')
    .innerJoin('people', 'people.id', 'sessions.person_id')
    .select(['people.id', 'people.name', 'people.role', 'sessions.signed_in_by', 'sessions.last_seen_at'])
    .select('sessions.created_at')
    .where('sessions.hash', '=', key)
    .where('sessions.last_seen_at', '>', idleSince(access))
    .where('people.disabled', '=', 0)
    .executeTakeFirst()
  if (row === undefined) return await identifyTokenSession(access, secret, address)
  const expiresAt = lastMsOf(access, row)
  if (expiresAt !== null && expiresAt <= nowMs) return anonymous('session')
  if (nowMs - row.last_seen_at >= SEEN_MS) {
    await access.database.updateTable('sessions').set({ last_seen_at: nowMs }).where('hash', '=', key).execute()
    await access.database.updateTable('people').set({ last_seen_at: nowMs }).where('id', '=', row.id).execute()
  }
  const session: Session = {
    key,
    owner: { kind: 'person', id: row.id },
    csrf: csrfOf(secret),
    signedInBy: row.signed_in_by,
    // The stored value may be older by up to SEEN_MS.
    lastSeenAt: nowMs - row.last_seen_at >= SEEN_MS ? nowMs : row.last_seen_at,
    expiresAt,
  }
  return { principal: { kind: 'person', id: row.id, name: row.name, role: row.role }, key, session, fault: '' }
}

/** Identifies the caller by the headers of a request. @throws ProblemError 429 for an invalid token after too many of them */
export async function identify(access: Access, headers: IncomingHttpHeaders, address: string): Promise<Visitor> {
  const { authorization } = headers
  if (authorization !== undefined) return await identifyToken(access, authorization, address)
  const secret = cookieOf(headers)
  return secret === undefined ? anonymous('') : await identifySession(access, secret, address)
}

/** Whether the session or token behind a key is still valid. Does not count as use. */
export async function isValidKey(access: Access, key: string): Promise<boolean> {
  const session = await access.database
    .selectFrom('sessions')
    .innerJoin('people', 'people.id', 'sessions.person_id')
    .select(['sessions.signed_in_by', 'sessions.created_at'])
    .where('sessions.hash', '=', key)
    .where('sessions.last_seen_at', '>', idleSince(access))
    .where('people.disabled', '=', 0)
    .executeTakeFirst()
  if (session) return (lastMsOf(access, session) ?? Number.POSITIVE_INFINITY) > access.clock.wallMs()
  if (await tokenSession(access, key)) return true
  const token = await access.database.selectFrom('tokens').selectAll().where('id', '=', key).executeTakeFirst()
  return token !== undefined && isTokenGood(token, access.clock.wallMs())
}

function anonymous(fault: Visitor['fault']): Visitor {
  return { principal: ANONYMOUS, key: '', session: undefined, fault }
}
