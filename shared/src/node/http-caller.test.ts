import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { VacancyError } from '../errors.ts'
import { makeCertificate } from '../testing/certificates.ts'
import {
  type HttpCaller,
  type HttpRequest,
  type HttpResult,
  openHttpCaller,
  parseRegistryAddresses,
} from './http-caller.ts'

const WAIT = { timeout: 30_000, interval: 2 }
/** Ends a test that hangs. */
const LONG_MS = 20_000

let folder: string
let lines: string[]
const cleanUp: (() => void)[] = []

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-caller-'))
  lines = []
})

afterEach(() => {
  for (const step of cleanUp.splice(0).reverse()) step()
  rmSync(folder, { recursive: true, force: true })
})

function put(name: string, text: string): string {
  const file = path.join(folder, name)
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
  return file
}

type Options = Omit<Parameters<typeof openHttpCaller>[0], 'name' | 'log'>

function open(options: Options = {}): HttpCaller {
  const keep = (_fields: object, message: string) => void lines.push(message)
  const log = { debug: keep, info: keep, warn: keep, error: keep }
  const caller = openHttpCaller({ name: 'registry', log, lookMs: 600_000, ...options })
  cleanUp.push(caller.close)
  return caller
}

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.push(() => server.close())
  return (server.address() as AddressInfo).port
}

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler)
  cleanUp.push(() => server.closeAllConnections())
  return `http://127.0.0.1:${await listen(server)}`
}

function call(caller: HttpCaller, base: string, request: Partial<HttpRequest> = {}): Promise<HttpResult> {
  return new Promise((resolve) => {
    caller.request(base, { method: 'GET', path: '/', timeoutMs: LONG_MS, ...request }, resolve)
  })
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

test('a request has its method, path, headers, token and body, and the answer its status, headers and body', async () => {
  const token = put('token', 'secret \nsecond line\n')
  const base = await serve(async (request, response) => {
    const { method, url, headers } = request
    const body = await textOf(request)
    response.writeHead(201, {
      ETag: '"7"',
      'Content-Type': 'application/json',
      'Cache-Control': 'max-age=5',
      'X-Registry-Stale': '1',
    })
    response.end(JSON.stringify({ method, url, headers, body }))
  })

  const answer = await call(open({ tokenFile: token }), `${base}/base//`, {
    method: 'POST',
    path: '/path?query=1',
    headers: { 'If-None-Match': '"6"' },
    body: '{"name":"é"}',
  })

  expect(answer).toMatchObject({
    kind: 'answer',
    status: 201,
    etag: '"7"',
    contentType: 'application/json',
    cacheControl: 'max-age=5',
    isStale: true,
  })
  const { headers, ...received } = JSON.parse((answer as { body: string }).body)
  expect(received).toEqual({ method: 'POST', url: '/base/path?query=1', body: '{"name":"é"}' })
  expect(headers).toMatchObject({
    authorization: 'Bearer secret',
    'if-none-match': '"6"',
    'content-type': 'application/json',
    'content-length': '13',
  })
})

test('without files, body and headers there is nothing of them', async () => {
  const base = await serve(({ headers }, response) => {
    response.removeHeader('date')
    response.end(Object.keys(headers).sort().join())
  })

  expect(await call(open(), base)).toEqual({
    kind: 'answer',
    status: 200,
    etag: '',
    contentType: '',
    cacheControl: '',
    isStale: false,
    body: 'connection,host',
  })
})

test('a response of the limit is passed on, and one byte more is not', async () => {
  const base = await serve(({ url = '' }, response) => {
    // In two parts, so that only their sum is too large.
    const bytes = Number(url.slice(1))
    response.write(Buffer.alloc(bytes - 1, 'x'))
    response.end('y')
  })
  const caller = open()
  const results: string[] = []
  const sizeOf = async (bytes: number, bytesMax?: number) => {
    const result = await call(caller, base, { path: `/${bytes}`, ...(bytesMax !== undefined && { bytesMax }) })
    results.push(result.kind)
    return result.kind === 'answer' ? result.body.length : result.reason
  }

  expect(await sizeOf(1_000, 1_000)).toBe(1_000)
  expect(await sizeOf(1_001, 1_000)).toBe('its response exceeds 1000 bytes')
  // Without a limit of its own: 32 MiB of segments and 64 KiB for their quotes.
  expect(await sizeOf(33_619_968)).toBe(33_619_968)
  expect(await sizeOf(33_619_969)).toBe('its response exceeds 33619968 bytes')
  expect(results).toEqual(['answer', 'failed', 'answer', 'failed'])
})

test.each([
  ['that never comes', () => {}],
  ['whose end never comes', (response: ServerResponse) => response.write('half')],
])('a response %s fails after its time, and its connection ends', async (_, respond) => {
  const ended = Promise.withResolvers<void>()
  const base = await serve((request, response) => {
    request.socket.once('close', () => ended.resolve())
    respond(response)
  })

  const result = await call(open(), base, { timeoutMs: 50 })

  expect(result).toEqual({ kind: 'failed', reason: 'no response within 50 ms' })
  await ended.promise
})

test('a connection that is refused or lost fails with its reason', async () => {
  const server = createTcpServer()
  const port = await listen(server)
  server.close()
  const half = await serve((_request, response) => {
    response.writeHead(200, { 'Content-Length': '10' })
    response.write('half', () => response.destroy())
  })

  expect(await call(open(), `http://127.0.0.1:${port}`)).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining('ECONNREFUSED'),
  })
  expect(await call(open(), half)).toEqual({ kind: 'failed', reason: 'aborted' })
})

