/**
 * The job queue: bodies of the producer interface, messages of the consumer interface, and the paths under
 * /api/v1/queue (docs/design/queue.md).
 */

import { z } from 'zod'
import { type ControlRoute, count, time } from './control.ts'

/** Bounds that no configuration raises. */
export const JOB_LIMITS = {
  topicNameMax: 200,
  topicsMax: 10_000,
  /** Bytes of UTF-8. */
  jobIdBytesMax: 256,
  priorityMax: 9,
  delayMsMax: 31_536_000_000,
  attemptsMax: 100,
  ackDeadlineMsMin: 1_000,
  ackDeadlineMsMax: 43_200_000,
  prefetchMax: 1_000,
  /** Characters of the name that a consumer gives itself. */
  consumerNameMax: 200,
  acksPerMessage: 1_000,
  errorTextMax: 1_000,
  historyMax: 20,
  /** Entries listed in `failures`, `duplicateIds`, `missing` and `conflicts`. */
  listedMax: 100,
  pageMax: 500,
  /** Dead jobs that one request moves or deletes, in one transaction. */
  movedMax: 10_000,
  /** Jobs a second of a long redrive. */
  redriveRateMax: 20_000,
  /** Rows that can be paged of jobs that are ready, delayed or leased. */
  listedJobsMax: 10_000,
  /** Finished jobs that a topic remembers for display. */
  finishedShownMax: 1_000,
  /** Of the payload, in lists with `head=1`. */
  headBytes: 120,
  /** Topics of a process whose course is kept, for charts. */
  chartedTopicsMax: 1_000,
  /** Events that a live tail keeps, and takes a second; others are counted as skipped. */
  tailKept: 200,
  tailPerSecond: 50,
  /** Jobs with the same id in several topics that a search lists. */
  foundMax: 20,
  /** Characters of the reason for a change. */
  reasonMax: 500,
} as const

/** Close codes of the consumer WebSocket. `broken` is never sent: the connection ended without a close message. */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  binary: 1003,
  broken: 1006,
  notJson: 1007,
  tooLarge: 1009,
  internal: 1011,
  overloaded: 1013,
  badMessages: 4400,
  tokenRevoked: 4401,
  disconnected: 4403,
  topicDeleted: 4404,
  noInit: 4408,
  replaced: 4409,
} as const

/** Error codes of the queue with their HTTP status. */
export const QUEUE_ERRORS = {
  invalid_json: 400,
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  topic_not_found: 404,
  job_not_found: 404,
  method_not_allowed: 405,
  topic_exists: 409,
  topic_not_empty: 409,
  job_leased: 409,
  redrive_running: 409,
  request_too_large: 413,
  address_too_long: 414,
  packed_body: 415,
  queue_full: 429,
  headers_too_large: 431,
  service_unavailable: 503,
  not_owner: 503,
  outcome_unknown: 503,
} as const
export type QueueErrorCode = keyof typeof QUEUE_ERRORS

export const TOPIC_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/
export const topicName = z.string().regex(TOPIC_NAME, 'must be 1 to 200 letters, digits or . _ : -')

/** Whether a text is a job id: 1 to 256 bytes of UTF-8 without control characters. */
export function isJobId(text: string): boolean {
  // Most ids are short: at most 3 bytes of UTF-8 a code unit, so the bytes need no counting.
  if (text.length === 0 || text.length > JOB_LIMITS.jobIdBytesMax) return false
  if (JOB_ID_REFUSED.test(text)) return false
  return text.length * 3 <= JOB_LIMITS.jobIdBytesMax || utf8Length(text) <= JOB_LIMITS.jobIdBytesMax
}
/** Control characters, and surrogates without their partner, which UTF-8 cannot express. */
const JOB_ID_REFUSED = /[\p{Cc}\p{Cs}]/u

