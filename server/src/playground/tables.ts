/** Columns as both databases keep them: times are UTC milliseconds, truth is 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'
import type { AuditTables } from '../access/tables.ts'
export type PlaygroundTables = {
  /** Runs of the playground, 500 a person and those that are pinned. */
  playground_history: {
    id: string
    person: string
    at: number
    shard: string
    node: string | null
    command: string
    fields: string
    /** Command, shard and fields in lower case: what a search looks at. */
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
    /** Everybody may see it, not the owner alone. */
    shared: number
    shard: string
    node: string | null
    command: string
    fields: string
    created_at: number
    changed_at: number
  }
  /** Answers with their requests and times, kept for a while for all to see. */
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
    /** JSON: the node that was asked for, the answer, what the browser measured. */
    document: string
  }
  /** Requests that are too long for a link, by a digest of themselves. */
  shared_requests: {
    id: string
    /** Who shared it first. */
    owner: string
    used_at: number
    document: string
  }
  /** What is being written in tabs of the playground. */
  unsaved_requests: {
    person: string
    tab: string
    at: number
    document: string
  }
}

/** Saved queries, results and history, with the audit entries of their changes. */
export type PlaygroundDatabase = Kysely<PlaygroundTables & AuditTables>
