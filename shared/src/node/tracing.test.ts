import { expect, test, vi } from 'vitest'
import type { TraceContext } from '../trace-context.ts'
import { createLogger } from './log.ts'
import type { Span, Tracing } from './spans.ts'
import {
  beginCall,
  beginTrace,
  currentTrace,
  inTrace,
  openTracing,
  traceEndpointOf,
  traceFaults,
  withTraceEndpoint,
} from './tracing.ts'

const loads = vi.hoisted(() => ({ count: 0 }))
vi.mock('./span-export.ts', () => {
  loads.count++
  return { openSpanExport: (options: object) => options }
})

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const SAMPLED = `00-${TRACE}-${SPAN}-01`

/** Records the names of spans with their parents. */
function fake(perThousand: number) {
  const begun: [name: string, parent: string | undefined][] = []
  const start = (name: string, parent: TraceContext | undefined): Span => {
    begun.push([name, parent?.spanId])
    const spanId = String(begun.length).padStart(16, '0')
    const context = { traceId: parent?.traceId ?? 'f'.repeat(32), spanId, isSampled: true, isRandom: true }
    return { context, call: (called) => start(called, context), set: () => {}, end: () => {} }
  }
  const tracing: Tracing = {
    perThousand,
    begin: start,
    record: ({ name, parent }) => void begun.push([name, parent.spanId]),
    counts: () => ({ exported: 0, dropped: 0 }),
    close: async () => {},
  }
  return { tracing, begun }
}

test('what the caller records is recorded, below the span of the caller', () => {
  const { tracing, begun } = fake(0)
  const trace = beginTrace(tracing, SAMPLED, 'POST /api')
  const call = beginCall(trace, 'SEARCHAVAIL', { node: 'n1' })
  expect(begun).toEqual([
    ['POST /api', SPAN],
    ['SEARCHAVAIL', '0000000000000001'],
  ])
  expect(call?.context).toEqual({ traceId: TRACE, spanId: '0000000000000002', isSampled: true, isRandom: true })
})

test('what the caller does not record is passed on and not recorded, whatever share begins a trace', () => {
  const { tracing, begun } = fake(1_000)
  const trace = beginTrace(tracing, `00-${TRACE}-${SPAN}-00`, 'POST /api')
  expect(beginCall(trace, 'SEARCHAVAIL', {})?.context).toMatchObject({ traceId: TRACE, spanId: SPAN, isSampled: false })
  expect(begun).toEqual([])
})

test('a request without a parent, or with a malformed one, begins a trace by the share of such requests', () => {
  const all = fake(1_000)
  expect(beginTrace(all.tracing, undefined, 'GET')?.span).toBeDefined()
  expect(beginTrace(all.tracing, SAMPLED.toUpperCase(), 'GET')?.context.traceId).not.toBe(TRACE)
  const none = fake(0)
  expect(beginTrace(none.tracing, undefined, 'GET')).toBeUndefined()
  expect(beginTrace(none.tracing, `00-${'0'.repeat(32)}-${SPAN}-01`, 'GET')).toBeUndefined()
  expect(none.begun).toEqual([])
})

const log = createLogger({ level: 'silent', format: 'json', component: 'test' })

test('without an endpoint nothing is recorded and no package is loaded, but the trace is passed on', async () => {
  const tracing = await openTracing({ traceEndpoint: '', tracePerThousand: 0 }, 'vacancy-test', log)
  expect([tracing, loads.count]).toEqual([undefined, 0])
  const trace = beginTrace(tracing, SAMPLED, 'GET')
  expect(beginCall(trace, 'SEARCHAVAIL', {})).toEqual({
    context: { traceId: TRACE, spanId: SPAN, isSampled: true, isRandom: false },
    span: undefined,
  })
  expect(beginTrace(tracing, undefined, 'GET')).toBeUndefined()
})

test('with an endpoint the packages are loaded', async () => {
  const settings = { traceEndpoint: 'http://collector:4318', tracePerThousand: 7 }
  expect(await openTracing(settings, 'vacancy-test', log)).toMatchObject({
    ...{ endpoint: 'http://collector:4318', perThousand: 7, service: 'vacancy-test' },
  })
  expect(loads.count).toBe(1)
})

test('the trace of a request is that of what it calls, also later, and of nothing else', async () => {
  const trace = beginTrace(undefined, SAMPLED, 'GET')
  const seen = await inTrace(trace, async () => {
    await Promise.resolve()
    return currentTrace()
  })
  expect(seen).toBe(trace)
  expect([currentTrace(), inTrace(undefined, currentTrace)]).toEqual([undefined, undefined])
})

test('the endpoint is an address without a user, and also comes from its usual variable', () => {
  const faults = (traceEndpoint: string, tracePerThousand = 0) => traceFaults({ traceEndpoint, tracePerThousand })
  expect(faults('')).toEqual([])
  expect(faults('http://collector:4318')).toEqual([])
  expect(faults('https://collector.example/otlp', 10)).toEqual([])
  for (const wrong of ['collector:4318', 'grpc://collector', 'http://me:secret@collector', 'http://collector?x=1'])
    expect(faults(wrong)).toEqual(['trace_endpoint: must be an address like http://host:4318'])
  expect(faults('', 1)).toEqual(['trace_per_thousand: needs trace_endpoint'])
  expect(withTraceEndpoint(new Map(), 'http://c:4318').get('trace_endpoint')).toEqual({
    text: 'http://c:4318',
    at: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    from: 'env',
  })
  expect(withTraceEndpoint(new Map(), '').size).toBe(0)
  const given = new Map([
    ['trace_endpoint', { text: 'http://own:4318', at: '--trace-endpoint', from: 'flag' }],
  ] as const)
  expect(withTraceEndpoint(given, 'http://c:4318')).toBe(given)
  expect([traceEndpointOf(undefined, ''), traceEndpointOf('http://own:4318', 'http://c:4318')]).toEqual([
    '',
    'http://own:4318',
  ])
  expect(traceEndpointOf(undefined, 'http://c:4318')).toBe('http://c:4318')
  expect(() => traceEndpointOf('collector:4318')).toThrow('--trace-endpoint: must be an address like http://host:4318')
})
