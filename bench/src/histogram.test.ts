import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFrameScanner, errorText, scanFrames } from './frame-scanner.ts'
import { createHistogram, merge, percentile, record } from './histogram.ts'
import { intendedMs, type Pacing, shareOf, voidReason } from './schedule.ts'

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

test('a regular schedule has equal distances for any sender', () => {
  const pacing = { kind: 'regular', requestsPerSecond: 2000 } as const
  const senders = 3
  const moments = [0, 1, 2].flatMap((sender) =>
    [0, 1, 2, 3].map((index) => intendedMs(pacing, index, { sender, senders })),
  )

  expect(moments.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i * 0.5))
})

test('a spike is intended at one moment, the next a period later', () => {
  const pacing = { kind: 'spike', requests: 5, periodMs: 100 } as const
  const first = [0, 1, 2, 3].map((index) => intendedMs(pacing, index, { sender: 0, senders: 2 }))
  const second = [0, 1, 2, 3].map((index) => intendedMs(pacing, index, { sender: 1, senders: 2 }))

  expect(first).toEqual([0, 0, 0, 100])
  expect(second).toEqual([0, 0, 100, 100])
})

test.each([
  [2000, 3],
  [1, 4],
  [7, 1],
])('shares of %i over %i senders add up and differ by one at most', (whole, senders) => {
  const shares = Array.from({ length: senders }, (_, sender) => shareOf(whole, { sender, senders }))

  expect(shares.reduce((sum, share) => sum + share)).toBe(whole)
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
})

const lateBy = (...ms: number[]) => {
  const late = createHistogram()
  for (const each of ms) record(late, each)
  return late
}
const often = (times: number, ms: number) => Array.from({ length: times }, () => ms)
const regular: Pacing = { kind: 'regular', requestsPerSecond: 1 }

test('a run counts while 99 of 100 sends are late by no more than the bound', () => {
  expect(voidReason(regular, { late: lateBy(...often(99, 1.9), 400), unsent: 0 })).toBe('')
})

test('a run is void when the generator was late more often', () => {
  expect(voidReason(regular, { late: lateBy(...often(98, 0.1), 5, 5), unsent: 0 })).toBe(
    'the generator was 5.0 ms late in 1 of 100 sends, allowed are 2 ms',
  )
})

test('a run is void when requests that were due were not sent at all', () => {
  expect(voidReason(regular, { late: lateBy(0), unsent: 3 })).toBe(
    'the generator did not send 3 requests that were due',
  )
})

test('a closed loop has no schedule to fall behind', () => {
  expect(voidReason({ kind: 'closed', pipelining: 1 }, { late: lateBy(50), unsent: 0 })).toBe('')
})

type Reply = { id: number; error?: string; bytes: number }

function frameOf({ id, error, bytes }: Reply): Buffer {
  const text = Buffer.from(error ?? '')
  const payload = error
    ? Buffer.concat([Buffer.from('\x05ERROR\x01\0\x01\0\x01'), Buffer.of(text.length, 0, 0, 0), text])
    : Buffer.concat([Buffer.from('\x07SUCCESS'), Buffer.alloc(bytes, 0xff)])
  const frame = Buffer.alloc(9 + payload.length)
  frame[0] = 0xff
  frame.writeUInt32LE(id, 1)
  frame.writeUInt32LE(payload.length, 5)
  payload.copy(frame, 9)
  return frame
}

function scanAll(chunks: readonly Uint8Array[]) {
  const scanner = createFrameScanner()
  const seen: { id: number; error?: string }[] = []
  const good = chunks.every((chunk) =>
    scanFrames(scanner, chunk, chunk.length, (id, isError) => {
      seen.push(isError ? { id, error: errorText(scanner) } : { id })
    }),
  )
  return { seen, good }
}

const replies = fc.array(
  fc.record({
    id: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    bytes: fc.nat(300),
    error: fc.option(fc.constantFrom('429', 'NOT_FOUND: property'), { nil: undefined }),
  }),
  { maxLength: 12 },
)

test('any cut of a stream gives the same frames', () => {
  fc.assert(
    fc.property(replies, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }), (wanted, sizes) => {
      const stream = Buffer.concat(wanted.map((reply) => frameOf(reply as Reply)))
      const chunks: Buffer[] = []
      let at = 0
      for (const size of sizes) {
        chunks.push(stream.subarray(at, at + size))
        at += size
      }
      chunks.push(stream.subarray(at))

      const { seen, good } = scanAll(chunks)

      expect(good).toBe(true)
      expect(seen).toEqual(wanted.map(({ id, error }) => (error ? { id, error } : { id })))
    }),
  )
})

test('one byte at a time is enough', () => {
  const stream = Buffer.concat([frameOf({ id: 7, bytes: 3 }), frameOf({ id: 8, bytes: 0, error: '503' })])
  const { seen } = scanAll([...stream].map((byte) => Uint8Array.of(byte)))

  expect(seen).toEqual([{ id: 7 }, { id: 8, error: '503' }])
})

test('a frame counts only when its last byte is here', () => {
  const frame = frameOf({ id: 1, bytes: 50 })

  expect(scanAll([frame.subarray(0, -1)]).seen).toEqual([])
})

test('a byte that begins no frame ends the scan', () => {
  expect(scanAll([Buffer.from('LOGIN OK, and more than ten bytes')]).good).toBe(false)
})

test('an empty payload ends the scan: no reply is empty', () => {
  expect(scanAll([Buffer.from('ff0100000000000000ff', 'hex')]).good).toBe(false)
})
