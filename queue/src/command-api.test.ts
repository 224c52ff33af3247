/** Requests of commands to a queue: what is sent, and what its responses mean to a person. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '@vacancy/shared/node'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { callApi, openApi } from './command-api.ts'

const NO_FLAGS = { token: undefined, tokenFile: undefined, tlsCa: undefined }
const schema = z.object({ count: z.number() })
const folder = mkdtempSync(join(tmpdir(), 'vacancy-command-api-'))
const requests: { method: string | undefined; url: string | undefined; token: string | undefined; body: string }[] = []
let response = { status: 200, body: '{"count": 3}' }

const server = createServer(async (request, reply) => {
  requests.push({
    ...{ method: request.method, url: request.url, token: request.headers.authorization },
    body: await textOf(request),
  })
  reply.writeHead(response.status, { 'content-type': 'application/json' }).end(response.body)
})
const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  requests.length = 0
  response = { status: 200, body: '{"count": 3}' }
})

test('requests have the token and a body as JSON, and the response is read by the schema', async () => {
  const api = openApi({ ...NO_FLAGS, url: `${url()}//`, token: 'secret' })

  expect(await callApi(api, 'GET', '/topics', schema)).toEqual({ count: 3 })
  expect(await callApi(api, 'POST', '/topics/a/pause', schema, { paused: true })).toEqual({ count: 3 })
  expect(requests).toEqual([
    { method: 'GET', url: '/api/v1/queue/topics', token: 'Bearer secret', body: '' },
    { method: 'POST', url: '/api/v1/queue/topics/a/pause', token: 'Bearer secret', body: '{"paused":true}' },
  ])
})

test('a token is read from a file', async () => {
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, 'from-a-file\n')
  await callApi(openApi({ ...NO_FLAGS, url: url(), tokenFile }), 'GET', '/topics', schema)

  expect(requests[0]?.token).toBe('Bearer from-a-file')
})

test.each([
  [{ url: '127.0.0.1:8080' }, '--url: 127.0.0.1:8080 is not an address such as http://127.0.0.1:8080'],
  [{ url: 'ftp://queue' }, '--url: ftp://queue is not an address such as http://127.0.0.1:8080'],
  [{ token: 'a', tokenFile: 'b' }, 'give --token or --token-file, not both'],
  [{ token: 'a b' }, '--token has characters that no token has'],
  [{ token: '' }, '--token has characters that no token has'],
])('%j is a usage error', (flags, message) => {
  expect(() => openApi({ ...NO_FLAGS, url: 'http://queue', ...flags })).toThrow(message)
})

test.each<[status: number, body: unknown, message: string]>([
  [399, 'no', `does not respond like a queue of version ${VERSION}`],
  [200, '{"count": "3"}', `does not respond like a queue of version ${VERSION}`],
  [400, 'no', 'responded with 400'],
  [401, '{}', 'responded with 401 Give a token with --token, --token-file or VACANCY_QUEUE_TOKEN.'],
  [403, '{}', 'responded with 403 Use a token with another role.'],
  [503, '{"owner": "http://other"}', 'responded with 503 Use --url http://other.'],
  [503, '{"owner": 5}', 'responded with 503'],
  [503, 'null', 'responded with 503'],
])('a response %d with %j is explained', async (status, body, message) => {
  response = { status, body: String(body) }
  const call = callApi(openApi({ ...NO_FLAGS, url: url() }), 'GET', '/topics', schema)

  await expect(call).rejects.toThrow(`${new URL(url()).host} ${message}`)
})

test('a problem is named with its code and its text', async () => {
  const problem = {
    ...{ status: 404, code: 'not_found', title: 'Not found', detail: 'there is no topic a', hint: '', requestId: 'r1' },
  }
  response = { status: 404, body: JSON.stringify(problem) }
  const call = callApi(openApi({ ...NO_FLAGS, url: url() }), 'GET', '/topics/a', schema)

  await expect(call).rejects.toThrow(/ responded with 404 not_found: there is no topic a$/)
})
