import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createHistogram, merge, percentile, record } from './histogram.ts'

function histogramOf(values: readonly number[]) {
  const histogram = createHistogram()
  for (const value of values) record(histogram, value)
  return histogram
}

/** The slow, obvious percentile: sort and count. */
function exact(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(values.length * share)) - 1] ?? Number.NaN
}

const latencies = fc.array(fc.double({ min: 0, max: 200_000, noNaN: true }), { minLength: 1, maxLength: 200 })

test('percentiles are those of the sorted values, at most 1.6 per cent and a tick above', () => {
  fc.assert(
    fc.property(latencies, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
      const found = percentile(histogramOf(values), share)
      const wanted = exact(values, share)

      expect(found).toBeGreaterThanOrEqual(wanted)
      expect(found).toBeLessThanOrEqual(wanted * 1.016 + 0.0001)
    }),
  )
})

test('merged histograms answer like one that saw everything', () => {
  fc.assert(
    fc.property(latencies, latencies, (first, second) => {
      const merged = histogramOf(first)
      merge(merged, histogramOf(second))
      const whole = histogramOf([...first, ...second])

      expect(merged.counts).toEqual(whole.counts)
      expect(merged.count).toBe(whole.count)
      expect(merged.max).toBe(whole.max)
    }),
  )
})

test('the greatest latency is kept exactly, also beyond the last bucket', () => {
  const histogram = histogramOf([1, 250_000])

  expect(histogram.max).toBe(250_000)
  expect(percentile(histogram, 1)).toBeGreaterThan(214_000)
})

test('an empty histogram has no percentiles', () => {
  expect(percentile(createHistogram(), 0.5)).toBeNaN()
})
