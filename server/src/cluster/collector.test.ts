/** The nodes and shards that the collector knows: from discovery, from the previous process, and until they are forgotten. */

import { turnableClock } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { infoOf, NOW, observedNode } from '../testing/observed-nodes.ts'
import {
  collectorCounts,
  createCollector,
  forgetNode,
  knownNodes,
  namedBy,
  observationsOf,
  shardView,
  shardViews,
  startCollector,
  stopCollector,
  watchClosely,
} from './collector.ts'
import { addNode, COLLECTOR, type PolledNode } from './collector-state.ts'
import { DISCOVERY } from './discovery.ts'
import { NodeHttpError } from './node-http.ts'
import type { KnownNode } from './node-store.ts'
import { emptyObservation } from './observation.ts'
import { deriveDueViews, deriveView } from './shard-views.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

const addressOf = (id: string, shard = 's1') => ({
  ...{ id, shard, zone: 'z1', apiUrl: `http://${id}:8080`, tcp: { host: id, port: 7_777 } },
})
const known = (id: string, change: Partial<KnownNode> = {}): KnownNode => ({
  ...{ address: addressOf(id), isListed: false, role: 'leader', namedAt: NOW - 5_000, answeredAt: NOW - 2_000 },
  ...change,
})

/** A collector whose registry lists nodes; no node responds. */
function world({ registry = true, nodes = [] as readonly string[] } = {}) {
  const clock = turnableClock(NOW)
  clock.advance(100_000)
  const listed = new Map<string, object>()
  const calls: string[] = []
  const views: string[] = []
  const errors: unknown[] = []
  const lines: unknown[] = []
  let isUp = true
  let hold: Promise<void> | undefined
  const http = {
    close: () => undefined,
    async request(url: string) {
      calls.push(url)
      await hold
      if (!url.endsWith('/topology') || !isUp) throw new NodeHttpError('refused', 'connection refused')
      const body = JSON.stringify({
        ...{ epoch: 'e', global_version: 1, warming: false, heartbeat_timeout_secs: 30, zones: [], shards: {} },
        ...{ routers: [], bridges: [], segments: {}, conflicts: [], versions: {}, nodes: [...listed.values()] },
      })
      return { status: 200, type: 'application/json', body, milliseconds: 1 }
    },
  }
  const collector = createCollector(
    {
      ...{ registries: registry ? ['http://registry'] : [], resolver: undefined, nodes, apiPort: 8_080 },
      ...{ tcpPort: 7_777, registryToken: undefined, nodeToken: undefined },
      ...{ monitoringToken: undefined, adminToken: undefined },
    },
    http,
    {
      facts: () => ({ operation: null, writePause: null }),
      onShard: (view, before) => void views.push(`${view.id} ${before ? 'again' : 'first'}`),
      onShardGone: (id) => void views.push(`${id} gone`),
      onReading: () => undefined,
    },
    {
      error: (fields: unknown) => errors.push(fields),
      info: (fields: unknown) => lines.push(fields),
    } as unknown as Log,
    clock,
  )
  const list = (id: string, change: object = {}) =>
    void listed.set(id, { id, zone: 'z1', shard: 's1', age_secs: 1, api_url: `http://${id}:8080`, ...change })
  return {
    ...{ collector, clock, calls, views, errors, lines, list, listed },
    unlist: (id: string) => void listed.delete(id),
    setUp: (value: boolean) => {
      isUp = value
    },
    hold: (promise: Promise<void>) => {
      hold = promise
    },
    node: (id: string) => collector.nodes.get(`s1/${id}`) as PolledNode,
    keys: () => [...collector.nodes.keys()],
    /** The next discovery. */
    async refresh() {
      clock.advance(DISCOVERY.intervalMs)
      vi.advanceTimersByTime(DISCOVERY.intervalMs)
      await collector.refreshing
    },
  }
}

