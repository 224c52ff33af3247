/** Statements of a group: one for each kind of change, with its rows in arrays; new jobs are copied. */
import { GONE, goneName, payloadBytes, type Rows, type UpdateRow, writePayload } from './journal-tables.ts'
import {
  addBytes,
  addInt4,
  addInt8,
  addRow,
  addText,
  beginCopy,
  endCopy,
  int4Array,
  int8Array,
  textArray,
} from './postgres-binary.ts'
import type { Request } from './postgres-session.ts'
import type { PostgresTables } from './postgres-setup.ts'

/** In the order of `Rows`: ids are free before they return. */
export function groupStatements(tables: PostgresTables, partition: number, rows: Rows): Request[] {
  const statements = topicStatements(tables, partition, rows)
  const updates = lastUpdates(rows.updates)
  if (updates.length > 0) statements.push(update(tables, partition, updates))
  if (rows.done.length > 0) statements.push(done(tables, partition, rows.done))
  if (rows.finished.length > 0) statements.push(finished(tables, partition, rows.finished))
  for (const { topicNumber, ids } of rows.forgotten)
    statements.push({
      name: 'forget',
      text: `delete from ${tables.finished} where partition = $1::int4 and topic_no = $2::int4 and id = any($3::text[])`,
      values: [partition, topicNumber, textArray(ids)],
    })
  if (rows.puts.length > 0) statements.push(put(tables, partition, rows.puts))
  return statements
}

/** Statements without rows, to prepare them. */
export function preparedStatements(tables: PostgresTables, partition: number): Request[] {
  return [update(tables, partition, []), done(tables, partition, []), finished(tables, partition, [])]
}

function topicStatements({ topics, meta }: PostgresTables, partition: number, rows: Rows): Request[] {
  return rows.topics.flatMap((each): Request[] => {
    if ('gone' in each)
      return [
        {
          name: 'topic_gone',
          text: `update ${topics} set name = $3, config = $4 where partition = $1::int4 and topic_no = $2::int4`,
          values: [partition, each.gone, goneName(each.gone), GONE],
        },
      ]
    const { number, name, config, createdAt } = each.topic
    return [
      {
        name: 'topic',
        text: `insert into ${topics} (partition, topic_no, name, config, created_at)
          values ($1::int4, $2::int4, $3::text, $4::text, $5::int8)
          on conflict (partition, topic_no) do update set config = excluded.config`,
        values: [partition, number, name, JSON.stringify(config), createdAt],
      },
      {
        name: 'next_topic',
        text: `update ${meta} set next_topic = $2::int4 where id = $1::int4 + 1 and next_topic < $2::int4`,
        values: [partition, number + 1],
      },
    ]
  })
}

/** One statement sees each row once: of several updates of a job the last one, from the key that its row has. */
function lastUpdates(updates: readonly UpdateRow[]): UpdateRow[] {
  const byKey = new Map<number, UpdateRow>()
  for (const row of updates) {
    const before = byKey.get(row.seq)
    if (before !== undefined) byKey.delete(row.seq)
    byKey.set(row.newSeq, before === undefined ? row : { ...row, seq: before.seq })
  }
  return [...byKey.values()]
}

function update({ jobs }: PostgresTables, partition: number, rows: readonly UpdateRow[]): Request {
  return {
    name: 'update',
    text: `update ${jobs} set seq = u.new_seq, state = u.state, failures = u.failures, deliveries = u.deliveries,
        flags = u.flags, run_at = u.run_at, dead_at = u.dead_at, reason = u.reason, last_error = u.last_error,
        history = u.history
      from unnest($2::int8[], $3::int8[], $4::int4[], $5::int4[], $6::int4[], $7::int4[], $8::int8[], $9::int8[],
        $10::text[], $11::text[], $12::text[])
        as u (seq, new_seq, state, failures, deliveries, flags, run_at, dead_at, reason, last_error, history)
      where jobs.partition = $1::int4 and jobs.seq = u.seq`,
    values: [
      partition,
      int8Array(rows.map(({ seq }) => seq)),
      int8Array(rows.map(({ newSeq }) => newSeq)),
      int4Array(rows.map(({ state }) => state)),
      int4Array(rows.map(({ failures }) => failures)),
      int4Array(rows.map(({ deliveries }) => deliveries)),
      int4Array(rows.map(({ flags }) => flags)),
      int8Array(rows.map(({ run_at }) => run_at)),
      int8Array(rows.map(({ dead_at }) => dead_at)),
      textArray(rows.map(({ reason }) => reason)),
      textArray(rows.map(({ last_error }) => last_error)),
      textArray(rows.map(({ history }) => history)),
    ],
  }
}

function done({ jobs }: PostgresTables, partition: number, keys: readonly number[]): Request {
  return {
    name: 'done',
    text: `delete from ${jobs} where partition = $1::int4 and seq = any($2::int8[])`,
    values: [partition, int8Array(keys)],
  }
}

function finished({ finished: table }: PostgresTables, partition: number, rows: Rows['finished']): Request {
  // One statement cannot insert a row and update it.
  const last = [...new Map(rows.map((row) => [`${row.topicNumber} ${row.id}`, row])).values()]
  return {
    name: 'finished',
    text: `insert into ${table} (partition, topic_no, id, finished_at)
      select $1::int4, u.topic_no, u.id, u.finished_at
      from unnest($2::int4[], $3::text[], $4::int8[]) as u (topic_no, id, finished_at)
      on conflict (partition, topic_no, id) do update set finished_at = excluded.finished_at`,
    values: [
      partition,
      int4Array(last.map(({ topicNumber }) => topicNumber)),
      textArray(last.map(({ id }) => id)),
      int8Array(last.map(({ at }) => at)),
    ],
  }
}

/** In the order in which `put` writes them. */
const JOB_COLUMNS = [
  ...['partition', 'seq', 'topic_no', 'id', 'flags', 'state', 'priority', 'failures', 'deliveries', 'max_attempts'],
  ...['ack_deadline_ms', 'created_at', 'run_at', 'dead_at', 'reason', 'last_error', 'history', 'data'],
] as const
/** Of a row without id and payload: their number, a length for each, nine of four bytes and four of eight. */
const ROW_BYTES = 2 + JOB_COLUMNS.length * 4 + 9 * 4 + 4 * 8
const ID_UNIT_BYTES = 3

/** COPY takes a tenth less of the database's time than INSERT with arrays: it writes its log once for many rows. */
function put({ jobs }: PostgresTables, partition: number, rows: Rows['puts']): Request {
  let bytesMax = 0
  for (const job of rows) bytesMax += ROW_BYTES + job.id.length * ID_UNIT_BYTES + Math.max(0, payloadBytes(job))
  const copy = beginCopy(bytesMax)
  for (const job of rows) {
    addRow(copy, JOB_COLUMNS.length)
    addInt4(copy, partition)
    addInt8(copy, job.seq)
    addInt4(copy, job.topic.number)
    addText(copy, job.id)
    addInt4(copy, job.flags)
    addInt4(copy, 0)
    addInt4(copy, job.priority)
    addInt4(copy, 0)
    addInt4(copy, 0)
    addInt4(copy, job.maxAttempts)
    addInt4(copy, job.ackDeadlineMs)
    addInt8(copy, job.createdAt)
    addInt8(copy, job.runAt)
    addInt8(copy, 0)
    for (let text = 0; text < 3; text++) addBytes(copy, 0)
    writePayload(job, copy.buffer, addBytes(copy, payloadBytes(job)))
  }
  return { text: `copy ${jobs} (${JOB_COLUMNS.join()}) from stdin (format binary)`, copied: endCopy(copy) }
}
