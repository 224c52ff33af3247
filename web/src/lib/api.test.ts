import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ApiProblem, call, onSessionEnded, pathOf, setCsrf } from './api.ts'

/** Stands in for the browser's fetch. */
let answer: () => Promise<Response>
let requests: { path: string; init: RequestInit }[]

beforeEach(() => {
  requests = []
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => {
    requests.push({ path, init })
    return answer()
  })
})

afterEach(() => vi.unstubAllGlobals())

const problem = (status: number, body: object) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/problem+json' } })
const header = (name: string) => new Headers(requests.at(-1)?.init.headers).get(name)

test('path parameters are encoded, undefined query parameters are left out', () => {
  expect(pathOf('GET /api/v1/shards/{shard}', { params: { shard: 'a/b ?' } })).toBe('/api/v1/shards/a%2Fb%20%3F')
  expect(pathOf('GET /api/v1/audit', { query: { actor: 'ana & co', limit: 5 } })).toBe(
    '/api/v1/audit?actor=ana+%26+co&limit=5',
  )
})

test('writes send the CSRF token, reads do not', async () => {
  setCsrf('secret')
  answer = async () => new Response(null, { status: 204 })

  await call('DELETE /api/v1/tokens/{id}', { params: { id: 't1' } })
  expect(header('x-csrf')).toBe('secret')

  answer = async () => Response.json({ people: [] })
  expect(await call('GET /api/v1/people')).toEqual({ people: [] })
  expect(header('x-csrf')).toBeNull()
})

test('requests accept JSON and problems, and bodies are sent as JSON', async () => {
  answer = async () => Response.json({})

  await call('GET /api/v1/people')
  expect(header('accept')).toMatch(/^application\/json, application\/problem\+json/)
  expect(header('content-type')).toBeNull()

  await call('POST /api/v1/operations', { body: { plan: 'p1' } })
  expect(header('content-type')).toBe('application/json')
  expect(requests.at(-1)?.init.body).toBe('{"plan":"p1"}')
})

test('an error response keeps its message, hint and further fields', async () => {
  answer = async () =>
    problem(409, {
      status: 409,
      code: 'shard-busy',
      detail: 'Busy.',
      hint: 'Wait.',
      requestId: 'r1',
      operation: { id: 'o1' },
    })

  const error = await call('POST /api/v1/operations', { body: { plan: 'p1' } }).catch((failure: unknown) => failure)

  expect(error).toBeInstanceOf(ApiProblem)
  expect(error).toMatchObject({ status: 409, code: 'shard-busy', detail: 'Busy.', hint: 'Wait.', requestId: 'r1' })
  expect((error as ApiProblem).more['operation']).toEqual({ id: 'o1' })
  expect((error as ApiProblem).request).toBe('POST /api/v1/operations')
})

test('the response of a proxy is not taken for one of the control plane', async () => {
  for (const [type, body] of [
    ['text/html', '<h1>502</h1>'],
    ['application/json', '{"cut'],
    ['application/json', '[1]'],
  ] as const) {
    answer = async () => new Response(body, { status: 502, headers: { 'content-type': type } })
    await expect(call('GET /api/v1/summary')).rejects.toMatchObject({ status: 502, code: 'http-502' })
  }
})

test('a failed request is a problem with status 0, an aborted one is not a problem', async () => {
  answer = () => Promise.reject(new TypeError('failed to fetch'))
  await expect(call('GET /api/v1/summary')).rejects.toMatchObject({ status: 0, code: 'no-answer' })

  const gone = AbortSignal.abort(new Error('gone'))
  await expect(call('GET /api/v1/summary', { signal: gone })).rejects.toThrow('failed to fetch')
})

test('401 ends the session, except on routes that check a password', async () => {
  const ended = vi.fn()
  const stop = onSessionEnded(ended)
  answer = async () => problem(401, { code: 'x', detail: 'No.' })

  await call('POST /api/v1/session', { body: { name: 'ana', password: 'wrong' } }).catch(() => {})
  expect(ended).not.toHaveBeenCalled()
  await call('GET /api/v1/summary').catch(() => {})
  expect(ended).toHaveBeenCalledTimes(1)
  stop()
})
