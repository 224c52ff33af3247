/** The fabric as the control plane observes it: real HTTP listeners in the place of routers, bridges, edge and proxy. */

import type { FabricComponent } from '@vacancy/shared/contract'
import { openRelay } from '@vacancy/testkit/relay'
import { until } from '@vacancy/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { type Simulated, startSimulated } from '../testing/simulated.ts'
import type { SimFabric } from '../testing/simulated-fabric.ts'

let sim: Simulated
let fabric: SimFabric
let plane: TestControlPlane
let viewer: Awaited<ReturnType<TestControlPlane['signIn']>>

beforeEach(async () => {
  sim = await startSimulated({ nodes: 6, shards: 2, zones: 2, seed: 7, fabric: true })
  fabric = sim.fabric as SimFabric
  plane = await startTestControlPlane({
    config: { registry: sim.registryUrl, resolver: sim.registryUrl, fabric: [...fabric.unregistered] },
  })
  viewer = await plane.signIn('viewer')
})

afterEach(async () => {
  await plane.stop()
  await sim.close()
})

const topology = async () => (await viewer.call('GET', '/api/v1/topology')).body
const component = async (key: string): Promise<FabricComponent> => {
  const { components } = await topology()
  return components.find((each: FabricComponent) => each.key === key)
}
const allReady = () =>
  until('all components are ready', async () => {
    const { components } = await topology()
    const forwarding = components.filter(({ kind }: FabricComponent) => kind !== 'resolver')
    return forwarding.length === 7 && forwarding.every(({ state }: FabricComponent) => state === 'ready')
  })

test('every component is listed with the connections that it reports', async () => {
  await allReady()

  const { components, edges, shards } = await topology()

  expect(components.map(({ kind }: FabricComponent) => kind)).toEqual([
    ...['proxy', 'edge', 'zone-router', 'zone-router', 'bridge', 'bridge', 'registry', 'resolver'],
  ])
  const nodeEdges = edges.filter(({ to }: { to: string }) => to.startsWith('node '))
  expect(nodeEdges).toHaveLength(6)
  expect(edges.filter(({ to }: { to: string }) => !to.startsWith('node '))).toHaveLength(5)
  expect(edges.every(({ state }: { state: string }) => state === 'live')).toBe(true)
  expect(shards).toMatchObject([
    { id: 's1', segments: 3, served: true },
    { id: 's2', segments: 3, served: true },
  ])
})

test('a connection has the rates of both of its ends', async () => {
  await allReady()

  const edge = await until('two readings of both', async () => {
    const { edges } = await topology()
    const found = edges.find(({ to }: { to: string }) => to === 'bridge b-s1')
    return found.reads !== null && found.received !== null && found
  })

  expect(edge.reads).toBeGreaterThan(15)
  expect(edge.reads).toBeLessThan(25)
  expect(edge.writes).toBeLessThan(4)
  expect(edge.received).toBeGreaterThan(18)
})

test('a killed bridge is shown within 3 s with what it cuts off, and its return as well', async () => {
  await allReady()
  const before = performance.now()
  await fabric.stop('b-s1')

  const killed = await until('it is unreachable', async () => {
    const found = await component('bridge b-s1')
    return found.state === 'unreachable' && found
  })

  expect(performance.now() - before).toBeLessThan(3_000)
  expect(killed).toMatchObject({
    level: 'crit',
    message: 'Unreachable: connection refused',
    cuts: ['Shard s1 (3 segments): no bridge is left, reads and writes get 503'],
    differences: ['The registry lists it, but it does not respond'],
  })
  expect((await topology()).shards).toMatchObject([{ served: false }, { served: true }])
  await fabric.start('b-s1')
  await until('it is ready again', async () => (await component('bridge b-s1')).state === 'ready')
})

