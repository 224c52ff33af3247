/** The cluster module: everything the control plane does with nodes. It polls them, keeps their history, plans and runs changes. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ControlModule, moduleOf } from '@vacancy/shared/api/route'
import {
  CLUSTER_ROUTES,
  HANDOVER_ROUTES,
  LIVE_ROUTES,
  type Operation,
  PAST_ROUTES,
  type ShardView,
  TOPOLOGY_ROUTES,
} from '@vacancy/shared/contract'
import { cutOffShards, judge, tcpOf } from '../fabric/derive.ts'
import type { Fabric, Polled } from '../fabric/fabric.ts'
import { createFabric, listComponents, startFabric, stopFabric } from '../fabric/poll.ts'
import { addEvents, changesOf, createEvents, startEvents, stopEvents } from '../history/events.ts'
import {
  createLeadership,
  forgetLeader,
  observeLeader,
  startLeadership,
  stopLeadership,
} from '../history/leadership.ts'
import { createPauses } from '../history/pauses.ts'
import {
  createPictures,
  recordAll,
  recordFabric,
  recordGone,
  recordShard,
  startPictures,
  stopPictures,
} from '../history/pictures.ts'
import { createSeries, loadSeries } from '../history/series.ts'
import { createNodeHttp } from '../http/node-http.ts'
import { offerTopics, pollTopics, touchTopic } from '../live/topics.ts'
import type { Cluster, NodeAddress } from './cluster.ts'
import {
  addressesOf,
  type ClusterConfig,
  type ClusterDeps,
  type ClusterModule,
  nodeView,
  onShardChange,
  shardOf,
} from './cluster-state.ts'
import {
  createCollector,
  knownNodes,
  observationsOf,
  shardView,
  shardViews,
  startCollector,
  stopCollector,
  watchClosely,
} from './collector.ts'
import { type Collector, type CollectorConfig, type CollectorHooks, touchShard } from './collector-state.ts'
import { registriesOf } from './discovery.ts'
import { createHandovers, handoverHandlers, resumeHandovers, stopHandovers } from './handovers.ts'
import { type MembershipDeps, membershipTypes } from './membership-operations.ts'
import { nodeDocument } from './node-documents.ts'
import { requestNode, sendToNode } from './node-requests.ts'
import { createNodeStore } from './node-store.ts'
import type { NodeObservation } from './observation.ts'
import { runningOperations } from './operation-state.ts'
import type { PlanContext } from './operation-types.ts'
import { createOperations, lastPlan, resumeOperations, stopOperations } from './operations.ts'
import { pastHandlers } from './past.ts'
import { recordReading, recordShards, saveSeriesFile } from './recording.ts'
import { fetchRegistryCodecs } from './registry-views.ts'
import { replaceVoterType } from './replace-voter.ts'
import { clusterHandlers } from './routes.ts'
import { readAside, readOtherAttention, summaryOf, updateSummary } from './summary.ts'
import { fabricHandlers, fabricView } from './topology.ts'

const FIGURES_MS = 5_000

const SAVE_MS = 60_000

/** How often a picture may be due: the first is taken soon after the start, the others each minute; of the fabric after a change. */
const PICTURE_MS = 2_000

const SUMMARY_MS = 500
/** What is not a shard reports no change. */
const ATTENTION_MS = 2_000
const LATENESS_KEPT = 15

const CODECS_MS = 60_000

const KNOWN_MS = 5_000

const FABRIC_LIST_MS = 500

/** Changes of states are sent at once, rates with this interval. */
const FABRIC_MS = 1_000

