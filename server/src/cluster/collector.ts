/**
 * Asks every node again and again (console.md §4.1) and keeps what it told with the time of receipt. A node is asked one
 * path after the other over one kept connection; one that did not answer gets one question a round until it does, so
 * that a thousand silent nodes cannot hold up those that live.
 */
import { type Clock, parseId, systemClock } from '@vacancy/shared'
import {
  clusterInfoBody,
  codecsBody,
  configBody,
  healthzText,
  leaderBody,
  type NodeConfig,
  nodeInfoBody,
  peersBody,
  type ShardView,
  statusBody,
} from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { z } from 'zod'
import { type Change, changeBetween, type Reading, readMetrics } from '../history/reading.ts'
import type { NodeAddress } from './cluster.ts'
import { deriveShard, type ShardMemory, significant } from './derive.ts'
import {
  createDiscovery,
  DISCOVERY,
  type DiscoveryConfig,
  type RegistryState,
  readAnswer,
  UNKNOWN_SHARD,
} from './discovery.ts'
import { type HttpReply, type NodeHttp, NodeHttpError } from './node-http.ts'
import { type NodeLimits, nothingSeen, type Seen, type Source, type SourcePath } from './seen.ts'

export const COLLECTOR = {
  roundMs: 1_000,
  /** Above this many nodes a round takes twice as long. */
  manyNodes: 300,
  figuresMs: 5_000,
  codecsMs: 60_000,
  atOnce: 64,
  /** Of these, how many may be spent on nodes that have not answered of late. */
  silentAtOnce: 16,
  closeMs: 50,
  closeForMs: 3_000,
  closeAfterMs: 200,
  tickMs: 20,
  deriveMs: 100,
  /** A shard is looked at no more often than this, and above `manyNodes` once a round, unless somebody looks closely. */
  deriveShardMs: 250,
  bodyKept: 16_384,
  lagsForMs: 30_000,
} as const

export type CollectorHooks = {
  readonly facts: (shard: string) => { readonly operation: string | null; readonly writePause: ShardView['writePause'] }
  /** After each look at a shard; `before` is undefined at the first. */
  readonly onShard: (view: ShardView, before: ShardView | undefined) => void
  readonly onShardGone: (id: string) => void
  readonly onReading: (node: NodeAddress, reading: Reading, change: Change | undefined) => void
}

export type Collector = {
  shards(): readonly ShardView[]
  shard(id: string): ShardView | undefined
  seen(shard: string): readonly Seen[]
  registry(): RegistryState
  watchClosely(shard: string): () => void
  /** Derives a shard anew, because something beside its nodes changed. */
  touch(shard: string): void
  counts(): CollectorCounts
  /** Resolves after the first look for nodes. */
  start(): Promise<void>
  stop(): Promise<void>
}

export type CollectorCounts = {
  readonly nodes: number
  readonly requests: number
  readonly failures: number
  readonly roundMs: number
}

type Watched = {
  seen: Seen
  nextAt: number
  figuresAt: number
  codecsAt: number
  isBusy: boolean
  reading: Reading | undefined
}

type ShardState = {
  view: ShardView | undefined
  memory: ShardMemory | undefined
  derivedAt: number
  isDirty: boolean
  readonly nodes: Map<string, Watched>
  /** Monotonic times at which somebody began to look closely. */
  readonly closely: Set<{ readonly since: number }>
}

