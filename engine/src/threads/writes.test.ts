import { expect, test } from 'vitest'
import { REFUSED, refusedText } from './writes.ts'

test('every refusal of the replica is a bare code, and only an outcome that is not known says 408 (X5)', () => {
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
