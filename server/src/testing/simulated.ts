/**
 * A simulated cluster: every node has a real listener and serves the paths of the contract from one model, with a
 * registry in front. Faults are injected with `act`; the same seed gives the same cluster.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createCodecList } from '@vacancy/shared'
import { CLUSTER_TEXTS, type ClusterInfo, type NodeStatus } from '@vacancy/shared/contract'
import { listen } from '@vacancy/testkit/listen'
import { seeded, type Uniform } from '@vacancy/testkit/random'
import { statusOf as usualStatus } from './observed-nodes.ts'
import { SEGMENTS_PER_SHARD, type SimFabric, segmentsOf, send, startSimFabric } from './simulated-fabric.ts'
import { simulatedStayMetrics, simulatedStays } from './simulated-stays.ts'
import { createSimWire, type SimWire } from './simulated-wire.ts'

const TICK_MS = 25
const ELECTION_MS = 1_800
const TRANSFER_MS = 60
const BODY_BYTES_MAX = 65_536
const SIM_CODECS = ['breakfast', 'refundable', 'sea_view']
const DAY_MS = 86_400_000
const CORES = 8

export type SimPlan = {
  readonly nodes: number
  readonly shards: number
  readonly zones: number
  readonly seed: number
  /** Learners per shard in addition to its voters. */
  readonly learners?: number
  /** Routers, bridges and a proxy that answer, one of each for a zone or shard. */
  readonly fabric?: boolean
  /** The nodes of a shard are in different zones instead of one. */
  readonly spread?: boolean
}

/** How a node responds, independent of its state. */
type Fault = 'none' | 'stopped' | 'silent' | 'garbage'

type SimNode = {
  readonly zone: string
  readonly id: string
  readonly shard: SimShard
  port: number
  /** Of the wire protocol. */
  tcpPort: number
  close: () => Promise<void>
  fault: Fault
  delayMs: number
  /** Answers over HTTP, and nothing to clients. */
  isDeaf: boolean
  /** Partitioned from the other nodes but reachable for clients: it cannot lead, and keeps its last known leader and term. */
  believes: { leader: string; term: number } | undefined
  isVoter: boolean
  lagEntries: number
  /** Its state differs from the other nodes of its shard. */
  isDivergent: boolean
  /** Entries per second by which it catches up. */
  catchUp: number
  coresNow: number
  codecs: readonly string[]
  startedAt: number
  readonly memoryBytes: number
  queries: number
  /** Queries that took long, a part of all. */
  slowQueries: number
  isSlow: boolean
  writes: number
}

type SimShard = {
  readonly id: string
  readonly zone: string
  readonly nodes: SimNode[]
  leader: string
  term: number
  commit: number
  readonly writesPerSecond: number
  readonly queriesPerSecond: number
  readonly packages: number
  /** When the running election ends. */
  electsAt: number | undefined
  /** Properties with an oversold night. */
  oversold: readonly string[]
  /** How the next change is handled. */
  next:
    | { readonly how: 'normal' }
    | { readonly how: 'never' }
    | { readonly how: 'elsewhere'; readonly node: string }
    | {
        readonly how: 'refuse'
        readonly status: number
        readonly text: string
        /** This change only; undefined: any. */
        readonly kind: string | undefined
      }
    | { readonly how: 'hang' }
  /** Received changes, to check that none was sent twice. */
  readonly requests: string[]
  lastOperation: ClusterInfo['last_operation']
}

export type Simulated = {
  readonly registryUrl: string
  readonly shards: readonly SimShard[]
  readonly fabric: SimFabric | undefined
  readonly node: (shard: string, id: string) => SimNode
  /** Executes `POST /sim/{verb}`. Throws an Error with the reason. */
  readonly act: (verb: string, body: SimAct) => void | Promise<void>
  readonly scenario: (name: string) => Promise<void>
  readonly close: () => Promise<void>
}

type SimAct = {
  readonly shard?: string
  readonly node?: string
  readonly milliseconds?: number
  readonly entries?: number
  readonly perSecond?: number
  readonly status?: number
  readonly text?: string
  /** The change to refuse. */
  readonly kind?: string
  readonly cores?: number
  /** Of the fabric. */
  readonly component?: string
}

