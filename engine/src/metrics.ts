/**
 * The table of metrics of a node (docs/design/http.md#metrics). http/scrape.ts has a reader for each row;
 * docs/metrics.md is generated from them. `process_*` and `nodejs_*` belong to prom-client.
 */

import {
  CERTIFICATE_END_METRIC,
  counter,
  gauge,
  histogram,
  type MetricSpec,
  type MetricsTable,
  TOKEN_END_METRIC,
} from '@vacancy/shared/node'

/** A row that a standalone node leaves out. */
const clustered = <const R extends MetricSpec>(row: R) => ({ ...row, appliesTo: 'clustered' }) as const

export const METRICS = {
  // Names of the contract, all without labels
  tcp_connections: gauge('Client connections that are open.'),
  tcp_commands_total: counter('Requests that were answered or refused.'),
  tcp_bytes_received_total: counter('Bytes received from clients.'),
  tcp_bytes_sent_total: counter('Bytes sent to clients.'),
  tcp_errors_total: counter('ERROR replies for reasons of the server: 408, 429, 500, 503.'),
  tcp_client_errors_total: counter('ERROR replies for reasons of the request.'),
  tcp_client_disconnects_total: counter('Connections that the client ended or lost.'),
  tcp_client_login_fail_total: counter('LOGIN requests with an unknown token.'),
  tcp_timeouts_total: counter('Connections closed because the client did not read replies or finish requests in time.'),
  tcp_rejected_connections_total: counter('Connections closed at once: tcp_max_connections.'),
  tcp_rejected_request_total: counter('Requests refused with 429.'),

  // Names of the contract in clustered mode, all without labels
  cluster_connection_opened_total: clustered(counter('Connections to other nodes that this node opened.')),
  cluster_connection_accepted_total: clustered(counter('Connections of other nodes that were accepted.')),
  cluster_connection_rejected_total: clustered(counter('Connections that were refused; the log has the reason.')),
  cluster_connection_error_total: clustered(counter('Connections that failed or could not be opened.')),
  cluster_connection_dropped_total: clustered(counter('Connections that were lost.')),
  cluster_message_sent_total: clustered(counter('Messages to other nodes.')),
  cluster_message_received_total: clustered(counter('Messages of other nodes.')),
  cluster_bytes_sent_total: clustered(counter('Bytes to other nodes.')),
  cluster_bytes_received_total: clustered(counter('Bytes from other nodes.')),
  cluster_send_error_total: clustered(counter('Messages dropped because no connection existed or its queue was full.')),
  cluster_receive_error_total: clustered(counter('Frames of other nodes that could not be read.')),
  cluster_leader_changed_total: clustered(counter('Changes of leader that this node observed.')),
  cluster_snapshot_produced_total: clustered(counter('Snapshots that were written.')),
  cluster_snapshot_failed_count_total: clustered(counter('Snapshots that could not be written.')),
  cluster_snapshot_transfer_count_total: clustered(counter('Snapshots that other nodes received from this one.')),
  cluster_snapshot_size_bytes: clustered(gauge('Size of the newest snapshot.')),
  cluster_snapshot_save_duration_ms: clustered(gauge('Time to write the newest snapshot.')),
  cluster_snapshot_write_pause_duration_ms: clustered(gauge('Longest write pause of the last snapshot.')),
  cluster_snapshot_load_duration_ms: clustered(gauge('Time to load the last snapshot into memory.')),
  cluster_snapshot_transfer_duration_ms: clustered(gauge('Time of the last transfer of a snapshot.')),
  cluster_wal_flush_count_total: clustered(counter('Groups of entries written with one sync each.')),
  cluster_last_applied_wal_index: clustered(gauge('Index of the last entry in the state.')),

  // Own metrics
  vacancy_build_info: gauge(
    'Always 1; the labels identify the program and its location. node and zone are empty in standalone mode.',
    ['version', 'node', 'shard', 'zone'],
  ),
  vacancy_health: gauge('1 for the value of /healthz, 0 for the others.', ['value']),
  vacancy_unavailable: gauge('1 while the reason holds; docs/reasons.md lists the action.', ['reason']),
  vacancy_commands_total: counter('Requests by command.', ['command']),
  vacancy_command_errors_total: counter(
    'ERROR replies by command and code: pairs that occurred, and 408, 429, 500 and 503 of commands in use.',
    ['command', 'code'],
  ),
  vacancy_command_duration_seconds: histogram(
    'Time of a request: queue, before its execution; run, until its reply was ready. Commands in use only.',
    ['command', 'phase'],
  ),
  vacancy_result_rows: histogram('Properties in the reply of a search.', ['command']),
  vacancy_search_retries_total: counter('Searches restarted because their table changed meanwhile.'),
  vacancy_tcp_connections: gauge('Client connections that are open.'),
  vacancy_tcp_connections_limit: gauge('Most connections: tcp_max_connections.'),
  vacancy_tcp_connections_opened_total: counter('Client connections that were accepted.'),
  vacancy_tcp_bytes_total: counter('Bytes from and to clients.', ['direction']),
  vacancy_tcp_protocol_errors_total: counter('Connections closed on malformed frames.'),
  vacancy_tcp_slabs_missing_total: counter('Reads postponed because no buffer for replies was free.'),
  vacancy_serving_threads: gauge('Threads that serve clients.'),
  vacancy_properties: gauge('Properties by segment; beyond 1,000 segments, the others together as `other`.', [
    'segment',
  ]),
  vacancy_packages: gauge('Packages by segment; beyond 1,000 segments, the others together as `other`.', ['segment']),
  vacancy_memory_bytes: gauge(
    'Memory: rss, heap and arraybuffers of the process; indexes, packages and free of the store; wal of the log.',
    ['kind'],
  ),
  vacancy_memory_budget_bytes: gauge(
    'Replicated accounting: budget (least memory of the voters), charged (upper bound of the data) and left for growth.',
    ['kind'],
  ),
  vacancy_stays: gauge('Records of stays, of all states.'),
  vacancy_stays_held: gauge('Stays on hold.'),
  vacancy_stays_bytes: gauge('Bytes of records of stays; the setting stays_bytes bounds them.'),
  vacancy_nights_oversold: gauge(
    'Nights on which rooms on hold are missing: the source of record took them back, or the package. See the runbook for oversold nights.',
  ),
  vacancy_stays_expired_total: counter('Holds that expired, as applied by this process.'),
  vacancy_stays_refused_total: counter(
    'Commands on stays that were refused, by wire code, as applied by this process.',
    ['code'],
  ),
  vacancy_stays_overflowed_rooms_total: counter('Rooms that a cancellation did not return, because 255 were left.'),
  vacancy_stays_unrecorded_rooms_total: counter(
    'Rooms a night that were given back by the lines of bookings without a record (RELEASESTAY with unrecorded).',
  ),
  vacancy_stays_evicted_total: counter(
    'Stays that were forgotten before their time, because stays_bytes was reached: ended ones, and bookings of nights to come.',
    ['state'],
  ),
  vacancy_cores: gauge('Cores of the machine, at the start of the process and now.', ['when']),
  vacancy_event_loop_delay_seconds: gauge(
    'Longest delay of an event loop: serving and main since the last scrape, replica as last reported.',
    ['thread'],
  ),
  vacancy_codec_mismatch: gauge(
    '1 when data of another codec list was set aside at the start, or the registry has another list now.',
  ),
  vacancy_raft_role: gauge('1 for the role of this node.', ['role']),
  vacancy_raft_term: gauge('Current term.'),
  vacancy_raft_commit_index: gauge('Index of the last committed entry.'),
  vacancy_raft_applied_index: gauge('Index of the last entry in the state.'),
  vacancy_raft_commit_seconds: histogram('From the arrival of a write to its commit.'),
  vacancy_raft_lag_entries: clustered(gauge('Log entries that a member is behind, as seen by its leader.', ['peer'])),
  vacancy_raft_lag_seconds: clustered(gauge('Age of the oldest entry that a member lacks.', ['peer'])),
  vacancy_raft_peer_rtt_seconds: clustered(histogram('Round trip of heartbeats to a member.', ['peer'])),
  vacancy_raft_peer_state: clustered(
    gauge(
      'How the leader replicates to a member: 0 probes for the end of its log, 1 sends entries, 2 sends a snapshot.',
      ['peer'],
    ),
  ),
  vacancy_raft_elections_total: clustered(
    counter('Elections in which this node was a candidate: won, lost, or refused before they began.', ['result']),
  ),
  vacancy_raft_leader_changes_total: clustered(counter('Changes of leader that this node observed.')),
  vacancy_raft_proposals_total: clustered(
    counter('Proposals of this node: applied, dropped (certainly not applied), or unknown.', ['outcome']),
  ),
  vacancy_raft_tick_stalls_total: clustered(counter('Times that the replica was late for its ticks.')),
  vacancy_read_staleness_seconds: clustered(
    gauge('Greatest age of the data in a reply of this node; at 10 s it stops reads.'),
  ),
  vacancy_cluster_operations_total: clustered(
    counter('Membership changes and loads that ended while this node led: done or failed.', ['result']),
  ),
  vacancy_peers_rejected_total: clustered(
    counter('Connections of other nodes that were refused, by reason.', ['reason']),
  ),
  vacancy_clock_suspect: clustered(gauge('1 while the clock is more than 60 s from that of the other voters.')),
  vacancy_clock_state: gauge(
    '1 for the state of shard time: following the clock, holding (not following), suspect (ahead of the clock).',
    ['state'],
  ),
  vacancy_clock_offset_seconds: gauge('The observed clock minus shard time.'),
  vacancy_clock_shard_time_seconds: gauge('Shard time, seconds since 1970. It decides which nights are past.'),
  vacancy_dedup_hits_total: counter('Repeated writes answered by their request key.'),
  vacancy_dedup_sessions: gauge('Known sessions of request keys.'),
  vacancy_digest_checks_total: counter(
    'Comparisons of the state with its digest in the log; a difference ends the process (exit code 73).',
    ['result'],
  ),
  vacancy_wal_fsync_seconds: histogram('Time of one sync of the log.'),
  vacancy_wal_bytes: gauge('Bytes of the log files.'),
  vacancy_wal_files: gauge('Log files.'),
  vacancy_wal_groups_total: counter('Groups of entries written with one sync each.'),
  vacancy_wal_torn_tail_bytes_total: counter('Bytes of an unfinished last group that the start cut off.'),
  vacancy_wal_group_entries: histogram('Entries written with one sync.'),
  vacancy_wal_corruption_total: counter(
    'Chunks of snapshots that no longer verified when they were read back. Damage of the log ends the node.',
  ),
  vacancy_wal_slow: gauge('1 while syncs of the log take more than a second each.'),
  vacancy_disk_free_bytes: gauge('Free bytes of the disk with the data directory.'),
  vacancy_disk_full: gauge('1 while writes are refused because the disk is full.'),
  vacancy_snapshot_age_seconds: gauge('Age of the newest snapshot.'),
  vacancy_snapshot_bytes: gauge('Size of the newest snapshot.'),
  vacancy_snapshot_duration_seconds: histogram('Time to write a snapshot.'),
  vacancy_snapshot_running: gauge('1 while a snapshot is written.'),
  vacancy_snapshot_failures_total: counter('Snapshots that could not be written.'),
  vacancy_snapshot_spare_pages: gauge('Pages kept ready for changes while a snapshot is written.'),
  vacancy_snapshot_transfers: clustered(gauge('Snapshots on their way: sending, receiving.', ['state'])),
  vacancy_registry_up: clustered(gauge('1 while the registry responds.')),
  vacancy_registry_push_total: clustered(
    counter('Segment lists sent to the registry: accepted, conflict, refused or failed.', ['result']),
  ),
  vacancy_resolver_duration_seconds: clustered(histogram('Time of a lookup, by kind.', ['kind'])),
  vacancy_resolver_errors_total: clustered(counter('Failed lookups, by kind.', ['kind'])),
  tls_cert_not_after_seconds: CERTIFICATE_END_METRIC,
  token_not_after_seconds: TOKEN_END_METRIC,
  vacancy_maintenance_last_success_timestamp_seconds: gauge('When passed dates were last removed, seconds since 1970.'),
  vacancy_maintenance_removed_packages_total: counter('Packages of passed dates that were removed.'),
} as const satisfies MetricsTable

export type MetricName = keyof typeof METRICS
