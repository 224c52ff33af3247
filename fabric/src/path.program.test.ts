/**
 * The whole path as processes: registry, resolver, a shard of three nodes, bridges, a zone router and an edge router,
 * each started by its command. Requests go through all hops while segments, bridges and leaders come and go.
 */

import { connect, type VacancyClient } from '@vacancy/client'
import { dateIn, launch, type Running, somewhere } from '@vacancy/testkit/node'
import { leaderOf, openShard, type Service, type Shard } from '@vacancy/testkit/shard'
import { happens, until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startExistingBridge } from './testing/existing/bridge.ts'
import { errorText, openGeneration2 } from './testing/existing/clients.ts'
import { ROUTABLE, routedFrame } from './testing/vectors.ts'

const NODES = ['node-1', 'node-2', 'node-3']
/** Ids with an address each; the last one is an existing bridge. */
const COMPONENTS = ['bridge-1', 'bridge-2', 'zone-router', 'edge', 'bridge-3']
const ZONE = 'zone-1'
const SHARD = 'shard-1'
const [TCP_PORT, API_PORT] = [9000, 9100]
const SEGMENT = 'alpine'
const NIGHT = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(3) }
const ROOMS = 200
/** An election takes 0.8 to 1.6 s with the nodes of these tests. */
const CALM_MS = 5_000

let shard: Shard
let registry: Service
let resolver: Service
let client: VacancyClient
const started: Running[] = []
/** Decrements acknowledged to the client. */
let taken = 0

const kill = async (running: Running): Promise<void> => {
  running.child.kill('SIGKILL')
  await running.ended
}

function start(command: 'bridge' | 'router', name: string, flags: readonly string[]): Running {
  const host = shard.host(name)
  const port = command === 'bridge' ? '--listen-port' : '--tcp-port'
  const running = launch([
    ...[command, ...flags, '--registry-addr', registry.url, '--resolver-addr', resolver.url],
    ...['--listen-host', host, port, String(TCP_PORT), '--api-host', host, '--api-port', String(API_PORT)],
  ])
  started.push(running)
  return running
}

const startBridge = (name: string) =>
  start('bridge', name, ['--zone-id', ZONE, '--shard-id', SHARD, '--bridge-id', name])

async function getJson<T>(name: string, path: string): Promise<T> {
  return (await (await fetch(`http://${shard.host(name)}:${API_PORT}${path}`)).json()) as T
}

/** Waits until `check` succeeds. */
async function holds(what: string, check: () => Promise<unknown>): Promise<void> {
  await happens(what, started, async () => {
    await check()
    return true
  })
}

const exists = () => client.propertyExists({ propertyId: 'hotel_1' }, { segment: SEGMENT })

async function decrement(deadlineMs = 2_000): Promise<number> {
  const left = await client.decreaseAvailability({ ...NIGHT, amount: 1 }, { segment: SEGMENT, deadlineMs })
  taken++
  return left
}

describe('a platform of processes', () => {
  beforeAll(async () => {
    shard = await openShard({ nodes: [...NODES, ...COMPONENTS], voters: NODES, shardId: SHARD, zoneId: ZONE })
    registry = shard.startRegistry()
    resolver = shard.startResolver()
    for (const node of NODES) shard.start(node)
    // All at once: none needs another one to start.
    start('router', 'edge', ['--mode', 'edge'])
    start('router', 'zone-router', ['--mode', 'zone', '--zone-id', ZONE, '--router-id', 'zone-router'])
    startBridge('bridge-1')
    client = await connect({ routers: [shard.host('edge')], connectDeadlineMs: 30_000 })
    await leaderOf(shard)
    await happens('the zone router is ready', started, async () => {
      const { ready } = await getJson<{ ready: boolean }>('zone-router', '/ready')
      return ready
    })
  })

  afterAll(async () => {
    await client?.close()
    await Promise.all(started.map(kill))
    await shard?.close()
  })

  test('a segment is reserved, routed within a second, filled, searched and counted', async () => {
    const property = somewhere('hotel_1', SEGMENT) as Parameters<VacancyClient['setProperty']>[0]
    await expect(client.setProperty(property)).rejects.toMatchObject({ code: '404' })
    const reserved = await fetch(`${registry.url}/segments/${SEGMENT}`, {
      method: 'PUT',
      body: JSON.stringify({ shard: SHARD }),
    })
    expect(reserved.status).toBe(200)
    await holds('the new segment is routed', () => client.setProperty(property))
    await client.setPackage({ ...NIGHT, availability: ROOMS, finalPrice: 90 }, { segment: SEGMENT })

    const stays = await until('a follower has it', async () => {
      const found = await client.searchAvailability({ segment: SEGMENT, roomType: 'double', dates: [NIGHT.date] })
      return found.length > 0 && found
    })
    expect(stays).toMatchObject([{ propertyId: 'hotel_1', days: [{ availability: ROOMS, finalPrice: 90 }] }])
    expect(await decrement()).toBe(ROOMS - 1)
    expect((await client.listSegments()).map(({ segment }) => segment)).toEqual([SEGMENT])
    expect(await client.listRateFeatures()).toEqual(client.rateFeatures)
    await expect(client.searchProperties({ segment: 'nowhere' })).rejects.toMatchObject({ code: '404' })
  })

  test('a new bridge is used within a second, and alone when the first one is killed', async () => {
    const [, , first] = started
    const running = startBridge('bridge-2')
    await happens('the bridge serves', [], () => running.output().includes('serving:'))
    const used = async () => {
      const { hops } = await getJson<{ hops: { id: string; connections: number }[] }>(
        'zone-router',
        `/routes?segment=${SEGMENT}`,
      )
      const bridge = hops.find(({ id }) => id === 'bridge-2')
      if (bridge === undefined || bridge.connections === 0) throw new Error(JSON.stringify(hops))
    }
    await holds('the new bridge is used', used)
    await until('it knows the leader', async () => (await getJson<{ ready: boolean }>('bridge-2', '/ready')).ready)
    await kill(first as Running)

    for (let i = 0; i < 20; i++) {
      await decrement()
      expect(await exists()).toBe(true)
    }
  })

  test('after the leader is killed writes go on, each executed once', async () => {
    const leader = await leaderOf(shard)
    const before = await decrement()
    expect(before).toBe(ROOMS - taken)
    await leader.kill()
    const many = Promise.all(Array.from({ length: 10 }, () => decrement(CALM_MS)))
    expect(await exists()).toBe(true)
    await many
    expect(await decrement()).toBe(ROOMS - taken)
    expect((await leaderOf(shard)).name).not.toBe(leader.name)
  })

  test('an existing bridge serves our nodes: every request vector gets the reply of a node', async () => {
    const bridge = await startExistingBridge({
      host: shard.host('bridge-3'),
      registry: registry.url,
      resolver: resolver.url,
      id: 'bridge-3',
      // Not that of the other bridges, so that their router does not use it.
      zone: 'zone-2',
      shard: SHARD,
    })
    try {
      await until('the bridge knows the leader', () => bridge.leader())
      const direct = await openGeneration2(shard.host('bridge-3'), TCP_PORT)
      // Existing clients never send extension fields.
      for (const vector of ROUTABLE.filter(({ generation }) => generation !== 'vacancy')) {
        const reply = await direct.ask(routedFrame(vector))
        expect(errorText(reply) ?? '', vector.name).not.toMatch(/^\d+$/)
      }
      expect(direct.fault()).toBe('')
      direct.close()
    } finally {
      await bridge.close()
    }
  })
})