test('the message names what is wrong in each state', async () => {
  await allReady()
  const bridge = fabric.component('b-s1')
  const router = fabric.component('r-zone-1')

  bridge.reason = 'No leader is known.'
  await until(
    'it is not ready',
    async () => (await component('bridge b-s1')).message === 'Not ready: No leader is known.',
  )
  expect((await component('bridge b-s1')).cuts).toEqual([])

  router.isSilent = true
  await until('it does not answer', async () => (await component('zone-router r-zone-1')).state === 'not-answering')
  expect((await component('zone-router r-zone-1')).cuts).toHaveLength(1)
  router.isSilent = false

  bridge.hasApiUrl = false
  await until('it is not polled', async () => (await component('bridge b-s1')).state === 'not-polled', 10_000)
  expect((await component('bridge b-s1')).message).toBe('Not polled: it has no api_url')

  fabric.component('b-s2').isListed = false
  await until(
    'it is seen, and not registered',
    async () => (await component('bridge b-s2')).state === 'unregistered',
    10_000,
  )
  expect((await component('bridge b-s2')).differences).toEqual(['It responds, but the registry does not list it'])
})

test('each component on the way of a segment tells its own reason', async () => {
  await allReady()
  const ask = async (segment: string) => (await viewer.call('GET', `/api/v1/topology/route?segment=${segment}`)).body

  const route = await until('its nodes are known', async () => {
    const found = await ask('s1-segment-2')
    return found.hops.length === 7 && found
  })
  expect(route).toMatchObject({ level: 'ok', shard: 's1', zone: 'zone-1' })
  expect(route.hops.map(({ key }: { key: string }) => key)).toEqual([
    expect.stringMatching(/^registry /),
    expect.stringMatching(/^edge /),
    'zone-router r-zone-1',
    'bridge b-s1',
    ...['node s1/n1', 'node s1/n2', 'node s1/n3'],
  ])
  expect(route.hops[2]).toMatchObject({
    answer: 'Shard s1, through b-s1',
    status: 200,
    why: 'Connected to each of them',
  })

  await fabric.stop('b-s1')
  const cut = await ask('s1-segment-2')
  expect(cut.level).toBe('crit')
  expect(cut.conclusion).toContain('s1-segment-2 stops at zone router r-zone-1')

  const unknown = await ask('nowhere')
  expect(unknown.conclusion).toMatch(/^nowhere stops at the registry/)
})

test('datasets of the registry are listed with their versions and segments', async () => {
  const datasets = await until('the registry was read', async () => {
    const { body } = await viewer.call('GET', '/api/v1/registry/datasets?filter=s2')
    return body.total > 0 && body
  })

  expect(datasets).toMatchObject({ up: true, epoch: 'simulated', total: 3 })
  expect(datasets.datasets[0]).toEqual({ name: 'shards/s1/segments', version: 1, entries: 3 })
  expect(datasets.segments[0]).toEqual({ segment: 's2-segment-1', shard: 's2', claims: [], reservedUntil: null })
})

test('of two registries the one that responds is read, and the other one is shown as away', async () => {
  const { port } = new URL(sim.registryUrl)
  const relay = await openRelay({ host: '127.0.0.1', port: Number(port) })
  const first = `http://127.0.0.1:${relay.at.port}`
  await plane.stop()
  plane = await startTestControlPlane({
    config: { registry: `${first},${sim.registryUrl}`, resolver: sim.registryUrl, fabric: [...fabric.unregistered] },
  })
  viewer = await plane.signIn('viewer')
  const key = `registry ${new URL(first).host}`
  const services = async () => (await viewer.call('GET', '/api/v1/registry/services')).body
  await until('both registries are ready', async () => {
    const { components } = await topology()
    const registries = components.filter(({ kind }: FabricComponent) => kind === 'registry')
    return registries.length === 2 && registries.every(({ state }: FabricComponent) => state === 'ready')
  })
  await until('the first one is read', async () => (await services()).address === first)
  expect((await services()).away).toEqual([])

  await relay.close()

  await until('the other one is read', async () => (await services()).address === sim.registryUrl)
  expect(await services()).toMatchObject({
    up: true,
    error: '',
    away: [{ address: first, message: 'Unreachable: connection refused' }],
  })
  // New segments are still routed.
  expect(await component(key)).toMatchObject({ state: 'unreachable', level: 'crit', cuts: [] })
  expect((await topology()).registry).toMatchObject({ address: sim.registryUrl, up: true })
})
