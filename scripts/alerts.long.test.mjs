// The alerts in promtool: it accepts them, and each fires on what it is about.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { promtool } from '../testkit/src/prometheus.ts'
import { ALERTS } from './alerts.mjs'
import { ROOT } from './pinned-node.mjs'

const read = (file) => readFileSync(path.join(ROOT, 'deploy/observability', file), 'utf8')

let folder
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-alerts-'))
  writeFileSync(path.join(folder, 'alerts.yml'), read('alerts.yml'))
  for (const name of ['monitoring', 'control-plane'])
    writeFileSync(path.join(folder, `vacancy-${name}.token`), 'a-token')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('promtool accepts the rules, and the example of a configuration with them', () => {
  writeFileSync(path.join(folder, 'example.yml'), read('prometheus.yml').replaceAll('/etc/prometheus', folder))

  const { code, output } = promtool(['check', 'config', 'example.yml'], folder)

  expect({ code, output }).toMatchObject({ code: 0 })
  expect(output).toContain(`${Object.keys(ALERTS).length} rules found`)
})

// --- Each alert: series with which it fires, and with which it does not ---

const EVERY_SECS = 60
const AT = '20m'
const DAY = 86_400
const SAMPLES = 30
const same = (value) => `${value}+0x${SAMPLES}`
const grows = (by) => `0+${by}x${SAMPLES}`
const absent = `_x${SAMPLES}`

const target = (program, port) => ({ job: `vacancy-${program}`, instance: `${program}:${port}` })
const seriesOf = (name, labels) => {
  const matchers = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return `${name}{${matchers.join(',')}}`
}
const NODE = target('node', 8080)
const ON_NODE = { ...NODE, shard: 's1', node: 'n1' }
const BUILD_INFO = seriesOf('vacancy_build_info', { ...ON_NODE, zone: 'z1', version: '1.0.0' })
const SHARD = { shard: 's1' }
const [BRIDGE, ROUTER, PROXY] = [target('bridge', 9100), target('router', 9100), target('proxy', 8777)]
const [REGISTRY, QUEUE, CONTROL] = [target('registry', 8080), target('queue', 8080), target('control-plane', 8000)]
const ORDERS = { topic: 'orders' }

/** A gauge or counter with these labels: its values when the alert fires, and when it does not. */
const when = (name, labels, bad, good) => [seriesOf(name, labels), bad, good]
/** @param labels of the alert */
const fires = (labels, ...series) => ({ labels, series })
const reason = (name) =>
  fires({ ...ON_NODE, reason: name }, when('vacancy_unavailable', { ...NODE, reason: name }, same(1), same(0)))

