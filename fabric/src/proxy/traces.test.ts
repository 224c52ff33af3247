import { type CommandName, encodeError, encodeReply } from '@vacancy/shared/wire'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { CONTEXT, openStandIn, type Received, type StandIn } from './testing/stand-in.ts'
import { openHttp2, postHttp2, startTestProxy, type TestProxy } from './testing/start.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-00`
const READ = { command: 'PROPEXIST', body: { property_id: 'p1' } }
const WRITE = { command: 'DECROOMAVL', body: { property_id: 'p1', room_type: 'r', date: '2026-12-01', amount: 1 } }

let behind: StandIn
let proxy: TestProxy

beforeAll(async () => {
  behind = await openStandIn('node')
  proxy = await startTestProxy({ mode: 'standalone', upstream_port: behind.port, slow_ms: 0 })
  await eventually(async () => expect((await proxy.get('/ready')).status).toBe(200))
})

afterAll(async () => {
  await proxy.stop()
  await behind.close()
})

function success({ id, command }: Received): Uint8Array {
  return command === 'PROPEXIST'
    ? encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)
    : encodeReply('DECROOMAVL', id, { availability: 4 }, CONTEXT)
}

beforeEach(() => {
  behind.answer = success
  behind.received.length = 0
})

const traces = () => behind.received.map(({ fields }) => fields['trace'])
const slow = async () => JSON.parse((await proxy.get('/debug/slow')).text).requests[0]

test('the trace of the caller goes to the node, and into the list of slow requests', async () => {
  expect((await proxy.post(READ, { traceparent: TRACEPARENT })).status).toBe(200)
  expect(await slow()).toMatchObject({ command: 'PROPEXIST', trace_id: TRACE })
  expect((await proxy.post(WRITE, { traceparent: TRACEPARENT })).status).toBe(200)
  const http2 = await openHttp2(proxy.url)
  expect((await postHttp2(http2, READ, { traceparent: TRACEPARENT })).status).toBe(200)
  http2.close()
  expect(traces()).toEqual([TRACEPARENT, TRACEPARENT, TRACEPARENT])
})

test.each([
  ['no traceparent', {}],
  ['an invalid version', { traceparent: TRACEPARENT.replace('00', 'ff') }],
  ['zeros', { traceparent: TRACEPARENT.replace(TRACE, '0'.repeat(32)) }],
  ['upper case', { traceparent: TRACEPARENT.toUpperCase() }],
  ['text of its own', { traceparent: '<script>alert(1)</script>' }],
])('a request with %s is sent without a trace, and nothing of it is shown', async (_, headers) => {
  expect((await proxy.post(READ, headers as Record<string, string>)).status).toBe(200)
  expect(traces()).toEqual([undefined])
  expect((await slow()).trace_id).toBeNull()
  expect(JSON.stringify(proxy.logged)).not.toContain('script')
})

test('the trace is no field of a body', async () => {
  const response = await proxy.post({ ...READ, body: { ...READ.body, trace: TRACEPARENT } })
  expect([response.status, response.json.message]).toEqual([400, expect.stringContaining('trace')])
})

/** What a node of an earlier version answers. */
const beforeTraces =
  (text: (command: string) => string) =>
  (request: Received): Uint8Array =>
    request.fields['trace'] === undefined ? success(request) : encodeError(request.id, text(request.command))

test.each([
  ['of this project', (command: string) => `VALIDATION_ERROR: ${command} has no field 32831`],
  ['of another one', () => 'PARSE_ERROR: unexpected bytes'],
])('a node %s that knows no traces gets requests without, writes in order', async (_, text) => {
  const other = await openStandIn('node')
  const own = await startTestProxy({ mode: 'standalone', upstream_port: other.port, slow_ms: 0 })
  await eventually(async () => expect((await own.get('/ready')).status).toBe(200))
  other.answer = beforeTraces(text)
  const http2 = await openHttp2(own.url)
  const amounts = [1, 2, 3]
  const responses = await Promise.all(
    amounts.map((amount) =>
      postHttp2(http2, { ...WRITE, body: { ...WRITE.body, amount } }, { traceparent: TRACEPARENT }),
    ),
  )
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  const executed = other.received.filter(({ fields }) => fields['trace'] === undefined)
  expect(executed.map(({ fields }) => fields['amount'])).toEqual(amounts)
  // It is not tried again for a while.
  const sent = other.received.length
  expect((await own.post(READ, { traceparent: TRACEPARENT })).status).toBe(200)
  expect(other.received.length).toBe(sent + 1)
  expect(other.received.at(-1)?.fields['trace']).toBeUndefined()
  http2.close()
  await own.stop()
  await other.close()
})

test('an invalid request is refused as before, also with a trace', async () => {
  await proxy.post(READ, { traceparent: TRACEPARENT })
  behind.received.length = 0
  behind.answer = ({ id }) => encodeError(id, 'VALIDATION_ERROR: date is in the past')
  const response = await proxy.post(WRITE, { traceparent: TRACEPARENT })
  expect([response.status, response.json.message]).toEqual([400, 'VALIDATION_ERROR: date is in the past'])
  expect(behind.received.map(({ command }) => command as CommandName)).toEqual(['DECROOMAVL'])
})
