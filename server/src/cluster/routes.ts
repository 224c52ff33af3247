/** What answers the paths of the cluster (console.md §4.5), and those of the cluster management contract (platform.md §7.3). */
import type { Clock } from '@vacancy/shared'
import { parseId } from '@vacancy/shared'
import {
  type AttentionItem,
  type CLUSTER_ROUTES,
  configBody,
  type NodeCodecs,
  type ShardBrief,
  type ShardView,
} from '@vacancy/shared/contract'
import type { z } from 'zod'
import type { WriteAudit } from '../audit.ts'
import type { Database } from '../database.ts'
import type { Events } from '../history/events.ts'
import type { Leadership } from '../history/leadership.ts'
import { readSeries, type SeriesStore } from '../history/series.ts'
import { type Asked, type Handlers, ProblemError } from '../route.ts'
import { type Aside, wordsOf } from './attention.ts'
import type { Cluster, NodeAddress } from './cluster.ts'
import type { Collector } from './collector.ts'
import { time } from './derive.ts'
import type { NamedBy } from './discovery.ts'
import type { KnownNodes } from './known.ts'
import { type HttpReply, type NodeHttp, NodeHttpError } from './node-http.ts'
import { oddPairs } from './odd-pairs.ts'
import { notFound, type Operations } from './operations.ts'
import { askResolver, codecsOf, servicesOf } from './registry.ts'
import { SOURCES } from './seen.ts'

export type RoutesDeps = {
  readonly cluster: Cluster
  readonly collector: Collector
  readonly operations: Operations
  readonly events: Events
  readonly leadership: Leadership
  readonly series: SeriesStore
  readonly http: NodeHttp
  readonly resolver: string | undefined
  readonly database: Database
  readonly known: KnownNodes
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly send: (node: NodeAddress, path: string, body: object | undefined, timeoutMs: number) => Promise<HttpReply>
  /** Throws ProblemError 404. */
  readonly shardOf: (id: string) => ShardView
  readonly briefs: () => ShardBrief[]
  readonly attention: () => readonly AttentionItem[]
  readonly registryCodecs: () => NodeCodecs | undefined
  readonly setAside: (item: string, aside: Aside | undefined) => void
}

type NodeDocument = z.infer<(typeof CLUSTER_ROUTES)['GET /api/v1/shards/{shard}/nodes/{node}']['response']>
type ConfigDocument = z.infer<(typeof CLUSTER_ROUTES)['GET /api/v1/shards/{shard}/config']['response']>

const CONTRACT_MS = 7_000
const ASIDE_MS = { hour: 3_600_000, day: 86_400_000 } as const

