/** Everything the control plane does with nodes, put together: reads them, keeps their history, plans and runs changes. */
import { join } from 'node:path'
import type { Clock } from '@vacancy/shared'
import {
  CLUSTER_ROUTES,
  type Environment,
  LIVE_ROUTES,
  type NodeCodecs,
  type ShardBrief,
  type ShardView,
  type Summary,
} from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WriteAudit } from '../audit.ts'
import type { Database } from '../database.ts'
import { createEvents, eventsBetween, type LastLeader } from '../history/events.ts'
import { createLeadership } from '../history/leadership.ts'
import { createPauses } from '../history/pauses.ts'
import { createSeries, loadSeries, recordSeries, saveSeries, type Values } from '../history/series.ts'
import type { LiveChannel } from '../live.ts'
import { type Area, areaOf, ProblemError } from '../route.ts'
import {
  type Aside,
  type AttentionMemory,
  type AttentionSeed,
  attentionSeeds,
  settleAttention,
  summarise,
} from './attention.ts'
import type { AskOptions, Cluster, NodeAddress } from './cluster.ts'
import { type Collector, type CollectorCounts, createCollector } from './collector.ts'
import { briefOf } from './derive.ts'
import type { Kinds, Look } from './kinds.ts'
import { createKnownNodes } from './known.ts'
import { membershipKinds } from './membership.ts'
import { createNodeHttp, NodeHttpError } from './node-http.ts'
import { createOperations, type Operations } from './operations.ts'
import { askRegistryCodecs } from './registry.ts'
import { clusterHandlers } from './routes.ts'

export type ClusterConfig = {
  readonly registry: string | undefined
  readonly resolver: string | undefined
  /** `host:port` or `http://host:port` of nodes, where there is no registry. */
  readonly nodes: readonly string[]
  /** Where a resolver tells a host alone. */
  readonly apiPort: number
  readonly tcpPort: number
  readonly tokens: {
    readonly monitoring?: string | undefined
    readonly client?: string | undefined
    readonly admin?: string | undefined
    readonly registry?: string | undefined
  }
  /** Authorities of nodes asked over TLS, PEM; the system's otherwise. */
  readonly ca?: string | undefined
  /** Folder for saved series; it is there. */
  readonly folder: string
}

export type ClusterDeps = {
  readonly database: Database
  readonly live: LiveChannel
  readonly audit: WriteAudit
  readonly log: Log
  readonly clock: Clock
  readonly environment: () => Environment
  /** `http://host:port` for copied commands. */
  readonly baseUrl: () => string
}

export type ClusterArea = {
  readonly area: Area
  readonly cluster: Cluster
  readonly operations: Operations
  /** Kinds of operations: other areas add theirs before the start. */
  readonly kinds: Kinds
  /** More that needs somebody, such as failed imports. */
  onAttention(source: () => readonly AttentionSeed[]): void
  /** More that runs, such as imports. */
  onRunning(source: () => Summary['running']): void
  registry(): { readonly address: string | null; readonly up: boolean; readonly error: string }
  counts(): CollectorCounts
}

const FIGURES_MS = 5_000
const SAVE_MS = 60_000
/** Large files are written less often: each minute they would be most of what the disk does. */
const SAVE_LARGE_MS = 300_000
const LARGE_RINGS = 200
const SUMMARY_MS = 500
const CODECS_MS = 60_000
const KNOWN_MS = 5_000

