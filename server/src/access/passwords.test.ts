/** Password hashes. Each costs tens of milliseconds, so that there are few of them. */

import { expect, test } from 'vitest'
import { hashPassword, isPassword } from './passwords.ts'

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
