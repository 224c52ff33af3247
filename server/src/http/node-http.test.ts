import { createServer, type RequestListener } from 'node:http'
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

/** Far above what a busy machine needs. */
const timeoutMs = 60_000

/** Why there was no response. */
const failureOf = (reply: Promise<unknown>) =>
  reply.then(
    () => undefined,
    ({ name, code, message }) => [name, code, message],
  )

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
