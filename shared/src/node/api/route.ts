/** Types of every route: the principal, the input of a handler, and its errors. */
import type { Readable } from 'node:stream'
import type {
  ControlRoute,
  ControlRouteName,
  HandlerInput,
  Me,
  PersonRole,
  RouteAnswer,
  TokenRole,
} from '../../contract/index.ts'

/** The authenticated requester. `id` and `name` are '' for an anonymous one. */
export type Principal = {
  readonly kind: 'person' | 'token' | 'anonymous'
  readonly id: string
  readonly name: string
  /** `producer` and `consumer` are roles of the queue, which call nothing here. */
  readonly role: PersonRole | TokenRole | undefined
}

/** Of a signed-in person, or of an API token that signed in to the console. */
export type Session = {
  /** SHA-256 of the cookie's value. */
  readonly key: string
  /** The person, or the token that began the session. */
  readonly owner: { readonly kind: 'person' | 'token'; readonly id: string }
  /** The value that every change in this session must send in `x-csrf`. */
  readonly csrf: string
  readonly signedInBy: Me['signedInBy']
  readonly lastSeenAt: number
  /** The end regardless of use, of its token or of a single sign-on; null otherwise. */
  readonly expiresAt: number | null
}

export type Visitor = {
  readonly principal: Principal
  /** Of the session or token; '' for an anonymous request. */
  readonly key: string
  readonly session: Session | undefined
  /** Which credentials are invalid; '' when they are valid or absent. */
  readonly fault: '' | 'token' | 'session'
  /** More about it, for who sent them: `the token ended at …`. */
  readonly detail?: string
}

/** Who asked, and from where. */
export type Caller<P = Principal> = {
  readonly principal: P
  /** Behind a trusted proxy, the address that the proxy reports. */
  readonly address: string
  /** The program, as it names itself; '' when it does not. */
  readonly userAgent: string
  readonly requestId: string
}

/** The control plane itself. */
export const SYSTEM_CALLER: Caller<'system'> = { principal: 'system', address: '', userAgent: '', requestId: '' }

export function callerOf<P>({ principal, address, userAgent, requestId }: Caller<P>): Caller<P> {
  return { principal, address, userAgent, requestId }
}

/** A change for the audit log. */
export type AuditNote = Caller<Principal | 'system'> & {
  /** `operation.start`, `token.create`, … */
  readonly action: string
  readonly target: string
  readonly result: string
  readonly reason?: string
  readonly detail?: string
  readonly operation?: string
}

/** The input of a handler: validated parameters, query and body, with the principal and its address. */
export type RouteRequest<N extends ControlRouteName> = HandlerInput<N> &
  Caller & {
    /** Of a signed-in person. */
    readonly session: Session | undefined
    /** Whether the caller used https, here or at the reverse proxy. */
    readonly isSecure: boolean
    /** `http://host:port` as the caller sent it, for links in responses. */
    readonly origin: string
    /** Aborted when the caller disconnects. */
    readonly signal: AbortSignal
    readonly headers: { readonly [name: string]: string | string[] | undefined }
    /** The body of a route that accepts raw bytes. */
    readonly stream: Readable | undefined
    /** Headers of the response, with lower-case names. */
    readonly reply: { header(name: string, value: string): void; status(code: number): void }
  }

export type Handler<N extends ControlRouteName> = (
  request: RouteRequest<N>,
) => Promise<RouteAnswer<N> | Readable> | RouteAnswer<N> | Readable

/** The handlers of a table of routes. */
export type Handlers<R> = { readonly [N in keyof R & ControlRouteName]: Handler<N> }

/** A module of the control plane: a table of routes with their handlers, and its background work. */
export type ControlModule = {
  readonly name: string
  readonly routes: { readonly [name: string]: ControlRoute }
  /** Created by `moduleOf`, which checks them against the routes. */
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

/** An error for the caller, sent as `application/problem+json`. `hint` is the action to take; `more` adds fields for programs. */
export class ProblemError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  readonly field: string | undefined
  readonly more: { readonly [name: string]: unknown }
  /** The handler has already written the refusal to the audit log. */
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
