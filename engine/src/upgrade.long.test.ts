import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  ask,
  type ConfigLines,
  closeClient,
  dateIn,
  digestOf,
  type NodeProcess,
  openClient,
  removeFolder,
  somewhere,
  startNodeProcess,
  succeed,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { afterEach, expect, test } from 'vitest'

/** The fixtures have nights around this time, so their nodes run with this clock. */
const WRITTEN_MS = Date.UTC(2026, 10, 23, 8)
const clockOffsetMs = WRITTEN_MS - Date.now()
const SMALL_MEMORY = { memory_max_bytes: 67_108_864 }

const folders: string[] = []
const running: NodeProcess[] = []
afterEach(async () => {
  for (const node of running.splice(0)) await node.kill()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

/** A copy of the data of a node of version 0.1.0. */
function unpack(name: string): string {
  const folder = temporaryFolder()
  folders.push(folder)
  const archive = fileURLToPath(new URL(`./testing/fixtures/data-0.1.0-${name}.tgz`, import.meta.url))
  mkdirSync(join(folder, 'data'))
  execFileSync('tar', ['-xzf', archive, '-C', join(folder, 'data')])
  return folder
}

async function start(folder: string, config: ConfigLines = {}): Promise<NodeProcess> {
  const node = await startNodeProcess({ folder, config, clockOffsetMs })
  running.push(node)
  return node
}

const night = { propertyId: 'hotel_0', roomType: 'double', date: dateIn(30, clockOffsetMs) }

test('data of version 0.1.0 opens, accepts writes and deletes, and opens again', async () => {
  const folder = unpack('ordinary')
  let node = await start(folder)
  let client = await openClient(node)

  // Written before the upgrade: a repeat gets its stored reply, and changes no data.
  const key = { session: (1).toString(16).padStart(32, '0'), requestNumber: 1 }
  expect(await ask(client, 'SETROOMAVL', { ...night, amount: 1, ...key })).toMatchObject({ ok: true })
  await succeed(client, 'DECROOMAVL', { ...night, amount: 1 })
  await succeed(client, 'DELSEGMENT', { segment: 'segment_1' })
  await succeed(client, 'SETPROP', somewhere('hotel_after', 'segment_1'))
  const digest = await digestOf(node)
  await node.kill()
  node = await start(folder)

  expect(await digestOf(node)).toBe(digest)
  client = await openClient(node)
  const { propertyIds } = await succeed(client, 'SEARCHPROP', { segment: 'segment_0' })
  expect(propertyIds.length).toBeGreaterThan(50)
  closeClient(client)
})

test.each(['full', 'stuck'])(
  '%s data of version 0.1.0 opens: updates and deletes go through, growth is refused',
  async (name) => {
    const folder = unpack(name)
    const node = await start(folder, SMALL_MEMORY)
    const client = await openClient(node)

    expect(await ask(client, 'SETPROP', somewhere('one_more'))).toMatchObject({ ok: false, code: '503' })
    await succeed(client, 'SETROOMAVL', { ...night, amount: 7 })
    for (let i = 1; i < 2_000; i++) {
      const key = { session: `aaaaaa${i.toString(16)}`.padStart(32, '0'), requestNumber: 1 }
      await succeed(client, 'SETROOMAVL', { ...night, amount: i % 256, ...key })
    }
    const digest = await digestOf(node)
    await node.kill()

    expect(await digestOf(await start(folder, SMALL_MEMORY))).toBe(digest)
    closeClient(client)
  },
)
