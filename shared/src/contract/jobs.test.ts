import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { consumerMessage } from './job-messages.ts'
import { isJobId, jobsBody, singleJobBody, TOPIC_NAME } from './jobs.ts'
import { applyOps, diffValues, TOPIC } from './live-frames.ts'

test.each([
  ['a', true],
  ['a b/ü🚗', true],
  ['x'.repeat(256), true],
  ['x'.repeat(257), false],
  ['\u00a0'.repeat(128), true],
  [`${'\u00a0'.repeat(128)}x`, false],
  ['\u07ff'.repeat(128), true],
  [`x${'\u07ff'.repeat(128)}`, false],
  // 85 characters of three bytes are 255 bytes.
  [`x${'\u0800'.repeat(85)}`, true],
  [`xx${'\u0800'.repeat(85)}`, false],
  [`x${'\ud7ff'.repeat(85)}`, true],
  [`xx${'\ud7ff'.repeat(85)}`, false],
  [`x${'\ue000'.repeat(85)}`, true],
  [`xx${'\ue000'.repeat(85)}`, false],
  ['\u{10000}'.repeat(64), true],
  [`x${'\u{10000}'.repeat(64)}`, false],
  ['', false],
  ['a\n', false],
  ['\u0000', false],
  ['\u0085', false],
  ['\ud800', false],
  ['a\udc00', false],
])('%j is a job id: %s', (id, expected) => {
  expect(isJobId(id)).toBe(expected)
})

test.each([
  ['a', true],
  ['A.b_c:d-9', true],
  ['9', true],
  ['x'.repeat(200), true],
  ['x'.repeat(201), false],
  ['', false],
  ['.a', false],
  ['a b', false],
  ['ä', false],
  ['a\n', false],
])('%j is the name of a topic: %s', (name, expected) => {
  expect(TOPIC_NAME.test(name)).toBe(expected)
})

const accepts = (schema: z.ZodType, value: unknown) => schema.safeParse(value).success
const YEAR_MS = 31_536_000_000

test.each<[string, object, object]>([
  ['a priority of 9', { priority: 9 }, { priority: 10 }],
  ['a priority of 0', { priority: 0 }, { priority: -1 }],
  ['a delay of a year', { delay_ms: YEAR_MS }, { delay_ms: YEAR_MS + 1 }],
  ['no delay', { delay_ms: 0 }, { delay_ms: -1 }],
  ['100 attempts', { max_attempts: 100 }, { max_attempts: 101 }],
  ['one attempt', { max_attempts: 1 }, { max_attempts: 0 }],
  ['a deadline of a second', { ack_deadline_ms: 1_000 }, { ack_deadline_ms: 999 }],
  ['a deadline of 12 hours', { ack_deadline_ms: 43_200_000 }, { ack_deadline_ms: 43_200_001 }],
  ['a time', { run_at: '2026-12-24T08:00:00Z' }, { run_at: '2026-12-24' }],
  ['a time or a delay', { delay_ms: 1 }, { delay_ms: 1, run_at: '2026-12-24T08:00:00Z' }],
  ['data of no bytes', { data: '' }, { data: '=' }],
  ['data of one byte', { data: 'YQ==' }, { data: 'YQ=' }],
  ['data of two bytes', { data: 'YWI=' }, { data: 'YWI' }],
  ['data of three bytes', { data: 'YWJj' }, { data: 'YWJ-' }],
  ['no data', { data: null }, { data: 7 }],
])('a job with %s is valid, and one beyond is not', (_, valid, invalid) => {
  for (const [options, expected] of [
    [valid, true],
    [invalid, false],
  ] as const) {
    expect(accepts(singleJobBody, { job: { id: 'j', topic: 't', ...options } })).toBe(expected)
    expect(accepts(jobsBody, { topic: 't', jobs: [{ id: 'j' }, { id: 'k', ...options }] })).toBe(expected)
  }
})

test.each<[string, object, object]>([
  ['an ack of 1,000 jobs', { action: 'ack', jobs: deliveries(1_000) }, { action: 'ack', jobs: deliveries(1_001) }],
  ['an ack of one job', { action: 'ack', jobs: deliveries(1) }, { action: 'ack', jobs: [] }],
  ['a nack that waits a year', { action: 'nack', delayMs: YEAR_MS }, { action: 'nack', delayMs: YEAR_MS + 1 }],
  ['a nack that does not wait', { action: 'nack', delayMs: 0 }, { action: 'nack', delayMs: -1 }],
  ['an extension of 1 ms', { action: 'extend', ms: 1 }, { action: 'extend', ms: 0 }],
  ['a credit of 0', { action: 'credit', prefetch: 0 }, { action: 'credit', prefetch: -1 }],
  ['a release by lease', { action: 'release', lease: 'l', seqId: 0 }, { action: 'release', seqId: -1 }],
  ['a ping', { action: 'ping' }, { action: 'pong' }],
])('%s is valid, and a message beyond is not', (_, valid, invalid) => {
  expect(accepts(consumerMessage, valid)).toBe(true)
  expect(accepts(consumerMessage, invalid)).toBe(false)
})

function deliveries(jobs: number): object[] {
  return Array.from({ length: jobs }, (_, seqId) => ({ jobId: 'j', seqId }))
}

/** JSON as received: own keys only, no minus zero. */
const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)

test('applying the differences to the old value gives the new one', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const ops = JSON.parse(JSON.stringify(diffValues(before, after)))
      expect(applyOps(before, ops)).toEqual(after)
    }),
  )
})

test('equal values have no differences', () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(diffValues(value, structuredClone(value))).toEqual([])
    }),
  )
})

test('unchanged parts stay the same objects', () => {
  const before = {
    shards: [
      { id: 's1', lag: 1 },
      { id: 's2', lag: 2 },
    ],
    at: 1,
  }
  const after = applyOps(before, [[['shards', 1, 'lag'], 7]]) as typeof before

  expect(after.shards[0]).toBe(before.shards[0])
  expect(after.shards[1]).toEqual({ id: 's2', lag: 7 })
  expect(before.shards[1]?.lag).toBe(2)
})

test('an op without a value removes the key, and null sets it', () => {
  expect(applyOps({ a: 1, b: 2 }, [[['a']], [['b'], null]])).toEqual({ b: null })
})

test('a key named __proto__ is an ordinary key', () => {
  const after = JSON.parse('{"__proto__": {"lag": 1}}') as object
  const ops = diffValues({}, after)

  const applied = applyOps({}, ops) as object

  expect(Object.keys(applied)).toEqual(['__proto__'])
  expect(JSON.stringify(applied)).toBe(JSON.stringify(after))
})

test.each([
  ['summary', true],
  ['shard:s1', true],
  ['node:s1/n1', true],
  ['shard:', false],
  ['shard:a b', false],
  ['users', false],
])('%s is a topic: %s', (name, expected) => expect(TOPIC.test(name)).toBe(expected))
