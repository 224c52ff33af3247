import { describe, expect, test } from 'vitest'
import { type Compared, comparedMeasures, type Figures, rowsOf, spread, worseBy } from './compare.ts'
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

describe('comparison of two runs', () => {
  const latency = (base: number[], here: number[]): Compared => ({
    name: 'p50',
    unit: 'ms',
    isBetter: 'less',
    base,
    here,
  })
  const peak = (base: number[], here: number[]): Compared => ({
    name: 'peak',
    unit: '/s',
    isBetter: 'more',
    base,
    here,
  })
  const verdictOf = (compared: Compared) => comparedMeasures(compared)[0]?.verdict

  test('more time is worse, more throughput is better', () => {
    expect(worseBy(latency([1, 1, 1], [1.1, 1.1, 1.1]))).toBeCloseTo(0.1)
    expect(worseBy(peak([100, 100, 100], [110, 110, 110]))).toBeCloseTo(-0.1)
  })

  test('five per cent worse is allowed, more is not, when all runs say the same', () => {
    expect(verdictOf(latency([1, 1, 1], [1.04, 1.04, 1.04]))).toBe('met')
    expect(verdictOf(latency([1, 1, 1], [1.06, 1.06, 1.06]))).toBe('missed')
    expect(verdictOf(peak([100, 100, 100], [96, 96, 96]))).toBe('met')
    expect(verdictOf(peak([100, 100, 100], [94, 94, 94]))).toBe('missed')
  })

  test('the spread of the runs is allowed as well: half the distance between the quartiles of the noisier side', () => {
    // Quartiles 0.9 and 1.1.
    const noisy = [0.8, 0.9, 1, 1.1, 1.2]
    expect(spread({ base: noisy, here: [2, 2, 2, 2, 2] })).toBeCloseTo(0.1)

    expect(verdictOf(latency(noisy, [1.14, 1.14, 1.14, 1.14, 1.14]))).toBe('met')
    expect(verdictOf(latency(noisy, [1.16, 1.16, 1.16, 1.16, 1.16]))).toBe('missed')
  })

  test('one wild run neither moves the median nor excuses the others', () => {
    expect(verdictOf(latency([1, 1, 1, 1, 9], [1.2, 1.2, 1.2, 1.2, 1.2]))).toBe('missed')
  })

  test('the row has the difference, the limit, and the runs', () => {
    expect(comparedMeasures(latency([1, 1, 1], [1.5, 1.5, 1.5]))[0]).toMatchObject({
      value: 1.5,
      target: { atMost: 1.05 },
      baseline: { name: 'base', value: 1 },
      why: '50.0 % worse, allowed are 5.0 %; base 1.00 ms to 1.00 ms, here 1.50 ms to 1.50 ms',
    })
  })
})

const figures: Figures = {
  'searches of 300 hits, p50': 0.1,
  'searches of 300 hits, p99': 1,
  'selective searches, p50': 0.05,
  'selective searches, p99': 0.5,
  'peak of searches of 300 hits': 40_000,
  'peak of selective searches': 80_000,
  'processor time a search of 300 hits': 25,
  'processor time a selective search': 12,
  'peak of writes': 300_000,
  'processor time a write': 3,
  'records imported, one thread': 25,
  'records imported, build-snapshot as a whole': 19,
  'snapshot loaded and log read': 0.3,
  'start to active': 0.8,
  'resident memory after the searches': 150,
}

test('the same figures are worse nowhere, and every one of them has a row', () => {
  const rows = rowsOf({ base: [figures, figures], here: [figures, figures] })

  expect(rows.every(({ verdict }) => verdict === 'met')).toBe(true)
  expect(rows.flatMap(({ measures }) => measures.map(({ name }) => name)).toSorted()).toEqual(
    Object.keys(figures).toSorted(),
  )
})

test('more memory and fewer writes are each found in their own row', () => {
  const worse = { ...figures, 'resident memory after the searches': 165, 'peak of writes': 250_000 }
  const rows = rowsOf({ base: [figures, figures], here: [worse, worse] })

  expect(rows.filter(({ verdict }) => verdict === 'missed').map(({ what }) => what)).toEqual([
    'writes, each on disk when answered',
    'memory',
  ])
})
