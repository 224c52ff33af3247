/** Messages of consumers, read by hand because every acknowledgement passes here, and the frames sent to them. */
import { suggestion } from '@vacancy/shared'
import { type ConsumerMessage, JOB_LIMITS, type MessageFault } from '@vacancy/shared/contract'
import { type Delivery, FLAG } from './job.ts'
import { isTopicName } from './submission.ts'

export type ParsedMessage = ConsumerMessage | { readonly fault: MessageFault; readonly error: string }

/** Field names without case and underscores → the name of the contract. */
const NAMES: { readonly [name: string]: string } = {
  action: 'action',
  topic: 'topic',
  jobid: 'jobId',
  lastid: 'seqId',
  seqid: 'seqId',
  lease: 'lease',
  jobs: 'jobs',
  requeue: 'requeue',
  delayms: 'delayMs',
  error: 'error',
  ms: 'ms',
  prefetch: 'prefetch',
  uuid: 'uuid',
  confirm: 'confirm',
}
/** Spellings seen before, so that most names need no normalisation. */
const KNOWN = new Map(
  Object.entries({
    ...NAMES,
    jobId: 'jobId',
    JobID: 'jobId',
    job_id: 'jobId',
    last_id: 'seqId',
    lastId: 'seqId',
    lastID: 'seqId',
    seqId: 'seqId',
    seq_id: 'seqId',
    delayMs: 'delayMs',
    delay_ms: 'delayMs',
  }),
)

type Fields = { [name: string]: unknown }

