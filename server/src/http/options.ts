/** What the HTTP side of the control plane works with, and its limits. */
import type { FailureLimiter, TlsMaterial } from '@vacancy/shared/node'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Access, Visitor } from '../access/access.ts'
import type { WriteAudit } from '../access/audit.ts'

export const HTTP_LIMITS = {
  /** Requests a minute of somebody who showed who they are, and of an address that did not. */
  requestsKnown: 6_000,
  requestsUnknown: 600,
  headerBytesMax: 16_384,
  /** From the first byte of a request to the end of its headers, and to its own end. */
  headersMs: 10_000,
  requestMs: 300_000,
  checkMs: 2_000,
  farewellMs: 1_000,
  connectionsMax: 5_000,
  /** Of an address, in a minute. */
  upgradesRefusedMax: 300,
} as const

export type HttpOptions = {
  readonly log: Logger
  readonly access: Access
  readonly audit: WriteAudit
  /** Undefined: plain HTTP, TLS ends at a reverse proxy or nowhere. */
  readonly tls: TlsMaterial | undefined
  /** How long browsers are told to come by https alone; 0: they are not told. */
  readonly hstsDays: number
  readonly trustProxy: readonly string[]
  readonly allowedHosts: () => readonly string[]
  /** Origin of the address under which browsers come, '' when nobody said. */
  readonly baseUrl: () => string
  /** Of live channels that were refused, by address: requests are counted elsewhere. */
  readonly upgradeFailures: FailureLimiter
  readonly onAnswer: (route: string, status: number, seconds: number) => void
  readonly onRefusal: (reason: Refusal) => void
}

type Refusal = 'unauthenticated' | 'forbidden' | 'cross-site' | 'host' | 'too-many'

// biome-ignore lint/suspicious/noExplicitAny: the parts of a FastifyInstance's type that differ by logger and types.
export type App = FastifyInstance<any, any, any, any, any>
declare module 'fastify' {
  interface FastifyRequest {
    visitor: Visitor
  }
  interface FastifyContextConfig {
    /** `METHOD /path` of the contract. */
    route?: string
    isOpen?: boolean
  }
}
