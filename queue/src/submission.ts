/**
 * Reads the bodies of submissions by hand, because every job passes here (docs/design/queue.md#hot-path). A property
 * test holds it against the schemas in shared/src/contract/jobs.ts.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { isJobId, JOB_LIMITS, type JobFault, TOPIC_NAME } from '@vacancy/shared/contract'
import { FLAG, type NewJob } from './job.ts'

export type SubmissionLimits = {
  readonly jobsMax: number
  /** Of a decoded payload. */
  readonly jobBytesMax: number
}

export type Submitted = {
  readonly topic: string
  readonly jobs: readonly NewJob[]
}
export type SubmissionFault = {
  readonly error: 'invalid_json' | 'invalid_request'
  readonly message: string
  readonly failures?: readonly { readonly index: number; readonly id: string; readonly reason: JobFault }[]
}

type Fields = { readonly [name: string]: unknown }

/** @param body the bytes of the request; @param nowMs wall clock, for `delay_ms` */
export function parseSubmission(body: Buffer, limits: SubmissionLimits, nowMs: number): Submitted | SubmissionFault {
  const value = parseJsonBody(body)
  if (value === undefined) return { error: 'invalid_json', message: 'the body is not JSON in UTF-8' }
  return parseValue(value, limits, nowMs)
}

/** The same of a body that was parsed as JSON. */
export function parseValue(value: unknown, limits: SubmissionLimits, nowMs: number): Submitted | SubmissionFault {
  if (!isObject(value)) return invalid('the body must be an object with job, or with topic and jobs')
  const { job, jobs } = value
  if ((job === undefined) === (jobs === undefined)) return invalid('the body must have either job or jobs')
  return job === undefined ? parseBatch(value, limits, nowMs) : parseSingle(job, limits, nowMs)
}

function parseSingle(value: unknown, limits: SubmissionLimits, nowMs: number): Submitted | SubmissionFault {
  if (!isObject(value)) return invalid('job must be an object')
  const { topic } = value
  if (!isTopicName(topic)) return invalid('job.topic must be 1 to 200 letters, digits or . _ : -')
  const job = parseJob(value, topic, limits, nowMs)
  if (typeof job !== 'string') return { topic, jobs: [job] }
  return faults([{ index: 0, id: idOf(value), reason: job }], 1)
}

function parseBatch(body: Fields, limits: SubmissionLimits, nowMs: number): Submitted | SubmissionFault {
  const { topic, jobs: entries } = body
  if (!isTopicName(topic)) return invalid('topic must be 1 to 200 letters, digits or . _ : -')
  if (!Array.isArray(entries) || entries.length === 0) return invalid('jobs must be a list of at least one job')
  if (entries.length > limits.jobsMax) return invalid(`${entries.length} jobs; a request has at most ${limits.jobsMax}`)
  const jobs: NewJob[] = new Array(entries.length)
  const failures: { index: number; id: string; reason: JobFault }[] = []
  let faulty = 0
  for (let index = 0; index < entries.length; index++) {
    const entry: unknown = entries[index]
    const job = isObject(entry) ? parseJob(entry, topic, limits, nowMs) : 'invalid_id'
    if (typeof job !== 'string') jobs[index] = job
    else {
      faulty++
      if (failures.length < JOB_LIMITS.listedMax) failures.push({ index, id: idOf(entry), reason: job })
    }
  }
  return faulty === 0 ? { topic, jobs } : faults(failures, entries.length, faulty)
}

function parseJob(fields: Fields, topic: string, limits: SubmissionLimits, nowMs: number): NewJob | JobFault {
  const { id, data } = fields
  if (typeof id !== 'string' || !isJobId(id)) return 'invalid_id'
  if (fields['topic'] !== undefined && fields['topic'] !== topic) return 'topic_mismatch'
  const payload = parsePayload(data, limits.jobBytesMax)
  if (typeof payload === 'string') return payload
  const { priority, delay_ms, run_at, max_attempts, ack_deadline_ms } = fields
  if (!isWholeOrAbsent(priority, 0, JOB_LIMITS.priorityMax)) return 'invalid_option'
  if (!isWholeOrAbsent(delay_ms, 0, JOB_LIMITS.delayMsMax)) return 'invalid_option'
  if (!isWholeOrAbsent(max_attempts, 1, JOB_LIMITS.attemptsMax)) return 'invalid_option'
  if (!isWholeOrAbsent(ack_deadline_ms, JOB_LIMITS.ackDeadlineMsMin, JOB_LIMITS.ackDeadlineMsMax))
    return 'invalid_option'
  let flags = payload.flags
  let runAt = delay_ms === undefined || delay_ms === 0 ? 0 : nowMs + delay_ms
  if (run_at !== undefined) {
    const time = typeof run_at === 'string' && delay_ms === undefined ? parseTime(run_at) : Number.NaN
    if (Number.isNaN(time) || time > nowMs + JOB_LIMITS.delayMsMax) return 'invalid_option'
    runAt = time
    flags |= FLAG.calendar
  }
  return {
    id,
    priority: priority ?? 0,
    flags,
    maxAttempts: max_attempts ?? 0,
    ackDeadlineMs: ack_deadline_ms ?? 0,
    runAt,
    data: payload.data,
    bytes: payload.bytes,
  }
}

type Payload = { readonly data: string | undefined; readonly bytes: number; readonly flags: number }
const NO_PAYLOAD: Payload = { data: undefined, bytes: 0, flags: 0 }

