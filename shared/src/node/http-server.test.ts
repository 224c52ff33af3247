import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { request as requestTls } from 'node:https'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { makeCertificate, type TestCertificate } from '../testing/certificates.ts'
import {
  asHttpError,
  dropRest,
  type HttpServer,
  type HttpServerOptions,
  LISTENER_LIMITS,
  openHttpServer,
  readRequestBody,
} from './http-server.ts'
import type { TlsMaterial } from './tls.ts'

const LONG_MS = 600_000
const HOST = '127.0.0.1'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function open(
  handler: RequestListener,
  options: Partial<HttpServerOptions> = {},
): Promise<{ server: HttpServer; port: number }> {
  const server = openHttpServer(
    {
      tls: undefined,
      serverName: 'Vacancy/test',
      host: HOST,
      port: 0,
      connectionsMax: 100,
      requestTimeoutMs: LONG_MS,
      ...options,
    },
    handler,
  )
  cleanUp.push(() => server.close(0))
  return { server, port: await server.listening }
}

async function dial(port: number): Promise<Socket> {
  const socket = connect({ host: HOST, port })
  cleanUp.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Everything the other side sends until it closes. */
async function received(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket.setEncoding('latin1')) text += chunk
  return text
}

async function exchange(port: number, bytes: string): Promise<string> {
  const socket = await dial(port)
  socket.write(bytes)
  return await received(socket)
}

/** Reads the body up to 10 bytes, and answers with it or with the refusal. */
const readTen: RequestListener = async (request, response) => {
  try {
    response.end(await readRequestBody(request, 10))
  } catch (error) {
    const { status, message } = asHttpError(error)
    response.writeHead(status).end(message)
    dropRest(request)
  }
}

const head = (more = '') => `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`

/** A request that is sent before the response to it is read. */
const longPost = (bytes: number, isChunked: boolean) => {
  const length = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes}`
  const body = 'x'.repeat(bytes)
  const sent = isChunked ? `${bytes.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
  return `POST / HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n${sent}`
}

test.each([
  ['in chunks', true],
  ['with a length', false],
])('after a body %s is refused before its end, the connection serves the next request', async (_how, isChunked) => {
  const { port } = await open(readTen)

  const text = await exchange(port, longPost(3_000_000, isChunked) + head())

  expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200'])
})

test('a request that does not end after its response is read up to 4 MiB', async () => {
  const { port } = await open(readTen)
  const socket = await dial(port)
  // Bytes that are not read any more reset the connection.
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const sent = 2 * LISTENER_LIMITS.droppedBytesMax

  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * sent}\r\n\r\n`)
  socket.write('x'.repeat(sent))
  const answered = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(bytes.toString('latin1'))))

  expect(await answered).toMatch(/^HTTP\/1.1 413 /)
  await closed
})

test('headers below 16 KiB are read, and larger ones are refused', async () => {
  const { port } = await open((_request, response) => response.end('read'))
  // Node counts the path, and the names and values of headers: `/`, `Host`, `a`, `Connection`, `close`, `X`.
  const others = 1 + 4 + 1 + 10 + 5 + 1

  expect(await exchange(port, head(`X: ${'x'.repeat(16_383 - others)}\r\n`))).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  expect(await exchange(port, head(`X: ${'x'.repeat(16_384 - others)}\r\n`))).toBe(
    [
      'HTTP/1.1 431 Request Header Fields Too Large',
      'Server: Vacancy/test',
      'Content-Type: application/json',
      'Content-Length: 38',
      'Connection: close',
      '',
      '{"error":"headers exceed 16384 bytes"}',
    ].join('\r\n'),
  )
})

test('an address of more than Node reads is refused as too long', async () => {
  const { port } = await open((_request, response) => response.end('read'))

  expect(await exchange(port, `GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)).toMatch(/^HTTP\/1.1 414 /)
})

