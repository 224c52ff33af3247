/** Secrets of sessions, tokens and links: how they are made, hashed and carried. */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { fastifyCookie as cookies } from '@fastify/cookie'

export const SESSION_COOKIE = 'vacancy_session'

const TOKEN_PREFIX = 'vct_'

export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** The value of a new API token. Its prefix lets source code scanners find leaked tokens. */
export function newToken(): string {
  return TOKEN_PREFIX + newSecret()
}

/** Hash of a random secret, which needs no salt and no slow hash. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Derived from the secret of the session: known only to its pages, and not stored. */
export function csrfOf(secret: string): string {
  return createHash('sha256').update(`csrf ${secret}`).digest('base64url')
}

export function cookieOf(headers: IncomingHttpHeaders): string | undefined {
  const value = headers.cookie === undefined ? undefined : cookies.parse(headers.cookie)[SESSION_COOKIE]
  return value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined
}

/** The header that sets the session cookie of a browser, or, without a secret, deletes it. */
export function sessionCookie(secret: string | undefined, isSecure: boolean): string {
  return cookies.serialize(SESSION_COOKIE, secret ?? '', {
    path: '/',
    httpOnly: true,
    sameSite: 'strict',
    secure: isSecure,
    ...(secret === undefined && { maxAge: 0 }),
  })
}
