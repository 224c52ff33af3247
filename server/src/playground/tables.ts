/** Columns in both databases: times are UTC milliseconds, booleans are 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'
import type { AuditTables } from '../access/tables.ts'
export type PlaygroundTables = {
  /** Playground runs: the last 500 of each person, and pinned ones. */
  playground_history: {
    id: string
    person: string
    at: number
    shard: string
    node: string | null
    command: string
    fields: string
    /** Command, shard and fields in lower case, for searches. */
    words: string
    ok: number
    rows: number | null
    total_micros: number | null
    error: string
    pinned: number
  }
  saved_queries: {
    id: string
    /** Id and name of the person. */
    owner: string
    owner_name: string
    name: string
    folder: string
    /** 1: visible to everyone, 0: to its owner alone. */
    shared: number
    shard: string
    node: string | null
    command: string
    fields: string
    created_at: number
    changed_at: number
  }
  /** Saved responses with their requests and times, visible to everyone until they expire. */
  saved_results: {
    id: string
    /** Id and name of the person. */
    owner: string
    owner_name: string
    taken_at: number
    expires_at: number
    shard: string
    command: string
    fields: string
    rows: number
    total_micros: number
    /** JSON: the requested node, the response, and the browser's measurements. */
    document: string
  }
  /** Requests that are too long for a link, by their digest. */
  shared_requests: {
    id: string
    /** The person who shared it first. */
    owner: string
    used_at: number
    document: string
  }
  /** Drafts in open playground tabs. */
  unsaved_requests: {
    person: string
    tab: string
    at: number
    document: string
  }
}

/** Saved queries, results and history, with the audit entries of their changes. */
export type PlaygroundDatabase = Kysely<PlaygroundTables & AuditTables>