export function clusterHandlers(deps: RoutesDeps): {
  readonly routes: Handlers<typeof CLUSTER_ROUTES>
  /** Of the route and of the live topic of a node. */
  readonly nodeDocument: (shard: string, node: string) => NodeDocument | undefined
} {
  const { cluster, collector, operations, clock } = deps
  const nodeDocument = (shard: string, node: string) => documentOf(deps, shard, node)

  const routes: Handlers<typeof CLUSTER_ROUTES> = {
    'GET /api/v1/summary': () => cluster.summary(),
    'GET /api/v1/shards': () => ({
      shards: deps.briefs(),
      missing: cluster
        .shards()
        .flatMap(({ missing }) => missing)
        .slice(0, 200),
    }),
    'GET /api/v1/shards/{shard}': ({ params }) => deps.shardOf(params.shard),
    'GET /api/v1/shards/{shard}/nodes/{node}'({ params }) {
      const shard = deps.shardOf(params.shard)
      const document = nodeDocument(params.shard, params.node)
      if (document) return document
      throw new ProblemError(404, 'node-not-found', `there is no node ${params.node} in ${params.shard}`, {
        hint: `${params.shard} has ${shard.nodes.map(({ id }) => id).join(', ')}.`,
      })
    },
    'DELETE /api/v1/shards/{shard}/nodes/{node}': (asked) => forgetNode(deps, asked),
    async 'GET /api/v1/shards/{shard}/events'({ params, query }) {
      return { events: await deps.events.of(params.shard, query.node, query.limit) }
    },
    async 'GET /api/v1/shards/{shard}/leadership'({ params }) {
      return await deps.leadership.of(params.shard)
    },
    'GET /api/v1/shards/{shard}/config': ({ params }) => compareConfig(deps, deps.shardOf(params.shard)),
    'GET /api/v1/series': ({ query }) => readSeries(deps.series, query, clock.wallMs()),
    async 'POST /api/v1/attention/{id}/aside'({ params, body, asker, address, requestId }) {
      const item = deps.attention().find(({ id }) => id === params.id)
      if (!item) {
        throw new ProblemError(404, 'item-not-found', 'this no longer needs attention', {
          hint: 'Load the overview again.',
        })
      }
      const { until } = body
      const untilAt = until === null || until === 'change' ? null : clock.wallMs() + ASIDE_MS[until]
      const aside = until === null ? undefined : { untilAt, says: wordsOf(item.says) }
      await deps.database.transaction().execute(async (transaction) => {
        await transaction.deleteFrom('attention_aside').where('item', '=', item.id).execute()
        if (aside) {
          const row = { item: item.id, until_at: untilAt, says: aside.says }
          await transaction.insertInto('attention_aside').values(row).execute()
        }
        const note = { action: 'attention.aside', target: item.id, result: until ?? 'taken back', detail: item.says }
        await deps.audit({ asker, address, requestId, ...note }, transaction)
      })
      deps.setAside(item.id, aside)
      return undefined
    },
    'POST /api/v1/plans': ({ body, asker }) => operations.plan(body, asker),
    'POST /api/v1/operations': ({ body, headers, ...asked }) =>
      operations.start({ ...body, key: keyOf(headers['idempotency-key']) }, asked),
    'GET /api/v1/operations': ({ query }) => operations.list(query),
    async 'GET /api/v1/operations/{id}'({ params }) {
      const operation = await operations.get(params.id)
      if (operation) return operation
      throw notFound(params.id)
    },
    'POST /api/v1/operations/{id}/cancel': ({ params, ...asked }) => operations.cancel(params.id, asked),
    'GET /api/v1/registry/services': () => servicesOf(collector.registry(), cluster.shards()),
    'GET /api/v1/registry/codecs': () => {
      const shards = cluster.shards()
      const seen = shards.flatMap(({ id }) => collector.seen(id))
      return codecsOf(shards, deps.registryCodecs(), seen, collector.registry().address)
    },
    'POST /api/v1/registry/resolve': ({ body }) => askResolver(deps.http, deps.resolver, body),
    'GET /cluster/info': ({ query }) => infoOf(deps, query.shard),
    'POST /cluster/promote-learner': (asked) =>
      pass(deps, asked, {
        path: '/cluster/promote-learner',
        key: 'node_id',
        node: asked.body.node_id,
        action: 'cluster.promote',
      }),
    'POST /cluster/demote-voter': (asked) =>
      pass(deps, asked, {
        path: '/cluster/demote-voter',
        key: 'node_id',
        node: asked.body.node_id,
        action: 'cluster.demote',
      }),
    'POST /cluster/transfer-leader': (asked) =>
      pass(deps, asked, {
        path: '/cluster/transfer-leader',
        key: 'target_node_id',
        node: asked.body.target_node_id,
        action: 'cluster.transfer',
      }),
  }
  return { routes, nodeDocument }
}

/** Why a node is not let go, by who names it: it would come back with the next look. */
const STAYS: { readonly [by in NamedBy]: { readonly why: string; readonly hint: string } } = {
  registry: { why: 'the registry names it', hint: 'The registry takes it off a minute after its last heartbeat.' },
  list: {
    why: 'the configuration names it',
    hint: 'Take it out of `nodes` in the configuration of the control plane, and start that anew.',
  },
  member: { why: 'its shard counts it as a member', hint: 'Demote it until it is none, as a learner once more.' },
  memory: { why: 'it answers', hint: 'Stop it first.' },
}

