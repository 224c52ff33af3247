/** The ways in to each shard as clients have them: the edge routers, or where there is none the nodes themselves. Pure. */
import type { NodeAddress } from '../cluster/cluster.ts'

export type Way = {
  readonly key: string
  readonly shard: string
  readonly through: 'edge' | 'node'
  readonly id: string
  /** A segment of the shard to search, and to lead a router to it. */
  readonly segment: string
  readonly address: { readonly host: string; readonly port: number }
}

/** A way in that cannot be probed. */
export type Unprobed = Pick<Way, 'shard' | 'through' | 'id'> & { readonly why: string }

export type WayFacts = {
  readonly shards: readonly string[]
  /** A segment of the shard; undefined while none is known. */
  readonly segmentOf: (shard: string) => string | undefined
  readonly edges: readonly { readonly id: string; readonly address: Way['address'] | undefined }[]
  readonly nodesOf: (shard: string) => readonly NodeAddress[]
}

export type WaysOfShard = {
  readonly shard: string
  readonly ways: readonly Way[]
  readonly unprobed: readonly Unprobed[]
}

export function waysIn(facts: WayFacts): WaysOfShard[] {
  return facts.shards.map((shard) => waysOf(shard, facts))
}

function waysOf(shard: string, { segmentOf, edges, nodesOf }: WayFacts): WaysOfShard {
  const through = edges.length > 0 ? 'edge' : 'node'
  const entries = edges.length > 0 ? edges : nodesOf(shard).map(({ id, tcp }) => ({ id, address: tcp }))
  const segment = segmentOf(shard)
  const ways: Way[] = []
  const unprobed: Unprobed[] = []
  for (const { id, address } of entries) {
    const of = { shard, through, id } as const
    if (segment === undefined) unprobed.push({ ...of, why: `no segment of ${shard} is known` })
    else if (address === undefined) unprobed.push({ ...of, why: `${id} has not reported where it accepts clients` })
    else ways.push({ ...of, key: `${shard} ${through} ${id}`, segment, address })
  }
  return { shard, ways, unprobed }
}
