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
      pick(random, ['id', 'topic', 'data', 'priority', 'delay_ms', 'run_at', 'max_attempts', 'ack_deadline_ms', 'more'])
    ] = anyValue(random)
  return job
}

function anyBody(random: Random): unknown {
  const kind = random.below(10)
  if (kind === 0) return anyValue(random)
  const topic = random.below(8) === 0 ? anyValue(random) : 'orders'
  if (kind < 5) return { job: random.below(10) === 0 ? anyValue(random) : { topic, ...anyJob(random) } }
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
  return jobs.every(
    (job) =>
      (job.topic === undefined || job.topic === topic) &&
      (job.run_at === undefined || Date.parse(job.run_at) <= NOW + 31_536_000_000),
  )
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
      // Existing clients send null and '' for what they leave out.
      const given = Object.fromEntries(
        Object.entries(JSON.parse(text) as object).filter(
          ([name, value]) =>
            value !== null && !(name === 'topic' && value === '' && JSON.parse(text).action !== 'init'),
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
