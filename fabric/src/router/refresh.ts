/**
 * Keeps the tables of a router up to date: long poll of the registry, plain polling where it has none, the codec list,
 * and a copy on disk with which a router starts without the registry.
 *
 *   round   GET /versions (waits for a change where the registry can) → wanted lists → table → guard → replaced
 *   pause   after a failure or an incomplete round: 100 ms doubling to 5 s; a table held back: 2 s;
 *           with long poll: none, because the next request waits; else the refresh interval
 */

import { type Clock, type CodecList, createCodecList, type Schedule, VacancyError } from '@vacancy/shared'
import {
  shardSegmentsBody,
  topologyBody,
  versionsBody,
  zoneRoutersBody,
  zoneSegmentsBody,
  zoneShardsBody,
} from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { z } from 'zod'
import { pauseMs } from '../back-off.ts'
import { openCacheFile } from '../cache-file.ts'
import { type Loop, startLoop } from '../loop.ts'
import type { RegistryClient, RegistryReply } from '../registry-client.ts'
import {
  CONFIRM_MS,
  createDatasets,
  type DatasetKey,
  type Datasets,
  type DatasetValue,
  deriveTable,
  keyOf,
  type Lookup,
  lookup,
  observeVersions,
  offerTable,
  pathOf,
  type RouterMode,
  type RouteTable,
  SEGMENTS_MAX,
  type SegmentCount,
  segmentList,
  storeDataset,
  type TableGuard,
  UNLOADED,
  union,
  type Versions,
  wantedLists,
} from './datasets.ts'

const value = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ids'), ids: z.array(z.string()) }),
  z.object({ kind: z.literal('shards'), shards: z.array(z.tuple([z.string(), z.array(z.string())])) }),
  z.object({ kind: z.literal('segments'), zone: z.string().optional(), segments: z.array(z.string()) }),
])

/** The lists of a router as JSON, for its cache. Pure. */
export const storedTables = z.object({
  format: z.literal(1),
  mode: z.enum(['edge', 'zone']),
  zone: z.string(),
  /** Wall clock. */
  saved_at_ms: z.number(),
  epoch: z.string().optional(),
  global_version: z.number().optional(),
  lists: z.array(z.object({ key: z.string(), version: z.number().optional(), value })),
  codecs: z.array(z.string()).optional(),
})
type StoredTables = z.infer<typeof storedTables>

/** A list of which parts are kept is stored with them, without its version: it must be read again. */
export function storeTables(datasets: Datasets, codecs: readonly string[] | undefined, wallMs: number): StoredTables {
  const { mode, zone, epoch, globalVersion, lists } = datasets
  return {
    format: 1,
    mode,
    zone,
    saved_at_ms: wallMs,
    ...(epoch !== undefined && { epoch }),
    ...(globalVersion !== undefined && { global_version: globalVersion }),
    lists: [...lists].map(([key, { version, value: listed, kept }]) => ({
      key,
      ...(version !== undefined && kept === undefined && { version }),
      value: toStored(union(listed, kept)),
    })),
    ...(codecs && { codecs: [...codecs] }),
  }
}

/** Fills empty datasets. Mode and zone must be the same. */
export function restoreTables(datasets: Datasets, stored: StoredTables): void {
  datasets.epoch = stored.epoch
  datasets.globalVersion = stored.global_version
  for (const { key, version, value: listed } of stored.lists) {
    datasets.lists.set(key, { version, value: fromStored(listed), kept: undefined })
  }
}

function toStored(listed: DatasetValue): z.infer<typeof value> {
  switch (listed.kind) {
    case 'ids':
      return { kind: 'ids', ids: [...listed.ids] }
    case 'shards':
      return { kind: 'shards', shards: [...listed.shards].map(([shard, ids]) => [shard, [...ids]]) }
    case 'segments':
      return {
        kind: 'segments',
        ...(listed.zone !== undefined && { zone: listed.zone }),
        segments: [...listed.segments],
      }
  }
}

function fromStored(stored: z.infer<typeof value>): DatasetValue {
  switch (stored.kind) {
    case 'ids':
      return stored
    case 'shards':
      return { kind: 'shards', shards: new Map(stored.shards) }
    case 'segments':
      return { kind: 'segments', zone: stored.zone, segments: stored.segments }
  }
}

export type TablesOptions = {
  readonly mode: RouterMode
  /** Own zone, in zone mode. */
  readonly zone?: string | undefined
  readonly registry: RegistryClient
  /** `--refresh-interval-secs`, in ms; default 10,000. Also the time that a long poll waits. */
  readonly refreshMs: number
  readonly cacheDir?: string | undefined
  readonly clock: Clock
  readonly schedule: Schedule
  /** 0 to 1. */
  readonly random: () => number
  readonly log: Log
}