const EXAMPLES = {
  VacancyTargetDown: fires(PROXY, when('up', PROXY, same(0), same(1))),
  VacancyRestarts: fires(QUEUE, when('process_start_time_seconds', QUEUE, grows(60), same(5))),
  VacancyFilesNearLimit: fires(
    ROUTER,
    when('process_open_fds', ROUTER, same(950), same(100)),
    when('process_max_fds', ROUTER, same(1_000), same(1_000)),
  ),
  VacancyCertificateEnds: fires(PROXY, when('token_not_after_seconds', PROXY, same(13 * DAY), same(15 * DAY))),
  VacancyNodeNotReady: reason('stale'),
  VacancyNodeImpaired: reason('wal_slow'),
  VacancyDiskLow: reason('disk_low'),
  VacancyDiskFull: reason('disk_full'),
  VacancyDiskStuck: reason('disk_stuck'),
  VacancyMemoryNearBudget: fires(
    ON_NODE,
    when('vacancy_memory_budget_bytes', { ...NODE, kind: 'charged' }, same(95), same(50)),
    when('vacancy_memory_budget_bytes', { ...NODE, kind: 'budget' }, same(100), same(100)),
  ),
  VacancyMemoryFull: reason('memory_full'),
  // A single scrape saw it, and the node has restarted since.
  VacancyDigestMismatch: fires(
    { ...ON_NODE, reason: 'digest_mismatch' },
    when('vacancy_unavailable', { ...NODE, reason: 'digest_mismatch' }, '0+0x9 1 0+0x20', same(0)),
  ),
  VacancySnapshotDamaged: fires(ON_NODE, when('vacancy_wal_corruption_total', NODE, same(1), same(0))),
  VacancyClockWrong: reason('clock_suspect'),
  VacancyDataSetAside: reason('codecs_changed'),
  VacancySnapshotsFail: fires(ON_NODE, when('vacancy_snapshot_failures_total', NODE, grows(1), same(3))),
  VacancyMaintenanceLate: fires(
    ON_NODE,
    when('vacancy_maintenance_last_success_timestamp_seconds', NODE, same(-2 * DAY), same(-DAY)),
  ),
  VacancyConnectionsNearLimit: fires(
    ON_NODE,
    when('vacancy_tcp_connections', NODE, same(950), same(10)),
    when('vacancy_tcp_connections_limit', NODE, same(1_000), same(1_000)),
  ),
  VacancyRequestsFail: fires(
    ON_NODE,
    when('tcp_errors_total', NODE, grows(2), grows(0)),
    when('tcp_commands_total', NODE, grows(100), grows(100)),
  ),
  VacancyNoLeader: fires(SHARD, when('vacancy_raft_role', { ...NODE, role: 'leader' }, same(0), same(1))),
  VacancyLeaderChanges: fires(SHARD, when('vacancy_raft_leader_changes_total', NODE, grows(1), same(9))),
  VacancyReplicationLag: fires(
    { ...SHARD, peer: 'n2' },
    when('vacancy_raft_lag_seconds', { ...NODE, peer: 'n2' }, same(8), same(0.1)),
  ),
  VacancyWritesRefused: fires(
    SHARD,
    when('vacancy_command_errors_total', { ...NODE, command: 'BOOKSTAY', code: '503' }, grows(2), grows(0)),
    when('vacancy_commands_total', { ...NODE, command: 'BOOKSTAY' }, grows(100), grows(100)),
  ),
  VacancyNightsOversold: fires(SHARD, when('vacancy_nights_oversold', NODE, same(2), same(0))),
  VacancyHoldsNearLimit: fires(SHARD, when('vacancy_stays_held', NODE, same(170_000), same(1_000))),
  VacancyStaysForgottenEarly: fires(
    { ...SHARD, state: 'booked' },
    when('vacancy_stays_evicted_total', { ...NODE, state: 'booked' }, grows(1), same(7)),
  ),
  VacancyRegistryUnreachable: fires(BRIDGE, when('bridge_registry_up', BRIDGE, same(0), same(1))),
  VacancyRegistryStorage: fires(REGISTRY, when('registry_storage_up', REGISTRY, same(0), same(1))),
  VacancyComponentRemoved: fires(
    { ...REGISTRY, kind: 'node' },
    when('registry_heartbeat_timeout_total', { ...REGISTRY, kind: 'node' }, grows(1), same(2)),
  ),
  VacancyNotRegistered: fires(ROUTER, when('router_heartbeat_age_seconds', ROUTER, same(90), same(4))),
  VacancyShardUnreachable: fires(
    { ...SHARD, fault: 'down' },
    when('router_shard_fault', { ...ROUTER, ...SHARD, fault: 'down' }, same(1), absent),
  ),
  VacancyHopDown: fires({ ...BRIDGE, hop: 'n2' }, when('bridge_hop_up', { ...BRIDGE, hop: 'n2' }, same(0), same(2))),
  VacancySegmentConflict: fires({}, when('registry_segment_conflicts', REGISTRY, same(1), same(0))),
  VacancyRouterRequestsFail: fires(
    ROUTER,
    when('router_requests_total', { ...ROUTER, kind: 'read', result: 'dropped' }, grows(2), grows(0)),
    when('router_requests_total', { ...ROUTER, kind: 'read', result: 'ok' }, grows(98), grows(98)),
  ),
  VacancyProxyRequestsFail: fires(
    { instance: PROXY.instance },
    when('api_requests_total', { ...PROXY, command: 'BOOKSTAY', status: '503' }, grows(2), grows(0)),
    when('api_requests_total', { ...PROXY, command: 'BOOKSTAY', status: '200' }, grows(98), grows(98)),
  ),
  VacancyQueueDeadJobsGrow: fires(
    ORDERS,
    when('vacancy_queue_jobs_dead_total', { ...QUEUE, ...ORDERS, reason: 'max_attempts' }, grows(1), same(40)),
  ),
  VacancyQueueJobsWait: fires(
    ORDERS,
    when('vacancy_queue_oldest_ready_seconds', { ...QUEUE, ...ORDERS }, same(400), same(2)),
  ),
  VacancyQueueConsumersStall: fires(
    ORDERS,
    when('vacancy_queue_consumers_stalled', { ...QUEUE, ...ORDERS }, same(1), same(0)),
  ),
  VacancyQueueJobsRefused: fires(
    { ...ORDERS, reason: 'queue_full' },
    when('vacancy_queue_jobs_rejected_total', { ...QUEUE, ...ORDERS, reason: 'queue_full' }, grows(1), same(5)),
  ),
  VacancyQueueDiskFull: fires(
    { ...QUEUE, op: 'full' },
    when('vacancy_queue_journal_errors_total', { ...QUEUE, op: 'full' }, grows(1), same(1)),
  ),
  VacancyQueueJournalFails: fires(
    { ...QUEUE, op: 'write' },
    when('vacancy_queue_journal_errors_total', { ...QUEUE, op: 'write' }, grows(1), same(1)),
  ),
  VacancyQueueNoOwner: fires(
    { job: QUEUE.job, partition: '0' },
    when('vacancy_queue_owner', { ...QUEUE, partition: '0' }, same(0), same(1)),
  ),
  VacancyQueueTwoOwners: fires(
    { job: QUEUE.job, partition: '0' },
    when('vacancy_queue_owner', { ...QUEUE, partition: '0' }, same(1), same(1)),
    when('vacancy_queue_owner', { ...QUEUE, instance: 'other:8080', partition: '0' }, same(1), same(0)),
  ),
  VacancyControlPlaneBehind: fires(CONTROL, when('control_poll_round_seconds', CONTROL, same(9), same(0.5))),
  VacancyControlPlaneBlind: fires(
    CONTROL,
    when('control_node_failures_total', CONTROL, grows(20), grows(0)),
    when('control_node_requests_total', CONTROL, grows(100), grows(100)),
  ),
  VacancyControlPlaneDatabase: fires(CONTROL, when('control_database_up', CONTROL, same(0), same(1))),
  VacancyProbesFail: fires(
    { state: 'failing' },
    when('control_probed_shards', { ...CONTROL, state: 'failing' }, same(1), same(0)),
  ),
}

