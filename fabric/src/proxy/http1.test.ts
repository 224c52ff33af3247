import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { duplexPair } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { encodeReply } from '@vacancy/shared/wire'
import { eventually } from '@vacancy/testkit/until'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { SERVER } from '../testing/certificates.ts'
import { API_LIMITS, responseHead } from './exchange.ts'
import { readPlainHead, servePlain } from './http1.ts'
import { CONTEXT, openStandIn, type StandIn } from './testing/stand-in.ts'
import { startTestProxy, type TestProxy } from './testing/start.ts'

const READ = JSON.stringify({ command: 'PROPEXIST', body: { property_id: 'p1' } })
const LIST = JSON.stringify({ command: 'PROPROOMLIST', body: { property_id: 'p1' } })

let behind: StandIn
let proxy: TestProxy
const open: Socket[] = []

beforeAll(async () => {
  behind = await openStandIn('node')
  proxy = await startTestProxy({ mode: 'standalone', upstream_port: behind.port, timeout_sec: 30 })
  await eventually(async () => expect((await proxy.get('/ready')).status).toBe(200))
})

afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy()
  behind.answer = ({ id }) => encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)
})

afterAll(async () => {
  await proxy.stop()
  await behind.close()
})

const request = (body: string, headers = '', start = 'POST /api HTTP/1.1') =>
  `${start}\r\nHost: x\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

function dial() {
  const socket = connect({ port: proxy.httpPort as number, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  socket.on('error', () => {})
  open.push(socket)
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece
  })
  const answers = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
  return { socket, text: () => text, answers, ended: new Promise<void>((resolve) => socket.once('end', resolve)) }
}

/** Names and values of a response's header, without those that differ each time. */
const fieldsOf = (text: string) =>
  text
    .slice(0, text.indexOf('\r\n\r\n'))
    .split('\r\n')
    .slice(1)
    .filter((line) => !/^(Date|X-Request-Id):/.test(line))
    .sort()

// Node's parser, which is what all other requests are read by.

type Parsed = { readonly url: string; readonly headers: IncomingMessage['headers']; readonly body: string }

/** How the HTTP server of Node reads the bytes; undefined if it refuses them or waits for more. */
async function readByNode(bytes: Buffer): Promise<Parsed | undefined> {
  let parsed: Parsed | undefined
  const server = createServer((incoming) => {
    let body = ''
    incoming.setEncoding('latin1').on('data', (piece: string) => {
      body += piece
    })
    incoming.on('end', () => {
      parsed = { url: incoming.url ?? '', headers: incoming.headers, body }
    })
  })
  server.on('clientError', () => {})
  const [near, far] = duplexPair()
  near.on('error', () => {})
  far.on('error', () => {})
  server.emit('connection', far)
  near.write(bytes)
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
  near.destroy()
  far.destroy()
  return parsed
}

/** Heads of requests: most are valid or nearly so. */
const line = fc.oneof(
  fc.constantFrom(
    'Accept: */*',
    'Connection: keep-alive',
    'Connection: close',
    'connection: Keep-Alive, x',
    'Content-Length: 2',
    'content-length: 02',
    'Content-Length: 3',
    'Content-Length : 2',
    'Content-Length: 2, 2',
    'Content-Length: +2',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding : x',
    'Expect: 100-continue',
    'Upgrade: h2c',
    'Host: y',
    'X-Request-Id: \t a b \t ',
    ' folded: 1',
    'no colon',
    ': no name',
    'X:',
    'X-Nul: a\0b',
    'X-Cr: a\rb',
    'X-Lf: a\nb',
    'X-High: \xa0\xff\xa0',
  ),
  fc.tuple(fc.string({ maxLength: 6 }), fc.string({ unit: 'binary', maxLength: 6 })).map(([a, b]) => `${a}:${b}`),
)

test('whatever is read here is what the HTTP server of Node reads', async () => {
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 4 }), fc.boolean(), async (lines, hasBasics) => {
      const head = [...(hasBasics ? ['Host: x', 'Content-Length: 2'] : []), ...lines].join('\r\n')
      const bytes = Buffer.from(`POST /api HTTP/1.1\r\n${head}\r\n\r\n{}`, 'latin1')
      const plain = readPlainHead(bytes)
      if (!plain || plain.bytes + plain.bodyBytes !== bytes.length) return
      accepted++
      const body = bytes.toString('latin1', plain.bytes)
      expect(await readByNode(bytes)).toEqual({ url: '/api', headers: Object.fromEntries(plain.fields), body })
    }),
    { numRuns: 400 },
  )

  // About one in eight.
  expect(accepted).toBeGreaterThan(5)
})

test.each([
  ['another path', 'POST /ap HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'],
  ['another version', 'POST /api HTTP/1.0\r\nHost: x\r\nContent-Length: 0\r\n\r\n'],
  ['no header', 'POST /api HTTP/1.1\r\n\r\n'],
  ['no host', 'POST /api HTTP/1.1\r\nContent-Length: 0\r\n\r\n'],
  ['no length', 'POST /api HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two lengths', 'POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n'],
  [
    'a body that is too large',
    `POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: ${API_LIMITS.bodyBytesMax + 1}\r\n\r\n`,
  ],
  ['bare line feeds', 'POST /api HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n'],
  ['an unfinished head', 'POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n'],
  ['too many headers', request('', Array.from({ length: API_LIMITS.headersMax }, (_, n) => `A${n}: b\r\n`).join(''))],
  ['headers that are too large', request('', `A: ${'b'.repeat(16_384)}\r\n`)],
])('%s is left to the HTTP server', (_name, text) => {
  expect(readPlainHead(Buffer.from(text, 'latin1'))).toBeUndefined()
})
test('a head with blanks only is read in time that grows with its length', () => {
  const blanks = Buffer.from(request('', `A: ${' '.repeat(16_000)}\x01\r\n`), 'latin1')
  // With a backtracking expression these would take minutes.
  for (let n = 0; n < 200; n++) expect(readPlainHead(blanks)).toBeUndefined()
})

// Over sockets

test.each([
  ['a success', READ],
  ['a refusal', '{"command":"NONE"}'],
  ['no JSON', '{'],
])('%s has the same header and body as from the HTTP server', async (_name, body) => {
  const plain = dial()
  const other = dial()
  plain.socket.write(request(body))
  other.socket.write(request(body, '', 'POST /api/ HTTP/1.1'))
  await expect.poll(() => plain.answers().length + other.answers().length).toBe(2)
  const bodyOf = (text: string) => text.slice(text.indexOf('\r\n\r\n'))
  await expect.poll(() => bodyOf(plain.text())).toBe(bodyOf(other.text()))

  expect(fieldsOf(plain.text())).toEqual(fieldsOf(other.text()))
  expect(plain.text()).toMatch(/\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\n/)
  expect(plain.text()).toMatch(/\r\nX-Request-Id: \S+\r\n/)
})

test('a connection changes to the HTTP server at any request, and answers all', async () => {
  const client = dial()
  client.socket.write(request(READ))
  await expect.poll(client.answers).toEqual([200])
  client.socket.write(request(READ))
  await expect.poll(client.answers).toEqual([200, 200])
  client.socket.write(request(READ, 'X-Request-Id: mine\r\n'))
  await expect.poll(client.answers).toEqual([200, 200, 200])
  expect(client.text()).toContain('X-Request-Id: mine')
  client.socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
  await expect.poll(client.answers).toEqual([200, 200, 200, 200])
  client.socket.write(request(READ))
  await expect.poll(client.answers).toEqual([200, 200, 200, 200, 200])
  client.socket.write('rubbish\r\n\r\n')
  await client.ended

  expect(client.answers()).toEqual([200, 200, 200, 200, 200, 400])
})

test('head and body may arrive apart, and a request before the response to the last', async () => {
  const parts = dial()
  const whole = request(READ)
  parts.socket.write(whole.slice(0, -READ.length))
  await new Promise((resolve) => setImmediate(resolve))
  parts.socket.write(READ)
  await expect.poll(parts.answers).toEqual([200])

  const held: (() => void)[] = []
  behind.answer = ({ id, socket }) => {
    held.push(() => socket.write(encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)))
    return undefined
  }
  const early = dial()
  early.socket.write(request(READ, 'X-Request-Id: one\r\n'))
  await expect.poll(() => held.length).toBe(1)
  early.socket.write(request(READ, 'X-Request-Id: two\r\n'))
  held.shift()?.()
  await expect.poll(() => held.length).toBe(1)
  // Both at once, so that the HTTP server continues, with two requests in flight.
  early.socket.write(request(READ, 'X-Request-Id: three\r\n') + request(READ, 'X-Request-Id: four\r\n'))
  held.shift()?.()
  await expect.poll(() => held.length).toBe(2)
  for (const release of held.reverse()) release()
  await expect.poll(early.answers).toEqual([200, 200, 200, 200])

  const ids = [...early.text().matchAll(/X-Request-Id: (\w+)/g)].map(([, id]) => id)
  expect(ids).toEqual(['one', 'two', 'three', 'four'])
})

test('the same over TLS', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-http1-'))
  const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
  writeFileSync(cert, SERVER.cert)
  writeFileSync(key, SERVER.key)
  const secure = await startTestProxy({
    ...{ mode: 'standalone', upstream_port: behind.port, http_enabled: false, https_enabled: true },
    ...{ tls_cert_path: cert, tls_key_path: key },
  })
  const socket = connectTls({ port: secure.httpsPort as number, host: '127.0.0.1', rejectUnauthorized: false })
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece
  })
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
  await eventually(async () => {
    text = ''
    socket.write(request(READ))
    await eventually(() => expect(statuses()).toEqual([200]))
  })
  expect(text).toContain('Keep-Alive: timeout=75')
  socket.write(request(READ, 'Accept: */*\r\n'))
  await expect.poll(statuses).toEqual([200, 200])
  socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
  await expect.poll(statuses).toEqual([200, 200, 200])
  socket.write(request(READ))
  await expect.poll(statuses).toEqual([200, 200, 200, 200])
  socket.destroy()
  await secure.stop()
  rmSync(folder, { recursive: true })
})

test('a client that sends no more gets its response, then the end', async () => {
  const client = dial()
  client.socket.end(request(READ))
  await client.ended

  expect(client.answers()).toEqual([200])
  expect(client.text()).toContain('Connection: close')
})

test('memory of a body is kept exactly while the client does not take it', async () => {
  // The buffers of a local socket are much smaller than those of TCP.
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-http1-'))
  const kept: boolean[] = []
  const room = 1024
  const server = createTcpServer((socket) => {
    const connection = {
      socket,
      remote: '',
      proto: 'http1',
      session: undefined,
      inFlight: 0,
      onEnd: undefined,
    } as const
    servePlain(connection, undefined, 1000, {
      isClosing: () => false,
      count: () => {},
      handOver: () => expect.unreachable(),
      handle: (exchange) => {
        const bytes = kept.length === 0 ? 10 : 4 << 20
        const body = Buffer.alloc(room + bytes, 'x').subarray(room)
        kept.push(exchange.respond({ status: 200, head: responseHead({}), id: '1', body, room }))
      },
    })
  })
  const place = path.join(folder, 's')
  await new Promise<void>((resolve) => server.listen(place, resolve))
  const socket = connect(place)
  open.push(socket)
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  socket.write(request(READ))
  await expect.poll(() => bytes).toBeGreaterThan(10)
  expect(kept).toEqual([false])
  socket.pause()
  socket.write(request(READ))
  await expect.poll(() => kept).toEqual([false, true])
  socket.resume()
  await expect.poll(() => bytes).toBeGreaterThan(4 << 20)
  socket.destroy()
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true })
})

test('a large response that is not read keeps its bytes, and holds back the next request', async () => {
  const large = Array.from({ length: 60_000 }, (_, n) => `${'a'.repeat(240)}${n}`)
  const replies = [large, ['b'], ['c']]
  behind.received.length = 0
  behind.answer = ({ id }) => encodeReply('PROPROOMLIST', id, { roomTypes: replies.shift() ?? [] }, CONTEXT)
  const slow = dial()
  slow.socket.pause()
  slow.socket.write(request(LIST))
  await expect.poll(() => behind.received.length).toBe(1)
  slow.socket.write(request(LIST))
  const quick = dial()
  quick.socket.write(request(LIST))
  const jsonOf = (text: string) => JSON.parse(text.slice(text.indexOf('\r\n\r\n')))
  await expect.poll(() => quick.text().endsWith('}')).toBe(true)
  // The second request of the slow one has not been sent.
  expect(behind.received).toHaveLength(2)
  expect(slow.answers()).toEqual([])
  expect(jsonOf(quick.text()).room_types).toEqual(['b'])
  slow.socket.resume()
  await expect.poll(() => behind.received.length).toBe(3)
  await expect.poll(() => slow.text().endsWith('}') && slow.answers().length === 2, { timeout: 25_000 }).toBe(true)

  const [first = '', second = ''] = slow.text().split(/(?<=\})(?=HTTP\/1\.1 200)/)
  expect(jsonOf(first).room_types).toEqual(large)
  expect(jsonOf(second).room_types).toEqual(['c'])
})
