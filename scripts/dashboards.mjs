// The dashboards of Grafana in deploy/observability, made by `npm run docs`: the charts of the console with their titles and
// units, and those of what the console does not chart.
import { SERIES } from '../shared/src/contract/series.ts'
import { DASHBOARDS as CONSOLE } from '../web/src/features/metrics/dashboards.ts'
import { promqlOf } from '../web/src/features/metrics/promql.ts'

const COLUMNS = 24
const [WIDTH, HEIGHT] = [8, 7]
const SOURCE = { type: 'prometheus', uid: '$source' }
/** Units of the console → those of Grafana. */
const UNITS = { '1/s': 'ops', ms: 'ms', s: 's', B: 'bytes' }

/** @param targets expression and legend of each line */
const chart = (title, unit, ...targets) => ({ title, unit, targets })
/** A variable of a dashboard: the values of a label. */
const variable = (name, metric) => ({ name, metric })

/**
 * The charts of a dashboard of the console, as far as Prometheus has their series.
 *
 * @param of what the series are of
 * @param legend of whom each line is; '' for one
 */
function consoleCharts(id, of, legend) {
  const { charts } = CONSOLE.find((each) => each.id === id)
  return charts.flatMap(({ title, unit, names }) => {
    const targets = names.flatMap((name) => {
      const expr = promqlOf([name], of)
      return expr === ''
        ? []
        : [[expr, names.length === 1 && legend !== '' ? legend : `${legend} ${SERIES[name].label}`.trim()]]
    })
    return targets.length === 0 ? [] : [chart(title, unit, ...targets)]
  })
}

const NODE = 'vacancy_build_info{instance="$instance"}'
const ON_NODE = `* on (instance) group_left (node) ${NODE}`
const ON_SHARD = '* on (instance) group_left (node) vacancy_build_info{shard="$shard"}'
/** Of one program, or of all in one view. */
const rate = (metric) => `rate(${metric}[1m])`
const p99 = (metric, by) => `1000 * histogram_quantile(0.99, sum by (le, ${by}) (${rate(`${metric}_bucket`)}))`

const NODE_CHARTS = [
  chart('Reasons', '', [`vacancy_unavailable ${ON_NODE} == 1`, '{{reason}}']),
  ...consoleCharts('engine', { instance: '$instance' }, ''),
  ...consoleCharts('consensus', { instance: '$instance' }, ''),
  chart(
    'Memory by use',
    'B',
    [`vacancy_memory_bytes ${ON_NODE}`, '{{kind}}'],
    [`vacancy_memory_budget_bytes{kind!="left"} ${ON_NODE}`, 'budget: {{kind}}'],
  ),
  chart('Free disk', 'B', [`vacancy_disk_free_bytes ${ON_NODE}`, 'free']),
  chart('Age of the snapshot', 's', [`vacancy_snapshot_age_seconds ${ON_NODE}`, 'age']),
  chart('Delay of event loops', 's', [`vacancy_event_loop_delay_seconds ${ON_NODE}`, '{{thread}}']),
  chart('Packages by segment', '', [`topk(10, vacancy_packages ${ON_NODE})`, '{{segment}}']),
]

const SHARD_CHARTS = [
  chart('Leader', '', [`vacancy_raft_role{role="leader"} ${ON_SHARD} == 1`, '{{node}}']),
  chart('Reasons', '', [`vacancy_unavailable ${ON_SHARD} == 1`, '{{node}} {{reason}}']),
  chart('Lag in time', 's', [`vacancy_raft_lag_seconds ${ON_SHARD}`, '{{peer}}']),
  chart('Lag', '', [`vacancy_raft_lag_entries ${ON_SHARD}`, '{{peer}}']),
  chart('Leader changes', '', [`increase(vacancy_raft_leader_changes_total[5m]) ${ON_SHARD}`, '{{node}}']),
  chart('Age of the data in replies', 's', [`vacancy_read_staleness_seconds ${ON_SHARD}`, '{{node}}']),
  ...consoleCharts('engine', { shard: '$shard' }, '{{node}}'),
  ...consoleCharts('consensus', { shard: '$shard' }, '{{node}}'),
  chart('Memory budget', 'B', [`vacancy_memory_budget_bytes ${ON_SHARD}`, '{{node}} {{kind}}']),
  chart('Free disk', 'B', [`vacancy_disk_free_bytes ${ON_SHARD}`, '{{node}}']),
]

/** Routers and bridges have the same metrics. */
function hopCharts(name, title) {
  const of = (metric) => `${name}_${metric}`
  return [
    chart(`${title}: requests`, '1/s', [
      `sum by (instance, kind) (${rate(of('requests_total'))})`,
      '{{instance}} {{kind}}',
    ]),
    chart(`${title}: failed requests`, '1/s', [
      `sum by (instance, result) (${rate(of('requests_total{result!="ok"}'))})`,
      '{{instance}} {{result}}',
    ]),
    chart(`${title}: p99`, 'ms', [p99(of('request_duration_seconds'), 'instance, kind'), '{{instance}} {{kind}}']),
    chart(`${title}: connections to hops`, '', [of('hop_up'), '{{instance}} → {{hop}}']),
    chart(`${title}: shards that do not serve`, '', [of('shard_fault'), '{{instance}} {{shard}} {{fault}}']),
    chart(
      `${title}: registry`,
      '',
      [of('registry_up'), '{{instance}} reaches it'],
      [of('heartbeat_age_seconds'), '{{instance}} heartbeat, s'],
    ),
  ]
}

