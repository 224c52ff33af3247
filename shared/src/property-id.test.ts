import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareIds, formatSession, parseId, parseSession } from './ids.ts'
import { PROPERTY_ID_BYTES, packPropertyId, packPropertyIdInto, unpackPropertyId } from './property-id.ts'
import { law } from './testing/law.ts'
import { bytesOfHex, hexOf, replyVectors } from './testing/vectors.ts'

const { propertyIds, refusedPropertyIds } = replyVectors.tables

test.each(propertyIds)('$id packs to $packed and back', ({ id, packed }) => {
  const bytes = packPropertyId(id)

  expect(bytes && hexOf(bytes)).toBe(packed)
  expect(unpackPropertyId(bytesOfHex(packed), 0)).toBe(id)
})

test.each([...refusedPropertyIds, ' ', '\u00a0', 'a'.repeat(36), 'a'.repeat(4000), '~\u007f', 'p€'])(
  '%j is not a property id',
  (id) => {
    expect(packPropertyId(id)).toBeUndefined()
  },
)

test('a UUID is case-insensitive, and shown in lower case', () => {
  const upper = packPropertyId('550E8400-E29B-41D4-A716-44665544ABCD')

  expect(upper).toEqual(packPropertyId('550e8400-e29b-41d4-a716-44665544abcd'))
  expect(upper && unpackPropertyId(upper, 0)).toBe('550e8400-e29b-41d4-a716-44665544abcd')
})

const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code))
const short = fc.string({ unit: printable, minLength: 1, maxLength: 14 }).filter((id) => id.trim() === id)
const uuid = fc.uuid({ version: [1, 2, 3, 4, 5, 7] })

test('a packed id unpacks to the same text at any offset', () => {
  law([fc.oneof(short, uuid), fc.nat(20), fc.nat(20)], (id, textAt, packedAt) => {
    const text = new Uint8Array(60)
    new TextEncoder().encodeInto(id, text.subarray(textAt))
    const out = new Uint8Array(60).fill(0xaa)

    expect(packPropertyIdInto(text, textAt, textAt + id.length, out, packedAt)).toBe(true)
    expect(unpackPropertyId(out, packedAt)).toBe(id)
    expect(out.subarray(packedAt + PROPERTY_ID_BYTES).every((byte) => byte === 0xaa)).toBe(true)
    expect(out.subarray(0, packedAt).every((byte) => byte === 0xaa)).toBe(true)
  })
})

test('different ids pack to different bytes', () => {
  law([short, fc.oneof(short, uuid)], (a, b) => {
    if (a !== b) expect(packPropertyId(a)).not.toEqual(packPropertyId(b))
  })
})

test.each(['n1', 'eu-west_1.node', '...', 'A'.repeat(128)])('%s is an id', (text) => {
  expect(parseId(text)).toBe(text)
})

test.each(['', '.', '..', 'a b', 'a/b', 'ä', 'a\n', 'A'.repeat(129)])('%j is not an id', (text) => {
  expect(parseId(text)).toBeUndefined()
})

test('ids are ordered by their bytes, upper case first', () => {
  expect(['b', 'a', 'B', 'a1', 'a-'].sort(compareIds)).toEqual(['B', 'a', 'a-', 'a1', 'b'])
  expect(compareIds('a', 'a')).toBe(0)
})

test('a session is 16 bytes or 32 lower-case hexadecimal digits', () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i * 17)

  expect(formatSession(bytes)).toBe('00112233445566778899aabbccddeeff')
  expect(parseSession('00112233445566778899aabbccddeeff')).toEqual(bytes)
})

test.each(['', '0'.repeat(31), '0'.repeat(33), 'A'.repeat(32), 'g'.repeat(32)])('%j is not a session', (text) => {
  expect(parseSession(text)).toBeUndefined()
})
