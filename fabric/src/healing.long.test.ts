/**
 * Routes heal after an edge that started early, a bridge that was away longer than its heartbeat timeout, and a
 * registry that lost its state: for our routers on any registry, and for existing routers on ours.
 */

import { until } from '@vacancy/testkit/until'
import { expect, test } from 'vitest'
import { type ExistingClient, errorText } from './testing/existing/clients.ts'
import {
  askAny,
  enclose,
  type Maker,
  openClient,
  type Platform,
  requestOf,
  SEGMENTS,
  serves,
  startAnyBridge,
  startAnyEdge,
  startAnyZoneRouter,
  startPlatform,
  startShard,
  ZONE,
  zoneRouterRegistered,
} from './testing/platform.ts'

const TIMEOUT_MS = 1_000
/** Several rounds of refresh and heartbeats. */
const SETTLED_MS = 800

const HEALING: readonly (readonly [routers: Maker, registry: Maker])[] = [
  ['ours', 'ours'],
  ['ours', 'existing'],
  ['existing', 'ours'],
]

async function read<T>(platform: Platform, path: string): Promise<T> {
  return (await (await fetch(`${platform.placement('registry').registry}${path}`)).json()) as T
}

/** The reply to a request of the segment: `ok`, a code, or what is wrong with it. */
async function outcomeOf(client: ExistingClient, segment: string, id: number): Promise<string> {
  try {
    const reply = await askAny(client, enclose(requestOf('PROPEXIST', id), segment, 'PROPEXIST'))
    return errorText(reply) ?? 'ok'
  } catch (error) {
    return (error as Error).message
  }
}

async function startEarlyEdge(routers: Maker, registry: Maker): Promise<ExistingClient> {
  const platform = await startPlatform({ registry, resolver: registry })
  await startShard(platform, 1, SEGMENTS)
  await startAnyBridge(platform, 'existing', 1)
  await until('the segments are published', async () => {
    const { segments } = await read<{ segments: string[] }>(platform, `/zones/${ZONE}/segments`)
    return segments.length === SEGMENTS.length
  })
  await startAnyEdge(platform, routers)
  const client = await openClient(platform)
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  expect(await outcomeOf(client, 'segment_1', 1)).not.toBe('ok')
  await startAnyZoneRouter(platform, 'existing')
  return client
}

test.each(HEALING)('an edge (%s) that started before any zone router heals on a registry (%s)', async (...made) => {
  await serves(await startEarlyEdge(...made), SEGMENTS)
})

test('an existing edge that started early stays without routes on an existing registry', async () => {
  const client = await startEarlyEdge('existing', 'existing')

  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  expect(await outcomeOf(client, 'segment_1', 2)).toContain('broken reply')
})

/** Two shards in one zone; the bridge of the first was removed from the registry and is back. */
async function returnOfBridge(routers: Maker, registry: Maker): Promise<ExistingClient> {
  const platform = await startPlatform({ registry, resolver: registry }, TIMEOUT_MS)
  await startShard(platform, 1, SEGMENTS)
  await startShard(platform, 2, ['other'])
  const bridges = routers === 'ours' ? 'existing' : 'ours'
  const stopBridge = await startAnyBridge(platform, bridges, 1)
  await startAnyBridge(platform, bridges, 2)
  await startAnyZoneRouter(platform, routers)
  await startAnyEdge(platform, 'ours')
  const client = await openClient(platform)
  await serves(client, [...SEGMENTS, 'other'])
  await stopBridge()
  await until('the bridge is removed', async () => {
    const { shards } = await read<{ shards: object }>(platform, `/zones/${ZONE}/shards`)
    return !('shard1' in shards) && 'shard2' in shards
  })
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  expect(await outcomeOf(client, 'other', 11)).toBe('ok')
  expect(['404', '503']).toContain(await outcomeOf(client, 'segment_1', 12))
  await startAnyBridge(platform, bridges, 1)
  return client
}

test.each(HEALING)('a zone router (%s) finds a bridge again on a registry (%s)', async (...made) => {
  await serves(await returnOfBridge(...made), [...SEGMENTS, 'other'])
})

test('an existing zone router does not find it again on an existing registry', async () => {
  const client = await returnOfBridge('existing', 'existing')

  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  expect(await outcomeOf(client, 'segment_1', 13)).toBe('404')
})

test.each(HEALING)('routers (%s) serve again after a registry (%s) lost its state', async (...made) => {
  const [routers, registry] = made
  const platform = await startPlatform({ registry, resolver: registry })
  await startShard(platform, 1, SEGMENTS)
  await startAnyBridge(platform, 'existing', 1)
  await startAnyZoneRouter(platform, routers)
  await zoneRouterRegistered(platform)
  await startAnyEdge(platform, routers)
  const client = await openClient(platform)
  await serves(client, SEGMENTS)

  await platform.forgetRegistry()
  const outcomes = new Set<string>()
  const end = performance.now() + 2 * SETTLED_MS
  for (let id = 100; performance.now() < end; id++) {
    outcomes.add(await outcomeOf(client, 'segment_1', id))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await serves(client, SEGMENTS)
  // Our routers go on with what they know until the registry knows it again.
  if (routers === 'ours' && registry === 'ours') expect([...outcomes]).toEqual(['ok'])
})

test('a shard without nodes is named by bridge, zone router and edge, which stay ready while another one serves', async () => {
  const platform = await startPlatform({ registry: 'ours', resolver: 'ours' })
  const one = await startShard(platform, 1, SEGMENTS)
  const two = await startShard(platform, 2, ['other'])
  for (const number of [1, 2] as const) await startAnyBridge(platform, 'ours', number)
  await startAnyZoneRouter(platform, 'ours')
  await startAnyEdge(platform, 'ours')
  await serves(await openClient(platform), [...SEGMENTS, 'other'])
  const readinessOf = async (name: 'edge' | 'zone' | 'bridge') => {
    const response = await fetch(`http://${platform.placement(name).host}:9100/ready`)
    const { reasons } = (await response.json()) as { reasons: { name: string; message: string }[] }
    return [response.status, ...reasons.map(({ message }) => message)].join(' ')
  }
  const becomes = async (name: 'edge' | 'zone' | 'bridge', wanted: RegExp) =>
    await until(`${name}: ${wanted}`, async () => wanted.test(await readinessOf(name)))
  await becomes('edge', /^200$/)

  await one.close()
  await becomes('bridge', /^503 Leader node-1-\d is not reachable/)
  await becomes('zone', /^200 No node serves the shards: shard1\.$/)
  await becomes('edge', /^200 No node serves the shards: shard1\.$/)
  const metrics = await (await fetch(`http://${platform.placement('edge').host}:9100/metrics`)).text()
  expect(metrics).toContain('router_shard_fault{shard="shard1",fault="down"} 1')

  await two.close()
  await becomes('zone', /^503 No node serves the shards: shard1, shard2\.$/)
  await becomes('edge', /^503 No node serves the shards: shard1, shard2\.$/)
})