test('discovered nodes are polled at different times of the first round', async () => {
  const { collector, list, node, keys } = world()
  for (const id of ['n1', 'n2', 'n3', 'n4']) list(id)
  await startCollector(collector, [])
  expect(keys()).toEqual(['s1/n1', 's1/n2', 's1/n3', 's1/n4'])
  expect(['n1', 'n2', 'n3', 'n4'].map((id) => node(id).nextAt)).toEqual([100_000, 100_250, 100_500, 100_750])
  expect(node('n1')).toMatchObject({ by: 'registry', namedAt: NOW + 100_000, role: undefined, isBusy: true })
  expect(node('n2').isBusy).toBe(false)
  expect(collectorCounts(collector)).toMatchObject({ nodes: 4, requests: 1, failures: 0 })
  await stopCollector(collector)
})

test('polls, views and discovery follow at their intervals, until the end', async () => {
  const { collector, list, calls, views, clock } = world()
  list('n1')
  list('n2')
  await startCollector(collector, [])
  const pass = async (ms: number) => {
    calls.length = 0
    clock.advance(ms)
    vi.advanceTimersByTime(ms)
    await new Promise(setImmediate)
    return [...calls]
  }
  await pass(0)
  expect(views).toEqual([])
  await pass(COLLECTOR.deriveMs)
  expect(views).toEqual(['s1 first'])
  expect(await pass(400)).toEqual(['http://n2:8080/healthz'])
  expect(await pass(4_500)).toContain('http://registry/topology')
  await stopCollector(collector)
  expect(await pass(10_000)).toEqual([])
})

test('a listed node keeps its observation, takes its new address, and is listed since now', async () => {
  const { collector, list, node, clock, refresh } = world()
  list('n1')
  await startCollector(collector, [])
  const first = node('n1')
  const { address } = first.observation
  await refresh()
  expect(node('n1')).toBe(first)
  expect(first.observation.address).toBe(address)
  expect(first.namedAt).toBe(clock.wallMs())
  for (const change of [{ zone: 'z2' }, { zone: 'z2', api_url: 'http://other:8080' }]) {
    list('n1', change)
    await refresh()
    expect(first.observation.address.zone).toBe('z2')
  }
  expect(first.observation.address).toMatchObject({ apiUrl: 'http://other:8080', tcp: { host: 'other', port: 7_777 } })
  await stopCollector(collector)
})

test('the last list of an unreachable registry does not renew when nodes were listed', async () => {
  const { collector, list, node, setUp, refresh } = world()
  list('n1')
  await startCollector(collector, [])
  setUp(false)
  await refresh()
  expect(node('n1')).toMatchObject({ by: 'registry', namedAt: NOW + 100_000 })
  await stopCollector(collector)
})

test('a node that left is remembered for a week, and then forgotten with its shard', async () => {
  const { collector, list, unlist, keys, node, clock, lines, views, refresh } = world()
  list('n1')
  await startCollector(collector, [])
  deriveView(collector, 's1')
  unlist('n1')
  await refresh()
  expect(node('n1')).toMatchObject({ by: 'memory', namedAt: NOW + 100_000 })
  expect(namedBy(collector, { shard: 's1', id: 'n1' })).toBe('memory')
  clock.advance(DISCOVERY.forgetSilentMs)
  await refresh()
  expect([keys(), lines]).toEqual([[], [{ shard: 's1', node: 'n1' }]])
  expect(namedBy(collector, { shard: 's1', id: 'n1' })).toBeUndefined()
  deriveView(collector, 's1')
  expect(views.at(-1)).toBe('s1 gone')
  expect([shardViews(collector), shardView(collector, 's1')]).toEqual([[], undefined])
  await stopCollector(collector)
})

