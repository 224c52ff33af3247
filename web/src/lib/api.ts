/** The one way from the console to the control plane: calls by the names of the contract, typed by it. */
import type { ControlRouteName, Problem, RouteAnswer, RouteInput } from '@vacancy/shared/contract'
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

type CallInput<N extends ControlRouteName> = Part<'params', RouteInput<N>['params']> &
  Part<'query', RouteInput<N>['query']> &
  Part<'body', RouteInput<N>['body']> &
  Extras

type CallArguments<N extends ControlRouteName> =
  Record<never, never> extends CallInput<N> ? [input?: CallInput<N>] : [input: CallInput<N>]

type Values = { readonly [name: string]: unknown }
type Input = Extras & { readonly params?: Values; readonly query?: Values; readonly body?: unknown }

// What belongs to the session of this page.

let csrf = ''
let askedAt = Date.now()
const endedListeners = new Set<() => void>()

/** Goes into every change; the session tells it. */
export function setCsrf(value: string): void {
  csrf = value
}

/** When something was asked last: the session lives on from there. */
export function lastAskedAt(): number {
  return askedAt
}

/** Called when an answer says that nobody is signed in any more. */
export function onSessionEnded(listener: () => void): () => void {
  endedListeners.add(listener)
  return () => endedListeners.delete(listener)
}

export function sessionEnded(): void {
  for (const listener of endedListeners) listener()
}

/**
 * Asks for JSON.
 *
 * @throws ApiProblem with what went wrong and what to do; a call that is aborted throws its reason
 */
export async function call<N extends ControlRouteName>(name: N, ...[input]: CallArguments<N>): Promise<RouteAnswer<N>> {
  const answer = await ask(name, (input ?? {}) as Input)
  if (answer.status === 204) return undefined as RouteAnswer<N>
  return (await answer.json()) as RouteAnswer<N>
}

/** The address of a route, for links and downloads. */
export function pathOf<N extends ControlRouteName>(
  name: N,
  input: { readonly params?: RouteInput<N>['params']; readonly query?: RouteInput<N>['query'] } = {},
): string {
  return address(name, input as Input)
}

async function ask(name: string, input: Input): Promise<Response> {
  const method = name.slice(0, name.indexOf(' '))
  const path = address(name, input)
  const headers = new Headers(input.headers)
  headers.set('accept', 'application/json, application/problem+json;q=0.9, */*;q=0.5')
  if (method !== 'GET' && method !== 'HEAD') headers.set('x-csrf', csrf)
  if (input.body !== undefined) headers.set('content-type', 'application/json')
  else if (input.bytes) headers.set('content-type', 'application/octet-stream')
  const asked = `${method} ${path}`
  const answer = await fetch(path, {
    method,
    headers,
    body: input.body === undefined ? (input.bytes ?? null) : JSON.stringify(input.body),
    signal: input.signal ?? null,
    credentials: 'same-origin',
    cache: 'no-store',
  }).catch((error: unknown) => {
    if (input.signal?.aborted) throw error
    throw new ApiProblem(asked, NO_ANSWER, {}, error)
  })
  askedAt = Date.now()
  if (answer.ok) return answer
  const problem = await problemOf(asked, answer)
  if (problem.status === 401 && !OPEN.has(name)) sessionEnded()
  throw problem
}

/** Where 401 says something about what was typed, not about the session. */
const OPEN = new Set<string>([
  'POST /api/v1/session',
  'POST /api/v1/session/link',
  'POST /api/v1/set-up',
] satisfies ControlRouteName[])

const NO_ANSWER: Problem = {
  status: 0,
  code: 'no-answer',
  title: 'No answer',
  detail: 'The control plane did not answer.',
  hint: 'Check the connection to it; the live channel keeps trying and says when it is back.',
  requestId: '',
}

function address(name: string, { params = {}, query = {} }: Input): string {
  const path = name
    .slice(name.indexOf(' ') + 1)
    .replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(params[key])))
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value))
  return search.size === 0 ? path : `${path}?${search}`
}

async function problemOf(asked: string, answer: Response): Promise<ApiProblem> {
  const text = await answer.text().catch(() => '')
  const body = answer.headers.get('content-type')?.includes('json') ? parse(text) : undefined
  if (body && typeof body['detail'] === 'string' && typeof body['code'] === 'string') {
    return new ApiProblem(
      asked,
      { hint: '', title: '', requestId: '', ...body, status: answer.status } as unknown as Problem,
      body,
    )
  }
  // Not from the control plane: a proxy in between speaks for itself.
  return new ApiProblem(asked, {
    status: answer.status,
    code: `http-${answer.status}`,
    title: answer.statusText,
    detail: `Something between here and the control plane answered ${answer.status} ${answer.statusText}.`.trim(),
    hint: 'A reverse proxy may be in the way; its log says more.',
    requestId: answer.headers.get('x-request-id') ?? '',
  })
}

function parse(text: string): { readonly [key: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as { readonly [key: string]: unknown }) : undefined
  } catch {
    // Said to be JSON and is none: treated like any other foreign answer.
    return undefined
  }
}