test('input that is not HTTP is refused with a response, but not after another response', async () => {
  const { port } = await open((_request, response) => response.end('first'))
  const refusal =
    /^HTTP\/1.1 400 Bad Request\r\nServer: Vacancy\/test\r\n.*\r\n\r\n\{"error":"not a valid HTTP request"\}$/s

  expect(await exchange(port, 'HELLO\r\n\r\n')).toMatch(refusal)
  const socket = await dial(port)
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(socket, 'data')
  socket.write('HELLO\r\n\r\n')
  expect(await received(socket)).toBe('')
})

test('connections up to the limit are served, and one more is closed', async () => {
  const { port } = await open((_request, response) => response.end('served'), { connectionsMax: 2 })
  await dial(port)
  const second = await dial(port)

  const third = connect({ host: HOST, port })
  third.on('error', () => {})
  await once(third, 'close')
  second.write(head())

  expect(await received(second)).toContain('served')
})

test.each([
  ['10 bytes with their length', 'Content-Length: 10\r\n\r\n0123456789', '200', '0123456789'],
  ['11 bytes with their length', 'Content-Length: 11\r\n\r\n0123456789a', '413', 'the body exceeds 10 bytes'],
  ['a length of 11 bytes that do not come', 'Content-Length: 11\r\n\r\n', '413', 'the body exceeds 10 bytes'],
  [
    '10 bytes in chunks',
    'Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n',
    '200',
    '0123456789',
  ],
  [
    '11 bytes in chunks',
    'Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n7\r\n456789a\r\n',
    '413',
    'the body exceeds 10',
  ],
  ['no body', '\r\n', '200', ''],
])('a body of %s is read up to the limit', async (_, rest, status, text) => {
  const { port } = await open(readTen)

  const answer = await exchange(port, `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${rest}`)

  expect(answer.split(' ')[1]).toBe(status)
  expect(answer.split('\r\n\r\n')[1]).toContain(text)
})

function materialOf({ cert, key }: TestCertificate, clientCa?: string): TlsMaterial {
  return { cert, key, clientCa, notBeforeMs: 0, notAfterMs: 0, fingerprint: '' }
}

async function getTls(port: number, options: object): Promise<string> {
  const outgoing = requestTls({ host: HOST, port, agent: false, ...options }).end()
  try {
    const [answer] = await once(outgoing, 'response')
    let text = ''
    for await (const chunk of answer) text += chunk
    return text
  } catch {
    return 'refused'
  }
}

test('a certificate can be changed for new connections, and an unusable one changes nothing', async () => {
  const [first, second] = [makeCertificate({ subject: 'first' }), makeCertificate({ subject: 'second' })]
  const { server, port } = await open((_request, response) => response.end('served'), { tls: materialOf(first) })
  const areTrusted = async () => [await getTls(port, { ca: first.cert }), await getTls(port, { ca: second.cert })]
  expect(await areTrusted()).toEqual(['served', 'refused'])

  expect(() => server.setTls(materialOf({ ...second, key: first.key }))).toThrow()
  expect(await areTrusted()).toEqual(['served', 'refused'])
  server.setTls(materialOf(second))
  expect(await areTrusted()).toEqual(['refused', 'served'])
})

test('with client authorities a client needs a certificate of theirs', async () => {
  const authority = makeCertificate({ subject: 'authority', isAuthority: true })
  const pair = makeCertificate({ subject: 'node' })
  const client = makeCertificate({ subject: 'client', issuer: authority })
  const { port } = await open((_request, response) => response.end('served'), { tls: materialOf(pair, authority.cert) })

  expect(await getTls(port, { ca: pair.cert, cert: client.cert, key: client.key })).toBe('served')
  expect(await getTls(port, { ca: pair.cert })).toBe('refused')
  const stranger = makeCertificate({ subject: 'stranger' })
  expect(await getTls(port, { ca: pair.cert, cert: stranger.cert, key: stranger.key })).toBe('refused')
})