test('a request calls back after it returned, once, and not after it was cancelled', async () => {
  const waiting: ServerResponse[] = []
  const base = await serve(({ url }, response) => {
    if (url === '/wait') waiting.push(response)
    else response.end('now')
  })
  const caller = open()
  const results: string[] = []
  const keep = (name: string) => (result: HttpResult) => results.push(`${name} ${result.kind}`)

  const cancel = caller.request(base, { method: 'GET', path: '/wait', timeoutMs: LONG_MS }, keep('cancelled'))
  await vi.waitUntil(() => waiting.length === 1, WAIT)
  const [response] = waiting
  const closed = once(response as ServerResponse, 'close')
  cancel()
  await closed
  const early = caller.request(base, { method: 'GET', path: '/', timeoutMs: LONG_MS }, keep('early'))
  early()
  caller.request(base, { method: 'GET', path: '/', timeoutMs: LONG_MS }, keep('answered'))
  results.push('returned')
  await vi.waitUntil(() => results.length === 2, WAIT)
  await call(caller, base)

  expect(results).toEqual(['returned', 'answered answer'])
})

/**
 * A server that speaks HTTP over raw sockets: `react` gets each request as text with the number of its connection and
 * of the request on it, and answers, or resets the connection.
 */
async function serveRaw(
  react: (answer: (body: string) => void, reset: () => void, at: readonly [number, number]) => void,
) {
  const requests: string[] = []
  let connections = 0
  const server = createTcpServer((socket: Socket) => {
    const connection = ++connections
    let count = 0
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (data) => {
      text += data
      const [head = '', rest] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (rest === undefined || rest.length < length) return
      requests.push(text)
      text = ''
      const answer = (body: string) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      react(answer, () => socket.resetAndDestroy(), [connection, ++count])
    })
    cleanUp.push(() => socket.destroy())
  })
  return { base: `http://127.0.0.1:${await listen(server)}`, requests }
}

test('a request on a kept connection that the other side resets is sent again, on a new one', async () => {
  const { base, requests } = await serveRaw((answer, reset, [connection, count]) => {
    if (connection === 1 && count === 2) reset()
    else answer(`connection ${connection}`)
  })
  const caller = open({ tokenFile: put('token', 'secret') })
  const request = { method: 'POST', path: '/p', headers: { 'X-Own': 'a' }, body: '{"a":1}' } as const

  expect(await call(caller, base)).toMatchObject({ body: 'connection 1' })
  expect(await call(caller, base, request)).toMatchObject({ kind: 'answer', body: 'connection 2' })

  expect(requests).toHaveLength(3)
  expect(requests[1]).toBe(requests[2])
  expect(requests[2]).toContain('X-Own: a')
  expect(requests[2]).toContain('Bearer secret')
  expect(requests[2]).toMatch(/\{"a":1\}$/)
})

test('the second try of a request has its limits of size and time', async () => {
  const { base } = await serveRaw((answer, reset, [, count]) => {
    if (count === 2) reset()
    else answer('12345')
  })
  const caller = open()
  await call(caller, base)
  expect(await call(caller, base, { bytesMax: 4 })).toEqual({ kind: 'failed', reason: 'its response exceeds 4 bytes' })

  // The connection of the failed request is closed: this is a new one, then a reset, then one without an answer.
  const other = await serveRaw((answer, reset, [connection, count]) => {
    if (count === 2) reset()
    else if (connection === 1) answer('kept')
  })
  await call(caller, other.base)
  expect(await call(caller, other.base, { timeoutMs: 50 })).toEqual({
    kind: 'failed',
    reason: 'no response within 50 ms',
  })
})

