/** Handlers of the past: the cluster as it was at a moment, its events, and what changed between two moments. */
import { utcText } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { Handlers } from '@vacancy/shared/api/route'
import type { ClusterEvent, Operation, PAST_ROUTES, PastChanges, ShardView, Summary } from '@vacancy/shared/contract'
import { eventDensity, eventsBetween, eventsOf } from '../history/events.ts'
import { firstPicture, type PastState, pastFabric, pastState, recordedFrom } from '../history/pictures.ts'
import { readTime } from '../history/series.ts'
import { attentionSeeds, settleAttention, summarise } from './attention.ts'
import type { ClusterModule } from './cluster-state.ts'
import { briefOf, time } from './derive.ts'
import { getOperation, notFound, operationsAt } from './operations.ts'

const MISSING_MAX = 200
const RECENT_MAX = 30
const CHANGES_MAX = 500
/** How long the list of what needs attention shows the result of an operation. */
const ENDED_SHOWN_MS = 86_400_000

export function pastHandlers(module: ClusterModule): Handlers<typeof PAST_ROUTES> {
  return {
    async 'GET /api/v1/events'({ query: { kinds, ...query } }) {
      const { from, to } = rangeOf(module, query)
      const events = await eventsOf(module.events, { ...query, kinds: kinds?.split(','), from, to })
      return { from: time(from), to: time(to), events }
    },
    'GET /api/v1/past/summary': async ({ query }) => await pastSummary(module, await stateAt(module, query.at)),
    'GET /api/v1/past/shards/{shard}': async ({ params, query }) =>
      shardIn(await stateAt(module, query.at), params.shard),
    async 'GET /api/v1/past/shards/{shard}/nodes/{node}'({ params, query }) {
      const shard = shardIn(await stateAt(module, query.at), params.shard)
      const node = shard.nodes.find((each) => each.id === params.node)
      if (node) return { node, sources: [], config: null, configError: 'Configurations of the past are not recorded.' }
      throw problem('node-not-found', { detail: `${params.shard} had no node ${params.node} then.` })
    },
    async 'GET /api/v1/past/topology'({ query }) {
      const { at } = await stateAt(module, query.at)
      const view = await pastFabric(module.pictures, at)
      if (view) return view
      throw problem('not-recorded', {
        detail: `The fabric was not recorded at ${utcText(new Date(at))}.`,
        field: 'at',
      })
    },
    async 'GET /api/v1/past/operations/{id}'({ params, query }) {
      const at = readTime(query.at, module.deps.clock.wallMs(), 'at')
      const operation = await getOperation(module.operations, params.id)
      if (operation && Date.parse(operation.createdAt) <= at) return operationThen(operation, at)
      throw notFound(params.id)
    },
    async 'GET /api/v1/past/timeline'({ query }) {
      const range = rangeOf(module, query)
      const [density, first, known] = await Promise.all([
        eventDensity(module.events, query.shard, range, query.steps),
        firstPicture(module.pictures),
        recordedFrom(module.pictures, range),
      ])
      return {
        ...{ from: time(range.from), to: time(range.to), stepSeconds: (range.to - range.from) / query.steps / 1_000 },
        oldest: first === undefined ? null : time(first),
        recordedFrom: known === undefined ? null : time(known),
        ...density,
      }
    },
    'GET /api/v1/past/changes': async ({ query }) => await changesBetween(module, query),
  }
}

type Range = { readonly from: string; readonly to: string; readonly shard?: string | undefined }

function rangeOf({ deps }: ClusterModule, range: Range): { readonly from: number; readonly to: number } {
  const now = deps.clock.wallMs()
  const [from, to] = [readTime(range.from, now, 'from'), readTime(range.to, now, 'to')]
  if (from >= to) throw problem('bad-range', { field: 'from' })
  return { from, to }
}

async function stateAt({ deps, pictures }: ClusterModule, text: string, field = 'at'): Promise<PastState> {
  const now = deps.clock.wallMs()
  const at = readTime(text, now, field)
  const state = at > now ? undefined : await pastState(pictures, at)
  if (state) return state
  const first = await firstPicture(pictures)
  throw problem('not-recorded', {
    detail: `The state of the cluster was not recorded at ${utcText(new Date(at))}.`,
    ...(first !== undefined && { hint: `The first recorded state is of ${utcText(new Date(first))}.` }),
    field,
  })
}

