/** Routers, bridges and a proxy in front of simulated shards: each has a real HTTP listener and can be stopped. */

import { createServer, type Server, type ServerResponse } from 'node:http'
import { listen } from '@vacancy/testkit/listen'
import { createSimWire, type SimWire } from './simulated-wire.ts'

/** A shard as the fabric sees it. */
export type FabricShard = {
  readonly id: string
  readonly zone: string
  readonly leader: string
  readonly nodes: readonly { readonly id: string }[]
}

type Kind = 'edge' | 'router' | 'bridge' | 'proxy'

type SimComponent = {
  readonly kind: Kind
  readonly id: string
  readonly zone: string
  readonly shard: string
  /** False: it names no `api_url`. */
  hasApiUrl: boolean
  isListed: boolean
  /** The reason in `/ready`; '' when it is ready. */
  reason: string
  /** Answers nothing, and keeps the connection open. */
  isSilent: boolean
  version: string
  server: Server | undefined
  port: number
  /** Of an edge router: where it accepts clients. */
  tcpPort: number
  close: () => Promise<void>
}

export type SimFabric = {
  readonly components: readonly SimComponent[]
  /** Origins of the components that do not register. */
  readonly unregistered: readonly string[]
  component(id: string): SimComponent
  /** The lists of `GET /topology` of the registry. */
  routers(): object[]
  bridges(): object[]
  stop(id: string): Promise<void>
  start(id: string): Promise<void>
  close(): Promise<void>
}

export const SEGMENTS_PER_SHARD = 3

export function segmentsOf(shard: string): string[] {
  return Array.from({ length: SEGMENTS_PER_SHARD }, (_, at) => `${shard}-segment-${at + 1}`)
}

export async function startSimFabric(shards: readonly FabricShard[]): Promise<SimFabric> {
  const zones = [...new Set(shards.map(({ zone }) => zone))]
  const made = (kind: Kind, id: string, zone = '', shard = ''): SimComponent => ({
    ...{ kind, id, zone, shard, port: 0, tcpPort: 0, server: undefined, close: async () => {} },
    ...{ hasApiUrl: true, isListed: true, reason: '', isSilent: false, version: '0.1.0' },
  })
  const components = [
    made('edge', 'edge'),
    made('proxy', 'proxy'),
    ...zones.map((zone) => made('router', `r-${zone}`, zone)),
    ...shards.map(({ id, zone }) => made('bridge', `b-${id}`, zone, id)),
  ]
  const find = (id: string) => {
    const found = components.find((each) => each.id === id)
    if (!found) throw new Error(`there is no component ${id}`)
    return found
  }
  const listed = (kind: Kind) =>
    components
      .filter((each) => each.kind === kind && each.isListed)
      .map(({ id, zone, shard, port, hasApiUrl }) => ({
        ...{ id, zone, age_secs: 1, version: '0.1.0' },
        ...(shard !== '' && { shard }),
        ...(hasApiUrl && { api_url: `http://127.0.0.1:${port}` }),
      }))
  const fabric: Whole = {
    shards,
    startedAt: Date.now(),
    components,
    get unregistered() {
      return components
        .filter(({ kind }) => kind === 'edge' || kind === 'proxy')
        .map(({ port }) => `http://127.0.0.1:${port}`)
    },
    component: find,
    routers: () => listed('router'),
    bridges: () => listed('bridge'),
    stop: (id) => find(id).close(),
    start: (id) => open(find(id), fabric),
    async close() {
      await Promise.all(components.map((each) => each.close()))
    },
  }
  await Promise.all(components.map((each) => open(each, fabric)))
  return fabric
}

type Whole = SimFabric & { readonly shards: readonly FabricShard[]; readonly startedAt: number }

async function open(component: SimComponent, fabric: Whole): Promise<void> {
  component.server = createServer((request, response) => {
    if (!component.isSilent) answer(component, fabric, request.url ?? '/', response)
  })
  const http = await listen(component.server, component.port)
  if (component.kind !== 'edge') return void Object.assign(component, http)
  const wire = await listen(createSimWire({ codecs: [], ...wireOf(component, fabric) }), component.tcpPort)
  const close = async () => void (await Promise.all([http.close(), wire.close()]))
  Object.assign(component, { port: http.port, tcpPort: wire.port, close })
}

/** Reads need a zone router and a bridge, writes a leader, too. */
function wireOf(edge: SimComponent, fabric: Whole): Pick<SimWire, 'delayMs' | 'refusal'> {
  return {
    delayMs: () => (edge.isSilent ? undefined : 0),
    refusal(isWrite, segment) {
      const shard = fabric.shards.find(({ id }) => segmentsOf(id).includes(segment))
      if (!shard) return '404'
      const behind = fabric.components.filter(
        ({ kind, zone, shard: of }) =>
          (kind === 'router' && zone === shard.zone) || (kind === 'bridge' && of === shard.id),
      )
      if (behind.some(({ server }) => !server?.listening)) return '503: no bridge'
      return isWrite && shard.leader === '' ? '503: no leader' : ''
    },
  }
}

