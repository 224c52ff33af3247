/** What is checked and created in PostgreSQL before a process tries to own a partition. */
import {
  type DatabaseConnection,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import pg from 'pg'
import { createTables } from './journal-schema.ts'
import { JOURNAL_VERSION, type JournalTables, metaFault } from './journal-tables.ts'
import { ask, closeSession, openSession, type Session } from './postgres-session.ts'

/** Names, ready to be put into statements. */
export type PostgresTables = ReturnType<typeof tablesOf>

/** Rows of deleted topics that one transaction removes. */
const SWEEP_ROWS = 2_000
/** Second number of the lock that one process holds while it creates the tables. */
const CREATING = -1

export function tablesOf(schema: string, partitions: number, lockKey = 0) {
  const of = (table: string) => `${pg.escapeIdentifier(schema)}.${table}`
  const derived = fnv1a(schema)
  const sessionPrefix = `vacancy queue ${(derived >>> 0).toString(16).padStart(8, '0')}`
  const jobs = of('jobs')
  return {
    schema,
    meta: of('meta'),
    topics: of('topics'),
    jobs,
    finished: of('finished'),
    owner: of('owner'),
    /** First number of the advisory locks of this schema; the second one is the partition. */
    lockSpace: lockKey === 0 ? derived : lockKey,
    /** The same without a setting, as journals have it that name none. */
    derivedLockSpace: derived,
    /** Prefix of the names of sessions for this schema. */
    sessionPrefix,
    // One partition cannot be shared.
    /** Expression: how many processes have sessions for this schema. */
    processes:
      partitions === 1
        ? '1'
        : `(select count(distinct application_name)::int4 from pg_stat_activity
            where datname = current_database() and application_name like ${pg.escapeLiteral(`${sessionPrefix} %`)})`,
    /** Removes some jobs of a deleted topic. */
    sweep: `delete from ${jobs} where partition = $1 and seq in
      (select seq from ${jobs} where partition = $1 and topic_no = $2 limit ${SWEEP_ROWS})`,
  }
}

/** FNV-1a as a signed number of 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash | 0
}

/**
 * A pooler may give every transaction another server process: a lock would be left in one of them. Two
 * transactions must have the same one, also while another session keeps a transaction open.
 *
 * @returns the id of the server process
 * @throws Error for such a pooler
 */
export async function refusePooler(session: Session, url: string, signal: AbortSignal): Promise<number> {
  const own = await serverPid(session)
  const other = await openSession(url, 'vacancy queue check', signal)
  try {
    await ask(other, { text: 'begin' })
    const others = await serverPid(other)
    if (others === own || (await serverPid(session)) !== own)
      throw new Error(
        'a pooler between this process and PostgreSQL gives transactions of one session different server processes, so that locks are lost. Connect to the server itself, or set the pooler to session pooling',
      )
    await ask(other, { text: 'commit' })
    return own
  } finally {
    await closeSession(other)
  }
}

async function serverPid(session: Session): Promise<number> {
  const { rows } = await ask<{ pid: number }>(session, { text: 'select pg_backend_pid() as pid' })
  return rows[0]?.pid ?? 0
}

type Numbers = { readonly partition: number; readonly partitions: number }

/** Creates the tables at the first start. @throws Error when they are of another version or number of partitions */
export async function preparePostgresTables(
  session: Session,
  tables: PostgresTables,
  { partition, partitions }: Numbers,
): Promise<void> {
  const exists = async () => {
    const { rows } = await ask<{ found: boolean }>(session, {
      text: 'select to_regclass($1) is not null as found',
      values: [tables.meta],
    })
    return rows[0]?.found === true
  }
  if (!(await exists())) {
    await ask(session, { text: 'begin' })
    await ask(session, {
      text: 'select pg_advisory_xact_lock($1::int4, $2::int4)',
      values: [tables.lockSpace, CREATING],
    })
    if (!(await exists())) await createPostgresTables(session, tables, partitions)
    await ask(session, { text: 'commit' })
  }
  const { rows } = await ask<JournalTables['meta']>(session, { text: `select * from ${tables.meta} order by id` })
  const [first] = rows
  const own = rows.find((row) => row.partition === partition)
  const fault =
    (first && metaFault(first, JOURNAL_VERSION.pg, first.partition, partitions)) ??
    (own === undefined ? 'its table meta is incomplete' : metaFault(own, JOURNAL_VERSION.pg, partition, partitions))
  if (fault !== undefined) throw new Error(fault)
  await refuseOtherLock(session, tables)
}

const LOCK_NOTE = /^lock key (-?\d+)$/

/** Two processes with different locks would both own the journal. @throws Error when it was created with another one */
async function refuseOtherLock(
  session: Session,
  { owner, lockSpace, derivedLockSpace }: PostgresTables,
): Promise<void> {
  const { rows } = await ask<{ note: string | null }>(session, {
    text: `select obj_description($1::regclass, 'pg_class') as note`,
    values: [owner],
  })
  const noted = LOCK_NOTE.exec(rows[0]?.note ?? '')?.[1]
  const created = noted === undefined ? derivedLockSpace : Number(noted)
  if (created !== lockSpace)
    throw new Error(
      `it was created with pg_lock_key ${created}, and this process has ${lockSpace}: set pg_lock_key to ${created}`,
    )
}

async function createPostgresTables(
  session: Session,
  { schema, owner, lockSpace }: PostgresTables,
  count: number,
): Promise<void> {
  await ask(session, { text: `create schema if not exists ${pg.escapeIdentifier(schema)}` })
  const db = kyselyOf(session).withSchema(schema)
  await createTables(db, 'pg')
  await ask(session, {
    text: `create table ${owner} (partition int4 primary key, address text not null, since int8 not null)`,
  })
  await ask(session, { text: `comment on table ${owner} is 'lock key ${lockSpace}'` })
  const rows = Array.from({ length: count }, (_, partition) => ({
    id: partition + 1,
    version: JOURNAL_VERSION.pg,
    partition,
    partitions: count,
    next_topic: 1,
  }))
  await db.insertInto('meta').values(rows).execute()
}

/** Kysely on a session, for the statements that both journals share. */
function kyselyOf(session: Session): Kysely<JournalTables> {
  const connection: DatabaseConnection = {
    executeQuery: async <R>({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) => {
      const { rows } = await ask(session, { text: sql, values: [...parameters] })
      return { rows: rows as R[] } satisfies QueryResult<R>
    },
    async *streamQuery() {
      yield* []
      throw new Error('the journal does not stream')
    },
  }
  const run = async (sql: string) => void (await ask(session, { text: sql }))
  return new Kysely<JournalTables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => ({
        init: async () => undefined,
        acquireConnection: async () => connection,
        beginTransaction: () => run('begin'),
        commitTransaction: () => run('commit'),
        rollbackTransaction: () => run('rollback'),
        releaseConnection: async () => undefined,
        destroy: async () => undefined,
      }),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })
}
