import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { CERTIFICATE, PRIVATE_KEY } from '../testing/certificate.ts'
import {
  authorization,
  closeEndpoint,
  createEndpoint,
  currentUrl,
  type Endpoint,
  type EndpointOptions,
  moveOn,
  ownerUrl,
  post,
  whole,
} from './endpoint.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

function endpointOf(options: EndpointOptions): Endpoint {
  const endpoint = createEndpoint(options)
  endings.push(() => closeEndpoint(endpoint))
  return endpoint
}

async function serve(listener: RequestListener, server: Server = createServer(listener)) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endings.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

test.each([
  ['http://h:1', 'http://h:1'],
  ['http://h:80/', 'http://h'],
  ['https://h/a/b//?x#y', 'https://h/a/b'],
])('the base of %s', (url, base) => {
  expect(endpointOf({ url }).urls).toEqual([base])
})

test.each<[string, EndpointOptions, string]>([
  ['no address', { url: [] }, 'url must list 1 to 32 addresses'],
  ['33 addresses', { url: Array.from({ length: 33 }, (_, n) => `http://h${n}`) }, 'url must list 1 to 32 addresses'],
  ['another protocol', { url: 'ftp://h' }, 'url must be an address such as http://127.0.0.1:8080, got ftp://h'],
  ['an empty token', { url: 'http://h', token: '' }, 'token must be printable characters without spaces'],
  ['a token with a space', { url: 'http://h', token: 'a b' }, 'token must be printable characters without spaces'],
])('%s is refused', (_, options, message) => {
  expect(() => createEndpoint(options)).toThrow(RangeError)
  expect(() => createEndpoint(options)).toThrow(message)
})

test('a long address is named in part', () => {
  expect(() => createEndpoint({ url: `${'x'.repeat(300)}y` })).toThrow(/got x{300}$/)
})

test('a closed endpoint keeps no connection', async () => {
  const closed: boolean[] = []
  const server = createServer((_, response) => response.end('{}'))
  server.on('connection', (socket) => socket.on('close', () => closed.push(true)))
  const port = await serve(() => undefined, server)
  const endpoint = endpointOf({ url: `http://127.0.0.1:${port}` })
  expect(await post(endpoint, currentUrl(endpoint), '{}', 5_000)).toMatchObject({ status: 200 })
  expect(closed).toEqual([])

  closeEndpoint(endpoint)

  await expect.poll(() => closed).toEqual([true])
})

test('32 addresses and any printable token are accepted; the token is sent only if there is one', () => {
  const urls = Array.from({ length: 32 }, (_, n) => `http://h${n}`)
  expect(authorization(endpointOf({ url: urls, token: '!~' }))).toEqual({ authorization: 'Bearer !~' })
  expect(authorization(endpointOf({ url: urls }))).toEqual({})
})

test.each<[unknown, boolean]>([
  [1, true],
  [9, true],
  [0, false],
  [10, false],
  [1.5, false],
  ['5', false],
  [undefined, false],
])('%j as a whole number up to 9', (value, isWhole) => {
  if (isWhole) expect(whole('n', value, 9)).toBe(value)
  else expect(() => whole('n', value, 9)).toThrow(new RangeError(`n must be a whole number, 1 to 9, got ${value}`))
})

test('the next address is used after the current one failed, in a circle', () => {
  const endpoint = endpointOf({ url: ['http://a', 'http://b'] })
  const after = (failed: string) => {
    moveOn(endpoint, failed)
    return currentUrl(endpoint)
  }
  expect([currentUrl(endpoint), after('http://b'), after('http://a'), after('http://a'), after('http://b')]).toEqual([
    'http://a',
    'http://a',
    'http://b',
    'http://b',
    'http://a',
  ])
})

