/**
 * Reads the bodies of submissions by hand, because every job passes here (docs/design/queue.md#hot-path). A property
 * test holds it against the schemas in shared/src/contract/jobs.ts.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { hasRealDate, parseTraceparent, suggestion, traceparentOf } from '@vacancy/shared'
import { isJobId, JOB_LIMITS, JOB_OPTION_SPELLINGS, type JobFault, TOPIC_NAME } from '@vacancy/shared/contract'
import { FLAG, type NewJob } from './job.ts'
import { jsonPayloads } from './json-text.ts'

export type SubmissionLimits = {
  readonly jobsMax: number
  /** Of a decoded payload. */
  readonly jobBytesMax: number
}

export type Submitted = {
  readonly topic: string
  readonly jobs: readonly NewJob[]
}
/** Why a job is refused. */
type JobFailure = { readonly reason: JobFault; readonly message: string }
export type SubmissionFault = {
  readonly error: 'invalid_json' | 'invalid_request'
  readonly message: string
  readonly failures?: readonly (JobFailure & { readonly index: number; readonly id: string })[]
}

type Fields = { readonly [name: string]: unknown }
/** What a body is read with. */
type Reading = {
  readonly limits: SubmissionLimits
  /** Wall clock. */
  readonly nowMs: number
  /** The `traceparent` of jobs that name none. */
  readonly trace: string | undefined
  /** The text of `json` of the job at a position. */
  readonly jsonText: (index: number, value: unknown) => string
}

/** @param body the bytes of the request; @param nowMs wall clock, for delays; @param trace of jobs that name none */
export function parseSubmission(
  body: Buffer,
  limits: SubmissionLimits,
  nowMs: number,
  trace?: string | undefined,
): Submitted | SubmissionFault {
  const value = parseJsonBody(body)
  if (value === undefined) return { error: 'invalid_json', message: 'the body is not JSON in UTF-8' }
  let texts: readonly (string | undefined)[] | undefined
  const jsonText = (index: number) => {
    texts ??= jsonPayloads(body.toString('utf8'))
    return texts[index] ?? 'null'
  }
  return parseBody(value, { limits, nowMs, trace, jsonText })
}

/** The same of a body that was parsed as JSON: long numbers in `json` are as the parser left them. */
export function parseValue(
  value: unknown,
  limits: SubmissionLimits,
  nowMs: number,
  trace?: string | undefined,
): Submitted | SubmissionFault {
  return parseBody(value, { limits, nowMs, trace, jsonText: (_, json) => JSON.stringify(json) })
}

function parseBody(value: unknown, reading: Reading): Submitted | SubmissionFault {
  if (!isObject(value)) return invalid('the body must be an object with job, or with topic and jobs')
  const { job, jobs, topic } = value
  for (const name in value) if (!BODY_FIELDS.has(name)) return invalid(unknownText(name, BODY_FIELDS))
  if ((job === undefined) === (jobs === undefined)) return invalid('the body must have either job or jobs')
  return job === undefined ? parseBatch(topic, jobs, reading) : parseSingle(topic, job, reading)
}

function parseSingle(outer: unknown, value: unknown, reading: Reading): Submitted | SubmissionFault {
  if (!isObject(value)) return invalid('job must be an object')
  const { topic } = value
  if (!isTopicName(topic)) return invalid('job.topic must be 1 to 200 letters, digits or . _ : -')
  if (outer !== undefined && outer !== topic) return invalid('topic and job.topic differ')
  const job = parseJob(value, topic, 0, reading)
  if (!('reason' in job)) return { topic, jobs: [job] }
  return faults([{ index: 0, id: idOf(value), ...job }], 1)
}

function parseBatch(topic: unknown, entries: unknown, reading: Reading): Submitted | SubmissionFault {
  if (!isTopicName(topic)) return invalid('topic must be 1 to 200 letters, digits or . _ : -')
  if (!Array.isArray(entries) || entries.length === 0) return invalid('jobs must be a list of at least one job')
  const { jobsMax } = reading.limits
  if (entries.length > jobsMax) return invalid(`${entries.length} jobs; a request has at most ${jobsMax}`)
  const jobs: NewJob[] = new Array(entries.length)
  const failures: (JobFailure & { index: number; id: string })[] = []
  let faulty = 0
  for (let index = 0; index < entries.length; index++) {
    const entry: unknown = entries[index]
    const job = isObject(entry) ? parseJob(entry, topic, index, reading) : NO_JOB
    if (!('reason' in job)) jobs[index] = job
    else {
      faulty++
      if (failures.length < JOB_LIMITS.listedMax) failures.push({ index, id: idOf(entry), ...job })
    }
  }
  return faulty === 0 ? { topic, jobs } : faults(failures, entries.length, faulty)
}

