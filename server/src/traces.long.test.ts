/**
 * One trace over whole programs: a proxy in front of routers, one in front of a shard, the control plane and the queue,
 * with a collector of OTLP over HTTP that is the test itself (docs/operators.md#tracing).
 */

import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { createConsumer, createProducer, type Job } from '@vacancy/client/queue'
import { parseTraceparent } from '@vacancy/shared'
import { listen } from '@vacancy/testkit/listen'
import { getText, launch, type Running, somewhere } from '@vacancy/testkit/node'
import { ADMIN_TOKEN, leaderOf, openShard, type Shard, type ShardNode } from '@vacancy/testkit/shard'
import { happens, until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { callerOf, personOf } from './testing/control-plane.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const COMPONENTS = ['bridge-1', 'zone-router', 'edge']
const SEGMENT = 'alpine'
const EXISTS = { command: 'PROPEXIST', segment: SEGMENT, body: { property_id: 'hotel_1' } }

type Attribute = { readonly key: string; readonly value: { stringValue?: string; intValue?: number | string } }
type Span = {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  /** 2 server, 3 client. */
  readonly kind: number
  readonly of: { readonly [name: string]: string }
  readonly isError: boolean
}

const spans: Span[] = []
let collector: Awaited<ReturnType<typeof listen>>
let shard: Shard
let query: { readonly cluster: string; readonly router: string }
const started: Running[] = []

/** Takes what an exporter sends. */
function startCollector(): Promise<typeof collector> {
  return listen(
    createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        expect([request.method, request.url]).toEqual(['POST', '/v1/traces'])
        for (const { resource, scopeSpans } of JSON.parse(Buffer.concat(chunks).toString()).resourceSpans)
          for (const scope of scopeSpans)
            for (const { attributes, status, ...span } of scope.spans)
              spans.push({
                ...span,
                service: valuesOf(resource.attributes)['service.name'],
                of: valuesOf(attributes),
                isError: status?.code === 2,
              })
        response.setHeader('content-type', 'application/json')
        response.end('{}')
      })
    }) as Server,
  )
}

function valuesOf(attributes: readonly Attribute[]): { [name: string]: string } {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, String(value.stringValue ?? value.intValue ?? '')]),
  )
}

let traces = 0
/** A new trace, as a caller begins it. */
function newTrace(flags = '01') {
  const traceId = `${++traces}`.padStart(32, '5')
  const spanId = `${traces}`.padStart(16, '7')
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` }
}

/** The spans of a trace, once so many have come. */
const spansOf = (traceId: string, count: number) =>
  happens(`${count} spans of the trace`, started, () => {
    const found = spans.filter((span) => span.traceId === traceId)
    return found.length >= count && found
  })

function start(args: readonly string[], environment: { readonly [name: string]: string } = {}): Running {
  const running = launch(args, { environment })
  started.push(running)
  return running
}

/** The address that a program prints. */
const servingUrl = (running: Running) =>
  happens('it serves', [running], () => {
    const [, url = ''] = /^serving: (?:http )?(\S+)/m.exec(running.printed.stdout) ?? []
    return url !== '' && (url.startsWith('http') ? url : `http://${url}`)
  })

async function startProxy(flags: readonly string[], endpoint = collectorUrl()): Promise<string> {
  const own = ['--http-port', '0', '--slow-ms', '0', '--trace-endpoint', endpoint]
  const url = await servingUrl(start(['proxy', ...flags, ...own]))
  await until('the proxy is ready', async () => (await fetch(`${url}/ready`)).status === 200)
  return url
}

const collectorUrl = () => `http://127.0.0.1:${collector.port}`
const post = (url: string, body: object, headers: { readonly [name: string]: string } = {}) =>
  fetch(`${url}/api`, { method: 'POST', body: JSON.stringify(body), headers })

