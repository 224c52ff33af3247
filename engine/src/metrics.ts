/**
 * The one table of metrics of a node (platform.md §7.7, consensus.md §22). http/scrape.ts has a reader for each row;
 * docs/metrics.md is made from them. `process_*` and `nodejs_*` are prom-client's.
 */

import type { MetricsTable } from '@vacancy/shared/node'

export const METRICS = {
  // The contract's names, none with labels.
  tcp_connections: { type: 'gauge', help: 'Client connections that are open.' },
  tcp_commands_total: { type: 'counter', help: 'Requests that were answered or refused.' },
  tcp_bytes_received_total: { type: 'counter', help: 'Bytes received from clients.' },
  tcp_bytes_sent_total: { type: 'counter', help: 'Bytes sent to clients.' },
  tcp_errors_total: { type: 'counter', help: 'ERROR replies for reasons of the server: 408, 429, 500, 503.' },
  tcp_client_errors_total: { type: 'counter', help: 'ERROR replies for reasons of the request.' },
  tcp_client_disconnects_total: { type: 'counter', help: 'Connections that the client ended or lost.' },
  tcp_client_login_fail_total: { type: 'counter', help: 'LOGIN requests with an unknown token.' },
  tcp_timeouts_total: {
    type: 'counter',
    help: 'Connections closed because they did not take or finish what was sent.',
  },
  tcp_rejected_connections_total: { type: 'counter', help: 'Connections closed at once: tcp_max_connections.' },
  tcp_rejected_request_total: { type: 'counter', help: 'Requests refused with 429.' },

  // Ours.
  vacancy_build_info: {
    type: 'gauge',
    help: 'Always 1; the labels say which program runs where. node and zone are empty in standalone mode.',
    labels: ['version', 'node', 'shard', 'zone'],
  },
  vacancy_health: { type: 'gauge', help: '1 for what /healthz answers, 0 for the other value.', labels: ['value'] },
  vacancy_unavailable: {
    type: 'gauge',
    help: '1 while the reason holds; docs/reasons.md says what to do.',
    labels: ['reason'],
  },
  vacancy_commands_total: { type: 'counter', help: 'Requests by command.', labels: ['command'] },
  vacancy_command_errors_total: {
    type: 'counter',
    help: 'ERROR replies by command and code; only pairs that occurred.',
    labels: ['command', 'code'],
  },
  vacancy_command_duration_seconds: {
    type: 'histogram',
    help: 'Time of a request: queue, before it was looked at; run, until its reply was ready. Commands in use only.',
    labels: ['command', 'phase'],
  },
  vacancy_result_rows: { type: 'histogram', help: 'Properties in the reply of a search.', labels: ['command'] },
  vacancy_search_retries_total: {
    type: 'counter',
    help: 'Searches begun again because their table changed meanwhile.',
  },
  vacancy_tcp_connections: { type: 'gauge', help: 'Client connections that are open.' },
  vacancy_tcp_connections_limit: { type: 'gauge', help: 'Most connections: tcp_max_connections.' },
  vacancy_tcp_connections_opened_total: { type: 'counter', help: 'Client connections that were accepted.' },
  vacancy_tcp_bytes_total: { type: 'counter', help: 'Bytes from and to clients.', labels: ['direction'] },
  vacancy_tcp_protocol_errors_total: {
    type: 'counter',
    help: 'Connections closed because their bytes were no frames.',
  },
  vacancy_tcp_slabs_missing_total: { type: 'counter', help: 'Reads put off because no buffer for replies was free.' },
  vacancy_serving_threads: { type: 'gauge', help: 'Threads that serve clients.' },
  vacancy_properties: {
    type: 'gauge',
    help: 'Properties by segment; beyond 1,000 segments, the others together as `other`.',
    labels: ['segment'],
  },
  vacancy_packages: {
    type: 'gauge',
    help: 'Packages by segment; beyond 1,000 segments, the others together as `other`.',
    labels: ['segment'],
  },
  vacancy_memory_bytes: {
    type: 'gauge',
    help: 'Memory: rss, heap and arraybuffers of the process; indexes, packages and free of the store.',
    labels: ['kind'],
  },
  vacancy_cores: {
    type: 'gauge',
    help: 'Cores of the machine, at the start of the process and now.',
    labels: ['when'],
  },
  vacancy_event_loop_delay_seconds: {
    type: 'gauge',
    help: 'Longest delay of an event loop: serving and main since the last scrape, replica as last reported.',
    labels: ['thread'],
  },
  vacancy_codec_mismatch: { type: 'gauge', help: '1 when data of another codec list was set aside at the start.' },
  vacancy_raft_role: { type: 'gauge', help: '1 for the role of this node.', labels: ['role'] },
  vacancy_raft_term: { type: 'gauge', help: 'Current term.' },
  vacancy_raft_commit_index: { type: 'gauge', help: 'Index of the last committed entry.' },
  vacancy_raft_applied_index: { type: 'gauge', help: 'Index of the last entry in the state.' },
  vacancy_raft_commit_seconds: { type: 'histogram', help: 'From the arrival of a write to its commit.' },
  vacancy_dedup_hits_total: { type: 'counter', help: 'Repeated writes answered by their request key.' },
  vacancy_dedup_sessions: { type: 'gauge', help: 'Sessions of request keys that are known.' },
  vacancy_digest_checks_total: {
    type: 'counter',
    help: 'Comparisons of the state with its digest in the log; one that differs ends the process (exit code 73).',
    labels: ['result'],
  },
  vacancy_wal_fsync_seconds: { type: 'histogram', help: 'Time of one sync of the log.' },
  vacancy_wal_bytes: { type: 'gauge', help: 'Bytes of the log files.' },
  vacancy_wal_files: { type: 'gauge', help: 'Log files.' },
  vacancy_wal_groups_total: { type: 'counter', help: 'Groups of entries written with one sync each.' },
  vacancy_wal_torn_tail_bytes_total: {
    type: 'counter',
    help: 'Bytes of an unfinished last group that the start cut off.',
  },
  vacancy_disk_free_bytes: { type: 'gauge', help: 'Free bytes of the disk with the data directory.' },
  vacancy_disk_full: { type: 'gauge', help: '1 while writes are refused because the disk is full.' },
  vacancy_snapshot_age_seconds: { type: 'gauge', help: 'Age of the newest snapshot.' },
  vacancy_snapshot_bytes: { type: 'gauge', help: 'Size of the newest snapshot.' },
  vacancy_snapshot_duration_seconds: { type: 'histogram', help: 'Time to write a snapshot.' },
  vacancy_snapshot_running: { type: 'gauge', help: '1 while a snapshot is written.' },
  vacancy_snapshot_failures_total: { type: 'counter', help: 'Snapshots that could not be written.' },
  vacancy_snapshot_spare_pages: { type: 'gauge', help: 'Pages kept ready for changes while a snapshot is written.' },
  vacancy_maintenance_last_success_timestamp_seconds: {
    type: 'gauge',
    help: 'When passed dates were last removed, seconds since 1970.',
  },
  vacancy_maintenance_removed_packages_total: { type: 'counter', help: 'Packages of passed dates that were removed.' },
} as const satisfies MetricsTable

export type MetricName = keyof typeof METRICS
