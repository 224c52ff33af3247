/**
 * The one table of metrics of a node (platform.md §7.7, consensus.md §22): name, type, help, labels and where the value
 * comes from. Everything is read when it is scraped; docs/metrics.md is made from these rows.
 *
 * The serving threads and the replica count for themselves, in buckets of their own, so there is nothing to observe
 * here and the text is written from the rows. `process_*` and `nodejs_*` are prom-client's.
 */

import { COMMAND_LIST } from '@vacancy/shared/wire'
import type { Buckets, NodeHandle, ReplicaStatus, SnapshotInfo } from './http/handle.ts'
import { isActive, REASONS } from './http/reasons.ts'
import { type SegmentCount, segmentCounts } from './store/read.ts'
import { countsOf, type MemoryUse, memoryUse, type StoreCounts } from './store/store.ts'
import {
  COUNTER,
  type CommandCounts,
  commandCounts,
  DURATION_BUCKETS,
  ERROR_CODES,
  ROW_BUCKETS,
  takeStallMax,
  total,
} from './tcp/counters.ts'

/** Segments with a series of their own; the others are added up as `other`. */
export const SEGMENT_SERIES_MAX = 1_000

/** What one scrape reads, each part once. */
export type Scrape = {
  readonly handle: NodeHandle
  readonly connectionsMax: number
  readonly commands: readonly (CommandCounts & { readonly command: string; readonly searches: boolean })[]
  readonly segments: readonly SegmentCount[]
  readonly counts: StoreCounts | undefined
  readonly memory: MemoryUse | undefined
  readonly process: NodeJS.MemoryUsage
  readonly replica: ReplicaStatus | undefined
  readonly snapshot: SnapshotInfo | undefined
  /** Longest delay of the main thread's event loop since the last scrape. */
  readonly mainStallSeconds: number
}

export type Labels = { readonly [label: string]: string }
export type Sample = { readonly labels: Labels; readonly value: number | Buckets }

export type MetricRow = {
  readonly type: 'gauge' | 'counter' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Empty when the value does not exist yet. */
  readonly read: (scrape: Scrape) => readonly Sample[]
}

type Value = number | Buckets | undefined

function plain(type: MetricRow['type'], help: string, read: (scrape: Scrape) => Value): MetricRow {
  const samples = (scrape: Scrape): Sample[] => {
    const value = read(scrape)
    return value === undefined ? [] : [{ labels: {}, value }]
  }
  return { type, help, labels: [], read: samples }
}

const gauge = (help: string, read: (scrape: Scrape) => Value) => plain('gauge', help, read)
const counter = (help: string, read: (scrape: Scrape) => Value) => plain('counter', help, read)
const histogram = (help: string, read: (scrape: Scrape) => Value) => plain('histogram', help, read)
const counted = (help: string, which: number) => counter(help, ({ handle }) => total(handle.counters, which))

/** One label, its values and their numbers. */
function byLabel(
  type: MetricRow['type'],
  label: string,
  help: string,
  read: (scrape: Scrape) => { readonly [value: string]: number },
): MetricRow {
  const samples = (scrape: Scrape) =>
    Object.entries(read(scrape)).map(([name, value]) => ({ labels: { [label]: name }, value }))
  return { type, help, labels: [label], read: samples }
}

function bySegment(help: string, of: (segment: SegmentCount) => number): MetricRow {
  const samples = ({ segments }: Scrape): Sample[] => {
    // By name, not by size: a segment that grows must not push the series of another into `other`.
    const own = segments
      .slice(0, SEGMENT_SERIES_MAX)
      .map((each) => ({ labels: { segment: each.name }, value: of(each) }))
    const rest = segments.slice(SEGMENT_SERIES_MAX)
    if (rest.length === 0) return own
    return [...own, { labels: { segment: 'other' }, value: rest.reduce((sum, each) => sum + of(each), 0) }]
  }
  return { type: 'gauge', help, labels: ['segment'], read: samples }
}

