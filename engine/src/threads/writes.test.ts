import { expect, test } from 'vitest'
import { answerOfLogged, REFUSED, refusedText } from './writes.ts'

test('every refusal of the replica is a bare code, and only an unknown outcome is 408', () => {
  const texts = Object.entries(REFUSED).map(([name, code]) => [name, refusedText(code)])

  expect(Object.fromEntries(texts)).toEqual({
    overloaded: '429',
    notServing: '503',
    diskFull: '503',
    memoryFull: '503',
    notLeader: '308',
    outcomeUnknown: '408',
    noLeader: '503',
    transferring: '503',
    notCaughtUp: '308',
  })
})

test('a logged write is reported as refused only when another entry is committed in its place', () => {
  expect(answerOfLogged('overwritten')).toBe(REFUSED.notLeader)
  expect(answerOfLogged('unsure')).toBeUndefined()
  expect(answerOfLogged('given-up')).toBe(REFUSED.outcomeUnknown)
})

test('an outcome of the store has no text, and outcomes of the replica are apart from each other', () => {
  expect([refusedText(0), refusedText(239), refusedText(249)]).toEqual([undefined, undefined, undefined])
  expect(new Set(Object.values(REFUSED)).size).toBe(Object.keys(REFUSED).length)
})
