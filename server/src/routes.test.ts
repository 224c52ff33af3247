import { CONTROL_BODY_BYTES_MAX, CONTROL_ROUTES, type ControlRoute, LIVE } from '@vacancy/shared/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { SESSION_COOKIE } from './access/secrets.ts'
import {
  type Caller,
  callerOf,
  personOf,
  sendBytes,
  startTestControlPlane,
  type TestControlPlane,
} from './testing/control-plane.ts'

const ROUTES = Object.entries(CONTROL_ROUTES as { readonly [name: string]: ControlRoute })
const GUARDED = ROUTES.filter(([, { access }]) => access !== 'open')

let plane: TestControlPlane
let viewer: Caller
let operator: Caller
let admin: Caller
let monitoring: Caller
let client: Caller

beforeAll(async () => {
  plane = await startTestControlPlane()
  viewer = await plane.signIn('viewer')
  operator = await plane.signIn('operator')
  admin = await plane.signIn('admin')
  monitoring = await plane.token('monitoring')
  client = await plane.token('client')
})
afterAll(async () => await plane.stop())

/** A path with a value for each parameter. */
function pathOf(name: string): [method: string, path: string] {
  const [method = '', path = ''] = name.split(' ')
  return [method, path.replaceAll(/\{\w+\}/g, 'x')]
}

describe('no path returns data without credentials', () => {
  test.each(GUARDED.map(([name]) => name))('%s', async (name) => {
    const [method, path] = pathOf(name)
    const forged = callerOf(plane.url, { cookie: `${SESSION_COOKIE}=${'A'.repeat(43)}`, 'x-csrf': 'x' })
    for (const caller of [plane.anonymous(), forged]) {
      const answer = await caller.call(method, path)

      expect(answer.status).toBe(401)
      expect(answer.headers.get('content-type')).toContain('application/problem+json')
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      expect(
        Object.keys(answer.body)
          .filter((key) => key !== 'error')
          .sort(),
      ).toEqual(['code', 'detail', 'hint', 'requestId', 'status', 'title'])
    }
  })
})

/** The access levels that each role lacks, listed by hand from the contract (control.ts). */
const TOO_LOW: { readonly [access: string]: () => readonly Caller[] } = {
  session: () => [monitoring, client],
  viewer: () => [],
  query: () => [monitoring],
  operator: () => [viewer, monitoring, client],
  admin: () => [viewer, operator, monitoring, client],
}

describe('an insufficient role gets 403', () => {
  test.each(GUARDED.map(([name, { access }]) => [name, access] as const))('%s (%s)', async (name, access) => {
    const [method, path] = pathOf(name)
    for (const caller of (TOO_LOW[access] as () => readonly Caller[])()) {
      const answer = await caller.call(method, path)

      expect(answer.status).toBe(403)
      expect(answer.body.code).toBe('forbidden')
      expect(answer.body.hint).not.toBe('')
    }
  })

  test('a refused change is in the audit log with its principal', async () => {
    await viewer.call('POST', '/api/v1/people', { name: 'mallory', role: 'admin' })

    const { entries } = (await admin.call('GET', '/api/v1/audit?action=POST%20%2Fapi%2Fv1%2Fpeople')).body
    expect(entries[0]).toMatchObject({
      actor: viewer.me?.person.name,
      actorKind: 'person',
      result: 'refused',
      target: '/api/v1/people',
    })
    expect((await admin.call('GET', '/api/v1/people')).text).not.toContain('mallory')
  })
})

describe('changes in a session must come from the console', () => {
  const CHANGES = GUARDED.map(([name]) => name).filter((name) => !name.startsWith('GET '))

  test.each(CHANGES)('%s: missing or wrong x-csrf', async (name) => {
    const [method, path] = pathOf(name)
    const cookie = admin.headers['cookie'] as string
    for (const headers of [{ cookie }, { cookie, 'x-csrf': '' }, { cookie, 'x-csrf': viewer.me?.csrf as string }]) {
      const answer = await callerOf(plane.url, headers).call(method, path)

      expect(answer.status).toBe(403)
      expect(answer.body.code).toBe('csrf')
    }
  })

  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('posts of other pages are refused: %o', async (headers) => {
    for (const [path, body] of [
      ['/api/v1/people', { name: 'eve', role: 'admin' }],
      ['/api/v1/session', { name: 'eve', password: 'x' }],
    ] as const) {
      const answer = await admin.call('POST', path, body, headers)

      expect(answer.status).toBe(403)
      expect(answer.body.code).toBe('cross-site')
    }
  })

  test("the console's own pages pass", async () => {
    const headers = { origin: plane.url, 'sec-fetch-site': 'same-origin' }

    expect((await admin.call('POST', '/api/v1/audit/verify', undefined, headers)).status).toBe(200)
  })

  test('a form of another site is refused', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const answer = await admin.call('POST', '/api/v1/people', '{"name":"eve","role":"admin"}', {
        'content-type': type,
      })
      expect(answer.status).toBe(415)
    }
  })
})

