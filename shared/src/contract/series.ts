/** The series of the control plane: each states its source, unit and title once. Without dependencies, for browsers. */

/**
 * Where a series comes from: a metric of the nodes (engine/src/metrics.ts), of commands with this access or of samples
 * with this label only. `value` is the reported value, `rate` the increase per second, and a number that quantile of
 * a histogram of seconds, in milliseconds.
 */
export type SeriesSource = {
  readonly metric: string
  readonly access?: 'read' | 'write'
  readonly label?: readonly [name: string, value: string]
  readonly as: 'value' | 'rate' | number
}
type Series = {
  readonly unit: string
  readonly of: 'node' | 'shard' | 'both'
  /** Within a sentence or a legend. */
  readonly label: string
  /** Of its chart on the pages of shards and nodes; without one it has none there. */
  readonly title?: string
  /** Absent for values that the control plane derives from several nodes. */
  readonly source?: SeriesSource
}

const COMMANDS_TOTAL = 'vacancy_commands_total'
/** Reads, from their start to their response. */
const RUN_SECONDS = {
  metric: 'vacancy_command_duration_seconds_bucket',
  access: 'read',
  label: ['phase', 'run'],
} as const

/** Series kept for each node and each shard: 10 s for 1 h, 1 min for 24 h. Charts are in this order. */
export const SERIES = {
  queries: {
    ...{ unit: '1/s', of: 'both', label: 'queries', title: 'Queries' },
    source: { metric: COMMANDS_TOTAL, access: 'read', as: 'rate' },
  },
  writes: {
    ...{ unit: '1/s', of: 'both', label: 'writes', title: 'Writes' },
    source: { metric: COMMANDS_TOTAL, access: 'write', as: 'rate' },
  },
  errors: {
    ...{ unit: '1/s', of: 'both', label: 'errors', title: 'Errors' },
    source: { metric: 'vacancy_command_errors_total', as: 'rate' },
  },
  p50: {
    ...{ unit: 'ms', of: 'node', label: 'read p50', title: 'Read p50' },
    source: { ...RUN_SECONDS, as: 0.5 },
  },
  p99: {
    ...{ unit: 'ms', of: 'node', label: 'read p99', title: 'Read p99' },
    source: { ...RUN_SECONDS, as: 0.99 },
  },
  lag_entries: { unit: 'entries', of: 'node', label: 'lag', title: 'Lag' },
  lag_seconds: { unit: 's', of: 'node', label: 'lag' },
  commit_p99: {
    ...{ unit: 'ms', of: 'node', label: 'commit p99', title: 'Commit p99' },
    source: { metric: 'vacancy_raft_commit_seconds_bucket', as: 0.99 },
  },
  fsync_p99: {
    ...{ unit: 'ms', of: 'node', label: 'fsync p99', title: 'fsync p99' },
    source: { metric: 'vacancy_wal_fsync_seconds_bucket', as: 0.99 },
  },
  memory: {
    ...{ unit: 'B', of: 'node', label: 'memory', title: 'Memory' },
    source: { metric: 'vacancy_memory_bytes', label: ['kind', 'rss'], as: 'value' },
  },
  wal: {
    ...{ unit: 'B', of: 'node', label: 'log', title: 'Log on disk' },
    source: { metric: 'vacancy_wal_bytes', as: 'value' },
  },
  connections: {
    ...{ unit: '', of: 'node', label: 'connections', title: 'Connections' },
    source: { metric: 'vacancy_tcp_connections', as: 'value' },
  },
  cpu: {
    ...{ unit: 'cores', of: 'node', label: 'CPU', title: 'CPU' },
    source: { metric: 'process_cpu_seconds_total', as: 'rate' },
  },
  leader_moves: { unit: '', of: 'shard', label: 'leader changes' },
} as const satisfies { readonly [name: string]: Series }
export type SeriesName = keyof typeof SERIES
