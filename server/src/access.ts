/**
 * Who asks: sessions of people and API tokens, both kept as hashes, and the one-time links that begin a session. A
 * session can be begun with a token, too: it may do what the token may, and ends with it. What ends is told at once, so
 * that an open live channel ends with it.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { fastifyCookie as cookies } from '@fastify/cookie'
import type { Clock } from '@vacancy/shared'
import type { ControlAccess, Me, PersonRole, TokenRole } from '@vacancy/shared/contract'
import { bearerToken, createFailureLimiter } from '@vacancy/shared/node'
import type { Selectable, Transaction } from 'kysely'
import type { AccessTables } from './access-tables.ts'
import type { Database } from './database.ts'
import { type Asker, ProblemError, type Session } from './route.ts'
import type { Tables } from './tables.ts'

export const SESSION_COOKIE = 'vacancy_session'
/** A one-time link is good for a day. */
export const LINK_MS = 86_400_000
/** A session or token that is used all the time is written down this often. */
const SEEN_MS = 60_000
const TOKEN_PREFIX = 'vct_'

export type Visitor = {
  readonly asker: Asker
  /** Of the session or token; '' of nobody. */
  readonly key: string
  readonly session: Session | undefined
  /** Why credentials that were shown are not good; '' when they are, or none were shown. */
  readonly fault: '' | 'token' | 'session'
}

const NOBODY: Asker = { kind: 'nobody', id: '', name: '', role: undefined }

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
export function mayAsk({ kind, role }: Asker, access: ControlAccess, session?: Session): boolean {
  if (access === 'open') return true
  if (access === 'session') return session !== undefined
  if (kind === 'person') return PERSON_MAY[role as PersonRole].includes(access)
  return kind === 'token' && TOKEN_MAY[role as TokenRole].includes(access)
}

export type Access = {
  /** Who asks, by the headers of a request. @throws ProblemError 429 after too many tokens that are none */
  identify(headers: IncomingHttpHeaders, address: string): Promise<Visitor>
  /** Whether the session or token behind a key is still good. Does not count as use. */
  isGood(key: string): Promise<boolean>
  /** Begins a session; the secret is what the cookie will hold. */
  beginSession(within: Transaction<Tables>, session: NewSession): Promise<{ secret: string; session: Session }>
  /** Begins a session with an API token. Undefined when it is none, or is good no more. */
  beginTokenSession(
    within: Transaction<Tables>,
    asked: { readonly value: string; readonly address: string },
  ): Promise<{ secret: string; session: Session; token: Token } | undefined>
  /** Ends the sessions that were begun with a token. */
  endTokenSessions(within: Transaction<Tables>, tokenId: string): Promise<readonly string[]>
  /** Ends sessions of a person, all but one. */
  endSessions(within: Transaction<Tables>, personId: string, butKey?: string): Promise<readonly string[]>
  endSession(within: Transaction<Tables>, key: string): Promise<void>
  /** Says that sessions or tokens ended, once that stands. */
  ended(keys: readonly string[]): void
  onEnd(listener: (key: string) => void): void
  /** A one-time code for a person, or, with null, for the set-up. Codes of the same person before are no longer good. */
  createLink(within: Transaction<Tables>, personId: string | null): Promise<string>
  /** Uses a code up. Undefined when it is none, is used, or is too old. */
  useLink(within: Transaction<Tables>, code: string): Promise<{ readonly personId: string | null } | undefined>
  /** When a session ends unless it is used. */
  endOf(session: Session): number
  /** Deletes what ended by itself: old sessions and links. */
  sweep(): Promise<void>
  countSessions(): Promise<number>
}

export type Token = Selectable<AccessTables['tokens']>

type NewSession = {
  readonly personId: string
  readonly signedInBy: Exclude<Me['signedInBy'], 'token'>
  readonly address: string
}