test('a request is sent twice at most, and once where its connection is new', async () => {
  let areReset = false
  const held: (() => void)[] = []
  const { base, requests } = await serveRaw((answer, reset) => {
    if (areReset) reset()
    else held.push(() => answer('ok'))
  })
  const caller = open()
  // Two kept connections.
  const both = [call(caller, base), call(caller, base)]
  await vi.waitUntil(() => held.length === 2, WAIT)
  for (const answer of held) answer()
  await Promise.all(both)

  areReset = true
  expect(await call(caller, base)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('ECONNRESET') })
  expect(requests).toHaveLength(4)
  expect(await call(caller, base)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('ECONNRESET') })
  expect(requests).toHaveLength(5)
})

test('cancelling a request that was sent again ends its second try', async () => {
  const second = Promise.withResolvers<(body: string) => void>()
  const { base } = await serveRaw((answer, reset, [connection, count]) => {
    if (connection === 1 && count === 2) reset()
    else if (connection === 2 && count === 1) second.resolve(answer)
    else answer('ok')
  })
  const caller = open()
  await call(caller, base)
  const results: HttpResult[] = []

  const cancel = caller.request(base, { method: 'GET', path: '/', timeoutMs: LONG_MS }, (result) =>
    results.push(result),
  )
  const answer = await second.promise
  cancel()
  answer('late')
  await call(caller, base)

  expect(results).toEqual([])
})

test('eight requests run at once, on connections that are kept until the caller closes', async () => {
  const waiting: ServerResponse[] = []
  let most = 0
  let connections = 0
  const server = createServer((_request, response) => {
    waiting.push(response)
    most = Math.max(most, waiting.length)
  })
  server.on('connection', (socket) => {
    connections++
    socket.once('close', () => connections--)
  })
  const base = `http://127.0.0.1:${await listen(server)}`
  const caller = open()

  const calls = Array.from({ length: 20 }, () => call(caller, base))
  for (let answered = 0; answered < 20; ) {
    await vi.waitUntil(() => waiting.length === Math.min(8, 20 - answered), WAIT)
    waiting.shift()?.end()
    answered++
  }
  await Promise.all(calls)

  expect(most).toBe(8)
  expect(connections).toBe(8)
  caller.close()
  await vi.waitUntil(() => connections === 0, WAIT)
})

async function serveTls(options: object = {}) {
  const pair = makeCertificate({ subject: 'registry' })
  const server = createTlsServer({ cert: pair.cert, key: pair.key, ...options }, (request, response) => {
    const socket = request.socket as TLSSocket
    const peer = socket.getPeerCertificate()
    response.end(JSON.stringify({ name: socket.servername, peer: peer.subject?.CN ?? '' }))
  })
  server.on('tlsClientError', () => {})
  cleanUp.push(() => server.closeAllConnections())
  return { port: await listen(server), pair }
}

test('the authorities of the file decide which servers are trusted', async () => {
  const { port, pair } = await serveTls()
  const base = `https://127.0.0.1:${port}`
  const other = makeCertificate({ subject: 'other' })

  expect(await call(open(), base)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('self-signed') })
  expect(await call(open({ caFile: put('other.pem', other.cert) }), base)).toMatchObject({ kind: 'failed' })
  expect(await call(open({ caFile: put('ca.pem', pair.cert) }), base)).toMatchObject({
    kind: 'answer',
    body: '{"name":false,"peer":""}',
  })
})

test('the name of a server replaces its host, in the handshake and in the check of its certificate', async () => {
  const { port, pair } = await serveTls()
  const caFile = put('ca.pem', pair.cert)
  const base = `https://127.0.0.1:${port}`

  expect(await call(open({ caFile, serverName: 'localhost' }), base)).toMatchObject({
    body: '{"name":"localhost","peer":""}',
  })
  expect(await call(open({ caFile, serverName: 'elsewhere' }), base)).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining("does not match certificate's altnames"),
  })
})

