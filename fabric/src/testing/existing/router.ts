/**
 * A stand-in for an existing router: it remembers versions and drops data, serves one frame at a time per connection,
 * sends a write again when a connection closes, and needs the registry at its start.
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
  successFrame,
  type Upstream,
  withId,
} from './serial.ts'

export type ExistingRouterOptions = {
  readonly mode: 'edge' | 'zone'
  readonly host: string
  readonly registry: string
  readonly resolver: string
  /** In zone mode. */
  readonly zone?: string
  readonly id?: string
  /** 10 s in existing routers. */
  readonly refreshMs: number
  /** 30 s in existing routers. */
  readonly heartbeatMs: number
}

type Hop = { readonly id: string; host: string | undefined; links: Upstream[]; turn: number; isFilling: boolean }

type State = {
  readonly options: ExistingRouterOptions
  readonly codecs: readonly string[]
  /** Dataset key → version as fetched. */
  readonly remembered: Map<string, number>
  /** By zone (edge) or shard. */
  readonly segments: Map<string, readonly string[]>
  readonly hopIds: Map<string, readonly string[]>
  readonly hops: Map<string, Hop>
  isClosed: boolean
}

const PORT = 9000
const LINKS = 4
const CHECK_MS = 500
const KEEPALIVE_MS = 15_000
const TIMEOUT_MS = 30_000

/** @throws Error when the registry cannot be reached: an existing router then exits */
export async function startExistingRouter(options: ExistingRouterOptions) {
  const { text } = await callPlain(`${options.registry}/codecs`)
  const state: State = {
    options,
    codecs: (JSON.parse(text) as { rate_features: string[] }).rate_features,
    remembered: new Map(),
    segments: new Map(),
    hopIds: new Map(),
    hops: new Map(),
    isClosed: false,
  }
  const { mode, registry, zone, id, refreshMs, heartbeatMs } = options
  const server = await serveSerial(options.host, PORT, (request) => serve(state, request))
  const loops = [
    repeat(refreshMs, () => (mode === 'edge' ? refreshEdge(state) : refreshZone(state))),
    repeat(CHECK_MS, () => checkHops(state)),
    repeat(KEEPALIVE_MS, async () => keepAlive(state)),
  ]
  if (mode === 'zone') {
    const beat = async (): Promise<void> => {
      const body = { kind: 'router', id, zone, shard: null }
      await callPlain(`${registry}/register`, { method: 'POST', body }).catch(() => undefined)
    }
    loops.push(repeat(heartbeatMs, beat))
  }
  return {
    async close() {
      state.isClosed = true
      await Promise.all(loops.map((loop) => loop.stop()))
      await server.close()
      for (const { links } of state.hops.values()) for (const { socket } of links) socket.destroy()
    },
  }
}

type Versions = { readonly versions: { readonly [key: string]: number } }

async function fetchChanged<T>(state: State, { versions }: Versions, key: string): Promise<T | undefined> {
  const version = versions[key]
  if (version === undefined || version === state.remembered.get(key)) return undefined
  const path = key.split('/').map(encodeURIComponent).join('/')
  const found = await readPlain<T>(`${state.options.registry}/${path}`, 5_000)
  if (found !== undefined) state.remembered.set(key, version)
  return found
}

async function refreshEdge(state: State): Promise<void> {
  const { segments, hopIds } = state
  const manifest = await readPlain<Versions>(`${state.options.registry}/versions`, 5_000)
  if (manifest === undefined) return
  const keys = Object.keys(manifest.versions).filter((key) => key.startsWith('zones/'))
  const zones = new Set(keys.map((key) => key.split('/')[1] as string))
  for (const zone of [...segments.keys(), ...hopIds.keys()]) {
    if (zones.has(zone)) continue
    segments.delete(zone)
    hopIds.delete(zone)
  }
  for (const zone of zones) {
    const routers = await fetchChanged<{ routers: string[] }>(state, manifest, `zones/${zone}/routers`)
    if (routers?.routers.length === 0) {
      hopIds.delete(zone)
      segments.delete(zone)
    } else if (routers) hopIds.set(zone, routers.routers)
    const list = await fetchChanged<{ segments: string[] }>(state, manifest, `zones/${zone}/segments`)
    // Without a router of the zone the list is dropped; its version is remembered.
    if (list && hopIds.has(zone)) segments.set(zone, list.segments)
  }
  learnHops(state)
}

