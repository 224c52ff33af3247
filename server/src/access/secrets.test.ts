/** Secrets: their form, their hashes, and the cookie that carries one. */

import cookies from '@fastify/cookie'
import { fastify } from 'fastify'
import { beforeAll, expect, test } from 'vitest'
import { cookieOf, csrfOf, hashSecret, newSecret, newToken, sessionCookie } from './secrets.ts'

// The cookie library loads its parser when it is registered, as at the start of a control plane.
beforeAll(async () => void (await fastify().register(cookies).ready()))

const SECRET = `${'a'.repeat(41)}-_`

test('secrets have 256 random bits, and those of tokens a prefix that scanners find', () => {
  expect(newSecret()).toMatch(/^[\w-]{43}$/)
  expect(newToken()).toMatch(/^vct_[\w-]{43}$/)
  expect(new Set(Array.from({ length: 50 }, newSecret)).size).toBe(50)
})

test('a secret is stored as its SHA-256, and the value against forged requests is another hash', () => {
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(csrfOf('abc')).toMatch(/^[\w-]{43}$/)
  expect(Buffer.from(csrfOf('abc'), 'base64url').toString('hex')).toBe(hashSecret('csrf abc'))
})

test('the cookie of a session is for this site and not for scripts', () => {
  expect(sessionCookie(SECRET, false)).toBe(`vacancy_session=${SECRET}; Path=/; HttpOnly; SameSite=Strict`)
  expect(sessionCookie(SECRET, true)).toBe(`vacancy_session=${SECRET}; Path=/; HttpOnly; Secure; SameSite=Strict`)
  expect(sessionCookie(undefined, false)).toBe('vacancy_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict')
})

test.each([
  [undefined, undefined],
  ['other=1', undefined],
  [`vacancy_session=${SECRET}`, SECRET],
  [`other=1; vacancy_session=${SECRET}; more=2`, SECRET],
  [`vacancy_session=${SECRET}x`, undefined],
  [`vacancy_session=${SECRET.slice(1)}`, undefined],
  [`vacancy_session=${'!'.repeat(43)}`, undefined],
])('the cookie header %s has the secret %s', (cookie, secret) => {
  expect(cookieOf(cookie === undefined ? {} : { cookie })).toBe(secret)
})
