/** Secrets of sessions, tokens and links: how they are made, hashed and carried. */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { fastifyCookie as cookies } from '@fastify/cookie'

export const SESSION_COOKIE = 'vacancy_session'

const TOKEN_PREFIX = 'vct_'

export function newSecret(): string {
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
export function csrfOf(secret: string): string {
  return createHash('sha256').update(`csrf ${secret}`).digest('base64url')
}

export function cookieOf(headers: IncomingHttpHeaders): string | undefined {
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
