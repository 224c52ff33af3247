/**
 * The producer interface: `/producer/*`, in front of the application on the same listener, so that none of its hooks and
 * parsers run for jobs (docs/design/queue.md#hot-path).
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nearestName, traceparentOf } from '@vacancy/shared'
import {
  isJobId,
  JOB_LIMITS,
  QUEUE_ERRORS,
  type QueueErrorBody,
  type SubmittedBody,
  type TopicConfig,
  topicBody,
  topicConfig,
  unknownField,
  unknownFieldText,
} from '@vacancy/shared/contract'
import { beginTrace, dropRest, REFUSED_HEADS, refusedHeadOf, type Trace } from '@vacancy/shared/node'
import { findById } from './id-index.ts'
import type { Job } from './job.ts'
import { countRejected, countRequest } from './metrics.ts'
import { outcomeOf, runSoon } from './partition.ts'
import { cancel, createTopic, pendingGroup, submit } from './queue.ts'
import {
  durable,
  durableGroups,
  QueueError,
  type QueueServer,
  refuseBusy,
  refuseFullDisk,
  type Serving,
  servingOf,
  topicOf,
} from './queue-server.ts'
import { isTopicName, joined, parseJsonBody, parseSubmission, type Submitted } from './submission.ts'
import { endOf, findQueueToken, mayUseTopic, type QueueRole, type QueueToken, tokenOf } from './tokens.ts'
import { jobData, jobView, shownJob } from './views.ts'

/** Whether a path belongs to producers; the other ones are the application's. */
export function isProducerPath(url: string): boolean {
  return url.startsWith('/producer/') || url === '/producer' || url.startsWith('/producer?')
}

const ROUTES = {
  topic: { methods: ['POST'], name: '/producer/topic' },
  jobs: { methods: ['POST'], name: '/producer/jobs' },
  job: { methods: ['GET', 'DELETE'], name: '/producer/jobs/{topic}/{id}' },
} as const
type Route = keyof typeof ROUTES
const REFUSED_HEAD_CODES = {
  'address too long': 'address_too_long',
  'headers too large': 'headers_too_large',
  'packed body': 'packed_body',
} as const
/** Methods with series of their own. */
const METHODS = new Set(['GET', 'POST', 'DELETE', 'PUT', 'HEAD', 'OPTIONS'])

/** Answers a request below `/producer`. */
export function handleProducer(server: QueueServer, request: IncomingMessage, response: ServerResponse): void {
  const started = performance.now()
  const url = request.url ?? ''
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const route = routeOf(path)
  const query = mark < 0 ? undefined : new URLSearchParams(url.slice(mark))
  const name = route === undefined ? 'none' : ROUTES[route].name
  const method = METHODS.has(request.method ?? '') ? (request.method ?? '') : 'other'
  const trace = beginTrace(server.tracing, headerOf(request, 'traceparent'), `${method} ${name}`)
  const ended = () => {
    endTrace(trace, method, path, response.statusCode)
    countRequest(server.metrics, method, name, response.statusCode, (performance.now() - started) / 1000)
  }
  answer(server, { request, response, route, path, query, trace }).then(ended, (error: unknown) => {
    trace?.span?.set(faultOf(error))
    sendError(server, request, response, error)
    ended()
  })
}

function routeOf(path: string): Route | undefined {
  if (path === '/producer/jobs' || path === '/producer/job') return 'jobs'
  if (path === '/producer/topic') return 'topic'
  return path.startsWith('/producer/jobs/') ? 'job' : undefined
}

/** A header that comes once; Node joins several with commas. */
function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  return headers[name] as string | undefined
}

/** Why a request is refused, or failed, for its span. */
function faultOf(error: unknown) {
  return error instanceof QueueError
    ? { 'error.type': error.code, reason: error.message }
    : { 'error.type': 'internal' }
}

/** A request to this interface. */
type Asked = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly route: Route | undefined
  readonly path: string
  readonly query: URLSearchParams | undefined
  readonly trace: Trace | undefined
}

async function answer(server: QueueServer, asked: Asked): Promise<void> {
  const { request, response, route, path, query, trace } = asked
  const refused = refusedHeadOf(request)
  if (refused !== undefined) throw new QueueError(REFUSED_HEAD_CODES[refused], REFUSED_HEADS[refused][1])
  if (route === undefined) throw new QueueError('not_found', `there is no ${path.slice(0, 200)}`)
  const { methods } = ROUTES[route]
  if (!(methods as readonly string[]).includes(request.method ?? '')) {
    response.setHeader('allow', methods.join(', '))
    throw new QueueError('method_not_allowed', `use ${methods.join(' or ')}`)
  }
  const found = authorize(server, callerOf(server, request, query), 'producer')
  const token = found instanceof Promise ? await found : found
  if (route !== 'job') refuseUnknown(query, [])
  if (route === 'jobs')
    return send(response, 200, await submitBody(server, token, await readBody(request, server.settings), trace))
  if (route === 'topic') return await addTopic(server, request, response, token)
  return await oneJob(server, request, response, token, path, query)
}

