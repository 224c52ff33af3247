/** The playground with real nodes, and a cluster that only knows their addresses. */

import { systemClock } from '@vacancy/shared'
import type { AuditNote } from '@vacancy/shared/api/route'
import { type Handler, type Principal, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import type { ControlRouteName, NodeView, PLAYGROUND_ROUTES, RouteAnswer, ShardView } from '@vacancy/shared/contract'
import { CONTROL_ROUTES } from '@vacancy/shared/contract'
import { pino } from 'pino'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { createPlayground } from '../playground/playground.ts'

type Route = keyof typeof PLAYGROUND_ROUTES & ControlRouteName

export const PERSON: Principal = { kind: 'person', id: 'p1', name: 'ada', role: 'operator' }
export const VIEWER: Principal = { kind: 'person', id: 'p2', name: 'vera', role: 'viewer' }
export const ADMIN: Principal = { kind: 'person', id: 'p3', name: 'root', role: 'admin' }
export const CLIENT: Principal = { kind: 'token', id: 't1', name: 'app', role: 'client' }

export type WorldNode = Pick<NodeAddress, 'id' | 'apiUrl'> & {
  readonly shard?: string
  readonly host: string
  readonly tcpPort: number
  readonly role?: NodeView['role']
}

/** @param databaseUrl of PostgreSQL; without it, in memory */
export async function openPlayground(
  nodes: readonly WorldNode[],
  options: { token?: string; databaseUrl?: string } = {},
) {
  const { token, databaseUrl } = options
  const clock = systemClock
  const addresses: NodeAddress[] = nodes.map(({ id, apiUrl, host, tcpPort, shard = 's1' }) => ({
    id,
    shard,
    zone: 'eu-1',
    apiUrl,
    tcp: { host, port: tcpPort },
  }))
  const notes: AuditNote[] = []
  const database = await openDatabase<Tables>(databaseUrl || ':memory:')
  const playground = createPlayground({
    cluster: clusterOf(nodes, addresses, token),
    database,
    audit: async (note) => void notes.push(note),
    log: pino({ level: 'silent' }),
    clock,
    connection: token === undefined ? {} : { token },
  })
  /** Calls a handler like the server: body, query and response are validated by the schemas of the contract. */
  async function call<N extends Route>(
    name: N,
    given: { readonly body?: unknown; readonly query?: unknown; readonly params?: unknown } = {},
    principal: Principal = PERSON,
  ): Promise<RouteAnswer<N>> {
    const route = CONTROL_ROUTES[name] as unknown as { body?: never; query?: never; params?: never; response: never }
    const part = (key: 'body' | 'query' | 'params') => {
      const schema = route[key] as { parse(value: unknown): unknown } | undefined
      return schema?.parse(given[key] ?? (key === 'query' ? {} : undefined))
    }
    const request = {
      body: part('body'),
      query: part('query'),
      params: part('params'),
      principal,
      // People have sessions; API calls with a token do not.
      session:
        principal.kind === 'person' ? { key: principal.id, owner: { kind: 'person', id: principal.id } } : undefined,
      address: '127.0.0.1',
      requestId: 'r1',
      signal: new AbortController().signal,
      headers: {},
      stream: undefined,
      reply: { header: () => {}, status: () => {} },
    } as unknown as RouteRequest<N>
    const answer = await (playground.handlers[name] as unknown as Handler<N>)(request)
    return (route.response as { parse(value: unknown): RouteAnswer<N> }).parse(answer)
  }
  return {
    call,
    notes,
    database,
    sweep: playground.sweep,
    async close() {
      await playground.stop()
      await database.destroy()
    },
  }
}

function clusterOf(nodes: readonly WorldNode[], addresses: readonly NodeAddress[], token?: string): Cluster {
  const view = (shard: string, id: string) => {
    const node = nodes.find((each) => each.id === id && (each.shard ?? 's1') === shard)
    return node && ({ id, role: node.role ?? 'standalone', state: 'healthy', freshness: 'live' } as NodeView)
  }
  const shards = [...new Set(addresses.map(({ shard }) => shard))].map(
    (id) =>
      ({
        id,
        level: 'ok',
        message: 'Healthy',
        votersUp: 1,
        segments: null,
        window: null,
        nodes: addresses.filter(({ shard }) => shard === id).map((node) => view(id, node.id)),
      }) as unknown as ShardView,
  )
  const unused = () => {
    throw new Error('not used by the playground')
  }
  return {
    summary: unused,
    shards: () => shards,
    shard: (id) => shards.find((shard) => shard.id === id),
    node: view,
    dayBegins: () => 0,
    addresses: (shard) => addresses.filter((node) => node.shard === shard),
    edges: () => addresses.filter(({ shard }) => shard === ''),
    entrances: () => [],
    segmentOf: () => undefined,
    proxies: () => [],
    ownerOf: () => undefined,
    async request(node, path, { as = 'none', method = 'GET', body: sent, timeoutMs = 5_000 } = {}) {
      const startedMs = performance.now()
      const headers = as === 'none' || token === undefined ? {} : { authorization: `Bearer ${token}` }
      try {
        const response = await fetch(node.apiUrl + path, {
          ...{ method, headers, signal: AbortSignal.timeout(timeoutMs) },
          ...(sent !== undefined && { body: JSON.stringify(sent) }),
        })
        const body = await response.text()
        return { status: response.status, body, milliseconds: performance.now() - startedMs }
      } catch (error) {
        throw new ProblemError(504, 'node-silent', `${node.id} did not respond`, { cause: error })
      }
    },
    watchClosely: unused,
    lastPlan: async () => undefined,
    onShard: () => () => {},
  }
}
