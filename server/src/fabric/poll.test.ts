/** Polling of the fabric: which paths of which component, when, and what a failure changes. HTTP and clock are simulated. */

import { turnableClock } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { RegistryState } from '../cluster/discovery.ts'
import { type HttpReply, type NodeHttp, NodeHttpError } from '../cluster/node-http.ts'
import { FABRIC, type FabricConfig, type Polled } from './fabric.ts'
import { createFabric, listComponents, registers, startFabric, stopFabric } from './poll.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const READY = JSON.stringify({ ready: true, version: '1.2' })
const NONE: FabricConfig = { registries: [], resolver: undefined, components: [], token: 'secret' }

type Topology = NonNullable<RegistryState['topology']>
type Row = Topology['routers'][number]
type Answer = string | number | { readonly status: number; readonly body: string } | Error

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
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
      vi.advanceTimersByTime(50)
      await new Promise(setImmediate)
      return calls.splice(0)
    },
  }
}

const LATE = new NodeHttpError('timeout', 'no response within 800 ms')

test('the configured components are listed by their addresses, edges until they name their kind', () => {
  const { fabric, keys, component } = world({
    registries: ['http://r1:7000', 'http://r2:7000'],
    resolver: 'http://res:7100',
    components: ['http://e1:8080/'],
  })
  startFabric(fabric)

  expect(keys()).toEqual(['registry r1:7000', 'registry r2:7000', 'resolver res:7100', 'edge e1:8080'])
  expect(component('edge e1:8080')).toMatchObject({ apiUrl: 'http://e1:8080', registered: undefined, since: NOW + 1e6 })
  stopFabric(fabric)
})

test('without a resolver none is listed', () => {
  const { fabric, keys } = world({ registries: ['http://r1:7000'] })
  startFabric(fabric)
  expect(keys()).toEqual(['registry r1:7000'])
  stopFabric(fabric)
})

test.each([
  ['zone-router', true],
  ['bridge', true],
  ['edge', false],
  ['proxy', false],
  ['registry', false],
  ['resolver', false],
] as const)('%s registers: %s', (kind, isTrue) => {
  expect(registers(kind)).toBe(isTrue)
})

// The list of the registry

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

test('a registry without a reply changes nothing', () => {
  const { registry, list, keys, component } = world()
  registry({ topology: topologyOf([row('r1')]), isUp: true, at: undefined })
  registry({ topology: undefined, isUp: true, at: NOW })
  expect(keys()).toEqual([])

  list(topologyOf([row('r1')]))
  registry({ topology: undefined, isUp: true, at: NOW + 9e9 })
  expect(component('zone-router r1').registered).toBeDefined()
})

test('a listed component keeps its reports, and takes new address and heartbeat', () => {
  const { list, component, clock } = world()
  list(topologyOf([row('r1')]))
  const first = component('zone-router r1')
  clock.advance(5_000)
  list(topologyOf([row('r1', { api_url: 'http://r1:9090/x', age_secs: 0.25 })]))

  expect(component('zone-router r1')).toBe(first)
  expect(first.apiUrl).toBe('http://r1:9090')
  expect(first.registered?.beatAt).toBe(clock.wallMs() - 250)
  expect([first.listedAt, first.since]).toEqual([clock.wallMs(), NOW + 1_000_000])
})

test.each([
  ['another zone', { zone: 'z9' }, 's1'],
  ['another shard', {}, 's2'],
] as const)('with %s it is a new component', (_, change, shard) => {
  const { list, component, keys } = world()
  list(topologyOf([], [{ ...row('b1'), shard: 's1' }]))
  const first = component('bridge b1')
  list(topologyOf([], [{ ...row('b1', change), shard }]))
  expect(component('bridge b1')).not.toBe(first)
  expect(component('bridge b1').shard).toBe(shard)
  expect(keys()).toEqual(['bridge b1'])
})

test.each([
  ['http://h:80/path', 'http://h'],
  ['https://h:8443', 'https://h:8443'],
  ['http://0.0.0.0:8080', ''],
  ['http://[::]:8080', ''],
  ['ftp://h:21', ''],
  ['no address', ''],
  [undefined, ''],
])('the address %s is polled as "%s"', (url, expected) => {
  const { list, component } = world()
  const { api_url: _, ...rest } = row('r1')
  list(topologyOf([url === undefined ? (rest as Row) : { ...rest, api_url: url }]))
  expect(component('zone-router r1').apiUrl).toBe(expected)
})

