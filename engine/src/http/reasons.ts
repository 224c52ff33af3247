/**
 * The table of reasons why a node does not do its work. `/ready`, the log and the operators' page use these texts. A
 * new reason needs a row here and a line in handle.ts.
 */

import type { ClusterReason, Unavailable, UnavailableReason } from './handle.ts'

export type ReasonRow = {
  /**
   * `all`: `/healthz` returns `unavailable`. `writes`: searches continue, so callers keep their connections. `nothing`:
   * the node does all of its work and is ready, but an operator should look.
   */
  readonly stops: 'all' | 'writes' | 'nothing'
  readonly means: string
  readonly lookAt: string
  /** Command to run. */
  readonly type: string
}

/** Reasons of every node. */
export const NODE_REASONS = {
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
    means: 'The log entries after the snapshot are being applied.',
    lookAt: 'The number of entries to apply in the log; fewer with a smaller snapshot_trigger_count.',
    type: 'vacancy inspect DATA_DIR',
  },
  stopping: {
    stops: 'all',
    means: 'The node received a stop request, or the number of cores changed. It finishes requests in flight and ends.',
    lookAt: 'The exit code of the process: 0 is a graceful shutdown, 75 a changed number of cores.',
    type: 'vacancy run --config FILE --codecs FILE',
  },
  disk_full: {
    stops: 'writes',
    means: 'The disk has no room for the next log file. Writes get 503, searches continue, no data is lost.',
    lookAt: 'vacancy_disk_free_bytes, and the other files on that disk; quarantine/ in the data directory.',
    type: 'df -h DATA_DIR; du -sh DATA_DIR/*',
  },
  disk_stuck: {
    stops: 'writes',
    means:
      'A sync of the log has not returned for 2.5 s, or the thread that writes does not respond. A leader hands its role to another voter; searches continue while they are fresh enough.',
    lookAt: 'The disk, its controller or the network storage behind it. The node continues when the disk answers.',
    type: 'iostat -x 1; dmesg | tail',
  },
  codecs_changed: {
    stops: 'nothing',
    means:
      'The node was started with another codec list than its data: they were set aside, and it started without them.',
    lookAt: 'Whether the change was intended. If not, stop the node, restore the data, and start it with the old list.',
    type: 'vacancy quarantine list --data-dir DATA_DIR; then restore NAME, accept NAME or remove NAME',
  },
  certificate_ends: {
    stops: 'nothing',
    means:
      'A certificate, its authority or a token ends within 14 days, or has ended. Then connections with it are refused.',
    lookAt: 'The details, which name it and its end. New files are read again when they change.',
    type: 'vacancy certs node --help; curl -X POST http://HOST:8080/tls-rotate',
  },
  disk_low: {
    stops: 'nothing',
    means: 'Free disk space is below two log files, or below a twentieth of the disk. No request is refused yet.',
    lookAt: 'vacancy_disk_free_bytes, and the other files on that disk; quarantine/ in the data directory.',
    type: 'df -h DATA_DIR; du -sh DATA_DIR/*',
  },
  memory_full: {
    stops: 'writes',
    means:
      'The memory budget of the shard is used up. Writes that need more get 503; searches, updates, deletes and request keys continue.',
    lookAt:
      'vacancy_memory_budget_bytes, and vacancy_packages by segment: what can be deleted, or moved to another shard.',
    type: 'vacancy run --memory-max-bytes BYTES (at most 4294967296, then restart; in a shard on every voter)',
  },
  stays_full: {
    stops: 'nothing',
    means:
      'stays_bytes was reached within the last day: stays are forgotten before their time. Those that have ended go first; a booking that is forgotten cannot be changed or released by its id.',
    lookAt: 'vacancy_stays_evicted_total by state, and vacancy_stays_bytes; the memory budget of the shard.',
    type: `curl -s -X POST -d '{"name":"stays_bytes","value":536870912}' http://HOST:8080/admin/settings`,
  },
  disk_failed: {
    stops: 'all',
    means: 'A write or a sync failed. Unsynced data is not trusted, so the process ends with exit code 70.',
    lookAt: 'The kernel log of the machine for disk errors; the file named in the log line.',
    type: 'dmesg | tail; vacancy inspect DATA_DIR',
  },
  digest_mismatch: {
    stops: 'all',
    means:
      'The state in memory differs from the state that the log yields: a fault in memory or in the program. No request is served, and after 10 s the process ends with exit code 73.',
    lookAt:
      'The log line with both digests and the index, also in DATA_DIR/SUSPECT. A restarted member sets its data aside and gets the state from its peers. Test the memory of the machine.',
    type: 'vacancy run-clustered … (again); vacancy quarantine list DATA_DIR; standalone node: restore a backup, or vacancy run --accept-loss',
  },
  clock: {
    stops: 'writes',
    means:
      'Shard time is more than 10 minutes ahead of the clock that a majority of the voters shares. Writes for nights that are past by shard time are refused. Searches continue, maintenance waits.',
    lookAt:
      'The clocks of all machines of the shard. If they are right, the log was written under a wrong clock: set the time. If not, correct the clocks, and the reason clears by itself.',
    type: 'date -u; vacancy cluster set-time --node HOST:8080 (shows what it would do; then with --yes)',
  },
  clock_suspect: {
    stops: 'nothing',
    means:
      'The clock is more than 60 s from shard time, or from that of the other voters. Shard time does not follow it.',
    lookAt: 'The clocks of all machines of the shard, and their time service.',
    type: 'date -u; vacancy run --accept-date YYYY-MM-DD (a standalone node that was off for more than 30 days)',
  },
} as const satisfies Record<Exclude<UnavailableReason, ClusterReason>, ReasonRow>