export const SCENARIOS = [
  'lag',
  'no-leader',
  'quorum-lost',
  'split',
  'flap',
  'slow-node',
  'partial',
  'codec-mismatch',
  'divergence',
  'cores-changed',
  'oversold',
] as const

export async function startSimulated(plan: SimPlan): Promise<Simulated> {
  const random = seeded(plan.seed)
  const shards = makeShards(plan, random, Date.now())
  const nodes = shards.flatMap((shard) => shard.nodes)
  let flapping: NodeJS.Timeout | undefined
  let last = performance.now()

  for (let at = 0; at < nodes.length; at += 100) await Promise.all(nodes.slice(at, at + 100).map(openNode))
  const fabric = plan.fabric ? await startSimFabric(shards) : undefined
  const timer = setInterval(() => {
    const now = performance.now()
    for (const shard of shards) turn(shard, (now - last) / 1000)
    last = now
  }, TICK_MS)

  const find = (shard: string | undefined, id: string | undefined): SimNode => {
    const node = nodes.find((each) => each.shard.id === shard && each.id === id)
    if (!node) throw new Error(`there is no node ${shard}/${id}`)
    return node
  }
  const findShard = (id: string | undefined): SimShard => {
    const shard = shards.find((each) => each.id === id)
    if (!shard) throw new Error(`there is no shard ${id}`)
    return shard
  }

  const verbs = verbsOf(find, findShard, fabric)
  const act: Simulated['act'] = (verb, body) => {
    const does = verbs[verb]
    if (!does) throw new Error(`unknown verb; verbs are ${Object.keys(verbs).join(', ')}`)
    return does(body)
  }

  const registry = await listen(
    createServer((request, response) => {
      answerRegistry(request, response, shards, fabric, act).catch((error: Error) =>
        send(response, 400, { error: error.message }),
      )
    }),
  )
  return {
    fabric,
    registryUrl: `http://127.0.0.1:${registry.port}`,
    shards,
    node: find,
    act,
    scenario: (name) =>
      begin(name, shards, act, (follower) => {
        flapping = setInterval(() => void turnOver(follower), FLAP_MS)
      }),
    async close() {
      clearInterval(timer)
      clearInterval(flapping)
      await fabric?.close()
      await Promise.all([...nodes, registry].map((each) => each.close()))
    },
  }
}

type Verbs = { readonly [verb: string]: (body: SimAct) => void | Promise<void> }

function verbsOf(
  find: (shard: string | undefined, id: string | undefined) => SimNode,
  findShard: (id: string | undefined) => SimShard,
  fabric: SimFabric | undefined,
): Verbs {
  const set = (body: SimAct, change: Partial<SimNode>) => void Object.assign(find(body.shard, body.node), change)
  const setNext = (body: SimAct, next: SimShard['next']) => void Object.assign(findShard(body.shard), { next })

  return {
    stop: (body) => stopNode(find(body.shard, body.node)),
    start: (body) => startNode(find(body.shard, body.node)),
    silent: (body) => set(body, { fault: 'silent' }),
    // Answers over HTTP, and nothing to clients.
    deaf: (body) => set(body, { isDeaf: true }),
    garbage: (body) => set(body, { fault: 'garbage' }),
    heal(body) {
      const node = find(body.shard, body.node)
      Object.assign(node, {
        fault: node.fault === 'stopped' ? 'stopped' : 'none',
        delayMs: 0,
        isDeaf: false,
        believes: undefined,
      })
    },
    // How late it answers over HTTP; then how long its searches take, as its metrics report.
    delay: (body) => set(body, { delayMs: body.milliseconds ?? 500 }),
    slow: (body) => set(body, { isSlow: true }),
    fast: (body) => set(body, { isSlow: false }),
    partition(body) {
      const node = find(body.shard, body.node)
      node.believes = { leader: node.shard.leader, term: node.shard.term }
    },
    lag(body) {
      const node = find(body.shard, body.node)
      node.lagEntries = body.entries ?? 12_400
      node.catchUp = body.perSecond ?? 0
    },
    cores: (body) => set(body, { coresNow: body.cores ?? 6 }),
    codecs: (body) => set(body, { codecs: ['breakfast', 'sea_view', 'refundable'] }),
    diverge: (body) => set(body, { isDivergent: true }),
    agree: (body) => set(body, { isDivergent: false }),
    elsewhere: (body) => setNext(body, { how: 'elsewhere', node: find(body.shard, body.node).id }),
    never: (body) => setNext(body, { how: 'never' }),
    hang: (body) => setNext(body, { how: 'hang' }),
    refuse: ({ status = 409, text = 'another membership operation is running', kind, ...body }) =>
      setNext(body, { how: 'refuse', status, text, kind }),
    normal: (body) => setNext(body, { how: 'normal' }),
    'stop-component': ({ component = '' }) => fabric?.stop(component),
    'start-component': ({ component = '' }) => fabric?.start(component),
    lead(body) {
      const node = find(body.shard, body.node)
      lead(node.shard, node.id)
    },
  }
}

