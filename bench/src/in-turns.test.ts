import { expect, test } from 'vitest'
import { inTurns } from './in-turns.ts'

test('each load runs once a round, and neither is always the first', async () => {
  const order: string[] = []
  const rounds: number[] = []
  const load = (name: string) => async (round: number) => {
    order.push(name)
    return `${name}${round}`
  }

  const results = await inTurns(3, { a: load('a'), b: load('b') }, (round) => rounds.push(round))

  expect(order).toEqual(['a', 'b', 'b', 'a', 'a', 'b'])
  expect(results).toEqual({ a: ['a1', 'a2', 'a3'], b: ['b1', 'b2', 'b3'] })
  expect(rounds).toEqual([1, 2, 3])
})
