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
  type ViewRole,
} from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { z } from 'zod'
import { type Change, changeBetween, type Reading, readMetrics } from '../history/reading.ts'
import type { NodeAddress } from './cluster.ts'
import { DERIVE_LIMITS, deriveShard, type ShardMemory, significant } from './derive.ts'
import {
  createDiscovery,
  DISCOVERY,
  type DiscoveryConfig,
  isNamed,
  type NamedBy,
  originOf,
  type RegistryState,
  readAnswer,
} from './discovery.ts'
import type { KnownNode } from './known.ts'
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
  /** What is to be remembered over a restart. */
  known(): readonly KnownNode[]
  /** Who names a node, by the last look. Undefined: it is not known. */
  namedBy(node: Pick<NodeAddress, 'shard' | 'id'>): NamedBy | undefined
  forget(node: Pick<NodeAddress, 'shard' | 'id'>): void
  /**
   * Resolves after the first look for nodes.
   *
   * @param remembered nodes of the process before this one
   */
  start(remembered: readonly KnownNode[]): Promise<void>
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
  by: NamedBy
  /** When somebody last named it. */
  namedAt: number
  /** What it was when it last answered. */
  role: ViewRole | undefined
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
  const keyOf = ({ shard, id }: Pick<NodeAddress, 'shard' | 'id'>) => `${shard}/${id}`

  const roundMs = () => COLLECTOR.roundMs * (nodes.size > COLLECTOR.manyNodes ? 2 : 1)

  async function look(): Promise<void> {
    const found = await discovery.look([...nodes.values()])
    if (isStopped) return
    const now = clock.monotonicMs()
    const keys = new Set(found.map(({ address }) => keyOf(address)))
    for (const [at, { address, by }] of found.entries()) {
      const known = nodes.get(keyOf(address))
      if (known) {
        if (isMoved(known.seen.address, address)) known.seen = { ...known.seen, address }
        known.by = by
        // What a registry that is down told last names nobody anew.
        if (by !== 'memory' && (by !== 'registry' || discovery.registry().isUp)) known.namedAt = clock.wallMs()
        continue
      }
      // Forgotten while it was looked for.
      if (by === 'memory') continue
      // Spread over the round, so that nodes are not all asked at once.
      const nextAt = now + (roundMs() * at) / Math.max(1, found.length)
      watch(nothingSeen(address), { by, namedAt: clock.wallMs(), role: undefined, nextAt })
    }
    for (const [key, { seen }] of nodes) {
      if (keys.has(key)) continue
      drop(seen.address)
      log.info({ shard: seen.address.shard, node: seen.address.id }, 'node is no longer known')
    }
  }

  function watch(seen: Seen, more: Pick<Watched, 'by' | 'namedAt' | 'role' | 'nextAt'>): void {
    const { address } = seen
    const watched: Watched = { seen, ...more, figuresAt: 0, codecsAt: 0, isBusy: false, reading: undefined }
    nodes.set(keyOf(address), watched)
    stateOf(address.shard).nodes.set(address.id, watched)
    touch(address.shard)
  }

  function drop(node: Pick<NodeAddress, 'shard' | 'id'>): void {
    nodes.delete(keyOf(node))
    stateOf(node.shard).nodes.delete(node.id)
    touch(node.shard)
  }

  /** Those that the configured list named alone, and names no more, are not taken up again. */
  function remember(remembered: readonly KnownNode[]): void {
    const listed = new Set(config.nodes.map(originOf))
    for (const { address, isListed, role, namedAt, answeredAt } of remembered) {
      if (isListed && !listed.has(address.apiUrl)) continue
      const before = answeredAt === undefined ? undefined : { at: answeredAt, role }
      watch({ ...nothingSeen(address), before }, { by: 'memory', namedAt, role, nextAt: 0 })
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
    // Where another node answers, its health is none of this one's.
    const isOther = () => watched.seen.error?.code === OTHER_NODE
    if (isOther() && !(await tell(watched, '/cluster/info'))) return
    if (!(await tell(watched, '/healthz'))) return
    const now = clock.monotonicMs()
    const isFigures = now >= watched.figuresAt || watched.seen.health?.value !== before
    if (!watched.seen.isStandalone) {
      await tell(watched, '/cluster/info')
      // All that these tell stands in there as well: where it is answered they are looked at less often.
      for (const path of ['/node-info', '/leader', '/peers'] as const) {
        if (isOther()) return
        if ((isFigures || watched.seen.info === undefined) && !watched.seen.isStandalone) await tell(watched, path)
      }
    }
    if (isFigures) {
      watched.figuresAt = now + COLLECTOR.figuresMs
      await tell(watched, '/status')
      if (isOther()) return
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
      const source = sourceOf(reply, now)
      watched.seen = {
        ...watched.seen,
        ...told,
        missed: 0,
        answeredAt: now,
        error: undefined,
        // The text that is there already: else each answer would outlive many others, and be collected late.
        sources: { ...watched.seen.sources, [path]: isSame ? { ...source, body: kept.body } : source },
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
    if (code === OTHER_NODE) return failAsOther(watched, path, source)
    const isAnswer = code === 'garbage' || code === 'status' || code === 'not-allowed'
    const isRound = !isAnswer && (path === '/healthz' || seen.error?.code === OTHER_NODE)
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

  /** It is not where it was looked for, and so does not answer, whatever came from there. */
  function failAsOther(watched: Watched, path: SourcePath, source: Source): void {
    const { address, sources, info, nodeInfo, before } = watched.seen
    const at = info?.at ?? nodeInfo?.at
    watched.seen = {
      ...nothingSeen(address),
      sources: { ...sources, [path]: source },
      before: at === undefined ? before : { at, role: watched.role },
      error: source.error,
      missed: DERIVE_LIMITS.missedRounds,
    }
    discovery.forget(address)
    touch(address.shard)
  }

  /** @throws NodeHttpError garbage, other-node */
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
        if (value.mode === 'standalone') sameNode(seen.address, seen.address.id, value.shard_id)
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
    const { connectionsLimit } = reading
    const cpu = rounded(change?.cpu ?? null) ?? undefined
    return { rates: rates ? { value: rates, at: now } : undefined, cpu, connectionsLimit }
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
    for (const watched of members) keepLast(watched, view, now)
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
    known: () =>
      [...nodes.values()]
        .filter(({ seen }) => isNamed(seen.address))
        .map(({ seen, by, namedAt, role }) => ({
          ...{ address: seen.address, isListed: by === 'list', role, namedAt },
          answeredAt: seen.answeredAt ?? seen.before?.at,
        })),
    namedBy: (node) => nodes.get(keyOf(node))?.by,
    forget(node) {
      drop(node)
      derive(node.shard)
    },
    async start(remembered) {
      remember(remembered)
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

/** Of what was derived, what later looks go back to: how far it was behind, and what it was. */
function keepLast(watched: Watched, view: ShardView, now: number): void {
  const node = view.nodes.find(({ id }) => id === watched.seen.address.id)
  if (node && node.role !== 'unknown') watched.role = node.role
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

const OTHER_NODE = 'other-node'

function isMoved(from: NodeAddress, to: NodeAddress): boolean {
  return (
    from.apiUrl !== to.apiUrl ||
    from.zone !== to.zone ||
    from.tcp?.port !== to.tcp?.port ||
    from.tcp?.host !== to.tcp?.host
  )
}

/** Behind an address may stand another node than the one that is looked for. */
function sameNode(address: NodeAddress, id: string, shard: string): void {
  if (!isNamed(address) || (address.id === id && address.shard === shard)) return
  const told = `${parseId(shard) ?? 'another shard'}/${parseId(id) ?? 'another node'}`
  throw new NodeHttpError(OTHER_NODE, `${told} answers at the address of ${address.shard}/${address.id}`)
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
