// The alerts of deploy/observability/alerts.yml, made by `npm run docs`: reasons, commands and limits come from the tables of
// the programs.
import { STALENESS_MS_MAX } from '../engine/src/http/conditions.ts'
import { REASONS } from '../engine/src/http/reasons.ts'
import { REGISTRY_FLAGS } from '../fabric/src/config.ts'
import { COLLECTOR } from '../server/src/cluster/collector-state.ts'
import { ENDING_MS } from '../shared/src/node/ends.ts'
import { COMMANDS } from '../shared/src/wire/commands.ts'

/** Our targets: all jobs of deploy/observability/prometheus.yml begin with this. */
const JOBS = 'job=~"vacancy.*"'
/** Replies that a server is to blame for, `dropped` at routers and bridges. */
const FAILED = '408|429|500|503'
const WRITES = Object.entries(COMMANDS)
  .filter(([, { access }]) => access === 'write')
  .map(([name]) => name)
  .join('|')
/** holds_max, unless it was changed. */
const HOLDS_MAX = 200_000
const HEARTBEAT_SECS = REGISTRY_FLAGS['heartbeat-timeout-secs'].default
const ENDING_SECS = ENDING_MS / 1000
const STALE_SECS = STALENESS_MS_MAX / 1000
/** A round of polls that takes this many times as long as it should. */
const BEHIND_SECS = (5 * COLLECTOR.roundMs) / 1000

/** Nodes do not put their ids on each metric: one has them. */
const OF_NODE = '* on (instance) group_left (shard, node) vacancy_build_info'
const OF_SHARD = '* on (instance) group_left (shard) vacancy_build_info'
const NODE = '{{ $labels.instance }} of shard {{ $labels.shard }}'

/** Nodes with one of these reasons in `/ready`. */
function reason(...names) {
  const matcher = names.length === 1 ? `reason="${names[0]}"` : `reason=~"${names.join('|')}"`
  return `vacancy_unavailable{${matcher}} ${OF_NODE} == 1`
}

/** Reasons with an alert of their own, some by other metrics (`covers`); the rest share two alerts. */
const OWN_REASONS = [
  ...['disk_low', 'disk_full', 'disk_stuck', 'memory_full', 'digest_mismatch', 'clock', 'clock_suspect', 'no_leader'],
  ...['codecs_changed', 'codec_mismatch', 'certificate_ends', 'stays_full', 'segments_refused', 'registry_unreachable'],
]
const othersThat = (stops) =>
  Object.entries(REASONS)
    .filter(([name, row]) => !OWN_REASONS.includes(name) && (row.stops === 'nothing') === (stops === 'nothing'))
    .map(([name]) => name)

const PROGRAMS = {
  VacancyTargetDown: {
    expr: `up{${JOBS}} == 0`,
    for: '1m',
    severity: 'critical',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) does not answer',
    runbook: 'docs/reasons.md#exit-codes',
  },
  VacancyRestarts: {
    expr: `changes(process_start_time_seconds{${JOBS}}[30m]) > 2`,
    severity: 'warning',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) restarted three times in half an hour',
    runbook: 'docs/reasons.md#exit-codes',
  },
  VacancyFilesNearLimit: {
    expr: `process_open_fds{${JOBS}} / process_max_fds{${JOBS}} > 0.9`,
    for: '5m',
    severity: 'warning',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) has 90 % of the files open that it may',
    runbook: 'docs/operators.md#sizing',
  },
  VacancyCertificateEnds: {
    expr: ['tls_cert_not_after_seconds', 'token_not_after_seconds', 'vacancy_queue_not_after_seconds']
      .map((metric) => `${metric} - time() < ${ENDING_SECS}`)
      .concat('vacancy_unavailable{reason="certificate_ends"} == 1')
      .join('\nor '),
    severity: 'warning',
    summary: `A certificate or token of {{ $labels.instance }} ends within ${ENDING_SECS / 86_400} days, or has ended: /ready names it`,
    runbook: 'docs/clusters.md#certificates-and-tokens',
  },
}

