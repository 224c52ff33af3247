/** A row of the contract as a route: its input, its response, and which refusals are audited. Requests are injected. */

import type { Readable } from 'node:stream'
import type { ControlRoute } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Visitor } from '../access/access.ts'
import type { AuditNote } from '../access/audit.ts'
import { problem } from './errors.ts'
import { createHttp } from './http.ts'
import type { HttpOptions } from './options.ts'
import type { RouteRequest } from './route.ts'
import { registerRoute } from './routes.ts'

type Request = Pick<
  RouteRequest<'GET /api/v1/me'>,
  'isSecure' | 'requestId' | 'signal' | 'headers' | 'stream' | 'reply'
> & { readonly body: unknown }

const ADMIN: Visitor = {
  principal: { kind: 'person', id: 'p1', name: 'Ana', role: 'admin' },
  ...{ key: 'k', session: { csrf: 'secret' } as Visitor['session'], fault: '' },
}
const ROW: ControlRoute = { access: 'viewer', summary: '', status: 200, response: z.object({ n: z.number() }) }

/** An app with one route. */
async function app(name: string, row: Partial<ControlRoute>, handler: (request: Request) => unknown, baseUrl = '') {
  const notes: AuditNote[] = []
  const configs: object[] = []
  const log = { child: () => log, ...Object.fromEntries(LEVELS.map((level) => [level, () => undefined])) }
  const options = {
    ...{ log, tls: undefined, hstsDays: 0, trustProxy: [], connectionsMax: 10, keepAliveMs: 1_000 },
    ...{ baseUrl: () => baseUrl, allowedHosts: () => [], onAnswer: () => undefined, onRefusal: () => undefined },
    ...{ identify: async () => ADMIN, audit: async (note: AuditNote) => void notes.push(note) },
  } as unknown as HttpOptions
  const http = await createHttp(options)
  http.addHook('onRequest', async (request) => {
    request.visitor = ADMIN
    configs.push({ ...request.routeOptions.config })
  })
  await registerRoute(http, name, { ...ROW, ...row }, handler as (request: unknown) => unknown, options)
  const call = async (method: 'GET' | 'POST' | 'PUT', url: string, body?: unknown, headers: object = {}) => {
    const payload = body === undefined ? {} : { payload: body as string }
    const own = { host: 'h:1', 'x-csrf': 'secret', origin: 'http://h:1', ...headers }
    return await http.inject({ method, url, headers: own, ...payload })
  }
  return { http, notes, configs, call }
}

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

test('a handler gets the validated input, the principal, and where the request came from', async () => {
  const seen: Request[] = []
  const row = {
    ...{ access: 'operator' as const, params: z.object({ id: z.string() }), query: z.object({ n: z.coerce.number() }) },
    body: z.object({ name: z.string() }),
  }
  const { call } = await app('POST /x/{id}', row, (request) => {
    seen.push(request)
    expect(request.signal.aborted).toBe(false)
    return { n: 1 }
  })
  const { statusCode, body } = await call('POST', '/x/a%20b?n=5', { name: 'ci', more: 1 })

  expect([statusCode, body]).toEqual([200, '{"n":1}'])
  const [request] = seen as [Request]
  expect(request).toMatchObject({
    ...{ params: { id: 'a b' }, query: { n: 5 }, body: { name: 'ci' }, principal: ADMIN.principal, isSecure: false },
    ...{ session: { csrf: 'secret' }, origin: 'http://h:1', address: '127.0.0.1', stream: undefined },
  })
  expect(request.body).not.toHaveProperty('more')
  expect(request.requestId).toMatch(/^[\w-]{36}$/)
  expect(request.headers['x-csrf']).toBe('secret')
})

test.each([
  ['http://h', false],
  ['https://h', true],
])('with the base address %s the request is secure: %s', async (baseUrl, isSecure) => {
  let seen: boolean | undefined
  const handler = (request: Request) => {
    seen = request.isSecure
    return { n: 1 }
  }
  const { call } = await app('GET /x', {}, handler, baseUrl)
  await call('GET', '/x', undefined, { host: 'h' })
  expect(seen).toBe(isSecure)
})

test.each([
  ['open', true],
  ['viewer', false],
] as const)('hooks know the name of a route, and that a route for %s is open: %s', async (access, isOpen) => {
  const { call, configs } = await app('GET /x/{id}', { access }, () => ({ n: 1 }))
  await call('GET', '/x/5')
  expect(configs).toMatchObject([{ route: 'GET /x/{id}', isOpen }])
})

test('invalid input does not reach the handler', async () => {
  let calls = 0
  const row = { query: z.object({ n: z.coerce.number().max(5) }) }
  const { call } = await app('GET /x', row, () => ++calls)
  const answer = await call('GET', '/x?n=6')
  expect([answer.statusCode, answer.json().code, answer.json().field, calls]).toEqual([400, 'invalid-request', 'n', 0])
})

