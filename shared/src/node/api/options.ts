/** Dependencies and limits of the HTTP server of the control plane. */

import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { IMPORT_LIMITS } from '../../contract/index.ts'
import type { FailureLimiter, TlsMaterial, Trace, Tracing } from '../index.ts'
import type { AuditNote, Visitor } from './route.ts'

export const HTTP_LIMITS = {
  /** Requests per minute of an authenticated principal, and of an address without credentials. */
  requestsKnown: 6_000,
  requestsUnknown: 600,
  /** Time from the first byte of a request to the end of its headers, and to its end. */
  headersMs: 10_000,
  requestMs: 300_000,
  /** Of the rest of a request that was answered before its end: a chunk of an upload, over a slow line. */
  droppedBytesMax: IMPORT_LIMITS.chunkBytes,
  droppedMs: 300_000,
  checkMs: 2_000,
  farewellMs: 1_000,
  /** Per address and minute. */
  upgradesRefusedMax: 300,
} as const

export type HttpOptions = {
  readonly log: Logger
  /** The caller behind the headers of a request. */
  readonly identify: (headers: IncomingHttpHeaders, address: string) => Promise<Visitor>
  readonly audit: (note: AuditNote) => Promise<void>
  /** Undefined: plain HTTP; a reverse proxy may terminate TLS. */
  readonly tls: TlsMaterial | undefined
  /** The max-age of HSTS in days; 0: no header. */
  readonly hstsDays: number
  readonly trustProxy: readonly string[]
  readonly connectionsMax: number
  /** How long an idle connection is kept. */
  readonly keepAliveMs: number
  readonly allowedHosts: () => readonly string[]
  /** Origin of the configured base address; '' without one. */
  readonly baseUrl: () => string
  /** Refused live channels, by address. Requests are counted elsewhere. */
  readonly upgradeFailures: FailureLimiter
  /** Undefined: no spans are recorded. */
  readonly tracing: Tracing | undefined
  readonly onAnswer: (route: string, status: number, seconds: number) => void
  readonly onRefusal: (reason: Refusal) => void
}

export const REFUSALS = ['unauthenticated', 'forbidden', 'cross-site', 'host', 'too-many'] as const
type Refusal = (typeof REFUSALS)[number]

// biome-ignore lint/suspicious/noExplicitAny: the parts of a FastifyInstance's type that differ by logger and types.
export type App = FastifyInstance<any, any, any, any, any>
declare module 'fastify' {
  interface FastifyRequest {
    visitor: Visitor
    /** Undefined without a `traceparent`, unless a trace begins here. */
    trace: Trace | undefined
  }
  interface FastifyContextConfig {
    /** `METHOD /path` of the contract. */
    route?: string
    isOpen?: boolean
  }
}