/** A job as it is read: each option once, whatever its spelling. */
type JobFields = {
  id: unknown
  topic: unknown
  data: unknown
  json: unknown
  priority: unknown
  delayMs: unknown
  runAt: unknown
  maxAttempts: unknown
  ackDeadlineMs: unknown
  traceparent: unknown
}

const BODY_FIELDS: ReadonlySet<string> = new Set(['job', 'topic', 'jobs'])
const NAMES = [
  ...['id', 'topic', 'data', 'json', 'priority', 'traceparent', ...Object.keys(JOB_OPTION_SPELLINGS)],
] as (keyof JobFields)[]
/** Every accepted spelling of a field. */
const SPELLINGS: ReadonlyMap<string, keyof JobFields> = new Map([
  ...NAMES.map((name) => [name, name] as const),
  ...Object.entries(JOB_OPTION_SPELLINGS).map(([name, other]) => [other, name as keyof JobFields] as const),
])
/** What other queues call the payload. */
const PAYLOAD_NAMES = new Set(['payload', 'body', 'message', 'content', 'value', 'args'])

const NO_JOB: JobFailure = { reason: 'invalid_id', message: 'a job must be an object with an id' }

function readFields(given: Fields): JobFields | JobFailure {
  const fields: JobFields = {
    id: undefined,
    topic: undefined,
    data: undefined,
    json: undefined,
    priority: undefined,
    delayMs: undefined,
    runAt: undefined,
    maxAttempts: undefined,
    ackDeadlineMs: undefined,
    traceparent: undefined,
  }
  for (const name in given) {
    const field = SPELLINGS.get(name)
    if (field === undefined) return { reason: 'unknown_field', message: unknownText(name, SPELLINGS.keys()) }
    if (fields[field] !== undefined && given[name] !== undefined)
      return { reason: 'invalid_option', message: `${field} is given in two spellings` }
    fields[field] ??= given[name]
  }
  return fields
}

function unknownText(name: string, names: Iterable<string>): string {
  const meant = PAYLOAD_NAMES.has(name) ? '; did you mean json?' : suggestion(name, names)
  return `${name.slice(0, 100)} is not a known field${meant}`
}

function parseJob(given: Fields, topic: string, index: number, { limits, nowMs, trace, jsonText }: Reading) {
  const fields = readFields(given)
  if ('reason' in fields) return fields
  const { id, data, json, priority, delayMs, runAt: at, maxAttempts, ackDeadlineMs } = fields
  if (typeof id !== 'string' || !isJobId(id)) return INVALID_ID
  if (fields.topic !== undefined && fields.topic !== topic) return TOPIC_MISMATCH
  if (json !== undefined && data !== undefined) return invalidOption('a job has either data or json')
  const payload =
    json === undefined ? parsePayload(data, limits.jobBytesMax) : textPayload(jsonText(index, json), limits.jobBytesMax)
  if ('reason' in payload) return payload
  if (!isWholeOrAbsent(priority, 0, JOB_LIMITS.priorityMax)) return notWhole('priority', 0, JOB_LIMITS.priorityMax)
  if (!isWholeOrAbsent(delayMs, 0, JOB_LIMITS.delayMsMax)) return notWhole('delayMs', 0, JOB_LIMITS.delayMsMax)
  if (!isWholeOrAbsent(maxAttempts, 1, JOB_LIMITS.attemptsMax))
    return notWhole('maxAttempts', 1, JOB_LIMITS.attemptsMax)
  if (!isWholeOrAbsent(ackDeadlineMs, JOB_LIMITS.ackDeadlineMsMin, JOB_LIMITS.ackDeadlineMsMax))
    return notWhole('ackDeadlineMs', JOB_LIMITS.ackDeadlineMsMin, JOB_LIMITS.ackDeadlineMsMax)
  if (fields.traceparent !== undefined && typeof fields.traceparent !== 'string')
    return invalidOption('traceparent must be text')
  const context = fields.traceparent === undefined ? undefined : parseTraceparent(fields.traceparent)
  const ownTrace = context === undefined ? trace : traceparentOf(context)
  let flags = ownTrace === undefined ? payload.flags : payload.flags | FLAG.traced
  let runAt = delayMs === undefined || delayMs === 0 ? 0 : nowMs + delayMs
  if (at !== undefined) {
    if (delayMs !== undefined) return invalidOption('a job has either delayMs or runAt')
    const time = typeof at === 'string' && TIME.test(at) && hasRealDate(at) ? Date.parse(at) : Number.NaN
    if (Number.isNaN(time) || time > nowMs + JOB_LIMITS.delayMsMax)
      return invalidOption('runAt must be a time such as 2027-01-31T08:00:00Z, at most 365 days ahead')
    runAt = time
    flags |= FLAG.calendar
  }
  return {
    id,
    priority: priority ?? 0,
    flags,
    maxAttempts: maxAttempts ?? 0,
    ackDeadlineMs: ackDeadlineMs ?? 0,
    runAt,
    data: payload.data,
    bytes: payload.bytes,
    trace: ownTrace,
  }
}

