import { expect, test } from 'vitest'
import { jointTally, majorityValue, type Tally, tally } from './quorum.ts'

test('the value a majority reaches, for every number of voters', () => {
  const cases: [number[], number][] = [
    [[], Number.POSITIVE_INFINITY],
    [[4], 4],
    [[4, 9], 4],
    [[9, 4, 6], 6],
    [[1, 9, 4, 6], 4],
    [[1, 9, 4, 6, 5], 5],
    [[0, 0, 0, 7, 7, 7, 7], 7],
    [[0, 0, 0, 0, 7, 7, 7], 0],
    [[3, 3, 3], 3],
  ]
  for (const [values, reached] of cases) expect(majorityValue([...values]), String(values)).toBe(reached)
})

test('it equals a count: the greatest value that more than half have reached', () => {
  for (let voters = 1; voters <= 5; voters++) {
    for (let code = 0; code < 4 ** voters; code++) {
      const values = Array.from({ length: voters }, (_, at) => Math.floor(code / 4 ** at) % 4)
      const counted = Math.max(...values.filter((value) => values.filter((v) => v >= value).length * 2 > voters))
      expect(majorityValue([...values])).toBe(counted)
    }
  }
})

test('an election is won by a majority and lost when one is out of reach', () => {
  const yes = (...ids: number[]) => ids.map((id): [number, boolean] => [id, true])
  const no = (...ids: number[]) => ids.map((id): [number, boolean] => [id, false])
  const cases: [number[], [number, boolean][], Tally][] = [
    [[], [], 'won'],
    [[1], [], 'pending'],
    [[1], yes(1), 'won'],
    [[1], no(1), 'lost'],
    [[1, 2], yes(1), 'pending'],
    [[1, 2], [...yes(1), ...no(2)], 'lost'],
    [[1, 2, 3], yes(1, 3), 'won'],
    [[1, 2, 3], [...yes(1), ...no(2)], 'pending'],
    [[1, 2, 3], no(2, 3), 'lost'],
    [[1, 2, 3], yes(4, 5, 6), 'pending'],
    [[1, 2, 3, 4], [...yes(1, 2), ...no(3)], 'pending'],
    [[1, 2, 3, 4], [...yes(1, 2), ...no(3, 4)], 'lost'],
  ]
  for (const [voters, votes, result] of cases) expect(tally(voters, new Map(votes))).toBe(result)
})

test('both halves must be won; one that is lost decides', () => {
  const cases: [Tally, Tally, Tally][] = [
    ['won', 'won', 'won'],
    ['won', 'pending', 'pending'],
    ['pending', 'won', 'pending'],
    ['lost', 'won', 'lost'],
    ['pending', 'lost', 'lost'],
  ]
  for (const [one, other, result] of cases) expect(jointTally(one, other)).toBe(result)
})
