/** HTTP requests to the registry, with the token and the authorities from the configured files. */

import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { VacancyError } from '@vacancy/shared'
import { type Log, watchFiles } from '@vacancy/shared/node'
import { ANSWER_BYTES_MAX, type RegistryRequest, type RegistryResult, type SendRequest } from './registry.ts'

export type RegistryHttp = {
  readonly request: SendRequest
  /** Closes open connections. */
  readonly close: () => void
}

/**
 * Creates the HTTP client of the registry. Both files are read again when they change.
 *
 * @param options.tokenFile its first line is sent as bearer token
 * @param options.caFile PEM: authorities for `https://`; default: those of the system
 * @throws VacancyError invalid_tokens, invalid_tls when a file cannot be used
 */
export function openRegistryHttp(options: {
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly log: Log
  readonly lookMs?: number
}): RegistryHttp {
  const { tokenFile, caFile, log } = options
  let current = open(tokenFile, caFile)
  const files = [tokenFile, caFile].filter((file) => file !== undefined)
  const unwatch = watchFiles(
    files,
    () => {
      try {
        const next = open(tokenFile, caFile)
        close(current)
        current = next
        log.info({ files }, 'registry token and authorities reloaded')
      } catch (error) {
        log.error({ files, err: error }, 'registry token or authorities unusable, keeping the old ones')
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
  { method, path, headers, body, timeoutMs }: RegistryRequest,
  done: (result: RegistryResult) => void,
  mayRepeat: boolean,
): () => void {
  let isOver = false
  let cancelRepeat: (() => void) | undefined
  const end = (result: RegistryResult): void => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    outgoing.destroy()
    done(result)
  }
  const url = new URL(path, base)
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
      if (bytes > ANSWER_BYTES_MAX) end({ kind: 'failed', reason: `its response exceeds ${ANSWER_BYTES_MAX} bytes` })
      else chunks.push(chunk)
    })
    answer.on('error', (error) => end({ kind: 'failed', reason: error.message }))
    answer.on('end', () => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      const etag = answer.headers.etag ?? ''
      done({ kind: 'answer', status: answer.statusCode ?? 0, etag, body: Buffer.concat(chunks).toString() })
    })
  })
  outgoing.on('error', (error: NodeJS.ErrnoException) => {
    if (isOver) return
    // The other side may have closed an idle kept-alive connection, which proves nothing about the registry. All
    // requests may be sent twice.
    if (mayRepeat && outgoing.reusedSocket && error.code === 'ECONNRESET') {
      isOver = true
      clearTimeout(timer)
      const again = { method, path, timeoutMs, ...(headers && { headers }), ...(body !== undefined && { body }) }
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