export function createClusterModule(config: ClusterConfig, deps: ClusterDeps): ClusterModule {
  const { database, live, log, clock } = deps
  const http = createNodeHttp(config.ca)
  const membership = membershipDeps(() => module)
  const types = membershipTypes(membership)
  types.set('replace-voter', replaceVoterType(membership))
  const operations = createOperations({
    database,
    live,
    log,
    clock,
    types,
    audit: deps.audit,
    environment: deps.environment,
    planContext: (id, isAdmin) => planContext(module, id, isAdmin),
    readAgain: (id) => readAgain(module, id),
    onChange: (operation) => observeOperation(module, operation),
  })
  const module: ClusterModule = {
    config,
    deps,
    http,
    collector: createCollector(
      collectorConfigOf(config),
      http,
      collectorHooks(() => module),
      log,
      clock,
    ),
    operations,
    handovers: createHandovers({
      operations,
      shards: () => shardViews(module.collector).map(({ id }) => id),
    }),
    types,
    fabric: createFabric(
      {
        registries: registriesOf(config.registry),
        resolver: config.resolver,
        components: config.fabric,
        token: config.tokens.registry,
      },
      {
        ...{ http, clock, log },
        registry: () => module.collector.discovery.registry,
        onChange: () => {
          followCuts(module)
          touchTopic(live, 'topology')
        },
      },
    ),
    known: createNodeStore(database),
    events: createEvents(database, log, () => clock.wallMs()),
    leadership: createLeadership(database, log, () => clock.wallMs()),
    pauses: createPauses(database),
    pictures: createPictures(database, log, () => clock.wallMs()),
    series: createSeries(),
    seriesFile: join(config.folder, 'series'),
    runningSources: [],
    attentionSources: [],
    valueSources: [],
    listeners: new Set(),
    briefs: new WeakMap(),
    timers: [],
    registryCodecs: undefined,
    attention: [],
    otherAttention: [],
    attentionMemory: new Map(),
    aside: new Map(),
    told: new Map(),
    moves: new Map(),
    stayValues: new Map(),
    cutOff: new Set(),
    isSummaryDue: false,
    lateness: 0,
    savedAt: 0,
    saving: Promise.resolve(),
    clients: undefined,
  }
  offerTopics(live, /^topology$/, () => fabricView(module))
  offerTopics(live, /^summary$/, () => summaryOf(module))
  offerTopics(live, /^shard:/, (topic) => shardView(module.collector, topic.slice('shard:'.length)))
  offerTopics(live, /^node:/, (topic) => {
    const [, shard = '', node = ''] = /^node:([^/]+)\/(.+)$/.exec(topic) ?? []
    return nodeDocument(module, shard, node)
  })
  return module
}

function collectorConfigOf(config: ClusterConfig): CollectorConfig {
  const { registry, resolver, nodes, apiPort, tcpPort, tokens } = config
  return {
    registries: registriesOf(registry),
    resolver,
    nodes,
    apiPort,
    tcpPort,
    registryToken: tokens.registry,
    nodeToken: tokens.monitoring ?? tokens.admin,
    monitoringToken: tokens.monitoring,
    adminToken: tokens.admin,
  }
}

/** @param current returns the module, which is created together with its collector */
function collectorHooks(current: () => ClusterModule): CollectorHooks {
  return {
    facts: (shard) => ({
      operation: runningOperations(current().operations).find((each) => each.shard === shard)?.id ?? null,
      writePause: current().pauses.of(shard),
      isCut: current().cutOff.has(shard),
    }),
    onShard: (view) => observeShard(current(), view),
    onShardGone: (id) => forgetShard(current(), id),
    onReading: (node, reading, change) => recordReading(current(), node, reading, change),
  }
}

function membershipDeps(current: () => ClusterModule): MembershipDeps {
  return {
    observe(id) {
      const { collector, deps } = current()
      const shard = shardView(collector, id)
      return shard && { now: deps.clock.wallMs(), shard, observations: observationsOf(collector, id) }
    },
    onShard: (listener) => onShardChange(current(), ({ id }) => listener(id)),
    watchClosely: (id) => watchClosely(current().collector, id),
    address: (shard, node) => addressesOf(current(), shard).find(({ id }) => id === node),
    send: (node, path, body, timeoutMs) => sendToNode(current(), node, path, body, timeoutMs),
    async keepPause(operation, shard, milliseconds) {
      const { pauses, collector, deps } = current()
      await pauses.add({ operation, shard, milliseconds, at: deps.clock.wallMs() })
      touchShard(collector, shard)
    },
  }
}

