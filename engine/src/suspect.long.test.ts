import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ask, dateIn, getText, runNodeToEnd, somewhere, succeed } from '@vacancy/testkit/node'
import { environmentWith, NODE_PLANTS } from '@vacancy/testkit/plant'
import { until } from '@vacancy/testkit/until'
import { expect, test } from 'vitest'
import { nodesOfTest } from './testing/nodes-of-test.ts'

const { folderOfTest, start, connectTo } = nodesOfTest()
const NIGHT = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(5) }

test('a digest mismatch at run time used to end a node with 72 as an internal error', async () => {
  const folder = folderOfTest()
  const node = await start({ folder, environment: environmentWith(NODE_PLANTS.equalDigestsDiffer) })
  const client = await connectTo(node)
  // At once: the node ends soon after the first.
  await Promise.all([
    succeed(client, 'SETPROP', somewhere('hotel_1')),
    succeed(client, 'SETROOMPKG', { ...NIGHT, availability: 7, finalPrice: 100 }),
  ])

  let ready = ''
  await until('the reason is reported', async () => {
    ready = (await getText(node, '/ready'))[1]
    return ready.includes('digest_mismatch')
  })
  expect(ready).toContain('The state after index')
  expect((await node.ended).code).toBe(73)

  // It does not start from a history that may contain the difference, until an operator decides so.
  const refused = await runNodeToEnd({ folder })
  expect(refused.code).toBe(73)
  expect(refused.output).toContain('--accept-loss')
  expect(existsSync(join(folder, 'data', 'SUSPECT'))).toBe(true)
  const accepted = await start({ folder, flags: ['--accept-loss'] })
  const reply = await ask(await connectTo(accepted), 'GETPROPROOMDAY', NIGHT)
  expect(reply).toMatchObject({ ok: true, result: { availability: 7 } })
  expect(existsSync(join(folder, 'data', 'SUSPECT'))).toBe(false)
  expect(readdirSync(join(folder, 'data', 'quarantine'))).toHaveLength(1)
})
