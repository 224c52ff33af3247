/** Platforms of any mixture of existing components and ours, each on an address of its own. */

import { COMMANDS, isCommandName } from '@vacancy/shared/wire'
import { takeBlock } from '@vacancy/testkit/shard'
import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished } from 'vitest'
import { startExistingBridge } from './existing/bridge.ts'
import { type ClientReply, type ExistingClient, errorText, openGeneration2 } from './existing/clients.ts'
import { type ExistingShard, type ExistingShardOptions, startExistingShard } from './existing/nodes.ts'
import { startExistingRegistry, startExistingResolver } from './existing/registry.ts'
import { startExistingRouter } from './existing/router.ts'
import { startOurBridge, startOurRegistry, startOurResolver, startOurRouter } from './ours.ts'

export const CODECS = ['free_cancellation', 'breakfast_included', 'pay_at_property']
export const ZONE = 'zone1'
export const SEGMENTS = ['segment_1', 'Zürich', 'lisbon_centre']

export type Maker = 'ours' | 'existing'

/** Who made each component of a chain. */
export type Chain = {
  readonly edge: Maker
  readonly zone: Maker
  readonly bridge: Maker
  readonly registry: Maker
  readonly resolver: Maker
}

const HOSTS = {
  registry: 1,
  resolver: 2,
  edge: 3,
  zone: 4,
  bridge: 5,
  otherBridge: 6,
  otherEdge: 7,
  node: 11,
  otherNode: 21,
}

export type Platform = {
  readonly host: (name: keyof typeof HOSTS, offset?: number) => string
  readonly placement: (name: keyof typeof HOSTS) => { host: string; registry: string; resolver: string }
  readonly forgetRegistry: () => Promise<void>
}

/** Registry and resolver, with all hosts that the tests use. */
export async function startPlatform(made: { registry: Maker; resolver: Maker }, timeoutMs = 60_000): Promise<Platform> {
  const { prefix, guard } = await takeBlock()
  onTestFinished(() => new Promise<void>((resolve) => guard.close(() => resolve())))
  const host = (name: keyof typeof HOSTS, offset = 0) => `${prefix}.${HOSTS[name] + offset}`
  const hosts = new Map([
    ['edge', host('edge')],
    ['zone-router', host('zone')],
    ['bridge-1', host('bridge')],
    ['bridge-2', host('otherBridge')],
    ...[0, 1, 2].flatMap((i) => [
      [`node-1-${i}`, host('node', i)] as const,
      [`node-2-${i}`, host('otherNode', i)] as const,
    ]),
  ])
  const startRegistry = made.registry === 'ours' ? startOurRegistry : startExistingRegistry
  const registry = await startRegistry({ host: host('registry'), codecs: CODECS, timeoutMs })
  const resolver = await (made.resolver === 'ours' ? startOurResolver : startExistingResolver)(host('resolver'), hosts)
  for (const { close } of [registry, resolver]) onTestFinished(close)
  const urls = { registry: registry.url, resolver: resolver.url }
  const placement = (name: keyof typeof HOSTS) => ({ host: host(name), ...urls })
  return { host, placement, forgetRegistry: async () => await registry.reset() }
}

export async function startShard(
  platform: Platform,
  number: 1 | 2,
  segments: readonly string[],
  answer?: ExistingShardOptions['answer'],
): Promise<ExistingShard> {
  const place = number === 1 ? 'node' : 'otherNode'
  const shard = await startExistingShard({
    shard: `shard${number}`,
    zone: ZONE,
    nodes: new Map([0, 1, 2].map((i) => [`node-${number}-${i}`, platform.host(place, i)])),
    registry: platform.placement('registry').registry,
    codecs: CODECS,
    segments,
    heartbeatMs: 200,
    ...(answer && { answer }),
  })
  onTestFinished(shard.close)
  return shard
}

export async function startAnyBridge(platform: Platform, by: Maker, number: 1 | 2): Promise<() => Promise<void>> {
  const identity = { id: `bridge-${number}`, zone: ZONE, shard: `shard${number}` }
  const placement = platform.placement(number === 1 ? 'bridge' : 'otherBridge')
  return once(
    by === 'ours'
      ? (await startOurBridge({ ...placement, identity })).stop
      : (await startExistingBridge({ ...placement, ...identity, heartbeatMs: 200 })).close,
  )
}

