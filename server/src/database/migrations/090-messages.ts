/**
 * The sentence of an event, of an item put aside, and of stored operations, plans, codec plans and imports is called
 * `message`. It was called `says`.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

type Stored = {
  operations: { id: string; document: string; plan: string }
  codec_changes: { id: string; plan: string }
  imports: { id: string; detail: string }
}

/** Rows in memory at once. */
const PAGE = 200

export const messages: Migration = {
  async up(database: Kysely<Stored>) {
    for (const table of ['cluster_events', 'attention_aside']) {
      await database.schema.alterTable(table).renameColumn('says', 'message').execute()
    }
    await forEachPage(
      (after) =>
        database.selectFrom('operations').selectAll().where('id', '>', after).orderBy('id').limit(PAGE).execute(),
      ({ id, document, plan }) =>
        database
          .updateTable('operations')
          .set({ document: withMessages(document), plan: withMessages(plan) })
          .where('id', '=', id)
          .execute(),
    )
    await forEachPage(
      (after) =>
        database
          .selectFrom('codec_changes')
          .select(['id', 'plan'])
          .where('id', '>', after)
          .orderBy('id')
          .limit(PAGE)
          .execute(),
      ({ id, plan }) =>
        database
          .updateTable('codec_changes')
          .set({ plan: withMessages(plan) })
          .where('id', '=', id)
          .execute(),
    )
    await forEachPage(
      (after) =>
        database
          .selectFrom('imports')
          .select(['id', 'detail'])
          .where('id', '>', after)
          .orderBy('id')
          .limit(PAGE)
          .execute(),
      ({ id, detail }) =>
        database
          .updateTable('imports')
          .set({ detail: withMessages(detail) })
          .where('id', '=', id)
          .execute(),
    )
  },
}

async function forEachPage<Row extends { readonly id: string }>(
  read: (after: string) => Promise<readonly Row[]>,
  write: (row: Row) => Promise<unknown>,
): Promise<void> {
  for (let rows = await read(''); rows.length > 0; rows = await read(rows.at(-1)?.id ?? '')) {
    for (const row of rows) await write(row)
  }
}

/** The document with every property `says` renamed, at any depth. */
function withMessages(text: string): string {
  const rename = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && 'says' in value
      ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key === 'says' ? 'message' : key, each]))
      : value
  return JSON.stringify(JSON.parse(text, rename))
}
