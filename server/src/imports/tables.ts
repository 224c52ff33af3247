/** Columns in both databases: times are UTC milliseconds, booleans are 0 or 1, JSON is text. */
import type { Kysely } from 'kysely'
import type { AuditTables } from '../access/tables.ts'
export type ImportTables = {
  uploads: {
    id: string
    name: string
    kind: 'properties' | 'packages'
    bytes: number
    /** Verified bytes on disk. */
    received: number
    fingerprint: string
    sha256: string | null
    import_id: string | null
    by_name: string
    created_at: number
    touched_at: number
  }
  imports: {
    id: string
    name: string
    shard: string
    state: string
    by_name: string
    created_at: number
    started_at: number | null
    ended_at: number | null
    window_from: string
    window_to: string
    properties_upload: string
    packages_upload: string
    /** How often it was started: more than once when the process ended during an attempt. */
    attempts: number
    /** JSON: ImportDetail of item.ts. */
    detail: string
    /** The import whose rejected rows are omitted from the files. */
    without_rows_of: string | null
    /** JSON: the codec list given with the files; null: that of the shard, or of the registry. */
    codecs: string | null
  }
  snapshots: {
    /** Content digest. */
    id: string
    name: string
    shard: string
    bytes: number
    sha256: string
    import_id: string
    by_name: string
    created_at: number
    installable: number
    /** JSON: the output of `vacancy inspect`. */
    document: string
    counters: string
    sources: string
  }
  pull_tokens: {
    /** SHA-256 of the token. */
    hash: string
    snapshot: string
    expires_at: number
  }
  codec_changes: {
    id: string
    by_name: string
    reason: string
    created_at: number
    /** When it was discarded. */
    ended_at: number | null
    /** JSON: the contract's codecPlan, as saved. */
    plan: string
  }
  installs: {
    operation: string
    shard: string
    snapshot: string
    state: string
    at: number
  }
}

/** Uploads, imports and snapshots, with the audit entries of their changes. */
export type ImportDatabase = Kysely<ImportTables & AuditTables>
