/** Indexes that clients know from a former life of the data: before a restore, or before a fresh start. */

import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ask, dateIn, type NodeProcess, runVacancy, somewhere, succeed } from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { nodesOfTest } from './testing/nodes-of-test.ts'

const { folderOfTest, start, connectTo } = nodesOfTest()

const NIGHT = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(10) }
const line = { propertyId: 'hotel_1', roomType: 'double', arrival: NIGHT.date, nights: 1, rooms: 2 }

async function offer(node: NodeProcess, rooms: number) {
  const client = await connectTo(node)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  await succeed(client, 'SETROOMPKG', { ...NIGHT, availability: rooms, finalPrice: 100 })
  return client
}

test('after a restore and after a fresh start, an index of the former life is refused and blocks no read', async () => {
  const folder = folderOfTest()
  const former = await start({ folder, dataDir: join(folder, 'former') })
  const before = await offer(former, 5)
  const backup = ['backup', '--node', `127.0.0.1:${former.apiPort}`, '--output-path', join(folder, 'backup')]
  expect((await runVacancy(backup)).code).toBe(0)
  for (let n = 0; n < 50; n++) await succeed(before, 'SETROOMAVL', { ...NIGHT, amount: 5 })
  const { index } = (await succeed(before, 'SETROOMAVL', { ...NIGHT, amount: 5, wantIndex: 1 })) as { index: number }
  await former.stop()
  mkdirSync(join(folder, 'restored'))
  cpSync(join(folder, 'backup', 'seed.snapshot'), join(folder, 'restored', 'seed.snapshot'))

  for (const life of ['restored', 'fresh']) {
    const node = await start({ folder, dataDir: join(folder, life) })
    const client = await offer(node, 5)
    const { appliedIndex } = (await succeed(client, 'BOOKSTAY', { stayId: 'a', lines: [line], wantIndex: 1 })) as {
      appliedIndex: number
    }
    expect(appliedIndex).toBeGreaterThan(index)

    const value = (asOf: number) => ask(client, 'SETROOMAVL', { ...NIGHT, amount: 5, asOf })
    expect(await value(1_008)).toMatchObject({ code: 'TOO_OLD' })
    expect(await value(index)).toMatchObject({ code: 'TOO_OLD' })
    expect(await value(2 ** 52)).toMatchObject({ code: 'UNKNOWN_INDEX' })
    expect(await value(appliedIndex - 1)).toMatchObject({ ok: true, result: { availability: 3 } })
    const read = (minIndex: number) => ask(client, 'GETPROPROOMDAY', { ...NIGHT, minIndex })
    expect(await read(index)).toMatchObject({ ok: true, result: { availability: 3 } })
    expect(await read(2 ** 52)).toMatchObject({ code: 'UNKNOWN_INDEX' })
    await node.stop()
  }
})
