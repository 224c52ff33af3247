/** Columns in both databases: times are UTC milliseconds, JSON is text. */
import type { Kysely } from 'kysely'
import type { AuditTables } from '../access/tables.ts'
import type { ImportTables } from '../imports/tables.ts'

export type GoldenTables = {
  golden_searches: {
    id: string
    shard: string
    /** Unique in its shard. */
    name: string
    command: string
    /** JSON: fields by the names of the command table. */
    fields: string
    days_ahead: number | null
    /** JSON: the contract's expectation. */
    expectation: string
    /** Who changed it last. */
    by_name: string
    created_at: number
    changed_at: number
    /** JSON: the last result on the shard; null since the last change. */
    last: string | null
  }
  golden_checks: {
    /** Content digest of the snapshot. */
    snapshot: string
    /** What was run: another basis makes the results out of date. */
    basis: string
    at: number
    /** JSON: the contract's results. */
    results: string
  }
}

/** Golden searches with the audit entries of their changes, and which snapshots are stored. */
export type GoldenDatabase = Kysely<GoldenTables & AuditTables & Pick<ImportTables, 'snapshots'>>