/** An acknowledgement as existing clients write it, without escapes. Every other text is parsed as JSON. */
const USUAL_ACK =
  /^\{"action":"ack","topic":"([^"\\\p{Cc}]*)","(?:last_id|lastID|seqId)":(0|[1-9]\d{0,14}),"(?:JobID|jobId)":"([^"\\\p{Cc}]*)"\}$/u

/** Fields that each message may have beside `action`. The name of the consumer may be in all. */
const REFERENCE = ['topic', 'jobId', 'seqId', 'lease', 'uuid']
const FIELDS: { readonly [action: string]: readonly string[] } = {
  init: ['uuid', 'topic', 'prefetch', 'confirm'],
  ack: [...REFERENCE, 'jobs'],
  nack: [...REFERENCE, 'requeue', 'delayMs', 'error'],
  release: REFERENCE,
  extend: [...REFERENCE, 'ms'],
  credit: ['topic', 'uuid', 'prefetch'],
  ping: ['topic', 'uuid'],
  close: ['topic', 'uuid'],
}
const ENTRY_FIELDS = ['jobId', 'seqId', 'lease']

/** @returns undefined when the text is not a JSON object */
export function parseMessage(text: string): ParsedMessage | undefined {
  const usual = USUAL_ACK.exec(text)
  if (usual !== null) {
    const [, topic = '', seqId, jobId = ''] = usual
    return topic === ''
      ? { action: 'ack', jobId, seqId: Number(seqId) }
      : { action: 'ack', topic, jobId, seqId: Number(seqId) }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The caller closes the connection.
    return undefined
  }
  if (!isObject(value)) return undefined
  const fields = normalized(value)
  if (typeof fields === 'string') return bad(fields)
  const { action } = fields
  const known = typeof action === 'string' && Object.hasOwn(FIELDS, action) ? FIELDS[action] : undefined
  const stray = known === undefined ? undefined : strayField(fields, ['action', ...known])
  return stray === undefined ? readMessage(fields) : bad(`${action} has no field ${stray}`)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The fields by their names in the contract, or what is wrong with them. */
function normalized(value: object): Fields | string {
  const fields: Fields = Object.create(null) as Fields
  for (const [given, content] of Object.entries(value)) {
    const name = KNOWN.get(given) ?? KNOWN.get(given.toLowerCase().replaceAll('_', ''))
    if (name === undefined) {
      return `${given.slice(0, 100)} is not a known field${suggestion(given, Object.values(NAMES))}`
    }
    // Existing clients send null and '' for what they leave out.
    if (content === null || content === '') continue
    if (fields[name] !== undefined && fields[name] !== content) return `${name} is given twice, with different values`
    fields[name] = content
  }
  return fields
}

/** A field of another message. Deliveries count from 1, so the number 0 names none. */
function strayField(fields: Fields, known: readonly string[]): string | undefined {
  return Object.keys(fields).find((name) => !known.includes(name) && !(name === 'seqId' && fields[name] === 0))
}

function readMessage(fields: Fields): ParsedMessage {
  switch (fields['action']) {
    case 'ack':
      return readAck(fields)
    case 'nack':
      return readNack(fields)
    case 'release':
      return readReference(fields, 'release')
    case 'extend': {
      const { ms } = fields
      if (ms !== undefined && !isWhole(ms, 1)) return bad('ms must be a whole number from 1')
      const message = readReference(fields, 'extend')
      return 'fault' in message || ms === undefined ? message : { ...message, ms }
    }
    case 'credit': {
      const { prefetch } = fields
      return isWhole(prefetch, 0) ? { action: 'credit', prefetch } : bad('credit needs prefetch, a whole number')
    }
    case 'ping':
    case 'close':
      return { action: fields['action'] }
    case 'init':
      return readInit(fields)
    default:
      return { fault: 'unknown_action', error: 'action must be ack, nack, release, extend, credit, ping or close' }
  }
}

function readInit({ uuid, topic, prefetch, confirm }: Fields): ParsedMessage {
  if (typeof uuid !== 'string' || uuid === '' || uuid.length > JOB_LIMITS.consumerNameMax || !isTopicName(topic))
    return bad('init needs uuid and topic')
  if (prefetch !== undefined && !isWhole(prefetch, 1)) return bad('prefetch must be at least 1')
  if (confirm !== undefined && typeof confirm !== 'boolean') return bad('confirm must be true or false')
  return {
    action: 'init',
    uuid,
    topic,
    ...(typeof prefetch === 'number' && { prefetch }),
    ...(confirm !== undefined && { confirm }),
  }
}

type Reference = { jobId?: string; seqId?: number; lease?: string }

/** undefined: a field has another type. */
function referenceOf({ jobId, seqId, lease }: Fields): Reference | undefined {
  const reference: Reference = {}
  if (jobId !== undefined) {
    if (typeof jobId !== 'string') return undefined
    reference.jobId = jobId
  }
  if (seqId !== undefined) {
    if (!isWhole(seqId, 0)) return undefined
    reference.seqId = seqId
  }
  if (lease !== undefined) {
    if (typeof lease !== 'string') return undefined
    reference.lease = lease
  }
  return reference
}

const BAD_REFERENCE = 'topic, jobId and lease must be text, seqId a whole number'

function readReference<A extends 'release' | 'extend'>(fields: Fields, action: A) {
  const reference = referenceOf(fields)
  const topic = topicOf(fields)
  if (reference === undefined || topic === undefined) return bad(BAD_REFERENCE)
  return { action, ...topic, ...reference } as { action: A } & Reference
}

function topicOf({ topic }: Fields): { topic?: string } | undefined {
  if (topic === undefined || topic === '') return {}
  return typeof topic === 'string' ? { topic } : undefined
}

function readAck(fields: Fields): ParsedMessage {
  const topic = topicOf(fields)
  const own = referenceOf(fields)
  if (topic === undefined || own === undefined) return bad(BAD_REFERENCE)
  const { jobs } = fields
  if (jobs === undefined) return { action: 'ack', ...topic, ...own }
  // Existing clients send the number 0 where they name no delivery.
  if (own.jobId !== undefined || own.lease !== undefined || (own.seqId ?? 0) > 0)
    return bad('ack has either jobs or one delivery')
  if (!Array.isArray(jobs) || jobs.length === 0 || jobs.length > JOB_LIMITS.acksPerMessage)
    return bad(`jobs must list 1 to ${JOB_LIMITS.acksPerMessage} deliveries`)
  const references: Reference[] = []
  for (const each of jobs as unknown[]) {
    const entry = isObject(each) ? normalized(each) : undefined
    if (typeof entry === 'string') return bad(`jobs: ${entry}`)
    const stray = entry === undefined ? undefined : strayField(entry, ENTRY_FIELDS)
    if (stray !== undefined) return bad(`jobs: an entry has no field ${stray}`)
    const reference = entry === undefined ? undefined : referenceOf(entry)
    if (reference === undefined) return bad(BAD_REFERENCE)
    references.push(reference)
  }
  return { action: 'ack', ...topic, jobs: references }
}

function readNack(fields: Fields): ParsedMessage {
  const reference = referenceOf(fields)
  const topic = topicOf(fields)
  const { requeue, delayMs, error } = fields
  if (reference === undefined || topic === undefined) return bad(BAD_REFERENCE)
  if (requeue !== undefined && typeof requeue !== 'boolean') return bad('requeue must be true or false')
  if (delayMs !== undefined && (!isWhole(delayMs, 0) || delayMs > JOB_LIMITS.delayMsMax))
    return bad(`delayMs must be a whole number up to ${JOB_LIMITS.delayMsMax}`)
  if (error !== undefined && typeof error !== 'string') return bad('error must be text')
  return {
    action: 'nack',
    ...topic,
    ...reference,
    ...(requeue !== undefined && { requeue }),
    ...(delayMs !== undefined && { delayMs }),
    ...(error !== undefined && { error }),
  }
}

function isWhole(value: unknown, min: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min
}

function bad(error: string): { fault: MessageFault; error: string } {
  return { fault: 'bad_message', error }
}

// --- Frames of the server ---

/** A message other than a job. The five fields are always there, with these types. */
export function frame(action: string, topic: string, jobId: string, seqId: number, data: unknown): string {
  return `{"action":"${action}","topic":"${topic}","jobId":${JSON.stringify(jobId)},"seqId":${seqId},"data":${JSON.stringify(data)}}`
}

/** The frame of a delivery, in parts: joining them would copy each payload once more. Sizes are in bytes. */
export type DeliveryParts = {
  readonly head: string
  readonly headSize: number
  /** As it is stored. */
  readonly payload: string
  readonly payloadSize: number
  /** ASCII. */
  readonly tail: string
}

/** A delivery to a consumer. Names of topics and leases need no escapes. */
export function deliveryParts({ job, seqId, deadlineMs }: Delivery, lease: string): DeliveryParts {
  const { data, flags, topic, failures, deliveries, bytes, trace } = job
  const isText = data !== undefined && (flags & FLAG.json) === 0
  const quote = isText ? '"' : ''
  const encoding = isText ? ',"encoding":"base64"' : ''
  const traceparent = trace === undefined ? '' : `,"traceparent":"${trace}"`
  const head = `{"action":"job","topic":"${topic.name}","jobId":${JSON.stringify(job.id)},"seqId":${seqId},"data":${quote}`
  const payload = data ?? 'null'
  return {
    head,
    headSize: Buffer.byteLength(head),
    payload,
    payloadSize: (flags & FLAG.wide) === 0 ? payload.length : bytes,
    tail: `${quote},"attempt":${failures + 1},"deliveries":${deliveries},"lease":"${lease}","ackDeadlineMs":${deadlineMs}${encoding}${traceparent}}`,
  }
}

/** Text frames of a server (RFC 6455), one after the other. */
export function encodeFrames(burst: readonly DeliveryParts[]): Buffer {
  let bytes = 0
  for (const parts of burst) {
    const size = sizeOf(parts)
    bytes += size + (size < MEDIUM ? 2 : size < LONG ? 4 : 10)
  }
  const frames = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const parts of burst) {
    const { head, headSize, payload, payloadSize, tail } = parts
    at = writeHeader(frames, at, sizeOf(parts))
    at += frames.write(head, at, headSize, headSize === head.length ? 'latin1' : 'utf8')
    at += frames.write(payload, at, payloadSize, payloadSize === payload.length ? 'latin1' : 'utf8')
    at += frames.write(tail, at, tail.length, 'latin1')
  }
  return frames
}

function sizeOf({ headSize, payloadSize, tail }: DeliveryParts): number {
  return headSize + payloadSize + tail.length
}

/** Payload lengths from which the header has two or eight bytes for it. */
const MEDIUM = 126
const LONG = 65_536
const FINAL_TEXT = 0x81

/** @returns the offset behind it */
function writeHeader(frames: Buffer, offset: number, size: number): number {
  frames[offset] = FINAL_TEXT
  if (size < MEDIUM) {
    frames[offset + 1] = size
    return offset + 2
  }
  if (size < LONG) {
    frames[offset + 1] = 126
    return frames.writeUInt16BE(size, offset + 2)
  }
  frames[offset + 1] = 127
  return frames.writeUInt32BE(size, frames.writeUInt32BE(0, offset + 2))
}