const flag = (on: boolean) => (on ? 1 : 0)
const phase = (each: CommandCounts & { readonly command: string }, name: 'queue' | 'run'): Sample => {
  const { counts, sum } = name === 'queue' ? each.queued : each.running
  return { labels: { command: each.command, phase: name }, value: { bounds: DURATION_BUCKETS, counts, sum } }
}

export const METRICS: { readonly [name: string]: MetricRow } = {
  // The contract's names, none with labels.
  tcp_connections: gauge('Client connections that are open.', ({ handle }) => handle.connectionsOpen()),
  tcp_commands_total: counted('Requests that were answered or refused.', COUNTER.commands),
  tcp_bytes_received_total: counted('Bytes received from clients.', COUNTER.bytesReceived),
  tcp_bytes_sent_total: counted('Bytes sent to clients.', COUNTER.bytesSent),
  tcp_errors_total: counted('ERROR replies for reasons of the server: 408, 429, 500, 503.', COUNTER.errors),
  tcp_client_errors_total: counted('ERROR replies for reasons of the request.', COUNTER.clientErrors),
  tcp_client_disconnects_total: counted('Connections that the client ended or lost.', COUNTER.clientDisconnects),
  tcp_client_login_fail_total: counted('LOGIN requests with an unknown token.', COUNTER.loginFailures),
  tcp_timeouts_total: counted(
    'Connections closed because they did not take or finish what was sent.',
    COUNTER.timeouts,
  ),
  tcp_rejected_connections_total: counted(
    'Connections closed at once: tcp_max_connections.',
    COUNTER.rejectedConnections,
  ),
  tcp_rejected_request_total: counted('Requests refused with 429.', COUNTER.rejectedRequests),

  // Ours.
  vacancy_build_info: {
    type: 'gauge',
    help: 'Always 1; the labels say which program runs where. node and zone are empty in standalone mode.',
    labels: ['version', 'node', 'shard', 'zone'],
    read: ({ handle }) => [
      { labels: { version: handle.version, node: '', shard: handle.shardId, zone: '' }, value: 1 },
    ],
  },
  vacancy_health: byLabel('gauge', 'value', '1 for what /healthz answers, 0 for the other value.', ({ handle }) => {
    const active = isActive(handle.unavailable())
    return { active: flag(active), unavailable: flag(!active) }
  }),
  vacancy_unavailable: byLabel('gauge', 'reason', '1 while the reason holds; see operators.md.', ({ handle }) => {
    const now = new Set(handle.unavailable().map(({ reason }) => reason as string))
    return Object.fromEntries(Object.keys(REASONS).map((reason) => [reason, flag(now.has(reason))]))
  }),
  vacancy_commands_total: {
    type: 'counter',
    help: 'Requests by command.',
    labels: ['command'],
    read: ({ commands }) => commands.map((each) => ({ labels: { command: each.command }, value: each.total })),
  },
  vacancy_command_errors_total: {
    type: 'counter',
    help: 'ERROR replies by command and code; only pairs that occurred.',
    labels: ['command', 'code'],
    read: ({ commands }) =>
      commands.flatMap(({ command, errors }) =>
        ERROR_CODES.flatMap((code, i) => {
          const value = errors[i] ?? 0
          return value > 0 ? [{ labels: { command, code }, value }] : []
        }),
      ),
  },
  vacancy_command_duration_seconds: {
    type: 'histogram',
    help: 'Time of a request: queue, before it was looked at; run, until its reply was ready. Commands in use only.',
    labels: ['command', 'phase'],
    read: ({ commands }) =>
      commands.flatMap((each) => (each.total > 0 ? [phase(each, 'queue'), phase(each, 'run')] : [])),
  },
  vacancy_result_rows: {
    type: 'histogram',
    help: 'Properties in the reply of a search.',
    labels: ['command'],
    read: ({ commands }) =>
      commands.flatMap(({ command, searches, rows }) =>
        searches ? [{ labels: { command }, value: { bounds: ROW_BUCKETS, counts: rows.counts, sum: rows.sum } }] : [],
      ),
  },
  vacancy_search_retries_total: counted(
    'Searches begun again because their table changed meanwhile.',
    COUNTER.searchRetries,
  ),
  vacancy_tcp_connections: gauge('Client connections that are open.', ({ handle }) => handle.connectionsOpen()),
  vacancy_tcp_connections_limit: gauge(
    'Most connections: tcp_max_connections.',
    ({ connectionsMax }) => connectionsMax,
  ),
  vacancy_tcp_connections_opened_total: counted('Client connections that were accepted.', COUNTER.connectionsOpened),
  vacancy_tcp_bytes_total: byLabel('counter', 'direction', 'Bytes from and to clients.', ({ handle }) => ({
    received: total(handle.counters, COUNTER.bytesReceived),
    sent: total(handle.counters, COUNTER.bytesSent),
  })),
  vacancy_tcp_protocol_errors_total: counted(
    'Connections closed because their bytes were no frames.',
    COUNTER.protocolErrors,
  ),
  vacancy_tcp_slabs_missing_total: counted(
    'Reads put off because no buffer for replies was free.',
    COUNTER.slabsMissing,
  ),
  vacancy_serving_threads: gauge('Threads that serve clients.', ({ handle }) => handle.servingThreads),
  vacancy_properties: bySegment(
    'Properties by segment; beyond 1,000 segments, the others together as `other`.',
    (each) => each.properties,
  ),
  vacancy_packages: bySegment(
    'Packages by segment; beyond 1,000 segments, the others together as `other`.',
    (each) => each.packages,
  ),
  vacancy_memory_bytes: byLabel(
    'gauge',
    'kind',
    'Memory: rss, heap and arraybuffers of the process; indexes, packages and free of the store.',
    ({ memory, process }) => ({
      rss: process.rss,
      heap: process.heapUsed,
      arraybuffers: process.arrayBuffers,
      ...(memory && { indexes: memory.recordBytes, packages: memory.planeBytes, free: memory.freeBytes }),
    }),
  ),
  vacancy_cores: byLabel(
    'gauge',
    'when',
    'Cores of the machine, at the start of the process and now.',
    ({ handle }) => ({
      start: handle.coresAtStart,
      now: handle.coresNow(),
    }),
  ),
  vacancy_event_loop_delay_seconds: byLabel(
    'gauge',
    'thread',
    'Longest delay of an event loop: serving and main since the last scrape, replica as last reported.',
    ({ handle, replica, mainStallSeconds }) => ({
      main: mainStallSeconds,
      serving: takeStallMax(handle.counters),
      ...(replica && { replica: replica.eventLoopStallMs / 1000 }),
    }),
  ),
  vacancy_codec_mismatch: gauge('1 when data of another codec list was set aside at the start.', ({ handle }) =>
    flag(handle.codecMismatch !== undefined),
  ),

  vacancy_raft_role: byLabel('gauge', 'role', '1 for the role of this node.', ({ replica }) => {
    if (!replica) return {}
    return { leader: flag(replica.role === 'leader'), follower: flag(replica.role === 'follower') }
  }),
  vacancy_raft_term: gauge('Current term.', ({ replica }) => replica?.term),
  vacancy_raft_commit_index: gauge('Index of the last committed entry.', ({ replica }) => replica?.commitIndex),
  vacancy_raft_applied_index: gauge('Index of the last entry in the state.', ({ replica }) => replica?.appliedIndex),
  vacancy_raft_commit_seconds: histogram(
    'From the arrival of a write to its commit.',
    ({ replica }) => replica?.commit,
  ),
  vacancy_dedup_hits_total: counter(
    'Repeated writes answered by their request key.',
    ({ replica }) => replica?.repeatsAnswered,
  ),
  vacancy_dedup_sessions: gauge('Sessions of request keys that are known.', ({ counts }) => counts?.sessions),
  vacancy_digest_checks_total: byLabel(
    'counter',
    'result',
    'Comparisons of the state with its digest in the log; one that differs ends the process (exit code 73).',
    ({ replica }): { [result: string]: number } => (replica ? { equal: replica.digestChecks } : {}),
  ),

  vacancy_wal_fsync_seconds: histogram('Time of one sync of the log.', ({ replica }) => replica?.fsync),
  vacancy_wal_bytes: gauge('Bytes of the log files.', ({ replica }) => replica?.walBytes),
  vacancy_wal_files: gauge('Log files.', ({ replica }) => replica?.walFiles),
  vacancy_wal_groups_total: counter('Groups of entries written with one sync each.', ({ replica }) => replica?.groups),
  vacancy_wal_torn_tail_bytes_total: counter(
    'Bytes of an unfinished last group that the start cut off.',
    ({ replica }) => replica?.tornTailBytes,
  ),
  vacancy_disk_free_bytes: gauge(
    'Free bytes of the disk with the data directory.',
    ({ replica }) => replica?.diskFreeBytes,
  ),
  vacancy_disk_full: gauge(
    '1 while writes are refused because the disk is full.',
    ({ replica }) => replica && flag(replica.diskFull),
  ),

  vacancy_snapshot_age_seconds: gauge(
    'Age of the newest snapshot.',
    ({ handle, snapshot }) =>
      // A clock that was set back must not show an age below zero.
      snapshot && Math.max(0, (handle.wallMs() - snapshot.createdMs) / 1000),
  ),
  vacancy_snapshot_bytes: gauge('Size of the newest snapshot.', ({ snapshot }) => snapshot?.bytes),
  vacancy_snapshot_duration_seconds: histogram('Time to write a snapshot.', ({ replica }) => replica?.snapshotDuration),
  vacancy_snapshot_running: gauge(
    '1 while a snapshot is written.',
    ({ replica }) => replica && flag(replica.snapshotRunning),
  ),
  vacancy_snapshot_failures_total: counter(
    'Snapshots that could not be written.',
    ({ replica }) => replica?.snapshotFailures,
  ),
  vacancy_snapshot_spare_pages: gauge(
    'Pages kept ready for changes while a snapshot is written.',
    ({ replica }) => replica?.sparePages,
  ),

  vacancy_maintenance_last_success_timestamp_seconds: gauge(
    'When passed dates were last removed, seconds since 1970.',
    ({ replica }) => (replica && replica.lastMaintenanceMs > 0 ? replica.lastMaintenanceMs / 1000 : undefined),
  ),
  vacancy_maintenance_removed_packages_total: counter(
    'Packages of passed dates that were removed.',
    ({ replica }) => replica?.removedPackages,
  ),
}

