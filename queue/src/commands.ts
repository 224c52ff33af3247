/** Commands that work with a running queue: `vacancy queue topics|submit|tail|dead|redrive|backup`. */
import { createReadStream, fstatSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { createProducer, type NewJob, type SubmittedJob, VacancyQueueError } from '@vacancy/client/queue'
import { EXIT, VacancyError } from '@vacancy/shared'
import { JOB_LIMITS, type JobView, problemBody, QUEUE_ROUTES, type TopicStats } from '@vacancy/shared/contract'
import { type Command, count, defineCommand, type FlagValues, named, tableLines, VERSION } from '@vacancy/shared/node'
import { type Access, jsonOf, readAuthorities, readToken, type Schema, send, usage } from '@vacancy/shared/node-api'

/** Requests of commands to the API of a running queue. */
type Api = Access & {
  /** Base address, without a slash at its end. */
  readonly url: string
}

type ApiFlags = {
  readonly url: string
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly tlsCa: string | undefined
}

/** A page of dead jobs with their payloads. */
const ANSWER_BYTES_MAX = 512 << 20

/** @throws VacancyError usage_error */
function openApi({ url, token, tokenFile, tlsCa }: ApiFlags): Api {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw usage(`--url: ${url} is not an address such as http://127.0.0.1:8080`)
  if (token !== undefined && tokenFile !== undefined) throw usage('give --token or --token-file, not both')
  // Never printed, not even when it is invalid.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw usage('--token has characters that no token has')
  return {
    url: url.replace(/\/+$/, ''),
    nodes: [],
    token: token ?? readToken(tokenFile),
    ca: readAuthorities(tlsCa),
    answerBytesMax: ANSWER_BYTES_MAX,
  }
}

/**
 * @param path below `/api/v1/queue`
 * @throws VacancyError connection_failed, connection_lost; failure for any response except one with the schema
 */
async function callApi<T>(
  api: Api,
  method: 'GET' | 'POST',
  path: string,
  schema: Schema<T>,
  body?: object,
): Promise<T> {
  const { host } = new URL(api.url)
  const text = body === undefined ? '' : JSON.stringify(body)
  const reply = await send(api, method, `${api.url}/api/v1/queue${path}`, text)
  const value = jsonOf(reply.body)
  if (reply.status >= 400) throw refusal(host, reply.status, value)
  const { data } = schema.safeParse(value)
  if (data === undefined)
    throw new VacancyError('failure', { reason: `${host} does not respond like a queue of version ${VERSION}` })
  return data
}

const HINTS: { readonly [status: number]: string } = {
  401: ' Give a token with --token, --token-file or VACANCY_QUEUE_TOKEN.',
  403: ' Use a token with another role.',
}

function refusal(host: string, status: number, value: unknown): VacancyError {
  const problem = problemBody.safeParse(value).data
  const text = problem === undefined ? '' : `: ${problem.detail}`
  const owner = (value as { readonly owner?: unknown } | undefined)?.owner
  const elsewhere = typeof owner === 'string' ? ` Use --url ${owner}.` : ''
  return new VacancyError('failure', {
    reason: `${host} responded with ${status}${problem === undefined ? '' : ` ${problem.code}`}${text}${HINTS[status] ?? elsewhere}`,
  })
}

const CLIENT_FLAGS = {
  url: { ...named('URL'), default: 'http://127.0.0.1:8080', summary: 'Address of the queue.' },
  token: { type: 'text', summary: 'Token of the auth file; VACANCY_QUEUE_TOKEN keeps it out of the process list.' },
  'token-file': { ...named('FILE'), summary: 'File whose first line is the token.' },
  'tls-ca': { ...named('FILE'), summary: 'CA certificates for an https address, PEM, instead of those of the system.' },
  json: { type: 'boolean', summary: 'JSON instead of text.' },
} as const
type ClientFlags = FlagValues<typeof CLIENT_FLAGS>

const TOPIC = { name: 'TOPIC', min: 1, max: 1, summary: 'Name of the topic.' } as const

function print(lines: readonly string[]): void {
  if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`)
}

function printJson(value: unknown): void {
  print([JSON.stringify(value, undefined, 2)])
}

/** Texts of jobs may contain anything; a terminal gets no control characters. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

// --- topics ---

const topicsCommand = defineCommand({
  name: 'vacancy queue topics',
  component: 'QUEUE',
  summary: 'Lists topics with the number of their jobs by state. The token has the role monitoring or admin.',
  flags: {
    ...CLIENT_FLAGS,
    prefix: { type: 'text', summary: 'Only topics whose name begins with it.' },
  },
  run: async ({ flags }) => {
    const api = openApi(flags)
    const { response } = QUEUE_ROUTES['GET /api/v1/queue/topics']
    const topics = await pages(async (cursor) => {
      const query = queryOf({ prefix: flags.prefix, cursor, limit: JOB_LIMITS.pageMax })
      const { topics: items, next } = await callApi(api, 'GET', `/topics${query}`, response)
      return { items, next }
    })
    if (flags.json) printJson(topics)
    else {
      const columns = ['topic', 'ready', 'delayed', 'leased', 'dead', 'consumers', '']
      const rows = topics.map(({ topic, ready, delayed, leased, dead, consumers, paused }) => {
        return [topic, ready, delayed, leased, dead, consumers, paused ? 'paused' : '']
      })
      print([...tableLines({ columns, rows, counted: '' }), ...(rows.length === 0 ? ['No topics.'] : [])])
    }
    return EXIT.ok
  },
})

type Page<T> = { readonly items: readonly T[]; readonly next: string | null }

/** All pages, or as many as have `most` items. */
async function pages<T>(
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
  most = Number.POSITIVE_INFINITY,
): Promise<readonly T[]> {
  const found: T[] = []
  let cursor: string | undefined
  do {
    const { items, next } = await fetchPage(cursor)
    found.push(...items)
    cursor = next ?? undefined
  } while (cursor !== undefined && found.length < most)
  return found.slice(0, most)
}

function queryOf(fields: { readonly [name: string]: string | number | undefined }): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

// --- submit ---

const submitCommand = defineCommand({
  name: 'vacancy queue submit',
  component: 'QUEUE',
  summary: 'Submits a job, or with --lines one job per line. The token has the role producer or admin.',
  flags: {
    ...CLIENT_FLAGS,
    file: { ...named('FILE'), summary: 'File with the payload, instead of PAYLOAD; without both, stdin.' },
    lines: { type: 'boolean', summary: 'Each line is the payload of a job. Empty lines are skipped.' },
    id: {
      type: 'text',
      summary: 'Id of the job (default: a random UUID). With --lines its jobs are ID-1, ID-2 and so on, by line.',
    },
    priority: { type: 'integer', min: 0, max: JOB_LIMITS.priorityMax, summary: 'Higher ones are delivered first.' },
    'delay-ms': { type: 'integer', min: 0, max: JOB_LIMITS.delayMsMax, unit: 'ms', summary: 'Not delivered earlier.' },
    'max-attempts': { type: 'integer', min: 1, max: JOB_LIMITS.attemptsMax, summary: 'Failures until it is dead.' },
    'timeout-ms': {
      type: 'integer',
      min: 1,
      max: 86_400_000,
      default: 60_000,
      unit: 'ms',
      summary: 'Time for each job to be stored, retries included.',
    },
  },
  operands: { name: 'TOPIC [PAYLOAD]', min: 1, max: 2, summary: 'Name of the topic, and the payload as text.' },
  run: async ({ flags, operands }) => {
    const [topic = '', payload] = operands
    if (payload !== undefined && (flags.file !== undefined || flags.lines))
      throw usage('give PAYLOAD, or --file and --lines')
    const { url, token, ca } = openApi(flags)
    const { priority, delayMs, maxAttempts } = flags
    const options: Omit<NewJob, 'id' | 'data'> = {
      topic,
      ...(priority !== undefined && { priority }),
      ...(delayMs !== undefined && { delayMs }),
      ...(maxAttempts !== undefined && { maxAttempts }),
    }
    const producer = createProducer({
      url,
      deadlineMs: flags.timeoutMs,
      ...(token !== undefined && { token }),
      ...(ca !== undefined && { tls: { ca } }),
    })
    const report = { accepted: 0, duplicate: 0, stored: 0, failed: 0 }
    const each = (job: Promise<SubmittedJob>, place: string) =>
      job.then(
        ({ id, outcome }) => {
          report[outcome]++
          if (!flags.lines && !flags.json) print([`${id} ${outcome}`])
          else if (!flags.lines) printJson({ topic, id, outcome })
        },
        (error: unknown) => {
          if (!(error instanceof VacancyQueueError)) throw error
          if (report.failed++ < ERRORS_SHOWN) process.stderr.write(`vacancy queue submit: ${place}${error.message}\n`)
        },
      )
    const running = new Set<Promise<void>>()
    const follow = (done: Promise<void>) => {
      running.add(done)
      void done.finally(() => running.delete(done))
    }
    if (flags.lines) {
      let line = 0
      for await (const text of createInterface({ input: inputOf(flags.file), crlfDelay: Number.POSITIVE_INFINITY })) {
        line++
        if (text === '') continue
        await producer.ready()
        const id = flags.id === undefined ? {} : { id: `${flags.id}-${line}` }
        follow(each(producer.submit({ ...options, ...id, text }), `line ${line}: `))
      }
    } else {
      const data = payload === undefined ? await readAll(inputOf(flags.file)) : Buffer.from(payload)
      follow(each(producer.submit({ ...options, ...(flags.id !== undefined && { id: flags.id }), data }), ''))
    }
    await Promise.all(running)
    await producer.close()
    if (flags.lines) printLines(flags.json, report)
    return report.failed > 0 ? EXIT.failure : EXIT.ok
  },
})

const ERRORS_SHOWN = 20

function inputOf(file: string | undefined): NodeJS.ReadableStream {
  if (file === undefined || file === '-') return process.stdin
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (cause) {
    throw usage(`--file ${file}: cannot be read: ${(cause as Error).message}`, cause)
  }
  if (fstatSync(fd).isDirectory()) throw usage(`--file ${file}: is a folder`)
  return createReadStream('', { fd })
}

async function readAll(input: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of input) chunks.push(Buffer.from(chunk))
  } catch (cause) {
    throw usage(`the payload cannot be read: ${(cause as Error).message}`, cause)
  }
  return Buffer.concat(chunks)
}

type Report = {
  readonly accepted: number
  readonly duplicate: number
  readonly stored: number
  readonly failed: number
}

function printLines(isJson: boolean, report: Report): void {
  if (isJson) return printJson(report)
  const { accepted, duplicate, stored, failed } = report
  const parts = [
    `${count(accepted, 'job')} accepted`,
    ...(duplicate > 0 ? [`${duplicate} known before`] : []),
    ...(stored > 0 ? [`${stored} stored, by this or an earlier request`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ]
  print([parts.join(', ')])
}

// --- tail ---

const tailCommand = defineCommand({
  name: 'vacancy queue tail',
  component: 'QUEUE',
  summary:
    'Prints counts and rates of topics repeatedly. Single jobs are not shown: only consumers receive them. The token has the role monitoring or admin.',
  flags: {
    ...CLIENT_FLAGS,
    'interval-ms': { type: 'integer', min: 100, max: 3_600_000, default: 1_000, unit: 'ms', summary: 'Time between.' },
    rounds: { type: 'integer', min: 1, max: 1_000_000_000, summary: 'Ends after so many; without it on Ctrl-C.' },
  },
  operands: { name: 'TOPIC', min: 0, max: 1, summary: 'Only this topic. Default: all with jobs or changes.' },
  run: async ({ flags, operands }) => {
    const api = openApi(flags)
    const [only] = operands
    const { response } = QUEUE_ROUTES['GET /api/v1/queue/stats']
    let before = new Map<string, TopicStats>()
    let beforeMs = performance.now()
    for (let round = 0; round < (flags.rounds ?? Number.POSITIVE_INFINITY); round++) {
      if (round > 0) await sleep(flags.intervalMs)
      const { topics } = await callApi(api, 'GET', '/stats', response)
      const now = performance.now()
      const seconds = (now - beforeMs) / 1000
      const chosen = topics.filter(({ topic }) => only === undefined || topic === only)
      if (only !== undefined && chosen.length === 0) throw failure(`topic "${only}" does not exist`)
      const rows = chosen.map((topic) => tailRow(topic, before.get(topic.topic), seconds))
      if (flags.json) print(rows.map((row) => JSON.stringify({ at: new Date().toISOString(), ...row })))
      else printTail(rows, only !== undefined)
      before = new Map(topics.map((topic) => [topic.topic, topic]))
      beforeMs = now
    }
    return EXIT.ok
  },
})

const RATES = ['accepted', 'delivered', 'acked', 'nacked', 'expired', 'dead'] as const

/** Counts of a topic, and what happened a second since the round before; undefined in the first round. */
function tailRow(now: TopicStats, before: TopicStats | undefined, seconds: number) {
  const { topic, ready, delayed, leased, dead, consumers } = now
  const rateOf = (name: (typeof RATES)[number]) =>
    before === undefined ? undefined : Math.max(0, Math.round((now.totals[name] - before.totals[name]) / seconds))
  const perSecond = Object.fromEntries(RATES.map((name) => [name, rateOf(name)]))
  return { topic, ready, delayed, leased, dead, consumers, perSecond }
}

function printTail(rows: readonly ReturnType<typeof tailRow>[], isChosen: boolean): void {
  const shown = rows.filter(
    ({ ready, delayed, leased, dead, perSecond }) =>
      isChosen || ready + delayed + leased + dead > 0 || Object.values(perSecond).some((rate) => (rate ?? 0) > 0),
  )
  const columns = ['topic', 'ready', 'delayed', 'leased', 'dead', 'consumers', ...RATES.map((name) => `${name}/s`)]
  const cells = shown.map(({ topic, ready, delayed, leased, dead, consumers, perSecond }) => {
    return [topic, ready, delayed, leased, dead, consumers, ...RATES.map((name) => perSecond[name] ?? '-')]
  })
  const time = new Date().toISOString()
  print([time, ...tableLines({ columns, rows: cells, counted: '' }), ...(shown.length === 0 ? ['No jobs.'] : []), ''])
}

// --- dead ---

const FILTER_FLAGS = {
  error: { ...named('TEXT'), summary: 'Only jobs whose last error contains it.' },
  group: { ...named('TEXT'), summary: 'Only jobs of this error group, as --groups prints it.' },
} as const

const PAYLOAD_SHOWN = 200
/** Payloads of a page, which may be large. */
const PAGE_WITH_PAYLOADS = 10

const deadCommand = defineCommand({
  name: 'vacancy queue dead',
  component: 'QUEUE',
  summary: 'Lists dead jobs, oldest first, or with --groups their errors. The token has the role monitoring or admin.',
  flags: {
    ...CLIENT_FLAGS,
    ...FILTER_FLAGS,
    groups: { type: 'boolean', summary: 'Errors with the number of their jobs, the largest group first.' },
    payload: { type: 'boolean', summary: 'Shows payloads, too.' },
    limit: { type: 'integer', min: 1, max: 100_000, default: 100, summary: 'Most jobs.' },
  },
  operands: TOPIC,
  run: async ({ flags, operands: [topic = ''] }) => {
    const api = openApi(flags)
    if (flags.groups) await printGroups(api, topic, flags)
    else await printDead(api, topic, flags)
    return EXIT.ok
  },
})

async function printGroups(api: Api, topic: string, flags: ClientFlags): Promise<void> {
  const { response } = QUEUE_ROUTES['GET /api/v1/queue/topics/{topic}/dead/groups']
  const { groups } = await callApi(api, 'GET', `${pathOf(topic)}/dead/groups`, response)
  if (flags.json) return printJson(groups)
  const rows = groups.map((group) => [group.count, group.last, printable(group.sampleId), printable(group.group)])
  const columns = ['jobs', 'last', 'sample', 'group']
  print(rows.length === 0 ? ['No dead jobs.'] : tableLines({ columns, rows, counted: '' }))
}

type DeadFlags = ClientFlags & FlagValues<typeof FILTER_FLAGS> & { readonly payload: boolean; readonly limit: number }

async function printDead(api: Api, topic: string, flags: DeadFlags): Promise<void> {
  const { error, group, payload, limit } = flags
  const { response } = QUEUE_ROUTES['GET /api/v1/queue/topics/{topic}/dead']
  const pageMax = payload ? PAGE_WITH_PAYLOADS : JOB_LIMITS.pageMax
  const jobs = await pages(async (cursor) => {
    const query = queryOf({ error, group, cursor, limit: Math.min(limit, pageMax), data: payload ? 1 : undefined })
    const { jobs: items, next } = await callApi(api, 'GET', `${pathOf(topic)}/dead${query}`, response)
    return { items, next }
  }, limit)
  if (flags.json) return printJson(jobs)
  const columns = [
    'id',
    'died',
    'reason',
    'failures',
    'deliveries',
    'bytes',
    'last error',
    ...(payload ? ['payload'] : []),
  ]
  const rows = jobs.map((job) => [...deadCells(job), ...(payload ? [payloadText(job)] : [])])
  print(rows.length === 0 ? ['No dead jobs.'] : tableLines({ columns, rows, counted: '' }))
}

function deadCells({ id, deadAt, reason, failures, deliveries, bytes, lastError }: JobView): (string | number)[] {
  return [printable(id), deadAt ?? '', reason ?? '', failures, deliveries, bytes, printable(lastError ?? '')]
}

/** The payload as text where it is text, else in base64; --json has all of it. */
function payloadText({ data }: JobView): string {
  if (data === undefined || data === null) return ''
  const bytes = Buffer.from(data, 'base64')
  const text = bytes.toString('utf8')
  const shown = Buffer.from(text).equals(bytes) ? printable(text) : `base64:${data}`
  return shown.length > PAYLOAD_SHOWN ? `${shown.slice(0, PAYLOAD_SHOWN)}…` : shown
}

function pathOf(topic: string): string {
  return `/topics/${encodeURIComponent(topic)}`
}

function failure(reason: string): VacancyError {
  return new VacancyError('failure', { reason })
}

// --- redrive ---

const redriveCommand = defineCommand({
  name: 'vacancy queue redrive',
  component: 'QUEUE',
  summary: 'Makes dead jobs ready again, in transactions of up to 10,000. The token has the role admin.',
  flags: {
    ...CLIENT_FLAGS,
    ...FILTER_FLAGS,
    ids: { type: 'list', value: 'ID,…', summary: 'These jobs.' },
    all: { type: 'boolean', summary: 'All jobs that are dead when the command starts.' },
    to: {
      ...named('TOPIC'),
      summary: 'Moves them to another topic. A job whose id that topic has already stays dead.',
    },
  },
  operands: TOPIC,
  run: async ({ flags, operands: [topic = ''] }) => {
    const { error, group, ids, all, to } = flags
    const isFiltered = error !== undefined || group !== undefined
    if ([isFiltered, ids !== undefined, all].filter(Boolean).length !== 1)
      throw usage('give --ids, --all, or --error and --group')
    const api = openApi(flags)
    const filter = { ...(error !== undefined && { error }), ...(group !== undefined && { group }) }
    const selections =
      ids === undefined ? repeated(isFiltered ? { filter } : { all: true }, await deadOf(api, topic)) : chunksOf(ids)
    const { response } = QUEUE_ROUTES['POST /api/v1/queue/topics/{topic}/dead/redrive']
    const total = { redriven: 0, missing: [] as string[], conflicts: [] as string[] }
    for (const selection of selections) {
      const body = { ...selection, ...(to !== undefined && { to }) }
      const moved = await callApi(api, 'POST', `${pathOf(topic)}/dead/redrive`, response, body)
      total.redriven += moved.redriven
      total.missing.push(...moved.missing)
      total.conflicts.push(...(moved.conflicts ?? []))
      // Jobs that fail again meanwhile stay for the next command.
      if (moved.redriven === 0) break
    }
    if (flags.json) printJson(total)
    else print(redriveLines(total))
    return total.missing.length + total.conflicts.length > 0 ? EXIT.failure : EXIT.ok
  },
})

async function deadOf(api: Api, topic: string): Promise<number> {
  const { response } = QUEUE_ROUTES['GET /api/v1/queue/topics/{topic}']
  return (await callApi(api, 'GET', pathOf(topic), response)).dead
}

/** As many requests as move so many jobs. */
function* repeated(selection: object, jobs: number): Generator<object> {
  for (let left = jobs; left > 0; left -= JOB_LIMITS.movedMax)
    yield { ...selection, limit: Math.min(left, JOB_LIMITS.movedMax) }
}

function* chunksOf(ids: readonly string[]): Generator<object> {
  for (let at = 0; at < ids.length; at += JOB_LIMITS.movedMax) yield { ids: ids.slice(at, at + JOB_LIMITS.movedMax) }
}

type Moved = { readonly redriven: number; readonly missing: readonly string[]; readonly conflicts: readonly string[] }

function redriveLines({ redriven, missing, conflicts }: Moved): string[] {
  return [
    `${count(redriven, 'job')} redriven`,
    ...missing.map((id) => `not dead: ${printable(id)}`),
    ...conflicts.map((id) => `known in the other topic, still dead: ${printable(id)}`),
  ]
}

// --- backup ---

const backupCommand = defineCommand({
  name: 'vacancy queue backup',
  component: 'QUEUE',
  summary: 'Copies the journal to a new file in the data folder of the running queue. The token has the role admin.',
  flags: {
    ...CLIENT_FLAGS,
    'timeout-secs': { type: 'integer', min: 1, max: 86_400, default: 600, unit: 'seconds', summary: 'Time for it.' },
  },
  operands: { name: 'NAME', min: 1, max: 1, summary: 'Name of the new file, without a folder.' },
  run: async ({ flags, operands: [name = ''] }) => {
    const api = { ...openApi(flags), answerMs: flags.timeoutSecs * 1000 }
    const { response } = QUEUE_ROUTES['POST /api/v1/queue/backup']
    const { path } = await callApi(api, 'POST', '/backup', response, { name })
    if (flags.json) printJson({ path })
    else print([path])
    return EXIT.ok
  },
})

export const QUEUE_COMMANDS: readonly Command[] = [
  topicsCommand,
  submitCommand,
  tailCommand,
  deadCommand,
  redriveCommand,
  backupCommand,
]
