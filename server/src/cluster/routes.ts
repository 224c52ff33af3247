/** Handlers of the cluster routes and of the cluster management contract. */

import { problem } from '@vacancy/shared/api/errors'
import type { Handlers, RouteRequest } from '@vacancy/shared/api/route'
import type { CLUSTER_ROUTES } from '@vacancy/shared/contract'
import { eventsOf } from '../history/events.ts'
import { shardLeadership } from '../history/leadership.ts'
import { readSeries, readTime } from '../history/series.ts'
import { withoutNumbers } from './attention.ts'
import { briefsOf, type ClusterModule, nodeView, shardOf } from './cluster-state.ts'
import { forgetNode, namedBy, observationsOf, shardViews } from './collector.ts'
import type { NamedBy } from './discovery.ts'
import { infoOf, pass } from './management-contract.ts'
import { compareConfig, nodeDocument } from './node-documents.ts'
import { planOperation, startOperation } from './operation-start.ts'
import { cancelOperation, getOperation, listOperations, notFound } from './operations.ts'
import { codecsOf, queryResolver, servicesOf } from './registry-views.ts'
import { setAside, summaryOf } from './summary.ts'
import { fabricView } from './topology.ts'

const ASIDE_MS = { hour: 3_600_000, day: 86_400_000 } as const

export function clusterHandlers(module: ClusterModule): Handlers<typeof CLUSTER_ROUTES> {
  const { collector, operations, deps } = module
  return {
    'GET /api/v1/summary': () => summaryOf(module),
    'GET /api/v1/shards': () => ({
      shards: briefsOf(module, shardViews(collector)),
      missing: shardViews(collector)
        .flatMap(({ missing }) => missing)
        .slice(0, 200),
    }),
    'GET /api/v1/shards/{shard}': ({ params }) => shardOf(module, params.shard),
    'GET /api/v1/shards/{shard}/nodes/{node}'({ params }) {
      const shard = shardOf(module, params.shard)
      const document = nodeDocument(module, params.shard, params.node)
      if (document) return document
      throw problem('node-not-found', {
        detail: `There is no node ${params.node} in ${params.shard}.`,
        hint: `${params.shard} has ${shard.nodes.map(({ id }) => id).join(', ')}.`,
      })
    },
    'DELETE /api/v1/shards/{shard}/nodes/{node}': (request) => deleteNode(module, request),
    async 'GET /api/v1/shards/{shard}/events'({ params, query: { kinds, ...query } }) {
      return { events: await eventsOf(module.events, { shard: params.shard, kinds: kinds?.split(','), ...query }) }
    },
    async 'GET /api/v1/shards/{shard}/leadership'({ params, query }) {
      const end = readTime(query.to, deps.clock.wallMs(), 'to')
      return await shardLeadership(module.leadership, params.shard, end)
    },
    'GET /api/v1/shards/{shard}/config': ({ params }) => compareConfig(module, shardOf(module, params.shard)),
    'GET /api/v1/series': ({ query }) => readSeries(module.series, query, deps.clock.wallMs()),
    'POST /api/v1/attention/{id}/aside': (request) => putAside(module, request),
    'POST /api/v1/plans': ({ body, ...caller }) => planOperation(operations, body, caller),
    'POST /api/v1/operations': ({ body, headers, ...request }) =>
      startOperation(operations, { ...body, key: keyOf(headers['idempotency-key']) }, request),
    'GET /api/v1/operations': ({ query }) => listOperations(operations, query),
    async 'GET /api/v1/operations/{id}'({ params }) {
      const operation = await getOperation(operations, params.id)
      if (operation) return operation
      throw notFound(params.id)
    },
    'POST /api/v1/operations/{id}/cancel': ({ params, ...request }) => cancelOperation(operations, params.id, request),
    'GET /api/v1/registry/services': () =>
      servicesOf(collector.discovery.registry, shardViews(collector), fabricView(module).components),
    'GET /api/v1/registry/codecs': () => {
      const shards = shardViews(collector)
      const observations = shards.flatMap(({ id }) => observationsOf(collector, id))
      return codecsOf(shards, module.registryCodecs, observations, collector.discovery.registry.address)
    },
    'POST /api/v1/registry/resolve': ({ body }) => queryResolver(module.http, module.config.resolver, body),
    'GET /cluster/info': ({ query }) => infoOf(module, query.shard),
    'POST /cluster/promote-learner': (request) =>
      pass(module, request, {
        path: '/cluster/promote-learner',
        key: 'node_id',
        node: request.body.node_id,
        action: 'cluster.promote',
      }),
    'POST /cluster/demote-voter': (request) =>
      pass(module, request, {
        path: '/cluster/demote-voter',
        key: 'node_id',
        node: request.body.node_id,
        action: 'cluster.demote',
      }),
    'POST /cluster/transfer-leader': (request) =>
      pass(module, request, {
        path: '/cluster/transfer-leader',
        key: 'target_node_id',
        node: request.body.target_node_id,
        action: 'cluster.transfer',
      }),
  }
}