export function createAccess(options: {
  readonly database: Database
  readonly clock: Clock
  readonly sessionIdleMs: number
}): Access {
  const { database, clock, sessionIdleMs } = options
  const listeners: ((key: string) => void)[] = []
  const failures = createFailureLimiter(clock)
  const oldest = () => clock.wallMs() - sessionIdleMs

  return {
    async identify(headers, address) {
      const { authorization } = headers
      if (authorization !== undefined) return await identifyToken(authorization, address)
      const secret = cookieOf(headers)
      return secret === undefined ? nobody('') : await identifySession(secret, address)
    },

    async isGood(key) {
      const session = await database
        .selectFrom('sessions')
        .innerJoin('people', 'people.id', 'sessions.person_id')
        .select('sessions.hash')
        .where('sessions.hash', '=', key)
        .where('sessions.last_seen_at', '>', oldest())
        .where('people.disabled', '=', 0)
        .executeTakeFirst()
      if (session) return true
      if (await tokenSession(key)) return true
      const token = await database.selectFrom('tokens').selectAll().where('id', '=', key).executeTakeFirst()
      return token !== undefined && isTokenGood(token, clock.wallMs())
    },

    async beginSession(within, { personId, signedInBy, address }) {
      const secret = newSecret()
      const key = hashSecret(secret)
      const nowMs = clock.wallMs()
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
      return { secret, session: { key, owner, csrf: csrfOf(secret), signedInBy, lastSeenAt: nowMs, expiresAt: null } }
    },

    async beginTokenSession(within, { value, address }) {
      const nowMs = clock.wallMs()
      // Looked up by its hash: how long that takes tells nothing about the value.
      const token = await within
        .selectFrom('tokens')
        .selectAll()
        .where('hash', '=', hashSecret(value))
        .executeTakeFirst()
      if (token === undefined || !isTokenGood(token, nowMs)) return undefined
      const secret = newSecret()
      const key = hashSecret(secret)
      await within
        .insertInto('token_sessions')
        .values({ hash: key, token_id: token.id, address, created_at: nowMs, last_seen_at: nowMs })
        .execute()
      await seeToken(within, token.id, nowMs, address)
      return { secret, token, session: tokenSessionOf(secret, token, nowMs) }
    },

    async endTokenSessions(within, tokenId) {
      const ended = await within
        .deleteFrom('token_sessions')
        .where('token_id', '=', tokenId)
        .returning('hash')
        .execute()
      return ended.map(({ hash }) => hash)
    },

    async endSessions(within, personId, butKey = '') {
      const ended = await within
        .deleteFrom('sessions')
        .where('person_id', '=', personId)
        .where('hash', '!=', butKey)
        .returning('hash')
        .execute()
      return ended.map(({ hash }) => hash)
    },

    async endSession(within, key) {
      await within.deleteFrom('sessions').where('hash', '=', key).execute()
      await within.deleteFrom('token_sessions').where('hash', '=', key).execute()
    },

    ended(keys) {
      for (const key of keys) for (const listener of listeners) listener(key)
    },
    onEnd: (listener) => void listeners.push(listener),

    async createLink(within, personId) {
      const code = newSecret()
      const nowMs = clock.wallMs()
      await within
        .deleteFrom('sign_in_links')
        .where('person_id', personId === null ? 'is' : '=', personId)
        .execute()
      await within
        .insertInto('sign_in_links')
        .values({ hash: hashSecret(code), person_id: personId, created_at: nowMs, expires_at: nowMs + LINK_MS })
        .execute()
      return code
    },

    async useLink(within, code) {
      // Deleting is the use: of two at once one finds the row.
      const used = await within
        .deleteFrom('sign_in_links')
        .where('hash', '=', hashSecret(code))
        .returning(['person_id', 'expires_at'])
        .executeTakeFirst()
      return used && used.expires_at > clock.wallMs() ? { personId: used.person_id } : undefined
    },

    endOf: ({ lastSeenAt, expiresAt }) => Math.min(lastSeenAt + sessionIdleMs, expiresAt ?? Number.POSITIVE_INFINITY),

    async sweep() {
      const old = await database
        .deleteFrom('sessions')
        .where('last_seen_at', '<=', oldest())
        .returning('hash')
        .execute()
      const nowMs = clock.wallMs()
      await database.deleteFrom('sign_in_links').where('expires_at', '<=', nowMs).execute()
      const expired = database
        .selectFrom('tokens')
        .select('id')
        .where(({ or, eb }) => or([eb('revoked_at', 'is not', null), eb('expires_at', '<=', nowMs)]))
      const ofTokens = await database
        .deleteFrom('token_sessions')
        .where(({ or, eb }) => or([eb('last_seen_at', '<=', oldest()), eb('token_id', 'in', expired)]))
        .returning('hash')
        .execute()
      this.ended([...old, ...ofTokens].map(({ hash }) => hash))
    },

    async countSessions() {
      const counts = await Promise.all(
        (['sessions', 'token_sessions'] as const).map((table) =>
          database
            .selectFrom(table)
            .select((column) => column.fn.countAll<number>().as('count'))
            .where('last_seen_at', '>', oldest())
            .executeTakeFirstOrThrow(),
        ),
      )
      return counts.reduce((sum, { count }) => sum + Number(count), 0)
    },
  }

  async function identifyToken(authorization: string, address: string): Promise<Visitor> {
    const wait = failures.waitSeconds(address)
    if (wait > 0) throw tooManyTries(wait, 'tokens that are none')
    const value = bearerToken(authorization)
    const nowMs = clock.wallMs()
    const row =
      value === undefined
        ? undefined
        : await database.selectFrom('tokens').selectAll().where('hash', '=', hashSecret(value)).executeTakeFirst()
    if (row === undefined || !isTokenGood(row, nowMs)) {
      failures.failed(address)
      return nobody('token')
    }
    if (row.last_used_at === null || nowMs - row.last_used_at >= SEEN_MS || row.last_used_from !== address)
      await seeToken(database, row.id, nowMs, address)
    const asker: Asker = { kind: 'token', id: row.id, name: row.name, role: row.role }
    return { asker, key: row.id, session: undefined, fault: '' }
  }

  async function seeToken(within: Database | Transaction<Tables>, id: string, nowMs: number, address: string) {
    await within
      .updateTable('tokens')
      .set({ last_used_at: nowMs, last_used_from: address })
      .where('id', '=', id)
      .execute()
  }

  /** The session behind a key with its token, while both are good. */
  async function tokenSession(key: string) {
    const row = await database
      .selectFrom('token_sessions')
      .innerJoin('tokens', 'tokens.id', 'token_sessions.token_id')
      .select(['tokens.id', 'tokens.name', 'tokens.role', 'tokens.expires_at', 'tokens.revoked_at'])
      .select('token_sessions.last_seen_at')
      .where('token_sessions.hash', '=', key)
      .where('token_sessions.last_seen_at', '>', oldest())
      .executeTakeFirst()
    return row !== undefined && isTokenGood(row, clock.wallMs()) ? row : undefined
  }

  async function identifyTokenSession(secret: string, address: string): Promise<Visitor> {
    const key = hashSecret(secret)
    const row = await tokenSession(key)
    if (row === undefined) return nobody('session')
    const nowMs = clock.wallMs()
    const isDue = nowMs - row.last_seen_at >= SEEN_MS
    if (isDue) {
      await database.updateTable('token_sessions').set({ last_seen_at: nowMs }).where('hash', '=', key).execute()
      await seeToken(database, row.id, nowMs, address)
    }
    const session = tokenSessionOf(secret, row, isDue ? nowMs : row.last_seen_at)
    return { asker: { kind: 'token', id: row.id, name: row.name, role: row.role }, key, session, fault: '' }
  }

  async function identifySession(secret: string, address: string): Promise<Visitor> {
    const key = hashSecret(secret)
    const nowMs = clock.wallMs()
    const row = await database
      .selectFrom('sessions')
      .innerJoin('people', 'people.id', 'sessions.person_id')
      .select(['people.id', 'people.name', 'people.role', 'sessions.signed_in_by', 'sessions.last_seen_at'])
      .where('sessions.hash', '=', key)
      .where('sessions.last_seen_at', '>', oldest())
      .where('people.disabled', '=', 0)
      .executeTakeFirst()
    if (row === undefined) return await identifyTokenSession(secret, address)
    if (nowMs - row.last_seen_at >= SEEN_MS) {
      await database.updateTable('sessions').set({ last_seen_at: nowMs }).where('hash', '=', key).execute()
      await database.updateTable('people').set({ last_seen_at: nowMs }).where('id', '=', row.id).execute()
    }
    const session: Session = {
      key,
      owner: { kind: 'person', id: row.id },
      csrf: csrfOf(secret),
      signedInBy: row.signed_in_by,
      // What is written down may be this much older than it is.
      lastSeenAt: nowMs - row.last_seen_at >= SEEN_MS ? nowMs : row.last_seen_at,
      expiresAt: null,
    }
    return { asker: { kind: 'person', id: row.id, name: row.name, role: row.role }, key, session, fault: '' }
  }
}

