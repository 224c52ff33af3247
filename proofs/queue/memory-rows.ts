/** The rows of a journal in memory, written and read as the real ones are. */
import { assert } from '@vacancy/shared'
import type { DeadReason } from '@vacancy/shared/contract'
import { itemsOf } from '../../queue/src/id-index.ts'
import type { Job, Topic } from '../../queue/src/job.ts'
import type { Stored } from '../../queue/src/journal.ts'
import { rowsOf } from '../../queue/src/journal-tables.ts'
import type { StoredJob, StoredTopic } from '../../queue/src/queue.ts'
import type { Change } from '../../queue/src/state.ts'
import { topicDocument } from '../../queue/src/stored-rows.ts'

export type MemoryRows = {
  readonly topics: Map<number, StoredTopic>
  readonly jobs: Map<number, StoredJob>
  readonly finished: Map<string, { topicNumber: number; id: string; at: number }>
}

/** All jobs of a topic in order of acceptance. */
export function jobsOf({ jobs }: Topic): Job[] {
  return itemsOf(jobs).sort((a, b) => a.seq - b.seq)
}

export function createRows(): MemoryRows {
  return { topics: new Map(), jobs: new Map(), finished: new Map() }
}

/** Writes a group in the order of the real journals. */
export function writeRows(rows: MemoryRows, changes: readonly Change[]): void {
  const { topics, updates, done, finished, forgotten, puts } = rowsOf(changes)
  for (const each of topics) {
    if ('topic' in each) {
      const { config, ...topic } = each.topic
      // As text, like the real ones.
      rows.topics.set(topic.number, { ...topic, ...topicDocument(JSON.parse(JSON.stringify(config))) })
    } else {
      rows.topics.delete(each.gone)
      for (const [seq, job] of rows.jobs) if (job.topicNumber === each.gone) rows.jobs.delete(seq)
      for (const [key, { topicNumber }] of rows.finished) if (topicNumber === each.gone) rows.finished.delete(key)
    }
  }
  for (const row of updates) {
    const job = rows.jobs.get(row.seq)
    // Of a deleted topic.
    if (job === undefined) continue
    rows.jobs.delete(row.seq)
    rows.jobs.set(row.newSeq, {
      ...job,
      seq: row.newSeq,
      flags: row.flags,
      isDead: row.state === 1,
      failures: row.failures,
      deliveries: row.deliveries,
      runAt: row.run_at,
      past:
        row.history === '' && row.state === 0
          ? undefined
          : {
              lastError: row.last_error,
              reason: row.reason === '' ? undefined : (row.reason as DeadReason),
              deadAt: row.dead_at,
              history: row.history === '' ? [] : JSON.parse(row.history),
            },
    })
  }
  for (const seq of done) rows.jobs.delete(seq)
  for (const each of finished) rows.finished.set(`${each.topicNumber} ${each.id}`, each)
  for (const { topicNumber, ids } of forgotten) for (const id of ids) rows.finished.delete(`${topicNumber} ${id}`)
  for (const job of puts.map(storedJobOf)) {
    if (!rows.topics.has(job.topicNumber)) continue
    for (const other of rows.jobs.values())
      assert(other.topicNumber !== job.topicNumber || other.id !== job.id, `the id ${job.id} is unique in its topic`)
    rows.jobs.set(job.seq, job)
  }
}

function storedJobOf(job: Job): StoredJob {
  const { id, seq, flags, priority, maxAttempts, ackDeadlineMs, createdAt, runAt, data, bytes } = job
  const fields = { id, seq, flags, priority, maxAttempts, ackDeadlineMs, createdAt, runAt, data, bytes }
  const isNew = { isDead: false, failures: 0, deliveries: 0, past: undefined }
  return { ...fields, topicNumber: job.topic.number, ...isNew }
}

export function* storedRows(rows: MemoryRows): Generator<Stored> {
  for (const topic of rows.topics.values()) yield { kind: 'topic', topic }
  for (const each of rows.finished.values()) yield { kind: 'finished', ...each }
  yield { kind: 'jobs', jobs: [...rows.jobs.values()].sort((a, b) => a.seq - b.seq) }
}
