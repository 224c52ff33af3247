import { TOKEN_FAILURES_MAX } from '@vacancy/shared/tokens'
import { expect, test } from 'vitest'
import { createLoginFailures, noteLoginFailure } from './login-failures.ts'

const SECOND = 1_000_000_000n
const MINUTE = 60n * SECOND

function counter() {
  const cells = new Int32Array(createLoginFailures())
  return {
    cells,
    fail: (address: string, nowNs: bigint, times = 1) =>
      Array.from({ length: times }, () => noteLoginFailure(cells, address, nowNs)),
  }
}
const allowed = Array<boolean>(TOKEN_FAILURES_MAX).fill(false)

test('an address may fail so often within a minute, and again in the next one', () => {
  const { fail } = counter()
  for (const minute of [0n, 1n, 2n ** 32n]) {
    const start = minute * MINUTE
    expect(fail('10.0.0.1', start, TOKEN_FAILURES_MAX)).toEqual(allowed)
    expect(fail('10.0.0.1', start + MINUTE - 1n, 2)).toEqual([true, true])
  }
})

test('other addresses have counts of their own', () => {
  const { fail } = counter()
  fail('10.0.0.1', SECOND, TOKEN_FAILURES_MAX + 1)
  expect(fail('10.0.0.2', SECOND, TOKEN_FAILURES_MAX)).toEqual(allowed)
  expect(fail('1.0.0.10', SECOND, TOKEN_FAILURES_MAX)).toEqual(allowed)
})

test('40,000 addresses take no more memory, and spread over all of it', () => {
  const { cells, fail } = counter()
  for (let i = 0; i < 40_000; i++) fail(`2001:db8::${i.toString(16)}`, SECOND)
  expect(cells.length).toBe(8_192)
  const counts = cells.filter((_, at) => at % 2 === 1)
  expect(counts.reduce((sum, count) => sum + count)).toBe(40_000)
  expect(counts.every((count) => count > 0)).toBe(true)
  expect(Math.max(...counts)).toBeLessThan(40)
})
