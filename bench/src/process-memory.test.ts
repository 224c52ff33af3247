import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { residentBytes, residentOf } from './process-memory.ts'
import { NotMeasured } from './verdict.ts'

const ROLLUP = `00400000-7ffd6f5e2000 ---p 00000000 00:00 0                              [rollup]
Rss:              702464 kB
Pss:              640100 kB
Pss_Anon:         639000 kB
Anonymous:        639488 kB
Swap:                  0 kB
`

test('anonymous memory and pages of files add up to what is resident', () => {
  expect(residentOf(ROLLUP)).toEqual({
    resident: 702_464 * 1024,
    anonymous: 639_488 * 1024,
    file: (702_464 - 639_488) * 1024,
  })
})

test('a kernel that does not say it leaves the row not measured', () => {
  expect(() => residentOf('Rss: 1 kB\n')).toThrow(NotMeasured)
})

test.runIf(existsSync('/proc/self/smaps_rollup'))('this process holds what it has just filled', () => {
  const before = residentBytes(process.pid)
  const filled = Buffer.alloc(64 << 20, 1)
  const after = residentBytes(process.pid)

  expect(filled[1]).toBe(1)
  expect(after.anonymous - before.anonymous).toBeGreaterThan(48 << 20)
})
