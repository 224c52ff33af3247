// Alerts and dashboards beside programs that run: Prometheus scrapes a whole platform, and finds what every expression names.
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { quickstartTest, UP } from '../quickstart/src/platform/testing/command.ts'
import { startPrometheus } from '../testkit/src/prometheus.ts'
import { until } from '../testkit/src/until.ts'
import { ALERTS } from './alerts.mjs'
import { dashboardFiles } from './dashboards.mjs'
import { readExpression } from './expressions.mjs'
import { ROOT } from './pinned-node.mjs'

const START_MS = 400_000
const JOB_OF = {
  ...{ node: 'vacancy-node', registry: 'vacancy-registry', resolver: 'vacancy-resolver', bridge: 'vacancy-bridge' },
  ...{ 'zone-router': 'vacancy-router', 'edge-router': 'vacancy-router', proxy: 'vacancy-proxy' },
  'control-plane': 'vacancy-control-plane',
}
/** Of the scrapes, for rates. */
const SCRAPES = 5
/** Metrics that only appear with what they tell of. */
const ABSENT = [
  // While a shard does not serve: its name is not known before.
  ...['router_shard_fault', 'bridge_shard_fault', 'backend_shard_fault'],
  // After the first maintenance of the process, which a shard of today does not need before tomorrow.
  'vacancy_maintenance_last_success_timestamp_seconds',
  // With a certificate, or with a token that ends.
  'vacancy_queue_not_after_seconds',
]
/** The statuses of each command are too many to begin all at 0. */
const AFTER_A_FAILURE = ['VacancyProxyRequestsFail']

/** Some sample jobs of the quick start die. */
const ON_PURPOSE = ['VacancyQueueDeadJobsGrow']

const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-observability-'))
let quickstart
let platform
let prometheus
/** Of all series: name → labels with their values. */
const series = new Map()
let plan

beforeAll(async () => {
  quickstart = await quickstartTest()
  platform = quickstart.up('--level', 'full', '--console', '--console-port', '0')
  await platform.printed(UP)
  const [, link] = await platform.printed(/^Open +(\S+)$/m)
  ;({ plan } = JSON.parse((await quickstart.run('status', '--json')).output))
  const tokens = {
    'vacancy-node': readFileSync(path.join(quickstart.dir, 'admin.token'), 'utf8').trim(),
    'vacancy-control-plane': await controlPlaneToken(link),
  }
  copyFileSync(path.join(ROOT, 'deploy/observability/alerts.yml'), path.join(folder, 'alerts.yml'))
  const targets = Map.groupBy(
    plan.components.filter(({ kind }) => kind in JOB_OF),
    ({ kind }) => JOB_OF[kind],
  )
  prometheus = await startPrometheus(folder, {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: ['alerts.yml'],
    scrape_configs: [...targets].map(([job, components]) => ({
      job_name: job,
      ...(job in tokens && { authorization: { credentials: tokens[job] } }),
      static_configs: [
        {
          targets: components.map(({ kind, api }) =>
            kind === 'control-plane' ? new URL(link).host : `${api.host}:${api.port}`,
          ),
        },
      ],
    })),
  })
  await refuseOnce()
  const of = `min(count_over_time(up{job=~"vacancy.*"}[1m])) >= ${SCRAPES}`
  await until('every program was scraped several times', async () => (await prometheus.query(of)).length > 0)
  for (const labels of await prometheus.get('series', { 'match[]': '{job=~"vacancy.*"}' })) {
    const known = series.get(labels.__name__) ?? new Map()
    series.set(labels.__name__, known)
    for (const [label, value] of Object.entries(labels)) known.set(label, (known.get(label) ?? new Set()).add(value))
  }
}, START_MS)
afterAll(async () => {
  await prometheus?.stop()
  await platform?.stop()
  quickstart?.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** An API token with the role monitoring, as an admin makes it in the console. */
async function controlPlaneToken(link) {
  const { origin, hash } = new URL(link)
  const post = async (place, body, headers) => {
    const answer = await fetch(`${origin}${place}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${place}: ${answer.status} ${await answer.text()}`)
    return { answer, result: await answer.json() }
  }
  const code = new URLSearchParams(hash.slice(1)).get('code')
  const { answer, result } = await post('/api/v1/session/link', { code })
  const cookie = answer.headers.getSetCookie().map((each) => each.split(';')[0])
  const token = { name: 'prometheus', role: 'monitoring', expiresAt: null }
  return (await post('/api/v1/tokens', token, { cookie: cookie.join('; '), 'x-csrf': result.csrf })).result.value
}

/** Requests of each kind through the proxy, one of which is refused. */
async function refuseOnce() {
  expect(await quickstart.run('query')).toMatchObject({ code: 0 })
  const proxy = plan.components.find(({ kind }) => kind === 'proxy').main
  const night = { property_id: 'no-such-hotel', room_type: 'double', date: new Date().toISOString().slice(0, 10) }
  const answer = await fetch(`http://${proxy.host}:${proxy.port}/api`, {
    method: 'POST',
    body: JSON.stringify({ command: 'DECROOMAVL', body: { ...night, amount: 1 } }),
  })
  expect((await answer.json()).status).toBe('error')
}

const dashboards = Object.entries(dashboardFiles()).map(([file, text]) => [
  path.basename(file, '.json'),
  JSON.parse(text),
])
/** Every expression of a panel, as Grafana sends it for the leader of a shard. */
function panelExpressions() {
  return dashboards.flatMap(([file, { panels }]) =>
    panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [`${file}: ${title}`, expr])),
  )
}
const alertExpressions = Object.entries(ALERTS).map(([name, { expr }]) => [name, expr])

