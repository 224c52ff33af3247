import {
  ask,
  closeClient,
  dateIn,
  digestOf,
  getText,
  type NodeProcess,
  openClient,
  removeFolder,
  somewhere,
  startNodeProcess,
  succeed,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'

/** `VACANCY_FULL_SESSIONS=200000` runs the long form. */
const SESSIONS = Number(process.env['VACANCY_FULL_SESSIONS'] ?? 20_000)
const AT_ONCE = 500
const folder = temporaryFolder()
const running: NodeProcess[] = []
afterEach(async () => {
  for (const node of running.splice(0)) await node.kill()
  removeFolder(folder)
})

async function start(): Promise<NodeProcess> {
  const config = { memory_max_bytes: 67_108_864, snapshot_interval_sec: 2, snapshot_trigger_count: 5_000 }
  const node = await startNodeProcess({ folder, config })
  running.push(node)
  return node
}

/** Sent again while its outcome is unknown, as clients do: the disk of a test may be busy for seconds. */
const known: typeof ask = async (client, command, request) => {
  const reply = await ask(client, command, request)
  return !reply.ok && reply.code === '408' ? await known(client, command, request) : reply
}

const night = { propertyId: 'hotel_0', roomType: 'double', date: dateIn(30) }

/** Adds properties until a reply is 503. @returns their number */
async function fillMemory(client: WireClient): Promise<number> {
  for (let count = 0; ; count += AT_ONCE) {
    const property = (i: number) => ({ ...somewhere(`hotel_${count + i}`), area: `area_${(count + i) % 500}` })
    const replies = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => known(client, 'SETPROP', property(i))))
    const refused = replies.filter((reply) => !reply.ok)
    for (const reply of refused) expect(reply).toMatchObject({ ok: false, code: '503' })
    if (refused.length > 0) return count + AT_ONCE - refused.length
  }
}

async function availability(client: WireClient): Promise<number | undefined> {
  const { properties } = await succeed(client, 'SEARCHAVAIL', {
    segment: 'alpine',
    roomType: 'double',
    dates: [night.date],
    propertyId: 'hotel_0',
    availability: 0,
  })
  return properties[0]?.days[0]?.availability
}

test('a full node serves, restarts and keeps every acknowledged change (request keys used to end it with 72, then 73)', async () => {
  let node = await start()
  let client = await openClient(node)
  await succeed(client, 'SETPROP', somewhere('hotel_0'))
  await succeed(client, 'SETROOMPKG', { ...night, availability: 1, finalPrice: 100 })
  const count = await fillMemory(client)
  expect(count).toBeGreaterThan(1_000)
  await until('/ready names the reason', async () => (await getText(node, '/ready'))[1].includes('memory_full'))

  for (let from = 1; from <= SESSIONS; from += AT_ONCE) {
    const key = (i: number) => ({ session: (from + i).toString(16).padStart(32, '0'), requestNumber: 1 })
    const set = (i: number) => known(client, 'SETROOMAVL', { ...night, amount: (from + i) % 256, ...key(i) })
    for (const reply of await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => set(i)))) {
      expect(reply).toMatchObject({ ok: true })
    }
  }
  const last = (SESSIONS - (SESSIONS % AT_ONCE || AT_ONCE) + AT_ONCE) % 256
  expect(await availability(client)).toBe(last)
  const digest = await digestOf(node)

  await node.kill()
  node = await start()
  client = await openClient(node)

  expect(await availability(client)).toBe(last)
  expect(await digestOf(node)).toBe(digest)
  expect(await ask(client, 'SETPROP', somewhere('one_more', 'another_segment'))).toMatchObject({
    ok: false,
    code: '503',
  })
  // Deletes make room for later writes.
  for (let i = 1; i < 1_000; i++) await succeed(client, 'DELPROP', { propertyId: `hotel_${i}` })
  await succeed(client, 'SETPROP', somewhere('one_more', 'another_segment'))
  closeClient(client)
  expect(node.output()).not.toMatch(/Internal error|No free block/)
})
