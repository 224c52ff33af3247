import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSpanExport } from './span-export.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const PARENT = { traceId: TRACE, spanId: SPAN, isSampled: true, isRandom: false }

let server: Server
// biome-ignore lint/suspicious/noExplicitAny: the test knows the shape of OTLP.
let received: any[]
let status: number
const warned: object[] = []
const log = { debug() {}, info() {}, error() {}, warn: (fields: object) => void warned.push(fields) }

beforeEach(async () => {
  received = []
  status = 200
  server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (piece: string) => {
      text += piece
    })
    request.on('end', () => {
      received.push({ url: request.url, body: JSON.parse(text) })
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const open = () => {
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return openSpanExport({ endpoint, perThousand: 0, service: 'vacancy-test', log })
}

test('the span of a request that is over has its times, parent, attributes and fault', async () => {
  const tracing = open()
  const [startMs, endMs] = [1_800_000_000_000, 1_800_000_000_250]
  tracing.record({
    name: 'SEARCHAVAIL',
    parent: PARENT,
    startMs,
    endMs,
    attributes: { hop: 'b1', tries: 1 },
    fault: '503',
  })
  await tracing.close()
  const [{ scopeSpans }] = received[0].body.resourceSpans
  expect(scopeSpans[0].spans).toMatchObject([
    {
      ...{ name: 'SEARCHAVAIL', traceId: TRACE, parentSpanId: SPAN, kind: 2, status: { code: 2, message: '503' } },
      ...{ startTimeUnixNano: `${startMs}000000`, endTimeUnixNano: `${endMs}000000` },
      attributes: [
        { key: 'hop', value: { stringValue: 'b1' } },
        { key: 'tries', value: { intValue: 1 } },
      ],
    },
  ])
})

test('spans are exported as OTLP with their parents, attributes and faults', async () => {
  const tracing = open()
  const request = tracing.begin('POST /api', PARENT)
  const call = request.call('SEARCHAVAIL')
  call.set({ command: 'SEARCHAVAIL', tries: 2, node: undefined })
  call.end('no node can serve the request')
  request.end('')
  await tracing.close()
  expect(received.map(({ url }) => url)).toEqual(['/v1/traces'])
  const [{ resource, scopeSpans }] = received[0].body.resourceSpans
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'vacancy-test' } })
  expect(scopeSpans[0].spans).toMatchObject([
    {
      ...{ traceId: TRACE, spanId: call.context.spanId, parentSpanId: request.context.spanId, kind: 3 },
      attributes: [
        { key: 'command', value: { stringValue: 'SEARCHAVAIL' } },
        { key: 'tries', value: { intValue: 2 } },
      ],
      status: { code: 2, message: 'no node can serve the request' },
    },
    { name: 'POST /api', traceId: TRACE, spanId: request.context.spanId, parentSpanId: SPAN, kind: 2 },
  ])
  expect(tracing.counts()).toEqual({ exported: 2, dropped: 0 })
})

test('a trace without a parent has an id of its own', async () => {
  const tracing = open()
  const span = tracing.begin('POST /api', undefined)
  expect(span.context).toMatchObject({ traceId: expect.stringMatching(/^[0-9a-f]{32}$/), isSampled: true })
  span.end('')
  await tracing.close()
  expect(received[0].body.resourceSpans[0].scopeSpans[0].spans[0].parentSpanId ?? '').toBe('')
})

test('what a collector refuses is dropped, counted and logged with the reason', async () => {
  status = 400
  const tracing = open()
  tracing.begin('POST /api', PARENT).end('')
  await tracing.close()
  expect(tracing.counts()).toEqual({ exported: 0, dropped: 1 })
  expect(warned).toEqual([{ reason: expect.any(String), spans: 1 }])
})
