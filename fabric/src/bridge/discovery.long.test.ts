/** Discovery of a real shard: nodes, registry and resolver as processes. */

import { systemClock } from '@vacancy/shared'
import { openHttpCaller } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { openShard, type Shard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openRegistryClient } from '../registry-client.ts'
import { openResolver } from '../resolve.ts'
import { keepingLog } from '../testing/http.ts'
import { type Discovery, openDiscovery } from './discovery.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

let shard: Shard
let discovery: Discovery
const closing: (() => unknown)[] = []

beforeAll(async () => {
  shard = await openShard()
  const registry = shard.startRegistry()
  const resolver = shard.startResolver()
  for (const node of shard.voters) shard.start(node)
  const log = keepingLog()
  const client = openRegistryClient({ addr: registry.url, clock: systemClock, log })
  const resolving = openResolver({ addr: resolver.url, clock: systemClock, schedule: systemSchedule, log })
  const nodes = openHttpCaller({ name: 'nodes', log })
  discovery = openDiscovery({
    shard: 'shard-1',
    zone: 'zone-1',
    registry: client,
    resolver: resolving,
    nodes,
    scheme: 'http',
    ports: { tcp: 7_777, api: 8_080 },
    intervalMs: 2_000,
    timeoutMs: 2_000,
    clock: systemClock,
    schedule: systemSchedule,
    log,
  })
  closing.push(() => discovery.stop(), resolving.stop, client.close, nodes.close)
})
afterAll(async () => {
  for (const close of closing) await close()
  await shard.close()
})

/** The leader, once all others follow it. */
function whole(followers: number): Promise<string> {
  return happens('a leader with its followers', shard.running(), () => {
    const { leader, nodes } = discovery.topology()
    const count = [...nodes.values()].filter(({ role }) => role === 'follower').length
    return count === followers && leader
  })
}

test('a shard is found as it forms, and after its leader was killed the next one', async () => {
  const first = await whole(2)
  for (const { id, address, lag } of discovery.topology().nodes.values()) {
    expect(address).toEqual({ host: shard.host(id), tcpPort: 7_777, apiPort: 8_080 })
    expect(lag).toBeTypeOf('number')
  }

  await shard
    .running()
    .find(({ name }) => name === first)
    ?.kill()
  // As the bridge does when its connection to the leader closes.
  discovery.setUrgent(true)
  discovery.look()

  const second = await happens('another leader', shard.running(), () => {
    const { leader } = discovery.topology()
    return leader !== first && leader
  })
  expect(discovery.topology().nodes.get(first)).toMatchObject({ role: 'other', health: 'unreachable' })
  discovery.setUrgent(false)
  shard.start(first)
  expect(await whole(2)).toBe(second)
})
