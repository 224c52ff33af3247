import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { constants } from 'node:http2'
import { get as getOverTls } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect as connectTls } from 'node:tls'
import { loadTls } from '@vacancy/shared/node'
import { encodeReply } from '@vacancy/shared/wire'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { AUTHORITY, CALLER, SERVER } from '../testing/certificates.ts'
import { API_LIMITS } from './exchange.ts'
import { CONTEXT, openStandIn, type Received, type StandIn } from './testing/stand-in.ts'
import { openHttp2, postHttp2, startTestProxy, type TestProxy } from './testing/start.ts'

const REQUEST_MS = 1_000
const READ = { command: 'PROPEXIST', body: { property_id: 'p1' } }

let folder: string
let behind: StandIn
let proxy: TestProxy
const closing: (() => unknown)[] = []

const inFolder = (name: string) => path.join(folder, name)

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-proxy-'))
  writeFileSync(inFolder('cert.pem'), SERVER.cert)
  writeFileSync(inFolder('key.pem'), SERVER.key)
  behind = await openStandIn('node')
  proxy = await startTestProxy(
    {
      mode: 'standalone',
      upstream_port: behind.port,
      https_enabled: true,
      tls_cert_path: inFolder('cert.pem'),
      tls_key_path: inFolder('key.pem'),
    },
    { requestMs: REQUEST_MS },
  )
  await eventually(async () => expect((await proxy.get('/ready')).status).toBe(200))
})

afterAll(async () => {
  await proxy.stop()
  await behind.close()
  rmSync(folder, { recursive: true, force: true })
})

const exists = ({ id }: Received) => encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)

beforeEach(() => {
  behind.answer = exists
})

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  behind.answer = exists
  // Whatever a test sent, the proxy still serves.
  expect((await proxy.post(READ)).status).toBe(200)
})

/** A raw connection that collects what arrives. */
function open(port = proxy.httpPort as number) {
  const socket = connectTcp(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (piece: string) => {
    text += piece
  })
  socket.on('error', () => {})
  closing.push(() => socket.destroy())
  const ended = new Promise<string>((resolve) => socket.once('close', () => resolve(text)))
  return { socket, text: () => text, ended }
}