test('the own certificate is shown when both of its files are given', async () => {
  const authority = makeCertificate({ subject: 'authority', isAuthority: true })
  const own = makeCertificate({ subject: 'node 1', issuer: authority })
  const { port, pair } = await serveTls({ requestCert: true, rejectUnauthorized: false, ca: authority.cert })
  const caFile = put('ca.pem', pair.cert)
  const [certFile, keyFile] = [put('cert.pem', own.cert), put('key.pem', own.key)]
  const peerOf = async (options: Options) => {
    const result = await call(open({ caFile, ...options }), `https://127.0.0.1:${port}`)
    return result.kind === 'answer' ? JSON.parse(result.body).peer : result.reason
  }

  expect(await peerOf({ certFile, keyFile })).toBe('node 1')
  expect(await peerOf({ certFile })).toBe('')
  expect(await peerOf({ keyFile })).toBe('')
})

test('files that cannot be used are refused by name', () => {
  const pair = makeCertificate({ subject: 'node' })
  const other = makeCertificate({ subject: 'other' })
  const faultOf = (options: Options): string => {
    try {
      open(options)
    } catch (error) {
      return `${(error as VacancyError).code}: ${(error as Error).message.replaceAll(`${folder}/`, '')}`
    }
    return 'opened'
  }
  const missing = path.join(folder, 'none')

  expect(faultOf({ caFile: missing })).toMatch(/^invalid_tls: none cannot be read: ENOENT/)
  expect(faultOf({ caFile: put('key.pem', pair.key) })).toBe('invalid_tls: key.pem holds no certificate in PEM form')
  expect(faultOf({ certFile: put('cert.pem', pair.cert), keyFile: put('other.pem', other.key) })).toBe(
    'invalid_tls: other.pem is not the key of the certificate in cert.pem',
  )
  expect(faultOf({ tokenFile: missing })).toMatch(/^invalid_tokens: none cannot be read: ENOENT/)
  expect(faultOf({ tokenFile: put('token', 'two words') })).toBe(
    'invalid_tokens: token holds no token in its first line',
  )
})

test('a file that changes is used for the next requests, and one that cannot be used changes nothing', async () => {
  const base = await serve(({ headers, socket }, response) => {
    response.end(`${headers.authorization} ${socket.remotePort}`)
  })
  const tokenFile = put('token', 'first')
  const caller = open({ tokenFile, lookMs: 2 })
  const body = async () => ((await call(caller, base)) as { body: string }).body.split(' ')
  const [, token, port] = await body()
  expect(token).toBe('first')

  put('token', 'two words')
  await vi.waitUntil(() => lines.length === 1, WAIT)
  expect(lines).toEqual(['registry token or authorities unusable, keeping the old ones'])
  expect(await body()).toEqual(['Bearer', 'first', port])

  put('token', 'second')
  await vi.waitUntil(() => lines.length === 2, WAIT)
  expect(lines[1]).toBe('registry token and authorities reloaded')
  const [, next, nextPort] = await body()
  expect(next).toBe('second')
  // A connection was opened with the old files.
  expect(nextPort).not.toBe(port)
})

test('authorities that change are trusted, and a closed caller reads them no more', async () => {
  const { port, pair } = await serveTls()
  const caFile = put('ca.pem', makeCertificate({ subject: 'other' }).cert)
  const caller = open({ caFile, lookMs: 2 })
  const base = `https://127.0.0.1:${port}`
  expect(await call(caller, base)).toMatchObject({ kind: 'failed' })

  put('ca.pem', pair.cert)
  await vi.waitUntil(() => lines.length === 1, WAIT)
  expect(await call(caller, base)).toMatchObject({ kind: 'answer' })

  caller.close()
  const observer = open({ caFile, lookMs: 2 })
  put('ca.pem', pair.cert)
  await vi.waitUntil(() => lines.length > 1, WAIT)
  observer.close()
  expect(lines).toHaveLength(2)
})

test.each([
  ['registry:8080', 'http://registry:8080'],
  ['registry', 'http://registry'],
  ['http://registry:8080/', 'http://registry:8080'],
  ['https://registry:8443', 'https://registry:8443'],
  ['[::1]:8080', 'http://[::1]:8080'],
  ['::1', 'http://[::1]'],
])('the registry address %s is %s', (written, base) => {
  expect(parseRegistryAddresses([written, 'other:1'])).toEqual([base, 'http://other:1'])
})

test.each(['', 'http://', 'ftp://registry', 'registry:0', 'registry:65536', 'registry/path', 'a b'])(
  'the registry address %j is refused',
  (written) => {
    expect(() => parseRegistryAddresses(['registry', written])).toThrow(
      new VacancyError('usage_error', { reason: `--registry-addr: ${written} is not host:port` }),
    )
  },
)
