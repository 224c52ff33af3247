/**
 * A resolver that answers bare text, and nodes whose `/node-info` has `leader_url` and that serve neither `/cluster/info` nor
 * `/status`, as those of existing installations. Whole shards and platforms of them are in `existing/`.
 */

import { type Stub, stub } from './http.ts'

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
    if (request.url === '/healthz') {
      response.writeHead(face.health === 'unavailable' ? 503 : 200)
      response.end(face.health)
      return
    }
    const { leader, shard, node, zone, peers, voters, lag } = face
    const ids = { leader_id: leader, shard_id: shard, zone_id: zone, node_id: node }
    const bodies: { readonly [path: string]: unknown } = {
      '/node-info': { ...ids, leader_url: 'http://10.9.9.9:1', extra: 1 },
      '/peers': peers,
      '/cluster/info': voters && { leader_id: leader, members: { voters, learners: [] }, term: 3 },
      '/status': lag === undefined ? undefined : { replica: { lag_entries: lag } },
    }
    const body = bodies[request.url ?? '']
    response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(body ?? { error: 'not found' }))
  })
}
