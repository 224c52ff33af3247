import { consumerMessage, jobsBody, queueErrorBody, serverMessage, singleJobBody } from '@vacancy/shared/contract'
import { createRandom, pick, type Random } from '@vacancy/testkit/random'
import { describe, expect, it } from 'vitest'
import { type DeliveryParts, encodeFrames, frame, parseMessage } from './consumer-messages.ts'
import { FLAG } from './job.ts'
import { parseSubmission } from './submission.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const CASES = 20_000
const LIMITS = { jobsMax: 1_000, jobBytesMax: 1 << 20 }
const NOW = Date.parse('2026-11-23T12:00:00Z')

/** Values that belong somewhere, and many that do not. */
function anyValue(random: Random): unknown {
  return pick<unknown>(random, [
    undefined,
    null,
    true,
    false,
    0,
    1,
    9,
    10,
    -1,
    0.5,
    101,
    1_000,
    43_200_001,
    2 ** 60,
    '',
    'a',
    'orders',
    '__proto__',
    'x'.repeat(200),
    'x'.repeat(257),
    'ü'.repeat(129),
    'a\u0000',
    '\ud800',
    'e30=',
    'e30',
    'e3-_',
    'e30=\n',
    'e30==',
    'AAAA',
    '====',
    '2026-12-01T00:00:00Z',
    '2026-02-31T00:00:00Z',
    '2026-12-01T00:00:00.123456Z',
    '2026-12-01',
    '2020-01-01T00:00:00Z',
    [],
    {},
    [1],
  ])
}

function anyJob(random: Random): { [name: string]: unknown } {
  const job: { [name: string]: unknown } = {
    id: pick(random, ['a', 'b', 'job-1']),
    data: pick(random, ['e30=', undefined, null]),
  }
  const spoiled = random.below(4)
  for (let n = 0; n < spoiled; n++)
    job[
      pick(random, [
        ...['id', 'topic', 'data', 'json', 'priority', 'delay_ms', 'run_at', 'max_attempts', 'ack_deadline_ms'],
        ...['delayMs', 'runAt', 'maxAttempts', 'ackDeadlineMs', 'traceparent', 'payload', 'runat'],
      ])
    ] = anyValue(random)
  return job
}

function anyBody(random: Random): unknown {
  const kind = random.below(10)
  if (kind === 0) return anyValue(random)
  const topic = random.below(8) === 0 ? anyValue(random) : 'orders'
  if (kind < 5)
    return {
      job: random.below(10) === 0 ? anyValue(random) : { topic, ...anyJob(random) },
      ...(random.below(20) === 0 && { [pick(random, ['topic', 'jbos'])]: anyValue(random) }),
    }
  const jobs =
    random.below(10) === 0 ? anyValue(random) : Array.from({ length: 1 + random.below(3) }, () => anyJob(random))
  return { topic, jobs }
}

/** What the schemas cannot express: the jobs of a batch have its topic, and times are at most a year ahead. */
function isValid(body: unknown): boolean {
  const single = singleJobBody.safeParse(body)
  const batch = jobsBody.safeParse(body)
  const isEither =
    (typeof body === 'object' && body !== null && 'job' in body && body.job !== undefined) !==
    (typeof body === 'object' && body !== null && 'jobs' in body && body.jobs !== undefined)
  if (!isEither) return false
  const jobs = single.success ? [single.data.job] : batch.success ? batch.data.jobs : undefined
  if (jobs === undefined) return false
  const topic = single.success ? single.data.job.topic : batch.data?.topic
  if (single.success && single.data.topic !== undefined && single.data.topic !== topic) return false
  return jobs.every((job) => {
    const runAt = job.run_at ?? job.runAt
    return (
      (job.topic === undefined || job.topic === topic) &&
      (runAt === undefined || Date.parse(runAt) <= NOW + 31_536_000_000)
    )
  })
}

