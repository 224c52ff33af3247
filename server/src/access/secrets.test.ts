import cookies from '@fastify/cookie'
import { fastify } from 'fastify'
import { beforeAll, expect, test } from 'vitest'
import { csrfOf, hashSecret, newSecret, newToken } from './secrets.ts'
import { hashPassword, isPassword } from './sign-in.ts'

/** Secrets: their form, their hashes, and the cookie that carries one. */

// The cookie library loads its parser when it is registered, as at the start of a control plane.
beforeAll(async () => void (await fastify().register(cookies).ready()))

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

/** Password hashes. Each costs tens of milliseconds, so that there are few of them. */

/** The parameters, a salt of 16 bytes and a hash of 32. */
const PHC = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/

test('a hash has the parameters that OWASP names and a salt of its own, and matches its password alone', async () => {
  const [first, second] = await Promise.all([hashPassword('Ångström №5'), hashPassword('Ångström №5')])

  expect(first).toMatch(PHC)
  expect(second).not.toBe(first)
  // The same text, decomposed, and with the letters that a keyboard without № types.
  expect(await isPassword('A\u030angstro\u0308m No5', first)).toBe(true)
  expect(await isPassword('ångström №5', first)).toBe(false)
})

test.each([
  ['no hash', null],
  ['an unknown format', '$2b$12$abcdefghijklmnopqrstuv'],
])('with %s no password matches', async (_, phc) => {
  expect(await isPassword('', phc)).toBe(false)
})
