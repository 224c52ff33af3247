/** Columns in both databases: times are UTC milliseconds, booleans are 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'

export type HistoryTables = {
  /** Cluster events of the last 72 h. */
  cluster_events: {
    id: string
    at: number
    shard: string
    node: string | null
    kind: string
    level: string
    message: string
  }
  /** Write pauses of the last confirmed transfers of each shard. */
  write_pauses: {
    operation: string
    shard: string
    at: number
    milliseconds: number
  }
  /** The leaders of each shard over time; times that no row covers were not observed. */
  leadership: {
    shard: string
    from_at: number
    /** When the leader was last confirmed. */
    to_at: number
    /** Null: the responding nodes named no leader. */
    leader: string | null
    term: number | null
  }
  /**
   * States of shards: the whole cluster each minute with the shard '', and each shard when it changed in between. The
   * fabric has a name that no shard can have.
   */
  cluster_pictures: {
    shard: string
    at: number
    /** Of the document. */
    bytes: number
    /** Deflated JSON in base64: all shards, or one; '' when the shard is gone. */
    document: string
  }
}

export type HistoryDatabase = Kysely<HistoryTables>
