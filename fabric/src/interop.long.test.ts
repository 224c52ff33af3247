/**
 * Components of this project beside existing ones, over real sockets: a request reaches the nodes unchanged, and its
 * reply the client, no matter who made the hops between them.
 */

import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { type ClientReply, type ExistingClient, errorText, openGeneration1 } from './testing/existing/clients.ts'
import type { ExistingShard } from './testing/existing/nodes.ts'
import {
  askAny,
  type Chain,
  CODECS,
  EXISTING,
  enclose,
  isWrite,
  type Maker,
  OURS,
  requestOf,
  SEGMENTS,
  startAnyBridge,
  startChain,
  startPlatform,
  startShard,
} from './testing/platform.ts'
import { cases, ROUTABLE, type Routable, routedFrame } from './testing/vectors.ts'

/** Answered by routers. */
const LOCAL = new Set(['GETCODECS', 'GETSEGMENTS'])

function payloadOf(frame: Buffer): Buffer {
  const inner = frame[0] === 0xfe ? 6 + (frame[5] as number) + 1 : 0
  return frame.subarray(inner + 9)
}

/** The node executed exactly these bytes, in the right role, and its reply came back unchanged. */
function checkEcho(shard: ExistingShard, vector: Routable, frame: Buffer, reply: ClientReply): void {
  const { command } = vector.json
  expect(errorText(reply), vector.name).toBeUndefined()
  const [node, payload] = reply.fields
  expect(payload?.data.toString('hex'), vector.name).toBe(payloadOf(frame).toString('hex'))
  expect(node?.data.toString() === shard.leader(), `${vector.name} on ${node?.data}`).toBe(isWrite(command))
}

async function passVectors(client: ExistingClient, shard: ExistingShard): Promise<void> {
  shard.received.length = 0
  const echoed = ROUTABLE.filter(({ json }) => !LOCAL.has(json.command))
  for (const vector of echoed) {
    const frame = routedFrame(vector)
    checkEcho(shard, vector, frame, await askAny(client, frame))
  }
  expect(shard.received.length).toBe(echoed.length)
  // All at once, each under an id of its own.
  const frames = echoed.map((vector, i) => {
    const frame = Buffer.from(routedFrame(vector))
    frame.writeUInt32LE(1_000 + i, 6 + (frame[5] as number) + 2)
    return frame
  })
  const replies = await Promise.all(frames.map((frame) => askAny(client, frame)))
  echoed.forEach((vector, i) => {
    checkEcho(shard, vector, frames[i] as Buffer, replies[i] as ClientReply)
  })
  // Writes of one connection to one segment keep their order.
  const writes = shard.received.slice(echoed.length).filter(({ command }) => isWrite(command))
  for (const segment of SEGMENTS) {
    const sent = frames
      .filter((frame, i) => isWrite(echoed[i]?.json.command ?? '') && segmentOf(frame) === segment)
      .map((frame) => payloadOf(frame).toString('hex'))
    const arrived = writes.map(({ payload }) => payload.toString('hex')).filter((payload) => sent.includes(payload))
    expect(arrived, segment).toEqual(sent)
  }
}

function segmentOf(frame: Buffer): string {
  return frame.toString('utf8', 6, 6 + (frame[5] as number))
}

/** Codec list, segment list, keepalive and an unknown segment, as clients use them. */
async function passLocalAnswers(client: ExistingClient, edge: Maker): Promise<void> {
  expect(client.codecs).toEqual(CODECS)
  const [segments, keepalive] = ['getsegments-router-special-segment', 'keepalive'].map((name) =>
    Buffer.from(cases.find((vector) => vector.name === name)?.hex ?? '', 'hex'),
  ) as [Buffer, Buffer]
  const list = await client.ask(segments)
  const names = list.fields.filter(({ id }) => id % 2 === 1).map(({ data }) => data.toString())
  expect(names.sort()).toEqual([...SEGMENTS].sort())
  client.send(keepalive)
  const unknown = enclose(requestOf('PROPEXIST', 77), 'nowhere', 'PROPEXIST')
  if (edge === 'ours') expect(errorText(await client.ask(unknown))).toBe('404')
  else await expect(client.ask(unknown)).rejects.toThrow('broken reply')
  expect(client.fault()).toBe('')
}

test.each<readonly [string, Chain]>([
  ['existing components alone', EXISTING],
  ['ours alone, before existing nodes', OURS],
  ['our edge, existing zone router, our bridge', { ...OURS, zone: 'existing' }],
  ['existing edge, our zone router, existing bridge', { ...EXISTING, zone: 'ours', registry: 'ours' }],
  ['our edge and zone router, existing bridge', { ...OURS, bridge: 'existing' }],
  ['existing edge and zone router, our bridge', { ...EXISTING, bridge: 'ours' }],
  ['existing edge, our zone router and bridge', { ...OURS, edge: 'existing' }],
  ['our edge, existing zone router and bridge', { ...EXISTING, edge: 'ours' }],
  ['ours on an existing registry and resolver', { ...OURS, registry: 'existing', resolver: 'existing' }],
  ['existing ones on our registry and resolver', { ...EXISTING, registry: 'ours', resolver: 'ours' }],
])('%s pass all request vectors', async (_name, chain) => {
  const { client, shard } = await startChain(chain)

  await passVectors(client, shard)
  await passLocalAnswers(client, chain.edge)
})

test('clients of both generations talk to our bridge, which has existing nodes', async () => {
  const platform = await startPlatform({ registry: 'existing', resolver: 'existing' })
  const shard = await startShard(platform, 1, SEGMENTS)
  await startAnyBridge(platform, 'ours', 1)
  const client = await until('the bridge serves', () => openGeneration1(platform.host('bridge'), 9000))
  onTestFinished(client.close)

  for (const vector of ROUTABLE) {
    if (vector.json.envelope || LOCAL.has(vector.json.command)) continue
    const frame = Buffer.from(vector.hex, 'hex')
    checkEcho(shard, vector, frame, await client.ask(frame))
  }
  for (const vector of ROUTABLE) {
    if (!vector.json.envelope || LOCAL.has(vector.json.command)) continue
    const frame = Buffer.from(vector.hex, 'hex')
    checkEcho(shard, vector, frame, await client.ask(frame))
  }
  expect(client.codecs).toEqual(CODECS)
})
