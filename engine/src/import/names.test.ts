import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { createNames, numberOf, ranksOf, sortedNames } from './names.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const encoder = new TextEncoder()

/** The name with other text around it, as in a block of a file. */
function lookUp(names: ReturnType<typeof createNames>, name: string): number {
  const bytes = encoder.encode(name)
  const text = new Uint8Array(bytes.length + 7).fill(0x78)
  text.set(bytes, 3)
  return numberOf(names, text, 3, 3 + bytes.length)
}

test('names are numbered in order of appearance, and a known name keeps its number', () => {
  const names = createNames()

  expect(['b', 'a', 'b', 'bb', 'a', 'b', '', 'bb', ''].map((name) => lookUp(names, name))).toEqual([
    0, 1, 0, 2, 1, 0, 3, 2, 3,
  ])
  expect(names.count).toBe(4)
})

test.each([
  ['ab', 'abc'],
  ['abc', 'ab'],
  ['abc', 'abd'],
  ['abc', 'xbc'],
  ['abc', 'axc'],
])('%s and %s are two names', (first, second) => {
  const names = createNames()

  expect([lookUp(names, first), lookUp(names, second), lookUp(names, first)]).toEqual([0, 1, 0])
})

test.each([31, 32, 33, 62, 63, 64, 65, 129, 1200])(
  '%i names are found again, whatever the tables had to grow to',
  (count) => {
    const names = createNames()
    const nameOf = (i: number) => `name ${(i * 7919) % 10_007}${'x'.repeat(i % 40)}`
    const numbers = Array.from({ length: count }, (_, i) => i)

    expect(numbers.map((i) => lookUp(names, nameOf(i)))).toEqual(numbers)
    expect(numbers.map((i) => lookUp(names, nameOf(count - 1 - i)))).toEqual(numbers.toReversed())
    expect(names.count).toBe(count)
    expect(sortedNames(names, ranksOf(names))).toEqual(numbers.map(nameOf).sort())
  },
)

test('at most half of the slots are taken, so that a search for a new name ends', () => {
  const names = createNames()
  let wrong = 0
  for (let i = 0; i < 600; i++) {
    lookUp(names, `${i}`)
    const taken = names.slots.filter((slot) => slot !== 0).length
    if (taken !== i + 1 || taken * 2 > names.slots.length) wrong++
  }
  expect(wrong).toBe(0)
})

test.each([1023, 1024, 1025, 5000])('a first name of %i bytes is kept whole', (bytes) => {
  const names = createNames()
  const long = 'l'.repeat(bytes)

  expect([lookUp(names, long), lookUp(names, 'short'), lookUp(names, long)]).toEqual([0, 1, 0])
  expect(sortedNames(names, ranksOf(names))).toEqual([long, 'short'])
})

test('ranks follow the bytes of the names, not letters or order of appearance', () => {
  const names = createNames()
  for (const name of ['ä', 'z', 'Z', 'a', '客', 'ab', '𝄞', '\uFF5E']) lookUp(names, name)

  expect([...ranksOf(names)]).toEqual([4, 3, 0, 1, 5, 2, 7, 6])
  expect(sortedNames(names, ranksOf(names))).toEqual(['Z', 'a', 'ab', 'z', 'ä', '客', '\uFF5E', '𝄞'])
})

test('drawn names have the numbers and ranks of a map', () => {
  const random = createRandom(SEED)
  const names = createNames()
  const model = new Map<string, number>()
  for (let i = 0; i < 1000; i++) {
    const letters = Array.from({ length: random.below(4) }, () => 'aAäz客'[random.below(5)])
    const name = letters.join('')
    if (!model.has(name)) model.set(name, model.size)

    expect(lookUp(names, name), `VACANCY_SEED=${SEED}, name ${i}`).toBe(model.get(name))
  }

  const sorted = [...model.keys()].sort((a, b) => Buffer.compare(encoder.encode(a), encoder.encode(b)))
  expect(sortedNames(names, ranksOf(names)), `VACANCY_SEED=${SEED}`).toEqual(sorted)
})

test('no names have no ranks', () => {
  const names = createNames()

  expect(ranksOf(names).length).toBe(0)
  expect(sortedNames(names, ranksOf(names))).toEqual([])
})
