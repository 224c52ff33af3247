import { expect, onTestFinished, test } from 'vitest'
import { connectIn } from './client.ts'
import { startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'

test('a peer that replies to all requests but one is given up after 30 s, not before', async () => {
  const node = await startScriptedNode()
  onTestFinished(() => node.close())
  const world = turnedWorld()
  const client = await connectIn(world, { port: node.port })
  const exchange = async () => {
    const call = client.propertyExists({ propertyId: 'p' })
    const received = await node.next()
    received.answer({ exists: true })
    expect(await call).toBe(true)
  }
  const leaveUnanswered = async (deadlineMs: number) => {
    const call = expect(client.propertyExists({ propertyId: 'q' }, { deadlineMs })).rejects.toThrow()
    await node.next()
    return call
  }
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      world.advance(1_000)
      await exchange()
    }
  }
  world.advance(20_000)

  const first = leaveUnanswered(1_500)
  await exchange()
  await pass(28)
  await first
  const second = leaveUnanswered(500)
  await exchange()
  await pass(1)
  await second
  expect(node.peers).toHaveLength(1)

  const third = leaveUnanswered(1_500)
  await exchange()
  world.advance(1_000)
  await exchange()
  world.advance(500)
  await third
  world.advance(200)
  await exchange()
  expect(node.peers).toHaveLength(2)
})