/** A test of promtool with these values by series, in which this alert alone fires, or none. */
function ruleTest(values, firing, labels) {
  return {
    interval: `${EVERY_SECS}s`,
    input_series: Object.entries({ [BUILD_INFO]: same(1), ...values }).map(([series, text]) => ({
      series,
      values: text,
    })),
    alert_rule_test: Object.keys(ALERTS).map((alertname) => ({
      eval_time: AT,
      alertname,
      exp_alerts: alertname === firing ? [shownAs(ALERTS[firing], labels)] : [],
    })),
  }
}

function shownAs({ severity, summary, runbook }, labels) {
  const text = summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label) => labels[label])
  return { exp_labels: { ...labels, severity }, exp_annotations: { summary: text, runbook } }
}

test('every alert fires on what it is about, alone, and none while all is well', { timeout: 600_000 }, () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual(Object.keys(ALERTS).sort())
  const examples = Object.entries(EXAMPLES)
  const alone = examples.map(([name, { labels, series }]) =>
    ruleTest(Object.fromEntries(series.map(([text, bad]) => [text, bad])), name, labels),
  )
  const allGood = examples.flatMap(([, { series }]) => series.map(([text, , good]) => [text, good]))
  const tests = [...alone, ruleTest(Object.fromEntries(allGood))]
  const file = { rule_files: ['alerts.yml'], evaluation_interval: `${EVERY_SECS}s`, tests }
  // JSON is YAML, too.
  writeFileSync(path.join(folder, 'tests.yml'), JSON.stringify(file))

  expect(promtool(['test', 'rules', 'tests.yml'], folder)).toMatchObject({ code: 0 })
})