export async function startAnyZoneRouter(platform: Platform, by: Maker): Promise<() => Promise<void>> {
  const identity = { id: 'zone-router', zone: ZONE }
  const placement = platform.placement('zone')
  if (by === 'ours') return once((await startOurRouter({ ...placement, identity })).stop)
  return once((await startExistingRouter({ ...placement, ...identity, ...QUICK, mode: 'zone' })).close)
}

export async function startAnyEdge(
  platform: Platform,
  by: Maker,
  place: 'edge' | 'otherEdge' = 'edge',
): Promise<() => Promise<void>> {
  const placement = platform.placement(place)
  if (by === 'ours') return once((await startOurRouter(placement)).stop)
  return once((await startExistingRouter({ ...placement, ...QUICK, mode: 'edge' })).close)
}

/** Times of existing routers, shortened. */
const QUICK = { refreshMs: 200, heartbeatMs: 200 }

/** Stops it at the end of the test, unless the test did. */
function once(stop: () => Promise<void>): () => Promise<void> {
  let stopped: Promise<void> | undefined
  const stopOnce = () => {
    stopped ??= stop()
    return stopped
  }
  onTestFinished(stopOnce)
  return stopOnce
}

export async function startChain(
  chain: Chain,
): Promise<{ platform: Platform; shard: ExistingShard; client: ExistingClient }> {
  const platform = await startPlatform(chain)
  const shard = await startShard(platform, 1, SEGMENTS)
  await startAnyBridge(platform, chain.bridge, 1)
  await startAnyZoneRouter(platform, chain.zone)
  await zoneRouterRegistered(platform)
  await startAnyEdge(platform, chain.edge)
  const client = await openClient(platform)
  await serves(client, SEGMENTS)
  return { platform, shard, client }
}

/** Existing edges must start after the zone routers. */
export async function zoneRouterRegistered(platform: Platform): Promise<void> {
  await until('the zone router is registered', async () => {
    const { registry } = platform.placement('registry')
    const body = (await (await fetch(`${registry}/zones/${ZONE}/routers`)).json()) as { routers: string[] }
    return body.routers.length > 0
  })
}

export async function openClient(platform: Platform): Promise<ExistingClient> {
  const client = await until('the edge serves its codec list', () => openGeneration2(platform.host('edge'), 9000))
  onTestFinished(client.close)
  return client
}

let lastProbe = 0x7000_0000

/** Waits until requests of these segments are answered by nodes. */
export async function serves(client: ExistingClient, segments: readonly string[], withinMs = 15_000): Promise<void> {
  for (const segment of segments) {
    await until(
      `${segment} is served`,
      async () => {
        for (const command of ['PROPEXIST', 'DELPROP'] as const) {
          const reply = await askAny(client, enclose(requestOf(command, ++lastProbe), segment, command))
          if (errorText(reply) !== undefined) throw new Error(`${segment}: ${errorText(reply)}`)
        }
        return true
      },
      withinMs,
    )
  }
}

/** Sends a request over a connection that must stay. The malformed error frame of existing hops is a broken reply. */
export async function askAny(client: ExistingClient, frame: Buffer): Promise<ClientReply> {
  const reply = await client.ask(frame)
  expect(client.fault()).toBe('')
  return reply
}

export function requestOf(command: string, id: number): Buffer {
  const payload = Buffer.concat([
    Buffer.from([command.length]),
    Buffer.from(command),
    Buffer.from('01000100010100000070', 'hex'),
  ])
  const head = Buffer.alloc(9, 0xff)
  head.writeUInt32LE(id, 1)
  head.writeUInt32LE(payload.length, 5)
  return Buffer.concat([head, payload])
}

export function isWrite(command: string): boolean {
  return isCommandName(command) && COMMANDS[command].access === 'write'
}

/** An envelope as clients of generation 2 write it. */
export function enclose(frame: Buffer, segment: string, command: string): Buffer {
  const name = Buffer.from(segment)
  const head = Buffer.alloc(6)
  head[0] = 0xfe
  head.writeUInt32LE(1 + name.length + 1 + frame.length, 1)
  head[5] = name.length
  return Buffer.concat([head, name, Buffer.from([isWrite(command) ? 1 : 0]), frame])
}

export const OURS: Chain = { edge: 'ours', zone: 'ours', bridge: 'ours', registry: 'ours', resolver: 'ours' }
export const EXISTING: Chain = {
  edge: 'existing',
  zone: 'existing',
  bridge: 'existing',
  registry: 'existing',
  resolver: 'existing',
}
