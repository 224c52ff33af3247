import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { bytesOfHex, hexOf } from '../testing/vectors.ts'
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

test('the smallest envelope opens, any flag but 1 is a read, and a byte order mark is part of a segment', () => {
  const open = (hex: string) => decodeEnvelope(bytesOfHex(hex.replaceAll(' ', '')))

  expect(open('fe 0b000000 00 01 ff0700000000000000')).toEqual({ segment: '', write: true, frameStart: 7 })
  expect(open('fe 0b000000 00 02 ff0700000000000000')).toEqual({ segment: '', write: false, frameStart: 7 })
  expect(open('fe 0e000000 03 efbbbf 00 ff0700000000000000')).toMatchObject({ segment: '\ufeff', frameStart: 10 })
})

test('a segment of 255 bytes fits its length byte', () => {
  const bytes = encodeEnvelope({ segment: `${'é'.repeat(127)}x`, write: false }, frame)

  expect(bytes).toHaveLength(7 + 255 + frame.length)
  expect(bytes[5]).toBe(255)
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