const head = (more = '') => `POST /api HTTP/1.1\r\nHost: x\r\n${more}`
const whole = (body: string, more = '') => `${head(more)}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

async function byteByByte(socket: Socket, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    socket.write(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function startHttp2() {
  const session = await openHttp2(proxy.url)
  closing.push(() => session.destroy())
  return session
}

test('HTTP/1.1 and HTTP/2 on the plain port give the same answer', async () => {
  const session = await startHttp2()

  const over1 = await proxy.post(READ)
  const over2 = await postHttp2(session, READ)

  expect(over1).toMatchObject({ status: 200, json: { status: 'success', exists: true } })
  expect(over2).toMatchObject({ status: 200, json: over1.json })
  expect(over2.headers['content-type']).toBe('application/json')
  expect(over2.headers['server']).toBe('vacancy/0.0.0')
  expect(over1.headers['server']).toBe('vacancy/0.0.0')
})

test('the first bytes may arrive one by one, in either protocol', async () => {
  const one = open()
  await byteByByte(one.socket, Buffer.from(whole(JSON.stringify(READ))))
  await expect.poll(one.text).toContain('"exists":true')

  const two = open()
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  await byteByByte(two.socket, Buffer.concat([preface, Buffer.from('000000040000000000', 'hex')]))
  // A SETTINGS frame of the server: type 4, stream 0.
  await expect.poll(() => two.text().charCodeAt(3)).toBe(4)
})

test.each([
  ['GET', '/api', 405],
  ['PUT', '/api/', 405],
  ['POST', '/health', 405],
  ['POST', '/', 404],
  ['GET', '/api/x', 404],
  ['GET', '/__proto__', 404],
  ['GET', '/constructor', 404],
])('%s %s is %i, as JSON', async (method, where, status) => {
  const response = await fetch(proxy.url + where, { method })

  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ status: 'error', message: expect.any(String) })
  if (status === 405) expect(response.headers.get('allow')).toContain('OPTIONS')
})

test('/api/ is the same as /api', async () => {
  const response = await fetch(`${proxy.url}/api/`, { method: 'POST', body: JSON.stringify(READ) })

  expect(response.status).toBe(200)
})

test('HEAD has the header of GET and no body', async () => {
  const response = await fetch(`${proxy.url}/health`, { method: 'HEAD' })

  expect(response.headers.get('content-length')).toBe('15')
  expect(await response.text()).toBe('')
  expect(JSON.parse((await proxy.get('/health')).text)).toEqual({ status: 'ok' })
})

test('X-Request-Id is echoed if it is sane, else made', async () => {
  expect((await proxy.post(READ, { 'X-Request-Id': 'abc-1' })).headers['x-request-id']).toBe('abc-1')
  const made = (await proxy.post(READ, { 'X-Request-Id': 'with blank' })).headers['x-request-id']
  expect(made).toMatch(/^[0-9a-f]{12}-/)
  expect((await proxy.post(READ, { 'X-Request-Id': 'x'.repeat(200) })).headers['x-request-id']).not.toBe(made)
})

test('web pages of any origin may call it, with a token', async () => {
  const response = await fetch(`${proxy.url}/api`, {
    method: 'OPTIONS',
    headers: { Origin: 'https://a.example', 'Access-Control-Request-Headers': 'authorization, x-any' },
  })

  expect(response.status).toBe(204)
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  expect(response.headers.get('access-control-allow-methods')).toBe('GET, POST, OPTIONS')
  expect(response.headers.get('access-control-allow-headers')).toBe('authorization, x-any')
})

test('cors_origin narrows the origins', async () => {
  const narrow = await startTestProxy({
    mode: 'standalone',
    upstream_port: behind.port,
    cors_origin: 'https://a.example',
  })
  closing.push(narrow.stop)

  expect((await narrow.get('/health', { Origin: 'https://a.example' })).headers).toMatchObject({
    'access-control-allow-origin': 'https://a.example',
    vary: 'Origin',
  })
  expect((await narrow.get('/health', { Origin: 'https://b.example' })).headers).not.toHaveProperty(
    'access-control-allow-origin',
  )
})

test('a body over 1 MiB is 413, before it is sent where the client waits for that', async () => {
  const large = 'x'.repeat(API_LIMITS.bodyBytesMax + 1)
  expect(await proxy.post(large)).toMatchObject({ status: 413, json: { code: 'TOO_LARGE' } })
  const session = await startHttp2()
  expect(await postHttp2(session, large)).toMatchObject({ status: 413, json: { code: 'TOO_LARGE' } })
  expect(await postHttp2(session, READ)).toMatchObject({ status: 200 })

  const waiting = open()
  waiting.socket.write(`${head()}Expect: 100-continue\r\nContent-Length: 1000000000\r\n\r\n`)
  await expect.poll(waiting.text).toContain('413')
  expect(waiting.text()).not.toContain('100 Continue')
})

test('a body of exactly 1 MiB is read', async () => {
  const exact = JSON.stringify(READ).padEnd(API_LIMITS.bodyBytesMax)

  expect((await proxy.post(exact)).status).toBe(200)
})

test('a body without end is cut off', async () => {
  const endless = open()
  endless.socket.write(`${head()}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  const timer = setInterval(() => endless.socket.write(chunk), 1)
  closing.push(() => clearInterval(timer))

  expect(await endless.ended).toContain('413')
})

test('a slow body is 408, in either protocol', async () => {
  const one = open()
  one.socket.write(`${head()}Content-Length: 100\r\n\r\n{`)
  const session = await startHttp2()
  const stream = session.request({ ':method': 'POST', ':path': '/api' })
  stream.on('error', () => {})
  stream.write('{')
  const status = await new Promise((resolve) => stream.on('response', (headers) => resolve(headers[':status'])))

  expect(status).toBe(408)
  await expect.poll(one.text).toContain('408')
})

test('slow headers, and a silent connection, end', async () => {
  const silent = open()
  const prefix = open()
  prefix.socket.write('P')
  const slow = open()
  slow.socket.write('POST /api HTTP/1.1\r\nHo')

  expect(await silent.ended).toBe('')
  expect(await prefix.ended).toBe('')
  expect(await slow.ended).toContain('408')
})

