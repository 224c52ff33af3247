/**
 * HTTP requests to services of the platform (registry, resolver, nodes), with the token and the authorities from the
 * configured files. Responses are bounded in size and time.
 */

import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { parseAddress, REGISTRY_LIMITS } from '../contract/fabric.ts'
import { VacancyError } from '../errors.ts'
import type { Log } from './log.ts'
import { watchFiles } from './watch.ts'

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

/**
 * Creates an HTTP client. Both files are read again when they change.
 *
 * @param options.tokenFile its first line is sent as bearer token
 * @param options.caFile PEM: authorities for `https://`; default: those of the system
 * @throws VacancyError invalid_tokens, invalid_tls when a file cannot be used
 */
export function openHttpCaller(options: {
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  /** For the log: `registry`, `resolver`. */
  readonly name: string
  readonly log: Log
  readonly lookMs?: number
}): HttpCaller {
  const { tokenFile, caFile, name, log } = options
  let current = open(tokenFile, caFile)
  const files = [tokenFile, caFile].filter((file) => file !== undefined)
  const unwatch = watchFiles(
    files,
    () => {
      try {
        const next = open(tokenFile, caFile)
        close(current)
        current = next
        log.info({ files }, `${name} token and authorities reloaded`)
      } catch (error) {
        log.error({ files, err: error }, `${name} token or authorities unusable, keeping the old ones`)
      }
    },
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
  readonly plain: http.Agent
  readonly secure: https.Agent
  readonly headers: { readonly [name: string]: string }
}

function open(tokenFile: string | undefined, caFile: string | undefined): Way {
  const ca = caFile === undefined ? undefined : read(caFile, 'invalid_tls')
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw new VacancyError('invalid_tls', { reason: `${caFile} holds no certificate in PEM form` })
  const token = tokenFile === undefined ? undefined : (read(tokenFile, 'invalid_tokens').split('\n', 1)[0] ?? '').trim()
  if (token !== undefined && !/^[\x21-\x7e]{1,255}$/.test(token))
    throw new VacancyError('invalid_tokens', { reason: `${tokenFile} holds no token in its first line` })
  const headers: { [name: string]: string } = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  return {
    plain: new http.Agent({ keepAlive: true, maxSockets: 8 }),
    secure: new https.Agent({ keepAlive: true, maxSockets: 8, ...(ca !== undefined && { ca }) }),
    headers,
  }
}

function read(file: string, code: 'invalid_tls' | 'invalid_tokens'): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new VacancyError(code, { reason: `${file} cannot be read: ${(cause as Error).message}` }, { cause })
  }
}

function close({ plain, secure }: Way): void {
  plain.destroy()
  secure.destroy()
}

function send(
  way: Way,
  base: string,
  { method, path, headers, body, timeoutMs, bytesMax = BYTES_MAX }: HttpRequest,
  done: (result: HttpResult) => void,
  mayRepeat: boolean,
): () => void {
  let isOver = false
  let cancelRepeat: (() => void) | undefined
  const end = (result: HttpResult): void => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    outgoing.destroy()
    done(result)
  }
  const url = new URL(`${base.replace(/\/+$/, '')}${path}`)
  const [library, agent] = url.protocol === 'https:' ? [https, way.secure] : [http, way.plain]
  const content =
    body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  const outgoing = library.request(url, { method, agent, headers: { ...way.headers, ...headers, ...content } })
  const timer = setTimeout(() => end({ kind: 'failed', reason: `no response within ${timeoutMs} ms` }), timeoutMs)
  outgoing.on('response', (answer) => {
    const chunks: Buffer[] = []
    let bytes = 0
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMax) end({ kind: 'failed', reason: `its response exceeds ${bytesMax} bytes` })
      else chunks.push(chunk)
    })
    answer.on('error', (error) => end({ kind: 'failed', reason: error.message }))
    answer.on('end', () => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      const { etag = '', 'content-type': contentType = '', 'cache-control': cacheControl = '' } = answer.headers
      const isStale = answer.headers['x-registry-stale'] !== undefined
      const body = Buffer.concat(chunks).toString()
      done({ kind: 'answer', status: answer.statusCode ?? 0, etag, contentType, cacheControl, isStale, body })
    })
  })
  outgoing.on('error', (error: NodeJS.ErrnoException) => {
    if (isOver) return
    // The other side may have closed an idle kept-alive connection, which proves nothing about the registry. All
    // requests may be sent twice.
    if (mayRepeat && outgoing.reusedSocket && error.code === 'ECONNRESET') {
      isOver = true
      clearTimeout(timer)
      const again = {
        method,
        path,
        timeoutMs,
        bytesMax,
        ...(headers && { headers }),
        ...(body !== undefined && { body }),
      }
      cancelRepeat = send(way, base, again, done, false)
      return
    }
    end({ kind: 'failed', reason: error.message || (error.code ?? 'the connection failed') })
  })
  outgoing.end(body)
  return () => {
    isOver = true
    clearTimeout(timer)
    outgoing.destroy()
    cancelRepeat?.()
  }
}