function tokenSessionOf(secret: string, token: { id: string; expires_at: number | null }, lastSeenAt: number): Session {
  return {
    key: hashSecret(secret),
    owner: { kind: 'token', id: token.id },
    csrf: csrfOf(secret),
    signedInBy: 'token',
    lastSeenAt,
    expiresAt: token.expires_at,
  }
}

function nobody(fault: Visitor['fault']): Visitor {
  return { asker: NOBODY, key: '', session: undefined, fault }
}

export function tooManyTries(waitSeconds: number, what: string): ProblemError {
  return new ProblemError(429, 'too-many-tries', `Too many ${what}: wait ${waitSeconds} s.`, {
    hint: `Try again in ${waitSeconds} s.`,
    more: { retryAfterSeconds: waitSeconds },
  })
}

function isTokenGood(token: { revoked_at: number | null; expires_at: number | null }, nowMs: number): boolean {
  return token.revoked_at === null && (token.expires_at === null || token.expires_at > nowMs)
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** The value of a new API token; its prefix lets scanners of source code find one that leaked. */
export function newToken(): string {
  return TOKEN_PREFIX + newSecret()
}

/** Of random secrets: they need no salt and no slow hash. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Made from the secret of the session: known to its pages, to nobody else, and kept nowhere. */
function csrfOf(secret: string): string {
  return createHash('sha256').update(`csrf ${secret}`).digest('base64url')
}

function cookieOf(headers: IncomingHttpHeaders): string | undefined {
  const value = headers.cookie === undefined ? undefined : cookies.parse(headers.cookie)[SESSION_COOKIE]
  return value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined
}

/** The header that gives a browser its session, or, without a secret, takes it away. */
export function sessionCookie(secret: string | undefined, isSecure: boolean): string {
  return cookies.serialize(SESSION_COOKIE, secret ?? '', {
    path: '/',
    httpOnly: true,
    sameSite: 'strict',
    secure: isSecure,
    ...(secret === undefined && { maxAge: 0 }),
  })
}
