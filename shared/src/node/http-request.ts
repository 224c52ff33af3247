/** One HTTP request of any program: a response of bounded size and time, or why there is none. */
import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { ATTEMPT_MS, followAttempts } from '../attempts.ts'
import { http, https } from './http-modules.ts'

export type HttpResponse = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export type HttpFailure = {
  readonly why: 'timeout' | 'size' | 'connection'
  readonly error: NodeJS.ErrnoException
  readonly isConnected: boolean
  /** No response began, and the connection was a kept one, which the other side may have closed before it read anything. */
  readonly isStale: boolean
}

type Options = {
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  /** JSON. */
  readonly body?: string | undefined
  /** `false`: a connection of its own. */
  readonly agent: Agent | false
  /** Certificate authorities, PEM, instead of those of the agent or of the system. */
  readonly ca?: string | undefined
  /** Until the end of the response. */
  readonly timeoutMs?: number
  /** Without any byte. */
  readonly idleMs?: number
  readonly bytesMax: number
}

/**
 * Calls back exactly once, never before it returned, and not after it was cancelled.
 *
 * @returns cancels the request
 * @throws TypeError when this is no address
 */
export function requestHttp(
  url: string | URL,
  { method, headers, body, agent, ca, timeoutMs, idleMs, bytesMax }: Options,
  done: (result: HttpResponse | HttpFailure) => void,
): () => void {
  let isOver = false
  let isConnected = false
  let isAnswered = false
  const finish = (): boolean => {
    if (isOver) return false
    clearTimeout(timer)
    isOver = true
    return true
  }
  const fail = (why: HttpFailure['why'], error: NodeJS.ErrnoException): void => {
    if (!finish()) return
    const isStale = request.reusedSocket && !isAnswered
    request.destroy()
    done({ why, error, isConnected, isStale })
  }
  let reasonOf = (reason: string) => reason
  // The error of several addresses has no message of its own.
  const lost = (error: NodeJS.ErrnoException) =>
    fail('connection', Object.assign(error, { message: reasonOf(error.message) }))
  const target = new URL(url)
  const content = body !== undefined && {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  }
  const options = {
    method,
    agent,
    headers: { ...headers, ...content },
    autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
    ...(idleMs !== undefined && { timeout: idleMs }),
  }
  const request =
    target.protocol === 'https:'
      ? https.request(target, { ...options, ...(ca !== undefined && { ca }) })
      : http.request(target, options)
  const timer =
    timeoutMs === undefined
      ? undefined
      : // A process that had no processor time reads what has arrived before it decides.
        setTimeout(
          () => setImmediate(() => fail('timeout', new Error(reasonOf(`no response within ${timeoutMs} ms`)))),
          timeoutMs,
        )
  request.on('socket', (socket) => {
    isConnected = !socket.connecting
    if (isConnected) return
    reasonOf = followAttempts(socket)
    socket.once('connect', () => (isConnected = true))
  })
  request.on('timeout', () => fail('timeout', new Error(reasonOf(`no response within ${(idleMs ?? 0) / 1000} s`))))
  request.on('error', lost)
  request.on('response', (response: IncomingMessage) => {
    isAnswered = true
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMax) fail('size', new Error(`the response exceeds ${bytesMax} bytes`))
      else chunks.push(chunk)
    })
    response.on('error', lost)
    response.on('end', () => {
      if (!finish()) return
      const [only] = chunks
      const whole = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks)
      done({ status: response.statusCode ?? 0, headers: response.headers, body: whole })
    })
  })
  request.end(body)
  return () => {
    if (finish()) request.destroy()
  }
}
