/** Asks a node over HTTP about its shard and tells it what to change: for the commands of `vacancy cluster`. */

import { readFileSync } from 'node:fs'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { VacancyError } from '@vacancy/shared'
import {
  type ClusterInfo,
  type ClusterOperations,
  clusterInfoBody,
  errorBody,
  operationsBody,
} from '@vacancy/shared/contract'
import { VERSION } from '@vacancy/shared/node'

/** A node gives up after 6 s (http/cluster.ts); whoever asks waits a little longer. */
const ANSWER_MS = 10_000
const ANSWER_BYTES_MAX = 4 << 20

export type Access = {
  /** `HOST:PORT` each; the first that can be reached is asked. */
  readonly nodes: readonly string[]
  readonly token: string | undefined
  /** Authorities of the nodes, PEM: then they are asked over TLS. */
  readonly ca: string | undefined
}

/** What a node answered. */
export type Reply = { readonly status: number; readonly body: string; readonly atMs: number }

export type Body = { readonly [key: string]: string }

export type ClusterClient = {
  /** The node that is asked, as `http://HOST:PORT`. */
  readonly url: string
  /** What the leader tells, since others know less; what the asked node tells while no leader can be asked. */
  readonly info: () => Promise<ClusterInfo>
  readonly operations: () => Promise<ClusterOperations>
  /** @returns what was answered with 202, and when by the clock of the node */
  readonly change: (path: string, body: Body) => Promise<{ readonly text: string; readonly atMs: number }>
}

/**
 * Finds the first node that answers.
 *
 * @throws VacancyError failure when none does, a line a node
 */
export async function openClient(access: Access): Promise<ClusterClient> {
  const faults: string[] = []
  for (const node of access.nodes) {
    const url = `${schemeOf(access)}//${node}`
    try {
      await send(access, 'GET', `${url}/health`)
      return clientOf(access, url)
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      faults.push(error.message)
    }
  }
  throw new VacancyError('failure', { reason: faults.join('\n') })
}

const schemeOf = ({ ca }: Access) => (ca === undefined ? 'http:' : 'https:')

function clientOf(access: Access, url: string): ClusterClient {
  const infoFrom = (from: string) => read(access, `${from}/cluster/info`, clusterInfoBody)
  // A token that was sent over TLS is not sent without.
  const isElsewhere = (info: ClusterInfo) =>
    info.leader_id !== info.node_id && info.leader_url.startsWith(schemeOf(access))
  const orElse = async <T>(first: Promise<T>, second: () => T | Promise<T>): Promise<T> => {
    try {
      return await first
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      return await second()
    }
  }
  return {
    url,
    async info() {
      const info = await infoFrom(url)
      return isElsewhere(info) ? await orElse(infoFrom(info.leader_url), () => info) : info
    },
    async operations() {
      const operationsFrom = (from: string) => read(access, `${from}/cluster/operations`, operationsBody)
      const info = await infoFrom(url)
      return await (isElsewhere(info)
        ? orElse(operationsFrom(info.leader_url), () => operationsFrom(url))
        : operationsFrom(url))
    },
    async change(path, body) {
      const reply = await send(access, 'POST', `${url}${path}`, JSON.stringify(body))
      if (reply.status !== 202) throw refusal(url, reply)
      return { text: reply.body, atMs: reply.atMs }
    },
  }
}

type Schema<T> = { readonly safeParse: (value: unknown) => { readonly data?: T | undefined } }

async function read<T>(access: Access, url: string, schema: Schema<T>): Promise<T> {
  const reply = await send(access, 'GET', url)
  if (reply.status !== 200) throw refusal(url, reply)
  const { data } = schema.safeParse(jsonOf(reply.body))
  if (data === undefined) {
    throw new VacancyError('failure', { reason: `${url} answers in another way than a node of version ${VERSION}` })
  }
  return data
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Told by whoever knows what should have come.
    return undefined
  }
}

const HINTS: { readonly [status: number]: string } = {
  401: ' (give a token of its auth file with --token-file; without an auth file a node takes no changes here)',
  403: ' (the token is of a role below admin)',
}

function refusal(url: string, { status, body }: Reply): VacancyError {
  const { host } = new URL(url)
  return new VacancyError('failure', { reason: `${host} answered ${status}: ${errorText(body)}${HINTS[status] ?? ''}` })
}

function errorText(body: string): string {
  // Something between us and the node may have answered in its own words.
  return errorBody.safeParse(jsonOf(body)).data?.error ?? body.slice(0, 200)
}

function send({ token, ca }: Access, method: 'GET' | 'POST', url: string, body = ''): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const { host } = new URL(url)
  let isConnected = false
  const fail = (error: NodeJS.ErrnoException) => {
    const code = isConnected ? 'connection_lost' : 'connection_failed'
    reject(new VacancyError(code, { address: host, reason: error.code ?? error.message }, { cause: error }))
  }
  const headers = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(method === 'POST' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  }
  const options = { method, headers, agent: false, timeout: ANSWER_MS } as const
  const request = url.startsWith('https:')
    ? requestHttps(url, { ...options, ...(ca !== undefined && { ca }) })
    : requestHttp(url, options)
  request.on('socket', (socket) => {
    socket.once('connect', () => {
      isConnected = true
    })
  })
  request.on('timeout', () => request.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)))
  request.on('error', fail)
  request.on('response', (response: IncomingMessage) => {
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > ANSWER_BYTES_MAX) request.destroy(new Error(`the answer exceeds ${ANSWER_BYTES_MAX} bytes`))
      else chunks.push(chunk)
    })
    response.on('error', fail)
    response.on('end', () => {
      const atMs = Date.parse(response.headers.date ?? '')
      resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString(), atMs: atMs || 0 })
    })
  })
  request.end(body)
  return promise
}

/**
 * The token in a file: its first line.
 *
 * @throws VacancyError usage_error
 */
export function readToken(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const [token = ''] = readText(file, '--token-file').split('\n')
  // Never told, not even when it is wrong.
  if (!/^[\x21-\x7e]+$/.test(token.trim())) throw usage(`--token-file ${file}: its first line is no token`)
  return token.trim()
}

/** @throws VacancyError usage_error */
export function readAuthorities(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readText(file, '--tls-ca')
}

function readText(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw usage(`${flag} ${file}: cannot be read: ${(cause as Error).message}`, cause)
  }
}

export function usage(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('usage_error', { reason }, { cause })
}