/** What a request shows of who sends it. */
export type Caller = {
  readonly authorization: string | undefined
  readonly query: URLSearchParams | undefined
  readonly address: string
}

/** The end of its span, where one is recorded. */
function endTrace(trace: Trace | undefined, method: string, path: string, status: number): void {
  trace?.span?.set({ 'http.request.method': method, 'url.path': path, 'http.response.status_code': status })
  trace?.span?.end(status >= 500 ? `status ${status}` : '')
}

export function callerOf(
  { access }: QueueServer,
  { headers, socket }: IncomingMessage,
  query: URLSearchParams | undefined,
): Caller {
  const forwarded = headers['x-forwarded-for'] as string | undefined
  return { authorization: headers.authorization, query, address: access.addressOf(socket.remoteAddress, forwarded) }
}

/** @throws QueueError for a missing or unknown token, or one with another role */
export function authorize(
  { access, metrics }: QueueServer,
  { authorization, query, address }: Caller,
  role: QueueRole,
): QueueToken | Promise<QueueToken> {
  const text = tokenOf(authorization, access.allowQueryToken || role === 'consumer' ? query : undefined)
  const check = (token: QueueToken | undefined): QueueToken => {
    if (token === undefined) {
      metrics.authFailures++
      throw refuseToken(access.failures, address, endOf(access, text))
    }
    if (token.role === role || token.role === 'admin') return token
    throw new QueueError('forbidden', `this needs the role ${role}; the token has the role ${token.role}`)
  }
  const found = text === undefined ? undefined : findQueueToken(access, text, address)
  return found instanceof Promise ? found.then(check) : check(found)
}

/** After too many wrong tokens an address waits; a known token is never delayed. */
function refuseToken(failures: QueueServer['access']['failures'], address: string, ended: string): QueueError {
  const wait = failures.waitSeconds(address)
  failures.failed(address)
  if (wait > 0)
    return new QueueError('queue_full', `too many wrong tokens; try again in ${wait} s`, { retryAfterMs: wait * 1000 })
  const required = 'a valid token is required: Authorization: Bearer …'
  return new QueueError('unauthorized', ended === '' ? required : `${ended}; ${required}`)
}

/** @throws QueueError for a parameter that nothing would read. @param known besides the token, which is always accepted */
export function refuseUnknown(query: URLSearchParams | undefined, known: readonly string[]): void {
  for (const name of new Set(query?.keys())) {
    const isRepeated = (query?.getAll(name).length ?? 0) > 1
    if (isRepeated) throw new QueueError('invalid_request', `the parameter ${name.slice(0, 100)} is given twice`)
    if (name === 'token' || known.includes(name)) continue
    const text = unknownFieldText({ path: [name], nearest: nearestName(name, known) }, 'parameter')
    throw new QueueError('invalid_request', text)
  }
}

/** A parameter that is 0 or 1. */
function isSet(query: URLSearchParams | undefined, name: string): boolean {
  const value = query?.get(name) ?? '0'
  if (value !== '0' && value !== '1') throw new QueueError('invalid_request', `${name} must be 0 or 1`)
  return value === '1'
}

function requireTopic(token: QueueToken, topic: string): void {
  if (!mayUseTopic(token, topic)) throw new QueueError('forbidden', `the token is not for topic "${topic}"`)
}

// --- Jobs ---

/** Submits the jobs of a body, in its pieces. @returns the body of the response @throws QueueError */
async function submitBody(
  server: QueueServer,
  token: QueueToken,
  body: readonly Buffer[],
  trace: Trace | undefined,
): Promise<string> {
  const { settings } = server
  const limits = { jobsMax: settings.jobsPerRequestMax, jobBytesMax: settings.jobBytesMax }
  const parsed = parseSubmission(
    joined(body),
    limits,
    server.access.clock.wallMs(),
    trace && traceparentOf(trace.context),
  )
  if ('error' in parsed) {
    const { error, message, failures } = parsed
    throw new QueueError(error, message, failures === undefined ? {} : { failures })
  }
  requireTopic(token, parsed.topic)
  trace?.span?.set({ topic: parsed.topic, jobs: parsed.jobs.length })
  const { accepted, duplicates, duplicateIds, differentIds } = await submitParsed(server, parsed)
  if (settings.producerResponse === 'empty') return ''
  const different = differentIds === undefined ? '' : `,"differentIds":${JSON.stringify(differentIds)}`
  const listed = duplicateIds === undefined ? '' : `,"duplicateIds":${JSON.stringify(duplicateIds)}${different}`
  // Topic names need no escapes.
  return `{"status":"success","topic":"${parsed.topic}","accepted":${accepted},"duplicates":${duplicates}${listed}}`
}

