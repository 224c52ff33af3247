import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createNodeHttp, NODE_HTTP, type NodeHttp } from './node-http.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endings.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function start(): NodeHttp {
  const http = createNodeHttp()
  endings.push(() => http.close())
  return http
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** Far above what a busy machine needs. */
const timeoutMs = 60_000

/** Why there was no response. */
const failureOf = (reply: Promise<unknown>) =>
  reply.then(
    () => undefined,
    ({ name, code, message }) => [name, code, message],
  )

test('a request has its method, token and body, and a reply its status, type and body', async () => {
  const seen: unknown[] = []
  const url = await serve(async (request, response) => {
    const { method, headers } = request
    const { authorization, 'content-type': type, 'content-length': length } = headers
    seen.push([method, request.url, authorization, type, length, await bodyOf(request)])
    if (method === 'POST') response.writeHead(409, { 'content-type': 'text/plain', 'x-registry-stale': '1' })
    response.write('tw')
    response.end('o')
  })
  const http = start()

  const post = await http.request(`${url}/a`, { method: 'POST', body: { id: 'é' }, token: 'secret', timeoutMs })
  const get = await http.request(`${url}/b`, { timeoutMs })

  expect(seen).toEqual([
    // {"id":"é"} has 11 bytes.
    ['POST', '/a', 'Bearer secret', 'application/json', '11', '{"id":"é"}'],
    ['GET', '/b', undefined, undefined, undefined, ''],
  ])
  expect(post).toMatchObject({ status: 409, type: 'text/plain', body: 'two', isStale: true })
  expect(get).toMatchObject({ status: 200, type: '', body: 'two', isStale: false })
})

test('a request without a response has a code and a reason', async () => {
  const silent = await serve(() => undefined)
  const cut = await serve((request) => request.socket.destroy())
  const half = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 10 })
    response.write('12345', () => response.destroy())
  })
  const gone = await serve(() => undefined)
  await endings.pop()?.()
  const http = start()
  const stop = new AbortController()
  const cancelled = failureOf(http.request(silent, { signal: stop.signal, timeoutMs }))
  stop.abort()

  expect({
    silent: await failureOf(http.request(silent, { timeoutMs: 100 })),
    cut: await failureOf(http.request(cut, { timeoutMs })),
    half: await failureOf(http.request(half, { timeoutMs })),
    gone: await failureOf(http.request(gone, { timeoutMs })),
    cancelled: await cancelled,
    late: await failureOf(http.request(silent, { signal: AbortSignal.abort() })),
    nowhere: await failureOf(http.request('nowhere')),
  }).toEqual({
    silent: ['NodeHttpError', 'timeout', 'no response within 100 ms'],
    cut: ['NodeHttpError', 'lost', 'connection lost'],
    half: ['NodeHttpError', 'lost', 'connection lost'],
    gone: ['NodeHttpError', 'refused', 'connection refused'],
    cancelled: ['NodeHttpError', 'aborted', 'the request was cancelled'],
    late: ['NodeHttpError', 'aborted', 'the request was cancelled'],
    nowhere: ['NodeHttpError', 'address', 'nowhere is not an address'],
  })
})

test.each([
  ['as many bytes as allowed', { bytesMax: 5 }, 5, undefined],
  ['one more', { bytesMax: 5 }, 6, 'the response exceeds 5 bytes'],
  ['8 MiB', {}, NODE_HTTP.answerBytesMax, undefined],
  ['one byte more than 8 MiB', {}, NODE_HTTP.answerBytesMax + 1, 'the response exceeds 8388608 bytes'],
])('a response with %s', async (_, limits, bytes, message) => {
  const url = await serve((_request, response) => response.end(Buffer.alloc(bytes, 'x')))

  const reply = start().request(url, { timeoutMs, ...limits })

  if (message === undefined) expect((await reply).body).toHaveLength(bytes)
  else expect(await failureOf(reply)).toEqual(['NodeHttpError', 'too-large', message])
})

test.each(['GET', 'POST'] as const)('a kept connection that the node closes: %s', async (method) => {
  const requests: string[] = []
  const used = new Set<unknown>()
  const url = await serve((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (used.has(request.socket)) request.socket.destroy()
    else response.end('fresh')
    used.add(request.socket)
  })
  const http = start()
  await http.request(`${url}/a`, { timeoutMs })
  // The connection is free from the next turn of the event loop on.
  await new Promise((resolve) => setImmediate(resolve))

  const second = http.request(`${url}/b`, { method, timeoutMs })

  // A request that changes something may have been processed: it is not sent again.
  if (method === 'POST') expect(await failureOf(second)).toEqual(['NodeHttpError', 'stale', 'connection lost'])
  else expect(await second).toMatchObject({ status: 200, body: 'fresh' })
  expect(requests).toEqual(['GET /a', `${method} /b`, ...(method === 'GET' ? ['GET /b'] : [])])
})