test('a discovery that ends after the stop changes nothing, and the stop waits for it', async () => {
  const { collector, list, keys, hold, clock } = world()
  await startCollector(collector, [])
  list('n1')
  const released = Promise.withResolvers<void>()
  hold(released.promise)
  clock.advance(5_000)
  vi.advanceTimersByTime(DISCOVERY.intervalMs)
  const { refreshing } = collector
  expect(refreshing).toBeDefined()
  vi.advanceTimersByTime(DISCOVERY.intervalMs)
  expect(collector.refreshing).toBe(refreshing)
  const stopped = stopCollector(collector)
  released.resolve()
  await stopped
  expect(keys()).toEqual([])
  expect(collector.refreshing).toBeUndefined()
})

test('a failed discovery is logged and repeated', async () => {
  const { collector, hold, errors, refresh } = world()
  await startCollector(collector, [])
  const error = new TypeError('a defect')
  const failing = Promise.reject(error)
  failing.catch(() => undefined)
  hold(failing)
  await refresh()
  expect(errors).toEqual([{ err: error }])
  hold(Promise.resolve())
  await refresh()
  expect(errors.length).toBe(1)
  await stopCollector(collector)
})

// The previous process

test('nodes of the previous process are known at once, with time and role of their last response', async () => {
  const { collector, node } = world()
  await startCollector(collector, [known('n1'), known('n2', { answeredAt: undefined, role: undefined })])
  expect(node('n1')).toMatchObject({
    ...{ by: 'memory', role: 'leader', namedAt: NOW - 5_000, nextAt: 0 },
    observation: { address: addressOf('n1'), before: { at: NOW - 2_000, role: 'leader' }, answeredAt: undefined },
  })
  expect(node('n2').observation.before).toBeUndefined()
  expect(knownNodes(collector)).toEqual([known('n1'), known('n2', { answeredAt: undefined, role: undefined })])
  await stopCollector(collector)
})

test('a remembered node that only the list contained is dropped once the list no longer does', async () => {
  const { collector, keys } = world({ registry: false, nodes: ['n1:8080'] })
  await startCollector(collector, [known('n1', { isListed: true }), known('n2', { isListed: true }), known('n3')])
  expect(keys()).toEqual(['s1/n1', 's1/n3'])
  expect(knownNodes(collector).map(({ address, isListed }) => `${address.id} ${isListed}`)).toEqual([
    ...['n1 true', 'n3 false'],
  ])
  await stopCollector(collector)
})

test('an entry of the list without identity is not stored', async () => {
  const { collector, keys } = world({ registry: false, nodes: ['n9:8080'] })
  await startCollector(collector, [])
  expect(keys()).toEqual(['unknown/n9:8080'])
  expect(knownNodes(collector)).toEqual([])
  await stopCollector(collector)
})

test('the last response of this process is stored before that of the previous one', () => {
  const { collector } = world()
  const more = { by: 'registry', namedAt: NOW, role: 'follower', nextAt: 0 } as const
  addNode(collector, { ...emptyObservation(addressOf('n1')), answeredAt: 7, before: { at: 5, role: 'leader' } }, more)
  expect(knownNodes(collector)).toEqual([known('n1', { role: 'follower', namedAt: NOW, answeredAt: 7 })])
})

// Views

const more = { by: 'registry', namedAt: NOW, role: undefined, nextAt: 900 } as const

test('shards are in natural order, without those that have no view yet', () => {
  const { collector } = world()
  for (const shard of ['s10', 's2', 's1']) addNode(collector, emptyObservation(addressOf('n1', shard)), more)
  deriveView(collector, 's10')
  deriveView(collector, 's2')
  expect(shardViews(collector).map(({ id }) => id)).toEqual(['s2', 's10'])
  addNode(collector, emptyObservation(addressOf('n1', 's3')), more)
  deriveView(collector, 's3')
  expect(shardViews(collector).map(({ id }) => id)).toEqual(['s2', 's3', 's10'])
  expect(shardView(collector, 's3')?.id).toBe('s3')
  deriveView(collector, 's99')
  expect(shardView(collector, 's99')).toBeUndefined()
})