export function createCollector(
  config: DiscoveryConfig & { readonly monitoringToken: string | undefined; readonly adminToken: string | undefined },
  http: NodeHttp,
  hooks: CollectorHooks,
  log: Log,
  clock: Clock = systemClock,
): Collector {
  const discovery = createDiscovery(config, http, clock)
  const nodes = new Map<string, Watched>()
  const shards = new Map<string, ShardState>()
  /** In the order in which they are shown; made anew when one comes or goes. */
  let sorted: readonly ShardState[] | undefined
  const timers: NodeJS.Timeout[] = []
  let isStopped = false
  let busy = 0
  let busySilent = 0
  let looking: Promise<void> | undefined
  const counts = { requests: 0, failures: 0, roundMs: 0 }
  const keyOf = ({ shard, id }: NodeAddress) => `${shard}/${id}`

  const roundMs = () => COLLECTOR.roundMs * (nodes.size > COLLECTOR.manyNodes ? 2 : 1)

  async function look(): Promise<void> {
    const found = await discovery.look([...nodes.values()].map(({ seen }) => seen))
    if (isStopped) return
    const now = clock.monotonicMs()
    const keys = new Set(found.map(keyOf))
    for (const [at, address] of found.entries()) {
      const known = nodes.get(keyOf(address))
      if (known) {
        const { apiUrl, zone, tcp } = known.seen.address
        const isMoved =
          apiUrl !== address.apiUrl ||
          zone !== address.zone ||
          tcp?.port !== address.tcp?.port ||
          tcp?.host !== address.tcp?.host
        if (isMoved) known.seen = { ...known.seen, address }
        continue
      }
      // Spread over the round, so that nodes are not all asked at once.
      const nextAt = now + (roundMs() * at) / Math.max(1, found.length)
      const watched: Watched = {
        seen: nothingSeen(address),
        nextAt,
        figuresAt: 0,
        codecsAt: 0,
        isBusy: false,
        reading: undefined,
      }
      nodes.set(keyOf(address), watched)
      stateOf(address.shard).nodes.set(address.id, watched)
      touch(address.shard)
    }
    for (const [key, { seen }] of nodes) {
      if (keys.has(key)) continue
      nodes.delete(key)
      stateOf(seen.address.shard).nodes.delete(seen.address.id)
      touch(seen.address.shard)
      log.info({ shard: seen.address.shard, node: seen.address.id }, 'node is no longer known')
    }
  }

  function lookAgain(): void {
    looking ??= look()
      .catch((error) => log.error({ err: error }, 'looking for nodes failed'))
      .finally(() => {
        looking = undefined
      })
  }

  function touch(shard: string): void {
    stateOf(shard).isDirty = true
  }

  function stateOf(shard: string): ShardState {
    const known = shards.get(shard)
    if (known) return known
    const state: ShardState = {
      view: undefined,
      memory: undefined,
      derivedAt: 0,
      isDirty: true,
      nodes: new Map(),
      closely: new Set(),
    }
    shards.set(shard, state)
    sorted = undefined
    return state
  }

  function tick(): void {
    const now = clock.monotonicMs()
    const due = [...nodes.values()].filter(
      ({ isBusy, nextAt, seen }) => !isBusy && nextAt <= now && seen.address.apiUrl !== '',
    )
    // Who has waited longest comes first: with too much to do, all get slower and nobody is forgotten.
    for (const watched of due.sort((a, b) => a.nextAt - b.nextAt)) {
      if (busy >= COLLECTOR.atOnce) return
      const isSilent = watched.seen.missed > 0
      if (isSilent && busySilent >= COLLECTOR.silentAtOnce) continue
      const closeMs = closeIntervalMs(watched.seen.address.shard, now)
      watched.isBusy = true
      busy++
      if (isSilent) busySilent++
      const done = closeMs === undefined || isSilent ? round(watched) : closeRound(watched)
      done
        .catch((error) => log.error({ err: error, node: keyOf(watched.seen.address) }, 'reading a node failed'))
        .finally(() => {
          watched.isBusy = false
          busy--
          if (isSilent) busySilent--
          const interval = closeMs ?? roundMs()
          watched.nextAt = Math.max(now + interval, clock.monotonicMs())
        })
    }
  }

  function closeIntervalMs(shard: string, now: number): number | undefined {
    const closely = shards.get(shard)?.closely
    if (!closely || closely.size === 0) return undefined
    const isNew = [...closely].some(({ since }) => now - since < COLLECTOR.closeForMs)
    return isNew ? COLLECTOR.closeMs : COLLECTOR.closeAfterMs
  }

  /** Everything that is due of one node. */
  async function round(watched: Watched): Promise<void> {
    const began = clock.monotonicMs()
    const before = watched.seen.health?.value
    if (!(await tell(watched, '/healthz'))) return
    if (!watched.seen.isStandalone) {
      await tell(watched, '/node-info')
      for (const path of ['/leader', '/peers', '/cluster/info'] as const) {
        if (!watched.seen.isStandalone) await tell(watched, path)
      }
    }
    const now = clock.monotonicMs()
    if (now >= watched.figuresAt || watched.seen.health?.value !== before) {
      watched.figuresAt = now + COLLECTOR.figuresMs
      await tell(watched, '/status')
      await tell(watched, '/metrics')
    }
    if (now >= watched.codecsAt) {
      watched.codecsAt = now + COLLECTOR.codecsMs
      await tell(watched, '/codecs')
      await tell(watched, '/config')
    }
    counts.roundMs = clock.monotonicMs() - began
  }

  /** What shows who leads, who is a member and how far they are. */
  async function closeRound(watched: Watched): Promise<void> {
    if (!(await tell(watched, '/healthz')) || watched.seen.isStandalone) return
    await tell(watched, '/cluster/info')
    derive(watched.seen.address.shard)
  }

  /** Asks one path and keeps what came. False when the node did not answer at all. */
  async function tell(watched: Watched, path: SourcePath): Promise<boolean> {
    const { address } = watched.seen
    const token = path === '/config' ? config.adminToken : (config.monitoringToken ?? config.adminToken)
    counts.requests++
    try {
      const reply = await http.ask(address.apiUrl + path, { token })
      const now = clock.wallMs()
      const kept = watched.seen.sources[path]
      // Equal words, equal meaning: nothing has to be read again.
      const isSame =
        path !== '/metrics' && kept?.error === undefined && kept?.status === reply.status && kept.body === reply.body
      const told = isSame ? ageOf(watched.seen, path, now) : understand(watched, path, reply, now)
      watched.seen = {
        ...watched.seen,
        ...told,
        missed: 0,
        answeredAt: now,
        error: undefined,
        sources: { ...watched.seen.sources, [path]: sourceOf(reply, now) },
      }
      touch(address.shard)
      return true
    } catch (error) {
      if (!(error instanceof NodeHttpError)) throw error
      counts.failures++
      fail(watched, path, error)
      return false
    }
  }

  function fail(watched: Watched, path: SourcePath, { code, message }: NodeHttpError): void {
    const { seen } = watched
    const now = clock.wallMs()
    const earlier = seen.sources[path]
    const since = earlier?.error?.code === code ? earlier.error.since : now
    const source: Source = {
      status: earlier?.status,
      at: earlier?.at,
      milliseconds: undefined,
      body: earlier?.body ?? '',
      error: { code, message, since },
    }
    const isAnswer = code === 'garbage' || code === 'status' || code === 'not-allowed'
    const isRound = path === '/healthz' && !isAnswer
    // Looked at every 50 ms, three misses are no three rounds.
    const isCounted = isRound && now - (seen.answeredAt ?? 0) >= roundMs() * seen.missed
    watched.seen = {
      ...seen,
      sources: { ...seen.sources, [path]: source },
      ...(isRound && { error: { code, message, since: seen.error?.since ?? now } }),
      ...(isCounted && { missed: seen.missed + 1 }),
      ...(isAnswer && { missed: 0, answeredAt: now, error: undefined }),
      // It answers, and not what it answered before: that does not hold any more.
      ...(isAnswer && path === '/healthz' && { health: undefined }),
      ...(isAnswer && path === '/cluster/info' && { info: undefined }),
    }
    if (isRound && watched.seen.missed >= 3) discovery.forget(seen.address)
    touch(seen.address.shard)
  }

  /** @throws NodeHttpError garbage */
  function understand(watched: Watched, path: SourcePath, reply: HttpReply, now: number): Partial<Seen> {
    const { seen } = watched
    const is404 = reply.status === 404
    switch (path) {
      case '/healthz':
        return { health: { value: healthOf(reply), at: now } }
      case '/node-info': {
        if (is404) return { isStandalone: true, nodeInfo: undefined }
        const value = readAnswer(reply, nodeInfoBody)
        sameNode(seen.address, value.node_id, value.shard_id)
        return { isStandalone: false, nodeInfo: { value, at: now } }
      }
      case '/leader':
        return is404 ? {} : { namesLeader: { value: readAnswer(reply, leaderBody), at: now } }
      case '/peers':
        if (!is404) readAnswer(reply, peersBody)
        return {}
      case '/cluster/info': {
        if (is404) return { info: undefined }
        const value = readAnswer(reply, clusterInfoBody)
        sameNode(seen.address, value.node_id, value.shard_id)
        return { info: { value, at: now } }
      }
      case '/status': {
        const value = readAnswer(reply, statusBody)
        // A standalone node is asked for the rest again when it became part of a shard.
        return { status: { value, at: now }, isStandalone: value.mode === 'standalone' }
      }
      case '/metrics':
        return readFigures(watched, reply, now)
      case '/codecs':
        return { codecs: { value: readAnswer(reply, codecsBody), at: now } }
      case '/config':
        return reply.status === 200 ? { limits: limitsOf(readAnswer(reply, configBody)) } : {}
    }
  }

  function readFigures(watched: Watched, reply: HttpReply, now: number): Partial<Seen> {
    if (reply.status !== 200) readAnswer(reply, z.unknown())
    const reading = readMetrics(reply.body, now)
    if (!reading) throw new NodeHttpError('garbage', 'the answer is no page of metrics of a node')
    const change = watched.reading && changeBetween(watched.reading, reading)
    watched.reading = reading
    hooks.onReading(watched.seen.address, reading, change)
    const rounded = (value: number | null) => (value === null ? null : significant(value))
    const rates = change && {
      queries: rounded(change.queries),
      writes: rounded(change.writes),
      errors: rounded(change.errors),
      p50: rounded(change.p50),
      p99: rounded(change.p99),
    }
    return { rates: rates ? { value: rates, at: now } : undefined, connectionsLimit: reading.connectionsLimit }
  }

  function derive(id: string): void {
    const state = shards.get(id)
    if (!state) return
    const members = [...state.nodes.values()]
    state.isDirty = false
    state.derivedAt = clock.monotonicMs()
    if (members.length === 0) {
      shards.delete(id)
      sorted = undefined
      hooks.onShardGone(id)
      return
    }
    const now = clock.wallMs()
    const facts = { id, nodes: members.map(({ seen }) => seen), now, memory: state.memory, ...hooks.facts(id) }
    const { view, memory } = deriveShard(facts)
    for (const watched of members) keepLag(watched, view, now)
    const before = state.view
    state.view = view
    state.memory = memory
    hooks.onShard(view, before)
  }

  function deriveDue(): void {
    const now = clock.monotonicMs()
    for (const [id, state] of shards) {
      // Ages pass and elections last without a word from anybody.
      const leastMs = nodes.size > COLLECTOR.manyNodes ? COLLECTOR.roundMs : COLLECTOR.deriveShardMs
      if (now - state.derivedAt < (state.isDirty ? leastMs : COLLECTOR.roundMs)) continue
      derive(id)
    }
  }

  return {
    shards() {
      sorted ??= [...shards].sort(([a], [b]) => NATURAL.compare(a, b)).map(([, state]) => state)
      return sorted.flatMap(({ view }) => (view ? [view] : []))
    },
    shard: (id) => shards.get(id)?.view,
    seen: (shard) => [...(shards.get(shard)?.nodes.values() ?? [])].map(({ seen }) => seen),
    registry: discovery.registry,
    watchClosely(shard) {
      const state = shards.get(shard)
      if (!state) return () => {}
      const since = clock.monotonicMs()
      const watch = { since }
      state.closely.add(watch)
      for (const watched of state.nodes.values()) watched.nextAt = Math.min(watched.nextAt, since)
      return () => void state.closely.delete(watch)
    },
    touch,
    counts: () => ({ nodes: nodes.size, ...counts }),
    async start() {
      await look()
      timers.push(setInterval(tick, COLLECTOR.tickMs), setInterval(deriveDue, COLLECTOR.deriveMs))
      timers.push(setInterval(lookAgain, DISCOVERY.intervalMs))
      tick()
    },
    async stop() {
      isStopped = true
      for (const timer of timers) clearInterval(timer)
      await looking
    },
  }
}