const NODES = {
  VacancyNodeNotReady: {
    expr: reason(...othersThat('something')),
    for: '5m',
    severity: 'critical',
    summary: `${NODE} is not ready: {{ $labels.reason }}`,
    runbook: 'docs/reasons.md#reasons-in-ready',
  },
  VacancyNodeImpaired: {
    expr: reason(...othersThat('nothing')),
    for: '5m',
    severity: 'warning',
    summary: `${NODE} serves, but look at it: {{ $labels.reason }}`,
    runbook: 'docs/reasons.md#reasons-in-ready',
  },
  VacancyDiskLow: {
    expr: reason('disk_low'),
    for: '5m',
    severity: 'warning',
    summary: `The disk of ${NODE} is almost full`,
    runbook: 'docs/clusters.md#runbook-a-disk-is-full',
  },
  VacancyDiskFull: {
    expr: reason('disk_full'),
    severity: 'critical',
    summary: `The disk of ${NODE} is full: it refuses writes`,
    runbook: 'docs/clusters.md#runbook-a-disk-is-full',
  },
  VacancyDiskStuck: {
    expr: reason('disk_stuck'),
    severity: 'critical',
    summary: `The disk of ${NODE} does not answer`,
    runbook: 'docs/reasons.md#reasons-in-ready',
  },
  VacancyMemoryNearBudget: {
    expr: `vacancy_memory_budget_bytes{kind="charged"} / ignoring (kind) vacancy_memory_budget_bytes{kind="budget"} ${OF_NODE} > 0.9`,
    for: '10m',
    severity: 'warning',
    summary: `${NODE} uses 90 % of its memory budget`,
    runbook: 'docs/clusters.md#runbook-full-memory',
  },
  VacancyMemoryFull: {
    expr: reason('memory_full'),
    severity: 'critical',
    summary: `The memory budget of ${NODE} is used up: writes that need more are refused`,
    runbook: 'docs/clusters.md#runbook-full-memory',
  },
  // The node ends seconds later, and a member repairs itself. Its reason is there for 10 s.
  VacancyDigestMismatch: {
    expr: `max_over_time(vacancy_unavailable{reason="digest_mismatch"}[1h]) ${OF_NODE} == 1`,
    severity: 'critical',
    summary: `The state of ${NODE} differed from its log: test the memory of the machine`,
    runbook: 'docs/clusters.md#runbook-divergence',
  },
  VacancySnapshotDamaged: {
    expr: `vacancy_wal_corruption_total ${OF_NODE} > 0`,
    severity: 'critical',
    summary: `A snapshot of ${NODE} no longer verifies: its disk is failing`,
    runbook: 'docs/clusters.md#runbook-a-damaged-log-or-snapshot',
  },
  VacancyClockWrong: {
    expr: reason('clock', 'clock_suspect'),
    for: '1m',
    severity: 'critical',
    summary: `The clock of ${NODE} or its shard is wrong: {{ $labels.reason }}`,
    runbook: 'docs/clusters.md#runbook-a-wrong-clock',
  },
  VacancyDataSetAside: {
    expr: reason('codecs_changed', 'codec_mismatch'),
    severity: 'warning',
    summary: `${NODE} started without its data, or will at its next start: another codec list`,
    runbook: 'docs/operators.md#changing-the-codec-list',
  },
  VacancySnapshotsFail: {
    expr: `increase(vacancy_snapshot_failures_total[1h]) ${OF_NODE} > 0`,
    severity: 'warning',
    summary: `${NODE} cannot write snapshots: its log grows`,
    runbook: 'docs/clusters.md#runbook-a-disk-is-full',
  },
  VacancyMaintenanceLate: {
    expr: `(time() - vacancy_maintenance_last_success_timestamp_seconds) ${OF_NODE} > ${2 * 86_400}`,
    for: '10m',
    severity: 'warning',
    summary: `${NODE} has not removed passed dates for two days`,
    runbook: 'docs/operators.md#maintenance',
  },
  VacancyConnectionsNearLimit: {
    expr: `vacancy_tcp_connections / vacancy_tcp_connections_limit ${OF_NODE} > 0.9`,
    for: '5m',
    severity: 'warning',
    summary: `${NODE} has 90 % of its tcp_max_connections open`,
    runbook: 'docs/operators.md#sizing',
  },
  VacancyRequestsFail: {
    expr: `rate(tcp_errors_total[5m]) / rate(tcp_commands_total[5m]) ${OF_NODE} > 0.01`,
    for: '5m',
    severity: 'critical',
    summary: `${NODE} fails more than 1 % of its requests`,
    runbook: 'docs/errors.md#codes-of-error-replies',
  },
}

