import { turnableClock } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type HttpReply, type NodeHttp, NodeHttpError } from '../http/node-http.ts'
import { FABRIC, type FabricConfig, type Polled, type RegistryState } from './fabric.ts'
import { createFabric, listComponents, startFabric, stopFabric } from './poll.ts'
import { ratesBetween, readCounters, readHops } from './replies.ts'

/** Polling of the fabric: which paths of which component, when, and what a failure changes. HTTP and clock are simulated. */

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const READY = JSON.stringify({ ready: true, version: '1.2' })
const NONE: FabricConfig = { registries: [], resolver: undefined, components: [], token: 'secret' }

type Topology = NonNullable<RegistryState['topology']>
type Row = Topology['routers'][number]
type Answer = string | number | { readonly status: number; readonly body: string } | Error

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const row = (id: string, change: Partial<Row> = {}): Row => ({
  ...{ id, zone: 'z1', age_secs: 1.5, api_url: `http://${id}:8080`, version: '1.0', started_at: 'then' },
  ...change,
})

const topologyOf = (routers: readonly Row[], bridges: readonly (Row & { readonly shard: string })[] = []) =>
  ({ routers, bridges, shards: {} }) as unknown as Topology

/** A fabric whose components answer from a table; a path without a row answers 404. */
function world(config: Partial<FabricConfig> = {}) {
  const clock = turnableClock(NOW)
  clock.advance(1_000_000)
  const answers = new Map<string, Answer | (() => Promise<HttpReply>)>()
  const calls: string[] = []
  const options: unknown[] = []
  const errors: unknown[] = []
  let changes = 0
  let registry = { topology: undefined, isUp: true, at: undefined } as Pick<RegistryState, 'topology' | 'isUp' | 'at'>
  const reply = (status: number, body: string): HttpReply => ({ status, body, type: '', milliseconds: 1 })
  const http: NodeHttp = {
    async request(url, given) {
      calls.push(url)
      options.push(given)
      const answer = answers.get(url) ?? 404
      if (answer instanceof Error) throw answer
      if (typeof answer === 'function') return await answer()
      if (typeof answer === 'number') return reply(answer, '')
      return typeof answer === 'string' ? reply(200, answer) : reply(answer.status, answer.body)
    },
    close: () => {},
  }
  const fabric = createFabric(
    { ...NONE, ...config },
    {
      ...{ http, clock, log: { error: (fields: unknown) => errors.push(fields) } as unknown as Log },
      registry: () => registry as RegistryState,
      onChange: () => void changes++,
    },
  )
  return {
    ...{ fabric, clock, answers, calls, options, errors },
    changes: () => changes,
    list(topology: Topology, isUp = true) {
      registry = { topology, isUp, at: clock.wallMs() }
      listComponents(fabric)
    },
    registry: (state: typeof registry) => {
      registry = state
      listComponents(fabric)
    },
    component: (key: string) => fabric.components.get(key) as Polled,
    keys: () => [...fabric.components.keys()],
    /** Time passes, and what is due is polled. */
    async pass(ms: number) {
      clock.advance(ms)
      vi.advanceTimersByTime(ms + 50)
      await new Promise(setImmediate)
      return calls.splice(0)
    },
  }
}

const LATE = new NodeHttpError('timeout', 'no response within 800 ms')

test('routers and bridges come from the registry, with the time of their heartbeat', () => {
  const { list, component, keys } = world()
  list(
    topologyOf(
      [row('r1')],
      [
        { ...row('b1', { zone: 'z2' }), shard: 's1' },
        { ...row('b2'), shard: 's2' },
      ],
    ),
  )

  expect(keys()).toEqual(['zone-router r1', 'bridge b1', 'bridge b2'])
  expect(component('zone-router r1')).toMatchObject({
    ...{ kind: 'zone-router', id: 'r1', zone: 'z1', shard: undefined, apiUrl: 'http://r1:8080' },
    registered: { version: '1.0', startedAt: 'then', beatAt: NOW + 1_000_000 - 1_500 },
  })
  expect(component('bridge b1')).toMatchObject({ zone: 'z2', shard: 's1' })
  expect(component('bridge b2')).toMatchObject({ zone: 'z1', shard: 's2' })
})

test('a component that left the registry is forgotten after ten minutes without replies', () => {
  const { list, component, keys, clock } = world()
  list(topologyOf([row('r1'), row('r2')]))
  clock.advance(FABRIC.leftMs)
  list(topologyOf([row('r2')]))
  expect(component('zone-router r1').registered).toBeUndefined()
  expect(component('zone-router r2').registered).toBeDefined()
  clock.advance(1)
  list(topologyOf([row('r2')]), false)
  expect(keys()).toEqual(['zone-router r1', 'zone-router r2'])
  list(topologyOf([row('r2')]))
  expect(keys()).toEqual(['zone-router r2'])
})