beforeAll(async () => {
  collector = await startCollector()
  const nodes = ['node-1', 'node-2', 'node-3']
  shard = await openShard({ nodes: [...nodes, ...COMPONENTS], voters: nodes })
  const { url: registry } = shard.startRegistry()
  const { url: resolver } = shard.startResolver()
  for (const node of nodes) shard.start(node)
  const places = ['--registry-addr', registry, '--resolver-addr', resolver]
  const at = (name: string) => [
    ...['--listen-host', shard.host(name), '--api-host', shard.host(name), '--slow-ms', '0'],
    ...['--trace-endpoint', collectorUrl()],
  ]
  start(['router', '--mode', 'edge', ...places, ...at('edge')])
  start([
    'router',
    '--mode',
    'zone',
    '--zone-id',
    'zone-1',
    '--router-id',
    'zone-router',
    ...places,
    ...at('zone-router'),
  ])
  const ofBridge = ['--zone-id', 'zone-1', '--shard-id', 'shard-1', '--bridge-id', 'bridge-1', '--listen-port', '9000']
  start(['bridge', ...ofBridge, ...places, ...at('bridge-1')])
  await leaderOf(shard)
  await fetch(`${registry}/segments/${SEGMENT}`, { method: 'PUT', body: JSON.stringify({ shard: 'shard-1' }) })
  const host = (url: string) => url.replace('http://', '')
  query = {
    cluster: await startProxy([
      ...['--mode', 'cluster', '--shard-id', 'shard-1', '--reads', 'leader'],
      ...['--registry-addr', host(registry), '--resolver-addr', host(resolver)],
    ]),
    router: await startProxy(['--mode', 'router', '--upstream-addr', shard.host('edge'), '--upstream-port', '9000']),
  }
  const { propertyId, propertyType, ...rest } = somewhere('hotel_1', SEGMENT) as { [name: string]: unknown }
  const property = { ...rest, property_id: propertyId, property_type: propertyType }
  const body = { command: 'SETPROP', body: property }
  await until('the segment is routed', async () => (await post(query.router, body)).status === 200)
})

afterAll(async () => {
  for (const { child } of started) child.kill('SIGKILL')
  await Promise.all(started.map(({ ended }) => ended))
  await shard?.close()
  await collector?.close()
})

test('a request through a proxy is one trace: the caller, the proxy, its call to the shard', async () => {
  const { traceId, spanId, traceparent } = newTrace()
  expect((await post(query.cluster, EXISTS, { traceparent })).status).toBe(200)
  const found = await spansOf(traceId, 2)
  const [request, call] = ['POST /api', 'PROPEXIST'].map((name) => found.find((span) => span.name === name) as Span)
  expect(found).toHaveLength(2)
  expect(request).toMatchObject({ service: 'vacancy-proxy', kind: 2, parentSpanId: spanId, isError: false })
  expect(request?.of).toMatchObject({ 'http.response.status_code': '200', command: 'PROPEXIST' })
  expect(call).toMatchObject({ service: 'vacancy-proxy', kind: 3, parentSpanId: request?.spanId, isError: false })
  expect(call?.of).toMatchObject({ command: 'PROPEXIST', shard: 'shard-1', tries: '1' })
  expect(shard.voters).toContain(call?.of['node'])
})

test('a write has its index, and a refusal its reason', async () => {
  const { traceId, traceparent } = newTrace()
  const night = { property_id: 'hotel_1', room_type: 'double', date: dayFromNow(3) }
  const write = { command: 'SETROOMPKG', segment: SEGMENT, body: { ...night, availability: 1, want_index: true } }
  const { index } = (await (await post(query.cluster, write, { traceparent })).json()) as { index: number }
  const taking = { command: 'DECROOMAVL', segment: SEGMENT, body: { ...night, amount: 9 } }
  expect((await post(query.cluster, taking, { traceparent })).status).toBe(400)
  const found = await spansOf(traceId, 4)
  expect(found.find(({ name }) => name === 'SETROOMPKG')?.of['index']).toBe(String(index))
  expect(found.find(({ name }) => name === 'DECROOMAVL')).toMatchObject({ isError: true })
  const refused = found.find(({ name, of }) => name === 'POST /api' && of['command'] === 'DECROOMAVL')
  expect(refused).toMatchObject({ isError: false, of: { 'error.type': 'UNDERFLOW' } })
  expect(refused?.of['reason']).toContain('not enough rooms')
})

function dayFromNow(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
}

