/** What the rest of the control plane may ask of the cluster. */
import type { NodeView, ShardView, Summary } from '@vacancy/shared/contract'

export type NodeAddress = {
  readonly id: string
  readonly shard: string
  readonly zone: string
  /** `http://host:port` of the node's own HTTP. */
  readonly apiUrl: string
  /** Of the wire protocol; undefined when nobody said. */
  readonly tcp: { readonly host: string; readonly port: number } | undefined
}

/** What a node answered to one HTTP request. */
export type NodeAnswer = {
  readonly status: number
  readonly body: string
  /** Milliseconds from asking to the last byte. */
  readonly milliseconds: number
}

export type RequestOptions = {
  readonly method?: 'GET' | 'POST'
  /** JSON. */
  readonly body?: unknown
  /** Which of the control plane's own tokens goes along; 'none' for open paths. */
  readonly as?: 'none' | 'monitoring' | 'client' | 'admin'
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export type Cluster = {
  summary(): Summary
  shards(): readonly ShardView[]
  shard(id: string): ShardView | undefined
  node(shard: string, id: string): NodeView | undefined
  /** Nodes of a shard that are known, answering or not, by id. */
  addresses(shard: string): readonly NodeAddress[]
  /** One request to a node. Rejects with a ProblemError 502 or 504 that names the node. */
  request(node: NodeAddress, path: string, options?: RequestOptions): Promise<NodeAnswer>
  /** Looks at a shard's nodes every 50 ms for 3 s, then every 200 ms, until the returned function is called. */
  watchClosely(shard: string): () => void
  /** Called after each change of what is known of a shard; returns how to stop. */
  onShard(listener: (shard: ShardView) => void): () => void
}
