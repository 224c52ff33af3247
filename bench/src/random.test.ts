import { expect, test } from 'vitest'
import { createRandom, cumulative, nextU32, permute, pickMask, pickWeighted, upperBound } from './random.ts'

test('equal seeds draw equal numbers, other seeds draw others', () => {
  const draw = (seed: number) => {
    const random = createRandom(seed)
    return Array.from({ length: 8 }, () => nextU32(random))
  }

  expect(draw(1)).toEqual(draw(1))
  expect(draw(1)).not.toEqual(draw(2))
})

test.each([1, 2, 3, 7, 1000, 4097])('permute takes each of %i places exactly once', (size) => {
  const images = Array.from({ length: size }, (_, index) => permute(index, size, 9))

  expect(images.toSorted((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, index) => index))
})

test('a weight of nothing is never drawn, the others about as often as they weigh', () => {
  const random = createRandom(5)
  const sums = cumulative([3, 0, 1])
  const drawn = [0, 0, 0]

  for (let i = 0; i < 4000; i++) {
    const place = pickWeighted(random, sums)
    drawn[place] = (drawn[place] ?? 0) + 1
  }

  expect(drawn[1]).toBe(0)
  expect(drawn[0]).toBeGreaterThan(2800)
  expect(drawn[2]).toBeGreaterThan(800)
})

test('a mask has the requested number of bits, but no more than exist', () => {
  const random = createRandom(3)
  const bits = (mask: number) => mask.toString(2).replaceAll('0', '').length

  expect(bits(pickMask(random, 8, 5))).toBe(5)
  expect(pickMask(random, 3, 9)).toBe(0b111)
})

test('upperBound finds the first greater entry', () => {
  const sorted = Uint32Array.of(0, 3, 3, 8)

  expect([0, 2, 3, 7, 8].map((value) => upperBound(sorted, value))).toEqual([1, 1, 3, 3, 4])
})
