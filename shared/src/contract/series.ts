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
  readonly of: 'node' | 'shard' | 'both' | 'cluster'
  /** Within a sentence or a legend. */
  readonly label: string
  /** Title of its chart on the pages of shards and nodes. Without a title there is no chart. */
  readonly title?: string
  /** Absent for values that the control plane derives from several nodes. */
  readonly source?: SeriesSource
  /** Of the cluster: the same values as a query of Prometheus, where a program exports them. */
  readonly promql?: string
}

const COMMANDS_TOTAL = 'vacancy_commands_total'
const REFUSED_TOTAL = 'vacancy_stays_refused_total'
/** Reads, from their start to their response. */
const RUN_SECONDS = {
  metric: 'vacancy_command_duration_seconds_bucket',
  access: 'read',
  label: ['phase', 'run'],
} as const

/** Series kept for each node, each shard and the cluster: 10 s for 1 h, 1 min for 24 h. Charts are in this order. */
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
    // Refusals of requests, as of a room that is sold out or of a write to a follower, are no errors.
    source: { metric: 'tcp_errors_total', as: 'rate' },
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
  // Of stays: the shard's value is that of the node with the highest one, since followers apply the same and lag.
  stays_held: {
    ...{ unit: 'stays', of: 'shard', label: 'on hold' },
    source: { metric: 'vacancy_stays_held', as: 'value' },
  },
  nights_oversold: {
    ...{ unit: 'nights', of: 'shard', label: 'oversold' },
    source: { metric: 'vacancy_nights_oversold', as: 'value' },
  },
  stays_holds: {
    ...{ unit: '1/s', of: 'shard', label: 'holds' },
    source: { metric: COMMANDS_TOTAL, label: ['command', 'HOLDSTAY'], as: 'rate' },
  },
  stays_booked: {
    ...{ unit: '1/s', of: 'shard', label: 'bookings' },
    source: { metric: COMMANDS_TOTAL, label: ['command', 'BOOKSTAY'], as: 'rate' },
  },
  stays_confirmed: {
    ...{ unit: '1/s', of: 'shard', label: 'confirmations' },
    source: { metric: COMMANDS_TOTAL, label: ['command', 'CONFIRMSTAY'], as: 'rate' },
  },
  stays_released: {
    ...{ unit: '1/s', of: 'shard', label: 'releases' },
    source: { metric: COMMANDS_TOTAL, label: ['command', 'RELEASESTAY'], as: 'rate' },
  },
  stays_expired: {
    ...{ unit: '1/s', of: 'shard', label: 'expiries' },
    source: { metric: 'vacancy_stays_expired_total', as: 'rate' },
  },
  refused_sold_out: {
    ...{ unit: '1/s', of: 'shard', label: 'sold out' },
    source: { metric: REFUSED_TOTAL, label: ['code', 'SOLD_OUT'], as: 'rate' },
  },
  refused_price: {
    ...{ unit: '1/s', of: 'shard', label: 'price changed' },
    source: { metric: REFUSED_TOTAL, label: ['code', 'PRICE_CHANGED'], as: 'rate' },
  },
  refused_expired: {
    ...{ unit: '1/s', of: 'shard', label: 'expired' },
    source: { metric: REFUSED_TOTAL, label: ['code', 'EXPIRED'], as: 'rate' },
  },
  refused_conflict: {
    ...{ unit: '1/s', of: 'shard', label: 'conflict' },
    source: { metric: REFUSED_TOTAL, label: ['code', 'CONFLICT'], as: 'rate' },
  },
  // Of the fabric, the queue, imports and the control plane itself: recorded for the cluster only.
  fabric_reads: { unit: '1/s', of: 'cluster', label: 'reads' },
  fabric_writes: { unit: '1/s', of: 'cluster', label: 'writes' },
  fabric_errors: { unit: '1/s', of: 'cluster', label: 'errors' },
  fabric_p99: { unit: 'ms', of: 'cluster', label: 'slowest p99' },
  fabric_down: { unit: '', of: 'cluster', label: 'down' },
  fabric_components: { unit: '', of: 'cluster', label: 'known' },
  queue_ready: { unit: 'jobs', of: 'cluster', label: 'ready', promql: 'sum(vacancy_queue_ready_jobs)' },
  queue_leased: { unit: 'jobs', of: 'cluster', label: 'leased', promql: 'sum(vacancy_queue_leased_jobs)' },
  queue_delayed: { unit: 'jobs', of: 'cluster', label: 'delayed', promql: 'sum(vacancy_queue_delayed_jobs)' },
  queue_dead: { unit: 'jobs', of: 'cluster', label: 'dead', promql: 'sum(vacancy_queue_dead_jobs)' },
  queue_in: {
    unit: '1/s',
    of: 'cluster',
    label: 'accepted',
    promql: 'sum(rate(vacancy_queue_jobs_accepted_total[1m]))',
  },
  queue_out: { unit: '1/s', of: 'cluster', label: 'finished', promql: 'sum(rate(vacancy_queue_jobs_acked_total[1m]))' },
  queue_failed: { unit: '1/s', of: 'cluster', label: 'failed' },
  queue_consumers: { unit: '', of: 'cluster', label: 'consumers', promql: 'sum(vacancy_queue_consumers)' },
  import_records: { unit: '1/s', of: 'cluster', label: 'records' },
  import_running: { unit: '', of: 'cluster', label: 'running' },
  control_polls: {
    ...{ unit: '1/s', of: 'cluster', label: 'requests' },
    promql: 'sum(rate(control_node_requests_total[1m]))',
  },
  control_failures: {
    ...{ unit: '1/s', of: 'cluster', label: 'without response' },
    promql: 'sum(rate(control_node_failures_total[1m]))',
  },
  control_round: {
    ...{ unit: 'ms', of: 'cluster', label: 'round' },
    promql: '1000 * control_poll_round_seconds',
  },
  control_clients: { unit: '', of: 'cluster', label: 'browsers', promql: 'control_live_connections' },
  control_frames: {
    ...{ unit: '1/s', of: 'cluster', label: 'frames' },
    promql: 'rate(control_live_frames_total[1m])',
  },
  control_bytes: { unit: 'B', of: 'cluster', label: 'bytes', promql: 'rate(control_live_bytes_total[1m])' },
  control_memory: { unit: 'B', of: 'cluster', label: 'memory', promql: 'process_resident_memory_bytes' },
} as const satisfies { readonly [name: string]: Series }
export type SeriesName = keyof typeof SERIES