test('the trace passes routers and bridges, and each shows it with slow requests', async () => {
  // Not recorded by the caller: shown all the same.
  const { traceId, traceparent } = newTrace('00')
  expect((await post(query.router, EXISTS, { traceparent })).status).toBe(200)
  for (const name of COMPONENTS) {
    const [, text] = await getText({ host: shard.host(name), apiPort: 9100 }, '/debug/slow')
    const requests = JSON.parse(text).requests as { trace_id: string | null; command: string }[]
    expect(requests.filter(({ trace_id }) => trace_id === traceId).map(({ command }) => command)).toEqual(['PROPEXIST'])
  }
  const slow = (await (await fetch(`${query.router}/debug/slow`)).json()) as { requests: { trace_id: string }[] }
  expect(slow.requests[0]?.trace_id).toBe(traceId)
  expect(spans.some((span) => span.traceId === traceId)).toBe(false)
})

test('routers and bridges record a request of a recorded trace below the call of the proxy', async () => {
  const { traceId, traceparent } = newTrace()
  expect((await post(query.router, EXISTS, { traceparent })).status).toBe(200)
  const found = await spansOf(traceId, 2 + COMPONENTS.length)
  const call = found.find(({ service, kind }) => service === 'vacancy-proxy' && kind === 3)
  const hops = found.filter(({ service }) => service !== 'vacancy-proxy')
  expect(hops.map(({ service }) => service).sort()).toEqual(['vacancy-bridge', 'vacancy-router', 'vacancy-router'])
  for (const hop of hops) {
    expect(hop).toMatchObject({ name: 'PROPEXIST', kind: 2, parentSpanId: call?.spanId, isError: false })
    expect(hop.of).toMatchObject({ command: 'PROPEXIST', segment: SEGMENT, tries: '1', result: 'ok' })
  }
  expect(hops.map(({ of }) => of['hop']).sort()).toEqual([
    'bridge-1',
    expect.stringMatching(/^node-\d$/),
    'zone-router',
  ])
})

test('a node shows the trace of a slow request', async () => {
  const leader = await leaderOf(shard)
  const others = shard.running().filter(({ name }) => name !== leader.name)
  const linearizable = { ...EXISTS, body: { ...EXISTS.body, linearizable: true } }
  await until('a slow read at the leader', async () => {
    const { traceId, traceparent } = newTrace()
    const toAll = (signal: NodeJS.Signals) => others.forEach((node) => void node.signal(signal))
    // The leader cannot confirm that it leads until they continue.
    toAll('SIGSTOP')
    const answer = post(query.cluster, linearizable, { traceparent })
    await new Promise((resolve) => setTimeout(resolve, 150))
    toAll('SIGCONT')
    expect((await answer).status).toBe(200)
    return (await slowTraces(leader)).includes(traceId)
  })
})

async function slowTraces(node: ShardNode): Promise<readonly (string | null)[]> {
  const [, text] = await getText(node, '/debug/slow', ADMIN_TOKEN)
  return JSON.parse(text).requests.map(({ trace_id }: { trace_id: string | null }) => trace_id)
}