/** The payload as it is delivered: JSON text if it is that, else its base64. */
function parsePayload(data: unknown, bytesMax: number): Payload | 'invalid_base64' | 'payload_too_large' {
  if (data === undefined || data === null || data === '') return NO_PAYLOAD
  if (typeof data !== 'string') return 'invalid_base64'
  const bytes = base64Bytes(data)
  if (bytes > bytesMax) return 'payload_too_large'
  // Node skips what is not base64 and takes the letters of URLs, so neither may occur.
  const decoded = decodeBase64(data, bytes)
  if (decoded.length !== bytes || data.includes('-') || data.includes('_')) return 'invalid_base64'
  return jsonPayload(decoded) ?? { data, bytes, flags: 0 }
}

/** Payloads are decoded here, one after the other: none is kept as bytes. */
const scratch = Buffer.allocUnsafeSlow(65_536)

/** @returns bytes that the next call may overwrite */
function decodeBase64(data: string, bytes: number): Buffer {
  // Room for more than there should be, so that a payload of another length is noticed.
  if (bytes < 0 || data.length > scratch.length) return Buffer.from(data, 'base64')
  return scratch.subarray(0, scratch.write(data, 0, 'base64'))
}

/** Bytes of well-formed base64; -1 for another length than it can have. */
function base64Bytes(data: string): number {
  const { length } = data
  if ((length & 3) !== 0) return -1
  const padding = data.charCodeAt(length - 1) !== EQUALS ? 0 : data.charCodeAt(length - 2) !== EQUALS ? 1 : 2
  return (length >> 2) * 3 - padding
}
const EQUALS = 61

/** A payload that is a JSON text in UTF-8, without a byte order mark; undefined for any other. */
function jsonPayload(decoded: Buffer): Payload | undefined {
  // Most binary data differs in its first byte, without the cost of an exception.
  if (!JSON_START[decoded[0] ?? 0]) return undefined
  const isNarrow = isAscii(decoded)
  if (!isNarrow && !isUtf8(decoded)) return undefined
  const data = decoded.toString(isNarrow ? 'latin1' : 'utf8')
  try {
    JSON.parse(data)
    return { data, bytes: decoded.length, flags: isNarrow ? FLAG.json : FLAG.json | FLAG.wide }
  } catch {
    // Not JSON: delivered as base64.
    return undefined
  }
}

const JSON_START: readonly boolean[] = Array.from({ length: 256 }, (_, byte) =>
  ' \t\r\n{["-0123456789tfn'.includes(String.fromCharCode(byte)),
)

// --- Bodies ---

/** Larger bodies get memory of their own. */
const JOINED_BYTES_MAX = 4 << 20
let joining = Buffer.allocUnsafeSlow(0)

/**
 * The pieces of a body, as one. Memory outside the heap makes V8 collect garbage, so bodies are joined in the same memory
 * one after the other.
 *
 * @returns bytes that the next call may overwrite
 */
export function joined(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces
  if (pieces.length === 1 && first !== undefined) return first
  let bytes = 0
  for (const piece of pieces) bytes += piece.length
  if (bytes > JOINED_BYTES_MAX) return Buffer.concat(pieces, bytes)
  if (bytes > joining.length) joining = Buffer.allocUnsafeSlow(Math.min(2 * bytes, JOINED_BYTES_MAX))
  let at = 0
  for (const piece of pieces) at += piece.copy(joining, at)
  return joining.subarray(0, bytes)
}

/** Node keeps a longer text outside the heap. */
const INNER_TEXT_MAX = 1_000_000

function asciiText(body: Buffer): string {
  let text = ''
  for (let at = 0; at < body.length; at += INNER_TEXT_MAX) text += body.toString('latin1', at, at + INNER_TEXT_MAX)
  return text
}

/** The value of a body, or undefined when it is not JSON in UTF-8. */
export function parseJsonBody(body: Buffer): unknown {
  const isNarrow = isAscii(body)
  if (!isNarrow && !isUtf8(body)) return undefined
  try {
    return JSON.parse(isNarrow ? asciiText(body) : body.toString('utf8')) as unknown
  } catch {
    // The caller reports it.
    return undefined
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isTopicName(value: unknown): value is string {
  return typeof value === 'string' && TOPIC_NAME.test(value)
}

function isWholeOrAbsent(value: unknown, min: number, max: number): value is number | undefined {
  return value === undefined || (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
}

/** RFC 3339 in UTC, as in the schema. */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z$/

function parseTime(text: string): number {
  const time = TIME.test(text) ? Date.parse(text) : Number.NaN
  // Date.parse takes the 31st of February for the 3rd of March.
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === text.slice(0, 10) ? time : Number.NaN
}

function idOf(entry: unknown): string {
  const id = isObject(entry) ? entry['id'] : undefined
  return typeof id === 'string' ? id.slice(0, JOB_LIMITS.jobIdBytesMax) : ''
}

function invalid(message: string): SubmissionFault {
  return { error: 'invalid_request', message }
}

function faults(
  failures: readonly { index: number; id: string; reason: JobFault }[],
  jobs: number,
  faulty = failures.length,
): SubmissionFault {
  const message = jobs === 1 ? `the job is invalid: ${failures[0]?.reason}` : `${faulty} of ${jobs} jobs are invalid`
  return { error: 'invalid_request', message, failures }
}