async function refreshZone(state: State): Promise<void> {
  const { segments, hopIds } = state
  const { zone, registry } = state.options
  const manifest = await readPlain<Versions>(`${registry}/versions`, 5_000)
  if (manifest === undefined) return
  type Shards = { readonly shards: { readonly [shard: string]: { readonly bridges: readonly string[] } } }
  const found = await fetchChanged<Shards>(state, manifest, `zones/${zone}/shards`)
  const shards = Object.entries(found?.shards ?? {})
  if (shards.length > 0) {
    // A shard without a bridge is dropped with its segments, whose version is remembered.
    for (const shard of hopIds.keys()) {
      if (found?.shards[shard] !== undefined) continue
      hopIds.delete(shard)
      segments.delete(shard)
    }
    for (const [shard, { bridges }] of shards) hopIds.set(shard, bridges)
  }
  for (const shard of hopIds.keys()) {
    type List = { readonly zone: string; readonly segments: readonly string[] }
    const list = await fetchChanged<List>(state, manifest, `shards/${shard}/segments`)
    if (list?.zone === zone) segments.set(shard, list?.segments ?? [])
  }
  learnHops(state)
}

function learnHops(state: State): void {
  const wanted = new Set([...state.hopIds.values()].flat())
  for (const [id, { links }] of state.hops) {
    if (wanted.has(id)) continue
    state.hops.delete(id)
    for (const { socket } of links) socket.destroy()
  }
  for (const id of wanted) {
    if (state.hops.has(id)) continue
    const hop: Hop = { id, host: undefined, links: [], turn: 0, isFilling: false }
    state.hops.set(id, hop)
    void fill(state, hop)
  }
}

async function checkHops(state: State): Promise<void> {
  await Promise.all([...state.hops.values()].map((hop) => fill(state, hop)))
}

/** The host is resolved again only when the hop has failed and a connection to the old address failed too. */
async function fill(state: State, hop: Hop): Promise<void> {
  if (hop.isFilling || state.isClosed) return
  hop.isFilling = true
  const hadFailed = hop.links.length > 0 && hop.links.every((link) => link.state === 'closed')
  hop.links = hop.links.filter((link) => link.state !== 'closed')
  if (hop.host === undefined || hadFailed) {
    const path = state.options.mode === 'edge' ? 'routers' : 'bridges'
    hop.host = (await resolvePlain(state.options.resolver, `/${path}/${encodeURIComponent(hop.id)}`)) ?? hop.host
  }
  hop.isFilling = false
  if (hop.host === undefined || hop.host === '' || state.isClosed || state.hops.get(hop.id) !== hop) return
  while (hop.links.length < LINKS) hop.links.push(openUpstream(hop.host, PORT))
}

function keepAlive(state: State): void {
  const frame = Buffer.from('fe180000000d5f5f6b656570616c6976655f5f00ff0000000000000000', 'hex')
  for (const { links } of state.hops.values()) {
    for (const { socket, state: at } of links) if (at === 'open') socket.write(frame)
  }
}

async function serve(state: State, request: SerialRequest): Promise<SerialReply> {
  const { segment, id } = request
  switch (segment) {
    case '__keepalive__':
      return undefined
    case '__codecs__':
      return { frame: successFrame(id, [[9, Buffer.from(state.codecs.join(','))]]) }
    case 'GETSEGMENTS': {
      const names = [...state.segments.values()].flat()
      const fields = names.flatMap((name) => [[1, Buffer.from(name)] as const, [3, Buffer.alloc(4)] as const])
      return { frame: successFrame(id, fields) }
    }
    default:
      return { frame: await forward(state, request) }
  }
}

async function forward(state: State, request: SerialRequest): Promise<Buffer> {
  const { segments, hopIds } = state
  const { id, isWrite } = request
  const [via] = [...segments].find(([, names]) => names.includes(request.segment)) ?? []
  const ids = via === undefined ? undefined : hopIds.get(via)
  if (ids === undefined || ids.length === 0) return malformedError(id, '404')
  for (const waitMs of [0, 50, 100]) {
    if (waitMs > 0) await pause(waitMs)
    for (let i = 0; i < ids.length; i++) {
      const hop = state.hops.get(ids[(id + i) % ids.length] as string)
      const live = hop?.links.filter((link) => link.state === 'open') ?? []
      const link = hop && live[hop.turn++ % live.length]
      if (link === undefined) continue
      const outcome = await sendUpstream(link, request, 0, TIMEOUT_MS)
      if (Buffer.isBuffer(outcome)) return withId(outcome, id)
      if (outcome === 'timeout' && isWrite) return malformedError(id, '408')
      if (outcome === 'timeout') link.socket.destroy()
    }
  }
  return malformedError(id, '503')
}
