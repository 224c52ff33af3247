import { expect, test } from 'vitest'
import { changeOf, changesOf } from './edit-model.ts'

const input = { availability: '', price: '', features: undefined }

test.each([
  [input, { availability: undefined, price: undefined, features: undefined }],
  [
    { ...input, availability: ' 0 ', price: '0' },
    { availability: 0, price: 0, features: undefined },
  ],
  [
    { ...input, availability: '255', price: '4294967294' },
    { availability: 255, price: 4_294_967_294, features: undefined },
  ],
  [
    { ...input, features: [] },
    { availability: undefined, price: undefined, features: [] },
  ],
])('%j is a change', (typed, change) => {
  expect(changeOf(typed)).toEqual({ ok: true, change })
})

test.each([
  ['availability', '256', 'Enter a whole number from 0 to 255'],
  ['availability', '-1', 'Enter a whole number from 0 to 255'],
  ['availability', '00000000001', 'Enter a whole number from 0 to 255'],
  ['price', '4294967295', 'Enter a whole number from 0 to 4,294,967,294'],
  ['price', '1.5', 'Enter a whole number from 0 to 4,294,967,294'],
])('%s %s is refused', (field, text, reason) => {
  expect(changeOf({ ...input, [field]: text })).toEqual({ ok: false, field, reason })
})

const before = { date: '2026-11-20', availability: 2, price: 120, features: ['a', 'b'] }
const nights = new Map([[before.date, before]])
const none = { availability: undefined, price: undefined, features: undefined }

test.each([
  ['nothing given', none, [2, 120, ['a', 'b']], false],
  ['the same values', { availability: 2, price: 120, features: ['b', 'a'] }, [2, 120, ['b', 'a']], false],
  ['other rooms', { ...none, availability: 3 }, [3, 120, ['a', 'b']], true],
  ['no rooms', { ...none, availability: 0 }, [0, 120, ['a', 'b']], true],
  ['another price', { ...none, price: 0 }, [2, 0, ['a', 'b']], true],
  ['fewer features', { ...none, features: ['a'] }, [2, 120, ['a']], true],
  ['other features', { ...none, features: ['a', 'c'] }, [2, 120, ['a', 'c']], true],
])('a night with %s', (_, change, [availability, price, features], isChanged) => {
  expect(changesOf([before.date], nights, change)).toEqual([
    { date: before.date, before, after: { availability, price, features }, isChanged },
  ])
})

test('a night without a package is created, with zero for what is not given', () => {
  const created = (change: typeof none | { readonly price: number }) =>
    changesOf(['2026-11-21'], nights, { ...none, ...change })
  const after = { availability: 0, price: 7, features: [] }

  expect(created({ price: 7 })).toEqual([{ date: '2026-11-21', before: undefined, after, isChanged: true }])
  expect(created(none)).toMatchObject([{ after: { ...after, price: 0 }, isChanged: false }])
})
