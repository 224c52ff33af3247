/**
 * Access rules of the fabric's services: an auth file with roles. Without one, all callers may do everything that
 * does not require an admin (docs/design/http.md#registry-access).
 */

import type { IncomingMessage } from 'node:http'
import type { Clock } from '@vacancy/shared'
import {
  createFailureLimiter,
  HttpError,
  isLoopback,
  requireToken,
  type TokenHash,
  type TokenRules,
} from '@vacancy/shared/node'
import type { Caller } from './http.ts'

/** `component` registers, pushes and reads; `client` and `monitoring` read. */
export const FABRIC_ROLES = ['admin', 'component', 'client', 'monitoring'] as const
export type FabricRole = (typeof FABRIC_ROLES)[number]

export const FABRIC_TOKENS: TokenRules<FabricRole> = { roles: FABRIC_ROLES, scoped: ['component'] }

/** `open`: all callers, regardless of the auth file. */
export type Access = 'open' | 'read' | 'component' | 'admin'

const MAY: { readonly [access in Exclude<Access, 'open'>]: readonly FabricRole[] } = {
  read: FABRIC_ROLES,
  component: ['admin', 'component'],
  admin: ['admin'],
}

export type AccessRules = {
  /** The tokens in force; undefined without an auth file. */
  readonly tokens: () => readonly TokenHash<FabricRole>[] | undefined
  /** With an auth file: reads need no token. */
  readonly publicRead: boolean
  readonly clock: Clock
}

/** Checks each request; throws an HttpError 401, 403 or 429. */
export type Door = (access: Access) => (request: IncomingMessage) => Caller

export function createDoor(rules: AccessRules): Door {
  const failures = createFailureLimiter(rules.clock)
  return (access) => (request) => {
    if (access === 'open') return {}
    const tokens = rules.tokens()
    if (tokens) {
      if (access === 'read' && rules.publicRead) return {}
      const token = requireToken(tokens, failures, request, rules.clock.wallMs())
      if (!MAY[access].includes(token.role)) throw new HttpError(403, 'insufficient permissions')
      return {
        ...(token.shard !== undefined && { shard: token.shard }),
        ...(token.zone !== undefined && { zone: token.zone }),
      }
    }
    // Without tokens, any page in a browser on this machine could post here.
    if (access !== 'read' && request.headers.origin !== undefined)
      throw new HttpError(403, 'web pages may not change anything without a token')
    if (access === 'admin' && !isLoopback(request.socket.remoteAddress ?? ''))
      throw new HttpError(403, 'without an auth file this path is for callers on the same machine')
    return {}
  }
}

/** What a scoped token may not access; '' when it may. */
export function scopeFault(
  caller: Caller,
  touched: { readonly shard: string | undefined; readonly zone: string },
): string {
  if (caller.zone !== undefined && caller.zone !== touched.zone) return `the token is for zone ${caller.zone}`
  if (caller.shard !== undefined && caller.shard !== touched.shard) return `the token is for shard ${caller.shard}`
  return ''
}
