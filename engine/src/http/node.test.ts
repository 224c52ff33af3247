import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseDay, turnableClock } from '@vacancy/shared'
import { NODE_HTTP_LIMITS, NODE_ROUTES, type NodeCoverage, type NodeRoute } from '@vacancy/shared/contract'
import { LISTENER_LIMITS, parseTokens, type TlsMaterial } from '@vacancy/shared/node'
import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { afterEach, expect, test, vi } from 'vitest'
import { CODECS, fakeCluster, fakeHandle, NOON, SET_TIME } from '../testing/fake-handle.ts'
import { closeServers, configOf, refused, serve, silent, TOKENS } from '../testing/http-server.ts'
import { ask, createNodeInMemory } from '../testing/node-in-memory.ts'
import { HTTP_LIMITS } from './listener.ts'
import { createHttpServer, isAdminClosed } from './node.ts'
import { REASONS } from './reasons.ts'

const FIRST_CERTIFICATE = makeCertificate({ subject: 'first' })
const SECOND_CERTIFICATE = makeCertificate({ subject: 'second' })

afterEach(closeServers)

test('a serving node is active, alive and ready', async () => {
  const { get } = await serve()

  const healthz = await get('/healthz')
  expect([healthz.status, await healthz.text()]).toEqual([200, 'active'])
  expect(healthz.headers.get('server')).toBe('vacancy/1.2.3')
  expect(await (await get('/health')).json()).toEqual({ status: 'ok' })
  const ready = await get('/ready')
  expect([ready.status, await ready.json()]).toEqual([200, { ready: true, reasons: [] }])
})

test('a node that loads is alive, unavailable, and reports since when and what to do', async () => {
  const unavailable = () => [{ reason: 'loading', detail: '40 % of 2 GB', sinceMs: NOON - 1_000 }] as const
  const { get } = await serve({ handle: { unavailable } })

  expect((await get('/health')).status).toBe(200)
  const healthz = await get('/healthz')
  expect([healthz.status, await healthz.text()]).toEqual([503, 'unavailable'])
  const ready = await get('/ready')
  const { means, lookAt, type } = REASONS.loading
  expect(ready.status).toBe(503)
  expect(await ready.json()).toEqual({
    ready: false,
    reasons: [
      {
        reason: 'loading',
        stops: 'all',
        detail: '40 % of 2 GB',
        since: '2026-06-15T11:59:59.000Z',
        means,
        look_at: lookAt,
        type,
      },
    ],
  })
})

test('a node names its reasons beside its health, which they may leave as it is', async () => {
  const of = async (...reasons: ('certificate_ends' | 'wal_slow')[]) => {
    const unavailable = () => reasons.map((reason) => ({ reason, detail: '', sinceMs: NOON }))
    const { get } = await serve({ handle: { unavailable } })
    const healthz = await get('/healthz')
    return [await healthz.text(), healthz.headers.get('x-reasons')]
  }
  expect(await of()).toEqual(['active', null])
  expect(await of('certificate_ends', 'wal_slow')).toEqual(['active', 'certificate_ends,wal_slow'])
})

test('a full disk stops writes only: the node still serves searches, but is not ready', async () => {
  const unavailable = () => [{ reason: 'disk_full', detail: '', sinceMs: NOON }] as const
  const { get } = await serve({ handle: { unavailable } })

  expect((await get('/healthz')).status).toBe(200)
  expect((await get('/ready')).status).toBe(503)
})

test('a codec hash beyond 2^53 keeps all of its digits', async () => {
  const { get } = await serve()

  const body = await (await get('/codecs')).text()

  expect(body).toContain('"hash":11142104031873161849,')
  expect(JSON.parse(body)).toMatchObject({
    rate_features: ['Free_WiFi', 'BREAKFAST'],
    ordered_hash: CODECS.orderedHash,
  })
})

test('cluster paths report standalone mode', async () => {
  const { get, post } = await serve()

  for (const path of ['/node-info', '/leader', '/peers', '/cluster/info']) {
    expect(await refused(get(path)), path).toEqual([404, 'not available in standalone mode'])
  }
  for (const path of ['/peers', '/admin/add-member/n1', '/admin/transfer-leader/n1', '/cluster/promote-learner']) {
    expect(await refused(post(path)), path).toEqual([404, 'not available in standalone mode'])
  }
})

