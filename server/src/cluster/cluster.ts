/** The interface of the cluster module for the rest of the control plane. */
import type { NodeView, Plan, ShardView, Summary } from '@vacancy/shared/contract'

export type NodeAddress = {
  readonly id: string
  readonly shard: string
  readonly zone: string
  /** `http://host:port` of the node's own HTTP. */
  readonly apiUrl: string
  /** Of the wire protocol; undefined while not reported. */
  readonly tcp: { readonly host: string; readonly port: number } | undefined
}

/** The response of a node to one HTTP request. */
export type NodeAnswer = {
  readonly status: number
  readonly body: string
  /** Milliseconds from the request to the last byte. */
  readonly milliseconds: number
}

export type RequestOptions = {
  readonly method?: 'GET' | 'POST'
  /** JSON. */
  readonly body?: unknown
  /** The token of the control plane to send; 'none' for open paths. */
  readonly as?: 'none' | 'monitoring' | 'client' | 'admin'
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export type Cluster = {
  summary(): Summary
  shards(): readonly ShardView[]
  shard(id: string): ShardView | undefined
  node(shard: string, id: string): NodeView | undefined
  /** Minutes after midnight UTC at which the day of a shard begins; 0 while no node has told. */
  dayBegins(shard: string): number
  /** Known nodes of a shard by id, whether they respond or not. */
  addresses(shard: string): readonly NodeAddress[]
  /** Edge routers that respond and tell where they accept clients; they are not in a shard. */
  edges(): readonly NodeAddress[]
  /** All edge routers, whether they respond or not; the address is undefined until one has told where it accepts clients. */
  entrances(): readonly { readonly id: string; readonly address: NodeAddress['tcp'] }[]
  /** A segment of a shard, for reads of any of its data; undefined while none is known. */
  segmentOf(shard: string): string | undefined
  /** HTTP addresses of the proxies that respond. */
  proxies(): readonly string[]
  /** The shard of a segment, by the last reply of the registry. */
  ownerOf(segment: string): string | undefined
  /** One request to a node. Rejects with a ProblemError 502 or 504 with the node's id. */
  request(node: NodeAddress, path: string, options?: RequestOptions): Promise<NodeAnswer>
  /** Polls a shard's nodes every 50 ms for 3 s, then every 200 ms, until the returned function is called. */
  watchClosely(shard: string): () => void
  /** The plan of the newest operation of a kind that was done on a shard. */
  lastPlan(kind: Plan['kind'], shard: string): Promise<Plan | undefined>
  /** Called after each change of a shard's view. Returns a function that stops it. */
  onShard(listener: (shard: ShardView) => void): () => void
}
