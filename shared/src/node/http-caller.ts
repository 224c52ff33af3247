/**
 * HTTP requests to services of the platform (registry, resolver, nodes), with the token and the authorities from the
 * configured files. Responses are bounded in size and time.
 */

import type { Agent } from 'node:http'
import type { Agent as SecureAgent } from 'node:https'
import { parseAddress, REGISTRY_LIMITS } from '../contract/fabric.ts'
import { VacancyError } from '../errors.ts'
import { http, https } from './http-modules.ts'
import { type HttpResponse, requestHttp } from './http-request.ts'
import type { Log } from './log.ts'
import { loadTls } from './tls.ts'
import { readTokenFile } from './token-file.ts'
import { readText, watchFiles } from './watch.ts'

/** A list of segments with all its quotes. */
const BYTES_MAX = REGISTRY_LIMITS.segmentsBodyBytesMax + 65_536

export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query. */
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  /** JSON. */
  readonly body?: string
  readonly timeoutMs: number
  /** Longest response body; default: that of a complete segment list. */
  readonly bytesMax?: number
}

export type HttpResult =
  | {
      readonly kind: 'answer'
      readonly status: number
      /** '' when absent, as the other headers. */
      readonly etag: string
      readonly contentType?: string
      readonly cacheControl?: string
      /** The registry that answered may not know the newest state: it does not reach its database. */
      readonly isStale?: boolean
      readonly body: string
    }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * Sends one request; calls back exactly once, never before it returned, and not after it was cancelled.
 *
 * @param base such as `http://registry:8080`, with or without a path
 * @returns cancels it
 */
export type SendRequest = (base: string, request: HttpRequest, done: (result: HttpResult) => void) => () => void

export type HttpCaller = {
  readonly request: SendRequest
  /** Closes open connections. */
  readonly close: () => void
}

/**
 * Reads `--registry-addr`: `host:port`, or an address with `http://` or `https://`.
 *
 * @throws VacancyError usage_error naming the address
 */
export function parseRegistryAddresses(written: readonly string[]): readonly string[] {
  return written.map((each) => {
    const [, scheme = 'http', rest = ''] = /^(?:(https?):\/\/)?([^/]*)\/?$/.exec(each) ?? []
    const address = parseAddress(rest)
    if (!address) throw new VacancyError('usage_error', { reason: `--registry-addr: ${each} is not host:port` })
    const host = address.host.includes(':') ? `[${address.host}]` : address.host
    return `${scheme}://${host}${address.port === undefined ? '' : `:${address.port}`}`
  })
}

type CallerFiles = {
  /** Its first line is sent as bearer token. */
  readonly tokenFile?: string | undefined
  /** PEM: authorities for `https://`; default: those of the system. */
  readonly caFile?: string | undefined
  /** PEM: own certificate for `https://`, and its key. */
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  /** Name in the certificate of the other side, if not its host. */
  readonly serverName?: string | undefined
}

/**
 * Creates an HTTP client. All files are read again when they change.
 *
 * @throws VacancyError invalid_tokens, invalid_tls when a file cannot be used
 */
export function openHttpCaller(
  options: CallerFiles & {
    /** For the log: `registry`, `resolver`. */
    readonly name: string
    readonly log: Log
    readonly lookMs?: number
  },
): HttpCaller {
  const { tokenFile, caFile, certFile, keyFile, name, log } = options
  let current = open(options)
  const files = [tokenFile, caFile, certFile, keyFile].filter((file) => file !== undefined)
  const unwatch = watchFiles(
    files,
    () => {
      const next = open(options)
      close(current)
      current = next
      log.info({ files }, `${name} token and authorities reloaded`)
    },
    { log, message: `${name} token or authorities unusable, keeping the old ones` },
    options.lookMs,
  )
  return {
    request: (base, request, done) => send(current, base, request, done, true),
    close() {
      unwatch()
      close(current)
    },
  }
}

type Way = {
  readonly plain: Agent
  readonly secure: SecureAgent
  readonly headers: { readonly [name: string]: string }
}

function open({ tokenFile, caFile, certFile, keyFile, serverName }: CallerFiles): Way {
  const ca = caFile === undefined ? undefined : readText(caFile, 'invalid_tls')
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw new VacancyError('invalid_tls', { reason: `${caFile} holds no certificate in PEM form` })
  const own = certFile === undefined || keyFile === undefined ? undefined : loadTls({ cert: certFile, key: keyFile })
  const token = tokenFile === undefined ? undefined : readTokenFile(tokenFile)
  const headers: { [name: string]: string } = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  return {
    plain: new http.Agent({ keepAlive: true, maxSockets: 8 }),
    secure: new https.Agent({
      keepAlive: true,
      maxSockets: 8,
      ...(ca !== undefined && { ca }),
      ...(own && { cert: own.cert, key: own.key }),
      ...(serverName !== undefined && { servername: serverName }),
    }),
    headers,
  }
}

function close({ plain, secure }: Way): void {
  plain.destroy()
  secure.destroy()
}

function send(
  way: Way,
  base: string,
  asked: HttpRequest,
  done: (result: HttpResult) => void,
  mayRepeat: boolean,
): () => void {
  const { method, path, headers, body, timeoutMs, bytesMax = BYTES_MAX } = asked
  const url = new URL(`${base.replace(/\/+$/, '')}${path}`)
  const agent = url.protocol === 'https:' ? way.secure : way.plain
  const options = { method, agent, headers: { ...way.headers, ...headers }, body, timeoutMs, bytesMax }
  let cancel = requestHttp(url, options, (result) => {
    if (!('error' in result)) return done(resultOf(result))
    const { error, isStale } = result
    // That an idle connection was closed proves nothing about the registry. All requests may be sent twice.
    if (mayRepeat && isStale && error.code === 'ECONNRESET') cancel = send(way, base, asked, done, false)
    else done({ kind: 'failed', reason: error.message || (error.code ?? 'the connection failed') })
  })
  return () => cancel()
}

function resultOf({ status, headers, body }: HttpResponse): HttpResult {
  const { etag = '', 'content-type': contentType = '', 'cache-control': cacheControl = '' } = headers
  const isStale = headers['x-registry-stale'] !== undefined
  return { kind: 'answer', status, etag, contentType, cacheControl, isStale, body: body.toString() }
}