/** Bytes of a text in UTF-8. */
function utf8Length(text: string): number {
  let bytes = text.length
  for (let n = 0; n < text.length; n++) {
    const unit = text.charCodeAt(n)
    if (unit >= 0x80) bytes += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  return bytes
}
const jobId = z.string().refine(isJobId, 'must be 1 to 256 bytes without control characters')

const ackDeadlineMs = z.int().min(JOB_LIMITS.ackDeadlineMsMin).max(JOB_LIMITS.ackDeadlineMsMax)
const attempts = z.int().min(1).max(JOB_LIMITS.attemptsMax)
const flag = z.boolean()

/** The configuration of a topic, each key with its default. */
export const topicConfig = z.object({
  ack_deadline_ms: ackDeadlineMs.default(30_000),
  max_attempts: attempts.default(5),
  max_deliveries: z.int().min(1).max(1_000).default(20),
  retry_base_ms: z.int().min(0).max(86_400_000).default(1_000),
  retry_max_ms: z.int().min(0).max(86_400_000).default(60_000),
  max_jobs: z.int().min(1).max(100_000_000).default(1_000_000),
  max_bytes: z.int().min(1).max(1_099_511_627_776).default(1_073_741_824),
  dedup_window_sec: z.int().min(0).max(2_592_000).default(0),
  dlq_max_jobs: z.int().min(0).max(10_000_000).default(100_000),
  dlq_max_bytes: z.int().min(0).max(1_099_511_627_776).default(104_857_600),
  dlq_max_age_ms: z.int().min(1_000).max(31_536_000_000).default(1_209_600_000),
  ordered: flag.default(false),
  max_leased: z.int().min(0).max(10_000_000).default(0),
  rate_per_sec: z.number().min(0).max(1_000_000).default(0),
  exclusive_consumer_name: flag.default(false),
  starvation_guard: z.int().min(0).max(1_000_000).default(16),
  paused: flag.default(false),
})
export type TopicConfig = z.infer<typeof topicConfig>
/** Keys that are absent keep their value; `.default` would fill them in. */
const topicConfigChange = z.strictObject(
  Object.fromEntries(Object.entries(topicConfig.shape).map(([key, field]) => [key, field.unwrap().optional()])) as {
    [K in keyof typeof topicConfig.shape]: z.ZodOptional<ReturnType<(typeof topicConfig.shape)[K]['unwrap']>>
  },
)

// --- Producer interface ---

export const topicBody = z.strictObject({ topic: topicName, config: topicConfigChange.optional() })

/** Standard base64 with padding; null or absent is the payload null. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
/** Options of a job as responses name them → as existing clients name them. Both are accepted. */
export const JOB_OPTION_SPELLINGS = {
  delayMs: 'delay_ms',
  runAt: 'run_at',
  maxAttempts: 'max_attempts',
  ackDeadlineMs: 'ack_deadline_ms',
} as const
const delayMs = z.int().min(0).max(JOB_LIMITS.delayMsMax).optional()
const runAt = time.optional()
const maxAttempts = attempts.optional()
const jobAckDeadlineMs = ackDeadlineMs.optional()
const submittedJob = z.strictObject({
  id: jobId,
  topic: z.string().optional(),
  data: z.string().regex(BASE64).nullish(),
  /** Any JSON, in the place of `data`. */
  json: z.unknown().optional(),
  priority: z.int().min(0).max(JOB_LIMITS.priorityMax).optional(),
  /** Of the trace that consumers continue, instead of the one of the request; a malformed one is ignored. */
  traceparent: z.string().optional(),
  ...{ delayMs, runAt, maxAttempts, ackDeadlineMs: jobAckDeadlineMs },
  ...{ delay_ms: delayMs, run_at: runAt, max_attempts: maxAttempts, ack_deadline_ms: jobAckDeadlineMs },
})
type SubmittedJob = z.infer<typeof submittedJob>

function hasOneOfEach(job: SubmittedJob): boolean {
  const isGiven = (name: keyof SubmittedJob) => job[name] !== undefined
  if (isGiven('data') && isGiven('json')) return false
  if ((isGiven('delay_ms') || isGiven('delayMs')) && (isGiven('run_at') || isGiven('runAt'))) return false
  return Object.entries(JOB_OPTION_SPELLINGS).every(
    ([name, other]) => !isGiven(name as keyof SubmittedJob) || !isGiven(other),
  )
}
const ONE_OF_EACH = 'has both data and json, both a delay and a time, or an option in two spellings'

/** `POST /producer/jobs` with one job. */
export const singleJobBody = z.strictObject({
  topic: z.string().optional(),
  job: submittedJob.extend({ topic: topicName }).refine(hasOneOfEach, ONE_OF_EACH),
})
/** `POST /producer/jobs` with several jobs of one topic. */
export const jobsBody = z.strictObject({
  topic: topicName,
  jobs: z.array(submittedJob.refine(hasOneOfEach, ONE_OF_EACH)).min(1),
})

export const JOB_FAULTS = [
  'invalid_id',
  'invalid_base64',
  'payload_too_large',
  'topic_mismatch',
  'invalid_option',
  'unknown_field',
] as const
export type JobFault = (typeof JOB_FAULTS)[number]

const submittedBody = z.object({
  status: z.literal('success'),
  topic: z.string(),
  accepted: count,
  duplicates: count,
  duplicateIds: z.array(z.string()).optional(),
  /** Of these, those that are known with another payload, which stays. */
  differentIds: z.array(z.string()).optional(),
})
export type SubmittedBody = z.infer<typeof submittedBody>

export const queueErrorBody = z.object({
  error: z.enum(Object.keys(QUEUE_ERRORS) as [QueueErrorCode, ...QueueErrorCode[]]),
  message: z.string(),
  failures: z
    .array(z.object({ index: count, id: z.string(), reason: z.enum(JOB_FAULTS), message: z.string() }))
    .readonly()
    .optional(),
  retryAfterMs: count.optional(),
  owner: z.string().optional(),
})
export type QueueErrorBody = z.infer<typeof queueErrorBody>

// --- Jobs, topics and consumers as they are shown ---

export const JOB_STATES = ['ready', 'delayed', 'leased', 'dead', 'done'] as const
export type JobState = (typeof JOB_STATES)[number]
export const DEAD_REASONS = ['max_attempts', 'max_deliveries', 'rejected'] as const
export type DeadReason = (typeof DEAD_REASONS)[number]
const JOB_EVENTS = ['delivered', 'nack', 'expired', 'disconnect', 'release', 'dead', 'redriven'] as const
export type JobEvent = (typeof JOB_EVENTS)[number]

const jobHistory = z.array(z.object({ at: time, event: z.enum(JOB_EVENTS), consumer: z.string(), error: z.string() }))

const jobView = z.object({
  id: z.string(),
  topic: z.string(),
  state: z.enum(JOB_STATES),
  priority: count,
  failures: count,
  deliveries: count,
  maxAttempts: count,
  createdAt: time,
  /** When a delayed job becomes ready. */
  runAt: time.nullable(),
  leaseUntil: time.nullable(),
  /** Name of the consumer that holds it. */
  consumer: z.string().nullable(),
  lastError: z.string().nullable(),
  /** Of the payload. */
  bytes: count,
  deadAt: time.nullable(),
  reason: z.enum(DEAD_REASONS).nullable(),
  finishedAt: time.nullable(),
  /** Base64; null for the payload null. With `?data=1`. */
  data: z.string().nullable().optional(),
  /** The first bytes of the payload, likewise. In lists with `?head=1`. */
  head: z.string().nullable().optional(),
})
export type JobView = z.infer<typeof jobView>

const topicRow = z.object({
  topic: z.string(),
  paused: z.boolean(),
  createdAt: time,
  ready: count,
  delayed: count,
  leased: count,
  dead: count,
  consumers: count,
})
export type TopicRow = z.infer<typeof topicRow>
const topicView = topicRow.extend({ config: topicConfig })

/** Counted since the process started. */
const topicTotals = z.object({
  accepted: count,
  duplicates: count,
  delivered: count,
  redelivered: count,
  acked: count,
  lateAcked: count,
  nacked: count,
  expired: count,
  disconnected: count,
  dead: count,
  deadDropped: count,
  cancelled: count,
  redriven: count,
  rejected: count,
})
export type TopicTotals = z.infer<typeof topicTotals>

const topicStats = z.object({
  topic: z.string(),
  paused: z.boolean(),
  ready: count,
  delayed: count,
  leased: count,
  dead: count,
  /** Of payloads of unfinished jobs. */
  bytes: count,
  oldestReadyMs: z.number().nonnegative(),
  consumers: count,
  stalledConsumers: count,
  totals: topicTotals,
  /** A second, over the last minute. */
  rates1m: z.object({
    accepted: z.number(),
    delivered: z.number(),
    acked: z.number(),
    failed: z.number(),
  }),
})
export type TopicStats = z.infer<typeof topicStats>

/** What is kept of a topic every ten seconds for an hour. */
export const TOPIC_SERIES = [
  ...(['in', 'out', 'failed', 'ready', 'delayed', 'leased', 'dead', 'oldest'] as const),
  ...(['deliveryP50', 'deliveryP99', 'handlingP50', 'handlingP99'] as const),
] as const
export type TopicSeries = (typeof TOPIC_SERIES)[number]

const course = {
  from: time,
  to: time,
  stepSeconds: count,
}
/**
 * In, out and failed are rates a second, oldest is the age of the oldest ready job in seconds. Delivery is the time from
 * acceptance to the first delivery, handling that from a delivery to its acknowledgement, in seconds, of the jobs of one
 * step. Null is a gap, and a step without such jobs.
 */
const topicHistory = z.object({
  topic: z.string(),
  ...course,
  series: z.array(z.object({ name: z.enum(TOPIC_SERIES), values: z.array(z.number().nullable()) })),
})
export type TopicHistory = z.infer<typeof topicHistory>

/** What happened to a job, as a live tail shows it. */
const TAIL_EVENTS = [
  'accepted',
  'delivered',
  'done',
  'failed',
  'expired',
  'disconnected',
  'released',
  'dead',
  'redriven',
  'cancelled',
] as const
export type TailEventKind = (typeof TAIL_EVENTS)[number]

const tailEvent = z.object({
  /** Unique in this tail, and growing. */
  n: count,
  at: time,
  event: z.enum(TAIL_EVENTS),
  id: z.string(),
  /** Name of the consumer; null where none had the job. */
  consumer: z.string().nullable(),
  error: z.string().nullable(),
  failures: count,
  /** Of the payload. */
  bytes: count,
  /** The first bytes of the payload in base64; null for the payload null. */
  head: z.string().nullable(),
})
export type TailEvent = z.infer<typeof tailEvent>

const consumerView = z.object({
  id: z.string(),
  /** The name it gave itself. */
  uuid: z.string(),
  topic: z.string(),
  /** Of its token; '' without a name. */
  token: z.string(),
  prefetch: count,
  adaptive: z.boolean(),
  leased: count,
  stalled: z.boolean(),
  connectedAt: time,
  lastMessageAt: time.nullable(),
  remote: z.string(),
  delivered: count,
  acked: count,
})
export type ConsumerView = z.infer<typeof consumerView>

const REDRIVE_STATES = ['running', 'paused', 'cancelled', 'done'] as const
export type RedriveState = (typeof REDRIVE_STATES)[number]

/** The long redrive of a topic: the one that runs, or the last one. */
const redriveView = z.object({
  topic: z.string(),
  /** Null: they return to the same topic. */
  to: z.string().nullable(),
  state: z.enum(REDRIVE_STATES),
  /** Why it paused by itself; '' otherwise. */
  reason: z.string(),
  by: z.string(),
  filter: z.record(z.string(), z.union([z.string(), z.number()])),
  ratePerSec: count,
  /** Dead jobs that matched when it started, and those that are still to be looked at. */
  total: count,
  left: count,
  /** Since the process started. */
  redriven: count,
  /** Ids that the other topic knows already; at most 100 are listed. */
  conflicts: z.array(z.string()),
  startedAt: time,
  endedAt: time.nullable(),
})
export type RedriveView = z.infer<typeof redriveView>

const deadGroup = z.object({
  /** The last error with numbers, quoted parts and ids replaced by `*`. */
  group: z.string(),
  count,
  first: time,
  last: time,
  sampleId: z.string(),
})
export type DeadGroup = z.infer<typeof deadGroup>

/** Which dead jobs a request is about. Conditions are combined. */
const deadFilter = z.strictObject({
  /** A part of the last error. */
  error: z.string().max(JOB_LIMITS.errorTextMax).optional(),
  group: z.string().max(JOB_LIMITS.errorTextMax).optional(),
  before: time.optional(),
  after: time.optional(),
  minFailures: count.optional(),
})
export type DeadFilter = z.infer<typeof deadFilter>

// --- Paths under /api/v1/queue ---

const topicPath = z.object({ topic: topicName })
const jobPath = z.object({ topic: topicName, id: jobId })
const pageOf = z.object({
  cursor: z.string().max(512).optional(),
  limit: z.coerce.number().int().min(1).max(JOB_LIMITS.pageMax).default(100),
})
const flagQuery = z.enum(['0', '1']).default('0')
/** Recorded in the audit log. */
const reason = z.string().max(JOB_LIMITS.reasonMax).optional()
const done = { status: z.literal('success') }
/** A filter of dead jobs as a query. */
const deadQuery = { ...deadFilter.shape, minFailures: z.coerce.number().int().nonnegative().optional() }
/** Which dead jobs to redrive or delete: ids, all up to a limit, or those of a filter. */
const deadSelection = z.union([
  z.strictObject({ ids: z.array(jobId).min(1).max(JOB_LIMITS.movedMax), to: topicName.optional(), reason }),
  z.strictObject({
    all: z.literal(true),
    limit: z.int().min(1).max(JOB_LIMITS.movedMax).default(JOB_LIMITS.movedMax),
    to: topicName.optional(),
    reason,
  }),
  z.strictObject({
    filter: deadFilter,
    limit: z.int().min(1).max(JOB_LIMITS.movedMax).default(JOB_LIMITS.movedMax),
    to: topicName.optional(),
    reason,
  }),
])

/** A request with 10,000 ids of 256 bytes fits. */
const SELECTION_BYTES_MAX = 4 << 20

export const QUEUE_ROUTES = {
  'GET /api/v1/queue/health': {
    access: 'open',
    summary: 'Whether this process accepts and delivers jobs; 503 otherwise. For load balancers.',
    response: z.object({
      status: z.enum(['ok', 'unavailable', 'standby']),
      role: z.enum(['owner', 'standby']).optional(),
      journal: z.string().optional(),
      durable: z.boolean().optional(),
      reason: z.enum(['loading', 'journal', 'shutting_down']).optional(),
      owner: z.string().optional(),
    }),
  },
  'GET /api/v1/queue/stats': {
    access: 'viewer',
    summary: 'Counts, totals and rates of all topics.',
    response: z.object({
      node: z.string(),
      role: z.enum(['owner', 'standby']),
      journal: z.string(),
      topics: z.array(topicStats),
      totals: topicTotals,
    }),
  },
  'GET /api/v1/queue/topics': {
    access: 'viewer',
    summary: 'Topics by name.',
    query: pageOf.extend({ prefix: z.string().max(JOB_LIMITS.topicNameMax).optional() }),
    response: z.object({ topics: z.array(topicRow), next: z.string().nullable() }),
  },
  'GET /api/v1/queue/topics/{topic}': {
    access: 'viewer',
    summary: 'A topic with its configuration.',
    params: topicPath,
    response: topicView,
  },
  'PUT /api/v1/queue/topics/{topic}': {
    access: 'admin',
    summary: 'Creates a topic, or changes its configuration; absent keys keep their value.',
    params: topicPath,
    body: z.strictObject({ config: topicConfigChange }),
    response: z.object({ ...done, topic: z.string(), created: z.boolean(), config: topicConfig }),
  },
  'DELETE /api/v1/queue/topics/{topic}': {
    access: 'admin',
    summary: 'Deletes a topic; with force=1 with its jobs.',
    params: topicPath,
    query: z.object({ force: flagQuery, reason }),
    response: z.object({ ...done, deletedJobs: count }),
  },
  'POST /api/v1/queue/topics/{topic}/pause': {
    access: 'operator',
    summary: 'Stops delivery; jobs are still accepted.',
    params: topicPath,
    response: z.object({ ...done, topic: z.string(), paused: z.boolean() }),
  },
  'POST /api/v1/queue/topics/{topic}/resume': {
    access: 'operator',
    summary: 'Resumes delivery.',
    params: topicPath,
    response: z.object({ ...done, topic: z.string(), paused: z.boolean() }),
  },
  'POST /api/v1/queue/topics/{topic}/purge': {
    access: 'admin',
    summary: 'Removes all jobs of some states.',
    params: topicPath,
    body: z.strictObject({
      states: z
        .array(z.enum(['ready', 'delayed', 'dead']))
        .min(1)
        .max(3),
      reason,
    }),
    response: z.object({ ...done, removed: count }),
  },
  'GET /api/v1/queue/topics/{topic}/stats': {
    access: 'viewer',
    summary: 'Counts, totals and rates of a topic.',
    params: topicPath,
    response: topicStats,
  },
  'GET /api/v1/queue/history': {
    access: 'viewer',
    summary:
      'Ready jobs of the topics in the last ten minutes, and the time to delivery (p99), every ten seconds; the first 1,000 topics have them.',
    response: z.object({
      ...course,
      topics: z.array(
        z.object({
          topic: z.string(),
          ready: z.array(count.nullable()),
          deliveryP99: z.array(z.number().nullable()),
        }),
      ),
    }),
  },
  'GET /api/v1/queue/topics/{topic}/history': {
    access: 'viewer',
    summary:
      'Rates, waiting jobs, the oldest age and latencies of a topic, every ten seconds, since the process started.',
    params: topicPath,
    query: z.object({ minutes: z.coerce.number().int().min(1).max(60).default(60) }),
    response: topicHistory,
  },
  'GET /api/v1/queue/topics/{topic}/tail': {
    access: 'viewer',
    summary:
      'Events of jobs since `cursor`, at most the newest 200; without it, all that are kept. Recording starts with the first request and ends after 15 s without one.',
    params: topicPath,
    query: z.object({ cursor: z.string().max(64).optional() }),
    response: z.object({
      cursor: z.string(),
      events: z.array(tailEvent),
      /** Events since `cursor` that are not shown: there were too many, or the reader was too slow. */
      skipped: count,
    }),
  },
  'GET /api/v1/queue/jobs': {
    access: 'viewer',
    summary: 'Jobs with an id, in all topics.',
    query: z.object({ id: jobId }),
    response: z.object({ jobs: z.array(jobView) }),
  },
  'GET /api/v1/queue/topics/{topic}/jobs': {
    access: 'viewer',
    summary: 'Jobs of a state; with head=1 with the beginning of their payloads.',
    params: topicPath,
    query: pageOf.extend({ state: z.enum(JOB_STATES).default('ready'), head: flagQuery }),
    response: z.object({ jobs: z.array(jobView), next: z.string().nullable() }),
  },
  'GET /api/v1/queue/topics/{topic}/jobs/{id}': {
    access: 'viewer',
    summary: 'A job with its history; with data=1 with its payload.',
    params: jobPath,
    query: z.object({ data: flagQuery }),
    response: jobView.extend({ history: jobHistory }),
  },
  'POST /api/v1/queue/topics/{topic}/jobs': {
    access: 'operator',
    summary: 'Submits jobs, as POST /producer/jobs does.',
    params: topicPath,
    body: z.union([singleJobBody, jobsBody]),
    response: submittedBody,
    bodyBytesMax: 16 << 20,
  },
  'DELETE /api/v1/queue/topics/{topic}/jobs/{id}': {
    access: 'operator',
    summary: 'Cancels a job; with force=1 although it is being processed.',
    params: jobPath,
    query: z.object({ force: flagQuery }),
    response: z.object({ ...done, id: z.string(), previousState: z.string() }),
  },
  'GET /api/v1/queue/topics/{topic}/dead': {
    access: 'viewer',
    summary: 'Dead jobs, oldest first; with data=1 with their payloads, with head=1 with the beginning of them.',
    params: topicPath,
    query: pageOf.extend({ data: flagQuery, head: flagQuery, ...deadQuery }),
    response: z.object({ jobs: z.array(jobView), next: z.string().nullable() }),
  },
  'GET /api/v1/queue/topics/{topic}/dead/count': {
    access: 'viewer',
    summary: 'How many dead jobs match now; at least so many unless `exact`.',
    params: topicPath,
    query: z.object(deadQuery),
    response: z.object({ count, exact: z.boolean() }),
  },
  'GET /api/v1/queue/topics/{topic}/dead/groups': {
    access: 'viewer',
    summary: 'Dead jobs by error, the largest group first.',
    params: topicPath,
    response: z.object({ groups: z.array(deadGroup) }),
  },
  'POST /api/v1/queue/topics/{topic}/dead/redrive': {
    access: 'operator',
    summary: 'Makes up to 10,000 dead jobs ready again, in one transaction.',
    params: topicPath,
    body: deadSelection,
    bodyBytesMax: SELECTION_BYTES_MAX,
    response: z.object({
      ...done,
      redriven: count,
      missing: z.array(z.string()),
      conflicts: z.array(z.string()).optional(),
    }),
  },
  'POST /api/v1/queue/topics/{topic}/redrive': {
    access: 'operator',
    summary: 'Begins a long redrive: all dead jobs that match now, at a rate; it continues after a restart.',
    params: topicPath,
    body: z.strictObject({
      filter: deadFilter.default({}),
      to: topicName.optional(),
      ratePerSec: z.int().min(1).max(JOB_LIMITS.redriveRateMax).default(100),
      reason,
    }),
    status: 202,
    response: redriveView,
  },
  'GET /api/v1/queue/topics/{topic}/redrive': {
    access: 'viewer',
    summary: 'The long redrive that runs, or the last one.',
    params: topicPath,
    response: z.object({ redrive: redriveView.nullable() }),
  },
  'POST /api/v1/queue/topics/{topic}/redrive/pause': {
    access: 'operator',
    summary: 'Pauses the long redrive.',
    params: topicPath,
    response: redriveView,
  },
  'POST /api/v1/queue/topics/{topic}/redrive/resume': {
    access: 'operator',
    summary: 'Resumes the long redrive.',
    params: topicPath,
    response: redriveView,
  },
  'POST /api/v1/queue/topics/{topic}/redrive/cancel': {
    access: 'operator',
    summary: 'Ends the long redrive; the jobs that are left stay dead.',
    params: topicPath,
    response: redriveView,
  },
  'DELETE /api/v1/queue/topics/{topic}/dead': {
    access: 'admin',
    summary: 'Deletes up to 10,000 dead jobs.',
    params: topicPath,
    body: deadSelection,
    bodyBytesMax: SELECTION_BYTES_MAX,
    response: z.object({ ...done, removed: count }),
  },
  'GET /api/v1/queue/consumers': {
    access: 'viewer',
    summary: 'Connected consumers.',
    query: pageOf.extend({ topic: topicName.optional() }),
    response: z.object({ consumers: z.array(consumerView), next: z.string().nullable() }),
  },
  'DELETE /api/v1/queue/consumers/{id}': {
    access: 'operator',
    summary: 'Closes a consumer connection with code 4403.',
    params: z.object({ id: z.string().regex(/^c-\d{1,15}$/) }),
    response: z.object({ ...done, id: z.string() }),
  },
  'POST /api/v1/queue/backup': {
    access: 'admin',
    summary: 'Copies the journal to a new file beside it, while it is used.',
    body: z.strictObject({ name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/) }),
    response: z.object({ ...done, path: z.string() }),
  },
  'POST /api/v1/queue/vacuum': {
    access: 'admin',
    summary: 'Gives free space of the journal back to the file system.',
    response: z.object({ ...done, bytes: count }),
  },
} as const satisfies { readonly [name: string]: ControlRoute }
