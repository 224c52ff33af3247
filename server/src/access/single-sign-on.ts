/**
 * Single sign-on by OpenID Connect: the authorization code flow with PKCE, state and nonce, which openid-client checks.
 * All three come from one secret in a cookie of the browser. So nothing is kept here, and an answer of the provider
 * counts only in the browser that asked for it.
 */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { fastifyCookie as cookies } from '@fastify/cookie'
import { problem } from '@vacancy/shared/api/errors'
import { PERSON_ROLES, type PersonRole } from '@vacancy/shared/contract'
import type * as Oidc from 'openid-client'

/** Keys of the configuration. */
type Settings = {
  readonly oidcIssuer: string
  readonly oidcClientId: string
  readonly oidcClientSecret: string
  readonly oidcScopes: string
  readonly oidcNameClaim: string
  readonly oidcRoleClaim: string
  readonly oidcRoles: readonly string[]
  readonly oidcLabel: string
}

/** Who signed in, as the provider says. */
export type Identity = {
  /** Issuer and subject: names change hands, this does not. */
  readonly subject: string
  readonly name: string
  readonly role: PersonRole
}

export type SingleSignOn = {
  /** On the button of the sign-in page. */
  readonly label: string
  /** The address of the provider to send the browser to. @throws ProblemError sso-failed */
  readonly begin: (secret: string, callback: string) => Promise<URL>
  /** @throws ProblemError sso-failed, sso-no-role, sso-name */
  readonly finish: (secret: string, answer: URL) => Promise<Identity>
}

export const CALLBACK_PATH = '/api/v1/session/oidc/callback'

const PROVIDER_SECONDS = 10
/** From the start to the answer of the provider; people type passwords and second factors meanwhile. */
const SIGN_IN_SECONDS = 900
const NAME = /^[A-Za-z0-9._@-]{1,64}$/

/** `value=role`. @returns undefined for other texts */
export function roleRule(text: string): readonly [string, PersonRole] | undefined {
  const at = text.lastIndexOf('=')
  const role = PERSON_ROLES.find((each) => each === text.slice(at + 1))
  return at > 0 && role !== undefined ? [text.slice(0, at), role] : undefined
}

/** @returns undefined when no provider is configured */
export function createSingleSignOn(config: Settings): SingleSignOn | undefined {
  if (config.oidcIssuer === '') return undefined
  let found: Promise<Provider> | undefined
  // A provider that was away is asked again by the next sign-in.
  const provider = async () => {
    found ??= discover(config)
    try {
      return await found
    } catch (error) {
      found = undefined
      throw error
    }
  }
  return {
    label: config.oidcLabel,
    begin: (secret, callback) =>
      asked(async () => {
        const { oidc, found } = await provider()
        return oidc.buildAuthorizationUrl(found, {
          redirect_uri: callback,
          scope: config.oidcScopes,
          code_challenge: await oidc.calculatePKCECodeChallenge(derived(secret, 'verifier')),
          code_challenge_method: 'S256',
          state: derived(secret, 'state'),
          nonce: derived(secret, 'nonce'),
        })
      }),
    finish: async (secret, answer) => {
      if (answer.searchParams.get('state') !== derived(secret, 'state')) throw problem('sso-expired')
      return identityOf(config, await asked(async () => claimsOf(await provider(), config, secret, answer)))
    },
  }
}

/** The library is loaded at the first sign-in: most consoles have none. */
type Provider = { readonly oidc: typeof Oidc; readonly found: Oidc.Configuration }

async function discover(config: Settings): Promise<Provider> {
  const oidc = await import('openid-client')
  const { oidcIssuer: issuer, oidcClientId: id, oidcClientSecret: secret } = config
  const execute = issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []
  const method = secret === '' ? oidc.None() : undefined
  const timeout = PROVIDER_SECONDS
  return { oidc, found: await oidc.discovery(new URL(issuer), id, secret || undefined, method, { execute, timeout }) }
}

async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    // What the provider refuses is told by its own words, such as `access_denied`.
    const { error: code, cause } = error as { readonly error?: unknown; readonly cause?: unknown }
    const why = typeof code === 'string' ? code : ((cause as Error | undefined)?.message ?? (error as Error).message)
    throw problem('sso-failed', { detail: `Single sign-on failed: ${why.slice(0, 200)}.`, cause: error })
  }
}

