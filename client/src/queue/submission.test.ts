import { expect, test } from 'vitest'
import { VacancyJobRefusedError } from './errors.ts'
import type { NewJob } from './job.ts'
import { bodyOf, encodeJob, outcomeOf, outcomesOf, quoted } from './submission.ts'

const jobs = (...ids: string[]) => ids.map((id) => ({ id, isRepeated: false }))

test('an id that occurs twice in a request is a duplicate the second time, or both times when it was known', () => {
  expect(outcomesOf(jobs('a', 'a'), ['a'])).toEqual(['accepted', 'duplicate'])
  expect(outcomesOf(jobs('a', 'a'), ['a', 'a'])).toEqual(['duplicate', 'duplicate'])
})

test('when more ids were known than are listed, jobs are stored by this request or before', () => {
  const body = JSON.stringify({ status: 'success', topic: 't', accepted: 0, duplicates: 2, duplicateIds: ['a'] })

  expect(outcomeOf(200, body, 2, undefined)).toEqual({ kind: 'stored', duplicateIds: undefined })
  expect(outcomesOf(jobs('a', 'b'), undefined)).toEqual(['stored', 'stored'])
})

test('a refusal names the time to wait in its body or in its header', () => {
  const body = JSON.stringify({ error: 'queue_full', message: 'full', retryAfterMs: 70 })

  expect(outcomeOf(429, body, 1, 1_000)).toMatchObject({ kind: 'repeat', waitMs: 70, inDoubt: false })
  expect(outcomeOf(429, '', 1, 1_000)).toMatchObject({ kind: 'repeat', code: 'http_429', waitMs: 1_000 })
})

test('failures without a place in the request are ignored', () => {
  const failures = [{ index: 9, id: 'x', reason: 'invalid_id' }, { id: 'y' }]
  const body = JSON.stringify({ error: 'invalid_request', message: 'm', failures })

  expect(outcomeOf(400, body, 1, undefined)).toEqual({
    kind: 'refused',
    code: 'invalid_request',
    message: 'm',
    maySplit: true,
  })
})

const JOB = { topic: 't', id: 'a' }
const encoded = (more: Partial<NewJob>) => JSON.parse(encodeJob({ ...JOB, ...more }, () => 'random').text)
const refusalOf = (job: object) => {
  try {
    return encodeJob(job as NewJob, () => 'random')
  } catch (error) {
    if (!(error instanceof VacancyJobRefusedError)) throw error
    const { code, topic, id, message, reason } = error
    return { code, topic, id, message, reason }
  }
}

test('a job is sent with its options, the payload in base64', () => {
  const runAt = new Date(Date.UTC(2027, 0, 1))
  expect(encodeJob({ topic: 't' }, () => 'random')).toEqual({
    topic: 't',
    id: 'random',
    text: '{"id":"random","data":null}',
  })
  expect(encoded({ data: null })).toEqual({ id: 'a', data: null })
  expect(encoded({ data: new Uint8Array([1, 2, 3, 4]).subarray(1, 3) })).toEqual({ id: 'a', data: 'AgM=' })
  expect(encoded({ text: '' })).toEqual({ id: 'a', data: '' })
  expect(encoded({ priority: 0, delayMs: 0, runAt, maxAttempts: 1, ackDeadlineMs: 7 })).toEqual({
    ...{ id: 'a', data: null, priority: 0, delay_ms: 0, run_at: '2027-01-01T00:00:00.000Z', max_attempts: 1 },
    ack_deadline_ms: 7,
  })
})

test.each<[string, object, string, string | undefined]>([
  ['a topic that is not text', { topic: 7 }, 'the topic must be 1 to 200 letters, digits or . _ : -', undefined],
  [
    'a topic of 201 characters',
    { topic: 'x'.repeat(201) },
    'the topic must be 1 to 200 letters, digits or . _ : -',
    undefined,
  ],
  [
    'a topic that begins with a dot',
    { topic: '.x' },
    'the topic must be 1 to 200 letters, digits or . _ : -',
    undefined,
  ],
  ['an id that is not text', { id: null }, 'the id must be text', 'invalid_id'],
  ['data and text', { data: 1, text: '1' }, 'a job has either data or text, which is a string', 'invalid_data'],
  ['a text that is none', { text: 7 }, 'a job has either data or text, which is a string', 'invalid_data'],
  ['a symbol', { data: Symbol('x') }, 'a symbol is not a JSON value', 'invalid_data'],
  [
    'a number beyond JSON',
    { data: 1n },
    'the data cannot be serialized: Do not know how to serialize a BigInt',
    'invalid_data',
  ],
  ['no time', { runAt: new Date(Number.NaN) }, 'runAt is not a valid time', 'invalid_option'],
])('%s is refused', (_, more, message, reason) => {
  const job = { ...JOB, ...more }
  expect(refusalOf(job)).toEqual({
    ...{ code: 'invalid_request', topic: String(job.topic), id: String(job.id), reason },
    message: `Job "${job.id}": ${message}.`,
  })
})