test('a component without an address is listed and not polled', async () => {
  const { list, fabric, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1', { api_url: 'http://0.0.0.0:1' })]))
  expect(await pass(50)).toEqual([])
  stopFabric(fabric)
})

test('at most 5,000 components are listed, and known ones stay current', () => {
  const { list, fabric, component, clock } = world()
  const rows = Array.from({ length: FABRIC.componentsMax + 1 }, (_, at) => row(`r${at}`))
  list(topologyOf(rows))
  expect(fabric.components.size).toBe(5_000)
  clock.advance(10)
  list(topologyOf(rows))
  expect(fabric.components.size).toBe(5_000)
  expect(component('zone-router r0').listedAt).toBe(clock.wallMs())
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
  const { fabric, list, answers, keys, clock, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', READY)
  await pass(50)
  clock.advance(FABRIC.leftMs + 1)
  list(topologyOf([]))
  expect(keys()).toEqual(['zone-router r1'])

  answers.set('http://r1:8080/ready', LATE)
  await pass(50)
  list(topologyOf([]))
  expect(keys()).toEqual([])
  stopFabric(fabric)
})

test('configured components do not leave', () => {
  const { fabric, list, keys, clock } = world({ registries: ['http://r1:7000'] })
  startFabric(fabric)
  clock.advance(FABRIC.leftMs + 1)
  list(topologyOf([]))
  expect(keys()).toEqual(['registry r1:7000'])
  stopFabric(fabric)
})

// Paths

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
  ['bridge', READY, ['/ready', '/topology', '/metrics']],
  ['zone-router', READY, ['/ready', '/hops', '/metrics']],
  ['zone-router', 'not json', ['/ready', '/health', '/metrics', '/status']],
] as const)('the paths of a %s that reports %s', async (kind, ready, paths) => {
  const { fabric, list, answers, pass } = world()
  startFabric(fabric)
  const rows = [{ ...row('x'), shard: 's1' }]
  list(kind === 'bridge' ? topologyOf([], rows) : topologyOf(rows))
  answers.set('http://x:8080/ready', ready)
  expect(await pass(50)).toEqual(paths.map((path) => `http://x:8080${path}`))
  stopFabric(fabric)
})

