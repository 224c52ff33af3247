import { expect, test } from 'vitest'
import { commonClockOffsetMs } from './clock.ts'

const hrtimeMs = () => Number(process.hrtime.bigint()) / 1e6
/** A pause of the process between two readings makes the offset larger. */
const PAUSE_MS = 1_000

test('the clock of a thread plus its offset is the clock of the process', () => {
  const offsetMs = commonClockOffsetMs()
  const before = hrtimeMs()
  const own = performance.now() + offsetMs
  const after = hrtimeMs()

  expect(own).toBeGreaterThan(before - 0.01)
  expect(own).toBeLessThan(after + PAUSE_MS)
})