test('a long address is 414, a compressed body 415, and parameters are refused, over both protocols', async () => {
  const session = await startHttp2()
  const get2 = async (path: string) => {
    const stream = session.request({ ':path': path })
    return await new Promise((resolve) => stream.on('response', (headers) => resolve(headers[':status'])))
  }
  const packed = { 'content-encoding': 'gzip' }

  for (const get of [async (path: string) => (await proxy.get(path)).status, get2]) {
    expect(await get(`/openapi.json?x=${'x'.repeat(17_000)}`)).toBe(414)
    expect(await get('/openapi.json?x=1')).toBe(400)
    expect(await get('/health?from=balancer')).toBe(200)
  }
  expect((await proxy.post(READ, packed)).status).toBe(415)
  expect((await postHttp2(session, READ, packed)).status).toBe(415)
  const asked = await fetch(`${proxy.url}/api?segment=paris`, { method: 'POST', body: JSON.stringify(READ) })
  expect(asked.status).toBe(400)
})

test('headers over 16 KiB are 431 over HTTP/1.1 and refused over HTTP/2', async () => {
  const one = open()
  one.socket.write(`${head()}X-Large: ${'x'.repeat(20_000)}\r\n\r\n`)
  expect(await one.ended).toContain('431')
  const session = await startHttp2()
  expect((await postHttp2(session, READ, { 'x-large': 'x'.repeat(20_000) })).status).toBe(431)
  expect((await postHttp2(session, READ, { 'x-large': 'x'.repeat(100_000) })).status).toBe(0)
})

test('rubbish is 400 and ends the connection', async () => {
  const rubbish = open()
  rubbish.socket.write('\x00\x01\x02\x03 not HTTP\r\n\r\n')

  const answer = await rubbish.ended
  expect(answer).toContain('400 Bad Request')
  expect(answer).toContain('{"status":"error","message":"not a valid HTTP request"}')
})

test('conflicting lengths are no way to smuggle a request', async () => {
  const smuggler = open()
  smuggler.socket.write(
    `${head()}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n`,
  )

  expect(await smuggler.ended).toMatch(/^HTTP\/1.1 400/)
})