test('an edge reports hops, and a registry reports neither hops nor status', async () => {
  const { fabric, answers, pass, options } = world({ registries: ['http://g:7000'], components: ['http://e:8080'] })
  startFabric(fabric)
  answers.set('http://e:8080/ready', JSON.stringify({ ready: true }))
  answers.set('http://g:7000/ready', JSON.stringify({ ready: true }))
  const calls = await pass(50)

  expect(calls.filter((url) => url.includes('//e:'))).toEqual(
    ['/ready', '/hops', '/metrics', '/status'].map((path) => `http://e:8080${path}`),
  )
  expect(calls.filter((url) => url.includes('//g:'))).toEqual(['/ready', '/metrics'].map((p) => `http://g:7000${p}`))
  // Only the registry gets its token.
  calls.forEach((url, at) => {
    const token = url.includes('//g:') ? { token: 'secret' } : {}
    expect(options[at]).toEqual({ timeoutMs: 800, ...token })
  })
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

test('without a metrics page there are no rates', async () => {
  const { fabric, list, answers, component, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', READY)
  answers.set('http://r1:8080/metrics', { status: 500, body: METRICS(3) })
  await pass(50)
  expect(component('zone-router r1').reported).toMatchObject({ counters: undefined, rates: undefined, version: '1.2' })
  stopFabric(fabric)
})

test('a configured component that names itself a proxy is listed as one, and is polled again soon', async () => {
  const { fabric, answers, keys, component, pass, changes } = world({ components: ['http://p:8080'] })
  startFabric(fabric)
  answers.set('http://p:8080/ready', JSON.stringify({ ready: true, component: 'proxy' }))
  expect(await pass(50)).toEqual(['/ready', '/metrics'].map((path) => `http://p:8080${path}`))

  expect(keys()).toEqual(['proxy p:8080'])
  expect(component('proxy p:8080')).toMatchObject({ apiUrl: 'http://p:8080', reported: { ready: { ready: true } } })
  expect(changes()).toBe(1)
  expect(await pass(249)).toEqual([])
  expect((await pass(1)).length).toBe(2)
  answers.set('http://p:8080/ready', JSON.stringify({ ready: true, component: 'router' }))
  await pass(1_000)
  expect(keys()).toEqual(['edge p:8080'])
  stopFabric(fabric)
})

test('a zone router keeps its kind, whatever it names itself', async () => {
  const { fabric, list, answers, keys, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  answers.set('http://r1:8080/ready', JSON.stringify({ ready: true, component: 'proxy' }))
  await pass(50)
  expect(keys()).toEqual(['zone-router r1'])
  stopFabric(fabric)
})

// Failures and load

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

test('a change is announced once: the first reply, and another readiness', async () => {
  const { fabric, list, answers, pass, changes } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  const seen: number[] = []
  for (const ready of [true, true, false, false, true]) {
    answers.set('http://r1:8080/ready', JSON.stringify({ ready }))
    await pass(1_000)
    seen.push(changes())
  }
  expect(seen).toEqual([1, 1, 2, 2, 3])
  stopFabric(fabric)
})

test('a first reply without readiness is announced, too', async () => {
  const { fabric, list, pass, changes } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  await pass(50)
  await pass(1_000)
  expect(changes()).toBe(1)
  stopFabric(fabric)
})

test('an unexpected error is logged, and the component is polled again with the next round', async () => {
  const { fabric, list, answers, component, errors, pass } = world()
  startFabric(fabric)
  list(topologyOf([row('r1')]))
  const error = new TypeError('a defect')
  answers.set('http://r1:8080/ready', error)
  await pass(50)
  expect(errors).toEqual([{ err: error, component: 'zone-router r1' }])
  expect([component('zone-router r1').missed, fabric.busy]).toEqual([0, 0])
  expect((await pass(1_000)).length).toBe(1)
  stopFabric(fabric)
})

/** Components whose replies wait until they are released. */
function waiting(count: number) {
  const given = world()
  const release: (() => void)[] = []
  const rows = Array.from({ length: count }, (_, at) => row(`r${at}`))
  given.list(topologyOf(rows))
  for (const { id } of rows) {
    given.answers.set(`http://${id}:8080/ready`, async () => {
      await new Promise<void>((resolve) => release.push(resolve))
      throw LATE
    })
  }
  startFabric(given.fabric)
  return { ...given, release }
}

test('at most 32 components are polled at once, and the ones that waited longest come first', async () => {
  const { fabric, component, pass, release } = waiting(40)
  for (const { key } of fabric.components.values()) component(key).nextAt = 10
  component('zone-router r39').nextAt = 1
  component('zone-router r38').nextAt = 2

  const first = await pass(50)
  expect(first.length).toBe(32)
  expect(first.slice(0, 3)).toEqual(['r39', 'r38', 'r0'].map((id) => `http://${id}:8080/ready`))
  expect(await pass(50)).toEqual([])
  release.shift()?.()
  await new Promise(setImmediate)
  expect(fabric.busy).toBe(31)
  expect(await pass(50)).toEqual(['http://r30:8080/ready'])
  stopFabric(fabric)
})

test('at most 8 of them may be silent, from the second failure on', async () => {
  const { fabric, component, pass, release } = waiting(20)
  for (const { key } of fabric.components.values()) component(key).missed = 2
  component('zone-router r18').missed = 1
  component('zone-router r19').missed = 0

  const first = await pass(50)
  expect(first.length).toBe(10)
  expect(first.slice(8)).toEqual(['http://r18:8080/ready', 'http://r19:8080/ready'])
  expect([fabric.busy, fabric.busySilent]).toEqual([10, 8])
  for (const go of release.splice(0)) go()
  await new Promise(setImmediate)
  expect([fabric.busy, fabric.busySilent]).toEqual([0, 0])
  expect((await pass(50)).length).toBe(8)
  stopFabric(fabric)
})

test('a component is polled once at a time, and a slow round is followed by the next one at once', async () => {
  const { fabric, pass, release } = waiting(1)
  expect((await pass(50)).length).toBe(1)
  expect((await pass(5_000)).length).toBe(0)
  release.shift()?.()
  await new Promise(setImmediate)
  expect((await pass(0)).length).toBe(1)
  stopFabric(fabric)
})

test('after the end nothing is polled', async () => {
  const { fabric, pass } = waiting(1)
  stopFabric(fabric)
  expect(await pass(50)).toEqual([])
})
