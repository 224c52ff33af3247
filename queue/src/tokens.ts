/** Who may use the queue: tokens of its auth file, with roles and topics (docs/design/queue-delivery.md#access). */
import { hash } from 'node:crypto'
import type { Clock } from '@vacancy/shared'
import {
  bearerToken,
  type CallerAddress,
  callerAddresses,
  createFailureLimiter,
  endedText,
  type FailureLimiter,
  type TokenHash,
} from '@vacancy/shared/node'

export const QUEUE_ROLES = ['producer', 'consumer', 'monitoring', 'admin'] as const
export type QueueRole = (typeof QUEUE_ROLES)[number]
/** Roles whose tokens may be limited to topics. */
export const TOPIC_ROLES = ['producer', 'consumer'] as const

export type QueueToken = TokenHash<QueueRole>

export type QueueAccess = {
  readonly clock: Clock
  readonly failures: FailureLimiter
  readonly addressOf: CallerAddress
  /** By hexadecimal SHA-256. Looking a hash up reveals nothing about the token. */
  tokens: ReadonlyMap<string, QueueToken>
  /** Further tokens, such as those of a control plane. */
  readonly others:
    | ((token: string, address: string) => QueueToken | undefined | Promise<QueueToken | undefined>)
    | undefined
  /** Whether one of these is still valid, as far as is known. */
  readonly isOtherGood: ((token: QueueToken) => boolean) | undefined
  /** Whether the query parameter `token` counts outside `/ws`. */
  readonly allowQueryToken: boolean
}

export function createQueueAccess(
  options: Pick<QueueAccess, 'clock' | 'others' | 'isOtherGood' | 'allowQueryToken'> & {
    /** Reverse proxies that name the address of their callers. */
    readonly trustProxy?: readonly string[]
  },
  tokens: readonly QueueToken[],
): QueueAccess {
  const { trustProxy = [], ...rest } = options
  const addressOf = callerAddresses(trustProxy)
  return { ...rest, addressOf, failures: createFailureLimiter(options.clock), tokens: byHash(tokens) }
}

/** After a reload of the auth file. */
export function setQueueTokens(access: QueueAccess, tokens: readonly QueueToken[]): void {
  access.tokens = byHash(tokens)
}

function byHash(tokens: readonly QueueToken[]): Map<string, QueueToken> {
  return new Map(tokens.map((token) => [Buffer.from(token.hash).toString('hex'), token]))
}

/** The token of a request: of its header, or else of the query where that is allowed. */
export function tokenOf(authorization: string | undefined, query: URLSearchParams | undefined): string | undefined {
  if (authorization !== undefined) return bearerToken(authorization)
  return query?.get('token') ?? undefined
}

/** Known and not expired. A promise only where other tokens must be looked up. */
export function findQueueToken(
  access: QueueAccess,
  token: string,
  address: string,
): QueueToken | undefined | Promise<QueueToken | undefined> {
  const found = access.tokens.get(hash('sha256', token, 'hex'))
  if (found !== undefined) return access.clock.wallMs() < found.expiresMs ? found : undefined
  return access.others?.(token, address)
}

/** That and when a token of the auth file ended, for the one who sent it; '' when it is not known. */
export function endOf({ tokens, clock }: QueueAccess, token: string | undefined): string {
  const found = token === undefined ? undefined : tokens.get(hash('sha256', token, 'hex'))
  return found !== undefined && clock.wallMs() >= found.expiresMs ? endedText(found.expiresMs) : ''
}

export function mayUseTopic({ topics }: QueueToken, topic: string): boolean {
  return topics === undefined || topics.some((pattern) => matchesPattern(pattern, topic))
}

/** A pattern is a topic name, or the beginning of one followed by `*`. */
function matchesPattern(pattern: string, topic: string): boolean {
  return pattern.endsWith('*') ? topic.startsWith(pattern.slice(0, -1)) : pattern === topic
}

/** Whether the token of an open connection is still in the auth file with the same rights. */
export function isStillGood({ tokens, clock, isOtherGood }: QueueAccess, token: QueueToken): boolean {
  if (clock.wallMs() >= token.expiresMs) return false
  const current = tokens.get(Buffer.from(token.hash).toString('hex'))
  if (current === undefined) return isOtherGood?.(token) ?? false
  return current.role === token.role && current.topics?.join() === token.topics?.join()
}