function answer(component: SimComponent, fabric: Whole, url: string, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(url, 'http://local')
  const { kind, id, zone, shard, reason, version } = component
  const isRouter = kind === 'edge' || kind === 'router'
  const facts =
    kind === 'proxy'
      ? { component: 'proxy', mode: 'router', version, upstream: '127.0.0.1:9000', connections: 4, in_flight: 0 }
      : {
          ...(kind === 'edge' && { tcp_port: component.tcpPort }),
          component: isRouter ? 'router' : 'bridge',
          ...{ id: kind === 'edge' ? null : id, zone: zone || null },
          ...(isRouter && { mode: kind === 'edge' ? 'edge' : 'zone', routes: 6, registry_up: true }),
          ...(kind === 'bridge' && { shard, leader: leaderOf(fabric, shard) }),
        }
  switch (pathname) {
    case '/health':
      return send(response, 200, 'OK')
    case '/ready': {
      const reasons = reason === '' ? [] : [{ name: 'leader', message: reason, since: new Date(0).toISOString() }]
      return send(response, reason === '' ? 200 : 503, { ready: reason === '', since: '', reasons, ...facts })
    }
    case '/status':
      return kind === 'proxy' ? send(response, 404, 'not found') : send(response, 200, { ...facts, version })
    case '/hops':
      return isRouter ? send(response, 200, { hops: hopsOf(component, fabric) }) : send(response, 404, '')
    case '/topology':
      return kind === 'bridge' ? send(response, 200, topologyOf(component, fabric)) : send(response, 404, '')
    case '/routes':
      return routes(component, fabric, searchParams.get('segment') ?? '', response)
    case '/metrics':
      return send(response, 200, metricsOf(component, fabric))
    default:
      return send(response, 404, { error: 'not found' })
  }
}

const linkOf = ({ id, server }: SimComponent) => ({
  ...{ id, connections: server?.listening ? 4 : 0, fault: server?.listening ? '' : 'connect ECONNREFUSED' },
})

/** Ids of the next hops: routers of all zones, or bridges of the own one. */
function nextOf({ kind, zone }: SimComponent, { components }: Whole): SimComponent[] {
  return components.filter((each) =>
    kind === 'edge' ? each.kind === 'router' : each.kind === 'bridge' && each.zone === zone,
  )
}

function hopsOf(component: SimComponent, fabric: Whole) {
  return nextOf(component, fabric).map((next) => ({
    ...{ ...linkOf(next), address: '127.0.0.1:9000', kind: 'ours', in_flight: 0, ejected_for_ms: 0 },
  }))
}

function leaderOf({ shards }: Whole, id: string): string {
  return shards.find((shard) => shard.id === id)?.leader ?? ''
}

function topologyOf({ id, zone, shard }: SimComponent, fabric: Whole) {
  const leader = leaderOf(fabric, shard)
  const nodes = fabric.shards.find((each) => each.id === shard)?.nodes.map(({ id: node }) => node) ?? []
  return {
    ...{ component: 'bridge', id, zone, shard, leader, followers: nodes.filter((node) => node !== leader) },
    nodes: nodes.map((node) => ({
      ...{ id: node, host: '127.0.0.1', tcp_port: 7777, role: node === leader ? 'leader' : 'follower', lag: 0 },
      ...{ health: node === leader ? 'active_leader' : 'active_follower', connections: 2, in_flight: 0, fault: '' },
    })),
  }
}

function routes({ kind, zone }: SimComponent, fabric: Whole, segment: string, response: ServerResponse): void {
  const shard = fabric.shards.find(({ id }) => segmentsOf(id).includes(segment))
  const isKnown = shard !== undefined && (kind === 'edge' || shard.zone === zone)
  if (!isKnown) return send(response, 404, { segment, route: 'unknown', hops: [] })
  const hops = fabric.components
    .filter((each) => (kind === 'edge' ? each.kind === 'router' && each.zone === shard.zone : each.shard === shard.id))
    .map(linkOf)
  const via = kind === 'edge' ? { zone: shard.zone } : { shard: shard.id }
  return send(response, 200, { segment, route: 'hops', ...via, hops })
}

/** 20 reads and 2 writes a second to each shard. */
function metricsOf(component: SimComponent, fabric: Whole): string {
  const { kind, shard } = component
  const seconds = (Date.now() - fabric.startedAt) / 1000
  const shards =
    kind === 'bridge' ? 1 : fabric.shards.filter(({ zone }) => kind !== 'router' || zone === component.zone).length
  const [reads, writes] = [Math.round(seconds * 20 * shards), Math.round(seconds * 2 * shards)]
  if (kind === 'proxy') return `api_requests_total{command="SEARCHPROPERTIES",status="200"} ${reads + writes}\n`
  const prefix = kind === 'bridge' ? 'bridge' : 'router'
  const next = kind === 'bridge' ? [leaderOf(fabric, shard)] : nextOf(component, fabric).map(({ id }) => id)
  const lines = [
    `${prefix}_requests_total{kind="read",result="ok"} ${reads}`,
    `${prefix}_requests_total{kind="write",result="ok"} ${writes}`,
    `${prefix}_frames_received_total ${reads + writes}`,
    `${prefix}_connections 4`,
    `${prefix}_request_duration_seconds_bucket{kind="read",le="0.002"} ${reads}`,
    `${prefix}_request_duration_seconds_bucket{kind="read",le="+Inf"} ${reads}`,
    ...next.flatMap((id) => [
      `${prefix}_hop_requests_total{hop="${id}",kind="read"} ${Math.round(reads / next.length)}`,
      `${prefix}_hop_requests_total{hop="${id}",kind="write"} ${Math.round(writes / next.length)}`,
    ]),
  ]
  return `${lines.join('\n')}\n`
}

export function send(response: ServerResponse, status: number, body: unknown, type?: string): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response
    .writeHead(status, {
      'content-type': type ?? (typeof body === 'string' ? 'text/plain' : 'application/json'),
      'content-length': Buffer.byteLength(text),
    })
    .end(text)
}
