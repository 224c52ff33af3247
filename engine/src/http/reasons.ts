/**
 * The one table of reasons for which a node does not do its work: `/ready`, the log and the operators' page use these
 * words. A new reason is a row here and a line in handle.ts.
 */

import type { ClusterReason, Unavailable, UnavailableReason } from './handle.ts'

export type ReasonRow = {
  /**
   * `all`: `/healthz` answers `unavailable`. `writes`: searches go on, so callers keep their connections. `nothing`: the
   * node does all of its work and is ready, but somebody should look.
   */
  readonly stops: 'all' | 'writes' | 'nothing'
  readonly means: string
  readonly lookAt: string
  /** What to type. */
  readonly type: string
}

/** Those of every node. */
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
  disk_low: {
    stops: 'nothing',
    means: 'Less is free on the disk than two files of the log, or a twentieth of it. Nothing is refused yet.',
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
} as const satisfies Record<Exclude<UnavailableReason, ClusterReason>, ReasonRow>

/** Those of clustered mode. */
export const CLUSTER_REASONS = {
  waiting_for_registry: {
    stops: 'all',
    means: 'The registry does not answer, and no copy of the codec list lies with the data. It is asked until it does.',
    lookAt:
      'The address in the details, and whether the registry runs. Nothing else is needed: the start goes on then.',
    type: 'curl -s http://REGISTRY/codecs',
  },
  forming: {
    stops: 'all',
    means:
      'The shard has not formed: without a snapshot all nodes of --initial-voters must report that they hold no data.',
    lookAt: 'Which voters are silent or refused in `bootstrap`; their logs, resolver entries and certificates.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  waiting_for_snapshot: {
    stops: 'all',
    means: 'The shard has not formed: a strict majority of --initial-voters must hold the same snapshot.',
    lookAt:
      'Which voter holds which snapshot in `bootstrap`. Nothing is chosen by date or size, and nothing is dropped.',
    type: 'vacancy cluster info --node HOST:8080; cp seed.snapshot DATA_DIR/ (on one more voter, then start it again)',
  },
  joining: {
    stops: 'all',
    means: 'It asks the nodes of --seed, or the peers it knows, to be taken in as a member; no leader has done so yet.',
    lookAt: 'Whether one of them can be reached and the shard has a leader; a refusal stands in both logs.',
    type: 'vacancy cluster info --node SEED:8080',
  },
  removed: {
    stops: 'all',
    means: 'It was removed from the shard: it gets no more entries, and what it holds grows old.',
    lookAt: '`vacancy cluster operations` says when. Stop it; with an emptied data directory it joins as a new member.',
    type: 'curl -s -X POST -d \'{"confirm":true}\' http://HOST:8080/shutdown',
  },
  installing: {
    stops: 'all',
    means: 'A snapshot of the leader is being received and loaded: the node was empty, or too far behind for the log.',
    lookAt: 'The bytes in the details. What was received is kept over restarts and changes of the leader.',
    type: 'curl -s http://HOST:8080/status',
  },
  awaiting_load: {
    stops: 'all',
    means: 'The shard was loaded with another snapshot, and this node still lacks chunks of it.',
    lookAt: 'The missing bytes in the details; the connections to the other nodes, and room on the disk.',
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
    means: 'For more than 10 s it could not be confirmed that the node is up to date: it is cut off, or far behind.',
    lookAt: 'The lag of this node at the leader, the connections between the nodes, and the load of this machine.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  no_leader: {
    stops: 'writes',
    means: 'No leader can take writes: an election is on, or a majority of the voters cannot reach each other.',
    lookAt: 'How many voters are active. An election takes seconds at most; for a lost majority see docs/clusters.md.',
    type: 'vacancy cluster info --node HOST:8080',
  },
  codec_mismatch: {
    stops: 'nothing',
    means: 'The registry has another codec list now. The node keeps its own until it is restarted.',
    lookAt: 'Whether the change was meant: if not, mend the registry before any node restarts.',
    type: 'curl -s http://HOST:8080/codecs; curl -s http://REGISTRY/codecs',
  },
  registry_unreachable: {
    stops: 'nothing',
    means: 'The registry does not answer. The node serves; routers see no new segments until it is back.',
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
    means: 'The resolver does not answer. Known addresses stay in use; nodes that move are not found.',
    lookAt: 'The address and the error in the details, and whether the resolver runs.',
    type: 'curl -s http://RESOLVER/health',
  },
  clock_suspect: {
    stops: 'nothing',
    means: 'The clock is more than 60 s from that of the other voters: this node leads no daily maintenance.',
    lookAt: 'The clocks of all machines of the shard, and their time service.',
    type: 'date -u',
  },
  wal_slow: {
    stops: 'nothing',
    means: 'Syncs of the log take more than a second each. A leader hands its role to another voter.',
    lookAt: 'vacancy_wal_fsync_seconds, and what else uses that disk.',
    type: 'iostat -x 1',
  },
} as const satisfies Record<ClusterReason, ReasonRow>

export const REASONS = { ...NODE_REASONS, ...CLUSTER_REASONS }

/** Whether the node answers reads in spite of these reasons: what `/healthz` tells. */
export function isActive(reasons: readonly Unavailable[]): boolean {
  return reasons.every(({ reason }) => REASONS[reason].stops !== 'all')
}

/** Whether the node does all of its work: what `/ready` tells. */
export function isReady(reasons: readonly Unavailable[]): boolean {
  return reasons.every(({ reason }) => REASONS[reason].stops === 'nothing')
}

/** A reason as `/ready` and the log show it. */
export function tellReason({ reason, detail, sinceMs }: Unavailable) {
  const { stops, means, lookAt, type } = REASONS[reason]
  return { reason, stops, detail, since: new Date(sinceMs).toISOString(), means, look_at: lookAt, type }
}
