import { expect, test } from 'vitest'
import { echoShare, judged, judgedLatency, judgedPeak, type Measure, NotMeasured, part, worstOf } from './verdict.ts'

const p99 = (value: number) => ({ name: 'p99', value, unit: 'ms' as const, target: { atMost: 1 } })
const peak = (value: number) => ({ name: 'peak', value, unit: '/s' as const, target: { atLeast: 60_000 } })

test('a value on its target meets it', () => {
  expect(judged(p99(1)).verdict).toBe('met')
  expect(judged(p99(1.01)).verdict).toBe('missed')
  expect(judged(peak(60_000)).verdict).toBe('met')
  expect(judged(peak(59_999)).verdict).toBe('missed')
})

test.each([
  ['within the target', 0.9, 0.1, false, 'met'],
  ['above it, on cores of its own', 1.1, 0.9, false, 'missed'],
  ['above it, on cores of its own, with an echo that misses it', 1.3, 1.1, false, 'missed'],
  ['within three times an echo that meets the target: it used to count as met', 2.9, 1, true, 'missed'],
  ['above three times an echo that meets the target', 3.1, 1, true, 'missed'],
  ['above three times an echo that misses the target itself: it used to be excused', 9, 2, true, 'missed'],
  ['as in row 4, whose echo missed by a hair', 4.3, 1.14, true, 'missed'],
  ['at three times an echo that misses the target itself', 6, 2, true, 'not measurable'],
  ['beside an echo that misses the target itself', 1.3, 1.1, true, 'not measurable'],
])('a latency %s', (_, value, echo, isShared, verdict) => {
  expect(judgedLatency(p99(value), { echo, isShared })).toMatchObject({
    verdict,
    baseline: { name: 'echo', value: echo },
  })
})

test.each([
  ['reached', 61_000, true, 99, 'met'],
  ['missed on cores of its own', 50_000, false, 10, 'missed'],
  ['missed on shared cores by a node that would carry it on two of its own', 50_000, true, 30, 'missed'],
  ['missed on shared cores by a node that would not', 50_000, true, 40, 'missed'],
])('a peak %s', (_, value, isShared, cpuMicros, verdict) => {
  expect(judgedPeak(peak(value), { isShared, generatorCores: 0.8, cpuMicros, threads: 2 }).verdict).toBe(verdict)
})

test('a busy node and a busy echo are compared by requests, idle ones by processor time', () => {
  const echo = { perSecond: 100_000, cpuMicros: 9.5 }

  expect(echoShare({ perSecond: 40_000, cpuMicros: 24 }, echo)).toEqual({ share: 0.4, by: 'requests' })
  expect(echoShare({ perSecond: 30_000, cpuMicros: 19 }, echo)).toEqual({ share: 0.5, by: 'processor' })
})

test('a row is as bad as its worst measure', () => {
  const measures = (...verdicts: Measure['verdict'][]): Measure[] =>
    verdicts.map((verdict) => ({ name: '', value: 0, unit: 'ms', ...(verdict && { verdict }) }))

  expect(worstOf(measures('met', undefined))).toBe('met')
  expect(worstOf(measures('met', 'not measurable'))).toBe('not measurable')
  expect(worstOf(measures('not measurable', 'missed', 'met'))).toBe('missed')
  expect(worstOf(measures('not measured', 'not measurable', 'met'))).toBe('not measured')
  expect(worstOf(measures(undefined))).toBe('not measured')
})

test('a part that fails leaves the other parts of its row alone', async () => {
  const fine: Measure = { name: 'size', value: 1, unit: 'MB', verdict: 'met' }
  const failed = await part('write', () => Promise.reject(new Error('no space left')))
  const missing = await part('load', () => Promise.reject(new NotMeasured('no benchmark')))

  expect(failed).toMatchObject([{ name: 'write', verdict: 'missed', why: 'no space left' }])
  expect(worstOf([fine, ...missing])).toBe('not measured')
  expect(worstOf([fine, ...failed, ...missing])).toBe('missed')
  expect(await part('size', () => Promise.resolve([fine]))).toEqual([fine])
})
