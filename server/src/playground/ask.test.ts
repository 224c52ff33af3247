/** Commands and requests to nodes for the playground: replies, refusals with hints, and repeated reads. */

import {
  type AnswerSeen,
  type VacancyCallError,
  type VacancyClient,
  VacancyClientError,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from '@vacancy/client'
import type { RequestFields } from '@vacancy/shared/wire'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { NodeAddress } from '../cluster/cluster.ts'
import { ProblemError } from '../http/route.ts'
import {
  addressText,
  orNothing,
  parseJson,
  propertiesAt,
  propertyAt,
  type Reach,
  readFields,
  refusedBy,
  requestNode,
  send,
  within,
} from './ask.ts'

const address = (id: string, host = id): NodeAddress => ({
  ...{ id, shard: 's1', zone: 'z1', apiUrl: `http://${id}`, tcp: { host, port: 7_777 } },
})
const NODES = [address('n1'), address('n2'), address('n3', '::1')]

/** What a call of the client does, and the addresses that replied. */
const wire = vi.hoisted(() => ({ result: {} as unknown, from: [] as string[], given: [] as unknown[] }))
vi.mock('./node-clients.ts', () => ({
  clientOf: async (_: unknown, nodes: readonly NodeAddress[]) =>
    ({
      send: async (
        command: string,
        fields: object,
        { watch, ...options }: { watch: (seen: AnswerSeen) => void } & object,
      ) => {
        wire.given.push([nodes.map(({ id }) => id), command, fields, options])
        for (const [at, from] of wire.from.entries()) {
          watch({ address: from, request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: at })
        }
        if (wire.result instanceof Error) throw wire.result
        return wire.result
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  Object.assign(wire, { result: { exists: true }, from: ['n1:7777'], given: [] })
})
afterEach(() => {
  vi.useRealTimers()
})

const reach = (request?: unknown) => ({ cluster: { request }, clients: {} }) as unknown as Reach
const thrown = async (request: Promise<unknown>): Promise<Partial<ProblemError>> =>
  request.then(
    (found) => ({ message: `no error: ${found}` }),
    (error: ProblemError) => error,
  )

// Fields

test('fields are read as the wire protocol has them', () => {
  expect(readFields('PROPEXIST', { propertyId: 'h1' })).toEqual({ propertyId: 'h1' })
  expect(() => readFields('PROPEXIST', { propertyId: 5 })).toThrow(
    expect.objectContaining({
      ...{ code: 'invalid-fields', status: 400, field: 'fields' },
      hint: 'docs/commands.md lists the fields of PROPEXIST.',
    }),
  )
})

// Commands

test('a command is sent with its deadline; the last reply counts', async () => {
  wire.from = ['n1:7777', '[::1]:7777']
  const fields: RequestFields = { propertyId: 'h1' }
  const { signal } = new AbortController()

  const answered = await send(reach(), NODES, 'PROPEXIST', fields, signal)

  expect(wire.given).toEqual([[['n1', 'n2', 'n3'], 'PROPEXIST', fields, { deadlineMs: 5_000, signal }]])
  expect([answered.result, answered.node.id, answered.attempts, answered.reply.milliseconds]).toEqual([
    ...[{ exists: true }, 'n3', 2, 1],
  ])
  await send(reach(), NODES, 'PROPEXIST', fields)
  expect((wire.given[1] as unknown[])[3]).toEqual({ deadlineMs: 5_000 })
})

test('a reply from an unknown address counts as that of the first node', async () => {
  wire.from = ['n9:7777']

  const nodes = [{ ...address('n0'), tcp: undefined }, ...NODES]
  expect((await send(reach(), nodes, 'PROPEXIST', {})).node.id).toBe('n0')
  expect((await send(reach(), NODES, 'PROPEXIST', {})).node.id).toBe('n1')
})

test.each([
  [{ host: 'n1', port: 7_777 }, 'n1:7777'],
  [{ host: '::1', port: 80 }, '[::1]:80'],
])('the address %j is %s', (given, text) => {
  expect(addressText(given)).toBe(text)
})

const refusal = (code: string, Kind: typeof VacancyCallError = VacancyClientError) =>
  new Kind(code, 'PROPEXIST', `${code}: a reason`)

test.each<[string, number, string, string]>([
  ['VALIDATION_ERROR', 400, 'wire-validation-error', 'Change the request.'],
  ['NOT_FOUND', 404, 'wire-not-found', 'This name is not in use.'],
  ['OVERFLOW', 409, 'wire-overflow', 'at most 255 rooms'],
  ['UNDERFLOW', 409, 'wire-underflow', 'fewer rooms are left'],
  ['SOLD_OUT', 409, 'wire-sold-out', 'too few rooms left'],
  ['PRICE_CHANGED', 409, 'wire-price-changed', 'the total is higher now'],
  ['EXPIRED', 409, 'wire-expired', 'passed its deadline'],
  ['CONFLICT', 409, 'wire-conflict', 'the id is used for other lines'],
  ['TOO_OLD', 410, 'wire-too-old', 'no longer remembered'],
  ['FORBIDDEN', 502, 'wire-forbidden', 'is not allowed to do this'],
  ['AUTH_ERROR', 502, 'wire-auth-error', 'require a token'],
  ['login_failed', 502, 'wire-login-failed', 'do not accept the node_client_token'],
])('the refusal %s is a problem with status %d', async (code, status, wireCode, hint) => {
  wire.result = refusal(code, VacancyRequestError)
  wire.from = ['n1:7777', 'n2:7777']

  expect(await thrown(send(reach(), NODES, 'PROPEXIST', {}))).toMatchObject({
    ...{ status, code: wireCode, message: `${code}: a reason`, more: { code, node: 'n2' }, cause: wire.result },
    hint: expect.stringContaining(hint),
  })
})

test.each<[string, VacancyCallError, object]>([
  [
    'whose outcome is unknown',
    refusal('deadline', VacancyUnknownOutcomeError),
    { code: 'unknown-outcome', message: 'deadline: a reason' },
  ],
  [
    'that can be repeated',
    refusal('503', VacancyRetryError),
    { status: 503, code: 'wire-503', hint: 'n1 executed nothing: repeat the request.' },
  ],
  [
    'that is invalid',
    refusal('bad_field', VacancyRequestError),
    { status: 400, code: 'wire-bad-field', hint: 'Change the request.' },
  ],
  [
    'that failed at the node',
    refusal('DEFECT'),
    { status: 502, code: 'wire-defect', hint: 'Check the page and the log of n1.' },
  ],
])('a request %s', async (_, error, expected) => {
  wire.result = error

  const found = await thrown(send(reach(), NODES, 'PROPEXIST', {}))

  expect(found).toBeInstanceOf(ProblemError)
  expect(found).toMatchObject({ ...expected, more: { code: error.code, node: 'n1' }, cause: error })
})

test('a failure without a reply names all nodes', async () => {
  wire.result = refusal('connection_lost', VacancyRetryError)
  wire.from = []

  expect(await thrown(send(reach(), NODES, 'PROPEXIST', {}))).toMatchObject({
    hint: 'n1, n2, n3 executed nothing: repeat the request.',
  })
})

test('a defect is not a problem of the node', async () => {
  wire.result = new TypeError('defect')

  expect(await thrown(send(reach(), NODES, 'PROPEXIST', {}))).toBe(wire.result)
})

test.each<[unknown, unknown]>([
  [new ProblemError(404, 'wire-not-found', ''), undefined],
  [new ProblemError(404, 'no-such-upload', ''), 'thrown'],
  [Object.assign(new Error(), { code: 'wire-not-found' }), 'thrown'],
])('only a name that is not in use counts as nothing: case %#', async (error, expected) => {
  expect(await orNothing(Promise.reject(error)).catch(() => 'thrown')).toBe(expected)
})

test('something that exists is returned', async () => {
  expect(await orNothing(Promise.resolve(5))).toBe(5)
})

// Time limits

test('a request in time has its result, and one that is late a problem', async () => {
  vi.useFakeTimers()
  const late = () => new ProblemError(504, 'late', '')
  const after = <T>(ms: number, value: T) => new Promise<T>((resolve) => setTimeout(resolve, ms, value))

  const results = Promise.allSettled([
    within(100, after(99, 'in time'), late),
    within(100, after(101, 'late'), late),
    within(100, Promise.reject(new Error('failed')), late),
  ])
  await vi.advanceTimersByTimeAsync(101)

  expect(await results).toMatchObject([
    { value: 'in time' },
    { reason: { code: 'late' } },
    { reason: { message: 'failed' } },
  ])
  expect(vi.getTimerCount()).toBe(0)
})

// Requests

/** A node that replies with these in turn. */
function replying(...replies: { readonly status: number; readonly body?: string }[]) {
  const requests: unknown[] = []
  const request = async ({ id }: NodeAddress, path: string, options: object) => {
    requests.push([id, path, options])
    return { body: '', milliseconds: 1, ...(replies[Math.min(requests.length, replies.length) - 1] as object) }
  }
  return { requests, reach: reach(request) }
}

test('a request is repeated while the data of the node changes, at most three times', async () => {
  vi.useFakeTimers()
  const changing = replying({ status: 503 }, { status: 503 }, { status: 503 }, { status: 503 }, { status: 200 })
  const node = address('n1')

  const answered = requestNode(changing.reach, node, '/words', { as: 'client' })
  const counts: number[] = []
  for (const ms of [24, 1, 49, 1, 74, 1]) {
    await vi.advanceTimersByTimeAsync(ms)
    counts.push(changing.requests.length)
  }

  expect(counts).toEqual([1, 2, 2, 3, 3, 4])
  expect((await answered).status).toBe(503)
  expect(changing.requests[0]).toEqual(['n1', '/words', { as: 'client', timeoutMs: 5_000 }])
})

test.each([200, 404, 500])('the status %d is not repeated', async (status) => {
  const once = replying({ status })

  expect(await requestNode(once.reach, address('n1'), '/words', {})).toMatchObject({ status })
  expect(once.requests).toHaveLength(1)
})

const PROPERTY = {
  ...{ id: 'h 1', segment: 'city', area: 'old', type: 'hotel', category: 'family', stars: 3, latitude: 1 },
  ...{ longitude: 2, amenities: ['spa'], room_types: ['double'] },
}
const bodyOf = (...properties: object[]) => JSON.stringify({ properties, missing: [] })

test('properties are requested by their encoded ids', async () => {
  const { reach: node, requests } = replying({ status: 200, body: bodyOf(PROPERTY) })
  const { signal } = new AbortController()

  expect(await propertiesAt(node, address('n1'), ['h 1', 'ü'], signal)).toEqual({ properties: [PROPERTY], missing: [] })
  expect(await propertyAt(node, address('n1'), 'h 1')).toEqual(PROPERTY)
  expect(requests).toEqual([
    ['n1', '/properties?ids=h%201,%C3%BC', { as: 'client', signal, timeoutMs: 5_000 }],
    ['n1', '/properties?ids=h%201', { as: 'client', timeoutMs: 5_000 }],
  ])
})

test('an unknown property is undefined, and an id with a comma is refused', async () => {
  const { reach: node, requests } = replying({ status: 200, body: bodyOf() })

  expect(await propertyAt(node, address('n1'), 'h1')).toBe(undefined)
  expect(await thrown(propertyAt(node, address('n1'), 'a,b'))).toMatchObject({
    ...{ code: 'id-with-comma', message: 'Property ids with a comma cannot be looked up: a,b' },
  })
  expect(requests).toHaveLength(1)
})

test.each<[{ status: number; body: string }, object]>([
  [
    { status: 400, body: '{"error":"bad id"}' },
    { code: 'invalid-id', message: 'bad id' },
  ],
  [
    { status: 400, body: 'x'.repeat(301) },
    { code: 'invalid-id', message: 'x'.repeat(300) },
  ],
  [
    { status: 500, body: 'broken' },
    { code: 'node-answer', message: 'n1 answered 500 to /properties: broken' },
  ],
  [
    { status: 200, body: '{}' },
    { message: 'n1 answered 200 to /properties: the response is not a list of properties' },
  ],
  [{ status: 200, body: '{' }, { code: 'node-answer' }],
])('the response %j is refused', async (reply, expected) => {
  expect(await thrown(propertiesAt(replying(reply).reach, address('n1'), ['h1']))).toMatchObject(expected)
})

test.each([
  [401, 'Check node_client_token of the control plane.'],
  [403, 'Check node_client_token of the control plane.'],
  [402, 'See the log of n1.'],
  [500, 'See the log of n1.'],
])('the hint for status %d is %j', (status, hint) => {
  expect(refusedBy(address('n1'), '/words?kind=area', status, 'x'.repeat(301))).toMatchObject({
    ...{ code: 'node-answer', hint, message: `n1 answered ${status} to /words: ${'x'.repeat(300)}` },
  })
})

test('text that is not JSON is undefined', () => {
  expect([parseJson('{"a":1}'), parseJson('{')]).toEqual([{ a: 1 }, undefined])
})
