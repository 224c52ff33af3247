/** What every route has: who asks, what a handler is given, and how it refuses. */
import type { Readable } from 'node:stream'
import type {
  ControlRoute,
  ControlRouteName,
  HandlerInput,
  Me,
  PersonRole,
  RouteAnswer,
  TokenRole,
} from '@vacancy/shared/contract'

/** Who asks. `id` and `name` are '' for nobody. */
export type Principal = {
  readonly kind: 'person' | 'token' | 'nobody'
  readonly id: string
  readonly name: string
  readonly role: PersonRole | TokenRole | undefined
}

/** Of a signed-in person, or of somebody who signed in with an API token. */
export type Session = {
  /** SHA-256 of what the cookie holds. */
  readonly key: string
  /** Whose it is: a person, or the token that it was begun with. */
  readonly owner: { readonly kind: 'person' | 'token'; readonly id: string }
  /** What every change of this session must show in `x-csrf`. */
  readonly csrf: string
  readonly signedInBy: Me['signedInBy']
  readonly lastSeenAt: number
  /** When it ends whatever is done, with its token; null otherwise. */
  readonly expiresAt: number | null
}

/** What a handler is given: checked parameters, query and body, and who asks from where. */
export type RouteRequest<N extends ControlRouteName> = HandlerInput<N> & {
  readonly principal: Principal
  /** Of a signed-in person. */
  readonly session: Session | undefined
  /** Whether the caller came by https, here or at the reverse proxy. */
  readonly isSecure: boolean
  /** `http://host:port` as the caller wrote it: for links that are given back. */
  readonly origin: string
  /** Of the caller, behind a trusted proxy the one it tells. */
  readonly address: string
  readonly requestId: string
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal
  readonly headers: { readonly [name: string]: string | string[] | undefined }
  /** The body of a route that takes bytes. */
  readonly stream: Readable | undefined
  /** Headers of the answer, lower-case names. */
  readonly reply: { header(name: string, value: string): void; status(code: number): void }
}

export type Handler<N extends ControlRouteName> = (
  request: RouteRequest<N>,
) => Promise<RouteAnswer<N> | Readable> | RouteAnswer<N> | Readable

/** The handlers of a table of routes. */
export type Handlers<R> = { readonly [N in keyof R & ControlRouteName]: Handler<N> }

/**
 * A part of the control plane: whole tables of routes with their handlers, and what it does in the background. Its
 * routes exist when it does.
 */
export type ControlModule = {
  readonly name: string
  readonly routes: { readonly [name: string]: ControlRoute }
  /** Made by `moduleOf`, which checks them against the routes. */
  readonly handlers: { readonly [name: string]: Handler<never> }
  start?(): Promise<void>
  stop?(): Promise<void>
}

export function moduleOf<R extends { readonly [name: string]: ControlRoute }>(
  name: string,
  routes: R,
  handlers: Handlers<R>,
  life: Pick<ControlModule, 'start' | 'stop'> = {},
): ControlModule {
  return { name, routes, handlers: handlers as unknown as ControlModule['handlers'], ...life }
}

export type ProblemOptions = {
  readonly hint?: string
  readonly field?: string
  readonly more?: { readonly [name: string]: unknown }
  readonly cause?: unknown
}

/** Refuses a request: becomes `application/problem+json`. `hint` says what to do; `more` adds fields for programs. */
export class ProblemError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  readonly field: string | undefined
  readonly more: { readonly [name: string]: unknown }
  /** The refusal is in the audit log, with what its handler knows of it. */
  isAudited = false

  constructor(status: number, code: string, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause })
    this.name = 'ProblemError'
    this.status = status
    this.code = code
    this.hint = options.hint ?? ''
    this.field = options.field
    this.more = options.more ?? {}
  }
}