type Claims = { readonly [name: string]: unknown }

async function claimsOf(
  { oidc, found }: Provider,
  config: Settings,
  secret: string,
  answer: URL,
): Promise<Claims & { readonly iss: string; readonly sub: string }> {
  const tokens = await oidc.authorizationCodeGrant(found, answer, {
    pkceCodeVerifier: derived(secret, 'verifier'),
    expectedState: derived(secret, 'state'),
    expectedNonce: derived(secret, 'nonce'),
    idTokenExpected: true,
  })
  const claims = tokens.claims()
  if (claims === undefined) throw new Error('the provider sent no ID token')
  const isWhole = [config.oidcNameClaim, config.oidcRoleClaim].every((name) => claimAt(claims, name) !== undefined)
  if (isWhole || found.serverMetadata().userinfo_endpoint === undefined) return claims
  return { ...(await oidc.fetchUserInfo(found, tokens.access_token, claims.sub)), ...claims }
}

/** Who these claims are, and the highest role that they give. */
function identityOf(config: Settings, claims: Claims & { readonly iss: string; readonly sub: string }): Identity {
  const name = claimAt(claims, config.oidcNameClaim)
  if (typeof name !== 'string' || !NAME.test(name))
    throw problem('sso-name', { detail: `The claim ${config.oidcNameClaim} is no name that may be used here.` })
  const given = [claimAt(claims, config.oidcRoleClaim)].flat()
  const roles = config.oidcRoles.flatMap((text) => {
    const [value, role] = roleRule(text) ?? []
    return role !== undefined && given.includes(value) ? [role] : []
  })
  const role = PERSON_ROLES.findLast((each) => roles.includes(each))
  if (role === undefined)
    throw problem('sso-no-role', {
      detail: `${name} has no value of the claim ${config.oidcRoleClaim} with a role here.`,
    })
  return { subject: `${claims.iss} ${claims.sub}`, name, role }
}

/** A claim by its name, or by the path to it, as in `realm_access.roles`. */
function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path.split('.').reduce<unknown>((at, name) => {
    const isThere = typeof at === 'object' && at !== null && Object.hasOwn(at, name)
    return isThere ? (at as Claims)[name] : undefined
  }, claims)
}

/** 43 characters, as a code verifier needs at least. */
function derived(secret: string, what: 'verifier' | 'state' | 'nonce'): string {
  return createHash('sha256').update(`oidc ${what} ${secret}`).digest('base64url')
}

const COOKIE = 'vacancy_oidc'
/** Of the page to open afterwards. Browsers keep cookies of 4 KiB; behind a longer one the console opens at its start. */
const NEXT_BYTES_MAX = 2_048

/** What the browser keeps until the provider sends it back; '' deletes it. */
export function beginCookie(secret: string, next: string, isSecure: boolean): string {
  const page = Buffer.from(Buffer.byteLength(next) <= NEXT_BYTES_MAX ? next : '/').toString('base64url')
  return cookies.serialize(COOKIE, secret && `${secret}.${page}`, {
    path: CALLBACK_PATH,
    httpOnly: true,
    // The provider sends the browser back from another site.
    sameSite: 'lax',
    secure: isSecure,
    maxAge: secret === '' ? 0 : SIGN_IN_SECONDS,
  })
}

/** @returns undefined without a valid cookie */
export function begunIn(headers: IncomingHttpHeaders): { readonly secret: string; readonly next: string } | undefined {
  const value = headers.cookie === undefined ? undefined : cookies.parse(headers.cookie)[COOKIE]
  const [, secret, next] = /^([\w-]{43})\.([\w-]*)$/.exec(value ?? '') ?? []
  return secret === undefined || next === undefined
    ? undefined
    : { secret, next: Buffer.from(next, 'base64url').toString() }
}

/** A path of this console, never another site. */
export function ownPath(next: string, origin: string): string {
  const url = next.startsWith('/') ? URL.parse(next, origin) : null
  return url?.origin === origin ? url.pathname + url.search : '/'
}