/** A reason why the router is not ready, for createReadiness. */
type TablesReason = { readonly name: 'tables' | 'codecs'; readonly message: string }

type TablesHealth = ReturnType<typeof healthOf>

export type Tables = {
  /** Constant time, without an allocation. */
  lookup(segment: string): Lookup
  /** Every zone (edge) or shard with a route or a hop. */
  places(): ReadonlyMap<string, Lookup>
  /** Every id that a route can lead to, sorted: connections are opened as soon as an id appears. */
  hops(): readonly string[]
  /** Undefined until it is known: `__codecs__` is answered 503. */
  codecs(): CodecList | undefined
  /** For GETSEGMENTS: sorted by UTF-8 bytes, at most 32,767. */
  segments(): readonly SegmentCount[]
  /**
   * Reads the registry now. Resolves when a round that began after this call, or within the last 500 ms, has ended,
   * whether or not it succeeded. Never rejects. It can take several seconds, so race it against the deadline.
   */
  refreshNow(): Promise<void>
  /** Called after the table or the codec list was replaced. @returns ends it */
  onChange(callback: () => void): () => void
  health(): TablesHealth
  /** Ends polling and waits for a running write of the cache. */
  stop(): Promise<void>
}

const TABLES_MS = {
  /** Least time between two rounds on request. */
  request: 500,
  /** Least time between two rounds: a registry that changes all the time is read ten times a second. */
  gap: 100,
  /** How often the properties by segment are read. */
  counts: 30_000,
  countsFailed: 5_000,
  /** The same, from a registry that has none. */
  countsUnserved: 600_000,
} as const
/** Lists fetched at once. */
const FETCHES_MAX = 16
/** A long poll is given up this long after the registry should have responded. */
const LONG_POLL_GRACE_MS = 5_000
const LONG_POLL_SECONDS_MAX = 60

type State = ReturnType<typeof createState>

/** Begins at once. Reads the cache before it returns. */
export function openTables(options: TablesOptions): Tables {
  const state = createState(options)
  loadCache(state)
  const rounds = startLoop(options.schedule, () => round(state))
  const codecs = startLoop(options.schedule, () => readCodecs(state))
  const counts = startLoop(options.schedule, () => readCounts(state))
  return {
    lookup: (segment) => lookupIn(state, segment),
    places: () => state.guard.table?.results ?? NO_PLACES,
    hops: () => state.guard.table?.hops ?? [],
    codecs: () => state.codecs,
    segments: () => segmentsOf(state),
    refreshNow: () => refreshNow(state, rounds),
    onChange(callback) {
      state.callbacks.add(callback)
      return () => void state.callbacks.delete(callback)
    },
    health: () => healthOf(state),
    async stop() {
      state.stopping.abort()
      await Promise.all([rounds.stop(), codecs.stop(), counts.stop()])
      for (const done of [...state.wanted.splice(0), ...state.served.splice(0)]) done()
      // With the time until which the registry confirmed it.
      if (state.isSynced) saveCache(state)
      await state.cache?.flush()
    },
  }
}

const NO_PLACES: ReadonlyMap<string, Lookup> = new Map()

/** Before all lists were read, a segment that none has so far may have a route. */
function lookupIn({ guard, isWhole }: State, segment: string): Lookup {
  const found = lookup(guard.table, segment)
  return found.kind === 'unknown' && !isWhole ? UNLOADED : found
}

function createState(options: TablesOptions) {
  const { cacheDir, log, mode, zone } = options
  const name = mode === 'edge' ? 'edge' : `zone-${zone}`
  return {
    options,
    datasets: createDatasets(mode, zone),
    cache:
      cacheDir === undefined
        ? undefined
        : openCacheFile({
            folder: cacheDir,
            file: `tables-${encodeURIComponent(name)}.json`,
            name: 'the tables',
            schema: storedTables,
            log,
          }),
    callbacks: new Set<() => void>(),
    stopping: new AbortController(),
    guard: { table: undefined, smallSinceMs: undefined } as TableGuard,
    /** Of the present lists; another one than that of the guard while it is held back. */
    derived: undefined as RouteTable | undefined,
    /** All lists were read at least once: a segment without a route is unknown. */
    isWhole: false,
    counts: new Map() as ReadonlyMap<string, number>,
    list: undefined as readonly SegmentCount[] | undefined,
    codecs: undefined as CodecList | undefined,
    /** Monotonic; negative for a table from the cache that is older than the process. */
    confirmedMs: undefined as number | undefined,
    isSynced: false,
    fault: '',
    codecsFault: '',
    failures: 0,
    codecsFailures: 0,
    /** When the running or the last round began. A long poll begins when it is answered. */
    roundMs: Number.NEGATIVE_INFINITY,
    /** A round is past its wait. */
    isBusy: false,
    /** The next request waits for a change. */
    mayWait: false,
    /** Cancels the waiting request. */
    waiting: undefined as AbortController | undefined,
    /** Requests of a refresh for the next round, and for the running one. */
    wanted: [] as (() => void)[],
    served: [] as (() => void)[],
  }
}

