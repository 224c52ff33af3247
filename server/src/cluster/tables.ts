/** Columns as both databases keep them: times are UTC milliseconds, truth is 0 or 1, JSON is text. */
export type ClusterTables = {
  operations: {
    id: string
    kind: string
    shard: string
    state: string
    /** Of the caller: the same one again is the same operation. */
    idempotency_key: string | null
    created_at: number
    /** Null while it runs: at most one such row a shard. */
    ended_at: number | null
    /** Operation of the contract, JSON. */
    document: string
    /** The plan it began with, JSON. */
    plan: string
  }
  /** What changed in the cluster, for 72 h. */
  cluster_events: {
    id: string
    at: number
    shard: string
    node: string | null
    kind: string
    level: string
    says: string
  }
  /** Time without writes of the last confirmed transfers of each shard. */
  write_pauses: {
    operation: string
    shard: string
    at: number
    milliseconds: number
  }
  /** Who led a shard from when to when; what no row covers was not seen. */
  leadership: {
    shard: string
    from_at: number
    /** When it was last seen to go on. */
    to_at: number
    /** Null: those who answered named none. */
    leader: string | null
    term: number | null
  }
  attention_aside: {
    item: string
    /** Null until it changes. */
    until_at: number | null
    /** What the item said then. */
    says: string
  }
  /** Every node that is looked at, so that a restart does not forget those that are away. */
  known_nodes: {
    shard: string
    id: string
    zone: string
    /** '' while nobody said where it is. */
    api_url: string
    tcp_host: string | null
    tcp_port: number | null
    /** 1: only the configured list names it. */
    listed: number
    /** What it was when it last answered. */
    role: string | null
    /** When the registry, the list or its shard last named it. */
    named_at: number
    answered_at: number | null
  }
}