test.each([
  ['http://a', 'http://o:1/', 'http://o:1'],
  ['http://a', 'https://o', 'https://o'],
  ['https://a', 'https://o', 'https://o'],
  // The token would be readable.
  ['https://a', 'http://o', undefined],
  ['http://a', 'ftp://o', undefined],
  ['http://a', 'nonsense', undefined],
  ['http://a', 7, undefined],
])('the owner that %s names as %s', (from, owner, url) => {
  expect(ownerUrl(from, owner)).toBe(url)
})

test('a post has token, type and length, and gives status, text and the seconds to wait', async () => {
  const seen: unknown[] = []
  const port = await serve((request, response) => {
    const { method, url, headers } = request
    seen.push([method, url, headers.authorization, headers['content-type'], headers['content-length']])
    response.writeHead(503, { 'retry-after': '2' }).end('too ')
  })
  const base = `http://127.0.0.1:${port}`
  const endpoint = endpointOf({ url: base, token: 'secret' })

  expect(await post(endpoint, `${base}/a`, '"é"', 5_000)).toEqual({ status: 503, text: 'too ', retryAfterMs: 2_000 })
  expect(seen).toEqual([['POST', '/a', 'Bearer secret', 'application/json', '4']])
})

test.each([
  ['0', undefined],
  ['-1', undefined],
  ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
  ['0.5', 500],
  ['1', 1_000],
])('Retry-After: %s', async (value, retryAfterMs) => {
  const port = await serve((_, response) => response.writeHead(200, { 'retry-after': value }).end())
  const base = `http://127.0.0.1:${port}`
  expect(await post(endpointOf({ url: base }), base, '{}', 5_000)).toEqual({ status: 200, text: '', retryAfterMs })
})

test('a request without a response has a failure, which shows whether it was sent', async () => {
  const silent = await serve(() => undefined)
  const half = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 10 })
    response.write('12345', () => response.destroy())
  })
  const long = await serve((_, response) => response.end('x'.repeat((1 << 20) + 1)))
  const gone = await serve(() => undefined)
  await endings.pop()?.()
  const failure = (port: number, ms = 5_000) =>
    post(endpointOf({ url: 'http://127.0.0.1' }), `http://127.0.0.1:${port}/`, '{}', ms)

  expect(await failure(silent, 100)).toEqual({ failure: 'no response within 100 ms', isSent: true })
  expect(await failure(half)).toEqual({ failure: 'the connection was lost before the response ended', isSent: true })
  expect(await failure(long)).toMatchObject({ failure: expect.stringMatching(/1048576 bytes|lost/), isSent: true })
  expect(await failure(gone)).toMatchObject({ failure: expect.stringContaining('ECONNREFUSED'), isSent: false })
})

test('a response of exactly one MiB is read', async () => {
  const port = await serve((_, response) => response.end('x'.repeat(1 << 20)))
  const base = `http://127.0.0.1:${port}`
  expect(await post(endpointOf({ url: base }), base, '{}', 5_000)).toMatchObject({ status: 200 })
})

test('connections are kept for the next request, which counts as sent at once', async () => {
  const ports = new Set<number | undefined>()
  const port = await serve((request, response) => {
    ports.add(request.socket.remotePort)
    if (request.url === '/cut') request.socket.destroy()
    else response.end()
  })
  const base = `http://127.0.0.1:${port}`
  const endpoint = endpointOf({ url: base })

  await post(endpoint, base, '{}', 5_000)
  await post(endpoint, base, '{}', 5_000)
  expect(await post(endpoint, `${base}/cut`, '{}', 5_000)).toMatchObject({ isSent: true })
  expect(ports.size).toBe(1)
})

test('with https the certificate is verified by the options of the endpoint', async () => {
  const server = createTlsServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (_, response) => response.end('secure'))
  const port = await serve(() => undefined, server as unknown as Server)
  const url = `https://127.0.0.1:${port}`

  expect(await post(endpointOf({ url, tls: { ca: CERTIFICATE } }), url, '{}', 5_000)).toMatchObject({ text: 'secure' })
  expect(await post(endpointOf({ url }), url, '{}', 5_000)).toMatchObject({
    failure: expect.stringContaining('self-signed'),
  })
})