test('a topic has at most 200 characters, and an id is shown with at most 100', () => {
  expect(refusalOf({ ...JOB, topic: 'x'.repeat(200) })).toMatchObject({ id: 'a', topic: 'x'.repeat(200) })
  expect(quoted('x'.repeat(100))).toBe(`"${'x'.repeat(100)}"`)
  expect(quoted('x'.repeat(101))).toBe(`"${'x'.repeat(100)}…"`)
  expect(quoted('a"b')).toBe('"a\\"b"')
  expect(bodyOf('t', [encodeJob(JOB, String), encodeJob({ ...JOB, id: 'b' }, String)])).toBe(
    '{"topic":"t","jobs":[{"id":"a","data":null},{"id":"b","data":null}]}',
  )
})

const refused = (code: string, maySplit: boolean, message = 'm') => ({ kind: 'refused', code, message, maySplit })
const repeated = (code: string, inDoubt: boolean, more: object = {}) => ({
  ...{ kind: 'repeat', code, message: 'm', waitMs: undefined, inDoubt, owner: undefined, ...more },
})

test.each<[number, object, number | undefined, object]>([
  [400, { error: 'invalid_request', message: 'm' }, 9, refused('invalid_request', true)],
  [413, { error: 'request_too_large', message: 'm' }, 9, refused('request_too_large', true)],
  [401, { error: 'unauthorized', message: 'm' }, 9, refused('unauthorized', false)],
  [499, { message: 'm' }, 9, refused('http_499', false)],
  [404, {}, 9, refused('http_404', false, 'the response has status 404')],
  [408, { message: 'm' }, undefined, repeated('http_408', true)],
  [429, { error: 'queue_full', message: 'm' }, 9, repeated('queue_full', false, { waitMs: 9 })],
  [429, { error: 'queue_full', message: 'm', retryAfterMs: 0 }, 9, repeated('queue_full', false, { waitMs: 9 })],
  [429, { error: 'queue_full', message: 'm', retryAfterMs: 1 }, 9, repeated('queue_full', false, { waitMs: 1 })],
  [429, { error: 'queue_full', message: 'm', owner: 'x' }, undefined, repeated('queue_full', false)],
  [500, { error: 7, message: 'm' }, 9, repeated('http_500', true, { waitMs: 9 })],
  [503, { error: 'not_owner', message: 'm', owner: 'x' }, 9, repeated('not_owner', false, { waitMs: 9, owner: 'x' })],
  [503, { error: 'other', message: 'm', owner: 'x' }, undefined, repeated('other', true)],
  [302, { message: 'm' }, undefined, repeated('http_302', true)],
])('a response with status %d and %j', (status, body, retryAfterMs, outcome) => {
  expect(outcomeOf(status, JSON.stringify(body), 3, retryAfterMs)).toEqual(outcome)
})

test('a response that is no object is judged by its status', () => {
  for (const text of ['<html>', 'null', '7', '"x"'])
    expect(outcomeOf(503, text, 1, undefined)).toEqual(
      repeated('http_503', true, { message: 'the response has status 503' }),
    )
})

test('faulty jobs are those whose place is in the request', () => {
  const failures = [-1, 0, 2, 3, 1.5].map((index) => ({ index, reason: `r${index}` }))
  const outcome = outcomeOf(400, JSON.stringify({ error: 'invalid_request', message: 'm', failures }), 3, undefined)

  expect(outcome).toEqual({
    kind: 'faulty',
    message: 'm',
    reasons: new Map([
      [0, 'r0'],
      [2, 'r2'],
    ]),
  })
})

test.each<[string, object | undefined]>([
  ['', { kind: 'stored', duplicateIds: undefined }],
  ['{"status":"success","duplicates":0}', { kind: 'stored', duplicateIds: [] }],
  ['{"status":"success","duplicates":1,"duplicateIds":["a"]}', { kind: 'stored', duplicateIds: ['a'] }],
  ['{"status":"success","duplicates":1}', { kind: 'stored', duplicateIds: undefined }],
  ['{"status":"success","duplicates":1,"duplicateIds":"a"}', { kind: 'stored', duplicateIds: undefined }],
  ['{"status":"failure"}', repeated('malformed_reply', true, { message: 'the response is not that of a queue' })],
  ['<html>', repeated('malformed_reply', true, { message: 'the response is not that of a queue' })],
])('a response with status 200 and the text %j', (text, outcome) => {
  expect(outcomeOf(200, text, 1, 9)).toEqual(outcome)
})

test('a job that was sent before may have been stored by that request', () => {
  const sent = [
    { id: 'a', isRepeated: true },
    { id: 'b', isRepeated: true },
    { id: 'c', isRepeated: false },
  ]
  expect(outcomesOf(sent, ['a', 'c'])).toEqual(['stored', 'accepted', 'duplicate'])
  expect(outcomesOf([], [])).toEqual([])
})