test('every metric of an alert or dashboard comes from a program that runs, with the labels and values selected by', () => {
  const missing = new Set()
  for (const [, expr] of [...alertExpressions, ...panelExpressions()]) {
    for (const { name, matchers } of readExpression(expr).metrics) {
      const known = series.get(name)
      if (known === undefined) missing.add(name)
      for (const [label, operator, value] of known ? matchers : []) {
        if (!known.has(label)) missing.add(`${name}{${label}}`)
        else if (operator === '=' && !value.startsWith('$') && !known.get(label).has(value))
          missing.add(`${name}{${label}="${value}"}`)
      }
    }
  }

  expect([...missing].filter((each) => !ABSENT.includes(each))).toEqual([])
})

/** Whether there may be no data, because no program has one of its metrics yet. */
const mayBeEmpty = (expr) => readExpression(expr).metrics.some(({ name }) => ABSENT.includes(name))
/** A comparison drops what it does not hold for; with bool it shows it. */
const decided = (expr) => expr.replaceAll(/(==|[<>]) (?=[\d.])/g, '$1 bool ')

test('every alert has data to decide by, and none fires without a cause', async () => {
  const without = []
  const firing = []
  for (const [name, expr] of alertExpressions) {
    if ((await prometheus.query(expr)).length > 0) firing.push(name)
    if ((await prometheus.query(decided(expr))).length === 0 && !mayBeEmpty(expr)) without.push(name)
  }
  const { groups } = await prometheus.get('rules')
  const rules = groups.flatMap((group) => group.rules)

  expect(rules.map(({ name }) => name).sort()).toEqual(Object.keys(ALERTS).sort())
  expect(rules.filter(({ lastError = '' }) => lastError !== '')).toEqual([])
  expect(without.filter((name) => !AFTER_A_FAILURE.includes(name))).toEqual([])
  expect(firing.filter((name) => !ON_PURPOSE.includes(name))).toEqual([])
})

test('every panel has data of one of the nodes and shards', async () => {
  const nodes = await prometheus.query('vacancy_build_info')
  const empty = []
  for (const [where, expr] of panelExpressions()) {
    if (mayBeEmpty(expr)) continue
    const all = new Set(nodes.map((node) => decided(expr).replaceAll(/\$(\w+)/g, (_, name) => node[name])))
    const found = await Promise.all([...all].map((each) => prometheus.query(each)))
    if (found.every(({ length }) => length === 0)) empty.push(`${where}: ${expr}`)
  }

  expect(empty).toEqual([])
})