async function forgetNode(
  { cluster, collector, database, known, audit, shardOf }: RoutesDeps,
  { params, asker, address, requestId }: Asked<'DELETE /api/v1/shards/{shard}/nodes/{node}'>,
): Promise<undefined> {
  const key = { shard: params.shard, id: params.node }
  const node = cluster.node(shardOf(params.shard).id, params.node)
  const by = collector.namedBy(key)
  if (!node || by === undefined) {
    throw new ProblemError(404, 'node-not-found', `there is no node ${params.node} in ${params.shard}`, {
      hint: 'It may have been forgotten already.',
    })
  }
  const target = `${params.shard}/${params.node}`
  if (by !== 'memory' || node.freshness === 'live' || node.freshness === 'delayed') {
    const { why, hint } = STAYS[by]
    throw new ProblemError(409, 'node-named', `${target} is not forgotten: ${why}.`, { hint, more: { by } })
  }
  await database.transaction().execute(async (transaction) => {
    await known.forget(transaction, key)
    const note = { action: 'node.forget', target, result: 'done', detail: node.apiUrl }
    await audit({ asker, address, requestId, ...note }, transaction)
  })
  collector.forget(key)
  return undefined
}

function keyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{8,128}$/.test(header)) return header
  throw new ProblemError(400, 'bad-idempotency-key', 'idempotency-key must be 8 to 128 visible characters', {
    hint: 'Send a random UUID, the same one when a request is repeated.',
  })
}

function documentOf({ cluster, collector }: RoutesDeps, shard: string, id: string): NodeDocument | undefined {
  const node = cluster.node(shard, id)
  const seen = collector.seen(shard).find(({ address }) => address.id === id)
  if (!node || !seen) return undefined
  const config = seen.sources['/config']
  const read = config?.status === 200 ? readConfig(config.body) : undefined
  return {
    node,
    sources: SOURCES.flatMap((path) => {
      const source = seen.sources[path]
      if (!source) return []
      const { status = null, at, milliseconds = null, error, body } = source
      return [
        {
          ...{ path, status, milliseconds, body },
          at: at === undefined ? null : time(at),
          error: error ? { ...error, since: time(error.since) } : null,
        },
      ]
    }),
    config: read
      ? Object.entries(read).map(([key, { value, origin, at }]) => ({ key, value: String(value), origin, at }))
      : null,
    configError: read ? '' : configFault(config?.status, config?.error?.message),
  }
}

function readConfig(body: string): z.infer<typeof configBody> | undefined {
  try {
    return configBody.safeParse(JSON.parse(body)).data
  } catch {
    // What the node answered is shown as it is, beside the fault.
    return undefined
  }
}

function configFault(status: number | undefined, error: string | undefined): string {
  if (error !== undefined) return `The node did not answer: ${error}.`
  if (status === undefined) return 'The node was not asked yet.'
  if (status === 401 || status === 403) return 'The node wants an admin token for this: set node_admin_token.'
  return status === 200 ? 'The answer of the node is no configuration.' : `The node answered ${status}.`
}

/** Of each node as it was read last: at most a minute ago. */
function compareConfig({ collector, clock }: RoutesDeps, shard: ShardView): ConfigDocument {
  const seen = [...collector.seen(shard.id)].sort((a, b) => (a.address.id < b.address.id ? -1 : 1))
  const read = seen.map((each) => {
    const source = each.sources['/config']
    return { each, source, config: source?.status === 200 ? readConfig(source.body) : undefined }
  })
  const keys = [...new Set(read.flatMap(({ config }) => Object.keys(config ?? {})))].sort()
  return {
    nodes: read.map(({ each }) => each.address.id),
    keys: keys.map((key) => {
      const values = read.map(({ config }) => {
        const entry = config?.[key]
        return entry ? { value: String(entry.value), origin: entry.origin } : null
      })
      const told = new Set(values.flatMap((each) => (each ? [each.value] : [])))
      return { key, equal: told.size <= 1, values }
    }),
    warnings: oddPairs(read.flatMap(({ each, config }) => (config ? [{ node: each.address.id, config }] : []))),
    missing: read.flatMap(({ each, source, config }) =>
      config
        ? []
        : [
            {
              source: `${shard.id}/${each.address.id} /config`,
              code: source?.error?.code ?? 'not-told',
              message: configFault(source?.status, source?.error?.message),
              since: time(source?.error?.since ?? source?.at ?? clock.wallMs()),
            },
          ],
    ),
  }
}

