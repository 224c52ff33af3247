import { request } from 'node:http'
import { HTTP_LIMITS } from '@vacancy/shared/api/options'
import { LIVE } from '@vacancy/shared/contract'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'

const PROXIED = { host: 'vacancy.example.com', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9' }

let plane: TestControlPlane
afterEach(async () => await plane.stop())

/** Like fetch, with a custom Host header. */
function ask(method: string, path: string, headers: { [name: string]: string }, body?: object) {
  return new Promise<{ status: number; headers: { [name: string]: unknown }; text: string }>((resolve, reject) => {
    const outgoing = request(`${plane.url}${path}`, { method, headers }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => {
        text += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
    })
    outgoing.on('error', reject)
    if (body) outgoing.setHeader('content-type', 'application/json')
    outgoing.end(body && JSON.stringify(body))
  })
}

test('behind a trusted proxy the cookie is secure, and the audit log has the address of the caller', async () => {
  plane = await startTestControlPlane({
    config: { baseUrl: 'https://vacancy.example.com', trustProxy: ['127.0.0.0/8'] },
  })
  const code = await plane.people.signInCode('ada', 'admin')
  const origin = 'https://vacancy.example.com'

  const signedIn = await ask('POST', '/api/v1/session/link', { ...PROXIED, origin }, { code })

  expect(signedIn.status).toBe(200)
  expect(String(signedIn.headers['set-cookie'])).toContain('; Secure;')
  const cookie = String(signedIn.headers['set-cookie']).split(';')[0] as string
  const { entries } = JSON.parse((await ask('GET', '/api/v1/audit', { ...PROXIED, cookie })).text)
  expect(entries[0]).toMatchObject({ action: 'session.start', address: '203.0.113.9' })
  const csrf = JSON.parse(signedIn.text).csrf as string
  const added = await ask(
    'POST',
    '/api/v1/people',
    { ...PROXIED, origin, cookie, 'x-csrf': csrf },
    { name: 'bob', role: 'viewer' },
  )
  expect(JSON.parse(added.text).link).toMatch(/^https:\/\/vacancy\.example\.com\/sign-in#code=/)
})

test('forwarded headers of untrusted clients are ignored', async () => {
  plane = await startTestControlPlane()
  const code = await plane.people.signInCode('ada', 'admin')

  expect((await ask('GET', '/docs', PROXIED)).status).toBe(421)
  const { host: _host, ...forged } = PROXIED
  const signedIn = await ask(
    'POST',
    '/api/v1/session/link',
    { ...forged, 'x-forwarded-host': 'evil.example' },
    { code },
  )

  expect(String(signedIn.headers['set-cookie'])).not.toContain('Secure')
  const cookie = String(signedIn.headers['set-cookie']).split(';')[0] as string
  const { entries } = JSON.parse((await ask('GET', '/api/v1/audit', { cookie })).text)
  expect(entries[0].address).toBe('127.0.0.1')
})

test('allowed host names are accepted', async () => {
  plane = await startTestControlPlane({ config: { allowedHosts: ['console.internal'] } })

  expect((await ask('GET', '/docs', { host: 'console.internal:8000' })).status).toBe(401)
  const refused = await ask('GET', '/docs', { host: 'other.internal:8000' })
  expect(refused.status).toBe(421)
  expect(JSON.parse(refused.text).hint).toContain('add other.internal to allowed_hosts')
  // Probes of a container come by the name of a service, or with a published port.
  for (const path of ['/health', '/ready', '/api/v1/queue/health'])
    expect((await ask('GET', path, { host: 'other.internal:8000' })).status).toBe(200)
  expect((await ask('GET', '/metrics', { host: 'other.internal' })).status).toBe(401)
})

test('a valid session opens the live channel whatever others at its proxy do, whose address counts', async () => {
  plane = await startTestControlPlane({ config: { trustProxy: ['127.0.0.1'] } })
  const viewer = await plane.signIn('viewer')
  const open = (headers: object) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`${plane.url.replace('http', 'ws')}${LIVE.path}`, { headers: { ...headers } })
      socket.on('open', () => resolve('open')).on('open', () => socket.close())
      socket.on('unexpected-response', (_request, response) => resolve(String(response.statusCode)))
      socket.on('error', (error) => resolve(error.message))
    })
  const from = (address: string, headers: object = {}) => open({ 'x-forwarded-for': address, ...headers })
  for (let n = 0; n < HTTP_LIMITS.upgradesRefusedMax; n += 50)
    await Promise.all(Array.from({ length: 50 }, () => from('203.0.113.1')))

  expect(await from('203.0.113.1')).toBe('429')
  expect(await from('203.0.113.1', { cookie: viewer.headers['cookie'] })).toBe('open')
  expect(await from('203.0.113.2')).toBe('401')
  // A client may write what it likes in front of what the proxy adds.
  expect(await from('203.0.113.2, 203.0.113.1')).toBe('429')
})

test('a client over the rate limit gets retry-after, and other clients are served', async () => {
  plane = await startTestControlPlane({ config: { trustProxy: ['127.0.0.1'] } })
  const viewer = await plane.signIn('viewer')
  const from = (address: string) => ask('GET', '/health', { 'x-forwarded-for': address })
  const statuses: number[] = []
  for (let i = 0; i <= HTTP_LIMITS.requestsUnknown; i++) statuses.push((await from('203.0.113.1')).status)

  expect(statuses.slice(0, -1).every((status) => status === 200)).toBe(true)
  expect(statuses.at(-1)).toBe(429)
  const waiting = await from('203.0.113.1')
  expect(Number(waiting.headers['retry-after'])).toBeGreaterThan(0)
  expect(JSON.parse(waiting.text)).toMatchObject({ code: 'too-many-requests' })
  expect((await from('203.0.113.2')).status).toBe(200)
  expect((await viewer.call('GET', '/api/v1/me')).status).toBe(200)
})

test('long responses are compressed for clients that accept it, short ones are not', async () => {
  plane = await startTestControlPlane()
  const { headers } = await plane.signIn('viewer')
  const fetchWith = async (path: string, encoding: string) => {
    const answer = await fetch(plane.url + path, { headers: { ...headers, 'accept-encoding': encoding } })
    return {
      encoding: answer.headers.get('content-encoding'),
      vary: answer.headers.get('vary'),
      body: await answer.json(),
    }
  }

  const plain = await fetchWith('/docs/json', 'identity')
  const packed = await fetchWith('/docs/json', 'br, gzip;q=0.8')

  expect(plain.encoding).toBeNull()
  expect(packed).toMatchObject({ encoding: 'gzip', vary: 'accept-encoding' })
  expect(packed.body).toEqual(plain.body)
  expect((await fetchWith('/docs/json', 'gzip;q=0')).encoding).toBeNull()
  expect((await fetchWith('/health', 'gzip')).encoding).toBeNull()
})

test('an internal error is reported with its request id and no details, and logged with the same id', async () => {
  plane = await startTestControlPlane()
  const admin = await plane.signIn('admin')
  // An invalid row that no code writes: reading it is an internal error.
  const broken = admin.me?.person.id as string
  await plane.spoil(broken)

  const answer = await admin.call('GET', '/api/v1/me')

  expect(answer.status).toBe(500)
  expect(answer.body).toMatchObject({
    code: 'internal',
    detail: 'Internal error. The log of the control plane has the details.',
  })
  expect(answer.text).not.toContain('JSON')
  expect(plane.log.some((line) => line.includes(answer.body.requestId) && line.includes('SyntaxError'))).toBe(true)
})
