/**
 * How a path of the control plane is described (docs/design/control-plane.md#structure): one table row per path,
 * named `METHOD /path`. The server validates and documents itself from it; the console takes its types from it.
 */

import { z } from 'zod'

/**
 * Required access. People: viewer < operator < admin. API tokens: a monitoring token reads what a viewer reads, a
 * client token may also run queries, an admin token may do what an admin does. Producer and consumer tokens are for
 * the job queue alone. `session` requires a signed-in session, of a person or a token; a bare API token is not enough.
 */
const CONTROL_ACCESS = ['open', 'session', 'viewer', 'query', 'operator', 'admin'] as const
export type ControlAccess = (typeof CONTROL_ACCESS)[number]

export const PERSON_ROLES = ['viewer', 'operator', 'admin'] as const
export type PersonRole = (typeof PERSON_ROLES)[number]
export const TOKEN_ROLES = ['monitoring', 'client', 'producer', 'consumer', 'admin'] as const
export type TokenRole = (typeof TOKEN_ROLES)[number]

export type ControlRoute = {
  readonly access: ControlAccess
  readonly summary: string
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  /** JSON; bytes with `takes: 'bytes'`. */
  readonly body?: z.ZodType
  /** `bytes`: the body is a stream that the handler reads itself. */
  readonly takes?: 'bytes'
  /** `bytes`: the response is a stream or a file; `text`: plain text. JSON otherwise. */
  readonly gives?: 'bytes' | 'text'
  /** 200 otherwise. */
  readonly status?: 201 | 202 | 204 | 303
  readonly response: z.ZodType
  /** Largest JSON body; 64 KiB otherwise. */
  readonly bodyBytesMax?: number
}

export const CONTROL_BODY_BYTES_MAX = 65_536
/** The body of every response with status 400 or above, `application/problem+json`. `hint` is the action to take. */
export const problemBody = z.object({
  status: z.int(),
  code: z.string(),
  title: z.string(),
  detail: z.string(),
  hint: z.string(),
  field: z.string().optional(),
  requestId: z.string(),
})
export type Problem = z.infer<typeof problemBody>

/** A source that did not respond. Its values are omitted, never filled in. */
export const missingSource = z.object({
  source: z.string(),
  code: z.string(),
  message: z.string(),
  since: z.iso.datetime(),
})
export type MissingSource = z.infer<typeof missingSource>

/** RFC 3339, UTC. */
export const time = z.iso.datetime()
export const count = z.int().nonnegative()
/** `?cursor=&limit=` of lists: the cursor is `next` of the previous page. */
export const pageQuery = z.object({
  cursor: z.string().max(512).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
})
export const noBody = z.undefined()

/** Whether a success has a body. */
export function hasBody({ status }: ControlRoute): boolean {
  return status !== 204 && status !== 303
}
