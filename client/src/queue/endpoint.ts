/** Where a queue is reached: its addresses, the token, and HTTP requests to it. */

import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { ConnectionOptions } from 'node:tls'
import { unknownName } from '@vacancy/shared'
import { systemWorld } from '../world.ts'

/** The options that producers and consumers share. */
export type EndpointOptions = {
  /** Base address of the queue, such as `http://127.0.0.1:8080`; of several processes, all addresses. */
  readonly url: string | readonly string[]
  readonly token?: string
  /** Node's TLS options (`ca`, `cert`, `key`) for `https:`. */
  readonly tls?: ConnectionOptions
}

/** The addresses of a queue, of which one is in use until it fails. */
export type Endpoint = {
  readonly urls: readonly string[]
  readonly token: string | undefined
  readonly tls: ConnectionOptions
  readonly agents: { readonly http: HttpAgent; readonly https: HttpsAgent }
  /** Position in `urls`. */
  at: number
}

const URLS_MAX = 32
/** Idle connections are closed before the server closes them (keep_alive_sec is at least 91). */
const IDLE_MS = 60_000

const ENDPOINT_NAMES: readonly (keyof EndpointOptions)[] = ['url', 'token', 'tls']

/** @throws RangeError for an option that is not among the known ones */
export function checkNames(options: object, known: readonly string[]): void {
  const all = [...ENDPOINT_NAMES, ...known]
  for (const name in options) if (!all.includes(name)) throw new RangeError(`the option ${unknownName(name, all)}`)
}

/** @throws RangeError that names the option */
export function createEndpoint({ url, token, tls = {} }: EndpointOptions): Endpoint {
  const urls = (typeof url === 'string' ? [url] : [...url]).map(baseOf)
  if (urls.length === 0 || urls.length > URLS_MAX) throw new RangeError(`url must list 1 to ${URLS_MAX} addresses`)
  // Never printed, not even when it is invalid.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new RangeError('token must be printable characters without spaces')
  const options = { keepAlive: true, timeout: IDLE_MS }
  const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  return { urls, token, tls, agents, at: 0 }
}

/** @throws RangeError that names the option */
export function whole(name: string, value: unknown, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new RangeError(`${name} must be a whole number, 1 to ${max}, got ${String(value)}`)
}

function baseOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new RangeError(`url must be an address such as http://127.0.0.1:8080, got ${String(text).slice(0, 300)}`)
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

export function currentUrl({ urls, at }: Endpoint): string {
  return urls[at] ?? ''
}

/** The address failed: the next one is used, unless another request moved on already. */
export function moveOn(endpoint: Endpoint, failed: string): void {
  if (currentUrl(endpoint) === failed) endpoint.at = (endpoint.at + 1) % endpoint.urls.length
}

/**
 * The owner that a response names, as a base address. A token that is sent over TLS is not sent without it.
 *
 * @param from the address that responded
 */
export function ownerUrl(from: string, owner: unknown): string | undefined {
  if (typeof owner !== 'string' || !URL.canParse(owner)) return undefined
  const { protocol } = new URL(owner)
  const isAllowed = protocol === 'https:' || (protocol === 'http:' && from.startsWith('http:'))
  return isAllowed ? baseOf(owner) : undefined
}

export function authorization({ token }: Endpoint): { readonly authorization?: string } {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

export function closeEndpoint({ agents }: Endpoint): void {
  agents.http.destroy()
  agents.https.destroy()
}

export type HttpResult =
  | {
      readonly status: number
      readonly text: string
      /** Of the header `Retry-After`. */
      readonly retryAfterMs: number | undefined
    }
  | { readonly failure: string; readonly isSent: boolean }

/** Responses to submissions list at most 100 ids of 256 bytes. */
const RESPONSE_BYTES_MAX = 1 << 20

/** Posts a JSON text. Never rejects: a request without a response has a `failure`. */
export function post(endpoint: Endpoint, url: string, body: string, answerMs: number): Promise<HttpResult> {
  return new Promise((resolve) => {
    let isSent = false
    const isTls = url.startsWith('https:')
    const options = {
      method: 'POST',
      agent: isTls ? endpoint.agents.https : endpoint.agents.http,
      headers: {
        ...authorization(endpoint),
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    }
    const request = isTls ? requestHttps(url, { ...endpoint.tls, ...options }) : requestHttp(url, options)
    const stopTimer = systemWorld.after(answerMs, () => request.destroy(new Error(`no response within ${answerMs} ms`)))
    const settle = (result: HttpResult) => {
      stopTimer()
      resolve(result)
    }
    const fail = (error: NodeJS.ErrnoException) => settle({ failure: error.message || String(error.code), isSent })
    request.on('error', fail)
    request.on('socket', (socket) => {
      if (!socket.connecting) isSent = true
      else socket.once('connect', () => (isSent = true))
    })
    request.on('response', (response) => readResponse(response, fail, settle))
    request.end(body)
  })
}

function readResponse(
  response: IncomingMessage,
  fail: (error: Error) => void,
  settle: (result: HttpResult) => void,
): void {
  let text = ''
  response.setEncoding('utf8')
  response.on('error', fail)
  response.on('aborted', () => fail(new Error('the connection was lost before the response ended')))
  response.on('data', (piece: string) => {
    text += piece
    if (text.length > RESPONSE_BYTES_MAX)
      response.destroy(new RangeError(`the response has more than ${RESPONSE_BYTES_MAX} bytes`))
  })
  response.on('end', () => {
    const seconds = Number(response.headers['retry-after'])
    const retryAfterMs = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined
    settle({ status: response.statusCode ?? 0, text, retryAfterMs })
  })
}
