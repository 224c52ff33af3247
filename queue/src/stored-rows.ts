/** Rows of the journal as the queue keeps them. Apart from the tables: the thread of SQLite does not load the contract. */
import { type DeadReason, type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import type { HistoryLine, RedriveRecord } from './job.ts'
import type { JobTable, JournalTables } from './journal-tables.ts'
import type { StoredJob, StoredTopic } from './queue.ts'

export function storedTopic(row: JournalTables['topics']): StoredTopic {
  return { name: row.name, number: row.topic_no, createdAt: row.created_at, ...topicDocument(JSON.parse(row.config)) }
}

/** The configuration of a topic as it is stored, with its long redrive. */
export function topicDocument(document: unknown): Pick<StoredTopic, 'config' | 'redrive'> {
  // Keys of later versions are left out, and missing ones get their default.
  const config: TopicConfig = topicConfig.parse(document)
  // Written by this program alone.
  const { redrive } = document as { readonly redrive?: RedriveRecord }
  return { config, redrive }
}

/** @param payload as the engine keeps it */
export function storedJob(
  row: Omit<JobTable, 'data'>,
  payload: Pick<StoredJob, 'data' | 'bytes' | 'trace'>,
): StoredJob {
  const hasPast = row.history !== '' || row.state === 1
  return {
    id: row.id,
    topicNumber: row.topic_no,
    seq: row.seq,
    flags: row.flags,
    isDead: row.state === 1,
    priority: row.priority,
    failures: row.failures,
    deliveries: row.deliveries,
    maxAttempts: row.max_attempts,
    ackDeadlineMs: row.ack_deadline_ms,
    createdAt: row.created_at,
    runAt: row.run_at,
    ...payload,
    past: hasPast
      ? {
          lastError: row.last_error,
          reason: row.reason === '' ? undefined : (row.reason as DeadReason),
          deadAt: row.dead_at,
          history: row.history === '' ? [] : (JSON.parse(row.history) as HistoryLine[]),
        }
      : undefined,
  }
}
