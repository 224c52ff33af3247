import { expect, test } from 'vitest'
import { hexOf } from '../testing/vectors.ts'
import { encodeLogin, LOGIN_FAILED, LOGIN_OK, readLoginAnswer } from './login.ts'

test('LOGIN is sent with correlation id 0', () => {
  expect(hexOf(encodeLogin('abc123'))).toBe('ff0000000015000000054c4f47494e010001000106000000616263313233')
})

const bytes = (text: string) => new TextEncoder().encode(text)

test.each([
  ['', 'pending', 0],
  ['LOGIN', 'pending', 0],
  ['LOGIN FAILE', 'pending', 0],
  ['LOGIN OK', 'ok', 8],
  ['LOGIN FAILED', 'failed', 12],
  ['LOGIN OK\u00ff', 'ok', 8],
  ['LOGOUT', 'malformed', 0],
  ['\u00ff', 'malformed', 0],
  ['login ok', 'malformed', 0],
])('%j is %s', (text, answer, length) => {
  expect(readLoginAnswer(bytes(text))).toEqual({ answer, bytes: length })
})

test('the replies are 8 and 12 bytes, without a terminator', () => {
  expect([LOGIN_OK.length, LOGIN_FAILED.length]).toEqual([8, 12])
})
