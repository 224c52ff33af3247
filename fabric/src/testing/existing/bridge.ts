/**
 * A stand-in for an existing bridge: discovery by majority of leader ids, separate pools for leader and followers that
 * never lose a node, one frame at a time per connection, `500` and a closed connection on every error.
 */

import { callPlain, readPlain, repeat, resolvePlain } from './http.ts'
import {
  malformedError,
  openUpstream,
  pause,
  type SerialReply,
  type SerialRequest,
  sendUpstream,
  serveSerial,
  type Upstream,
  withId,
} from './serial.ts'

export type ExistingBridgeOptions = {
  readonly host: string
  readonly registry: string
  readonly resolver: string
  readonly id: string
  readonly zone: string
  readonly shard: string
  /** 10 s in existing bridges. */
  readonly heartbeatMs?: number
}

export type ExistingBridge = { readonly leader: () => string | undefined; readonly close: () => Promise<void> }

type State = {
  readonly options: ExistingBridgeOptions
  seen: readonly string[]
  leaderHost: string | undefined
  leader: Upstream | undefined
  readonly followers: Map<string, Upstream>
  turn: number
  isClosed: boolean
}

type Probe = {
  readonly id: string
  readonly host: string
  readonly health: string
  readonly leader: string
  readonly peers: readonly string[]
}

const PORTS = { listen: 9000, tcp: 7777, api: 8080 }
const TICK_MS = 300
const ROUND_MS = 2_000
/** No timeout in effect: the flag is not applied. */
const NEVER_MS = 2 ** 31 - 1

export async function startExistingBridge(options: ExistingBridgeOptions): Promise<ExistingBridge> {
  const state: State = {
    options,
    seen: [],
    leaderHost: undefined,
    leader: undefined,
    followers: new Map(),
    turn: 0,
    isClosed: false,
  }
  const { id, zone, shard, registry, heartbeatMs = 10_000 } = options
  const server = await serveSerial(options.host, PORTS.listen, (request) => serve(state, request))
  let roundMs = Number.NEGATIVE_INFINITY
  const loops = [
    repeat(heartbeatMs, async () => {
      const body = { kind: 'bridge', id, zone, shard }
      await callPlain(`${registry}/register`, { method: 'POST', body }).catch(() => undefined)
    }),
    repeat(TICK_MS, async () => {
      const isUrgent = state.leader?.state !== 'open' || ![...state.followers.values()].some(isOpen)
      if (!isUrgent && performance.now() - roundMs < ROUND_MS) return
      roundMs = performance.now()
      await round(state)
    }),
  ]
  return {
    leader: () => state.leaderHost,
    async close() {
      state.isClosed = true
      await Promise.all(loops.map((loop) => loop.stop()))
      await server.close()
      for (const upstream of [state.leader, ...state.followers.values()]) upstream?.socket.destroy()
    },
  }
}

function isOpen({ state }: Upstream): boolean {
  return state === 'open'
}

async function round(state: State): Promise<void> {
  const { registry, shard } = state.options
  let found = await probeAll(state, state.seen)
  if (found.length === 0) {
    const body = await readPlain<{ nodes: string[] }>(`${registry}/shards/${encodeURIComponent(shard)}/nodes`)
    found = await probeAll(state, body?.nodes ?? [])
  }
  const known = new Set(found.map(({ id }) => id))
  const others = new Set(found.flatMap(({ peers }) => peers).filter((id) => !known.has(id)))
  found = [...found, ...(await probeAll(state, [...others]))]
  const votes = new Map<string, number>()
  for (const { leader } of found) if (leader !== '') votes.set(leader, (votes.get(leader) ?? 0) + 1)
  const [elected] = [...votes].sort(([, a], [, b]) => b - a)[0] ?? []
  const leader = found.find(({ health, leader: named }) => health === 'active_leader' && named === elected)
  if (leader === undefined || state.isClosed) return
  state.seen = found.map(({ id }) => id)
  if (state.leaderHost !== leader.host || state.leader?.state === 'closed') {
    state.leader?.socket.destroy()
    state.leaderHost = leader.host
    state.leader = openUpstream(leader.host, PORTS.tcp)
  }
  for (const { host, health, leader: named } of found) {
    if (health !== 'active_follower' || named !== elected) continue
    if (state.followers.get(host)?.state !== 'open') state.followers.set(host, openUpstream(host, PORTS.tcp))
  }
}

async function probeAll(state: State, ids: readonly string[]): Promise<readonly Probe[]> {
  const probes = await Promise.all(ids.map((id) => probe(state, id)))
  return probes.filter((each) => each !== undefined)
}

async function probe({ options }: State, id: string): Promise<Probe | undefined> {
  const { resolver, shard } = options
  const host = await resolvePlain(resolver, `/shards/${encodeURIComponent(shard)}/nodes/${encodeURIComponent(id)}`)
  if (host === undefined) return undefined
  const api = `http://${host}:${PORTS.api}`
  const health = await callPlain(`${api}/healthz`).catch(() => undefined)
  if (health?.status !== 200 || health.text.trim() === 'unavailable') return undefined
  const info = await readPlain<{ leader_id: string }>(`${api}/node-info`)
  if (typeof info?.leader_id !== 'string') return undefined
  const peers = (await readPlain<string[]>(`${api}/peers`)) ?? []
  return { id, host, health: health.text.trim(), leader: info.leader_id, peers }
}

async function serve(state: State, request: SerialRequest): Promise<SerialReply> {
  const { id, inner, isWrite, segment } = request
  if (segment === '__keepalive__') return undefined
  for (const waitMs of [0, 100, 150]) {
    if (waitMs > 0) await pause(waitMs)
    const pool = isWrite ? [state.leader] : [...state.followers.values()]
    const live = pool.filter((each) => each !== undefined).filter(isOpen)
    const upstream = live[state.turn++ % live.length]
    if (upstream === undefined) continue
    const outcome = await sendUpstream(upstream, request, inner, NEVER_MS)
    if (Buffer.isBuffer(outcome)) return { frame: withId(outcome, id) }
    // A follower that dies with a request leaves it without a reply, and the connection with it.
    if (!isWrite) return new Promise(() => {})
  }
  return { frame: malformedError(id, '500'), closes: true }
}
