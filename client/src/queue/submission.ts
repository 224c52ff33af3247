/** Jobs as they are sent, and what a response means for each of them. Pure. */

import { unknownName } from '@vacancy/shared'
import { VacancyJobRefusedError } from './errors.ts'
import type { NewJob, SubmittedJob } from './job.ts'

/** A job as its request contains it. */
export type EncodedJob = { readonly topic: string; readonly id: string; readonly text: string }

const TOPIC_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/

const JOB_NAMES: readonly (keyof NewJob)[] = [
  ...([
    'topic',
    'id',
    'data',
    'text',
    'priority',
    'delayMs',
    'runAt',
    'maxAttempts',
    'ackDeadlineMs',
    'traceparent',
  ] as const),
]

/** @throws VacancyJobRefusedError for what no server can accept */
export function encodeJob(job: NewJob, randomId: () => string): EncodedJob {
  const { topic, id = randomId(), priority, delayMs, runAt, maxAttempts, ackDeadlineMs, traceparent } = job
  const named = { topic: String(topic), id: String(id) }
  for (const name in job)
    if (!(JOB_NAMES as readonly string[]).includes(name))
      throw invalid(named, unknownName(name, JOB_NAMES), 'unknown_field')
  if (typeof topic !== 'string' || !TOPIC_NAME.test(topic))
    throw invalid(named, 'the topic must be 1 to 200 letters, digits or . _ : -', undefined)
  if (typeof id !== 'string') throw invalid(named, 'the id must be text', 'invalid_id')
  const text = JSON.stringify({
    id,
    data: payloadOf(named, job),
    priority,
    delay_ms: delayMs,
    run_at: runAt instanceof Date ? timeOf(named, runAt) : runAt,
    max_attempts: maxAttempts,
    ack_deadline_ms: ackDeadlineMs,
    traceparent,
  })
  return { topic, id, text }
}

/** The payload in base64; null for none. */
function payloadOf(named: { topic: string; id: string }, { data, text }: NewJob): string | null {
  if (text !== undefined) {
    if (data !== undefined || typeof text !== 'string')
      throw invalid(named, 'a job has either data or text, which is a string', 'invalid_data')
    return Buffer.from(text).toString('base64')
  }
  if (data === undefined || data === null) return null
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')
  let json: string | undefined
  try {
    json = JSON.stringify(data)
  } catch (cause) {
    throw invalid(named, `the data cannot be serialized: ${(cause as Error).message}`, 'invalid_data', cause)
  }
  if (json === undefined) throw invalid(named, `a ${typeof data} is not a JSON value`, 'invalid_data')
  return Buffer.from(json).toString('base64')
}

function timeOf(named: { topic: string; id: string }, time: Date): string {
  if (Number.isNaN(time.getTime())) throw invalid(named, 'runAt is not a valid time', 'invalid_option')
  return time.toISOString()
}

function invalid(
  job: { readonly topic: string; readonly id: string },
  message: string,
  reason: string | undefined,
  cause?: unknown,
): VacancyJobRefusedError {
  return new VacancyJobRefusedError('invalid_request', job, `Job ${quoted(job.id)}: ${message}.`, reason, cause)
}

const SHOWN_MAX = 100

/** For messages. */
export function quoted(id: string): string {
  return JSON.stringify(id.length > SHOWN_MAX ? `${id.slice(0, SHOWN_MAX)}…` : id)
}

export function bodyOf(topic: string, jobs: readonly EncodedJob[]): string {
  return `{"topic":"${topic}","jobs":[${jobs.map(({ text }) => text).join(',')}]}`
}

/** What a response means for the jobs of its request. */
export type Outcome =
  /** All are stored. `duplicateIds` is undefined when it is not known which were stored before. */
  | { readonly kind: 'stored'; readonly duplicateIds: readonly string[] | undefined }
  /** None is stored, and these never will be. */
  | { readonly kind: 'faulty'; readonly faults: ReadonlyMap<number, JobFault> }
  /** None is stored, and a request with the same jobs never will be. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string; readonly maySplit: boolean }
  /** Repeat later, with the same ids. */
  | {
      readonly kind: 'repeat'
      readonly code: string
      readonly message: string
      readonly waitMs: number | undefined
      /** Some may be stored. */
      readonly inDoubt: boolean
      /** The process that owns the topic, as the response names it. */
      readonly owner: unknown
    }

