import { expect, test } from 'vitest'
import { parseMetrics } from './metrics.ts'
import { type SoakLoad, type SoakSample, soakSample, soakVerdict } from './soak-verdict.ts'

const good: SoakLoad = { sent: 10, answered: 10, errors: {}, broken: '' }

function samplesOf(rssMb: (minute: number) => number, changes: Partial<SoakSample> = {}): SoakSample[] {
  return Array.from({ length: 21 }, (_, minute) => {
    return { seconds: minute * 60, rssBytes: rssMb(minute) * 1e6, stalls: 4, serverErrors: 0, ...changes }
  })
}

const passed = (samples: readonly SoakSample[], load = good) => soakVerdict(samples, load).map((check) => check.passed)

test('steady memory, no stall and no error pass', () => {
  expect(passed(samplesOf((minute) => 600 + (minute % 2)))).toEqual([true, true, true])
})

test('memory may grow while it settles', () => {
  expect(passed(samplesOf((minute) => 400 + Math.min(minute, 5) * 40))).toEqual([true, true, true])
})

test('memory that goes on growing fails', () => {
  const [memory] = soakVerdict(
    samplesOf((minute) => 500 + 2 * minute),
    good,
  )

  expect(memory).toEqual({
    name: 'memory is flat',
    passed: false,
    says: '30.0 MB more in 15 minutes at 525 MB, allowed are 10.5',
  })
})

test('a stall after the start fails, those before it do not count', () => {
  const samples = samplesOf(() => 500)
  const last = samples.map((sample, i) => (i === 20 ? { ...sample, stalls: 5 } : sample))

  expect(passed(samples)).toEqual([true, true, true])
  expect(passed(last)).toEqual([true, false, true])
})

test('a node that does not say how long its event loops take fails', () => {
  const { stalls: _, ...silent } = samplesOf(() => 500)[0] as SoakSample
  const samples = Array.from({ length: 9 }, (_, i) => ({ ...silent, seconds: i, stalls: undefined }))

  expect(passed(samples)).toEqual([true, false, true])
})

test.each([
  [{ ...good, errors: { 429: 2 } }, '2 × 429'],
  [{ ...good, sent: 13 }, '3 requests without an answer'],
  [{ ...good, broken: 'the server closed a connection' }, 'the server closed a connection'],
])('any error fails (case %#)', (load, says) => {
  expect(
    soakVerdict(
      samplesOf(() => 500),
      load,
    )[2],
  ).toEqual({ name: 'no errors', passed: false, says })
})

test('a sample counts the delays of serving threads that are longer than 50 ms', () => {
  const text = ['serving-0', 'serving-1', 'replica']
    .map(
      (thread, i) => `vacancy_event_loop_delay_seconds_bucket{le="0.05",thread="${thread}"} ${90 + i}
vacancy_event_loop_delay_seconds_bucket{le="+Inf",thread="${thread}"} 100
vacancy_event_loop_delay_seconds_count{thread="${thread}"} 100`,
    )
    .join('\n')
  const sample = soakSample(parseMetrics(`${text}\nprocess_resident_memory_bytes 5e8\ntcp_errors_total 3\n`), 7)

  expect(sample).toEqual({ seconds: 7, rssBytes: 5e8, stalls: 19, serverErrors: 3 })
})