const FLAP_MS = 6_000

function turnOver(node: SimNode): void | Promise<void> {
  return node.fault === 'stopped' ? startNode(node) : stopNode(node)
}

/** @param flap stops and starts a node again and again */
async function begin(
  name: string,
  shards: readonly SimShard[],
  act: Simulated['act'],
  flap: (follower: SimNode) => void,
): Promise<void> {
  const first = shards[0] as SimShard
  const last = shards.at(-1) as SimShard
  const followers = first.nodes.filter(({ id, isVoter }) => isVoter && id !== first.leader)
  const [follower] = followers as [SimNode]
  switch (name as (typeof SCENARIOS)[number]) {
    case 'lag':
      return void act('lag', { shard: first.id, node: follower.id, entries: 12_400 })
    case 'no-leader':
      return partitionAll(first)
    case 'quorum-lost':
      for (const node of followers) await stopNode(node)
      return
    case 'split':
      await act('partition', { shard: first.id, node: first.leader })
      return
    case 'flap':
      return flap(follower)
    case 'slow-node':
      follower.delayMs = 600
      return
    case 'partial':
      for (const shard of shards.slice(0, Math.max(1, Math.floor(shards.length / 10))))
        (shard.nodes.at(-1) as SimNode).fault = 'silent'
      return
    case 'codec-mismatch':
      return void act('codecs', { shard: first.id, node: follower.id })
    case 'divergence':
      return void act('diverge', { shard: first.id, node: follower.id })
    case 'oversold':
      return void Object.assign(first, { oversold: ['hotel_123', 'hotel_124'] })
    case 'cores-changed': {
      const node = last.nodes.at(-1) as SimNode
      node.coresNow = CORES - 2
      setTimeout(() => void stopNode(node), 12_000)
      return
    }
  }
  throw new Error(`--scenario must be one of ${SCENARIOS.join(', ')}`)
}

/** A majority is up but every node is partitioned from every other one. */
function partitionAll({ nodes, term }: SimShard): void {
  for (const node of nodes) node.believes = { leader: '', term: term + 1 }
}

function makeShards(plan: SimPlan, random: Uniform, began: number): SimShard[] {
  const perShard = Math.max(1, Math.floor(plan.nodes / plan.shards))
  let spare = plan.nodes - perShard * plan.shards
  return Array.from({ length: plan.shards }, (_, at) => {
    const shard: SimShard = {
      id: `s${at + 1}`,
      zone: `zone-${(at % plan.zones) + 1}`,
      nodes: [],
      leader: '',
      term: 1 + Math.floor(random() * 50),
      commit: Math.floor(random() * 5_000_000) + 10_000,
      writesPerSecond: Math.floor(random() * 400),
      queriesPerSecond: Math.floor(random() * 20_000),
      packages: Math.floor(random() * 60_000_000),
      electsAt: undefined,
      oversold: [],
      next: { how: 'normal' },
      requests: [],
      lastOperation: null,
    }
    const count = perShard + (spare-- > 0 ? 1 : 0)
    const voters = count - (plan.learners ?? (count > 3 && count % 2 === 0 ? 1 : 0))
    for (let node = 0; node < count; node++) {
      const zone = plan.spread ? `zone-${((at + node) % plan.zones) + 1}` : shard.zone
      shard.nodes.push(makeNode(shard, node, { zone, isVoter: node < voters }, random, began))
    }
    shard.leader = (shard.nodes[Math.floor(random() * voters)] as SimNode).id
    return shard
  })
}