const SHARDS = {
  VacancyNoLeader: {
    expr: `max by (shard) (vacancy_raft_role{role="leader"} ${OF_SHARD}) == 0`,
    for: '30s',
    severity: 'critical',
    summary: 'Shard {{ $labels.shard }} has no leader: it accepts no writes',
    runbook: 'docs/clusters.md#runbook-the-quorum-is-lost',
    covers: ['no_leader'],
  },
  VacancyLeaderChanges: {
    expr: `max by (shard) (increase(vacancy_raft_leader_changes_total[15m]) ${OF_SHARD}) > 5`,
    severity: 'warning',
    summary: 'The leader of shard {{ $labels.shard }} changed more than five times in 15 minutes',
    runbook: 'docs/clusters.md#watch',
  },
  VacancyReplicationLag: {
    expr: `max by (shard, peer) (vacancy_raft_lag_seconds ${OF_SHARD}) > ${STALE_SECS / 2}`,
    for: '2m',
    severity: 'warning',
    summary: `{{ $labels.peer }} is behind the leader of shard {{ $labels.shard }}; at ${STALE_SECS} s it stops reads`,
    runbook: 'docs/clusters.md#watch',
  },
  VacancyWritesRefused: {
    expr: `sum by (shard) (rate(vacancy_command_errors_total{command=~"${WRITES}",code=~"${FAILED}"}[5m]) ${OF_SHARD})
/ sum by (shard) (rate(vacancy_commands_total{command=~"${WRITES}"}[5m]) ${OF_SHARD}) > 0.01`,
    for: '2m',
    severity: 'critical',
    summary: 'Shard {{ $labels.shard }} refuses more than 1 % of its writes',
    runbook: 'docs/errors.md#codes-of-error-replies',
  },
}

const STAYS = {
  VacancyNightsOversold: {
    expr: `max by (shard) (vacancy_nights_oversold ${OF_SHARD}) > 0`,
    for: '1m',
    severity: 'warning',
    summary: 'Rooms on hold are missing in shard {{ $labels.shard }}',
    runbook: 'docs/operators.md#runbook-oversold-nights',
  },
  VacancyHoldsNearLimit: {
    expr: `max by (shard) (vacancy_stays_held ${OF_SHARD}) > ${0.8 * HOLDS_MAX}`,
    for: '5m',
    severity: 'warning',
    summary: 'Shard {{ $labels.shard }} has 80 % of holds_max on hold (200,000 by default): new holds will get 429',
    runbook: 'docs/operators.md#when-something-is-wrong',
  },
  VacancyStaysForgottenEarly: {
    expr: `max by (shard, state) (increase(vacancy_stays_evicted_total[1h]) ${OF_SHARD}) > 0
or max by (shard) (vacancy_unavailable{reason="stays_full"} ${OF_SHARD}) == 1`,
    severity: 'warning',
    summary: 'Shard {{ $labels.shard }} has reached stays_bytes: stays are forgotten before their time',
    runbook: 'docs/operators.md#when-something-is-wrong',
  },
}

