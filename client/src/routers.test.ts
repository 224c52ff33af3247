import { afterEach, expect, test } from 'vitest'
import { connectIn, type VacancyClient } from './client.ts'
import { type ScriptedNode, startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function startRouter(script: Parameters<typeof startScriptedNode>[0] = {}): Promise<ScriptedNode> {
  const router = await startScriptedNode(script)
  closing.push(() => router.close())
  return router
}

const at = ({ port }: ScriptedNode) => `127.0.0.1:${port}`
const NIGHT = { propertyId: 'p', roomType: 'double', date: '2026-12-24', amount: 1 }

/** Connects with the second of two routers first: the random number is 0.5. */
async function startTwo(options: { readonly requestKeys?: boolean } = {}) {
  const world = turnedWorld()
  const [first, second] = [await startRouter(), await startRouter()]
  const client: VacancyClient = await connectIn(world, { routers: [at(first), at(second)], ...options })
  return { world, first, second, client }
}

test('all sockets use one router while it answers', async () => {
  const [first, second] = [await startRouter(), await startRouter()]
  const client = await connectIn(turnedWorld(), { routers: [at(first), at(second)], connections: 3 })
  await until(() => client.status().connections === 3)

  expect([first.peers.length, second.peers.length]).toEqual([0, 3])
  await client.close()
})

test('when a router is lost, the next one is used at once, and keyed writes are sent again', async () => {
  const { world, first, second, client } = await startTwo()
  const call = client.decreaseAvailability(NIGHT, { segment: 'lisbon' })
  const lost = await second.next()
  await second.close()
  await until(() => world.waits().includes(0))
  world.advance(0)
  const again = await first.next()
  expect(again.payload).toEqual(lost.payload)
  again.answer({ availability: 3 })

  expect(await call).toBe(3)
  await client.close()
})

test('a write without a key is not sent to the next router when it was sent to one', async () => {
  const { world, first, second, client } = await startTwo({ requestKeys: false })
  const call = client.decreaseAvailability(NIGHT, { segment: 'lisbon' }).catch((error: unknown) => error)
  await second.next()
  await second.close()
  await until(() => world.waits().includes(0))
  world.advance(0)

  expect(await call).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'connection_lost' })
  await until(() => client.status().connections === 1)
  expect(first.untaken()).toEqual([])
  await client.close()
})

test('a router that does not know its codec list yet is passed over', async () => {
  const world = turnedWorld()
  const first = await startRouter()
  const second = await startRouter({ codecs: (received) => void received.refuse('503') })
  const connecting = connectIn(world, { routers: [at(first), at(second)] })
  await until(() => world.waits().includes(0))
  world.advance(0)
  const client = await connecting

  expect(second.peers).toHaveLength(1)
  expect(first.peers).toHaveLength(1)
  await client.close()
})

test('when no router answers, the client pauses after each round over all of them', async () => {
  const { world, first, second, client } = await startTwo()
  await first.close()
  await second.close()
  await until(() => world.waits().includes(0))
  world.advance(0)
  await until(() => world.waits().some((ms) => ms >= 50))

  const call = client.propertyExists({ propertyId: 'p' }, { segment: 'lisbon' }).catch((error: unknown) => error)
  world.advance(2000)
  expect(await call).toMatchObject({ name: 'VacancyRetryError' })
  await client.close()
})

test('a client logs in to a router that wants a token', async () => {
  const router = await startRouter({ login: [Buffer.from('LOGIN OK')] })
  const client = await connectIn(turnedWorld(), { routers: [at(router)], token: 'secret' })

  expect(router.peers[0]?.received.toString('latin1')).toContain('secret')
  expect(client.rateFeatures).toHaveLength(3)
  await client.close()
})
