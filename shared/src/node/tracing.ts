/**
 * Traces (docs/operators.md#tracing): which one a request belongs to, and the spans that this process records of it. The
 * trace of a caller is passed on in any case. Spans are recorded only with an endpoint; without one the packages that
 * export them are never loaded.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import { VacancyError } from '../errors.ts'
import { parseTraceparent, type TraceContext } from '../trace-context.ts'
import { type ConfigSchema, type ConfigValues, type Given, settingText, whole } from './config.ts'
import type { Log } from './log.ts'
import { counter, type Metrics, setTotal } from './metrics.ts'
import type { SpanCounts } from './span-queue.ts'
import type { Attributes, Span, Tracing } from './spans.ts'

/** Settings of every program that records spans. */
export const TRACE_SCHEMA = {
  trace_endpoint: {
    ...settingText(''),
    summary:
      'Collector of spans by OTLP over HTTP, such as http://collector:4318, also as OTEL_EXPORTER_OTLP_ENDPOINT; empty: none are recorded.',
  },
  trace_per_thousand: {
    ...whole(0, 0, 1_000),
    summary:
      'Of 1000 requests without a traceparent, how many begin a trace. Those with one are recorded when it is sampled.',
  },
} as const satisfies ConfigSchema

type TraceConfig = ConfigValues<typeof TRACE_SCHEMA>

/** What is wrong with the settings. */
export function traceFaults({ traceEndpoint, tracePerThousand }: TraceConfig): readonly string[] {
  if (traceEndpoint === '') return tracePerThousand === 0 ? [] : ['trace_per_thousand: needs trace_endpoint']
  const url = URL.parse(traceEndpoint)
  const isBase = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.search + url.hash === ''
  return isBase ? [] : ['trace_endpoint: must be an address like http://host:4318']
}

/**
 * The endpoint of a flag `--trace-endpoint`, or of its usual environment variable; '' for none.
 *
 * @throws VacancyError usage_error
 */
export function traceEndpointOf(
  flag: string | undefined,
  usual = process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '',
): string {
  const traceEndpoint = flag ?? usual
  const [fault] = traceFaults({ traceEndpoint, tracePerThousand: 0 })
  if (fault !== undefined) throw new VacancyError('usage_error', { reason: fault.replace('trace_', '--trace-') })
  return traceEndpoint
}

/** Adds the endpoint from its usual environment variable, unless the setting itself is given. */
export function withTraceEndpoint(
  given: ReadonlyMap<string, Given>,
  endpoint = process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '',
): ReadonlyMap<string, Given> {
  if (endpoint === '' || given.has('trace_endpoint')) return given
  return new Map([...given, ['trace_endpoint', { text: endpoint, at: 'OTEL_EXPORTER_OTLP_ENDPOINT', from: 'env' }]])
}

export const SPANS_METRIC = counter(
  'Spans by what became of them: `exported`, or `dropped` because the collector was slow, failed or refused them.',
  ['result'],
)

/** For that metric. */
export function setSpans(
  metric: Metrics<{ readonly row: typeof SPANS_METRIC }>['of']['row'],
  { exported, dropped }: SpanCounts,
): void {
  setTotal(metric, exported, { result: 'exported' })
  setTotal(metric, dropped, { result: 'dropped' })
}

const NO_SPANS: SpanCounts = { exported: 0, dropped: 0 }

export function spanCounts(tracing: Tracing | undefined): SpanCounts {
  return tracing?.counts() ?? NO_SPANS
}

/**
 * Starts to record spans.
 *
 * @param program its usual service name; OTEL_SERVICE_NAME replaces it
 * @returns undefined without an endpoint
 */
export async function openTracing(
  { traceEndpoint, tracePerThousand }: TraceConfig,
  program: string,
  log: Log,
): Promise<Tracing | undefined> {
  if (traceEndpoint === '') return undefined
  const service = process.env['OTEL_SERVICE_NAME'] || program
  let exporting: typeof import('./span-export.ts')
  try {
    exporting = await import('./span-export.ts')
  } catch (cause) {
    const reason = `trace_endpoint: the packages of OpenTelemetry cannot be loaded: ${(cause as Error).message}`
    throw new VacancyError('invalid_config', { reason }, { cause })
  }
  log.info({ endpoint: traceEndpoint, service }, 'recording spans')
  return exporting.openSpanExport({ endpoint: traceEndpoint, perThousand: tracePerThousand, service, log })
}

/** The trace of a request: what it passes on, and the span where one is recorded. */
export type Trace = { readonly context: TraceContext; readonly span: Span | undefined }

/**
 * The trace of a request that arrives; a malformed header counts as absent.
 *
 * @param name of its span: one of a few
 */
export function beginTrace(
  tracing: Tracing | undefined,
  traceparent: string | undefined,
  name: string,
): Trace | undefined {
  const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent)
  if (tracing !== undefined && (parent?.isSampled ?? Math.random() * 1_000 < tracing.perThousand)) {
    const span = tracing.begin(name, parent)
    return { context: span.context, span }
  }
  return parent && { context: parent, span: undefined }
}

/** A call that belongs to the trace; its span, too, if those of the trace are recorded. */
export function beginCall(trace: Trace | undefined, name: string, attributes: Attributes): Trace | undefined {
  const span = trace?.span?.call(name)
  if (span === undefined) return trace
  span.set(attributes)
  return { context: span.context, span }
}

// The trace of the request that is being handled, for calls that it makes far from where it was received.

const current = new AsyncLocalStorage<Trace>()

export function inTrace<T>(trace: Trace | undefined, run: () => T): T {
  return trace === undefined ? run() : current.run(trace, run)
}

export function currentTrace(): Trace | undefined {
  return current.getStore()
}
