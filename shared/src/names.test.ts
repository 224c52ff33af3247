import fc from 'fast-check'
import { expect, test } from 'vitest'
import { knownValues, nearestName, unknownName } from './names.ts'
import { law } from './testing/law.ts'
import { SAMPLE_FEATURES as SAMPLE } from './testing/vectors.ts'

test.each([
  ['free_cancelation', 'free_cancellation'],
  ['FREE_CANCELLATION', 'free_cancellation'],
  ['include_breakfast', 'includes_breakfast'],
  ['wifi', undefined],
  // Half of the letters differ, and more than half.
  ['free_xxxx', 'free_wifi'],
  ['free_xxxxx', 'free_wifi'],
  ['fre__xxxxx', undefined],
  ['free-wifi', 'free_wifi'],
  ['nonrefundable', 'non_refundable'],
  ['instant_confirmatoin', 'instant_confirmation'],
  ['zzzzzzzz', undefined],
  ['', undefined],
])('%j is corrected to %s', (name, meant) => {
  expect(nearestName(name, SAMPLE)).toBe(meant)
})

test('a listed name is nearest to itself, and a misspelling to the original', () => {
  law([fc.constantFrom(...SAMPLE), fc.nat(8)], (name, at) => {
    expect(nearestName(name, SAMPLE)).toBe(name)
    expect(nearestName(name.slice(0, at) + name.slice(at + 1), SAMPLE)).toBe(name)
  })
})

test('only the beginning of a very long name is compared', () => {
  expect(nearestName('x'.repeat(1_000_000), SAMPLE)).toBeUndefined()
})

test.each([
  [
    { max_total: 1, segment: 'a' },
    { max_total: 1, segment: 'a' },
  ],
  [{ maxTotal: 1 }, { max_total: 1 }],
  [{ max_totals: 1 }, '"max_totals" is not known; did you mean max_total?'],
  [{ MaxTotal: 1 }, '"MaxTotal" is not known; did you mean max_total?'],
  [{ maxTotal: 1, max_total: 1 }, 'maxTotal and max_total are the same field: give one'],
  [JSON.parse('{"__proto__":1}'), '"__proto__" is not known'],
  [{ ['x'.repeat(1000)]: 1 }, `"${'x'.repeat(61)}…" is not known`],
])('of %j the known values are %j', (given, wanted) => {
  expect(knownValues(given, ['segment', 'max_total'])).toEqual(wanted)
})

test('a name that resembles none is refused without a suggestion', () => {
  expect(unknownName('quux', SAMPLE)).toBe('"quux" is not known')
})