/** The cluster as other modules see it. */
export function clusterOf(module: ClusterModule): Cluster {
  const { collector } = module
  return {
    summary: () => summaryOf(module),
    shards: () => shardViews(collector),
    shard: (id) => shardView(collector, id),
    node: (shard, id) => nodeView(module, shard, id),
    dayBegins: (shard) => dayBegins(collector, shard),
    addresses: (shard) => addressesOf(module, shard),
    edges: () => edgeAddresses(module.fabric),
    entrances: () => entrancesOf(module.fabric),
    segmentOf: (shard) => segmentOf(collector, shard),
    proxies: () => proxyUrls(module.fabric),
    ownerOf: (segment) => ownerOf(collector.discovery.registry.topology?.segments, segment),
    request: (node, path, options) => requestNode(module, node, path, options),
    watchClosely: (id) => watchClosely(collector, id),
    lastPlan: (kind, shard) => lastPlan(module.operations, kind, shard),
    onShard: (listener) => onShardChange(module, listener),
  }
}

function dayBegins(collector: Collector, shard: string): number {
  const told = observationsOf(collector, shard).find(({ status }) => status?.value.stays)
  return told?.status?.value.stays?.settings.day_begins_minutes ?? 0
}

type Segments = { readonly [name: string]: string }

/** A segment of each shard, by the list of the registry. */
const firstSegments = new WeakMap<Segments, ReadonlyMap<string, string>>()

function segmentOf(collector: Collector, shard: string): string | undefined {
  const listed = collector.discovery.registry.topology?.segments
  const told = observationsOf(collector, shard).find(({ status }) => status?.value.segments.length)
  return (listed && firstOf(listed).get(shard)) ?? told?.status?.value.segments[0]?.name
}

function firstOf(segments: Segments): ReadonlyMap<string, string> {
  const known = firstSegments.get(segments)
  if (known) return known
  const first = new Map<string, string>()
  for (const [segment, shard] of Object.entries(segments)) {
    const other = first.get(shard)
    if (other === undefined || segment < other) first.set(shard, segment)
  }
  firstSegments.set(segments, first)
  return first
}

function ownerOf(segments: Segments | undefined, segment: string): string | undefined {
  return segments && Object.hasOwn(segments, segment) ? segments[segment] : undefined
}

export function clusterRoutes(module: ClusterModule): ControlModule {
  return moduleOf(
    'cluster',
    { ...CLUSTER_ROUTES, ...HANDOVER_ROUTES, ...PAST_ROUTES, ...TOPOLOGY_ROUTES, ...LIVE_ROUTES },
    {
      ...clusterHandlers(module),
      ...handoverHandlers(module.handovers),
      ...pastHandlers(module),
      ...fabricHandlers(module),
      'GET /api/v1/poll': (request) => pollTopics(module.deps.live, request),
    },
    { start: () => startCluster(module), stop: () => stopCluster(module) },
  )
}