export function createClusterArea(config: ClusterConfig, deps: ClusterDeps): ClusterArea {
  const { database, live, log, clock } = deps
  const http = createNodeHttp(config.ca)
  const events = createEvents(database, log, () => clock.wallMs())
  const leadership = createLeadership(database, log, () => clock.wallMs())
  const pauses = createPauses(database)
  const known = createKnownNodes(database)
  const series = createSeries()
  const seriesFile = join(config.folder, 'series')
  const attentionSources: (() => readonly AttentionSeed[])[] = []
  const runningSources: (() => Summary['running'])[] = []
  const listeners = new Set<(shard: ShardView) => void>()
  const briefs = new WeakMap<ShardView, ShardBrief>()
  const timers: NodeJS.Timeout[] = []
  let registryCodecs: NodeCodecs | undefined
  let memory: AttentionMemory = new Map()
  let aside = new Map<string, Aside>()
  let attention: Summary['attention'] = []
  /** Shards without a leader: who led last, and since when nobody does. */
  const lost = new Map<string, { readonly leader: string; readonly at: number }>()
  const settled = new Set<string>()
  let moves = new Map<string, number>()
  let isSummaryDue = false
  let savedAt = 0
  let saving = Promise.resolve()

  const collector: Collector = createCollector(
    {
      ...{ registry: config.registry, resolver: config.resolver, nodes: config.nodes },
      ...{ apiPort: config.apiPort, tcpPort: config.tcpPort },
      registryToken: config.tokens.registry,
      nodeToken: config.tokens.monitoring ?? config.tokens.admin,
      monitoringToken: config.tokens.monitoring,
      adminToken: config.tokens.admin,
    },
    http,
    {
      facts: (shard) => ({
        operation: operations.running().find((each) => each.shard === shard)?.id ?? null,
        writePause: pauses.of(shard),
      }),
      onShard(view, before) {
        if (before && isSettled(view)) {
          const found = eventsBetween(before, view, lastLeader(before, view))
          events.add(found, clock.wallMs())
          const moved = found.filter(({ kind }) => kind === 'leader').length
          if (moved > 0) moves.set(view.id, (moves.get(view.id) ?? 0) + moved)
        }
        const term = view.nodes.find(({ id }) => id === view.leader)?.term ?? null
        // Nobody leads says only who knows the shard; who does not look knows nothing.
        const isSeen = view.leader !== null || (settled.has(view.id) && view.state !== 'unknown')
        leadership.look({ id: view.id, leader: view.leader, term }, isSeen && view.mode === 'clustered')
        isSummaryDue = true
        live.touch(`shard:${view.id}`)
        for (const node of view.nodes) live.touch(`node:${view.id}/${node.id}`)
        for (const listener of listeners) listener(view)
      },
      onShardGone(id) {
        lost.delete(id)
        settled.delete(id)
        leadership.gone(id)
        isSummaryDue = true
        live.touch(`shard:${id}`)
      },
      onReading({ shard, id }, reading, change) {
        const node = collector.shard(shard)?.nodes.find((each) => each.id === id)
        const values: Values = {
          memory: reading.memoryBytes,
          wal: reading.walBytes,
          connections: reading.connections,
          lag_entries: node?.lagEntries,
          lag_seconds: node?.lagSeconds,
          ...(change && {
            ...{
              queries: change.queries,
              writes: change.writes,
              errors: change.errors,
              p50: change.p50,
              p99: change.p99,
            },
            ...{ commit_p99: change.commitP99, fsync_p99: change.fsyncP99, cpu: change.cpu },
          }),
        }
        recordSeries(series, { shard, node: id }, clock.wallMs(), values)
      },
    },
    log,
    clock,
  )

  const send = async (node: NodeAddress, path: string, body: object | undefined, timeoutMs: number) =>
    await http.ask(node.apiUrl + path, { method: 'POST', body: body ?? {}, token: config.tokens.admin, timeoutMs })

  const onShard = (listener: (shard: ShardView) => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const kinds = membershipKinds({
    look(id) {
      const shard = collector.shard(id)
      return shard && { now: clock.wallMs(), shard, seen: collector.seen(id) }
    },
    onShard: (listener) => onShard(({ id }) => listener(id)),
    watchClosely: collector.watchClosely,
    address: (shard, node) => addresses(shard).find(({ id }) => id === node),
    send,
    async keepPause(operation, shard, milliseconds) {
      await pauses.add({ operation, shard, milliseconds, at: clock.wallMs() })
      collector.touch(shard)
    },
  })

  const operations = createOperations({
    ...{ database, live, log, clock, kinds },
    audit: deps.audit,
    environment: deps.environment,
    look,
    onChange(operation) {
      collector.touch(operation.shard)
      isSummaryDue = true
      if (operation.endedAt !== null) {
        const { shard, node, title, state, says } = operation
        const level = state === 'done' ? 'ok' : state === 'cancelled' ? 'info' : 'warn'
        events.add([{ shard, node, kind: 'operation', level, says: `${title}: ${says}` }], clock.wallMs())
      }
    },
  })

  /** At the start a shard becomes known bit by bit: until it is, nothing about it has changed. */
  function isSettled({ id, state }: ShardView): boolean {
    const was = settled.has(id)
    if (state !== 'unknown' && state !== 'electing') settled.add(id)
    return was
  }

  function lastLeader(before: ShardView, view: ShardView): LastLeader | undefined {
    if (before.leader !== null && view.leader === null)
      lost.set(view.id, { leader: before.leader, at: clock.monotonicMs() })
    const known = lost.get(view.id)
    if (view.leader === null || !known) return undefined
    lost.delete(view.id)
    return { leader: known.leader, lostMs: clock.monotonicMs() - known.at }
  }

  function look(id: string, isAdmin: boolean): Look {
    const shard = shardOf(id)
    const bridges = collector.registry().topology?.shards[id]?.bridges ?? []
    return {
      now: clock.wallMs(),
      shard,
      seen: collector.seen(id),
      running: operations.running().find((each) => each.shard === id),
      isAdmin,
      hasAdminToken: config.tokens.admin !== undefined,
      clusterPause: pauses.ofAll(),
      bridges,
      baseUrl: deps.baseUrl(),
    }
  }

  function shardOf(id: string): ShardView {
    const shard = collector.shard(id)
    if (shard) return shard
    throw new ProblemError(404, 'shard-not-found', `there is no shard ${id.slice(0, 128)}`, {
      hint: `Known are ${
        nearest(
          id,
          collector.shards().map((each) => each.id),
        ) || 'none yet: no node was found'
      }.`,
    })
  }

  const addresses = (shard: string) =>
    collector
      .seen(shard)
      .map(({ address }) => address)
      .sort((a, b) => (a.id < b.id ? -1 : 1))

  function briefsOf(shards: readonly ShardView[]): ShardBrief[] {
    return shards.map((view) => {
      const brief = briefs.get(view) ?? briefOf(view)
      briefs.set(view, brief)
      return brief
    })
  }

  function lookForAttention(): void {
    const now = clock.wallMs()
    const shards = collector.shards()
    const seeds = [
      ...attentionSeeds({
        shards,
        now,
        operations: operations.lastEnded(),
        limitsOf: (shard) => collector.seen(shard).find(({ limits }) => limits)?.limits,
        registryHash: registryCodecs?.ordered_hash,
      }),
      ...attentionSources.flatMap((source) => source()),
    ]
    const settled = settleAttention(seeds, memory, aside, now)
    memory = settled.memory
    attention = settled.items
  }

  function summary(): Summary {
    const shards = collector.shards()
    const registry = collector.registry()
    const running = operations.running().map(({ id, kind, title, says, progress }) => ({
      ...{ id, kind, title, says, href: `/operations/${id}` },
      percent: progress && progress.total > 0 ? Math.round((progress.done / progress.total) * 100) : null,
    }))
    const missing = shards.flatMap((shard) => shard.missing).slice(0, MISSING_MAX)
    if (registry.address !== null && !registry.isUp && registry.since !== undefined) {
      const since = new Date(registry.since).toISOString()
      missing.unshift({ source: `registry ${registry.address}`, code: 'registry', message: registry.error, since })
    }
    return summarise({
      at: clock.wallMs(),
      environment: deps.environment(),
      shards,
      briefs: briefsOf(shards),
      attention,
      running: [...running, ...runningSources.flatMap((source) => source())],
      events: [...events.recent()],
      missing,
    })
  }

  /** Figures of shards and of the whole, beside those of nodes that come with each reading. */
  function recordShards(): void {
    const now = clock.wallMs()
    const shards = collector.shards()
    const all: Values[] = []
    for (const shard of shards) {
      const { queries, writes, errors, p50, p99 } = shard.rates
      const lags = shard.nodes.flatMap(({ lagSeconds }) => (lagSeconds === null ? [] : [lagSeconds]))
      const values: Values = {
        ...{ queries, writes, errors, p50, p99, lag_entries: shard.maxLagEntries },
        lag_seconds: lags.length === 0 ? null : Math.max(...lags),
        leader_moves: moves.get(shard.id) ?? 0,
      }
      all.push(values)
      recordSeries(series, { shard: shard.id, node: '' }, now, values)
    }
    moves = new Map()
    const told = (name: keyof Values) =>
      all.flatMap((values) => (typeof values[name] === 'number' ? [values[name]] : []))
    const sum = (name: keyof Values) => (told(name).length === 0 ? null : told(name).reduce((a, b) => a + b, 0))
    const worst = (name: keyof Values) => (told(name).length === 0 ? null : Math.max(...told(name)))
    recordSeries(series, { shard: '', node: '' }, now, {
      ...{
        queries: sum('queries'),
        writes: sum('writes'),
        errors: sum('errors'),
        p50: worst('p50'),
        p99: worst('p99'),
      },
      ...{ lag_entries: worst('lag_entries'), lag_seconds: worst('lag_seconds'), leader_moves: sum('leader_moves') },
    })
  }

  function save(): void {
    const now = clock.monotonicMs()
    if (series.rings.size > LARGE_RINGS && now - savedAt < SAVE_LARGE_MS) return
    savedAt = now
    saving = saving
      .then(() => saveSeries(series, seriesFile))
      .catch((error) => log.error({ err: error, file: seriesFile }, 'series could not be saved'))
  }

  /** At the end to the millisecond: until the next start nobody knows better. */
  async function rememberAll(): Promise<void> {
    try {
      await known.write(collector.known(), 1)
    } catch (error) {
      // The database may be why it stops; what was written within the last minute does as well.
      log.error({ err: error }, 'the nodes that are known could not be written down')
    }
  }

  async function lookAtCodecs(): Promise<void> {
    if (config.registry === undefined) return
    registryCodecs = (await askRegistryCodecs(http, config.registry, config.tokens.registry)) ?? registryCodecs
  }

  const cluster: Cluster = {
    summary,
    shards: collector.shards,
    shard: collector.shard,
    node: (shard, id) => collector.shard(shard)?.nodes.find((node) => node.id === id),
    addresses,
    async ask(node, path, options = {}) {
      const { as = 'monitoring', method = 'GET', body, timeoutMs, signal } = options
      try {
        if (node.apiUrl === '') throw new NodeHttpError('address', 'its address is not known')
        const token = tokenOf(config.tokens, as)
        return await http.ask(node.apiUrl + path, {
          method,
          body,
          token,
          signal,
          ...(timeoutMs !== undefined && { timeoutMs }),
        })
      } catch (error) {
        if (!(error instanceof NodeHttpError)) throw error
        const isLate = error.code === 'timeout'
        throw new ProblemError(
          isLate ? 504 : 502,
          isLate ? 'node-timeout' : 'node-unreachable',
          `${node.shard}/${node.id}: ${error.message}`,
          {
            hint: `Look at ${node.apiUrl || 'where it is'}: is the node running, and can this machine reach it?`,
            more: { node: node.id, shard: node.shard, why: error.code },
            cause: error,
          },
        )
      }
    },
    watchClosely: collector.watchClosely,
    onShard,
  }

  const handlers = clusterHandlers({
    cluster,
    collector,
    operations,
    events,
    leadership,
    series,
    http,
    resolver: config.resolver,
    database,
    known,
    audit: deps.audit,
    clock,
    send,
    shardOf,
    briefs: () => briefsOf(collector.shards()),
    attention: () => attention,
    registryCodecs: () => registryCodecs,
    setAside(item, entry) {
      if (entry) aside.set(item, entry)
      else aside.delete(item)
      lookForAttention()
      live.touch('summary')
    },
  })

  live.offer(/^summary$/, summary)
  live.offer(/^shard:/, (topic) => collector.shard(topic.slice('shard:'.length)))
  live.offer(/^node:/, (topic) => {
    const [, shard = '', node = ''] = /^node:([^/]+)\/(.+)$/.exec(topic) ?? []
    return handlers.nodeDocument(shard, node)
  })

  const every = (ms: number, what: string, work: () => void | Promise<void>) =>
    timers.push(
      setInterval(async () => {
        try {
          await work()
        } catch (error) {
          log.error({ err: error }, what)
        }
      }, ms),
    )

  return {
    cluster,
    operations,
    kinds,
    onAttention: (source) => void attentionSources.push(source),
    onRunning: (source) => void runningSources.push(source),
    counts: collector.counts,
    registry() {
      const { address, isUp, error } = collector.registry()
      return { address, up: isUp, error }
    },
    area: areaOf(
      'cluster',
      { ...CLUSTER_ROUTES, ...LIVE_ROUTES },
      { ...handlers.routes, 'GET /api/v1/poll': live.poll },
      {
        async start() {
          const fault = await loadSeries(series, seriesFile)
          if (fault !== '') log.warn({ file: seriesFile, fault }, 'the saved series were not taken')
          const rows = await database.selectFrom('attention_aside').selectAll().execute()
          aside = new Map(
            rows.map(({ item, until_at: untilAt, says }) => [
              item,
              { untilAt: untilAt === null ? null : Number(untilAt), says },
            ]),
          )
          await pauses.load()
          await events.start()
          leadership.start()
          await collector.start(await known.load())
          await operations.resume()
          every(SUMMARY_MS, 'the summary failed', () => {
            if (!isSummaryDue) return
            isSummaryDue = false
            lookForAttention()
            live.touch('summary')
          })
          every(KNOWN_MS, 'the nodes that are known could not be written down', () => known.write(collector.known()))
          every(FIGURES_MS, 'figures could not be kept', recordShards)
          every(SAVE_MS, 'series could not be saved', save)
          every(CODECS_MS, 'the codec list of the registry could not be read', lookAtCodecs)
          await lookAtCodecs()
        },
        async stop() {
          for (const timer of timers) clearInterval(timer)
          await operations.stop()
          await collector.stop()
          await rememberAll()
          await events.stop()
          await leadership.stop()
          savedAt = Number.NEGATIVE_INFINITY
          save()
          await saving
          http.close()
        },
      },
    ),
  }
}

const MISSING_MAX = 200

function tokenOf(tokens: ClusterConfig['tokens'], as: NonNullable<AskOptions['as']>): string | undefined {
  switch (as) {
    case 'none':
      return undefined
    case 'monitoring':
      return tokens.monitoring ?? tokens.admin
    case 'client':
      return tokens.client ?? tokens.admin
    case 'admin':
      return tokens.admin
  }
}

/** Ids that begin as this one does, then the others; a few. */
function nearest(id: string, ids: readonly string[]): string {
  const score = (other: string) => [...other].findIndex((character, at) => character !== id[at])
  return [...ids]
    .sort((a, b) => score(b) - score(a))
    .slice(0, 5)
    .join(', ')
}