test('observations are those of the nodes of one shard', () => {
  const { collector } = world()
  addNode(collector, emptyObservation(addressOf('n1')), more)
  addNode(collector, emptyObservation(addressOf('n2')), more)
  addNode(collector, emptyObservation(addressOf('n3', 's2')), more)
  expect(observationsOf(collector, 's1').map(({ address }) => address.id)).toEqual(['n1', 'n2'])
  expect(observationsOf(collector, 's9')).toEqual([])
})

test('a forgotten node leaves its shard, and the last one ends it', () => {
  const { collector, views } = world()
  addNode(collector, emptyObservation(addressOf('n1')), more)
  addNode(collector, emptyObservation(addressOf('n2')), more)
  forgetNode(collector, addressOf('n1'))
  expect(shardView(collector, 's1')?.nodes.map(({ id }) => id)).toEqual(['n2'])
  forgetNode(collector, addressOf('n2'))
  expect(views).toEqual(['s1 first', 's1 gone'])
  expect(collector.nodes.size).toBe(0)
})

test('a close watch makes the nodes of its shard due, until it ends', () => {
  const { collector, node } = world()
  addNode(collector, emptyObservation(addressOf('n1')), { ...more, nextAt: 100_500 })
  addNode(collector, emptyObservation(addressOf('n2')), { ...more, nextAt: 5 })
  const stop = watchClosely(collector, 's1')
  expect([node('n1').nextAt, node('n2').nextAt]).toEqual([100_000, 5])
  expect([...(collector.shards.get('s1')?.closely ?? [])]).toEqual([{ since: 100_000 }])
  stop()
  expect(collector.shards.get('s1')?.closely.size).toBe(0)
  watchClosely(collector, 'unknown')()
})

test('a changed shard is derived after 250 ms, an unchanged one after a second', () => {
  const { collector, clock, views } = world()
  addNode(collector, emptyObservation(addressOf('n1')), more)
  const pass = (ms: number, isDirty: boolean) => {
    clock.advance(ms)
    const state = collector.shards.get('s1')
    if (state) state.isDirty = isDirty
    deriveDueViews(collector)
    return views.splice(0).length
  }
  expect(pass(0, true)).toBe(1)
  expect([pass(249, true), pass(1, true)]).toEqual([0, 1])
  expect([pass(999, false), pass(1, false)]).toEqual([0, 1])
  for (let at = 0; at < COLLECTOR.manyNodes; at++) addNode(collector, emptyObservation(addressOf(`x${at}`)), more)
  expect([pass(999, true), pass(1, true)]).toEqual([0, 1])
})

test('role and lag of a view are kept for later ones, lags once a second and for 30 s', () => {
  const { collector, clock, node } = world()
  const leader = (entries: number) => {
    const at = clock.wallMs()
    return observedNode({ id: 'n1', at, lags: { n2: [entries, 1] } }, { info: { value: lagging(entries), at } })
  }
  const lagging = (entries: number) => infoOf({ id: 'n1', lags: { n2: [entries, 1] } })
  addNode(collector, leader(40), more)
  addNode(collector, observedNode({ id: 'n2', at: clock.wallMs() }), more)
  const lagAfter = (ms: number, entries: number) => {
    clock.advance(ms)
    const of = node('n1')
    of.observation = { ...leader(entries), lags: of.observation.lags }
    const other = node('n2')
    other.observation = { ...observedNode({ id: 'n2', at: clock.wallMs() }), lags: other.observation.lags }
    deriveView(collector, 's1')
    return node('n2').observation.lags.map((lag) => `${lag.at - NOW - 100_000} ${lag.entries}`)
  }
  expect(lagAfter(0, 40)).toEqual(['0 40'])
  expect([node('n1').role, node('n2').role]).toEqual(['leader', 'follower'])
  expect(lagAfter(999, 30)).toEqual(['0 40'])
  expect(lagAfter(1, 20)).toEqual(['0 40', '1000 20'])
  expect(lagAfter(28_999, 10)).toEqual(['0 40', '1000 20', '29999 10'])
  expect(lagAfter(1_000, 5)).toEqual(['1000 20', '29999 10', '30999 5'])
})
