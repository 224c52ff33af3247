/** Columns in both databases: times are UTC milliseconds, booleans are 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'
import type { AuditTables } from '../access/tables.ts'
import type { HistoryTables } from '../history/tables.ts'

export type ClusterTables = {
  operations: {
    id: string
    kind: string
    shard: string
    state: string
    /** Set by the caller: a repeated request with the same key is the same operation. */
    idempotency_key: string | null
    created_at: number
    /** Null while it runs: at most one such row per shard. */
    ended_at: number | null
    /** JSON: the contract's operation. */
    document: string
    /** JSON: the plan it started with. */
    plan: string
  }
  handovers: {
    id: string
    state: string
    created_at: number
    /** JSON: who started or continued it, in whose name it resumes. */
    principal: string
    /** JSON: the contract's handover. */
    document: string
  }
  attention_aside: {
    item: string
    /** Null until it changes. */
    until_at: number | null
    /** The item's message at that time, without its numbers. */
    message: string
  }
  /** Every polled node, so that a restart does not forget nodes that do not respond. */
  known_nodes: {
    shard: string
    id: string
    zone: string
    /** '' while its address is unknown. */
    api_url: string
    tcp_host: string | null
    tcp_port: number | null
    /** 1: only the configured list names it. */
    listed: number
    /** Its role when it last responded. */
    role: string | null
    /** When the registry, the configured list or its shard last listed it. */
    named_at: number
    answered_at: number | null
  }
}

/** Operations and nodes, with the history and the audit entries that go with them. */
export type ClusterDatabase = Kysely<ClusterTables & HistoryTables & AuditTables>
