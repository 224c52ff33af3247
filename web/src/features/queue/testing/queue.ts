/** Topics, jobs and consumers for tests, and a queue that answers the requests of the pages. */
import { type ConsumerView, type JobView, QUEUE_ROUTES, type TopicStats, topicConfig } from '@vacancy/shared/contract'
import { vi } from 'vitest'

export const AT = '2026-11-20T18:30:00.000Z'

const totals = {
  ...{ accepted: 0, duplicates: 0, delivered: 0, redelivered: 0, acked: 0, lateAcked: 0, nacked: 0, expired: 0 },
  ...{ disconnected: 0, dead: 0, deadDropped: 0, cancelled: 0, redriven: 0, rejected: 0 },
}

export function statsOf(over: Partial<TopicStats> = {}): TopicStats {
  return {
    topic: 'orders',
    paused: false,
    ready: 0,
    delayed: 0,
    leased: 0,
    dead: 0,
    bytes: 0,
    oldestReadyMs: 0,
    consumers: 1,
    stalledConsumers: 0,
    totals,
    rates1m: { accepted: 0, delivered: 0, acked: 0, failed: 0 },
    ...over,
  }
}

/** A dead job. */
export function jobOf(over: Partial<JobView> = {}): JobView {
  return {
    id: 'order-1',
    topic: 'orders',
    state: 'dead',
    priority: 0,
    failures: 5,
    deliveries: 5,
    maxAttempts: 5,
    createdAt: '2026-11-20T18:00:00.000Z',
    runAt: null,
    leaseUntil: null,
    consumer: null,
    lastError: 'timeout after 30 ms',
    bytes: 12,
    deadAt: '2026-11-20T18:20:00.000Z',
    reason: 'max_attempts',
    finishedAt: null,
    ...over,
  }
}

export function consumerOf(over: Partial<ConsumerView> = {}): ConsumerView {
  return {
    id: 'c-1',
    uuid: 'worker-1',
    topic: 'orders',
    token: 'shop',
    prefetch: 10,
    adaptive: true,
    leased: 2,
    stalled: false,
    connectedAt: AT,
    lastMessageAt: AT,
    remote: '127.0.0.1:50000',
    delivered: 9,
    acked: 7,
    ...over,
  }
}

export const topicOf = (stats: TopicStats) => ({
  ...{ topic: stats.topic, paused: stats.paused, createdAt: AT, ready: stats.ready, delayed: stats.delayed },
  ...{ leased: stats.leased, dead: stats.dead, consumers: stats.consumers },
  config: topicConfig.parse({ paused: stats.paused }),
})

export const statsBody = (topics: readonly TopicStats[]) => ({
  node: 'q1',
  role: 'owner',
  journal: 'sqlite',
  topics,
  totals,
})

export type Sent = {
  readonly name: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: unknown
}
type Answers = { readonly [name: string]: (sent: Sent) => unknown }

const NAMES = Object.keys(QUEUE_ROUTES).map((name) => {
  const [method = '', path = ''] = name.split(' ')
  return { name, method, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }
})

/**
 * Answers requests by route name until the end of the test. Each answer and each body satisfies the contract.
 *
 * @returns the requests that change something
 */
export function serveQueue(answers: Answers): readonly Sent[] {
  const changes: Sent[] = []
  vi.stubGlobal('fetch', async (address: string, { method = 'GET', body }: RequestInit) => {
    const { pathname: path, searchParams: query } = new URL(address, 'http://127.0.0.1')
    const name = NAMES.find((one) => one.method === method && one.pattern.test(path))?.name ?? `${method} ${path}`
    const route = QUEUE_ROUTES[name as keyof typeof QUEUE_ROUTES]
    const sent = { name, path, query, body: typeof body === 'string' ? JSON.parse(body) : undefined }
    if ('query' in route) route.query.parse(Object.fromEntries(query))
    if ('body' in route) route.body.parse(sent.body)
    if (method !== 'GET') changes.push(sent)
    const answer = answers[name]?.(sent)
    if (answer === undefined) {
      const problem = { status: 404, code: 'not-found', title: '', detail: `no ${name}`, hint: '', requestId: '' }
      return Response.json(problem, { status: 404 })
    }
    return Response.json(route.response.parse(answer))
  })
  return changes
}
