/**
 * The source of each metric, read when it is scraped, and the text page.
 *
 * The serving threads and the replica keep their own counters and buckets. This module only reads them and writes the
 * text.
 */

import { CLOCK_STATES, MEMBER_ROLES } from '@vacancy/shared/contract'
import { type MetricSpec, nextTokenEnd } from '@vacancy/shared/node'
import { COMMAND_LIST } from '@vacancy/shared/wire'
import { METRICS, type MetricName } from '../metrics.ts'
import type {
  Buckets,
  ClusterStatus,
  MemberStatus,
  RegistryStatus,
  ReplicaStatus,
  ResolverStatus,
  SnapshotInfo,
} from '../status.ts'
import { type SegmentCount, segmentCounts } from '../store/read.ts'
import { countsOf, type MemoryUse, memoryUse, type StoreCounts } from '../store/store.ts'
import {
  COUNTER,
  type CommandCounts,
  commandCounts,
  DURATION_BUCKETS,
  ERROR_CODES,
  ROW_BUCKETS,
  takeStallMax,
  total,
} from '../tcp/counters.ts'
import { healthOf } from './conditions.ts'
import type { NodeHandle } from './handle.ts'
import { NODE_REASONS, REASONS } from './reasons.ts'

/** Segments with their own series; the others are summed as `other`. */
export const SEGMENT_SERIES_MAX = 1_000

/** Inputs of one scrape, each read once. */
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
  /** Undefined in standalone mode, as are the next two. */
  readonly cluster: ClusterStatus | undefined
  readonly registry: RegistryStatus | undefined
  readonly resolver: ResolverStatus | undefined
  /** Longest delay of the main thread's event loop since the last scrape. */
  readonly mainStallSeconds: number
}

type Labels = { readonly [label: string]: string }
export type Sample = { readonly labels: Labels; readonly value: number | Buckets }

type Value = number | Buckets | undefined
type Reader = (scrape: Scrape, labels: readonly string[]) => readonly Sample[]

/** The value of a row without labels; no series without a value. */
function plain(read: (scrape: Scrape) => Value): Reader {
  return (scrape) => {
    const value = read(scrape)
    return value === undefined ? [] : [{ labels: {}, value }]
  }
}

const counted = (which: number) => plain(({ handle }) => total(handle.counters, which))

/** A row with one label: its values and their numbers. */
function byLabel(read: (scrape: Scrape) => { readonly [value: string]: number }): Reader {
  return (scrape, [label]) =>
    Object.entries(read(scrape)).map(([name, value]) => ({ labels: { [label as string]: name }, value }))
}

function bySegment(of: (segment: SegmentCount) => number): Reader {
  return ({ segments }) => {
    // By name, not by size: a growing segment must not push the series of another into `other`.
    const own = new Map(segments.slice(0, SEGMENT_SERIES_MAX).map((each) => [each.name, of(each)]))
    const rest = segments.slice(SEGMENT_SERIES_MAX).reduce((sum, each) => sum + of(each), 0)
    // A segment may be named `other`, and a page with a duplicate series is refused as a whole.
    if (segments.length > SEGMENT_SERIES_MAX) own.set('other', (own.get('other') ?? 0) + rest)
    return Array.from(own, ([segment, value]) => ({ labels: { segment }, value }))
  }
}

/** A row of clustered mode without labels. */
const clustered = (read: (cluster: ClusterStatus, scrape: Scrape) => Value) =>
  plain((scrape) => scrape.cluster && read(scrape.cluster, scrape))

/** A row of clustered mode with one label. */
const clusteredBy = (read: (cluster: ClusterStatus) => { readonly [value: string]: number }) =>
  byLabel(({ cluster }) => (cluster ? read(cluster) : {}))

/** A row of clustered mode by member; no series for members without a known value. */
function byPeer(read: (member: MemberStatus) => Value): Reader {
  return ({ cluster }) =>
    (cluster?.members ?? []).flatMap((member) => {
      const value = read(member)
      return value === undefined ? [] : [{ labels: { peer: member.id }, value }]
    })
}

