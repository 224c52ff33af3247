/**
 * The one table of reasons for which a node does not do its work: `/ready`, the log and the operators' page use these
 * words. A new reason is a row here and a line in handle.ts.
 */

import type { Unavailable, UnavailableReason } from './handle.ts'

export type ReasonRow = {
  /** `all`: `/healthz` answers `unavailable`. `writes`: searches go on, so callers keep their connections. */
  readonly stops: 'all' | 'writes'
  readonly means: string
  readonly lookAt: string
  /** What to type. */
  readonly type: string
}

export const REASONS = {
  starting: {
    stops: 'all',
    means: 'The process has started and is opening its data directory, threads and ports.',
    lookAt: 'The log: each step of the start is one line. Longer than a minute points at a slow disk.',
    type: 'curl -s http://HOST:8080/status',
  },
  loading: {
    stops: 'all',
    means: 'The newest valid snapshot is being read into memory.',
    lookAt: 'The log line `loading snapshot` with its size; about 1 GB a second is usual from a local disk.',
    type: 'vacancy inspect DATA_DIR',
  },
  recovering: {
    stops: 'all',
    means: 'What was written after the snapshot is being applied again from the log files.',
    lookAt: 'The number of entries to apply in the log; fewer with a smaller snapshot_trigger_count.',
    type: 'vacancy inspect DATA_DIR',
  },
  stopping: {
    stops: 'all',
    means: 'The node was asked to stop, or the number of cores changed: it finishes what is in flight and ends.',
    lookAt: 'The exit code of the process: 0 is an orderly stop, 75 a changed number of cores.',
    type: 'vacancy run --config FILE --codecs FILE',
  },
  disk_full: {
    stops: 'writes',
    means: 'The disk has no room for the next log file. Writes are answered 503, searches go on, nothing is lost.',
    lookAt: 'vacancy_disk_free_bytes, and what else lies on that disk; quarantine/ in the data directory.',
    type: 'df -h DATA_DIR; du -sh DATA_DIR/*',
  },
  memory_full: {
    stops: 'writes',
    means: 'The memory for data is full. Writes that need more are answered 503; searches, updates and deletes go on.',
    lookAt: 'vacancy_memory_bytes, and vacancy_packages by segment: what can be deleted, or moved to another shard.',
    type: 'vacancy run --memory-max-bytes BYTES (at most 4294967296, then restart)',
  },
  disk_failed: {
    stops: 'all',
    means: 'A write or a sync failed. What was not synced is not trusted, so the process ends with exit code 70.',
    lookAt: 'The kernel log of the machine for errors of the disk; the file named in the log line.',
    type: 'dmesg | tail; vacancy inspect DATA_DIR',
  },
  digest_mismatch: {
    stops: 'all',
    means:
      'The state in memory is not the one that the log stands for: a fault in memory or in the program, exit code 73.',
    lookAt: 'The log line with both digests and the index; keep the data directory for a report.',
    type: 'vacancy inspect DATA_DIR; vacancy run --config FILE --codecs FILE (loads from disk again)',
  },
} as const satisfies Record<UnavailableReason, ReasonRow>

/** Whether the node answers reads in spite of these reasons: what `/healthz` tells. */
export function isActive(reasons: readonly Unavailable[]): boolean {
  return reasons.every(({ reason }) => REASONS[reason].stops !== 'all')
}

/** A reason as `/ready` and the log show it. */
export function tellReason({ reason, detail, sinceMs }: Unavailable) {
  const { stops, means, lookAt, type } = REASONS[reason]
  return { reason, stops, detail, since: new Date(sinceMs).toISOString(), means, look_at: lookAt, type }
}
