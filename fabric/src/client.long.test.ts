/** The client library in router mode, through our edge and through existing ones. */

import { connect, type VacancyClient } from '@vacancy/client'
import { createCodecList } from '@vacancy/shared'
import { type CommandName, decodeRequest, encodeReply, type Result } from '@vacancy/shared/wire'
import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import type { ExistingShard } from './testing/existing/nodes.ts'
import {
  CODECS,
  type Maker,
  type Platform,
  startAnyBridge,
  startAnyEdge,
  startAnyZoneRouter,
  startPlatform,
  startShard,
  zoneRouterRegistered,
} from './testing/platform.ts'

const NIGHT = { propertyId: 'p', roomType: 'double', date: '2026-12-24' }
const context = { baseYear: 2026, codecs: createCodecList(CODECS) }

/** Nodes that count decrements down from 255, one counter for all. */
function answering(): { readonly answer: (payload: Buffer, id: number) => Uint8Array; readonly left: () => number } {
  let left = 255
  const reply = <Name extends CommandName>(command: Name, id: number, result: Result<Name>) =>
    encodeReply(command, id, result, context)
  return {
    left: () => left,
    answer(payload, id) {
      const { command } = decodeRequest(payload)
      switch (command) {
        case 'DECROOMAVL':
          left--
          return reply(command, id, { availability: left })
        case 'PROPEXIST':
          return reply(command, id, { exists: true })
        case 'SEARCHPROP':
          return reply(command, id, { propertyIds: ['p'] })
        default:
          return reply('SETPROP', id, {} as Result<'SETPROP'>)
      }
    },
  }
}

async function startWhole(edges: readonly Maker[]): Promise<{
  readonly platform: Platform
  readonly shard: ExistingShard
  readonly left: () => number
  readonly stopEdges: readonly (() => Promise<void>)[]
}> {
  const platform = await startPlatform({ registry: 'ours', resolver: 'ours' })
  const { answer, left } = answering()
  const shard = await startShard(platform, 1, ['lisbon'], answer)
  await startAnyBridge(platform, 'ours', 1)
  await startAnyZoneRouter(platform, 'ours')
  await zoneRouterRegistered(platform)
  const stopEdges: (() => Promise<void>)[] = []
  for (const [i, by] of edges.entries())
    stopEdges.push(await startAnyEdge(platform, by, i === 0 ? 'edge' : 'otherEdge'))
  return { platform, shard, left, stopEdges }
}

async function open(routers: readonly string[]): Promise<VacancyClient> {
  // Existing nodes refuse request keys.
  const client = await connect({ routers, requestKeys: false })
  onTestFinished(() => client.close())
  await until('the segment is served', () => client.propertyExists({ propertyId: 'p' }, { segment: 'lisbon' }))
  return client
}

test.each<Maker>(['ours', 'existing'])(
  'through an edge (%s): commands, codec list, segments, unknown segment',
  async (by) => {
    const { platform, shard, left } = await startWhole([by])
    const client = await open([platform.host('edge')])

    expect(client.rateFeatures).toEqual(CODECS)
    expect(await client.listRateFeatures()).toEqual(CODECS)
    expect(await client.listSegments()).toEqual([{ segment: 'lisbon', propertyCount: 0 }])
    expect(await client.searchProperties({ segment: 'lisbon' })).toEqual(['p'])
    const many = Array.from({ length: 20 }, () =>
      client.decreaseAvailability({ ...NIGHT, amount: 1 }, { segment: 'lisbon' }),
    )
    // Pipelined, and answered in the order of execution.
    expect(await Promise.all(many)).toEqual(Array.from({ length: 20 }, (_, i) => 254 - i))
    expect(left()).toBe(235)
    const nodes = shard.received.filter(({ command }) => command === 'DECROOMAVL').map(({ node }) => node)
    expect(new Set(nodes)).toEqual(new Set([shard.leader()]))
    await expect(client.searchProperties({ segment: 'nowhere' })).rejects.toMatchObject({
      name: 'VacancyRequestError',
      code: '404',
    })
    await expect(client.propertyExists({ propertyId: 'p' })).rejects.toThrow('segment')
  },
)

test.each<Maker>(['ours', 'existing'])('when the edge in use (%s) stops, the client uses the other one', async (by) => {
  const { platform, left, stopEdges } = await startWhole([by, by])
  const edges = [platform.host('edge'), platform.host('otherEdge')]
  const client = await open(edges)
  const failures: string[] = []
  let acknowledged = 0
  let inUse = ''
  const decrement = async (): Promise<void> => {
    try {
      const watch = ({ address }: { readonly address: string }) => {
        inUse = address
      }
      await client.decreaseAvailability({ ...NIGHT, amount: 1 }, { segment: 'lisbon', watch })
      acknowledged++
    } catch (error) {
      failures.push((error as Error).name)
    }
  }
  for (let i = 0; i < 20; i++) await decrement()
  const before = inUse
  const both = Array.from({ length: 20 }, decrement)
  await stopEdges[edges.indexOf(before.split(':')[0] as string)]?.()
  await Promise.all(both)
  for (let i = 0; i < 20; i++) await decrement()

  expect(inUse).not.toBe(before)
  // A write may be on its way to an edge that closes its connections at that moment.
  expect(failures.filter((name) => name !== 'VacancyUnknownOutcomeError')).toEqual([])
  const effect = 255 - left()
  expect(effect).toBeGreaterThanOrEqual(acknowledged)
  expect(effect).toBeLessThanOrEqual(acknowledged + failures.length)
})