describe('the parser of submissions', () => {
  it('accepts exactly what the schemas of the contract accept', () => {
    const random = createRandom(SEED)
    let accepted = 0
    for (let n = 0; n < CASES; n++) {
      const text = JSON.stringify(anyBody(random)) ?? 'null'
      const body: unknown = JSON.parse(text)
      const parsed = parseSubmission(Buffer.from(text), LIMITS, NOW)
      const isAccepted = !('error' in parsed)
      if (isAccepted !== isValid(body))
        throw new Error(`VACANCY_SEED=${SEED}, case ${n}: ${text} is ${isAccepted ? '' : 'not '}accepted`)
      if (isAccepted) accepted++
      else expect(queueErrorBody.safeParse(parsed).success).toBe(true)
    }
    expect(accepted).toBeGreaterThan(CASES / 10)
  })

  const parse = (body: string | object) =>
    parseSubmission(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), LIMITS, NOW)

  it.each([
    [{ job: { id: 'a', topic: 'orders', runat: '2026-12-01T00:00:00Z' } }, 'did you mean runAt?'],
    [{ job: { id: 'a', topic: 'orders', payload: { order: 1 } } }, 'did you mean json?'],
    [{ topic: 'orders', jobs: [{ id: 'a' }, { id: 'b', max_atempts: 1 }] }, 'did you mean max_attempts?'],
    [{ topic: 'orders', jobbs: [{ id: 'a' }] }, 'jobbs is not a known field; did you mean jobs?'],
    [{ topic: 'mail', job: { id: 'a', topic: 'orders' } }, 'topic and job.topic differ'],
    [{ job: { id: 'a', topic: 'orders', priority: 10 } }, 'priority must be a whole number from 0 to 9'],
    [{ job: { id: 'a', topic: 'orders', runAt: '2026-12-01' } }, 'runAt must be a time'],
    [
      { job: { id: 'a', topic: 'orders', run_at: '2026-12-01T00:00:00Z', runAt: '2026-12-01T00:00:00Z' } },
      'two spelling',
    ],
    [{ job: { id: 'a', topic: 'orders', data: 'e30=', json: {} } }, 'either data or json'],
  ])('refuses %j by name', (body, text) => {
    expect(JSON.stringify(parse(body))).toContain(text)
  })

  it('accepts options as responses name them, and as existing clients do', () => {
    const at = '2026-12-01T00:00:00Z'
    for (const options of [
      { runAt: at, maxAttempts: 2, ackDeadlineMs: 2_000 },
      { run_at: at, max_attempts: 2, ack_deadline_ms: 2_000 },
    ])
      expect(parse({ job: { id: 'a', topic: 'orders', ...options } })).toMatchObject({
        jobs: [{ runAt: Date.parse(at), maxAttempts: 2, ackDeadlineMs: 2_000 }],
      })
    for (const spelling of ['delay_ms', 'delayMs'])
      expect(parse({ job: { id: 'a', topic: 'orders', [spelling]: 5 } })).toMatchObject({ jobs: [{ runAt: NOW + 5 }] })
  })

  it('takes the trace of a job, else that of the request, and ignores a malformed one', () => {
    const [own, of] = ['a', 'b'].map((digit) => `00-${digit.repeat(32)}-b7ad6b7169203331-01`)
    const jobs = [{ id: 'a', traceparent: own }, { id: 'b' }, { id: 'c', traceparent: own?.toUpperCase() }]
    const tracesOf = (trace: string | undefined) => {
      const parsed = parseSubmission(Buffer.from(JSON.stringify({ topic: 'orders', jobs })), LIMITS, NOW, trace)
      return 'error' in parsed ? parsed : parsed.jobs.map(({ trace: found, flags }) => [found, flags & FLAG.traced])
    }
    expect(tracesOf(of)).toEqual([own, of, of].map((trace) => [trace, FLAG.traced]))
    expect(tracesOf(undefined)).toEqual([
      [own, FLAG.traced],
      [undefined, 0],
      [undefined, 0],
    ])
  })

  it('stores a payload that is given as JSON character by character', () => {
    for (const json of [
      '{"n":12345678901234567890.10, "n":1}',
      ' [ 1 ,"]}\\"" ] ',
      '"ü\\u0000"',
      'null',
      '-1e400',
      'false',
    ]) {
      const text = json.trim()
      const one = parse(`{ "job" : {"json":${json},"id":"a","topic":"orders"}}`)
      expect(one).toMatchObject({ jobs: [{ data: text, bytes: Buffer.byteLength(text) }] })
      const several = parse(
        `{"jobs":[{"id":"a"},{"json":0,"id":"b","js\\u006fn":${json}},{"data":"e30=","id":"c"}],"topic":"orders"}`,
      )
      expect(several).toMatchObject({ jobs: [{ bytes: 0 }, { data: text }, { data: '{}' }] })
    }
    expect(parse(`{"job":{"id":"a","topic":"orders","json":"${'x'.repeat(1 << 20)}"}}`)).toMatchObject({
      failures: [{ reason: 'payload_too_large' }],
    })
  })

  it('tells JSON payloads from others', () => {
    const flagsOf = (bytes: Uint8Array | string) => {
      const parsed = parseSubmission(
        Buffer.from(JSON.stringify({ job: { id: 'a', topic: 'orders', data: Buffer.from(bytes).toString('base64') } })),
        LIMITS,
        NOW,
      )
      return 'error' in parsed ? undefined : parsed.jobs[0]?.flags
    }
    for (const text of ['{}', ' 1 ', '"a"', 'true', '[{"a":[]}]']) expect(flagsOf(text)).toBe(FLAG.json)
    expect(flagsOf('"ü"')).toBe(FLAG.json | FLAG.wide)
    for (const text of ['{', 'nul', "'a'", '\uFEFF{}', '01', 'x']) expect(flagsOf(text)).toBe(0)
    expect(flagsOf(Buffer.from([0x22, 0xc3, 0x22]))).toBe(0)
  })
})