function keepLag(watched: Watched, view: ShardView, now: number): void {
  const node = view.nodes.find(({ id }) => id === watched.seen.address.id)
  const entries = node?.lagEntries
  if (entries === null || entries === undefined) {
    if (watched.seen.lags.length > 0) watched.seen = { ...watched.seen, lags: [] }
    return
  }
  const last = watched.seen.lags.at(-1)
  if (last && now - last.at < COLLECTOR.roundMs) return
  const lags = [...watched.seen.lags.filter(({ at }) => now - at < COLLECTOR.lagsForMs), { at: now, entries }]
  watched.seen = { ...watched.seen, lags }
}

/** What is known of a path stays, told once more just now. */
function ageOf(seen: Seen, path: SourcePath, now: number): Partial<Seen> {
  switch (path) {
    case '/healthz':
      return seen.health ? { health: { ...seen.health, at: now } } : {}
    case '/node-info':
      return seen.nodeInfo ? { nodeInfo: { ...seen.nodeInfo, at: now } } : {}
    case '/leader':
      return seen.namesLeader ? { namesLeader: { ...seen.namesLeader, at: now } } : {}
    case '/cluster/info':
      return seen.info ? { info: { ...seen.info, at: now } } : {}
    case '/status':
      return seen.status ? { status: { ...seen.status, at: now } } : {}
    case '/codecs':
      return seen.codecs ? { codecs: { ...seen.codecs, at: now } } : {}
    case '/peers':
    case '/metrics':
    case '/config':
      return {}
  }
}