const FABRIC_CHARTS = [
  ...hopCharts('router', 'Routers'),
  ...hopCharts('bridge', 'Bridges'),
  chart('Proxies: requests by status', '1/s', [
    `sum by (instance, status) (${rate('api_requests_total')})`,
    '{{instance}} {{status}}',
  ]),
  chart('Proxies: p99', 'ms', [p99('api_request_duration_seconds', 'instance'), '{{instance}}']),
  chart('Proxies: connections to the upstream', '', ['backend_connections', '{{instance}}']),
  chart(
    'Registry: components',
    '',
    ['registry_registered_nodes', 'nodes'],
    ['registry_registered_bridges', 'bridges'],
    ['registry_registered_routers', 'routers'],
  ),
  chart('Registry: oldest heartbeat', 's', ['max by (kind) (registry_component_age_seconds)', '{{kind}}']),
  chart(
    'Registry: storage',
    '',
    ['registry_storage_up', '{{instance}} stores'],
    ['registry_segment_conflicts', '{{instance}} conflicts of segments'],
  ),
]

const QUEUE_CHARTS = [
  ...consoleCharts('queue', {}, ''),
  chart('Age of the oldest ready job', 's', ['max by (topic) (vacancy_queue_oldest_ready_seconds)', '{{topic}}']),
  chart('Dead jobs by topic', '', ['sum by (topic) (vacancy_queue_dead_jobs)', '{{topic}}']),
  chart('Ready jobs by topic', '', ['sum by (topic) (vacancy_queue_ready_jobs)', '{{topic}}']),
  chart('First delivery p99', 'ms', [p99('vacancy_queue_delivery_seconds', 'topic'), '{{topic}}']),
  chart('Durable p99', 'ms', [p99('vacancy_queue_journal_commit_seconds', 'instance'), '{{instance}}']),
  chart('Journal', 'B', ['vacancy_queue_journal_bytes', '{{instance}}']),
  chart('Owners of partitions', '', ['vacancy_queue_owner == 1', '{{instance}} {{partition}}']),
]

const CONTROL_CHARTS = [
  ...consoleCharts('console', {}, '').filter(({ title }) => !title.startsWith('Memory')),
  chart('Memory', 'B', ['process_resident_memory_bytes and on (instance) control_nodes', '{{instance}}']),
  chart('Shards by what clients get', '', ['control_probed_shards', '{{state}}']),
  chart('Probes: p99', 'ms', [p99('control_probe_seconds', 'request'), '{{request}}']),
  chart('Database', '', ['control_database_up', '{{instance}} up']),
  chart('Requests: p99', 'ms', [p99('control_http_request_seconds', 'instance'), '{{instance}}']),
  chart('Refused requests', '1/s', [`sum by (reason) (${rate('control_refused_total')})`, '{{reason}}']),
]

/** By file name. */
const DASHBOARDS = {
  node: { title: 'Vacancy node', variables: [variable('instance', 'vacancy_build_info')], charts: NODE_CHARTS },
  shard: { title: 'Vacancy shard', variables: [variable('shard', 'vacancy_build_info')], charts: SHARD_CHARTS },
  fabric: { title: 'Vacancy fabric', variables: [], charts: FABRIC_CHARTS },
  queue: { title: 'Vacancy job queue', variables: [], charts: QUEUE_CHARTS },
  'control-plane': { title: 'Vacancy control plane', variables: [], charts: CONTROL_CHARTS },
}

/** Text of every dashboard by its path in the repository. */
export function dashboardFiles() {
  const files = Object.entries(DASHBOARDS).map(([name, dashboard]) => [
    `deploy/observability/dashboards/${name}.json`,
    `${JSON.stringify(modelOf(name, dashboard), undefined, 2)}\n`,
  ])
  return Object.fromEntries(files)
}

function modelOf(name, { title, variables, charts }) {
  return {
    uid: `vacancy-${name}`,
    title,
    description: 'Made by `npm run docs` from scripts/dashboards.mjs.',
    tags: ['vacancy'],
    schemaVersion: 39,
    timezone: 'utc',
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        { name: 'source', label: 'Data source', type: 'datasource', query: 'prometheus' },
        ...variables.map(({ name: label, metric }) => {
          const query = `label_values(${metric}, ${label})`
          return {
            ...{ name: label, type: 'query', datasource: SOURCE, definition: query, query: { query, refId: label } },
            // With the time range, by name.
            ...{ refresh: 2, sort: 1 },
          }
        }),
      ],
    },
    panels: charts.map(panelOf),
  }
}

function panelOf({ title, unit, targets }, at) {
  const perRow = COLUMNS / WIDTH
  return {
    id: at + 1,
    type: 'timeseries',
    title,
    datasource: SOURCE,
    gridPos: { x: (at % perRow) * WIDTH, y: Math.floor(at / perRow) * HEIGHT, w: WIDTH, h: HEIGHT },
    fieldConfig: { defaults: { unit: UNITS[unit] ?? 'short', min: 0 }, overrides: [] },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: targets.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: SOURCE,
      expr,
      legendFormat,
    })),
  }
}
