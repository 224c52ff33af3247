/**
 * Records spans and exports them by OTLP over HTTP, with the packages of OpenTelemetry. Loaded by tracing.ts when an
 * endpoint is set, and never otherwise.
 */

import {
  type Span as OpenSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AlwaysOnSampler, type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace'
import type { TraceContext } from '../trace-context.ts'
import { VERSION } from './cli.ts'
import type { Log } from './log.ts'
import { createSpanQueue, SPAN_LIMITS } from './span-queue.ts'
import type { Attributes, Span, Tracing } from './spans.ts'

/** Where collectors take spans, below the endpoint. */
const PATH = '/v1/traces'
const TEXT_CHARS_MAX = 500

export function openSpanExport(options: {
  readonly endpoint: string
  readonly perThousand: number
  readonly service: string
  readonly log: Log
}): Tracing {
  const { endpoint, perThousand, service, log } = options
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, '')}${PATH}`,
    timeoutMillis: SPAN_LIMITS.exportMs,
  })
  const queue = createSpanQueue<ReadableSpan>(
    (batch, done) =>
      exporter.export(batch, ({ code, error }) => done(code === 0 ? '' : (error?.message ?? 'no reason given'))),
    (reason, spans) => log.warn({ reason: reason.slice(0, TEXT_CHARS_MAX), spans }, 'exporting spans failed'),
  )
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': VERSION }),
    // What is recorded is decided before a span is made.
    sampler: new AlwaysOnSampler(),
    spanLimits: { attributeValueLengthLimit: TEXT_CHARS_MAX },
    spanProcessors: [{ onStart: () => {}, onEnd: queue.add, forceFlush: async () => {}, shutdown: async () => {} }],
  })
  const tracer = provider.getTracer('vacancy', VERSION)
  return {
    perThousand,
    begin: (name, parent) => start(tracer, name, SpanKind.SERVER, parent),
    record({ name, parent, startMs, endMs, attributes, fault }) {
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, startTime: startMs, attributes }, contextOf(parent))
      setFault(span, fault)
      span.end(endMs)
    },
    counts: queue.counts,
    close: queue.close,
  }
}

function contextOf(parent: TraceContext | undefined) {
  if (parent === undefined) return ROOT_CONTEXT
  const { traceId, spanId } = parent
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true })
}

function start(tracer: Tracer, name: string, kind: SpanKind, parent: TraceContext | undefined): Span {
  const span = tracer.startSpan(name, { kind }, contextOf(parent))
  const { traceId, spanId } = span.spanContext()
  const context = { traceId, spanId, isSampled: true, isRandom: parent?.isRandom ?? true }
  return {
    context,
    call: (called) => start(tracer, called, SpanKind.CLIENT, context),
    set: (attributes: Attributes) => void span.setAttributes(attributes),
    end(fault) {
      setFault(span, fault)
      span.end()
    },
  }
}

function setFault(span: OpenSpan, fault: string): void {
  if (fault !== '') span.setStatus({ code: SpanStatusCode.ERROR, message: fault.slice(0, TEXT_CHARS_MAX) })
}
