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
