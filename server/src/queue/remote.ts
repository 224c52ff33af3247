/**
 * A job queue elsewhere, `vacancy queue serve`, on the pages of this control plane: its API is passed on with a token of
 * that queue, after the permissions of the person were checked here. Producers and consumers use its own address.
 */

import { type ControlModule, type Handlers, moduleOf, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import { type ControlRoute, QUEUE_ROUTES, type TopicStats } from '@vacancy/shared/contract'
import { z } from 'zod'
import { noteOf } from '../access/accounts.ts'
import type { Audit } from '../access/audit.ts'

type RemoteOptions = {
  /** `http://host:port`. */
  readonly url: string
  /** With the role admin there. */
  readonly token: string
  readonly audit: Audit
}

/** A redrive of 10,000 jobs, or a backup, takes seconds. */
const ANSWER_MS_MAX = 60_000

const POLL_MS = 5_000

/** The state of the queue as the last poll found it, for the attention items. */
export type RemoteQueue = { fault: string; topics: readonly TopicStats[] }

/** The paths of the queue's API, answered by another process. Updates `found` while it runs. */
export function remoteQueueModule(options: RemoteOptions, found: RemoteQueue): ControlModule {
  let timer: NodeJS.Timeout | undefined
  const start = async () => {
    timer = setInterval(() => void look(options, found), POLL_MS)
    await look(options, found)
  }
  const handlers = Object.keys(QUEUE_ROUTES).map((name) => [
    name,
    (request: AnyRequest) => passOn(options, name, request),
  ])
  return moduleOf('queue', QUEUE_ROUTES, Object.fromEntries(handlers) as Handlers<typeof QUEUE_ROUTES>, {
    start,
    stop: async () => clearInterval(timer),
  })
}

async function look({ url, token }: RemoteOptions, found: RemoteQueue): Promise<void> {
  try {
    const { status, body } = await fetchJson(`${url}/api/v1/queue/stats`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(POLL_MS),
    })
    if (status !== 200) throw problemOf(status, body)
    found.topics = STATS.parse(body).topics
    found.fault = ''
  } catch (error) {
    if (!(error instanceof ProblemError || error instanceof z.ZodError)) throw error
    found.fault = error instanceof ProblemError ? error.message : 'Its answer is not that of a queue.'
  }
}

const STATS = QUEUE_ROUTES['GET /api/v1/queue/stats'].response

type AnyRequest = Omit<RouteRequest<never>, 'params' | 'query' | 'body'> & {
  readonly params: { readonly [name: string]: string } | undefined
  readonly query: { readonly [name: string]: unknown } | undefined
  readonly body: unknown
}

async function passOn({ url, token, audit }: RemoteOptions, name: string, request: AnyRequest): Promise<unknown> {
  const [method = '', template = ''] = name.split(' ')
  const path = template.replaceAll(/\{(\w+)\}/g, (_, param: string) =>
    encodeURIComponent(request.params?.[param] ?? ''),
  )
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(request.query ?? {})) if (value !== undefined) query.set(key, String(value))
  const hasBody = request.body !== undefined && request.body !== null
  const { status, body } = await fetchJson(`${url}${path}${query.size === 0 ? '' : `?${query}`}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(hasBody && { 'content-type': 'application/json' }) },
    ...(hasBody && { body: JSON.stringify(request.body) }),
    signal: AbortSignal.any([request.signal, AbortSignal.timeout(ANSWER_MS_MAX)]),
  })
  const { access }: ControlRoute = QUEUE_ROUTES[name as keyof typeof QUEUE_ROUTES]
  if (access === 'open') {
    // Health answers 503 with a body of its own.
    request.reply.status(status)
    return body
  }
  if (status >= 400) throw problemOf(status, body)
  request.reply.status(status)
  if (method !== 'GET') await audit.write(noteOf(request as never, `queue: ${name}`, path, JSON.stringify(body)))
  return body
}

async function fetchJson(url: string, init: RequestInit): Promise<{ readonly status: number; readonly body: unknown }> {
  try {
    const response = await fetch(url, init)
    return { status: response.status, body: await response.json() }
  } catch (cause) {
    throw new ProblemError(502, 'queue-unreachable', 'The queue does not respond.', {
      hint: 'Check queue_url, and whether `vacancy queue serve` runs there.',
      cause,
    })
  }
}

/** Its refusal, without the words about its own token. */
function problemOf(status: number, body: unknown): ProblemError {
  const { code, detail, hint, ...more } = (body ?? {}) as { readonly [name: string]: unknown }
  if (status === 401 || status === 403)
    return new ProblemError(502, 'queue-token', 'The queue refuses the token of the control plane.', {
      hint: 'Set queue_token to a token with the role admin of that queue.',
    })
  const { title: _title, status: _status, requestId: _requestId, ...rest } = more
  return new ProblemError(status, String(code ?? 'queue-refused'), String(detail ?? 'The queue refused the request.'), {
    hint: String(hint ?? ''),
    more: rest,
  })
}