const FABRIC = {
  VacancyRegistryUnreachable: {
    expr: `vacancy_registry_up == 0
or bridge_registry_up == 0
or router_registry_up == 0`,
    for: '2m',
    severity: 'warning',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) does not reach the registry: it keeps what it knows',
    runbook: 'docs/registry.md#what-to-do-when',
    covers: ['registry_unreachable'],
  },
  VacancyRegistryStorage: {
    expr: 'registry_storage_up == 0',
    for: '1m',
    severity: 'critical',
    summary: 'The registry {{ $labels.instance }} cannot store its state',
    runbook: 'docs/registry.md#what-to-do-when',
  },
  VacancyComponentRemoved: {
    expr: 'increase(registry_heartbeat_timeout_total[15m]) > 0',
    severity: 'warning',
    summary: 'The registry lost a {{ $labels.kind }}: its heartbeats stopped',
    runbook: 'docs/registry.md#what-to-do-when',
  },
  VacancyNotRegistered: {
    expr: `bridge_heartbeat_age_seconds > ${HEARTBEAT_SECS}
or router_heartbeat_age_seconds > ${HEARTBEAT_SECS}`,
    for: '1m',
    severity: 'critical',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) is cut off from the registry: others no longer route to it',
    runbook: 'docs/fabric.md#runbook-a-zone-is-cut-off',
  },
  VacancyShardUnreachable: {
    expr: `max by (shard, fault) (router_shard_fault or bridge_shard_fault or backend_shard_fault) == 1`,
    for: '1m',
    severity: 'critical',
    summary: 'Requests for {{ $labels.shard }} fail at routers, bridges or proxies: {{ $labels.fault }}',
    runbook: 'docs/fabric.md#when-something-is-wrong',
  },
  VacancyHopDown: {
    expr: `bridge_hop_up == 0
or router_hop_up == 0`,
    for: '5m',
    severity: 'warning',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) has no connection to {{ $labels.hop }}',
    runbook: 'docs/fabric.md#when-something-is-wrong',
  },
  VacancySegmentConflict: {
    expr: `max(registry_segment_conflicts) > 0
or max by (shard) (vacancy_unavailable{reason="segments_refused"} ${OF_SHARD}) == 1`,
    for: '1m',
    severity: 'warning',
    summary: 'Two shards claim the same segments: the registry routes to one of them',
    runbook: 'docs/fabric.md#runbook-two-owners-of-a-segment',
  },
  VacancyRouterRequestsFail: {
    expr: ['router', 'bridge']
      .map(
        (name) =>
          `sum by (job, instance) (rate(${name}_requests_total{result=~"${FAILED}|dropped"}[5m])) / sum by (job, instance) (rate(${name}_requests_total[5m])) > 0.01`,
      )
      .join('\nor '),
    for: '5m',
    severity: 'critical',
    summary: '{{ $labels.instance }} ({{ $labels.job }}) fails more than 1 % of its requests',
    runbook: 'docs/fabric.md#when-something-is-wrong',
  },
  VacancyProxyRequestsFail: {
    expr: 'sum by (instance) (rate(api_requests_total{status=~"5.."}[5m])) / sum by (instance) (rate(api_requests_total[5m])) > 0.01',
    for: '5m',
    severity: 'critical',
    summary: 'The proxy {{ $labels.instance }} fails more than 1 % of its requests',
    runbook: 'docs/proxy.md#errors',
  },
}

const QUEUE = {
  VacancyQueueDeadJobsGrow: {
    expr: 'sum by (topic) (increase(vacancy_queue_jobs_dead_total[30m])) > 0',
    severity: 'warning',
    summary: 'Jobs of topic {{ $labels.topic }} fail for good',
    runbook: 'docs/queue.md#runbook-dead-jobs-grow',
  },
  VacancyQueueJobsWait: {
    expr: 'max by (topic) (vacancy_queue_oldest_ready_seconds) > 300',
    for: '5m',
    severity: 'warning',
    summary: 'The oldest ready job of topic {{ $labels.topic }} waits for more than five minutes',
    runbook: 'docs/queue.md#runbook-consumers-stall',
  },
  VacancyQueueConsumersStall: {
    expr: 'sum by (topic) (vacancy_queue_consumers_stalled) > 0',
    for: '5m',
    severity: 'warning',
    summary: 'Consumers of topic {{ $labels.topic }} stall',
    runbook: 'docs/queue.md#runbook-consumers-stall',
  },
  VacancyQueueJobsRefused: {
    expr: 'sum by (topic, reason) (increase(vacancy_queue_jobs_rejected_total[5m])) > 0',
    for: '5m',
    severity: 'warning',
    summary: 'Jobs for topic {{ $labels.topic }} are refused: {{ $labels.reason }}',
    runbook: 'docs/queue.md#errors',
  },
  VacancyQueueDiskFull: {
    expr: 'increase(vacancy_queue_journal_errors_total{op="full"}[5m]) > 0',
    severity: 'critical',
    summary: 'The disk of the queue {{ $labels.instance }} is full',
    runbook: 'docs/queue.md#runbook-the-disk-is-full',
  },
  VacancyQueueJournalFails: {
    expr: 'increase(vacancy_queue_journal_errors_total{op!="full"}[5m]) > 0',
    severity: 'critical',
    summary: 'The queue {{ $labels.instance }} cannot use its journal: {{ $labels.op }}',
    runbook: 'docs/queue.md#runbook-the-file-is-locked-or-damaged',
  },
  VacancyQueueNoOwner: {
    expr: 'max by (job, partition) (vacancy_queue_owner) == 0',
    for: '1m',
    severity: 'critical',
    summary: 'No process serves partition {{ $labels.partition }} of the queue ({{ $labels.job }})',
    runbook: 'docs/queue.md#runbook-two-owners',
  },
  VacancyQueueTwoOwners: {
    expr: 'sum by (job, partition) (vacancy_queue_owner) > 1',
    for: '1m',
    severity: 'critical',
    summary: 'Two processes serve partition {{ $labels.partition }} of the queue ({{ $labels.job }})',
    runbook: 'docs/queue.md#runbook-two-owners',
  },
}

