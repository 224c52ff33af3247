import { expect, test } from 'vitest'
import { eventually, happens, until } from './until.ts'

test('the first result that is not undefined, null or false is returned', async () => {
  const results = [undefined, null, false, 0] as const
  let checks = 0

  expect(await until<number>('a number', () => results[checks++] as 0)).toBe(0)
  expect(checks).toBe(4)
})

test('an error counts as not yet, and is the cause when time is up', async () => {
  const errors = [new Error('first')]
  expect(await until('recovery', () => (errors.length > 0 ? Promise.reject(errors.pop()) : 'well'))).toBe('well')

  const failing = until('recovery', () => Promise.reject(new Error('refused')), 10)

  await expect(failing).rejects.toMatchObject({
    message: 'not within 0.01 s: recovery',
    cause: { message: 'refused' },
  })
})

test('the error contains the end of what the programs printed', async () => {
  const programs = [
    { id: 'n1', output: () => 'listening' },
    { name: 'n2', output: () => `start${'x'.repeat(6_000)}` },
  ]

  await expect(happens('a leader', programs, () => undefined, 10)).rejects.toThrow(
    /^not within 0\.01 s: a leader\n--- n1\nlistening\n--- n2\n…x{6000}$/,
  )
})

test('eventually has the first result without an error, or fails with the last error', async () => {
  let checks = 0
  const third = () => {
    checks++
    expect(checks).toBeGreaterThan(2)
    return checks
  }
  expect(await eventually(third, { interval: 1 })).toBe(3)

  const failing = eventually(() => Promise.reject(new Error(`check ${++checks}`)), { timeout: 10, interval: 1 })
  await expect(failing).rejects.toThrow(/^check \d+$/)
  expect(checks).toBeGreaterThan(4)
})