function makeNode(
  shard: SimShard,
  at: number,
  { zone, isVoter }: { readonly zone: string; readonly isVoter: boolean },
  random: Uniform,
  began: number,
): SimNode {
  return {
    id: `n${at + 1}`,
    shard,
    zone,
    port: 0,
    tcpPort: 0,
    close: async () => {},
    fault: 'none',
    delayMs: 0,
    isDeaf: false,
    believes: undefined,
    isVoter,
    lagEntries: 0,
    isDivergent: false,
    catchUp: 0,
    coresNow: CORES,
    codecs: SIM_CODECS,
    startedAt: began - Math.floor(random() * 30 * DAY_MS),
    memoryBytes: Math.floor((0.5 + random() * 3) * 2 ** 30),
    queries: 0,
    slowQueries: 0,
    isSlow: false,
    writes: 0,
  }
}

async function openNode(node: SimNode): Promise<void> {
  const server = createServer((request, response) => {
    answer(node, request, response).catch((error: Error) => send(response, 400, { error: error.message }))
  })
  server.keepAliveTimeout = 60_000
  const [http, wire] = await Promise.all([
    listen(server, node.port),
    listen(createSimWire({ codecs: SIM_CODECS, ...wireOf(node) }), node.tcpPort),
  ])
  const close = async () => void (await Promise.all([http.close(), wire.close()]))
  Object.assign(node, { port: http.port, tcpPort: wire.port, close })
}

function wireOf(node: SimNode): Pick<SimWire, 'delayMs' | 'refusal'> {
  return {
    delayMs: () => (node.fault === 'silent' || node.isDeaf ? undefined : node.delayMs),
    refusal(isWrite) {
      if (!isWrite) return ''
      if (leaderBy(node) === '') return '503: no leader'
      return leaderBy(node) === node.id && !node.believes ? '' : '308: not the leader'
    },
  }
}

async function stopNode(node: SimNode): Promise<void> {
  if (node.fault === 'stopped') return
  node.fault = 'stopped'
  await node.close()
}

async function startNode(node: SimNode): Promise<void> {
  if (node.fault !== 'stopped') return
  node.startedAt = Date.now()
  await openNode(node)
  node.fault = 'none'
}

/** Traffic rises and falls by this share, over minutes and differently in each shard, so that charts show changes. */
const TRAFFIC_SWING = 0.35
const TRAFFIC_PERIOD_MS = 240_000

/** Advances time: commits writes, reduces lag, and elects a leader in shards without one. */
function turn(shard: SimShard, seconds: number): void {
  const leader = shard.nodes.find(({ id }) => id === shard.leader)
  const phase = performance.now() / TRAFFIC_PERIOD_MS + (shard.packages % 10) / 20
  const traffic = 1 + TRAFFIC_SWING * Math.sin(2 * Math.PI * phase)
  const isThere = (node: SimNode) => node.fault !== 'stopped' && !node.believes
  const voters = shard.nodes.filter(({ isVoter }) => isVoter)
  const there = voters.filter(isThere)
  const hasQuorum = there.length >= Math.floor(voters.length / 2) + 1
  if (leader && isThere(leader) && hasQuorum) {
    shard.electsAt = undefined
    shard.commit += traffic * shard.writesPerSecond * seconds
    leader.writes += traffic * shard.writesPerSecond * seconds
  } else if (hasQuorum) {
    shard.electsAt ??= performance.now() + ELECTION_MS
    shard.leader = ''
    if (performance.now() >= shard.electsAt) lead(shard, (there[0] as SimNode).id)
  } else {
    shard.leader = ''
  }
  for (const node of shard.nodes) {
    const queries = (traffic * shard.queriesPerSecond * seconds) / shard.nodes.length
    node.queries += queries
    if (node.isSlow) node.slowQueries += queries
    node.lagEntries = Math.max(0, node.lagEntries - node.catchUp * seconds)
  }
}

function lead(shard: SimShard, id: string): void {
  shard.leader = id
  shard.term++
  shard.commit++
  shard.electsAt = undefined
}

// Registry

