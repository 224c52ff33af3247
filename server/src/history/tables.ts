/** Columns as both databases keep them: times are UTC milliseconds, truth is 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'

export type HistoryTables = {
  /** What changed in the cluster, for 72 h. */
  cluster_events: {
    id: string
    at: number
    shard: string
    node: string | null
    kind: string
    level: string
    message: string
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
}

export type HistoryDatabase = Kysely<HistoryTables>
