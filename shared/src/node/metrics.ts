/**
 * Metrics from a table. Each workspace declares name, type, help and labels once; registration, the metrics page and
 * the reference page derive from it.
 */

import { createRequire } from 'node:module'
import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { assert } from '../assert.ts'
import { DELAY_SAMPLED_EVERY_MS } from './event-loop.ts'

type MetricType = 'counter' | 'gauge' | 'histogram'

export type MetricSpec = {
  readonly type: MetricType
  /** One sentence. */
  readonly help: string
  readonly labels?: readonly string[]
  /** Upper bounds of a histogram, ascending. */
  readonly buckets?: readonly number[]
  /** Where it appears, if not everywhere, e.g. `clustered`. */
  readonly appliesTo?: string
}

/** Metrics by name, with the unit last (`_seconds`, `_bytes`, `_total`) and labels of bounded cardinality. */
export type MetricsTable = { readonly [name: string]: MetricSpec }

const rowOf =
  <T extends MetricType>(type: T) =>
  <const L extends readonly string[] = readonly []>(help: string, labels?: L) =>
    ({ type, help, labels: labels ?? [] }) as { readonly type: T; readonly help: string; readonly labels: L }
/** Rows of a table. */
export const counter = rowOf('counter')
export const gauge = rowOf('gauge')
export const histogram = rowOf('histogram')

type Label<S> = S extends { readonly labels: readonly (infer L extends string)[] } ? L : never

/** The metric of a row, with its type. */
type MetricOf<S extends MetricSpec> = S['type'] extends 'counter'
  ? Counter<Label<S>>
  : S['type'] extends 'gauge'
    ? Gauge<Label<S>>
    : Histogram<Label<S>>

type Labels = { readonly [label: string]: string }

/** A histogram counted elsewhere, such as in memory shared by threads. */
type HistogramReading = {
  readonly labels: Labels
  /** Observations per bucket, not cumulative. One more than there are bounds, for values above all of them. */
  readonly counts: ArrayLike<number>
  readonly sum: number
}

export type Metrics<T extends MetricsTable> = {
  /** The metrics by name, to set, increase and observe. */
  readonly of: { readonly [K in keyof T]: MetricOf<T[K]> }
  /** Calls `collect` before each page, for values that are read instead of counted. */
  onCollect(collect: () => void): void
  /** Reads a histogram from elsewhere instead of observing it here. */
  readHistogram(name: keyof T & string, read: () => readonly HistogramReading[]): void
  /** The text of the page. */
  text(): Promise<string>
}

/** Loaded with the first page: it takes more memory than the rest of a program's startup. */
const library = (): typeof import('prom-client') => createRequire(import.meta.url)('prom-client')

const SLICE_MS = 2

/** The content type of the page. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4'

/**
 * Registers a table.
 *
 * @param options.appliesTo rows of other modes are left out of the page, but can still be counted
 * @param options.process adds `process_*` and `nodejs_*`
 */
export function registerMetrics<const T extends MetricsTable>(
  table: T,
  options: { readonly appliesTo?: string; readonly process?: boolean } = {},
): Metrics<T> {
  const client = library()
  const registry = new client.Registry()
  const elsewhere = new client.Registry()
  if (options.process)
    client.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: DELAY_SAMPLED_EVERY_MS })
  const of: { [name: string]: unknown } = {}
  for (const [name, spec] of Object.entries<MetricSpec>(table)) {
    const isShown = spec.appliesTo === undefined || spec.appliesTo === options.appliesTo
    of[name] = createMetric(name, spec, isShown ? registry : elsewhere)
  }
  const collectors: (() => void)[] = []
  return {
    of: of as Metrics<T>['of'],
    onCollect: (collect) => collectors.push(collect),
    readHistogram(name, read) {
      const { help, buckets = [] } = table[name] as MetricSpec
      assert(buckets.length > 0, 'a histogram read from elsewhere declares its buckets')
      registry.removeSingleMetric(name)
      // prom-client reads a metric only through get(), and has no way to set bucket counts.
      registry.registerMetric({
        name,
        get: async () => ({
          name,
          help,
          type: 'histogram',
          values: read().flatMap((one) => valuesOf(name, buckets, one)),
        }),
      } as unknown as Histogram)
    },
    async text() {
      for (const collect of collectors) collect()
      const parts: string[] = []
      let since = performance.now()
      for (const { name } of registry.getMetricsAsArray()) {
        parts.push(await registry.getSingleMetricAsString(name))
        if (performance.now() - since < SLICE_MS) continue
        // A large page must not hold up what else this thread does.
        await new Promise((resolve) => setImmediate(resolve))
        since = performance.now()
      }
      return `${parts.join('\n\n')}\n`
    },
  }
}

function createMetric(name: string, spec: MetricSpec, registry: Registry): Counter | Gauge | Histogram {
  const client = library()
  const { help, labels = [], buckets } = spec
  const base = { name, help, labelNames: [...labels], registers: [registry] }
  switch (spec.type) {
    case 'counter':
      return new client.Counter(base)
    case 'gauge':
      return new client.Gauge(base)
    case 'histogram':
      return new client.Histogram(buckets === undefined ? base : { ...base, buckets: [...buckets] })
  }
}

function valuesOf(name: string, buckets: readonly number[], { labels, counts, sum }: HistogramReading): object[] {
  assert(counts.length === buckets.length + 1, 'a reading has a count per bucket and one for larger values')
  let total = 0
  const values: object[] = [...buckets, '+Inf'].map((le, i) => {
    total += counts[i] as number
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total }
  })
  values.push({ metricName: `${name}_sum`, labels, value: sum }, { metricName: `${name}_count`, labels, value: total })
  return values
}

/** Sets a counter to a total counted elsewhere. A total that decreased resets the counter, as a restart does. */
export function setTotal<L extends string>(
  counter: Counter<L>,
  total: number,
  labels?: { readonly [K in L]: string },
): void {
  const known = totals.get(counter) ?? new Map<string, number>()
  totals.set(counter, known)
  const key = JSON.stringify(labels ?? {})
  const before = known.get(key) ?? 0
  known.set(key, total)
  const more = total >= before ? total - before : total
  if (labels === undefined) counter.inc(more)
  else counter.inc(labels, more)
}

const totals = new WeakMap<object, Map<string, number>>()

/** The rows of a table in Markdown, for docs/metrics.md. */
export function metricsTable(table: MetricsTable): string {
  const rows = Object.entries(table).map(([name, { type, help, labels = [], appliesTo }]) => {
    const shown = labels.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${shown} | ${help}${appliesTo === undefined ? '' : ` (${appliesTo})`} |`
  })
  return ['| Name | Type | Labels | What it counts |', '|---|---|---|---|', ...rows, ''].join('\n')
}
