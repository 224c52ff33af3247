/** The proxy in front of a real shard: nodes, registry and resolver as processes. */

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { getText } from '@vacancy/testkit/node'
import { openShard, type Shard, type ShardNode } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startTestProxy, type TestProxy } from './testing/start.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const PROPERTY = { segment: 'paris', area: 'marais', property_id: 'hotel_1', property_type: 'hotel' }
const SETPROP = {
  command: 'SETPROP',
  body: { ...PROPERTY, category: 'standard', stars: 4, latitude: 48.857, longitude: 2.352 },
}
const EXISTS = { command: 'PROPEXIST', body: { property_id: 'hotel_1' } }

let shard: Shard
const proxies: TestProxy[] = []

async function open(keys: { readonly [key: string]: string | number }): Promise<TestProxy> {
  const proxy = await startTestProxy({ mode: 'cluster', node_probe_interval_sec: 1, ...keys })
  proxies.push(proxy)
  return proxy
}

const factsOf = async (proxy: TestProxy) => JSON.parse((await proxy.get('/ready')).text)

/** The leader, once the proxy knows it and its followers. */
const whole = (proxy: TestProxy, followers: number): Promise<string> =>
  happens('a leader with its followers', shard.running(), async () => {
    const facts = await factsOf(proxy)
    return facts.ready && facts.followers.length === followers && facts.leader
  })

const succeeds = (proxy: TestProxy, body: object) =>
  happens('success', shard.running(), async () => (await proxy.post(body)).status === 200)

/** A follower may be a moment behind. */
const exists = (proxy: TestProxy) =>
  happens('the property', shard.running(), async () => (await proxy.post(EXISTS)).json.exists === true)

beforeAll(async () => {
  shard = await openShard()
})

afterAll(async () => {
  for (const proxy of proxies) await proxy.stop()
  await shard.close()
})

test('writes reach the leader and reads the followers, also after the leader was killed', async () => {
  const registry = shard.startRegistry()
  const resolver = shard.startResolver()
  const found = { shard_id: 'shard-1', registry_addr: registry.url, resolver_addr: resolver.url }
  const cached = { ...found, cache_dir: path.join(shard.folder, 'cache') }
  const proxy = await open(cached)
  // Nothing is there yet.
  expect(await proxy.post(EXISTS)).toMatchObject({ status: 503, json: { code: '503' } })
  expect(await factsOf(proxy)).toMatchObject({ ready: false, upstream: 'shard shard-1', leader: null })
  for (const node of shard.voters) shard.start(node)
  const first = await whole(proxy, 2)
  await succeeds(proxy, SETPROP)
  await exists(proxy)
  // None of the reads went to the leader.
  const leader = shard.running().find(({ name }) => name === first) as ShardNode
  const [, page] = await getText(leader, '/metrics')
  expect(page).toMatch(/^vacancy_commands_total\{command="SETPROP"\} [1-9]/m)
  expect(page).not.toMatch(/^vacancy_commands_total\{command="PROPEXIST"\} [1-9]/m)

  // The addresses from a list, the other ids from the nodes.
  const file = path.join(shard.folder, 'discovery.yml')
  writeFileSync(file, JSON.stringify({ nodes: shard.voters.map((id) => ({ node_id: id, addr: shard.host(id) })) }))
  const seeded = await open({ seed_ids: shard.voters[0] as string, discovery_yml_path: file })
  expect(await whole(seeded, 2)).toBe(first)
  await succeeds(seeded, SETPROP)
  await exists(seeded)

  // Another one starts without the registry, with what the first one stored.
  await registry.kill()
  const restarted = await open(cached)
  await succeeds(restarted, EXISTS)
  expect((await factsOf(await open(found))).ready).toBe(false)
  shard.startRegistry()

  await leader.kill()
  // Reads need no leader.
  await succeeds(proxy, EXISTS)
  await succeeds(proxy, SETPROP)
  expect(await whole(proxy, 1)).not.toBe(first)
  const { text } = await proxy.get('/metrics')
  expect(text).toMatch(/^backend_followers_total 1$/m)
  expect(text).toMatch(/^backend_leader_change_total [1-9]/m)
})