async function putAside(
  module: ClusterModule,
  { params, body, principal, address, userAgent, requestId }: RouteRequest<'POST /api/v1/attention/{id}/aside'>,
): Promise<undefined> {
  const { deps } = module
  const item = module.attention.find(({ id }) => id === params.id)
  if (!item) {
    throw problem('item-not-found')
  }
  const { until } = body
  const untilAt = until === null || until === 'change' ? null : deps.clock.wallMs() + ASIDE_MS[until]
  const aside = until === null ? undefined : { untilAt, message: withoutNumbers(item.message) }
  await deps.database.transaction().execute(async (transaction) => {
    await transaction.deleteFrom('attention_aside').where('item', '=', item.id).execute()
    if (aside) {
      const row = { item: item.id, until_at: untilAt, message: aside.message }
      await transaction.insertInto('attention_aside').values(row).execute()
    }
    const note = { action: 'attention.aside', target: item.id, result: until ?? 'taken back', detail: item.message }
    await deps.audit({ principal, address, userAgent, requestId, ...note }, transaction)
  })
  setAside(module, item.id, aside)
  return undefined
}

/** Why a node cannot be forgotten, by the source that lists it: it would reappear in the next round. */
const STAYS: { readonly [by in NamedBy]: { readonly why: string; readonly hint: string } } = {
  registry: { why: 'the registry lists it', hint: 'The registry removes it a minute after its last heartbeat.' },
  list: {
    why: 'the configuration lists it',
    hint: 'Remove it from `nodes` in the configuration of the control plane and restart that.',
  },
  member: { why: 'its shard counts it as a member', hint: 'Demote it until it is no longer a member.' },
  memory: { why: 'it responds', hint: 'Stop it first.' },
}

async function deleteNode(
  module: ClusterModule,
  { params, principal, address, userAgent, requestId }: RouteRequest<'DELETE /api/v1/shards/{shard}/nodes/{node}'>,
): Promise<undefined> {
  const { collector, known, deps } = module
  const key = { shard: params.shard, id: params.node }
  const node = nodeView(module, shardOf(module, params.shard).id, params.node)
  const by = namedBy(collector, key)
  if (!node || by === undefined) {
    throw problem('node-not-found', { detail: `There is no node ${params.node} in ${params.shard}.` })
  }
  const target = `${params.shard}/${params.node}`
  if (by !== 'memory' || node.freshness === 'live' || node.freshness === 'delayed') {
    const { why, hint } = STAYS[by]
    throw problem('node-named', { detail: `${target} cannot be forgotten: ${why}.`, hint, more: { by } })
  }
  await deps.database.transaction().execute(async (transaction) => {
    await known.forget(transaction, key)
    const note = { action: 'node.forget', target, result: 'done', detail: node.apiUrl }
    await deps.audit({ principal, address, userAgent, requestId, ...note }, transaction)
  })
  forgetNode(collector, key)
  return undefined
}

function keyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{8,128}$/.test(header)) return header
  throw problem('bad-idempotency-key')
}
