/** Requests to the control plane, by the route names of the contract and typed by it. */
import type { ControlRouteName, Problem, RouteAnswer, RouteInput } from '@vacancy/shared/contract'
import * as copy from './copy.ts'
import { ApiProblem } from './problem.ts'

export { ApiProblem } from './problem.ts'

type Part<K extends string, T> = [T] extends [undefined]
  ? { readonly [key in K]?: undefined }
  : Record<never, never> extends T
    ? { readonly [key in K]?: T }
    : { readonly [key in K]: T }

type Extras = {
  readonly signal?: AbortSignal
  readonly headers?: { readonly [name: string]: string }
  /** The body of a route that takes bytes. */
  readonly bytes?: Blob | Uint8Array<ArrayBuffer>
}

export type CallInput<N extends ControlRouteName> = Part<'params', RouteInput<N>['params']> &
  Part<'query', RouteInput<N>['query']> &
  Part<'body', RouteInput<N>['body']> &
  Extras

type CallArguments<N extends ControlRouteName> =
  Record<never, never> extends CallInput<N> ? [input?: CallInput<N>] : [input: CallInput<N>]

type Values = { readonly [name: string]: unknown }
type Input = Extras & { readonly params?: Values; readonly query?: Values; readonly body?: unknown }

// State of the session of this page.

let csrf = ''
let requestedAt = Date.now()
const endedListeners = new Set<() => void>()

/** Sets the token that every write sends; it comes with the session. */
export function setCsrf(value: string): void {
  csrf = value
}

/** Time of the last request by the browser's clock; the idle time of the session counts from it. */
export function lastRequestAt(): number {
  return requestedAt
}

/** Registers a listener for a response that the session has ended. */
export function onSessionEnded(listener: () => void): () => void {
  endedListeners.add(listener)
  return () => endedListeners.delete(listener)
}

export function sessionEnded(): void {
  for (const listener of endedListeners) listener()
}

/**
 * Sends a request and parses the JSON response.
 *
 * @throws ApiProblem for error responses; an aborted call throws its reason
 */
export async function call<N extends ControlRouteName>(name: N, ...[input]: CallArguments<N>): Promise<RouteAnswer<N>> {
  const response = await send(name, (input ?? {}) as Input)
  if (response.status === 204) return undefined as RouteAnswer<N>
  return (await response.json()) as RouteAnswer<N>
}

/** The URL of a route, for links and downloads. */
export function pathOf<N extends ControlRouteName>(
  name: N,
  input: { readonly params?: RouteInput<N>['params']; readonly query?: RouteInput<N>['query'] } = {},
): string {
  return address(name, input as Input)
}

async function send(name: string, input: Input): Promise<Response> {
  const method = name.slice(0, name.indexOf(' '))
  const path = address(name, input)
  const headers = new Headers(input.headers)
  headers.set('accept', 'application/json, application/problem+json;q=0.9, */*;q=0.5')
  if (method !== 'GET' && method !== 'HEAD') headers.set('x-csrf', csrf)
  if (input.body !== undefined) headers.set('content-type', 'application/json')
  else if (input.bytes) headers.set('content-type', 'application/octet-stream')
  const request = `${method} ${path}`
  const response = await fetch(path, {
    method,
    headers,
    body: input.body === undefined ? (input.bytes ?? null) : JSON.stringify(input.body),
    signal: input.signal ?? null,
    credentials: 'same-origin',
    cache: 'no-store',
  }).catch((error: unknown) => {
    if (input.signal?.aborted) throw error
    throw new ApiProblem(request, NO_RESPONSE, {}, error)
  })
  requestedAt = Date.now()
  if (response.ok) return response
  const problem = await problemOf(request, response)
  if (problem.status === 401 && !OPEN.has(name)) sessionEnded()
  throw problem
}

/** Routes where 401 is about the input rather than the session. */
const OPEN = new Set<string>([
  'POST /api/v1/session',
  'POST /api/v1/session/link',
  'POST /api/v1/set-up',
] satisfies ControlRouteName[])

const NO_RESPONSE: Problem = { status: 0, code: 'no-answer', ...copy.api.noResponse, requestId: '' }

function address(name: string, { params = {}, query = {} }: Input): string {
  const path = name
    .slice(name.indexOf(' ') + 1)
    .replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(params[key])))
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value))
  return search.size === 0 ? path : `${path}?${search}`
}

async function problemOf(request: string, response: Response): Promise<ApiProblem> {
  const text = await response.text().catch(() => '')
  const body = response.headers.get('content-type')?.includes('json') ? parse(text) : undefined
  if (body && typeof body['detail'] === 'string' && typeof body['code'] === 'string') {
    return new ApiProblem(
      request,
      { hint: '', title: '', requestId: '', ...body, status: response.status } as unknown as Problem,
      body,
    )
  }
  // Not from the control plane: the response of a proxy in front of it.
  return new ApiProblem(request, {
    status: response.status,
    code: `http-${response.status}`,
    title: response.statusText,
    detail: copy.api.proxyError(response.status, response.statusText),
    hint: copy.api.proxyHint,
    requestId: response.headers.get('x-request-id') ?? '',
  })
}

function parse(text: string): { readonly [key: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as { readonly [key: string]: unknown }) : undefined
  } catch {
    // Not JSON despite its content type: treated like any other foreign response.
    return undefined
  }
}