test('one that left and still responds stays, until it fails', async () => {
  const { fabric, list, answers, keys, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', READY)
  await pass(FABRIC.leftMs + 1)
  list(topologyOf([]))
  expect(keys()).toEqual(['zone-router r1'])

  answers.set('http://r1:8080/ready', LATE)
  await pass(FABRIC.roundMs)
  list(topologyOf([]))
  expect(keys()).toEqual([])
  stopFabric(fabric)
})

const METRICS = (reads: number) =>
  `router_frames_received_total ${reads}\nrouter_requests_total{kind="read",result="ok"} ${reads}\n`

test('the hops of a zone router are requested each round, its metrics and version every 3 s', async () => {
  const { fabric, list, answers, component, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', JSON.stringify({ ready: true }))
  answers.set('http://r1:8080/hops', JSON.stringify({ hops: [{ id: 'b1', connections: 3 }] }))
  answers.set('http://r1:8080/metrics', METRICS(100))
  answers.set('http://r1:8080/status', JSON.stringify({ version: '1.3' }))
  const url = (paths: string[]) => paths.map((path) => `http://r1:8080${path}`)

  expect(await pass(50)).toEqual(url(['/ready', '/hops', '/metrics', '/status']))
  const { reported } = component('zone-router r1')
  expect(reported).toMatchObject({ at: NOW + 1_000_050, version: '1.3', hops: [{ id: 'b1', connections: 3 }] })
  expect(reported?.rates?.reads).toBeNull()
  expect(reported?.counters).toMatchObject({ at: NOW + 1_000_050, reads: 100 })
  // A round begins 1 s after the start of the one before.
  expect(await pass(999)).toEqual([])
  expect(await pass(1)).toEqual(url(['/ready', '/hops']))
  expect(component('zone-router r1').reported).toMatchObject({ version: '1.3', counters: { reads: 100 } })
  answers.set('http://r1:8080/metrics', METRICS(400))
  expect(await pass(1_999)).toEqual(url(['/ready', '/hops']))
  expect(await pass(1_001)).toEqual(url(['/ready', '/hops', '/metrics', '/status']))
  expect(component('zone-router r1').reported?.rates).toMatchObject({ reads: 75 })
  stopFabric(fabric)
})

test.each([
  [200, true],
  [503, true],
  [500, false],
] as const)('a readiness reply with status %d is read: %s', async (status, isRead) => {
  const { fabric, list, answers, component, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', { status, body: JSON.stringify({ ready: false }) })
  await pass(50)
  expect(component('zone-router r1').reported?.ready?.ready).toBe(isRead ? false : undefined)
  stopFabric(fabric)
})

test('after the first failure it is polled again after 250 ms, after further ones with each round', async () => {
  const { fabric, list, answers, component, clock, pass, changes } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', LATE)
  expect((await pass(50)).length).toBe(1)
  expect(component('zone-router r1')).toMatchObject({
    missed: 1,
    failure: { code: 'timeout', message: 'no response within 800 ms', at: clock.wallMs() },
  })
  expect(changes()).toBe(1)
  expect((await pass(249)).length).toBe(0)
  expect((await pass(1)).length).toBe(1)
  expect(component('zone-router r1').missed).toBe(2)
  expect((await pass(999)).length).toBe(0)
  expect((await pass(1)).length).toBe(1)
  expect([component('zone-router r1').missed, changes()]).toEqual([3, 3])

  answers.set('http://r1:8080/ready', READY)
  await pass(1_000)
  expect(component('zone-router r1')).toMatchObject({ missed: 0, failure: undefined })
  expect(changes()).toBe(4)
  stopFabric(fabric)
})

const page = (reads: number, writes: number, failed: number) => `# HELP x
bridge_requests_total{kind="read",result="ok"} ${reads}
bridge_requests_total{kind="read",result="404"} 7
bridge_requests_total{kind="write",result="503"} ${failed}
bridge_frames_received_total ${reads + writes}
bridge_hop_requests_total{hop="n\\"1",kind="read"} ${reads}
bridge_hop_requests_total{hop="n\\"1",kind="write"} ${writes}
bridge_request_duration_seconds_bucket{kind="read",le="0.002"} ${reads - 1}
bridge_request_duration_seconds_bucket{kind="read",le="0.5"} ${reads}
bridge_request_duration_seconds_bucket{kind="read",le="+Inf"} ${reads}
bridge_inflight 3
garbage {{{
`

test('rates are the difference of two readings', () => {
  const first = readCounters(page(100, 10, 1), 0)
  const second = readCounters(page(300, 20, 3), 2_000)

  const rates = second && ratesBetween(first, second)

  expect(rates).toMatchObject({ reads: 100, errors: 1, received: 105, p99: 2 })
  expect(rates?.sent).toEqual(new Map([['n"1', { reads: 100, writes: 5 }]]))
  expect(second?.inFlight).toBe(3)
})

test('a counter that began again has no rate', () => {
  const first = readCounters(page(300, 20, 0), 0)
  const second = readCounters(page(5, 0, 0), 1_000)

  expect(second && ratesBetween(first, second)).toMatchObject({ reads: null, received: null, p99: null })
  expect(readCounters('up 1\n', 0)).toBeUndefined()
})

test('a hop of an older component has no requests in flight, is not left out, and has no fault', () => {
  const hop = { id: 'b1', connections: 2 }

  expect(readHops(JSON.stringify({ hops: [hop] }))).toEqual([{ ...hop, in_flight: 0, ejected_for_ms: 0, fault: '' }])
  expect(readHops(JSON.stringify({ hops: [{ id: 'b1' }] }))).toBeUndefined()
})