// Rounds

/** One round. @returns the pause before the next one */
async function round(state: State): Promise<number> {
  const { clock, random } = state.options
  const versions = await readVersions(state)
  const isUsable = versions !== undefined && !state.stopping.signal.aborted
  const isComplete = isUsable && (await readLists(state, versions))
  state.isBusy = false
  for (const done of state.served.splice(0)) done()
  if (state.stopping.signal.aborted) return 0
  if (versions === 'cancelled') return 0
  if (!isComplete) {
    state.mayWait = false
    state.failures += 1
    return pauseMs(state.failures, random())
  }
  state.failures = 0
  state.fault = ''
  state.isSynced = true
  state.confirmedMs = clock.monotonicMs()
  if (state.guard.smallSinceMs !== undefined) {
    state.mayWait = false
    return CONFIRM_MS + TABLES_MS.gap
  }
  return state.mayWait ? TABLES_MS.gap : state.options.refreshMs
}

/** Marks the beginning of a round: requests of a refresh before it are served by it. */
function beginRound(state: State): void {
  state.roundMs = state.options.clock.monotonicMs()
  state.isBusy = true
  state.served.push(...state.wanted.splice(0))
}

/** @returns undefined on failure; 'cancelled' when a refresh was requested during the wait */
async function readVersions(state: State): Promise<Versions | 'cancelled' | undefined> {
  const { registry, refreshMs } = state.options
  const { datasets, stopping } = state
  const waits = state.mayWait && state.wanted.length === 0
  let path = '/versions'
  let timeoutMs = LONG_POLL_GRACE_MS
  if (waits) {
    const seconds = Math.min(LONG_POLL_SECONDS_MAX, Math.max(1, Math.round(refreshMs / 1000)))
    const epoch = encodeURIComponent(datasets.epoch ?? '')
    path = `/versions?epoch=${epoch}&since=${datasets.globalVersion}&wait_secs=${seconds}`
    timeoutMs += seconds * 1000
    state.waiting = new AbortController()
  } else beginRound(state)
  const signals = [stopping.signal, ...(state.waiting ? [state.waiting.signal] : [])]
  const before = { epoch: datasets.epoch, globalVersion: datasets.globalVersion, ms: state.options.clock.monotonicMs() }
  const reply = await registry.get(path, versionsBody, { timeoutMs, signal: AbortSignal.any(signals) })
  const isCancelled = state.waiting?.signal.aborted === true
  state.waiting = undefined
  if (isCancelled) return 'cancelled'
  if (waits) beginRound(state)
  if (reply.kind !== 'ok') {
    state.fault = faultOf('/versions', reply)
    return undefined
  }
  const { epoch, global_version: globalVersion } = reply.body
  const isSame = epoch === before.epoch && globalVersion === before.globalVersion
  const tookMs = state.options.clock.monotonicMs() - before.ms
  // A registry with too many waiting callers responds at once: then it is polled as one without long poll.
  state.mayWait = epoch !== undefined && !(waits && isSame && tookMs < TABLES_MS.request)
  return reply.body
}

function faultOf(path: string, reply: RegistryReply<unknown>): string {
  return 'reason' in reply ? `${path}: ${reply.reason}` : `${path}: no content`
}

/** Fetches what changed and replaces the table. @returns whether all lists are as the registry has them */
async function readLists(state: State, versions: Versions | 'cancelled'): Promise<boolean> {
  if (versions === 'cancelled') return false
  const { datasets, options } = state
  const { clock, log } = options
  const isWarming = versions.warming === true
  const before = datasets.epoch
  const hadState = datasets.globalVersion !== undefined
  const { isReset, isChanged } = observeVersions(datasets, versions)
  if (isReset && hadState)
    log.warn({ before, now: versions.epoch, isWarming }, 'the registry has another state, reading all lists again')
  const fetched = new Set<string>()
  let isComplete = true
  // Again, for the shards that the first request found.
  for (let pass = 0; pass < 2; pass++) {
    const wanted = wantedLists(datasets, versions).filter((key) => !fetched.has(keyOf(key)))
    for (let at = 0; at < wanted.length; at += FETCHES_MAX) {
      if (state.stopping.signal.aborted) return false
      const batch = wanted.slice(at, at + FETCHES_MAX)
      const results = await Promise.all(batch.map((key) => readList(state, key, isWarming)))
      isComplete &&= results.every(Boolean)
      for (const key of batch) fetched.add(keyOf(key))
    }
  }
  if (isChanged || fetched.size > 0 || state.derived === undefined) state.derived = deriveTable(datasets)
  state.isWhole ||= isComplete
  offer(state, state.derived, clock.monotonicMs(), isWarming)
  return isComplete
}

