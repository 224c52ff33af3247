import fc from 'fast-check'
import { expect, test } from 'vitest'
import { crc32c } from './crc32c.ts'

const ascii = (text: string) => new TextEncoder().encode(text)

/** Bit by bit, as RFC 3720 §12.1 defines it. */
function slowCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  }
  return ~crc >>> 0
}

test('the check value of CRC32C is E3069283', () => {
  expect(crc32c(ascii('123456789'), 0, 9)).toBe(0xe3069283)
})

test('the vectors of RFC 3720 §B.4', () => {
  expect(crc32c(new Uint8Array(32), 0, 32)).toBe(0x8a9136aa)
  expect(crc32c(new Uint8Array(32).fill(255), 0, 32)).toBe(0x62a8ab43)
  expect(
    crc32c(
      Uint8Array.from({ length: 32 }, (_, i) => i),
      0,
      32,
    ),
  ).toBe(0x46dd794e)
})

test('eight bytes a step give what one bit a step gives, from any offset', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(20), (bytes, skip) => {
      const start = Math.min(skip, bytes.length)
      expect(crc32c(bytes, start, bytes.length)).toBe(slowCrc32c(bytes.subarray(start)))
    }),
  )
})

test('a checksum continues from that of the previous bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(60), (bytes, cut) => {
      const middle = Math.min(cut, bytes.length)
      const first = crc32c(bytes, 0, middle)
      expect(crc32c(bytes, middle, bytes.length, first)).toBe(crc32c(bytes, 0, bytes.length))
    }),
  )
})
