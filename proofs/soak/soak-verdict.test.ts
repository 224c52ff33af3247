import { expect, test } from 'vitest'
import { parseMetrics } from '../../bench/src/metrics.ts'
import { type SoakLoad, type SoakSample, soakSample, soakVerdict } from './soak-verdict.ts'

const good: SoakLoad = { sent: 10, answered: 10, errors: {}, broken: '' }

function samplesOf(rssMb: (minute: number) => number, changes: Partial<SoakSample> = {}): SoakSample[] {
  return Array.from({ length: 21 }, (_, minute) => {
    return { seconds: minute * 60, rssBytes: rssMb(minute) * 1e6, delaySeconds: 0.012, serverErrors: 0, ...changes }
  })
}

const passed = (samples: readonly SoakSample[], load = good) => soakVerdict(samples, load).map((check) => check.passed)

test('steady memory, no stall and no error pass', () => {
  expect(passed(samplesOf((minute) => 600 + (minute % 2)))).toEqual([true, true, true])
})

test('memory may grow while it settles', () => {
  expect(passed(samplesOf((minute) => 400 + Math.min(minute, 5) * 40))).toEqual([true, true, true])
})

test('memory that keeps growing fails', () => {
  const [memory] = soakVerdict(
    samplesOf((minute) => 500 + 2 * minute),
    good,
  )

  expect(memory).toEqual({
    name: 'memory is flat',
    passed: false,
    text: '30.0 MB more in 15 minutes at 525 MB, allowed are 10.5',
  })
})

test('a stall fails, one before the load does not count', () => {
  const stallAt = (at: number) =>
    samplesOf(() => 500).map((sample, i) => (i === at ? { ...sample, delaySeconds: 0.051 } : sample))

  expect(passed(stallAt(0))).toEqual([true, true, true])
  expect(passed(stallAt(20))).toEqual([true, false, true])
  expect(soakVerdict(stallAt(7), good)[1]?.text).toBe('the longest took 51.0 ms')
})

test('a node that does not say how long its event loops take fails', () => {
  expect(passed(samplesOf(() => 500, { delaySeconds: undefined }))).toEqual([true, false, true])
})

test.each([
  [{ ...good, errors: { 429: 2 } }, '2 × 429'],
  [{ ...good, sent: 13 }, '3 requests without an answer'],
  [{ ...good, broken: 'the server closed a connection' }, 'the server closed a connection'],
])('any error fails (case %#)', (load, text) => {
  expect(
    soakVerdict(
      samplesOf(() => 500),
      load,
    )[2],
  ).toEqual({ name: 'no errors', passed: false, text })
})

test('a sample is read from the metrics of a node', () => {
  const text = `process_resident_memory_bytes 5e8
vacancy_event_loop_delay_seconds{thread="main"} 0.2
vacancy_event_loop_delay_seconds{thread="serving"} 0.004
tcp_errors_total 3
`

  expect(soakSample(parseMetrics(text), 7)).toEqual({
    seconds: 7,
    rssBytes: 5e8,
    delaySeconds: 0.004,
    serverErrors: 3,
  })
})