function anyMessage(random: Random): { [name: string]: unknown } {
  const action = pick<unknown>(random, [
    'init',
    'ack',
    'nack',
    'release',
    'extend',
    'credit',
    'ping',
    'close',
    'dance',
    7,
  ])
  const message: { [name: string]: unknown } = { action }
  if (action === 'init') Object.assign(message, { uuid: 'w', topic: 'orders' })
  if (action === 'credit') message['prefetch'] = 3
  const fields = [
    'jobId',
    'seqId',
    'lease',
    'jobs',
    'requeue',
    'delayMs',
    'error',
    'ms',
    'prefetch',
    'uuid',
    'confirm',
    'topic',
    'more',
  ]
  for (let n = random.below(4); n > 0; n--) {
    const name = pick(random, fields)
    message[name] =
      name === 'jobs'
        ? pick<unknown>(random, [[], [{ jobId: 'a' }], [{ seqId: 1 }, { seqId: -1 }], [7], 'x'])
        : anyValue(random)
  }
  return message
}

describe('the parser of consumer messages', () => {
  it('accepts exactly what the schema of the contract accepts', () => {
    const random = createRandom(SEED)
    let accepted = 0
    for (let n = 0; n < CASES; n++) {
      const text = JSON.stringify(anyMessage(random))
      // Existing clients send null, '' and the number 0 for what they leave out.
      const given = Object.fromEntries(
        Object.entries(JSON.parse(text) as object).filter(
          ([name, value]) => name === 'more' || !(value === null || value === '' || (name === 'seqId' && value === 0)),
        ),
      )
      const parsed = parseMessage(text)
      const isAccepted = parsed !== undefined && !('fault' in parsed)
      if (isAccepted !== consumerMessage.safeParse(given).success)
        throw new Error(`VACANCY_SEED=${SEED}, case ${n}: ${text} is ${isAccepted ? '' : 'not '}accepted`)
      if (isAccepted) accepted++
    }
    expect(accepted).toBeGreaterThan(CASES / 10)
  })

  it('takes the number 0 for no delivery, also beside a list', () => {
    const jobs = [{ jobId: 'a' }]
    expect(parseMessage(JSON.stringify({ action: 'ack', seqId: 0, jobs }))).toEqual({ action: 'ack', jobs })
    expect(parseMessage(JSON.stringify({ action: 'ack', seqId: 1, jobs }))).toHaveProperty('fault')
  })

  it.each([
    ['{"action":"ack","jobId":"a","jobID_2":"b"}', 'did you mean jobId?'],
    ['{"action":"nack","jobId":"a","delay":5000}', 'delay is not a known field; did you mean delayMs?'],
    ['{"action":"nack","jobId":"a","ms":5000}', 'nack has no field ms'],
    ['{"action":"ack","jobs":[{"jobId":"a","seq":1}]}', 'jobs: seq is not a known field; did you mean seqId?'],
    ['{"action":"ack","jobs":[{"jobId":"a"}],"jobId":"b"}', 'either jobs or one delivery'],
    ['{"action":"ack","jobId":"a","JobID":"b"}', 'given twice'],
    ['{"action":"init","uuid":"w","topic":"orders","prefech":1}', 'did you mean prefetch?'],
  ])('refuses %s by name', (text, error) => {
    expect(parseMessage(text)).toMatchObject({ fault: 'bad_message', error: expect.stringContaining(error) })
  })

  it('accepts what existing clients send beside the fields of the message', () => {
    expect(parseMessage('{"action":"init","uuid":"w","topic":"orders","JobID":"","last_id":0}')).toMatchObject({
      action: 'init',
    })
    expect(parseMessage('{"action":"ack","uuid":"w","topic":"orders","last_id":7,"JobID":"a","jobs":null}')).toEqual({
      action: 'ack',
      topic: 'orders',
      seqId: 7,
      jobId: 'a',
    })
  })

  it('matches field names without case and underscores', () => {
    for (const name of ['last_id', 'lastId', 'lastID', 'LASTID', 'seqId', 'seq_id', 'SeqID'])
      expect(parseMessage(`{"action":"ack","${name}":7}`)).toMatchObject({ seqId: 7 })
    for (const name of ['jobId', 'JobID', 'job_id', 'JOB_ID'])
      expect(parseMessage(`{"action":"ack","${name}":"a"}`)).toMatchObject({ jobId: 'a' })
  })

  it('sends frames that the contract allows', () => {
    for (const action of ['accepted', 'rejected', 'heartbeat', 'confirm', 'error', 'drain'])
      expect(serverMessage.safeParse(JSON.parse(frame(action, 'orders', 'a"b', 1, { x: 1 }))).success).toBe(true)
  })
})

/** A message whose text has so many bytes. */
function partsOf(size: number, payload = ''): DeliveryParts {
  const payloadSize = Buffer.byteLength(payload)
  const head = 'h'.repeat(Math.floor((size - payloadSize) / 2))
  const tail = 't'.repeat(size - payloadSize - head.length)
  return { head, headSize: head.length, payload, payloadSize, tail }
}

describe('frames to consumers', () => {
  // RFC 6455, section 5.2: the shortest form of the length.
  it.each([
    [1, [0x81, 1]],
    [125, [0x81, 125]],
    [126, [0x81, 126, 0, 126]],
    [127, [0x81, 126, 0, 127]],
    [65_535, [0x81, 126, 0xff, 0xff]],
    [65_536, [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]],
    [70_001, [0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x71]],
  ])('a text of %i bytes has the header %j', (size, header) => {
    const frames = encodeFrames([partsOf(size)])

    expect([...frames.subarray(0, header.length)]).toEqual(header)
    expect(frames.length).toBe(header.length + size)
    expect(frames.toString('latin1', header.length)).toMatch(/^h*t*$/)
  })
})
