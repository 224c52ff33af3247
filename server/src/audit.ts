/** Who did what to what, written with the change. */
import type { Transaction } from 'kysely'
import type { Database } from './database.ts'
import type { Asker } from './route.ts'
import type { Tables } from './tables.ts'

export type AuditNote = {
  readonly asker: Asker | 'system'
  readonly address: string
  readonly requestId: string
  /** `operation.start`, `token.create`, … */
  readonly action: string
  readonly target: string
  readonly result: string
  readonly reason?: string
  readonly detail?: string
  readonly operation?: string
}

/** Appends an entry; inside a transaction it stands or falls with the change. */
export type WriteAudit = (note: AuditNote, within?: Transaction<Tables> | Database) => Promise<void>
