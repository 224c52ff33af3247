/** Admission of requests: the host, the origin, the permissions of the principal, and rate limits. */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import type { ControlAccess, ControlRoute, PersonRole, TokenRole } from '../../contract/index.ts'
import { bareAddress, callerAddresses } from '../caller-address.ts'
import { problem } from './errors.ts'
import type { HttpOptions } from './options.ts'
import { cut } from './problems.ts'
import type { Caller, Principal, ProblemError, Session, Visitor } from './route.ts'

/** Checks the access of a request. A refused change of an authenticated principal is written to the audit log. */
export async function admit(
  request: FastifyRequest,
  name: string,
  access: ControlRoute['access'],
  options: HttpOptions,
): Promise<void> {
  const { principal, session, fault, detail: why } = request.visitor
  const isChange = request.method !== 'GET' && request.method !== 'HEAD'
  if (isChange && isForeignPage(request.headers, options)) throw foreignPage(options)
  if (access === 'open') return
  if (principal.kind === 'anonymous') {
    options.onRefusal('unauthenticated')
    if (fault === 'token') {
      throw problem('invalid-token', {
        ...(why && { detail: `${why.charAt(0).toUpperCase()}${why.slice(1)}.` }),
        more: { error: why ?? 'invalid token' },
      })
    }
    throw problem(fault === 'session' ? 'session-ended' : 'not-signed-in', {
      more: { error: 'missing authorization header' },
    })
  }
  const refused = (detail: string) =>
    options.audit({
      ...callerIn(request),
      action: name,
      target: cut(request.url),
      result: 'refused',
      detail,
    })
  if (isChange && session !== undefined && !isSame(request.headers['x-csrf'], session.csrf)) {
    options.onRefusal('cross-site')
    await refused('csrf: x-csrf is missing or wrong')
    throw problem('csrf')
  }
  if (isAllowed(principal, access, session)) return
  options.onRefusal('forbidden')
  if (isChange) await refused(`needs ${access}, is ${principal.role}`)
  throw problem('forbidden', {
    detail: `This needs ${ACCESS_TEXT[access]}; your role is ${principal.role}.`,
    hint: access === 'session' ? 'Sign in as a person.' : 'Ask an admin for the role.',
    more: { error: 'insufficient permissions' },
  })
}

/** Longer ones are cut. */
const USER_AGENT_CHARS = 256

export function callerIn({ visitor, ip, headers, id }: FastifyRequest): Caller {
  const userAgent = (headers['user-agent'] ?? '').slice(0, USER_AGENT_CHARS)
  return { principal: visitor.principal, address: ip, userAgent, requestId: id }
}

const ACCESS_TEXT = {
  session: 'a signed-in person',
  viewer: 'the viewer role',
  query: 'the viewer role or a client token',
  operator: 'the operator role',
  admin: 'the admin role',
} as const

/** What each role may call, besides open routes. */
const PERSON_MAY: { readonly [role in PersonRole]: readonly ControlAccess[] } = {
  viewer: ['viewer', 'query'],
  operator: ['viewer', 'query', 'operator'],
  admin: ['viewer', 'query', 'operator', 'admin'],
}

const TOKEN_MAY: { readonly [role in TokenRole]: readonly ControlAccess[] } = {
  producer: [],
  consumer: [],
  monitoring: ['viewer'],
  client: ['viewer', 'query'],
  admin: ['viewer', 'query', 'operator', 'admin'],
}

/** @param session of the request, including one that began with a token */
function isAllowed({ kind, role }: Principal, access: ControlAccess, session?: Session): boolean {
  if (access === 'open') return true
  if (access === 'session') return session !== undefined
  if (kind === 'person') return PERSON_MAY[role as PersonRole].includes(access)
  return kind === 'token' && TOKEN_MAY[role as TokenRole].includes(access)
}

/** Paths for programs that probe by an address of their own; none shows anything without a token. */
const PROBED = ['/health', '/ready', '/metrics', '/api/v1/queue/health']

export function isProbe(url: string | undefined): boolean {
  return PROBED.includes((url ?? '').split('?', 1)[0] ?? '')
}

/** Whether the Host header names this control plane. After DNS rebinding, a page of another site sends its own name. */
export function isOwnHost(request: IncomingMessage, options: Pick<HttpOptions, 'allowedHosts' | 'baseUrl'>): boolean {
  const host = URL.parse(`http://${request.headers.host ?? ''}`)?.hostname
  if (host === undefined || host === '') return false
  const address = request.socket.localAddress ?? ''
  const own = bareAddress(address)
  if (bareAddress(host) === own) return true
  if (isLoopback(own) && (host === 'localhost' || (isIP(bareAddress(host)) !== 0 && isLoopback(bareAddress(host)))))
    return true
  const base = options.baseUrl()
  return (base !== '' && URL.parse(base)?.hostname === host) || options.allowedHosts().includes(host)
}

/**
 * The principal that opens a WebSocket. Upgrades bypass the hooks of requests, so the same checks run here.
 *
 * @throws ProblemError
 */
export async function admitUpgrade(request: IncomingMessage, options: HttpOptions): Promise<Visitor> {
  if (!isOwnHost(request, options)) throw foreignHost(request, options)
  if (isForeignPage(request.headers, options)) throw foreignPage(options)
  const forwarded = request.headers['x-forwarded-for'] as string | undefined
  const address = callerAddresses(options.trustProxy)(request.socket.remoteAddress, forwarded)
  const visitor = await options.identify(request.headers, address)
  // Limited only now: a valid session must not wait because of others at its address.
  if (isAllowed(visitor.principal, 'viewer')) return visitor
  const wait = options.upgradeFailures.waitSeconds(address)
  if (wait > 0) {
    options.onRefusal('too-many')
    throw tooManyTries(wait, 'refused live channels')
  }
  options.upgradeFailures.failed(address)
  options.onRefusal('unauthenticated')
  throw problem('not-signed-in')
}

export function tooManyTries(waitSeconds: number, what: string): ProblemError {
  return problem('too-many-tries', {
    detail: `Too many ${what}.`,
    hint: `Try again in ${waitSeconds} s.`,
    more: { retryAfterSeconds: waitSeconds },
  })
}

export function foreignHost(request: IncomingMessage, options: HttpOptions): ProblemError {
  options.onRefusal('host')
  const host = cut(request.headers.host)
  const name = URL.parse(`http://${host}`)?.hostname
  return problem('foreign-host', {
    detail: `The host ${host} is not served here.`,
    ...(name && { hint: `Use the own address, or add ${name} to allowed_hosts in the configuration.` }),
  })
}

function foreignPage(options: HttpOptions): ProblemError {
  options.onRefusal('cross-site')
  return problem('cross-site')
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^127\./.test(address)
}

/** Whether a page of another site sent the request, by headers that only browsers set. */
function isForeignPage(headers: IncomingHttpHeaders, { baseUrl }: Pick<HttpOptions, 'baseUrl'>): boolean {
  const { origin, host } = headers
  const fetchSite = headers['sec-fetch-site']
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') return true
  if (origin === undefined) return false
  const page = URL.parse(origin)
  if (page === null) return true
  const base = baseUrl()
  return (
    page.host !== URL.parse(`${page.protocol}//${host ?? ''}`)?.host &&
    (base === '' || page.origin !== URL.parse(base)?.origin)
  )
}

function isSame(given: string | string[] | undefined, wanted: string): boolean {
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