test('unknown paths, wrong methods and invalid bodies are refused', async () => {
  const { get, post, url } = await serve()

  expect(await refused(get('/nothing'))).toEqual([404, 'not found'])
  expect(await refused(get('//'))).toEqual([404, 'not found'])
  const wrong = await post('/status')
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  const other = await get('/shutdown')
  expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST'])
  expect(await refused(post('/shutdown', '{'))).toEqual([400, 'the body is not valid JSON'])
  expect(await refused(post('/shutdown', [true]))).toEqual([400, 'the body must be a JSON object'])
  expect((await refused(post('/shutdown', 'x'.repeat(HTTP_LIMITS.bodyBytesMax + 1))))[0]).toBe(413)
  const head = await fetch(url('/healthz'), { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('a body without a length is cut off at the limit', async () => {
  const { url } = await serve()
  const chunk = new Uint8Array(16_384).fill(32)
  let chunks = 0
  const body = new ReadableStream({
    pull(controller) {
      if (chunks++ === 64) controller.close()
      else controller.enqueue(chunk)
    },
  })

  const answer = fetch(url('/shutdown'), { method: 'POST', body, duplex: 'half' } as RequestInit)

  expect((await refused(answer))[0]).toBe(413)
})

async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.end(bytes)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await once(socket, 'close')
  return answer
}

test('headers over 16 KiB and bytes that are not HTTP get an error and the connection ends', async () => {
  const { port } = await serve()

  const large = await raw(
    port,
    `GET /health HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(LISTENER_LIMITS.headerBytesMax)}\r\n\r\n`,
  )
  expect(large).toMatch(/^HTTP\/1\.1 431 /)
  expect(large).toContain('{"error":"headers exceed 16384 bytes"}')
  const noise = await raw(port, '\xff\x00\x00\x10\r\n\r\n')
  expect(noise).toMatch(/^HTTP\/1\.1 400 /)
  expect(noise).toContain('{"error":"not a valid HTTP request"}')
})

test('a caller that disconnects during a body causes no error of the node', async () => {
  const logged: string[] = []
  const log = { ...silent, error: (_: object, message: string) => logged.push(message) }
  const { server, port } = await serve({ log })

  const socket = connect(port, '127.0.0.1')
  socket.write('POST /shutdown HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{')
  socket.end()
  socket.resume()
  await once(socket, 'close')
  await server.close()

  expect(logged).toEqual([])
})

test('with an auth file admin paths require an admin, and reads are open to all', async () => {
  const { get, post } = await serve({ tokens: TOKENS })

  expect(await refused(post('/save-snapshot'))).toEqual([401, 'missing authorization header'])
  expect((await post('/save-snapshot')).headers.get('www-authenticate')).toBe('Bearer')
  expect(await refused(post('/save-snapshot', {}, 'wrong'))).toEqual([401, 'invalid token'])
  expect(await refused(post('/save-snapshot', {}, 'too-late'))).toEqual([
    401,
    expect.stringMatching(/^the token ended at \d/),
  ])
  expect(await refused(post('/save-snapshot', {}, 'a-client'))).toEqual([403, 'insufficient permissions'])
  expect((await post('/save-snapshot', {}, 'the-admin')).status).toBe(202)
  expect((await get('/status')).status).toBe(200)
  expect(await refused(get('/config'))).toEqual([401, 'missing authorization header'])
})

test('api_public_read: false requires a role on GETs except health', async () => {
  const { get } = await serve({ tokens: TOKENS, settings: { api_public_read: 'false' } })

  expect((await get('/status')).status).toBe(401)
  expect((await get('/status', 'a-monitor')).status).toBe(200)
  expect((await get('/metrics', 'a-client')).status).toBe(200)
  expect((await get('/words', 'a-monitor')).status).toBe(403)
  // The fake node has no data, so this is past the authorization.
  expect((await get('/words', 'a-client')).status).toBe(503)
  for (const path of ['/health', '/healthz', '/ready']) expect((await get(path)).status, path).toBe(200)
})

test('after 20 wrong tokens in a minute an address waits, but a valid token passes (it used to wait too)', async () => {
  const { post, clock } = await serve({ tokens: TOKENS })
  for (let i = 0; i < 20; i++) expect((await post('/save-snapshot', {}, `wrong-${i}`)).status).toBe(401)

  const blocked = await post('/save-snapshot', {}, 'wrong-20')
  expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60'])
  expect((await post('/save-snapshot', {}, 'the-admin')).status).toBe(202)
  expect((await post('/save-snapshot', {}, 'a-client')).status).toBe(403)

  clock.advance(60_000)
  expect((await post('/save-snapshot', {}, 'wrong-21')).status).toBe(401)
})

test('new tokens replace the old ones', async () => {
  const { server, post } = await serve({ tokens: TOKENS })

  server.setTokens(parseTokens('tokens: [{ token: the-next, role: admin }]', 'tokens.yml'))

  expect((await post('/save-snapshot', {}, 'the-admin')).status).toBe(401)
  expect((await post('/save-snapshot', {}, 'the-next')).status).toBe(202)
})

test('without an auth file admin paths are open on loopback unless the configuration closes them', async () => {
  const openly = await serve()
  expect((await openly.post('/save-snapshot')).status).toBe(202)
  expect((await openly.get('/config')).status).toBe(200)

  const closed = await serve({ settings: { admin_requires_auth: 'true' } })
  expect(await refused(closed.post('/save-snapshot'))).toEqual([401, 'admin paths need an auth file'])
  expect((await closed.get('/config')).status).toBe(401)
  expect((await closed.get('/status')).status).toBe(200)
})

test('a listener reachable from other machines closes admin paths unless the configuration is false', () => {
  for (const host of ['127.0.0.1', '127.0.0.53', '::1', 'localhost'])
    expect(isAdminClosed(configOf(), host), host).toBe(false)
  for (const host of ['0.0.0.0', '::', '10.0.0.7', 'node-1']) {
    expect(isAdminClosed(configOf(), host), host).toBe(true)
    expect(isAdminClosed(configOf({ admin_requires_auth: 'false' }), host), host).toBe(false)
  }
})

test('a web page cannot stop a node on the machine of its visitor', async () => {
  let stopped = false
  const shutdown = () => {
    stopped = true
  }
  const { url } = await serve({ handle: { shutdown } })

  const answer = fetch(url('/shutdown'), {
    method: 'POST',
    body: '{"confirm":true}',
    headers: { origin: 'https://example.com' },
  })

  expect((await refused(answer))[0]).toBe(403)
  expect(stopped).toBe(false)
})

test('shutdown requires a confirmation and responds before the node ends', async () => {
  const stopped = Promise.withResolvers<void>()
  const { post } = await serve({ handle: { shutdown: stopped.resolve } })

  expect(await refused(post('/shutdown', {}))).toEqual([400, 'confirmation required'])
  expect(await refused(post('/shutdown', { confirm: 'true' }))).toEqual([400, 'confirmation required'])
  const answer = await post('/shutdown', { confirm: true })
  expect([answer.status, await answer.json()]).toEqual([202, { message: 'shutting down' }])
  await stopped.promise
})

test('snapshots and maintenance distinguish started, running and unavailable', async () => {
  const forced: boolean[] = []
  const maintain = (force: boolean) => {
    forced.push(force)
    return 'started' as const
  }
  const idle = await serve({ handle: { maintain } })
  expect(await (await idle.post('/save-snapshot')).json()).toEqual({ message: 'snapshot started' })
  expect((await idle.post('/admin/maintenance')).status).toBe(202)
  expect((await idle.post('/admin/maintenance', { force: true })).status).toBe(202)
  expect(await refused(idle.post('/admin/maintenance', { force: 1 }))).toEqual([400, 'force must be true or false'])
  expect(forced).toEqual([false, true])

  const busy = await serve({ handle: { saveSnapshot: () => 'running', maintain: () => 'unavailable' } })
  expect(await refused(busy.post('/save-snapshot'))).toEqual([409, 'snapshot already in progress'])
  expect((await refused(busy.post('/admin/maintenance')))[0]).toBe(503)
})

test('only an admin can set the time, and without confirm it returns the plan', async () => {
  const requested: boolean[] = []
  const setTime = (confirm: boolean) => {
    requested.push(confirm)
    return Promise.resolve({ status: 202, text: JSON.stringify({ ...SET_TIME, applied: confirm }) } as const)
  }
  const { post } = await serve({ handle: { setTime } })
  expect(await (await post('/admin/set-time')).json()).toEqual(SET_TIME)
  expect(await (await post('/admin/set-time', { confirm: true })).json()).toMatchObject({ applied: true })
  expect(await refused(post('/admin/set-time', { confirm: 'yes' }))).toEqual([400, 'confirm must be true or false'])
  expect(requested).toEqual([false, true])

  const right = await serve({ handle: { setTime: () => Promise.resolve({ status: 409, text: 'It agrees.' }) } })
  expect(await refused(right.post('/admin/set-time', { confirm: true }))).toEqual([409, 'It agrees.'])
  const closed = await serve({ handle: { setTime }, settings: { admin_requires_auth: 'true' } })
  expect((await closed.post('/admin/set-time', { confirm: true })).status).toBe(401)
})

test('unusable files yield a 500 that names what stays in force', async () => {
  const broken = () => {
    throw new Error('tokens.yml:3: role: must be one of admin')
  }
  const bad = await serve({ handle: { reloadTokens: broken, rotateTls: broken } })
  const [status, message] = await refused(bad.post('/reload-tokens'))
  expect(status).toBe(500)
  expect(message).toBe('the auth file cannot be used; the old tokens stay: tokens.yml:3: role: must be one of admin')
  expect((await refused(bad.post('/tls-rotate')))[0]).toBe(500)

  const none = await serve({ handle: { reloadTokens: () => undefined, rotateTls: () => false } })
  expect(await refused(none.post('/reload-tokens'))).toEqual([409, 'this node has no auth file (--auth-file)'])
  expect(await refused(none.post('/tls-rotate'))).toEqual([409, 'this node has no certificates'])

  const good = await serve({ handle: { reloadTokens: () => 4 } })
  expect(await (await good.post('/reload-tokens')).json()).toEqual({ message: 'tokens reloaded', tokens: 4 })
  expect(await (await good.post('/tls-rotate')).json()).toEqual({ message: 'certificate rotation started' })
})

test('an error below a path is logged, and its response reveals no internals', async () => {
  const logged: string[] = []
  const log = { ...silent, error: (_: object, message: string) => logged.push(message) }
  const snapshot = () => {
    throw new TypeError('undefined is not a function')
  }
  const { get } = await serve({ handle: { snapshot }, log })

  expect(await refused(get('/snapshot-info'))).toEqual([500, 'internal error, see the log'])
  expect(logged).toEqual(['an HTTP request failed'])
})

const TRACE = '0af7651916cd43dd8448eb211c80319c'

test('the snapshot, the status and the slow requests are documents', async () => {
  const slow = () => [{ command: 'SEARCHAVAIL', milliseconds: 12.5, rows: 200, traceId: TRACE, atMs: NOON }]
  const { get } = await serve({ handle: { slow } })

  expect(await (await get('/snapshot-info')).json()).toMatchObject({
    id: 'snapshot-000000000100',
    created_at: '2026-06-15T11:59:00.000Z',
    window: { from: '2026-06-15', to: '2027-06-15' },
    duration_ms: 12,
  })
  expect(await (await get('/status')).json()).toMatchObject({
    health: 'active',
    uptime_seconds: 90,
    cores: { start: 4, now: 4 },
    replica: { role: 'leader', term: 3, lag_entries: 1 },
    digest: { value: '0123456789abcdef', checked_index: 100, checked_value: '0000112233445566' },
    snapshot: { id: 'snapshot-000000000100' },
    kernels: 'wasm',
    codec_mismatch: null,
  })
  expect(await (await get('/debug/slow')).json()).toEqual({
    requests: [
      { command: 'SEARCHAVAIL', milliseconds: 12.5, rows: 200, at: '2026-06-15T12:00:00.000Z', trace_id: TRACE },
    ],
  })
})

test('the status of a starting node omits missing parts, and it has no snapshot', async () => {
  const { get } = await serve({ handle: { replica: () => undefined, snapshot: () => undefined } })

  const status = (await (await get('/status')).json()) as object
  expect(status).toMatchObject({ properties: 0, segments: [], replica: null, snapshot: null })
  expect(await refused(get('/snapshot-info'))).toEqual([404, 'there is no snapshot yet'])
  expect((await refused(get('/properties?ids=1')))[0]).toBe(503)
})

test('the configuration shows each value with its origin', async () => {
  const { get } = await serve({ settings: { query_limit: '50' } })

  const config = await (await get('/config')).json()

  expect(config).toMatchObject({
    query_limit: { value: 50, origin: 'flag', at: '--query_limit' },
    tcp_port: { value: 7777, origin: 'default' },
  })
})

function inventory() {
  const day = parseDay('2026-06-15') as number
  const node = createNodeInMemory(day)
  const property = { area: 'Centre', propertyType: 'hotel', category: 'city', stars: 4, latitude: 48, longitude: 16 }
  ask(node, 'SETPROP', { ...property, segment: 'Vienna', propertyId: 'h1', amenities: ['spa', 'bar'] })
  ask(node, 'SETPROP', { ...property, segment: 'Vienna', propertyId: 'h2', area: 'Prater', amenities: ['bar'] })
  ask(node, 'SETPROP', { ...property, segment: 'Graz', propertyId: 'h3', amenities: [] })
  for (const roomType of ['double', 'single']) {
    ask(node, 'SETROOMPKG', { propertyId: 'h1', roomType, date: '2026-06-20', availability: 2, finalPrice: 100 })
  }
  ask(node, 'SETROOMPKG', { propertyId: 'h3', roomType: 'double', date: '2026-06-20', availability: 2 })
  return node.store.memory
}

test('coverage counts the packages of a segment by day, from the first day that has any to the last', async () => {
  const node = createNodeInMemory(parseDay('2026-06-15') as number)
  const { get } = await serve({ handle: { memory: () => node.store.memory } })
  const read = async () => (await (await get('/coverage')).json()) as NodeCoverage
  expect(await read()).toMatchObject({ properties: 0, packages: 0, window: null, segments: [] })

  const place = { area: 'Centre', propertyType: 'hotel', category: 'city', stars: 4, latitude: 48, longitude: 16 }
  const property = (segment: string, propertyId: string, dates: readonly string[]) => {
    ask(node, 'SETPROP', { ...place, segment, propertyId, amenities: [] })
    for (const date of dates) ask(node, 'SETROOMPKG', { propertyId, roomType: 'double', date, availability: 1 })
  }
  property('Graz', 'h1', [])
  expect(await read()).toMatchObject({ properties: 1, window: null, segments: [{ name: 'Graz', packages: [] }] })
  property('Vienna', 'h2', ['2026-06-20', '2026-06-22'])
  property('Vienna', 'h3', ['2026-06-22'])

  expect(await read()).toMatchObject({
    properties: 3,
    packages: 3,
    window: { from: '2026-06-20', to: '2026-06-22' },
    segments: [
      { name: 'Graz', properties: 1, packages: [0, 0, 0] },
      { name: 'Vienna', properties: 2, packages: [1, 0, 2] },
    ],
    more: false,
  })
})

test('properties are returned with attributes and room types, unknown ids separately', async () => {
  const memory = inventory()
  const { get } = await serve({ handle: { memory: () => memory } })

  expect(await (await get('/properties?ids=h1,h9')).json()).toEqual({
    properties: [
      {
        id: 'h1',
        segment: 'Vienna',
        area: 'Centre',
        type: 'hotel',
        category: 'city',
        stars: 4,
        latitude: 48,
        longitude: 16,
        amenities: ['bar', 'spa'],
        room_types: ['double', 'single'],
      },
    ],
    missing: ['h9'],
  })
  // Each id is decoded by itself, whether it is in a list or in a parameter of its own.
  for (const query of ['ids=h1%2C9,h9', 'ids=h1%2C9&ids=h9'])
    expect(await (await get(`/properties?${query}`)).json()).toEqual({ properties: [], missing: ['h1,9', 'h9'] })
  expect((await refused(get('/properties')))[0]).toBe(400)
  const many = Array.from({ length: NODE_HTTP_LIMITS.propertyIdsMax + 1 }, (_, i) => `p${i}`).join(',')
  expect((await refused(get(`/properties?ids=${many}`)))[0]).toBe(400)
  expect((await refused(get(`/properties?ids=${'x'.repeat(15)}`)))[0]).toBe(400)
})

test('words are counted by property, of one segment or all, by prefix and up to a limit', async () => {
  const memory = inventory()
  const { get } = await serve({ handle: { memory: () => memory } })
  const words = async (query: string) => {
    const answer = (await (await get(`/words?${query}`)).json()) as {
      words: { word: string; properties: number }[]
      more: boolean
    }
    return [...answer.words.map(({ word, properties }) => `${word} ${properties}`), ...(answer.more ? ['…'] : [])]
  }

  expect(await words('')).toEqual(['Graz 1', 'Vienna 2'])
  expect(await words('kind=area')).toEqual(['Centre 2', 'Prater 1'])
  expect(await words('kind=area&segment=Graz')).toEqual(['Centre 1'])
  expect(await words('kind=type')).toEqual(['hotel 3'])
  expect(await words('kind=room_type')).toEqual(['double 2', 'single 1'])
  expect(await words('kind=room_type&segment=Vienna&prefix=s')).toEqual(['single 1'])
  expect(await words('kind=amenity&limit=1')).toEqual(['bar 2', '…'])
  expect(await words('kind=amenity&segment=nowhere')).toEqual([])
  expect((await refused(get('/words?kind=stars')))[0]).toBe(400)
  for (const limit of ['0', '1001', 'ten', '-1']) expect((await refused(get(`/words?limit=${limit}`)))[0]).toBe(400)
})

function material({ cert, key }: { cert: string; key: string }): TlsMaterial {
  return { cert, key, clientCa: undefined, notBeforeMs: 0, notAfterMs: 0, fingerprint: '' }
}

async function nameShown(port: number): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const name = String(socket.getPeerCertificate().subject.CN)
  socket.destroy()
  return name
}

test('a new certificate is used for new connections; an unusable one has no effect', async () => {
  const { server, port } = await serve({ tls: material(FIRST_CERTIFICATE) })
  expect(await nameShown(port)).toBe('first')

  server.rotateTls(material(SECOND_CERTIFICATE))
  expect(await nameShown(port)).toBe('second')

  expect(() => server.rotateTls(material({ cert: FIRST_CERTIFICATE.cert, key: 'no key' }))).toThrow()
  expect(await nameShown(port)).toBe('second')
})

test('a taken port is named', async () => {
  const { port } = await serve()

  const second = createHttpServer({
    handle: fakeHandle(),
    config: configOf(),
    tokens: undefined,
    tls: undefined,
    clock: turnableClock(NOON),
    log: silent,
    host: '127.0.0.1',
    port,
  })

  await expect(second.listening).rejects.toMatchObject({
    code: 'port_taken',
    message: `Cannot listen on 127.0.0.1:${port}: EADDRINUSE.`,
  })
  await second.close()
})

test('closing ends idle connections at once', async () => {
  const { server, port } = await serve()
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /health HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(socket, 'data')

  const ended = once(socket, 'close')
  socket.resume()
  await server.close()

  await ended
})

/** A connection that the other side has accepted, too. */
async function connectionTo(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

test('closing does not wait for connections without a request or with half a request (it used to)', async () => {
  const { server, port } = await serve()
  const silent = await connectionTo(port)
  const half = await connectionTo(port)
  half.write('GET /health HTTP/1.1\r\nHost: a\r\n')
  const used = await connectionTo(port)
  used.write('GET /health HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(used, 'data')
  const ends = [silent, half, used].map((socket) => once(socket.on('error', () => undefined).resume(), 'close'))

  vi.useFakeTimers({ toFake: ['setTimeout'] })
  try {
    // No timer runs: closing must not need one.
    await server.close()
  } finally {
    vi.useRealTimers()
  }

  await Promise.all(ends)
})

test('closing does not wait for a TLS handshake that never begins', async () => {
  const { server, port } = await serve({ tls: material(FIRST_CERTIFICATE) })
  const silent = await connectionTo(port)
  const ended = once(silent.resume(), 'close')

  vi.useFakeTimers({ toFake: ['setTimeout'] })
  try {
    await server.close()
  } finally {
    vi.useRealTimers()
  }

  await ended
})

test('a TLS handshake that never begins times out (it used to keep its connection)', async () => {
  const { port } = await serve({ tls: material(FIRST_CERTIFICATE) })
  const silent = await connectionTo(port)

  // Within 10 s; the test has more time.
  await once(silent.resume(), 'close')
})

const QUERIES = { words: '?kind=area', properties: '?ids=h1', night: '?property=h1&date=2026-06-20' } as {
  [name: string]: string
}
const SENT = {
  shutdown: { confirm: true },
  maintenance: { force: true },
  setPeers: ['n2'],
  promote: { node_id: 'n4' },
  demote: { node_id: 'n2' },
  transfer: { target_node_id: 'n2' },
  load: { file: '/srv/seed.snapshot' },
  dropLoad: { digest: 'a'.repeat(64) },
  setting: { name: 'holds_max', value: 5 },
} as { [name: string]: unknown }
const NAMES = Object.keys(NODE_ROUTES) as (keyof typeof NODE_ROUTES)[]

async function answerTo(name: keyof typeof NODE_ROUTES, cluster: ReturnType<typeof fakeCluster> | undefined) {
  const { path, method } = NODE_ROUTES[name]
  const memory = inventory()
  const { get, post } = await serve({ handle: { memory: () => memory, cluster }, tokens: TOKENS })
  const to = path.replace('{node_id}', 'n2') + (QUERIES[name] ?? '')
  return await (method === 'GET' ? get(to, 'the-admin') : post(to, SENT[name], 'the-admin'))
}

test.each(NAMES)('%s responds as the contract defines in clustered mode', async (name) => {
  const route: NodeRoute = NODE_ROUTES[name]

  const answer = await answerTo(name, fakeCluster())

  expect(answer.status).toBe(route.status)
  expect(answer.headers.get('content-type')).toMatch(route.text ? /^text\/plain/ : /^application\/json$/)
  route.response.parse(route.text ? await answer.text() : await answer.json())
})

test.each(NAMES)('%s responds as the contract defines in standalone mode', async (name) => {
  const route: NodeRoute = NODE_ROUTES[name]

  const answer = await answerTo(name, undefined)

  if (route.mode === 'clustered') {
    expect([answer.status, await answer.json()]).toEqual([404, { error: 'not available in standalone mode' }])
  } else {
    expect(answer.status).toBe(route.status)
    route.response.parse(route.text ? await answer.text() : await answer.json())
  }
})

test('histories of nights name stays, so they need a token although other reads are public', async () => {
  const memory = inventory()
  const { get } = await serve({ handle: { memory: () => memory }, tokens: TOKENS })

  expect((await get('/words')).status).toBe(200)
  expect((await get('/night?property=h1&date=2026-06-20')).status).toBe(401)
  expect((await get('/night?property=h1&date=2026-06-20', 'the-admin')).status).toBe(200)
})

test('metrics are Prometheus text and include those of the process', async () => {
  const { get } = await serve()

  const answer = await get('/metrics')
  const page = await answer.text()

  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4')
  expect(page).toContain('\ntcp_connections 3\n')
  expect(page).toContain('process_resident_memory_bytes')
  expect(page).not.toMatch(/^cluster_/m)
})
