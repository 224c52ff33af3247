import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { decodeReply, FRAME_HEADER_BYTES } from '@vacancy/shared/wire'
import { afterEach, expect, test } from 'vitest'
import { connectIn } from './client.ts'
import { CODECS, replyFrame, type ScriptedNode, startScriptedNode } from './testing/scripted-node.ts'
import { type TurnedWorld, turnedWorld } from './testing/turned-world.ts'

const NIGHT = { propertyId: 'hotel_123', roomType: 'suite', date: '2026-12-24' }
const PACKAGE = { ...NIGHT, availability: 3, finalPrice: 12_000, rateFeatures: ['breakfast'] }

let node: ScriptedNode
afterEach(() => node.close())

async function start(world: TurnedWorld, maxInFlight: number) {
  node = await startScriptedNode()
  return connectIn(world, { port: node.port, maxInFlight })
}

test('the reply to a cancelled call makes room for one that waits', async () => {
  const client = await start(turnedWorld(), 1)
  const abort = new AbortController()
  const cancelled = client.propertyExists({ propertyId: 'p' }, { signal: abort.signal })
  const received = await node.next()
  const waiting = client.propertyExists({ propertyId: 'q' })
  abort.abort()
  await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' })

  received.answer({ exists: true })
  const next = await node.next()
  next.answer({ exists: false })

  expect(await waiting).toBe(false)
})

test('calls of a turn are sent at once, and all deadlines share a timer', async () => {
  const world = turnedWorld()
  let timers = 0
  const after: TurnedWorld['after'] = (ms, run) => {
    timers++
    return world.after(ms, run)
  }
  const client = await start({ ...world, after }, 1024)
  const peer = await node.nextPeer()
  const chunks = peer.chunks.length
  timers = 0

  for (let round = 0; round < 3; round++) {
    const calls = Array.from({ length: 100 }, () => client.getPackage(NIGHT))
    for (const _ of calls) (await node.next()).answer(PACKAGE)
    await Promise.all(calls)
  }
  const settled: string[] = []
  const ends = { later: 5000, sooner: 1000 }
  for (const [propertyId, deadlineMs] of Object.entries(ends)) {
    client.propertyExists({ propertyId }, { deadlineMs }).catch(() => settled.push(propertyId))
  }
  const settledAfter = async (ms: number) => {
    world.advance(ms)
    await new Promise((resolve) => setImmediate(resolve))
    return [...settled]
  }

  expect(await settledAfter(999)).toEqual([])
  expect(await settledAfter(1)).toEqual(['sooner'])
  expect(await settledAfter(3999)).toEqual(['sooner'])
  expect(await settledAfter(1)).toEqual(['sooner', 'later'])
  // Of 100 frames each, which the other side may read in pieces.
  expect(peer.chunks.length - chunks).toBeLessThan(10)
  expect(timers).toBeLessThanOrEqual(4)
  await client.close()
  expect(world.waits()).toEqual([])
})

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes in use beyond those before. The least of some tries: a collector may be late, never early. */
async function growthOf(run: () => Promise<readonly unknown[]>): Promise<number> {
  const used = async () => {
    // Writes of both sides end, and what finalizers release is collected as well.
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setImmediate(resolve))
      collect()
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const kept: (readonly unknown[])[] = []
  const growths: number[] = []
  for (let i = 0; i < 2; i++) {
    const before = await used()
    kept.push(await run())
    growths.push((await used()) - before)
  }
  expect(kept.flat()).toHaveLength(20_000)
  return Math.min(...growths)
}

test('10,000 pipelined calls leave nothing in memory but their results', async () => {
  const client = await start(turnedWorld(), 10_000)
  const peer = await node.nextPeer()
  const makeCalls = async () => {
    const calls = Array.from({ length: 10_000 }, () => client.getPackage(NIGHT))
    for (const _ of calls) (await node.next()).answer(PACKAGE)
    const results = await Promise.all(calls)
    // The other side keeps what it receives.
    peer.chunks.length = 0
    return results
  }
  const decode = async () => {
    const payload = replyFrame('GETPROPROOMDAY', 1, PACKAGE).subarray(FRAME_HEADER_BYTES)
    return Array.from({ length: 10_000 }, () => decodeReply('GETPROPROOMDAY', payload, { codecs: CODECS }))
  }
  const ofResults = await growthOf(decode)

  const ofCalls = await growthOf(makeCalls)

  expect(ofResults).toBeGreaterThan(1_000_000)
  expect(ofCalls).toBeLessThan(ofResults)
  await client.close()
})