// The contract's own paths: plain text when all is well, `{"error":"…"}` otherwise

function contractError(status: number, error: string): ProblemError {
  return new ProblemError(status, 'cluster', error, { more: { error } })
}

function shardAsked({ cluster }: RoutesDeps, id: string | undefined): ShardView {
  const shards = cluster.shards()
  const shard = id === undefined ? (shards.length === 1 ? shards[0] : undefined) : cluster.shard(id)
  if (shard) return shard
  const known = shards
    .map((each) => each.id)
    .slice(0, 100)
    .join(', ')
  if (id !== undefined) throw contractError(404, `unknown shard; there are ${known || 'none yet'}`)
  throw contractError(400, shards.length === 0 ? 'no shard is known yet' : `shard is required: ?shard= one of ${known}`)
}

/** The node that is asked: the leader, else any that answers. */
function askedOf(deps: RoutesDeps, shard: ShardView): NodeAddress {
  const up = shard.nodes.filter(({ freshness }) => freshness === 'live' || freshness === 'delayed')
  const id = shard.leader ?? up[0]?.id
  const node = deps.cluster.addresses(shard.id).find((each) => each.id === id && each.apiUrl !== '')
  if (node) return node
  throw contractError(503, 'no leader')
}

async function infoOf(deps: RoutesDeps, id: string | undefined): Promise<unknown> {
  const shard = shardAsked(deps, id)
  const node = askedOf(deps, shard)
  let reply: { readonly status: number; readonly body: string }
  try {
    reply = await deps.cluster.ask(node, '/cluster/info', { timeoutMs: CONTRACT_MS })
  } catch (error) {
    if (error instanceof ProblemError) throw contractError(error.status, error.message)
    throw error
  }
  if (reply.status !== 200) throw contractError(reply.status, errorText(reply.body))
  return JSON.parse(reply.body)
}

async function pass(
  deps: RoutesDeps,
  asked: Pick<Asked<'POST /cluster/promote-learner'>, 'asker' | 'address' | 'requestId' | 'query'>,
  change: { readonly path: string; readonly key: string; readonly node: string | undefined; readonly action: string },
): Promise<string> {
  const { asker, address, requestId, query } = asked
  if (change.node === undefined || change.node === '') throw contractError(400, `${change.key} is required`)
  if (parseId(change.node) === undefined) throw contractError(400, `${change.key} is no node id`)
  const shard = shardAsked(deps, query.shard)
  const running = deps.operations.running().find((each) => each.shard === shard.id)
  const target = `${shard.id}/${change.node}`
  const note = { asker, address, requestId, action: change.action, target }
  if (running) {
    await deps.audit({ ...note, result: 'refused', detail: 'another operation is running' })
    throw contractError(409, `another membership operation is running: ${running.id}`)
  }
  const node = askedOf(deps, shard)
  // Before it leaves: what was asked for stays known, whatever comes of it.
  await deps.audit({ ...note, result: 'sent', detail: `to ${node.id}` })
  try {
    const { status, body } = await deps.send(node, change.path, { [change.key]: change.node }, CONTRACT_MS)
    const isTaken = status >= 200 && status < 300
    await deps.audit({
      ...note,
      result: isTaken ? 'accepted' : 'refused',
      detail: `${status} ${isTaken ? body.slice(0, 200) : errorText(body)}`,
    })
    if (!isTaken) throw contractError(status, errorText(body))
    return body
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    await deps.audit({ ...note, result: 'failed', detail: error.message })
    throw contractError(
      error.code === 'timeout' ? 504 : 503,
      error.code === 'timeout' ? 'command timeout' : `${node.id}: ${error.message}`,
    )
  }
}

function errorText(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: unknown }
    if (typeof error === 'string') return error.slice(0, 500)
  } catch {
    // No JSON: it is told as it came.
  }
  return body.trim().slice(0, 500)
}
