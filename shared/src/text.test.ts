import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseId } from './ids.ts'
import { groupDigits, utcText } from './numbers.ts'
import {
  PROPERTY_ID_BYTES,
  packPropertyId,
  packPropertyIdInto,
  unpackPropertyId,
  unpackPropertyIds,
} from './property-id.ts'
import { law } from './testing/law.ts'
import { bytesOfHex, hexOf, replyVectors } from './testing/vectors.ts'
import { cleanErrorText, cutToBytes, fitErrorText, isUtf8, textFault, textOfUtf8 } from './text.ts'

const encoder = new TextEncoder()

function faultOf(text: string, bytesMax = 255): string {
  const bytes = encoder.encode(`<${text}>`)
  return textFault(bytes, 1, bytes.length - 1, bytesMax)
}

test.each(['a', ' a ', 'Zürich', '北 区', '🚗', '\u00a0', '\u0080', 'ß'.repeat(127)])('%j is a name', (text) => {
  expect(faultOf(text)).toBe('')
})

test.each([
  ['', 'must be 1 to 255 bytes, got 0'],
  ['ß'.repeat(128), 'must be 1 to 255 bytes, got 256'],
  ['   ', 'must not be blank'],
  ['a\tb', 'must not hold control characters, has byte 9 at 1'],
  ['a\u007f', 'must not hold control characters, has byte 127 at 1'],
  ['\u0000', 'must not hold control characters, has byte 0 at 0'],
])('%j is not a name: %s', (text, fault) => {
  expect(faultOf(text)).toBe(fault)
})

test('invalid UTF-8 is not a name', () => {
  expect(textFault(Uint8Array.of(0x61, 0xc3, 0x28), 0, 3, 255)).toBe('is not valid UTF-8')
})

test('a name of the longest length is valid, and one byte more is not', () => {
  expect(faultOf('abc', 3)).toBe('')
  expect(faultOf('abcd', 3)).toBe('must be 1 to 3 bytes, got 4')
})

test('a character cut off by the end of the field is invalid, even if its rest follows', () => {
  const bytes = encoder.encode('é')

  expect(isUtf8(bytes, 0, 1)).toBe(false)
  expect(isUtf8(bytes, 0, 2)).toBe(true)
})

test('valid UTF-8 is what the platform decodes', () => {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const platform = (bytes: Uint8Array) => {
    try {
      decoder.decode(bytes)
      return true
    } catch {
      // The decoder reports invalid input only by throwing.
      return false
    }
  }
  const lead = fc.constantFrom(0x20, 0x7f, 0x80, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5)
  const byte = fc.oneof(lead, fc.constantFrom(0x8f, 0x90, 0x9f, 0xa0), fc.integer({ min: 0, max: 255 }))
  law(
    [fc.uint8Array({ maxLength: 6 }), fc.array(byte, { maxLength: 6 })],
    (random, built) => {
      expect(isUtf8(random, 0, random.length)).toBe(platform(random))
      const bytes = Uint8Array.from(built)
      expect(isUtf8(bytes, 0, bytes.length)).toBe(platform(bytes))
    },
    5000,
  )
})

const anyText = fc.string({ unit: 'binary', maxLength: 2000 })
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const UNFIT = /["\\\u0000-\u001f\u007f]/

test('quoted text holds no character that breaks a client', () => {
  law([anyText], (text) => {
    const clean = cleanErrorText(text)

    expect(clean).not.toMatch(UNFIT)
    expect(clean).not.toContain(':')
    expect(encoder.encode(clean).length).toBeLessThanOrEqual(64)
  })
})

test('an error text has at most one colon and 1024 bytes, for any input', () => {
  law([anyText, anyText], (before, after) => {
    for (const text of [before, `NOT_FOUND: ${after}`, `${before}:${after}`]) {
      const fit = fitErrorText(text)

      expect(fit).not.toMatch(UNFIT)
      expect(fit.split(':').length).toBeLessThanOrEqual(2)
      expect(encoder.encode(fit).length).toBeLessThanOrEqual(1024)
      expect(fit.isWellFormed()).toBe(true)
    }
  })
})

test('quoted text of 64 bytes is whole, and longer text is cut', () => {
  expect(cleanErrorText('x'.repeat(64))).toBe('x'.repeat(64))
  expect(cleanErrorText('x'.repeat(65))).toBe(`${'x'.repeat(61)}…`)
})

test('an error text of 1024 bytes is whole, and longer text is cut, with and without a code', () => {
  for (const start of ['', 'CODE: ']) {
    const whole = start + 'x'.repeat(1024 - start.length)

    expect(fitErrorText(whole)).toBe(whole)
    expect(fitErrorText(`${whole}x`)).toBe(`${whole.slice(0, 1021)}…`)
  }
})

test('a valid error text is unchanged', () => {
  const text = 'VALIDATION_ERROR: date 2020-01-01 is in the past'

  expect(fitErrorText(text)).toBe(text)
  expect(fitErrorText('429')).toBe('429')
})

test.each([
  ['\u007f', 1],
  ['\u0080', 2],
  ['\u07ff', 2],
  ['\u0800', 3],
  ['\uffff', 3],
  ['\u{10000}', 4],
])('%j counts as %i bytes', (character, bytes) => {
  expect(cutToBytes(character.repeat(10), 10 * bytes)).toBe(character.repeat(10))
  expect(cutToBytes(character.repeat(10), 10 * bytes - 1)).toMatch(/…$/)
})

test('text is cut between characters', () => {
  expect(cutToBytes('abcdef', 6)).toBe('abcdef')
  expect(cutToBytes('abcdefg', 6)).toBe('abc…')
  expect(cutToBytes('ab€€€', 8)).toBe('ab€…')
  expect(cutToBytes('🚗🚗', 7)).toBe('🚗…')
})

test.each([
  [0, '0'],
  [999, '999'],
  [1_000, '1,000'],
  [12_400, '12,400'],
  [1_234_567, '1,234,567'],
  [-12_400, '-12,400'],
  [-100, '-100'],
  [1_234.5678, '1,234.5678'],
])('%d is written %s', (value, text) => expect(groupDigits(value)).toBe(text))

test.each([
  ['2026-11-20T18:27:33.999Z', '20 Nov 2026, 18:27:33 UTC'],
  ['2026-01-05T00:00:00Z', '5 Jan 2026, 00:00:00 UTC'],
])('%s is written %s', (time, text) => expect(utcText(new Date(time))).toBe(text))

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

test('any packed ids are the same one by one and many at once', () => {
  const packed = fc.record({ bytes: fc.uint8Array({ minLength: 16, maxLength: 16 }), isShort: fc.boolean() })
  law([fc.array(packed, { maxLength: 20 }), fc.nat(20)], (ids, gap) => {
    const stride = PROPERTY_ID_BYTES + gap
    const all = new Uint8Array(gap + ids.length * stride)
    for (const [i, { bytes, isShort }] of ids.entries()) {
      all.set(bytes, gap + i * stride)
      if (isShort) all[gap + i * stride + 6] = 0xf0
    }

    expect(unpackPropertyIds(all, gap, stride, ids.length)).toEqual(
      ids.map((_, i) => unpackPropertyId(all, gap + i * stride)),
    )
  })
})

test.each(['é', '12345678901234é', 'x'.repeat(63), 'x'.repeat(64), '', '\ufeffa'])('%j survives its bytes', (text) => {
  const bytes = encoder.encode(`<${text}>`)

  expect(textOfUtf8(bytes, 1, bytes.length - 1)).toBe(text)
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
