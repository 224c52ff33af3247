import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { REASONS } from '../engine/src/http/reasons.ts'
import { METRICS } from '../engine/src/metrics.ts'
import { BRIDGE_METRICS } from '../fabric/src/bridge/metrics.ts'
import { REGISTRY_METRICS, RESOLVER_METRICS } from '../fabric/src/metrics.ts'
import { PROXY_METRICS } from '../fabric/src/proxy/metrics.ts'
import { ROUTER_METRICS } from '../fabric/src/router/metrics.ts'
import { QUEUE_METRICS } from '../queue/src/metrics.ts'
import { CONTROL_METRICS } from '../server/src/metrics.ts'
import { registerMetrics } from '../shared/src/node/metrics.ts'
import { ALERTS, alertFiles } from './alerts.mjs'
import { headingsOf } from './check-links.mjs'
import { dashboardFiles } from './dashboards.mjs'
import { baseOf, readExpression } from './expressions.mjs'
import { ROOT } from './pinned-node.mjs'
import { scrapeFiles } from './scrape.mjs'

const TABLES = [METRICS, REGISTRY_METRICS, RESOLVER_METRICS, BRIDGE_METRICS, ROUTER_METRICS, PROXY_METRICS]
const TABLE = Object.assign({}, ...TABLES, QUEUE_METRICS, CONTROL_METRICS)
const ofProcess = await registerMetrics({}, { process: true }).text()

/** Type of every metric that a program has, and `up` of Prometheus. */
const types = new Map([
  ['up', 'gauge'],
  ...[...ofProcess.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]),
  ...Object.entries(TABLE).map(([name, { type }]) => [name, type]),
])
/** Labels that Prometheus adds. */
const OF_TARGET = ['job', 'instance']
/** One is enough, however long ago: there is no rate. */
const COUNTED_ONCE = ['vacancy_wal_corruption_total']

const dashboards = Object.entries(dashboardFiles()).map(([file, text]) => ({ file, model: JSON.parse(text) }))
const panels = dashboards.flatMap(({ file, model }) => model.panels.map((panel) => ({ file, model, panel })))
/** Every expression, with what it belongs to. */
const expressions = [
  ...Object.entries(ALERTS).map(([name, { expr }]) => [name, expr]),
  ...panels.flatMap(({ file, panel }) => panel.targets.map(({ expr }) => [`${file}: ${panel.title}`, expr])),
]

test('every metric of an alert or dashboard is one that a program has, with its labels', () => {
  for (const [where, expr] of expressions) {
    const { metrics, labels } = readExpression(expr)
    expect(metrics.length, where).toBeGreaterThan(0)
    const known = new Set(OF_TARGET)
    for (const { name, matchers } of metrics) {
      const base = baseOf(name, types)
      expect(types.has(base), `${where}: ${name}`).toBe(true)
      const own = [...(TABLE[base]?.labels ?? []), ...(base === name ? [] : ['le']), ...OF_TARGET]
      for (const label of own) known.add(label)
      for (const [label] of matchers) expect(own, `${where}: ${name}`).toContain(label)
    }
    for (const label of labels) expect([...known], where).toContain(label)
  }
})

test('counters and histograms are read as rates, and gauges are not', () => {
  for (const [where, expr] of expressions) {
    for (const { name, within } of readExpression(expr).metrics) {
      if (COUNTED_ONCE.includes(name)) continue
      const counts = types.get(baseOf(name, types)) !== 'gauge'
      expect({ where, name, counts }).toEqual({ where, name, counts: within === 'rate' || within === 'increase' })
    }
  }
})

test('every reason in /ready has one alert', () => {
  const alerted = Object.values(ALERTS).flatMap(({ expr, covers = [] }) => {
    const matchers = readExpression(expr).metrics.flatMap(({ matchers: all }) => all)
    return [...covers, ...matchers.flatMap(([label, , value]) => (label === 'reason' ? value.split('|') : []))]
  })

  expect(alerted.sort()).toEqual(Object.keys(REASONS).sort())
})

test('every alert has a severity, a short summary and a runbook that exists', () => {
  for (const [name, { severity, summary, runbook }] of Object.entries(ALERTS)) {
    expect(['critical', 'warning'], name).toContain(severity)
    expect(summary.length, name).toBeLessThanOrEqual(140)
    const [page, anchor] = runbook.split('#')
    expect([...headingsOf(readFileSync(path.join(ROOT, page), 'utf8'))], `${name}: ${page}`).toContain(anchor)
  }
})

test('the panels of a dashboard have different titles, lie side by side, and use variables that exist', () => {
  expect(new Set(dashboards.map(({ model }) => model.uid)).size).toBe(dashboards.length)
  for (const { file, model } of dashboards) {
    expect(new Set(model.panels.map(({ title }) => title)).size, file).toBe(model.panels.length)
    const places = model.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)
    expect(new Set(places).size, file).toBe(places.length)
    const variables = model.templating.list.map(({ name }) => name)
    const used = JSON.stringify(model.panels).matchAll(/\$\{?(\w+)/g)
    for (const [, name] of used) expect(variables, file).toContain(name)
  }
})

test('the legend of a chart names labels that its lines have', () => {
  for (const { file, panel } of panels) {
    for (const { expr, legendFormat } of panel.targets) {
      const { metrics, labels } = readExpression(expr)
      const own = metrics.flatMap(({ name }) => TABLE[baseOf(name, types)]?.labels ?? [])
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect([...own, ...labels, ...OF_TARGET], `${file}: ${panel.title}`).toContain(label)
    }
  }
})

test('deploy/observability has no file that nothing makes', () => {
  const made = Object.keys({ ...alertFiles(), ...scrapeFiles(), ...dashboardFiles() })

  expect(globSync('deploy/observability/**/*.*', { cwd: ROOT }).sort()).toEqual(made.sort())
})