describe('invalid requests', () => {
  test.each(['evil.example', 'evil.example:8000', '127.0.0.1.evil.example', '10.1.2.3', '', 'x y', '[::'])(
    'a foreign Host header: %s',
    async (host) => {
      const answer = await sendBytes(
        plane.url,
        `GET /api/v1/sign-in HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      )

      expect(answer).toMatch(/^HTTP\/1.1 4(?:21|00) /)
      expect(answer).not.toContain('setUp')
    },
  )

  test.each(['localhost', '127.0.0.1', '127.0.0.1:1', '[::1]'])('its own names: %s', async (host) => {
    expect(await sendBytes(plane.url, `GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 200 /,
    )
  })

  test('a body over the limit is not read to its end', async () => {
    const large = JSON.stringify({ name: 'x'.repeat(CONTROL_BODY_BYTES_MAX), role: 'viewer' })

    const answer = await admin.call('POST', '/api/v1/people', large)

    expect(answer.status).toBe(413)
    expect(answer.body.hint).not.toBe('')
  })

  test.each([
    ['{"name":', 'broken'],
    ['', 'empty'],
    ['[]', 'a different shape'],
    ['{"__proto__":{"role":"admin"},"name":"x","role":"viewer"}', 'a prototype'],
    ['{"name":"x y","role":"viewer"}', 'a name with a blank'],
    ['{"name":"x","role":"root"}', 'an unknown role'],
    [`{"name":"x","role":${'['.repeat(20_000)}`, 'depth'],
  ])('a body with %s is refused with the reason (%s)', async (body) => {
    const answer = await admin.call('POST', '/api/v1/people', body)

    expect(answer.status).toBe(400)
    expect(answer.body.detail.length).toBeGreaterThan(10)
  })

  test('the invalid field is named', async () => {
    const answer = await admin.call('POST', '/api/v1/people', { name: 'x', role: 'root' })

    expect(answer.body).toMatchObject({ status: 400, code: 'invalid-request', field: 'role' })
    expect((await admin.call('GET', '/api/v1/audit?limit=0')).body).toMatchObject({ status: 400, field: 'limit' })
    expect((await admin.call('GET', '/api/v1/audit?cursor=abc')).body).toMatchObject({ status: 400, field: 'cursor' })
  })

  test('unknown paths and methods get 404', async () => {
    for (const [method, path] of [
      ['GET', '/api/v1/nothing'],
      ['PATCH', '/api/v1/people'],
      ['GET', '/api/v1/people/../../../etc/passwd'],
      ['GET', '/%00'],
    ] as const) {
      const answer = await admin.call(method, path)
      expect(answer.status).toBe(404)
      expect(answer.body.code).toBe('no-such-path')
    }
    expect((await admin.call('GET', '/api/v1/%zz')).status).toBe(400)
  })

  test.each(['GET /health HTTP/9\r\n\r\n', '\0\0\0\0\r\n\r\n', `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`])(
    'malformed HTTP closes only its connection (%#)',
    async (bytes) => {
      expect(await sendBytes(plane.url, bytes)).toMatch(/^HTTP\/1.1 4\d\d /)
      expect((await plane.anonymous().call('GET', '/health')).status).toBe(200)
    },
  )
})

