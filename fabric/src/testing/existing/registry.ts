/**
 * A stand-in for an existing registry and resolver: the endpoints, answers and version rules that are observed, and
 * nothing else. No epoch, ETag, long poll, deregistration or answer bodies.
 */

import { asJson, type PlainAnswer, type PlainRequest, servePlain } from './http.ts'

type Component = { zone: string; shard: string; seenMs: number }

type Kind = 'router' | 'bridge' | 'node'

export type ExistingRegistry = {
  readonly url: string
  readonly addr: string
  /** Method and URL of each request, in order. */
  readonly requests: readonly string[]
  readonly routers: ReadonlyMap<string, Component>
  register(kind: Kind, id: string, zone: string, shard?: string): void
  expire(kind: Kind, id: string): void
  push(shard: string, zone: string, segments: readonly string[]): void
  /** Forgets everything, as after a restart without its file. */
  readonly reset: () => void
  readonly close: () => Promise<void>
}

type State = {
  readonly codecs: readonly string[]
  readonly timeoutMs: number
  readonly routers: Map<string, Component>
  readonly bridges: Map<string, Component>
  readonly nodes: Map<string, Component>
  readonly segments: Map<string, { zone: string; list: readonly string[] }>
  readonly versions: Map<string, number>
  globalVersion: number
}

/** Without a host it listens on a free port of 127.0.0.1. */
export async function startExistingRegistry(
  options: { readonly host?: string; readonly codecs?: readonly string[]; readonly timeoutMs?: number } = {},
): Promise<ExistingRegistry> {
  const { host = '127.0.0.1', codecs = ['breakfast', 'Free_WiFi'], timeoutMs = 60_000 } = options
  const state: State = {
    codecs,
    timeoutMs,
    routers: new Map(),
    bridges: new Map(),
    nodes: new Map(),
    segments: new Map(),
    versions: new Map(),
    globalVersion: 0,
  }
  const server = await servePlain(host, options.host === undefined ? 0 : 8080, (request) => answer(state, request))
  const timer = setInterval(() => expire(state), Math.min(5_000, state.timeoutMs / 4))
  return {
    url: server.url,
    addr: `${host}:${server.port}`,
    requests: server.requests,
    routers: state.routers,
    register: (kind, id, zone, shard) => void register(state, { kind, id, zone, shard }),
    push: (shard, zone, segments) => void publish(state, shard, { zone, segments }),
    expire(kind, id) {
      const [components, keyOf] = listsOf(state)[kind]
      const gone = components.get(id)
      if (gone && components.delete(id)) bump(state, keyOf(gone))
    },
    reset() {
      for (const map of [state.routers, state.bridges, state.nodes, state.segments, state.versions]) map.clear()
      state.globalVersion = 0
    },
    close() {
      clearInterval(timer)
      return server.close()
    },
  }
}

function bump(state: State, key: string): void {
  state.versions.set(key, (state.versions.get(key) ?? 0) + 1)
  state.globalVersion++
}

function answer(state: State, { method, path, body, type }: PlainRequest): PlainAnswer {
  const [what = '', id = '', part = ''] = path.slice(1).split('/').map(decodeURIComponent)
  const route = `${method} /${[what, id && '*', part].filter(Boolean).join('/')}`
  switch (route) {
    case 'GET /health':
      return { status: 200, body: 'OK' }
    case 'GET /codecs':
      return { status: 200, type: 'application/json', body: codecsBody(state) }
    case 'GET /versions':
      return asJson({ global_version: state.globalVersion, versions: Object.fromEntries(state.versions) })
    case 'POST /register':
      return withBody(type, body, (value) => register(state, value))
    case 'POST /shards/*/segments':
      return withBody(type, body, (value) => publish(state, id, value))
    case 'GET /zones/*/routers':
    case 'GET /zones/*/segments':
    case 'GET /zones/*/shards':
    case 'GET /shards/*/segments':
    case 'GET /shards/*/nodes':
      return list(state, `${what}/${id}/${part}`, id)
    default:
      return { status: ['/register', '/versions', '/codecs'].includes(path) ? 405 : 404 }
  }
}

/** The hash of the list is not needed by anything that the tests run; a number above 2^53 is. */
function codecsBody({ codecs }: State): string {
  return `{"rate_features":${JSON.stringify(codecs)},"hash":2287399612289297935}`
}

function withBody(type: string, body: string, use: (value: { readonly [name: string]: unknown }) => PlainAnswer) {
  if (!type.startsWith('application/json')) return { status: 415, body: 'Expected request with JSON' }
  try {
    return use(JSON.parse(body))
  } catch {
    return { status: 400, body: 'Failed to parse the request body as JSON' }
  }
}

const isText = (value: unknown) => typeof value === 'string'

