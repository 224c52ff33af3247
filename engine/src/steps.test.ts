import { expect, test } from 'vitest'
import { follow, type Steps, settled, type Wait, waited, walk, walkAtOnce } from './steps.ts'

function* sum(values: readonly (number | Promise<number>)[], wait?: Wait<number>): Steps<number> {
  let total = 0
  for (const value of values) total += yield* settled(value)
  if (wait) total += yield* waited(wait)
  return total
}

test('steps without waits complete at once', () => {
  expect(walkAtOnce(sum([1, 2, 3]))).toBe(6)
  expect(() => walkAtOnce(sum([Promise.resolve(1)]))).toThrow('the steps never wait')
})

test('steps wait for promises and for callbacks, at once or later', async () => {
  expect(await walk(sum([1, Promise.resolve(2)], (done) => done(undefined, 4)))).toBe(7)
  const waiting: (() => void)[] = []
  const ended: number[] = []
  const wait: Wait<number> = (done) => waiting.push(() => done(undefined, 5))
  follow(
    sum([1], wait),
    (total) => ended.push(total),
    (error) => expect.fail(String(error)),
  )
  expect(ended).toEqual([])
  waiting[0]?.()
  expect(ended).toEqual([6])
})

test('an error during a wait is thrown at the wait, and out of the steps unless they catch it', async () => {
  function* catching(wait: Wait<number>): Steps<string> {
    try {
      yield* waited(wait)
      return 'nothing went wrong'
    } catch (error) {
      return (error as Error).message
    }
  }
  const failing: Wait<number> = (done) => done(new Error('no room'))
  expect(await walk(catching((done) => done(undefined, 1)))).toBe('nothing went wrong')
  expect(await walk(catching(failing))).toBe('no room')
  await expect(walk(sum([Promise.reject(new Error('gone'))]))).rejects.toThrow('gone')
})