async function answerRegistry(
  request: IncomingMessage,
  response: ServerResponse,
  shards: readonly SimShard[],
  fabric: SimFabric | undefined,
  act: Simulated['act'],
): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://local')
  if (request.method === 'POST' && pathname.startsWith('/sim/')) {
    await act(pathname.slice('/sim/'.length), (await bodyOf(request)) as SimAct)
    return send(response, 200, { done: true })
  }
  if (pathname === '/topology') return send(response, 200, topologyOf(shards, fabric))
  if (pathname === '/ready') return send(response, 200, { ready: true, since: '', reasons: [] })
  if (pathname.startsWith('/segments/')) return answerSegment(response, shards, decodeURIComponent(pathname.slice(10)))
  if (pathname === '/codecs') return send(response, 200, codecsOf(SIM_CODECS))
  const [, shard, id] = /^\/shards\/([^/]+)\/nodes\/([^/]+)$/.exec(pathname) ?? []
  const node = shards.find((each) => each.id === shard)?.nodes.find((each) => each.id === id)
  if (node) return send(response, 200, { host: '127.0.0.1', port: node.tcpPort, api_port: node.port })
  return send(response, 404, { error: 'unknown id' })
}

function answerSegment(response: ServerResponse, shards: readonly SimShard[], segment: string): void {
  const shard = shards.find(({ id }) => segmentsOf(id).includes(segment))
  if (!shard) return send(response, 404, { error: 'unknown segment' })
  const { id, zone } = shard
  return send(response, 200, { segment, shard: id, zone, claims: [{ shard: id, zone }] })
}

function topologyOf(shards: readonly SimShard[], fabric: SimFabric | undefined) {
  const nodes = shards.flatMap((shard) =>
    shard.nodes
      .filter(({ fault }) => fault !== 'stopped')
      .map((node) => ({
        ...{ id: node.id, zone: node.zone, shard: shard.id, age_secs: 1, version: '0.1.0' },
        role: node.id === shard.leader ? 'leader' : node.isVoter ? 'follower' : 'learner',
        api_url: `http://127.0.0.1:${node.port}`,
      })),
  )
  const rows = shards.map((shard) => [
    shard.id,
    {
      zone: shard.zone,
      term: shard.term,
      nodes: shard.nodes.map(({ id }) => id),
      bridges: [`b-${shard.id}`],
      segments: SEGMENTS_PER_SHARD,
    },
  ])
  return {
    ...{ epoch: 'simulated', global_version: 1, warming: false, heartbeat_timeout_secs: 30 },
    zones: [...new Set(shards.map(({ zone }) => zone))],
    shards: Object.fromEntries(rows),
    routers: fabric?.routers() ?? [],
    bridges:
      fabric?.bridges() ??
      shards.map((shard) => ({ id: `b-${shard.id}`, zone: shard.zone, shard: shard.id, age_secs: 2 })),
    nodes,
    segments: Object.fromEntries(shards.flatMap(({ id }) => segmentsOf(id).map((segment) => [segment, id]))),
    conflicts: [],
    versions: Object.fromEntries(shards.map(({ id }) => [`shards/${id}/segments`, 1])),
  }
}

// Nodes

async function answer(node: SimNode, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://local')
  if (node.fault === 'silent') return
  if (node.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, node.delayMs))
  if (node.fault === 'garbage') return send(response, 200, '<html>{"not": the expected', 'text/html')
  if (request.method === 'POST')
    return change(node, pathname, (await bodyOf(request)) as { [key: string]: unknown }, response)
  const { shard } = node
  const leader = leaderBy(node)
  switch (pathname) {
    case '/health':
      return send(response, 200, { status: 'ok' })
    case '/healthz': {
      const health = healthOf(node)
      return send(response, health === 'unavailable' ? 503 : 200, health, 'text/plain')
    }
    case '/node-info':
      return send(response, 200, { leader_id: leader, shard_id: shard.id, zone_id: node.zone, node_id: node.id })
    case '/leader':
      return send(response, 200, JSON.stringify(leader), 'application/json')
    case '/peers':
      return send(
        response,
        200,
        shard.nodes.map(({ id }) => id),
      )
    case '/cluster/info':
      return send(response, 200, infoOf(node))
    case '/status':
      return send(response, 200, statusOf(node))
    case '/codecs':
      return send(response, 200, codecsOf(node.codecs))
    case '/config':
      return send(response, 200, CONFIG)
    case '/metrics':
      return send(response, 200, metricsOf(node), 'text/plain; version=0.0.4')
    default:
      return send(response, 404, { error: 'not found' })
  }
}