/** Reasons of clustered mode. */
export const CLUSTER_REASONS = {
  waiting_for_registry: {
    stops: 'all',
    means:
      'The registry does not respond, and the data directory has no copy of the codec list. The node retries until it does.',
    lookAt: 'The address in the details, and whether the registry runs. The start continues once it responds.',
    type: 'curl -s http://REGISTRY/codecs',
  },
  forming: {
    stops: 'all',
    means:
      'The shard has not formed: without a snapshot all nodes of --initial-voters must report that they hold no data.',
    lookAt: 'The voters that are silent or refused in `bootstrap`; their logs, resolver entries and certificates.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  waiting_for_snapshot: {
    stops: 'all',
    means: 'The shard has not formed: a strict majority of --initial-voters must hold the same snapshot.',
    lookAt: 'The snapshot of each voter in `bootstrap`. No snapshot is chosen by date or size, and none is dropped.',
    type: 'vacancy cluster info --node HOST:8080; cp seed.snapshot DATA_DIR/ (on one more voter, then start it again)',
  },
  joining: {
    stops: 'all',
    means: 'The node requests membership from the nodes of --seed or known peers. No leader has admitted it yet.',
    lookAt: 'Whether one of them is reachable and the shard has a leader. A refusal is in both logs.',
    type: 'vacancy cluster info --node SEED:8080',
  },
  removed: {
    stops: 'all',
    means: 'The node was removed from the shard. It gets no more entries, so its data becomes stale.',
    lookAt:
      '`vacancy cluster operations` shows when. Stop the node; with an empty data directory it joins as a new member.',
    type: 'curl -s -X POST -d \'{"confirm":true}\' http://HOST:8080/shutdown',
  },
  installing: {
    stops: 'all',
    means: 'A snapshot of the leader is being received and loaded: the node was empty, or too far behind for the log.',
    lookAt: 'The bytes in the details. Received chunks are kept across restarts and leader changes.',
    type: 'curl -s http://HOST:8080/status',
  },
  awaiting_load: {
    stops: 'all',
    means: 'The shard was loaded with another snapshot, and this node still lacks chunks of it.',
    lookAt: 'The missing bytes in the details; the connections to the other nodes, and free disk space.',
    type: 'curl -s http://HOST:8080/status; df -h DATA_DIR',
  },
  catching_up: {
    stops: 'all',
    means: 'Since its start the node has not yet confirmed with a leader that it is up to date.',
    lookAt: 'The lag of this node at the leader; without a leader it cannot be confirmed.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  stale: {
    stops: 'all',
    means: 'The node could not confirm for more than 10 s that it is up to date: it is cut off, or far behind.',
    lookAt: 'The lag of this node at the leader, the connections between the nodes, and the load of this machine.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  no_leader: {
    stops: 'writes',
    means: 'No leader can accept writes: an election is running, or a majority of the voters cannot reach each other.',
    lookAt: 'How many voters are active. An election takes seconds at most; for a lost majority see docs/clusters.md.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  codec_mismatch: {
    stops: 'nothing',
    means: 'The registry has another codec list now. The node keeps its own until it is restarted.',
    lookAt: 'Whether the change was intended. If not, correct the registry before any node restarts.',
    type: 'curl -s http://HOST:8080/codecs; curl -s http://REGISTRY/codecs',
  },
  registry_unreachable: {
    stops: 'nothing',
    means: 'The registry does not respond. The node serves; routers see no new segments until it is back.',
    lookAt: 'The address and the error in the details, and whether the registry runs.',
    type: 'curl -s http://REGISTRY/health',
  },
  segments_refused: {
    stops: 'nothing',
    means:
      'The registry does not route all segments of this shard to it: another shard claims them, or it refused the list.',
    lookAt: 'The details, and which shard owns them at the registry; a segment belongs to one shard.',
    type: 'curl -s http://REGISTRY/conflicts',
  },
  resolver_unreachable: {
    stops: 'nothing',
    means: 'The resolver does not respond. Known addresses stay in use; nodes that move are not found.',
    lookAt: 'The address and the error in the details, and whether the resolver runs.',
    type: 'curl -s http://RESOLVER/health',
  },
  wal_slow: {
    stops: 'nothing',
    means: 'Syncs of the log take more than a second each. A leader hands its role to another voter.',
    lookAt: 'vacancy_wal_fsync_seconds, and what else uses that disk.',
    type: 'iostat -x 1',
  },
} as const satisfies Record<ClusterReason, ReasonRow>

export const REASONS = { ...NODE_REASONS, ...CLUSTER_REASONS }

/** Whether the node serves reads in spite of these reasons, as `/healthz` reports. */
export function isActive(reasons: readonly Unavailable[]): boolean {
  return reasons.every(({ reason }) => REASONS[reason].stops !== 'all')
}

/** Whether the node does all of its work, as `/ready` reports. */
export function isReady(reasons: readonly Unavailable[]): boolean {
  return reasons.every(({ reason }) => REASONS[reason].stops === 'nothing')
}

/** A reason as `/ready` and the log show it. */
export function reasonBody({ reason, detail, sinceMs }: Unavailable) {
  const { stops, means, lookAt, type } = REASONS[reason]
  return { reason, stops, detail, since: new Date(sinceMs).toISOString(), means, look_at: lookAt, type }
}
