/** A row of the contract as a route: schema, admission, handler and answer. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import { z } from 'zod'
import { CONTROL_BODY_BYTES_MAX, type ControlRoute, hasBody, problemBody } from '../../contract/index.ts'
import { inTrace } from '../index.ts'
import { admit, callerIn } from './admission.ts'
import type { App, HttpOptions } from './options.ts'
import { cut } from './problems.ts'
import { ProblemError } from './route.ts'

/** Of responses that are not JSON, unless the handler sets another. */
const CONTENT_TYPES = { text: 'text/plain; charset=utf-8', bytes: 'application/octet-stream' } as const

export type AnyHandler = (request: unknown) => unknown

export async function registerRoute(
  app: App,
  name: string,
  row: ControlRoute,
  handler: AnyHandler,
  options: HttpOptions,
): Promise<void> {
  const [method = '', path = ''] = name.split(' ')
  const { status = 200 } = row
  const route = {
    method,
    url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    schema: schemaOf(method, row),
    bodyLimit: row.bodyBytesMax ?? CONTROL_BODY_BYTES_MAX,
    config: { route: name, isOpen: row.access === 'open' },
    // After the limits of the principal, and before any byte of the body is read.
    preParsing: async (request: FastifyRequest) => admit(request, name, row.access, options),
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      const answer = await answerOf(handler, request, reply, { name, row }, options)
      // A handler may have set another status.
      if (reply.statusCode === 200) reply.code(status)
      if (answer === undefined) return reply.send()
      // The contract has a schema for the success status; errors are sent by sendProblem.
      if (row.gives === undefined && reply.statusCode !== status)
        reply.type('application/json; charset=utf-8').serializer((value: unknown) => JSON.stringify(value))
      const type = row.gives === undefined ? undefined : CONTENT_TYPES[row.gives]
      if (type !== undefined && !reply.hasHeader('content-type')) reply.type(type)
      return reply.send(answer)
    },
  }
  if (row.takes !== 'bytes') {
    app.route(route)
    return
  }
  await app.register(async (bytes: App) => {
    bytes.removeAllContentTypeParsers()
    bytes.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    bytes.route(route)
  })
}

/** Errors of a change that conflicts with another one, or that this caller may not make. */
const AUDITED_STATUS: readonly number[] = [403, 409]

async function answerOf(
  handler: AnyHandler,
  request: FastifyRequest,
  reply: FastifyReply,
  { name, row }: { readonly name: string; readonly row: ControlRoute },
  options: HttpOptions,
): Promise<unknown> {
  try {
    return await inTrace(request.trace, () => handler(requestOf(request, reply, row, options)))
  } catch (error) {
    const isChange = request.method !== 'GET' && (row.access === 'operator' || row.access === 'admin')
    if (isChange && error instanceof ProblemError && AUDITED_STATUS.includes(error.status) && !error.isAudited) {
      error.isAudited = true
      await options.audit({
        ...callerIn(request),
        action: name,
        target: cut(request.url),
        result: 'refused',
        detail: `${error.code}: ${error.message}`,
      })
    }
    throw error
  }
}

/** Of routes that read none: a field would be dropped in silence. */
const NO_QUERY = z.object({})
const NO_BODY = z.object({}).nullish()

function schemaOf(method: string, row: ControlRoute): FastifySchema & { [name: string]: unknown } {
  const answers = row.gives === undefined && hasBody(row) ? { [row.status ?? 200]: row.response } : {}
  return {
    ...(row.params && { params: row.params }),
    querystring: row.query ?? NO_QUERY,
    ...(method !== 'GET' && row.takes !== 'bytes' && { body: row.body ?? NO_BODY }),
    response: { ...answers, default: problemBody },
  }
}

function requestOf(request: FastifyRequest, reply: FastifyReply, row: ControlRoute, options: HttpOptions): unknown {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  const isStream = row.takes === 'bytes'
  return {
    params: request.params,
    query: request.query,
    body: isStream ? undefined : request.body,
    // Without a body there is no parser.
    stream: isStream ? (request.body instanceof Readable ? request.body : Readable.from([])) : undefined,
    ...callerIn(request),
    session: request.visitor.session,
    isSecure: request.protocol === 'https' || options.baseUrl().startsWith('https:'),
    origin: `${request.protocol}://${request.headers.host ?? ''}`,
    signal: gone.signal,
    headers: request.headers,
    reply: {
      header: (name: string, value: string) => void reply.header(name, value),
      status: (code: number) => void reply.code(code),
    },
  }
}
