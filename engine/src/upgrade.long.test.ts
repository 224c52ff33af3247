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
import { until } from '@vacancy/testkit/until'
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

/** A copy of the data of an earlier node. */
function unpack(name: string): string {
  const folder = temporaryFolder()
  folders.push(folder)
  const archive = fileURLToPath(new URL(`./testing/fixtures/data-${name}.tgz`, import.meta.url))
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
  const folder = unpack('0.1.0-ordinary')
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
    const folder = unpack(`0.1.0-${name}`)
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

test('stays of feature level 3 go on under the rules of today', async () => {
  const folder = unpack('level-3-stays')
  let node = await start(folder, SMALL_MEMORY)
  let client = await openClient(node)
  const line = (n: number, nights = 2) => ({
    ...{ propertyId: 'p', roomType: 'd', arrival: dateIn(n, clockOffsetMs), nights, rooms: 1 },
  })
  const stateOf = async (stayId: string) => (await succeed(client, 'GETSTAY', { stayId })).state
  const states = () => Promise.all(['booked', 'held', 'cancelled', 'void', 'old', 'new', 'late'].map(stateOf))
  const leftOn = async (n: number) => {
    const date = dateIn(n, clockOffsetMs)
    return (await succeed(client, 'GETPROPROOMDAY', { propertyId: 'p', roomType: 'd', date })).availability
  }

  expect(await states()).toEqual(['booked', 'held', 'released', 'void', 'released', 'held', 'booked'])
  // The step to the level is logged soon after the start.
  const change = { stayId: 'change', replaces: 'booked', seconds: 600, lines: [line(10, 1)] }
  const nowhere = { stayId: 'nowhere', reinstate: 1, lines: [{ ...line(10), propertyId: 'none' }] }
  await until('the newest feature level', async () => {
    const answer = await ask(client, 'BOOKSTAY', nowhere)
    return !answer.ok && answer.code === 'NOT_FOUND'
  })
  await succeed(client, 'HOLDSTAY', change)
  expect([await stateOf('booked'), await leftOn(10)]).toEqual(['booked', 1])
  await succeed(client, 'CONFIRMSTAY', { stayId: 'change' })
  expect([await stateOf('booked'), await leftOn(10), await leftOn(11)]).toEqual(['released', 1, 1])
  await succeed(client, 'CONFIRMSTAY', { stayId: 'held' })
  const unknown = { stayId: 'unknown', lines: [line(20)] }
  expect(await ask(client, 'RELEASESTAY', unknown)).toMatchObject({ ok: false, code: 'NOT_FOUND' })
  await until('the last hold of then has expired', async () => (await stateOf('short')) === 'expired')
  const digest = await digestOf(node)
  await node.kill()
  closeClient(client)

  node = await start(folder, SMALL_MEMORY)
  client = await openClient(node)
  expect(await digestOf(node)).toBe(digest)
  expect(await stateOf('change')).toBe('booked')
  closeClient(client)
})