/** Why a job is refused: for programs, and for people. */
type JobFault = { readonly reason: string; readonly message: string }

type Fields = { readonly [name: string]: unknown }

/** @param retryAfterMs of the header `Retry-After` */
export function outcomeOf(status: number, text: string, jobs: number, retryAfterMs: number | undefined): Outcome {
  const fields = fieldsOf(text)
  if (status === 200) return storedOf(text, fields)
  const code = typeof fields?.['error'] === 'string' ? fields['error'] : `http_${status}`
  const message = typeof fields?.['message'] === 'string' ? fields['message'] : `the response has status ${status}`
  if (status === 429) {
    const ms = fields?.['retryAfterMs']
    const waitMs = typeof ms === 'number' && ms > 0 ? ms : retryAfterMs
    return { kind: 'repeat', code, message, waitMs, inDoubt: false, owner: undefined }
  }
  if (status === 400) {
    const faults = faultsOf(fields, jobs, message)
    if (faults.size > 0) return { kind: 'faulty', faults }
  }
  // A request may have more jobs or bytes than the server accepts.
  if (status === 400 || status === 413) return { kind: 'refused', code, message, maySplit: true }
  if (status > 400 && status < 500 && status !== 408) return { kind: 'refused', code, message, maySplit: false }
  const owner = code === 'not_owner' ? fields?.['owner'] : undefined
  return { kind: 'repeat', code, message, waitMs: retryAfterMs, inDoubt: code !== 'not_owner', owner }
}

function storedOf(text: string, fields: Fields | undefined): Outcome {
  // `producer_response: empty`.
  if (text === '') return { kind: 'stored', duplicateIds: undefined }
  if (fields?.['status'] !== 'success') {
    // Something else than a queue responds at this address.
    const message = 'the response is not that of a queue'
    return { kind: 'repeat', code: 'malformed_reply', message, waitMs: undefined, inDoubt: true, owner: undefined }
  }
  const { duplicates, duplicateIds = [] } = fields
  // At most 100 are listed.
  const isWhole = Array.isArray(duplicateIds) && duplicateIds.length === duplicates
  return { kind: 'stored', duplicateIds: isWhole ? (duplicateIds as string[]) : undefined }
}

/** @param whole what the response says of all jobs, for a server that says no more */
function faultsOf(fields: Fields | undefined, jobs: number, whole: string): ReadonlyMap<number, JobFault> {
  const faults = new Map<number, JobFault>()
  const failures = fields?.['failures']
  for (const failure of Array.isArray(failures) ? (failures as Fields[]) : []) {
    const { index, reason, message } = failure
    if (Number.isInteger(index) && (index as number) >= 0 && (index as number) < jobs)
      faults.set(index as number, {
        reason: String(reason),
        message: typeof message === 'string' ? message : whole,
      })
  }
  return faults
}

function fieldsOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    // A proxy responds with its own text; the status decides.
    return undefined
  }
}

/**
 * Whether each job was stored by this request or before. An id that occurs twice in a request is a duplicate the
 * second time.
 */
export function outcomesOf(
  jobs: readonly { readonly id: string; readonly isRepeated: boolean }[],
  duplicateIds: readonly string[] | undefined,
): SubmittedJob['outcome'][] {
  if (duplicateIds === undefined) return jobs.map(() => 'stored')
  const left = new Map<string, number>()
  for (const id of duplicateIds) left.set(id, (left.get(id) ?? 0) + 1)
  const outcomes: SubmittedJob['outcome'][] = new Array(jobs.length)
  for (let n = jobs.length - 1; n >= 0; n--) {
    const { id, isRepeated } = jobs[n] as (typeof jobs)[number]
    const count = left.get(id) ?? 0
    if (count > 0) left.set(id, count - 1)
    // An earlier attempt without a response may have stored it.
    outcomes[n] = count === 0 ? 'accepted' : isRepeated ? 'stored' : 'duplicate'
  }
  return outcomes
}