const INVALID_ID: JobFailure = {
  reason: 'invalid_id',
  message: 'id must be 1 to 256 bytes of text without control characters',
}
const TOPIC_MISMATCH: JobFailure = { reason: 'topic_mismatch', message: 'all jobs of a request have one topic' }
const INVALID_BASE64: JobFailure = {
  reason: 'invalid_base64',
  message: 'data must be standard base64 with padding, without line breaks',
}

function tooLarge(bytesMax: number): JobFailure {
  return { reason: 'payload_too_large', message: `a payload has at most ${bytesMax} bytes` }
}

function invalidOption(message: string): JobFailure {
  return { reason: 'invalid_option', message }
}

function notWhole(name: string, min: number, max: number): JobFailure {
  return invalidOption(`${name} must be a whole number from ${min} to ${max}`)
}

type Payload = { readonly data: string | undefined; readonly bytes: number; readonly flags: number }
const NO_PAYLOAD: Payload = { data: undefined, bytes: 0, flags: 0 }

/** The payload as it is delivered: JSON text if it is that, else its base64. */
function parsePayload(data: unknown, bytesMax: number): Payload | JobFailure {
  if (data === undefined || data === null || data === '') return NO_PAYLOAD
  if (typeof data !== 'string') return INVALID_BASE64
  const bytes = base64Bytes(data)
  if (bytes > bytesMax) return tooLarge(bytesMax)
  // Node skips what is not base64 and takes the letters of URLs, so neither may occur.
  const decoded = decodeBase64(data, bytes)
  if (decoded.length !== bytes || data.includes('-') || data.includes('_')) return INVALID_BASE64
  return jsonPayload(decoded) ?? { data, bytes, flags: 0 }
}

/** A payload that was given as JSON. @param text a part of a body, which is not kept */
function textPayload(text: string, bytesMax: number): Payload | JobFailure {
  const bytes = Buffer.from(text)
  if (bytes.length > bytesMax) return tooLarge(bytesMax)
  const isNarrow = bytes.length === text.length
  const flags = isNarrow ? FLAG.json : FLAG.json | FLAG.wide
  return { data: bytes.toString(isNarrow ? 'latin1' : 'utf8'), bytes: bytes.length, flags }
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

function idOf(entry: unknown): string {
  const id = isObject(entry) ? entry['id'] : undefined
  return typeof id === 'string' ? id.slice(0, JOB_LIMITS.jobIdBytesMax) : ''
}

function invalid(message: string): SubmissionFault {
  return { error: 'invalid_request', message }
}

function faults(
  failures: readonly (JobFailure & { readonly index: number; readonly id: string })[],
  jobs: number,
  faulty = failures.length,
): SubmissionFault {
  const [first] = failures
  const why = `${first?.reason}, ${first?.message}`
  const message =
    jobs === 1 ? `the job is invalid: ${why}` : `${faulty} of ${jobs} jobs are invalid; job ${first?.index}: ${why}`
  return { error: 'invalid_request', message, failures }
}