/** Reads everything one scrape tells. */
export function scrape(handle: NodeHandle, connectionsMax: number, mainStallSeconds: number): Scrape {
  const memory = handle.memory()
  return {
    handle,
    connectionsMax,
    mainStallSeconds,
    commands: COMMAND_LIST.map(({ name, code, group }) => ({
      ...commandCounts(handle.counters, code),
      command: name,
      searches: group === 'search',
    })),
    segments: memory ? segmentCounts({ memory, reader: handle.reader }) : [],
    counts: memory && countsOf(memory),
    memory: memory && memoryUse(memory),
    process: process.memoryUsage(),
    replica: handle.replica(),
    snapshot: handle.snapshot(),
  }
}

/** The rows with values, in the text format of Prometheus 0.0.4. */
export function metricsText(from: Scrape): string {
  return Object.entries(METRICS)
    .map(([name, row]) => {
      const lines = row
        .read(from)
        .flatMap(({ labels, value }) =>
          typeof value === 'number' ? [line(name, labels, value)] : histogramLines(name, labels, value),
        )
      return lines.length === 0 ? '' : `# HELP ${name} ${row.help}\n# TYPE ${name} ${row.type}\n${lines.join('\n')}\n`
    })
    .join('')
}

function histogramLines(name: string, labels: Labels, { bounds, counts, sum }: Buckets): string[] {
  let below = 0
  const buckets = counts.map((count, i) => {
    below += count
    const le = i < bounds.length ? String(bounds[i]) : '+Inf'
    return line(`${name}_bucket`, { ...labels, le }, below)
  })
  return [...buckets, line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, below)]
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, of]) => `${label}="${escapeLabel(of)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}

/** Names of segments are any UTF-8 text. */
function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (special) => (special === '\n' ? '\\n' : `\\${special}`))
}
