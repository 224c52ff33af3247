/** Single sign-on against a real provider, oidc-provider, with a browser that keeps cookies and follows redirects. */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { turnableClock } from '@vacancy/shared'
import { Provider } from 'oidc-provider'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ControlConfig, loadControlConfig } from '../config.ts'
import { callerOf, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { ownPath } from './single-sign-on.ts'

type Account = { readonly preferred_username: string; realm_access?: { roles: readonly string[] } }

const SECRET = 'a secret of the client, long enough'
const accounts: { [id: string]: Account } = {
  u1: { preferred_username: 'ada', realm_access: { roles: ['staff', 'hotel-ops'] } },
  u2: { preferred_username: 'boss', realm_access: { roles: ['hotel-ops', 'hotel=admins'] } },
  u3: { preferred_username: 'guest', realm_access: { roles: ['staff'] } },
  u4: { preferred_username: 'local', realm_access: { roles: ['hotel-ops'] } },
  u5: { preferred_username: 'no name', realm_access: { roles: ['hotel-ops'] } },
}
/** The account that the provider signs in next. */
let account = 'u1'

const clock = turnableClock(Date.now())
let issuer: Server
let plane: TestControlPlane
let config: Partial<ControlConfig>

beforeAll(async () => {
  issuer = createServer()
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
  config = {
    oidcIssuer: url,
    oidcClientId: 'vacancy',
    oidcClientSecret: SECRET,
    oidcRoleClaim: 'realm_access.roles',
    oidcRoles: ['hotel-ops=operator', 'hotel=admins=admin'],
    oidcSessionHours: 1,
  }
  plane = await startTestControlPlane({ clock, config })
  const provider = providerAt(url, `${plane.url}/api/v1/session/oidc/callback`)
  const answer = provider.callback()
  issuer.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response)
    void provider.interactionFinished(request, response, { login: { accountId: account } })
  })
})

afterAll(async () => {
  await plane.stop()
  issuer.closeAllConnections()
  issuer.close()
})

function providerAt(url: string, redirect: string): Provider {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider: Provider = new Provider(url, {
    clients: [{ client_id: 'vacancy', client_secret: SECRET, redirect_uris: [redirect] }],
    cookies: { keys: ['a key of the test'] },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    claims: { profile: ['preferred_username', 'realm_access'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...accounts[id] }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: oidc.client?.clientId, accountId: oidc.session?.accountId })
      grant.addOIDCScope('openid profile')
      await grant.save()
      return grant
    },
  })
  return provider
}

/** What a browser does with one address: cookies by origin, redirects followed until the console answers. */
function browser() {
  const jar = new Map<string, Map<string, string>>()
  const cookies = (origin: string) => jar.get(origin) ?? jar.set(origin, new Map()).get(origin) ?? new Map()
  const get = async (url: string) => {
    const { origin } = new URL(url)
    const cookie = [...cookies(origin)].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { headers: { cookie }, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies(origin).delete(name)
      else cookies(origin).set(name, value)
    }
    const location = response.headers.get('location')
    return { response, next: location === null ? undefined : new URL(location, url).href }
  }
  return {
    get,
    cookies: () => cookies(plane.url),
    /** The page that the browser is sent to in the end, and the redirects before it. */
    async open(url: string) {
      const seen: string[] = []
      for (let next: string | undefined = url; next !== undefined; ) {
        seen.push(next)
        const path = new URL(next)
        if (path.origin === plane.url && !path.pathname.startsWith('/api/')) break
        next = (await get(next)).next
      }
      return { page: seen.at(-1)?.slice(plane.url.length), seen }
    },
    me: () =>
      callerOf(plane.url, { cookie: `vacancy_session=${cookies(plane.url).get('vacancy_session')}` }).call(
        'GET',
        '/api/v1/me',
      ),
  }
}

const BEGIN = '/api/v1/session/oidc'

async function signIn(who: string, next = '/') {
  account = who
  const user = browser()
  return { ...(await user.open(`${plane.url}${BEGIN}?next=${encodeURIComponent(next)}`)), user }
}

test('the sign-in page offers it, and a person enters with the highest role of the claim, on the page that was asked for', async () => {
  expect((await plane.anonymous().call('GET', '/api/v1/sign-in')).body.singleSignOn).toBe('single sign-on')
  const operator = await signIn('u1', '/shards/s1?tab=metrics')
  expect(operator.page).toBe('/shards/s1?tab=metrics')
  expect((await operator.user.me()).body).toMatchObject({
    person: { name: 'ada', role: 'operator', singleSignOn: true },
    signedInBy: 'single sign-on',
  })
  expect((await signIn('u1', `/playground?fields=${'%C3%BC'.repeat(300)}`)).page).toMatch(/^\/playground\?fields=%C3/)
  expect((await signIn('u1', `/playground?fields=${'x'.repeat(4_000)}`)).page).toBe('/')
  const admin = await signIn('u2')
  expect((await admin.user.me()).body.person).toMatchObject({ name: 'boss', role: 'admin' })
})

