import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeCertificate } from '../testing/certificates.ts'
import { type HttpCaller, type HttpRequest, type HttpResult, openHttpCaller } from './http-caller.ts'

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
  expect(await sizeOf(1_001, 1_000)).toBe('the response exceeds 1000 bytes')
  // Without a limit of its own: 32 MiB of segments and 64 KiB for their quotes.
  expect(await sizeOf(33_619_968)).toBe(33_619_968)
  expect(await sizeOf(33_619_969)).toBe('the response exceeds 33619968 bytes')
  expect(results).toEqual(['answer', 'failed', 'answer', 'failed'])
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

test('a kept connection serves any number of requests without a warning', async () => {
  const { base } = await serveRaw((answer, _reset, [connection]) => answer(`connection ${connection}`))
  const caller = open()
  const warned = vi.spyOn(process, 'emitWarning')

  for (let n = 0; n < 20; n++) expect(await call(caller, base)).toMatchObject({ body: 'connection 1' })

  expect(warned).not.toHaveBeenCalled()
})

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