test('a response has the status of its row, unless the handler sets another', async () => {
  const row = { status: 201 as const }
  const made = await app('GET /x', row, () => ({ n: 1, hidden: 2 }))
  const answer = await made.call('GET', '/x')
  expect([answer.statusCode, answer.body]).toEqual([201, '{"n":1}'])

  const other = await app('GET /x', row, ({ reply }) => {
    reply.status(202)
    reply.header('x-more', 'yes')
    return { anything: 2 }
  })
  const accepted = await other.call('GET', '/x')
  expect([accepted.statusCode, accepted.body, accepted.headers['x-more']]).toEqual([202, '{"anything":2}', 'yes'])
  expect(accepted.headers['content-type']).toBe('application/json; charset=utf-8')
})

test('a handler without a value sends an empty response', async () => {
  const { call } = await app('GET /x', { status: 204 }, () => undefined)
  const answer = await call('GET', '/x')
  expect([answer.statusCode, answer.body]).toEqual([204, ''])
})

test('a response that differs from the contract is an internal error', async () => {
  const { call } = await app('GET /x', {}, () => ({ n: 'text' }))
  const answer = await call('GET', '/x')
  expect([answer.statusCode, answer.json().code]).toEqual([500, 'internal'])
})

test.each([
  ['text', 'text/plain; charset=utf-8'],
  ['bytes', 'application/octet-stream'],
] as const)('a response of %s has its content type, unless the handler sets another', async (gives, type) => {
  const plain = await (await app('GET /x', { gives }, () => 'hello')).call('GET', '/x')
  expect([plain.headers['content-type'], plain.body]).toEqual([type, 'hello'])
  const own = await app('GET /x', { gives }, ({ reply }) => {
    reply.header('content-type', 'text/csv')
    return 'a,b'
  })
  expect((await own.call('GET', '/x')).headers['content-type']).toMatch(/^text\/csv/)
})

const sized = (bytes: number) => JSON.stringify({ name: 'x'.repeat(bytes - 11) })
const JSON_TYPE = { 'content-type': 'application/json' }

test('a body has at most 64 KiB, or the limit of its row', async () => {
  const row = { body: z.object({ name: z.string() }) }
  const usual = await app('POST /x', row, () => ({ n: 1 }))
  const status = async ({ call }: typeof usual, bytes: number) =>
    (await call('POST', '/x', sized(bytes), JSON_TYPE)).statusCode
  expect([await status(usual, 65_536), await status(usual, 65_537)]).toEqual([200, 413])
  const small = await app('POST /x', { ...row, bodyBytesMax: 100 }, () => ({ n: 1 }))
  expect([await status(small, 100), await status(small, 101)]).toEqual([200, 413])
})

test('a route that takes bytes gets them as a stream, whatever their type is', async () => {
  const seen: unknown[] = []
  const { call } = await app('PUT /x', { takes: 'bytes', body: z.object({}) }, async ({ stream, body }) => {
    const bytes: Buffer[] = []
    for await (const chunk of stream as Readable) bytes.push(Buffer.from(chunk as Buffer))
    seen.push([Buffer.concat(bytes).toString(), body])
    return { n: 1 }
  })
  await call('PUT', '/x', 'a,b', { 'content-type': 'text/csv' })
  await call('PUT', '/x', '{"a":1}', JSON_TYPE)
  await call('PUT', '/x')
  expect(seen).toEqual([
    ['a,b', undefined],
    ['{"a":1}', undefined],
    ['', undefined],
  ])
})

test.each<[string, ControlRoute['access'], 'GET' | 'POST', Parameters<typeof problem>[0], boolean]>([
  ['a conflict of an operator', 'operator', 'POST', 'shard-busy', true],
  ['a conflict of an admin', 'admin', 'POST', 'shard-busy', true],
  ['a refusal', 'admin', 'POST', 'forbidden', true],
  ['a conflict of a viewer', 'viewer', 'POST', 'shard-busy', false],
  ['an invalid request', 'admin', 'POST', 'invalid-request', false],
  ['a read', 'admin', 'GET', 'shard-busy', false],
])('%s is audited where it is a change', async (_, access, method, code, isAudited) => {
  const error = problem(code, { detail: 'why' })
  const { call, notes } = await app(`${method} /x`, { access }, () => {
    throw error
  })
  const answer = await call(method, '/x?q=1')
  expect(answer.json()).toMatchObject({ code, detail: 'why' })
  expect(error.isAudited).toBe(isAudited)
  expect(notes).toMatchObject(
    isAudited
      ? [
          {
            ...{ principal: ADMIN.principal, address: '127.0.0.1', requestId: answer.json().requestId },
            ...{ action: `${method} /x`, target: '/x?q=1', result: 'refused', detail: `${code}: why` },
          },
        ]
      : [],
  )
})

test('a refusal that its handler audited, and a defect, have no further entry', async () => {
  const audited = problem('shard-busy')
  audited.isAudited = true
  for (const error of [audited, new Error('a defect')]) {
    const { call, notes } = await app('POST /x', { access: 'admin' }, () => {
      throw error
    })
    expect((await call('POST', '/x')).statusCode).toBe(error === audited ? 409 : 500)
    expect(notes).toEqual([])
  }
})