/** Replaces the table unless the guard holds the new one back. */
function offer(state: State, table: RouteTable, nowMs: number, isWarming: boolean): void {
  const { guard } = state
  const { log } = state.options
  if (table === guard.table) return
  state.guard = offerTable(guard, table, nowMs, isWarming)
  if (state.guard.smallSinceMs !== undefined && guard.smallSinceMs === undefined) {
    log.warn(
      { present: guard.table?.routes.size, shown: table.routes.size },
      'the registry shows fewer than half of the segments, keeping the table until it confirms them',
    )
  }
  if (state.guard.table !== table) return
  if (table.conflicts > 0 && table.conflicts !== guard.table?.conflicts)
    log.warn({ segments: table.conflicts }, 'segments are listed by two zones or shards')
  replaced(state)
}

async function readList(state: State, key: DatasetKey, isWarming: boolean): Promise<boolean> {
  const { datasets } = state
  const path = pathOf(key)
  const reply = await fetchList(state, key, path)
  if (reply.kind === 'ok') {
    storeDataset(datasets, key, reply.body.version, reply.body.value, isWarming)
    return true
  }
  state.fault = faultOf(path, reply)
  return false
}

type FetchedList = { readonly version: number; readonly value: DatasetValue }

async function fetchList(
  { options: { registry }, stopping: { signal } }: State,
  key: DatasetKey,
  path: string,
): Promise<RegistryReply<FetchedList>> {
  switch (key.list) {
    case 'routers':
      return withBody(await registry.get(path, zoneRoutersBody, { signal }), ({ version, routers }) => ({
        version,
        value: { kind: 'ids', ids: routers },
      }))
    case 'zone-segments':
      return withBody(await registry.get(path, zoneSegmentsBody, { signal }), ({ version, segments }) => ({
        version,
        value: { kind: 'segments', zone: key.zone, segments },
      }))
    case 'shards':
      return withBody(await registry.get(path, zoneShardsBody, { signal }), ({ version, shards }) => ({
        version,
        value: { kind: 'shards', shards: new Map(Object.entries(shards).map(([id, { bridges }]) => [id, bridges])) },
      }))
    case 'shard-segments':
      return withBody(await registry.get(path, shardSegmentsBody, { signal }), ({ version, zone, segments }) => ({
        version,
        value: { kind: 'segments', zone, segments },
      }))
  }
}

function withBody<A>(reply: RegistryReply<A>, map: (body: A) => FetchedList): RegistryReply<FetchedList> {
  return reply.kind === 'ok' ? { ...reply, body: map(reply.body) } : reply
}

function replaced(state: State): void {
  state.list = undefined
  saveCache(state)
  for (const callback of [...state.callbacks]) callback()
}

function refreshNow(state: State, rounds: Loop): Promise<void> {
  const isRecent = state.options.clock.monotonicMs() - state.roundMs < TABLES_MS.request
  if (state.stopping.signal.aborted || (isRecent && !state.isBusy)) return Promise.resolve()
  return new Promise((resolve) => {
    if (isRecent) {
      state.served.push(resolve)
      return
    }
    state.wanted.push(resolve)
    state.waiting?.abort()
    rounds.wake()
  })
}

// Codecs and counts

/** @returns the pause before the next look */
async function readCodecs(state: State): Promise<number> {
  const { registry, refreshMs, log, random } = state.options
  const reply = await registry.codecs(state.stopping.signal)
  if (reply.kind !== 'ok') {
    if (state.stopping.signal.aborted) return 0
    state.codecsFault = faultOf('/codecs', reply)
    state.codecsFailures += 1
    return Math.min(refreshMs, pauseMs(state.codecsFailures, random()))
  }
  state.codecsFault = ''
  state.codecsFailures = 0
  const before = state.codecs
  if (before?.orderedHash === reply.body.orderedHash) return refreshMs
  if (before) log.warn({ before: before.names, now: reply.body.names }, 'the codec list of the registry changed')
  state.codecs = reply.body
  replaced(state)
  return refreshMs
}