/** A response to a producer. */
export type Answer = {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly body: string
}

/** Answers a submission whose body has arrived. */
export async function answerSubmission(
  server: QueueServer,
  caller: Caller,
  body: Buffer,
  traceparent: string | undefined,
): Promise<Answer> {
  const started = performance.now()
  const trace = beginTrace(server.tracing, traceparent, `POST ${ROUTES.jobs.name}`)
  let answer: Answer
  try {
    const found = authorize(server, caller, 'producer')
    const token = found instanceof Promise ? await found : found
    answer = { status: 200, headers: {}, body: await submitBody(server, token, [body], trace) }
  } catch (error) {
    trace?.span?.set(faultOf(error))
    answer = answerOf(server, error, ROUTES.jobs.name)
  }
  endTrace(trace, 'POST', ROUTES.jobs.name, answer.status)
  countRequest(server.metrics, 'POST', ROUTES.jobs.name, answer.status, (performance.now() - started) / 1000)
  return answer
}

/** Submits jobs and waits until they are durable. @throws QueueError */
export async function submitParsed(server: QueueServer, parsed: Submitted): Promise<SubmittedBody> {
  const serving = servingOf(server, parsed.topic)
  const topic = topicOf(serving, parsed.topic)
  const full = () => countRejected(server.metrics, topic.name, 'disk', parsed.jobs.length)
  refuseFullDisk(serving.partition, full)
  refuseBusy(serving.partition, server.settings.producerWaitMs, () =>
    countRejected(server.metrics, topic.name, 'busy', parsed.jobs.length),
  )
  const submission = submit(serving.queue, topic, parsed.jobs, serving.now)
  if ('refused' in submission) {
    countRejected(server.metrics, topic.name, submission.refused, parsed.jobs.length)
    throw new QueueError('queue_full', FULL[submission.refused], { retryAfterMs: 1_000 })
  }
  const { accepted, duplicateIds, differentIds, groups } = submission
  const stored = durableGroups(groups, full)
  runSoon(serving.partition)
  await stored
  const duplicates = duplicateIds.length
  const listed = duplicates === 0 ? {} : { duplicateIds: duplicateIds.slice(0, JOB_LIMITS.listedMax) }
  const different = differentIds.length === 0 ? {} : { differentIds: differentIds.slice(0, JOB_LIMITS.listedMax) }
  return { status: 'success', topic: topic.name, accepted, duplicates, ...listed, ...different }
}

const FULL = {
  max_jobs: 'the topic is full: its unfinished jobs have reached max_jobs',
  max_bytes: 'the topic is full: its unfinished jobs have reached max_bytes',
  max_bytes_total: 'the queue is full: its jobs take max_bytes_total of memory',
} as const

async function oneJob(
  server: QueueServer,
  request: IncomingMessage,
  response: ServerResponse,
  token: QueueToken,
  path: string,
  query: URLSearchParams | undefined,
): Promise<void> {
  const [topicText = '', ...idParts] = path.slice('/producer/jobs/'.length).split('/')
  const [topicName, id] = [decode(topicText), decode(idParts.join('/'))]
  if (!isTopicName(topicName) || id === undefined || !isJobId(id))
    throw new QueueError('not_found', 'the path is /producer/jobs/{topic}/{id}')
  requireTopic(token, topicName)
  refuseUnknown(query, request.method === 'DELETE' ? ['force'] : ['data'])
  const [isForced, isDataWanted] = [isSet(query, 'force'), isSet(query, 'data')]
  const serving = servingOf(server, topicName)
  const topic = topicOf(serving, topicName)
  const job = findById(topic.jobs, id)
  if (request.method === 'DELETE') {
    if (job === undefined) throw jobNotFound(id)
    const previousState = await cancelJob(serving, job, isForced)
    return sendJson(response, 200, { status: 'success', id, previousState })
  }
  const view = job === undefined ? shownJob(topic, id) : jobView(serving.queue, job, serving.now)
  if (view === undefined) throw jobNotFound(id)
  sendJson(response, 200, isDataWanted && job !== undefined ? { ...view, data: jobData(job) } : view)
}

function jobNotFound(id: string): QueueError {
  return new QueueError('job_not_found', `job "${id}" is not known`)
}

