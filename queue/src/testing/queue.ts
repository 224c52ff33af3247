/** A queue on a free port with files of its own, and clients as strict as existing ones. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, systemClock } from '@vacancy/shared'
import { createLogger, loadConfig } from '@vacancy/shared/node'
import { WebSocket } from 'ws'
import { SERVE_SCHEMA, type ServeConfig } from '../config.ts'
import { type QueueProgram, serveQueue } from '../serve.ts'

export const TOKENS = {
  admin: 'admin_2024',
  producer: 'producer-token',
  consumer: 'consumer-token',
  monitoring: 'monitoring-token',
  orders: 'orders-only',
} as const
const AUTH_FILE = `tokens:
  - { token: ${TOKENS.admin}, role: admin }
  - { token: ${TOKENS.producer}, role: producer }
  - { token: ${TOKENS.consumer}, role: consumer }
  - { token: ${TOKENS.monitoring}, role: monitoring }
  - { token: ${TOKENS.orders}, role: producer, topics: ["orders", "mail-*"] }
`

export type TestQueue = {
  readonly url: string
  readonly dir: string
  readonly program: QueueProgram
  /** Lines of its log. */
  readonly log: readonly string[]
  readonly call: (method: string, path: string, body?: unknown, options?: CallOptions) => Promise<Answer>
  readonly consume: (query?: string) => Promise<TestConsumer>
  /** Stops it, and starts another one with the same files. */
  readonly restart: () => Promise<TestQueue>
  readonly stop: () => Promise<void>
}
export type CallOptions = { readonly token?: string; readonly headers?: { readonly [name: string]: string } }
export type Answer = {
  readonly status: number
  readonly headers: { readonly [name: string]: unknown }
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests know the shape of each response.
  readonly body: any
}

export async function startTestQueue(config: Partial<ServeConfig> = {}, folder?: string): Promise<TestQueue> {
  const dir = folder ?? mkdtempSync(join(tmpdir(), 'vacancy-queue-'))
  const authFile = join(dir, 'auth.yml')
  if (folder === undefined) writeFileSync(authFile, AUTH_FILE)
  const { values } = loadConfig({ schema: SERVE_SCHEMA, file: undefined, searched: [], given: new Map() })
  const lines: string[] = []
  const log = createLogger({ level: 'info', format: 'json', component: 'queue', write: (line) => lines.push(line) })
  const own: ServeConfig = {
    ...values,
    listenPort: 0,
    dataDir: join(dir, 'data'),
    authFile,
    shutdownGraceMs: 200,
    ...config,
  }
  const program = await serveQueue({ config: own, clock: systemClock, log })
  const { url } = program
  return {
    url,
    dir,
    program,
    log: lines,
    call: (method, path, body, options) => call(url, method, path, body, options),
    consume: (query) => openConsumer(url, query),
    restart: async () => {
      await program.stop()
      return await startTestQueue(config, dir)
    },
    stop: async () => {
      await program.stop()
      rmSync(dir, { recursive: true })
    },
  }
}

/** One request on a connection of its own, as existing producers send them. */
export function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  options: CallOptions = {},
): Promise<Answer> {
  const { token = TOKENS.admin, headers = {} } = options
  const text =
    body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` }
  const type = path.startsWith('/api/') && body !== undefined ? { 'content-type': 'application/json' } : {}
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${url}${path}`,
      { method, agent: false, headers: { ...authorization, ...type, ...headers } },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const received = Buffer.concat(chunks).toString('utf8')
          const isJson = String(response.headers['content-type']).includes('json')
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: received,
            body: isJson && received !== '' ? JSON.parse(received) : undefined,
          })
        })
        response.on('error', reject)
      },
    )
    sent.on('error', reject)
    sent.end(text)
  })
}

/** A message as a client with fixed types reads it: another type in one of these fields would kill the client. */
type Message = {
  readonly action: string
  readonly topic: string
  readonly jobId: string
  readonly seqId: number
  // biome-ignore lint/suspicious/noExplicitAny: tests know the shape of each message.
  readonly data: any
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly [more: string]: any
}

const FIXED = { action: 'string', topic: 'string', jobId: 'string', seqId: 'number' } as const

/** Parses as strictly as the strictest existing client. */
function parseStrictly(text: string): Message {
  const message = JSON.parse(text) as Message
  for (const [name, type] of Object.entries(FIXED))
    assert(typeof message[name] === type, `${name} is a ${type}: ${text}`)
  assert(Number.isSafeInteger(message.seqId), 'seqId is an integer')
  const names = Object.keys(message).map((name) => name.toLowerCase())
  assert(new Set(names).size === names.length, 'no two fields are equal without case')
  assert('data' in message, 'data is always there')
  return message
}

export type TestConsumer = {
  readonly socket: WebSocket
  readonly messages: Message[]
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  send(message: unknown): void
  /** The next message that satisfies a condition, counted from the last one taken. */
  next(is?: (message: Message) => boolean): Promise<Message>
  /** The next delivery. */
  job(): Promise<Message>
  ack(message: Message): void
  close(): Promise<void>
}

export async function openConsumer(url: string, query = `token=${TOKENS.consumer}`): Promise<TestConsumer> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?${query}`, { perMessageDeflate: false })
  const messages: Message[] = []
  const waiting: { is: (message: Message) => boolean; resolve: (message: Message) => void }[] = []
  let taken = 0
  const settle = () => {
    for (; waiting.length > 0 && taken < messages.length; taken++) {
      const message = messages[taken] as Message
      if (waiting[0]?.is(message)) waiting.shift()?.resolve(message)
    }
  }
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    assert(!isBinary, 'the server sends text only')
    messages.push(parseStrictly(data.toString('utf8')))
    settle()
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  const consumer: TestConsumer = {
    socket,
    messages,
    closed,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    next: (is = () => true) =>
      new Promise((resolve) => {
        waiting.push({ is, resolve })
        settle()
      }),
    job: () => consumer.next(({ action }) => action === 'job'),
    ack: ({ topic, jobId, seqId }) => consumer.send({ action: 'ack', topic, last_id: seqId, JobID: jobId }),
    close: async () => {
      socket.close()
      await closed
    },
  }
  return consumer
}

/** Connects and subscribes as existing clients do. */
export async function subscribe(
  queue: Pick<TestQueue, 'consume'>,
  topic: string,
  more: object = {},
): Promise<TestConsumer> {
  const consumer = await queue.consume()
  consumer.send({ action: 'init', uuid: 'worker-7', topic, JobID: '', ...more })
  const accepted = await consumer.next()
  assert(accepted.action === 'accepted', `accepted: ${JSON.stringify(accepted)}`)
  return consumer
}

export const base64 = (value: unknown): string =>
  Buffer.from(typeof value === 'string' || value instanceof Uint8Array ? value : JSON.stringify(value)).toString(
    'base64',
  )
