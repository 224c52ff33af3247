/** What a bridge concludes from the responses of its shard's nodes. Pure: no sockets, clock or randomness. */

export type BridgeRole = 'leader' | 'follower' | 'other'

export type BridgeNode = {
  readonly id: string
  readonly address: { readonly host: string; readonly tcpPort: number; readonly apiPort: number }
  /** `other`: a learner, a node that loads, one that is unavailable, or one that was left out of this round. */
  readonly role: BridgeRole
  /** Log entries behind the leader; undefined where `/status` is not served. */
  readonly lag?: number
  /** The response of `/healthz`. */
  readonly health: string
}

export type Topology = {
  /** Always a key of `nodes` with role `leader`. Kept while no other leader is found. */
  readonly leader?: string
  readonly nodes: ReadonlyMap<string, BridgeNode>
}