const sum = (counts: readonly number[]) => counts.reduce((all, each) => all + each, 0)

/** Codes that clients are not to blame for: alerts count them, so their series of a command must exist before they occur. */
const FAILURES: ReadonlySet<string> = new Set(['408', '429', '500', '503'])

/** Usual refusals of stays, whose series exist before they occur. */
const NO_REFUSALS = { SOLD_OUT: 0, PRICE_CHANGED: 0, EXPIRED: 0, CONFLICT: 0 }

const PROGRESS = { probe: 0, replicate: 1, snapshot: 2 } as const

const flag = (on: boolean) => (on ? 1 : 0)

function phase(each: CommandCounts & { readonly command: string }, name: 'queue' | 'run'): Sample {
  const { counts, sum } = name === 'queue' ? each.queued : each.running
  return { labels: { command: each.command, phase: name }, value: { bounds: DURATION_BUCKETS, counts, sum } }
}

const READERS: { readonly [name in MetricName]: Reader } = {
  tcp_connections: plain(({ handle }) => handle.connectionsOpen()),
  tcp_commands_total: counted(COUNTER.commands),
  tcp_bytes_received_total: counted(COUNTER.bytesReceived),
  tcp_bytes_sent_total: counted(COUNTER.bytesSent),
  tcp_errors_total: counted(COUNTER.errors),
  tcp_client_errors_total: counted(COUNTER.clientErrors),
  tcp_client_disconnects_total: counted(COUNTER.clientDisconnects),
  tcp_client_login_fail_total: counted(COUNTER.loginFailures),
  tcp_timeouts_total: counted(COUNTER.timeouts),
  tcp_rejected_connections_total: counted(COUNTER.rejectedConnections),
  tcp_rejected_request_total: counted(COUNTER.rejectedRequests),

  cluster_connection_opened_total: clustered(({ transport }) => transport.opened),
  cluster_connection_accepted_total: clustered(({ transport }) => transport.accepted),
  cluster_connection_rejected_total: clustered(({ transport }) => sum(Object.values(transport.rejected))),
  cluster_connection_error_total: clustered(({ transport }) => transport.errors),
  cluster_connection_dropped_total: clustered(({ transport }) => transport.dropped),
  cluster_message_sent_total: clustered(({ transport }) => transport.messagesSent),
  cluster_message_received_total: clustered(({ transport }) => transport.messagesReceived),
  cluster_bytes_sent_total: clustered(({ transport }) => transport.bytesSent),
  cluster_bytes_received_total: clustered(({ transport }) => transport.bytesReceived),
  cluster_send_error_total: clustered(({ transport }) => transport.sendErrors),
  cluster_receive_error_total: clustered(({ transport }) => transport.receiveErrors),
  cluster_leader_changed_total: clustered(({ leaderChanges }) => leaderChanges),
  cluster_snapshot_produced_total: clustered((_, { replica }) => replica && sum(replica.snapshotDuration.counts)),
  cluster_snapshot_failed_count_total: clustered((_, { replica }) => replica?.snapshotFailures),
  cluster_snapshot_transfer_count_total: clustered(({ transfers }) => transfers.sent),
  cluster_snapshot_size_bytes: clustered((_, { snapshot }) => snapshot?.bytes),
  cluster_snapshot_save_duration_ms: clustered((_, { snapshot }) => snapshot?.durationMs),
  cluster_snapshot_write_pause_duration_ms: clustered(({ transfers }) => transfers.writePauseMs),
  cluster_snapshot_load_duration_ms: clustered(({ transfers }) => transfers.loadMs),
  cluster_snapshot_transfer_duration_ms: clustered(({ transfers }) => transfers.durationMs),
  cluster_wal_flush_count_total: clustered((_, { replica }) => replica?.groups),
  cluster_last_applied_wal_index: clustered((_, { replica }) => replica?.appliedIndex),

  vacancy_build_info: ({ handle: { version, shardId }, cluster }) => [
    { labels: { version, node: cluster?.nodeId ?? '', shard: shardId, zone: cluster?.zoneId ?? '' }, value: 1 },
  ],
  vacancy_health: byLabel(({ handle }) => {
    const health = healthOf(handle)
    const values = handle.cluster ? ['active_leader', 'active_follower', 'unavailable'] : ['active', 'unavailable']
    return Object.fromEntries(values.map((value) => [value, flag(value === health)]))
  }),
  vacancy_unavailable: byLabel(({ handle }) => {
    const now = new Set(handle.unavailable().map(({ reason }) => reason as string))
    return Object.fromEntries(
      Object.keys(handle.cluster ? REASONS : NODE_REASONS).map((reason) => [reason, flag(now.has(reason))]),
    )
  }),
  vacancy_commands_total: byLabel(({ commands }) =>
    Object.fromEntries(commands.map((each) => [each.command, each.total])),
  ),
  vacancy_command_errors_total: ({ commands }) =>
    commands.flatMap(({ command, total, errors }) =>
      ERROR_CODES.flatMap((code, i) => {
        const value = errors[i] ?? 0
        return value > 0 || (total > 0 && FAILURES.has(code)) ? [{ labels: { command, code }, value }] : []
      }),
    ),
  vacancy_command_duration_seconds: ({ commands }) =>
    commands.flatMap((each) => (each.total > 0 ? [phase(each, 'queue'), phase(each, 'run')] : [])),
  vacancy_result_rows: ({ commands }) =>
    commands.flatMap(({ command, searches, rows }) =>
      searches ? [{ labels: { command }, value: { bounds: ROW_BUCKETS, counts: rows.counts, sum: rows.sum } }] : [],
    ),
  vacancy_search_retries_total: counted(COUNTER.searchRetries),
  vacancy_tcp_connections: plain(({ handle }) => handle.connectionsOpen()),
  vacancy_tcp_connections_limit: plain(({ connectionsMax }) => connectionsMax),
  vacancy_tcp_connections_opened_total: counted(COUNTER.connectionsOpened),
  vacancy_tcp_bytes_total: byLabel(({ handle }) => ({
    received: total(handle.counters, COUNTER.bytesReceived),
    sent: total(handle.counters, COUNTER.bytesSent),
  })),
  vacancy_tcp_protocol_errors_total: counted(COUNTER.protocolErrors),
  vacancy_tcp_slabs_missing_total: counted(COUNTER.slabsMissing),
  vacancy_serving_threads: plain(({ handle }) => handle.servingThreads),
  vacancy_properties: bySegment((each) => each.properties),
  vacancy_packages: bySegment((each) => each.packages),
  vacancy_memory_bytes: byLabel(({ memory, process, replica }) => ({
    rss: process.rss,
    heap: process.heapUsed,
    arraybuffers: process.arrayBuffers,
    ...(memory && { indexes: memory.recordBytes, packages: memory.planeBytes, free: memory.freeBytes }),
    ...(replica?.walMemoryBytes !== undefined && { wal: replica.walMemoryBytes }),
  })),
  vacancy_memory_budget_bytes: byLabel(({ replica }): { [kind: string]: number } => {
    if (!replica?.budget) return {}
    const { budgetBytes, chargedBytes, leftBytes } = replica.budget
    return { budget: budgetBytes, charged: chargedBytes, left: leftBytes }
  }),
  vacancy_stays: plain(({ replica }) => replica?.stays?.stays),
  vacancy_stays_held: plain(({ replica }) => replica?.stays?.held),
  vacancy_stays_bytes: plain(({ replica }) => replica?.stays?.bytes),
  vacancy_nights_oversold: plain(({ replica }) => replica?.stays?.oversoldNights),
  vacancy_stays_expired_total: plain(({ replica }) => replica?.stays?.expired),
  vacancy_stays_refused_total: byLabel(({ replica }): { [code: string]: number } =>
    replica?.stays ? { ...NO_REFUSALS, ...replica.stays.refused } : {},
  ),
  vacancy_stays_overflowed_rooms_total: plain(({ replica }) => replica?.stays?.overflowedRooms),
  vacancy_stays_unrecorded_rooms_total: plain(({ replica }) => replica?.stays?.unrecordedRooms),
  vacancy_stays_evicted_total: byLabel(({ replica }): { [state: string]: number } => ({ ...replica?.stays?.evicted })),
  vacancy_cores: byLabel(({ handle }) => ({ start: handle.coresAtStart, now: handle.coresNow() })),
  vacancy_event_loop_delay_seconds: byLabel(({ handle, replica, mainStallSeconds }) => ({
    main: mainStallSeconds,
    serving: takeStallMax(handle.counters),
    ...(replica && { replica: replica.eventLoopStallMs / 1000 }),
  })),
  vacancy_codec_mismatch: plain(({ handle, registry }) =>
    flag(handle.codecMismatch !== undefined || (registry !== undefined && registry.codecMismatch !== '')),
  ),

  vacancy_raft_role: byLabel(({ replica, cluster }): { [role: string]: number } => {
    const role = cluster?.role ?? replica?.role
    const roles = cluster ? MEMBER_ROLES : (['leader', 'follower'] as const)
    return role ? Object.fromEntries(roles.map((each) => [each, flag(each === role)])) : {}
  }),
  vacancy_raft_term: plain(({ replica, cluster }) => cluster?.term ?? replica?.term),
  vacancy_raft_commit_index: plain(({ replica }) => replica?.commitIndex),
  vacancy_raft_applied_index: plain(({ replica }) => replica?.appliedIndex),
  vacancy_raft_commit_seconds: plain(({ replica }) => replica?.commit),
  vacancy_raft_lag_entries: byPeer(({ lagEntries }) => lagEntries),
  vacancy_raft_lag_seconds: byPeer(({ lagMs }) => lagMs && lagMs / 1000),
  vacancy_raft_peer_rtt_seconds: byPeer(({ roundTrip }) => roundTrip),
  vacancy_raft_peer_state: byPeer(({ progress }) => progress && PROGRESS[progress]),
  vacancy_raft_elections_total: clusteredBy(({ elections }) => elections),
  vacancy_raft_leader_changes_total: clustered(({ leaderChanges }) => leaderChanges),
  vacancy_raft_proposals_total: clusteredBy(({ proposals }) => proposals),
  vacancy_raft_tick_stalls_total: clustered(({ tickStalls }) => tickStalls),
  vacancy_read_staleness_seconds: clustered(({ stalenessMs }) => stalenessMs && stalenessMs / 1000),
  vacancy_cluster_operations_total: clusteredBy(({ operationsEnded }) => operationsEnded),
  vacancy_peers_rejected_total: clusteredBy(({ transport }) => transport.rejected),
  vacancy_clock_suspect: clustered(({ isClockSuspect }) => flag(isClockSuspect)),
  vacancy_clock_state: byLabel(({ replica }): { [state: string]: number } =>
    replica ? Object.fromEntries(CLOCK_STATES.map((state) => [state, flag(state === replica.clock.state)])) : {},
  ),
  vacancy_clock_offset_seconds: plain(({ replica }) => replica && replica.clock.offsetMs / 1000),
  vacancy_clock_shard_time_seconds: plain(({ replica }) => replica && replica.clock.timeMs / 1000),
  vacancy_dedup_hits_total: plain(({ replica }) => replica?.repeatsAnswered),
  vacancy_dedup_sessions: plain(({ counts }) => counts?.sessions),
  vacancy_digest_checks_total: byLabel(({ replica }): { [result: string]: number } =>
    replica ? { equal: replica.digestChecks } : {},
  ),

  vacancy_wal_fsync_seconds: plain(({ replica }) => replica?.fsync),
  vacancy_wal_bytes: plain(({ replica }) => replica?.walBytes),
  vacancy_wal_files: plain(({ replica }) => replica?.walFiles),
  vacancy_wal_groups_total: plain(({ replica }) => replica?.groups),
  vacancy_wal_torn_tail_bytes_total: plain(({ replica }) => replica?.tornTailBytes),
  vacancy_wal_group_entries: plain(({ replica }) => replica?.groupEntries),
  vacancy_wal_corruption_total: plain(({ replica }) => replica?.corruptions),
  vacancy_wal_slow: plain(({ replica }) => (replica?.walSlow === undefined ? undefined : flag(replica.walSlow))),
  vacancy_disk_free_bytes: plain(({ replica }) => replica?.diskFreeBytes),
  vacancy_disk_full: plain(({ replica }) => replica && flag(replica.diskFull)),

  // A clock that was set back must not show an age below zero.
  vacancy_snapshot_age_seconds: plain(
    ({ handle, snapshot }) => snapshot && Math.max(0, (handle.wallMs() - snapshot.createdMs) / 1000),
  ),
  vacancy_snapshot_bytes: plain(({ snapshot }) => snapshot?.bytes),
  vacancy_snapshot_duration_seconds: plain(({ replica }) => replica?.snapshotDuration),
  vacancy_snapshot_running: plain(({ replica }) => replica && flag(replica.snapshotRunning)),
  vacancy_snapshot_failures_total: plain(({ replica }) => replica?.snapshotFailures),
  vacancy_snapshot_spare_pages: plain(({ replica }) => replica?.sparePages),

  vacancy_snapshot_transfers: clusteredBy(({ transfers: { sending, receiving } }) => ({ sending, receiving })),
  vacancy_registry_up: plain(({ registry }) => registry && flag(registry.isReachable)),
  vacancy_registry_push_total: byLabel(({ registry }) => registry?.pushes ?? {}),
  vacancy_resolver_duration_seconds: ({ resolver }) =>
    Object.entries(resolver?.durations ?? {}).map(([kind, value]) => ({ labels: { kind }, value })),
  vacancy_resolver_errors_total: byLabel(({ resolver }) => resolver?.errors ?? {}),
  tls_cert_not_after_seconds: ({ handle }) =>
    handle.certificates().map(({ listener, notAfterMs }) => ({ labels: { listener }, value: notAfterMs / 1000 })),
  token_not_after_seconds: plain(({ handle }) => nextTokenEnd(handle.tokens(), handle.wallMs())),

  vacancy_maintenance_last_success_timestamp_seconds: plain(({ replica }) =>
    replica && replica.lastMaintenanceMs > 0 ? replica.lastMaintenanceMs / 1000 : undefined,
  ),
  vacancy_maintenance_removed_packages_total: plain(({ replica }) => replica?.removedPackages),
}

/** The series of one metric. */
export function samplesOf(name: MetricName, from: Scrape): readonly Sample[] {
  const { labels = [] }: MetricSpec = METRICS[name]
  return READERS[name](from, labels)
}

/** Reads all inputs of one scrape. */
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
    cluster: handle.cluster?.info(),
    registry: handle.cluster?.registry(),
    resolver: handle.cluster?.resolver(),
  }
}

/** All metrics that have a value, in the text format of Prometheus 0.0.4. */
export function metricsText(from: Scrape): string {
  return (Object.keys(METRICS) as MetricName[]).map((name) => blockOf(name, from)).join('')
}

function blockOf(name: MetricName, from: Scrape): string {
  const { help, type } = METRICS[name]
  const lines = samplesOf(name, from).flatMap(({ labels, value }) =>
    typeof value === 'number' ? [line(name, labels, value)] : histogramLines(name, labels, value),
  )
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`
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
  const text = value === Number.POSITIVE_INFINITY ? '+Inf' : value
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${text}`
}

/** Names of segments are any UTF-8 text. */
function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (special) => (special === '\n' ? '\\n' : `\\${special}`))
}
