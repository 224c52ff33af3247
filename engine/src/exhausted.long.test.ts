import { ask, dateIn, somewhere, succeed } from '@vacancy/testkit/node'
import { environmentWith, NODE_PLANTS } from '@vacancy/testkit/plant'
import { expect, test } from 'vitest'
import { nodesOfTest } from './testing/nodes-of-test.ts'

const { folderOfTest, start, connectTo } = nodesOfTest()
const NIGHT = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(5) }

test('a memory without a block for a write that fits the budget ends the node with a code of its own', async () => {
  const folder = folderOfTest()
  const node = await start({ folder, environment: environmentWith(NODE_PLANTS.noBlock) })
  const unanswered = expect(ask(await connectTo(node), 'SETPROP', somewhere('hotel_1'))).rejects.toMatchObject({
    code: 'connection_lost',
  })
  expect((await node.ended).code).toBe(74)
  await unanswered

  // The log has the property; a start with memory for it applies it, and it takes packages.
  const client = await connectTo(await start({ folder }))
  await succeed(client, 'SETROOMPKG', { ...NIGHT, availability: 7, finalPrice: 100 })
  const reply = await ask(client, 'GETPROPROOMDAY', NIGHT)
  expect(reply).toMatchObject({ ok: true, result: { availability: 7 } })
})
