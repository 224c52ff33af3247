/**
 * The listener of api_port: limits, tokens and roles (docs/design/http.md#access, docs/design/http.md#http-limits). The
 * paths are in node.ts.
 */

import type { IncomingMessage } from 'node:http'
import type { Clock } from '@vacancy/shared'
import { NODE_HTTP_LIMITS, type NodeAccess } from '@vacancy/shared/contract'
import {
  createFailureLimiter,
  type FailureLimiter,
  type HttpAnswer,
  type HttpApiOptions,
  HttpError,
  type HttpRoute,
  type HttpServer,
  openHttpApi,
  parseJsonBody,
  requireToken,
  roleMay,
  type TokenHash,
  unauthorized,
} from '@vacancy/shared/node'

export const HTTP_LIMITS = {
  requestTimeoutMs: 30_000,
  connectionsMax: 1_024,
  bodyBytesMax: NODE_HTTP_LIMITS.bodyBytesMax,
  /** Responses still running this long after close() are cut off. */
  closeMs: 2_000,
} as const

export type Query = {
  /** The part of the path that matched `*`, undecoded. */
  readonly rest: string
  readonly parameters: URLSearchParams
  /** The same, undecoded. */
  readonly search: string
  /** Empty for routes whose body is a list. */
  readonly body: JsonObject
  readonly list: readonly unknown[]
}
export type JsonObject = { readonly [name: string]: unknown }

export type Route = Pick<HttpRoute<void>, 'method' | 'path' | 'query' | 'repeats' | 'fields'> & {
  readonly access: NodeAccess
  /** Required form of the body; `anything` is not checked. */
  readonly takes: keyof typeof PARSERS
  readonly answer: (query: Query) => HttpAnswer | Promise<HttpAnswer>
}

export type Rules = {
  /** Undefined without an auth file. */
  readonly tokens: readonly TokenHash[] | undefined
  /** GETs need no token although there is an auth file, except those for admins. */
  readonly publicRead: boolean
  /** Without an auth file: whether admin paths are closed. */
  readonly adminClosed: boolean
}

export type ListenerOptions = Omit<
  HttpApiOptions<void>,
  'routes' | 'bodyBytesMax' | 'connectionsMax' | 'requestTimeoutMs'
> & {
  readonly routes: readonly Route[]
  readonly rules: () => Rules
  readonly clock: Clock
}

export type Listener = Omit<HttpServer, 'close'> & {
  /** Accepts no more connections, ends the idle ones and waits for the others, `closeMs` at most. */
  readonly close: () => Promise<void>
}

export function createListener(options: ListenerOptions): Listener {
  const failures = createFailureLimiter(options.clock)
  const { closeMs, ...limits } = HTTP_LIMITS
  const routes = options.routes.map(
    ({ access, takes, answer, ...route }): HttpRoute<void> => ({
      ...route,
      parse: PARSERS[takes],
      admit: (request) => authorize(options, failures, access, request),
      answer: ({ path, parameters, search, body }) =>
        answer({
          rest: path['*'] ?? '',
          parameters,
          search,
          body: takes === 'object' ? (body as JsonObject) : {},
          list: takes === 'list' ? (body as readonly unknown[]) : [],
        }),
    }),
  )
  const server = openHttpApi({ ...options, ...limits, routes })
  return { ...server, close: () => server.close(closeMs) }
}

/** @throws HttpError 401, 403 or 429 (docs/design/http.md#access) */
function authorize(
  { clock, rules }: ListenerOptions,
  failures: FailureLimiter,
  access: NodeAccess,
  request: IncomingMessage,
) {
  if (access === 'open') return
  const { tokens, publicRead, adminClosed } = rules()
  const needed = access === 'adminToken' ? 'admin' : access === 'clientOnly' ? 'client' : access
  // Without an auth file every token is unknown.
  if (tokens || access === 'adminToken') {
    if (needed !== 'admin' && access !== 'clientOnly' && publicRead) return
    const { role } = requireToken(tokens ?? [], failures, request, clock.wallMs())
    if (!roleMay(role, needed)) throw new HttpError(403, 'insufficient permissions')
    return
  }
  if (needed !== 'admin') return
  if (adminClosed) throw unauthorized('admin paths need an auth file')
  // Without tokens, any web page in a browser on this machine could post here.
  if (request.headers.origin !== undefined)
    throw new HttpError(403, 'web pages may not call admin paths without a token')
}

const PARSERS = {
  object(sent: Buffer): JsonObject {
    const value = sent.length === 0 ? {} : parseJsonBody(sent)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new HttpError(400, 'the body must be a JSON object')
    }
    return value as JsonObject
  },
  list(sent: Buffer): readonly unknown[] {
    const value = sent.length === 0 ? undefined : parseJsonBody(sent)
    if (!Array.isArray(value)) throw new HttpError(400, 'the body must be a JSON array')
    return value
  },
  anything: () => undefined,
} as const
