import { expect, test } from 'vitest'
import { compareBytes, createCodecList, maskOf, namesOf } from './codecs.ts'
import { replyVectors, SAMPLE_FEATURES as SAMPLE } from './testing/vectors.ts'

test.each([
  [['a'], 14608863320967583690n],
  [['ab', 'c'], 16919744041952114874n],
  [['a', 'bc'], 16919744041952114874n],
  [['Free_WiFi', 'BREAKFAST'], 11142104031873161849n],
  [['breakfast', 'free_wifi'], 11142104031873161849n],
])('%j hashes to %d', (names, hash) => {
  expect(createCodecList(names).hash).toBe(hash)
})

test('the hashes of the sample list are those of the contract', () => {
  const list = createCodecList(SAMPLE)
  const reversed = createCodecList(SAMPLE.toReversed())

  expect(list.hash).toBe(2287399612289297935n)
  expect(list.hashHex).toBe('1fbe79d405deae0f')
  expect(list.orderedHash).toBe('5b753132fa61aa379e43d05fbff3c06118479daf481c3cf1af485c4a9e6dedd3')
  expect(reversed.hash).toBe(list.hash)
  expect(reversed.orderedHash).not.toBe(list.orderedHash)
})

test('names, bits and text of a list keep its order', () => {
  const list = createCodecList(['wifi', 'Breakfast'])

  expect(list.names).toEqual(['wifi', 'Breakfast'])
  expect([...list.indexOf]).toEqual([
    ['wifi', 0],
    ['Breakfast', 1],
  ])
  expect(list.text).toBe('wifi,Breakfast')
})

test.each([
  [[], 'the list must have 1 to 24 entries, has 0'],
  [Array.from({ length: 25 }, (_, i) => `f${i}`), 'the list must have 1 to 24 entries, has 25'],
  [['a', 7], 'entry 2 must be text, is 7'],
  [['a', null], 'entry 2 must be text, is null'],
  [[''], 'entry 1, , must be 1 to 64 bytes, got 0'],
  [['é'.repeat(33)], 'must be 1 to 64 bytes, got 66'],
  [[' a'], 'entry 1,  a, must not begin or end with a blank'],
  [['a,b'], 'entry 1, a,b, must not hold'],
  [['a|b'], 'must not hold'],
  [['a"b'], 'must not hold'],
  [['a\\b'], 'must not hold'],
  [['a\nb'], 'must not hold control characters'],
  [['wifi', 'WiFi'], 'entry 2, WiFi, repeats wifi'],
])('%j is refused, naming the invalid entry', (names, message) => {
  expect(() => createCodecList(names)).toThrow(
    expect.objectContaining({ code: 'invalid_codecs', message: expect.stringContaining(message) }),
  )
})

test.each(replyVectors.tables.rateFeatureMasks)('$rateFeatures of $codecs is $value', (vector) => {
  const list = createCodecList(replyVectors.codecLists[vector.codecs] ?? [])

  expect(maskOf(list, vector.rateFeatures)).toBe(vector.value)
  expect(namesOf(list, vector.value)).toEqual(vector.rateFeatures)
})

test('a name or a bit beyond the list has no mask and no name', () => {
  const list = createCodecList(['wifi'])

  expect(maskOf(list, ['wifi', 'pool'])).toBeUndefined()
  expect(namesOf(list, 2)).toBeUndefined()
  expect(namesOf(list, 0xffff_ffff)).toBeUndefined()
})

test('strings are ordered by UTF-8 bytes, not by UTF-16 units', () => {
  const encoder = new TextEncoder()
  const order = ['\u{1f600}', '\uff5e', 'b', 'ab', 'a'].sort((a, b) =>
    compareBytes(encoder.encode(a), encoder.encode(b)),
  )

  expect(order).toEqual(['a', 'ab', 'b', '\uff5e', '\u{1f600}'])
})