/** The part of the document that has counts. Existing registries do not serve it. */
const countsBody = topologyBody.pick({ nodes: true, segments: true })

async function readCounts(state: State): Promise<number> {
  const reply = await state.options.registry.get('/topology', countsBody, { signal: state.stopping.signal })
  if (reply.kind === 'ok') {
    state.counts = countsOf(reply.body)
    state.list = undefined
  }
  if (reply.kind === 'failed') return TABLES_MS.countsFailed
  return reply.kind === 'refused' ? TABLES_MS.countsUnserved : TABLES_MS.counts
}

/** Of each segment, as the leader of its shard with the highest term reports. */
function countsOf({ nodes, segments }: z.infer<typeof countsBody>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const leaders = nodes.filter(({ segment_counts: reported }) => reported !== undefined)
  leaders.sort((a, b) => (a.term ?? 0) - (b.term ?? 0))
  for (const { shard, segment_counts: reported = {} } of leaders) {
    for (const [segment, count] of Object.entries(reported)) {
      if (Object.hasOwn(segments, segment) && segments[segment] === shard) counts.set(segment, count)
    }
  }
  return counts
}

function segmentsOf(state: State): readonly SegmentCount[] {
  if (state.list) return state.list
  const { segments, isCut } = segmentList(state.guard.table, state.counts)
  if (isCut) state.options.log.warn({ most: SEGMENTS_MAX }, 'more segments than a reply to GETSEGMENTS can hold')
  state.list = segments
  return segments
}

// Cache and health

function loadCache(state: State): void {
  const { clock, log, mode, zone } = state.options
  const stored = state.cache?.load()
  if (stored === undefined) return
  if (stored.mode !== mode || stored.zone !== (zone ?? '')) {
    log.warn({ mode: stored.mode, zone: stored.zone }, 'the cached tables are of another router and are ignored')
    return
  }
  restoreTables(state.datasets, stored)
  const table = deriveTable(state.datasets)
  state.guard = { table, smallSinceMs: undefined }
  state.derived = table
  state.isWhole = true
  const ageMs = Math.max(0, clock.wallMs() - stored.saved_at_ms)
  state.confirmedMs = clock.monotonicMs() - ageMs
  if (stored.codecs) state.codecs = codecsFrom(state, stored.codecs)
  log.info({ segments: table.routes.size, ageSeconds: Math.round(ageMs / 1000) }, 'tables loaded from the cache')
}

function codecsFrom(state: State, names: readonly string[]): CodecList | undefined {
  try {
    return createCodecList(names)
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    state.options.log.warn({ err: error }, 'the cached codec list is ignored')
    return undefined
  }
}

function saveCache(state: State): void {
  if (state.guard.smallSinceMs !== undefined) return
  state.cache?.save(() => storeTables(state.datasets, state.codecs?.names, wallMsOf(state)))
}

/** When the lists were last confirmed. */
function wallMsOf({ options: { clock }, confirmedMs }: State): number {
  return clock.wallMs() - (confirmedMs === undefined ? 0 : clock.monotonicMs() - confirmedMs)
}

function healthOf(state: State) {
  const { guard, datasets, options } = state
  const { table } = guard
  const reasons: TablesReason[] = []
  if (!table) {
    const message = `No routing table yet${state.fault === '' ? '.' : `: ${state.fault}`}`
    reasons.push({ name: 'tables', message })
  }
  if (!state.codecs) {
    const message = `No codec list yet${state.codecsFault === '' ? '.' : `: ${state.codecsFault}`}`
    reasons.push({ name: 'codecs', message })
  }
  return {
    /** A table is in use, from the registry or from the cache. */
    isLoaded: table !== undefined,
    /** The registry confirmed the lists at least once since the start. */
    isSynced: state.isSynced,
    /** Milliseconds since the registry last confirmed the lists; for a table from the cache, since it was written. */
    ageMs: state.confirmedMs === undefined ? undefined : options.clock.monotonicMs() - state.confirmedMs,
    registryUp: options.registry.health().isUp,
    /** The last failure; '' when the last round succeeded. */
    fault: state.fault,
    routes: table?.routes.size ?? 0,
    hops: table?.hops.length ?? 0,
    /** Segments that two zones or shards list. */
    conflicts: table?.conflicts ?? 0,
    /** A table with fewer than half of the segments is held back. */
    isHeldBack: guard.smallSinceMs !== undefined,
    epoch: datasets.epoch,
    globalVersion: datasets.globalVersion,
    /** Empty when the router can work. */
    reasons,
  }
}