const CONFIG = Object.fromEntries(
  Object.entries({
    raft_tick_ms: 30,
    raft_election_tick: 60,
    snapshot_interval_sec: 60,
    snapshot_trigger_count: 10_000,
    maintenance_hour: 3,
  }).map(([key, value]) => [key, { value, origin: 'default', at: '' }]),
)

function leaderBy(node: SimNode): string {
  return node.believes?.leader ?? node.shard.leader
}

function healthOf(node: SimNode): string {
  const { leader } = node.believes ?? node.shard
  if (leader === node.id) return 'active_leader'
  return node.believes && leader !== '' ? 'unavailable' : 'active_follower'
}

function infoOf(node: SimNode): ClusterInfo {
  const { shard } = node
  const commit = Math.floor(shard.commit)
  const own = Math.floor(commit - node.lagEntries)
  const isLeader = shard.leader === node.id && !node.believes
  const ids = (isVoter: boolean) => shard.nodes.filter((each) => each.isVoter === isVoter).map(({ id }) => id)
  return {
    leader_id: leaderBy(node),
    members: { voters: ids(true), learners: ids(false) },
    ...{ node_id: node.id, shard_id: shard.id, zone_id: node.zone, cluster_id: '0'.repeat(32), leader_url: '' },
    term: (node.believes ?? shard).term,
    ...{ first_index: Math.max(1, commit - 20_000), last_index: own, commit_index: own, applied_index: own },
    joint: false,
    nodes: shard.nodes.map((each) => ({
      id: each.id,
      role: each.id === shard.leader ? 'leader' : each.isVoter ? 'follower' : 'learner',
      voter: each.isVoter,
      health: !isLeader ? 'unknown' : each.fault === 'stopped' || each.believes ? 'inactive' : 'active',
      match_index: isLeader ? Math.floor(commit - each.lagEntries) : null,
      lag_entries: isLeader ? Math.floor(each.lagEntries) : null,
      lag_seconds: isLeader ? each.lagEntries / Math.max(1, shard.writesPerSecond) / 10 : null,
      host: '127.0.0.1',
    })),
    bootstrap: null,
    operation: null,
    last_operation: shard.lastOperation,
  }
}

function statusOf(node: SimNode): NodeStatus {
  const { shard } = node
  const info = infoOf(node)
  const created = new Date(Date.now() - 20_000)
  const hash = createCodecList(node.codecs).orderedHash
  const today = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10)
  return usualStatus({
    ...{ shard_id: shard.id, health: healthOf(node) as NodeStatus['health'], connections: 12, ordered_hash: hash },
    started_at: new Date(node.startedAt).toISOString(),
    uptime_seconds: Math.floor((Date.now() - node.startedAt) / 1000),
    cores: { start: CORES, now: node.coresNow },
    memory: {
      rss: node.memoryBytes,
      heap: 40 << 20,
      arraybuffers: 100 << 20,
      indexes: 100 << 20,
      packages: 400 << 20,
      free: 1 << 30,
    },
    ...{ properties: Math.floor(shard.packages / 600), packages: shard.packages, sessions: 3 },
    stays: simulatedStays(node.shard, node.writes),
    segments: ['paris', 'rome', 'oslo'].map((name) => ({ name, properties: 100, packages: 60_000 })),
    replica: {
      role: node.id === shard.leader ? 'leader' : node.isVoter ? 'follower' : 'learner',
      ...{ term: info.term, first_index: info.first_index, last_index: info.last_index },
      ...{
        commit_index: info.commit_index,
        applied_index: info.applied_index,
        lag_entries: Math.floor(node.lagEntries),
      },
    },
    wal: { bytes: 128 << 20, files: 2 },
    disk: { free_bytes: 200 * 2 ** 30, full: false },
    digest: digestOf(shard, node, info.applied_index),
    snapshot: {
      ...{
        id: `snap-${shard.id}`,
        created_at: created.toISOString(),
        shard_id: shard.id,
        last_index: info.applied_index,
        last_term: info.term,
      },
      ...{ properties: Math.floor(shard.packages / 600), packages: shard.packages, segments: 3 },
      window: { from: today(0), to: today(90) },
      ...{ codec_hash: hash, bytes: shard.packages * 2, origin: 'periodic', duration_ms: 900 },
    },
  })
}

