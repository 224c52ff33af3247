import { expect, test } from 'vitest'
import { addOutcome, allowedFates, type Fate, type StayOutcome } from './stay-fates.ts'

type Step = readonly [StayOutcome['kind'], StayOutcome['outcome'], (Fate | undefined)?]

function after(...steps: Step[]): Fate[] {
  const all = steps.reduce<readonly Fate[]>(
    (fates, [kind, outcome, state]) => addOutcome(fates, { kind, outcome, state }),
    ['none'],
  )
  return [...allowedFates(all)].sort()
}

test('a hold ends in one fate that its outcomes allow', () => {
  expect(after(['hold', 'done', 'held'])).toEqual(['expired'])
  expect(after(['hold', 'done', 'held'], ['confirm', 'done', 'booked'])).toEqual(['booked'])
  expect(after(['hold', 'done', 'held'], ['confirm', 'unknown'])).toEqual(['booked', 'expired'])
  expect(after(['hold', 'done', 'held'], ['release', 'done', 'released'])).toEqual(['released'])
  expect(after(['hold', 'none'])).toEqual(['none'])
})

test('a request without an outcome may be applied after later ones, unless a void is there first', () => {
  expect(after(['book', 'unknown'])).toEqual(['booked', 'none'])
  expect(after(['book', 'unknown'], ['void', 'done', 'void'])).toEqual(['void'])
  expect(after(['book', 'unknown'], ['void', 'done', 'released'])).toEqual(['released'])
  expect(after(['book', 'unknown'], ['release', 'none'])).toEqual(['booked', 'none'])
})

test('a confirmed stay does not expire, and a replaced one is released', () => {
  expect(after(['hold', 'unknown'], ['confirm', 'done', 'booked'], ['hold', 'done', 'booked'])).toEqual(['booked'])
  expect(after(['book', 'done', 'booked'], ['release', 'done', undefined])).toEqual(['released'])
  expect(after(['hold', 'done', 'held'], ['release', 'done', undefined])).toEqual(['expired', 'released'])
})

test('a reply that no outcome explains is noticed', () => {
  const released = addOutcome(['released'], { kind: 'confirm', outcome: 'done', state: 'booked' })
  expect(released).toEqual([])
  expect(addOutcome(['none'], { kind: 'confirm', outcome: 'done', state: 'booked' })).toEqual([])
})
