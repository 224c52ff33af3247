/** Spans as programs see them; tracing.ts begins them, and span-export.ts records them with the packages of OpenTelemetry. */

import type { TraceContext } from '../trace-context.ts'
import type { SpanCounts } from './span-queue.ts'

export type Attributes = { readonly [name: string]: string | number | boolean | undefined }

/** A span that is being recorded. */
export type Span = {
  readonly context: TraceContext
  /** The span of a call that this one makes. */
  readonly call: (name: string) => Span
  readonly set: (attributes: Attributes) => void
  /** @param fault why it failed; '' if it did not */
  readonly end: (fault: string) => void
}

type OverSpan = {
  readonly name: string
  readonly parent: TraceContext
  /** Wall clock, ms. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  /** Why it failed; '' if it did not. */
  readonly fault: string
}

export type Tracing = {
  /** Of requests without a parent, how many begin a trace. */
  readonly perThousand: number
  /** The span of a request that has arrived. */
  readonly begin: (name: string, parent: TraceContext | undefined) => Span
  /** Records the span of a request that is over. */
  readonly record: (over: OverSpan) => void
  readonly counts: () => SpanCounts
  /** Exports what is left, within a bound. */
  readonly close: () => Promise<void>
}
