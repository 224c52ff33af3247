import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeAnswer,
  decodeHello,
  encodeHello,
  encodeRefusal,
  encodeWelcome,
  HELLO_BYTES_MAX,
  REFUSALS,
} from './handshake.ts'

const ID = 'x'.repeat(128)
const HELLO = { stream: 'bulk', instance: 'ab'.repeat(16), from: ID, to: ID } as const
const WELCOME = { instance: 'cd'.repeat(16), node: 'b' }

test('handshakes survive encoding, and the largest is within the bound', () => {
  expect(decodeHello(encodeHello(HELLO))).toEqual(HELLO)
  expect(decodeAnswer(encodeWelcome(WELCOME))).toEqual(WELCOME)
  for (const refusal of REFUSALS) expect(decodeAnswer(encodeRefusal(refusal))).toEqual({ refusal })
  expect(encodeHello(HELLO).length).toBeLessThanOrEqual(HELLO_BYTES_MAX)
})

test('a hello that is cut, extended, of another protocol, or a reply is refused', () => {
  const bytes = encodeHello(HELLO)
  for (let length = 0; length < bytes.length; length++) {
    expect(decodeHello(bytes.subarray(0, length))).toBe(undefined)
  }
  expect(decodeHello(Uint8Array.of(...bytes, 0))).toBe(undefined)
  expect(decodeHello(bytes.map((byte, i) => (i === 4 ? 2 : byte)))).toBe(undefined)
  expect(decodeHello(encodeWelcome(WELCOME))).toBe(undefined)
  expect(decodeAnswer(bytes)).toBe(undefined)
})

test('random bytes are refused without harm', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: HELLO_BYTES_MAX }), (bytes) => {
      expect([decodeHello(bytes), decodeAnswer(bytes)]).toEqual([undefined, undefined])
    }),
  )
})