/** Entries between two compared digests. With a smaller interval, polled digests would rarely have a common index. */
const DIGEST_SECONDS = 5

function digestOf(shard: SimShard, node: SimNode, applied: number) {
  const entries = Math.max(1, Math.floor(shard.writesPerSecond * DIGEST_SECONDS))
  const checked = Math.floor(applied / entries) * entries
  const at = (index: number) =>
    createHash('sha256').update(`${shard.id} ${index} ${node.isDivergent}`).digest('hex').slice(0, 16)
  return { value: at(applied), checked_index: checked, checked_value: at(checked) }
}

function codecsOf(names: readonly string[]) {
  const { hash, hashHex, orderedHash } = createCodecList(names)
  return { rate_features: names, hash: Number(hash), hash_hex: hashHex, ordered_hash: orderedHash }
}

function metricsOf(node: SimNode): string {
  const { shard } = node
  const queries = Math.floor(node.queries)
  const quick = Math.floor(node.queries - node.slowQueries)
  const searches = 'vacancy_command_duration_seconds_bucket{command="SEARCHAVAIL",phase="run",'
  return [
    `vacancy_commands_total{command="SEARCHAVAIL"} ${queries}`,
    `vacancy_commands_total{command="DECROOMAVL"} ${Math.floor(node.writes)}`,
    `${searches}le="0.0005"} ${Math.floor(quick * 0.6)}`,
    `${searches}le="0.005"} ${Math.floor(quick * 0.995)}`,
    `${searches}le="0.25"} ${queries}`,
    `${searches}le="+Inf"} ${queries}`,
    ...['vacancy_raft_commit_seconds', 'vacancy_wal_fsync_seconds'].flatMap((name) => [
      `${name}_bucket{le="0.002"} ${Math.floor(node.writes * 0.9)}`,
      `${name}_bucket{le="0.01"} ${Math.floor(node.writes)}`,
      `${name}_bucket{le="+Inf"} ${Math.floor(node.writes)}`,
    ]),
    `vacancy_memory_bytes{kind="rss"} ${node.memoryBytes}`,
    `vacancy_wal_bytes ${128 << 20}`,
    ...simulatedStayMetrics(shard, node.writes),
    'vacancy_tcp_connections 12',
    'vacancy_tcp_connections_limit 10000',
    `process_cpu_seconds_total ${((Date.now() - node.startedAt) / 1000) * 0.2}`,
    '',
  ].join('\n')
}

const CHANGES: { readonly [path: string]: 'transfer' | 'promote' | 'demote' } = {
  '/cluster/transfer-leader': 'transfer',
  '/cluster/promote-learner': 'promote',
  '/cluster/demote-voter': 'demote',
}

function change(
  node: SimNode,
  path: string,
  body: { readonly [key: string]: unknown },
  response: ServerResponse,
): void {
  const { shard } = node
  const kind = CHANGES[path]
  if (kind === undefined) return send(response, 404, { error: 'not found' })
  const id = String(body[kind === 'transfer' ? 'target_node_id' : 'node_id'])
  shard.requests.push(`${kind} ${id}`)
  const target = shard.nodes.find((each) => each.id === id)
  const { next } = shard
  if (next.how === 'hang') return
  if (next.how === 'refuse' && (next.kind === undefined || next.kind === kind))
    return send(response, next.status, { error: next.text })
  if (!target) return send(response, 404, { error: 'unknown node' })
  send(response, 202, CLUSTER_TEXTS[kind], 'text/plain')
  if (next.how === 'never') return
  setTimeout(() => {
    if (kind === 'transfer') lead(shard, next.how === 'elsewhere' ? next.node : id)
    else target.isVoter = kind === 'promote'
    shard.lastOperation = { kind, node: id, result: 'done', reason: '', at: new Date().toISOString() }
  }, TRANSFER_MS)
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > BODY_BYTES_MAX) throw new Error('the body is too large')
  }
  return text === '' ? {} : JSON.parse(text)
}
