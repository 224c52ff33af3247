/** Start options of a replica: its data, and its place in a shard. */

export type ReplicaOptions = {
  readonly dataDir: string
  /** Undefined: the shard that owns the data in the folder. */
  readonly shardId: string | undefined
  readonly nodeId: string
  readonly codecs: readonly string[]
  readonly memoryBytes: number
  readonly readers: number
  readonly scratchBytes: number
  readonly sessionBytesMax: number
  readonly roomsHint: number
  readonly snapshotIntervalMs: number
  readonly snapshotTriggerCount: number
  readonly walFlushThreshold: number
  readonly walFileBytes: number
  /** Threads that decode words at start. */
  readonly loadThreads: number
  /** Sets damaged data aside and starts from what verifies. */
  readonly acceptLoss: boolean
  /**
   * Sets the data aside and rejoins as a new member (docs/design/storage.md#torn-tail-or-corruption). Clustered only.
   */
  readonly rejoin: boolean
  /** Maintenance may advance up to this day at once, however long ago the last one was; 0 for none. */
  readonly acceptDay: number
  /** Undefined: a standalone node. */
  readonly cluster: ClusterOptions | undefined
}

/** Additional options of a shard member. */
export type ClusterOptions = {
  readonly zoneId: string
  readonly initialVoters: readonly string[]
  readonly seeds: readonly string[]
  readonly formWithMajority: boolean
  readonly tickMs: number
  readonly electionTicks: number
  readonly heartbeatTicks: number
  /** Listener for peers. */
  readonly host: string
  readonly port: number
  /** Files of the peer certificate; undefined: no TLS. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined
  /** `tls_require_node_id`; undefined when it is not set. */
  readonly requireNodeId: boolean | 'any' | undefined
  readonly resolver: { readonly url: string; readonly tokenFile: string | undefined }
  /** Own HTTP address, and the default HTTP port of peers. The resolver may name another port. */
  readonly apiHost: string
  readonly apiPort: number
  /** Status for the serving threads (shared-status.ts). */
  readonly cells: SharedArrayBuffer
}
