/** The HTTP listener of all services of the fabric: their limits, and what a caller may change. */
import {
  type HttpAnswer,
  type HttpApiOptions,
  type HttpQuery,
  type HttpRoute,
  type HttpServer,
  openHttpApi,
} from '@vacancy/shared/node'

export const HTTP_LIMITS = {
  /** Allows a list of 100,000 segments over a slow line. */
  requestTimeoutMs: 60_000,
  connectionsMax: 10_000,
  bodyBytesMax: 64 * 1024,
} as const

/** What a caller may change: everything, or data of one shard or zone. */
export type Caller = { readonly shard?: string; readonly zone?: string }
export type Query = HttpQuery<Caller>
export type Route = HttpRoute<Caller>

export function createListener(options: Omit<HttpApiOptions<Caller>, keyof typeof HTTP_LIMITS>): HttpServer {
  return openHttpApi({ ...options, ...HTTP_LIMITS })
}

/** A page that anybody may read. */
export function open(path: string, answer: Route['answer'], query: readonly string[] = []): Route {
  return { method: 'GET', path, query, admit: () => ({}), answer }
}

/** A page of probes and scrapers, some of which add parameters of their own. */
export function probed(path: string, answer: Route['answer'], method: Route['method'] = 'GET'): Route {
  return { method, path, query: 'any', fields: 'any', admit: () => ({}), answer }
}

/** 200 with no body at all. */
export function empty(headers: { readonly [name: string]: string } = {}): HttpAnswer {
  return { status: 200, headers, body: '' }
}
