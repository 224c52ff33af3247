/**
 * Stand-ins for the components of existing installations, from the behaviour observed of them: a registry without
 * epoch, ETag, long poll and answer bodies, whose versions start at 0; a resolver that answers bare text; nodes whose
 * `/node-info` has `leader_url` and that serve neither `/cluster/info` nor `/status`.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyOf, type Stub, stub } from './http.ts'

type Component = { readonly zone: string; readonly shard: string }

export type ExistingRegistry = Stub & {
  readonly components: { readonly [kind in 'router' | 'bridge' | 'node']: Map<string, Component> }
  readonly segments: Map<string, { readonly zone: string; readonly segments: readonly string[] }>
  readonly versions: Map<string, number>
  codecs: readonly string[]
  register(kind: 'router' | 'bridge' | 'node', id: string, zone: string, shard?: string): void
  expire(kind: 'router' | 'bridge' | 'node', id: string): void
  push(shard: string, zone: string, segments: readonly string[]): void
  /** Loses all state, as after a start without its file. */
  reset(): void
}

export async function existingRegistry(): Promise<ExistingRegistry> {
  const components = {
    router: new Map<string, Component>(),
    bridge: new Map<string, Component>(),
    node: new Map<string, Component>(),
  }
  const segments: ExistingRegistry['segments'] = new Map()
  const versions = new Map<string, number>()
  let globalVersion = 0
  const bump = (key: string): void => {
    versions.set(key, (versions.get(key) ?? 0) + 1)
    globalVersion += 1
  }
  const keyOf = { router: 'zones/{zone}/routers', bridge: 'zones/{zone}/shards', node: 'shards/{shard}/nodes' } as const
  const touch = (kind: keyof typeof keyOf, { zone, shard }: Component) =>
    bump(keyOf[kind].replace('{zone}', zone).replace('{shard}', shard))
  const zoneSegments = (zone: string) =>
    [...new Set([...segments.values()].filter((each) => each.zone === zone).flatMap((each) => each.segments))].sort()
  const registry = {
    components,
    segments,
    versions,
    codecs: ['breakfast', 'Free_WiFi'] as readonly string[],
    register(kind: 'router' | 'bridge' | 'node', id: string, zone: string, shard = '') {
      const before = components[kind].get(id)
      components[kind].set(id, { zone, shard })
      if (before?.zone === zone && before.shard === shard) return
      if (before) touch(kind, before)
      touch(kind, { zone, shard })
    },
    expire(kind: 'router' | 'bridge' | 'node', id: string) {
      const before = components[kind].get(id)
      components[kind].delete(id)
      if (before) touch(kind, before)
    },
    push(shard: string, zone: string, list: readonly string[]) {
      const before = zoneSegments(zone).join()
      segments.set(shard, { zone, segments: [...new Set(list)].sort() })
      bump(`shards/${shard}/segments`)
      if (zoneSegments(zone).join() !== before) bump(`zones/${zone}/segments`)
    },
    reset() {
      for (const each of [...Object.values(components), segments, versions]) each.clear()
      globalVersion = 0
    },
  }
  const server = await stub((request, response) => {
    void answer(request, response)
  })
  const send = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(body))
  }
  const idsOf = (kind: 'router' | 'bridge' | 'node', test: (component: Component) => boolean) =>
    [...components[kind]]
      .filter(([, component]) => test(component))
      .map(([id]) => id)
      .sort()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? '/', 'http://registry')
    const [owner = '', id = '', list = ''] = pathname.split('/').slice(1).map(decodeURIComponent)
    if (request.method === 'POST') {
      const body = JSON.parse(await bodyOf(request))
      if (owner === 'register') registry.register(body.kind, body.id, body.zone, body.shard ?? '')
      else registry.push(id, body.zone, body.segments)
      response.end()
      return
    }
    if (request.method !== 'GET') {
      response.writeHead(404)
      response.end()
      return
    }
    if (owner === 'versions')
      return send(response, 200, { global_version: globalVersion, versions: Object.fromEntries(versions) })
    if (owner === 'codecs') {
      response.setHeader('Content-Type', 'application/json')
      response.end(`{"rate_features":${JSON.stringify(registry.codecs)},"hash":11142104031873161849}`)
      return
    }
    const version = versions.get(`${owner}/${id}/${list}`) ?? 0
    if (owner === 'zones' && list === 'routers')
      return send(response, 200, { version, routers: idsOf('router', ({ zone }) => zone === id) })
    if (owner === 'zones' && list === 'segments') return send(response, 200, { version, segments: zoneSegments(id) })
    if (owner === 'zones' && list === 'shards') {
      const shards: { [shard: string]: { bridges: string[] } } = {}
      for (const [bridge, { zone, shard }] of [...components.bridge].sort()) {
        if (zone !== id) continue
        shards[shard] ??= { bridges: [] }
        shards[shard].bridges.push(bridge)
      }
      return send(response, 200, { version, shards })
    }
    const claim = segments.get(id)
    if (owner === 'shards' && list === 'segments' && claim) return send(response, 200, { version, ...claim })
    const nodes = idsOf('node', ({ shard }) => shard === id)
    if (owner === 'shards' && list === 'nodes' && nodes.length > 0) return send(response, 200, { version, nodes })
    send(response, 404, { error: owner === 'shards' ? 'unknown shard' : 'not found' })
  }
  return Object.assign(registry, server)
}

/** Answers bare text by path, 404 for others. */
export async function existingResolver(hosts: Map<string, string>): Promise<Stub> {
  return await stub((request, response) => {
    const host = hosts.get(request.url ?? '')
    if (host === undefined) response.writeHead(404)
    response.end(host === undefined ? 'unknown' : `${host}\n`)
  })
}

/** What a node shows; changed by the test. */
export type NodeFace = {
  health: string
  leader: string | null | undefined
  shard: string
  node: string
  zone: string
  peers: readonly string[] | undefined
  /** Voters of `/cluster/info`; undefined: not served, as by existing nodes. */
  voters: readonly string[] | undefined
  lag: number | undefined
  isSilent: boolean
}

export async function fakeNode(face: NodeFace): Promise<Stub> {
  return await stub((request, response) => {
    if (face.isSilent) return
    const json = (status: number, body: unknown): void => {
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    switch (request.url) {
      case '/healthz':
        response.writeHead(face.health === 'unavailable' ? 503 : 200)
        response.end(face.health)
        return
      case '/node-info':
        json(200, {
          leader_id: face.leader,
          shard_id: face.shard,
          zone_id: face.zone,
          node_id: face.node,
          leader_url: 'http://10.9.9.9:1',
          extra: 1,
        })
        return
      case '/peers':
        json(face.peers ? 200 : 404, face.peers ?? { error: 'not found' })
        return
      case '/cluster/info':
        json(face.voters ? 200 : 404, {
          leader_id: face.leader,
          members: { voters: face.voters, learners: [] },
          term: 3,
        })
        return
      case '/status':
        json(face.lag === undefined ? 404 : 200, { replica: { lag_entries: face.lag } })
        return
      default:
        json(404, {})
    }
  })
}