describe('the live channel', () => {
  const open = (headers: { readonly [name: string]: string }) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`${plane.url.replace('http', 'ws')}${LIVE.path}`, { headers })
      socket.on('open', () => {
        socket.close()
        resolve('open')
      })
      socket.on('unexpected-response', (_request, response) => resolve(String(response.statusCode)))
      socket.on('error', (error) => resolve(error.message))
    })

  test('opens with a session cookie or a token', async () => {
    expect(await open({ cookie: viewer.headers['cookie'] as string, origin: plane.url })).toBe('open')
    expect(await open(monitoring.headers)).toBe('open')
  })

  test('is refused without valid credentials, from other origins, and under other host names', async () => {
    const cookie = viewer.headers['cookie'] as string
    const refused = async () => {
      const { text } = await monitoring.call('GET', '/metrics')
      const count = (reason: string) =>
        Number(text.match(new RegExp(`^control_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm'))?.[1] ?? 0)
      return ['unauthenticated', 'cross-site', 'host'].map(count)
    }
    const before = await refused()

    expect(await open({})).toBe('401')
    expect(await open({ authorization: 'Bearer vct_forged' })).toBe('401')
    expect(await open({ cookie, origin: 'https://evil.example' })).toBe('403')
    expect(await open({ cookie, host: 'evil.example' })).toBe('421')
    expect((await refused()).map((count, n) => count - (before[n] ?? 0))).toEqual([2, 1, 1])
  })

  test('reports that the audit log grew', async () => {
    const headers = { ...viewer.headers }
    const socket = new WebSocket(`${plane.url.replace('http', 'ws')}${LIVE.path}`, { headers })
    const totals: number[] = []
    const grew = new Promise<void>((resolve) => {
      socket.on('message', (data) => {
        const frame = JSON.parse(String(data))
        if (frame.t === 'snap') {
          totals.push(frame.data.total)
          void admin.call('POST', '/api/v1/tokens', { name: 'seen', role: 'client' })
        }
        if (frame.t === 'delta') {
          totals.push(frame.ops[0][1])
          resolve()
        }
      })
    })
    socket.on('open', () => socket.send(JSON.stringify({ t: 'sub', id: 1, topic: 'audit' })))

    await grew

    expect(totals[1]).toBe((totals[0] as number) + 1)
    socket.close()
  })

  test('ends with its session', async () => {
    const person = await plane.signIn('viewer')
    const socket = new WebSocket(`${plane.url.replace('http', 'ws')}${LIVE.path}`, { headers: { ...person.headers } })
    await new Promise((resolve) => socket.once('open', resolve))
    const closed = new Promise((resolve) => socket.once('close', resolve))

    await person.call('DELETE', '/api/v1/session')

    await closed
  })

  test('ends with the token of its session', async () => {
    const token = await plane.token('client')
    const value = token.headers['authorization']?.slice('Bearer '.length)
    const browser = personOf(plane.url, await plane.anonymous().call('POST', '/api/v1/session/token', { token: value }))
    const socket = new WebSocket(`${plane.url.replace('http', 'ws')}${LIVE.path}`, { headers: { ...browser.headers } })
    await new Promise((resolve) => socket.once('open', resolve))
    const closed = new Promise((resolve) => socket.once('close', resolve))

    await admin.call('DELETE', `/api/v1/tokens/${token.id}`)

    await closed
  })

  test('other paths do not accept WebSockets', async () => {
    const answer = await sendBytes(
      plane.url,
      `GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 404 /)
  })
})

describe('open paths', () => {
  test('health, readiness, metrics and the reference', async () => {
    expect((await plane.anonymous().call('GET', '/health')).body).toEqual({ status: 'ok' })
    expect((await plane.anonymous().call('GET', '/ready')).body).toEqual({ ready: true, reasons: [] })
    const metrics = await monitoring.call('GET', '/metrics')
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4')
    expect(metrics.text).toContain('control_http_requests_total{route="GET /health",status="200"}')
    expect(metrics.text).toMatch(/^control_database_up 1$/m)
    expect((await plane.anonymous().call('GET', '/docs')).status).toBe(401)
    expect((await viewer.call('GET', '/docs')).text).toContain('swagger-ui')
    const documented = (await viewer.call('GET', '/docs/json')).body.paths
    for (const [name] of ROUTES) {
      const [method = '', path = ''] = name.split(' ')
      expect(documented[path]?.[method.toLowerCase()]?.summary, name).toBeTypeOf('string')
    }
  })

  test('security headers', async () => {
    const { headers } = await plane.anonymous().call('GET', '/api/v1/sign-in')

    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  test('errors of the cluster management API have its own texts, too', async () => {
    const words = async (caller: Caller) => (await caller.call('POST', '/cluster/transfer-leader', {})).body.error

    expect(await words(plane.anonymous())).toBe('missing authorization header')
    expect(await words(callerOf(plane.url, { authorization: 'Bearer x' }))).toBe('invalid token')
    expect(await words(monitoring)).toBe('insufficient permissions')
  })
})