function shardIn(state: PastState, id: string): ShardView {
  const shard = state.shards.find((each) => each.id === id)
  if (shard) return shard
  throw problem('shard-not-found', { detail: `There was no shard ${id} at ${utcText(new Date(state.at))}.` })
}

/** An operation as far as it was at a moment. Its state then follows from the times of its steps. Pure. */
function operationThen(operation: Operation, at: number): Operation {
  const isReached = (moment: string | null) => moment !== null && Date.parse(moment) <= at
  if (isReached(operation.endedAt)) return operation
  const steps = operation.steps.map((step) =>
    isReached(step.at) ? step : { ...step, state: 'waiting' as const, at: null, milliseconds: null, evidence: '' },
  )
  const requestedAt = isReached(operation.requestedAt) ? operation.requestedAt : null
  const isProven = steps.some(({ state }) => state === 'done')
  return {
    ...operation,
    ...{ steps, requestedAt, endedAt: null, pauseMs: null, progress: null, undo: null, cancellable: false },
    ...{ state: requestedAt === null ? 'armed' : isProven ? 'verifying' : 'requested', notice: '', answer: '' },
    message: 'It was running at this moment.',
  }
}

/** The last operation of each shard among ended ones, oldest first. */
function lastOfShards(operations: readonly Operation[]): readonly Operation[] {
  return [...new Map(operations.map((operation) => [operation.shard, operation])).values()]
}

/** Snoozed items, imports and the registry are not part of a picture. */
async function pastSummary(module: ClusterModule, { at, shards }: PastState): Promise<Summary> {
  const { deps, events } = module
  const { running, ended } = await operationsAt(module.operations, at, ENDED_SHOWN_MS)
  const operations = lastOfShards(ended)
  const seeds = attentionSeeds({
    shards,
    now: at,
    operations,
    limitsOf: () => undefined,
    oversoldOf: () => 0,
    registryHash: undefined,
  })
  const since = new Map(shards.map((shard) => [shard.id, Date.parse(shard.since)]))
  const memory = new Map(
    seeds.map(({ id, shard }) => [id, { since: Math.min(at, since.get(shard ?? '') ?? at), values: [] }]),
  )
  const found = await eventsOf(events, { to: at, limit: 4 * RECENT_MAX })
  return {
    ...summarise({
      clients: null,
      at,
      environment: deps.environment(),
      shards,
      briefs: shards.map(briefOf),
      attention: settleAttention(seeds, memory, new Map(), at).items,
      running: running.map((operation) => {
        const { id, kind, title, message } = operationThen(operation, at)
        return { id, kind, title, message, percent: null, href: `/operations/${id}` }
      }),
      events: found.filter(({ kind }) => kind !== 'snapshot').slice(0, RECENT_MAX),
      missing: shards.flatMap(({ missing }) => missing).slice(0, MISSING_MAX),
    }),
    at: time(at),
  }
}

async function changesBetween(module: ClusterModule, query: Range): Promise<PastChanges> {
  const { from, to } = rangeOf(module, query)
  const [before, after] = await Promise.all([stateAt(module, time(from), 'from'), stateAt(module, time(to), 'to')])
  const isWanted = (id: string) => query.shard === undefined || id === query.shard
  const events = await eventsOf(module.events, {
    ...{ shard: query.shard, from: from + 1, to, order: 'oldest', limit: CHANGES_MAX + 1 },
  })
  return {
    ...{ from: time(from), to: time(to), changes: differences(before, after).filter(({ shard }) => isWanted(shard)) },
    ...{ events: events.slice(0, CHANGES_MAX), more: events.length > CHANGES_MAX },
  }
}

/** Differences between two states of the cluster. Pure. */
export function differences(before: PastState, after: PastState): Omit<ClusterEvent, 'id' | 'at'>[] {
  const earlier = new Map(before.shards.map((shard) => [shard.id, shard]))
  const found = after.shards.flatMap((shard) => {
    const old = earlier.get(shard.id)
    earlier.delete(shard.id)
    if (old) return eventsBetween(old, shard)
    const message = `${shard.id} was discovered: ${shard.message}`
    return [{ shard: shard.id, node: null, kind: 'membership' as const, level: 'info' as const, message }]
  })
  for (const id of earlier.keys()) {
    found.push({ shard: id, node: null, kind: 'membership', level: 'info', message: `${id} is no longer known` })
  }
  return found
}
