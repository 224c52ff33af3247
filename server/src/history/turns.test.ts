import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

test('while a database hangs, writes do not pile up: a caller waits for one that runs and for its own', async () => {
  const failures: unknown[] = []
  const turns = createTurns((error) => failures.push(error))
  const hanging = Promise.withResolvers<void>()
  const runs: string[] = []
  const work = (name: string) => async () => {
    runs.push(name)
    if (runs.length === 1) await hanging.promise
  }
  const first = turns('write', work('first'))
  await Promise.resolve()
  const waiting = Array.from({ length: 1_000 }, () => turns('write', work('write')))
  const pruning = Array.from({ length: 1_000 }, () => turns('prune', work('prune')))
  expect(runs).toEqual(['first'])

  hanging.reject(new Error('the database does not respond'))
  await Promise.all([first, ...waiting, ...pruning])
  expect(runs).toEqual(['first', 'write', 'prune'])
  expect(failures).toHaveLength(1)
  // What is asked for once they ran has a turn of its own.
  await turns('write', work('next'))
  expect(runs.at(-1)).toBe('next')
})