test('a request of the playground is one trace: the caller, the control plane, its call to a node', async () => {
  const nodes = shard.voters.map((name) => `http://${shard.host(name)}:8080`).join(',')
  const plane = start(
    [
      ...['control-plane', '--web=false', '--listen-port', '0', '--data-dir', join(shard.folder, 'plane')],
      ...['--nodes', nodes, '--trace-endpoint', collectorUrl(), '--sign-in', 'ada', '--probe-interval-secs', '0'],
    ],
    Object.fromEntries(
      ['MONITORING', 'CLIENT', 'ADMIN'].map((role) => [`VACANCY_CONTROL_PLANE_NODE_${role}_TOKEN`, ADMIN_TOKEN]),
    ),
  )
  const url = await servingUrl(plane)
  const code = await happens('a sign-in link', [plane], () => /#code=([\w-]+)/.exec(plane.printed.stdout)?.[1])
  const ada = personOf(url, await callerOf(url, {}).call('POST', '/api/v1/session/link', { code }))
  const body = { shard: 'shard-1', command: 'PROPEXIST', fields: { propertyId: 'hotel_1' } }
  const { traceId, spanId, traceparent } = await happens('an answer of a node', [plane], async () => {
    const trace = newTrace()
    const answer = await ada.call('POST', '/api/v1/query', body, { traceparent: trace.traceparent })
    return answer.status === 200 && trace
  })
  const found = await spansOf(traceId, 2)
  const [request, call] = ['POST /api/v1/query', 'PROPEXIST'].map((name) => found.find((span) => span.name === name))
  expect(found).toHaveLength(2)
  expect(traceparent).toContain(spanId)
  expect(request).toMatchObject({ service: 'vacancy-control-plane', kind: 2, parentSpanId: spanId, isError: false })
  expect(call).toMatchObject({ service: 'vacancy-control-plane', kind: 3, parentSpanId: request?.spanId })
  expect(shard.voters).toContain(call?.of['node'])
  // The collector is told everything before the end.
  const last = newTrace()
  expect((await ada.call('GET', '/api/v1/nowhere', undefined, { traceparent: last.traceparent })).status).toBe(404)
  plane.child.kill('SIGTERM')
  expect((await plane.ended).code).toBe(0)
  expect(spans.filter((span) => span.traceId === last.traceId)).toMatchObject([
    { of: { 'error.type': 'no-such-path' } },
  ])
})

test('a job is one trace: its producer, the queue, and what its consumer gets', async () => {
  const authFile = join(shard.folder, 'queue.yml')
  const folder = join(shard.folder, 'queue')
  const queue = start([
    ...['queue', 'serve', '--listen-port', '0', '--data-dir', folder, '--auth-file', authFile],
    ...['--trace-endpoint', collectorUrl()],
  ])
  const url = await servingUrl(queue)
  // Of the file that the first start has made.
  const token = /token: ([\w-]+), role: admin/.exec(readFileSync(authFile, 'utf8'))?.[1] as string
  const headers = { authorization: `Bearer ${token}` }
  const topic = JSON.stringify({ topic: 'orders' })
  expect((await fetch(`${url}/producer/topic`, { method: 'POST', headers, body: topic })).status).toBe(200)
  const { traceId, spanId, traceparent } = newTrace()
  const job = JSON.stringify({ job: { id: 'a', topic: 'orders', json: 1 } })
  const submission = { method: 'POST', headers: { ...headers, traceparent }, body: job }
  expect((await fetch(`${url}/producer/jobs`, submission)).status).toBe(200)
  const own = newTrace()
  const producer = createProducer({ url, token })
  await producer.submit([
    { topic: 'orders', id: 'b', data: 2, traceparent: own.traceparent },
    { topic: 'orders', id: 'c' },
  ])
  await producer.close()
  const jobs: Job[] = []
  const consumer = createConsumer({ url, token, topic: 'orders', handler: (each) => jobs.push(each) })
  await happens('three jobs', [queue], () => jobs.length === 3)
  await consumer.close()
  const [request] = await spansOf(traceId, 1)
  expect(request).toMatchObject({
    service: 'vacancy-queue',
    name: 'POST /producer/jobs',
    kind: 2,
    parentSpanId: spanId,
  })
  const [a, b, c] = jobs
  expect(parseTraceparent(a?.traceparent ?? '')).toMatchObject({ traceId, spanId: request?.spanId, isSampled: true })
  expect([b?.traceparent, c?.traceparent]).toEqual([own.traceparent, undefined])
})

test('a collector that hangs holds up neither requests nor the end, and what it lost is counted', async () => {
  const silent = await listen(createServer(() => {}) as Server)
  const flags = ['--mode', 'router', '--upstream-addr', shard.host('edge'), '--upstream-port', '9000']
  const url = await startProxy([...flags, '--trace-per-thousand', '1000'], `http://127.0.0.1:${silent.port}`)
  for (let round = 0; round < 30; round++) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => post(url, EXISTS)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
  }
  const metrics = await (await fetch(`${url}/metrics`)).text()
  // Of 3,000 spans at most 512 are at the collector, and 2,048 wait.
  const [, dropped = '0'] = /^api_spans_total\{result="dropped"\} (\d+)/m.exec(metrics) ?? []
  expect(Number(dropped)).toBeGreaterThanOrEqual(3_000 - 512 - 2_048)
  const proxy = started.at(-1) as Running
  proxy.child.kill('SIGTERM')
  expect((await proxy.ended).code).toBe(0)
  await silent.close()
})
