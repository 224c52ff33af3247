import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { bytesOfHex, hexOf } from '../testing/vectors.ts'
import { encodeLogin, LOGIN_FAILED, LOGIN_OK, readLoginAnswer } from './login.ts'
import { decodeEnvelope, encodeEnvelope, encodeKeepalive } from './routing.ts'

const frame = bytesOfHex('ff0700000003000000616263')

test('an envelope opens to its segment, its flag and its frame', () => {
  const segment = fc
    .string({ unit: 'grapheme', maxLength: 60 })
    .filter((text) => new TextEncoder().encode(text).length < 256)
  law([segment, fc.boolean(), fc.uint8Array({ maxLength: 50 })], (name, write, payload) => {
    const inner = Uint8Array.of(0xff, 1, 2, 3, 4, payload.length, 0, 0, 0, ...payload)
    const bytes = encodeEnvelope({ segment: name, write }, inner)
    const { frameStart, ...envelope } = decodeEnvelope(bytes)

    expect(envelope).toEqual({ segment: name, write })
    expect(bytes.subarray(frameStart)).toEqual(inner)
  })
})

test('the keepalive is the 29 bytes of the contract, with any id', () => {
  expect(hexOf(encodeKeepalive())).toBe('fe180000000d5f5f6b656570616c6976655f5f00ff0000000000000000')
  expect(hexOf(encodeKeepalive(0x01020304))).toBe('fe180000000d5f5f6b656570616c6976655f5f00ff0403020100000000')
})

test('a segment of more than 255 bytes does not fit its length byte', () => {
  expect(() => encodeEnvelope({ segment: 'é'.repeat(128), write: false }, frame)).toThrow('got 256')
})

test.each([
  ['too short', 'fe0a0000000000ff00000000000000'],
  ['a bare frame', hexOf(frame)],
  ['a segment past the end', 'fe0b000000ff00ff0000000000000000'],
  ['no frame inside', 'fe0b0000000000000000000000000000'],
  ['an inner frame that is too short', 'fe0c0000000000ff000000000000000000'],
  ['an outer length that is too long', 'fe0c0000000000ff0000000000000000'],
  ['a segment that is not UTF-8', 'fe0c00000001ff00ff0000000000000000'],
])('an envelope with %s is refused', (_, hex) => {
  expect(() => decodeEnvelope(bytesOfHex(hex))).toThrow(expect.objectContaining({ code: 'parse_error' }))
})

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
