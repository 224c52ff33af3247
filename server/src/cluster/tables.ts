/** Columns as both databases keep them: times are UTC milliseconds, truth is 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'
import type { AuditTables } from '../access/tables.ts'
import type { HistoryTables } from '../history/tables.ts'

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
  attention_aside: {
    item: string
    /** Null until it changes. */
    until_at: number | null
    /** What the item said then. */
    message: string
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

/** Operations and nodes, with the history and the audit entries that go with them. */
export type ClusterDatabase = Kysely<ClusterTables & HistoryTables & AuditTables>