export async function startCluster(module: ClusterModule): Promise<void> {
  const { deps, collector, known } = module
  const fault = await loadSeries(module.series, module.seriesFile)
  if (fault !== '') deps.log.warn({ file: module.seriesFile, fault }, 'saved series ignored')
  module.aside = await readAside(deps.database)
  await module.pauses.load()
  await startEvents(module.events)
  startLeadership(module.leadership)
  startPictures(module.pictures)
  await startCollector(collector, await known.load())
  await resumeOperations(module.operations)
  await resumeHandovers(module.handovers)
  startFabric(module.fabric)
  listComponents(module.fabric)
  every(module, FABRIC_LIST_MS, 'listing the components of the registry failed', () => {
    listComponents(module.fabric)
    followCuts(module)
  })
  every(module, SUMMARY_MS, 'updating the summary failed', () => updateSummary(module))
  const lateness = watchLateness(deps.clock)
  every(module, ATTENTION_MS, 'updating the attention items failed', () => {
    module.lateness = lateness()
    readOtherAttention(module)
    module.isSummaryDue = true
  })
  every(module, FABRIC_MS, 'updating the topology failed', () => touchTopic(deps.live, 'topology'))
  every(module, KNOWN_MS, 'storing known nodes failed', () => known.write(knownNodes(collector)))
  every(module, FIGURES_MS, 'recording figures failed', () => recordShards(module))
  every(module, PICTURE_MS, 'recording a picture failed', () => {
    recordAll(module.pictures, shardViews(collector))
    recordFabric(module.pictures, fabricView(module))
  })
  every(module, SAVE_MS, 'saving series failed', () => saveSeriesFile(module))
  every(module, CODECS_MS, 'reading the codec list of the registry failed', () => readRegistryCodecs(module))
  await readRegistryCodecs(module)
}

/** A shard whose bridges went or came back is in another state, whatever its nodes report. */
function followCuts(module: ClusterModule): void {
  const { collector, fabric, cutOff: before } = module
  const now = cutOffShards({ registry: collector.discovery.registry, components: [...fabric.components.values()] })
  module.cutOff = now
  for (const id of now.symmetricDifference(before)) if (collector.shards.has(id)) touchShard(collector, id)
}

/** Called each `ATTENTION_MS`. @returns the latest call of the last half minute, in milliseconds */
function watchLateness({ monotonicMs }: ClusterDeps['clock']): () => number {
  const late: number[] = []
  let due = monotonicMs() + ATTENTION_MS
  return () => {
    const now = monotonicMs()
    late.push(Math.max(0, now - due))
    if (late.length > LATENESS_KEPT) late.shift()
    due = now + ATTENTION_MS
    return Math.max(...late)
  }
}

export async function stopCluster(module: ClusterModule): Promise<void> {
  for (const timer of module.timers) clearInterval(timer)
  stopFabric(module.fabric)
  await stopHandovers(module.handovers)
  await stopOperations(module.operations)
  await stopCollector(module.collector)
  await storeKnownNodes(module)
  await stopEvents(module.events)
  await stopLeadership(module.leadership)
  await stopPictures(module.pictures)
  module.savedAt = Number.NEGATIVE_INFINITY
  saveSeriesFile(module)
  await module.saving
  module.http.close()
}

function planContext(module: ClusterModule, id: string, isAdmin: boolean): PlanContext {
  const shard = shardOf(module, id)
  const bridges = module.collector.discovery.registry.topology?.shards[id]?.bridges ?? []
  return {
    now: module.deps.clock.wallMs(),
    shard,
    observations: observationsOf(module.collector, id),
    running: runningOperations(module.operations).find((each) => each.shard === id),
    isAdmin,
    hasAdminToken: module.config.tokens.admin !== undefined,
    clusterPause: module.pauses.ofAll(),
    bridges,
    baseUrl: module.deps.baseUrl(),
  }
}

const READ_AGAIN_MS = 400
const LOOK_MS = 10

async function readAgain({ collector, deps }: ClusterModule, id: string): Promise<void> {
  const stop = watchClosely(collector, id)
  const from = deps.clock.wallMs()
  const until = deps.clock.monotonicMs() + READ_AGAIN_MS
  const isOld = ({ info, missed }: NodeObservation) => missed === 0 && info !== undefined && info.at < from
  try {
    while (observationsOf(collector, id).some(isOld) && deps.clock.monotonicMs() < until) await sleep(LOOK_MS)
  } finally {
    stop()
  }
}