function register(state: State, { kind, id, zone, shard }: { readonly [name: string]: unknown }): PlainAnswer {
  if (!isText(kind) || !isText(id) || !isText(zone)) return { status: 422, body: 'missing field' }
  if (shard !== null && shard !== undefined && !isText(shard)) return { status: 422, body: 'shard: invalid type' }
  const now: Component = { zone: zone as string, shard: (shard ?? '') as string, seenMs: Date.now() }
  const key = id as string
  if (kind !== 'router' && kind !== 'bridge' && kind !== 'node')
    return asJson({ error: `unknown registration kind: ${kind}` }, 400)
  if (kind !== 'router' && now.shard === '') return asJson({ error: `shard is required for ${kind}` }, 400)
  const [components, keyOf] = listsOf(state)[kind]
  const before = components.get(key)
  components.set(key, now)
  // A list of a zone also changes for another shard.
  if (before && keyOf(before) === keyOf(now) && (kind !== 'bridge' || before.shard === now.shard))
    return { status: 200 }
  bump(state, keyOf(now))
  if (before) bump(state, keyOf(before))
  return { status: 200 }
}

function zoneSegments({ segments }: State, zone: string): string[] {
  const all = [...segments.values()].filter((each) => each.zone === zone).flatMap((each) => each.list)
  return [...new Set(all)].sort()
}

function publish(state: State, shard: string, value: { readonly [name: string]: unknown }): PlainAnswer {
  const { zone, segments } = value
  if (!isText(zone) || !Array.isArray(segments) || !segments.every(isText))
    return { status: 422, body: 'missing field' }
  const next = [...new Set(segments as string[])].sort()
  const before = state.segments.get(shard)
  if (before && before.zone === zone && before.list.join('\n') === next.join('\n')) return { status: 200 }
  const zones = new Set([zone as string, ...(before ? [before.zone] : [])])
  const was = new Map([...zones].map((each) => [each, zoneSegments(state, each).join('\n')]))
  state.segments.set(shard, { zone: zone as string, list: next })
  bump(state, `shards/${shard}/segments`)
  for (const [each, text] of was)
    if (zoneSegments(state, each).join('\n') !== text) bump(state, `zones/${each}/segments`)
  return { status: 200 }
}

function list(state: State, key: string, id: string): PlainAnswer {
  const version = state.versions.get(key) ?? 0
  const part = key.slice(key.lastIndexOf('/') + 1)
  if (key.startsWith('zones/')) {
    if (part === 'segments') return asJson({ version, segments: zoneSegments(state, id) })
    if (part === 'routers') return asJson({ version, routers: idsOf(state.routers, ({ zone }) => zone === id) })
    const shards: { [shard: string]: { bridges: string[] } } = {}
    for (const bridge of idsOf(state.bridges, ({ zone }) => zone === id)) {
      const { shard } = state.bridges.get(bridge) as Component
      shards[shard] ??= { bridges: [] }
      shards[shard].bridges.push(bridge)
    }
    return asJson({ version, shards })
  }
  if (part === 'segments') {
    const found = state.segments.get(id)
    return found ? asJson({ version, zone: found.zone, segments: found.list }) : asJson({ error: 'unknown shard' }, 404)
  }
  const nodes = idsOf(state.nodes, ({ shard }) => shard === id)
  return nodes.length > 0 ? asJson({ version, nodes }) : asJson({ error: 'unknown shard' }, 404)
}

function idsOf(components: ReadonlyMap<string, Component>, isWanted: (component: Component) => boolean): string[] {
  return [...components].flatMap(([id, component]) => (isWanted(component) ? [id] : [])).sort()
}

/** The components of each kind, and the list that names one of them. */
function listsOf({ routers, bridges, nodes }: State) {
  return {
    router: [routers, ({ zone }: Component) => `zones/${zone}/routers`],
    bridge: [bridges, ({ zone }: Component) => `zones/${zone}/shards`],
    node: [nodes, ({ shard }: Component) => `shards/${shard}/nodes`],
  } as const
}

/** Bumps each list once, however many of its components are gone. */
function expire(state: State): void {
  const changed = new Set<string>()
  const sweep = (components: Map<string, Component>, keyOf: (component: Component) => string) => {
    for (const [id, component] of components) {
      if (Date.now() - component.seenMs <= state.timeoutMs) continue
      components.delete(id)
      changed.add(keyOf(component))
    }
  }
  for (const [components, keyOf] of Object.values(listsOf(state))) sweep(components, keyOf)
  for (const key of changed) bump(state, key)
}

/** Answers each id with a bare host and no port. */
export function startExistingResolver(host: string, hosts: ReadonlyMap<string, string>) {
  return servePlain(host, 9090, ({ path }) => {
    const found = hosts.get(decodeURIComponent(path.slice(path.lastIndexOf('/') + 1)))
    return found === undefined ? { status: 404 } : { status: 200, body: `${found}\n` }
  })
}
