/**
 * The audit log: who changed what, written in the transaction of the change. Entries are only appended; each holds the
 * SHA-256 of itself and of the previous hash, so that a changed, removed or inserted entry is detected.
 */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { AuditNote, Handlers, Principal } from '@vacancy/shared/api/route'
import type { ACCESS_ROUTES, AuditEntry } from '@vacancy/shared/contract'
import { type Selectable, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import type { AuditDatabase, AuditTables } from './tables.ts'

/** Appends an entry; inside a transaction it is committed or rolled back with the change. */
export type WriteAudit = (note: AuditNote, within?: Transaction<AuditTables> | AuditDatabase) => Promise<void>

type AuditRow = Selectable<AuditTables['audit']>

const PAGE = 1_000
const DAY_MS = 86_400_000

export type Audit = {
  readonly write: WriteAudit
  /** Deletes entries that are older than the retention time; the chain continues from there. */
  readonly prune: (keepDays: number) => Promise<number>
  /**
   * Call it first in a transaction that changes rows before it writes its entry. Otherwise one transaction could hold
   * the rows and another the log, and each would wait for the other.
   */
  readonly lock: (within: Transaction<AuditTables>) => Promise<void>
  /** The number of entries. */
  readonly total: () => Promise<number>
  readonly handlers: Pick<
    Handlers<typeof ACCESS_ROUTES>,
    'GET /api/v1/audit' | 'GET /api/v1/audit/export' | 'POST /api/v1/audit/verify'
  >
}

/** @param onWrite called after an entry is committed, for followers of the log */
export function createAudit(database: AuditDatabase, clock: Clock, onWrite: () => void): Audit {
  const write: WriteAudit = async (note, within) => {
    if (within?.isTransaction) await append(within as Transaction<AuditTables>, note, clock.wallMs())
    else await database.transaction().execute((transaction) => append(transaction, note, clock.wallMs()))
    onWrite()
  }
  return {
    write,
    prune: (keepDays) => prune(database, clock.wallMs() - keepDays * DAY_MS),
    async total() {
      // Followers are notified before the entry is committed and then read the total: this waits for the commit.
      const { seq, kept_after } = await lockChain(database)
      return seq - kept_after
    },
    async lock(within) {
      await lockChain(within)
    },
    handlers: {
      'GET /api/v1/audit': ({ query }) => list(database, query),
      'GET /api/v1/audit/export': ({ query, reply }) => {
        const isCsv = query.format === 'csv'
        const day = new Date(clock.wallMs()).toISOString().slice(0, 10)
        reply.header('content-type', isCsv ? 'text/csv; charset=utf-8' : 'application/x-ndjson; charset=utf-8')
        reply.header('content-disposition', `attachment; filename="audit-${day}.${query.format}"`)
        return Readable.from(exported(database, query, isCsv ? csvLine : jsonLine, isCsv ? csvHead() : ''))
      },
      'POST /api/v1/audit/verify': () => verify(database),
    },
  }
}

/** Writing an unchanged value waits for the transactions that are appending, on both databases. */
async function lockChain(database: AuditDatabase): Promise<{ seq: number; kept_after: number }> {
  return await database
    .updateTable('audit_chain')
    .set((column) => ({ seq: column.ref('seq') }))
    .where('id', '=', 1)
    .returning(['seq', 'kept_after'])
    .executeTakeFirstOrThrow()
}

/**
 * The row of the chain is written first, so that other appending transactions wait here and no two entries have the
 * same predecessor. This also serializes changes that write their entry before they read what they change.
 */
async function append(transaction: Transaction<AuditTables>, note: AuditNote, nowMs: number): Promise<void> {
  const before = await transaction
    .updateTable('audit_chain')
    .set((column) => ({ seq: column('seq', '+', 1) }))
    .where('id', '=', 1)
    .returning(['seq', 'hash'])
    .executeTakeFirstOrThrow()
  const { principal } = note
  const row: Omit<AuditRow, 'hash'> = {
    seq: before.seq,
    at: nowMs,
    actor: principal === 'system' ? 'system' : principal.name,
    actor_kind: principal === 'system' ? 'system' : storedKind(principal.kind),
    address: note.address,
    user_agent: note.userAgent,
    action: note.action,
    target: note.target,
    reason: note.reason ?? '',
    result: note.result,
    detail: note.detail ?? '',
    operation: note.operation ?? null,
    request_id: note.requestId,
  }
  const hash = hashOf(before.hash, row)
  await transaction
    .insertInto('audit')
    .values({ ...row, hash })
    .execute()
  await transaction.updateTable('audit_chain').set({ hash }).where('id', '=', 1).execute()
}

/** The hash chain includes the kind, so stored entries keep the spelling of the first version. */
function storedKind(kind: Principal['kind']): AuditRow['actor_kind'] {
  return kind === 'anonymous' ? 'nobody' : kind
}

/** Entries of the first versions have no user agent, and hashes without one. */
function hashOf(before: string, row: Omit<AuditRow, 'hash'>): string {
  const { seq, at, actor, actor_kind, address, action, target, reason, result, detail, operation, request_id } = row
  const words = [seq, at, actor, actor_kind, address, action, target, reason, result, detail, operation, request_id]
  if (row.user_agent !== null) words.push(row.user_agent)
  return createHash('sha256')
    .update(`${before}\n${JSON.stringify(words)}`)
    .digest('hex')
}

async function prune(database: AuditDatabase, beforeMs: number): Promise<number> {
  return await database.transaction().execute(async (transaction) => {
    const last = await transaction
      .selectFrom('audit')
      .select(['seq', 'hash'])
      .where('at', '<', beforeMs)
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst()
    if (last === undefined) return 0
    await transaction
      .updateTable('audit_chain')
      .set({ kept_after: last.seq, kept_hash: last.hash })
      .where('id', '=', 1)
      .execute()
    const { numDeletedRows } = await transaction.deleteFrom('audit').where('seq', '<=', last.seq).executeTakeFirst()
    return Number(numDeletedRows)
  })
}

type Filter = {
  readonly actor?: string | undefined
  readonly action?: string | undefined
  readonly target?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

async function list(database: AuditDatabase, query: Filter & { cursor?: string | undefined; limit: number }) {
  const before = query.cursor === undefined ? undefined : Number(query.cursor)
  if (before !== undefined && !Number.isSafeInteger(before)) throw problem('invalid-cursor', { field: 'cursor' })
  const { total } = await filtered(database.selectFrom('audit'), query)
    .select((column) => column.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  let page = filtered(database.selectFrom('audit'), query)
  if (before !== undefined) page = page.where('seq', '<', before)
  const rows = await page
    .selectAll()
    .orderBy('seq', 'desc')
    .limit(query.limit + 1)
    .execute()
  const entries = rows.slice(0, query.limit)
  const last = entries.at(-1)
  return {
    entries: entries.map(entryOf),
    next: rows.length > query.limit && last ? String(last.seq) : null,
    total: Number(total),
  }
}

function filtered<O>(
  query: SelectQueryBuilder<AuditTables, 'audit', O>,
  filter: Filter,
): SelectQueryBuilder<AuditTables, 'audit', O> {
  let filtering = query
  if (filter.actor !== undefined) filtering = filtering.where(contains('actor', filter.actor))
  if (filter.action !== undefined) filtering = filtering.where(contains('action', filter.action))
  if (filter.target !== undefined) filtering = filtering.where(contains('target', filter.target))
  if (filter.from !== undefined) filtering = filtering.where('at', '>=', Date.parse(filter.from))
  if (filter.to !== undefined) filtering = filtering.where('at', '<=', Date.parse(filter.to))
  return filtering
}

/** LIKE is case-sensitive in PostgreSQL and not in SQLite; lower case on both sides gives the same result in both. */
function contains(column: 'actor' | 'action' | 'target', text: string) {
  const pattern = `%${text.toLowerCase().replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  return sql<boolean>`lower(${sql.ref(column)}) like ${pattern} escape '\\'`
}

function entryOf(row: AuditRow): AuditEntry {
  return {
    seq: row.seq,
    at: new Date(row.at).toISOString(),
    actor: row.actor,
    actorKind: row.actor_kind,
    address: row.address,
    userAgent: row.user_agent ?? '',
    action: row.action,
    target: row.target,
    reason: row.reason,
    result: row.result,
    detail: row.detail,
    operation: row.operation,
    requestId: row.request_id,
    hash: row.hash,
  }
}

async function* exported(
  database: AuditDatabase,
  filter: Filter,
  line: (entry: AuditEntry) => string,
  head: string,
): AsyncGenerator<string> {
  if (head !== '') yield head
  let after = 0
  for (;;) {
    const rows = await filtered(database.selectFrom('audit'), filter)
      .selectAll()
      .where('seq', '>', after)
      .orderBy('seq')
      .limit(PAGE)
      .execute()
    if (rows.length > 0) yield rows.map((row) => line(entryOf(row))).join('')
    if (rows.length < PAGE) return
    after = rows.at(-1)?.seq ?? after
  }
}

function jsonLine(entry: AuditEntry): string {
  return `${JSON.stringify(entry)}\n`
}

const COLUMNS = [
  'seq',
  'at',
  'actor',
  'actorKind',
  'address',
  'action',
  'target',
  'reason',
  'result',
  'detail',
  'operation',
  'requestId',
  'hash',
  'userAgent',
] as const satisfies readonly (keyof AuditEntry)[]

function csvHead(): string {
  return `${COLUMNS.join(',')}\r\n`
}

function csvLine(entry: AuditEntry): string {
  return `${COLUMNS.map((column) => csvCell(String(entry[column] ?? ''))).join(',')}\r\n`
}

/** RFC 4180. Spreadsheets run cells that begin like a formula; a leading apostrophe makes them text. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

async function verify(database: AuditDatabase): Promise<{ entries: number; brokenAt: number | null }> {
  const chain = await database.selectFrom('audit_chain').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
  let hash = chain.kept_hash
  let seq = chain.kept_after
  while (seq < chain.seq) {
    const rows = await database
      .selectFrom('audit')
      .selectAll()
      .where('seq', '>', seq)
      .where('seq', '<=', chain.seq)
      .orderBy('seq')
      .limit(PAGE)
      .execute()
    for (const row of rows) {
      if (row.seq !== seq + 1 || row.hash !== hashOf(hash, row))
        return { entries: seq - chain.kept_after, brokenAt: seq + 1 }
      hash = row.hash
      seq = row.seq
    }
    // Entries were removed at the end.
    if (rows.length === 0) return { entries: seq - chain.kept_after, brokenAt: seq + 1 }
  }
  return { entries: seq - chain.kept_after, brokenAt: hash === chain.hash ? null : seq }
}