function healthOf({ status, body }: HttpReply): string {
  const { data } = healthzText.safeParse(body.trim())
  if (data === undefined) throw new NodeHttpError('garbage', `answered ${status} and no health`)
  return data
}

/** Behind an address may stand another node than the one that is looked for. */
function sameNode(address: NodeAddress, id: string, shard: string): void {
  if (address.shard === UNKNOWN_SHARD || (address.id === id && address.shard === shard)) return
  const told = `${parseId(shard) ?? 'another shard'}/${parseId(id) ?? 'another node'}`
  throw new NodeHttpError('garbage', `${told} answers at the address of ${address.shard}/${address.id}`)
}

function sourceOf({ status, body, milliseconds }: HttpReply, at: number): Source {
  // Cut and copied: a piece of a string keeps the whole of it alive.
  const text = body.length <= COLLECTOR.bodyKept ? body : Buffer.from(body.slice(0, COLLECTOR.bodyKept)).toString()
  return { status, at, milliseconds: Math.round(milliseconds * 10) / 10, error: undefined, body: text }
}

function limitsOf(config: NodeConfig): NodeLimits | undefined {
  const number = (key: string) => Number(config[key]?.value)
  const limits = {
    electionTimeoutMs: number('raft_tick_ms') * number('raft_election_tick'),
    snapshotIntervalSeconds: number('snapshot_interval_sec'),
    snapshotTriggerCount: number('snapshot_trigger_count'),
    maintenanceHour: number('maintenance_hour'),
  }
  return Object.values(limits).every(Number.isFinite) ? limits : undefined
}

/** `s2` before `s10`. */
const NATURAL = new Intl.Collator('en', { numeric: true })
