/** Errors as `application/problem+json`: the only place that turns errors into responses. */
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors, isResponseSerializationError } from 'fastify-type-provider-zod'
import type { Problem } from '../../contract/index.ts'
import { errorRow, VacancyError } from '../../index.ts'
import { http, type RefusedHead, refusedHeadIn } from '../index.ts'
import { problem } from './errors.ts'
import { HTTP_LIMITS } from './options.ts'
import { ProblemError } from './route.ts'

/** Malformed or unfinished requests: there is no reply object yet. */
export function refuseBytes(
  error: Error & { readonly code?: string; readonly rawPacket?: unknown },
  socket: Socket,
): void {
  if (socket.destroyed || !socket.writable) return
  if (error.code === 'HPE_HEADER_OVERFLOW') endWith(socket, refusalOfHead(refusedHeadIn(error)))
  else endWith(socket, error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? TIMED_OUT : NO_HTTP)
}

/** A request that is refused by its head alone. */
export function refusalOfHead(refused: RefusedHead): ProblemError {
  return problem(HEAD_PROBLEMS[refused])
}

const HEAD_PROBLEMS = {
  'address too long': 'address-too-long',
  'headers too large': 'headers-too-large',
  'packed body': 'packed-body',
} as const

const NO_HTTP = problem('no-http')

const TIMED_OUT = problem('request-timeout', {
  hint: `Send the headers within ${HTTP_LIMITS.headersMs / 1000} s and the whole request within ${HTTP_LIMITS.requestMs / 1000} s.`,
})

/** Writes a problem to a connection that has no reply object, and ends the connection. */
export function endWith(socket: Duplex, { status, code, message, hint, more }: ProblemError): void {
  const title = http.STATUS_CODES[status] ?? 'Error'
  const body = JSON.stringify({ status, code, title, detail: message, hint, requestId: randomUUID() })
  const wait = more['retryAfterSeconds']
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(typeof wait === 'number' ? [`retry-after: ${wait}`] : []),
    'connection: close',
    '',
    body,
  ]
  socket.end(lines.join('\r\n'))
  // Destroying it immediately could lose the last bytes; never destroying it would let a client keep it open.
  setTimeout(() => socket.destroy(), HTTP_LIMITS.farewellMs).unref()
}

/** Sends an error as the response. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = isGone(error, request) ? GONE : problemOf(error)
  const { status } = problem
  request.trace?.span?.set({ 'error.type': problem.code, reason: problem.message })
  if (status >= 500)
    request.log.error({ err: error, requestId: request.id, path: request.routeOptions?.url }, 'a request failed')
  // Requests refused before routing run no hooks.
  reply.header('x-request-id', request.id)
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  const wait = problem.more['retryAfterSeconds']
  if (typeof wait === 'number') reply.header('retry-after', String(wait))
  const { error: word, ...more } = problem.more
  const body: Problem & { [name: string]: unknown } = {
    ...more,
    status,
    code: problem.code,
    title: http.STATUS_CODES[status] ?? 'Error',
    detail: problem.message,
    hint: problem.hint,
    ...(problem.field !== undefined && { field: problem.field }),
    requestId: request.id,
    // Tools of the cluster management API read this field.
    ...(!request.url.startsWith('/api/') && { error: word ?? problem.message }),
  }
  return reply
    .code(status)
    .type('application/problem+json; charset=utf-8')
    .serializer((value: unknown) => JSON.stringify(value))
    .send(body)
}

/** The caller disconnected while sending: not a server error, and no response can be delivered. */
function isGone(error: unknown, { raw }: FastifyRequest): boolean {
  return raw.destroyed && !raw.complete && (error as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET'
}

const GONE = problem('incomplete')

function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (hasZodFastifySchemaValidationErrors(error)) {
    const [first] = error.validation
    const path = (first?.instancePath ?? '').replace(/^\//, '').replaceAll('/', '.')
    const place = path === '' ? (error.validationContext ?? 'the request') : path
    return problem('invalid-request', {
      detail: cut(`${place}: ${first?.message ?? 'is not valid'}`, 500),
      ...(path !== '' && { field: path }),
    })
  }
  if (error instanceof VacancyError) {
    const { http } = errorRow(error.code)
    return new ProblemError(http, error.code.replaceAll('_', '-'), error.message, { cause: error })
  }
  const { statusCode = 500, code, message } = error as FastifyError
  if (statusCode < 500 && !isResponseSerializationError(error))
    return new ProblemError(
      statusCode,
      (code ?? 'invalid-request')
        .toLowerCase()
        .replace(/^fst_err_/, '')
        .replaceAll('_', '-'),
      cut(message, 500),
      {
        hint: HINTS[statusCode] ?? 'See /docs for the parameters of each path.',
      },
    )
  return problem('internal', { cause: error })
}

const HINTS: { readonly [status: number]: string } = {
  413: 'Send a smaller body.',
  415: 'Send JSON, as content-type: application/json.',
}

/** External input, shortened for messages. */
export function cut(text: string | undefined, most = 120): string {
  const clean = (text ?? 'nothing').replaceAll(/\p{Cc}/gu, ' ')
  return clean.length > most ? `${clean.slice(0, most)}…` : clean
}