test('rubbish after the preface of HTTP/2 ends the session', async () => {
  const rubbish = open()
  rubbish.socket.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'\xff'.repeat(100)}`)

  await rubbish.ended
})

test('a connection of HTTP/2 has 100 streams at once', async () => {
  const session = await startHttp2()
  await expect.poll(() => session.remoteSettings.maxConcurrentStreams).toBe(API_LIMITS.requestsPerConnection)
  const answers = await Promise.all(Array.from({ length: 300 }, () => postHttp2(session, READ)))

  expect(answers.every(({ status }) => status === 200)).toBe(true)
})

test('streams that are opened and reset in a flood end their session only', async () => {
  const session = await startHttp2()
  const ended = new Promise<void>((resolve) => session.once('close', () => resolve()))
  const flood = setInterval(() => {
    for (let i = 0; i < 200 && !session.closed && !session.destroyed; i++) {
      const stream = session.request({ ':method': 'POST', ':path': '/api' })
      stream.on('error', () => {})
      stream.close(constants.NGHTTP2_CANCEL)
    }
  }, 1)
  closing.push(() => clearInterval(flood))

  await ended
})

test('pipelined requests are answered in order; more than 100 at once are 429', async () => {
  const held: (() => void)[] = []
  behind.answer = ({ id, socket }) => {
    held.push(() => socket.write(encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)))
    return undefined
  }
  const client = open()
  client.socket.write(whole(JSON.stringify(READ)).repeat(150))
  await expect.poll(() => held.length).toBe(100)
  for (const release of held) release()
  const statuses = () => [...client.text().matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)
  await expect.poll(() => statuses().length).toBe(150)

  expect(statuses()).toEqual([...Array.from({ length: 100 }, () => '200'), ...Array.from({ length: 50 }, () => '429')])
})

test('writes that one client pipelines reach the node in order', async () => {
  const amounts = Array.from({ length: 60 }, (_, i) => i + 1)
  behind.received.length = 0
  behind.answer = ({ command, id }) =>
    command === 'SETROOMAVL'
      ? encodeReply('SETROOMAVL', id, { availability: 1 }, CONTEXT)
      : encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)
  const body = (amount: number) => ({
    command: 'SETROOMAVL',
    body: { property_id: 'p', room_type: 'r', date: '2026-12-24', amount },
  })
  const client = open()
  client.socket.write(amounts.map((amount) => whole(JSON.stringify(body(amount)))).join(''))
  await expect.poll(() => behind.received.length).toBe(60)

  expect(behind.received.map(({ fields }) => fields['amount'])).toEqual(amounts)
})

test('a client that goes away leaves nothing behind', async () => {
  behind.answer = () => undefined
  const client = open()
  client.socket.write(whole(JSON.stringify(READ)))
  const session = await openHttp2(proxy.url)
  void postHttp2(session, READ)
  await expect.poll(async () => (await proxy.get('/metrics')).text).toMatch(/api_inflight\{proto="http2"\} 1/)
  client.socket.destroy()
  session.destroy()

  await expect.poll(async () => (await proxy.get('/metrics')).text).toMatch(/api_connections\{proto="http2"\} 0/)
  const { text } = await proxy.get('/metrics')
  expect(text).toMatch(/api_inflight\{proto="http2"\} 0/)
})

test('connections beyond the limit are closed without a byte', async () => {
  const small = await startTestProxy({ mode: 'standalone', upstream_port: behind.port, max_active_conns: 2 })
  closing.push(small.stop)
  const [first, second] = [open(small.httpPort), open(small.httpPort)]
  await Promise.all([first, second].map(({ socket }) => new Promise((resolve) => socket.once('connect', resolve))))
  const third = open(small.httpPort)

  expect(await third.ended).toBe('')
  first.socket.destroy()
  await expect.poll(async () => (await small.get('/metrics')).text).toMatch(/reason="connections"\} [1-9]/)
})

const overTls = (options: object) => ({ ca: AUTHORITY, servername: 'localhost', ...options })

test('HTTPS serves HTTP/2 and HTTP/1.1 by ALPN', async () => {
  const session = await openHttp2(`https://127.0.0.1:${proxy.httpsPort}`, overTls({}))
  closing.push(() => session.destroy())
  expect(session.alpnProtocol).toBe('h2')
  expect(await postHttp2(session, READ)).toMatchObject({ status: 200 })

  const text = await new Promise<string>((resolve, reject) => {
    const request = getOverTls(`https://127.0.0.1:${proxy.httpsPort}/health`, overTls({ agent: false }), (response) => {
      response.setEncoding('utf8')
      let body = ''
      response.on('data', (piece: string) => {
        body += piece
      })
      response.on('end', () => resolve(body))
    })
    request.on('error', reject)
  })
  expect(text).toBe('{"status":"ok"}')
})

test('HTTPS refuses TLS below 1.2 and plain text, and keeps serving', async () => {
  const old = connectTls({
    port: proxy.httpsPort as number,
    ...overTls({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }),
  })
  const error = await new Promise<Error>((resolve) => old.once('error', resolve))
  expect(error.message).toMatch(/protocol version|alert/i)
  const plain = open(proxy.httpsPort)
  plain.socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
  expect(await plain.ended).not.toContain('200')
})

test('new connections get a changed certificate', async () => {
  const subject = () =>
    new Promise<string | undefined>((resolve, reject) => {
      const socket = connectTls({ port: proxy.httpsPort as number, ...overTls({}) }, () => {
        resolve(socket.getPeerCertificate().fingerprint256)
        socket.destroy()
      })
      socket.once('error', reject)
    })
  const before = await subject()
  writeFileSync(inFolder('cert.pem'), CALLER.cert)
  writeFileSync(inFolder('key.pem'), CALLER.key)

  proxy.setTls(loadTls({ cert: inFolder('cert.pem'), key: inFolder('key.pem') }))

  expect(await subject()).not.toBe(before)
})

test('a stop answers what is in flight in both protocols, and takes no more', async () => {
  const ending = await startTestProxy({ mode: 'standalone', upstream_port: behind.port })
  await expect.poll(async () => (await ending.get('/ready')).status).toBe(200)
  const held: (() => void)[] = []
  behind.answer = ({ id, socket }) => {
    held.push(() => socket.write(encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)))
    return undefined
  }
  const session = await openHttp2(ending.url)
  const answers = [ending.post(READ), postHttp2(session, READ)]
  const idle = open(ending.httpPort)
  await expect.poll(() => held.length).toBe(2)

  const stopped = ending.stop()
  await idle.ended
  for (const release of held) release()

  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200])
  await stopped
  await expect(ending.get('/health')).rejects.toThrow()
})