/** @throws QueueError while it is leased, unless `force` */
export async function cancelJob(serving: Serving, job: Job, force: boolean): Promise<string> {
  const { queue, partition } = serving
  const pending = pendingGroup(queue, job)
  if (pending !== undefined) await durable([outcomeOf(pending, true)])
  if (findById(job.topic.jobs, job.id) !== job) throw jobNotFound(job.id)
  const { previous, group } = cancel(queue, job, force, serving.now)
  if (group === undefined)
    throw new QueueError('job_leased', `job "${job.id}" is being processed; force=1 removes it anyway`)
  const outcome = outcomeOf(group, false)
  runSoon(partition)
  await durable([outcome])
  return previous
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // Not a path of this interface; the caller answers 404.
    return undefined
  }
}

// --- Topics ---

async function addTopic(
  server: QueueServer,
  request: IncomingMessage,
  response: ServerResponse,
  token: QueueToken,
): Promise<void> {
  if (server.settings.topicCreateRole === 'admin' && token.role !== 'admin')
    throw new QueueError('forbidden', 'only admin tokens create topics here')
  const value = parseJsonBody(joined(await readBody(request, server.settings)))
  if (value === undefined) throw new QueueError('invalid_json', 'the body is not JSON in UTF-8')
  const unknown = unknownField(topicBody, value)
  if (unknown !== undefined) throw new QueueError('invalid_request', unknownFieldText(unknown))
  const parsed = topicBody.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new QueueError('invalid_request', `${issue?.path.join('.') || 'the body'}: ${issue?.message}`)
  }
  const { topic, config } = parsed.data
  requireTopic(token, topic)
  const serving = servingOf(server, topic)
  if (serving.queue.topics.has(topic)) throw new QueueError('topic_exists', `topic "${topic}" exists`)
  await makeTopic(server, serving, topic, topicConfig.parse({ ...server.settings.topicDefaults, ...config }))
  sendJson(response, 200, { status: 'success', topic, created: true })
}

/** Creates a topic and waits until it is durable. */
export async function makeTopic(
  server: QueueServer,
  serving: Serving,
  name: string,
  config: TopicConfig,
): Promise<void> {
  refuseFullDisk(serving.partition)
  const group = createTopic(serving.queue, name, config, serving.now)
  if (group === undefined)
    throw new QueueError('queue_full', `there are ${JOB_LIMITS.topicsMax} topics, the most that are allowed`)
  const outcome = outcomeOf(group, false)
  runSoon(serving.partition)
  await durable([outcome])
  server.log.info({ topic: name }, 'topic created')
}

// --- Bodies and responses ---

/** @throws QueueError when it is too large or does not arrive in time */
function readBody(
  request: IncomingMessage,
  { requestBytesMax, readTimeoutMs }: Pick<QueueServer['settings'], 'requestBytesMax' | 'readTimeoutMs'>,
): Promise<readonly Buffer[]> {
  const announced = Number(request.headers['content-length'] ?? 0)
  const tooLarge = () => new QueueError('request_too_large', `a request has at most ${requestBytesMax} bytes`)
  if (announced > requestBytesMax) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let isComplete = false
    let timer: NodeJS.Timeout | undefined
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > requestBytesMax) fail(tooLarge())
      // Most bodies arrive at once and need no timer.
      else if (bytes < announced || announced === 0)
        timer ??= setTimeout(
          () => fail(new QueueError('invalid_request', `the body did not arrive within ${readTimeoutMs / 1000} s`)),
          readTimeoutMs,
        )
    })
    const fail = (error: Error) => {
      clearTimeout(timer)
      request.removeAllListeners('data')
      request.removeAllListeners('end')
      reject(error)
    }
    request.on('end', () => {
      isComplete = true
      clearTimeout(timer)
      resolve(chunks)
    })
    request.on('close', () => {
      // After every request. An error is costly to make.
      if (isComplete) return
      clearTimeout(timer)
      reject(new QueueError('invalid_request', 'the connection ended before the body'))
    })
  })
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, JSON.stringify(body))
}

function send(response: ServerResponse, status: number, body: string): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

/** Every error has a code and a message. */
function answerOf(server: QueueServer, error: unknown, path: string | undefined): Answer {
  const known = error instanceof QueueError
  if (!known) server.log.error({ err: error, path }, 'a queue request failed')
  const code = known ? error.code : 'service_unavailable'
  const body: QueueErrorBody = {
    error: code,
    message: known ? error.message : 'internal error, see the log',
    ...(known && error.more),
  }
  const status = QUEUE_ERRORS[code]
  const headers = {
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(body.retryAfterMs !== undefined && {
      'retry-after': String(Math.max(1, Math.ceil(body.retryAfterMs / 1000))),
    }),
  }
  return { status, headers, body: JSON.stringify(body) }
}

function sendError(server: QueueServer, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const { status, headers, body } = answerOf(server, error, request.url?.split('?', 1)[0])
  // Nothing can be added to a response that has begun.
  if (response.headersSent) return void response.destroy()
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  send(response, status, body)
  dropRest(request)
}
