import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HttpRoute, json, openHttpApi } from './http-routes.ts'
import type { HttpServer } from './http-server.ts'
import { createLogger } from './log.ts'

const ROUTES: readonly HttpRoute<void>[] = [
  {
    method: 'GET',
    path: '/list',
    query: ['limit', 'id'],
    repeats: ['id'],
    admit: () => undefined,
    answer: ({ parameters }) => json(200, [...parameters.values()]),
  },
  { method: 'GET', path: '/health', query: 'any', admit: () => undefined, answer: () => json(200, 'ok') },
  {
    method: 'POST',
    path: '/member',
    fields: ['node_id', 'force'],
    admit: () => undefined,
    answer: ({ body }) => json(200, body),
  },
  { method: 'POST', path: '/start', admit: () => undefined, answer: ({ body }) => json(200, body) },
]

let server: HttpServer
let url: string

beforeAll(async () => {
  const log = createLogger({ level: 'error', format: 'text', component: 'test' })
  const limits = { bodyBytesMax: 1_000, connectionsMax: 10, requestTimeoutMs: 60_000 }
  const place = { host: '127.0.0.1', port: 0, tls: undefined, serverName: 'test' }
  server = openHttpApi({ ...limits, ...place, log, routes: ROUTES })
  url = `http://127.0.0.1:${await server.listening}`
})
afterAll(async () => await server.close(0))

async function answerTo(path: string, body?: string | Uint8Array<ArrayBuffer>, headers = {}): Promise<unknown> {
  const response = await fetch(url + path, body === undefined ? {} : { method: 'POST', body, headers })
  const value = (await response.json()) as { readonly error?: string }
  return response.status === 200 ? value : `${response.status} ${value.error}`
}

test.each([
  ['/list?limit=3&id=a&id=b', undefined, ['3', 'a', 'b']],
  ['/list?limi=3', undefined, '400 the parameter "limi" is not known; did you mean limit?'],
  ['/list?limit=3&limit=4', undefined, '400 the parameter limit is given twice'],
  ['/health?from=balancer', undefined, 'ok'],
  ['/member', '{"node_id":"a"}', { node_id: 'a' }],
  ['/member', '{"nodeId":"a"}', { node_id: 'a' }],
  ['/member', '{"nodeid":"a"}', '400 "nodeid" is not known; did you mean node_id?'],
  ['/member', '{"node_id":"a","nodeId":"b"}', '400 node_id and nodeId are the same field: give one'],
  ['/member?force=true', '{"node_id":"a"}', '400 the parameter "force" is not known'],
  ['/start', '', {}],
  ['/start', '{}', {}],
  ['/start', '{"force":true}', '400 "force" is not known'],
])('%s with %s is answered with %j', async (path, body, wanted) => {
  expect(await answerTo(path, body)).toEqual(wanted)
})

test('a compressed body, a long address and large headers are refused by name', async () => {
  const packed = Uint8Array.from(gzipSync('{"node_id":"a"}'))
  const large = { 'x-large': 'x'.repeat(17_000) }

  expect(await answerTo('/member', packed, { 'content-encoding': 'gzip' })).toBe(
    '415 Content-Encoding is not supported: send the body as it is',
  )
  expect(await answerTo('/member', '{"node_id":"a"}', { 'content-encoding': 'identity' })).toEqual({ node_id: 'a' })
  expect(await answerTo(`/list?id=${'x'.repeat(17_000)}`)).toBe('414 the address exceeds 16384 bytes')
  expect(await answerTo('/start', '', large)).toBe('431 headers exceed 16384 bytes')
})