const CONTROL_PLANE = {
  VacancyControlPlaneBehind: {
    expr: `control_poll_round_seconds > ${BEHIND_SECS}`,
    for: '5m',
    severity: 'warning',
    summary: `The control plane {{ $labels.instance }} is behind: a round over its nodes takes more than ${BEHIND_SECS} s`,
    runbook: 'docs/control-plane.md#limits',
  },
  VacancyControlPlaneBlind: {
    expr: 'rate(control_node_failures_total[5m]) / rate(control_node_requests_total[5m]) > 0.1',
    for: '5m',
    severity: 'warning',
    summary: 'More than 10 % of the polls of the control plane {{ $labels.instance }} fail',
    runbook: 'docs/control-plane.md#nodes-that-are-away',
  },
  VacancyControlPlaneDatabase: {
    expr: 'control_database_up == 0',
    for: '1m',
    severity: 'critical',
    summary: 'The database of the control plane {{ $labels.instance }} does not respond',
    runbook: 'docs/control-plane.md#where-the-state-is',
  },
  VacancyProbesFail: {
    expr: 'max by (state) (control_probed_shards{state=~"partly|failing"}) > 0',
    for: '1m',
    severity: 'critical',
    summary: 'Searches or holds that are sent as clients do are not all answered: {{ $labels.state }}',
    runbook: 'docs/control-plane.md#what-clients-see',
  },
}

const GROUPS = {
  'vacancy-programs': PROGRAMS,
  'vacancy-nodes': NODES,
  'vacancy-shards': SHARDS,
  'vacancy-stays': STAYS,
  'vacancy-fabric': FABRIC,
  'vacancy-queue': QUEUE,
  'vacancy-control-plane': CONTROL_PLANE,
}

/** All alerts by name. */
export const ALERTS = Object.assign({}, ...Object.values(GROUPS))

/** Text of the file by its path in the repository. */
export function alertFiles() {
  const groups = Object.entries(GROUPS).map(
    ([name, alerts]) => `  - name: ${name}\n    rules:\n${Object.entries(alerts).map(ruleText).join('')}`,
  )
  return { 'deploy/observability/alerts.yml': `${HEAD}groups:\n${groups.join('')}` }
}

const HEAD = `# Made by \`npm run docs\` from scripts/alerts.mjs: docs/operators.md#dashboards-and-alerts. Keep changes of yours in a file of its own.
`

function ruleText([name, { expr, for: held, severity, summary, runbook }]) {
  const lines = [
    `- alert: ${name}`,
    '  expr: |-',
    ...expr.split('\n').map((line) => `    ${line}`),
    ...(held === undefined ? [] : [`  for: ${held}`]),
    '  labels:',
    `    severity: ${severity}`,
    '  annotations:',
    `    summary: '${summary.replaceAll("'", "''")}'`,
    `    runbook: ${runbook}`,
  ]
  return lines.map((line) => `      ${line}\n`).join('')
}