test('who has no role, an unusable name or the name of somebody else stays outside and reads why', async () => {
  await plane.signIn('admin', 'local')
  expect((await signIn('u3')).page).toBe('/sign-in#problem=sso-no-role')
  expect((await signIn('u4')).page).toBe('/sign-in#problem=name-taken')
  expect((await signIn('u5')).page).toBe('/sign-in#problem=sso-name')
  const reader = await plane.signIn('viewer')
  const { entries } = (await reader.call('GET', '/api/v1/audit?action=session.start&limit=3')).body
  expect(entries.some((entry: { result: string; detail: string }) => entry.detail.startsWith('sso-name'))).toBe(true)
})

test('a role that changed at the provider counts from the next sign-in, and only there can it be changed', async () => {
  await signIn('u1')
  accounts['u1'] = { preferred_username: 'renamed', realm_access: { roles: ['hotel=admins'] } }
  const again = await signIn('u1')
  const { person } = (await again.user.me()).body
  expect(person).toMatchObject({ name: 'ada', role: 'admin' })
  const admin = await plane.signIn('admin')
  const changed = await admin.call('PUT', `/api/v1/people/${person.id}`, { role: 'viewer' })
  expect(changed).toMatchObject({ status: 409, body: { code: 'role-of-provider' } })
  expect((await admin.call('PUT', `/api/v1/people/${person.id}`, { disabled: true })).status).toBe(200)
  expect((await again.user.me()).status).toBe(401)
  expect((await signIn('u1')).page).toBe('/sign-in#problem=person-disabled')
})

test('a session ends after oidc_session_hours, also in use', async () => {
  const { user } = await signIn('u2')
  clock.advance(50 * 60_000)
  expect((await user.me()).status).toBe(200)
  clock.advance(11 * 60_000)
  expect((await user.me()).status).toBe(401)
})

test('an answer of the provider counts only in the browser that asked, and once', async () => {
  account = 'u2'
  const victim = browser()
  const attacker = browser()
  const seen: string[] = []
  for (let next: string | undefined = `${plane.url}${BEGIN}`; next && !next.includes('/callback?'); ) {
    next = (await attacker.get(next)).next
    seen.push(next ?? '')
  }
  const answer = seen.at(-1) ?? ''
  expect(answer).toMatch(/\/callback\?code=/)
  expect((await victim.open(answer)).page).toBe('/sign-in#problem=sso-expired')
  await victim.get(`${plane.url}${BEGIN}`)
  expect((await victim.open(answer)).page).toBe('/sign-in#problem=sso-expired')
  expect(victim.cookies().has('vacancy_session')).toBe(false)
  const kept = new Map(attacker.cookies())
  expect((await attacker.open(answer)).page).toBe('/')
  for (const [name, value] of kept) attacker.cookies().set(name, value)
  expect((await attacker.open(answer)).page).toBe('/sign-in#problem=sso-failed')
})

test('a provider that refuses or does not answer is told on the sign-in page', async () => {
  const user = browser()
  const { next = '' } = await user.get(`${plane.url}${BEGIN}`)
  const state = new URL(next).searchParams.get('state')
  const refused = await user.open(
    `${plane.url}${BEGIN}/callback?error=access_denied&state=${state}&iss=${config.oidcIssuer}`,
  )
  expect(refused.page).toBe('/sign-in#problem=sso-failed')
  const away = await startTestControlPlane({ config: { ...config, oidcIssuer: 'http://127.0.0.1:9' } })
  const response = await fetch(`${away.url}${BEGIN}`, { redirect: 'manual' })
  expect([response.status, response.headers.get('location')]).toEqual([303, '/sign-in#problem=sso-failed'])
  await away.stop()
})

test('without a provider there is none', async () => {
  const without = await startTestControlPlane()
  expect((await without.anonymous().call('GET', BEGIN)).body.code).toBe('sso-off')
  expect((await without.anonymous().call('GET', '/api/v1/sign-in')).body.singleSignOn).toBeNull()
  await without.stop()
})

test.each([
  ['/shards?x=1', '/shards?x=1'],
  ['//evil.example/x', '/'],
  ['/\\evil.example', '/'],
  ['https://evil.example', '/'],
  ['', '/'],
])('the page %j to open after it is %s', (next, path) => {
  expect(ownPath(next, 'https://console.example')).toBe(path)
})

test.each([
  [{ oidc_client_id: 'vacancy' }, 'oidc_client_id: needs oidc_issuer'],
  [{ oidc_issuer: 'http://login.example.com' }, 'oidc_issuer: must begin with https://'],
  [{ oidc_issuer: 'https://login.example.com' }, 'oidc_roles: is needed'],
  [{ oidc_issuer: 'https://login.example.com', oidc_roles: 'ops=boss' }, 'ops=boss is not value=role'],
  [{ oidc_issuer: 'https://login.example.com', oidc_scopes: 'profile' }, 'oidc_scopes: must have openid'],
])('the configuration %j is refused: %s', (keys, fault) => {
  const given = Object.entries(keys).map(([key, text]) => [key, { text, at: `--${key}`, from: 'flag' }] as const)
  expect(() => loadControlConfig({ given: new Map(given) })).toThrow(fault)
})