/** On shutdown, with exact times: the next start begins with these. */
async function storeKnownNodes(module: ClusterModule): Promise<void> {
  try {
    await module.known.write(knownNodes(module.collector), 1)
  } catch (error) {
    // The database may be the reason for the shutdown; the rows stored in the last minute suffice.
    module.deps.log.error({ err: error }, 'storing known nodes failed')
  }
}

async function readRegistryCodecs(module: ClusterModule): Promise<void> {
  const { address } = module.collector.discovery.registry
  if (address === null) return
  module.registryCodecs =
    (await fetchRegistryCodecs(module.http, address, module.config.tokens.registry)) ?? module.registryCodecs
}

function every(module: ClusterModule, ms: number, failure: string, work: () => void | Promise<void>): void {
  module.timers.push(
    setInterval(async () => {
      try {
        await work()
      } catch (error) {
        module.deps.log.error({ err: error }, failure)
      }
    }, ms),
  )
}

/** Compares a shard with its previous view: changes become events, and followers are notified. */
function observeShard(module: ClusterModule, view: ShardView): void {
  const { events, moves, leadership, deps } = module
  // Before its events: the state of the moment of an event includes the change.
  recordShard(module.pictures, view)
  const { told, found } = changesOf(module.told.get(view.id), view, deps.clock.monotonicMs())
  module.told.set(view.id, told)
  addEvents(events, found, deps.clock.wallMs())
  const moved = found.filter(({ kind }) => kind === 'leader').length
  if (moved > 0) moves.set(view.id, (moves.get(view.id) ?? 0) + moved)
  const term = view.nodes.find(({ id }) => id === view.leader)?.term ?? null
  // Only a known shard can be without a leader.
  const isKnown = view.leader !== null || (told.isSettled && view.state !== 'unknown')
  observeLeader(leadership, { id: view.id, leader: view.leader, term }, isKnown && view.mode === 'clustered')
  module.isSummaryDue = true
  touchTopic(deps.live, `shard:${view.id}`)
  for (const node of view.nodes) touchTopic(deps.live, `node:${view.id}/${node.id}`)
  for (const listener of module.listeners) listener(view)
}

function forgetShard(module: ClusterModule, id: string): void {
  module.told.delete(id)
  forgetLeader(module.leadership, id)
  recordGone(module.pictures, id)
  module.isSummaryDue = true
  touchTopic(module.deps.live, `shard:${id}`)
}

function observeOperation(module: ClusterModule, operation: Operation): void {
  touchShard(module.collector, operation.shard)
  module.isSummaryDue = true
  if (operation.endedAt === null) return
  const { shard, node, title, state, message } = operation
  const level = state === 'done' ? 'ok' : state === 'cancelled' ? 'info' : 'warn'
  addEvents(
    module.events,
    [{ shard, node, kind: 'operation', level, message: `${title}: ${message}` }],
    module.deps.clock.wallMs(),
  )
}

function usable({ components }: Fabric, kind: Polled['kind']): Polled[] {
  return [...components.values()].filter((each) => each.kind === kind && judge(each, true).isUsable === true)
}

/** Where clients enter the platform: edge routers and proxies that respond. */
export function edgeAddresses(fabric: Fabric): readonly NodeAddress[] {
  return usable(fabric, 'edge').flatMap((edge) => {
    const tcp = tcpOf(edge)
    return tcp ? [{ id: edge.key, shard: '', zone: '', apiUrl: edge.apiUrl, tcp }] : []
  })
}

function entrancesOf({ components }: Fabric): { readonly id: string; readonly address: NodeAddress['tcp'] }[] {
  return [...components.values()].flatMap((each) =>
    each.kind === 'edge' ? [{ id: each.id, address: tcpOf(each) }] : [],
  )
}

export function proxyUrls(fabric: Fabric): readonly string[] {
  return usable(fabric, 'proxy').map(({ apiUrl }) => apiUrl)
}
